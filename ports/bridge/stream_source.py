"""The source of a bridge upwards: a stream of the local Leveret, its own outbox or the user's (core/DESIGN.md, the bridge).

    channel 1  the first lane: from the position that the stream keeps under the bridge's name
    channel 2  the live lane: a second reader that starts at the end when the uplink comes back to a large backlog
    channel 3  requests (move from the queue, facts, status) and the refused queue

Laws: the mover drops messages that come by both lanes; the live lane ends when the first has come as far. Another stream than
before has other numbers: the bridge forgets all records. A jump in the first lane shows messages that retention dropped: counted and told.
"""

from ...core.amqp_0_9.packed import unpack
from ...core.bridge.mover import LIVE, REPLAY, Delivery
from ...core.message.formats import BASIC, NUMBER
from ...core.shim import after, elapsed
from ..clock import now_ms
from .keeper import Keeper
from .side import Side

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

FIRST_TAG, LIVE_TAG = "bridge", "bridge-live"
PACK_RECORDS = 100
MOVE_COUNT = 500
IDLE_MS = 25  # between two moves when the queue was empty
REPORT_MS = 1000

OFF, STARTING, ON, ENDING = 0, 1, 2, 3


class StreamSource(Side):
    """`stream`: its name; `queue`: the queue whose messages move into it first, or None."""

    channel_count = 3

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side.__init__(self, bridge, role, dials, settings)
        self.stream = settings.outbox or settings.stream
        self.queue = settings.queue
        self.keeper = Keeper(self, 3, settings.refused)
        self.pack_records = max(1, min(PACK_RECORDS, settings.prefetch // 4))
        self.live = OFF
        self.restart_live = False
        self.facts: "Any" = None  # the last answer to a "bridge" request
        self.first_next = 0  # the next offset of the first lane
        self.live_next = 0
        self.safe = 0  # the position that the stream has in its log: after a power cut nothing in front of it comes again
        self._noted: "list[tuple[int, int]]" = []  # (record of the log, position in it), not known to be synced
        self._stream_id = None
        self._as_it_is = False  # the outbox was made with other arguments
        self._due = 0
        self._report_at: "int | None" = None
        self.steps = self.keeper.steps(True) + [lambda: self.client.channels[1].open(), lambda: self.client.channels[2].open()]
        self.steps += [self._declare, self._look_for_queue, self._ask_facts]
        deliveries = max(2, settings.prefetch // self.pack_records)
        self.steps += [
            lambda: self.client.channels[1].basic_qos(deliveries),
            lambda: self.client.channels[2].basic_qos(deliveries),
            self._consume,
        ]

    # Opening

    def _declare(self) -> "Any":
        channel = self.keeper.channel
        if self.settings.outbox is None or self._as_it_is:
            return channel.queue_declare(self.stream, passive=True)
        return channel.queue_declare(self.stream, durable=True, arguments=self.settings.outbox_arguments())

    def _look_for_queue(self) -> "Any":
        return None if self.queue is None else self.keeper.channel.queue_declare(self.queue, passive=True)

    def _ask_facts(self) -> bool:
        return self.keeper.ask(self._request(0), self._first_facts)

    def _first_facts(self, answer: "dict[str, Any]") -> None:
        """Choose the offset at which the bridge goes on, from the stream's first facts."""
        if not answer["ok"]:
            self.cut(answer["error"])
            return
        self.facts = answer
        self.live = OFF
        self.bridge.mover.live = False
        if self._stream_id not in (None, answer["id"]):
            self.say("%s: stream %r is another one than before: its numbers begin anew" % (self.place(), self.stream))
            self.safe = 0
            self.bridge.numbers_begin_anew()
        self._noted = []  # a log that begins anew counts its records anew
        self._stream_id = answer["id"]
        self.bridge.gateway_of(answer)
        self._start_at(answer["first"] if answer["position"] is None else answer["position"])
        self.answered()

    def _start_at(self, position: int) -> None:
        first = self.facts["first"]
        if position < first:
            self._lost_to_retention(position, first)
        self.first_next = max(position, first)

    def _consume(self) -> "Any":
        arguments = {
            "x-stream-offset": ("l", self.first_next),
            "x-stream-consumer": self.settings.name,
            "x-stream-pack-records": self.pack_records,
            "x-stream-pack-octets": self.settings.buffer_size,
        }
        return self.client.channels[1].basic_consume(self.stream, FIRST_TAG, arguments=arguments)

    # Deliveries

    def delivered(self, message: "Any") -> None:
        if message.channel.number == 3:
            self.keeper.delivered(message)
            return
        if self.bridge.stopping:
            return
        records = unpack(message.body)
        if [record for record in records if record[6] & NUMBER != BASIC]:
            self.cut("stream %r has messages of a format that this bridge does not know" % self.stream)
            return
        lane = REPLAY if message.channel.number == 1 else LIVE
        offset = records[0][0]
        end = offset + len(records)
        if lane == REPLAY:
            if offset > self.first_next:
                self._lost_to_retention(self.first_next, offset)
            self.first_next = max(end, self.first_next)
        else:
            self.live_next = max(end, self.live_next)
        delivery = Delivery(message.channel.number, message.delivery_tag, self.epoch, offset, len(records))
        mover = self.bridge.mover
        for number, arrived, exchange, key, octets, body, _ in records:
            mover.record(lane, number, exchange, key, octets, body, delivery, arrived)

    def _lost_to_retention(self, expected: int, offset: int) -> None:
        """Count and report the offsets that retention dropped, but for those that the live lane has sent meanwhile."""
        mover = self.bridge.mover
        missing = [
            number
            for number in range(expected, min(offset, expected + 100000))
            if number not in mover.records and not mover.done.has(number)
        ]
        count = len(missing) + max(0, offset - expected - 100000)
        if count:
            self.bridge.count("dropped_unsent", count)
            self.say(
                "%s: %d messages of stream %r were dropped by its retention before they were sent" % (self.place(), count, self.stream)
            )

    def refused(self, message: "Any", text: str) -> None:
        self.bridge.count("too_large")
        self.say("%s: messages stay in stream %r, they are too large for the bridge: %s" % (self.place(), self.stream, text))

    def returned(self, message: "Any") -> None:
        self.cut("it does not answer bridges: where they send from they need a Leveret with management (or no gateway: no numbers)")

    def confirmed(self, channel: "Any", sequence: int, positive: bool) -> None:
        self.bridge.keeper_confirmed(sequence, positive)

    def cancelled(self, channel: "Any", consumer_tag: str) -> None:
        self.cut("the stream was deleted")

    # The live lane

    def uplink_back(self) -> None:
        """Note that upstream accepts messages again. After a large backlog, messages published from here on go first, in the live lane."""
        if not self.ready or self.facts is None or self.bridge.target.in_order():
            return
        behind = self.facts["next"] - (self.live_next if self.live == ON else self.first_next)
        if behind > self.settings.prefetch:
            if self.live == OFF:
                self._begin_live()
            elif self.live == ON:
                self.restart_live = True
                self._end_live()

    def _begin_live(self) -> None:
        arguments = {
            "x-stream-offset": "next",
            "x-stream-pack-records": self.pack_records,
            "x-stream-pack-octets": self.settings.buffer_size,
        }
        channel = self.client.channels[2]
        if not channel.waiting and channel.basic_consume(self.stream, LIVE_TAG, arguments=arguments):
            self.live = STARTING
            self.live_next = self.facts["next"]
            self.bridge.mover.live = True

    def _end_live(self) -> None:
        channel = self.client.channels[2]
        if not channel.waiting and channel.basic_cancel(LIVE_TAG):
            self.live = ENDING

    def answered_later(self, channel: "Any", name: str, arguments: "Any") -> None:
        if channel.number != 2:
            return
        if name == "basic_consume_ok":
            self.live = ON
        elif name == "basic_cancel_ok":
            self.live = OFF
            self.bridge.mover.live = False
            if self.restart_live:
                self.restart_live = False
                self._begin_live()

    # What is due

    def work(self, now: int) -> None:
        """Ask the broker for moves and facts; end the live lane when it is not ahead any more."""
        if not self.ready:
            return
        if self.keeper.late(now):
            self.cut("no answer to a request in 20 s")
            return
        if self.live == ON and self.first_next >= self.live_next and self.first_next >= self.facts["next"]:
            self._end_live()
        if self.keeper.busy() or self.bridge.stopping:
            return
        reports = self._report_at is None or elapsed(now, self._report_at) >= REPORT_MS
        notes = self.bridge.target.asks_for_position()
        if reports or notes or self.queue is not None and elapsed(now, self._due) >= 0 and self.bridge.may_have(self.queue):
            request = self._request(MOVE_COUNT)
            request["note"] = reports or notes
            if reports and not self.bridge.inside():
                request["status"] = self.bridge.status()
            if reports:
                self._report_at = now
            self.keeper.ask(request, self._later_facts)
            self._due = after(now, IDLE_MS)

    def _request(self, count: int) -> "dict[str, Any]":
        return {
            "request": "bridge",
            "name": self.settings.name,
            "stream": self.stream,
            "consumer": self.settings.name,
            "queue": self.queue,
            "count": count,
            "status": None,
        }

    def _later_facts(self, answer: "dict[str, Any]") -> None:
        if not answer["ok"]:
            self.cut(answer["error"])
            return
        self.facts = answer
        if answer["position"] is not None:
            self.bridge.mover.done.forget_below(answer["position"])
            self._note(answer)
        if answer["moved"]:
            self._due = now_ms()  # there may be more

    def _note(self, answer: "dict[str, Any]") -> None:
        """Note how far the log has the stream's position; a broker without a log has none to come back to."""
        if not answer["logged"]:
            self.safe = answer["position"]
            return
        if answer.get("noted") is not None:
            self._noted.append((answer["noted"], answer["position"]))
        while self._noted and self._noted[0][0] <= answer["synced"]:
            self.safe = self._noted.pop(0)[1]

    def channel_closed(self, channel: "Any", code: int, text: str) -> None:
        if code == 406 and self.settings.outbox is not None and "arg" in text and not self.ready:
            self._as_it_is = True
            text += "; it stays as it was made until it is empty and deleted"
        Side.channel_closed(self, channel, code, text)

    def hindrance(self) -> str:
        """The reason why the source brings no message, or ""."""
        facts = self.facts
        if not facts["queued"] or facts["moved"] or facts["next"] != (facts["first"] if facts["position"] is None else facts["position"]):
            return ""
        return " (the broker here has no room to move them from %r to %r: raise disk_max or what else is full)" % (self.queue, self.stream)

    def stop(self) -> None:
        """Nothing to do: messages without a confirm stay in the stream."""

    def ended(self, code: int, text: str) -> None:
        self.live = OFF
        self.bridge.mover.live = False
        self.keeper.forget()
        Side.ended(self, code, text)

    def backlog(self) -> "dict[str, Any]":
        """Figures of the messages not yet sent, by name, from the broker's last answer; {}: no answer has come."""
        facts = self.facts
        if facts is None:
            return {}
        position = facts["position"] if facts["position"] is not None else facts["first"]
        held = facts["next"] - facts["first"]
        waiting = facts["next"] - position + facts["queued"]
        octets = facts["octets"] * (facts["next"] - position) // held if held else 0
        return {
            "backlog": waiting,
            "backlog_octets": octets,
            "backlog_octets_max": facts["octets_max"],
            "oldest": facts["oldest"],
            "octets": facts["octets"],
            "position": position,
        }
