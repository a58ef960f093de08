"""The Spark data source `amqp`: a stream queue as a table of messages, streaming and batch.

    from leveret.ports.spark import register
    register(spark)
    spark.readStream.format("amqp").option("url", "amqp://127.0.0.1:5672").option("stream", "readings").load()

Options: `url` (amqp://[user@]host[:port][/vhost], no password in it: options are shown in plans and pickled), `passwordEnv` (the name of an
environment variable) or `passwordFile` (a file's path), read in the process that connects; without user: guest/guest; `stream`;
`startingOffsets` earliest (default), latest or a number, for a new query only; `maxRowsPerTrigger`; `failOnDataLoss` (default true).

Laws: a Spark offset is {stream: {"id", "start", "next"}}: the stream's id, where this query began, the next offset to read; it lies in
the checkpoint, and a planned range is read again after a crash, so a batch is always the same rows. Gone offsets, another id, a
shrunken stream are errors that name the offsets (`failOnDataLoss` false: they are passed over). The broker is told nothing: `commit`
removes nothing.
The planner reconnects by itself for RETRY_S. Only the columns of the schema that was asked for are built.
It does not parse the value, and it has no sink.
"""
import os
import time
from urllib.parse import unquote, urlsplit

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from .stream_client import Address, DataLoss, StreamClient, StreamError, StreamUnavailable

RETRY_S = 60
RETRY_PAUSE_MAX_S = 5.0
SHRUNKEN_WAIT_S = 10
SCHEMA = (StructType().add("value", BinaryType()).add("stream", StringType()).add("offset", LongType()).add("timestamp", TimestampType())
          .add("routing_key", StringType()).add("content_type", StringType()).add("message_id", StringType()))
OPTIONS = ("url", "passwordEnv", "passwordFile", "stream", "startingOffsets", "maxRowsPerTrigger", "failOnDataLoss")
TIMESTAMP_MAX_S = 253402300799  # the end of the year 9999: what Spark can show


def register(spark):
    """Makes `format("amqp")` known to this session. Executors import leveret by name: it must be installed (or shipped) there too."""
    spark.dataSource.register(AmqpDataSource)


class Options:
    """The checked options of one source. Raises ValueError with one sentence. Holds no password, only where it is found."""

    def __init__(self, options):
        options = {name.lower(): text for name, text in options.items()}
        unknown = set(options) - {name.lower() for name in OPTIONS}
        if unknown:
            raise ValueError(f"amqp: unknown option {', '.join(sorted(unknown))}; known are {', '.join(OPTIONS)}")
        if not options.get("stream"):
            raise ValueError("amqp: option stream is missing: the name of a queue with x-queue-type=stream")
        self.stream = options["stream"]
        self.starting_offsets = _starting_offsets(options.get("startingoffsets", "earliest"))
        self.rows_per_trigger_max = _row_limit(options.get("maxrowspertrigger"))
        self.fail_on_data_loss = _truth("failOnDataLoss", options.get("failondataloss", "true"))
        self.password_env, self.password_file = options.get("passwordenv"), options.get("passwordfile")
        self._set_url(options.get("url", ""))

    def address(self):
        """The broker's address with the password, which is looked up here: in the process that connects."""
        return Address(self.host, self.port, self.user, self._password(), self.virtual_host)

    def _set_url(self, url):
        parts = urlsplit(url)
        if parts.scheme != "amqp" or not parts.hostname:
            raise ValueError(f"amqp: option url must be amqp://[user@]host[:port][/vhost], not {url!r}")
        if parts.password is not None:
            raise ValueError("amqp: no password in the url, options are shown in query plans: use passwordEnv or passwordFile")
        self.host, self.port = parts.hostname, parts.port or 5672
        self.user = unquote(parts.username) if parts.username else "guest"
        self.virtual_host = unquote(parts.path[1:]) or "/"
        if self.user != "guest" and not self.password_env and not self.password_file:
            raise ValueError(f"amqp: user {self.user} needs passwordEnv or passwordFile")

    def _password(self):
        if self.password_env:
            if self.password_env not in os.environ:
                raise StreamError(f"amqp: environment variable {self.password_env} (passwordEnv) is not set in this process")
            return os.environ[self.password_env]
        if self.password_file:
            with open(self.password_file, encoding="utf-8") as file:
                return file.read().rstrip("\r\n")
        return "guest"


