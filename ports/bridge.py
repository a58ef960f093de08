"""The bridge: moves messages from a queue of one broker to an exchange of another, at least once, and loses none.

    source queue -> delivered -> published upstream with mandatory and confirms -> confirmed -> acknowledged at the source

Laws
- A message is acknowledged at the source only after the upstream's confirm for it. What comes back unroutable (basic.return) is kept
  and tried again after a pause; what the upstream refuses (basic.nack) goes back to its queue.
- Routing key, properties and body go on octet for octet. A doubt ends in a double, never in a loss: downstream tells doubles
  by message_id.
- At most `prefetch` messages are held. Either side lost: it is connected again, with a jittered backoff that starts over only after a
  connection that held for STABLE_MS.
- Both connections run in one loop (ports/tcp.py); nothing here waits.
"""

from random import getrandbits

from ..core.amqp_0_9.client import Client, Events
from ..core.amqp_0_9.client_channel import CLOSED, OPEN
from ..core.backoff import Backoff
from ..core.shim import after, elapsed
from .client import SIZES
from .clock import now_ms
from .url import read_url

RECONNECT_MS_MIN, RECONNECT_MS_MAX = 200, 30000
STABLE_MS = 10000  # a connection that held so long was a good one: the next loss starts with a short pause again
RETRY_MS = 1000  # pause before what was returned or refused is tried again
STOP_MS = 5000  # the longest wait for outstanding confirms at the end
CLOSE_MS = 2000  # and then for the brokers' close-ok
CONSUMER_TAG = "bridge"


class Side(Events):
    """One connection of the bridge, kept up: connects, opens its channel, asks its `steps` one after another, is then `ready`.

    `steps`: functions that queue one request each, true when it was queued. Whatever ends it is said once and tried again.
    """

    def __init__(self, bridge, role, url, steps):
        self.bridge = bridge
        self.role = role
        self._url = read_url(url)
        self.host, self.port = self._url.host, self._url.port
        self._steps = steps
        self._backoff = Backoff(RECONNECT_MS_MIN, RECONNECT_MS_MAX)
        self._step = 0
        self._said = None
        self._ready_at = None
        self.client = None
        self.channel = None
        self.ready = False
        self.over = True  # no connection, and none being made
        self.again_at = now_ms()  # when the next attempt is due
        self.connections = 0

    def connect(self, loop):
        """A new connection with a client of its own: nothing of the old stream can reach it."""
        self.over = False
        settings = dict(SIZES)
        settings.update(self._url.login())
        settings["send_size"] = settings["receive_size"] + 2048  # what came in with its header can go out with it
        self.client = Client(self, **settings)
        self.channel = self.client.channels[1]
        try:
            loop.connect(self.host, self.port, self.client)
        except OSError as error:
            self.ended(0, str(error))

    def tend(self, loop, now):
        """What is due now: a new connection, the channel, the next request."""
        if self.ready:
            if self._ready_at is not None and elapsed(now, self._ready_at) > STABLE_MS:
                self._backoff.reset()
                self._ready_at = None
        elif self.again_at is None:
            self.again_at = after(now, self._backoff.next_ms(getrandbits(30)))
        elif elapsed(now, self.again_at) >= 0:
            if self.over:
                self.connect(loop)
            elif self.client.state == "open":
                self._ask()

    def _ask(self):
        """The next request, when the one before is answered."""
        if self.channel.waiting:
            return
        if self.channel.state == CLOSED:
            self._step = 0
            self.channel.open()
        elif self.channel.state == OPEN and self._step < len(self._steps):
            self._steps[self._step](self.channel)

    def replied(self, channel, name, arguments):
        if name == "channel_open_ok":
            self._step = 0
        elif name == "basic_cancel_ok":
            return
        else:
            self._step += 1
        if self._step == len(self._steps):
            self.ready = True
            self.connections += 1
            self._ready_at = now_ms()
            self.say("%s is ready" % self.place())
        else:
            self._ask()

    def opened(self):
        self._ask()

    def channel_closed(self, channel, code, text):
        self.lost("%s: %d %s" % (self.place(), code, text))

    def ended(self, code, text):
        self.over = True
        self.lost("%s: %s%s" % (self.place(), "%d " % code if code else "", text))

    def lost(self, sentence):
        """Not ready any more: say why, and try again after a pause."""
        self.ready = False
        self.again_at = None
        self.bridge.side_lost(self)
        if not self.bridge.stopping:
            self.say(sentence + "; trying again")

    def say(self, sentence):
        """Tell the user, unless it was the last thing told."""
        if sentence != self._said:
            self._said = sentence
            self.bridge.say(sentence)

    def place(self):
        """Which side, for messages."""
        return "%s %s:%d" % (self.role, self.host, self.port)


