"""More messages than memory in a real broker, with kill -9 in the middle: every one, in order, once, in bounded memory.

The whole gibibyte in 64 MB takes minutes and two GB of disk: LEVERET_BEYOND_MEMORY=1 runs it here, or tests/durable/beyond_memory.py alone.
"""

import os

import pytest
from beyond_memory import disk, measure

MEBIBYTE = 1 << 20
INTERPRETER = 40 * MEBIBYTE  # what a Python process with the broker's code takes before it has any message


def check(tmp_path, octets, body, memory, kill):
    """Everything comes back; the process never had more than its limits and the interpreter; the figures."""
    measured = measure(str(tmp_path), octets, body, memory, kill, ("--disk-max", str(2 * octets + 64 * MEBIBYTE)))
    assert measured["count"] == octets // body
    assert measured["peak_memory_mb"] * 1e6 < memory + INTERPRETER, measured
    return measured


def test_eight_times_the_memory_with_a_kill_in_between(tmp_path):
    """64 MiB in limits of 8 MiB, in messages of 4 KiB."""
    print(check(tmp_path, 64 * MEBIBYTE, 4096, 8 * MEBIBYTE, True))


def test_large_messages_of_which_memory_holds_few(tmp_path):
    """Bodies of 600 KB, in limits of 8 MiB."""
    print(check(tmp_path, 60 * 600000, 600000, 8 * MEBIBYTE, True))


if "LEVERET_BEYOND_MEMORY" in os.environ:

    @pytest.mark.parametrize("body", [4096, 65536])
    def test_a_gibibyte_in_a_broker_limited_to_64_mib(tmp_path, body):
        """The promise to the user, in figures."""
        found = check(tmp_path, 1024 * MEBIBYTE, body, 64 * MEBIBYTE, True)
        found["disk_write_mb_s"], found["disk_read_mb_s"] = disk(str(tmp_path), 1024 * MEBIBYTE)
        print(found)
