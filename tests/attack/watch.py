"""The broker's process from outside: started, looked at (memory, descriptors, disk, standard error), ended, its log checked."""

import collections
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import settings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
START_S = 120
RSS_SLACK = 1.05
DESCRIPTORS_BESIDE = 64
LOG_LINES_MAX = 3000  # in a minute
DISK_SLACK = 8 << 20
TROUBLE = re.compile(rb"Traceback|internal error|an error of this broker|Fatal Python error|MemoryError|Segmentation", re.IGNORECASE)
SUM = re.compile(r"at most (\d+) MiB")


class Watch:
    """The broker's process: started, looked at, ended. `found(text)` gets what is wrong."""

    def __init__(self, form, directory, seed, canary, found):
        self.directory = directory
        self.found = found
        self.canary = canary
        self.data = os.path.join(directory, "data")
        self.error_path = os.path.join(directory, "stderr")
        self.stacks_path = os.path.join(directory, "stacks")
        self.sync = random.Random(f"sync {seed}").choice(("each", "each", "batch", "none"))
        self.port = free_port()
        self.environment = dict(os.environ, LEVERET_ACCEL="0" if form == "plain" else "1", PYTHONFAULTHANDLER="1")
        if form != "plain":
            del self.environment["LEVERET_ACCEL"]
        self.process = None
        self.read_to = 0
        self.lines = collections.deque()
        self.sum_mib = self.base_kib = self.rss_kib = self.descriptors = self.disk = self.lines_max = self.starts = 0
        self.start_s = 0.0
        with open(os.path.join(directory, "leveret.toml"), "w", encoding="utf-8") as file:
            file.write(settings.toml())

    def start(self):
        """Start it: false when it does not say that it is ready."""
        began = time.monotonic()
        command = [
            sys.executable,
            os.path.join(HERE, "launch.py"),
            self.stacks_path,
            self.canary if self.starts == 0 else "",
            "serve",
            "--listen",
            f"amqp://127.0.0.1:{self.port}",
            "--config",
            os.path.join(self.directory, "leveret.toml"),
            "--data",
            self.data,
            "--disk-max",
            str(settings.DISK_MAX),
            "--segment-size",
            "512K",
            "--sync",
            self.sync,
        ]
        with open(self.error_path, "ab") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=self.environment)
        self.starts += 1
        alarm = threading.Timer(START_S, self.process.kill)
        alarm.start()
        line = self.process.stdout.readline()
        alarm.cancel()
        self.start_s = max(self.start_s, time.monotonic() - began)
        if not line.startswith(b"ready "):
            self.process.wait()
            return False
        while not self.sum_mib and time.monotonic() - began < START_S:
            told = SUM.search(self.said())
            self.sum_mib = int(told.group(1)) if told else 0
            time.sleep(0.01)
        self.base_kib = self.base_kib or self.status("VmRSS")
        return True

    def said(self, octets=20000):
        """The end of standard error."""
        with open(self.error_path, "rb") as file:
            file.seek(max(0, os.path.getsize(self.error_path) - octets))
            return file.read().decode("utf-8", "replace")

    def status(self, name):
        """A line of /proc/PID/status in KiB; 0 when it is gone."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
                return next((int(line.split()[1]) for line in file if line.startswith(name + ":")), 0)
        except OSError:
            return 0

    def rss_max_kib(self):
        """What it may take."""
        return int(self.sum_mib * 1024 * RSS_SLACK)

    def look(self):
        """One look at everything that is to be bounded."""
        self.read_errors()
        rss = self.status("VmHWM")
        if rss > self.rss_kib:
            self.rss_kib = rss
            if rss > self.rss_max_kib():
                self.found(f"memory: {rss >> 10} MiB, of at most {self.sum_mib} MiB ({self.base_kib >> 10} at the start)")
        with contextlib.suppress(OSError):
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self.process.pid}/fd")))
            if self.descriptors > 96 + DESCRIPTORS_BESIDE:
                self.found(f"descriptors: {self.descriptors}")
        disk = 0
        for name in os.listdir(self.data) if os.path.isdir(self.data) else ():
            with contextlib.suppress(OSError):
                disk += os.path.getsize(os.path.join(self.data, name))
        self.disk = max(self.disk, disk)
        if disk > settings.DISK_MAX + DISK_SLACK:
            self.found(f"disk: {disk >> 20} MiB, of {settings.DISK_MAX >> 20} that it may take")

    def read_errors(self):
        """Standard error since the last time."""
        with open(self.error_path, "rb") as file:
            file.seek(self.read_to)
            text = file.read()
        self.read_to += len(text)
        now = time.monotonic()
        self.lines.append((now, text.count(b"\n")))
        while self.lines and now - self.lines[0][0] > 60:
            self.lines.popleft()
        count = sum(each for _, each in self.lines)
        self.lines_max = max(self.lines_max, count)
        if count > LOG_LINES_MAX:
            self.found(f"log: {count} lines in a minute; the last is {text[-150:].decode('utf-8', 'replace').splitlines()[-1:]}")
            self.lines.clear()
        trouble = TROUBLE.search(text)
        if trouble:
            self.found("standard error: " + shortened(text[max(0, trouble.start() - 200) :][:20000].decode("utf-8", "replace")))

    def stacks(self):
        """Where it is."""
        size = os.path.getsize(self.stacks_path) if os.path.exists(self.stacks_path) else 0
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGUSR2)
        time.sleep(0.1)
        with open(self.stacks_path, encoding="utf-8", errors="replace") as file:
            file.seek(size)
            innermost = file.read().split("Current thread")[-1][:1500].replace("(most recent call first)", "").replace(ROOT + os.sep, "")
            return innermost.rpartition("\n")[0]

    def alive(self):
        """True while it runs."""
        return self.process is not None and self.process.poll() is None

    def end(self, seconds=60):
        """SIGTERM: its exit status, or None when it had to be killed."""
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
            self.process.kill()
            self.process.wait()
            return None

    def check_log(self):
        """`leveret log check` of what is left."""
        done = subprocess.run(
            [sys.executable, "-m", "leveret.tools.cli", "log", "check", self.data], capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            self.found(f"log check of a broker that ended cleanly: status {done.returncode}: {(done.stdout + done.stderr)[-600:]}")


def shortened(text):
    """The beginning and the end of a long text."""
    return text if len(text) < 2400 else f"{text[:500]}\n ...\n{text[-1800:]}"


def free_port():
    """A port below those that the system gives to clients, which stays the broker's over restarts."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
