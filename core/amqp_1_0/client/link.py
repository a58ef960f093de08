"""Links of the client (section 2.6): Senders with credit and outcomes, Receivers with credit and deliveries.

    sender = client.session.sender("readings"); sender.attach() -> events.attached(sender)
    number = sender.send(octets)                -> events.settled(sender, number, "accepted", {})
    receiver = client.session.receiver("readings", prefetch=100); receiver.attach() -> events.delivered(message)
    receiver.settle(message)

Laws
- What a link is asked returns true, or a number, when it is in the send buffer; false or 0 when there is no room, credit or window now.
- Each message sent unsettled has exactly one outcome told, or the link is told as detached.
- The names of links are the same on every connection, those of the client's container (section 2.6.1).
"""

from struct import pack

from ... import states
from ...errors import COMMAND_INVALID, SYNTAX_ERROR, UNEXPECTED_FRAME, ProtocolError
from ...shim import const
from .message import Message, data_head
from .states import LINK

if False:  # for the type checker alone
    from typing import Any

MASK = const(0xFFFFFFFF)
STREAM_MIN = const(512)  # octets of room that a message needs which is larger than the send buffer
_UNSETTLED = const(0)  # sender-settle-mode
_SETTLED = const(1)
_MIXED = const(2)
_FIRST = const(0)  # receiver-settle-mode
_SECOND = const(1)

OF_A_TERMINUS = ("filter", "durable", "expiry-policy", "capabilities", "distribution-mode")
OUTCOMES = ("accepted", "rejected", "released", "modified")
SYMBOLS = ["amqp:%s:list" % name for name in OUTCOMES]


class Link:
    """The common part of senders and receivers. `handle`: ours; `source`, `target`: fields of the termini as the peer made them, or None.

    `options`: "name" of the link, "filter" (a map), "durable" and "expiry-policy" of the terminus at the peer, "capabilities" (a list of
    symbols), "dynamic" (the peer makes the address), "reply_to" (a Receiver's address on our side), "distribution-mode", "properties" of
    the link (a map).
    """

    is_sender = False

    def __init__(self, session, handle, address, options):
        self.session = session
        self.handle = handle
        self.address = address
        self.options = options
        self.name = options.pop("name", None) or "%s-%d" % (session.client.container, handle)
        self.reset()

    def reset(self):
        """As before attach."""
        self.state = "detached"
        self.source: "Any" = None
        self.target: "Any" = None
        self.credit = 0
        self.delivery_count = 0
        self.message_size_max = 0  # of the peer; 0: none told

    def step(self, input_, *given):
        """Run the action for an input, by the table LINK."""
        return states.step(self, LINK, self, input_, *given)

    def refuse(self, condition, input_, state, *given):
        """A performative that the state does not allow."""
        raise ProtocolError(condition, "%s on a link that is %s" % (input_, state))

    def ignore(self, *given):
        """Discard an input."""

    def attach(self):
        """Ask for the link: true, or false when there is no room now; `attached` or `detached` reports the result."""
        if self.session.state != "mapped":
            raise ValueError("the connection is not open")
        if self.handle > self.session.remote_handle_max:
            raise ValueError("the peer allows %d links" % (self.session.remote_handle_max + 1))
        return self.step("join")

    def send_attach(self):
        """attach."""
        options = self.options
        ours = {"address": options["reply_to"]} if "reply_to" in options else {}
        theirs = {name: options[name] for name in OF_A_TERMINUS if name in options}
        if "dynamic" in options:
            theirs["dynamic"] = True
        elif self.address is not None:
            theirs["address"] = self.address
        fields = {"name": self.name, "handle": self.handle, "role": not self.is_sender}
        self.say_modes(fields, theirs, ours)
        if "properties" in options:
            fields["properties"] = options["properties"]
        return self.session.client.output.write(self.session.frame("attach", fields))

    def leave(self, error=None, closed=True):
        """Detach the link, for good or (`closed` false) so that one of its name can go on; `detached` tells when the peer has. `error`:
        (condition, text) of why."""
        return self.step("leave", error, closed)

    def send_detach(self, error, closed):
        """detach."""
        if self.session.streaming is self:
            return False  # not within a message: its transfers would have no end
        fields: "dict" = {"handle": self.handle, "closed": closed}
        if error is not None:
            fields["error"] = {"condition": error[0], "description": error[1]}
        return self.session.client.output.write(self.session.frame("detach", fields))

    def on_attach(self, fields):
        """The peer's attach."""
        self.source, self.target = terminus(fields, "source"), terminus(fields, "target")
        self.message_size_max = fields["max-message-size"] or 0
        self.begin(fields)
        self.session.client.events.attached(self)

    def on_detach(self, fields):
        """The peer's detach: answered with our own (section 2.6.6)."""
        answer = {"handle": self.handle, "closed": fields["closed"]}
        self.session.client.output.answer(self.session.frame("detach", answer))
        error = fields["error"] or {}
        close_link(self, error.get("condition", ""), error.get("description") or "")

    def on_detach_answered(self, fields):
        """Both have detached; an error may have crossed ours."""
        error = fields["error"] or {}
        close_link(self, error.get("condition", ""), error.get("description") or "")

    def say_modes(self, fields, theirs, ours):
        """Add attach's fields of settling, and the termini: fields of the peer's and of ours."""
        raise NotImplementedError  # Sender and Receiver each have their own, and there is no third

    def begin(self, fields):
        """The peer has attached its end."""

    def go_on(self):
        """There may be room for waiting frames."""

    def forget(self, first, last, outcome):
        """A Sender at the peer has settled a range of its deliveries."""


