"""A blocking AMQP client for CPython and MicroPython, over TCP or (ports/serial_line.py) a serial line.

    from leveret.ports.client import connect
    client = connect("amqp://guest:guest@127.0.0.1:5672/")
    client.queue_declare("readings", durable=True)                  # ("readings", message count, consumer count)
    client.publish("", "readings", b"21.5", {"delivery_mode": 2})   # returns when the broker has confirmed it
    message = client.get("readings")                                # a Message, or None when the queue is empty
    client.ack(message)
    client.qos(500)
    client.consume("readings", arguments={"x-stream-offset": "first"})
    while True:
        for message in client.poll(1000):                           # a list: what has come, at the latest after 1000 ms
            message.body, message.routing_key, message.properties   # names and properties are decoded when asked for
        client.ack(message, multiple=True)
    client.close()

For speed publish with confirm=False (returns when the message is in the send buffer) and call `wait_confirmed()` now and then.
Errors: ConnectFailed, TlsRefused (one of those), LoginRefused, ConnectionLost, ChannelClosed (code and text; the next call opens a new
channel), NotConfirmed, Unroutable, Timeout, TooLarge; all are ClientError. One connection, one channel, one thread. Bytes move only inside
calls: call `poll` at least every half minute, for the heartbeats. It does not reconnect: connect again.
"""

from ..core.amqp_0_9.client.client import Client, Events
from ..core.amqp_0_9.client.message import GET_OK
from ..core.shim import MICROPYTHON, elapsed
from .client_errors import (
    ChannelClosed,
    ClientError,
    ConnectFailed,
    ConnectionLost,
    LoginRefused,
    NotConfirmed,
    Timeout,
    TlsRefused,
    TooLarge,
    Unroutable,
)
from .clock import now_ms
from .moving import Moving, open_stream
from .url import Url, read_url

if False:  # for the type checker alone
    from typing import Any, Callable, Iterator


# The defaults of a connection: a board has little memory, Linux likes few system calls.
if MICROPYTHON:
    SIZES = {"receive_size": 2048, "send_size": 2048, "frame_size_max": 8192, "content_size_max": 4096, "confirm_window": 32}
else:
    SIZES = {"receive_size": 262144, "send_size": 262144, "frame_size_max": 131072, "content_size_max": 134217728, "confirm_window": 4096}


def connect(url: str, timeout_ms: int = 10000, **options: "Any") -> "Connection":
    """A Connection to the broker at `url`, a URL of ports/url.py (amqp://, amqps://) or serial://user:password@/dev/ttyX?baud=115200.

    `options` go to core's Client (receive_size, heartbeat_s, confirm_window ...). Raises ConnectFailed, LoginRefused or ValueError.
    """
    if url.startswith("serial://"):
        from .serial_line import connect_serial, read_serial_url

        device, baud, login = read_serial_url(url)
        return connect_serial(device, baud, timeout_ms, **dict(login, **options))
    place = read_url(url)
    connection = Connection
    if type(place) is not Url:
        if not hasattr(place, "connection"):
            raise ValueError("this client speaks AMQP 0-9-1, and 0-8 and 0-9; ports/client_1_0.py speaks 1.0")
        connection = place.connection()
    settings: "dict[str, Any]" = dict(SIZES)
    settings.update(options)
    settings.update(place.login())
    stream = open_stream(place, timeout_ms)
    try:
        return connection(stream, timeout_ms, settings)
    except Timeout as error:
        stream.close()
        raise ConnectFailed(str(error)) from None
    except ClientError:
        stream.close()
        raise


