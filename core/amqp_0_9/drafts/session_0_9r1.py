"""AMQP 0.9 revision 1 (the draft of 2005 whose header is 1 1 9 1): its methods as those of 0-8, and the answers."""

from ...errors import FRAME_ERROR, NOT_IMPLEMENTED, ProtocolError
from ...memory import layout
from ...message import reading
from ...shim import const
from . import methods, spec_0_9r1, tickets
from .fields import Fields
from .fields import number as number_of
from .frames import TRACE, Frames9r1
from .methods import as_it_is, closed, refuses, unsent
from .session import NAMES, Dialect, Draft

BASIC = const(6)  # classes of contents
JMS = const(7)
FILE = const(8)
STREAM = const(9)


class Session09r1(Draft):
    """One connection of 0.9r1."""

    wire = spec_0_9r1
    dialect = Dialect(spec_0_9r1)
    framing = Frames9r1
    fields = Fields(4, "", "S")
    heartbeat = Frames9r1.heartbeat
    context = ""  # the context-key of connection.open
    asked = BASIC  # class of the last get, consume or cancel

    def check_frame(self, kind, number, size):
        """As of both drafts, and a trace frame has channel 0."""
        if kind == TRACE and number:
            raise ProtocolError(FRAME_ERROR, "a trace frame on channel %d" % number)
        Draft.check_frame(self, kind, number, size)

    def opened(self, session, channel, arguments):
        """channel.open's prefetch-max."""
        if arguments[0]:
            self.broker.tables.channels[channel.handle + layout.CHANNEL_PREFETCH] = min(arguments[0], layout.MASK)

    def delivery(self, consumer, tag, came_back, message):
        """basic.deliver or jms.deliver."""
        exchange, key = reading.names_of(self.broker.tables, message)
        given = (int(consumer.tag),) + ((tag, came_back) if consumer.class_id == JMS else ()) + (exchange, key)
        return self.method_out(consumer.channel.number, NAMES[consumer.class_id] + "_deliver", given)

    def names_of(self, consumer):
        """Its tag."""
        return number_of(2, int(consumer.tag))

    def got(self, channel, tag, came_back, message, left):
        """basic.get-ok or jms.get-ok."""
        exchange, key = reading.names_of(self.broker.tables, message)
        given = ((tag, came_back) if channel.asked == JMS else ()) + (exchange, key, left)
        return self.method_out(channel.number, NAMES[channel.asked] + "_get_ok", given)

    def file_delivery(self, reader, tag, redelivered, exchange, key, identifier):
        """The frame of file.deliver."""
        given = (tag, redelivered, exchange, reader.consumer.queue.name, identifier)
        return self.method_out(reader.channel.number, "file_deliver", given)

    def stream_delivery(self, reader, tag, redelivered, exchange):
        """The frame of stream.deliver."""
        return self.method_out(reader.channel.number, "stream_deliver", (tag, exchange, reader.consumer.queue.name))


def open_(session, number, arguments):
    """connection.open."""
    path, session.context = arguments
    methods.begin(session, path)
    return "connection_open", (path, "", False)


def channel_open(session, number, arguments):
    """channel.open."""
    prefetch, out_of_band = arguments
    if out_of_band:
        raise ProtocolError(NOT_IMPLEMENTED, "this broker has no out-of-band transport", True)
    session.opening = (prefetch,)
    return "channel_open", ("",)


def request(session, number, arguments):
    """access.request."""
    ticket = tickets.grant(session, arguments[0], arguments[1:])
    session.write(session.method_out(number, "access_request_ok", (ticket,)))


def with_ticket(name, right, *more):
    """The function of a method whose first argument is a ticket that has to have this right; `more`: behind its own arguments."""

    def checked(session, number, arguments):
        tickets.check(session, arguments[0], right)
        return name, (0,) + tuple(arguments[1:]) + more

    return checked


def declare(name, place, *more):
    """The same of a method that has the flag passive at `place`."""

    def checked(session, number, arguments):
        tickets.check(session, arguments[0], "passive" if arguments[place] else "active")
        return name, (0,) + tuple(arguments[1:]) + more

    return checked


def bind(session, number, arguments):
    """queue.bind."""
    ticket, queue, exchange, key, table = arguments
    tickets.check(session, ticket, "active")
    return "queue_bind", (0, queue, exchange, key, False, table)


def consume(class_id):
    """The function of basic.consume, whose deliveries need no acknowledgement, or of jms.consume."""

    def asked(session, number, arguments):
        ticket, name = arguments[:2]
        tickets.check(session, ticket, "read")
        size, count, auto_ack = (arguments[2], arguments[3], arguments[5]) if class_id == JMS else (0, 0, True)
        if size:
            raise ProtocolError(NOT_IMPLEMENTED, "prefetch-size is %d: this broker counts messages" % size, True)
        session.asked = class_id
        return session.consumed(session.channels[number], name, class_id, auto_ack, count, arguments[-1])

    return asked


def consume_file(session, number, arguments):
    """file.consume."""
    ticket, name, size, count, _, auto_ack, exclusive = arguments
    tickets.check(session, ticket, "read")
    return session.consumed(session.channels[number], name, FILE, auto_ack, (size, count), exclusive)


