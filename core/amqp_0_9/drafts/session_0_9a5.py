"""AMQP/Fast 0.9a5 (AMQ RFC 006 of July 2005): its methods as those of 0-8, and the answers.

A queue has a namespace: its name for the broker is `NAMESPACE.NAME`, or the name alone where the namespace is empty. What says where a
message goes is its property `destination`, so a publish becomes 0-8's when its content header has come. A template of queue.assert is a
policy of the broker, by its name.
"""

from ...errors import (
    COMMAND_INVALID,
    NOT_ALLOWED,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    SYNTAX_ERROR,
    ProtocolError,
)
from ...memory import layout
from ...message import reading
from ...message.formats import NUMBER
from ...shim import const
from ...staging.contents import contents_of
from .. import method, properties, spec_0_8, verbs
from . import methods, spec_0_9a5, tickets
from .contents import DESTINATION
from .fields import Fields, short_string
from .frames import Frames9a5
from .methods import as_it_is, closed, named, refuses, unsent
from .session import Dialect, Draft

BASIC = const(6)  # classes of contents
JMS = const(7)
FILE = const(8)
STREAM = const(9)
PRIORITIES, LEVELS = "priorities", 10  # the template of a queue with so many levels ("Message Priorities"), unless a policy has its name
AUTOMATIC, STANDARD, DISTRIBUTED = 1, 2, 3  # tx-mode of channel.open

# Classes of exchanges, by the names of "Exchange Types" and those that the text uses beside them.
TYPES = {
    "destination": "direct",
    "dest-name": "direct",
    "wildname": "topic",
    "dest-wild": "topic",
    "property": "x-property",
    "prop-test": "x-property",
    "matcher": "x-matcher",
    "prop-wild": "x-matcher",
    "selector": "x-selector",
    "lossy": "x-lossy",
}


class Session09a5(Draft):
    """One connection of 0.9a5."""

    wire = spec_0_9a5
    dialect = Dialect(spec_0_9a5)
    framing = Frames9a5
    fields = Fields(2, "S", "L")
    heartbeat = Frames9a5.heartbeat
    chosen = None  # (mechanism, locale) of start-ok
    client_id = ""
    frame_max = 0  # that of tune-ok, where it is smaller than 0-8 lets it be
    namespace = ""  # of the last queue.assert
    asked = BASIC  # class of the last browse

    def opened(self, session, channel, arguments):
        """channel.open's prefetch-max and tx-mode."""
        prefetch, mode = arguments
        if prefetch:
            self.broker.tables.channels[channel.handle + layout.CHANNEL_PREFETCH] = min(prefetch, layout.MASK)
        if mode == STANDARD:
            methods.transacted(self, channel)

    def published(self, channel, head):
        """The destination has come: publish."""
        key = head.given.get("destination", "")
        if getattr(channel, "publishing", None) is None:
            return True
        arguments = (0, channel.publishing, key, False, False)
        channel.publishing = None
        name = "stream_publish" if head.class_id == STREAM else "basic_publish"
        payload = method.encode(method.named(spec_0_8.METHODS, name), channel.number, arguments)[7:-1]
        self.may_begin(channel.number, payload, 0)
        self.act(channel.number, name, self.row, payload, 4, len(payload))
        return channel.state == "header"

    def delivery(self, consumer, tag, came_back, message):
        """jms.deliver."""
        exchange = reading.names_of(self.broker.tables, message)[0]
        return self.method_out(consumer.channel.number, "jms_deliver", (tag, came_back, exchange) + consumer.source)

    def names_of(self, consumer):
        """The names by which its queue was asked for."""
        return b"".join([short_string(name) for name in consumer.channel.source])

    def file_delivery(self, reader, tag, redelivered, exchange, key, identifier):
        """The frame of file.deliver."""
        given = (tag, redelivered, exchange) + reader.source + (identifier,)
        return self.method_out(reader.channel.number, "file_deliver", given)

    def stream_delivery(self, reader, tag, redelivered, exchange):
        """The frame of stream.deliver."""
        return self.method_out(reader.channel.number, "stream_deliver", (tag, redelivered, exchange) + reader.source)

    def got(self, channel, tag, came_back, message, left):
        """basic.browse-ok or jms.browse-ok."""
        if channel.asked == JMS:
            return self.method_out(channel.number, "jms_browse_ok", (tag, came_back, left))
        return self.method_out(channel.number, "basic_browse_ok", (came_back, left))


