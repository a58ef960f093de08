"""Sessions that live beyond their transport (session.request-timeout): who has one, until when, and what of it the log has.

A session whose timeout is not 0 keeps its execution state when its transport is lost or detached: the ids of the commands that it has
seen, those that are completed, the commands of ours that the peer has not confirmed (replay.py), its subscriptions and what they acquired,
its transaction. When nobody attaches it again in time, what it acquired goes back.

With a log, two definitions stand for a session. The first has its name. The second, written with the same commit as the work, has the ids
of the commands that are executed, and says whether the session had what a restart loses: subscriptions, or work of a transaction that is
not committed. After a restart a session that had neither goes on, and nothing is executed twice; one that had hears so by an exception,
behind the set of what is completed.

Ids of ours after a restart begin behind all that were sent before: the log has a bound of them.
"""

from ..broker.transaction import Transaction
from ..memory import layout, serial
from ..shim import const
from .away import Away, User
from .conditions import ILLEGAL_STATE

if False:  # for the type checker alone
    from typing import Any

KIND = "kept"  # of definitions in the log (core/log/definition_records.py)
RANGES_KIND = "kept part"
PART = "amqp_0_10.sessions"
SHARE = const(4)  # part of all sessions that may live beyond their transport
PAST_MAX = const(1 << 30)  # ids of ours behind which none is unsettled yet
IDS_A_RECORD = const(1 << 16)  # ids of our commands that one record of the log is for


class Sessions:
    """Those of a broker (Broker.beyond) whose timeout is not 0, attached or not."""

    def __init__(self, broker):
        self.broker = broker
        self.branches: "Any" = None  # branches.Branches, from the first distributed transaction
        self.halves: "Any" = None  # fragments.Halves, from the first interrupted message
        self.requests: "dict" = {}  # of management, beside core/management/requests.py's
        self.by_name: "Any" = {}  # (user's name, session's name) -> session.Session

    def sessions(self):
        """Those that hold deliveries and have no transport (Consumers.open_sessions)."""
        away = [each for each in self.by_name.values() if each.state == "away" and each.handle != layout.NONE]
        return away if self.branches is None else away + self.branches.sessions()

    def grant(self, session, seconds):
        """The timeout that a session gets of the one that it asks for (None: for ever)."""
        most = self.broker.limits.session_timeout_s
        granted = most if seconds is None else min(seconds, most)
        key = key_of(session)
        if granted and key not in self.by_name and len(self.by_name) >= self.broker.limits.channel_count_max // SHARE:
            granted = 0
        if granted and not session.timeout_s:
            session.lasts_from = session.sent_ids()
        session.timeout_s = granted
        if not granted:
            self.forget(session)
        else:
            self.by_name[key] = session
            self.log(self.definition(session))
            self.note(session)
        return granted

    def forget(self, session):
        """A session ends with its transport, or has ended."""
        if self.by_name.get(key_of(session)) is session:
            del self.by_name[key_of(session)]
            for definition in (self.definition(session), self.ranges(session)):
                self.log({"gone": definition["kind"], "name": definition["name"]})

    def tick(self):
        """End sessions that nobody has attached again in time, and branches that take too long."""
        for further in (self.branches, self.halves):
            if further is not None:
                further.tick()
        for session in list(self.by_name.values()):
            if session.state == "away" and session.until <= self.broker.uptime_s:
                self.broker.inform("session %r of user '%s' has ended: nobody attached it again" % (session.name[:64], key_of(session)[0]))
                session.step("release")

    # The log

    def log(self, definition):
        """Log a definition."""
        if self.broker.journal is not None:
            self.broker.journal.define(definition)

    def definition(self, session):
        """The definition of a session."""
        user, name = key_of(session)
        return {"kind": KIND, "part": PART, "name": in_log(user, name), "user": user, "session": name, "timeout": session.timeout_s}

    def ranges(self, session):
        """The definition of what is executed of a session."""
        user, name = key_of(session)
        return {
            "kind": RANGES_KIND,
            "part": PART,
            "name": in_log(user, name) + "\nranges",
            "of": [user, name],
            "executed": executed(session).runs,
            "transactional": session.incoming.transaction is not None and not session.is_dtx,
            "dtx": session.is_dtx,
            "lost": would_be_lost(session),
            "ours": session.ids_in_log,
        }

    def note(self, session):
        """Log what is executed by now, where that has changed: at the end of each turn of the session's connection."""
        if serial.distance(session.lasts_from, session.sent_ids()) > PAST_MAX:
            session.lasts_from = serial.after(session.sent_ids(), -PAST_MAX)  # further back it would lie ahead of our ids
        if self.broker.journal is None or self.by_name.get(key_of(session)) is not session:
            return
        if not session.has_executed and serial.distance(session.sent_ids(), session.ids_in_log) > IDS_A_RECORD // 2:
            return
        session.has_executed = False
        session.ids_in_log = serial.after(session.sent_ids(), IDS_A_RECORD)
        self.log(self.ranges(session))

    def definitions(self):
        """All definitions for the log."""
        for session in list(self.by_name.values()):
            if self.by_name.get(key_of(session)) is session:
                yield self.definition(session)
                yield self.ranges(session)
        for definition in () if self.branches is None else self.branches.definitions():
            yield definition

    def opened(self):
        """The log is recovered."""
        if self.branches is not None:
            self.branches.opened()


def key_of(session):
    """The key of a session: "It is scoped to a given authentication principal"."""
    return session.connection.user.name, session.name


def executed(session):
    """The ids of the commands that have done something (Ranges)."""
    return session.received.without(session.refused)


def in_log(user, name):
    """The name of a session's definition."""
    return "0.10\n%s\n%s" % (user, name.hex())


def would_be_lost(session):
    """True for a session with what a restart of the broker loses."""
    transaction = session.incoming.transaction
    has_work = transaction is not None and transaction.count > 0
    return len(session.subscriptions) > 0 or has_work or session.failure is not None  # of a start before, which nobody has heard of


def of(broker):
    """The Sessions of a broker."""
    if broker.beyond is None:
        broker.beyond = Sessions(broker)
    return broker.beyond


def known(broker, user, name):
    """The session of a user's name (text) and of its own name that lives beyond its transport; None: there is none."""
    return None if broker.beyond is None else broker.beyond.by_name.get((user, name))


def restore(broker, definition):
    """Restore a session, or (read later) what is executed of it, from a definition of the log."""
    from .session import Session

    there = of(broker)
    if "of" not in definition:
        away = Away(broker, User(definition["user"]))
        session = Session(away, 0, definition["session"])
        session.state = "away"
        session.timeout_s = definition["timeout"]
        session.until = broker.uptime_s + session.timeout_s
        there.by_name[key_of(session)] = session
        return
    session = there.by_name.get(tuple(definition["of"]))
    if session is None:
        return
    session.has_point = False
    for first, last in definition["executed"]:
        session.received.add(first, last)
        session.completed.add(first, last)
        session.in_log.add(first, last)
    session.ids_in_log = definition["ours"]
    session.is_dtx = definition["dtx"]
    if definition["transactional"]:
        session.incoming.transaction = Transaction(broker.tables)
    if definition["lost"]:
        session.failure = ILLEGAL_STATE, "the broker was started anew, and the session has lost its subscriptions and its transaction"
