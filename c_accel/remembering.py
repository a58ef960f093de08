"""Message ids that queues with x-deduplication remember, in C's memory: what core/queue/identities.py's Recent is elsewhere.

The C side looks ids up as messages come; a message whose id is known, or that finds no place for its id, comes here by the rule's gate.
"""

import os
import struct

from leveret.core.memory import layout
from leveret.core.queue import identities

from ._hot import ffi, lib


class Identities:
    """The ids of all queues of one broker. `table` is the C side; made with the first queue that remembers some."""

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
            ffi.from_buffer("int32_t[]", self.pool.places),
        )
        self.table.rows, self.table.chains, self.table.windows, self.table.left = self.kept
        ffi.memmove(self.kept[1], b"\xff" * (4 * buckets), 4 * buckets)
        self.table.mask = buckets - 1
        self.table.free = layout.NONE
        self.table.key = struct.unpack("QQ", os.urandom(16))


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

    def __len__(self):
        return self.window.count

    def __contains__(self, key):
        self._read(key)
        return bool(lib.leveret_knows_id(self.table, self.queue))

    @staticmethod
    def key_of(identity):
        """The octets that stand for an id: those of a text as they come in AMQP 0-9-1; of another value some that no text has."""
        return identity.encode("utf-8") if isinstance(identity, str) else b"\xff" + repr(identity).encode()

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
