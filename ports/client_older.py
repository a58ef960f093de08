"""The blocking client (ports/client.py) over AMQP 0-8 and 0-9, which have no confirms: `publish` returns when the broker has committed.

    client = connect("amqp://guest:guest@127.0.0.1:5672/?protocol=0-8")     of ports/client.py

Messages of `publish` go out in transactions on a second channel, so that acknowledgements on the first are at once as ever. With
`confirm=False` they wait for `wait_confirmed`, or a `publish` with it, to be committed. There is no nack, and no confirm_select.
"""

from ..core.amqp_0_9.client.older import Client08, Client09
from .client import Connection
from .client_errors import ChannelClosed

if False:  # for the type checker alone
    from typing import Any


class ConnectionOlder(Connection):
    """An open connection with two channels."""

    client_class: "Any"
    _sent = 0  # messages since the last commit

    def new_client(self, **settings: "Any") -> "Any":
        return self.client_class(self, channel_count=2, **settings)

    def channel_closed(self, channel: "Any", code: int, text: str) -> None:
        Connection.channel_closed(self, channel, code, text)
        if channel.number == 2:
            self._sent = 0

    def _look(self) -> None:
        if isinstance(self._error, ChannelClosed):
            self._raise()

    @property
    def ticket(self) -> int:
        """The access ticket of the channel, which it opens."""
        self._open_channel()
        ticket: int = self._channel.ticket
        return ticket

    def _open_channel(self) -> None:
        was_closed = self._channel.state == "closed"
        Connection._open_channel(self)
        if was_closed:
            self._answer(self._channel.access_request)

    def _open_sender(self) -> "Any":
        """The channel of publishes, open and in a transaction."""
        self._open_channel()
        sender = self._client.channels[2]
        if sender.state == "closed":
            self._wait(sender.open)
            self._wait(lambda: sender.state != "opening")
            self._answer(sender.access_request)
            self._begin(sender)
        return sender

    def _begin(self, sender: "Any") -> None:
        """Let the channel have transactions."""
        self._answer(sender.tx_select)

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: "bytes | bytearray | memoryview",
        properties: "Any" = None,
        mandatory: bool = False,
        confirm: bool = True,
    ) -> None:
        """Publish; with `confirm` return when the broker has committed the message, else when it is in the send buffer.

        Raises ChannelClosed (the broker refuses it: all since the last commit is void), Unroutable (with `mandatory`), Timeout.
        """
        sender = self._open_sender()
        if not sender.basic_publish(exchange, routing_key, body, properties, mandatory):
            self._wait(lambda: sender.basic_publish(exchange, routing_key, body, properties, mandatory))
        self._sent += 1
        if confirm:
            self.wait_confirmed()
        else:
            self.step(0)
            self._raise()

    def wait_confirmed(self) -> None:
        """Commit what was published. What comes back may do so behind a commit-ok, so a second one, of nothing, ends the wait."""
        if self._sent:
            sender = self._client.channels[2]
            self._sent = 0
            self._answer(sender.tx_commit)
            self._answer(sender.tx_commit)
        else:
            self._check_open()

    @property
    def unconfirmed(self) -> int:
        """Messages published and not yet committed."""
        return self._sent


class Connection08(ConnectionOlder):
    """Over 0-8."""

    client_class = Client08


class Connection09(ConnectionOlder):
    """Over 0-9."""

    client_class = Client09


CONNECTIONS = {"0-8": Connection08, "0-9": Connection09}
