"""Deliveries from a stream: at the consumer's cursor, each with its offset as the application header x-stream-offset.

The message stays in the stream; the delivery gets an entry of its own until it is settled. A board without streams does not carry it.
"""

from ..errors import PRECONDITION_FAILED
from ..memory import layout
from ..message import reading
from ..outcomes import ACCEPTED
from ..stream import subscription as stream
from ..stream.subscription import has_entry, move_on, stream_entry
from . import convert, properties
from .subscription import ENDLESS, body_size, can_go_on, has_room, pieces_of, send

FILTER_TURN = 64  # messages that a filter lets pass before others have their turn
FILTER_COST = 256  # deliveries that this counts as


def deliver_stream(subscription, most, before):
    """Write up to `most` deliveries: how many."""
    consumer, session, broker = subscription.consumer, subscription.session, subscription.broker
    tables = broker.tables
    if consumer.overtaken and consumer.strict:
        text = "retention went past '%s': stream '%s' begins at offset %d now"
        session.step("error", PRECONDITION_FAILED, text % (consumer.tag[:80], consumer.queue.name, consumer.queue.first_offset))
        return 0
    end = consumer.queue.readable_offset()
    count = looked_at = 0
    while count < most and consumer.cursor != layout.NONE and consumer.cursor_offset < end and can_go_on(subscription):
        message = tables.entries[consumer.cursor + layout.ENTRY_MESSAGE]
        if not is_wanted(broker, consumer, message):
            move_on(tables, consumer)
            looked_at += 1
            if looked_at == FILTER_TURN or tables.engine.left <= 0:
                broker.activate(consumer.queue)
                tables.engine.turned(looked_at * FILTER_COST // FILTER_TURN)
                break
            continue
        notes = {"headers": {"x-stream-offset": ("l", consumer.cursor_offset)}}
        header = properties.rewritten(convert.header_segment(broker, message, False), None, notes)
        pieces = pieces_of(broker, message)
        size = len(header) + body_size(tables, message, pieces)
        if not has_room(session, subscription, len(header), size) or not has_entry(tables, consumer):
            session.connection.send.starve(consumer, count + before)
            break
        if subscription.octets != ENDLESS and size > subscription.octets:
            broker.consumers.add_credit(consumer, -tables.consumers[consumer.handle + layout.CONSUMER_CREDIT])
            break
        entry = stream_entry(tables, consumer, message)
        try:
            send(subscription, entry, message, header, pieces)
        except Exception:  # all or nothing: the entry was made for this delivery
            if tables.channels[session.handle + layout.CHANNEL_UNSETTLED_TAIL] != entry:
                consumer.queue.drop(entry)
            raise
        if subscription.accept_none:
            broker.consumers.settle(session, entry, entry, ACCEPTED)
        move_on(tables, consumer)
        count += 1
        subscription.used(size)
    if session.session.outgoing.active():
        session.connection.send.starve(consumer, count + before)
    if consumer.cursor == layout.NONE and consumer.cursor_offset < end and can_go_on(subscription):
        broker.journal.pager.ask(consumer)
    return count


def is_wanted(broker, consumer, message):
    """True for a message that passes a consumer's filters."""
    if consumer.filter is not None:
        octets = broker.tables.properties_of(message)
        if not stream.fits(consumer, octets, reading.format_of(broker.tables, message).header):
            return False
    wanted = getattr(consumer, "wanted", None)
    return wanted is None or wanted(broker, message)
