"""The hot functions as CPython likes them where there is no C: a run of messages that are alike is taken, delivered and settled together.

The same state and the same octets as core/hot.py and core/ingest.py, which say what happens and why (tests/accel holds the forms
together). What differs is how: octets are compared and copied in whole pieces, records are read and written with one call of struct, and
what a run has in common (route, room, queue, channel) is looked at once. What is uncommon goes to those functions, one frame at a time.
Never on a board: it is all slices and tuples.
"""
from leveret.core.engine import Plain
from .runs_giving import Giving
from .runs_records import Records
from .runs_settling import Settling
from .runs_taking import KIND_SIZE_MAX, KINDS_MAX, METHODS_MAX, METHODS_OCTETS_MAX, WINDOW_MAX, Taking

OBJECTS_SIZE = 400  # octets of a known frame's objects: a place in a dictionary, two octet strings, a tuple and its numbers


class Engine(Taking, Giving, Settling, Records, Plain):
    """core/engine.py's Plain over runs. `methods`: frames of basic.publish that are known to lead to one queue; when it is full it begins
    anew."""

    turn = 128

    def __init__(self, tables):
        Plain.__init__(self, tables)
        self.arena = owner(tables.arena)
        self.message_octets = owner(tables.messages)
        self.entry_octets = owner(tables.entries)
        self.block_size = tables.block_size
        self.methods = {}  # octets of the frame: (user and epoch of the route cache, slot in it, the route's place in it, the route)
        self.methods_octets = 0  # of those frames, also of those that were learned again
        self.kinds = {}  # octets of properties: what check_properties says of them

    @staticmethod
    def memory(limits):
        """Octets beside memory_needed: what is known of frames and of properties, with what CPython adds to each."""
        return (METHODS_MAX * OBJECTS_SIZE + 2 * METHODS_OCTETS_MAX + KINDS_MAX * (KIND_SIZE_MAX + OBJECTS_SIZE) + 2 * WINDOW_MAX)


def owner(view):
    """What a view is of: slices of it are bytes."""
    return view.obj
