"""The port of the WebAssembly build, inside half: endpoints in fixed slots, whose bytes carrier.mjs moves.

JavaScript calls with integers only and reads one table in memory, because every object that crosses costs microseconds and leaks until its
finaliser runs (MICROPYTHON.md section 5). The table has five 32-bit columns per slot, fresh after `turn`:
    address and length of writable(), address and length of pending(), closed (0 or 1)
and behind them one that is 1 when an endpoint has raised, which breaks its contract: carrier.mjs then ends the process. No exception goes
out to JavaScript: where memory is used up the build loops for ever when it converts one.

A module to serve gives `start()`, `make_endpoint()` (an endpoint, or None to refuse), `tick(now)` and `run(now)` (what is due after input).
It moves bytes; it decides nothing.
"""

import sys
from array import array

from uctypes import addressof

SLOT_COUNT = 8
COLUMNS = 5
RAISED = COLUMNS * SLOT_COUNT

_table = array("I", bytes(4 * (RAISED + 1)))
_endpoints = [None] * SLOT_COUNT
_reserve = [None] * 1024  # its memory comes free at once when it is cleared; the collector would run only after the call
_served = None


def load(name):
    """Import the module to serve, so that its code is in memory before the heap is bounded."""
    global _served
    _served = __import__(name)


def start():
    """Start the module; returns the address of the table."""
    _served.start()
    return addressof(_table)


def open_slot():
    """Slot number of a new endpoint; -1: no slot is free, or the endpoint was refused."""
    for slot in range(SLOT_COUNT):
        if _endpoints[slot] is None:
            _guarded(_fill, slot)
            return -1 if _endpoints[slot] is None else slot
    return -1


def _fill(slot):
    _endpoints[slot] = _served.make_endpoint()


def received(slot, size):
    _guarded(_endpoints[slot].received, size)


def sent(slot, size):
    _guarded(_endpoints[slot].sent, size)


def _guarded(action, argument):
    try:
        action(argument)
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _table[RAISED] = 1
        _reserve.clear()
        sys.print_exception(error)


def release(slot):
    _endpoints[slot] = None


def tick(now):
    _served.tick(now)
    for endpoint in _endpoints:
        if endpoint is not None:
            _guarded(endpoint.tick, now)


def turn(now):
    """Let the module do what is due, then bring the table up to date."""
    _guarded(_served.run, now)
    for slot in range(SLOT_COUNT):
        if _endpoints[slot] is not None:
            _show(slot * COLUMNS, _endpoints[slot])


def _show(row, endpoint):
    region = endpoint.writable()
    _table[row + 1] = len(region)
    _table[row] = addressof(region) if len(region) else 0
    region = endpoint.pending()
    _table[row + 3] = len(region)
    _table[row + 2] = addressof(region) if len(region) else 0
    _table[row + 4] = 1 if endpoint.closed else 0
