"""Many messages as Arrow columns, without a look at each: octets in one piece and arrays of sizes.

A chunk's octets are its records one behind the other, each: exchange (short string), routing key (short string), properties (flags and
list), body. What Leveret packs (core/amqp_0_9/packed.py) is that already; single messages are put together to it.

Laws: only the columns asked for are built. Columns out of properties are cut by layouts (property_layout.py); messages in more than
LAYOUTS_MAX layouts are read one by one. Nothing a publisher sent raises: text that is no UTF-8 has its bad octets replaced, a number too
large is null.

    value         the body                             timestamp     the publisher's (property), else when it reached the broker if known
    stream        its label                            content_type, message_id    properties
    offset        in the stream                        gateway, sequence   headers x-gateway and x-sequence (the bridge's)
    position      messages read before it, of all streams
    exchange, routing_key                              headers       text as it is, everything else as JSON
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy
import pyarrow

from leveret.core.amqp_0_9 import properties
from leveret.core.errors import ProtocolError
from leveret.core.message.formats import BASIC, NUMBER

from .property_layout import Layout

LAYOUTS_MAX = 32
VERSION = 3
TIMESTAMP_MAX_S = 253402300799  # the end of the year 9999: what Spark can show
PROPERTY_OF = {
    "timestamp": "timestamp",
    "content_type": "content_type",
    "message_id": "message_id",
    "gateway": "headers.x-gateway",
    "sequence": "headers.x-sequence",
}
_WHOLE_NUMBERS = {"b": ">i1", "B": ">u1", "s": ">i2", "u": ">u2", "I": ">i4", "i": ">u4", "l": ">i8", "L": ">i8"}
_LONG_MAX = 2**63 - 1
Array = numpy.ndarray[Any, Any]
Octets = bytes | memoryview
Columns = list[tuple[Array, Any]]  # the rows of a layout, and what a column has there: an array, or None


class Chunk:
    """Records with the offsets first, first + 1 ... `sizes`: a row of (arrived, route, properties, body, kind) each; arrived 0: not known.
    The properties of a kind whose format is not BASIC are read by nobody: what comes out of properties is null there."""

    def __init__(self, first: int, sizes: Array, octets: Octets) -> None:
        self.first, self.sizes, self.octets = first, sizes, octets
        self.count = len(sizes)

    @classmethod
    def unpack(cls, body: bytes | memoryview) -> "Chunk":
        """From a packed message's body. Raises ValueError when it is none."""
        if len(body) < 16 or body[0] != VERSION:
            raise ValueError(f"packed records of version {body[0] if body else None}; version {VERSION} is known")
        count, first = int.from_bytes(body[4:8], "big"), int.from_bytes(body[8:16], "big")
        sizes = numpy.frombuffer(body, ">u4", 5 * count, 16).reshape(5, count).T
        return cls(first, sizes, memoryview(body)[16 + 20 * count :])

    @classmethod
    def of_messages(cls, first: int, messages: Iterable[Any], arrived: Sequence[int] = ()) -> "Chunk":
        """From single messages (core/amqp_0_9/client/message.py) with consecutive offsets. `arrived`: seconds since 1970 of each; none are
        known where it is empty."""
        parts: list[bytes] = []
        sizes: list[tuple[int, ...]] = []
        for message, came in zip(messages, arrived or itertools.repeat(0)):
            exchange, key, given, body = message.exchange_octets, message.routing_key_octets, message.properties_octets, message.body
            parts += (bytes((len(exchange),)), exchange, bytes((len(key),)), key, given, body)
            sizes.append((came, len(exchange) + len(key) + 2, len(given), len(body), BASIC))
        return cls(first, numpy.array(sizes, ">u4").reshape(len(sizes), 5), b"".join(parts))

    def up_to(self, end: int) -> "Chunk":
        """The records with offsets below `end`."""
        if self.first + self.count <= end:
            return self
        sizes = self.sizes[: end - self.first]
        return Chunk(self.first, sizes, self.octets[: int(sizes[:, 1:4].astype(numpy.int64).sum())])

    @classmethod
    def join(cls, chunks: Sequence["Chunk"]) -> "Chunk":
        """One of several that follow each other."""
        if len(chunks) == 1:
            return chunks[0]
        return cls(chunks[0].first, numpy.concatenate([chunk.sizes for chunk in chunks]), b"".join([chunk.octets for chunk in chunks]))


