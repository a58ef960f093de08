"""Deliveries of 0-10 of messages that other families have published, where each goes out whole: command, header and body in one frame each.

convert.py says what stands in them; what was converted is kept for all receivers (core/broker/crossing.py). A build of one family does
without this file.
"""

from ..limits import REPLY_ROOM
from ..memory import hot, layout
from ..message.formats import AMQP_0_10
from ..queue.turns import charge_made, is_overdue, most_made
from . import convert, frame, hot_row


def deliver(subscribed, most):
    """Write up to `most` deliveries of a subscription that the engine may serve: how many. It ends at a message that is larger, that has
    annotations, or that 0-10 has published."""
    session, broker, consumer = subscribed.session, subscribed.broker, subscribed.consumer
    queue, send, tables = consumer.queue, session.connection.send, broker.tables
    entries, consumers, credit = tables.entries, tables.consumers, consumer.handle + layout.CONSUMER_CREDIT
    lead = hot_row.lead_for(subscribed)
    most = most_made(broker, most)
    room = send.room() - REPLY_ROOM
    count = 0
    while count < most and consumers[credit] > 0 and not is_overdue(queue):
        entry = queue.head()
        if entry == layout.NONE:
            break
        came_back = entries[entry + layout.ENTRY_REDELIVERED] & 255 != 0
        octets = delivery(subscribed, lead, entries[entry + layout.ENTRY_MESSAGE], came_back, room)
        if octets is None:
            break
        send.write(octets)
        room -= len(octets)
        hot.next_number(tables.channels, session.handle + layout.CHANNEL_TAG)
        queue.pop()
        if consumer.no_ack:
            queue.drop(entry)
            if consumers[credit] != layout.CREDIT_UNLIMITED:
                consumers[credit] -= 1
        else:
            broker.consumers.hold(consumer, entry)
        count += 1
    if count:
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + count) & layout.MASK
        subscribed.used_run(count)
        charge_made(broker, queue, count)
    return count


def delivery(subscribed, lead, message, came_back, room):
    """The octets of a delivery that takes at most `room` of them; None: see `deliver`. `lead`: see hot_row.lead_of."""
    broker = subscribed.broker
    messages = broker.tables.messages
    kind, size = messages[message + layout.MESSAGE_KIND], messages[message + layout.MESSAGE_BODY]
    if kind & layout.KIND_FORMAT == AMQP_0_10 or kind & (layout.KIND_ANNOTATED | layout.KIND_GRAFTED) or not 0 < size < room:
        return None
    chain = broker.tables.octets(message, 0, messages[message + layout.MESSAGE_FILLED])
    route, body = messages[message + layout.MESSAGE_ROUTE], len(chain) - size
    header, pieces = convert.converted(broker, message, came_back, chain[:route], chain[route:body])
    frame_max, heads = subscribed.session.session.frame_max_out, len(lead) - 2 * frame.HEAD
    if pieces is not None or frame.HEAD + max(len(header), size) > frame_max or len(lead) + len(header) + size > room:
        return None
    whole = frame.FIRST_FRAME | frame.LAST_FRAME
    number = subscribed.session.number
    return b"".join(
        (
            bytes(lead[:heads]),
            frame.head(whole, frame.HEADER, number, len(header)),
            header,
            frame.head(whole | frame.LAST_SEGMENT, frame.BODY, number, size),
            chain[body:],
        )
    )
