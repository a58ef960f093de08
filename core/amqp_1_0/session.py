"""A session of AMQP 1.0 (section 2.5): both windows, its links by handle, its waiting frames (contract.Session).

    next_incoming_id   of the peer's next transfer               incoming_window         transfers that we accept before a flow of ours
    next_outgoing_id   of our next transfer                      remote_incoming_window  transfers that the peer accepts before its flow
    remote_outgoing_window  transfers that the peer could send

Ids are serial numbers (serial.py). Our delivery-ids are the delivery tags of the session's record; the peer's count up by one, and its
unsettled deliveries are in `received`, by delivery-id. Its states: states.SESSION, with the actions in mapping.py.
"""

from .. import states
from ..broker.promises import Promises
from ..errors import CHANNEL_ERROR, RESOURCE_ERROR, ProtocolError
from ..memory import layout, serial
from ..outcomes import RELEASED
from ..wire.holding import NO_ROOM, NOT_YET, WRITTEN
from . import dispositions, hot_out, hot_row, link_management, mapping
from .bounds import FLOW_ROOM, HANDLE_MAX, OUTGOING_WINDOW, WINDOW
from .conditions import SessionError
from .outgoing import Outgoing
from .states import SESSION

if False:  # for the type checker alone
    from typing import Any


def begin(protocol, channel, fields, octets, at, end):
    """A begin (section 2.7.2) starts a session, and is answered by ours on the channel of the same number."""
    if channel in protocol.mapped:
        raise ProtocolError(CHANNEL_ERROR, "a begin on channel %d, where a session has begun" % channel)
    if fields["remote-channel"] is not None:
        raise ProtocolError(CHANNEL_ERROR, "a begin that answers one of ours on channel %d: there is none" % fields["remote-channel"])
    session = Session(protocol, channel, fields)  # first: what raises from here on ends the session with the record that it has
    handle = protocol.broker.consumers.open_session(protocol.connection)
    if handle is None:
        raise ProtocolError(RESOURCE_ERROR, "this broker holds %d sessions at most" % protocol.broker.limits.channel_count_max)
    session.handle = handle
    protocol.mapped[channel] = session
    protocol.broker.tables.channels[handle + layout.CHANNEL_NUMBER] = channel
    protocol.reply(
        channel,
        "begin",
        {
            "remote-channel": channel,
            "next-outgoing-id": session.next_outgoing_id,
            "incoming-window": session.incoming_window,
            "outgoing-window": OUTGOING_WINDOW,
            "handle-max": HANDLE_MAX,
        },
    )