def _starting_offsets(text):
    if text in ("earliest", "latest"):
        return text
    if text.isdecimal():
        return int(text)
    raise ValueError(f"amqp: startingOffsets is earliest, latest or a number, not {text!r}")


def _row_limit(text):
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"amqp: maxRowsPerTrigger is a number from 1, not {text!r}")
    return int(text)


def _truth(name, text):
    if text.lower() not in ("true", "false"):
        raise ValueError(f"amqp: {name} is true or false, not {text!r}")
    return text.lower() == "true"


class AmqpDataSource(DataSource):
    """`format("amqp")`."""

    def __init__(self, options):
        DataSource.__init__(self, options)
        self._checked = Options(options)

    @classmethod
    def name(cls):
        return "amqp"

    def schema(self):
        return SCHEMA

    def reader(self, schema):
        return AmqpReader(self._checked, schema)

    def streamReader(self, schema):
        return AmqpStreamReader(self._checked, schema)


class Range(InputPartition):
    """Offsets [start, end) of the stream."""

    def __init__(self, start, end):
        self.start, self.end = start, end


class _Reading:
    """What the streaming and the batch reader share. Constructors stay trivial: an error there is hidden by Spark (SPARK.md 1.2)."""

    def __init__(self, options, schema):
        self._options = options
        self._schema = schema

    def read(self, partition):
        """Yields a RecordBatch per chunk. A broken connection is made again and reading goes on where it broke."""
        schema = _arrow_schema(self._schema)
        for rows in _fetch(self._options, partition.start, partition.end):
            yield _record_batch(rows, schema, self._options.stream)

    def _state(self, next_min=0):
        """The stream's (id, first, next), waiting out failures; without ids also waits for a head that has not caught up to `next_min`."""
        patience, shrunken_until = _Patience(), time.monotonic() + SHRUNKEN_WAIT_S
        while True:
            try:
                state = _client(self._options).state(self._options.stream)
            except StreamUnavailable as error:
                patience.wait(error)
                continue
            if state[0] or state[2] >= next_min or time.monotonic() > shrunken_until:
                return state
            time.sleep(0.5)

    def _first_offset(self, state):
        wanted, (_, first, head) = self._options.starting_offsets, state
        if wanted == "earliest":
            return first
        if wanted == "latest":
            return head
        if wanted > head:
            raise StreamError(f"stream {self._options.stream!r}: startingOffsets {wanted} is beyond the next offset {head}")
        if wanted < first and self._options.fail_on_data_loss:
            raise DataLoss(f"stream {self._options.stream!r}: offsets {wanted} to {first - 1} are gone, the first is {first}")
        return max(wanted, first)


class AmqpReader(_Reading, DataSourceReader):
    """Batch: from startingOffsets to the head as it is when the query is planned."""

    def partitions(self):
        _arrow_schema(self._schema)
        state = self._state()
        return [Range(self._first_offset(state), state[2])]


class AmqpStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streaming. One object lives in the planner for the whole run; copies of it read in the executors."""

    _latest = None
    _target = None

    def initialOffset(self):
        _arrow_schema(self._schema)
        state = self._state()
        first = self._first_offset(state)
        return self._offset(state[0], first, first)

    def getDefaultReadLimit(self):
        limit = self._options.rows_per_trigger_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self):
        self._target = self._state()

    def latestOffset(self, start, limit):
        """The end of the next batch: the head, or less if the limit or the AvailableNow target says so."""
        at = self._position(start)
        state = self._state(at["next"])
        self._latest = self._offset(state[0], at["start"], state[2])
        head = state[2]
        if self._target is not None and self._target[0] == state[0]:
            head = min(head, max(self._target[2], at["next"]))
        begin = self._begin(at, state)
        if isinstance(limit, ReadMaxRows):
            head = min(head, begin + limit.max_rows)
        return self._offset(state[0], at["start"], head)

    def reportLatestOffset(self):
        return self._latest

    def partitions(self, start, end):
        begin, end = self._position(start), self._position(end)
        first = begin["next"] if begin["id"] == end["id"] else 0
        return [Range(first, end["next"])] if first < end["next"] else []

    def _offset(self, identity, start, following):
        return {self._options.stream: {"id": identity, "start": start, "next": following}}

    def _position(self, offset):
        if self._options.stream not in offset:
            raise StreamError(f"the checkpoint is of stream {', '.join(offset)}, not of {self._options.stream!r}: use another checkpoint")
        return offset[self._options.stream]

    def _begin(self, at, state):
        """Where the next batch begins. Raises DataLoss, or with failOnDataLoss=false skips what is gone."""
        (identity, first, head), following, name = state, at["next"], self._options.stream
        if identity == at["id"] and first <= following <= head:
            return following
        if not self._options.fail_on_data_loss:
            return max(following, first) if identity == at["id"] else first
        if identity != at["id"]:
            raise DataLoss(f"stream {name!r} was made again (id {at['id']} is now {identity}): what followed offset {following} is gone")
        if following < first:
            raise DataLoss(f"stream {name!r}: offsets {following} to {first - 1} are gone (retention), the first is {first}")
        raise DataLoss(f"stream {name!r}: offsets {head} to {following - 1} were read, but now it ends at {head}")


class _Patience:
    """Waits between attempts, longer each time, and gives up RETRY_S after it was made."""

    def __init__(self):
        self._until = time.monotonic() + RETRY_S
        self._pause = 0.1

    def wait(self, error):
        if time.monotonic() + self._pause > self._until:
            raise error
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, RETRY_PAUSE_MAX_S)


_clients = {}


def _client(options):
    """This process's client for the address: workers are used again from batch to batch. A forked child does not share its parent's."""
    address = options.address()
    key = (os.getpid(),) + address.key()
    if key not in _clients:
        _clients[key] = StreamClient(address)
    return _clients[key]


def _fetch(options, start, end):
    patience = _Patience()
    while start < end:
        try:
            for rows in _client(options).fetch(options.stream, start, end, options.fail_on_data_loss):
                start = rows[-1][0] + 1
                yield rows
                patience = _Patience()
            return
        except StreamUnavailable as error:
            patience.wait(error)


def _arrow_schema(schema):
    """The Arrow schema of the columns asked for. Raises StreamError for a column or a type that is not in SCHEMA."""
    known = {field.name: field.dataType for field in SCHEMA}
    for field in schema:
        if known.get(field.name) != field.dataType:
            asked = f"{field.name} {field.dataType.simpleString()}"
            raise StreamError(f"amqp: there is no column {asked}; the columns are {SCHEMA.simpleString()}")
    return to_arrow_schema(schema, timezone="UTC")


def _record_batch(rows, schema, stream):
    """A RecordBatch of exactly the columns in `schema` from (offset, message) rows. Properties are decoded only if a column needs them."""
    names = set(schema.names)
    properties = [message.properties for _, message in rows] if names & {"timestamp", "content_type", "message_id"} else ()
    arrays = [pyarrow.array(_column(field.name, rows, properties, stream), type=field.type) for field in schema]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _column(name, rows, properties, stream):
    if name == "value":
        return [message.body for _, message in rows]
    if name == "offset":
        return [offset for offset, _ in rows]
    if name == "stream":
        return [stream] * len(rows)
    if name == "routing_key":
        return [_text(message.routing_key_octets) for _, message in rows]
    if name == "timestamp":
        return [_microseconds(found.get("timestamp")) for found in properties]
    return [_text(found.get(name)) for found in properties]


def _text(text):
    """Octets that are no UTF-8 must not stop the query: they are replaced."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _microseconds(seconds):
    return seconds * 1_000_000 if seconds is not None and seconds <= TIMESTAMP_MAX_S else None
