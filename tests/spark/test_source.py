"""`format("amqp")` in a real Spark session: batch, streaming with a checkpoint, and errors that reach the user."""

import json
import time

import brokers
import pytest
from pyspark.sql import functions as F
from queries import begun, finished, until
from telemetry import Stream

from leveret.ports.client import connect
from leveret.ports.client_1_0 import connect as connect_1_0
from leveret.ports.spark.stream_client import Address, StreamClient

COUNT = 1000


def options_of(stream, **options):
    return {"url": stream.url, "stream": stream.name, **options}


def run_available(spark, stream, folder, **options):
    """One AvailableNow run into Parquet; the rows of each batch."""
    frame = spark.readStream.format("amqp").options(**options_of(stream, **options)).schema("value binary, offset long").load()
    query = finished(
        lambda: (
            frame.writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
    )
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def written(spark, folder):
    return sorted(row.offset for row in spark.read.parquet(str(folder / "out")).select("offset").collect())


def test_batch_reads_from_the_starting_offset_to_the_head(spark, broker, make_stream):
    stream = make_stream(broker)
    stream.readings(0, COUNT)
    frame = spark.read.format("amqp").options(**options_of(stream, startingOffsets=COUNT - 300)).load()
    found = frame.selectExpr("count(*)", "count(distinct offset)", "min(offset)", "max(offset)", "min(stream)", "min(routing_key)").first()
    assert tuple(found) == (300, 300, COUNT - 300, COUNT - 1, stream.name, stream.name)


def test_a_query_goes_on_from_its_checkpoint(spark, broker, make_stream, tmp_path):
    stream = make_stream(broker)
    stream.readings(0, COUNT)
    assert run_available(spark, stream, tmp_path, maxRowsPerTrigger=400) == [400, 400, 200]
    assert run_available(spark, stream, tmp_path) == []
    stream.readings(COUNT, COUNT + 50)
    assert run_available(spark, stream, tmp_path, startingOffsets="latest") == [50]
    assert written(spark, tmp_path) == list(range(COUNT + 50))
    newest = max((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    at = json.loads(newest.read_text().splitlines()[-1])[stream.name]
    state = StreamClient(Address("127.0.0.1", broker.port, "guest", "guest", "/")).state(stream.name)
    assert (at["id"], at["next"]) == (state[0], COUNT + 50), "Spark's offset is the log's, with the stream's id"


def test_streams_of_several_brokers_are_partitions_of_their_own(spark, leveret, rabbitmq, make_stream):
    """Leveret and RabbitMQ in one frame: each stream at least one partition, and each row once."""
    names = [make_stream(leveret).name, make_stream(leveret).name]
    for name in names:
        for broker in (leveret, rabbitmq):
            stream = Stream(broker, name)
            stream.readings(0, 200)
            stream.close()
    options = {"url": f"{leveret.url},{rabbitmq.url}", "streams": ",".join(names)}
    frame = spark.read.format("amqp").options(**options).load()
    found = frame.groupBy("stream", F.spark_partition_id().alias("part")).agg(F.count("*"), F.count_distinct("offset")).collect()
    labels = {f"127.0.0.1:{broker.port}/{name}" for broker in (leveret, rabbitmq) for name in names}
    assert {row["stream"] for row in found} == labels and len({row["part"] for row in found}) == 4
    assert {tuple(row)[2:] for row in found} == {(200, 200)}


def test_octets_limit_the_batches_of_a_query(spark, leveret, make_stream, tmp_path):
    stream = make_stream(leveret)
    stream.publish([bytes(1000)] * 300)
    batches = run_available(spark, stream, tmp_path, maxBytesPerTrigger=120_000)
    assert sum(batches) == 300 and len(batches) >= 3 and max(batches) <= 120


def test_a_query_outlives_its_broker(spark, tmp_path):
    """kill -9 of the broker between two triggers, the same port again a little later: the query goes on and has each row once."""
    data = ("--data", str(tmp_path / "data"))
    broker = brokers.start_leveret(more=data)
    try:
        seen, stream = [], Stream(broker, "lasting")
        stream.readings(0, 100)
        frame = spark.readStream.format("amqp").options(**options_of(stream)).schema("value binary, offset long").load()
        query = begun(
            lambda: (
                frame.writeStream.foreachBatch(lambda rows, number: seen.extend(row.offset for row in rows.select("offset").collect()))
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(processingTime="200 milliseconds")
                .start()
            ),
            lambda: len(seen) >= 100,
        )
        broker.end()
        time.sleep(1)
        broker = brokers.start_leveret(broker.port, data)
        Stream(broker, "lasting").readings(100, 200)
        until(query, lambda: len(seen) >= 200)
        query.stop()
        assert sorted(seen) == list(range(200))
    finally:
        broker.end()


def test_data_loss_stops_the_query_and_names_the_offsets(spark, leveret, make_stream, tmp_path):
    stream = make_stream(leveret, **{"x-max-length-bytes": 20_000})
    stream.readings(0, 50)
    run_available(spark, stream, tmp_path)
    stream.readings(50, 3000)
    with pytest.raises(Exception, match=r"DataLoss: stream '.*': offsets 50 to \d+ are gone \(retention\)"):
        run_available(spark, stream, tmp_path)
    assert written(spark, tmp_path) == list(range(50))
    (rows,) = run_available(spark, stream, tmp_path, failOnDataLoss=False)
    assert written(spark, tmp_path) == list(range(50)) + list(range(3000 - rows, 3000))


def test_a_stream_that_was_made_again_stops_the_query_or_is_read_from_its_beginning(spark, leveret, make_stream, tmp_path):
    stream = make_stream(leveret)
    stream.readings(0, 50)
    assert run_available(spark, stream, tmp_path) == [50]
    stream.delete()
    stream.declare()
    stream.readings(0, 60)
    with pytest.raises(Exception, match=r"DataLoss: stream '.*' was made again \(id .* is now .*\): what followed offset 50 is gone"):
        run_available(spark, stream, tmp_path)
    assert run_available(spark, stream, tmp_path, failOnDataLoss=False) == [60]
    assert written(spark, tmp_path) == sorted([*range(50), *range(60)])


def test_queue_mode_takes_a_queue_at_least_once_and_says_so(spark, spark_traces, broker, tmp_path):
    """Everything comes, what was done is acknowledged with the next batch, and each run warns that the last batch may come again."""
    connection, name = connect(broker.url, brokers.PATIENCE_MS), f"jobs-{broker.port}"
    connection.queue_declare(name, durable=True)

    def send(first, end):
        for number in range(first, end):
            connection.publish("", name, b"%d" % number, {"message_id": str(number)}, confirm=False)
        connection.wait_confirmed()

    def start(seen):
        return (
            spark.readStream.format("amqp")
            .options(url=broker.url, stream=name, mode="queue")
            .schema("value binary, message_id string")
            .load()
            .writeStream.foreachBatch(lambda frame, number: seen.extend(int(row.value) for row in frame.collect()))
            .option("checkpointLocation", str(tmp_path))
            .start()
        )

    def warnings():
        return (spark_traces / "errors.txt").read_text().count(f"mode=queue is at-least-once: queue '{name}'")

    first, second = [], []
    send(0, 300)
    query = begun(lambda: start(first), lambda: len(first) >= 300)
    send(300, 301)
    until(query, lambda: len(first) >= 301)
    query.stop()
    assert sorted(first) == list(range(301)) and warnings() == 1
    send(301, 311)
    query = begun(lambda: start(second), lambda: set(second) >= set(range(301, 311)))
    query.stop()
    assert set(second) <= set(range(300, 311)) and warnings() == 2, "what was done came again"
    connection.queue_delete(name)
    connection.close()


def test_queue_mode_takes_a_queue_of_amqp_1_0(spark, leveret, tmp_path):
    """What was done is accepted with the next batch, and does not come again."""
    connection = connect(leveret.url, brokers.PATIENCE_MS)
    connection.queue_declare("jobs-1.0", durable=True)
    client = connect_1_0(leveret.url + "/?protocol=1.0")
    sender = client.sender("/queues/jobs-1.0")

    def send(first, end):
        for number in range(first, end):
            given = {"message-id": "m%d" % number, "subject": "a.b", "content-type": "text/plain"}
            sender.send(b"%d" % number, given, {"x-gateway": "gw", "x-sequence": ("long", number)}, wait=False)
        sender.wait_settled()

    def start(seen):
        return (
            spark.readStream.format("amqp")
            .options(url=leveret.url + "/?protocol=1.0", stream="/queues/jobs-1.0", mode="queue")
            .schema("value binary, message_id string, routing_key string, content_type string, gateway string, sequence long")
            .load()
            .writeStream.foreachBatch(lambda frame, number: seen.extend(tuple(row) for row in frame.collect()))
            .option("checkpointLocation", str(tmp_path))
            .start()
        )

    first, second = [], []
    send(0, 300)
    query = begun(lambda: start(first), lambda: len(first) >= 300)
    send(300, 301)
    until(query, lambda: len(first) >= 301)
    query.stop()
    assert [(bytes(row[0]), *row[1:]) for row in sorted(first, key=lambda row: row[5])] == [
        (b"%d" % number, "m%d" % number, "a.b", "text/plain", "gw", number) for number in range(301)
    ]
    send(301, 311)
    query = begun(lambda: start(second), lambda: {row[5] for row in second} >= set(range(301, 311)))
    query.stop()
    assert {row[5] for row in second} <= set(range(300, 311)), "what was done came again"
    client.close()
    connection.queue_delete("jobs-1.0")
    connection.close()


def test_a_wrong_option_reaches_the_user(spark):
    with pytest.raises(Exception, match="no password in the url"):
        spark.read.format("amqp").option("url", "amqp://user:secret@127.0.0.1").option("stream", "readings").load()
