"""Contents to a client (section 4.2.6): basic.deliver, basic.get-ok and basic.return with header and body frames; and confirms.

Small messages of a classic queue go through hot.pump. A body that needs several frames, or that is larger than the send buffer, goes
through `outgoing`. Deliveries of streams: deliver_stream.py.
"""

import struct

from .. import limits
from ..broker import getting
from ..errors import PRECONDITION_FAILED, ProtocolError
from ..memory import hot, layout
from ..message import reading
from ..outcomes import REFUSED
from ..queue.turns import charge_made, is_overdue
from . import field_table, frame, properties
from .outgoing import foreign

DELIVER = b"\x00\x3c\x00\x3c"
GET_OK = b"\x00\x3c\x00\x47"
RETURN = b"\x00\x3c\x00\x32"
ACK = b"\x00\x3c\x00\x50"

CONFIRM_SIZE = 21  # octets of a frame with basic.ack, or basic.nack
CONFIRM = bytearray(frame.encode(frame.METHOD, 0, ACK + bytes(9)))  # every confirm is made in it, so that none takes heap on a board
ACK_METHOD, NACK_METHOD = 0x50, 0x78

HEADER_HEAD = 20  # octets of a content header frame beside the property flags and list

# Results of writing confirms.
NO_ROOM = 0
WRITTEN = 1
NOT_YET = 2


def prefix(channel_number, tag):
    """The octets of a basic.deliver frame up to and with the consumer tag; its size is filled in for each delivery."""
    return memoryview(bytearray(frame.encode(frame.METHOD, channel_number, DELIVER + field_table.shortstr(tag))[:-1]))


def deliver(session, consumer, most):
    """Write up to `most` deliveries: how many. Marks the session starved when it was room that ended it."""
    if consumer.queue.is_stream:
        from . import deliver_stream

        return deliver_stream.deliver_stream(session, consumer, most)
    tables = session.broker.tables
    send = session.send
    length = consumer.queue.handle + layout.QUEUE_LENGTH
    state = tables.state
    count = 0
    while True:
        send.room()
        before = state[layout.STATE_DELIVERED]
        send.wrote(
            session.hot.pump(
                consumer.handle,
                most - count,
                consumer.prefix_at,
                len(consumer.prefix),
                session.frame_size_max,
                send.address,
                send.end,
                send.size - limits.REPLY_ROOM,
            )
        )
        count += (state[layout.STATE_DELIVERED] - before) & layout.MASK
        if count == most or tables.queues[length] == 0 or not session.broker.consumers.has_credit(consumer) or is_overdue(consumer.queue):
            return count
        made = deliver_converted(session, consumer, most - count)
        if made:
            count += made
            if count == most or session.broker.tables.engine.left <= 0:
                return count
            continue
        if not deliver_large(session, consumer):
            return count
        count += 1
        if not charge_made(session.broker, consumer.queue) or count == most or session.outgoing.active():
            return count


def deliver_converted(session, consumer, most):
    """Write up to `most` deliveries of messages that another family has published, where the next one is such: how many went out whole."""
    tables = session.broker.tables
    message = tables.entries[consumer.queue.head() + layout.ENTRY_MESSAGE]
    if tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT:
        return foreign().deliver(session, consumer, 1 if session.hot.converts else most)
    return 0


def reworked_properties(broker, message):
    """The properties (bytes) that 0-9-1 delivers of a message that has annotations, or that another family published: as far as class basic
    can express them. None: those that its publisher sent."""
    kind = broker.tables.messages[message + layout.MESSAGE_KIND]
    if kind & layout.KIND_FORMAT:
        return foreign().reworked(broker, message)[0]
    return reading.merged(broker.tables, message) if kind & layout.KIND_REWORKED else None


def reworked_header(session, number, message):
    """The content header frame of such a message; None: put_content_header writes it."""
    messages = session.broker.tables.messages
    if messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT:
        return foreign().header(session.broker, number, message)
    octets = reworked_properties(session.broker, message)
    return None if octets is None else frame.content_header(number, messages[message + layout.MESSAGE_BODY], octets)


