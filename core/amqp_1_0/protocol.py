"""AMQP 1.0 on one connection: layers and frames in, turns, the end (contract.Protocol). What goes out is in sending.py.

States: states.CONNECTION, whose actions are in opening.py. The protocol processes a frame when the receive buffer has all of it, which
max-frame-size makes possible; a frame that has to wait stays in the buffer and is read again. A frame that asks for a reply waits while
earlier replies wait for the send buffer; transfers, flows and dispositions do not.
"""

from .. import states
from ..errors import CHANNEL_ERROR, FRAME_ERROR, SYNTAX_ERROR, ProtocolError
from ..memory import layout
from . import composites, frame, hot_row, opening, termini, watch
from .bounds import charge
from .dynamic import Dynamic
from .sending import Sending
from .spec_1_0 import HEADER_AMQP, HEADER_SASL, HEADER_TLS
from .states import CONNECTION

if False:  # for the type checker alone
    from typing import Any

FRAMES_A_TURN = 64  # that are taken before others have their turn
SILENT = ("transfer", "disposition", "flow")  # taken in while replies wait
LAYERS = {HEADER_AMQP: "header-amqp", HEADER_SASL: "header-sasl", HEADER_TLS: "header-tls"}
HEADER_STATES = ("start", "header")  # what comes next is the header of a layer
SASL_STATES = ("mechanisms", "challenged")  # what comes next is a SASL frame


