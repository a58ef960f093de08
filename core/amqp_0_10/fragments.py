"""A message in several transfers (fragment-properties), and one that was interrupted (resume-id, message.resume).

    transfer with fragment-properties first     the message begins: this header segment, without that struct, is the message's
    transfers that follow, neither or last      their bodies go behind; the destination and the accept-mode are those of the first
    last                                        the message is whole: all of these transfers are executed, completed and accepted at once

Laws
- "The model layer is required to treat all the fragments as a single message": until it is whole none of its transfers is executed, so that
  a peer whose transport is lost sends all of them again. Other commands may come between them, other contents may not.
- A message with a resume-id whose session or transport ends is kept as far as it has come, for its user, until its resume-ttl or, sooner,
  session_timeout_s is over; HALVES_MAX of them, of staged_memory_max octets together: the oldest goes first. Where the broker ends too the
  offset is 0 ("If the resume-id is not known, the recipient MUST return an offset of zero").
- Behind message.resume with another offset than 0 come fragments with the rest, the first of them without `first`; or the message comes
  whole, and what was kept is forgotten.
"""

from ..errors import NOT_FOUND, ProtocolError
from ..memory import layout
from ..shim import const
from . import frame, mapping, properties, sessions, structs, transfer
from .conditions import ILLEGAL_ARGUMENT, ILLEGAL_STATE, SessionError
from .ranges import Ranges

FRAGMENT = "fragment-properties"
if False:  # for the type checker alone
    from typing import Any

HALVES_MAX = const(8)

# Places of a row of Halves
NAME = 1
HEADER = 2
OCTETS = 3
UNTIL = 4


class Fragments:
    """The message under way in a session. `resume_id`: of one that goes on where it was interrupted, until what was kept of it is in the
    arena."""

    def __init__(self, resume_id=None):
        self.way: "Any" = None  # (destination, accept-mode) of its transfers
        self.resume_id = resume_id
        self.ids = Ranges()  # of its transfers on this session
        self.is_last = False


def start(session, header, named):
    """The first fragment of a message: false when the broker has no room now."""
    if not named[FRAGMENT]["first"]:
        raise SessionError(ILLEGAL_ARGUMENT, "a fragment that is not the first, of no message that is under way")
    header = without_fragment(header)
    if transfer.begin_message(session, header, named, None) is False:
        return False
    session.fragments = Fragments()
    session.fragments.way = way_of(session.fields)
    session.taker = mapping.taker_of(session, "message_transfer")
    return True


def without_fragment(header):
    """A header segment (bytes) without fragment-properties."""
    return b"".join([header[at:end] for name, at, end in structs.each_struct(header, 0, len(header)) if name != FRAGMENT])


# The transfers behind the first (mapping.taker_of)


def begin(session, fields):
    """The command."""
    under_way = session.fragments
    if under_way.way not in (None, way_of(fields)):
        raise SessionError(ILLEGAL_ARGUMENT, "a fragment with another destination or accept-mode than the first")
    under_way.way = way_of(fields)
    transfer.begin(session, fields)


def way_of(fields):
    """(destination, accept-mode) of a transfer."""
    return fields["destination"] or "", fields["accept_mode"] or 0


def header(session, payload, is_last):
    """The header segment. False: there is no room now."""
    named = properties.facts(payload, 0, len(payload), True)
    under_way = session.fragments
    fragment = named.get(FRAGMENT) or {"first": True, "last": True}
    if fragment["first"] and not under_way.ids.runs:  # the peer does not go on where message.resume has told it to
        session.fragments = None
        session.taker = transfer
        return transfer.header(session, payload, is_last)
    if fragment["first"]:
        raise SessionError(ILLEGAL_ARGUMENT, "a transfer amid the fragments of another one")
    if is_last and not is_ready(session):
        return False
    under_way.is_last = fragment["last"]
    session.header = payload and transfer.IN_ARENA
    session.wants = frame.BODY
    if is_last:
        end(session)
    return True


def body(session, octets, at, end_, whole):
    """A frame of the body; `whole`: its last. False: there is no room for it now."""
    if not session.header:
        raise SessionError(ILLEGAL_ARGUMENT, "a transfer without a header amid the fragments of another one")
    if not is_ready(session) or end_ > at and not session.incoming.append(octets, at, end_ - at):
        return False
    session.goes_on = not whole
    if whole:
        end(session)
    return True


