"""A stream queue as Spark needs it: where it begins and ends, and any range of it, over AMQP 0-9-1.

Laws: `state` never names an offset as readable that cannot be read; `fetch` hands out every offset of the range once and in order, or
raises; a reply that does not come in time raises. Nothing is acknowledged away: a stream keeps what was read.
It does not know Spark.

Leveret answers `basic.get` on a stream queue with the stream's state (headers x-stream-id, x-stream-first-offset,
x-stream-next-offset): one exact reply. RabbitMQ refuses that get with 540: then the first offset is read with a consumer at "first", and
the head with a consumer at "last" that reads until the stream is quiet. That is slower (about 0.1 s instead of a round trip), may lag
behind the head by what is written meanwhile, and there is no stream id, so a stream that was deleted and made again is noticed only when
it is shorter than what was read. Leveret packs many records into one message (core/amqp_0_9/packed.py); RabbitMQ sends them one by one.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from ..client import ChannelClosed, ClientError, Connection, ConnectionLost, LoginRefused, TlsRefused, connect
from ..client_errors import LinkDetached
from .columns import Chunk

State = tuple[str, int, int, int]  # id, first offset, offset behind the last, octets
REPLY_TIMEOUT_S = 30
CONNECT_TIMEOUT_S = 10
QUIET_S = 0.05
TAIL_S = 0.5
EMPTY_S = 1.0
PREFETCH = 2000
CHUNK_ROWS = 10_000
CHUNK_OCTETS = 4 << 20
PACK_RECORDS = 50_000
PACKS_PREFETCH = 64
PACK_RECORDS_LIKELY = 300  # in one pack of 64 KiB
_PACK_MARK = b"\x1fapplication/vnd.leveret.records"
PASSING = (0, 320, "", "amqp:connection:forced")  # why a connection was lost that can be made again; 320: connection-forced
LASTING = ("amqp:not-found", "amqp:unauthorized-access", "amqp:not-allowed", "amqp:not-implemented", "amqp:invalid-field")
NOT_IMPLEMENTED = 540
_OFFSET_MARK = b"\x0fx-stream-offsetl"  # the header as it stands in a field table: short string, then a 64-bit integer


class StreamError(Exception):
    """The broker cannot give what the query asks for; asking again does not help."""


class StreamUnavailable(StreamError):
    """The broker cannot be reached or did not answer; asking again may help."""


class DataLoss(StreamError):
    """Offsets that should be there are gone."""


class Refused(StreamError):
    """The broker said no, with a reply code of 0-9-1 section 1.2 (`code`; 0 for a refused log-in without one, and for certificates)."""

    def __init__(self, code: int, text: str) -> None:
        StreamError.__init__(self, text)
        self.code = code


class Address:
    """Where a broker is and who asks. `str()` of it carries no password."""

    def __init__(self, host: str, port: int, user: str, password: str, virtual_host: str, scheme: str = "amqp", query: str = "") -> None:
        self.host, self.port, self.user, self.password, self.virtual_host = host, port, user, password, virtual_host
        self.scheme, self.query = scheme, query

    def key(self) -> tuple[Any, ...]:
        """The key that tells two addresses apart."""
        return (self.scheme, self.host, self.port, self.user, self.password, self.virtual_host, self.query)

    def url(self) -> str:
        """With the password: for `connect` only."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        settings = "?" + self.query if self.query else ""
        return f"{self.scheme}://{login}@{host}:{self.port}/{quote(self.virtual_host, safe='')}{settings}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (user {self.user}, virtual host {self.virtual_host})"


def stream_error(error: ClientError, stream: str, address: Address) -> StreamError:
    """A ClientError as Refused (asking again does not help) or StreamUnavailable (it may)."""
    sentence = f"stream {stream!r} at {address}: {error}"
    if isinstance(error, (LoginRefused, TlsRefused)):
        return Refused(0, sentence)
    if isinstance(error, ChannelClosed) or (isinstance(error, ConnectionLost) and error.code not in PASSING):
        return Refused(error.code, sentence)
    if isinstance(error, LinkDetached) and error.code in LASTING:
        return Refused(0, sentence)
    return StreamUnavailable(sentence)


def offset_of(message: Any, expected: int | None) -> Any:
    """The offset of a delivery of a stream, None where it has none. `expected` is what it should be: then the header is only compared."""
    octets = message.properties_octets
    at = octets.find(_OFFSET_MARK) + len(_OFFSET_MARK)
    if at >= len(_OFFSET_MARK) and int.from_bytes(octets[at : at + 8], "big") == expected:
        return expected
    return message.properties.get("headers", {}).get("x-stream-offset")


class Connecting:
    """One connection to one broker, opened on first use and opened again after a failure. Not for several threads. `_connect` is of who
    inherits: a connection of ports/client.py, or of ports/client_1_0.py."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Any = None

    def close(self) -> None:
        """Closes the connection; the next call opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except ClientError:
                return  # it was broken already

    def _open(self) -> Any:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Any:
        raise NotImplementedError  # each subclass has its own