def whole_name(namespace, name):
    """The broker's name of a queue."""
    return namespace + "." + name if namespace and name else name


# Methods that come


def start_ok(session, number, arguments):
    """connection.start-ok has no response: it comes with secure-ok."""
    if number or session.state != "start" or session.chosen is not None:
        raise ProtocolError(COMMAND_INVALID, "connection.start-ok in the state '%s'" % session.state, True)
    session.chosen = arguments
    session.reply(0, "connection_secure", (b"",))


def secure_ok(session, number, arguments):
    """The first one begins the log-in."""
    if session.state == "start" and session.chosen is not None:
        mechanism, locale = session.chosen
        return "connection_start_ok", ({}, mechanism, arguments[0], locale)
    return "connection_secure_ok", arguments


def tune_ok(session, number, arguments):
    """connection.tune-ok. What it says of tickets, contents and prefetch asks for nothing."""
    frame_max, channel_max, _, heartbeat = arguments[:4]
    if frame_max and frame_max < Frames9a5.least:
        raise ProtocolError(NOT_ALLOWED, "frame-max is %d; every peer takes %d" % (frame_max, Frames9a5.least), True)
    session.frame_max = frame_max
    return "connection_tune_ok", (channel_max, max(frame_max, 4096) if frame_max else 0, heartbeat)


def open_(session, number, arguments):
    """connection.open."""
    path, session.client_id = arguments
    methods.begin(session, path)
    if session.frame_max:
        session.frame_size_max = min(session.frame_size_max, session.frame_max)
    return "connection_open", (path, "", False)


def channel_open(session, number, arguments):
    """channel.open."""
    prefetch, out_of_band, mode = arguments
    if out_of_band:
        raise ProtocolError(NOT_IMPLEMENTED, "this broker has no out-of-band transport", True)
    if mode == DISTRIBUTED:
        raise ProtocolError(NOT_IMPLEMENTED, "tx-mode 3: this broker has no distributed transactions here", True)
    if mode not in (AUTOMATIC, STANDARD):
        raise ProtocolError(SYNTAX_ERROR, "tx-mode is %d; 1, 2 and 3 are" % mode, True)
    session.opening = (prefetch, mode)
    return "channel_open", ("",)


def flow(session, number, arguments):
    """channel.flow, which says whether to pause."""
    return "channel_flow", (not arguments[0],)


def grant(session, number, arguments):
    """access.grant."""
    ticket = tickets.grant(session, arguments[0], arguments[1:])
    session.write(session.method_out(number, "access_grant_ok", (ticket,)))


def exchange_assert(session, number, arguments):
    """exchange.assert."""
    ticket, name, class_, if_exists, durable, auto_delete = arguments
    tickets.check(session, ticket, "passive" if if_exists else "active")
    return "exchange_declare", (0, name, TYPES.get(class_, class_), if_exists, durable, auto_delete, False, False, {})


def exchange_delete(session, number, arguments):
    """exchange.delete."""
    ticket, name, if_unused = arguments
    tickets.check(session, ticket, "active")
    return "exchange_delete", (0, name, if_unused, False)


def queue_assert(session, number, arguments):
    """queue.assert."""
    ticket, namespace, name, template, if_exists, durable, private, auto_delete = arguments
    tickets.check(session, ticket, "passive" if if_exists else "active")
    settings = {}
    if template:
        policy = session.broker.policies.by_name.get(template)
        if policy is None and template == PRIORITIES:
            settings = {"x-max-priority": LEVELS - 1}
        elif policy is None:
            raise ProtocolError(NOT_FOUND, "no policy '%s', which is what a template is here" % template[:80])
        else:
            settings = dict(policy.arguments)
    session.namespace = namespace
    return "queue_declare", (0, whole_name(namespace, name), if_exists, durable, private, auto_delete, False, settings)


def queue_declare_ok(session, arguments):
    """queue.assert-ok: the exchange is the default one, which knows every queue by its name."""
    name, messages, consumers = arguments
    if session.namespace and name.startswith(session.namespace + "."):
        name = name[len(session.namespace) + 1 :]
    return "queue_assert_ok", (name, "", messages, consumers)


