"""A bridge's source: a queue of any AMQP 0-9-1 broker, at least once and without numbers."""

from ...core.bridge.mover import REPLAY, Delivery
from .keeper import Keeper
from .side import Side

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

TAG = "bridge"


class QueueSource(Side):
    """A consumer of a queue. With `keeps` the refused queue is here (channel 2), else the other side has it."""

    channel_count = 2

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings", keeps: bool) -> None:
        Side.__init__(self, bridge, role, dials, settings)
        self.keeper = keeper = Keeper(self, 2, settings.refused) if keeps else None
        self.steps = [lambda: self.channel.open(), lambda: self.channel.basic_qos(settings.prefetch)]
        if keeper is not None:
            self.steps += keeper.steps(False)
        self.steps.append(lambda: self.channel.basic_consume(settings.queue, TAG))

    @property
    def channel(self) -> "Any":
        """The channel of the consumer."""
        return self.client.channels[1]

    def delivered(self, message: "Any") -> None:
        mover = self.bridge.mover
        if not self.bridge.stopping:
            mover.record(
                REPLAY,
                None,
                message.exchange_octets,
                message.routing_key_octets,
                message.properties_octets,
                message.body,
                Delivery(1, message.delivery_tag, self.epoch, 0, 1),
            )

    def refused(self, message: "Any", text: str) -> None:
        self.bridge.count("too_large")
        self.say("%s: a message stays in its queue, it is too large for the bridge: %s" % (self.place(), text))

    def confirmed(self, channel: "Any", sequence: int, positive: bool) -> None:
        self.bridge.keeper_confirmed(sequence, positive)

    def cancelled(self, channel: "Any", consumer_tag: str) -> None:
        self.cut("the queue was deleted")

    def stop(self) -> None:
        """Stop the deliveries."""
        if self.ready and not self.channel.waiting:
            self.channel.basic_cancel(TAG)

    def work(self, now: int) -> None:
        """Nothing to do: a queue source works only when a delivery arrives."""

    def backlog(self) -> "dict[str, Any]":
        """{}: AMQP 0-9-1 says how many messages wait only to who declares the queue again."""
        return {}

    def uplink_back(self) -> None:
        """Nothing to do: this source has one lane."""
