"""Arrow columns out of packed records: no Python for each row, and nothing is built that was not asked for."""

import struct
import sys

import numpy
import pytest
from pyspark.sql.types import StructType

from leveret.core.amqp_0_9 import properties
from leveret.ports.spark import columns
from leveret.ports.spark.source import SCHEMA, arrow_schema

GIVEN = properties.encode(
    {
        "content_type": "application/json",
        "message_id": "m-00",
        "timestamp": 1_700_000_000,
        "headers": {"x-gateway": "north", "x-sequence": 7},
    }
)


def chunk_of(rows, kinds=None):
    """As a broker packs them: records of one gateway, bodies of different sizes."""
    sizes, records = [], []
    for number in range(rows):
        body = b'{"value": %d}' % number
        records += (b"\x00\x08readings", GIVEN, body)
        sizes.append((1_700_000_000, 10, len(GIVEN), len(body), kinds[number] if kinds else 0))
    numbers = numpy.array(sizes, ">u4").T.tobytes()
    return columns.Chunk.unpack(struct.pack(">BxxxIQ", columns.VERSION, rows, 0) + numbers + b"".join(records))


def calls(work):
    """How many functions, of Python or C, are called while `work()` runs."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_what_stands_in_properties_of_another_format_is_null():
    """Pack version 3 has a column with the kind of each record; only properties of class basic (format 0) are read."""
    durable = 1 << 16
    rows = columns.record_batch(chunk_of(4, (0, 2, durable, 255)), arrow_schema(SCHEMA), "readings").to_pylist()
    assert [row["value"] for row in rows] == [b'{"value": %d}' % number for number in range(4)]
    assert [row["gateway"] for row in rows] == ["north", None, "north", None]
    assert [row["message_id"] for row in rows] == ["m-00", None, "m-00", None]
    assert [len(row["headers"]) for row in rows] == [2, 0, 2, 0]


def test_the_work_in_python_does_not_grow_with_the_rows():
    whole = StructType([field for field in SCHEMA if field.name != "headers"])  # a map is built row by row: it is asked for by few
    schema, few, many = arrow_schema(whole), chunk_of(100), chunk_of(20_000)
    columns.record_batch(few, schema, "readings")
    least, most = (calls(lambda chunk=chunk: columns.record_batch(chunk, schema, "readings")) for chunk in (few, many))
    assert most <= 2 * least, f"{least} calls for 100 rows, {most} for 20000"
    batch = columns.record_batch(many, schema, "readings").slice(19_999).to_pylist()[0]
    assert (batch["value"], batch["offset"], batch["gateway"], batch["sequence"]) == (b'{"value": 19999}', 19_999, "north", 7)


@pytest.mark.parametrize(
    "asked, untouched",
    [
        (["value", "offset"], ["_groups", "_headers", "_times"]),
        (["value", "gateway"], ["_headers", "_times"]),
        (["headers"], ["_groups", "_times"]),
    ],
)
def test_only_what_is_asked_for_is_built(asked, untouched, monkeypatch):
    for name in untouched:
        monkeypatch.delattr(columns._Cut, name)
    schema = arrow_schema(StructType([SCHEMA[name] for name in asked]))
    assert columns.record_batch(chunk_of(10), schema, "readings").schema.names == asked
