"""A partition of an event hub for source.py, over AMQP 1.0: where it begins and ends, and any range of it.

    url       amqps://POLICY@NAME.servicebus.windows.net/?protocol=1.0&auth=cbs    or a Leveret's, with protocol=1.0
    stream    HUB/ConsumerGroups/GROUP/Partitions/NUMBER

An offset is a sequence number: consecutive within a partition. Where a partition begins and ends is asked of `$management` (AMQP
Management, READ of com.microsoft:partition); a range is read with the selector `amqp.annotation.x-opt-sequence-number >= 'FIRST'`.
A hub has no id but the time when it was made, Leveret's streams have one. Laws: as in stream_client.py.
"""

from collections.abc import Iterator
from typing import Any

from leveret.core.amqp_1_0.client.message import message_head

from ..client_1_0 import ClientError, Connection, connect
from ..requests_1_0 import Node
from .columns import Chunk
from .options import hub_and_partition
from .queue_1_0 import Row
from .stream_client import (
    CONNECT_TIMEOUT_S,
    PREFETCH,
    REPLY_TIMEOUT_S,
    Address,
    Connecting,
    Refused,
    State,
    StreamError,
    StreamUnavailable,
    dense,
    joined,
    stream_error,
)

_SELECTOR = "apache.org:selector-filter:string"
_HUB, _PARTITION = "com.microsoft:eventhub", "com.microsoft:partition"
_AVAILABLE_LATER = (500, 503)  # Event Hubs: the server is busy, or moves the partition


class PartitionRow(Row):
    """A message with its place in the partition; `arrived`: seconds since 1970."""

    def __init__(self, delivery: Any) -> None:
        Row.__init__(self, delivery)
        notes = delivery.annotations
        self.offset = _number(notes.get("x-opt-sequence-number"))
        self.arrived = _number(notes.get("x-opt-enqueued-time")) // 1000


def _number(value: Any) -> int:
    number = value[1] if isinstance(value, tuple) else value
    return number if isinstance(number, int) else -1


class PartitionClient(Connecting):
    """The counterpart of stream_client.StreamClient, which reads streams of 0-9-1."""

    def __init__(self, address: Address) -> None:
        Connecting.__init__(self, address)
        self._management: Node | None = None

    def state(self, stream: str) -> State:
        """(id, first, next, 0). Raises StreamUnavailable, StreamError."""
        try:
            properties = self._read(stream, _PARTITION)
            identity = properties.get("x-stream-id") or "made at %s" % _number(self._read(stream, _HUB).get("created_at"))
        except ClientError as error:
            raise self._failed(error, stream) from error
        first, last = _number(properties.get("begin_sequence_number")), _number(properties.get("last_enqueued_sequence_number"))
        return identity, last + 1 if properties.get("is_partition_empty") else first, last + 1, 0

    def offset_since(self, stream: str, seconds: int) -> int | None:
        """The offset of the first message that came at or after `seconds` since 1970, None when there is none. Raises as `state`."""
        try:
            properties = self._read(stream, _PARTITION)
            if properties.get("is_partition_empty") or _number(properties.get("last_enqueued_time_utc")) < seconds * 1000:
                return None
            receiver = self._receiver(stream, f"enqueued-time >= '{seconds * 1000}'", 1)
            messages = self._open().poll(REPLY_TIMEOUT_S * 1000)
            receiver.close()
        except ClientError as error:
            raise self._failed(error, stream) from error
        if not messages:
            raise StreamUnavailable(f"stream {stream!r}: its first message since {seconds} did not come in {REPLY_TIMEOUT_S} s")
        return PartitionRow(messages[0]).offset

    def fetch(self, stream: str, start: int, end: int, fail_on_data_loss: bool = True) -> Iterator[Chunk]:
        """Chunks that together hold every offset in [start, end), as stream_client.StreamClient.fetch."""
        finished = False
        try:
            receiver = self._receiver(stream, f"sequence-number >= '{start}'", min(PREFETCH, end - start))
            yield from joined(dense(self._gathered(receiver, stream, start, end), stream, start, end, fail_on_data_loss))
            receiver.close()
            self._open().poll(0)  # what came behind the range
            finished = True
        except ClientError as error:
            raise self._failed(error, stream) from error
        finally:
            if not finished:
                self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._management = None
        Connecting.close(self)

    def _connect(self) -> Connection:
        return connect(self._address.url(), CONNECT_TIMEOUT_S * 1000)

    def _receiver(self, stream: str, position: str, prefetch: int) -> Any:
        selector = ("described", ("symbol", _SELECTOR), "amqp.annotation.x-opt-" + position)
        return self._open().receiver(stream, prefetch, filter={("symbol", _SELECTOR): selector})

    def _gathered(self, receiver: Any, stream: str, start: int, end: int) -> Iterator[Chunk]:
        reached = start
        while reached < end:
            deliveries = self._open().poll(REPLY_TIMEOUT_S * 1000)
            if not deliveries:
                raise StreamUnavailable(f"stream {stream!r}: offset {reached} of those up to {end} did not come in {REPLY_TIMEOUT_S} s")
            rows = [PartitionRow(delivery) for delivery in deliveries]
            for delivery in deliveries:
                receiver.accept(delivery)
            if any(row.offset < 0 for row in rows):
                raise StreamError(f"stream {stream!r}: a message has no x-opt-sequence-number")
            for first, run in _runs([row for row in rows if row.offset >= reached]):
                yield Chunk.of_messages(first, run, [max(row.arrived, 0) for row in run])
                reached = first + len(run)

    def _read(self, stream: str, kind: str) -> dict[str, Any]:
        """The answer of `$management` about the partition, or about its hub."""
        hub, number = hub_and_partition(stream)
        connection = self._open()
        if self._management is None:
            self._management = Node(connection, "$management")
        asked = {"operation": "READ", "type": kind, "name": hub}
        if kind == _PARTITION:
            asked["partition"] = number
        authority = connection.authority()
        if authority is not None:
            authority.grant(hub)
            asked["security_token"] = authority.token(hub)
        code, text, body = self._management.ask(
            lambda count, reply_to: message_head({"message-id": str(count), "reply-to": reply_to}, asked) + b"\x00\x53\x77\x40"
        )
        if code != 200 or not isinstance(body, dict):
            sentence = f"stream {stream!r} at {self._address}: {code} {text}"
            raise StreamUnavailable(sentence) if code in _AVAILABLE_LATER else Refused(code, sentence)
        return body

    def _failed(self, error: ClientError, stream: str) -> StreamError:
        self.close()
        return stream_error(error, stream, self._address)


def _runs(rows: list[PartitionRow]) -> Iterator[tuple[int, list[PartitionRow]]]:
    """(first offset, rows whose offsets are consecutive), one behind the other."""
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and rows[end].offset == rows[at].offset + end - at:
            end += 1
        yield rows[at].offset, rows[at:end]
        at = end
