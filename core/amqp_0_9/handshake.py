"""The beginning of a 0-9-1 connection: start, tune, open (section 2.2.4). Each state takes one method and puts the next in its place."""

from ..access.login import Login, offered
from ..access.permissions import WRITE
from ..errors import ACCESS_REFUSED, COMMAND_INVALID, NOT_ALLOWED, ProtocolError
from ..parts import part
from ..version import PRODUCT, VERSION
from . import frame, method
from .sasl import MECHANISMS

if False:  # for the type checker alone
    from typing import Any

# What clients look for (RabbitMQ's names): only what is true.
CAPABILITIES = {
    "publisher_confirms": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "exchange_exchange_bindings": True,
    "consumer_priorities": True,
    "direct_reply_to": True,
}

ABOUT = part("about")

OPEN: "Any" = None  # session.py puts its state here


HEARD = ("authentication_failure_close", "consumer_cancel_notify", "connection.blocked")  # of the client's, those that change something


def begin(session):
    """Send connection.start."""
    properties = {} if ABOUT is None else ABOUT.properties(session.broker)
    properties["product"] = PRODUCT
    properties["version"] = VERSION
    properties["capabilities"] = CAPABILITIES
    names = " ".join(offered(MECHANISMS, session.connection)).encode("utf-8")
    session.reply(0, "connection_start", (0, 9, properties, names, b"en_US"))


def expect(session, number, row, name):
    """Raise unless the method is the one that this state waits for."""
    if number != 0 or row[method.NAME] != name:
        raise ProtocolError(
            COMMAND_INVALID, "expected %s, got %s on channel %d" % (name.replace("_", ".", 1).replace("_", "-"), method.title(row), number)
        )


def start_ok(session, number, row, octets, at, end):
    """connection.start-ok (section 1.4.2.2): log in, propose the tuning."""
    expect(session, number, row, "connection_start_ok")
    properties, mechanism, response, _ = method.decode(row, octets, at, end)
    session.broker.refuse_surplus(session.connection)
    capabilities = properties.get("capabilities")
    if isinstance(capabilities, dict):
        session.capabilities = {name: True for name in HEARD if capabilities.get(name)}
    session.login = Login(session, MECHANISMS, mechanism, logged_in, ask, refused)
    session.login.take(response)


def ask(session):
    """The mechanism wants another step: connection.secure (section 1.4.2.3)."""
    session.state = secure_ok
    session.reply(0, "connection_secure", (session.login.attempt.challenge,))


def secure_ok(session, number, row, octets, at, end):
    """connection.secure-ok (section 1.4.2.4)."""
    expect(session, number, row, "connection_secure_ok")
    session.login.take(method.decode(row, octets, at, end)[0])


def logged_in(session, user):
    """The log-in has succeeded: propose the tuning."""
    session.broker.admit(session.connection, user)
    session.user = user.name
    session.writable = user.granted[WRITE]
    limits = session.broker.limits
    session.state = tune_ok
    session.reply(0, "connection_tune", (limits.channel_max, limits.frame_size_max, limits.heartbeat_s))


def refused(session, error):
    """The log-in has failed: a word to those who announced that they understand it, and the end for all."""
    if error.condition == ACCESS_REFUSED and not session.capabilities.get("authentication_failure_close"):
        session.connection.end()
        return
    session.closing_method = (0, 0)
    raise error


def tune_ok(session, number, row, octets, at, end):
    """connection.tune-ok (section 1.4.2.6): 0 means that the peer sets no limit of its own."""
    expect(session, number, row, "connection_tune_ok")
    channel_max, frame_size_max, heartbeat_s = method.decode(row, octets, at, end)
    limits = session.broker.limits
    for name, value, ours in (("channel_max", channel_max, limits.channel_max), ("frame_max", frame_size_max, limits.frame_size_max)):
        if value > ours:
            raise ProtocolError(NOT_ALLOWED, "negotiated %s = %d is higher than the maximum allowed value (%d)" % (name, value, ours))
    if frame_size_max and frame_size_max < frame.FRAME_MIN_SIZE:
        raise ProtocolError(
            NOT_ALLOWED, "negotiated frame_max = %d is lower than the minimum allowed value (%d)" % (frame_size_max, frame.FRAME_MIN_SIZE)
        )
    session.channel_max = channel_max or limits.channel_max
    session.frame_size_max = frame_size_max or limits.frame_size_max
    session.heartbeat_ms = heartbeat_s * 1000
    session.state = open_


def open_(session, number, row, octets, at, end):
    """connection.open (section 1.4.2.7)."""
    expect(session, number, row, "connection_open")
    virtual_host = method.decode(row, octets, at, end)[0]
    broker = session.broker
    if virtual_host != broker.virtual_host and virtual_host not in broker.virtual_host_aliases:
        raise ProtocolError(NOT_ALLOWED, "vhost %s not found" % virtual_host)
    if session.connection.user.permissions is None:
        raise ProtocolError(NOT_ALLOWED, "access to vhost '%s' refused for user '%s'" % (broker.virtual_host, session.user))
    session.state = OPEN
    session.broker.inform("%s: user '%s' has opened a connection" % (session.connection.name, session.user))
    session.reply(0, "connection_open_ok", ("",))


START = start_ok
