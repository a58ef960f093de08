"""`format("amqp")` in a real Spark session: batch, streaming with a checkpoint, and errors that reach the user."""
import os

import pytest

from leveret.ports.client import connect

COUNT = 1000


def options_of(stream, **options):
    return {"url": stream.url, "stream": stream.name, **options}


def run_available(spark, stream, folder, **options):
    """One AvailableNow run into Parquet; the rows of each batch."""
    query = (spark.readStream.format("amqp").options(**options_of(stream, **options)).schema("value binary, offset long").load()
             .writeStream.format("parquet").option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
             .trigger(availableNow=True).start())
    query.awaitTermination()
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


def test_a_wrong_option_reaches_the_user(spark):
    with pytest.raises(Exception, match="no password in the url"):
        spark.read.format("amqp").option("url", "amqp://user:secret@127.0.0.1").option("stream", "readings").load()


def test_the_password_is_in_no_plan_and_in_no_checkpoint(spark, leveret, make_stream, tmp_path):
    secret, stream = "guest", make_stream(leveret)  # the broker's only user; a plan shows where the password is
    (tmp_path / "password").write_text(secret)
    stream.readings(0, 20)
    options = {"url": f"amqp://127.0.0.1:{leveret.port}", "stream": stream.name, "passwordFile": str(tmp_path / "password")}
    frame = spark.read.format("amqp").options(**options).load()
    assert frame.count() == 20
    assert secret not in frame._jdf.queryExecution().toString() + frame._jdf.queryExecution().logical().toString()
    query = (spark.readStream.format("amqp").options(**options).load().writeStream.format("parquet").option("path", str(tmp_path / "out"))
             .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start())
    query.awaitTermination()
    assert query.lastProgress is not None and secret not in query.lastProgress.json
    kept = [os.path.join(folder, name) for folder, _, names in os.walk(tmp_path / "checkpoint") for name in names]
    assert kept and not any(secret.encode() in open(path, "rb").read() for path in kept)


def test_queue_mode_in_a_query_takes_the_queue_empty_and_acknowledges_what_was_done(spark, broker, tmp_path):
    connection, name = connect(broker.url), f"jobs-{os.getpid()}"
    connection.queue_declare(name, durable=True)
    for number in range(300):
        connection.publish("", name, b"%d" % number, {"message_id": str(number)}, confirm=False)
    connection.wait_confirmed()
    seen = []
    query = (spark.readStream.format("amqp").option("url", broker.url).option("stream", name).option("mode", "queue")
             .schema("value binary, message_id string").load().writeStream
             .foreachBatch(lambda frame, number: seen.extend(int(row.value) for row in frame.collect()))
             .option("checkpointLocation", str(tmp_path)).start())
    while len(seen) < 300:
        query.awaitTermination(0.2)
    connection.publish("", name, b"300", {})
    while len(seen) < 301:
        query.awaitTermination(0.2)
    query.stop()
    again = []
    connection.consume(name, "what is left", no_ack=True)
    while message := connection.poll(2000):
        again += [int(one.body) for one in message]
    assert sorted(seen) == list(range(301)) and set(again) <= {300}
    connection.queue_delete(name)
    connection.close()
