"""AMQP 0-8 and 0-9 on the sessions of 0-9-1: their tables, and the methods that they alone have.

Who sends which header: Qpid's clients 1 1 8 0 (0-8) and 1 1 0 9 (0-9), py-amqplib and php-amqplib 1 1 9 1 (0-8), as RabbitMQ reads them.
What differs from 0-9-1 is in the rows of spec_0_8.py and spec_0_9.py; what rows cannot say is here.
"""

import struct

from ..errors import CONTENT_TOO_LARGE, NOT_IMPLEMENTED, PRECONDITION_FAILED, SYNTAX_ERROR, UNEXPECTED_FRAME, ProtocolError
from ..limits import REPLY_ROOM
from ..memory import layout
from ..parts import needed
from ..staging import properties as shared
from . import file_class, frame, method, properties, spec_0_8, spec_0_9, stream_class, verbs
from .filing import Filing

# Reply codes of exchange.bound-ok (Qpid's).
OK, NO_EXCHANGE, NO_QUEUE, NO_BINDINGS, QUEUE_NOT_BOUND, KEY_NOT_BOUND, QUEUE_AND_KEY_NOT_BOUND = range(7)

# Arguments of basic.consume that Qpid's clients send, beside the broker's own.
SELECTOR, NO_CONSUME, AUTO_CLOSE = "x-filter-jms-selector", "x-filter-no-consume", "x-filter-auto-close"

STOPPED = -1  # layout.CHANNEL_PREFETCH of a channel that channel.flow has stopped
BASIC, MESSAGE = 60, 120  # classes
HEADS = 64  # octets of a content header's frame beside its properties, at most
TEXT_MAX = 65535  # octets of a text that class test answers


def exchange_bound(session, channel, arguments):
    """exchange.bound (Qpid's): is the exchange, or the queue, bound, with this key or any?"""
    exchange_name, key, queue_name = arguments
    broker = session.broker
    exchange, queue = broker.exchanges.get(exchange_name), broker.queues.get(queue_name)
    code = OK
    if exchange is None:
        code = NO_EXCHANGE
    elif queue_name and queue is None:
        code = NO_QUEUE
    elif not queue_name and not exchange.bindings:
        code = NO_BINDINGS
    else:
        bindings = exchange.bindings.values() if queue is None else [each for each in queue.bound.values() if each.exchange is exchange]
        if not bindings:
            code = QUEUE_NOT_BOUND
        elif key and not [each for each in bindings if each.key == key.encode("utf-8")]:
            code = KEY_NOT_BOUND if queue is None else QUEUE_AND_KEY_NOT_BOUND
    session.reply(channel.number, "exchange_bound_ok", (code, ""))


def channel_flow(session, channel, arguments):
    """channel.flow (0-8, section 2.3.3): with false no consumer of the channel gets anything until it is true again."""
    is_active = arguments[0]
    channels, at = session.broker.tables.channels, channel.handle + layout.CHANNEL_PREFETCH
    if is_active and channels[at] == STOPPED:
        channels[at] = channel.prefetch_stopped
        for consumer in channel.consumers.values():
            session.broker.activate(consumer.queue)
    elif not is_active and channels[at] != STOPPED:
        channel.prefetch_stopped, channels[at] = channels[at], STOPPED
    session.reply(channel.number, "channel_flow_ok", (is_active,))


def basic_qos(session, channel, arguments):
    """basic.qos, also of a channel that is stopped: the limit counts when it goes on."""
    size, count, is_global = arguments
    if not is_global or session.broker.tables.channels[channel.handle + layout.CHANNEL_PREFETCH] != STOPPED:
        verbs.basic_qos(session, channel, arguments)
        return
    if size:
        raise ProtocolError(NOT_IMPLEMENTED, "prefetch_size!=0 (%d)" % size)
    channel.prefetch_stopped = count
    session.reply(channel.number, "basic_qos_ok", ())


