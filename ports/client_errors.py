"""What can go wrong for a client (ports/client.py): one class for each thing that a caller may want to treat differently."""

if False:  # for the type checker alone
    from typing import Any


class ClientError(Exception):
    """Anything that goes wrong here; str() is one sentence."""


class ConnectFailed(ClientError):
    """Nobody answers at the address, or what answers is no broker of the protocol that was asked for."""


class TlsRefused(ConnectFailed):
    """No TLS with this broker as things are: a certificate, an authority, a name or a version does not fit. Trying again does not help."""


class LoginRefused(ClientError):
    """The broker refused user, password or virtual host; the text is the broker's."""


class Timeout(ClientError):
    """No answer within the time given."""


class NotConfirmed(ClientError):
    """The broker did not take a message (basic.nack)."""


class Unroutable(ClientError):
    """A mandatory message had no queue to go to (basic.return); `message` is it."""


class TooLarge(ClientError):
    """A content larger than content_size_max; `message` is it without its body, unacknowledged."""


class NotAccepted(ClientError):
    """The broker did not accept a message (AMQP 1.0); `outcomes`: (number, outcome, fields) of each that it answered so."""

    def __init__(self, sentence: str, outcomes: "list[tuple[int, str, dict[str, object]]]") -> None:
        super().__init__(sentence)
        self.outcomes = outcomes


class Closed(ClientError):
    """`code` and `text` of the close method; code 0: the stream ended without one. With AMQP 1.0 the code is a condition, or ""."""

    def __init__(self, sentence: str, code: "Any", text: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.text = text


class ConnectionLost(Closed):
    """The connection is over."""


class LinkDetached(Closed):
    """The broker refused or ended a link (AMQP 1.0)."""


class ChannelClosed(Closed):
    """The broker closed the channel: what was asked for cannot be; its consumers and unconfirmed messages are gone."""
