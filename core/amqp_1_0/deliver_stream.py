"""Deliveries from a stream: at the consumer's cursor, each with its offset as the annotation x-stream-offset.

The message stays in the stream; the delivery gets an entry of its own until it is settled. A board without streams does not carry it.
"""

from ..errors import PRECONDITION_FAILED
from ..memory import layout
from ..message import reading
from ..outcomes import ACCEPTED
from ..queue.turns import charge_stream
from ..stream import subscription
from ..stream.subscription import has_entry, move_on, stream_entry
from . import convert, positions
from .link_out import has_room, is_held, send, too_large

FILTER_TURN = 64  # messages that a filter lets pass before others have their turn
FILTER_COST = 256  # deliveries that this counts as


def deliver_stream(link, most, before):
    """Write up to `most` deliveries: how many."""
    consumer, session, broker = link.consumer, link.session, link.broker
    tables = broker.tables
    if consumer.overtaken and consumer.strict:
        text = "retention went past link '%s': stream '%s' begins at offset %d now"
        link.step("error", PRECONDITION_FAILED, text % (link.name[:80], consumer.queue.name, consumer.queue.first_offset))
        return 0
    end = consumer.queue.readable_offset()
    consumer.queue.find(consumer)
    count = looked_at = 0
    while count < most and consumer.cursor != layout.NONE and consumer.cursor_offset < end and can_go_on(link):
        message = tables.entries[consumer.cursor + layout.ENTRY_MESSAGE]
        if not is_wanted(broker, consumer, message):
            move_on(tables, consumer)
            looked_at += 1
            if looked_at == FILTER_TURN or tables.engine.left <= 0:
                broker.activate(consumer.queue)
                tables.engine.turned(looked_at * FILTER_COST // FILTER_TURN)
                break
            continue
        if link.tells_position:
            notes = positions.annotations(broker, message, consumer.cursor_offset)
        else:
            notes = {"x-stream-offset": ("ulong", consumer.cursor_offset)}
        lead = convert.head_for_1_0(broker, message, 0, notes)
        size = len(lead) + tables.messages[message + layout.MESSAGE_BODY]
        if too_large(link, consumer.queue, size):
            charge_stream(tables.engine, count)
            return count
        if not has_room(session, len(lead), size - len(lead)) or not has_entry(tables, consumer):
            session.connection.send.starve(consumer, count + before)
            break
        entry = stream_entry(tables, consumer, message)
        try:
            send(link, entry, message, lead)
        except Exception:  # all or nothing: the entry was made for this delivery
            if not is_held(session, entry):
                consumer.queue.drop(entry)
            raise
        if link.settled:
            broker.consumers.settle(session, entry, entry, ACCEPTED)
        move_on(tables, consumer)
        count += 1
    charge_stream(tables.engine, count)
    if consumer.cursor == layout.NONE and consumer.cursor_offset < end and can_go_on(link):
        broker.journal.pager.ask(consumer)
    return count


def is_wanted(broker, consumer, message):
    """True for a message that passes a consumer's filters."""
    if consumer.filter is not None:
        octets = broker.tables.properties_of(message)
        if not subscription.fits(consumer, octets, reading.format_of(broker.tables, message).header):
            return False
    wanted = getattr(consumer, "wanted", None)  # only a consumer with filters has it: boards' consumers are as small as can be
    return wanted is None or wanted(broker, message)


def can_go_on(link):
    """True when the link has credit and its session may begin a delivery."""
    return link.consumer is not None and link.broker.consumers.has_credit(link.consumer) and link.session.may_send()