def basic_consume(session, channel, arguments):
    """basic.consume with Qpid's arguments: a selector, a browser."""
    _, name, tag, _, no_ack, _, no_wait, table = arguments
    broker = session.broker
    fits = needed("broker.selecting", "selectors").test_of(broker, table[SELECTOR]) if table.get(SELECTOR) else None
    if tag == "":
        channel.tags_made += 1
        arguments[2] = tag = "amq.ctag-%d-%d" % (channel.number, channel.tags_made)
    arguments[7] = {each: table[each] for each in table if each not in (SELECTOR, NO_CONSUME, AUTO_CLOSE)}
    if table.get(NO_CONSUME):
        queue = broker.topology.queue(verbs.current_queue(channel, name), session.connection)
        browsing = needed("amqp_0_9.older_browsing", NO_CONSUME)
        browsing.begin(session, channel, queue, tag, no_ack, fits, bool(table.get(AUTO_CLOSE)))
        verbs.answer(session, channel, no_wait, "basic_consume_ok", (tag,))
        return
    verbs.basic_consume(session, channel, arguments)
    if fits is not None:
        needed("queue.wishes", "filters").attach(broker, channel.consumers[tag], fits, False)


def basic_cancel(session, channel, arguments):
    """basic.cancel, of a browser too."""
    if session.browsers:
        browsing = needed("amqp_0_9.older_browsing", NO_CONSUME)
        browsing.forget(session, browsing.of(session, channel, arguments[0]))
    verbs.basic_cancel(session, channel, arguments)


def basic_reject(session, channel, arguments):
    """basic.reject: at once, in a transaction too, which is about publishes and acknowledgements (0-8, class tx); Qpid's clients give back
    so, before tx.rollback, what they have got."""
    transaction = channel.transaction
    if transaction is not None and transaction.holds(arguments[0]):
        raise ProtocolError(PRECONDITION_FAILED, "delivery tag %d is acknowledged in this transaction" % arguments[0])
    channel.transaction = None
    try:
        return verbs.basic_reject(session, channel, arguments)
    finally:
        channel.transaction = transaction


def queue_declare(session, channel, arguments):
    """queue.declare of Qpid's clients: a durable queue that is exclusive outlives its connection, and is not bound to it, as in 0-10."""
    if arguments[3]:
        arguments[4] = False
    return verbs.queue_declare(session, channel, arguments)


def recovers(answer):
    """The function of a method that recovers, with this name of its answer, or "": deliveries go back to their queues, also where the peer
    would have them for itself (requeue false), which the broker does not do."""

    def recover(session, channel, arguments):
        if verbs.basic_recover_async(session, channel, (True,)) is False:
            return False
        if answer:
            session.reply(channel.number, answer, ())
        return None

    return recover


def test_integer(session, channel, arguments):
    """test.integer: the numbers added, the first one less the others, multiplied, or divided by the others."""
    *numbers, operation = arguments
    result = numbers[0]
    for number in numbers[1:]:
        if operation == 1:
            result += number
        elif operation == 2:
            result -= number
        elif operation == 3:
            result *= number
        elif operation == 4 and number:
            result //= number
        else:
            raise ProtocolError(SYNTAX_ERROR, "test.integer with operation %d, or a division by 0" % operation)
    session.reply(channel.number, "test_integer_ok", (result & 0xFFFFFFFFFFFFFFFF,))


def answerable(session, octets):
    """A text that class test may answer. Raises content-too-large for one that no frame to this peer has room for."""
    most = min(session.send.size - REPLY_ROOM - HEADS, session.frame_size_max - HEADS, TEXT_MAX)
    if len(octets) > most:
        raise ProtocolError(CONTENT_TOO_LARGE, "the answer has %d octets, and a text that is answered may have %d" % (len(octets), most))
    return octets


def test_string(session, channel, arguments):
    """test.string: both texts one behind the other, or the number that says how they compare."""
    first, second, operation = arguments
    octets = first.encode("utf-8")
    if operation == 1:
        result = octets + second
    elif operation == 2:
        result = b"%d" % ((octets > second) - (octets < second))
    else:
        raise ProtocolError(SYNTAX_ERROR, "test.string with operation %d" % operation)
    session.reply(channel.number, "test_string_ok", (answerable(session, result),))


