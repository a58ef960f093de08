"""A blocking AMQP 1.0 client for CPython and MicroPython.

    from leveret.ports.client_1_0 import connect
    client = connect("amqp://guest:guest@127.0.0.1:5672/")
    sender = client.sender("readings")
    sender.send(b"21.5", {"durable": True, "subject": "celsius"}, {"sensor": 7})    # returns when the broker has accepted it
    receiver = client.receiver("readings", prefetch=10)
    for message in client.poll(1000):           # a list: what has come, at the latest after 1000 ms
        message.body, message.properties, message.application_properties
        receiver.accept(message)
    client.close()

The second argument has fields of the sections header and properties by the specification's names ("ttl", "message-id", "content-type" ...),
the third the application properties, `annotations` those of the message. An address of None is the anonymous terminus: each message says
where it goes, {"to": ...}. For speed send with wait=False (returns when the message is in the send buffer) and call `wait_settled()` now
and then. A URL's `auth` and `node`: ports/url_1_0.py. `with client.transaction() as work`: ports/transactions_1_0.py.

Errors: ConnectFailed, TlsRefused (one of those), LoginRefused, ConnectionLost, LinkDetached (condition and text; attach a new one),
NotAccepted (the outcomes), Timeout, TooLarge; all are ClientError. One connection, one session, one thread. Bytes move only inside calls:
call `poll` at least every half minute. It does not reconnect: connect again.
"""

from random import getrandbits

from ..core.amqp_1_0.client.client import LOGIN_REFUSED, Client
from ..core.amqp_1_0.client.events import Events
from ..core.amqp_1_0.client.message import message_head
from ..core.shim import MICROPYTHON, elapsed
from .client_errors import (
    ClientError,
    ConnectFailed,
    ConnectionLost,
    LinkDetached,
    LoginRefused,
    NotAccepted,
    Timeout,
    TlsRefused,
    TooLarge,
)
from .clock import now_ms
from .moving import Moving, open_stream
from .url_1_0 import read_url_1_0

if False:  # for the type checker alone
    from typing import Any

    from .url_1_0 import Url10

# The defaults of a connection: a board has little memory, Linux likes few system calls.
if MICROPYTHON:
    SIZES = {"receive_size": 2048, "send_size": 2048, "message_size_max": 4096, "window": 32}
else:
    SIZES = {"receive_size": 262144, "send_size": 262144, "message_size_max": 134217728, "window": 4096}


def connect(url: str, timeout_ms: int = 10000, **options: "Any") -> "Connection":
    """A Connection to the broker at `url`, a URL of ports/url_1_0.py.

    `options` go to core's Client (receive_size, idle_ms, window, container ...). Raises ConnectFailed, LoginRefused or ValueError.
    """
    place = read_url_1_0(url)
    # Links of one name from one container are one link: the broker would end the older one as stolen (part 2, section 2.6.1).
    settings: "dict[str, Any]" = dict(SIZES, container="leveret-%08x" % getrandbits(30))
    settings.update(place.login())
    settings.update(options)
    stream = open_stream(place, timeout_ms)
    try:
        return Connection(stream, timeout_ms, settings, place)
    except Timeout as error:
        stream.close()
        raise ConnectFailed(str(error)) from None
    except ClientError:
        stream.close()
        raise


