"""`leveret pipeline`: the Spark job from a stream queue to Parquet files (the job itself: ports/spark/job.py).

On standard error: a line of progress now and then, and at the end what went wrong, in one sentence. On standard output: one line of JSON
with exact counts, {"rows_read", "readings", "duplicates", "dead_letters", "windows", "files": {table: what to give a Parquet reader}}.
rows_read = readings + duplicates + dead_letters, and the windows' counts sum up to readings, else the exit status is 1.
Started again with the same --out it goes on where it was, also after kill -9. Exit status: 0 done, 1 failed, 2 wrong arguments, 3 no Java.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
from urllib.parse import unquote, urlsplit

from .usage import UsageError

JAVA_OLDEST = 17
PASSWORD_VARIABLE = "LEVERET_PIPELINE_PASSWORD"
TRIGGER_INTERVAL = "500 milliseconds"
POLL_S = 0.25
LINE_EVERY_S = 2
WINDOWS_EVERY_S = 30
WINDOWS_SHARE = 10
# Starts faster and leaves the other cores alone; reading the stream takes longer than what the better compiler would save.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
NO_JAVA = "Spark needs Java 17 or newer, which is not here; install it with: sudo apt-get install -y openjdk-17-jre-headless"


def add_arguments(parser):
    """The options of `leveret pipeline`."""
    parser.add_argument("--source", default="amqp://127.0.0.1:5672", metavar="URL",
                        help=f"the broker, amqp://[user[:password]@]host[:port][/vhost]; the password may be in ${PASSWORD_VARIABLE}")
    parser.add_argument("--stream", default="readings", metavar="QUEUE", help="the stream queue to read (default %(default)s)")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables and the checkpoint are, or will be")
    parser.add_argument("--window", type=positive, default=60, metavar="SECONDS", help="length of a window (default %(default)s)")
    parser.add_argument("--watermark", type=positive, default=200_000, metavar="MESSAGES",
                        help="how many messages back a double is recognised at least (default %(default)s)")
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument("--seconds", type=positive, metavar="N", help="read for N seconds, then what is there by then, and end")
    bound.add_argument("--available-now", action="store_true", help="read what is there now, and end")


def positive(text):
    """A whole number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def run(options):
    """The exit status."""
    address, password = split_source(options.source)
    if java_version() < JAVA_OLDEST:
        print(f"leveret pipeline: {NO_JAVA}", file=sys.stderr)
        return 3
    if password is not None:
        os.environ[PASSWORD_VARIABLE] = password
    elif "@" in address and PASSWORD_VARIABLE not in os.environ:
        raise UsageError(f"--source names a user but no password: put it in the environment variable {PASSWORD_VARIABLE}")
    tables = open_tables(options.out)
    spark = start_spark()
    try:
        return Run(spark, tables, options, address).run()
    finally:
        spark.stop()
        tables.close()


def split_source(source):
    """(URL without password, password or None). Raises UsageError."""
    try:
        parts = urlsplit(source)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"--source {source!r} is not a URL: {error}") from None
    if parts.scheme != "amqp" or not parts.hostname:
        raise UsageError(f"--source must be amqp://[user[:password]@]host[:port][/vhost], not {source!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    login = f"{parts.username}@" if parts.username else ""
    return f"amqp://{login}{host}:{port or 5672}{parts.path}", None if parts.password is None else unquote(parts.password)


def java_version():
    """The major version of the Java that Spark would start, 0 when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found.group(1)) if found else 0


def open_tables(path):
    """The output folder, locked. Raises UsageError."""
    try:
        from leveret.ports.spark.tables import InUse, Tables
    except ImportError as error:
        raise UsageError(f"{error.name} is missing; install it with: pip install 'leveret[spark]'") from None
    try:
        return Tables(path)
    except (InUse, OSError) as error:
        raise UsageError(f"--out {path}: {error}") from None


def start_spark():
    """A session on this machine: two cores, tasks tried again, nothing listening beyond loopback."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from leveret.ports.spark import register
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC", "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "20", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    }
    builder = SparkSession.builder.master("local[2,4]").appName("leveret pipeline")
    for name, text in settings.items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    register(spark)
    return spark


