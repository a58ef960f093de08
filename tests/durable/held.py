"""What a broker process holds, for every_limit.py: its RSS, and the octets of its objects, which depend on no
allocator's state."""

import os
import re
import signal
import time

COUNTING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counting")
WAIT_S = 120
QUIET_S = 0.1
IN_BLOCKS = re.compile(rb"^# bytes in allocated blocks +=\s+([0-9,]+)$", re.MULTILINE)
OF_MALLOC = re.compile(rb"^malloc ([0-9]+)$", re.MULTILINE)


def variables(directory):
    """The environment of a broker that can be counted, with a directory for its counts. Its hashes are the same in every run."""
    return {
        "PYTHONPATH": COUNTING,
        "PYTHONHASHSEED": "1",
        "LEVERET_COUNTS": os.path.join(directory, "counts"),
    }


def resident(pid):
    """Octets that a process has in memory."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024


def allocated(pid, directory):
    """Octets of the objects of a broker started with variables(directory): all that pymalloc and the C library have given it."""
    path = os.path.join(directory, "counts")
    os.kill(pid, signal.SIGUSR2)
    until(lambda: os.path.exists(path), "no counts were written")
    with open(path, "rb") as file:
        told = file.read()
    os.remove(path)
    return int(IN_BLOCKS.search(told).group(1).replace(b",", b"")) + int(OF_MALLOC.search(told).group(1))


def until(true, sentence):
    """Wait until something is true."""
    limit = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < limit, sentence
        time.sleep(0.01)


def settle(pid):
    """Wait until a process has nothing to do: it sleeps, and in QUIET_S it has not run (a busy machine leaves one that wants to run in
    state R)."""

    def quiet():
        before = _state(pid)
        time.sleep(QUIET_S)
        return before[0] == "S" and before == _state(pid)

    until(quiet, "the broker does not come to rest")


def _state(pid):
    """proc(5): (the process's state, its processor time in ticks)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return fields[0], int(fields[11]) + int(fields[12])