class Connection(Moving, Events):
    """An open connection with one channel. `timeout_ms` bounds every wait for an answer of the broker; `poll` has its own."""

    def __init__(self, stream: "Any", timeout_ms: int, settings: "dict[str, Any]") -> None:
        Moving.__init__(self, stream, timeout_ms)
        self._client = self.new_client(open_timeout_ms=timeout_ms, **settings)
        self._channel: "Any" = self._client.channels[1]
        self._messages: "list[Any]" = []
        self._reply: "tuple[str, Any] | None" = None
        self._error: "Any" = None  # the error for the next call to raise
        self._opened = False
        self._negative = 0
        self._sent_at: "int | None" = None
        self.blocked_text: "str | None" = None  # the broker's reason to accept no messages now, or None
        self.cancelled_consumers: "list[str]" = []
        try:
            self._wait(lambda: self._opened)
        except ConnectionLost as error:
            if error.code:
                raise LoginRefused("%s refuses the log-in: %d %s" % (stream.name, error.code, error.text)) from None
            if getattr(stream, "failure", ""):  # TLS 1.3: the broker refuses our certificate behind its handshake
                raise TlsRefused(stream.failure) from None
            raise ConnectFailed("%s: %s%s" % (stream.name, error.text, getattr(stream, "hint", ""))) from None

    def new_client(self, **settings: "Any") -> "Any":
        """Core's client of the version that this class speaks."""
        return Client(self, **settings)

    # Reports of the core.

    def opened(self) -> None:
        self._opened = True

    def replied(self, channel: "Any", name: str, arguments: "Any") -> None:
        self._reply = (name, arguments)

    def delivered(self, message: "Any") -> None:
        self._messages.append(message)

    def returned(self, message: "Any") -> None:
        self._error = Unroutable(
            "no queue for routing key %r of exchange %r: %d %s"
            % (message.routing_key, message.exchange, message.reply_code, message.reply_text)
        )
        self._error.message = message

    def refused(self, message: "Any", text: str) -> None:
        if message.code == GET_OK:
            self._reply = ("basic_get_ok", [message])
        self._error = TooLarge(text + "; the message stays unacknowledged")
        self._error.message = message

    def confirmed(self, channel: "Any", sequence: int, positive: bool) -> None:
        if not positive:
            self._negative += 1

    def cancelled(self, channel: "Any", consumer_tag: str) -> None:
        self.cancelled_consumers.append(consumer_tag)

    def channel_closed(self, channel: "Any", code: int, text: str) -> None:
        self._error = ChannelClosed("the broker closed the channel: %d %s" % (code, text), code, text)

    def blocked(self, text: str) -> None:
        self.blocked_text = text

    def unblocked(self) -> None:
        self.blocked_text = None

    def ended(self, code: int, text: str) -> None:
        self._end = (code, text)

    def _raise(self) -> None:
        error = self._error
        if error is not None:
            self._error = None
            raise error

    def _look(self) -> None:
        if self._channel.state == "closed":
            self._raise()

    def _wait(self, done: "Callable[[], object]") -> None:
        """Step until `done()`. Raises the error that came meanwhile, or Timeout: then only `close` makes sense."""
        Moving.wait(self, done)
        self._raise()

    def _open_channel(self) -> None:
        """Open the channel, again after the broker has closed it."""
        if self._end is not None:
            self.step(0)
        if self._channel.state == "closed":
            self._raise()
            self._wait(self._channel.open)
            self._wait(lambda: self._channel.state == "open")

    def _check_open(self) -> None:
        """Raise the error that closed the connection or the channel."""
        if self._end is not None:
            self.step(0)
        if self._channel.state == "closed":
            self._raise()
            raise ChannelClosed("the channel is closed", 0, "")

    def _ask(self, operation: "Callable[..., Any]", *arguments: object) -> "Any":
        """A synchronous request and its reply: (method name, arguments)."""
        self._open_channel()
        return self._answer(operation, *arguments)

    def _answer(self, operation: "Callable[..., Any]", *arguments: object) -> "Any":
        """The same on a channel that is open."""
        self._reply = None
        self._wait(lambda: operation(*arguments))
        self._wait(lambda: self._reply is not None)
        return self._reply

    # Requests.

    def exchange_declare(
        self,
        exchange: str,
        type: str = "direct",
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: "Any" = None,
    ) -> None:
        """Declare an exchange, or with `passive` check that it exists."""
        self._ask(self._channel.exchange_declare, exchange, type, passive, durable, auto_delete, internal, arguments)

    def exchange_delete(self, exchange: str, if_unused: bool = False) -> None:
        """Delete an exchange."""
        self._ask(self._channel.exchange_delete, exchange, if_unused)

    def queue_declare(
        self,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: "Any" = None,
    ) -> "tuple[Any, ...]":
        """Declare a queue: (its name, messages, consumers)."""
        return tuple(self._ask(self._channel.queue_declare, queue, passive, durable, exclusive, auto_delete, arguments)[1])

    def queue_bind(self, queue: str, exchange: str, routing_key: str = "", arguments: "Any" = None) -> None:
        """Bind a queue to an exchange."""
        self._ask(self._channel.queue_bind, queue, exchange, routing_key, arguments)

    def queue_unbind(self, queue: str, exchange: str, routing_key: str = "", arguments: "Any" = None) -> None:
        """Remove a binding."""
        self._ask(self._channel.queue_unbind, queue, exchange, routing_key, arguments)

    def queue_purge(self, queue: str) -> int:
        """Empty a queue: returns how many messages were in it."""
        count: int = self._ask(self._channel.queue_purge, queue)[1][0]
        return count

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete a queue: returns how many messages were in it."""
        count: int = self._ask(self._channel.queue_delete, queue, if_unused, if_empty)[1][0]
        return count

    def qos(self, prefetch_count: int, global_: bool = False) -> None:
        """Allow at most so many unacknowledged deliveries."""
        self._ask(self._channel.basic_qos, prefetch_count, global_)

    def consume(self, queue: str, consumer_tag: str = "", no_ack: bool = False, exclusive: bool = False, arguments: "Any" = None) -> str:
        """Start a consumer: returns its tag. Its messages come from `poll` or `messages`."""
        tag: str = self._ask(self._channel.basic_consume, queue, consumer_tag, False, no_ack, exclusive, arguments)[1][0]
        return tag

    def cancel(self, consumer_tag: str) -> None:
        """End a consumer; `poll` still returns messages that have come."""
        self._ask(self._channel.basic_cancel, consumer_tag)

    def get(self, queue: str, no_ack: bool = False) -> "Any":
        """One Message off the queue, or None when the queue is empty."""
        name, arguments = self._ask(self._channel.basic_get, queue, no_ack)
        return arguments[0] if name == "basic_get_ok" else None

    def poll(self, timeout_ms: int = 0) -> "list[Any]":
        """The Messages that have come, as a list; it is empty when none comes in `timeout_ms`."""
        started = now_ms()
        left_ms = 0 if self._messages else timeout_ms
        while True:
            self.step(max(left_ms, 0))
            self._raise()
            self._raise_negative()
            left_ms = timeout_ms - elapsed(now_ms(), started)
            if self._messages or left_ms <= 0:
                messages = self._messages
                self._messages = []
                return messages

    def messages(self, timeout_ms: int) -> "Iterator[Any]":
        """Messages one by one, until none comes for `timeout_ms`."""
        batch = self.poll(timeout_ms)
        while batch:
            for message in batch:
                yield message
            batch = self.poll(timeout_ms)

    def ack(self, message: "Any", multiple: bool = False) -> None:
        """Acknowledge a Message or delivery tag, or all up to it; goes out with the next call that moves bytes, as `poll`."""
        tag = message if isinstance(message, int) else message.delivery_tag
        self._put(self._channel.basic_ack, tag, multiple)

    def nack(self, message: "Any", multiple: bool = False, requeue: bool = True) -> None:
        """Give a Message or delivery tag back, or all up to it."""
        tag = message if isinstance(message, int) else message.delivery_tag
        self._put(self._channel.basic_nack, tag, multiple, requeue)

    def _put(self, operation: "Callable[..., Any]", *arguments: object) -> None:
        """Put a method without a reply into the send buffer, after sending if that is full. Raises ConnectionLost or ChannelClosed."""
        self._check_open()
        if not operation(*arguments):
            self._wait(lambda: operation(*arguments))

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: "bytes | bytearray | memoryview",
        properties: "Any" = None,
        mandatory: bool = False,
        confirm: bool = True,
    ) -> None:
        """Publish; with `confirm` return when the broker has confirmed the message, else when it is in the send buffer.

        The send buffer goes out once a millisecond at most; the rest of a burst goes with the next call that moves bytes.
        Raises NotConfirmed, Unroutable (with `mandatory`), Timeout (the broker accepts no messages, or does not answer).
        """
        channel = self._channel
        if not channel.confirming:
            self._ask(channel.confirm_select)
        self._check_open()
        if not channel.basic_publish(exchange, routing_key, body, properties, mandatory):
            self._wait(lambda: channel.basic_publish(exchange, routing_key, body, properties, mandatory))
        if confirm:
            self.wait_confirmed()
        elif now_ms() != self._sent_at:
            self.step(0)
            self._sent_at = now_ms()

    def tx_select(self) -> None:
        """Begin transactions: messages of `tx_publish` and acknowledgements take effect together, at `tx_commit`. Not beside `publish`."""
        self._ask(self._channel.tx_select)

    def tx_publish(
        self, exchange: str, routing_key: str, body: "bytes | bytearray | memoryview", properties: "Any" = None, mandatory: bool = False
    ) -> None:
        """Publish as a part of the transaction."""
        self._put(self._channel.basic_publish, exchange, routing_key, body, properties, mandatory)

    def tx_commit(self) -> None:
        """Return when the broker has committed the transaction. After ConnectionLost or ChannelClosed nobody knows whether it has.

        Raises Unroutable when mandatory messages of it had no queue: the others are in theirs (0-9-1 section 1.9.2.5).
        """
        self._ask(self._channel.tx_commit)

    def wait_confirmed(self) -> None:
        """Wait until every published message is confirmed. Raises NotConfirmed when the broker refused some."""
        self._check_open()
        self._wait(lambda: self._channel.unconfirmed == 0)
        self._raise_negative()

    def _raise_negative(self) -> None:
        if self._negative:
            count = self._negative
            self._negative = 0
            raise NotConfirmed("the broker did not take %d messages" % count)

    def confirm_select(self) -> None:
        """Ask the broker to confirm the channel's publishes."""
        self._ask(self._channel.confirm_select)

    def hand_over(self) -> "tuple[Any, int, int]":
        """(the stream, octets in a frame at most, seconds between heartbeats or 0) for a caller that goes on with channel 1 in its own way;
        this object ends here.

        The send buffer is empty, and the broker owes no answer.
        """
        self._open_channel()
        self._wait(lambda: not self._flush())
        return self._stream, self._client.frame_size_max, self._client.heartbeat_s

    @property
    def unconfirmed(self) -> int:
        """Messages published and not yet confirmed."""
        count: int = self._channel.unconfirmed
        return count

    def close(self) -> None:
        """End the connection in good order; does nothing when it is over."""
        if self._end is not None:
            return
        self._client.close()
        try:
            while True:
                self.step(self._timeout_ms)
        except ConnectionLost as error:
            if error.code not in (0, 200):
                raise
