"""One connection of a bridge, kept up: dialled, opened step by step, then ready; the side tells the reason of an end once, and tries again.

Laws
- A step is one request to the broker; the next step waits for its answer. All steps, from the dial on, have `connect_seconds`.
- Pauses are decorrelated jitter (core/bridge/backoff.py), and start with the shortest again only after a connection that held for a stable
minute.
- A new connection has a client of its own: no octet of the old stream can reach it.
"""

from random import getrandbits

from ...core.amqp_0_9.client.client import Client, Events
from ...core.bridge.backoff import Backoff
from ...core.shim import after, elapsed, report
from ..clock import now_ms

if False:  # for the type checker alone
    from typing import Any, Callable

    from .bridge import Bridge
    from .settings import Settings

LATER_MS = 1000  # `tend` checks connect_seconds first: it knows which answer is late


def guarded(client: "Any", method: "Callable[[Any, int], None]", given: int) -> None:
    """Call a client's method. Its errors end this connection alone: the loop, and a broker in this process, go on."""
    try:
        method(client, given)
    except Exception as error:  # an error of our own costs this connection alone
        client.events.broke(error)


class Guard:
    """The methods that a guarded client has before those of its family's client, `client_class`."""

    client_class: "Any"

    def received(self, n: int) -> None:
        guarded(self, self.client_class.received, n)

    def sent(self, n: int) -> None:
        guarded(self, self.client_class.sent, n)

    def tick(self, now: int) -> None:
        guarded(self, self.client_class.tick, now)


class Guarded(Guard, Client):
    """The guarded client of AMQP 0-9-1."""

    client_class = Client


