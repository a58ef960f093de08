"""The hot functions in C: the engine that CPython uses where the compiled module is there (core/DESIGN.md section 3).

`install()` has brokers that are made from then on use it. `LEVERET_ACCEL=0` in the environment switches it off; a machine without a
compiler installs without the module, and the plain form does the same, slower. tests/accel holds the two forms together.
"""
import os

from leveret.core import engine

try:
    from ._hot import ffi, lib
except ImportError:
    ffi = lib = None

VARIABLE = "LEVERET_ACCEL"


class Engine:
    """As core/engine.py has it. `pointers` is the C side's record of the tables; it keeps their memory alive."""

    name = "C"
    turn = 256
    ingests = True

    def __init__(self, tables):
        self.kept = []
        pointers = ffi.new("leveret_tables *")
        for name in ("arena", "route_octets"):
            setattr(pointers, name, self._keep(self.octets(getattr(tables, name))))
        for name in ("blocks", "messages", "entries", "queues", "channels", "consumers", "state", "routes", "route_targets"):
            setattr(pointers, name, self._keep(self.integers(getattr(tables, name))))
        self.pointers = pointers

    def _keep(self, pointer):
        self.kept.append(pointer)
        return pointer

    def octets(self, view):
        """The address of a buffer of octets; it stays valid as long as this is kept."""
        return ffi.from_buffer("uint8_t[]", view)

    def integers(self, table):
        """The address of a table of integers."""
        return ffi.from_buffer("int32_t[]", table)

    def ingest(self, numbers, source):
        """See ingest.py."""
        return lib.leveret_ingest(self.pointers, numbers, source)

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        return lib.leveret_pump(self.pointers, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end)

    def append(self, message, source, start, size):
        """See hot.append; `source` is any buffer of octets."""
        lib.leveret_append(self.pointers, message, ffi.from_buffer("uint8_t[]", source), start, size)

    def put_body(self, left, frame_size_max, channel_number, target, at, end):
        """See hot.put_body."""
        return lib.leveret_put_body(self.pointers, left, frame_size_max, channel_number, target, at, end)


def install():
    """Have brokers made from now on work in C where that is possible: a sentence for the operator that says which form they use."""
    if os.environ.get(VARIABLE) == "0":
        return "the hot functions run as plain Python (%s=0)" % VARIABLE
    if lib is None:
        return "the hot functions run as plain Python (the C module was not built: a C compiler and pip install make it)"
    engine.chosen = Engine
    return "the hot functions run in C"
