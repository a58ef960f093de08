"""Where a bridge publishes when upstream speaks AMQP 0-10: transfers of accept-mode explicit, whose completion is the confirm.

    setting          in AMQP 0-10
    exchange         the destination of the transfers; "": the default exchange
    routing_key      routing-key of delivery-properties
    headers, marks   application-headers (core/amqp_0_10/upstream.py)

    completed        the message has left the outbox
    rejected, or an exception that names it: it is tried again, and goes to the refused queue after refusal_attempts
    message.stop     upstream takes no messages until its next message.flow

The session outlives its connections, where upstream grants it: a message that was on its way when one was lost is sent again with the id
that it had, and upstream executes it once (core/amqp_0_10/client/transfers.py).

Laws: a redirect is followed once for each attempt; an exchange that upstream does not have is told with what can be done, and asked for
again after a pause.
"""

from random import getrandbits

from ...core.amqp_0_10 import structs, upstream
from ...core.amqp_0_10.client.client import Client
from ...core.amqp_0_10.client.events import Events
from ...core.amqp_0_10.client.transfers import Transfers
from ...core.errors import ProtocolError
from ...core.message.formats import BASIC
from ..clock import now_ms
from ..url_0_10 import redirected
from .side import LATER_MS, Guard, Side

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

SESSION_S = 3600  # how long the session is to live without a connection
RESULT = "exchange-query-result"


class Guarded(Guard, Client):
    """The guarded client of AMQP 0-10."""

    client_class = Client


class Target010(Side, Events):
    """A sender of messages; the mover's numbers are those of Transfers."""

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side.__init__(self, bridge, role, dials, settings)
        self.steps = [self._look_for_exchange]
        self.transfers = Transfers(settings.exchange, self._settled)
        self._name = ("leveret-%s-%s-%08x" % (settings.gateway or "", settings.name, getrandbits(30))).encode("utf-8")
        self._question = -1  # id of the exchange.query that waits for its result
        self._is_stopped = False
        self._last_reason = ""  # how often a message may arrive
        self._other: "Any" = None  # the dial that a redirect names

    @property
    def dial(self) -> "Any":
        """The dial of the latest attempt."""
        return self._other or self._dials[self._turn % len(self._dials)]

    def new_client(self, settings: "Settings") -> "Any":
        self._is_stopped = False
        return Guarded(
            self,
            name=self._name,
            send_size=settings.buffer_size + 2048,
            heartbeat_s=settings.heartbeat_seconds,
            open_timeout_ms=LATER_MS + int(settings.connect_seconds * 1000),
            timeout_s=SESSION_S,
            **self.dial.login(),
        )

    def _waited_for(self) -> str:
        if self._dialling or self.client.state != "start":
            return Side._waited_for(self)
        return "no connection was made" if len(self.client.pending()) else "connected, but no AMQP broker speaks"

    # Opening

    def opened(self) -> None:
        goes_on = self.transfers.opened(self.client, lambda name: name in self.bridge.mover.records)
        self._tell_how_often(goes_on)
        Side.opened(self)

    def _tell_how_often(self, goes_on: bool) -> None:
        """Say, when it has changed, what a lost connection may lead to."""
        if goes_on or self.connections == 0:
            why = ""
        elif self.bridge.mover.dense:
            why = "the session has not outlived its connection: in doubt a message arrives twice, with the same x-gateway and x-sequence"
        else:
            why = "the session has not outlived its connection: in doubt a message arrives twice"
        if why and why != self._last_reason:
            self._last_reason = why
            self.say("%s: %s" % (self.place(), why))

    def _look_for_exchange(self) -> "bool | None":
        if not self.settings.exchange:
            return None
        self._question = self.transfers.give("exchange_query", {"name": self.settings.exchange})
        return self._question >= 0

    def _answered_about_exchange(self, value: "bytes | None") -> None:
        octets = value or b""
        fields = structs.read(RESULT, len(octets).to_bytes(4, "big") + octets, 0, 4 + len(octets))[0]
        self._question = -1
        if fields["not_found"]:
            self.cut("exchange %r is not there: make it there, or set exchange to one that it has" % self.settings.exchange)
        else:
            self.answered()

    def command(self, name: str, fields: "dict[str, Any]") -> None:
        if name == "execution_result" and fields["command_id"] == self._question:
            self._answered_about_exchange(fields["value"])
        elif name == "message_stop" and not self._is_stopped:
            self._is_stopped = True
            self.bridge.count("flow_stopped")
            self.say("%s takes no messages for now: message.stop" % self.place())
        elif name == "message_flow" and self._is_stopped:
            self._is_stopped = False
            self.say("%s takes messages again" % self.place())
            self.bridge.target_accepts_again()
        else:
            self.transfers.command(name, fields)

    def completed(self, id_: int) -> None:
        self.transfers.completed(id_)

    def room(self) -> None:
        self.transfers.room()

    def numbers_begin_anew(self) -> None:
        """Forget the transfers on their way: the source numbers its messages anew."""
        self.transfers.forget()

    def lost(self, reason: str) -> None:
        """Connect to the place that a redirect names, once for each attempt."""
        was_redirected = self._other is not None
        redirects = [] if self.client is None or was_redirected else self.client.redirects
        Side.lost(self, reason)
        self._other = None
        if redirects:
            self._turn -= 1
            self._other = type(self.dial)(redirected(self.dial.url, redirects[0]))
            self.again_at = now_ms()

    # Messages

    def put(self, record: "Any") -> int:
        """Send a record of the mover: its number, 0 without room."""
        key, octets = record.marked
        try:
            number: int = self.transfers.send(record.number, upstream.header(BASIC, octets, key), record.body)
            return number
        except (ValueError, ProtocolError) as error:
            record.reason = str(error)
            return -1

    def _settled(self, number: int, reason: str) -> None:
        record = self.bridge.mover.flight.get(number)
        if reason and record is not None:
            record.reason = "upstream has refused it: %s" % reason
            self.say("%s refuses messages (%s); trying again" % (self.place(), reason))
        self.bridge.confirmed(number, not reason)

    def work(self, now: int) -> None:
        """Report transfers that upstream had completed before the bridge sent them again."""
        if self.ready:
            self.transfers.tell()

    def stopped(self) -> str:
        """The reason why upstream accepts no message now, or ""."""
        return "message.stop" if self.ready and self._is_stopped else ""
