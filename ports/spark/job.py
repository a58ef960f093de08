"""The Spark job: messages of a stream to readings, dead letters and windows.

    amqp source -> decode (readings.py) -> drop doubles -> per batch: raw, dead letters (tables.py) ; raw -> windows

Laws: every message that was read becomes one row of raw, one row of dead_letters, or one counted double: rows_read = readings +
dead_letters + duplicates, per batch, and Spark's own metrics must say the same, else `check` raises.
A double is a reading whose (device, metric, sequence) was there up to `watermark` messages before. The watermark runs over offsets, not
over the readings' time: offsets only grow, so no reading is ever too late and none is dropped for being old, and the memory of keys is a
number of rows.
Windows are computed from the whole of raw, so late readings count and the open windows are there too.
"""
import threading

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as F

from .readings import DECODED, decode_batches
from .tables import DEAD_LETTERS, RAW

ROWS_PER_BATCH_MAX = 50_000
READING_COLUMNS = ("device", "metric", "sequence", "time", "value", "offset")
RAW_SCHEMA = "device string, metric string, sequence long, time timestamp, value double, offset long"
DEAD_LETTER_COLUMNS = ("offset", "reason", "payload", "routing_key")
SPARK_ERRORS = (PySparkException, Py4JError)
KEY = ["device", "metric", "sequence"]


class CountsDiffer(Exception):
    """Two ways of counting the same thing do not agree: something was lost or doubled."""


def unique_readings(spark, source_options, watermark_rows):
    """The streaming frame of DECODED rows without doubles."""
    messages = (spark.readStream.format("amqp").options(maxRowsPerTrigger=ROWS_PER_BATCH_MAX, **source_options)
                .schema("value binary, offset long, routing_key string").load())
    decoded = messages.withColumn("now", F.current_timestamp()).mapInArrow(decode_batches, DECODED)
    # One offset is one millisecond of watermark; + 1 because the watermark starts at 0, and offset 0 would be late.
    placed = decoded.withColumn("place", F.expr("timestamp_millis(offset + 1)"))
    return placed.withWatermark("place", f"{watermark_rows} milliseconds").dropDuplicatesWithinWatermark(KEY)


class BatchWriter:
    """What foreachBatch calls: writes one batch to the tables and notes its counts. One at a time."""

    def __init__(self, tables, stream):
        self._tables = tables
        self._stream = stream
        self._one_at_a_time = threading.Lock()  # a stopped query's last batch may still run when the next query starts
        self.totals = tables.totals()

    def __call__(self, frame, batch):
        with self._one_at_a_time:
            frame.persist()
            try:
                self._write(frame, batch)
            finally:
                frame.unpersist()

    def wait_idle(self):
        """Until no batch is being written. Spark answers the interruption of one with pages of errors, so this is the time to stop."""
        with self._one_at_a_time:
            return

    def _write(self, frame, batch):
        tables, seen = self._tables, Observation()
        staged = tables.stage()
        observed = frame.observe(seen, F.count("reason").alias("bad"), F.count("*").alias("all"))
        write(observed.where("reason is null").select(*READING_COLUMNS), staged)
        readings = tables.publish_batch(RAW, batch, staged)
        dead_letters = 0
        if seen.get["bad"]:
            staged = tables.stage()
            write(frame.where("reason is not null").select(*DEAD_LETTER_COLUMNS), staged)
            dead_letters = tables.publish_batch(DEAD_LETTERS, batch, staged)
        if readings + dead_letters != seen.get["all"]:
            found = f"{readings} readings and {dead_letters} dead letters"
            raise CountsDiffer(f"batch {batch}: {seen.get['all']} rows, but {found} in the files")
        start, end = tables.offsets_of(batch, self._stream)
        self._note(batch, {"start": start, "end": end, "rows_read": end - start, "readings": readings,
                           "dead_letters": dead_letters, "duplicates": end - start - readings - dead_letters})

    def _note(self, batch, counts):
        if self._tables.recorded(batch) is None:
            self._tables.record(batch, counts)
            for name in self.totals:
                self.totals[name] += counts[name]


def write(frame, path):
    """One Parquet file in a new folder."""
    frame.coalesce(1).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(path)


def build_windows(spark, tables, window_s):
    """Aggregates of raw per device, metric and window of event time; replaces the table."""
    readings = spark.read.schema(RAW_SCHEMA).parquet(tables.at(RAW))
    windows = (readings.groupBy("device", "metric", F.window("time", f"{window_s} seconds").alias("w"))
               .agg(F.count("*").alias("count"), F.min("value").alias("min"), F.max("value").alias("max"), F.avg("value").alias("mean"),
                    F.max_by("value", F.struct("time", "sequence")).alias("last"))
               .select("device", "metric", F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end"),
                       "count", "min", "max", "mean", "last"))
    staged = tables.stage()
    write(windows.orderBy("device", "metric", "window_start"), staged)
    tables.publish_windows(staged)


def check(tables, progress):
    """Compares what Spark says about a batch (a StreamingQueryProgress) with what was noted. Raises CountsDiffer."""
    noted = tables.recorded(progress.batchId)
    if noted is None or not progress.numInputRows:
        return
    state = progress.stateOperators[0]
    spark_says = (progress.numInputRows, state.customMetrics["numDroppedDuplicateRows"], state.numRowsDroppedByWatermark)
    noted_says = (noted["rows_read"], noted["duplicates"], 0)
    if spark_says != noted_says:
        raise CountsDiffer(f"batch {progress.batchId}: (rows, duplicates, late) are {spark_says} for Spark, {noted_says} by the files")
