"""`format("amqp")` in a real Spark session: batch, streaming with a checkpoint, and errors that reach the user."""
import pytest

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
