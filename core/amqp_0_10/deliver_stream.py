"""Deliveries from a stream: at the consumer's cursor, each with its offset as the application header x-stream-offset.

The message stays in the stream; the delivery gets an entry of its own until it is settled. A board without streams does not carry it.
"""

from ..errors import PRECONDITION_FAILED
from ..memory import layout
from ..outcomes import ACCEPTED
from ..stream.reading_on import read_on
from ..stream.subscription import has_entry, stream_entry
from . import convert, properties
from .subscription import ENDLESS, body_size, can_go_on, has_room, is_held, pieces_of, send


def deliver_stream(subscription, most, before):
    """Write up to `most` deliveries, beside `before` in this turn: how many."""
    consumer = subscription.consumer
    if consumer.overtaken and consumer.strict:
        text = "retention went past '%s': stream '%s' begins at offset %d now"
        subscription.session.step(
            "error", PRECONDITION_FAILED, text % (consumer.tag[:80], consumer.queue.name, consumer.queue.first_offset)
        )
        return 0
    count = read_on(consumer, most, before, subscription, can_go_on, write)
    if subscription.session.session.outgoing.active():
        subscription.session.connection.send.starve(consumer, count + before)
    return count


def write(subscription, message, before):
    """Write one delivery, behind `before` others of this turn; false when it cannot be written now."""
    consumer, session, broker = subscription.consumer, subscription.session, subscription.broker
    tables = broker.tables
    notes = {"headers": {"x-stream-offset": ("l", consumer.cursor_offset)}}
    header = properties.rewritten(convert.header_segment(broker, message, False, subscription.more), None, notes)
    pieces = pieces_of(broker, message)
    size = len(header) + body_size(tables, message, pieces)
    if not has_room(session, subscription, len(header), size) or not has_entry(tables, consumer):
        session.connection.send.starve(consumer, before)
        return False
    if subscription.octets != ENDLESS and size > subscription.octets:
        broker.consumers.add_credit(consumer, -tables.consumers[consumer.handle + layout.CONSUMER_CREDIT])
        return False
    entry = stream_entry(tables, consumer, message)
    try:
        send(subscription, entry, message, header, pieces)
    except Exception:  # all or nothing: the entry was made for this delivery
        if not is_held(session, entry):
            consumer.queue.drop(entry)
        raise
    if subscription.accept_none and not subscription.holds:
        broker.consumers.settle(session, entry, entry, ACCEPTED)
    subscription.used(size)
    return True
