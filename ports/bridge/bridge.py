"""A bridge: a source, a target, and between them the mover that decides (core/bridge/mover.py).

    bridge = Bridge(loop, Settings({...}), say, local=Url or Broker)
    while not bridge.stopped: loop.step(bridge.wait_ms()); bridge.step(); loop.deliver(); loop.arm()

Laws
- Nothing here waits: the loop's owner calls `step` after each round of it.
- The bridge settles a message at the source after upstream's confirm, or when the refused queue has it. In doubt it sends the message
  again.
- "running" means that messages move, or that there are none: the bridge connects a side anew that stands still for `stall_seconds`.
"""

from ...core.bridge.mover import Mover
from ...core.bridge.requests import keep
from ...core.shim import after, elapsed, report
from ..clock import now_ms, seconds
from ..pipe import InsideDial
from ..url import Url
from .keeper import Keeper
from .meter import Meter
from .sources import QueueSource
from .stream_source import StreamSource
from .target import Target

if False:  # for the type checker alone
    from typing import Any

    from .bridges import Say
    from .dial import NetworkDial
    from .settings import Settings
    from .side import Side

STOP_MS = 5000  # the longest wait for outstanding confirms at the end
CLOSE_MS = 2000  # and then for the brokers' close-ok
PART_AGAIN_MS = 1000

CONTENT_SIZE_MAX = 134217728  # octets of the largest message of a bridge in a process of its own
PACK_HEADS = 4096


