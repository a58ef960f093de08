"""Run a child process with its output in a log file, and show that it is alive.

On a terminal one line is rewritten in place; elsewhere a line is printed every half minute, so that a slow step never looks dead.
The child is its own process group: whatever ends us (Ctrl-C, a time-out, an error) ends the whole group. It decides nothing about results.
"""
import os
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
    told = [line.strip() for line in lines if line.strip()]
    return told[-1] if told else ""


class Line:
    """The progress of one step."""

    def __init__(self, title):
        self.title = title
        self.began = time.monotonic()
        self.reminded = self.began
        self.on_terminal = sys.stdout.isatty()

    def seconds(self):
        return time.monotonic() - self.began

    def show(self, log_path):
        if self.on_terminal:
            width = shutil.get_terminal_size().columns - 1
            text = f"  {self.title}: {self.seconds():.0f} s  {last_line(log_path)}"
            print("\r" + text[:width].ljust(width), end="", flush=True)
        elif time.monotonic() - self.reminded >= REMINDER_S:
            self.reminded = time.monotonic()
            print(f"  {self.title}: {self.seconds():.0f} s so far, {last_line(log_path)[:100]}", flush=True)

    def clear(self):
        if self.on_terminal:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + " " * width + "\r", end="", flush=True)


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


def run(title, command, log_path, seconds_max, environment=None, directory=None):
    """Exit status of `command`; its output is in `log_path`. Raises TimedOut, and OSError when it cannot be started."""
    line = Line(title)
    with open(log_path, "wb") as log:
        child = None
        try:
            with HeldSignals():
                child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                         env=environment, cwd=directory, start_new_session=True)
            return _wait(child, line, log_path, seconds_max)
        finally:
            if child is not None:
                end_group(child)
            line.clear()


def _wait(child, line, log_path, seconds_max):
    while True:
        try:
            return child.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            line.show(log_path)
        if line.seconds() > seconds_max:
            raise TimedOut()