class Session:
    """One session. `number`: its channel, in both directions."""

    def __init__(self, protocol, number, fields):
        self.session = protocol  # the broker calls back by this name (contract.Session)
        self.connection = protocol.connection
        self.broker = protocol.broker
        self.number = number
        self.handle = layout.NONE
        self.state = "mapped"  # states.SESSION
        self.consumers: "dict" = {}
        self.promises = Promises(protocol)
        self.watched_tag, self.watched_since = -1, 0
        self.links: "dict" = {}  # by handle
        self.handle_max = fields["handle-max"]  # of the peer's
        self.windows = hot_row.windows(protocol)
        self.next_incoming_id = fields["next-outgoing-id"]
        self.incoming_window = WINDOW
        self.remote_outgoing_window = fields["outgoing-window"]
        self.next_outgoing_id = 0
        self.remote_incoming_window = fields["incoming-window"]
        self.next_delivery_id = None  # of the peer's next delivery; None: it may begin with any
        self.received: "dict" = {}  # the peer's deliveries that are not settled, by delivery-id
        self.published = 0  # number of the last delivery that waits for an answer, 30 bits
        self.answers: "dict" = {}  # number -> delivery
        self.settled: "list" = []  # (first, last, state, number of the log): our deliveries that we settle after the peer's outcome
        self.works: "dict" = {}  # transactions that are not discharged, by txn-id (transactions.py)
        self.declared = 0  # number of the last one
        self.settling: "Any" = None  # a disposition of several turns: its next delivery-id
        self.flows: "list" = []  # links whose state goes to the peer in a flow
        self.wants_flow = False  # our windows go to the peer in a flow
        self.waits_to_write = False  # in protocol.writing
        self.unsafe: "Any" = None  # number of the log that a delivery waits for (resuming.py)
        self.responses: "list" = []  # of the management, waiting: (link, octets, number of the log) (link_management.py)
        self.flat: "Any" = None  # its record for the engine (hot_row.py)
        self.way_at: "Any" = None
        self.receiver: "Any" = None  # the outgoing link whose flow came last (hot_row.py)
        self.outgoing = Outgoing(self)  # the delivery that is half written

    # The engine counts these too, where it delivers, or reads flows, by itself.

    next_incoming_id = property(
        lambda self: self.windows.next_incoming_id, lambda self, number: setattr(self.windows, "next_incoming_id", number)
    )
    remote_outgoing_window = property(
        lambda self: self.windows.remote_outgoing_window, lambda self, count: setattr(self.windows, "remote_outgoing_window", count)
    )

    next_outgoing_id = property(
        lambda self: self.windows.next_outgoing_id, lambda self, number: setattr(self.windows, "next_outgoing_id", number)
    )
    remote_incoming_window = property(
        lambda self: self.windows.remote_incoming_window, lambda self, count: setattr(self.windows, "remote_incoming_window", count)
    )

    @property
    def closing(self):
        """True when the session has ended and its deliveries go back to their queues (contract.Session)."""
        return self.state != "mapped"

    # What comes in

    def process_frame(self, name, fields, octets, at, end):
        """Process a frame: false when it must wait. An error in it ends the session, or the connection."""
        try:
            return self.step(name, fields, octets, at, end)
        except ProtocolError as error:
            if error.hard or not isinstance(error, SessionError):
                raise
            self.step("error", error.condition, error.text)
        return True

    def step(self, input_, *given):
        """Run the session's action for an input, by the table SESSION. Returns the action's answer."""
        return states.step(self, SESSION, mapping, input_, self, *given)

    def do_on_link(self, link, action, *given):
        """Run an action of a link; its error ends the link, the session or the connection. Returns the action's answer."""
        try:
            return action(*given)
        except ProtocolError as error:
            if error.hard:
                raise
            if isinstance(error, SessionError):
                self.step("error", error.condition, error.text)
            else:
                link.step("error", error.condition, error.text)
        return True

    def count_transfer(self, number):
        """Count a transfer that came, with this delivery-id or None, out of our window and out of the peer's."""
        if number is not None and (self.next_delivery_id is None or serial.distance(self.next_delivery_id, number) >= 0):
            self.next_delivery_id = serial.after(number, 1)
        self.took(1)

    def took(self, count):
        """Count so many transfers out of our window and out of the peer's."""
        windows = self.windows
        windows.next_incoming_id = serial.after(windows.next_incoming_id, count)
        self.incoming_window -= count
        windows.remote_outgoing_window = max(windows.remote_outgoing_window - count, 0)
        if self.incoming_window <= WINDOW // 2:
            self.say_flow()

    def answer(self, delivery, outcome):
        """Note that a delivery of the peer's came to `outcome` (outcomes.py): unless the peer has settled it, it hears so when the log is
        durable that far."""
        if not delivery.settled:
            self.published = (self.published + 1) & layout.MASK
            self.answers[self.published] = delivery
            self.promises.decided(self.published, outcome)
            self.wants_to_write()

    # What goes out

    def count_sent(self):
        """Count a transfer that was written out of the peer's window."""
        self.next_outgoing_id = serial.after(self.next_outgoing_id, 1)
        self.remote_incoming_window -= 1

    def wait_for_log(self, number):
        """Wait until the log is durable up to `number`: then the queues deliver again."""
        self.unsafe = number
        self.session.is_durable(number)
        self.wants_to_write()

    def wants_to_write(self):
        """Note that frames wait."""
        self.session.wants_to_write(self)

    def say_flow(self, link=None):
        """Note that a flow is to tell the peer our windows, and the state of `link`."""
        if link is None:
            self.wants_flow = True
        elif link not in self.flows:
            self.flows.append(link)
        self.wants_to_write()

    def write_waiting(self):
        """Write waiting frames while there is room: dispositions, flows, the delivery that is half written. One of sending.py's answers."""
        send = self.connection.send
        if self.closing:
            return WRITTEN
        if self.unsafe is not None and self.session.is_durable(self.unsafe):
            self.unsafe = None
            self.wake()
        outcome = dispositions.write(self)
        if outcome == NO_ROOM:
            return NO_ROOM
        while self.flows or self.wants_flow:
            if send.room() < FLOW_ROOM:
                return NO_ROOM
            self.write_flow(self.flows.pop(0) if self.flows else None)
        if self.outgoing.active():
            if not self.outgoing.go_on() and self.remote_incoming_window > 0:
                return NO_ROOM
            if not self.outgoing.active():
                self.wake()
        if self.responses and not link_management.write(self):
            outcome = NOT_YET
        if self.outgoing.active() and self.remote_incoming_window > 0:
            return NO_ROOM
        return NOT_YET if outcome == NOT_YET or self.unsafe is not None else WRITTEN

    def write_flow(self, link):
        """Write a flow (section 2.7.4): the session's state, and a link's. It makes our window whole again."""
        self.incoming_window = WINDOW
        fields = {
            "next-incoming-id": self.next_incoming_id,
            "incoming-window": self.incoming_window,
            "next-outgoing-id": self.next_outgoing_id,
            "outgoing-window": OUTGOING_WINDOW,
        }
        self.wants_flow = False
        if link is not None:
            link.put_flow(fields)
        self.session.write(hot_out.flow(self.number, fields))

    def wake(self):
        """Activate the queues of our links again: the peer's window has opened, or a delivery is complete."""
        for consumer in self.consumers.values():
            self.broker.activate(consumer.queue)

    # Links

    def link_at(self, handle):
        """The link with a handle. Raises unattached-handle (section 2.8.17)."""
        link = self.links.get(handle)
        if link is None:
            raise SessionError("session:unattached-handle", "handle %d has no link" % handle)
        return link

    def may_send(self):
        """True when a delivery may begin: none is half written, and the peer's window is open."""
        return self.remote_incoming_window > 0 and not self.outgoing.active() and not self.closing

    def default_outcome(self, entry):
        """The outcome of one of our deliveries that the peer settles without one: its link's source names it (section 3.5.3)."""
        link = self.link_of(entry)
        return RELEASED if link is None else link.default

    def link_of(self, entry):
        """The link that an unsettled entry was delivered to, or None: it has gone."""
        handle = self.broker.tables.entries[entry + layout.ENTRY_CONSUMER]
        for link in self.links.values():
            if link.consumer is not None and link.consumer.handle == handle:
                return link
        return None

    def of_consumer(self, consumer):
        """The link that a consumer of the broker belongs to."""
        for link in self.links.values():
            if link.consumer is consumer:
                return link
        raise KeyError(consumer.tag)

    def consumer_ended(self, consumer, condition):
        """Detach the link of a consumer that the broker has ended (section 2.8.15, resource-deleted)."""
        for link in list(self.links.values()):
            if link.consumer is consumer:
                link.consumer = None
                link.step("error", "resource-deleted", "the queue '%s' was deleted" % consumer.queue.name)

    def forget(self, link):
        """Free the handle of a link that is gone."""
        del self.links[link.handle]
        self.session.places.give_back(link)
        if link in self.flows:
            self.flows.remove(link)
        if link is self.receiver:
            self.receiver = None