def header_size(tables, message, header):
    """Octets of the content header frame of a message; `header`: the result of reworked_header."""
    return HEADER_HEAD + tables.messages[message + layout.MESSAGE_PROPERTIES] if header is None else len(header)


def deliver_large(session, consumer):
    """The next message did not fit for hot.pump: begin to deliver it if it never will and method and header fit now. 1 or 0."""
    tables = session.broker.tables
    send = session.send
    queue = consumer.queue
    entry = tables.queues[queue.handle + layout.QUEUE_HEAD]
    message = tables.entries[entry + layout.ENTRY_MESSAGE]
    messages = tables.messages
    header = reworked_header(session, consumer.channel.number, message)
    size = header_size(tables, message, header)
    if refuses_header(session, consumer, size, "the next message"):
        return 0
    heads = len(consumer.prefix) + 10 + messages[message + layout.MESSAGE_ROUTE] + size
    body = messages[message + layout.MESSAGE_BODY]
    whole = heads + frame.OVERHEAD + body if body + frame.OVERHEAD <= session.frame_size_max else -1
    if header is None and send.takes_whole(whole, body) or heads > send.room() - limits.REPLY_ROOM:
        session.starved = True
        return 0
    queue.pop()
    tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
    try:
        octets = start_delivery(session, consumer, entry, message, 1 if tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 else 0)
    except Exception:  # all or nothing: the entry goes back to its queue
        queue.requeue(entry)
        raise
    begin(session, consumer.channel.number, queue, entry, octets, consumer.no_ack, header)
    if session.outgoing.active():
        session.starved = True
    return 1


def check_header(session, channel, queue, size, subject):
    """Raise precondition-failed for a content header frame of `size` octets that is larger than negotiated: it cannot be split (section
    4.2.6), and a peer may end the connection for it (section 4.2.3). `subject`: the message, in the sentence."""
    if size > session.frame_size_max:
        session.closing_method = 0
        raise ProtocolError(
            PRECONDITION_FAILED,
            "%s in queue '%s' has a content header of %d octets, which is one frame, and frame-max of "
            "this connection is %d: connect with a larger one" % (subject, queue.name[:64], size, session.frame_size_max),
        )
    return False


def refuses_header(session, consumer, size, subject):
    """True when a consumer's channel was closed because the next content header is too large for it; the message stays for others."""
    return session.on_channel(consumer.channel, check_header, consumer.queue, size, subject)


def start_delivery(session, consumer, entry, message, redelivered):
    """Count tag and credit for an entry that is in no list: the basic.deliver frame of a message. After an error the entry is in no
    list."""
    tables = session.broker.tables
    channel = consumer.channel
    payload = DELIVER + field_table.shortstr(consumer.tag) + count_tag(tables, channel) + bytes((redelivered,)) + tables.route_of(message)
    octets = frame.encode(frame.METHOD, channel.number, payload)
    if not consumer.no_ack:
        session.broker.consumers.hold(consumer, entry)
    return octets


def begin(session, number, queue, entry, octets, no_ack, header):
    """Begin the content of an entry that is in no ready list; one that needs no acknowledgement is settled with it. `header`: see
    reworked_header."""
    try:
        session.outgoing.start(session, number, session.broker.tables.entries[entry + layout.ENTRY_MESSAGE], octets, header)
    except Exception:  # all or nothing: the entry is in no list now
        if no_ack:  # else the channel has it
            queue.requeue(entry)
        raise
    if no_ack:
        queue.drop(entry)


def count_tag(tables, channel):
    """Count the channel's delivery tag up: the eight octets of the new one."""
    hot.next_number(tables.channels, channel.handle + layout.CHANNEL_TAG)
    return number_at(tables.channels, channel.handle + layout.CHANNEL_TAG_HIGH, channel.handle + layout.CHANNEL_TAG)


def number_at(columns, high, low):
    """The eight octets of a number kept in two fields of 30 bits."""
    return (columns[high] << 30 | columns[low]).to_bytes(8, "big")