def register(session, number, arguments):
    """queue.register: the argument `destination` is the key, `selector` the statement of a selector exchange."""
    ticket, namespace, name, exchange, table = arguments
    tickets.check(session, ticket, "active")
    key, rest = "", {}
    for each in table:
        if each.lower() == "destination" and isinstance(table[each], str):
            key = table[each]
        else:
            rest["x-selector" if each.lower() == "selector" else each] = table[each]
    return "queue_bind", (0, whole_name(namespace, name), exchange, key, False, rest)


def purge(session, number, arguments):
    """queue.purge."""
    ticket, namespace, name = arguments
    tickets.check(session, ticket, "read")
    return "queue_purge", (0, whole_name(namespace, name), False)


def queue_delete(session, number, arguments):
    """queue.delete."""
    ticket, namespace, name, if_unused, if_empty = arguments
    tickets.check(session, ticket, "active")
    return "queue_delete", (0, whole_name(namespace, name), if_unused, if_empty, False)


def browse(class_id):
    """The function of basic.browse, whose message needs no acknowledgement, or of jms.browse."""

    def asked(session, number, arguments):
        ticket, namespace, name = arguments[:3]
        tickets.check(session, ticket, "read")
        session.asked = session.channels[number].asked = class_id
        return "basic_get", (0, whole_name(namespace, name), class_id == BASIC or arguments[4])

    return asked


def browse_empty(session, arguments):
    """basic.browse-empty or jms.browse-empty."""
    return "jms_browse_empty" if session.asked == JMS else "basic_browse_empty", ()


def consume(session, number, arguments):
    """jms.consume."""
    ticket, namespace, name, size, count, _, auto_ack, exclusive = arguments
    tickets.check(session, ticket, "read")
    if size:
        raise ProtocolError(NOT_IMPLEMENTED, "prefetch-size is %d: this broker counts messages" % size, True)
    channel = session.channels[number]
    channel.source = namespace, name
    return session.consumed(channel, whole_name(namespace, name), JMS, auto_ack, count, exclusive)


def consume_file(session, number, arguments):
    """file.consume."""
    ticket, namespace, name, size, count, _, auto_ack, exclusive = arguments
    tickets.check(session, ticket, "read")
    channel = session.channels[number]
    channel.source = namespace, name
    return session.consumed(channel, whole_name(namespace, name), FILE, auto_ack, (size, count), exclusive)


def consume_stream(session, number, arguments):
    """stream.consume; nothing of it is acknowledged, so its window has nothing to count. "Streamed data sent to a queue cannot be shared
    between multiple consumers" ("The Stream Operational Model"): it is alone with its queue, whether it asks for that or not."""
    ticket, namespace, name, _, _, rate = arguments[:6]
    tickets.check(session, ticket, "read")
    channel = session.channels[number]
    channel.source = namespace, name
    return session.consumed(channel, whole_name(namespace, name), STREAM, True, rate, True)


def consumed(session, channel, arguments):
    """The consumer remembers by which names its queue was asked for."""
    methods.basic_consume(session, channel, arguments)
    channel.consumers[arguments[2]].source = channel.source


def publish(class_id):
    """The function of jms.publish or stream.publish, until its content header has come."""

    def sent(session, number, arguments):
        ticket, exchange, immediate = arguments
        tickets.check(session, ticket, "write")
        if immediate:
            raise ProtocolError(NOT_IMPLEMENTED, "immediate=true", True)
        channel = session.channels[number]
        channel.publishing, channel.class_id = exchange, class_id
        session.half = session.half + [channel]

    return sent


def publish_file(session, number, arguments):
    """file.publish: the destination is a property of the content that was staged."""
    ticket, exchange, immediate, identifier = arguments
    tickets.check(session, ticket, "write")
    if immediate:
        raise ProtocolError(NOT_IMPLEMENTED, "immediate=true", True)
    staged = contents_of(session.broker).of(session.user, identifier)
    key = None if staged.kind & NUMBER else properties.header(staged.properties, DESTINATION)
    return "file_publish", (0, exchange, key or "", False, False, identifier)


def queue_bind(session, channel, arguments):
    """As of 0-8, but a durable queue registers with no transient exchange ("Durable Wiring", 3)."""
    queue = session.broker.queues.get(verbs.current_queue(channel, arguments[1]))
    exchange = session.broker.exchanges.get(arguments[2])
    if queue is not None and exchange is not None and queue.durable and not exchange.durable:
        raise ProtocolError(PRECONDITION_FAILED, "queue '%s' is durable, and exchange '%s' is not" % (queue.name, exchange.name))
    verbs.queue_bind(session, channel, arguments)


