"""The Spark data source `amqp`: stream queues as a table of messages, streaming and batch.

    from leveret.ports.spark import register
    register(spark)
    spark.readStream.format("amqp").option("url", "amqp://127.0.0.1:5672").option("stream", "readings").load()

Options: options.py. Columns: columns.py. `mode=queue` is queue_source.py. With protocol=1.0 in url: partitions of Event Hubs
(partition_1_0.py).

Laws: a Spark offset is {label: {"id", "start", "from", "next", "lost"}} for each stream: its id, where this query began, where this batch
begins, the next offset to read, how many offsets were passed over; it lies in the checkpoint, and a planned range is read again after a
crash, so a batch is always the same rows. Gone offsets, another id, a shrunken stream are errors that name the offsets
(`failOnDataLoss` false: they are passed over and counted). The broker is told nothing: `commit` removes nothing.
A stream that is new among the options begins at its earliest offset. A label is the stream's name; with several brokers
host:port/name. Planner and tasks reconnect by themselves for retrySeconds. Only the columns of the schema that was asked for are built.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, LongType, MapType, StringType, StructType, TimestampType

from .columns import Chunk, record_batch
from .options import Options
from .stream_client import Address, DataLoss, StreamClient, StreamError, StreamUnavailable

if TYPE_CHECKING:
    from .partition_1_0 import PartitionClient

T = TypeVar("T")
At = dict[str, Any]  # where a query is in a stream: "id", "start", "from", "next", "lost"
Spans = dict[str, tuple[int, int]]
RETRY_PAUSE_MAX_S = 5.0
SHRUNKEN_WAIT_S = 10
ROWS_PER_PARTITION_MIN = 5_000
SCHEMA = (
    StructType()
    .add("value", BinaryType())
    .add("stream", StringType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("exchange", StringType())
    .add("routing_key", StringType())
    .add("headers", MapType(StringType(), StringType()))
    .add("content_type", StringType())
    .add("message_id", StringType())
    .add("gateway", StringType())
    .add("sequence", LongType())
)
POSITION = "position"  # only for who asks: how many messages of all streams this query had before; it only grows


class AmqpDataSource(DataSource):
    """`format("amqp")`."""

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> StructType:
        Options(self.options)
        return SCHEMA

    def reader(self, schema: StructType) -> "AmqpReader":
        options = Options(self.options)
        if options.mode == "queue":
            raise ValueError("amqp: mode=queue has no batch reader, for reading takes the messages away: use readStream, or a stream queue")
        return AmqpReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            options = Options(self.options)
        except ValueError as error:
            return _Refusal(str(error))
        if options.mode == "queue":
            from .queue_source import QueueStreamReader

            return QueueStreamReader(options, arrow_schema(schema))
        return AmqpStreamReader(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .sink import writer

        return writer(self.options, schema)


class _Refusal(DataSourceStreamReader):
    """Says what is wrong with the options when it is asked for something: an error of `streamReader` itself is hidden by Spark."""

    def __init__(self, text: str) -> None:
        self._text = text

    def initialOffset(self) -> dict[str, At]:
        raise ValueError(self._text)

    def latestOffset(self, start: Any, limit: Any) -> dict[str, At]:
        raise ValueError(self._text)

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        raise ValueError(self._text)

    def read(self, partition: Any) -> Iterator[Any]:
        raise ValueError(self._text)


class Range(InputPartition):
    """Offsets [start, end) of the stream with this label; `position` is that of the first."""

    def __init__(self, label: str, start: int, end: int, position: int) -> None:
        self.label, self.start, self.end, self.position = label, start, end, position


class State:
    """A stream's state now: its id, the first and the next offset, its octets (0: not known)."""

    def __init__(self, identity: str, first: int, following: int, octets: int) -> None:
        self.id, self.first, self.next, self.octets = identity, first, following, octets


