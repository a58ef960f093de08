"""The sink `writeStream.format("amqp")`: rows to messages.

Columns of the frame: `value` (binary or string), and if there: `exchange`, `routing_key`, `message_id`, `content_type` (strings), `headers`
(map of string to string), `timestamp`. Options: url, passwordEnv, passwordFile as the source's; `exchange` and `routingKey` where there are
no such columns; `delivery`:

    exactlyOnce (default)  the driver publishes a micro-batch and a record of its number in one transaction (tx), to brokers as Leveret and
                           RabbitMQ; a batch whose number is there already is passed over. For alerts: `maxRowsPerEpoch` (100000) rows,
                           and what the broker keeps for a commit (Leveret: transaction_count_max).
    atLeastOnce            the executors publish with confirms in flight. A task that is done again publishes again, with the same message
                           ids: a queue declared with x-deduplication keeps one of each.

The record is the one message of the durable queue leveret.epochs.QUERY; reading it takes an exclusive consumer, so two drivers of one
checkpoint wait for each other, and acknowledging it is a part of the transaction.
Laws: message_id, unless the frame has it, is a hash of what the message is, with its place among equal rows of the task: never of a row's
order. Where a routing key of the default exchange names no queue, nothing is published and the query fails with a sentence. What another
exchange has no queue for comes back (basic.return, 0-9-1 section 1.8.3.6), and the query fails, too: with atLeastOnce it publishes the task
again until there is a queue; with exactlyOnce the batch is committed by then, and the sentence is all that is left of the message.
`mandatory` false: the broker drops such messages, as a topic that nobody reads may want.
"""

import hashlib
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, MapType, StringType, StructType, TimestampType

from ..client import ChannelClosed, ClientError, Connection, ConnectionLost, LoginRefused, TlsRefused, Unroutable, connect
from .option_tables import RETRY_S, SINK, checked
from .options import Login, sink_login
from .stream_client import CONNECT_TIMEOUT_S, PASSING, StreamError, StreamUnavailable

Message = tuple[str, str, bytes, dict[str, Any]]  # exchange, routing key, body, properties
EPOCH_QUEUE = "leveret.epochs."
QUERY_ID = "sql.streaming.queryId"
RETRY_PAUSE_S = 0.5
ACCESS_REFUSED, NOT_FOUND, RESOURCE_LOCKED = 403, 404, 405
UNCONFIRMED_MAX = 2000
FIRST_RECORD_MS = 1000
NO_QUEUE = "bind a queue there, or set the option mandatory to false to have such messages dropped"
COLUMNS = {
    "value": (BinaryType(), StringType()),
    "exchange": (StringType(),),
    "routing_key": (StringType(),),
    "message_id": (StringType(),),
    "content_type": (StringType(),),
    "headers": (MapType(StringType(), StringType()),),
    "timestamp": (TimestampType(),),
}


def writer(options: Mapping[str, Any], schema: StructType) -> "_Writer":
    """The writer that the options ask for. Raises ValueError with one sentence."""
    given = checked(options, SINK)
    for field in schema:
        if field.dataType not in COLUMNS.get(field.name, ()):
            raise ValueError(f"amqp: the sink has no column {field.name} {field.dataType.simpleString()}; it has {', '.join(COLUMNS)}")
    if "value" not in schema.fieldNames():
        raise ValueError("amqp: the sink needs a column value, binary or string")
    if "routing_key" not in schema.fieldNames() and given["routingKey"] is None:
        raise ValueError("amqp: the sink needs a column routing_key or the option routingKey")
    kinds = {"exactlyOnce": ExactlyOnceWriter, "atLeastOnce": AtLeastOnceWriter}
    return kinds[given["delivery"]](sink_login(options), given)


class Published(WriterCommitMessage):
    """A task's message to the commit: the query's id, and the messages that are still to be published."""

    def __init__(self, query: str | None, messages: list[Message]) -> None:
        self.query, self.messages = query, messages


class _Writer(DataSourceStreamWriter):
    def __init__(self, login: Login, options: Mapping[str, Any]) -> None:
        self._login = login
        self._exchange, self._key = options["exchange"], options["routingKey"] or ""
        self._rows_max, self._mandatory = options["maxRowsPerEpoch"], options["mandatory"]
        self._retry_s = options["retrySeconds"] or math.inf

    def commit(self, messages: Any, batchId: int) -> None:
        """Nothing is left to do."""

    def abort(self, messages: Any, batchId: int) -> None:
        """Nothing has to be taken back."""

    def _messages(self, rows: Iterable[Row]) -> Iterator[Message]:
        """(exchange, routing key, body, properties) for each row."""
        same: dict[str, int] = {}
        for row in rows:
            values = row.asDict()
            body = values["value"].encode() if isinstance(values["value"], str) else bytes(values["value"] or b"")
            exchange, key = values.get("exchange") or self._exchange, values.get("routing_key") or self._key
            yield exchange, key, body, _properties(values, exchange, key, body, same)


class AtLeastOnceWriter(_Writer):
    """Publishes in the tasks."""

    def write(self, iterator: Any) -> Published:
        connection = _open(self._login)
        try:
            known: set[str] = set()
            for exchange, key, body, given in self._messages(iterator):
                _see_queue(connection, exchange, key, known)
                connection.publish(exchange, key, body, given, self._mandatory, confirm=False)
                if connection.unconfirmed > UNCONFIRMED_MAX:
                    connection.poll(0)
            connection.wait_confirmed()
            connection.close()
        except Unroutable as error:
            raise StreamError(f"amqp sink: {error}; {NO_QUEUE}") from None
        except ClientError as error:
            raise StreamUnavailable(f"amqp sink: {error}") from None
        return Published(None, [])


