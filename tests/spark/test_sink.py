"""`writeStream.format("amqp")`: alerts in one transaction with the number of their batch, bulk with confirms."""

import itertools
import os
import sys
import time

import brokers
import pytest
from pyspark.sql.types import LongType, StringType, StructType
from queries import finished

from leveret.ports.client import connect
from leveret.ports.spark.option_tables import RETRY_S
from leveret.ports.spark.options import Login
from leveret.ports.spark.sink import EPOCH_QUEUE, publish_epoch, writer
from leveret.ports.spark.stream_client import StreamError, StreamUnavailable

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))
from certificates import Authority  # noqa: E402 - the path above has to be set first

_numbers = itertools.count(1)
VALUE = StructType().add("value", StringType())


@pytest.fixture
def queue(broker):
    """(broker, a new queue's name, a connection)."""
    connection, name = connect(broker.url, brokers.PATIENCE_MS), f"alerts-{next(_numbers)}"
    connection.queue_declare(name, durable=True)
    yield broker, name, connection
    connection.queue_delete(name)
    connection.close()


def drained(connection, name):
    """The bodies in a queue, taken out."""
    bodies = []
    while (message := connection.get(name, no_ack=True)) is not None:
        bodies.append((message.body, message.properties.get("message_id")))
    return bodies


def test_a_batch_is_published_once_however_often_it_is_committed(queue):
    broker, name, connection = queue
    login, query = Login({"url": broker.url}), f"query-{name}"
    batch = [("", name, b"alert %d" % number, {"message_id": str(number)}) for number in range(5)]
    assert [publish_epoch(login, query, number, batch) for number in (0, 0, 3, 2, 3, 4)] == [True, False, True, False, False, True]
    assert drained(connection, name) == [(b"alert %d" % number, str(number)) for number in range(5)] * 3
    assert connection.queue_declare(EPOCH_QUEUE + query, passive=True)[1] == 1
    connection.queue_delete(EPOCH_QUEUE + query)


def test_nothing_is_published_when_a_driver_ends_before_its_commit(queue):
    """The record and the messages are one transaction: a connection that ends in it leaves the old record and no message."""
    broker, name, connection = queue
    login, query = Login({"url": broker.url}), f"query-{name}"
    publish_epoch(login, query, 0, [("", name, b"first", {})])
    dying = connect(broker.url, brokers.PATIENCE_MS)
    dying.tx_select()
    dying.consume(EPOCH_QUEUE + query, exclusive=True)
    records = dying.poll(5000)
    dying.tx_publish("", name, b"lost", {})
    dying.tx_publish("", EPOCH_QUEUE + query, b"1", {"delivery_mode": 2})
    dying.ack(records[-1])
    dying.poll(100)
    dying.close()
    assert publish_epoch(login, query, 1, [("", name, b"second", {})]) and not publish_epoch(login, query, 1, [("", name, b"second", {})])
    assert [body for body, _ in drained(connection, name)] == [b"first", b"second"]
    connection.queue_delete(EPOCH_QUEUE + query)


def test_a_routing_key_without_a_queue_publishes_nothing_and_says_so(broker):
    with pytest.raises(StreamError, match="there is no queue 'nowhere'"):
        publish_epoch(Login({"url": broker.url}), "nobody", 0, [("", "nowhere", b"x", {})])


@pytest.fixture
def half_bound(queue):
    """(broker, an exchange whose key `there` leads to a queue and no other key does, the queue's name, a connection)."""
    broker, name, connection = queue
    connection.exchange_declare(name, "topic")
    connection.queue_bind(name, name, "there")
    yield broker, name, name, connection
    connection.exchange_delete(name)


ROWS = [("", "there", b"1", {}), ("", "nowhere", b"2", {}), ("", "there", b"3", {})]