class _Reading:
    """The streaming and the batch reader share it. Constructors stay trivial: an error there is hidden by Spark (SPARK.md 1.2)."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def read(self, partition: Any) -> Iterator[Any]:
        """Yields a RecordBatch per chunk. A broken connection is made again and reading goes on where it broke."""
        schema = arrow_schema(self._schema)
        for chunk in _fetch(self._options, partition):
            yield record_batch(chunk, schema, partition.label, partition.position - partition.start)

    def _state(self, label: str, next_min: int = 0) -> State:
        """The stream's State, waiting out failures; without ids also waits for a head that has not caught up to `next_min`."""
        shrunken_until = time.monotonic() + SHRUNKEN_WAIT_S
        while True:
            state = State(*patiently(self._options, lambda: client(self._options.address(label)).state(self._options.stream(label))))
            if state.id or state.next >= next_min or time.monotonic() > shrunken_until:
                return state
            time.sleep(0.5)

    def _first_offset(self, label: str, state: State) -> int:
        wanted, name = self._options.starting_offsets[label], f"stream {label!r}"
        if wanted == "earliest":
            return state.first
        if wanted == "latest":
            return state.next
        if isinstance(wanted, tuple):
            ask = client(self._options.address(label)).offset_since
            offset = patiently(self._options, lambda: ask(self._options.stream(label), wanted[1]))
            return state.next if offset is None else offset
        if wanted > state.next:
            raise StreamError(f"{name}: startingOffsets {wanted} is beyond the next offset {state.next}")
        if wanted < state.first and self._options.fail_on_data_loss:
            raise DataLoss(f"{name}: offsets {wanted} to {state.first - 1} are gone, the first is {state.first}")
        return max(wanted, state.first)

    def _ranges(self, spans: Spans, position: int = 0) -> list[Range]:
        """Ranges for {label: (start, end)}, cut so that there are partitions_min if there is enough to read."""
        total = sum(end - start for start, end in spans.values())
        most = max(-(-total // self._options.partitions_min), ROWS_PER_PARTITION_MIN)
        ranges = []
        for label, (start, end) in spans.items():
            while end - start > 0:
                count = -(-(end - start) // most)
                cut = start + -(-(end - start) // count)
                ranges.append(Range(label, start, cut, position))
                position += cut - start
                start = cut
        return ranges


class AmqpReader(_Reading, DataSourceReader):
    """Batch: from startingOffsets to the head as it is when the query is planned."""

    def partitions(self) -> list[Range]:
        arrow_schema(self._schema)
        spans = {}
        for label in self._options.sources:
            state = self._state(label)
            spans[label] = (self._first_offset(label, state), state.next)
        return self._ranges(spans) or [Range(next(iter(spans)), 0, 0, 0)]


class AmqpStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streaming. One object lives in the planner for the whole run; copies of it read in the executors."""

    _latest: dict[str, At] | None = None
    _targets: dict[str, State] | None = None

    def initialOffset(self) -> dict[str, At]:
        arrow_schema(self._schema)
        return {label: self._begin_new(label, self._state(label)) for label in self._options.sources}

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.rows_per_trigger_max:
            return ReadMaxRows(options.rows_per_trigger_max)
        return ReadMaxBytes(options.octets_per_trigger_max) if options.octets_per_trigger_max else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._targets = {label: self._state(label) for label in self._options.sources}

    def latestOffset(self, start: Any, limit: Any) -> dict[str, At]:
        """The end of the next batch: the heads, or less if the limit or the AvailableNow target says so."""
        gone = set(start) - set(self._options.sources)
        if gone:
            raise StreamError(
                f"the checkpoint is of stream {', '.join(sorted(start))}, not of {', '.join(self._options.sources)}: use another checkpoint"
            )
        planned: dict[str, At] = {}
        heads: dict[str, At] = {}
        rates: list[float] = []
        for label in self._options.sources:
            at = start.get(label)
            state = self._state(label, at["next"] if at else 0)
            at = at or self._begin_new(label, state)
            heads[label] = dict(at, id=state.id, next=state.next)
            begin, lost = self._begin(label, at, state)
            # What this query has had of a stream only grows, also when the stream is made again.
            began = at["start"] if state.id == at["id"] else begin - (at["next"] - at["start"])
            planned[label] = {
                "id": state.id,
                "start": began,
                "from": begin,
                "next": max(self._target(label, at, state), begin),
                "lost": at["lost"] + lost,
            }
            if state.octets and state.next > state.first:
                rates.append(state.octets / (state.next - state.first))
        self._latest = heads
        if not isinstance(limit, ReadAllAvailable):
            self._cap(planned, rates, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        # An offset that is not the same as before is new data for Spark.
        return {label: start[label] if _stands(start.get(label), at) else at for label, at in planned.items()}

    def _target(self, label: str, at: At, state: State) -> int:
        """How far this query may read: the head, or with AvailableNow the head as it was then."""
        target = self._targets.get(label) if self._targets is not None else None
        return state.next if target is None or target.id != state.id else min(state.next, max(target.next, at["next"]))

    def _cap(self, planned: dict[str, At], rates: list[float], rows_max: int | None) -> None:
        """Makes the spans of a batch smaller, all by the same share, until the limits hold."""
        rows = sum(at["next"] - at["from"] for at in planned.values())
        limits = [most for most in (rows_max, self._options.rows_per_trigger_max) if most]
        if self._options.octets_per_trigger_max:
            if rows and not rates:
                raise StreamError("maxBytesPerTrigger needs a broker that tells a stream's octets (Leveret does): use maxRowsPerTrigger")
            limits.append(max(int(self._options.octets_per_trigger_max / max(rates)), 1) if rates else rows)
        left = min(limits, default=rows)
        if rows <= left:
            return
        for at in planned.values():
            span = at["next"] - at["from"]
            taken = min(span, left, -(-span * left // rows) if rows else 0)
            rows, left = rows - span, left - taken
            at["next"] = at["from"] + taken

    def reportLatestOffset(self) -> Any:
        return self._latest

    def partitions(self, start: Any, end: Any) -> list[Range]:
        spans = spans_of(start, end)
        return self._ranges(spans, sum(span[0] - end[label]["start"] for label, span in spans.items()))

    def _begin_new(self, label: str, state: State) -> At:
        first = self._first_offset(label, state)
        return {"id": state.id, "start": first, "from": first, "next": first, "lost": 0}

    def _begin(self, label: str, at: At, state: State) -> tuple[int, int]:
        """(where the next batch begins, how many offsets that passes over). Raises DataLoss unless failOnDataLoss is false."""
        following, name = at["next"], f"stream {label!r}"
        if state.id == at["id"] and state.first <= following <= state.next:
            return following, 0
        if not self._options.fail_on_data_loss:
            if state.id == at["id"] and following < state.first:
                return state.first, state.first - following
            return state.first, state.first
        if state.id != at["id"]:
            raise DataLoss(f"{name} was made again (id {at['id']} is now {state.id}): what followed offset {following} is gone")
        if following < state.first:
            raise DataLoss(f"{name}: offsets {following} to {state.first - 1} are gone (retention), the first is {state.first}")
        raise DataLoss(f"{name}: offsets {state.next} to {following - 1} were read, but now it ends at {state.next}")


def spans_of(start: Any, end: Any) -> Spans:
    """{label: (first, behind the last)} of what lies between two offsets of a query. `start` None: from where it began."""
    spans = {}
    for label, at in end.items():
        before = (start or {}).get(label)
        behind = before["next"] if before and before["id"] == at["id"] else at["from"] if before else at["start"]
        spans[label] = (max(at["from"], behind), at["next"])
    return spans


def _stands(before: At | None, after: At) -> bool:
    """True when nothing is read and nothing was lost between two positions."""
    return before is not None and all(before.get(name) == after[name] for name in ("id", "next", "lost"))


class Patience:
    """Waits between attempts, longer each time, and gives up `seconds` after it was made."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pause = 0.1

    def wait(self, error: Exception) -> None:
        if time.monotonic() + self._pause > self._until:
            raise error
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, RETRY_PAUSE_MAX_S)


def patiently(options: Options, ask: Callable[[], T]) -> T:
    """The result of `ask()`, called again while the broker cannot be reached."""
    patience = Patience(options.retry_s)
    while True:
        try:
            return ask()
        except StreamUnavailable as error:
            patience.wait(error)


_clients: "dict[tuple[Any, ...], StreamClient | PartitionClient]" = {}


def client(address: Address) -> "StreamClient | PartitionClient":
    """This process's client for the address: workers are used again from batch to batch. A forked child does not share its parent's."""
    key = (os.getpid(),) + address.key()
    if key not in _clients:
        if "protocol=1.0" in address.query:
            from .partition_1_0 import PartitionClient

            _clients[key] = PartitionClient(address)
        else:
            _clients[key] = StreamClient(address)
    return _clients[key]


def _fetch(options: Options, partition: Range) -> Iterator[Chunk]:
    """The chunks of a Range."""
    patience, start, stream = Patience(options.retry_s), partition.start, options.stream(partition.label)
    while start < partition.end:
        try:
            for chunk in client(options.address(partition.label)).fetch(stream, start, partition.end, options.fail_on_data_loss):
                if chunk.first > start:
                    gone = f"offsets {start} to {chunk.first - 1} are gone and passed over"
                    print(f"amqp: stream {partition.label!r}: {gone}", file=sys.stderr)
                start = chunk.first + chunk.count
                yield chunk
                patience = Patience(options.retry_s)
            return
        except StreamUnavailable as error:
            patience.wait(error)


def arrow_schema(schema: StructType) -> Any:
    """The Arrow schema of the columns asked for. Raises StreamError for a column or a type that is not in SCHEMA."""
    known = {field.name: field.dataType for field in SCHEMA}
    known[POSITION] = LongType()
    for field in schema:
        if known.get(field.name) != field.dataType:
            asked = f"{field.name} {field.dataType.simpleString()}"
            raise StreamError(f"amqp: there is no column {asked}; the columns are {SCHEMA.simpleString()}")
    return to_arrow_schema(schema, timezone="UTC")


def register(spark: SparkSession) -> None:
    """Makes `format("amqp")` known to this session. Executors import leveret by name: it must be installed (or shipped) there too.

    Spark starts its Python processes as $PYSPARK_PYTHON or else as whatever `python3` is on the PATH, which need not be the Python that
    runs this: on this machine it is made to be.
    """
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none: its server chooses
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    spark.dataSource.register(AmqpDataSource)