class Bridge:
    """`local`: the Url of the local broker, or the Broker itself when it is in this process; `say(sentence)` tells the operator.

    `there`: dials to use instead of the settings' upstream (a board with a line of its own).
    """

    def __init__(self, loop: "Any", settings: "Settings", say: "Say", local: "Any", there: "list[Any] | None" = None) -> None:
        self.settings = settings
        self.say = say
        self.stopping = False
        self.counters = {"blocked": 0, "flow_stopped": 0, "stalls": 0, "dropped_unsent": 0, "too_large": 0, "internal_errors": 0}
        self._loop = loop
        self._stop_at: "int | None" = None
        self._moved_at = now_ms()
        self._last_error = ""  # of our own: the sentence that was said last
        self._owed: "list[Any]" = []  # Deliveries that are done, without room for their acknowledgement yet
        self.mover = Mover(
            settings.marks(),
            settings.up and not settings.plain,
            settings.refusal_attempts,
            settings.replay_messages_per_second,
            settings.replay_octets_per_second,
        )
        inside = not isinstance(local, Url)
        self.content_size_max = CONTENT_SIZE_MAX
        if inside:
            self.content_size_max = local.limits.content_size_max + local.limits.properties_size_max + PACK_HEADS
        here = [InsideDial(local, "bridge " + settings.name) if inside else network_dial(local)]
        if there is None:
            there = [network_dial(url) for url in settings.upstream_urls]
        if not settings.up:
            kind = getattr(settings.upstream_urls[0], "source", None)  # of another protocol
            if kind is None:
                self.source: "Any" = QueueSource(self, "upstream", there, settings, False)
            else:
                self.source = kind()(self, "upstream", there, settings)
            self.target: "Any" = LocalTarget(self, "local", here, settings)
        else:
            kind = getattr(settings.upstream_urls[0], "target", None)  # of another protocol
            self.target = (Target if kind is None else kind())(self, "upstream", there, settings)
            if settings.plain:
                self.source = QueueSource(self, "source", here, settings, True)
            else:
                self.source = StreamSource(self, "source", here, settings)
        self.keeper: Keeper = self.target.keeper if not settings.up else self.source.keeper
        self._inside = local if inside else None
        self.meter = Meter(self)

    def may_have(self, queue: str) -> bool:
        """False when the local broker is in this process and its queue is empty: then there is no need to ask."""
        inside = None if self._inside is None else self._inside.queues.get(queue)
        return inside is None or inside.message_count() > 0

    def inside(self) -> bool:
        """True when the local broker is in this process."""
        return self._inside is not None

    def count(self, name: str, by: int = 1) -> None:
        """Count an event that the mover does not see."""
        self.counters[name] += by

    # A round

    def step(self) -> bool:
        """Do all work that is due now; true when octets moved, which the loop is to send."""
        try:
            return self._step(now_ms())
        except Exception as error:  # one bridge never stops the broker, or another bridge
            self._broke(error)
            return False

    def _broke(self, error: Exception) -> None:
        """Make both connections anew after an error of our own, whose effects are unknown."""
        self.count("internal_errors")
        text = "an error of ours: %r" % (error,)
        if text != self._last_error:
            self._last_error = text
            report(error)
        for side in (self.source, self.target):
            try:
                side.cut(text)
            except Exception as worse:  # for any error this side begins anew
                report(worse)
                side.void()

    def _step(self, now: int) -> bool:
        moved = self._pump(now)
        if self.stopping:
            self._close_when_done(now)
        else:
            self.source.tend(self._loop, now)
            self.target.tend(self._loop, now)
            self.source.work(now)
            self.target.work(now)
        moved = self._move(now) or moved
        moved = self._pump(now) or moved
        if self.meter.tick(now) and self._inside is not None:
            keep(self._inside, self.settings.name, self.status())  # also of one that has no connection yet
        if not self.stopping:
            self._watch(now)
        return moved

    def _pump(self, now: int) -> bool:
        """Move the octets in the pipes; true when some moved: there may be more at once."""
        moved = False
        for side in (self.source, self.target):
            if side.pipe is not None:
                side.pipe.tick(now)
                moved = side.pipe.pump() or moved
        return moved

    def _move(self, now: int) -> bool:
        moved = False
        if self.target.ready and not self.stopping and not self.target.stopped():
            moved = self.mover.publish(now, self.target.put)
        if self.mover.parting and self._keeper_ready():
            self._part(now)
        if self.mover.settled:
            self._owed += self.mover.settled
            self.mover.settled = []
        while self._owed and self.source.acknowledge(self._owed[0]):
            self._owed.pop(0)
        if not self.source.ready:
            self._owed = []  # the source will deliver all of it again
        return moved

    def _keeper_ready(self) -> bool:
        return self.keeper.side.ready

    def _part(self, now: int) -> None:
        """Put messages that upstream refuses into the refused queue."""
        under_way = self.keeper.parting()
        for record in self.mover.parting:
            if record not in under_way and elapsed(now, record.due) >= 0 and not self.keeper.part(record):
                return

    def keeper_confirmed(self, number: int, positive: bool) -> None:
        """Note the local broker's answer for a publish of the keeper's."""
        record = self.keeper.pop(number)
        if record is None:
            return
        if positive and record in self.mover.parting:
            self.mover.parting.remove(record)
            self.mover.parted(record)
            self.say("a message that upstream does not take is in queue %r: %s" % (self.settings.refused, record.reason))
        else:
            record.due = after(now_ms(), PART_AGAIN_MS)

    def wait_ms(self) -> int:
        """How long the loop may wait at most."""
        if self.mover.retry or self.mover.live or not (self.source.ready and self.target.ready):
            return 10
        return 25 if self.settings.outbox and self._inside is None else 100

    # Reports of the sides

    def confirmed(self, number: int, positive: bool) -> None:
        """Note upstream's answer for one message; the reason of a refusal came before."""
        now = self._moved_at = now_ms()
        self.mover.confirmed(number, positive, now)

    def returned(self, message: "Any") -> None:
        """Note a message without a queue upstream."""
        self.mover.returned(message)

    def side_ready(self, side: "Side") -> None:
        """Note that a connection is open."""
        self._moved_at = now_ms()
        if self.target.ready:
            self.source.uplink_back()

    def target_accepts_again(self) -> None:
        """Note that upstream accepts messages again: the pause was an outage too."""
        self.source.uplink_back()

    def side_lost(self, side: "Side") -> None:
        """Note a lost connection: a source delivers unsettled messages again; a target is sent the unconfirmed ones again."""
        self._moved_at = now_ms()
        if side is self.source:
            self._owed = []
            self.mover.source_lost()
        elif not self.stopping:
            self.mover.target_lost()

    def numbers_begin_anew(self) -> None:
        """Begin numbers anew: the stream is another one."""
        self.mover.forget()
        self.target.numbers_begin_anew()

    def gateway_of(self, facts: "dict[str, Any]") -> None:
        """The gateway's name in messages: without a log numbers begin anew with each run, so each run is a gateway of its own."""
        if facts["logged"]:
            return
        name = "%s~%s" % (self.settings.gateway, facts["id"].rpartition("-")[2][-12:])
        if self.mover.marks.gateway != name.encode("utf-8"):
            self.mover.marks = self.settings.marks(name)
            self.say("the source keeps nothing on disk, its numbers begin anew with each start: messages carry x-gateway %s" % name)

    # Progress

    def _due(self) -> "tuple[Any, str]":
        """(the side whose turn it is, the reason) while both are ready and messages are to move; (None, "") while none are."""
        if not (self.source.ready and self.target.ready) or self.target.stopped():
            return None, ""
        if self.mover.flight:
            return self.target, "%d messages and no confirm" % len(self.mover.flight)
        if self.source.backlog().get("backlog") and not self.mover.records:
            return self.source, "there are messages and none has come" + self.source.hindrance()
        return None, ""

    def _watch(self, now: int) -> None:
        """Reconnect a side that has not moved a message for `stall_seconds`."""
        side, reason = self._due()
        if side is None:
            self._moved_at = now
        elif elapsed(now, self._moved_at) >= self.settings.stall_seconds * 1000:
            self._moved_at = now
            self.count("stalls")
            side.cut("%s for %s s" % (reason, self.settings.stall_seconds))

    @property
    def state(self) -> tuple[str, str]:
        """(the state in one word, the reason in a sentence)."""
        if self.stopping:
            return ("stopped" if self.stopped else "stopping"), ""
        now = now_ms()
        for side in (self.source, self.target):
            if not side.ready:
                pause_ms = elapsed(side.again_at, now) if side.over and side.again_at is not None else 0
                if pause_ms > 0:
                    until = seconds() + (pause_ms + 999) // 1000
                    return "backing off", "until %d (in %.1f s): %s" % (until, pause_ms / 1000, side.last_error)
                return "connecting", "%s%s" % (side.place(), "; before: " + side.last_error if side.last_error else "")
        stopped = self.target.stopped()
        if stopped:
            return "blocked", stopped
        if self.counters["too_large"] and not self.mover.flight and self.mover.records == {} and self.source.backlog().get("backlog"):
            return "stalled", "messages are too large for the bridge"
        refused = len(self.mover.retry) + len(self.mover.parting)
        if refused and self.mover.refusing:
            return "blocked", "%d messages are refused and tried again: %s" % (refused, self.mover.refusing)
        side, reason = self._due()
        if side is not None and elapsed(now, self._moved_at) > min(5000, self.settings.stall_seconds * 500):
            return "stalled", "%s for %.1f s" % (reason, elapsed(now, self._moved_at) / 1000)
        return "running", "live ahead of a replay" if self.mover.live else ""

    def status(self) -> "dict[str, Any]":
        """The bridge's state: a dict of words and numbers."""
        return self.meter.status()

    # The end

    def stop(self) -> None:
        """Accept no more, wait for the outstanding confirms (at most STOP_MS), then close both sides; `stopped` tells when."""
        self.stopping = True
        self._stop_at = after(now_ms(), STOP_MS)
        self.source.stop()

    @property
    def stopped(self) -> bool:
        """True when both connections have ended."""
        return self.stopping and self.source.over and self.target.over

    def _close_when_done(self, now: int) -> None:
        """Close when no confirm is outstanding or time is up; when time is up for closing too, leave."""
        late_ms = elapsed(now, self._stop_at)
        for side in (self.source, self.target):
            if side.over:
                continue
            if late_ms > CLOSE_MS or side.client.state == "ended":
                side.cut("closed")
            elif late_ms >= 0 or self.target.over or not (self.mover.flight or self._owed or self.mover.settled):
                side.client.close()


