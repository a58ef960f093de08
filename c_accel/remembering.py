"""Message ids that queues with x-deduplication remember, and last values, in C's memory: what core/queue/identities.py's Recent and
core/queue/features/last_value.py's Latest are elsewhere.

The C side looks ids up as messages come; a message whose id is known, or that finds no place for its id, comes here by the rule's gate.
"""

import os
import struct

from leveret.core.memory import layout
from leveret.core.queue import identities

from . import owner
from ._hot import ffi, lib


class Identities:
    """The ids, or last values, of all queues of one broker. `table` is the C side; made with the first queue that remembers some."""

    def __init__(self, tables):
        self.pool = identities.pool_of(tables)
        most, buckets = self.pool.most, 1
        while buckets < most:
            buckets *= 2
        self.table = ffi.new("leveret_identities *")
        self.kept = (
            ffi.new("leveret_identity[]", most + 1),
            ffi.new("int32_t[]", [layout.NONE]) if buckets == 1 else ffi.new("int32_t[]", buckets),
            ffi.new("leveret_id_window[]", len(tables.queues) // layout.QUEUE_WIDTH),
            ffi.from_buffer("int32_t[]", owner(self.pool.places)),
        )
        self.table.rows, self.table.chains, self.table.windows, self.table.left = self.kept
        ffi.memmove(self.kept[1], b"\xff" * (4 * buckets), 4 * buckets)
        self.table.mask = buckets - 1
        self.table.most = most // 2
        self.table.free = layout.NONE
        self.table.key = struct.unpack("QQ", os.urandom(16))


def key_of(identity):
    """The octets that stand for an id: those of a text as they come in AMQP 0-9-1; of another value some that no text has."""
    return identity.encode("utf-8") if isinstance(identity, str) else b"\xff" + repr(identity).encode()


class Recent:
    """The ids of one queue: as identities.Recent, in C. `known` is itself, and a key is what the C side hashes."""

    def __init__(self, known, queue, most):
        self.table = known.table
        self.pool = known.pool
        self.queue = queue.handle
        self.window = known.table.windows[queue.handle // layout.QUEUE_WIDTH]
        self.window.most = min(most, layout.MASK)
        self.pool.holders.append(self)

    known = property(lambda self: self)
    key_of = staticmethod(key_of)

    def __len__(self):
        return self.window.count

    def __contains__(self, key):
        self._read(key)
        return bool(lib.leveret_knows_id(self.table, self.queue))

    def _read(self, key):
        lib.leveret_read_id(self.table, key, len(key))
        self.table.read = 0

    def add(self, key, number):
        """As identities.Recent has it."""
        self.pool.allocate()
        self.pool.left += 1  # the C side allocates it
        self._read(key)
        lib.leveret_add_id(self.table, self.queue)

    def forget_oldest(self):
        """As identities.Recent has it."""
        lib.leveret_forget_id(self.table, self.queue)

    def end(self):
        """As identities.Recent has it."""
        while self.window.count:
            lib.leveret_forget_id(self.table, self.queue)
        self.pool.holders.remove(self)


class Latest:
    """The newest messages of one queue by value: as last_value.Latest, in C."""

    key_of = staticmethod(key_of)

    def __init__(self, known, pointers, queue, header):
        self.table = known.table
        self.pool = known.pool
        self.pointers = pointers
        self.queue = queue.handle
        self.window = known.table.windows[queue.handle // layout.QUEUE_WIDTH]
        octets = header.encode("utf-8")
        self.header = ffi.new("uint8_t[]", bytes((len(octets),)) + octets)
        self.window.header = self.header

    def __len__(self):
        return self.window.count

    def _row_of(self, key):
        lib.leveret_read_id(self.table, key, len(key))
        return lib.leveret_find_id(self.table, self.queue)

    def newest(self, key):
        """As last_value.Latest has it."""
        at = self._row_of(key)
        return None if at == layout.NONE else (self.table.rows[at].entry, self.table.rows[at].position)

    def remember(self, key, entry, position):
        """As last_value.Latest has it."""
        at = self._row_of(key)
        if at == layout.NONE:
            if not self.pool.allocate_value():
                return False
            self.pool.left += 1  # the C side allocates it
            lib.leveret_add_id(self.table, self.queue)
            at = self.window.newest
        self.table.rows[at].entry, self.table.rows[at].position = entry, position
        return True

    def forget_gone(self, entries, queue):
        """As last_value.Latest has it."""
        lib.leveret_forget_gone(self.pointers, self.table, self.queue)

    def end(self):
        """As last_value.Latest has it."""
        self.pool.free_values(self.window.count)
        self.pool.left -= self.window.count  # the C side frees them
        while self.window.count:
            lib.leveret_forget_id(self.table, self.queue)