def test_table(session, channel, arguments):
    """test.table: of its numbers the sum, the least or the greatest; of its texts all together, the shortest or the longest."""
    given, integer_operation, string_operation = arguments
    numbers = [each for each in given.values() if isinstance(each, int) and not isinstance(each, bool)] or [0]
    texts = [each.encode("utf-8") for each in given.values() if isinstance(each, str)] or [b""]
    if not (1 <= integer_operation <= 3 and 1 <= string_operation <= 3):
        raise ProtocolError(SYNTAX_ERROR, "test.table with operations %d and %d" % (integer_operation, string_operation))
    number = (sum(numbers), min(numbers), max(numbers))[integer_operation - 1]
    text = (b"".join(texts), min(texts, key=len), max(texts, key=len))[string_operation - 1]
    session.reply(channel.number, "test_table_ok", (number & 0xFFFFFFFFFFFFFFFF, answerable(session, text)))


def refuses(why):
    """The function of a method that is in the tables, and of which these leave open what it does."""

    def refuse(session, channel, arguments):
        raise ProtocolError(NOT_IMPLEMENTED, why)

    return refuse


VERBS = dict(file_class.VERBS)
VERBS.update(stream_class.VERBS)
VERBS.update(
    {
        "channel_flow": channel_flow,
        "basic_qos": basic_qos,
        "basic_consume": basic_consume,
        "basic_cancel": basic_cancel,
        "basic_reject": basic_reject,
        "exchange_bound": exchange_bound,
        "basic_recover": recovers("basic_recover_ok"),
        "basic_recover_sync": recovers("basic_recover_sync_ok"),
        "test_integer": test_integer,
        "test_string": test_string,
        "test_table": test_table,
        "test_content": refuses("test.content: the tables do not say what its checksum is"),
        "dtx_select": refuses("dtx.select: the tables have no method that ends a distributed transaction"),
        "dtx_start": refuses("dtx.start: the tables have no method that ends a distributed transaction"),
        "tunnel_request": refuses("tunnel.request: this broker tunnels no other protocol"),
    }
)


class Older(Filing):
    """The part that the sessions of these versions share."""

    has_invalid_path = True
    tells_capabilities = False
    verbs_beside = VERBS
    browsers: "list" = []

    def reply(self, number, name, arguments):
        """As of 0-9-1. Qpid's clients ask for exchange.bound only where the product says the word."""
        if name == "connection_start":
            arguments[2]["product"] += " (with qpid's exchange.bound)"
        Filing.reply(self, number, name, arguments)

    # Contents of the classes file and stream

    def received(self, kind, number, octets, at, end):
        """As of 0-9-1; a content header of class file or stream goes on as one of class basic."""
        channel = self.channels.get(number)
        if kind != frame.HEADER or channel is None or channel.class_id == BASIC or channel.state not in ("header", "stage"):
            return Filing.received(self, kind, number, octets, at, end)
        try:
            octets = basic_header(self.dialect.CONTENTS, channel.class_id, octets, at, end)
        except ProtocolError as error:
            return self.soft(channel, error)
        return Filing.received(self, kind, number, octets, 0, len(octets))

    def process_method(self, number, octets, at, end):
        """As of 0-9-1; class message of 0-9 is known, and not served."""
        channel = self.channels.get(number)
        if self.row is None and self.dialect is spec_0_9 and self.code >> 16 == MESSAGE:
            raise ProtocolError(NOT_IMPLEMENTED, "class message of 0-9 is not served: classes basic, file and stream are", True)
        if channel is not None and self.row is not None and self.row[method.NAME] == "basic_publish":
            channel.class_id = BASIC
        return Filing.process_method(self, number, octets, at, end)

    def header_frame(self, number, class_id, size, given):
        """As of Filing; without headers where the frame could never be written."""
        rows = self.dialect.CONTENTS[class_id][1]
        octets = native(rows, given)
        if len(octets) > min(self.send.size - REPLY_ROOM, self.frame_size_max) - HEADS:
            octets = native(rows, dict(given, headers=None))
        return frame.encode(frame.HEADER, number, struct.pack(">HHQ", class_id, 0, size) + octets)

    def file_delivery(self, reader, tag, redelivered, exchange, key, identifier):
        """The frame of file.deliver."""
        given = (reader.consumer.tag, tag, redelivered, exchange, key, identifier)
        return self.encoded("file_deliver", reader.channel.number, given)

    def stream_delivery(self, reader, tag, redelivered, exchange):
        """The frame of stream.deliver."""
        return self.encoded("stream_deliver", reader.channel.number, (reader.consumer.tag, tag, exchange, reader.consumer.queue.name))

    def flush(self):
        """Write what waits, then what browsers have come to."""
        Filing.flush(self)
        if self.browsers and self.state == "open" and not self.replies and not self.outgoing.active():
            needed("amqp_0_9.older_browsing", NO_CONSUME).look(self)
            Filing.flush(self)

    def tick(self):
        """As time passes, browsers see what has come."""
        due = Filing.tick(self)
        if not self.browsers or self.connection.closed:
            return due
        self.flush()
        return None


