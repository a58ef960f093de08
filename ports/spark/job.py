"""The Spark job: messages of streams to readings, dead letters, alerts and windows.

    amqp source -> decode, clean (decode.py) -> drop doubles -> per batch: score (scoring.py) -> raw, dead letters, alerts (tables.py)
    raw -> windows

Laws: every record that was read becomes one row of raw, one row of dead_letters, or one counted double: records = readings + dead_letters
+ duplicates, per batch, and Spark's own metrics must say the same, else `check` raises. Every message of a batch's offsets was decoded.
A double is a reading whose key (decode.py) was there up to `watermark` messages before. The watermark runs over positions (source.py), not
over the readings' time: positions only grow, so no reading is ever too late and none is dropped for being old, and the memory of keys is a
number of rows.
Windows are computed from raw. A window that ended `lateness` before the newest reading is closed: it does not change any more, and a
reading that comes for it later is in raw and counted as late. The others are computed anew from the part of raw that they need.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from . import compaction, retention
from .decode import DECODED, MESSAGE, Decoder
from .scoring import BUCKETS, scorer
from .source import spans_of
from .tables import ALERTS, DEAD_LETTERS, RAW, TOTALS, Tables

ROWS_PER_BATCH_MAX = 100_000
RAW_COLUMNS = ("device", "metric", "sequence", "time", "value", "unit", "stream", "offset", "part", "score", "gateway")
RAW_SCHEMA = (
    "device string, metric string, sequence long, time timestamp, value double, unit string, stream string, offset long, "
    "part int, score double, date date, gateway string"
)
SCORED_SCHEMA = (
    "device string, metric string, sequence long, time timestamp, value double, unit string, stream string, offset long, "
    "part int, gateway string, score double"
)
DEAD_LETTER_COLUMNS = ("stream", "offset", "part", "reason", "payload", "routing_key", "gateway")
SPARK_ERRORS = (PySparkException, Py4JError)
NO_GATEWAY = "-"  # in the tables, where a message names none: a partition needs a name
KEY = ["key_owner", "key_part", "key_number"]


class CountsDiffer(Exception):
    """Two ways of counting the same thing do not agree: something was lost or doubled."""


def decoded(messages: DataFrame, decoder: Decoder) -> DataFrame:
    """Rows of DECODED out of a frame of MESSAGE, streaming or not."""
    return messages.withColumn("now", F.current_timestamp()).mapInArrow(decoder, DECODED)


def unique_readings(spark: SparkSession, source_options: dict[str, Any], decoder: Decoder, watermark_rows: int) -> DataFrame:
    """The streaming frame of DECODED rows without doubles."""
    options = {"maxRowsPerTrigger": ROWS_PER_BATCH_MAX, **source_options}
    messages = spark.readStream.format("amqp").options(**options).schema(MESSAGE).load()
    # One message is one millisecond of watermark; + 1 because the watermark starts at 0, and position 0 would be late.
    placed = decoded(messages, decoder).withColumn("place", F.expr("timestamp_millis(position + 1)"))
    return placed.withWatermark("place", f"{watermark_rows} milliseconds").dropDuplicatesWithinWatermark(KEY)


def run_files(spark: SparkSession, patterns: list[str], decoder: Decoder, writer: "BatchWriter") -> None:
    """The same job over files, a message a line: one batch, number 0. A folder that has it already stays as it is."""
    lines = spark.read.text(patterns).select(
        F.col("value").cast("binary"), F.input_file_name().alias("stream"), F.monotonically_increasing_id().alias("offset")
    )
    for field in StructType.fromDDL(MESSAGE).fields:  # type: ignore[attr-defined]  # a StructType, which the stub gives as DataType
        if field.name not in ("value", "stream", "offset"):
            lines = lines.withColumn(field.name, F.lit(None).cast(field.dataType))
    writer(decoded(lines, decoder).dropDuplicates(KEY), 0)


class Ending(Exception):
    """The batch was not begun: the query is to be stopped. It is planned, so the next run begins with it."""


class BatchWriter:
    """What foreachBatch calls: writes one batch to the tables and notes its counts. One at a time.

    `plan`: detector (bool), alarm (the least score of an alert), window_s, lateness_s (None: windows never close), keep_days (None: all).
    `publish(batch, alerts)`: called with an Arrow table, at least once a batch that has some, the same each time; None: not wanted.
    """

    def __init__(self, tables: Tables, plan: Any, publish: Callable[[int, Any], object] | None = None) -> None:
        self._tables, self._plan, self._publish = tables, plan, publish
        self._one_at_a_time = threading.Lock()  # a stopped query's last batch may still run when the next query starts
        self._ending = False
        self.totals = tables.totals()
        retention.finish(tables)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        with self._one_at_a_time:
            if self._ending:
                raise Ending("the query is being stopped")
            if self._tables.recorded(batch) is None:
                frame.persist()
                try:
                    self._write(frame, batch)
                finally:
                    frame.unpersist()

    def end(self) -> None:
        """Waits until no batch is being written, and lets none begin: the time to stop the query.

        Stopped within one, Spark 4.3 looks for the reason in the batch's error with a pattern that recurses for each character, and its
        thread dies of a StackOverflowError.
        """
        with self._one_at_a_time:
            self._ending = True

    def begin(self) -> None:
        """Takes batches, again after `end`."""
        with self._one_at_a_time:
            self._ending = False

    def build_windows(self, spark: SparkSession) -> None:
        """Aggregates of raw; closes windows that are old enough. Not while a batch is being written: closing decides what is late."""
        with self._one_at_a_time:
            build_windows(spark, self._tables, self._plan)

    def compact(self) -> int:
        """Merges small files (compaction.py), a folder at a time between batches. Returns how many."""
        return sum(self._compact_folder(*one) for one in compaction.crowded(self._tables))

    def forget(self) -> None:
        """Removes what is older than keep_days (retention.py)."""
        if self._plan.keep_days is not None:
            with self._one_at_a_time:
                retention.forget(self._tables, self._plan.keep_days)

    def _compact_folder(self, folder: str, files_min: int) -> int:
        with self._one_at_a_time:
            return compaction.compact_folder(self._tables, folder, files_min)

    def _write(self, frame: DataFrame, batch: int) -> None:
        started, tables, seen, scored_seen = time.time(), self._tables, Observation(), Observation()
        staged = tables.stage()
        observed = frame.observe(
            seen,
            F.count("reason").alias("bad"),
            F.count("*").alias("all"),
            F.sum(F.expr("if(part < 0, sequence, 0)")).alias("records"),
            F.sum(F.expr("if(part < 0, key_number, 0)")).alias("messages"),
            F.sum(F.expr("if(part < 0, 1, 0)")).alias("marks"),
        )
        late = F.sum(F.when(F.col("time") < F.timestamp_micros(F.lit(tables.closed_until())), 1).otherwise(0))
        gateway = F.coalesce("gateway", F.lit(NO_GATEWAY)).alias("gateway")
        good = observed.where("reason is null and part >= 0").select(*RAW_COLUMNS[:9], gateway)
        scored = self._scored(good, batch).observe(scored_seen, late.alias("late"), F.max("time").alias("newest"))
        (
            scored.select(*RAW_COLUMNS)
            .withColumn("date", F.to_date("time"))
            .write.partitionBy("date", "gateway")
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .parquet(staged)
        )
        counts = {name: seen.get[name] or 0 for name in ("bad", "all", "records", "messages", "marks")}
        alerts = self._alerts(frame.sparkSession, staged, batch) if self._plan.detector else 0
        readings = tables.publish_batch(RAW, batch, staged)
        dead_letters = 0
        if counts["bad"]:
            staged = tables.stage()
            write(frame.where("reason is not null").select(*DEAD_LETTER_COLUMNS), staged)
            dead_letters = tables.publish_batch(DEAD_LETTERS, batch, staged)
        if readings + dead_letters + counts["marks"] != counts["all"]:
            written = f"{readings} readings and {dead_letters} dead letters"
            raise CountsDiffer(f"batch {batch}: {counts['all'] - counts['marks']} rows, but {written} in the files")
        newest = scored_seen.get["newest"]
        self._note(
            batch,
            {
                "records": counts["records"],
                "readings": readings,
                "dead_letters": dead_letters,
                "alerts": alerts,
                "duplicates": counts["records"] - readings - dead_letters,
                "late": scored_seen.get["late"] or 0,
                "newest": newest.timestamp() if newest else None,
                "seconds": round(time.time() - started, 3),
                **self._messages(batch, counts["messages"]),
            },
        )

    def _messages(self, batch: int, messages: int) -> dict[str, Any]:
        """How many messages the batch's offsets span; Raises CountsDiffer when it is not what was decoded."""
        if self._plan.bounded:
            return {"rows_read": messages, "lost": 0}
        start, end = self._tables.planned(batch)
        spanned = sum(last - first for first, last in spans_of(start, end).values())
        lost = sum(at["lost"] - (start or {}).get(label, {"lost": 0})["lost"] for label, at in end.items())
        if spanned != messages and self._plan.fail_on_data_loss:
            raise CountsDiffer(f"batch {batch}: its offsets span {spanned} messages, {messages} were decoded")
        return {"rows_read": messages, "lost": lost + spanned - messages, "offsets": {label: at["next"] for label, at in end.items()}}

    def _scored(self, good: DataFrame, batch: int) -> DataFrame:
        """The readings with a column score; null without the detector."""
        if not self._plan.detector:
            return good.withColumn("score", F.lit(None).cast("double"))
        bucket = F.expr(f"pmod(hash(gateway, device, metric), {BUCKETS})")
        return good.withColumn("bucket", bucket).groupBy("bucket").applyInArrow(scorer(self._tables.at("_detector"), batch), SCORED_SCHEMA)

    def _alerts(self, spark: SparkSession, staged: str, batch: int) -> int:
        """Writes and publishes the readings among the staged ones that are alarms. Returns how many."""
        alerts = (
            spark.read.schema(RAW_SCHEMA)
            .parquet(staged)
            .where(F.col("score") >= self._plan.alarm)
            .orderBy("stream", "offset", "part")
            .toArrow()
        )
        if not alerts.num_rows:
            return 0
        if self._publish is not None:
            self._publish(batch, alerts)
        return self._tables.publish_table(ALERTS, batch, alerts)

    def _note(self, batch: int, counts: dict[str, Any]) -> None:
        self._tables.record(batch, counts)
        for name in TOTALS:
            self.totals[name] += counts[name]


