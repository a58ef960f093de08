"""Inside the WebAssembly build, for field_wasm.mjs: a board's gateway, a round a call. No exception goes out to JavaScript."""

import gc
import socket
import sys

import board_modules
import machine
import network  # noqa: F401 - a double, in memory before the heap is bounded

_gateway = None
_starter = None
_reserve = [None] * 256  # comes free at once when it is cleared: for the report of an error


def load():
    """Import all code of the board, the deepest first."""
    global _starter
    for name in board_modules.MODULES:
        __import__(name)
    _starter = sys.modules["leveret.firmware.gateway"]


def addresses():
    """Where the octets of the sockets lie."""
    return socket.addresses()


def begin():
    """Start as main.py does: 1, or 0 when the gateway cannot."""
    global _gateway
    try:
        _gateway = _starter.start()
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _reserve.clear()
        sys.print_exception(error)
    return 0 if _gateway is None else 1


def step():
    """One round: 1, or 0 when it failed."""
    try:
        _gateway.step()
        return 1
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _reserve.clear()
        sys.print_exception(error)
    return 0


def collect():
    """Garbage is collected when this has returned."""
    gc.collect()


def tell(rounds):
    """How the heap is, after a collection."""
    free = gc.mem_free()
    print("FIELD", rounds, free, machine.largest(free))


def stop():
    """As Ctrl-C."""
    try:
        _gateway.stop()
    except BaseException as error:  # JavaScript must not get it: the build would loop for ever
        _reserve.clear()
        sys.print_exception(error)
    print("ENDED 0", gc.mem_free())
