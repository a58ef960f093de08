"""message.transfer as it arrives: command, header, body. Bodies go into their blocks frame by frame.

A body of one frame has a known size; one of several grows as it comes (core/broker/incoming.py). Where there is no room for a frame it
stays where it is and the connection is not read until there is; a full queue holds a complete message, and with it the connection.
"""

from ..errors import CONTENT_TOO_LARGE, ProtocolError
from ..memory import layout, serial
from ..message.route import PART_MAX, pack
from ..outcomes import TAKEN
from . import frame, mapping, properties
from .conditions import ILLEGAL_ARGUMENT, SessionError
from .hot_row import EXPLICIT, NOT_ACQUIRED

IN_ARENA = b"-"  # in the place of a header segment whose message has begun
REJECTED_IMMEDIATE = 2  # reject-code of message.reject


def begin(session, fields):
    """The command: where the message goes. Its routing key is in the header."""
    for field in ("accept_mode", "acquire_mode"):
        if (fields[field] or 0) > 1:
            raise SessionError(ILLEGAL_ARGUMENT, "%s is %d" % (field.replace("_", "-"), fields[field]))
    if fields["acquire_mode"] == NOT_ACQUIRED:
        raise SessionError(ILLEGAL_ARGUMENT, "a message to an exchange with acquire-mode not-acquired")
    session.header = b""


def header(session, payload, is_last):
    """The header segment is whole (b"": there is none); `is_last`: no body follows. False: there is no room now."""
    if is_last and start(session, payload, 0) is False:
        return False
    session.header = payload
    session.wants = frame.BODY
    if is_last:
        session.taker.end(session)
    return True


def body(session, octets, at, end_, whole):
    """A frame of the body; `whole`: its last. False: there is no room for it now."""
    incoming = session.incoming
    if incoming.message == layout.NONE:
        if start(session, session.header, end_ - at if whole else None) is False:
            return False
        session.header = IN_ARENA
    if end_ > at and not incoming.append(octets, at, end_ - at):
        return False
    session.wants = frame.BODY
    session.goes_on = not whole
    if whole:
        session.taker.end(session)
    return True


def start(session, payload, size):
    """Begin the message in the broker: false when it has no room now, and then nothing has changed."""
    named = properties.facts(payload, 0, len(payload), True)
    fragment = named.get("fragment-properties")
    if fragment is not None and not (fragment["first"] and fragment["last"]):
        return mapping.fragments().start(session, payload, named)
    return begin_message(session, payload, named, size)


def begin_message(session, payload, named, size):
    """The same with the facts of the header segment, for a message of one transfer or of several (fragments.py)."""
    incoming, broker, fields = session.incoming, session.broker, session.fields
    delivery, message = named.get(properties.DELIVERY) or {}, named.get(properties.MESSAGE) or {}
    priority = delivery.get("priority")
    if priority is not None and priority > 9:
        raise SessionError(ILLEGAL_ARGUMENT, "priority is %d; from 0 to 9 are (delivery-priority)" % priority)
    key = (delivery.get("routing_key") or "").encode("utf-8")
    if len(key) > PART_MAX:
        raise SessionError(CONTENT_TOO_LARGE, "a routing key of %d octets; this broker takes %d" % (len(key), PART_MAX))
    exchange = fields["destination"] or ""
    is_explicit = fields["accept_mode"] in (None, EXPLICIT)
    incoming.to(pack(exchange.encode("utf-8"), key), is_explicit and not delivery.get("discard_unroutable") or fields.get("mandatory"))
    user_id = message.get("user_id")
    if user_id is not None:
        check_user(incoming, user_id)
    kind, lifetime = properties.columns(named, broker.seconds + layout.EPOCH)
    kind |= properties.NUMBER
    incoming.copies = b""
    session.is_immediate = bool(delivery.get("immediate"))
    return incoming.begin(payload, 0, len(payload), size, kind, lifetime)


def check_user(incoming, octets):
    """Raise unauthorized-access for a message whose user-id is another user's ("The server MUST produce an unauthorized-access
    exception")."""
    try:
        incoming.check_user(str(octets, "utf-8"))
    except (UnicodeError, ProtocolError) as error:
        raise SessionError("unauthorized-access", "user-id is another than that of the user: %s" % error) from None


def end(session):
    """The message is whole; one that is to be delivered at once has a consumer in each of its queues, or goes to none."""
    ended(session)
    if session.is_immediate and not has_readers(session):
        refuse_immediate(session)
    else:
        mapping.complete(session)


def has_readers(session):
    """True when each queue that the message goes to has a subscription; one in a transaction is not asked."""
    broker, incoming = session.broker, session.incoming
    if incoming.transaction is not None:
        return True
    targets = broker.route(incoming.exchange, incoming.key(), incoming.message)
    return not [queue for queue in targets if not queue.consumers]


def refuse_immediate(session):
    """The message "should be considered unroutable (and not delivered to any queues)": rejected with code 2 where its sender wants to hear
    so."""
    is_told = session.incoming.mandatory
    session.broker.counters["returned" if is_told else "unroutable"] += 1
    mapping.drop_content(session)
    for first, last in session.ids():
        session.took(first, last)
        for at in range(serial.distance(first, last) + 1):
            session.done(serial.after(first, at))
        if is_told:
            session.now_refused(first, last)
    if is_told:
        fields = {"transfers": session.ids(), "code": REJECTED_IMMEDIATE, "text": "a queue of the message has no subscription"}
        session.command("message_reject", fields)
    elif session.fields["accept_mode"] in (None, EXPLICIT):
        session.tell_outcome(TAKEN, session.ids())
    session.fragments = None


def ended(session):
    """All of a command with a content has come."""
    session.wants, session.goes_on, session.header = frame.COMMAND, False, b""
    session.expected = serial.after(session.expected, 1)
