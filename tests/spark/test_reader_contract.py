"""The data source's reader by plain calls, as Spark's planner and executors make them, against a real broker; no Spark session."""

import os
import pickle
import sys
import threading
import time

import brokers
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StringType, StructType
from relay import Relay
from telemetry import Stream, body

from leveret.ports.client import connect
from leveret.ports.spark.option_tables import RETRY_S
from leveret.ports.spark.source import SCHEMA, AmqpDataSource
from leveret.ports.spark.stream_client import DataLoss, Refused, StreamError

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))
from certificates import Authority  # noqa: E402 - the path above has to be set first

ALL = ReadAllAvailable()


def make_reader(broker, stream, schema=SCHEMA, port=None, **options):
    source = AmqpDataSource({"url": f"amqp://127.0.0.1:{port or broker.port}", "stream": stream.name, **options})
    return pickle.loads(pickle.dumps(source.streamReader(schema)))


def columns(reader, start, end):
    """What the executors would read between two offsets, as one dict of lists."""
    tables = [batch.to_pydict() for part in reader.partitions(start, end) for batch in pickle.loads(pickle.dumps(reader)).read(part)]
    return {name: [one for table in tables for one in table[name]] for name in (tables[0] if tables else ())}


def following(offset, stream):
    return offset[stream.name]["next"]


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"url": "amqp://h"}, "option stream is missing"),
        ({"stream": "s"}, "option url is missing"),
        ({"stream": "s", "url": "http://h"}, "option url must be"),
        ({"stream": "s", "url": "amqp://u:p@h"}, "no password in the url"),
        ({"stream": "s", "url": "amqp://u@h"}, "user u needs passwordEnv"),
        ({"stream": "s", "url": "amqp://h", "startingOffsets": "-1"}, "startingOffsets is earliest, latest, a number or a time"),
        ({"stream": "s", "url": "amqp://h", "startingOffsets": '{"t": 1}'}, "startingOffsets names t; the streams are s"),
        ({"stream": "s", "streams": "t", "url": "amqp://h"}, "either stream or streams"),
        ({"stream": "s,s", "url": "amqp://h"}, "named twice"),
        ({"stream": "s", "url": "amqp://h?ca=x"}, "settings of an amqps:// url"),
        ({"stream": "s", "url": "amqp://h", "mode": "x"}, "mode is"),
        ({"stream": "s", "url": "amqp://h", "maxRowsPerTrigger": "0"}, "maxRowsPerTrigger is a number from 1"),
        ({"stream": "s", "url": "amqp://h", "failOnDataLoss": "no"}, "failOnDataLoss is true or false"),
        ({"stream": "s", "url": "amqp://h", "prefetch": "1"}, "unknown option prefetch"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        AmqpDataSource(options).schema()
    with pytest.raises(ValueError, match=sentence):
        AmqpDataSource(options).streamReader(SCHEMA).initialOffset()


def test_a_password_is_looked_up_where_the_connection_is_made_and_is_not_pickled(leveret, make_stream, monkeypatch, tmp_path):
    stream = make_stream(leveret)
    url = {"url": f"amqp://guest@127.0.0.1:{leveret.port}", "stream": stream.name}
    monkeypatch.setenv("SPARK_TEST_PASSWORD", "gue" + "st")
    by_name = AmqpDataSource({**url, "passwordEnv": "SPARK_TEST_PASSWORD"}).streamReader(SCHEMA)
    assert following(by_name.initialOffset(), stream) == 0
    secret = tmp_path / "password"
    secret.write_text("not-it\n")
    by_file = AmqpDataSource({**url, "passwordFile": str(secret)}).streamReader(SCHEMA)
    assert b"not-it" not in pickle.dumps(by_file)
    with pytest.raises(StreamError, match="log-in"):
        by_file.initialOffset()
    monkeypatch.delenv("SPARK_TEST_PASSWORD")
    with pytest.raises(StreamError, match="SPARK_TEST_PASSWORD .* not set"):
        by_name.initialOffset()


def test_every_column_and_only_the_columns_asked_for(broker, make_stream):
    stream = make_stream(broker)
    long = ("l", 2**40)
    stream.publish([b"one"], message_id="m-1", timestamp=1_700_000_000, headers={"x-gateway": "north", "x-sequence": 7, "unit": "C"})
    stream.publish([b"two"], content_type="text/plain", timestamp=253_402_300_800, headers={"x-gateway": "south-west", "x-sequence": long})
    stream.publish([b"", b"four"], timestamp=1)
    reader = make_reader(broker, stream)
    start = reader.initialOffset()
    found = columns(reader, start, reader.latestOffset(start, ALL))
    moments = [moment and moment.timestamp() for moment in found.pop("timestamp")]
    assert (moments[0], moments[2:]) == (1_700_000_000, [1, 1]) and (moments[1] is None or moments[1] > 1_700_000_000)
    headers = [dict(pairs) for pairs in found.pop("headers")]
    assert [(given.get("x-gateway"), given.get("x-sequence"), given.get("unit")) for given in headers] == [
        ("north", "7", "C"),
        ("south-west", str(2**40), None),
        (None, None, None),
        (None, None, None),
    ]
    json = "application/json"
    assert found == {
        "value": [b"one", b"two", b"", b"four"],
        "stream": [stream.name] * 4,
        "offset": [0, 1, 2, 3],
        "exchange": [""] * 4,
        "routing_key": [stream.name] * 4,
        "content_type": [json, "text/plain", json, json],
        "message_id": ["m-1", None, None, None],
        "gateway": ["north", "south-west", None, None],
        "sequence": [7, 2**40, None, None],
    }
    narrow = make_reader(broker, stream, StructType().add("offset", LongType()).add("message_id", StringType()))
    assert columns(narrow, start, narrow.latestOffset(start, ALL)) == {"offset": [0, 1, 2, 3], "message_id": ["m-1", None, None, None]}


def test_as_many_layouts_of_properties_as_messages(leveret, make_stream):
    """Property columns are cut by layouts; messages that all differ, and text that is no UTF-8, come out right nevertheless."""
    stream = make_stream(leveret)
    for number in range(100):
        stream.publish([b"x"], message_id="m" * number, headers={"x-gateway": "g" * (number % 7), "n" * (number + 1): number})
    stream.publish([b"bad"], message_id=b"\xff", headers={"x-gateway": b"\xfe", "x-sequence": "text"})
    reader = make_reader(leveret, stream)
    start = reader.initialOffset()
    found = columns(reader, start, reader.latestOffset(start, ALL))
    assert found["message_id"] == ["m" * number for number in range(100)] + ["\ufffd"]
    assert found["gateway"] == ["g" * (number % 7) for number in range(100)] + ["\ufffd"]
    assert found["sequence"] == [None] * 101 and found["offset"] == list(range(101))


def test_several_streams_share_the_limits_and_each_row_names_its_stream(leveret, make_stream):
    streams = [make_stream(leveret) for _ in range(3)]
    for stream, count in zip(streams, (100, 10, 1)):
        stream.readings(0, count)
    source = AmqpDataSource({"url": leveret.url, "stream": ", ".join(stream.name for stream in streams), "maxRowsPerTrigger": "60"})
    reader, read = source.streamReader(SCHEMA), []
    at = reader.initialOffset()
    for size in (60, 51, 0):
        end = reader.latestOffset(at, reader.getDefaultReadLimit())
        found = columns(reader, at, end)
        assert len(found.get("offset", ())) == size
        read += zip(found.get("stream", ()), found.get("offset", ()))
        at = end
    assert sorted(read) == sorted((stream.name, number) for stream, count in zip(streams, (100, 10, 1)) for number in range(count))


def test_the_same_stream_of_two_brokers(leveret, make_stream):
    stream = make_stream(leveret)
    stream.readings(0, 3)
    urls = f"amqp://127.0.0.1:{leveret.port},amqp://localhost:{leveret.port}"
    reader = AmqpDataSource({"url": urls, "stream": stream.name}).streamReader(SCHEMA)
    start = reader.initialOffset()
    assert sorted(start) == [f"127.0.0.1:{leveret.port}/{stream.name}", f"localhost:{leveret.port}/{stream.name}"]
    found = columns(reader, start, reader.latestOffset(start, ALL))
    assert sorted(zip(found["stream"], found["offset"])) == [(label, number) for label in sorted(start) for number in range(3)]


def test_a_stream_that_is_named_later_joins_and_one_that_is_no_longer_named_is_an_error(leveret, make_stream):
    old, new = make_stream(leveret), make_stream(leveret)
    old.readings(0, 2)
    new.readings(0, 3)
    at = make_reader(leveret, old).initialOffset()
    both = AmqpDataSource({"url": leveret.url, "stream": f"{old.name},{new.name}"}).streamReader(SCHEMA)
    assert len(columns(both, at, both.latestOffset(at, ALL))["offset"]) == 5
    with pytest.raises(StreamError, match="use another checkpoint"):
        make_reader(leveret, new).latestOffset(at, ALL)


def test_ranges_are_cut_for_parallel_reading_and_octets_limit_a_batch(leveret, make_stream):
    stream = make_stream(leveret)
    stream.publish([bytes(100)] * 20_000)
    reader = make_reader(leveret, stream, minPartitions="4", maxBytesPerTrigger="1200000")
    start = reader.initialOffset()
    whole = reader.latestOffset(start, ALL)
    parts = reader.partitions(start, whole)
    assert [(part.start, part.end) for part in parts] == [(0, 5000), (5000, 10000), (10000, 15000), (15000, 20000)]
    assert columns(reader, start, whole)["offset"] == list(range(20_000))
    assert 8_000 <= following(reader.latestOffset(start, reader.getDefaultReadLimit()), stream) <= 11_000


def test_a_column_that_is_not_there_is_an_error_of_the_first_call_and_not_of_the_constructor(leveret, make_stream):
    for wrong in (StructType().add("body", StringType()), StructType().add("offset", StringType())):
        with pytest.raises(StreamError, match="there is no column"):
            make_reader(leveret, make_stream(leveret), wrong).initialOffset()


def test_starting_offsets(broker, make_stream):
    stream = make_stream(broker)
    stream.readings(0, 30)
    for wanted, first in (("earliest", 0), ("latest", 30), ("17", 17), ("30", 30)):
        assert following(make_reader(broker, stream, startingOffsets=wanted).initialOffset(), stream) == first
    for wanted, first in (("2001-01-01T00:00:00Z", 0), ("2125-01-01T00:00:00Z", 30), ('{"%s": 12}' % stream.name, 12)):
        assert following(make_reader(broker, stream, startingOffsets=wanted).initialOffset(), stream) == first
    with pytest.raises(StreamError, match="startingOffsets 31 is beyond the next offset 30"):
        make_reader(broker, stream, startingOffsets="31").initialOffset()


def test_a_start_by_time_between_two_readings_begins_with_the_later_one(leveret, make_stream):
    stream = make_stream(leveret)
    stream.readings(0, 10)
    between = int(time.time()) + 2
    while time.time() < between + 2:  # the broker stamps with whole seconds of a clock that it looks at now and then
        time.sleep(0.05)
    stream.readings(10, 15)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(between))
    assert following(make_reader(leveret, stream, startingOffsets=moment).initialOffset(), stream) == 10