def record_batch(chunk: Chunk, schema: Any, label: str, position: int = 0) -> Any:
    """A RecordBatch of exactly the columns in `schema` (an Arrow schema with names and types of the source).

    `position`: how far a record's position is ahead of its offset.
    """
    cut = _Cut(chunk, position)
    arrays = [cut.column(field.name, label).cast(field.type) for field in schema]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


class _Cut:
    """A chunk cut into its pieces; six a record: size, exchange, size, routing key, properties, body."""

    def __init__(self, chunk: Chunk, position: int) -> None:
        self._chunk, self._count, self._position = chunk, chunk.count, position
        self._octets = numpy.frombuffer(chunk.octets, numpy.uint8)
        sizes = chunk.sizes.astype(numpy.int64)
        wholes = sizes[:, 1:4].sum(axis=1)
        self._starts = numpy.cumsum(wholes) - wholes
        self._is_basic = sizes[:, 4] & NUMBER == BASIC
        exchange = self._octets[self._starts].astype(numpy.int64)
        ones = numpy.ones(self._count, numpy.int64)
        pieces = numpy.stack([ones, exchange, ones, sizes[:, 1] - exchange - 2, sizes[:, 2], sizes[:, 3]], axis=1).reshape(-1)
        bounds = numpy.zeros(6 * self._count + 1, numpy.int64)
        numpy.cumsum(pieces, out=bounds[1:])
        self._given_at, self._given_sizes = bounds[4:-1:6], sizes[:, 2]
        self._pieces = pyarrow.Array.from_buffers(
            pyarrow.large_binary(), 6 * self._count, [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(chunk.octets)]
        )
        self._properties: list[tuple[Array, Layout, Array]] | None = None

    def column(self, name: str, label: str) -> Any:
        """One column as an Arrow array."""
        if name == "value":
            return self._piece(5)
        if name in ("offset", "position"):
            first = self._chunk.first + (self._position if name == "position" else 0)
            return pyarrow.array(numpy.arange(first, first + self._count, dtype=numpy.int64))
        if name == "stream":
            return pyarrow.repeat(pyarrow.scalar(label), self._count)
        if name in ("exchange", "routing_key"):
            return text(self._piece(1 if name == "exchange" else 3))
        if name == "headers":
            return self._headers()
        if self._properties is None:
            self._properties = list(self._groups())
        columns = [(rows, _values(name, layout, matrix)) for rows, layout, matrix in self._properties]
        if name == "timestamp":
            return self._times(columns)
        return _scatter(columns, self._count, pyarrow.int64() if name == "sequence" else pyarrow.string())

    def _piece(self, place: int) -> Any:
        return self._pieces.take(pyarrow.array(numpy.arange(place, 6 * self._count, 6)))

    def _groups(self) -> Iterator[tuple[Array, Layout, Array]]:
        """(rows, layout, matrix of their properties) for each layout; rows and matrix have one line a message."""
        left, layouts = numpy.flatnonzero(self._is_basic), 0
        others = numpy.flatnonzero(~self._is_basic)
        if len(others):
            yield others, Layout(b""), numpy.empty((len(others), 0), numpy.uint8)
        while len(left):
            if layouts == LAYOUTS_MAX:
                for row in left:
                    octets = self._given(int(row))
                    yield numpy.array([row]), Layout(octets), numpy.frombuffer(octets, numpy.uint8).reshape(1, -1)
                return
            pattern = self._given(int(left[0]))
            layout, layouts = Layout(pattern), layouts + 1
            same_size = left[self._given_sizes[left] == len(pattern)]
            matrix = self._octets[self._given_at[same_size][:, None] + numpy.arange(len(pattern))]
            fixed = numpy.ones(len(pattern), bool)
            for _, start, end in layout.values.values():
                fixed[start:end] = False
            alike = (matrix[:, fixed] == matrix[0, fixed]).all(axis=1)
            yield same_size[alike], layout, matrix[alike]
            left = numpy.setdiff1d(left, same_size[alike], assume_unique=True)

    def _given(self, row: int) -> bytes:
        at = self._given_at[row]
        return self._octets[at : at + self._given_sizes[row]].tobytes()

    def _times(self, columns: Columns) -> Any:
        """The properties' timestamps where there are any, else the arrivals."""
        arrived = self._chunk.sizes[:, 0].astype(numpy.int64)
        whole = arrived.copy()
        for rows, array in columns:
            if array is not None:
                whole[rows] = array
        known = (whole > 0) & (whole <= TIMESTAMP_MAX_S)
        return pyarrow.array(numpy.where(known, whole, 0) * 1_000_000, mask=~known).cast(pyarrow.timestamp("us", tz="UTC"))

    def _headers(self) -> Any:
        known: dict[bytes, list[tuple[str, str]]] = {}
        rows: list[list[tuple[str, str]]] = []
        for octets, is_basic in zip(self._piece(4).to_pylist(), self._is_basic.tolist()):
            if not is_basic:
                rows.append([])
                continue
            if octets not in known:
                known[octets] = _headers_of(octets)
            rows.append(known[octets])
        return pyarrow.array(rows, pyarrow.map_(pyarrow.string(), pyarrow.string()))