class Source(Side):
    """The local side: a consumer of the queue."""

    def __init__(self, bridge, url, queue, prefetch):
        Side.__init__(self, bridge, "source", url, (
            lambda channel: channel.basic_qos(prefetch),
            lambda channel: channel.basic_consume(queue, CONSUMER_TAG),
        ))

    def delivered(self, message):
        if not self.bridge.stopping:
            self.bridge.waiting.append(message)

    def refused(self, message, text):
        self.say("%s: a message stays in its queue, it is too large for the bridge: %s" % (self.place(), text))

    def cancelled(self, channel, consumer_tag):
        self._step -= 1
        self.lost("%s: the queue was deleted" % self.place())


class Target(Side):
    """The upstream side: a publisher with confirms."""

    def __init__(self, bridge, url, exchange):
        steps = [lambda channel: channel.confirm_select()]
        if exchange:
            steps.insert(0, lambda channel: channel.exchange_declare(exchange, passive=True))
        Side.__init__(self, bridge, "upstream", url, steps)

    def confirmed(self, channel, sequence, positive):
        self.bridge.confirmed(sequence, positive)

    def returned(self, message):
        self.bridge.returned(message)

    def blocked(self, text):
        self.say("%s takes no messages for now: %s" % (self.place(), text))

    def unblocked(self):
        self.say("%s takes messages again" % self.place())