def test_what_no_queue_takes_is_told_by_a_batch_that_is_published_once(half_bound):
    """0-9-1 section 1.8.3.6: basic.return; the rest of the transaction stands (1.9.2.5), so the batch is not published again."""
    broker, exchange, name, connection = half_bound
    login, query, batch = Login({"url": broker.url}), f"query-{name}", [(exchange,) + row[1:] for row in ROWS]
    with pytest.raises(StreamError, match="batch 0 is published but for what no queue took: .*'nowhere'.* mandatory") as told:
        publish_epoch(login, query, 0, batch)
    assert not isinstance(told.value, StreamUnavailable)
    assert not publish_epoch(login, query, 0, batch)
    assert publish_epoch(login, query, 1, batch, mandatory=False)
    assert [body for body, _ in drained(connection, name)] == [b"1", b"3"] * 2
    connection.queue_delete(EPOCH_QUEUE + query)


def test_a_task_whose_messages_no_queue_takes_fails_and_publishes_again(half_bound):
    broker, exchange, name, connection = half_bound
    schema = StructType().add("routing_key", StringType()).add("value", StringType())

    class Row(dict):
        asDict = dict.copy

    def rows():
        return (Row(routing_key=key, value=str(body, "ascii")) for _, key, body, _ in ROWS)

    options = {"url": broker.url, "exchange": exchange, "delivery": "atLeastOnce"}
    with pytest.raises(StreamError, match="'nowhere'.* mandatory") as told:
        writer(options, schema).write(rows())
    assert not isinstance(told.value, StreamUnavailable)
    writer({**options, "mandatory": "false"}, schema).write(rows())
    connection.queue_bind(name, exchange, "nowhere")
    drained(connection, name)
    writer(options, schema).write(rows())
    assert sorted(body for body, _ in drained(connection, name)) == [b"1", b"2", b"3"]


def test_a_broker_that_is_away_for_longer_than_was_said_may_come_back():
    began = time.monotonic()
    with pytest.raises(StreamUnavailable, match="127.0.0.1:1"):
        publish_epoch(Login({"url": "amqp://127.0.0.1:1"}), "nobody", 0, [("", "nowhere", b"x", {})], retry_s=1)
    assert time.monotonic() - began < RETRY_S / 2


