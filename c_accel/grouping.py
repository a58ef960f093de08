"""Whose the groups of a queue's messages are, in C's memory: what core/queue/features/groups.py's Owners is elsewhere.

The C side finds a group's messages and delivers them (groups.c); where a value is no ASCII text, or a delivery is not for C, the rule asks
here.
"""

import os
import struct

from leveret.core.memory import layout

from . import remembering
from ._hot import ffi, lib


class Groups:
    """The groups of all queues of one broker. `table` is the C side; made with the first queue that has groups."""

    def __init__(self, tables):
        count, buckets = len(tables.entries) // layout.ENTRY_WIDTH, 1
        while buckets < count:
            buckets *= 2
        self.table = ffi.new("leveret_groups *")
        self.kept = (
            ffi.new("leveret_group[]", count + 1),
            ffi.new("int32_t[]", buckets),
            ffi.new("leveret_grouped[]", count),
            ffi.new("leveret_group_rule[]", len(tables.queues) // layout.QUEUE_WIDTH),
        )
        self.table.rows, self.table.chains, self.table.entries, self.table.rules = self.kept
        self.table.mask = buckets - 1
        self.table.key = struct.unpack("QQ", os.urandom(16))
        self.rules_made = 0


class Owners:
    """Of one queue: as groups.Owners, in C."""

    key_of = staticmethod(remembering.key_of)

    def __init__(self, groups, pointers, queue, header):
        self.table = groups.table
        self.pointers = pointers
        groups.rules_made += 1
        octets = header.encode("utf-8")
        self.header = ffi.new("uint8_t[]", bytes((len(octets),)) + octets)
        rule = groups.table.rules[queue.handle // layout.QUEUE_WIDTH]
        rule.rule, rule.header = groups.rules_made, self.header

    def __len__(self):
        return lib.leveret_owned_count(self.table)

    def owner_of(self, broker, queue, group):
        """As groups.Owners has it."""
        lib.leveret_read_group(self.table, group, len(group))
        owner = lib.leveret_owner_of(self.pointers, queue.handle)
        return None if owner == layout.NONE else owner

    def delivered(self, broker, queue, consumer, entry, position, group):
        """As groups.Owners has it."""
        if group is not None:
            lib.leveret_read_group(self.table, group, len(group))
        lib.leveret_own(self.pointers, queue.handle, consumer, entry, group is not None)
