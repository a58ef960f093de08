"""Where a bridge publishes when upstream speaks AMQP 1.0: a sender to an address, whose outcomes are the confirms.

    setting          in AMQP 1.0
    exchange         the address of the link's target; "": the anonymous terminus, each message's `to` is its routing key
    routing_key      the message's subject
    headers, marks   application-properties (core/amqp_1_0/upstream.py)

    accepted         the message has left the outbox
    rejected, released, modified, or no outcome at all: it is tried again, and goes to the refused queue after refusal_attempts

Where the bridge has numbers, sends in one lane and upstream keeps its targets, each message arrives exactly once (once.py).
"""

from random import getrandbits

from ...core.amqp_1_0 import upstream
from ...core.errors import ProtocolError
from ...core.message.formats import BASIC
from ...core.shim import elapsed
from .once import Once
from .side import Side
from .side_1_0 import Side10

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

CREDIT_MS = 1000  # without credit so long, and nothing under way: upstream takes nothing


class Target10(Side10):
    """A sender of messages, unsettled; the mover's numbers are those of its messages."""

    setting = "exchange"
    do = "send"

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side10.__init__(self, bridge, role, dials, settings)
        self.sender: "Any" = None
        self.once: "Any" = None  # where messages have numbers that last
        self._dry_at: "int | None" = None  # since when there has been no credit
        self._is_dry = False
        self.steps = [self.ask_for_token, self._look, self._leave, self._join]

    def address(self) -> "str | None":
        return self.settings.exchange or None

    def is_looking(self) -> bool:
        return self.once is not None and self.once.is_looking

    def new_client(self, settings: "Settings") -> "Any":
        numbered = self.bridge.mover.dense and not self._has_lanes() and self.dial.place not in self.keep_nothing
        client = self.connected_client(
            "leveret-%s-%s" % (settings.gateway or settings.name, settings.name if numbered else "%08x" % getrandbits(30)),
            4096,  # nothing but the answers of $cbs comes
            settings.prefetch * 2 + 16,
        )
        options = self.dial.url.capabilities()
        self.once = Once(self, client.session, self.address(), max(settings.buffer_size, 4096), options) if numbered else None
        self.sender = self.once.sender if numbered else client.session.sender(self.address(), **options)
        self._dry_at = None
        self._is_dry = False
        return client

    # Opening

    def tend(self, loop: "Any", now: int) -> None:
        """Do the side's due work, once the source has said which stream it reads: the link has that stream's name."""
        if not self.over or not self.bridge.mover.dense or self.bridge.source.facts is not None:
            Side.tend(self, loop, now)

    def numbers_begin_anew(self) -> None:
        """End this connection: the source reads another stream, whose name the next link has."""
        self.cut("the numbers of messages begin anew")

    def in_order(self) -> bool:
        """True where messages go in one lane: nothing is settled upstream before all in front of it is done."""
        return self.once is not None and self.sender.keeps

    def _has_lanes(self) -> bool:
        return bool(self.settings.replay_messages_per_second or self.settings.replay_octets_per_second)

    def _look(self) -> "bool | None":
        """Attach the link for the first time, to learn which deliveries upstream keeps."""
        return None if self.once is None else self._join()

    def _recover_nothing(self) -> None:
        """Attach an ordinary link from here on, because upstream keeps no deliveries."""
        self.keep_nothing.add(self.dial.place)
        self.once = None
        self.sender = self.client.session.sender(self.address(), **self.dial.url.capabilities())

    def _leave(self) -> "bool | None":
        return None if self.once is None else self.once.leave()

    def _join(self) -> bool:
        attach = self.sender.attach if self.once is None else self.once.attach
        self.asked_for_link = self.client.session.state == "mapped" and attach()
        return self.asked_for_link

    def attached(self, link: "Any") -> None:
        if link is self.sender:
            if self.once is None or not self.once.is_looking:
                self._tell_how_often()
            self.answered()
        else:
            self.tokens.attached()

    def _tell_how_often(self) -> None:
        """Say whether a message can arrive twice."""
        marked = "in doubt a message arrives twice, with the same x-gateway and x-sequence"
        if not self.bridge.mover.dense:
            why = "without a gateway messages have no numbers: in doubt one arrives twice"
        elif self._has_lanes():  # the live lane would hold more open than any upstream keeps
            why = "with a replay rate there are two lanes: " + marked
        elif self.once is None:
            why = "it keeps no unsettled deliveries: " + marked
        elif not self.sender.keeps:
            why = "it settles at once, against what it says: " + marked
        else:
            why = "it keeps unsettled deliveries: each message arrives exactly once"
        self.tell_how_often(why)

    def detached(self, link: "Any", condition: str, text: str) -> None:
        if link is self.sender and self.once is not None and self.once.is_looking and not condition and not self.client.closed:
            self.once.is_looking = False
            if not self.once.recovers:
                self._recover_nothing()
            self.answered()
        elif not (self.over or self.client.closed):  # else the connection is over, which is told
            self.cut(self.refusal(link.address, condition, text))

    # Messages

    def put(self, record: "Any") -> int:
        """Send a record of the mover: its number on the link, 0 without room or credit."""
        key, octets = record.marked
        if not self.sender.credit:
            return 0
        try:
            head = upstream.head(BASIC, octets, key, not self.settings.exchange)
            number: int = self.sender.send(head, record.body) if self.once is None else self.once.send(head, record)
            return number
        except (ValueError, ProtocolError) as error:
            record.reason = str(error)
            return -1

    def settled(self, link: "Any", number: int, outcome: str, fields: "dict[str, Any]") -> None:
        if link is not self.sender:
            self.tokens.sent(outcome)
            return
        record = self.bridge.mover.flight.get(number)
        if self.once is not None:
            self.once.settled(number, outcome)
            self._tell_how_often()
        if outcome == "accepted" or record is None:
            self.bridge.confirmed(number, outcome == "accepted")
            return
        error = fields.get("error") or {}
        record.reason = "upstream has %s it" % (outcome or "settled without an outcome")
        if error:
            record.reason += ": %s %s" % (error.get("condition"), error.get("description") or "")
        elif outcome == "released":
            record.reason += ": nothing there has a place for it now"
            self.bridge.mover.counters["returned"] += 1
        self.say("%s refuses messages (%s); trying again" % (self.place(), record.reason))
        self.bridge.confirmed(number, False)

    def credited(self, link: "Any") -> None:
        if link is not self.sender:
            self.tokens.credited()

    def delivered(self, message: "Any") -> None:
        self.tokens.delivered(message)

    # Time

    def work(self, now: int) -> None:
        """Put a token that is due; notice that upstream gives no credit."""
        if not self.ready:
            return
        if self.tokens is not None:
            self.tokens.work(now)
        if self.once is not None:
            self.once.work()
        if (
            self.sender.credit
            or self.sender.unsettled
            or self.once is not None
            and self.sender.held
            or self.client.session.streaming is not None
        ):
            self._dry_at = None
            if self._is_dry:
                self._is_dry = False
                self.say("%s takes messages again" % self.place())
                self.bridge.target_accepts_again()
        elif self._dry_at is None:
            self._dry_at = now
        elif not self._is_dry and elapsed(now, self._dry_at) > CREDIT_MS:
            self._is_dry = True
            self.bridge.count("blocked")
            self.say("%s takes no messages for now: it gives no credit" % self.place())

    def asks_for_position(self) -> bool:
        """True when the source is to say soon how far its position is in the log."""
        return self.ready and self.once is not None and self.once.is_urgent()

    def stopped(self) -> str:
        """The reason why upstream accepts no message now, or ""."""
        return "no link credit" if self.ready and self._is_dry else ""
