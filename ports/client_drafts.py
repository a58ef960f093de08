"""The blocking client (ports/client.py) over the drafts of 2005, 0.9a5 and 0.9r1: client_older.py's, with what they have in other ways.

    client = connect("amqp://guest:guest@127.0.0.1:5673/?protocol=0.9r1")     of ports/client.py, to a listener of that draft

Properties are a dict by the names of the draft's class jms. `qos` is for consumers to come; a consumer's tag is a number of the broker's.
0.9a5 does not say what no queue takes, so it has no mandatory messages. Neither has unbind, nor arguments of queues and consumers.
"""

from ..core.amqp_0_9.client.draft import Client9a5, Client9r1
from .client import Connection
from .client_older import ConnectionOlder

if False:  # for the type checker alone
    from typing import Any

CLASSES = {"direct": "destination", "topic": "wildname"}  # types of exchanges as 0.9a5 names them


class ConnectionOfDraft(ConnectionOlder):
    """The common part of the connections of both drafts."""

    def qos(self, prefetch_count: int, global_: bool = False) -> None:
        """Allow later consumers at most so many unacknowledged deliveries."""
        self._channel.prefetch = prefetch_count


class Connection9a5(ConnectionOfDraft):
    """Over 0.9a5."""

    client_class = Client9a5

    def queue_declare(self, *given: "Any", **named: "Any") -> "tuple[Any, ...]":
        """As of 0-9-1, without the default exchange that queue.assert-ok names."""
        name, _, messages, consumers = Connection.queue_declare(self, *given, **named)
        return name, messages, consumers

    def exchange_declare(self, exchange: str, type: str = "direct", *given: "Any", **named: "Any") -> None:
        """As of 0-9-1; direct and topic have 0.9a5's names."""
        Connection.exchange_declare(self, exchange, CLASSES.get(type, type), *given, **named)

    def tx_select(self) -> None:
        """Begin transactions. Raises ValueError on a connection that has asked for something: tx-mode is of a channel's opening."""
        if self._channel.state != "closed":
            raise ValueError("AMQP 0.9a5 has transactions from a channel's opening on")
        self._channel.transactional = True
        self._open_channel()

    def _begin(self, sender: "Any") -> None:
        """Nothing: its opening has begun it."""

    def _open_sender(self) -> "Any":
        self._client.channels[2].transactional = True
        return ConnectionOfDraft._open_sender(self)


class Connection9r1(ConnectionOfDraft):
    """Over 0.9r1."""

    client_class = Client9r1


CONNECTIONS = {"0.9a5": Connection9a5, "0.9r1": Connection9r1}
