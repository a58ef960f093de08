"""A connection to a broker in this very process: two endpoints back to back, no socket (core/DESIGN.md section 1).

Laws: whoever owns it calls `pump` after each round of the broker; octets then go both ways as long as both sides have room, for a bounded
number of rounds. It ends when either side has closed and what it had to say is said.
"""

from ..core.connection.connection import Connection

if False:  # for the type checker alone
    from typing import Any

    from ..core.broker.broker import Broker

ROUNDS = 16


class Pipe:
    """`client`: the client's endpoint. The broker takes it for its own user (core/access/permissions.py, `inside`): nobody outside can be
    that."""

    def __init__(self, broker: "Broker", client: "Any", name: str) -> None:
        self.client = client
        user = broker.access.inside()
        self.connection = Connection(broker, name, True, "", lambda: (user,))
        self.over = False
        if self.connection.closed:
            self.end()

    def pump(self) -> bool:
        """Move what there is; true when something moved."""
        moved = False
        for _ in range(ROUNDS):
            if self.over:
                return moved
            there = carry(self.client, self.connection)
            back = carry(self.connection, self.client)
            if self.connection.closed and not len(self.connection.pending()) or self.client.closed and not len(self.client.pending()):
                self.end()
            if not there and not back:
                return moved
            moved = True
        return moved

    def tick(self, now: int) -> None:
        """Time passes."""
        if not self.over:
            self.client.tick(now)
            self.connection.tick(now)

    def end(self) -> None:
        """Both sides learn that the other has gone."""
        if not self.over:
            self.over = True
            self.client.received(0)
            self.connection.received(0)


def carry(sender: "Any", receiver: "Any") -> int:
    """Octets that went from one endpoint to the other."""
    pending = sender.pending()
    size = min(len(pending), len(receiver.writable()))
    if size:
        target = receiver.writable()[:size]
        target[:] = pending[:size]
        receiver.received(size)
        sender.sent(size)
    return size


class InsideDial:
    """A dial of ports/bridge/dial.py to `broker`, in this process."""

    place = "this broker"

    def __init__(self, broker: "Broker", name: str) -> None:
        self._broker = broker
        self._name = name
        self.pipe: Pipe | None = None

    def begin(self) -> None:
        """Begin nothing: a pipe has no address to look up."""

    def finish(self, loop: object, client: "Any") -> bool:
        """Connect."""
        self.pipe = Pipe(self._broker, client, self._name)
        if self.pipe.over:
            raise OSError("it takes no further connection: connection_count_max is %d" % self._broker.limits.connection_count_max)
        return True

    def failure(self) -> str:
        """Nothing is known."""
        return ""

    def login(self) -> dict[str, str]:
        """The log-in for core's Client."""
        return {"mechanism": "EXTERNAL", "virtual_host": self._broker.virtual_host}
