"""Where a bridge publishes when upstream speaks AMQP 1.0: a sender to an address, whose outcomes are the confirms.

    setting          in AMQP 1.0
    exchange         the address of the link's target; "": the anonymous terminus, each message's `to` is its routing key
    routing_key      the message's subject
    headers, marks   application-properties (core/amqp_1_0/upstream.py)

    accepted         the message has left the outbox
    rejected, released, modified, or no outcome at all: it is tried again, and goes to the refused queue after refusal_attempts

Where the bridge has numbers, sends in one lane and upstream keeps its targets, each message arrives exactly once (once.py).

Laws: an address that upstream refuses is told with what can be done, and asked for again after a pause; where the URL says auth=cbs, a
token is put before the link is attached, and again when half of its time is over.
"""

from random import getrandbits

from ...core.amqp_1_0 import upstream
from ...core.amqp_1_0.client import tokens
from ...core.amqp_1_0.client.client import Client
from ...core.amqp_1_0.client.events import Events
from ...core.errors import ProtocolError
from ...core.message.formats import BASIC
from ...core.shim import elapsed
from ..clock import now_ms, seconds
from .once import Once
from .side import LATER_MS, Guard, Side

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

TOKEN_S = 3600
CREDIT_MS = 1000  # without credit so long, and nothing under way: upstream takes nothing
ADVICE = {
    "amqp:not-found": "make it there, or set exchange to an address that it has",
    "amqp:unauthorized-access": "let this user send there, or take another one in upstream's URL",
    "amqp:resource-limit-exceeded": "raise that limit there",
    "amqp:link:stolen": "another bridge has the same name and gateway",
}


class Guarded(Guard, Client):
    """The guarded client of AMQP 1.0."""

    client_class = Client


class Target10(Side, Events):
    """A sender of messages, unsettled; the mover's numbers are those of its messages."""

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side.__init__(self, bridge, role, dials, settings)
        self.sender: "Any" = None
        self.once: "Any" = None  # where messages have numbers that last
        self._tokens: "Any" = None
        self._asked_for_it = False
        self._dry_at: "int | None" = None  # since when there has been no credit
        self._is_dry = False
        self._told = ""  # how often a message may arrive
        self._keep_nothing: "set[str]" = set()  # places that keep nothing, or refuse a link that is to be recovered
        self.steps = [self._ask_for_token, self._look, self._leave, self._join]

    def new_client(self, settings: "Settings") -> "Any":
        login = self.dial.login()
        receive_size = max(settings.buffer_size, 4096)
        numbered = self.bridge.mover.dense and not self._has_lanes() and self.dial.place not in self._keep_nothing
        client = Guarded(
            self,
            container="leveret-%s-%s" % (settings.gateway or settings.name, settings.name if numbered else "%08x" % getrandbits(30)),
            receive_size=receive_size,
            send_size=settings.buffer_size + 2048,
            message_size_max=4096,  # nothing but the answers of $cbs comes
            window=settings.prefetch * 2 + 16,
            idle_ms=settings.heartbeat_seconds * 1000,
            open_timeout_ms=LATER_MS + int(settings.connect_seconds * 1000),
            **login,
        )
        url = self.dial.url
        address = settings.exchange or None
        self.once = Once(self, client.session, address, receive_size, url.capabilities()) if numbered else None
        self.sender = self.once.sender if numbered else client.session.sender(address, **url.capabilities())
        self._tokens = Tokens(self, client.session, url) if url.auth == "cbs" else None
        self._dry_at = None
        self._is_dry = self._asked_for_it = False
        return client

    # Opening

    def _ask_for_token(self) -> "bool | None":
        return None if self._tokens is None else self._tokens.begin()

    def tend(self, loop: "Any", now: int) -> None:
        """A link is named after the stream that its messages come from, which the source has to tell first."""
        if not self.over or not self.bridge.mover.dense or self.bridge.source.facts is not None:
            Side.tend(self, loop, now)

    def numbers_begin_anew(self) -> None:
        """The stream is another one: so is the link."""
        self.cut("the numbers of messages begin anew")

    def in_order(self) -> bool:
        """True where messages go in one lane: nothing is settled upstream before all in front of it is done."""
        return self.once is not None and self.sender.keeps

    def _has_lanes(self) -> bool:
        return bool(self.settings.replay_messages_per_second or self.settings.replay_octets_per_second)

    def _look(self) -> "bool | None":
        """Attach the link for the first time: what does upstream have of it?"""
        return None if self.once is None else self._join()

    def _recover_nothing(self) -> None:
        """Upstream keeps nothing: a link as any other, now and from now on."""
        self._keep_nothing.add(self.dial.place)
        self.once = None
        self.sender = self.client.session.sender(self.settings.exchange or None, **self.dial.url.capabilities())

    def _leave(self) -> "bool | None":
        return None if self.once is None else self.once.leave()

    def _join(self) -> bool:
        attach = self.sender.attach if self.once is None else self.once.attach
        self._asked_for_it = self.client.session.state == "mapped" and attach()
        return self._asked_for_it

    def attached(self, link: "Any") -> None:
        if link is self.sender:
            if self.once is None or not self.once.is_looking:
                self._tell_how_often()
            self.answered()
        else:
            self._tokens.attached()

    def _tell_how_often(self) -> None:
        """Say, when it has changed, whether a message can arrive twice."""
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
        if why != self._told:
            self._told = why
            self.say("%s: %s" % (self.place(), why))

    def detached(self, link: "Any", condition: str, text: str) -> None:
        if link is self.sender and self.once is not None and self.once.is_looking and not condition and not self.client.closed:
            self.once.is_looking = False
            if not self.once.recovers:
                self._recover_nothing()
            self.answered()
        elif not (self.over or self.client.closed):  # else the connection is over, which is told
            self.cut(self._refusal(link.address, condition, text))

    def ended(self, condition: str, text: str) -> None:  # type: ignore[override]  # the two protocols' words for an end
        if condition == "amqp:not-implemented" and self.once is not None and self.once.is_looking and self._asked_for_it:
            self._keep_nothing.add(self.dial.place)  # RabbitMQ 3.10: it is asked for a link that is not, with the next connection
        if condition in ADVICE and self._asked_for_it and not self.ready:
            text = self._refusal(self.sender.address, condition, text)  # RabbitMQ 3.10 ends the session
        elif condition:
            text = condition + " " + text
        Side.ended(self, 0, text)

    def _refusal(self, address: "str | None", condition: str, text: str) -> str:
        """The sentence about a link that upstream refuses or ends."""
        target = "the anonymous terminus" if address is None else "address %r" % address
        why = ("%s %s" % (condition or "no reason told", text)).strip()
        advice = ADVICE.get(condition, "see that it is there and that this user may send to it")
        return "%s is refused (%s): %s" % (target, why, advice)

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
            self._tokens.sent(outcome)
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
            self._tokens.credited()

    def delivered(self, message: "Any") -> None:
        self._tokens.delivered(message)

    # Time

    def work(self, now: int) -> None:
        """Put a token that is due; notice that upstream gives no credit."""
        if not self.ready:
            return
        if self._tokens is not None:
            self._tokens.work(now)
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
                self.bridge.taken_again()
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
        """Why upstream takes nothing now, or ""."""
        return "no link credit" if self.ready and self._is_dry else ""


