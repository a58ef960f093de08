"""The beginning and the end of a 1.0 connection (section 2.4): the actions of states.CONNECTION, which says what is done when.

Those of frames are given (protocol, channel, fields of the performative, octets, where the payload begins, where it ends).
"""

from ..errors import CONNECTION_FORCED, FRAME_ERROR, NOT_ALLOWED, NOT_FOUND, RESOURCE_ERROR, ProtocolError
from ..parts import part
from ..version import PRODUCT, VERSION
from . import dispositions, frame, sole
from .conditions import INVALID_FIELD, error_of, symbol_of
from .sasl_layer import admit, ask, no_tls, offer, other_header, refused, sasl_init, sasl_response, without_sasl  # noqa: F401 - actions
from .session import begin  # noqa: F401 - an action of states.CONNECTION
from .spec_1_0 import HEADER_AMQP

ABOUT = part("about")

IDLE_LEAST_MS = 100  # a peer that wants to hear from us more often is refused (section 2.4.5)
VIRTUAL_HOST = "vhost:"  # a hostname that begins so names one, as in RabbitMQ

# What a peer may rely on (section 2.8.7): only what is true.
CAPABILITIES = ["ANONYMOUS-RELAY", "LINK_PAIR_V1_0", "SHARED-SUBS"]


# Which broker's addresses, management and filters are served: RabbitMQ's clients for AMQP 1.0 look for it, and close where it is not there.
COMPATIBLE = ("RabbitMQ", "4.2.0")


def refuse(condition, input_, state, protocol, *given):
    """Raise for a frame that a state does not allow."""
    raise ProtocolError(condition, "%s in the state '%s' of a connection" % (input_, state))


def exchange(protocol):
    """The header of AMQP behind the SASL layer (section 5.3.1)."""
    protocol.write(HEADER_AMQP)


def properties(protocol):
    """The properties of our open, named as RabbitMQ names them."""
    given = {} if ABOUT is None else ABOUT.properties(protocol.broker)
    given["product"], given["version"] = COMPATIBLE
    given["server"] = "%s %s" % (PRODUCT, VERSION)
    given["node"] = protocol.broker.name  # RabbitMQ's Java client opens no connection without it
    return {("symbol", name): given[name] for name in given}


def say_open(protocol, more=None):
    """Send our open (section 2.7.1); `more`: properties beside those of every one."""
    limits = protocol.broker.limits
    given = properties(protocol)
    given.update(more or {})
    protocol.reply(
        0,
        "open",
        {
            "container-id": protocol.broker.name,
            "max-frame-size": protocol.frame_max_in,
            "channel-max": protocol.channel_max,
            "idle-time-out": limits.heartbeat_s * 1000 or None,
            "offered-capabilities": CAPABILITIES + ([sole.CAPABILITY] if protocol.is_sole else []),
            "properties": given,
        },
    )


def open_(protocol, channel, fields, octets, at, end):
    """The peer's open (section 2.7.1), which is answered by ours."""
    connection = protocol.connection
    broker = protocol.broker
    broker.places.refuse_surplus(connection)
    broker.places.admit(connection, protocol.user)
    if channel:
        raise ProtocolError(FRAME_ERROR, "an open on channel %d and not on 0 (section 2.4.1)" % channel)
    frame_max, idle_ms = fields["max-frame-size"], fields["idle-time-out"] or 0
    if frame_max < frame.SIZE_MIN_MAX:
        raise ProtocolError(INVALID_FIELD, "max-frame-size is %d; each peer takes %d (section 2.7.1)" % (frame_max, frame.SIZE_MIN_MAX))
    if 0 < idle_ms < IDLE_LEAST_MS:
        raise ProtocolError(NOT_ALLOWED, "idle-time-out is %d ms; %d or more are served (section 2.4.5)" % (idle_ms, IDLE_LEAST_MS))
    check_host(protocol, fields["hostname"] or protocol.hostname)
    if connection.user.permissions is None:
        raise ProtocolError(NOT_ALLOWED, "access to vhost '%s' refused for user '%s'" % (broker.virtual_host, connection.user.name))
    if len(fields["container-id"].encode("utf-8")) > broker.limits.argument_size_max // 4:
        raise ProtocolError(RESOURCE_ERROR, "a container-id of more than %d octets" % (broker.limits.argument_size_max // 4))
    protocol.container_id = fields["container-id"]
    protocol.frame_max_out = min(frame_max, broker.limits.frame_size_max, connection.send.size)
    protocol.channel_max = min(protocol.channel_max, fields["channel-max"])
    protocol.idle_ms = idle_ms
    if not sole.enforce(protocol, fields):
        say_open(protocol, sole.FAILED)
        sole.refuse(protocol)
        return
    broker.places.introduced(connection, fields["properties"], protocol.mechanism)
    broker.places.opened(connection)
    say_open(protocol)


def check_host(protocol, hostname):
    """Raise not-found for a virtual host that is not there; any other hostname is ours."""
    broker = protocol.broker
    if hostname.startswith(VIRTUAL_HOST):
        name = hostname[len(VIRTUAL_HOST) :]
        if name != broker.virtual_host and name not in broker.virtual_host_aliases:
            raise ProtocolError(NOT_FOUND, "vhost %s not found" % name[:80])


def close(protocol, channel, fields, octets, at, end):
    """The peer's close (section 2.7.9): answered when the deliveries of its sessions have gone back; false until then."""
    protocol.release_all()
    if [each for each in protocol.broker.consumers.leaving if each.connection is protocol.connection]:
        return protocol.go_on_later()
    protocol.reply(0, "close", {})
    protocol.connection.end(True)
    return True


def finish(protocol, *given):
    """The peer has answered our close: the end."""
    protocol.connection.end()


def refuse_open(protocol, condition, text):
    """An error before both have opened: an open goes before the close (section 2.4.1)."""
    say_open(protocol)
    send_close(protocol, condition, text)


def send_close(protocol, condition, text, info=None):
    """Close for an error (section 2.7.9). The stream ends after a broken frame: nobody knows where the next one begins."""
    connection = protocol.connection
    user = "" if connection.user is None else connection.user.name
    protocol.broker.counters["connection_errors"] += 1
    protocol.broker.inform("%s: connection of user '%s' closed with %s %s" % (connection.name, user, symbol_of(condition), text), True)
    say_close(protocol, condition, text, info)
    if condition == FRAME_ERROR:
        connection.end(True)


def say_close(protocol, condition, text, info=None):
    """Send a close with its error; the broker discards frames until the peer's close."""
    for session in protocol.sessions():
        dispositions.write(session)  # what came before was taken
    protocol.release_all()
    protocol.promised = 0
    protocol.reply(0, "close", {"error": error_of(condition, text, info)})
    protocol.send.busy = True
    protocol.send.touch()
    protocol.connection.reading = True
    protocol.connection.ending_since = protocol.broker.now


def force(protocol, text):
    """Send a close from the broker's side, without an error of the peer (section 2.8.16), in RabbitMQ's words."""
    say_close(protocol, CONNECTION_FORCED, "Connection forced: " + text)


def end(protocol, *given):
    """End the stream without a close: the peer's layer has no such frame, or the peer does not answer."""
    protocol.release_all()
    protocol.connection.end()


def ignore(protocol, *given):
    """Nothing: what a peer has sent before it saw our close (section 2.4.6, DISCARDING)."""