def test_batches_are_limited_and_join_without_gap_or_overlap(broker, make_stream):
    stream = make_stream(broker)
    stream.readings(0, 25)
    reader = make_reader(broker, stream, maxRowsPerTrigger="10")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    at, offsets = reader.initialOffset(), []
    for size in (10, 10, 5, 0):
        end = reader.latestOffset(at, limit)
        found = columns(reader, at, end).get("offset", [])
        assert len(found) == size
        offsets += found
        at = end
    assert offsets == list(range(25))
    assert following(reader.latestOffset(reader.initialOffset(), ALL), stream) == 25
    assert following(reader.reportLatestOffset(), stream) == 25


def test_a_planned_batch_reads_the_same_again_in_another_process(leveret, make_stream):
    stream = make_stream(leveret)
    stream.readings(0, 100)
    reader = make_reader(leveret, stream)
    start, end = reader.initialOffset(), None
    end = reader.latestOffset(start, ReadMaxRows(60))
    first = columns(reader, start, end)
    stream.readings(100, 150)
    assert columns(make_reader(leveret, stream), start, end) == first


def test_available_now_ends_at_the_head_of_its_beginning(broker, make_stream):
    stream = make_stream(broker)
    stream.readings(0, 20)
    reader = make_reader(broker, stream)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    stream.readings(20, 40)
    end = reader.latestOffset(start, ALL)
    assert following(end, stream) == 20
    assert reader.latestOffset(end, ALL) == end


