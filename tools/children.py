"""Child processes with a log each, ended on every way out.

    with Children(directory) as children:
        gateway = children.start("gateway", ["serve", ...])
        gateway.wait_line("ready ", 10)

Laws: a child is the leader of its own process group, so Ctrl-C on the terminal reaches only us and we end the children in order;
leaving the `with` block ends whatever still runs, last started first, kindly, then by force. A failure names the log.
"""

import os
import signal
import subprocess
import sys
import time

from .held_signals import HeldSignals

LOOK_S = 0.05
GRACE_S = 10


class ChildFailed(Exception):
    """A child did not do what it had to; the text is for the user and names the log."""


class Child:
    """One process; standard output and standard error go to `NAME.log` and `NAME.err` in `directory`."""

    def __init__(self, name, command, directory):
        self.name = name
        self.output_path = os.path.join(directory, name + ".log")
        self.error_path = os.path.join(directory, name + ".err")
        with open(self.output_path, "wb") as output, open(self.error_path, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True)

    def lines(self):
        """Its output so far, whole lines only."""
        with open(self.output_path, errors="replace") as file:
            return file.read().split("\n")[:-1]

    def last_error_line(self):
        """The last line on standard error, or ''."""
        with open(self.error_path, errors="replace") as file:
            return file.read().strip().rsplit("\n", 1)[-1]

    def fail(self, sentence):
        line = self.last_error_line()
        raise ChildFailed(f"{self.name} {sentence}" + (f": {line}" if line else "") + f" (logs: {self.output_path}, {self.error_path})")

    def wait_line(self, start, seconds_max):
        """The first line that starts with `start`."""
        limit = time.monotonic() + seconds_max
        while True:
            ended = self.process.poll() is not None
            for line in self.lines():
                if line.startswith(start):
                    return line
            if ended:
                self.fail(f"ended with exit status {self.process.returncode}")
            if time.monotonic() > limit:
                self.fail(f"did not print {start.strip()!r} within {seconds_max} s")
            time.sleep(LOOK_S)

    def wait_end(self, seconds_max):
        """Wait for a clean end; the lines it printed."""
        try:
            self.process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            self.fail(f"did not end within {seconds_max} s")
        if self.process.returncode != 0:
            self.fail(f"ended with exit status {self.process.returncode}")
        return self.lines()

    def running(self):
        return self.process.poll() is None

    def end(self):
        """Exit status after SIGTERM, or SIGKILL for one that does not listen."""
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            if not self.running():
                break
            os.killpg(self.process.pid, signal_number)
            try:
                self.process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                continue
        self._end_left_over()
        return self.process.returncode

    def _end_left_over(self):
        """End the child's group, in which are processes that it left behind (Spark's Java)."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


class Children:
    """The children of one run; their logs are in `directory`."""

    def __init__(self, directory):
        self.directory = directory
        self._all = []

    def start(self, name, arguments):
        """Start `python -m ARGUMENTS...` with our own Python."""
        with HeldSignals():
            child = Child(name, [sys.executable, "-m", *arguments], self.directory)
            self._all.append(child)
        return child

    def check(self):
        """Raise ChildFailed when one has ended with a failure."""
        for child in self._all:
            if child.process.poll():
                child.fail(f"ended with exit status {child.process.returncode}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_all()

    def end_all(self):
        """End what still runs, last started first."""
        for child in reversed(self._all):
            child.end()
