"""A stream over AMQP 0-9-1: where it begins and ends, and its ranges; against Leveret (exact state) and RabbitMQ (read from consumers)."""

import pyarrow
import pytest
from relay import Relay
from telemetry import body

from leveret.ports.client import connect
from leveret.ports.spark.columns import record_batch
from leveret.ports.spark.stream_client import Address, DataLoss, Refused, StreamClient, StreamError, StreamUnavailable


def client_of(broker, port=None):
    return StreamClient(Address("127.0.0.1", port or broker.port, "guest", "guest", "/"))


def fetched(client, stream, start, end, **options):
    schema = pyarrow.schema([("offset", pyarrow.int64()), ("value", pyarrow.binary())])
    batches = [record_batch(chunk, schema, stream) for chunk in client.fetch(stream, start, end, **options)]
    return [(row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()]


def expected(start, end):
    return [(number, body("kiln", "temperature", number)) for number in range(start, end)]


def test_an_empty_stream_begins_and_ends_at_zero(broker, make_stream):
    client = client_of(broker)
    assert client.state(make_stream(broker).name)[1:3] == (0, 0)
    client.close()


def test_any_range_comes_whole_in_order_and_from_one_connection(broker, make_stream):
    stream, client = make_stream(broker), client_of(broker)
    stream.readings(0, 5000)
    assert client.state(stream.name)[1:3] == (0, 5000)
    for start, end in ((0, 5000), (4999, 5000), (0, 1), (1234, 3999), (4000, 4003)):
        assert fetched(client, stream.name, start, end) == expected(start, end)
    stream.readings(5000, 5010)
    assert client.state(stream.name)[1:3] == (0, 5010)
    client.close()


def test_the_id_of_a_stream_lasts_and_changes_when_it_is_made_again(leveret, make_stream):
    stream, client = make_stream(leveret), client_of(leveret)
    first = client.state(stream.name)[0]
    stream.readings(0, 10)
    assert client.state(stream.name)[0] == first
    stream.delete()
    stream.declare()
    assert client.state(stream.name)[0] not in (first, "")
    client.close()


def test_a_range_whose_beginning_has_gone_is_data_loss_that_names_the_offsets(leveret, make_stream):
    stream, client = make_stream(leveret, **{"x-max-length-bytes": 20_000}), client_of(leveret)
    stream.readings(0, 3000)
    _, first, following, _ = client.state(stream.name)
    assert 0 < first < following == 3000
    with pytest.raises(DataLoss, match=f"offsets 5 to {first - 1} are gone"):
        fetched(client, stream.name, 5, 3000)
    assert fetched(client, stream.name, 5, 3000, fail_on_data_loss=False) == expected(first, 3000)
    client.close()


def test_what_is_no_stream_is_refused_and_keeps_its_messages_and_what_is_not_there_is_refused(broker):
    client, connection = client_of(broker), connect(broker.url)
    connection.queue_declare("classic")
    with pytest.raises(StreamError, match="classic.*not a stream"):
        client.state("classic")
    connection.publish("", "classic", b"one")
    with pytest.raises(StreamError, match="classic.*not a stream"):
        client.state("classic")
    with pytest.raises(StreamError, match="classic"):
        fetched(client, "classic", 0, 1)
    with pytest.raises(Refused, match="404.*nowhere"):
        client.state("nowhere")
    connection.consume("classic", "what is left", no_ack=True)
    assert [message.body for message in connection.messages(2000)] == [b"one"]
    connection.queue_delete("classic")
    connection.close()
    client.close()


def test_no_broker_is_unavailable_and_a_wrong_password_is_refused(leveret):
    with pytest.raises(StreamUnavailable, match="no broker answers"):
        StreamClient(Address("127.0.0.1", 1, "guest", "guest", "/")).state("readings")
    with pytest.raises(Refused, match="log-in") as refusal:
        StreamClient(Address("127.0.0.1", leveret.port, "guest", "wrong-secret", "/")).state("readings")
    assert "wrong-secret" not in str(refusal.value)


def test_a_cut_connection_is_unavailable_and_the_next_call_connects_again(leveret, make_stream):
    stream, relay = make_stream(leveret), Relay(leveret.port)
    stream.readings(0, 3000)
    client = client_of(leveret, relay.port)
    assert client.state(stream.name)[2] == 3000
    before = relay.accepted
    relay.cut()
    with pytest.raises(StreamUnavailable):
        client.state(stream.name)
    relay.octets_max = 100_000
    client.close()
    with pytest.raises(StreamUnavailable):
        fetched(client, stream.name, 0, 3000)
    relay.octets_max = None
    assert fetched(client, stream.name, 0, 3000) == expected(0, 3000)
    assert relay.accepted == before + 2
    client.close()
    relay.close()
