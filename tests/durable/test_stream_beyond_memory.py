"""A stream far larger than memory, with kill -9 in between: readers from the first message get all of it, in bounded memory.

A gibibyte takes minutes: LEVERET_BEYOND_MEMORY=1 runs it here, or tests/durable/stream_beyond_memory.py alone.
"""

import os

from stream_beyond_memory import measure
from test_beyond_memory import INTERPRETER, MEBIBYTE


def check(tmp_path, octets, body, memory):
    """Every offset came to every reader; the process never had more than its limits and the interpreter."""
    measured = measure(str(tmp_path), octets, body, memory)
    print(measured)
    assert max(measured["peaks_mb"]) * 1e6 < memory + INTERPRETER, measured


def test_a_stream_of_many_times_the_memory_is_read_from_the_first_message(tmp_path):
    """96 MiB in a broker with an arena of 16 MiB."""
    check(tmp_path, 96 * MEBIBYTE, 4096, 128 * MEBIBYTE // 3)


if "LEVERET_BEYOND_MEMORY" in os.environ:

    def test_a_gibibyte_of_stream_in_a_broker_limited_to_64_mib(tmp_path):
        """The promise to the user, in figures."""
        check(tmp_path, 1024 * MEBIBYTE, 1024, 64 * MEBIBYTE)