class Run:
    """One run of the job, from the start of the query to the summary."""

    def __init__(self, spark, tables, options, address):
        from leveret.ports.spark import job
        self._job = job
        self._spark = spark
        self._tables = tables
        self._options = options
        self._source = {"url": address, "stream": options.stream}
        if PASSWORD_VARIABLE in os.environ:
            self._source["passwordEnv"] = PASSWORD_VARIABLE
        self._writer = job.BatchWriter(tables, options.stream)
        self._stopping = False
        self._next_line = self._next_windows = 0.0
        self._checked = -1

    def run(self):
        """The exit status; prints the summary."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        try:
            if not self._options.available_now:
                self._follow(self._start(processingTime=TRIGGER_INTERVAL), self._options.seconds)
            if self._options.available_now or (self._options.seconds and not self._stopping):
                self._follow(self._start(availableNow=True), None)
            return self._summarise()
        except self._job.CountsDiffer as error:
            print(f"leveret pipeline: {error}", file=sys.stderr)
        except self._job.SPARK_ERRORS as error:
            print(f"leveret pipeline: {cause(error)}", file=sys.stderr)
        return 1

    def _stop(self, number, frame):
        self._stopping = True

    def _start(self, **trigger):
        frame = self._job.unique_readings(self._spark, self._source, self._options.watermark)
        return (frame.writeStream.foreachBatch(self._writer).trigger(**trigger)
                .option("checkpointLocation", self._tables.at("_checkpoint")).start())

    def _follow(self, query, seconds):
        """Until the query ends, `seconds` are over or a signal came."""
        say("reading")
        end = time.monotonic() + seconds if seconds else None
        while not query.awaitTermination(POLL_S):
            self._look(query)
            if self._stopping or (end and time.monotonic() > end):
                self._writer.wait_idle()
                query.stop()
                break
            if end is None and not self._options.available_now:
                self._refresh_windows()
        self._look(query)

    def _look(self, query):
        """Checks new batches and prints a line of progress."""
        for progress in query.recentProgress:
            if progress.batchId > self._checked and progress.numInputRows:
                self._job.check(self._tables, progress)
                self._checked = progress.batchId
        if query.lastProgress and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY_S
            totals = self._writer.totals
            say(f"batch {query.lastProgress.batchId}: {totals['rows_read']} rows read, {totals['readings']} readings, "
                f"{totals['duplicates']} duplicates, {totals['dead_letters']} dead letters; {self._behind(query.lastProgress)} behind")

    def _behind(self, progress):
        """Messages between what was read and the stream's head, as far as the source has looked."""
        source = progress.sources[0]
        offsets = [json.loads(text or "null") for text in (source.latestOffset, source.endOffset)]
        head, read = (offset[self._options.stream]["next"] if offset else 0 for offset in offsets)
        return max(head - read, 0)

    def _refresh_windows(self):
        """In an endless run: now and then, and never more than a part of the time."""
        if time.monotonic() >= self._next_windows:
            started = time.monotonic()
            self._job.build_windows(self._spark, self._tables, self._options.window)
            now = time.monotonic()
            self._next_windows = now + max(WINDOWS_EVERY_S, WINDOWS_SHARE * (now - started))

    def _summarise(self):
        self._job.build_windows(self._spark, self._tables, self._options.window)
        totals = self._tables.totals()
        for table in ("readings", "dead_letters"):
            found = self._tables.rows({"readings": "raw"}.get(table, table))
            if found != totals[table]:
                raise self._job.CountsDiffer(f"{table}: {found} rows in the files, {totals[table]} noted batch by batch")
        counts = self._tables.window_counts()
        if sum(counts) != totals["readings"]:
            raise self._job.CountsDiffer(f"the windows hold {sum(counts)} readings, raw holds {totals['readings']}")
        totals["windows"] = len(counts)
        totals["files"] = {table: self._tables.glob(table) for table in ("raw", "dead_letters", "windows")}
        print(json.dumps(totals), flush=True)
        return 0


def say(text):
    """A line of progress."""
    print(f"pipeline: {text}", file=sys.stderr, flush=True)


def cause(error):
    """The source's own sentence inside what Spark raised; for anything else all that Spark says."""
    found = re.findall(r"^(?:leveret\.ports\.spark\.\w+\.\w+|ValueError): (.+)$", str(error), re.MULTILINE)
    return found[-1] if found else str(error)