def is_ready(session):
    """Have what was kept of a resumed message in the arena; false: there is no room now."""
    under_way = session.fragments
    if under_way.resume_id is None:
        return True
    halves, incoming = halves_of(session.broker), session.incoming
    half = halves.get(session.connection.user.name, under_way.resume_id)
    if half is None:
        raise SessionError(ILLEGAL_STATE, "what was kept of the message is gone: it has to come whole")
    if incoming.message == layout.NONE:
        if transfer.begin_message(session, half[HEADER], properties.facts(half[HEADER], 0, len(half[HEADER]), True), None) is False:
            return False
    if not incoming.append(half[OCTETS], 0, len(half[OCTETS])):
        return False
    halves.rows.remove(half)
    under_way.resume_id = None
    return True


def end(session):
    """A fragment is whole; the last one ends the message."""
    session.fragments.ids.add(session.id, session.id)
    session.fragments.ids.check()
    if session.fragments.is_last:
        transfer.end(session)
    else:
        transfer.ended(session)


# Interrupted


class Halves:
    """The interrupted messages of a broker (Sessions.halves)."""

    def __init__(self, broker):
        self.broker = broker
        self.rows = []  # (user's name, resume-id, header segment, octets of the body, uptime in seconds when it goes), the oldest first

    def add(self, half):
        """Keep a message as far as it has come; one of the same name is forgotten."""
        self.rows = [row for row in self.rows if row[:HEADER] != half[:HEADER]] + [half]
        while len(self.rows) > HALVES_MAX or self.size() > self.broker.limits.staged_memory_max:
            self.rows.pop(0)

    def size(self):
        """The octets of all."""
        return sum([len(row[NAME]) + len(row[HEADER]) + len(row[OCTETS]) for row in self.rows])

    def get(self, user, resume_id):
        """The row of a message, or None."""
        for row in self.rows:
            if row[:HEADER] == (user, resume_id):
                return row
        return None

    def tick(self):
        """Forget those whose time is over."""
        self.rows = [row for row in self.rows if row[UNTIL] > self.broker.uptime_s]


def halves_of(broker):
    """The Halves of a broker."""
    there = sessions.of(broker)
    if there.halves is None:
        there.halves = Halves(broker)
    return there.halves


def keep(session):
    """The message under way in a session is interrupted: keep what there is of it, where its sender has named it."""
    incoming, tables = session.incoming, session.broker.tables
    if incoming.message == layout.NONE:
        return
    header_size = tables.messages[incoming.message + layout.MESSAGE_PROPERTIES]
    header = tables.octets(incoming.message, tables.properties_at(incoming.message), header_size)
    delivery = properties.facts(header, 0, len(header), True).get(properties.DELIVERY) or {}
    if not delivery.get("resume_id"):
        return
    size = tables.messages[incoming.message + layout.MESSAGE_BODY] - (incoming.body_left or 0)
    start = tables.properties_at(incoming.message) + header_size
    most, asked = session.broker.limits.session_timeout_s, delivery.get("resume_ttl")
    until = session.broker.uptime_s + (most if asked is None else min(most, -(-asked // 1000)))
    if size:
        octets = tables.octets(incoming.message, start, size)
        halves_of(session.broker).add((session.connection.user.name, delivery["resume_id"], without_fragment(header), octets, until))


def resume(session, fields):
    """message.resume: how many octets of the message are here. Raises not-found for a destination that does not exist ("the recipient
    MUST close the session"), illegal-state amid another message."""
    destination, resume_id = fields["destination"] or "", fields["resume_id"] or ""
    if destination and destination not in session.broker.exchanges:
        raise ProtocolError(NOT_FOUND, "no " + session.broker.topology.called("exchange", destination))
    if session.fragments is not None:
        raise SessionError(ILLEGAL_STATE, "message.resume amid the fragments of a message")
    half = halves_of(session.broker).get(session.connection.user.name, resume_id)
    if half is None:
        return 0
    session.fragments = Fragments(resume_id)
    return len(half[OCTETS])
