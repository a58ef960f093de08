"""What the sink makes of options, columns and rows. Without a Spark session and without a broker; the rest: test_sink.py."""

import datetime

import pytest
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from leveret.ports.client_errors import ChannelClosed, ConnectFailed, ConnectionLost, LoginRefused, Unroutable
from leveret.ports.spark import sink
from leveret.ports.spark.stream_client import StreamError, StreamUnavailable

VALUE = StructType().add("value", BinaryType())


def made(schema=VALUE, **options):
    return sink.writer(dict({"url": "amqp://h", "routingKey": "q"}, **options), schema)


@pytest.mark.parametrize(
    "schema, options, words",
    [
        (StructType().add("value", IntegerType()), {}, "the sink has no column value int; it has value, exchange, routing_key"),
        (StructType().add("value", BinaryType()).add("more", StringType()), {}, "the sink has no column more string"),
        (StructType().add("routing_key", StringType()), {}, "the sink needs a column value, binary or string"),
        (VALUE, {"routingKey": None}, "the sink needs a column routing_key or the option routingKey"),
        (VALUE, {"url": "amqp://a,amqp://b"}, "the sink writes to one broker: url names several"),
        (VALUE, {"delivery": "twice"}, "delivery is exactlyOnce or atLeastOnce, not 'twice'"),
        (VALUE, {"rows": "1"}, "unknown option rows; known are url, passwordEnv"),
    ],
)
def test_what_a_sink_cannot_do_is_one_sentence(schema, options, words):
    given = {name: text for name, text in dict({"url": "amqp://h", "routingKey": "q"}, **options).items() if text is not None}
    with pytest.raises(ValueError) as told:
        sink.writer(given, schema)
    assert words in str(told.value)


def test_the_delivery_chooses_the_writer_and_a_column_stands_for_an_option():
    assert type(made()) is sink.ExactlyOnceWriter and type(made(delivery="ATLEASTONCE")) is sink.AtLeastOnceWriter
    keyed = StructType().add("value", StringType()).add("routing_key", StringType())
    assert type(sink.writer({"url": "amqp://h"}, keyed)) is sink.ExactlyOnceWriter


def test_a_row_is_a_message_with_the_options_where_it_has_no_columns():
    writer = made(exchange="x")
    rows = [Row(value=b"a"), Row(value="é", exchange="y", routing_key="k"), Row(value=None, exchange="", routing_key=None)]
    messages = list(writer._messages(rows))
    assert [message[:3] for message in messages] == [("x", "q", b"a"), ("y", "k", "é".encode()), ("x", "q", b"")]
    assert all(message[3]["delivery_mode"] == 2 for message in messages)


def test_properties_come_from_the_columns():
    moment = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc)
    row = Row(value=b"a", content_type="text/plain", message_id="m", headers={"a": "1"}, timestamp=moment)
    ((_, _, _, given),) = made()._messages([row])
    assert given == {
        "delivery_mode": 2,
        "content_type": "text/plain",
        "message_id": "m",
        "headers": {"a": "1"},
        "timestamp": int(moment.timestamp()),
    }


def test_a_message_id_is_of_what_the_message_is_and_its_place_among_equal_ones():
    """Never of the order of rows: a task that is done again, in another order, gives the same ids."""
    rows = [Row(value=b"a", routing_key=key) for key in ("k", "l", "k", "k")]
    ids = [given["message_id"] for _, _, _, given in made()._messages(rows)]
    assert len(set(ids)) == 4 and ids[2] == ids[0] + "-1" and ids[3] == ids[0] + "-2" and len(ids[0]) == 40
    assert [given["message_id"] for _, _, _, given in made()._messages(rows[:2][::-1])] == [ids[1], ids[0]]
    other = [given["message_id"] for _, _, _, given in made()._messages([Row(value=b"a", routing_key="k", content_type="t")])]
    assert other[0] not in ids


class Broker:
    """A connection as the sink uses it: queue `q` is there; what was done is in `done`."""

    unconfirmed = 0

    def __init__(self, records=(), fails=None):
        self.records, self.fails, self.done = list(records), fails, []

    def queue_declare(self, queue="", passive=False, durable=False):
        if passive and queue not in ("q", "r"):
            raise ChannelClosed("the broker closed the channel", sink.NOT_FOUND, "no queue")
        self.done.append(("declare", queue, passive, durable))

    def tx_select(self):
        self.done.append("select")

    def consume(self, queue, exclusive=False):
        self.done.append(("consume", queue, exclusive))

    def poll(self, timeout_ms=0):
        return self.records

    def tx_publish(self, exchange, key, body, properties=None, mandatory=False):
        self.done.append(("publish", exchange, key, body, mandatory))

    def ack(self, message, multiple=False):
        self.done.append(("ack", message.body, multiple))

    def tx_commit(self):
        if self.fails is not None:
            raise self.fails
        self.done.append("commit")

    def close(self):
        self.done.append("close")


class Record:
    def __init__(self, batch):
        self.body = str(batch).encode()


MESSAGE = ("", "q", b"body", {})


def epoch(monkeypatch, broker, batch=5, messages=(MESSAGE,), retry_s=0, mandatory=True):
    monkeypatch.setattr(sink, "_open", lambda login: broker)
    return sink.publish_epoch(None, "query", batch, list(messages), mandatory, retry_s)


@pytest.mark.parametrize("records, published", [((), True), ((4,), True), ((5,), False), ((3, 6), False)])
def test_a_batch_is_published_once_with_a_record_of_its_number(monkeypatch, records, published):
    broker = Broker(map(Record, records))
    assert epoch(monkeypatch, broker) == published
    queue = sink.EPOCH_QUEUE + "query"
    begun = [("declare", queue, False, True), ("declare", "q", True, False), "select", ("consume", queue, True)]
    told = [("publish", "", "q", b"body", True), ("publish", "", queue, b"5", False)]
    acknowledged = [("ack", str(records[-1]).encode(), True)] if records else []
    assert broker.done == begun + (told + acknowledged + ["commit"] if published else []) + ["close"]


def test_a_queue_that_is_not_there_is_said_before_anything_is_published(monkeypatch):
    broker = Broker()
    with pytest.raises(StreamError, match="there is no queue 'absent'"):
        epoch(monkeypatch, broker, messages=[MESSAGE, ("", "absent", b"", {})])
    assert "select" not in broker.done
    assert epoch(monkeypatch, Broker(), messages=[("x", "absent", b"", {})]), "another exchange's keys are no queues"


@pytest.mark.parametrize(
    "error, kind",
    [
        (LoginRefused("no"), StreamError),
        (ChannelClosed("x", 406, "x"), StreamError),
        (ConnectionLost("x", 506, "x"), StreamError),
        (Unroutable("no queue"), StreamError),
        (ChannelClosed("x", 403, "x"), StreamUnavailable),
        (ChannelClosed("x", 405, "x"), StreamUnavailable),
        (ConnectionLost("x", 0, "x"), StreamUnavailable),
        (ConnectionLost("x", 320, "x"), StreamUnavailable),
        (ConnectFailed("nobody"), StreamUnavailable),
    ],
)
def test_what_waiting_does_not_change_is_final_and_the_rest_is_tried_until_its_time_is_over(monkeypatch, error, kind):
    broker = Broker(fails=error)
    with pytest.raises(StreamError) as told:
        epoch(monkeypatch, broker)
    assert type(told.value) is kind and broker.done[-1] == "close"