def network_dial(url: Url) -> "NetworkDial":
    """Make a dial over TCP or TLS. Only builds with sockets call this."""
    from .dial import NetworkDial

    return NetworkDial(url)


class LocalTarget(Target):
    """The local exchange of a bridge downwards, with the keeper beside it."""

    channel_count = 2

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Target.__init__(self, bridge, role, dials, settings)
        self.keeper = Keeper(self, 2, settings.refused)
        self.steps = self.keeper.steps(True) + self.steps
        self._report_at: "int | None" = None

    def confirmed(self, channel: "Any", sequence: int, positive: bool) -> None:
        if channel.number == 2:
            self.bridge.keeper_confirmed(sequence, positive)
        else:
            Target.confirmed(self, channel, sequence, positive)

    def delivered(self, message: "Any") -> None:
        self.keeper.delivered(message)

    def returned(self, message: "Any") -> None:
        if message.channel.number == 1:
            Target.returned(self, message)

    def work(self, now: int) -> None:
        """Report the bridge's state to the local broker."""
        if not self.ready or self.bridge.inside():
            return
        if self.keeper.late(now):
            self.cut("no answer to a request in 20 s")
        elif not self.keeper.busy() and (self._report_at is None or elapsed(now, self._report_at) >= 1000):
            self._report_at = now
            self.keeper.ask({"request": "report-bridge", "name": self.settings.name, "status": self.bridge.status()}, lambda answer: None)