def test_retention_that_overtook_the_job_is_an_error_or_is_passed_over(leveret, make_stream):
    stream = make_stream(leveret, **{"x-max-length-bytes": 20_000})
    stream.readings(0, 10)
    strict, lenient = make_reader(leveret, stream), make_reader(leveret, stream, failOnDataLoss="false")
    start = strict.initialOffset()
    stream.readings(10, 3000)
    with pytest.raises(DataLoss, match=r"offsets 0 to \d+ are gone \(retention\), the first is \d+"):
        strict.latestOffset(start, ALL)
    with pytest.raises(DataLoss, match="offsets 5 to"):
        make_reader(leveret, stream, startingOffsets="5").initialOffset()
    end = lenient.latestOffset(start, ALL)
    offsets = columns(lenient, start, end)["offset"]
    assert offsets == list(range(offsets[0], 3000)) and offsets[0] > 10 and end[stream.name]["lost"] == offsets[0]


def test_a_stream_that_was_made_again_is_an_error_or_is_read_from_its_beginning(leveret, make_stream):
    stream = make_stream(leveret)
    stream.readings(0, 10)
    strict, lenient = make_reader(leveret, stream), make_reader(leveret, stream, failOnDataLoss="false")
    at = strict.latestOffset(strict.initialOffset(), ALL)
    stream.delete()
    stream.declare()
    stream.readings(0, 12)
    with pytest.raises(DataLoss, match="made again .* what followed offset 10 is gone"):
        strict.latestOffset(at, ALL)
    assert columns(lenient, at, lenient.latestOffset(at, ALL))["offset"] == list(range(12))


