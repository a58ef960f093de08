"""Records for the log of messages that `ingest` has pushed, and of settled places: from the flat tables, in one pass.

The functions that an engine (engine.py) has in C too, over the same memory; c_accel/records.c writes the same
octets and leaves the same tables.
journal.py calls them. A message is written as it stands in a group (segments.py): octet type | long size | its record (message_record.py).
Positions are whole ones here; QUEUE_LOGGED has the last of a queue, over two fields.
"""

import struct

from ..memory import layout
from ..memory.hot import extract, give
from ..shim import const
from .message_record import PLACE, PLACE_SIZE, head_of

_MESSAGE = const(1)  # segments.MESSAGE
RECORD_SIZE = const(33)  # octets of a message's record before its places, with those of the group
_BIG = const(1 << 30)


def whole_position(queues, queue, low):
    """The whole position of a queue for its low 30 bits: the one nearest to the last that the log has seen."""
    seen = queues[queue + layout.QUEUE_LOGGED_HIGH] * _BIG + queues[queue + layout.QUEUE_LOGGED]
    ahead = (low - seen) & layout.MASK
    return seen + (ahead - _BIG if ahead & 0x20000000 else ahead)


def see_position(queues, queue, position):
    """Note a whole position of a queue that the log has received; the queue keeps the latest."""
    if position > queues[queue + layout.QUEUE_LOGGED_HIGH] * _BIG + queues[queue + layout.QUEUE_LOGGED]:
        queues[queue + layout.QUEUE_LOGGED_HIGH] = position // _BIG
        queues[queue + layout.QUEUE_LOGGED] = position & layout.MASK


def write_pushed(arena, blocks, messages, entries, queues, state, target, segment):
    """Write the messages of the list STATE_LOGGED_HEAD, in their order, to `target` (STATE_LOGGED_OCTETS octets), note in each that
    `segment` has it, and empty the list."""
    entry = state[layout.STATE_LOGGED_HEAD]
    at = 0
    while entry != layout.NONE:
        message = entries[entry + layout.ENTRY_MESSAGE]
        begun = at
        at += RECORD_SIZE
        places = 0
        while entry != layout.NONE and entries[entry + layout.ENTRY_MESSAGE] == message:
            queue = entries[entry + layout.ENTRY_QUEUE]
            position = whole_position(queues, queue, entries[entry + layout.ENTRY_POSITION])
            see_position(queues, queue, position)
            struct.pack_into(PLACE, target, at, queues[queue + layout.QUEUE_IDENTITY], position)
            at += PLACE_SIZE
            places += 1
            entry = entries[entry + layout.ENTRY_CONSUMER]
        size = messages[message + layout.MESSAGE_FILLED]
        struct.pack_into(">BI", target, begun, _MESSAGE, at - begun + size - 5)
        target[begun + 5 : begun + RECORD_SIZE] = head_of(messages, message, places)
        extract(arena, blocks, state, messages[message + layout.MESSAGE_FIRST], 0, target, at, size)
        messages[message + layout.MESSAGE_SEGMENT] = segment
        at += size
    state[layout.STATE_LOGGED_HEAD] = layout.NONE
    state[layout.STATE_LOGGED_OCTETS] = 0
    state[layout.STATE_LOGGED_COUNT] = state[layout.STATE_LOGGED_PLACES] = 0


def gather_settled(entries, state, runs, most):
    """Unlink entries from the list STATE_SETTLED_LIST, free them, and write their places to `runs`. Returns how many runs, at most `most`.

    A run is four integers: queue, low 30 bits of its first position, how many positions in a row, segment. With
    `most` there may be more left.
    """
    entry = state[layout.STATE_SETTLED_LIST]
    made = 0
    at = -4
    while entry != layout.NONE:
        queue = entries[entry + layout.ENTRY_QUEUE]
        position = entries[entry + layout.ENTRY_POSITION]
        segment = entries[entry + layout.ENTRY_MESSAGE]
        if made and runs[at] == queue and runs[at + 3] == segment and (runs[at + 1] - 1) & layout.MASK == position:
            runs[at + 1] = position
            runs[at + 2] += 1
        elif made and runs[at] == queue and runs[at + 3] == segment and (runs[at + 1] + runs[at + 2]) & layout.MASK == position:
            runs[at + 2] += 1
        elif made == most:
            break
        else:
            made += 1
            at += 4
            runs[at] = queue
            runs[at + 1] = position
            runs[at + 2] = 1
            runs[at + 3] = segment
        behind = entries[entry + layout.ENTRY_NEXT]
        give(entries, state, layout.POOL_ENTRIES, entry)
        entry = behind
    state[layout.STATE_SETTLED_LIST] = entry
    return made


def live_in(messages, entries, entry, end, segment, live, most):
    """Put those records of the table of entries, from `entry` to before `end`, that the log knows and whose message is in `segment` into
    `live`, NONE behind them, up to `most` (`live` has room for one more): the record behind those that were looked at."""
    count = 0
    while entry < end and count < most:
        if (
            entries[entry + layout.ENTRY_REDELIVERED] >= 0
            and messages[entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_SEGMENT] == segment
        ):
            live[count] = entry
            count += 1
        entry += layout.ENTRY_WIDTH
    live[count] = layout.NONE
    return entry