class Connection(Moving, Events):
    """An open connection with one session. `timeout_ms` bounds every wait for an answer of the broker; `poll` has its own."""

    def __init__(self, stream: "Any", timeout_ms: int, settings: "dict[str, Any]", place: "Url10") -> None:
        Moving.__init__(self, stream, timeout_ms)
        self._place = place
        self._client = Client(self, open_timeout_ms=timeout_ms, **settings)
        self._links: "list[Any]" = []
        self._messages: "list[Any]" = []
        self._error: "Any" = None  # the error for the next call to raise
        self._opened = False
        self._controller: "Any" = None
        self._authority: "Any" = None  # with auth=cbs: the tokens (requests_1_0.py)
        try:
            self.wait(lambda: self._opened)
        except ConnectionLost as error:
            if error.code == LOGIN_REFUSED:
                raise LoginRefused("%s refuses the log-in: %s" % (stream.name, error.text)) from None
            if getattr(stream, "failure", ""):  # TLS 1.3: the broker refuses our certificate behind its handshake
                raise TlsRefused(stream.failure) from None
            said = "%s %s" % (error.code, error.text) if error.code else error.text
            raise ConnectFailed("%s: %s" % (stream.name, said)) from None

    # Reports of the core

    def opened(self) -> None:
        self._opened = True

    def detached(self, link: "Any", condition: str, text: str) -> None:
        for each in self._links:
            if each.link is link and not each.left:
                each.left = True
                self._error = LinkDetached("the link %s: %s %s" % (link.name, condition or "was detached", text), condition, text)

    def settled(self, link: "Any", number: int, outcome: str, fields: "dict[str, Any]") -> None:
        for each in self._links:
            if each.link is link and link.is_sender:
                each.outcome(number, outcome, fields)

    def delivered(self, message: "Any") -> None:
        self._messages.append(message)

    def refused(self, message: "Any", text: str) -> None:
        self._error = TooLarge(text + "; the message stays unsettled")
        self._error.message = message

    def ended(self, condition: str, text: str) -> None:
        self._end = (condition, text)

    def _look(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # Requests

    def sender(self, address: "str | None", settled: bool = False, **options: "Any") -> "Sender":
        """A Sender to an address, attached and with credit. Raises LinkDetached where the broker refuses it, Timeout without credit.

        `settled`: the link sends all messages settled, and the broker answers none. `options`: core/amqp_1_0/client/link.py.
        """
        options.update(self._place.capabilities())
        sender = Sender(self, self._client.session.sender(address, settled, **options))
        self._attach(sender)
        self.wait(lambda: sender.link.credit > 0)
        return sender

    def receiver(self, address: "str | None", prefetch: int = 10, second: bool = False, **options: "Any") -> "Receiver":
        """A Receiver from an address, attached. `prefetch`: unsettled deliveries and credit together; `second`: the broker settles after
        us. `options`: core/amqp_1_0/client/link.py, as filter={...}."""
        options.update(self._place.capabilities())
        receiver = Receiver(self, self._client.session.receiver(address, prefetch, second, **options))
        self._attach(receiver)
        return receiver

    def transaction(self) -> "Any":
        """A Transaction (ports/transactions_1_0.py). Raises LinkDetached where the broker has none, Timeout."""
        from ..core.amqp_1_0.client import transactions
        from .transactions_1_0 import Transaction

        if self._controller is None or self._controller.left:
            self._controller = Controller(self, transactions.controller(self._client.session))
            self._attach(self._controller)
        return Transaction(self, self._controller)

    def authority(self) -> "Any":
        """The Authority that puts this connection's tokens (requests_1_0.py); None where its URL does not say auth=cbs."""
        if self._authority is None and self._place.auth == "cbs":
            from .requests_1_0 import Authority

            self._authority = Authority(self, self._place)
        return self._authority

    def _attach(self, end: "Link") -> None:
        if end.link.address and not end.link.address.startswith("$"):
            authority = self.authority()
            if authority is not None:
                authority.grant(end.link.address)
        if self._end is not None:
            self.step(0)  # says the end once more
        self._links.append(end)
        self.wait(end.link.attach)
        self.wait(lambda: end.link.state == "attached")

    def poll(self, timeout_ms: int) -> "list[Any]":
        """Messages that have come; waits for the first one, at most `timeout_ms`."""
        started = now_ms()
        if self._authority is not None:
            self._authority.renew()
        while True:
            self._look()
            left_ms = timeout_ms - elapsed(now_ms(), started)
            if self._messages or left_ms <= 0:
                messages, self._messages = self._messages, []
                if not messages:
                    self.step(0)
                return messages
            self.step(left_ms)

    def next_of(self, receiver: "Receiver") -> "Any":
        """The next message of one receiver, before those of others. Raises Timeout."""
        self.wait(lambda: any(message.link is receiver.link for message in self._messages))
        at = [message.link is receiver.link for message in self._messages].index(True)
        return self._messages.pop(at)

    def flush(self) -> None:
        """Return when the send buffer is empty."""
        self.wait(lambda: self._client.session.streaming is None and not self._flush())

    def hand_over(self) -> "tuple[Any, int, float]":
        """(the stream, octets in a frame at most, seconds in which the broker wants to hear of us or 0) for a caller that goes on with the
        links in its own way; this object ends here."""
        self.flush()
        return self._stream, self._client.frame_size_max, (self._client.remote["idle-time-out"] or 0) / 1000

    def close(self) -> None:
        """End the connection in good order; does nothing when it is over."""
        if self._end is not None:
            return
        for each in self._links:
            each.left = True
        self.flush()
        self._client.close()
        try:
            while True:
                self.step(self._timeout_ms)
        except ConnectionLost as error:
            if error.code:
                raise


class Link:
    """The common part of senders and receivers. `link`: the core's; `left`: it is over, and its owner has heard so or asked for it."""

    def __init__(self, connection: Connection, link: "Any") -> None:
        self.connection = connection
        self.link = link
        self.left = False

    def close(self) -> None:
        """Detach."""
        self.left = True
        self.connection.wait(self.link.leave)
        self.connection.wait(lambda: self.link.state == "detached")


class Sender(Link):
    """A link to send on."""

    def __init__(self, connection: Connection, link: "Any") -> None:
        Link.__init__(self, connection, link)
        self._sent_at: "int | None" = None
        self._refusals: "list[Any]" = []  # (number, outcome, fields) of messages that were not accepted

    def outcome(self, number: int, outcome: str, fields: "dict[str, Any]") -> None:
        """The broker's answer for one message."""
        if outcome != "accepted":
            self._refusals.append((number, outcome, fields))

    def send(
        self,
        body: "bytes | bytearray | memoryview",
        given: "dict[str, Any] | None" = None,
        application_properties: "dict[str, Any] | None" = None,
        annotations: "dict[str, Any] | None" = None,
        wait: bool = True,
    ) -> int:
        """Send a message with one data section: its number on this link. With `wait` return when the broker has accepted it, else when it
        is in the send buffer: then leave the body unchanged until it has gone. Raises NotAccepted, LinkDetached, Timeout (no credit, no
        answer), ValueError for a message that can never go."""
        return self.send_octets(message_head(given, application_properties, annotations), body, wait)

    def send_octets(self, octets: bytes, body: "Any" = None, wait: bool = True) -> int:
        """Send sections as they are: a whole message, or with `body` those in front of it."""
        if self.left:
            raise LinkDetached("the link is over", "", "")
        number: int = self.link.send(octets, body)
        while not number:
            self.connection.wait(self._may_send)
            number = self.link.send(octets, body)
        if wait:
            self.wait_settled()
        elif now_ms() != self._sent_at:
            self.connection.step(0)
            self._sent_at = now_ms()
        return number

    def _may_send(self) -> bool:
        link = self.link
        session = link.session
        return link.credit > 0 and session.streaming is None and link.unsettled < session.window and session.client.output.free() > 512

    @property
    def unsettled(self) -> int:
        """Messages that have no outcome yet."""
        count: int = self.link.unsettled
        return count

    def wait_settled(self) -> None:
        """Wait until every message has its outcome. Raises NotAccepted when the broker refused one of them."""
        self.connection.flush()
        self.connection.wait(lambda: self.link.unsettled == 0)
        if self._refusals:
            refusals, self._refusals = self._refusals, []
            raise not_accepted("message %d" % refusals[0][0], refusals)


class Controller(Sender):
    """The link to the broker's coordinator of transactions."""

    def __init__(self, connection: Connection, link: "Any") -> None:
        Sender.__init__(self, connection, link)
        self.answers: "dict[int, Any]" = {}  # number of a request: (outcome, fields)

    def outcome(self, number: int, outcome: str, fields: "dict[str, Any]") -> None:
        self.answers[number] = (outcome, fields)


def not_accepted(subject: str, refusals: "list[Any]") -> NotAccepted:
    """The error for refusals, (number, outcome, fields) each; its sentence is the first one's."""
    _, outcome, fields = refusals[0]
    error = fields.get("error") or {}
    words = "%s %s" % (error.get("condition", ""), error.get("description") or "")
    return NotAccepted(("%s was %s %s" % (subject, outcome or "settled without an outcome", words)).strip(), refusals)


class Receiver(Link):
    """A link whose messages come from the connection's `poll`; `message.link` is `self.link`."""

    def accept(self, message: "Any") -> None:
        """Accept a message; the outcome goes out with the next call that moves bytes, as `poll`."""
        self.settle(message, "accepted")

    def release(self, message: "Any") -> None:
        """Give a message back, as if it had not been delivered."""
        self.settle(message, "released")

    def reject(self, message: "Any", condition: str = "amqp:internal-error", text: str = "") -> None:
        """Reject a message that cannot be processed."""
        self.settle(message, "rejected", {"error": {"condition": condition, "description": text}})

    def settle(self, message: "Any", outcome: str, fields: "dict[str, Any] | None" = None) -> None:
        """Any outcome, as ("modified", {"delivery-failed": True})."""
        if self.left:
            raise LinkDetached("the link is over", "", "")
        if not self.link.settle(message, outcome, fields):
            self.connection.wait(lambda: self.link.settle(message, outcome, fields))
