"""Deliveries of a stream at a consumer's cursor, for the families that write them one by one: which message is next, and for how long."""

from ..memory import layout
from ..message import reading
from ..queue.turns import charge_stream
from .subscription import fits, move_on

FILTER_TURN = 64  # messages that a filter lets pass before others have their turn
FILTER_COST = 256  # deliveries that this counts as


def read_on(consumer, most, before, reader, may_go_on, write):
    """Have up to `most` messages written, beside `before` in this turn: how many were. `may_go_on`: a function of `reader`, true while it
    takes another delivery; `write`: one of `reader`, the message and how many went before it in this turn, false when it cannot be written
    now."""
    broker = reader.broker
    tables = broker.tables
    end = consumer.queue.readable_offset()
    consumer.queue.find(consumer)
    count = looked_at = 0
    while count < most and consumer.cursor != layout.NONE and consumer.cursor_offset < end and may_go_on(reader):
        message = tables.entries[consumer.cursor + layout.ENTRY_MESSAGE]
        if not is_wanted(broker, consumer, message):
            move_on(tables, consumer)
            looked_at += 1
            if looked_at == FILTER_TURN or tables.engine.left <= 0:
                broker.activate(consumer.queue)
                tables.engine.turned(looked_at * FILTER_COST // FILTER_TURN)
                break
            continue
        if not write(reader, message, before + count):
            break
        move_on(tables, consumer)
        count += 1
    charge_stream(tables.engine, count)
    if consumer.cursor == layout.NONE and consumer.cursor_offset < end and may_go_on(reader):
        broker.journal.pager.ask(consumer)
    return count


def is_wanted(broker, consumer, message):
    """True for a message that passes a consumer's filters."""
    if consumer.filter is not None:
        octets = broker.tables.properties_of(message)
        if not fits(consumer, octets, reading.format_of(broker.tables, message).header):
            return False
    wanted = getattr(consumer, "wanted", None)  # only a consumer with filters has it: boards' consumers are as small as can be
    return wanted is None or wanted(broker, message)