class Side(Events):
    """`bridge`: the owner of its reports; `role`: "source", "upstream" ... for messages; `dials`: tried in turn. A subclass fills `steps`.

    A step is a function of no arguments: true when its request is in the send buffer, false when there was no room, None when no
    request is needed.
    """

    channel_count = 1
    guarded: "Any" = Guarded  # class of its clients

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        self.bridge = bridge
        self.role = role
        self.settings = settings
        self.steps: "list[Callable[[], Any]]" = []
        self.client: "Any" = None
        self.ready = False
        self.over = True  # no connection, and none being made
        self.again_at: int | None = now_ms()  # when the next attempt is due
        self.connections = 0
        self.epoch = 0  # attempts so far: answers to an older one are void
        self.last_error = ""
        self._dials = dials
        self._turn = 0
        self._dialling = False
        self._connected = False
        self._step = 0
        self._asked = False
        self._began_at = 0
        self._ready_at: "int | None" = None
        self._said: "str | None" = None
        self._backoff = Backoff(int(settings.reconnect_seconds_min * 1000), int(settings.reconnect_seconds_max * 1000))

    @property
    def dial(self) -> "Any":
        """The dial of the latest attempt."""
        return self._dials[self._turn % len(self._dials)]

    @property
    def pipe(self) -> "Any":
        """The Pipe of a connection inside this process, or None."""
        return self.dial.pipe if self._connected else None

    def place(self) -> str:
        """The name of this side, for sentences to the operator."""
        return "%s %s" % (self.role, self.dial.place)

    # Time

    def tend(self, loop: "Any", now: int) -> None:
        """Do the work that is due: a new connection, the next step, giving up."""
        if self.ready:
            if self._ready_at is not None and elapsed(now, self._ready_at) > self.settings.stable_ms:
                self._backoff.reset()
                self._ready_at = None
        elif self.over:
            if self.again_at is None:
                self.again_at = after(now, self._backoff.next_ms(getrandbits(30)))
            elif elapsed(now, self.again_at) >= 0:
                self._connect(now)
        elif self._dialling:
            self._finish_dial(loop)
        elif self.client.state == "open":
            self._go_on()
        if not self.ready and not self.over and elapsed(now, self._began_at) > self.settings.connect_seconds * 1000:
            self.cut("not ready in %s s: %s" % (self.settings.connect_seconds, self._waited_for()))

    def _waited_for(self) -> str:
        """The name of the answer that has not come, for sentences to the operator."""
        if self._dialling:
            return "the host's address is not known yet"
        if self.client.state != "start":
            return {"tune": "it does not answer the log-in", "opening": "it does not open the virtual host"}.get(
                self.client.state, "it does not answer a request"
            )
        return "connected, but no AMQP broker speaks" if self.client.output.is_empty() else "no connection was made"

    def _connect(self, now: int) -> None:
        self.again_at = None  # after an error here the side tries again after a pause too
        self.epoch += 1
        self._connected = False
        self._step = 0
        self._asked = False
        self._began_at = now
        self.client = self.new_client(self.settings)
        self.over = False
        self._dialling = True
        self.dial.begin()

    def new_client(self, settings: "Settings") -> "Any":
        """Make the client of a new connection."""
        return self.guarded(
            self,
            receive_size=settings.buffer_size,
            send_size=settings.buffer_size + 2048,
            frame_size_max=settings.frame_size_max,
            channel_count=self.channel_count,
            content_size_max=self.bridge.content_size_max,
            heartbeat_s=settings.heartbeat_seconds,
            confirm_window=settings.prefetch * 2 + 16,
            open_timeout_ms=LATER_MS + int(settings.connect_seconds * 1000),
            **self.dial.login(),
        )

    def _finish_dial(self, loop: "Any") -> None:
        try:
            done = self.dial.finish(loop, self.client)
        except OSError as error:
            self.ended(0, str(error))
            return
        if done:
            self._dialling = False
            self._connected = True

    def _go_on(self) -> None:
        """Do steps until one has to wait for its answer."""
        while not self._asked and not self.ready and not self.over:
            if self._step == len(self.steps):
                self._become_ready()
                return
            step = self.steps[self._step]
            self._step += 1
            asked = step()
            if asked is None:
                continue
            self._asked = True
            if not asked:
                self._step -= 1
                self._asked = False
                return

    def _become_ready(self) -> None:
        self.ready = True
        self.connections += 1
        self._ready_at = now_ms()
        self.say("%s is ready" % self.place())
        self.bridge.side_ready(self)

    def answered(self) -> None:
        """End the step that waits for an answer."""
        self._asked = False
        self._go_on()

    # Reports of the client

    def opened(self) -> None:
        self._go_on()

    def replied(self, channel: "Any", name: str, arguments: "Any") -> None:
        if self.ready:
            self.answered_later(channel, name, arguments)
        else:
            self.check_answer(name, arguments)
            self.answered()

    def check_answer(self, name: str, arguments: "Any") -> None:
        """Check the answer to a step."""

    def answered_later(self, channel: "Any", name: str, arguments: "Any") -> None:
        """Process the answer to a request after the steps."""

    def channel_closed(self, channel: "Any", code: int, text: str) -> None:
        self.bridge.keeper.channel_closed(channel, code)
        self.cut("%d %s" % (code, text))

    def ended(self, code: int, text: str) -> None:
        if self.over:
            return
        self.over = True
        self.lost(self.dial.failure() or "%s%s" % ("%d " % code if code else "", text))

    def acknowledge(self, delivery: "Any") -> bool:
        """Tell the source, this side, that a delivery is done: false when there is no room now. A delivery of an older connection needs no
        acknowledgement."""
        if delivery.epoch != self.epoch:
            return True
        return self.ready and self.acknowledge_now(delivery)

    def acknowledge_now(self, delivery: "Any") -> bool:
        """Acknowledge a delivery of this connection: false when there is no room now."""
        done: bool = self.client.channels[delivery.channel].basic_ack(delivery.tag)
        return done

    def numbers_begin_anew(self) -> None:
        """Note that the source numbers its messages anew from here on."""

    def in_order(self) -> bool:
        """True for an upstream that messages go to in one lane."""
        return False

    def asks_for_position(self) -> bool:
        """True for an upstream that waits for the source's position to be in the log."""
        return False

    def broke(self, error: Exception) -> None:
        """Note an error of our own."""
        report(error)
        self.bridge.count("internal_errors")
        self.cut("an error of ours: %r" % (error,))

    def cut(self, reason: str) -> None:
        """Give this connection up at once."""
        if not self.over:
            self.over = True
            self.lost(reason)
            self.client.received(0)
        elif not self.ready and self.client is None:
            self.last_error = "%s: %s" % (self.place(), reason)

    def void(self) -> None:
        """Drop the connection in any state, and try again after a pause."""
        self.over = True
        self.ready = self._dialling = False
        self.again_at = None

    def lost(self, reason: str) -> None:
        """Tell why the connection ended, and try again after a pause, at the next place."""
        self.ready = False
        self.again_at = None
        if not self.bridge.stopping:
            self.last_error = "%s: %s" % (self.place(), reason)
        self._turn += 1  # behind the sentence, which names the place that was lost
        self.bridge.side_lost(self)
        if not self.bridge.stopping:
            self.say(self.last_error + "; trying again")

    def say(self, sentence: str) -> None:
        """Say a sentence to the operator, unless it equals the last one."""
        if sentence != self._said:
            self._said = sentence
            self.bridge.say(sentence)