def consume_stream(session, number, arguments):
    """stream.consume; nothing of it is acknowledged, so its window has nothing to count."""
    ticket, name, _, _, rate, _, exclusive = arguments
    tickets.check(session, ticket, "read")
    return session.consumed(session.channels[number], name, STREAM, True, rate, exclusive)


def cancel_of(name):
    """The function of file.cancel or stream.cancel."""
    return lambda session, number, arguments: (name, ("%d" % arguments[0], False))


def cancel(class_id):
    """The function of basic.cancel or jms.cancel."""

    def asked(session, number, arguments):
        session.asked = class_id
        return "basic_cancel", ("%d" % arguments[0], False)

    return asked


def publish(class_id):
    """The function of basic.publish, jms.publish or stream.publish."""

    def sent(session, number, arguments):
        tickets.check(session, arguments[0], "write")
        session.channels[number].class_id = class_id
        return "stream_publish" if class_id == STREAM else "basic_publish", (0,) + tuple(arguments[1:])

    return sent


def get(class_id):
    """The function of basic.get, whose message needs no acknowledgement, or of jms.get."""

    def asked(session, number, arguments):
        tickets.check(session, arguments[0], "read")
        session.asked = session.channels[number].asked = class_id
        return "basic_get", (0, arguments[1], class_id == BASIC or arguments[2])

    return asked


def answer(ending, number_first=False):
    """The function of an answer that has the name of the class that was asked; `number_first`: with a consumer's tag."""
    return lambda session, arguments: (NAMES[session.asked] + ending, (int(arguments[0]),) if number_first else ())


Session09r1.verbs_beside = methods.VERBS

Session09r1.METHODS_IN = {
    "connection_start_ok": as_it_is("connection_start_ok"),
    "connection_secure_ok": as_it_is("connection_secure_ok"),
    "connection_tune_ok": as_it_is("connection_tune_ok"),
    "connection_open": open_,
    "connection_close": as_it_is("connection_close"),
    "connection_close_ok": as_it_is("connection_close_ok"),
    "channel_open": channel_open,
    "channel_flow": as_it_is("channel_flow"),
    "channel_close": as_it_is("channel_close"),
    "channel_close_ok": as_it_is("channel_close_ok"),
    "access_request": request,
    "exchange_declare": declare("exchange_declare", 3, False, {}),
    "exchange_delete": with_ticket("exchange_delete", "active", False),
    "queue_declare": declare("queue_declare", 2, False, {}),
    "queue_bind": bind,
    "queue_purge": with_ticket("queue_purge", "read", False),
    "queue_delete": with_ticket("queue_delete", "active", False),
    "basic_consume": consume(BASIC),
    "jms_consume": consume(JMS),
    "basic_cancel": cancel(BASIC),
    "jms_cancel": cancel(JMS),
    "basic_publish": publish(BASIC),
    "jms_publish": publish(JMS),
    "basic_get": get(BASIC),
    "jms_get": get(JMS),
    "jms_ack": as_it_is("basic_ack"),
    "jms_reject": as_it_is("basic_reject"),
    "file_consume": consume_file,
    "file_cancel": cancel_of("file_cancel"),
    "file_open": as_it_is("file_open"),
    "file_open_ok": as_it_is("file_open_ok"),
    "file_stage": as_it_is("file_stage"),
    "file_publish": with_ticket("file_publish", "write"),
    "file_ack": as_it_is("file_ack"),
    "file_reject": as_it_is("file_reject"),
    "stream_consume": consume_stream,
    "stream_cancel": cancel_of("stream_cancel"),
    "stream_publish": publish(STREAM),
    "tx_select": as_it_is("tx_select"),
    "tx_commit": as_it_is("tx_commit"),
    "tx_rollback": as_it_is("tx_rollback"),
    "dtx_select": refuses("dtx.select: the tables have no method that ends a distributed transaction"),
    "dtx_start": refuses("dtx.start: the tables have no method that ends a distributed transaction"),
    "test_integer": as_it_is("test_integer"),
    "test_string": as_it_is("test_string"),
    "test_table": as_it_is("test_table"),
    "test_content": refuses("test.content: the tables do not say what its checksum is"),
}

Session09r1.METHODS_OUT = {
    "connection_open_ok": lambda session, arguments: (
        "connection_open_ok",
        (session.context or methods.given_name(session),),
    ),
    "connection_close": lambda session, arguments: ("connection_close", closed(session, arguments)),
    "channel_close": lambda session, arguments: ("channel_close", closed(session, arguments)),
    "channel_open_ok": lambda session, arguments: ("channel_open_ok", ()),
    "channel_flow_ok": unsent,
    "connection_blocked": methods.flow(False),
    "connection_unblocked": methods.flow(True),
    "basic_consume_ok": answer("_consume_ok", True),
    "basic_cancel_ok": answer("_cancel_ok"),
    "basic_get_empty": answer("_get_empty"),
    "file_consume_ok": lambda session, arguments: ("file_consume_ok", (int(arguments[0]),)),
    "file_cancel_ok": lambda session, arguments: ("file_cancel_ok", ()),
    "stream_consume_ok": lambda session, arguments: ("stream_consume_ok", (int(arguments[0]),)),
    "stream_cancel_ok": lambda session, arguments: ("stream_cancel_ok", ()),
}
