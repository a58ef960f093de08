"""Offsets of streams that a lost segment may have had: they are not given again, for a reader that has kept one would get another message
under it.

How many there were is known where the head of the segment behind says how many places the lost one had. Else it is bounded by what a
segment can hold: all octets of the largest that is there in messages without a body, and one commit of all that memory can hold. A stream
continues behind them; its definition is logged again with the next offset, so that this happens once for each lost segment. This file does
not look for lost segments (first_pass.py does).
"""

from ..log.definition_records import queue_definition
from ..log.message_record import HEAD_SIZE, PLACE_SIZE
from ..log.read_back import PART_SIZE
from ..log.settled_positions import Settled
from ..memory import layout
from ..shim import const

PLACE_LEAST = PART_SIZE + HEAD_SIZE + PLACE_SIZE  # octets that a message in one place takes in a segment at least

_AHEAD_MAX = const(1 << 28)  # in memory positions have 30 bits: half of them are behind another, half ahead


def skip(broker, contents, by_id, journal):
    """Have each stream that may have had messages in lost segments go on behind them; `contents.skipped`: (name, first, end) of each.

    A stream whose definition is in a later segment than the lost ones says there itself where it was.
    """
    most = journal.log.largest // PLACE_LEAST + broker.limits.message_count_max
    for identity in by_id:
        stream = by_id[identity]
        if not stream.is_stream:
            continue
        count = sum(
            [most if places is None else places for number, _, _, places in contents.lost if number > contents.defined_in.get(identity, 0)]
        )
        if count:
            first = stream.next_offset()
            end = first + min(count, _AHEAD_MAX)
            go_on_at(broker, stream, end)
            if stream.pages.holes is None:
                stream.pages.holes = Settled()
            stream.pages.holes.add(first, end)
            journal.note_settled(stream, first, end)
            journal.define(queue_definition(stream))
            contents.skipped.append((stream.name, first, end))


def go_on_at(broker, stream, offset):
    """Give the next message of a stream this offset."""
    stream.following = stream.durable_offset = offset
    stream.log_position = offset - 1
    stream.first_offset = stream.pages.first_position(offset)
    broker.tables.queues[stream.handle + layout.QUEUE_POSITION] = offset & layout.MASK
