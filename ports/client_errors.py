"""The errors of a client (ports/client.py): one class for each that a caller may want to treat differently."""

if False:  # for the type checker alone
    from typing import Any


class ClientError(Exception):
    """The base of all errors; str() is one sentence."""


class ConnectFailed(ClientError):
    """No answer at the address, or no broker of the requested protocol there."""


class TlsRefused(ConnectFailed):
    """No TLS with this broker: a certificate, an authority, a name or a version does not fit. Trying again does not help."""


class LoginRefused(ClientError):
    """The broker refused user, password or virtual host; the text is the broker's."""


class Timeout(ClientError):
    """No answer within the time given."""


class NotConfirmed(ClientError):
    """The broker refused a message (basic.nack)."""


class Unroutable(ClientError):
    """A mandatory message had no queue to go to (basic.return); `message`: that message."""


class TooLarge(ClientError):
    """A content larger than content_size_max; `message`: that message without its body, unacknowledged."""


class NotAccepted(ClientError):
    """The broker did not accept a message (AMQP 1.0); `outcomes`: (number, outcome, fields) of each such message."""

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
    """The broker closed the channel: it refuses the request; the channel's consumers and unconfirmed messages are gone."""