class StreamClient(Connecting):
    """A client over AMQP 0-9-1."""

    def __init__(self, address: Address) -> None:
        Connecting.__init__(self, address)
        self._answers_get = True
        self._streams: set[str] = set()  # names that were seen to be streams

    def state(self, stream: str) -> State:
        """
        (id, first, next, octets): the stream's id ('' where the broker has none), its first offset, the offset after its last, and how
        many octets that is (0 where the broker does not say). Raises StreamUnavailable, StreamError.
        """
        try:
            if stream not in self._streams:
                self._see_that_it_is_a_stream(stream)
            if self._answers_get:
                return self._state_by_get(stream)
            return self._state_by_reading(stream)
        except ClientError as error:
            self.close()
            raise stream_error(error, stream, self._address) from error

    def offset_since(self, stream: str, seconds: int) -> int | None:
        """The offset of the first message that came at or after `seconds` since 1970, None when there is none. Raises as `state`."""
        try:
            offsets = self._offsets(stream, ("T", seconds), EMPTY_S, 1)
            return offsets[0] if offsets else None
        except ClientError as error:
            self.close()
            raise stream_error(error, stream, self._address) from error

    def fetch(self, stream: str, start: int, end: int, fail_on_data_loss: bool = True) -> Iterator[Chunk]:
        """
        Yields columns.Chunk that together hold every offset in [start, end), each once and in order.
        With `fail_on_data_loss` false, offsets that are gone are passed over.
        Raises DataLoss, StreamUnavailable, StreamError. A generator that is not read to its end closes the connection.
        """
        finished = False
        try:
            packs = self._packs(stream)
            prefetch = min(PACKS_PREFETCH, 2 + (end - start) // PACK_RECORDS_LIKELY) if packs else min(PREFETCH, end - start)
            subscription = _Subscription(self._open(), stream, start, prefetch, min(PACK_RECORDS, end - start) if packs else 0)
            chunks = _unpacked(subscription, stream, start, end) if packs else _gathered(subscription, stream, start, end)
            yield from joined(dense(chunks, stream, start, end, fail_on_data_loss))
            subscription.end()
            finished = True
        except ClientError as error:
            raise stream_error(error, stream, self._address) from error
        finally:
            if not finished:
                self.close()

    def _connect(self) -> Connection:
        return connect(self._address.url(), timeout_ms=CONNECT_TIMEOUT_S * 1000, heartbeat_s=0)

    def _see_that_it_is_a_stream(self, stream: str) -> None:
        """A get with acknowledgement: streams refuse it with 540, a classic queue gives a message, which goes back when we close."""
        if not self._refuses_get(stream, no_ack=False):
            self.close()
            raise StreamError(f"queue {stream!r} at {self._address} is not a stream (x-queue-type=stream)")
        self._answers_get = not self._refuses_get(stream, no_ack=True)
        self._streams.add(stream)

    def _packs(self, stream: str) -> bool:
        """True when the broker is Leveret, which packs."""
        if stream not in self._streams:
            self._see_that_it_is_a_stream(stream)
        return self._answers_get

    def _refuses_get(self, stream: str, no_ack: bool) -> bool:
        try:
            self._open().get(stream, no_ack=no_ack)
            return False
        except (ChannelClosed, ConnectionLost) as error:
            if error.code != NOT_IMPLEMENTED:
                raise
            self.close()
            return True

    def _state_by_get(self, stream: str) -> State:
        message = self._open().get(stream, no_ack=True)
        headers = message.properties.get("headers", {}) if message is not None else {}
        if "x-stream-next-offset" not in headers:
            raise StreamError(f"queue {stream!r} at {self._address} is not a stream any more")
        return (headers["x-stream-id"], headers["x-stream-first-offset"], headers["x-stream-next-offset"], headers["x-stream-bytes"])

    def _state_by_reading(self, stream: str) -> State:
        count = self._open().queue_declare(stream, passive=True)[1]
        first = self._offsets(stream, "first", EMPTY_S if count == 0 else REPLY_TIMEOUT_S, 1)
        if not first:
            if count:
                raise StreamUnavailable(f"stream {stream!r}: it has {count} messages, but none came in {REPLY_TIMEOUT_S} s")
            return "", 0, 0, 0
        last = self._offsets(stream, "last", REPLY_TIMEOUT_S, PREFETCH)
        if not last:
            raise StreamUnavailable(f"stream {stream!r}: its last messages did not come in {REPLY_TIMEOUT_S} s")
        return "", first[0], last[-1] + 1, 0

    def _offsets(self, stream: str, place: Any, wait_s: float, prefetch: int) -> list[int]:
        """Offsets handed to a consumer at `place` until nothing comes for QUIET_S or TAIL_S is over; the first may take `wait_s`."""
        subscription = _Subscription(self._open(), stream, place, prefetch)
        messages = subscription.messages(wait_s)
        until = time.monotonic() + TAIL_S
        while messages and place == "last" and time.monotonic() < until:
            more = subscription.messages(QUIET_S)
            if not more:
                break
            messages = more
        subscription.end()
        return [offset_of(message, None) for message in messages]


class _Subscription:
    """A consumer on a stream from `place` on, with flow control by prefetch and acknowledgement. `pack`: records in one message, 0: one."""

    def __init__(self, connection: Connection, stream: str, place: Any, prefetch: int, pack: int = 0) -> None:
        self._connection = connection
        self._prefetch = prefetch
        self._unacknowledged = 0
        self._last: Any = None
        connection.qos(prefetch)
        arguments: dict[str, Any] = {"x-stream-offset": place}
        if pack:
            arguments["x-stream-pack-records"] = pack
        self._tag = connection.consume(stream, arguments=arguments)

    def messages(self, timeout_s: float, wanted: int = 1 << 30) -> list[Any]:
        """What has come; [] when nothing comes in time. It is acknowledged by a later call: the caller has looked at it by then.

        `wanted`: about how many more the caller needs; what is on its way already is enough, if it is so many.
        """
        if self._unacknowledged > self._prefetch // 2 and wanted > self._prefetch - self._unacknowledged:
            self._acknowledge()
        messages = self._connection.poll(int(timeout_s * 1000))
        self._took(messages)
        return messages

    def end(self) -> None:
        """Ends the consumer; what is still on its way is passed over and acknowledged, which frees the broker's record of it."""
        self._connection.cancel(self._tag)
        self._took(self._connection.poll(0))
        if self._unacknowledged:
            self._acknowledge()
            self._connection.poll(0)

    def _took(self, messages: list[Any]) -> None:
        if messages:
            self._unacknowledged += len(messages)
            self._last = messages[-1]

    def _acknowledge(self) -> None:
        self._connection.ack(self._last, multiple=True)
        self._unacknowledged = 0


def _delivered(subscription: "_Subscription", stream: str, expected: int, end: int, wanted: int = 1 << 30) -> list[Any]:
    messages = subscription.messages(REPLY_TIMEOUT_S, wanted)
    if not messages:
        raise StreamUnavailable(f"stream {stream!r}: offset {expected} of those up to {end} did not come in {REPLY_TIMEOUT_S} s")
    return messages


def _unpacked(subscription: "_Subscription", stream: str, start: int, end: int) -> Iterator[Chunk]:
    """Chunks out of packed messages, the last one reaching `end` or beyond."""
    reached, mean = start, PACK_RECORDS_LIKELY
    while reached < end:
        for message in _delivered(subscription, stream, reached, end, (end - reached) // mean + 1):
            if _PACK_MARK not in message.properties_octets:
                raise StreamError(f"stream {stream!r}: the broker sent a message that is not packed")
            chunk = Chunk.unpack(message.body)
            reached, mean = chunk.first + chunk.count, chunk.count
            yield chunk


def _gathered(subscription: "_Subscription", stream: str, start: int, end: int) -> Iterator[Chunk]:
    """Chunks out of single messages, each chunk's offsets consecutive."""
    reached = start
    while reached < end:
        first = reached
        run: list[Any] = []
        for message in _delivered(subscription, stream, reached, end):
            offset = offset_of(message, reached)
            if offset is None:
                raise StreamError(f"queue {stream!r} is not a stream: a delivery has no x-stream-offset")
            if offset < reached:
                continue  # a broker may start at the beginning of the chunk that holds the offset
            if offset > reached:
                if run:
                    yield Chunk.of_messages(first, run)
                first, run = offset, []
            run.append(message)
            reached = offset + 1
        if run:
            yield Chunk.of_messages(first, run)


def dense(chunks: Iterable[Chunk], stream: str, start: int, end: int, fail_on_data_loss: bool) -> Iterator[Chunk]:
    """The chunks cut to [start, end). Raises DataLoss for a gap."""
    expected = start
    for chunk in chunks:
        if chunk.first > expected and fail_on_data_loss:
            raise DataLoss(f"stream {stream!r}: offsets {expected} to {chunk.first - 1} are gone")
        if chunk.first < end:
            yield chunk.up_to(end)
        expected = chunk.first + chunk.count


def joined(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Chunks of about CHUNK_ROWS, or of at most CHUNK_OCTETS if more than one."""
    kept: list[Chunk] = []
    rows, octets = 0, 0
    for chunk in chunks:
        follows = kept and kept[-1].first + kept[-1].count == chunk.first
        if kept and (not follows or rows >= CHUNK_ROWS or octets + len(chunk.octets) > CHUNK_OCTETS):
            yield Chunk.join(kept)
            kept, rows, octets = [], 0, 0
        kept.append(chunk)
        rows += chunk.count
        octets += len(chunk.octets)
    if kept:
        yield Chunk.join(kept)