class Tokens:
    """The two links to `$cbs`, and the token of the target's address (core/amqp_1_0/client/tokens.py)."""

    def __init__(self, side: Target10, session: "Any", url: "Any") -> None:
        self.side = side
        self.url = url
        self.answers = "leveret-cbs"
        self.sender = session.sender(tokens.NODE, settled=False)
        self.receiver = session.receiver(tokens.NODE, prefetch=4, reply_to=self.answers)
        self.count = 0
        self.put_at = 0
        self._links = 0
        self._waits = False

    def resource(self) -> str:
        """The resource that the token is for."""
        return "amqps://%s/%s" % (self.url.name(), self.side.settings.exchange)

    def begin(self) -> bool:
        """Attach both links; the token goes when both are there."""
        if self.side.client.session.state != "mapped" or self.side.client.output.free() < 2048:
            return False
        self.sender.attach()
        self.receiver.attach()
        return True

    def attached(self) -> None:
        """One of the two is there."""
        self._links += 1
        if self._links == 2:
            self._waits = True
            self.put_at = now_ms()
            self.put()

    def put(self) -> None:
        """Put a token; without credit yet, the next `work` or `credited` does."""
        self.count += 1
        token = tokens.sas_token(self.resource(), self.url.user, self.url.password, seconds() + TOKEN_S)
        if self.sender.send(tokens.put_token(token, self.resource(), self.count, self.answers)):
            self.put_at = now_ms()
            self._waits = False

    def credited(self) -> None:
        """The peer takes messages to `$cbs`."""
        if self._waits:
            self.put()

    def work(self, now: int) -> None:
        """Half of the token's time is over, or it could not go before."""
        if self._waits or elapsed(now, self.put_at) > TOKEN_S * 500:
            self.put()

    def sent(self, outcome: str) -> None:
        """The outcome of a request."""
        if outcome != "accepted":
            self.side.cut("a token for %s is not taken: %s" % (self.resource(), outcome))

    def delivered(self, message: "Any") -> None:
        """An answer: the first one is what the link was waiting for."""
        _, code, text = tokens.answer(message)
        self.receiver.settle(message)
        if code not in (200, 202):
            advice = "see the policy's name and key in upstream's URL, and its right to send"
            self.side.cut("a token for %s is refused: %d %s: %s" % (self.resource(), code, text, advice))
        elif not self.side.ready:
            self.side.answered()
