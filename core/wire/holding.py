"""What a protocol waits for, alike in the families whose Protocol is a Holding: room in the broker, the log, its connection's next turn."""

if False:  # for the type checker alone
    from typing import Any

# What writing came to.
NO_ROOM = 0
WRITTEN = 1
NOT_YET = 2  # the log is not durable that far


class Holding:
    """The base of a Protocol. `held`: whose complete message waits (a session, a link), or None."""

    broker: "Any"
    connection: "Any"
    held: "Any" = None

    def hold(self, holder: object) -> None:
        """The broker has no memory for a complete message of `holder`: read no more from this peer until it has."""
        self.held = holder
        if self.connection.reading:
            self.broker.counters["held"] += 1
        if self.connection not in self.broker.held:
            self.broker.held.append(self.connection)

    def hold_for_log(self, holder: object) -> None:
        """A message waits for a record in the log: read no more from this peer until the record is durable."""
        self.held = holder
        self.broker.journal.wait_for(self)

    def is_durable(self, number: int) -> bool:
        """True when the log is, up to `number`; else the journal has us go on when it is."""
        journal = self.broker.journal
        if journal is None or journal.durable(number):
            return True
        journal.wait_for(self)
        return False

    def go_on_later(self) -> bool:
        """Go on with the frame under way in the connection's next turn. Returns false."""
        self.connection.wait_for_turn()
        return False
