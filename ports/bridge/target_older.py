"""Where a bridge publishes when upstream speaks AMQP 0-8 or 0-9, which have no confirms: in transactions.

    tx.commit-ok, and a second one behind it    the messages of the first transaction leave the outbox
    basic.return before that                    the message is tried again, and goes to the refused queue after refusal_attempts
    channel.close                               nobody knows what was kept: all that is on its way is sent again, one by one, so that
                                                upstream's answer is about one message

Laws
- A message leaves the outbox behind its tx.commit-ok and never before. The tables do not say that what has no route comes back before the
  commit-ok (Qpid's brokers send it behind), so the transaction after it, of later messages or of none, has to be committed too.
- A transaction has BATCH messages at most, which every Leveret takes. No message goes out while one is being committed: to RabbitMQ that is
  an unexpected command, with which it closes the connection.
- A commit that was not answered is in doubt: its messages are sent again, with the same x-gateway and x-sequence.
"""

from ...core.amqp_0_9.client.older import Client08, Client09
from ...core.shim import const
from .side import Guard
from .target import Target

if False:  # for the type checker alone
    from typing import Any

    from .bridge import Bridge
    from .settings import Settings

BATCH = const(32)


class Guarded08(Guard, Client08):
    """The guarded client of 0-8."""

    client_class = Client08


class Guarded09(Guard, Client09):
    """The guarded client of 0-9."""

    client_class = Client09


class TargetOlder(Target):
    """A publisher with transactions."""

    def __init__(self, bridge: "Bridge", role: str, dials: "list[Any]", settings: "Settings") -> None:
        Target.__init__(self, bridge, role, dials, settings)
        self.steps = [self._open, self._ask_ticket, self._look_for_exchange, self._begin]

    def _open(self) -> "Any":
        self._asked_for = 0  # number of the last message of the commit that was asked for
        self._committed = 0  # that of the last commit-ok
        self._answered = 0  # that of the last message that has left the outbox
        return Target._open(self)

    def _ask_ticket(self) -> "Any":
        return self.channel.access_request()

    def _begin(self) -> "Any":
        return self.channel.tx_select()

    def put(self, record: "Any") -> int:
        """Publish a record of the mover: its number on the channel, 0 without room."""
        published = self.channel.published
        if self.channel.waiting or published - self._asked_for >= BATCH:
            return 0
        return Target.put(self, record)

    def work(self, now: int) -> None:
        """Commit the messages published since the last commit; without new ones commit once more, for messages that may be returned."""
        if self.ready and not self.channel.waiting and self._answered != self.channel.published and self.channel.tx_commit():
            self._asked_for = self.channel.published

    def answered_later(self, channel: "Any", name: str, arguments: "Any") -> None:
        """On tx.commit-ok, confirm the messages of the transaction before it."""
        while self._answered < self._committed:
            self._answered += 1
            self.answered_for(self._answered, True)
        self._committed = self._asked_for


class Target08(TargetOlder):
    """Over 0-8."""

    guarded = Guarded08


class Target09(TargetOlder):
    """Over 0-9."""

    guarded = Guarded09


TARGETS = {"0-8": Target08, "0-9": Target09}
