"""`mode=queue`: a classic queue, or one of AMQP 1.0, as a streaming source. At least once: not for what must be counted.

A classic queue has no offsets, so nothing can be read again: the planner takes messages, hands them to the tasks inside the plan, and
acknowledges them when Spark says that their batch is done, which it says with the next batch. A driver that ends before that (also one
that is stopped in good order) gets its last batch once more; so does one whose connection broke. Drop doubles by message_id.
Laws: nothing is acknowledged before its batch is done; a batch takes what is there, at most rows_per_trigger_max (ROWS_MAX) rows, and
waits no longer than FETCH_S. A batch that was planned by another run is empty: its messages are in the queue again, and come. Each run
says on standard error that it is at least once.
"""

import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ..client import ClientError, connect
from .columns import Array, Chunk, record_batch
from .options import Options
from .stream_client import CONNECT_TIMEOUT_S, StreamError, StreamUnavailable, stream_error

ROWS_MAX = 10_000
FETCH_S = 0.5
SETTLE_S = 0.05
PREFETCH_MAX = 65535


class Rows(InputPartition):
    """Messages themselves: the first's number and a chunk's parts."""

    def __init__(self, label: str, first: int, sizes: Array, octets: bytes) -> None:
        self.label, self.first, self.sizes, self.octets = label, first, sizes, octets


class QueueStreamReader(DataSourceStreamReader):
    """One object lives in the planner for the whole run."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options, self._schema = options, schema
        self._label = next(iter(options.sources))
        self._connection: Any = None
        self._run: str | None = None
        self._next = self._connections = 0
        self._waiting: list[Any] = []
        self._taken: list[Any] = []  # (number, message, number of its connection) that are not acknowledged

    def __getstate__(self) -> dict[str, Any]:
        """The state that executors get: without the connection."""
        return dict(self.__dict__, _connection=None, _taken=[], _waiting=[])

    def initialOffset(self) -> dict[str, Any]:
        if len(self._options.sources) > 1:
            raise StreamError("amqp: mode=queue reads one queue of one broker")
        return {self._label: {"run": "", "next": 0}}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        from .source import patiently

        most = getattr(limit, "max_rows", None) or self._options.rows_per_trigger_max or ROWS_MAX
        if self._run is None:
            print(
                f"amqp: mode=queue is at-least-once: queue {self._options.stream(self._label)!r} gives the last batch again after every "
                "restart; drop doubles by message_id",
                file=sys.stderr,
                flush=True,
            )
            self._run, self._next = uuid.uuid4().hex, start[self._label]["next"]
        self._next += patiently(self._options, lambda: self._fetch(most))
        return {self._label: {"run": self._run if self._taken else start[self._label]["run"], "next": self._next}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Rows]:
        end, first = end[self._label], start[self._label]["next"]
        wanted = [message for number, message, _ in self._taken if first <= number < end["next"]] if end["run"] == self._run else []
        if not wanted:
            return []
        chunk = Chunk.of_messages(first, wanted)
        return [Rows(self._label, first, chunk.sizes, bytes(chunk.octets))]

    def read(self, partition: Any) -> Iterator[Any]:
        yield record_batch(Chunk(partition.first, partition.sizes, partition.octets), self._schema, partition.label)

    def commit(self, end: dict[str, Any]) -> None:
        """Acknowledges the messages of a batch that is done."""
        if end[self._label]["run"] != self._run:
            return
        done = [one for one in self._taken if one[0] < end[self._label]["next"]]
        self._taken = self._taken[len(done) :]
        ours = [message for _, message, connection in done if connection == self._connections]
        if ours and self._connection is not None:
            try:
                self._connection.ack(ours[-1], multiple=True)
                self._keep(self._connection.poll(0))
            except ClientError:
                self._lose()

    def _fetch(self, most: int) -> int:
        """Fetch up to `most` messages. Returns how many."""
        try:
            if self._connection is None:
                self._connection = self._consumer(min(2 * most, PREFETCH_MAX))
                self._connections += 1
            until = time.monotonic() + FETCH_S
            while len(self._waiting) < most and time.monotonic() < until:
                messages = self._connection.poll(int(SETTLE_S * 1000))
                self._keep(messages)
                if not messages:
                    break
            given, self._waiting = self._waiting[:most], self._waiting[most:]
            self._taken += [(self._next + place,) + one for place, one in enumerate(given)]
            return len(given)
        except ClientError as error:
            self._lose()
            failure = stream_error(error, self._options.stream(self._label), self._options.address(self._label))
            raise failure if isinstance(failure, StreamUnavailable) else StreamError(str(failure)) from error

    def _consumer(self, prefetch: int) -> Any:
        """A consumer of the queue: a Connection of ports/client.py, or what is like one for AMQP 1.0."""
        address, queue = self._options.address(self._label), self._options.stream(self._label)
        if "protocol=1.0" in address.query:
            from .queue_1_0 import Queue

            return Queue(address.url(), CONNECT_TIMEOUT_S * 1000, prefetch, queue)
        connection = connect(address.url(), timeout_ms=CONNECT_TIMEOUT_S * 1000, heartbeat_s=0)
        connection.qos(prefetch)
        connection.consume(queue)
        return connection

    def _keep(self, messages: list[Any]) -> None:
        self._waiting += [(message, self._connections) for message in messages]

    def _lose(self) -> None:
        """The connection is over: what was not acknowledged is in the queue again, but what is planned can still be read here."""
        self._connection, self._waiting = None, []
