"""Inside MicroPython, for client_alone.mjs: imports a client, runs the lines of boards/README.md (`ten_lines`), says how much is free."""

import gc
import json
import sys

import js  # noqa: F401 - client_alone_socket.py has it, before the heap is bounded
import uctypes  # noqa: F401 - as above

_free = [0, 0]  # octets at most before a message, in the first half of them and in the second: garbage is collected now and then only
_count = 0


def load(name):
    """Import a module by its whole name."""
    __import__(name)


def begin():
    sys.modules["ten_lines"].start()


def again():
    """One more message."""
    global _count
    half = 1 if _count * 2 >= sys.modules["ten_lines"].MESSAGES else 0
    _free[half] = max(_free[half], gc.mem_free())
    _count += 1
    sys.modules["ten_lines"].again()


def tell():
    print("TOLD " + json.dumps({"free_first": _free[0], "free_last": _free[1], "messages": _count}))
