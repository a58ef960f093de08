"""Run a child process with its output in a log file, and show that it is alive.

On a terminal one line is rewritten in place; elsewhere a line is printed every half minute, so that a slow step never looks dead.
The child is its own process group: whatever ends us (Ctrl-C, a time-out, an error) ends the whole group. It decides nothing about results.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from ..held_signals import HeldSignals

LOOK_S = 0.25
REMINDER_S = 30
GRACE_S = 5


class TimedOut(Exception):
    """The child did not end within the time it was given."""


def last_line(path):
    """The last line of text in a log file that says something, or ''."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.path.getsize(path) - 4096))
            lines = log.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    filled = [line.strip() for line in lines if line.strip()]
    return filled[-1] if filled else ""


class Line:
    """The progress of one step."""

    def __init__(self, title, log_path):
        self.title = title
        self.log_path = log_path
        self.began = time.monotonic()
        self.reminded = self.began

    def seconds(self):
        return time.monotonic() - self.began

    def remind(self):
        """For a log: a line every half minute."""
        if time.monotonic() - self.reminded >= REMINDER_S:
            self.reminded = time.monotonic()
            print(f"  {self.title}: {self.seconds():.0f} s so far, {last_line(self.log_path)[:100]}", flush=True)


def show(lines):
    """The progress of the steps that run now: rewritten in place on a terminal, a reminder elsewhere."""
    if not sys.stdout.isatty():
        for line in lines:
            line.remind()
        return
    width = shutil.get_terminal_size().columns - 1
    texts = [f"  {line.title}: {line.seconds():.0f} s  {last_line(line.log_path)}"[: width // len(lines)] for line in lines]
    print("\r" + "".join(texts).ljust(width), end="", flush=True)


def clear():
    """Take the line of progress from a terminal."""
    if sys.stdout.isatty():
        print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", flush=True)


def end_group(child):
    """End a child that was started as the leader of its own group, and everything it started, kindly first."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, signal_number)
        except ProcessLookupError:
            break
        try:
            child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


def processor_seconds():
    """Of all children that have been waited for, with what these have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def step(title, command, log_path, seconds_max, environment=None, directory=None, spent=None):
    """A generator that runs `command` with its output in `log_path`: yields its Line while it runs, returns the exit status.

    `spent`: a list that gets the seconds of processor time that the command took, when it has ended by itself.

    Raises TimedOut, and OSError when the command cannot be started. A generator that is closed ends the child.
    """
    line = Line(title, log_path)
    with open(log_path, "wb") as log:
        child = None
        try:
            with HeldSignals():
                child = subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env=environment,
                    cwd=directory,
                    start_new_session=True,
                )
            before = processor_seconds()
            while child.poll() is None:
                if line.seconds() > seconds_max:
                    raise TimedOut()
                yield line
                before = processor_seconds()  # so that no other step's child is counted
            if spent is not None:
                spent.append(processor_seconds() - before)
            return child.returncode
        finally:
            if child is not None:
                end_group(child)


def side_by_side(steps, most):
    """Advance the generators of `steps` in their order, at most `most` at a time; yields (number of the step, what it returned).

    However this ends, the steps that were begun are closed.
    """
    waiting = list(enumerate(steps))
    running: dict = {}  # number -> (generator, its Line)
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number, generator = waiting.pop(0)
                running[number] = generator, None
            for number, (generator, _) in list(running.items()):
                try:
                    running[number] = generator, next(generator)
                except StopIteration as ended:
                    del running[number]
                    clear()
                    yield number, ended.value
            lines = [line for _, line in running.values() if line is not None]
            if lines:
                show(lines)
                time.sleep(LOOK_S)
    finally:
        for generator, _ in running.values():
            generator.close()
        clear()


def run(title, command, log_path, seconds_max, environment=None, directory=None):
    """Exit status of `command`; the rest as `step` has it."""
    ((_, status),) = side_by_side([step(title, command, log_path, seconds_max, environment, directory)], 1)
    return status
