"""The beginning and the end of a 0-9-1 connection (section 2.2.4): the actions of states.CONNECTION, the table of inputs and actions.

Those of methods are given (session, channel number, row of METHODS, octets, where the arguments begin, where they end).
"""

from ..access.login import Login, offered
from ..access.permissions import WRITE
from ..errors import ACCESS_REFUSED, CONNECTION_FORCED, FRAME_ERROR, NOT_ALLOWED, ProtocolError
from ..memory import layout
from ..parts import part
from ..version import PRODUCT, VERSION
from . import frame, method, replies
from .sasl import MECHANISMS

# Capabilities that clients check (RabbitMQ's names): only true ones.
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


HEARD = ("authentication_failure_close", "consumer_cancel_notify", "connection.blocked")  # of the client's, those that change something


def begin(session):
    """Send connection.start."""
    properties = {} if ABOUT is None else ABOUT.properties(session.broker)
    properties["product"] = PRODUCT
    properties["version"] = VERSION
    if session.tells_capabilities:
        properties["capabilities"] = CAPABILITIES
    names = " ".join(offered(MECHANISMS, session.connection)).encode("utf-8")
    session.reply(0, "connection_start", session.dialect.VERSION + (properties, names, b"en_US"))


def refuse(condition, input_, state, session, channel, row, *payload):
    """Raise for a frame that a state does not allow: a method with its `row`, or a content header or body. `channel`: it, or its number."""
    if row and state == "open":
        method.decode(row, *payload)  # an unreadable method is reported first
    if state == "closed":
        session.may_be_new(channel.number)
    input_name = method.title(row) if row else input_.replace("_", " ")
    raise ProtocolError(condition, "%s on channel %d in the state '%s'" % (input_name, getattr(channel, "number", channel), state))


def start_ok(session, number, row, octets, at, end):
    """connection.start-ok (section 1.4.2.2): log in, propose the tuning."""
    properties, mechanism, response, _ = method.decode(row, octets, at, end)
    session.broker.places.refuse_surplus(session.connection)
    capabilities = properties.get("capabilities")
    if isinstance(capabilities, dict):
        session.capabilities = {name: True for name in HEARD if capabilities.get(name)}
    session.broker.places.introduced(session.connection, properties, mechanism)
    session.login = Login(session, MECHANISMS, mechanism, session.step)
    session.login.receive(response)


def ask(session):
    """The mechanism wants another step: connection.secure (section 1.4.2.3)."""
    session.reply(0, "connection_secure", (session.login.attempt.challenge,))


def secure_ok(session, number, row, octets, at, end):
    """connection.secure-ok (section 1.4.2.4)."""
    session.login.receive(method.decode(row, octets, at, end)[0])


def propose(session, user):
    """The log-in has succeeded: propose the tuning."""
    session.broker.places.admit(session.connection, user)
    session.writable = user.granted[WRITE]
    limits = session.broker.limits
    session.reply(0, "connection_tune", (limits.channel_max, limits.frame_size_max, limits.heartbeat_s))


def refused(session, error):
    """The log-in has failed: connection.close for clients that announced to understand it, and the end for all."""
    if error.condition == ACCESS_REFUSED and not session.capabilities.get("authentication_failure_close"):
        session.connection.end()
        return
    session.closing_method = 0
    raise error


def tune_ok(session, number, row, octets, at, end):
    """connection.tune-ok (section 1.4.2.6): 0 means that the peer sets no limit of its own."""
    channel_max, frame_size_max, heartbeat_s = method.decode(row, octets, at, end)
    limits = session.broker.limits
    for name, value, ours in (("channel_max", channel_max, limits.channel_max), ("frame_max", frame_size_max, limits.frame_size_max)):
        if value > ours:
            raise ProtocolError(NOT_ALLOWED, "negotiated %s = %d is higher than the maximum allowed value (%d)" % (name, value, ours))
    if frame_size_max and frame_size_max < frame.FRAME_MIN_SIZE:
        raise ProtocolError(
            NOT_ALLOWED, "negotiated frame_max = %d is lower than the minimum allowed value (%d)" % (frame_size_max, frame.FRAME_MIN_SIZE)
        )
    if channel_max not in (0, limits.channel_max):
        session.channel_max = channel_max
    session.frame_size_max = frame_size_max or limits.frame_size_max
    session.heartbeat_ms = heartbeat_s * 1000


def open_(session, number, row, octets, at, end):
    """connection.open (section 1.4.2.7)."""
    virtual_host = method.decode(row, octets, at, end)[0]
    broker = session.broker
    if virtual_host != broker.virtual_host and virtual_host not in broker.virtual_host_aliases:
        if session.has_invalid_path:
            raise ProtocolError("invalid-path", "vhost %s not found" % virtual_host)
        raise ProtocolError(NOT_ALLOWED, "vhost %s not found" % virtual_host)
    if session.connection.user.permissions is None:
        raise ProtocolError(NOT_ALLOWED, "access to vhost '%s' refused for user '%s'" % (broker.virtual_host, session.user))
    broker.places.opened(session.connection)
    session.reply(0, "connection_open_ok", ("",))


def close(session, number, row, octets, at, end):
    """connection.close (section 1.4.2.8): answered when the deliveries of its channels have gone back; false until then."""
    method.decode(row, octets, at, end)
    session.release_all()
    session.leaving = [channel for channel in session.leaving if channel.handle != layout.NONE]
    if session.leaving:
        return session.go_on_later()
    return close_too(session)


def close_too(session, *method_frame):
    """Answer a connection.close, also one that has crossed ours. The peer may still write: it ends the stream when it has read that."""
    session.reply(0, "connection_close_ok", ())
    session.connection.end(True)


def update_secret(session, number, row, octets, at, end):
    """connection.update-secret (RabbitMQ's): no log-in that is offered here runs out."""
    method.decode(row, octets, at, end)
    session.reply(0, "connection_update_secret_ok", ())


def send_close(session, condition, text):
    """Close for an error: connection.close with the reply code of a condition (core/errors.py). The stream ends after a broken frame."""
    session.broker.counters["connection_errors"] += 1
    code = replies.reply_of(session.dialect, condition)[0]
    text = replies.reply_text(condition, text)
    if session.login is None or session.login.failure is None:  # a refused log-in was logged already
        session.broker.inform("%s: connection of user '%s' closed with %d %s" % (session.connection.name, session.user, code, text), True)
    session.close(code, text)
    if condition == FRAME_ERROR:
        session.connection.end(True)


def force(session, text):
    """Close from our side without an error (320)."""
    session.closing_method = 0
    session.close(replies.reply_of(session.dialect, CONNECTION_FORCED)[0], replies.reply_text(CONNECTION_FORCED, text))


def end(session, condition, text):
    """An error behind our connection.close: the stream ends without its answer."""
    session.connection.end(True)


def finish(session, *given):
    """The end, at once."""
    session.connection.finish()


def ignore(session, *given):
    """Discard a frame that a peer has sent before it saw our connection.close (section 1.4.2.8)."""