def write(frame: DataFrame, path: str) -> None:
    """One Parquet file in a new folder."""
    frame.coalesce(1).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(path)


def build_windows(spark: SparkSession, tables: Tables, plan: Any) -> None:
    """See BatchWriter.build_windows."""
    closed, newest, window_s = tables.closed_until(), (tables.newest() or {}).get("newest_ever"), plan.window_s
    until = closed
    if plan.lateness_s is not None and newest is not None:
        until = max(int((newest - plan.lateness_s) // window_s) * window_s * 1_000_000, closed)
    readings = spark.read.schema(RAW_SCHEMA).option("basePath", tables.at(RAW)).parquet(*tables.days_since(closed))
    if closed:
        start = F.timestamp_micros(F.lit(closed))
        readings = readings.where((F.col("date") >= F.to_date(start)) & (F.col("time") >= start))
    windows = (
        readings.groupBy("gateway", "device", "metric", F.window("time", f"{window_s} seconds").alias("w"))
        .agg(
            F.count("*").alias("count"),
            F.min("value").alias("min"),
            F.max("value").alias("max"),
            F.avg("value").alias("mean"),
            F.stddev_pop("value").alias("stddev"),
            F.max_by("value", F.struct("time", "sequence", "offset", "part")).alias("last"),
        )
        .select(
            "gateway",
            "device",
            "metric",
            F.col("w.start").alias("window_start"),
            F.col("w.end").alias("window_end"),
            "count",
            "min",
            "max",
            "mean",
            "stddev",
            "last",
        )
        .orderBy("gateway", "device", "metric", "window_start")
    )
    staged = tables.stage()
    if until == closed:
        write(windows, staged)
        tables.publish_windows(staged)
        return
    windows.persist()
    try:
        border, old = F.timestamp_micros(F.lit(until)), tables.stage()
        write(windows.where(F.col("window_start") >= border), staged)
        write(windows.where(F.col("window_start") < border), old)
        tables.publish_windows(staged)
        tables.close_windows(old, until)
    finally:
        windows.unpersist()


def check(tables: Tables, progress: Any) -> None:
    """Compares what Spark says about a batch (a StreamingQueryProgress) with what was noted. Raises CountsDiffer."""
    noted = tables.recorded(progress.batchId)
    if noted is None or not progress.numInputRows:
        return
    state = progress.stateOperators[0]
    spark_says = (progress.numInputRows, state.customMetrics["numDroppedDuplicateRows"], state.numRowsDroppedByWatermark)
    noted_says = (noted["rows_read"], noted["duplicates"], 0)
    if spark_says != noted_says:
        raise CountsDiffer(f"batch {progress.batchId}: (rows, duplicates, late) are {spark_says} for Spark, {noted_says} by the files")
