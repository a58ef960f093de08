"""Where a bridge publishes: the upstream exchange, or the local one for a bridge downwards."""

from .side import Side

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings


class Target(Side):
    """A publisher with confirms. The broker returns messages without a route (mandatory)."""

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Side.__init__(self, bridge, role, dials, settings)
        self.steps = [self._open, self._look_for_exchange, self._confirm]
        self.blocked_text: "str | None" = None
        self.exchange = settings.exchange.encode("utf-8")
        self._singly = 0  # messages that still go one by one, after upstream closed the channel with several on their way

    @property
    def channel(self) -> "Any":
        """The channel that the target publishes on."""
        return self.client.channels[1]

    def _open(self) -> "Any":
        self.blocked_text = None
        return self.channel.open()

    def _look_for_exchange(self) -> "Any":
        return self.channel.exchange_declare(self.exchange, passive=True) if self.exchange else None

    def _confirm(self) -> "Any":
        return self.channel.confirm_select()

    def put(self, record: "Any") -> int:
        """Publish a record of the mover: its number on the channel, 0 without room."""
        if self._singly and self.bridge.mover.flight:
            return 0
        key, octets = record.marked
        try:
            number: int = self.channel.basic_publish(self.exchange, key, record.body, octets, True)
            return number
        except ValueError as error:
            record.reason = str(error)
            return -1

    def work(self, now: int) -> None:
        """Nothing to do: this target works only when it publishes."""

    def stopped(self) -> str:
        """The reason why upstream accepts no message now, or ""."""
        if self.ready and self.client.blocked:
            return "connection.blocked: %s" % self.blocked_text
        if self.ready and not self.channel.flowing:
            return "channel.flow"
        return ""

    def confirmed(self, channel: "Any", sequence: int, positive: bool) -> None:
        if not positive:
            self.say("%s refuses messages; trying again" % self.place())
        self.answered_for(sequence, positive)

    def answered_for(self, number: int, positive: bool) -> None:
        """Pass upstream's answer to a publish on to the bridge."""
        self._singly = max(0, self._singly - 1)
        self.bridge.confirmed(number, positive)

    def channel_closed(self, channel: "Any", code: int, text: str) -> None:
        """Find the message that upstream refused by closing the channel: the only one on its way, or else all go again one by one."""
        numbers = sorted(self.bridge.mover.flight) if self.ready and channel is self.channel else []
        if len(numbers) == 1:
            self.bridge.mover.flight[numbers[0]].reason = "upstream has refused it: %d %s" % (code, text)
            self.answered_for(numbers[0], False)
        else:
            self._singly = max(self._singly, len(numbers))
        Side.channel_closed(self, channel, code, text)

    def returned(self, message: "Any") -> None:
        self.say(
            "%s: exchange %r has no queue for routing key %r; the message is kept and tried again"
            % (self.place(), message.exchange, message.routing_key)
        )
        self.bridge.returned(message)

    def blocked(self, text: str) -> None:
        self.blocked_text = text
        self.bridge.count("blocked")
        self.say("%s takes no messages for now: %s" % (self.place(), text))

    def unblocked(self) -> None:
        self.blocked_text = None
        self.say("%s takes messages again" % self.place())
        self.bridge.target_accepts_again()

    def flow(self, channel: "Any", active: bool) -> None:
        if active:
            self.unblocked()
        else:
            self.bridge.count("flow_stopped")
            self.say("%s takes no messages for now: channel.flow" % self.place())