def connection_open_ok(session, arguments):
    """connection.open-ok: the client's id, or one that is made for it."""
    return "connection_open_ok", (session.client_id or methods.given_name(session),)


def connection_tune(session, arguments):
    """connection.tune: what this broker takes; of the classes of contents that are asked about, all."""
    channel_max, frame_max, heartbeat = arguments
    limits = session.broker.limits
    most = min(limits.consumer_count_max, 0xFFFF)
    return "connection_tune", (frame_max, channel_max, tickets.TICKETS_MAX, most, heartbeat, 0, True, True, True)


Session09a5.verbs_beside = dict(methods.VERBS, basic_consume=consumed, queue_bind=queue_bind)

Session09a5.METHODS_IN = {
    "connection_start_ok": start_ok,
    "connection_secure_ok": secure_ok,
    "connection_tune_ok": tune_ok,
    "connection_open": open_,
    "connection_unknown": lambda session, number, arguments: None,
    "connection_close": as_it_is("connection_close"),
    "connection_close_ok": as_it_is("connection_close_ok"),
    "channel_open": channel_open,
    "channel_flow": flow,
    "channel_close": as_it_is("channel_close"),
    "channel_close_ok": as_it_is("channel_close_ok"),
    "access_grant": grant,
    "exchange_assert": exchange_assert,
    "exchange_delete": exchange_delete,
    "queue_assert": queue_assert,
    "queue_register": register,
    "queue_purge": purge,
    "queue_delete": queue_delete,
    "basic_browse": browse(BASIC),
    "jms_browse": browse(JMS),
    "jms_consume": consume,
    "jms_cancel": lambda session, number, arguments: ("basic_cancel", ("%d" % arguments[0], False)),
    "jms_publish": publish(JMS),
    "jms_ack": as_it_is("basic_ack"),
    "jms_reject": as_it_is("basic_reject"),
    "file_consume": consume_file,
    "file_cancel": lambda session, number, arguments: ("file_cancel", ("%d" % arguments[0], False)),
    "file_open": as_it_is("file_open"),
    "file_open_ok": as_it_is("file_open_ok"),
    "file_stage": as_it_is("file_stage"),
    "file_publish": publish_file,
    "file_ack": as_it_is("file_ack"),
    "file_reject": as_it_is("file_reject"),
    "stream_consume": consume_stream,
    "stream_cancel": lambda session, number, arguments: ("stream_cancel", ("%d" % arguments[0], False)),
    "stream_publish": publish(STREAM),
    "tx_commit": as_it_is("tx_commit"),
    "tx_abort": as_it_is("tx_rollback"),
    "dtx_start": refuses("dtx.start: the tables have no method that ends a distributed transaction"),
    "test_integer": as_it_is("test_integer"),
    "test_string": as_it_is("test_string"),
    "test_table": as_it_is("test_table"),
    "test_content": refuses("test.content: the tables do not say what its checksum is"),
}

Session09a5.METHODS_OUT = {
    "connection_start": lambda session, arguments: ("connection_start", arguments[:2] + arguments[3:]),
    "connection_tune": connection_tune,
    "connection_open_ok": connection_open_ok,
    "connection_close": lambda session, arguments: ("connection_close", closed(session, arguments)),
    "channel_close": lambda session, arguments: ("channel_close", closed(session, arguments)),
    "channel_open_ok": lambda session, arguments: ("channel_open_ok", ()),
    "channel_flow_ok": unsent,
    "connection_blocked": methods.flow(True),
    "connection_unblocked": methods.flow(False),
    "exchange_declare_ok": named("exchange_assert_ok"),
    "queue_declare_ok": queue_declare_ok,
    "queue_bind_ok": named("queue_register_ok"),
    "basic_get_empty": browse_empty,
    "basic_consume_ok": lambda session, arguments: ("jms_consume_ok", (int(arguments[0]),)),
    "basic_cancel_ok": lambda session, arguments: ("jms_cancel_ok", ()),
    "file_consume_ok": lambda session, arguments: ("file_consume_ok", (int(arguments[0]),)),
    "file_cancel_ok": lambda session, arguments: ("file_cancel_ok", ()),
    "stream_consume_ok": lambda session, arguments: ("stream_consume_ok", (int(arguments[0]),)),
    "stream_cancel_ok": lambda session, arguments: ("stream_cancel_ok", ()),
    "tx_rollback_ok": named("tx_abort_ok"),
}