def basic_header(rows, class_id, octets, at, end):
    """The payload of a content header of class file or stream as one of class basic: a file is durable, a packet is not. Raises
    ProtocolError."""
    if end - at < 14:
        raise ProtocolError(SYNTAX_ERROR, "a content header of %d octets; at least 14 are needed" % (end - at))
    class_, weight, size, flags = struct.unpack(">HHQH", bytes(octets[at : at + 14]))
    if class_ != class_id:
        raise ProtocolError(UNEXPECTED_FRAME, "expected a content header of class %d, got class %d" % (class_id, class_))
    name, fields = rows[class_id]
    if weight or flags & (1 << 16 - len(fields)) - 1:
        raise ProtocolError(SYNTAX_ERROR, "a content header of class %s with a weight, or property flags 0x%04x" % (name, flags))
    at += 14
    given = {}
    for index in range(len(fields)):
        if flags & 0x8000 >> index:
            given[fields[index][0]], at = method.decode_field((0, name + "_header"), fields[index][1], octets, at, end)
    if at != end:
        raise ProtocolError(SYNTAX_ERROR, "a content header has %d octets behind its last property" % (end - at))
    return struct.pack(">HHQ", BASIC, 0, size) + as_basic(given, name == "file")


def as_basic(given, is_file):
    """The properties of a file or of a packet as those of class basic."""
    message = shared.named(given)
    if message.get("priority", 0) > shared.PRIORITY_MAX:
        raise ProtocolError(PRECONDITION_FAILED, "priority is %d; from 0 to 9 are" % message["priority"])
    if given.get("timestamp") is not None:
        message["timestamp"] = given["timestamp"]
    message["delivery_mode"] = 2 if is_file else 1
    return properties.encode(message)


def native(rows, given):
    """Properties by the names that families share as those of a class with these rows."""
    flags, parts = 0, []
    for index in range(len(rows)):
        item = given.get(rows[index][0])
        if item is not None:
            flags |= 0x8000 >> index
            parts.append(method.encode_field(rows[index][1], item))
    return struct.pack(">H", flags) + b"".join(parts)


class Session08(Older):
    """0-8 as Qpid's clients speak it."""

    dialect = spec_0_8
    verbs_beside = dict(VERBS, queue_declare=queue_declare)


class Session08Plain(Older):
    """0-8 as its text has it, and py-amqplib: basic.recover without an answer."""

    dialect = spec_0_8
    verbs_beside = dict(VERBS, basic_recover=recovers(""))


class Session09(Older):
    """0-9 as Qpid's clients speak it."""

    dialect = spec_0_9
    verbs_beside = dict(VERBS, queue_declare=queue_declare, basic_recover=recovers(""))
