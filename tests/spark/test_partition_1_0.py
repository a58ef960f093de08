"""A partition of an event hub as a stream, over AMQP 1.0, of a Leveret's stream of that name; Event Hubs itself was not at hand."""

import pyarrow
import pytest
from relay import Relay
from telemetry import body

from leveret.ports.client_1_0 import connect
from leveret.ports.spark.columns import record_batch
from leveret.ports.spark.options import Options
from leveret.ports.spark.partition_1_0 import PartitionClient
from leveret.ports.spark.stream_client import Address, DataLoss, Refused, StreamError, StreamUnavailable

ADDRESS = "%s/ConsumerGroups/$Default/Partitions/%s"
COLUMNS = {
    "offset": pyarrow.int64(),
    "value": pyarrow.binary(),
    "timestamp": pyarrow.timestamp("us", "UTC"),
    "gateway": pyarrow.string(),
    "sequence": pyarrow.int64(),
}


class Hub:
    """A partition on a broker, and clients of it."""

    def __init__(self, broker, make_stream, **arguments):
        self.stream = make_stream(broker, **arguments)
        self.address = ADDRESS % tuple(self.stream.name.split("-"))
        self.broker = broker

    def client(self, port=None):
        return PartitionClient(Address("127.0.0.1", port or self.broker.port, "guest", "guest", "/", query="protocol=1.0"))

    def send(self, first, end, **more):
        connection = connect(self.broker.url + "/?protocol=1.0")
        sender = connection.sender("/queues/" + self.stream.name)
        for number in range(first, end):
            octets = body("kiln", "temperature", number)
            sender.send(octets, {"durable": True, **more}, {"x-gateway": "gw", "x-sequence": ("long", number)}, wait=False)
        sender.wait_settled()
        connection.close()


@pytest.fixture
def hub(leveret, make_stream):
    return Hub(leveret, make_stream)


def rows(client, address, start, end, **options):
    schema = pyarrow.schema(list(COLUMNS.items()))
    batches = [record_batch(chunk, schema, "s") for chunk in client.fetch(address, start, end, **options)]
    return [row for batch in batches for row in batch.to_pylist()]


def numbers(client, address, start, end, **options):
    found = rows(client, address, start, end, **options)
    assert [row["value"] for row in found] == [body("kiln", "temperature", row["offset"]) for row in found]
    return [row["offset"] for row in found]


def test_an_empty_partition_begins_and_ends_at_zero(hub):
    client = hub.client()
    identity, first, following, octets = client.state(hub.address)
    assert identity and (first, following, octets) == (0, 0, 0)
    assert client.offset_since(hub.address, 0) is None
    client.close()


def test_any_range_comes_whole_in_order_with_its_columns(hub):
    client = hub.client()
    hub.send(0, 5000)
    assert client.state(hub.address)[1:3] == (0, 5000)
    for start, end in ((0, 5000), (4999, 5000), (0, 1), (1234, 3999), (4000, 4003)):
        assert numbers(client, hub.address, start, end) == list(range(start, end))
    hub.send(5000, 5010)
    assert client.state(hub.address)[1:3] == (0, 5010)
    (row,) = rows(client, hub.address, 5004, 5005)
    assert (row["gateway"], row["sequence"]) == ("gw", 5004) and row["timestamp"].year >= 2026
    assert client.offset_since(hub.address, 0) == 0 and client.offset_since(hub.address, 4_000_000_000) is None
    client.close()


def test_the_id_changes_when_the_stream_is_made_again(hub):
    client = hub.client()
    first = client.state(hub.address)[0]
    hub.send(0, 3)
    assert client.state(hub.address)[0] == first
    hub.stream.delete()
    hub.stream.declare()
    assert client.state(hub.address)[0] != first
    client.close()


def test_a_range_whose_beginning_has_gone_is_data_loss(leveret, make_stream):
    hub = Hub(leveret, make_stream, **{"x-max-length-bytes": 20_000})
    hub.send(0, 3000)
    client = hub.client()
    _, first, following, _ = client.state(hub.address)
    assert 0 < first < following == 3000
    with pytest.raises(DataLoss, match=f"offsets 5 to {first - 1} are gone"):
        numbers(client, hub.address, 5, 3000)
    assert numbers(client, hub.address, 5, 3000, fail_on_data_loss=False) == list(range(first, 3000))
    client.close()


def test_what_is_not_there_is_refused_for_good(hub):
    client = hub.client()
    with pytest.raises(Refused, match="404.*no partition '7x'"):
        client.state(ADDRESS % ("readings", "7x"))
    with pytest.raises(Refused, match="nowhere"):
        numbers(client, ADDRESS % ("nowhere", "0"), 0, 1)
    client.close()


def test_messages_without_sequence_numbers_are_no_partitions(hub):
    """A receiver that does not ask for a position gets none of Event Hubs' annotations."""
    hub.send(0, 3)
    client, spec = hub.client(), "rabbitmq:stream-offset-spec"
    first = {("symbol", spec): ("described", ("symbol", spec), "first")}
    client._receiver = lambda stream, position, prefetch: client._open().receiver("/queues/" + hub.stream.name, prefetch, filter=first)
    with pytest.raises(StreamError, match="no x-opt-sequence-number"):
        numbers(client, hub.address, 0, 3)
    client.close()


def test_a_cut_connection_is_unavailable_and_made_again(hub):
    hub.send(0, 50)
    relay = Relay(hub.broker.port)
    client = hub.client(relay.port)
    assert client.state(hub.address)[2] == 50
    relay.cut()
    with pytest.raises(StreamUnavailable):
        client.state(hub.address)
    assert client.state(hub.address)[2] == 50 and numbers(client, hub.address, 10, 50) == list(range(10, 50))
    client.close()
    relay.close()


def test_an_address_that_is_no_partition_is_refused_with_the_form_of_one():
    given = {"url": "amqp://127.0.0.1/?protocol=1.0", "stream": "readings"}
    with pytest.raises(ValueError, match="HUB/ConsumerGroups/GROUP/Partitions/NUMBER"):
        Options(given)
    Options(dict(given, stream="hub/ConsumerGroups/g/Partitions/0"))


def test_spark_reads_partitions_and_goes_on_where_it_was(spark, leveret, make_stream, tmp_path):
    hubs = [Hub(leveret, make_stream) for _ in range(2)]

    def run():
        query = (
            spark.readStream.format("amqp")
            .options(url=leveret.url + "/?protocol=1.0", streams=",".join(hub.address for hub in hubs), minPartitions=4)
            .schema("stream string, offset long, value binary")
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()
        return sorted((row.stream, row.offset, bytes(row.value)) for row in spark.read.parquet(str(tmp_path / "rows")).collect())

    for hub in hubs:
        hub.send(0, 700)
    assert len(run()) == 1400
    for hub in hubs:
        hub.send(700, 1000)
    wanted = [(hub.address, number, body("kiln", "temperature", number)) for hub in hubs for number in range(1000)]
    assert run() == sorted(wanted)
    batch = spark.read.format("amqp").options(url=leveret.url + "/?protocol=1.0", stream=hubs[0].address, startingOffsets="900").load()
    assert batch.count() == 100
