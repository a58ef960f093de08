"""The beginning and the end of a 0-10 connection (class connection): the actions of states.CONNECTION.

Those of controls are given (protocol, channel, fields).
"""

from ..access import mechanisms
from ..access.login import Login, offered
from ..errors import CONNECTION_FORCED, FRAME_ERROR, INTERNAL_ERROR, NOT_ALLOWED, NOT_FOUND, ProtocolError
from ..parts import part
from ..version import PRODUCT, VERSION
from . import frame
from .conditions import close_code, short_text
from .session import attach, detach_nothing, not_attached  # noqa: F401 - actions of states.CONNECTION
from .spec_0_10 import CLOSES, HEADER

ABOUT = part("about")


def refuse(condition, input_, state, protocol, *given):
    """Raise for a control that a state does not allow."""
    raise ProtocolError(FRAME_ERROR, "%s in the state '%s' of a connection" % (input_.replace("_", ".", 1), state))


def begin(protocol):
    """The header of the same version, then connection.start."""
    properties = {} if ABOUT is None else ABOUT.properties(protocol.broker)
    properties["product"] = PRODUCT
    properties["version"] = VERSION
    protocol.write(HEADER)
    names = offered(mechanisms.MECHANISMS, protocol.connection)
    protocol.control(0, "connection_start", {"server_properties": properties, "mechanisms": names, "locales": ["en_US"]})


def start_ok(protocol, channel, fields):
    """connection.start-ok: log in."""
    mechanism = fields["mechanism"] or ""
    protocol.broker.places.introduced(protocol.connection, fields["client_properties"], mechanism)
    protocol.login = Login(protocol, mechanisms.MECHANISMS, mechanism, protocol.step)
    protocol.login.receive(fields["response"] or b"")


def ask(protocol):
    """The mechanism wants another step: connection.secure."""
    protocol.control(0, "connection_secure", {"challenge": protocol.login.attempt.challenge})


def secure_ok(protocol, channel, fields):
    """connection.secure-ok."""
    protocol.login.receive(fields["response"] or b"")


def propose(protocol, user):
    """The log-in has succeeded: propose the tuning."""
    broker = protocol.broker
    broker.places.refuse_surplus(protocol.connection)
    broker.places.admit(protocol.connection, user)
    heartbeat_s = broker.limits.heartbeat_s
    fields = {
        "channel_max": protocol.channel_max,
        "max_frame_size": protocol.frame_max_in,
        "heartbeat_min": 0,
        "heartbeat_max": heartbeat_s,
    }
    protocol.control(0, "connection_tune", fields)


def refused(protocol, error):
    """The log-in has failed: the connection ends, as Qpid's brokers end it; for a mechanism that was not proposed "without sending any
    further data"."""
    if protocol.login.attempt is not None:
        protocol.control(0, "connection_close", {"reply_code": CLOSES["connection-forced"], "reply_text": short_text(error.text)})
    protocol.connection.end()


def tune_ok(protocol, channel, fields):
    """connection.tune-ok: what is left out, or 0, sets no limit of the peer's own. For more than was proposed "the server MUST close the
    connection without attempting a negotiated close"."""
    for name, ours in (("channel_max", protocol.channel_max), ("max_frame_size", protocol.frame_max_in)):
        if (fields[name] or 0) > ours:
            protocol.broker.counters["connection_errors"] += 1
            text = "%s: the connection of user '%s' ends: %s is %d in tune-ok, and %d in tune"
            given = (protocol.connection.name, protocol.connection.user.name, name.replace("_", "-"), fields[name], ours)
            protocol.broker.inform(text % given, True)
            protocol.step("late")
            return
    size = fields["max_frame_size"] or protocol.frame_max_in
    least = min(frame.SIZE_LEAST, protocol.frame_max_in)  # a board with smaller buffers proposes less than every peer should take
    if size < least:
        raise ProtocolError(NOT_ALLOWED, "max-frame-size is %d; every peer takes %d" % (size, least))
    protocol.channel_max = fields["channel_max"] or protocol.channel_max
    protocol.frame_max_out = min(size, protocol.send.size)
    protocol.heartbeat_ms = 1000 * (fields["heartbeat"] or 0)


def open_(protocol, channel, fields):
    """connection.open: a virtual host may have a slash before its name."""
    broker, user = protocol.broker, protocol.connection.user
    name = fields["virtual_host"] or ""
    names = (broker.virtual_host,) + tuple(broker.virtual_host_aliases) + ("",)
    if name not in names and "/" + name not in names:
        raise ProtocolError(NOT_FOUND, "vhost %s not found" % name[:80])
    if user.permissions is None:
        raise ProtocolError(NOT_ALLOWED, "access to vhost '%s' refused for user '%s'" % (broker.virtual_host, user.name))
    broker.places.opened(protocol.connection)
    protocol.control(0, "connection_open_ok", {"known_hosts": []})


def close(protocol, channel, fields):
    """The peer's connection.close: answered when the deliveries of its sessions have gone back; false until then."""
    protocol.release_all()
    if [each for each in protocol.broker.consumers.leaving if each.connection is protocol.connection]:
        return protocol.go_on_later()
    return close_too(protocol)


def close_too(protocol, *given):
    """Answer a connection.close, also one that has crossed ours."""
    protocol.replies = []
    protocol.control(0, "connection_close_ok", {})
    protocol.connection.end(True)
    return True


def finish(protocol, *given):
    """The peer has answered our close: the end."""
    protocol.connection.end()


def send_close(protocol, condition, text):
    """Close for an error. The stream ends after a broken frame: nobody knows where the next one begins."""
    connection = protocol.connection
    user = "" if connection.user is None else connection.user.name
    protocol.broker.counters["connection_errors"] += 1
    protocol.broker.inform("%s: connection of user '%s' closed with %s %s" % (connection.name, user, condition, text), True)
    say_close(protocol, condition, text)
    if condition in (FRAME_ERROR, INTERNAL_ERROR):
        connection.end(True)


def say_close(protocol, condition, text):
    """Send a close; what the peer sends until its answer is not looked at."""
    protocol.release_all()
    protocol.replies = []
    protocol.control(0, "connection_close", {"reply_code": close_code(condition), "reply_text": short_text(text)})
    protocol.send.busy = True
    protocol.send.touch()
    protocol.connection.reading = True
    protocol.connection.ending_since = protocol.broker.now


def force(protocol, text):
    """Close from our side without an error of the peer's."""
    say_close(protocol, CONNECTION_FORCED, text)


def end(protocol, *given):
    """The end, without a word."""
    protocol.release_all()
    protocol.connection.end()


def ignore(protocol, *given):
    """Nothing: what a peer has sent before it saw our close, and heartbeats, which have done their work by coming."""
