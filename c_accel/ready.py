"""Connections that have a little to say, and others that get a little: the port's loop (ports/tcp.py) has C read and process, or send, for
all of them in one call each.

That is for connections of 0-9-1 of which nothing is under way: no frame or content begun, nothing that waits. Python decides which they
are, each time; and what C cannot process is Python's, from its first octet. The log gets the messages of one call together, in their order.
"""

from leveret.core.amqp_0_9 import verbs
from leveret.core.amqp_0_9.session import Session
from leveret.core.broker.promises import NEEDS
from leveret.core.memory import layout

from ._hot import ffi, lib

MOST = 64  # connections of one call


class Ready:
    """Of one loop with one broker whose engine is in C."""

    def __init__(self, engine, broker):
        self.engine = engine
        self.broker = broker
        self.rows = ffi.new("leveret_amqp_0_9_ready[]", MOST)
        self.outputs = ffi.new("leveret_output *[]", MOST)
        self.descriptors = ffi.new("int32_t[]", MOST)
        self.added = []  # (slot, connection) of each row
        self.promised = None  # the number of the log up to which the commits of this call are, once one of them is to be answered
        self.moved = False  # octets were sent

    def add(self, slot, connection, descriptor):
        """Have `read` take a connection, too: false when that is not for C."""
        session = connection.session
        if type(session) is not Session or len(self.added) == MOST or self.engine.burying is not None:
            return False
        receive = session.receive
        if (
            session.hot is not self.engine.rows["amqp_0_9"]
            or not is_calm(connection, receive)
            or session.state != "open"
            or session.begun
            or session.body_left >= 0
            or session.settling >= 0
            or session.held is not None
            or session.waiting
            or session.numbers is None
        ):
            return False
        row = self.rows[len(self.added)]
        row.octets, row.size = receive.address, receive.size
        row.numbers, row.number_count = session.numbers_at, len(session.numbers)
        row.frame_size_max = session.frame_size_max
        row.user = connection.user.number
        row.descriptor = descriptor
        row.transaction = empty_transaction(session)
        self.added.append((slot, connection))
        return True

    def read(self):
        """Read and process what has come to those that were added: the slots where there is more to do, and those with more than one call
        takes."""
        added, self.added = self.added, []
        if not added:
            return (), ()
        tables, journal = self.broker.tables, self.broker.journal
        state = tables.state
        state[layout.STATE_KEEP] = tables.transactions_left
        state[layout.STATE_LOG_ROOM] = 0 if journal is None else journal.log.room_for(2 * self.rows[0].size)
        lib.leveret_amqp_0_9_read_ready(self.engine.pointers, self.rows, len(added), self.engine.effort)
        failure = self.log_pushed(journal) if state[layout.STATE_LOGGED_HEAD] != layout.NONE else None
        self.promised = None
        left, full, rest = [], [], []
        for place, (slot, connection) in enumerate(added):
            row = self.rows[place]
            if row.got < 0 or row.got > 0 and self.took(connection, row, failure):
                continue
            left.append(slot)
            rest.append((connection, row.got))
            if row.got == row.size:
                full.append(slot)
        for connection, got in rest:  # now that all have what C did: this may change others
            if got == 0:
                connection.received(0)
            elif not connection.closed:
                connection.process()
        return left, full

    def log_pushed(self, journal):
        """Log what C has pushed: the error when that failed, and no queue keeps what the log lacks."""
        try:
            journal.log_pushed()
        except Exception as error:  # all or nothing
            journal.withdraw()
            return error
        return None

    def took(self, connection, row, failure):
        """C has read: have Python know it; true when there is nothing left to process. `failure`: of the log."""
        session, receive = connection.session, connection.receive
        connection.last_received = self.broker.now
        got, at, counted, commits = row.got, row.at, row.counted, row.commits
        receive.start, receive.end = (0, 0) if at == got else (at, got)
        if row.kept >= 0:
            session.keep(row.kept, row.kept_channel)
        try:
            if counted >= 0:
                session.counted(self.broker.tables, counted)
            if failure is not None and at:
                raise failure
            if commits:
                self.answer_commits(session, row.transaction, commits)
        except Exception as error:  # an error of ours ends this connection alone
            connection.broke(error)
            return False
        if at == got and counted >= 0 and not self.waits_for_log(session):
            connection.guarded(session.flush)
        return at == got

    def answer_commits(self, session, handle, count):
        """C has made so many commits on a channel."""
        channel = session.channels[self.broker.tables.channels[handle + layout.CHANNEL_NUMBER]]
        journal = self.broker.journal
        self.broker.counters["commits"] += count
        if journal is not None:
            if self.promised is None:
                self.promised = journal.promise()
            session.promise(self.promised)
        for _ in range(count):
            verbs.committed(session, channel)

    def waits_for_log(self, session):
        """True where all that a session has to write are confirms of one channel that wait for the log: the journal resumes it."""
        journal = self.broker.journal
        channel = session.writing[0]
        if journal is None or len(session.writing) > 1 or channel.returns or journal.durable(channel.promises.waiting[0][NEEDS]):
            return False
        journal.wait_for(session)
        return True

    def send(self, loop, slots):
        """Send what connections at these slots have, where nothing else follows from it: the other slots."""
        left: list = []
        taken: list = []
        for slot in slots:
            buffer, connection = loop.gathering.get(slot), loop.endpoints[slot]
            if buffer is None or not self.may_send(connection, buffer.output) or not loop.waits_to_read(slot) or len(taken) == MOST:
                left.append(slot)
                continue
            self.outputs[len(taken)] = buffer.output
            self.descriptors[len(taken)] = loop.streams[slot].descriptor
            taken.append((slot, connection, buffer.output))
        if taken:
            lib.leveret_send_ready(self.outputs, self.descriptors, len(taken))
            self.moved = True
        for slot, connection, output in taken:
            connection.last_sent = self.broker.now
            if connection.stuck_since >= 0:
                connection.stuck_since = -1
            if output.start != output.end:
                left.append(slot)
            elif self.holds(connection.session):
                loop.alarms.soon.add(slot)
        return left

    def holds(self, session):
        """True when a session holds deliveries: for how long is to be watched."""
        channels = self.broker.tables.channels
        for channel in session.channels.values():
            if channels[channel.handle + layout.CHANNEL_UNSETTLED]:
                return True
        return False

    def has_sent(self):
        """True when `send` has sent something since this was asked last."""
        moved, self.moved = self.moved, False
        return moved

    def may_send(self, connection, output):
        """True where `sent` of a connection would do nothing but forget the octets, when all have gone."""
        session = getattr(connection, "session", None)
        return (
            type(session) is Session
            and not (output.busy or output.inset_count or session.writing)
            and output.start != output.end
            and output.hungry == layout.NONE
            and output.fed == layout.NONE
            and is_calm(connection, session.receive)
        )


def empty_transaction(session):
    """The record of a channel with a transaction that keeps nothing, or NONE."""
    for channel in session.channels.values():
        if channel.transaction is not None and not channel.transaction.count:
            return channel.handle
    return layout.NONE


def is_calm(connection, receive):
    """True where a connection has nothing to process, and is read."""
    is_served = connection.state == "served" and not connection.gone
    return is_served and connection.reading and connection.has_turn and receive.start == receive.end