def close_link(link, condition, text):
    """A link has ended: forget deliveries without outcome, and report the end."""
    session = link.session
    if session.streaming is link:
        session.streaming = None
    for each in [number for number in session.unsettled if session.unsettled[number][0] is link]:
        del session.unsettled[each]
    link.reset()
    session.client.events.detached(link, condition, text)


class Sender(Link):
    """A link to an address (None: the anonymous terminus, each message has its own `to`). `settled`: everything is sent settled."""

    is_sender = True

    def __init__(self, session, handle, address, settled, options):
        self.settled = settled
        self.work = b""  # the state that its messages are sent with (transactions.py)
        Link.__init__(self, session, handle, address, options)

    def reset(self):
        """As before attach."""
        Link.reset(self)
        self.sent = 0  # messages of this attachment; the number of the last one
        self.unsettled = 0
        self.drained = False
        self._head: "Any" = b""
        self._body: "Any" = b""
        self._at = 0
        self._first: "Any" = None  # fields that only the first transfer of a message has

    def say_modes(self, fields, theirs, ours):
        """The fields of a sender's attach: the target is the peer's."""
        fields["snd-settle-mode"] = _SETTLED if self.settled else _UNSETTLED
        fields["initial-delivery-count"] = 0
        fields["source"] = ("source", dict(ours, outcomes=SYMBOLS))
        fields["target"] = ("target", theirs)

    def send(self, octets, body=None, format_=0, tag=None):
        """Send a message: all its sections, or with `body` (bytes-like) those in front of it, and the body as one data section. `tag`: its
        delivery-tag, up to 32 octets (None: its number).

        Its number on this attachment (from 1), or 0: no credit, window or room now. Raises ValueError for one that can never go. A message
        that is larger than the send buffer is streamed: leave the body unchanged until it is sent.
        """
        if self.state != "attached":
            raise ValueError("the link is %s" % self.state)
        session = self.session
        if body is not None:
            octets = octets + data_head(len(body))
        size = len(octets) + (0 if body is None else len(body))
        if self.message_size_max and size > self.message_size_max:
            raise ValueError("a message of %d octets; the peer takes %d" % (size, self.message_size_max))
        if self.credit <= 0 or session.streaming is not None or session.remote_window <= 0 or self.unsettled >= session.window:
            return 0
        output = session.client.output
        whole = size + (size // (session.client.frame_size_max - 64) + 1) * 64 + len(self.work)
        if output.free() < (whole if whole <= output.limit else min(STREAM_MIN, output.limit)):
            return 0
        self._head, self._body, self._at = octets, b"" if body is None else memoryview(body), 0
        self._first = session.next_delivery, format_, tag, self.work
        number = self.count(self.settled)
        session.streaming = self
        session.stream()
        return number

    def count(self, settled):
        """A delivery has begun: its number."""
        session = self.session
        self.sent += 1
        if not settled:
            session.unsettled[session.next_delivery] = (self, self.sent)
            self.unsettled += 1
        session.next_delivery = (session.next_delivery + 1) & MASK
        self.credit -= 1
        self.delivery_count = (self.delivery_count + 1) & MASK
        return self.sent

    def holds(self, number, delivery, outcome, is_settled):
        """True where the message of an outcome that has come stays unsettled (recovering.py)."""
        return False

    def left(self):
        """Octets of the message that are not out."""
        return len(self._head) + len(self._body) - self._at

    def transfer(self, more):
        """The performative of the next transfer (section 2.7.5): the delivery's id, tag and format in its first alone."""
        handle = b"\x52" + bytes((self.handle,))
        if self._first is None:
            fields = handle + (b"\x40\x40\x40\x40\x41" if more else b"\x40\x40\x40\x40\x42")
        else:
            delivery, format_, tag, state = self._first
            self._first = None
            tag = pack(">I", self.sent & MASK) if tag is None else tag
            format_octets = b"\x43" if format_ == 0 else b"\x70" + pack(">I", format_)
            fields = handle + b"\x70" + pack(">I", delivery) + b"\xa0" + bytes((len(tag),)) + tag + format_octets
            fields += (b"\x41" if self.settled else b"\x42") + (b"\x41" if more else b"\x42")
            if state:
                fields += b"\x40" + state
                return b"\x00\x53\x14\xc0" + bytes((len(fields) + 1, 8)) + fields
        return b"\x00\x53\x14\xc0" + bytes((len(fields) + 1, 6)) + fields

    def piece(self, size):
        """The next octets of the message, as one or two parts."""
        at = self._at
        self._at = end = at + size
        head = len(self._head)
        if end <= head:
            return (memoryview(self._head)[at:end],)
        if at >= head:
            return (self._body[at - head : end - head],)
        return (memoryview(self._head)[at:], self._body[: end - head])

    def is_out(self):
        """The message is in the send buffer."""
        self._head = self._body = b""

    def on_transfer(self, fields, payload):
        """A sender gets none."""
        raise ProtocolError(COMMAND_INVALID, "a transfer on a link that we send on")

    def on_flow(self, fields):
        """Credit, counted from the peer's delivery-count (section 2.6.7); with drain what is left of it is used up."""
        if fields["link-credit"] is None:
            return
        count = fields["delivery-count"] or 0
        self.credit = (count + fields["link-credit"] - self.delivery_count) & MASK
        if self.credit > MASK >> 1:
            self.credit = 0
        self.drained = fields["drain"]
        if self.credit:
            self.session.client.events.credited(self)
        if self.drained or fields["echo"]:
            self.say_flow(True)

    def say_flow(self, must):
        """Tell the peer our state, where there is room or we `must`; what is drained is used up, behind a message that is under way."""
        left = 0 if self.drained and self.session.streaming is not self else self.credit
        count = (self.delivery_count + self.credit - left) & MASK
        if self.session.flow(self, {"delivery-count": count, "link-credit": left, "available": 0, "drain": self.drained}, must):
            self.delivery_count, self.credit = count, left

    def go_on(self):
        """A message was under way when the peer drained, and is out: use the rest of the credit up."""
        if self.drained and self.credit and self.state == "attached" and self.session.streaming is not self:
            self.say_flow(False)


class Receiver(Link):
    """A link from an address. `prefetch`: credit and unsettled deliveries together, given again as deliveries are settled; 0: `add_credit`
    gives it. `second`: the sender settles behind us (receiver-settle-mode second). Option "settled": deliveries come settled."""

    def __init__(self, session, handle, address, prefetch, second, options):
        self.prefetch = prefetch
        self.second = second
        Link.__init__(self, session, handle, address, options)

    def reset(self):
        """As before attach."""
        Link.reset(self)
        self.owed = 0  # credit not yet sent to the peer
        self.draining = False
        self.waiting: "dict" = {}  # delivery-ids that the sender has still to settle; mode second
        self._message: "Any" = None  # whose transfers are coming

    def say_modes(self, fields, theirs, ours):
        """The fields of a receiver's attach: the source is the peer's."""
        fields["snd-settle-mode"] = _SETTLED if self.options.get("settled") else _MIXED
        fields["rcv-settle-mode"] = _SECOND if self.second else _FIRST
        fields["source"] = ("source", dict(theirs, outcomes=SYMBOLS))
        fields["target"] = ("target", ours)
        fields["max-message-size"] = self.session.client.message_size_max

    def begin(self, fields):
        """The peer has attached its end: it gets credit."""
        self.delivery_count = fields["initial-delivery-count"] or 0
        if self.prefetch:
            self.add_credit(self.prefetch)

    def add_credit(self, count, drain=False):
        """Let the peer send `count` messages more; with `drain` what it has now, and no further. The flow is sent when there is room."""
        self.owed += count
        self.draining = self.draining or drain
        self.go_on(True)

    def go_on(self, at_once=False):
        """Tell the peer of credit: at once, or when half of the prefetch has gathered."""
        if self.state != "attached" or not (self.owed or (at_once and self.draining)):
            return
        if at_once or self.owed * 2 >= self.prefetch:
            fields = {"delivery-count": self.delivery_count, "link-credit": max(self.credit + self.owed, 0), "drain": self.draining}
            if self.session.flow(self, fields):
                self.credit += self.owed
                self.owed = 0

    def settle(self, message, outcome="accepted", fields=None):
        """Give a delivery its outcome: true, or false when there is no room now. One that was sent settled needs none.

        `fields`: of rejected {"error": {"condition": ..., "description": ...}}, of modified {"delivery-failed": True ...}.
        """
        if self.state != "attached":
            raise ValueError("the link is %s" % self.state)
        if not message.settled:
            given = {"role": True, "first": message.number, "settled": not self.second, "state": (outcome, fields or {})}
            if not self.session.client.output.write(self.session.frame("disposition", given)):
                return False
            message.settled = True
            if self.second:
                self.waiting[message.number] = outcome
            if self.prefetch:
                self.owed += 1
                self.go_on()
        return True

    def forget(self, first, last, outcome):
        """The sender has settled a range: deliveries of mode second are done."""
        for each in within(self.waiting, first, last):
            ours = self.waiting.pop(each)
            self.session.client.events.settled(self, each, outcome or ours, {})

    def on_flow(self, fields):
        """The sender's state; drained credit is used up. RabbitMQ 3.10 counts deliveries in a flow that come behind it: without drain the
        count is ours."""
        if self.draining and fields["delivery-count"] is not None:
            gone = (fields["delivery-count"] - self.delivery_count) & MASK
            if 0 < gone <= self.credit:
                self.credit -= gone
                self.delivery_count = fields["delivery-count"]
        if self.draining and self.credit == 0:
            self.draining = False
            self.session.client.events.drained(self)
        elif fields["echo"]:
            self.session.flow(self, {"delivery-count": self.delivery_count, "link-credit": self.credit, "drain": self.draining}, True)

    def on_transfer(self, fields, payload):
        """A delivery, or a part of it (section 2.6.14)."""
        message = self._message
        if message is None:
            if fields["delivery-id"] is None:
                raise ProtocolError(UNEXPECTED_FRAME, "a delivery without an id")
            # RabbitMQ 3.10 takes each link-credit as credit from where it stands, and sends what was under way beside it.
            if self.credit <= -self.prefetch:
                raise ProtocolError(COMMAND_INVALID, "a delivery without credit")
            self.credit -= 1
            self.delivery_count = (self.delivery_count + 1) & MASK
            message = Message(self, fields["delivery-id"], fields["delivery-tag"] or b"", fields["message-format"] or 0, False)
            self._message = message
        elif fields["delivery-id"] not in (None, message.number):
            raise ProtocolError(UNEXPECTED_FRAME, "delivery %d within delivery %d" % (fields["delivery-id"], message.number))
        message.settled = message.settled or bool(fields["settled"])
        message.append(payload, self.session.client.message_size_max)
        if fields["aborted"]:
            self._message = None
            self.owed += 1 if self.prefetch else 0
        elif not fields["more"]:
            self._message = None
            self.deliver(message)
        if self.draining and self.credit == 0 and self._message is None:
            self.draining = False
            self.session.client.events.drained(self)

    def deliver(self, message):
        """A whole delivery."""
        events = self.session.client.events
        if message.finish():
            events.delivered(message)
        else:
            events.refused(message, "a message of %d octets where %d are the most" % (message.size, self.session.client.message_size_max))
        if message.settled and self.prefetch:
            self.owed += 1
            self.go_on()


def terminus(fields, end):
    """The fields of the terminus at an `end` (source, target) of an attach, or None. Raises ProtocolError for what is no terminus."""
    given = fields[end]
    if given is None:
        return None
    if not isinstance(given, tuple) or given[0] not in (end, "coordinator"):
        raise ProtocolError(SYNTAX_ERROR, "an attach with a %s that is none" % end)
    return given[1]


def outcome_of(state):
    """(name, fields) of the outcome in a delivery state; ("", {}): it is none, or there is none."""
    if isinstance(state, tuple) and state[0] == "transactional-state":
        state = state[1]["outcome"]
    return state if isinstance(state, tuple) and (state[0] in OUTCOMES or state[0] == "declared") else ("", {})


def within(table, first, last):
    """The ids of a table from `first` to `last`, in their order. Raises ProtocolError for a range with the last id before the first."""
    span = (last - first) & MASK
    if span > MASK >> 1:
        raise ProtocolError(COMMAND_INVALID, "a disposition from %d to %d" % (first, last))
    if span < len(table):
        return [each for each in [(first + place) & MASK for place in range(span + 1)] if each in table]
    return sorted([each for each in table if (each - first) & MASK <= span], key=lambda each: (each - first) & MASK)


def selector(text):
    """The filter set of a JMS selector (registered as apache.org:selector-filter:string)."""
    return {("symbol", "apache.org:selector-filter:string"): ("described", ("ulong", 0x468C00000004), text)}


def offset_filter(expression):
    """The filter set of Event Hubs' positions, as "amqp.annotation.x-opt-offset > '1024'"."""
    name = "apache.org:selector-filter:string"
    return {("symbol", name): ("described", ("symbol", name), expression)}