def test_a_shrunken_stream_without_an_id_is_an_error(rabbitmq, make_stream, monkeypatch):
    monkeypatch.setattr("leveret.ports.spark.source.SHRUNKEN_WAIT_S", 1)
    stream = make_stream(rabbitmq)
    stream.readings(0, 10)
    reader = make_reader(rabbitmq, stream)
    at = reader.latestOffset(reader.initialOffset(), ALL)
    stream.delete()
    stream.declare()
    stream.readings(0, 4)
    with pytest.raises(DataLoss, match="offsets 4 to 9 were read, but now it ends at 4"):
        reader.latestOffset(at, ALL)


def test_the_checkpoint_of_another_stream_is_refused(leveret, make_stream):
    stream = make_stream(leveret)
    with pytest.raises(StreamError, match="the checkpoint is of stream other"):
        make_reader(leveret, stream).latestOffset({"other": {"id": "x", "start": 0, "from": 0, "next": 0, "lost": 0}}, ALL)


def test_the_planner_waits_out_a_broker_that_is_away(leveret, make_stream):
    stream, relay = make_stream(leveret), Relay(leveret.port)
    stream.readings(0, 10)
    reader = make_reader(leveret, stream, port=relay.port)
    start = reader.initialOffset()
    relay.open = False
    relay.cut()
    threading.Timer(1.0, setattr, (relay, "open", True)).start()
    began = time.monotonic()
    assert following(reader.latestOffset(start, ALL), stream) == 10
    assert time.monotonic() - began >= 0.9 and relay.accepted >= 3
    relay.close()


