"""A session of AMQP 0-10 (class session): commands by number in both directions, what of them is completed (contract.Session).

Ids of commands are serial numbers (serial.py). Those of ours count with the delivery tags of the session's record, which begins at 1: each
of our commands takes one, so that the id of a delivery's transfer is its tag less 1 (numbers.py).

A command of the peer's is completed when it is done and the log is durable up to what it did; a transfer, up to what the broker promises of
it (Promises). Its states: states.SESSION, with the actions in mapping.py.
"""

from .. import states
from ..broker.incoming import Incoming
from ..broker.promises import Promises
from ..errors import CHANNEL_ERROR, NOT_ALLOWED, RESOURCE_ERROR, ProtocolError
from ..memory import hot, layout, serial
from ..outcomes import REFUSED, TAKEN, UNROUTABLE
from ..shim import const
from . import frame, mapping, numbers, replay, sessions, structs
from .conditions import HARD, RESOURCE_DELETED, SessionError
from .ranges import Ranges
from .spec_0_10 import DETACHES
from .states import SESSION

if False:  # for the type checker alone
    from typing import Any

NAME_MAX = const(1024)  # octets of a session's name
WAITING_MAX = const(8192)  # commands that are done and wait for the log
REPLY_AT = const(65536)  # completed commands after which the peer is asked to say that it knows of them
REFUSED_MAX = const(256)  # ranges of rejected transfers: of older ones the peer has heard
KNOWN_MAX = const(1 << 30)  # ids behind which one may be given again (RFC 1982)
REJECTED_UNROUTABLE = const(1)  # reject-code of message.reject


def attach(protocol, channel, fields):
    """session.attach: a session that lives beyond its transport goes on; else a new one, unless one of that name is busy elsewhere."""
    name = fields["name"] or b""
    if channel in protocol.attached:
        raise ProtocolError(CHANNEL_ERROR, "session.attach on channel %d, where a session is attached" % channel)
    if channel >= protocol.channel_max or not 0 < len(name) <= NAME_MAX:
        raise ProtocolError(NOT_ALLOWED, "session.attach on channel %d with a name of %d octets" % (channel, len(name)), True)
    other = other_of(protocol, name)
    if other is not None:
        if not fields["force"]:
            protocol.control(channel, "session_detached", {"name": name, "code": DETACHES["session-busy"]})
            return True
        other.leave(DETACHES["session-busy"])
        if other.handle != layout.NONE and other.state != "away":
            return protocol.go_on_later()  # until all it held is back
    session = sessions.known(protocol.broker, protocol.connection.user.name, name)
    is_new = session is None or session.state != "away"
    if is_new:
        session = Session(protocol, channel, name)
    if session.handle == layout.NONE:
        open_record(protocol.broker, session)
    protocol.attached[channel] = session
    protocol.broker.tables.channels[session.handle + layout.CHANNEL_NUMBER] = channel
    protocol.control(channel, "session_attached", {"name": name})
    if not is_new:
        session.number = channel
        session.step("attach", protocol)
    return True


def open_record(broker, session):
    """The record of a session, in which our ids go on behind those that the log has for it. Raises resource-error."""
    handle = broker.consumers.open_session(session.connection)
    if handle is None:
        raise ProtocolError(RESOURCE_ERROR, "this broker holds %d sessions at most" % broker.limits.channel_count_max, True)
    session.handle = handle
    broker.tables.channels[handle + layout.CHANNEL_TAG] = session.ids_in_log & layout.MASK
    broker.tables.channels[handle + layout.CHANNEL_TAG_HIGH] = session.ids_in_log >> 30


def other_of(protocol, name):
    """The attached session of the same user and name, or None."""
    for connection in protocol.broker.connections:
        other = connection.session
        if isinstance(other, type(protocol)) and connection.user is not None and connection.user.name == protocol.connection.user.name:
            for session in other.attached.values():
                if session.name == name and session.state != "detached":
                    return session
    return None


def detach_nothing(protocol, channel, fields):
    """session.detach where none is attached: it is detached."""
    protocol.control(channel, "session_detached", {"name": fields["name"] or b"", "code": DETACHES["not-attached"]})


def not_attached(protocol, channel, fields):
    """Any other control, or a command, where no session is attached: discarded, and said so."""
    protocol.control(channel, "session_detached", {"name": b"", "code": DETACHES["not-attached"]})


