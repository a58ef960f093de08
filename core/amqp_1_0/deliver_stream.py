"""Deliveries from a stream: at the consumer's cursor, each with its offset as the annotation x-stream-offset.

The message stays in the stream; the delivery gets an entry of its own until it is settled. A board without streams does not carry it.
"""

from ..errors import PRECONDITION_FAILED
from ..memory import layout
from ..outcomes import ACCEPTED
from ..stream.reading_on import read_on
from ..stream.subscription import has_entry, stream_entry
from . import convert, hot_row, positions
from .link_out import has_room, is_held, send, too_large


def deliver_stream(link, most, before):
    """Write up to `most` deliveries, beside `before` in this turn: how many."""
    consumer = link.consumer
    if consumer.overtaken and consumer.strict:
        text = "retention went past link '%s': stream '%s' begins at offset %d now"
        link.step("error", PRECONDITION_FAILED, text % (link.name[:80], consumer.queue.name, consumer.queue.first_offset))
        return 0
    if not hot_row.may_read_stream(link):
        return read_on(consumer, most, before, link, can_go_on, write)
    count = 0
    while count < most:
        consumer.queue.find(consumer)
        count += hot_row.read_stream(link, most - count)
        if count == most or not read_on(consumer, 1, before + count, link, can_go_on, write):
            break
        count += 1  # a message that the engine leaves to us
    return count


def can_go_on(link):
    """True when the link has credit and its session may begin a delivery."""
    return link.consumer is not None and link.broker.consumers.has_credit(link.consumer) and link.session.may_send()


def write(link, message, before):
    """Write one delivery, behind `before` others of this turn; false when it cannot be written now."""
    consumer, session, broker = link.consumer, link.session, link.broker
    tables = broker.tables
    if link.tells_position:
        notes = positions.annotations(broker, message, consumer.cursor_offset)
    else:
        notes = {"x-stream-offset": consumer.cursor_offset}  # a long, as RabbitMQ 4 has it: its Java client takes no other
    lead = convert.head_for_1_0(broker, message, 0, notes)
    size = len(lead) + tables.messages[message + layout.MESSAGE_BODY]
    if too_large(link, consumer.queue, size):
        return False
    if not has_room(session, len(lead), size - len(lead)) or not has_entry(tables, consumer):
        session.connection.send.starve(consumer, before)
        return False
    entry = stream_entry(tables, consumer, message)
    try:
        send(link, entry, message, lead)
    except Exception:  # all or nothing: the entry was made for this delivery
        if not is_held(session, entry):
            consumer.queue.drop(entry)
        raise
    if link.settled:
        broker.consumers.settle(session, entry, entry, ACCEPTED)
    return True