def test_a_planner_gives_up_after_the_seconds_that_it_was_given(leveret, make_stream):
    stream, relay = make_stream(leveret), Relay(leveret.port)
    relay.open = False
    with pytest.raises(StreamError, match="127.0.0.1"):
        make_reader(leveret, stream, port=relay.port, retrySeconds="1").initialOffset()
    assert relay.accepted >= 2
    relay.close()


def test_reading_goes_on_where_the_connection_broke(leveret, make_stream, monkeypatch):
    monkeypatch.setattr("leveret.ports.spark.stream_client.CHUNK_ROWS", 100)
    stream, relay = make_stream(leveret), Relay(leveret.port)
    stream.readings(0, 2000)
    reader = make_reader(leveret, stream, port=relay.port)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    relay.cut()
    relay.octets_max = 150_000
    found = columns(reader, start, end)
    assert found["offset"] == list(range(2000)) and found["value"] == [body("kiln", "temperature", number) for number in range(2000)]
    assert relay.accepted >= 3
    relay.close()


def test_queue_mode_hands_out_again_what_was_not_done_and_nothing_that_was(leveret, capsys):
    """mode=queue is at least once: a batch is acknowledged when the next one is planned, and not before."""
    connection = connect(leveret.url)
    connection.queue_declare("jobs")
    for number in range(30):
        connection.publish("", "jobs", b"%d" % number, {"message_id": str(number)})

    def reader():
        options = {"url": leveret.url, "stream": "jobs", "mode": "queue", "maxRowsPerTrigger": "10"}
        return AmqpDataSource(options).streamReader(StructType().add("value", BinaryType()).add("message_id", StringType()))

    first = reader()
    start = first.initialOffset()
    one = first.latestOffset(start, ReadMaxRows(10))
    assert "at-least-once" in capsys.readouterr().err
    two = first.latestOffset(one, ReadMaxRows(10))
    assert columns(first, start, one)["value"] == [b"%d" % number for number in range(10)]
    assert columns(first, one, two)["message_id"] == [str(number) for number in range(10, 20)]
    first.commit(one)
    first._connection.close()
    again = reader()
    assert again.partitions(one, two) == []
    three = again.latestOffset(two, ReadMaxRows(100))
    assert columns(again, two, three)["value"] == [b"%d" % number for number in range(10, 30)]
    again.commit(three)
    again._connection.close()
    assert connection.queue_declare("jobs", passive=True)[1] == 0
    connection.queue_delete("jobs")
    connection.close()


def test_reading_over_tls_with_the_authority_in_the_url(tmp_path):
    """amqps:// is read packed as well; a broker whose certificate is of another authority is refused."""
    authority, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    certificate, key = authority.issue("broker", "/CN=broker")
    broker = brokers.start_leveret(more=("--listen", f"amqps://127.0.0.1:0?cert={certificate}&key={key}"))
    try:
        stream = Stream(broker, "secret")
        stream.readings(0, 300)
        for ca, wrong in ((authority, False), (other, True)):
            url = f"amqps://127.0.0.1:{broker.more_ports[0]}?ca={ca.certificate}"
            reader = AmqpDataSource({"url": url, "stream": "secret"}).streamReader(SCHEMA)
            if wrong:
                began = time.monotonic()
                with pytest.raises(Refused, match="certificate"):
                    reader.initialOffset()
                assert time.monotonic() - began < RETRY_S / 2, "it was asked again"
            else:
                start = reader.initialOffset()
                assert columns(reader, start, reader.latestOffset(start, ALL))["offset"] == list(range(300))
        stream.close()
    finally:
        broker.end()