@pytest.mark.parametrize("delivery", ["exactlyOnce", "atLeastOnce"])
def test_a_streaming_query_writes_each_row_as_a_message(spark, queue, make_stream, tmp_path, delivery):
    broker, name, connection = queue
    stream = make_stream(broker)
    stream.publish([b"same", b"same", b"other"])
    for bodies in ([], [b"later"]):
        stream.publish(bodies)
        frame = spark.readStream.format("amqp").options(url=broker.url, stream=stream.name).schema("value binary").load()
        finished(
            lambda: (
                frame.writeStream.format("amqp")
                .options(url=broker.url, routingKey=name, delivery=delivery)
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
        )
    messages = drained(connection, name)
    assert [body for body, _ in messages] == [b"same", b"same", b"other", b"later"]
    assert len({identity for _, identity in messages}) == 4 and messages[1][1] == messages[0][1] + "-1"


def test_what_a_task_publishes_again_is_dropped_by_a_queue_with_a_deduplication_window(spark, leveret, make_stream, tmp_path):
    """At least once, with message ids made of the content: a whole batch again, from another checkpoint, adds nothing."""
    connection, name, stream = connect(leveret.url, brokers.PATIENCE_MS), f"bulk-{next(_numbers)}", make_stream(leveret)
    connection.queue_declare(name, durable=True, arguments={"x-deduplication": 10_000})
    stream.publish([b"row %d" % (number // 2) for number in range(3000)])
    for run in range(2):
        frame = spark.readStream.format("amqp").options(url=leveret.url, stream=stream.name).schema("value binary").load()
        finished(
            lambda: (
                frame.writeStream.format("amqp")
                .options(url=leveret.url, routingKey=name, delivery="atLeastOnce")
                .option("checkpointLocation", str(tmp_path / f"checkpoint-{run}"))
                .trigger(availableNow=True)
                .start()
            )
        )
    messages = drained(connection, name)
    assert sorted(body for body, _ in messages) == sorted(b"row %d" % (number // 2) for number in range(3000))
    connection.queue_delete(name)
    connection.close()


def test_an_epoch_over_tls(tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker", "/CN=broker")
    broker = brokers.start_leveret(more=("--listen", f"amqps://127.0.0.1:0?cert={certificate}&key={key}"))
    try:
        connection = connect(broker.url, brokers.PATIENCE_MS)
        connection.queue_declare("alerts", durable=True)
        login = Login({"url": f"amqps://127.0.0.1:{broker.more_ports[0]}?ca={authority.certificate}"})
        batch = [("", "alerts", b"over tls", {"message_id": "1"})]
        assert [publish_epoch(login, "secure", number, batch) for number in (0, 0)] == [True, False]
        assert drained(connection, "alerts") == [(b"over tls", "1")]
        connection.close()
    finally:
        broker.end()


@pytest.mark.parametrize(
    "schema, options, sentence",
    [
        (StructType().add("offset", LongType()), {}, "the sink has no column offset bigint"),
        (StructType().add("routing_key", StringType()), {}, "needs a column value"),
        (VALUE, {}, "needs a column routing_key or the option routingKey"),
        (VALUE, {"routingKey": "k", "delivery": "once"}, "delivery is exactlyOnce or atLeastOnce"),
        (VALUE, {"stream": "s"}, "unknown option stream"),
        (VALUE, {"url": "amqp://h,amqp://i", "routingKey": "k"}, "to one broker"),
        (VALUE, {"routingKey": "k", "maxRowsPerEpoch": "many"}, "maxRowsPerEpoch is a number"),
        (VALUE, {"routingKey": "k", "mandatory": "maybe"}, "mandatory is true or false"),
        (VALUE, {"routingKey": "k", "retrySeconds": "-1"}, "retrySeconds is a whole number of seconds"),
    ],
)
def test_what_the_sink_cannot_do_is_one_sentence(schema, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        writer({"url": "amqp://h", **options}, schema)


def test_more_rows_than_an_epoch_may_have_are_refused_with_the_way_out():
    class Row(dict):
        asDict = dict.copy

    rows = (Row(value="x") for _ in range(4))
    with pytest.raises(StreamError, match="more than 3 rows .* raise maxRowsPerEpoch or use delivery=atLeastOnce"):
        writer({"url": "amqp://h", "routingKey": "k", "maxRowsPerEpoch": "3"}, VALUE).write(rows)


def test_a_batch_that_is_more_than_a_broker_keeps_for_a_commit_is_told_at_once(tmp_path):
    config = tmp_path / "small.toml"
    config.write_text("[limits]\ntransaction_count_max = 100\n")
    broker = brokers.start_leveret(more=("--config", str(config)))
    try:
        connection = connect(broker.url, brokers.PATIENCE_MS)
        connection.queue_declare("alerts", durable=True)
        with pytest.raises(StreamError, match="transaction_count_max") as told:
            publish_epoch(Login({"url": broker.url}), "large", 0, [("", "alerts", b"x", {})] * 200)
        assert not isinstance(told.value, StreamUnavailable)
        assert connection.queue_declare("alerts", passive=True)[1] == 0
        connection.close()
    finally:
        broker.end()


def test_a_refused_login_is_told_at_once(broker, monkeypatch):
    monkeypatch.setenv("WRONG_PASSWORD", "wrong")
    login = Login({"url": broker.url.replace("127.0.0.1", "nobody@127.0.0.1"), "passwordEnv": "WRONG_PASSWORD"})
    began = time.monotonic()
    with pytest.raises(StreamError, match="refuses the log-in"):
        publish_epoch(login, "nobody", 0, [("", "nowhere", b"x", {})])
    assert time.monotonic() - began < RETRY_S / 2