def text(array: Any) -> Any:
    """A binary array as text; bad octets are replaced."""
    try:
        return array.cast(pyarrow.binary()).cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return pyarrow.array([octets.decode("utf-8", "replace") for octets in array.to_pylist()], pyarrow.string())


def _values(name: str, layout: Layout, matrix: Array) -> Any:
    """The values of one column for the messages of one layout; None: they have none. Times as seconds in a numpy array."""
    kind, start, end = layout.values.get(PROPERTY_OF[name], (None, 0, 0))
    if kind is None or (name in ("timestamp", "sequence")) == (kind in "Sx"):
        return None
    if kind not in _WHOLE_NUMBERS and kind not in "Sx":
        return None
    cut = numpy.ascontiguousarray(matrix[:, start:end])
    if kind in "Sx":
        ends = numpy.arange(len(cut) + 1, dtype=numpy.int64) * (end - start)
        return text(pyarrow.Array.from_buffers(pyarrow.large_binary(), len(cut), [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(cut)]))
    numbers = cut.view(_WHOLE_NUMBERS[kind]).reshape(-1).astype(numpy.int64)
    return numbers if name == "timestamp" else pyarrow.array(numbers)


def _scatter(columns: Columns, count: int, kind: Any) -> Any:
    """One array of `count` out of (rows, array or None)."""
    rows = numpy.concatenate([rows for rows, _ in columns]) if columns else numpy.empty(0, numpy.int64)
    arrays = [pyarrow.nulls(len(rows), kind) if array is None else array for rows, array in columns]
    if len(arrays) == 1:
        return arrays[0]
    order = numpy.empty(count, numpy.int64)
    order[rows] = numpy.arange(count)
    return pyarrow.chunked_array(arrays, kind).combine_chunks().take(pyarrow.array(order))


def _headers_of(octets: bytes) -> list[tuple[str, str]]:
    try:
        headers = properties.decode_all(octets).get("headers") or {}
    except ProtocolError:
        return []
    return [(name, value if isinstance(value, str) else json.dumps(value, default=_plain)) for name, value in headers.items()]


def _plain(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
