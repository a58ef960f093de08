"""The source of a bridge downwards when upstream speaks AMQP 1.0: a receiver from an address.

    setting          in AMQP 1.0
    queue            the address of the link's source
    {key}            the annotation x-routing-key, else the subject (core/amqp_1_0/downstream.py)

    accepted         the local broker has confirmed the message, or the bridge's refused queue has it

Where upstream keeps unsettled deliveries (client/recovering.py) each message arrives exactly once, as long as this bridge runs and the
local broker keeps its connection: what had come when a connection was lost is named in the next attach. Upstream does not send it anew
once it is accepted; the rest it resumes under the same tag, which this side has a number for, and the mover drops doubles by number.

Laws: nothing is accepted before the local broker has it; with an upstream that keeps nothing, each unsettled message comes again. A message
that class basic cannot have goes to the refused queue as it is, with the reason.
"""

from random import getrandbits

from ...core.amqp_0_9 import properties
from ...core.amqp_1_0 import downstream, exact
from ...core.amqp_1_0.client import recovering
from ...core.bridge.mover import REPLAY, Delivery
from ...core.errors import ProtocolError
from .side_1_0 import Side10

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

ATTACH_SIZE = 1024  # octets of an attach beside its map, which has to be one frame
HELD_SIZE = 24  # octets of a delivery in the map, with a tag of 18
HELD_LEAST = 8
PAIRED = {("symbol", "paired"): True}  # Leveret and RabbitMQ then say where a message was published to
KEY_MAX = 255