def get(session, channel, queue, no_ack):
    """basic.get of a classic queue (section 1.8.3.10): get-ok with the message at the head. `queue` is not empty.

    False when there is no room for method and content header now.
    """
    tables = session.broker.tables
    message = tables.entries[queue.head() + layout.ENTRY_MESSAGE]
    header = reworked_header(session, channel.number, message)
    size = header_size(tables, message, header)
    check_header(session, channel, queue, size, "the next message")
    heads = 30 + tables.messages[message + layout.MESSAGE_ROUTE] + size
    if heads > session.send.room() - limits.REPLY_ROOM:
        return False
    tag = count_tag(tables, channel)
    redelivered = bytes((1 if tables.entries[queue.head() + layout.ENTRY_REDELIVERED] & 255 else 0,))
    payload = GET_OK + tag + redelivered + tables.route_of(message) + struct.pack(">I", queue.message_count() - 1)
    octets = frame.encode(frame.METHOD, channel.number, payload)
    entry = getting.get(session.broker, channel, queue, no_ack)
    begin(session, channel.number, queue, entry, octets, no_ack, header)
    return True


def get_stream(session, channel, queue):
    """basic.get of a stream: its state, at once and exact, as an empty message with headers (core/SPEC.md)."""
    state = {
        "x-stream-id": queue.id,
        "x-stream-first-offset": ("l", queue.first_offset),
        "x-stream-next-offset": ("l", queue.readable_offset()),
        "x-stream-bytes": ("l", queue.size),
    }
    payload = (
        GET_OK
        + count_tag(session.broker.tables, channel)
        + b"\x00"
        + b"\x00"
        + field_table.shortstr(queue.name)
        + struct.pack(">I", queue.message_count())
    )
    session.write(
        frame.encode(frame.METHOD, channel.number, payload) + frame.content_header(channel.number, 0, properties.encode({"headers": state}))
    )


def returns_and_confirms(session, channel):
    """Write a channel's returned contents, then its confirms: WRITTEN, or NO_ROOM for all of it, or NOT_YET (see `confirm`).

    A return goes before the confirm of its content, as clients expect of RabbitMQ.
    """
    tables = session.broker.tables
    while channel.returns:
        message, code, text = channel.returns[0]
        octets = frame.encode(
            frame.METHOD, channel.number, RETURN + struct.pack(">H", code) + field_table.shortstr(text) + tables.route_of(message)
        )
        header = reworked_header(session, channel.number, message)
        if len(octets) + header_size(tables, message, header) > session.send.room() - limits.REPLY_ROOM:
            return NO_ROOM
        channel.returns.pop(0)
        session.outgoing.start(session, channel.number, message, octets, header)
        tables.release(message)
        if session.outgoing.active():
            return NO_ROOM
    if channel.state == "closing":
        if session.send.room() < len(channel.last_words):
            return NO_ROOM
        session.send.write(channel.last_words)
        return WRITTEN
    return confirm(session, channel)


def confirm(session, channel):
    """Write the confirms of all durable publishes since the last one: a basic.ack for a run of accepted ones, a basic.nack for each refused
    one.

    NO_ROOM when there is no room for all of them, NOT_YET when some are not durable yet, else WRITTEN.
    """
    channels = session.broker.tables.channels
    promises = channel.promises
    for first, last, outcome in promises.runs():
        number = first if outcome == REFUSED else last
        while True:
            if session.send.room() < CONFIRM_SIZE:
                return NO_ROOM
            CONFIRM[1] = channel.number >> 8
            CONFIRM[2] = channel.number & 255
            CONFIRM[10] = NACK_METHOD if outcome == REFUSED else ACK_METHOD
            CONFIRM[19] = 0 if outcome == REFUSED or first == last else 1
            put_tag(channels, channel, number)
            session.send.write(CONFIRM)
            promises.answered(number)
            if number == last:
                break
            number = (number + 1) & layout.MASK
    return NOT_YET if promises.waiting else WRITTEN


def put_tag(channels, channel, low):
    """Put a publish's number into CONFIRM; one above the last publish's low bits is from before they wrapped."""
    high = channels[channel.handle + layout.CHANNEL_PUBLISHED_HIGH]
    if low > channels[channel.handle + layout.CHANNEL_PUBLISHED]:
        high -= 1
    hot.put_number(CONFIRM, 11, high, low)
