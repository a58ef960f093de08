"""Inside MicroPython, for run_load.mjs: board_load.py with the limits of `board_profile`, a round a call.

No exception goes out to JavaScript: where memory is used up the build loops for ever when it converts one. It judges nothing.
"""

import gc
import json
import sys

import board_load
import board_profile

ROUNDS = (1, 5, 16, 40)  # messages that are under way together
TURNS_MAX = 500
COLLECT_EVERY = 24  # calls: collecting takes 20 ms there, because of what heap_bound.py holds
LAPS_BEFORE = 20  # then all routes and queues have been used

# All the code that the board has: what is imported later would be loaded into the heap that the code leaves, and its names can double the
# pool of names there (9 KB), which frozen code has in flash.
for name in board_profile.MODULES:
    __import__(name)

_load = None
_lap = _left = _turns = _calls = 0
_failed = 0
_free_before = 0
_reserve = [None] * 256  # comes free at once when it is cleared: for the report of an error


def begin():
    """Make the broker."""
    global _load, _failed
    try:
        _load = board_load.Load(**board_profile.LIMITS)
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _reserve.clear()
        _failed = 1
        sys.print_exception(error)
    gc.collect()


def prepare():
    """One step of what comes before the messages: 1, or 0 when there is no further one."""
    global _failed
    try:
        return 1 if not _failed and _load.prepare() else 0
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _reserve.clear()
        _failed = 1
        sys.print_exception(error)
    return 0


def step():
    """One message, or when those of a round are published one turn of their delivery: 0, or 1 when it failed."""
    global _failed, _calls
    try:
        one_step()
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _reserve.clear()
        _failed = 1
        sys.print_exception(error)
    _calls += 1
    if _calls % COLLECT_EVERY == 0:
        gc.collect()
    return _failed


def one_step():
    global _lap, _left, _turns, _free_before
    if _left:
        _left -= 1
        _load.publish()
        return
    _turns += 1
    if not _load.settled():
        if _turns > TURNS_MAX:
            raise RuntimeError("the messages do not come out")
        return
    _lap += 1
    _turns = 0
    _left = ROUNDS[_lap % len(ROUNDS)]
    if _lap == LAPS_BEFORE:
        _free_before = gc.mem_free()
    _load.broker.tick(_lap * 5 & 0x3FFFFFFF, 1700000000 + _lap // 200)


def done():
    """Messages that have come out so far."""
    return sum([peer.received for peer in _load.peers]) if _load is not None else 0


def tell():
    counters = _load.broker.counters if _load is not None else {}
    print(
        "LOAD "
        + json.dumps(
            {
                "messages": _load.turn if _load else 0,
                "received": done(),
                "failed": _failed,
                "internal_errors": counters.get("internal_errors", -1),
                "free_before": _free_before,
                "free_after": gc.mem_free(),
            }
        )
    )