class Bridge:
    """`loop`: a ports/tcp.py Loop with two slots. Whoever runs the bridge calls `step` again and again.

    `say(sentence)` gets what the user should know. `routing_key` None: each message keeps its own.
    """

    def __init__(self, loop, source_url, queue, target_url, exchange, say, routing_key=None, prefetch=500):
        self.say = say
        self.waiting = []  # messages to be published, oldest first
        self.stopping = False
        self.bridged = 0
        self.returns = 0
        self.nacked = 0
        self._loop = loop
        self._exchange = exchange
        self._routing_key = routing_key
        self._unconfirmed = {}  # sequence number -> message; None: its source is lost, it will come again
        self._unroutable = []  # sequence numbers whose message came back, until their confirm comes
        self._kept = []  # messages that had no queue, to be tried again at _again_at
        self._again_at = None
        self._owed = []  # (true for ack, message): settlements that had no room yet
        self._resume_at = None  # nothing is published until then
        self._stop_at = None
        self.source = Source(self, source_url, queue, prefetch)
        self.target = Target(self, target_url, exchange)

    @property
    def unconfirmed(self):
        """Messages published upstream whose confirm is not here."""
        return len(self._unconfirmed)

    @property
    def state(self):
        """One word: connecting, running, blocked (upstream takes none), paused (after a return or nack), stopping, stopped."""
        if self.stopping:
            return "stopped" if self.stopped else "stopping"
        if not (self.source.ready and self.target.ready):
            return "connecting"
        if self.target.client.blocked:
            return "blocked"
        return "running" if self._resume_at is None and self._again_at is None else "paused"

    def status(self):
        """What the status line says."""
        connections = max(self.source.connections - 1, 0) + max(self.target.connections - 1, 0)
        return {"state": self.state, "bridged": self.bridged, "returned": self.returns, "nacked": self.nacked,
                "reconnects": connections, "unconfirmed": self.unconfirmed}

    def step(self, timeout_ms):
        """Move octets for at most `timeout_ms`, then messages as far as there is room, and what that made to be sent."""
        self._loop.step(timeout_ms)
        self._tick(now_ms())
        if not self.stopping:
            self._publish()
        self._settle()
        self._loop.deliver()
        self._loop.arm()

    def _tick(self, now):
        """What is due: connections, what waits for its pause to end, and the end itself."""
        if self.stopping:
            self._close_when_done(now)
            return
        self.source.tend(self._loop, now)
        self.target.tend(self._loop, now)
        self._resume(now)

    # The end.

    def stop(self):
        """Take no more messages, wait for the outstanding confirms (at most STOP_MS), then close both sides; `stopped` tells when."""
        self.stopping = True
        self._stop_at = after(now_ms(), STOP_MS)
        self.waiting = []
        self._kept = []
        if self.source.ready and not self.source.channel.waiting:
            self.source.channel.basic_cancel(CONSUMER_TAG)

    @property
    def stopped(self):
        """Both connections are over."""
        return self.stopping and self.source.over and self.target.over

    def _close_when_done(self, now):
        """Close when nothing is outstanding or time is up; when time is up for closing too, leave."""
        late_ms = elapsed(now, self._stop_at)
        for side in (self.source, self.target):
            if late_ms > CLOSE_MS:
                side.over = True
            elif not side.over and (late_ms >= 0 or self.target.over or not (self._unconfirmed or self._owed)):
                side.client.close()

    # Messages.

    def _publish(self):
        """As many waiting messages as the upstream takes now."""
        if not self.target.ready or self._resume_at is not None:
            return
        channel = self.target.channel
        while self.waiting:
            message = self.waiting[0]
            key = message.routing_key_octets if self._routing_key is None else self._routing_key
            sequence = channel.basic_publish(self._exchange, key, message.body, message.properties_octets, True)
            if not sequence:
                return
            self.waiting.pop(0)
            self._unconfirmed[sequence] = message

    def confirmed(self, sequence, positive):
        """The upstream's answer for one message."""
        message = self._unconfirmed.pop(sequence)
        unroutable = sequence in self._unroutable
        if unroutable:
            self._unroutable.remove(sequence)
        if not positive:
            self.nacked += 1
            self.target.say("%s refuses messages; trying again" % self.target.place())
            self._resume_at = after(now_ms(), RETRY_MS)
        if message is None:
            return
        if not positive or not unroutable:
            self.bridged += 1 if positive else 0
            self._owed.append((positive, message))
        elif not self.stopping:
            self._kept.append(message)
            if self._again_at is None:
                self._again_at = after(now_ms(), RETRY_MS)

    def returned(self, message):
        """A message had no queue upstream; which one it was must be told by its octets (the return carries no number)."""
        self.returns += 1
        self.target.say("%s: exchange %r has no queue for routing key %r; the message is kept and tried again" % (
            self.target.place(), message.exchange, message.routing_key))
        self._unroutable.extend(self._like(message))

    def _like(self, message):
        """The first unconfirmed message with the same octets; when there is none (a broker that re-encodes properties), all it can be."""
        candidates = []
        for sequence in sorted(self._unconfirmed):
            other = self._unconfirmed[sequence]
            if other is not None and sequence not in self._unroutable and other.body == message.body:
                if other.properties_octets == message.properties_octets and self._same_key(other, message):
                    return [sequence]
                candidates.append(sequence)
        return candidates or [sequence for sequence in self._unconfirmed if sequence not in self._unroutable]

    def _same_key(self, other, message):
        return self._routing_key is not None or other.routing_key_octets == message.routing_key_octets

    def _resume(self, now):
        """Publishing goes on after a refusal; kept messages go in front again."""
        if self._resume_at is not None and elapsed(now, self._resume_at) >= 0:
            self._resume_at = None
        if self._again_at is not None and elapsed(now, self._again_at) >= 0:
            self._again_at = None
            self.waiting = self._kept + self.waiting
            self._kept = []

    def _settle(self):
        """Acknowledge or give back at the source what it is owed."""
        channel = self.source.channel
        while self._owed and self.source.ready:
            positive, message = self._owed[0]
            put = channel.basic_ack(message.delivery_tag) if positive else channel.basic_nack(message.delivery_tag)
            if not put:
                return
            self._owed.pop(0)

    def side_lost(self, side):
        """Source: it will deliver again what was not acknowledged. Upstream: what is unconfirmed is published once more."""
        if side is self.source:
            self.waiting = []
            self._kept = []
            self._owed = []
            for sequence in self._unconfirmed:
                self._unconfirmed[sequence] = None
        elif not self.stopping:
            again = [self._unconfirmed[sequence] for sequence in sorted(self._unconfirmed)]
            again = [message for message in again if message is not None]
            self.waiting = again + self._kept + self.waiting
            self._kept = []
            self._unroutable = []
            self._unconfirmed = {}