class Source10(Side10):
    """A receiver of messages; each gets a number, which it keeps while upstream has it unsettled."""

    setting = "queue"
    do = "receive"

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side10.__init__(self, bridge, role, dials, settings)
        self.receiver: "Any" = None
        self.keeps = False  # upstream keeps what is unsettled
        self._kept_by = ""  # the place whose deliveries `_numbers` has
        self._container = "leveret-%s-%08x" % (settings.name, getrandbits(30))
        self._numbers: "dict[bytes, int]" = {}  # delivery-tag -> number, of deliveries that are not accepted
        self._held_max = 0  # accepted deliveries that upstream has not settled
        self._gone = False  # the link that recovers nothing is being left
        self.steps = [self.ask_for_token, self._join, self._join_as_any_other]

    def address(self) -> "str | None":
        return self.settings.queue

    def is_looking(self) -> bool:
        return isinstance(self.receiver, recovering.RecoveringReceiver) and not self.ready

    def new_client(self, settings: "Settings") -> "Any":
        before = self.receiver
        client = self.connected_client(self._container, self.bridge.content_size_max, 8)
        self._gone = False
        options = dict(self.dial.url.capabilities(), name="%s down" % self._container, properties=PAIRED)
        if self.dial.place in self.keep_nothing:
            self.receiver = client.session.receiver(settings.queue, settings.prefetch, **options)
            return client
        self.receiver = recovering.receiver(client.session, settings.queue, **options)
        if isinstance(before, recovering.RecoveringReceiver) and self._kept_by == self.dial.place:
            self.receiver.undecided = before.undecided
            self.receiver.decided = before.decided
        return client

    # Opening

    def _join(self) -> bool:
        link = self.receiver
        named = sum([len(tag) + 6 for table in (link.undecided, link.decided) for tag in table]) if self.is_looking() else 0
        if named > HELD_SIZE * self._held_max * 3:
            self.say("%s: its delivery-tags are too long to be named again: messages on their way arrive twice" % self.place())
            link.undecided, link.decided = {}, {}
        self.asked_for_link = self.client.session.state == "mapped" and self.receiver.attach()
        return self.asked_for_link

    def _join_as_any_other(self) -> "bool | None":
        """Attach an ordinary link, because upstream keeps no deliveries."""
        if not self._gone:
            return None
        options = dict(self.receiver.options, name=self.receiver.name + " again")
        self.receiver = self.client.session.receiver(self.settings.queue, self.settings.prefetch, **options)
        return self._join()

    def attached(self, link: "Any") -> None:
        if link is not self.receiver:
            self.tokens.attached()
            return
        if not self.is_looking():
            self._begin(False)
            self.answered()
        elif link.keeps and self._window() >= HELD_LEAST:
            self._begin(True)
            self._forget_what_others_got()
            link.prefetch = self._window()
            link.add_credit(link.prefetch)
            self.answered()
        else:
            self.keep_nothing.add(self.dial.place)
            if not link.leave():
                self.cut("no room to leave a link")  # the next connection takes one as any other

    def _window(self) -> int:
        """Deliveries without an outcome at a time. A third of what the next attach can name; a third is for those that are accepted, and a
        third for what comes before it is resumed."""
        size_max = min(self.client.frame_size_max, self.settings.buffer_size)
        self._held_max = (size_max - ATTACH_SIZE) // HELD_SIZE // 3
        return min(self.settings.prefetch, self._held_max)

    def _begin(self, keeps: bool) -> None:
        """Start to receive on a link. Numbers of another upstream, or of one that no longer keeps deliveries, are dropped."""
        mover = self.bridge.mover
        if mover.dense and not (keeps and self._kept_by == self.dial.place):
            self.bridge.numbers_begin_anew()
            self._numbers = {}
        mover.dense = self.keeps = keeps
        self._kept_by = self.dial.place if keeps else ""
        self.tell_how_often(
            "it keeps unsettled deliveries: each message arrives exactly once while this bridge runs"
            if keeps
            else "it keeps no unsettled deliveries: in doubt a message arrives twice"
        )

    def _forget_what_others_got(self) -> None:
        """Drop messages not sent yet whose deliveries upstream does not have any more: another receiver may have got them."""
        mover = self.bridge.mover
        for tag in [tag for tag in self._numbers if tag not in self.receiver.undecided]:
            number = self._numbers.pop(tag)
            record = mover.records.get(number)
            for waiting in (mover.lanes[REPLAY], mover.retry):
                if record in waiting:
                    waiting.remove(record)
                    mover.complete(record)

    def detached(self, link: "Any", condition: str, text: str) -> None:
        is_left = link is self.receiver and self.is_looking() and self.dial.place in self.keep_nothing
        if is_left and not condition and not self.client.closed:
            self._gone = True
            self.answered()
        elif not (self.over or self.client.closed):  # else the connection is over, which is told
            self.cut(self.refusal(link.address, condition, text))

    # Messages

    def delivered(self, message: "Any") -> None:
        if message.link is not self.receiver:
            self.tokens.delivered(message)
            return
        mover = self.bridge.mover
        if self.bridge.stopping:
            return
        delivery = Delivery(1, message, self.epoch, 0, 1)
        number = self._numbers.get(message.tag) if self.keeps else None
        reason = ""
        try:
            key, exchange, given, body = downstream.content(message.octets)
            octets = properties.encode({name: given[name] for name, _ in properties.PROPERTIES if name in given})
            if len(key) > KEY_MAX:
                reason = "its routing key has %d octets, of 255 at most" % len(key)
        except (ProtocolError, ValueError) as error:
            reason = "its sections cannot be read: %s" % error
        if reason:
            key, exchange, body = b"", b"", message.octets
            octets = properties.encode({"type": exact.ENCODED})
        mover.record(REPLAY, number, exchange, key, octets, body, delivery)
        if number is None:
            number = mover.counted
            if self.keeps:
                self._numbers[message.tag] = number
        record = mover.records.get(number)
        if reason and record is not None and record in mover.lanes[REPLAY]:
            mover.lanes[REPLAY].remove(record)
            record.reason = reason
            mover.parting.append(record)

    def refused(self, message: "Any", text: str) -> None:
        self.bridge.count("too_large")
        self.say("%s: a message stays at %r, it is too large for the bridge: %s" % (self.place(), self.settings.queue, text))

    def acknowledge_now(self, delivery: "Any") -> bool:
        message = delivery.tag
        if self.keeps and len(self.receiver.decided) >= self._held_max:
            return False
        if not self.receiver.settle(message):
            return False
        self._numbers.pop(message.tag, None)
        return True

    def settled(self, link: "Any", number: int, outcome: str, fields: "dict[str, Any]") -> None:
        if link is not self.receiver:
            self.tokens.sent(outcome)

    def credited(self, link: "Any") -> None:
        self.tokens.credited()

    def stop(self) -> None:
        """Stop the deliveries. Messages that have arrived can still be accepted."""
        if self.ready:
            self.receiver.prefetch = 0
            self.receiver.add_credit(-self.receiver.credit - self.receiver.owed)

    def work(self, now: int) -> None:
        """Put a token if one is due."""
        if self.ready and self.tokens is not None:
            self.tokens.work(now)

    def backlog(self) -> "dict[str, Any]":
        """{}: AMQP 1.0 does not say how many messages wait."""
        return {}

    def uplink_back(self) -> None:
        """Nothing to do: this source has one lane."""
