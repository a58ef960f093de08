"""Contents of a stream to a client: at the consumer's cursor, each with its offset among the headers, or many packed into one.

The message stays in the stream; the delivery gets an entry of its own until it is settled, which remembers the offset and keeps nothing in
memory. A board without streams does not carry it.
"""

import struct

from .. import limits
from ..memory import layout
from ..message import reading
from ..queue.turns import charge_stream
from ..stream import subscription
from ..stream.subscription import has_entry, move_on, stream_entry
from . import frame, packed, properties
from .deliver import refuses_header, reworked_properties, start_delivery
from .outgoing import foreign

STREAM_OFFSET = b"\x0fx-stream-offsetl"
HEADS_MAX = 77  # octets of method and header frame without consumer tag, route and properties, at most
PACKED_HEADS = 180  # octets of a packed message around its body, without consumer tag and route: 160 at most

PACK_FIRST = 16384  # octets of a reader's first pack; each may have twice those of the one before: a bad line gets something whole through

FILTER_TURN = 64  # messages that a filter lets pass before others have their turn
FILTER_COST = 256  # deliveries that this counts as
QUICK_LOOKS = 512  # the same where the row looks at them


def deliver_stream(session, consumer, most):
    """Deliver from a stream at the consumer's cursor; the message stays, and the delivery gets an entry of its own until it is settled."""
    if consumer.overtaken and consumer.strict:
        session.end_overtaken(consumer)
        return 0
    tables = session.broker.tables
    end = consumer.queue.readable_offset()
    consumer.queue.find(consumer)
    count = looked_at = quick = 0
    if (
        consumer.row.read_stream is not None
        and not consumer.pack_records
        and consumer.cursor != layout.NONE
        and not session.outgoing.active()
    ):
        session.send.room()
        count, looked_at = consumer.row.read_stream(session, consumer, most, QUICK_LOOKS, end)
        quick = count
        tables.engine.turned(looked_at * FILTER_COST // QUICK_LOOKS)
        if looked_at == QUICK_LOOKS:
            session.broker.activate(consumer.queue)
            return count
        looked_at = 0
    while (
        count < most and consumer.cursor != layout.NONE and consumer.cursor_offset < end and session.broker.consumers.has_credit(consumer)
    ):
        message = tables.entries[consumer.cursor + layout.ENTRY_MESSAGE]
        octets = tables.properties_of(message)
        if consumer.filter is not None and not subscription.fits(consumer, octets, reading.format_of(tables, message).header):
            move_on(tables, consumer)
            looked_at += 1
            if looked_at == FILTER_TURN:
                session.broker.activate(consumer.queue)
                tables.engine.turned(FILTER_COST)
                break
            continue
        reworked = reworked_properties(session.broker, message)
        octets = octets if reworked is None else reworked
        heads = len(consumer.prefix) + HEADS_MAX + tables.messages[message + layout.MESSAGE_ROUTE] + len(octets)
        if session.outgoing.active() or heads > session.send.room() - limits.REPLY_ROOM or not has_entry(tables, consumer):
            session.starved = True
            break
        if consumer.pack_records:
            if not deliver_packed(session, consumer, message):
                session.starved = True
                break
        elif not deliver_record(session, consumer, message, octets):
            charge_stream(tables.engine, count - quick)
            return count
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
        count += 1
    charge_stream(tables.engine, count - quick)
    if consumer.cursor == layout.NONE and consumer.cursor_offset < end and session.broker.consumers.has_credit(consumer):
        session.broker.journal.pager.ask(consumer)
    return count


def deliver_record(session, consumer, message, octets):
    """One message of a stream, with its offset among the headers; false when its header is too large for this connection."""
    tables = session.broker.tables
    pair = STREAM_OFFSET + struct.pack(">q", consumer.cursor_offset)
    size = tables.messages[message + layout.MESSAGE_BODY]
    if tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT:
        octets, pieces = foreign().reworked(session.broker, message)
        size = foreign().size_of(tables, message, pieces)
    number, send = consumer.channel.number, session.send
    header = frame.content_header(number, size, properties.with_header(octets, pair))
    if len(header) > session.frame_size_max and refuses_header(
        session, consumer, len(header), "the message of offset %d" % consumer.cursor_offset
    ):
        return False
    is_whole = (
        0 < size <= session.frame_size_max - frame.OVERHEAD
        and not tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT
        and not send.takes_whole(-1, size)
        and len(header) + len(consumer.prefix) + HEADS_MAX + tables.messages[message + layout.MESSAGE_ROUTE] + size
        <= send.room() - limits.REPLY_ROOM
    )
    octets = start_record(session, consumer, message) + header
    if is_whole:
        send.write(octets)
        tables.state[layout.STATE_CURSOR_BLOCK] = tables.messages[message]
        tables.state[layout.STATE_CURSOR_OFFSET] = tables.size_of(message) - size
        send.wrote(session.hot.put_body(size, session.frame_size_max, number, send.address, send.end, send.size - limits.REPLY_ROOM))
    else:
        session.outgoing.start(session, number, message, octets, b"")
    move_on(tables, consumer)
    return True


def deliver_packed(session, consumer, message):
    """Many messages of a stream in one, as many as the send buffer has room for; false when it is better to wait for room.

    The first ones are small (PACK_FIRST). A single record too large for the buffer goes out piece by piece.
    """
    tables = session.broker.tables
    send = session.send
    room = send.room() - limits.REPLY_ROOM
    if send.start != send.end and room < send.size // 2:
        return False
    room = min(room, session.frame_size_max) - PACKED_HEADS - len(consumer.prefix) - tables.messages[message + layout.MESSAGE_ROUTE]
    consumer.pack_now = min(max(2 * consumer.pack_now, PACK_FIRST), packed.OCTETS_DEFAULT)
    most = min(consumer.pack_octets or packed.OCTETS_DEFAULT, session.broker.limits.content_size_max, room, consumer.pack_now)
    body, count, behind = packed.collect(session.broker, consumer, most)
    number = consumer.channel.number
    header = packed.header(number, len(body), consumer.cursor_offset, count)
    heads = start_record(session, consumer, message) + header
    if len(body) <= room:
        send.write(heads + frame.encode(frame.BODY, number, body))
    else:
        send.write(heads)
        size = tables.size_of(message)
        kind = tables.messages[message + layout.MESSAGE_KIND]
        if kind & layout.KIND_REWORKED:
            size = tables.messages[message + layout.MESSAGE_BODY] if not kind & layout.KIND_FORMAT else 0
        session.outgoing.start_chain(session, number, message, bytes(body[: len(body) - size]), size)
    consumer.cursor_offset += count
    consumer.cursor = behind
    return True


def start_record(session, consumer, message):
    """As start_delivery, with an entry made for it."""
    entry = stream_entry(session.broker.tables, consumer, message)
    try:
        return start_delivery(session, consumer, entry, message, 0)
    except Exception:  # all or nothing: the entry was made for this delivery
        consumer.queue.drop(entry)
        raise