class Protocol(Sending):
    """AMQP 1.0 on a `connection` that begins with one of its headers."""

    def __init__(self, connection):
        Sending.__init__(self, connection)
        limits = self.broker.limits
        self.receive = connection.receive
        engine = self.broker.tables.engine
        self.hot: "Any" = engine.row(hot_row.Row) if engine.ingests else None  # the hot path; None: all goes frame by frame
        self.has_intake = self.hot is not None and self.hot.take_in is not None
        self.quick: "Any" = None  # (session, link) whose frames came last and were all of them for the engine (hot_row.take_in)
        self.most_taken = 0  # octets that `take_in` may read
        self.frame_max_in = min(limits.frame_size_max, self.receive.size)
        self.channel_max = limits.channel_max - 1  # the highest number of a channel that both sides have
        self.container_id = ""
        self.hostname = ""  # that the log-in named (section 5.3.3.2), where open names none
        self.is_paired = False  # it has a link pair to the management, as RabbitMQ's clients do
        self.is_sole = False  # the peer wants to be its container's only connection (sole.py)
        self.user: "Any" = None  # who has logged in
        self.idle_ms = 0  # the peer hears something from us within this time; 0: it need not
        self.login: "Any" = None  # the log-in that is going on
        self.mechanism = ""  # what it chose; none without the SASL layer
        self.mapped: "Any" = {}  # sessions by channel
        self.links: "Any" = {}  # those that are attached: (name, role of the peer) -> link
        self.dynamic = Dynamic(self)
        self.places = termini.of(self.broker).places
        self.places_taken = self.refused = 0  # of these, by links; links without one
        self.lead_octets = 0  # of messages whose bodies have not begun
        self.held: "Any" = None  # the link whose complete message finds no room, or waits for the log
        self.leaving: "list" = []  # links that were detached and have not given back all they held
        self.draining: "list" = []  # links whose receivers want what there is, and do not have all of it
        self.searching = 0  # deliveries' worth of work that searches for links may do yet in this call
        self.waiting = False  # a whole frame waits for room in the broker or in the send buffer
        self.unfinished = 0  # messages that have begun (contract.Protocol)
        self.content_moved = self.broker.now

    @property
    def closing(self):
        """True once this side or the peer has said that the connection ends (contract.Protocol)."""
        return self.state in ("closing", "ended")

    # What comes in

    def process(self):
        """Process all whole frames. Stops at one that is incomplete or must wait, and when the connection's turn is over."""
        connection = self.connection
        tables = self.broker.tables
        tables.begin_turn()
        self.searching = tables.engine.deliveries
        if self.held is not None:
            link = self.held
            self.held = None
            link.session.do_on_link(link, link.complete)
        left = FRAMES_A_TURN if not self.leaving or self.let_leave() else 0
        while self.held is None and self.state != "login" and connection.state == "served":
            if left == 0 or tables.state[layout.STATE_LEFT] <= 0:
                connection.wait_for_turn()
                break
            left -= 1
            if self.hot is not None and self.state == "open":
                answer = hot_row.ingest(self)
                if answer == layout.TURN_OVER:
                    continue
                if answer == layout.INCOMPLETE:
                    break
            if not (self.layer() if self.state in HEADER_STATES else self.one_frame()):
                break
        if connection.closed:
            return
        if self.draining:
            self.drain()
        connection.reading = self.held is None and not self.waiting and self.state != "login"
        self.flush()

    def take_in(self, descriptor, most):
        """See hot_row.take_in."""
        return -1 if self.quick is None else hot_row.take_in(self, descriptor, most)

    def took_in(self):
        """Go on with what the engine has ingested in `take_in`; what it has left is processed as other frames are."""
        answer = hot_row.took_in(self)
        if answer == layout.TURN_OVER:
            self.connection.wait_for_turn()
        elif answer != layout.INCOMPLETE:
            self.process()
            return
        if self.writing or self.replies:
            self.flush()

    def layer(self):
        """Process the header of a layer (sections 2.2 and 5.3.1). Returns false while its eight octets are incomplete."""
        receive = self.receive
        if receive.available() < 8:
            return False
        octets = bytes(receive.octets[receive.start : receive.start + 8])
        receive.start += 8
        self.step(LAYERS.get(octets, "header-other"))
        return True

    def one_frame(self):
        """Process the next frame. Returns false while it is incomplete, or when it must wait."""
        receive = self.receive
        self.waiting = False
        is_sasl = self.state in SASL_STATES
        head = frame.read(receive.octets, receive.start, receive.end, frame.SIZE_MIN_MAX if is_sasl else self.frame_max_in)
        if head is None:
            return False
        type_, channel, at, end = head
        if (type_ == frame.SASL) != is_sasl:
            raise ProtocolError(FRAME_ERROR, "a frame of type 0x%02x in the state '%s' (section 5.3)" % (type_, self.state))
        start = receive.start
        receive.start = end  # first: an end of the connection empties the buffer, and behind an error stands the peer's answer to it
        if channel > self.channel_max and not (is_sasl or self.closing):
            raise ProtocolError(FRAME_ERROR, "a frame on channel %d; channel-max is %d (section 2.7.1)" % (channel, self.channel_max))
        if at == end and not is_sasl:
            if self.state == "opening":
                self.step("an empty frame")
            return True  # it says that the peer is there (section 2.4.5)
        if self.whole_frame(channel, receive.octets, at, end):
            return True
        if self.connection.state == "served":
            receive.start = start
        self.waiting = True
        return False

    def whole_frame(self, channel, octets, at, end):
        """Process a frame, whose body stands between `at` and `end`. Returns false when it must wait."""
        begun = at
        name, fields, at = composites.read(octets, at, end)
        charge(self.broker.tables, at - begun)
        if at != end and name != "transfer":
            raise ProtocolError(SYNTAX_ERROR, "%d octets behind a %s, which has no payload (section 2.3.1)" % (end - at, name))
        if not self.may_take(name):
            return False
        if self.process_frame(name, channel, fields, octets, at, end) is not False:
            return True
        if self.connection.has_turn and self.held is None and self.connection not in self.broker.held:
            self.broker.counters["held"] += 1
            self.broker.held.append(self.connection)
        return False

    def may_take(self, name):
        """False when the peer expects a reply to this frame and the send buffer has no place for one now."""
        if name in SILENT:
            return len(self.replies) < 2 * len(self.mapped) + 2
        if self.replies:
            self.flush()
        return not self.replies

    def process_frame(self, name, channel, fields, octets, at, end):
        """Process a frame with these `fields` of its performative; its payload stands between `at` and `end` of `octets`. Returns
        false when it must wait."""
        session = self.mapped.get(channel)
        if self.state != "open" or name in ("open", "close", "begin") or name[:4] == "sasl":
            return self.step(name, channel, fields, octets, at, end)
        if session is None:
            raise ProtocolError(CHANNEL_ERROR, "the performative %s on channel %d, where no session has begun" % (name, channel))
        return session.process_frame(name, fields, octets, at, end)

    def step(self, input_, *given):
        """Run the connection's action for an input, by the table CONNECTION. Returns the action's answer."""
        return states.step(self, CONNECTION, opening, input_, self, *given)

    def let_leave(self):
        """Have detached links give their deliveries and queues back, a part each turn. Returns false while some are left."""
        while self.leaving:
            if not self.leaving[0].give_back():
                self.connection.wait_for_turn()
                return False
            self.leaving.pop(0)
        return True

    def drains(self, link):
        """Serve a link whose receiver drains: true when the receiver has every message there is; else `drain` serves the link again as time
        passes and the peer reads."""
        if link.drained():
            return True
        if link not in self.draining:
            self.draining.append(link)
        return False

    def drain(self):
        """Serve the links that drain, within the effort of `searching`; those not reached come first in the next call."""
        for link in list(self.draining):
            if self.searching <= 0:
                self.connection.wait_for_turn()
                break
            self.draining.remove(link)
            if link.state == "attached" and not link.drained():
                self.draining.append(link)
            else:
                self.flush()

    # Time, and the end

    def tick(self):
        """Do what is due at this time: see watch.py."""
        self.searching = self.broker.tables.engine.deliveries
        return watch.tick(self)

    def fail(self, condition, text):
        """End the connection for an error (section 2.8.15): with a close that has its condition, where the peer can still read one."""
        self.step("error", condition, text)

    def shut(self, text):
        """Close the connection from the broker's side, without an error of the peer."""
        self.step("shut", text)

    def lost(self):
        """The peer has gone."""
        self.broker.tables.begin_turn()
        self.release_all()

    def release_all(self):
        """Have every session give back its deliveries, consumers and links."""
        self.held = None
        for session in list(self.mapped.values()):
            session.step("release")
        self.writing = []
        if self.broker.kept is not None:
            self.broker.kept.ended(self)

    def sessions(self):
        """The open sessions (contract.Session)."""
        return [each for each in self.mapped.values() if not each.closing]
