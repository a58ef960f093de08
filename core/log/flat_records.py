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
from .message_record import PLACE, PLACE_SIZE, put_head

_MESSAGE = const(1)  # segments.MESSAGE
RECORD_SIZE = const(33)  # octets of a message's record before its places, with those of the group
_BIG = const(1 << 30)

RUN_WIDTH = const(6)  # integers of a run of a stream's messages: see note_run
RUNS = const(128)  # that write_pushed gets at a time
_NEAR = const(8)  # runs among which that of a stream is looked for: publishes may go to some streams in turn
_TARGETS_MAX = const(64)  # route_cache.TARGETS_MAX
_RUN_MESSAGES = const(256)  # that a run may have, and octets: those of a chunk (chunk_index.py)
_RUN_SIZE = const(65536)


def whole_position(queues, queue, low):
    """The whole position of a queue for its low 30 bits: the one nearest to the last that the log has seen."""
    seen = seen_position(queues, queue)
    ahead = (low - seen) & layout.MASK
    return seen + (ahead - _BIG if ahead & 0x20000000 else ahead)


def seen_position(queues, queue):
    """The last whole position of a queue that the log has received. Small ones are no sum of larger numbers, which are heap on a board."""
    high = queues[queue + layout.QUEUE_LOGGED_HIGH]
    return high * _BIG + queues[queue + layout.QUEUE_LOGGED] if high else queues[queue + layout.QUEUE_LOGGED]


def see_position(queues, queue, position):
    """Note a whole position of a queue that the log has received; the queue keeps the latest."""
    if position > seen_position(queues, queue):
        queues[queue + layout.QUEUE_LOGGED_HIGH] = position >> 30
        queues[queue + layout.QUEUE_LOGGED] = position & layout.MASK


def write_pushed(arena, blocks, messages, entries, queues, state, target, at, segment, runs):
    """Write the messages of the list STATE_LOGGED_HEAD, in their order, to `target` from `at` on (STATE_LOGGED_OCTETS octets in all), note
    in each that `segment` has it, and remove them from the list. Returns the position behind them.

    `runs`: what streams get is noted there (note_run), runs[0] says how many rows there are. With as many as fit, messages may be left in
    the list; a table of one integer is for a broker without streams.
    """
    entry = state[layout.STATE_LOGGED_HEAD]
    most = len(runs) // RUN_WIDTH
    runs[0] = 0
    while entry != layout.NONE and (most == 0 or runs[0] + _TARGETS_MAX <= most):
        message = entries[entry + layout.ENTRY_MESSAGE]
        size = messages[message + layout.MESSAGE_FILLED]
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
            if entries[entry + layout.ENTRY_REDELIVERED] == layout.NONE:
                note_run(runs, queue, entries[entry + layout.ENTRY_POSITION], size, begun, messages[message + layout.MESSAGE_ARRIVED])
            entry = entries[entry + layout.ENTRY_CONSUMER]
        struct.pack_into(">BI", target, begun, _MESSAGE, at - begun + size - 5)
        put_head(target, begun + 5, messages, message, places)
        extract(arena, blocks, state, messages[message + layout.MESSAGE_FIRST], 0, target, at, size)
        messages[message + layout.MESSAGE_SEGMENT] = segment
        at += size
    state[layout.STATE_LOGGED_HEAD] = entry
    if entry == layout.NONE:
        state[layout.STATE_LOGGED_OCTETS] = 0
        state[layout.STATE_LOGGED_COUNT] = state[layout.STATE_LOGGED_PLACES] = 0
    return at


def note_run(runs, queue, position, size, skip, arrived):
    """A stream gets a message of `size` octets at a position, whose record begins at `skip`, and that came in the second `arrived`.

    A run, from runs[1 + RUN_WIDTH * n] on: queue, low 30 bits of its first position, how many positions in a row, octets of the messages,
    where the first record begins, the newest's second.
    """
    last = 1 + RUN_WIDTH * (runs[0] - 1)
    at = last
    while at > 0 and at > last - RUN_WIDTH * _NEAR:
        if runs[at] == queue:
            if runs[at + 2] >= _RUN_MESSAGES or skip - runs[at + 4] >= _RUN_SIZE:
                break
            runs[at + 2] += 1
            runs[at + 3] += size
            runs[at + 5] = max(runs[at + 5], arrived)
            return
        at -= RUN_WIDTH
    runs[0] += 1
    at = last + RUN_WIDTH
    for field in (queue, position, 1, size, skip, arrived):
        runs[at] = field
        at += 1


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
