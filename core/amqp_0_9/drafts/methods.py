"""What the two drafts share of their methods: those of 0-8 in another form, and functions that make a row of METHODS_IN or METHODS_OUT."""

from ...broker import getting
from ...errors import NOT_IMPLEMENTED, ProtocolError
from ...memory import layout
from ...parts import needed
from .. import file_class, older, stream_class, verbs
from . import class_test


def basic_get(session, channel, arguments):
    """As of 0-8, of a queue that is no stream."""
    _, name, no_ack = arguments
    broker = session.broker
    queue = broker.topology.queue(verbs.current_queue(channel, name), session.connection)
    if queue.is_stream:
        raise ProtocolError(NOT_IMPLEMENTED, "a draft of 2005 reads no streams")
    is_served = getting.serve(broker, queue)
    if session.state == "closing":
        return True  # that broke it
    if not is_served:
        return session.go_on_later()
    outcome = getting.LATER if session.outgoing.active() else getting.state(broker, queue)
    if outcome == getting.READY:
        return session.give(channel, queue, no_ack)
    if outcome == getting.EMPTY:
        session.reply(channel.number, "basic_get_empty", ("",))
    return outcome == getting.EMPTY


def closed(session, arguments):
    """channel.close and connection.close with the class and the method of the draft that they are about."""
    code, text, class_id, _ = arguments
    number = session.wire_code if class_id else 0
    return code, text, number >> 16, number & 0xFFFF


def basic_consume(session, channel, arguments):
    """A consumer, made as Python delivers to it: without a prefix."""
    class_id, prefetch = channel.consuming
    _, name, tag, _, no_ack, exclusive, _, table = arguments
    consumer = session.broker.consumers.subscribe(channel, name, tag, no_ack, exclusive, table, prefetch)
    consumer.class_id = class_id
    session.tags = int(tag)
    if session.quick is not None:
        consumer.names = session.names_of(consumer)
        session.quick.see_consumer(consumer)
    session.reply(channel.number, "basic_consume_ok", (tag,))


def file_consume(session, channel, arguments):
    """As of 0-8, with the window that the draft has here."""
    file_class.file_consume(session, channel, arguments)
    reader = channel.readers[arguments[2]]
    reader.window, reader.source = channel.consuming[1], getattr(channel, "source", None)
    session.tags = int(arguments[2])


def stream_consume(session, channel, arguments):
    """As of 0-8, with the rate that the draft has here."""
    stream_class.stream_consume(session, channel, arguments)
    reader = channel.readers[arguments[2]]
    reader.rate.set(channel.consuming[1])
    reader.source = getattr(channel, "source", None)
    session.tags = int(arguments[2])


def begin(session, path):
    """What both drafts do at connection.open: every client understands to be held (`flow`). Raises invalid-path for a path that is none
    here."""
    broker = session.broker
    session.capabilities = dict(session.capabilities)
    session.capabilities["connection.blocked"] = True
    if session.state == "opening" and path != broker.virtual_host and path not in broker.virtual_host_aliases:
        raise ProtocolError("invalid-path", "vhost %s not found" % path[:80], True)


def given_name(session):
    """A client-id or context-key for a client that has none."""
    return "%s-%d" % (session.connection.name[:200], session.broker.counters["connections"])


def refuses(why):
    """The function of a method that is not served, and why."""

    def refuse(session, number, arguments):
        raise ProtocolError(NOT_IMPLEMENTED, why, True)

    return refuse


def as_it_is(name):
    """The function of a method that 0-8 has, with the same arguments, under this name."""
    return lambda session, number, arguments: (name, arguments)


def named(name):
    """The function of an answer that has the same arguments under this name."""
    return lambda session, arguments: (name, arguments)


def flow(flag):
    """The function that says a stop of publishes, or its end, by a channel.flow with this flag on each open channel: "SHOULD use the
    Channel.Flow method to slow or stop a producer" (0.9a5, "Message Persistence")."""

    def write(session, arguments):
        for number in session.channels:
            if session.channels[number].state not in ("closed", "closing"):
                session.write(session.method_out(number, "channel_flow", (flag,)))

    return write


def unsent(session, arguments):
    """The function of an answer that the draft does not have."""


def transacted(session, channel):
    """Let a channel be transactional from now on."""
    channel.transaction = needed("broker.transaction", "transactions").Transaction(session.broker.tables)
    session.broker.tables.channels[channel.handle + layout.CHANNEL_PLAIN] = 2


VERBS = dict(
    older.VERBS,
    basic_get=basic_get,
    basic_consume=basic_consume,
    basic_cancel=verbs.basic_cancel,
    file_consume=file_consume,
    stream_consume=stream_consume,
    test_integer=class_test.test_integer,
    test_string=class_test.test_string,
)