class Session:
    """One session. `number`: its channel."""

    def __init__(self, protocol, number, name):
        self.session = protocol  # the broker calls back by this name (contract.Session)
        self.connection = protocol.connection
        self.broker = protocol.broker
        self.number = number
        self.name = name
        self.handle = layout.NONE
        self.state = "attached"  # states.SESSION
        self.consumers: "dict" = {}
        self.promises = Promises(protocol)
        self.watched_tag, self.watched_since = -1, 0
        self.incoming = Incoming(self)
        # The peer's commands:
        self.expected: "Any" = None  # the id of its next one; None: it has not said on this transport (session.command-point)
        self.is_begun_elsewhere = False  # its first command here was not its first: the broker that had it is another, or was started again
        self.received = Ranges()  # ids of those that are executed; one that comes again is passed over
        self.refused = Ranges()  # of these, transfers whose sender hears of a reject: the log does not have them as executed
        self.in_log = Ranges()  # those that were executed before the broker was started
        self.is_passing = False  # one that is executed comes again
        self.is_accepted_again = False  # and it is a transfer of before the start, whose accept is not known here
        self.has_executed = False  # the log has not all of `received`
        self.name_of: "Any" = None  # the command under way: its name as spec_0_10.COMMANDS has it
        self.code = 0
        self.id = 0
        self.fields: "dict" = {}
        self.part = b""  # octets of the segment that is not whole
        self.wants = frame.COMMAND  # the type of the segment that comes next, or goes on
        self.goes_on = False  # true in the middle of a segment
        self.fragments: "Any" = None  # fragments.Fragments of a message whose transfers have not all come
        self.is_immediate = False  # of the transfer under way (delivery-properties)
        self.header = b""  # the header segment of a transfer, until its body begins
        self.taker: "Any" = None  # what takes the content of the command under way (mapping.taker_of)
        self.files: "Any" = None  # what it has of class file (file_class.Files)
        self.stream_qos: "Any" = None  # the fields of the last stream.qos
        self.settling: "Any" = None  # where a command about many deliveries goes on in its next turn
        self.completed = Ranges()  # done, and not known to the peer to be
        self.is_new = False  # something is completed that the peer was not told
        self.undurable: "list" = []  # (number of the log, id, octets of a result or None) of those that are done, in their order
        self.published = 0  # number of the last transfer, 30 bits
        self.transfers: "list" = []  # (number, id, count, true when they want an outcome: accept-mode explicit) of those that wait
        self.run: "Any" = None  # hot_row.Run
        self.is_committing = False
        # Ours:
        self.has_point = False  # we have said where our commands begin, or go on
        self.kept: "dict" = {}  # id -> (octets, header segment or None) of a command without a body that is not confirmed (replay.py)
        self.kept_size = 0  # octets of them
        self.confirmed = Ranges()  # of ours, confirmed and not completed
        self.replay_at: "Any" = None  # the next id that is sent again
        # Beyond its transport (sessions.py):
        self.timeout_s = 0
        self.is_dtx = False  # dtx.select
        self.committing: "Any" = None  # the branch whose commit it has begun (dtx.py)
        self.lasts_from = 0  # the id of our first command since it has a timeout
        self.until = 0  # uptime in seconds when it ends, while it has no transport
        self.ids_in_log = 0  # the log has that our ids are less than this
        self.failure: "Any" = None  # (condition, text) of an error that it met without a transport
        self.subscriptions: "dict" = {}  # by destination
        self.owned: "list" = []  # exclusive queues that it has declared
        self.browsed: "dict" = {}  # id of a transfer that was not acquired -> (queue, entry, position) (browsing.py)
        self.sent: "list" = []  # runs of transfers that are not completed and whose completion gives credit (subscription.py)

    @property
    def closing(self):
        """True when it has no transport, or has ended and its deliveries are on their way back (contract.Session)."""
        return self.state != "attached"

    # What comes in

    def step(self, input_, *given):
        """Have the session do its action for an input, by SESSION: returns the action's answer."""
        return states.step(self, SESSION, mapping, input_, self, *given)

    def guarded(self, action, *given):
        """Do something: an error in it ends the session, or the connection; false: it must wait."""
        try:
            return action(*given)
        except ProtocolError as error:
            if not isinstance(error, SessionError) and (error.hard or error.condition in HARD):
                raise
            self.step("error", error.condition, error.text)
        return True

    # The peer's commands

    def may_run(self):
        """How many whole transfers may be taken at once: 0 when the next frame is to be looked at by itself."""
        if self.state != "attached" or self.expected is None or self.is_passing or self.wants != frame.COMMAND or self.goes_on:
            return 0
        if self.fragments is not None:
            return 0
        if self.incoming.transaction is not None or self.is_dtx or self.replay_at is not None or not replay.may_keep(self):
            return 0
        runs = self.received.runs
        if runs and serial.after(runs[-1][1], 1) != self.expected:
            return 0  # some of the next ones may be executed
        return max(WAITING_MAX - self.waiting_count(), 0)

    def took(self, id_, last=None):
        """A command of the peer's, or those up to `last`, is executed: if it comes again it is passed over."""
        last = id_ if last is None else last
        self.received.add(id_, last)
        self.has_executed = True
        oldest = self.received.runs[0]
        if serial.distance(oldest[0], last) > KNOWN_MAX:
            oldest[0] = serial.after(last, -KNOWN_MAX)

    def done(self, id_, result=None):
        """A command is done: it is completed when the log is durable up to here. `result`: fields of its result's struct, or None."""
        journal = self.broker.journal
        needs = 0 if journal is None else journal.promise()
        octets = None if result is None else structs.write(structs.RESULTS[self.name_of], result)
        self.undurable.append((needs, id_, octets))
        self.session.wants_to_write(self)

    def ids(self):
        """[(first, last)]: the transfers of the message under way."""
        return [(self.id, self.id)] if self.fragments is None else self.fragments.ids.runs

    def message_done(self, outcome):
        """The message under way came to `outcome` (outcomes.py): its transfers are completed when the broker's promise holds."""
        explicit = self.fields.get("accept_mode") in (None, 0)
        number = (self.published + 1) & layout.MASK
        for first, last in self.ids():
            if explicit and outcome != TAKEN:
                self.now_refused(first, last)
            self.note_transfers(first, serial.distance(first, last) + 1, explicit)
        self.promises.decided(self.published, outcome, number)

    def transfers_done(self, id_, count, explicit, outcome):
        """The same of `count` transfers from an id on, each a message that was not refused."""
        number = (self.published + 1) & layout.MASK
        self.note_transfers(id_, count, explicit)
        self.promises.decided(self.published, outcome, number)

    def note_transfers(self, id_, count, explicit):
        """Transfers wait for the log from now on."""
        self.transfers.append(((self.published + 1) & layout.MASK, id_, count, explicit))
        self.published = (self.published + count) & layout.MASK
        self.session.wants_to_write(self)

    def now_refused(self, first, last):
        """Transfers are rejected: they have done nothing, and behind a restart they are executed when they come again, as the reject is
        lost."""
        self.refused.add(first, last)
        if len(self.refused.runs) > REFUSED_MAX:
            self.refused.runs.pop(0)

    def answered(self, outcome):
        """The broker's answer to the transfer under way, or to one that a commit publishes (contract.Protocol)."""
        if self.is_committing:
            if outcome == REFUSED:
                raise SessionError(RESOURCE_ERROR, "a queue that a message of the transaction goes to takes no more")
            return
        explicit = self.fields.get("accept_mode") in (None, 0)
        if outcome == UNROUTABLE and not self.incoming.mandatory:
            outcome = TAKEN  # discard-unroutable: its sender hears of no reject
        if outcome == REFUSED and self.name_of == "stream_publish":
            self.broker.counters["stream_dropped"] += 1
        elif outcome == REFUSED and not explicit:
            raise SessionError(RESOURCE_ERROR, "a queue that the message goes to takes no more")
        self.message_done(outcome)

    def publishing(self, publish):
        """Call `publish()`, which puts messages into queues, for this session's peer (core/broker/local.py). Returns its answer."""
        local = self.broker.local
        return publish() if local is None else local.publishing(self.session, publish)

    def complete(self):
        """The message of a transfer is whole. Where it has to wait, so has the connection."""
        mapping.complete(self)

    # What goes out

    def write_waiting(self):
        """Write what has become durable: results, outcomes of transfers, what is completed; true when nothing waits for the log."""
        if self.closing or self.replay_at is not None and not replay.go_on(self):
            return self.closing
        protocol = self.session
        while self.undurable and protocol.is_durable(self.undurable[0][0]):
            _, id_, octets = self.undurable.pop(0)
            if octets is not None:
                self.command("execution_result", {"command_id": id_, "value": octets[4:]})
            self.now_completed(id_)
        for _, last, outcome in self.promises.runs():
            ranges = Ranges()
            number = None
            while number != last:
                number, id_, count, explicit = self.transfers.pop(0)
                number = (number + count - 1) & layout.MASK
                behind = serial.after(id_, count - 1)
                self.now_completed(id_, behind)
                if explicit:
                    ranges.add(id_, behind)
            self.promises.answered(last)
            if ranges.runs:
                self.tell_outcome(outcome, ranges.runs)
        self.tell_completed()
        return not self.undurable and not self.promises.waiting

    def tell_outcome(self, outcome, ranges):
        """Settle transfers of the peer's with accept-mode explicit."""
        if outcome == TAKEN:
            self.command("message_accept", {"transfers": ranges})
        else:
            text = "no queue takes the message" if outcome == UNROUTABLE else "a queue that the message goes to takes no more"
            code = REJECTED_UNROUTABLE if outcome == UNROUTABLE else 0
            self.command("message_reject", {"transfers": ranges, "code": code, "text": text})

    def now_completed(self, id_, last=None):
        """A command, or those up to `last`, is completed."""
        self.completed.add(id_, id_ if last is None else last)
        self.is_new = True

    def tell_completed(self, always=False):
        """Send session.completed where there is news."""
        if not self.is_new and not always:
            return
        self.is_new = False
        count = sum([serial.distance(first, last) + 1 for first, last in self.completed.runs])
        timely = count >= REPLY_AT
        self.control("session_completed", {"commands": self.completed.runs, "timely_reply": timely})

    def known(self, ranges):
        """The peer knows that these (Ranges) are completed."""
        self.completed = self.completed.without(ranges)
        self.completed.check()

    def control(self, name, fields):
        """Send a control."""
        self.session.control(self.number, name, fields)

    def command(self, name, fields, header=None):
        """Send a command of ours without a body, perhaps with a header segment (bytes); while others are sent again it goes behind them."""
        octets = structs.write_command(name, fields)
        if self.timeout_s or self.replay_at is not None:
            replay.keep(self, octets, header)
        if self.replay_at is not None:
            self.count()
            self.session.wants_to_write(self)
            return
        self.say_point()
        self.count()
        self.send_command(octets, header)

    def send_command(self, command, header):
        """Send the segments of a command of ours."""
        frame_max = self.session.frame_max_out
        flags = frame.FIRST_SEGMENT | (frame.LAST_SEGMENT if header is None else 0)
        octets = frame.segment(flags, frame.COMMAND, self.number, command, frame_max)
        if header is not None:
            octets += frame.segment(frame.LAST_SEGMENT, frame.HEADER, self.number, header, frame_max)
        self.session.write(octets)

    def say_point(self):
        """Before our first command: where our ids begin."""
        if not self.has_point:
            self.has_point = True
            self.control("session_command_point", {"command_id": numbers.tail(self), "command_offset": 0})

    def count(self):
        """A command of ours takes the next id."""
        hot.next_number(self.broker.tables.channels, self.handle + layout.CHANNEL_TAG)

    def sent_ids(self):
        """How many commands we have sent, modulo 2**32."""
        return self.ids_in_log if self.handle == layout.NONE else numbers.tail(self)

    # The broker

    def consumer_ended(self, consumer):
        """The queue of a subscription is gone: the session ends for it ("any subscribing sessions MUST be closed")."""
        self.queue_gone(consumer.tag, consumer.queue.name)

    def queue_gone(self, destination, name):
        """The same, of a subscription by its destination."""
        self.subscriptions.pop(destination, None)
        self.step("error", RESOURCE_DELETED, "the queue '%s' was deleted" % name)

    def leave(self, code):
        """Detach from our side: another transport takes the session."""
        self.control("session_detached", {"name": self.name, "code": code})
        protocol = self.session
        self.lose()
        protocol.attached.pop(self.number, None)

    def drop_partial(self):
        """What is half here of a command will not be whole."""
        mapping.drop_partial(self)

    def say_exception(self, condition, text):
        """execution.exception, and the detach behind it."""
        mapping.say_exception(self, condition, text)

    def is_pending(self, id_):
        """True for a command that is executed and whose completion waits for the log."""
        runs = [(first, count) for _, first, count, _ in self.transfers] + [(each[1], 1) for each in self.undurable]
        return len([first for first, count in runs if 0 <= serial.distance(first, id_) < count]) > 0

    def waiting_count(self):
        """How many commands are executed and wait for the log."""
        transfers = (self.published - self.transfers[0][0] + 1) & layout.MASK if self.transfers else 0
        return len(self.undurable) + transfers

    def lose(self):
        """The transport is lost: the session goes on without, or ends."""
        self.step("lose" if self.timeout_s else "release")
