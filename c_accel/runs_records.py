"""The log's records of a run of messages, and runs of settled places: see runs.py. What they are: core/records.py."""
import struct

from leveret.core import layout, log
from leveret.core.engine import Plain
from leveret.core.layout import MASK, NONE
from leveret.core.records import HEAD_SIZE, see_position, whole_position
from .runs_shapes import ENTRY, MESSAGE

RECORD_HEAD = struct.Struct(">BIHIHIIIQ").pack  # see core/records.py


class Records:
    """The part of runs.Engine that the journal asks."""

    def write_taken(self, target, segment):
        """See records.write_taken, which writes messages of several queues."""
        tables = self.tables
        if tables.state[layout.STATE_LOGGED_COUNT] != tables.state[layout.STATE_LOGGED_PLACES]:
            Plain.write_taken(self, target, segment)
            return
        state, queues, messages, block_size = tables.state, tables.queues, tables.messages, self.block_size
        entry_octets, message_octets = self.entry_octets, self.message_octets
        entry = state[layout.STATE_LOGGED_HEAD]
        queue_of = low_of = position = identity = first = size = NONE
        parts = []
        while entry >= 0:
            message, _, _, low, queue, _, _, entry = ENTRY(entry_octets, 4 * entry)
            first, last, route, properties, body, size, _, _, arrived, _ = MESSAGE(message_octets, 4 * message)
            if queue == queue_of and low == low_of + 1:
                position += 1
            else:
                if parts:
                    see_position(queues, queue_of, position)
                position = whole_position(queues, queue, low)
                identity = queues[queue + layout.QUEUE_IDENTITY]
                queue_of = queue
            low_of = low
            parts += (RECORD_HEAD(log.MESSAGE, size + HEAD_SIZE - 5, 1, arrived, route, properties, body, identity, position),
                      self.arena[first * block_size:first * block_size + size] if size <= block_size else self.gather(first, size))
            messages[message + layout.MESSAGE_SEGMENT] = segment
        if parts:
            see_position(queues, queue_of, position)
            state[layout.STATE_CURSOR_BLOCK] = last
            state[layout.STATE_CURSOR_OFFSET] = (size - 1) % block_size + 1
        target[:] = b"".join(parts)
        state[layout.STATE_LOGGED_HEAD] = NONE
        state[layout.STATE_LOGGED_OCTETS] = state[layout.STATE_LOGGED_COUNT] = state[layout.STATE_LOGGED_PLACES] = 0

    def gather_settled(self, runs, most):
        """See records.gather_settled."""
        state, entries, entry_octets = self.tables.state, self.tables.entries, self.entry_octets
        entry = state[layout.STATE_SETTLED_LIST]
        free = state[layout.POOL_ENTRIES]
        queue = segment = first = NONE
        made = count = given = 0
        while entry >= 0:
            segment_of, behind, _, position, queue_of, _, _, _ = ENTRY(entry_octets, 4 * entry)
            if queue_of == queue and segment_of == segment and (first - 1) & MASK == position:
                first = position
                count += 1
            elif queue_of == queue and segment_of == segment and (first + count) & MASK == position:
                count += 1
            elif made == most:
                break
            else:
                put_run(runs, made, queue, first, count, segment)
                made += 1
                queue, first, count, segment = queue_of, position, 1, segment_of
            entries[entry] = free
            free = entry
            given += 1
            entry = behind
        put_run(runs, made, queue, first, count, segment)
        state[layout.STATE_SETTLED_LIST] = entry
        state[layout.POOL_ENTRIES] = free
        state[layout.POOL_ENTRIES + 2] += given
        return made


def put_run(runs, number, queue, first, count, segment):
    """Note the run with this number, counted from 1, as records.gather_settled does; 0: there is none yet."""
    if number > 0:
        at = 4 * number - 4
        runs[at], runs[at + 1], runs[at + 2], runs[at + 3] = queue, first, count, segment