class ExactlyOnceWriter(_Writer):
    """Publishes at the commit."""

    def write(self, iterator: Any) -> Published:
        messages: list[Message] = []
        for message in self._messages(iterator):
            messages.append(message)
            if len(messages) > self._rows_max:
                raise StreamError(
                    f"amqp sink: more than {self._rows_max} rows in a batch for delivery=exactlyOnce: raise maxRowsPerEpoch "
                    "or use delivery=atLeastOnce"
                )
        task = TaskContext.get()
        assert task is not None  # Spark calls this in a task
        return Published(task.getLocalProperty(QUERY_ID), messages)

    def commit(self, messages: Any, batchId: int) -> None:
        """Publishes what the tasks have, unless that was done before."""
        parts = [part for part in messages if part is not None and part.messages]
        if parts:
            together = [message for part in parts for message in part.messages]
            publish_epoch(self._login, parts[0].query, batchId, together, self._mandatory, self._retry_s)


def publish_epoch(login: Login, query: str, batch: int, messages: list[Message], mandatory: bool = True, retry_s: float = RETRY_S) -> bool:
    """
    Publishes `messages`, a list of (exchange, routing key, body, properties), as batch number `batch` of `query`, exactly once: False when
    it was there already. Waits out a broker that is away for `retry_s`, then raises StreamUnavailable. Raises StreamError for what does not
    change by waiting, and with `mandatory` for messages that no queue took: the others are published then, and the batch is over.
    """
    until = time.monotonic() + retry_s
    while True:
        connection = None
        try:
            connection = _open(login)
            return _publish_epoch(connection, EPOCH_QUEUE + query, batch, messages, mandatory)
        except Unroutable as error:
            raise StreamError(f"amqp sink: batch {batch} is published but for what no queue took: {error}; {NO_QUEUE}") from None
        except (ClientError, StreamUnavailable) as error:
            if _is_final(error):
                raise StreamError(f"amqp sink: {error}") from None
            if time.monotonic() + RETRY_PAUSE_S > until:
                raise StreamUnavailable(str(error) if isinstance(error, StreamUnavailable) else f"amqp sink: {error}") from None
            time.sleep(RETRY_PAUSE_S)
        finally:
            if connection is not None:
                _close(connection)


def _is_final(error: Exception) -> bool:
    """True when publishing again does not help. Access to the record is refused as long as another connection has it."""
    if isinstance(error, ChannelClosed):
        return error.code not in (ACCESS_REFUSED, RESOURCE_LOCKED)
    if isinstance(error, ConnectionLost):  # as 506 for a batch that is more than the broker keeps for a commit
        return error.code not in PASSING
    return isinstance(error, (LoginRefused, TlsRefused))


def _publish_epoch(connection: Connection, queue: str, batch: int, messages: list[Message], mandatory: bool) -> bool:
    connection.queue_declare(queue, durable=True)
    known: set[str] = set()
    for exchange, key, _, _ in messages:
        _see_queue(connection, exchange, key, known)
    connection.tx_select()
    connection.consume(queue, exclusive=True)
    records = connection.poll(FIRST_RECORD_MS)  # it comes at once, if there is one
    if max((int(record.body) for record in records), default=-1) >= batch:
        return False
    for exchange, key, body, given in messages:
        connection.tx_publish(exchange, key, body, given, mandatory)
    connection.tx_publish("", queue, str(batch).encode(), {"delivery_mode": 2})
    if records:
        connection.ack(records[-1], multiple=True)
    connection.tx_commit()
    return True


def _open(login: Login) -> Connection:
    try:
        return connect(login.address(login.places[0]).url(), timeout_ms=CONNECT_TIMEOUT_S * 1000, heartbeat_s=0)
    except (LoginRefused, TlsRefused):
        raise
    except ClientError as error:
        raise StreamUnavailable(f"amqp sink: {error}") from None


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except ClientError:
        return  # it was broken already


def _see_queue(connection: Connection, exchange: str, key: str, known: set[str]) -> None:
    """Raises StreamError when a message to the default exchange would be lost, for there is no queue of that name."""
    if exchange or key in known:
        return
    try:
        connection.queue_declare(key, passive=True)
    except (ChannelClosed, ConnectionLost) as error:
        if error.code == NOT_FOUND:
            raise StreamError(f"amqp sink: there is no queue {key!r} (routing key of the default exchange)") from None
        raise
    known.add(key)


def _properties(values: dict[str, Any], exchange: str, key: str, body: bytes, same: dict[str, int]) -> dict[str, Any]:
    given: dict[str, Any] = {"delivery_mode": 2}
    for name in ("content_type", "message_id"):
        if values.get(name):
            given[name] = values[name]
    if values.get("headers"):
        given["headers"] = dict(values["headers"])
    if values.get("timestamp"):
        given["timestamp"] = int(values["timestamp"].timestamp())
    if "message_id" not in given:
        parts = [exchange.encode(), key.encode(), body] + [f"{name}={value}".encode() for name, value in sorted(given.items(), key=str)]
        digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:40]
        same[digest] = same.get(digest, -1) + 1
        given["message_id"] = f"{digest}-{same[digest]}" if same[digest] else digest
    return given
