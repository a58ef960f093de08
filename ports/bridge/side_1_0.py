"""A side of a bridge whose broker speaks AMQP 1.0: its log-in, tokens, and what is said of a link that the broker refuses.

Laws: an address that the broker refuses is told with what can be done, and asked for again after a pause; where the URL says auth=cbs, a
token is put before the link is attached, and again when half of its time is over.
"""

from ...core.amqp_1_0.client import tokens
from ...core.amqp_1_0.client.client import Client
from ...core.amqp_1_0.client.events import Events
from ...core.shim import elapsed
from ..clock import now_ms, seconds
from .side import LATER_MS, Guard, Side

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

TOKEN_S = 3600
ADVICE = {  # by the condition; {setting} of the address, {do} what the user is to do there
    "amqp:not-found": "make it there, or set {setting} to an address that it has",
    "amqp:unauthorized-access": "let this user {do} there, or take another one in upstream's URL",
    "amqp:resource-limit-exceeded": "raise that limit there",
    "amqp:link:stolen": "another bridge has the same name and gateway",
}


class Guarded(Guard, Client):
    """The guarded client of AMQP 1.0."""

    client_class = Client


class Side10(Side, Events):
    """A connection with one link, `link()`, to or from `address()`. `keep_nothing`: places that keep no unsettled deliveries, or refuse a
    link that is to be recovered."""

    setting = ""  # the one that has the address
    do = ""  # what the bridge does there

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side.__init__(self, bridge, role, dials, settings)
        self.tokens: "Any" = None
        self.keep_nothing: "set[str]" = set()
        self.asked_for_link = False
        self._last_reason = ""  # how often a message may arrive

    def connected_client(self, container: str, message_size_max: int, frames: int) -> Guarded:
        """The client of a new connection, with the tokens that it needs; `frames`: its window."""
        settings = self.settings
        client = Guarded(
            self,
            container=container,
            receive_size=max(settings.buffer_size, 4096),
            send_size=settings.buffer_size + 2048,
            message_size_max=message_size_max,
            window=frames,
            idle_ms=settings.heartbeat_seconds * 1000,
            open_timeout_ms=LATER_MS + int(settings.connect_seconds * 1000),
            **self.dial.login(),
        )
        url = self.dial.url
        self.tokens = Tokens(self, client.session, url) if url.auth == "cbs" else None
        self.asked_for_link = False
        return client

    def address(self) -> "str | None":
        """The address of the link; None: the anonymous terminus."""
        raise NotImplementedError  # Target10 and Source10 each have their own, and there is no third

    def is_looking(self) -> bool:
        """True while the link is asked for what its broker has kept."""
        raise NotImplementedError  # as above

    def ask_for_token(self) -> "bool | None":
        """The first step: ask for a token, where the URL says auth=cbs."""
        return None if self.tokens is None else self.tokens.begin()

    def tell_how_often(self, why: str) -> None:
        """Say, when it has changed, whether a message can arrive twice."""
        if why != self._last_reason:
            self._last_reason = why
            self.say("%s: %s" % (self.place(), why))

    def ended(self, condition: str, text: str) -> None:  # type: ignore[override]  # the two protocols' words for an end
        if condition == "amqp:not-implemented" and self.is_looking() and self.asked_for_link:
            self.keep_nothing.add(self.dial.place)  # RabbitMQ 3.10: it is asked for a link that is not, with the next connection
        if condition in ADVICE and self.asked_for_link and not self.ready:
            text = self.refusal(self.address(), condition, text)  # RabbitMQ 3.10 ends the session
        elif condition:
            text = condition + " " + text
        Side.ended(self, 0, text)

    def refusal(self, address: "str | None", condition: str, text: str) -> str:
        """A sentence for the operator about a link that upstream refused or ended."""
        node = "the anonymous terminus" if address is None else "address %r" % address
        why = ("%s %s" % (condition or "no reason told", text)).strip()
        advice = ADVICE.get(condition, "see that it is there and that this user may {do} there")
        return "%s is refused (%s): %s" % (node, why, advice.format(setting=self.setting, do=self.do))


class Tokens:
    """The two links to `$cbs`, and the token of the side's address (core/amqp_1_0/client/tokens.py)."""

    def __init__(self, side: Side10, session: "Any", url: "Any") -> None:
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
        return "amqps://%s/%s" % (self.url.name(), self.side.address() or "")

    def begin(self) -> bool:
        """Attach both links; the token goes when both are there."""
        if self.side.client.session.state != "mapped" or self.side.client.output.free() < 2048:
            return False
        self.sender.attach()
        self.receiver.attach()
        return True

    def attached(self) -> None:
        """Note that one of the two links is attached."""
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
        """Note that the peer gave credit for messages to `$cbs`."""
        if self._waits:
            self.put()

    def work(self, now: int) -> None:
        """Put a new token when half of the old one's time has passed, or when an earlier put had no credit."""
        if self._waits or elapsed(now, self.put_at) > TOKEN_S * 500:
            self.put()

    def sent(self, outcome: str) -> None:
        """Note the peer's outcome for a request."""
        if outcome != "accepted":
            self.side.cut("a token for %s is not taken: %s" % (self.resource(), outcome))

    def delivered(self, message: "Any") -> None:
        """Read an answer of `$cbs`. The first one lets the side attach its link."""
        _, code, text = tokens.answer(message)
        self.receiver.settle(message)
        if code not in (200, 202):
            advice = "see the policy's name and key in upstream's URL, and its right to %s" % self.side.do
            self.side.cut("a token for %s is refused: %d %s: %s" % (self.resource(), code, text, advice))
        elif not self.side.ready:
            self.side.answered()
