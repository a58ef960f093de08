"""`leveret pipeline`: the Spark job from streams to Parquet files (the job itself: ports/spark/job.py).

    leveret pipeline run --config pipeline.toml [--master URL]      # tools/SETTINGS.md has the keys
    leveret pipeline run --source URL --stream QUEUE --out DIR      # the same with few words; `run` may be left out
    leveret pipeline score --csv FILE...                            # anomaly scores of series in files (pipeline_score.py)
    leveret pipeline report --out DIR                               # a page with plots of the tables (pipeline_report.py)
    leveret pipeline archive DIR                                    # what spark-submit needs

On standard error: a line of progress now and then, and at the end what went wrong, in one sentence. On standard output: one line of JSON
with exact counts, {"rows_read", "records", "readings", "duplicates", "dead_letters", "late", "alerts", "lost", "windows",
"removed": {table: rows that keep_days removed}, "files": {table: what to give a Parquet reader}}. records = readings + duplicates +
dead_letters (a message of one reading is one record), and the windows' counts sum up to readings - late, else the exit status is 1.
Started again with the same --out it goes on where it was, also after kill -9. Exit status: 0 done, 1 failed, 2 wrong arguments, 3 no Java.
"""

import json
import os
import re
import signal
import sys
import time

from . import pipeline_config, pipeline_report, pipeline_score
from .pipeline_session import JAVA_OLDEST, NoSpark, java_version, start_spark, write_submission
from .usage import UsageError

OTHERS = {"score": pipeline_score, "report": pipeline_report}  # actions that need no Spark
POLL_S = 0.25
FAILURES_MAX = 5  # of a query, without a batch between them
RETRY_S = 10  # so long a query itself waits for a broker that is away; a signal to end is heard between two queries
AWAY_PAUSE_S = 5
PAUSE_S, PAUSE_BUSY_S = 1, 10  # before the first of them is begun anew; twice as long before the second, and so on
TOO_BUSY = "Python worker failed to connect back"  # Spark's words; the 10 s that it waits for the process are no setting
LINE_EVERY_S = 2
WINDOWS_EVERY_S = 30
WINDOWS_SHARE = 10
NO_JAVA = "Spark needs Java 17 or newer, which is not here; install it with: sudo apt-get install -y openjdk-17-jre-headless"


def add_arguments(parser):
    """The options of `leveret pipeline`."""
    add_run_arguments(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=False)
    add_run_arguments(actions.add_parser("run", help="run the job (what is done without an action, too)"))
    pipeline_score.add_arguments(actions.add_parser("score", help="write anomaly scores for `timestamp,value` files"))
    pipeline_report.add_arguments(actions.add_parser("report", help="write one HTML page with plots of the aggregates and the anomalies"))
    archive = actions.add_parser("archive", help="write what spark-submit needs: leveret.zip and leveret_pipeline.py")
    archive.add_argument("directory", metavar="DIR")


def add_run_arguments(parser):
    """The options of `leveret pipeline run`."""
    parser.add_argument("--config", metavar="FILE", help="a TOML file with everything (every key: tools/SETTINGS.md)")
    parser.add_argument("--master", metavar="URL", help="where Spark runs (default local[*])")
    parser.add_argument(
        "--source",
        metavar="URL",
        help="the broker, amqp[s]://[user[:password]@]host[:port][/vhost] (default "
        f"amqp://127.0.0.1:5672); the password may be in ${pipeline_config.PASSWORD_VARIABLE}",
    )
    parser.add_argument("--stream", metavar="QUEUE", help="the stream queue to read (default readings)")
    parser.add_argument("--out", metavar="DIR", help="where the tables and the checkpoint are, or will be")
    parser.add_argument("--window", type=positive, metavar="SECONDS", help="length of a window (default 60)")
    parser.add_argument(
        "--watermark", type=positive, metavar="MESSAGES", help="how many messages back a double is recognised at least (default 200000)"
    )
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
    if options.action == "archive":
        print("\n".join(write_submission(options.directory)))
        return 0
    if options.action in OTHERS:
        return OTHERS[options.action].run(options)
    plan = pipeline_config.of_arguments(options)
    if java_version() < JAVA_OLDEST:
        print(f"leveret pipeline: {NO_JAVA}", file=sys.stderr)
        return 3
    tables = open_tables(plan)
    spark = None
    try:
        spark = start_spark(plan.master, plan.settings)
        return Run(spark, tables, options, plan).run()
    except NoSpark as error:
        print(f"leveret pipeline: {error}", file=sys.stderr)
        return 1
    finally:
        if spark is not None:
            spark.stop()
        tables.close()


def open_tables(plan):
    """The output folder, locked, after a look at what the source and the sink say of their options. Raises UsageError."""
    try:
        from leveret.ports.spark.options import Options, sink_login
        from leveret.ports.spark.tables import InUse, Tables
    except ImportError as error:
        raise UsageError(f"{error.name} is missing; install it with: pip install '.[spark]' in Leveret's folder") from None
    for section, check, given in (("source", Options, plan.source), ("alerts", sink_login, plan.alerts)):
        try:
            if given is not None:
                check(given)
        except ValueError as error:
            raise UsageError(f"[{section}]: {str(error).removeprefix('amqp: ')}") from None
    try:
        return Tables(plan.out)
    except (InUse, OSError) as error:
        raise UsageError(f"--out {plan.out}: {error}") from None


class Run:
    """One run of the job, from the start of the query to the summary."""

    def __init__(self, spark, tables, options, plan):
        from leveret.ports.spark import alerts, decode, job, retention

        self._job, self._retention = job, retention
        self._spark = spark
        self._tables = tables
        self._options = options
        self._plan = plan
        self._decoder = decode.Decoder(plan.format, plan.metrics, plan.by)
        publish = alerts.publisher(plan.alerts, tables, RETRY_S) if plan.alerts else None
        self._source = dict(plan.source or {}, retrySeconds=str(RETRY_S))
        ends = options.available_now or options.seconds
        self._patience_s = plan.patience_s if plan.patience_s is not None else pipeline_config.PATIENCE_S if ends else 0
        self._writer = job.BatchWriter(tables, plan, publish)
        self._stopping = False
        self._next_line = self._next_windows = 0.0
        self._checked = -1

    def run(self):
        """The exit status; prints the summary."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        try:
            if self._plan.bounded:
                say("reading files")
                self._job.run_files(self._spark, self._plan.files, self._decoder, self._writer)
                return self._summarise()
            if not self._options.available_now:
                self._keep_on({"processingTime": f"{int(self._plan.trigger_s * 1000)} milliseconds"}, self._options.seconds)
            if self._options.available_now or (self._options.seconds and not self._stopping):
                self._keep_on({"availableNow": True}, None)
            return self._summarise()
        except self._job.CountsDiffer as error:
            print(f"leveret pipeline: {error}", file=sys.stderr)
        except self._job.SPARK_ERRORS as error:
            print(f"leveret pipeline: {cause(error)}", file=sys.stderr)
        return 1

    def _stop(self, number, frame):
        self._stopping = True

    def _start(self, **trigger):
        self._writer.begin()
        frame = self._job.unique_readings(self._spark, self._source, self._decoder, self._plan.watermark)
        return (
            frame.writeStream.foreachBatch(self._writer)
            .trigger(**trigger)
            .option("checkpointLocation", self._tables.at("_checkpoint"))
            .start()
        )

    def _keep_on(self, trigger, seconds):
        """Follows a query, and starts it again from its checkpoint when Spark lost a process, or a broker is away, as long as patience has
        it. What else the source or we say is final."""
        end, failures, done, away = time.monotonic() + seconds if seconds else None, 0, None, Away(self._patience_s)
        while True:
            try:
                return self._follow(self._start(**trigger), end)
            except self._job.SPARK_ERRORS as error:
                if is_away(error):
                    if self._stopping:
                        return None
                    if away.over(self._checked):
                        raise
                    say(f"{cause(error).strip()}; away for {away.seconds():.0f} s, it is asked again")
                    self._rest(AWAY_PAUSE_S)
                    continue
                newest = (self._tables.newest() or {}).get("batch")
                failures, done = (failures + 1 if newest == done else 1), newest
                if is_final(error) or failures > FAILURES_MAX or self._stopping:
                    raise
                say(f"the query ended and is started again: {cause(error).strip().splitlines()[0][:200]}")
                time.sleep(failures * (PAUSE_BUSY_S if TOO_BUSY in str(error) else PAUSE_S))

    def _rest(self, seconds):
        """A pause that a signal cuts short."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stopping:
            time.sleep(POLL_S)

    def _follow(self, query, end):
        """Until the query ends, `end` (monotonic seconds) is there or a signal came."""
        say("reading")
        while not query.awaitTermination(POLL_S):
            self._look(query)
            if self._stopping or (end and time.monotonic() > end):
                self._writer.end()
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
            progress, totals = query.lastProgress, self._writer.totals
            say(
                f"batch {progress.batchId}: {totals['rows_read']} rows read, {totals['readings']} readings, "
                f"{totals['duplicates']} duplicates, {totals['dead_letters']} dead letters, {totals['late']} late, "
                f"{totals['alerts']} alerts; {self._behind(progress)} behind; {progress.processedRowsPerSecond:.0f} rows/s, "
                f"batch of {progress.numInputRows} in {progress.durationMs.get('triggerExecution', 0) / 1000:.1f} s"
            )

    def _behind(self, progress):
        """Messages between what was read and the streams' heads, as far as the source has looked."""
        source = progress.sources[0]
        head, read = (json.loads(text or "null") or {} for text in (source.latestOffset, source.endOffset))
        return sum(max(at["next"] - read.get(label, at)["next"], 0) for label, at in head.items())

    def _refresh_windows(self):
        """In an endless run: now and then, and never more than a part of the time."""
        if time.monotonic() >= self._next_windows:
            started = time.monotonic()
            self._writer.build_windows(self._spark)
            self._writer.compact()
            self._writer.forget()
            now = time.monotonic()
            self._next_windows = now + max(WINDOWS_EVERY_S, WINDOWS_SHARE * (now - started))

    def _summarise(self):
        self._writer.build_windows(self._spark)
        self._writer.compact()
        self._writer.forget()
        totals, removed = self._tables.totals(), self._retention.gone(self._tables)["rows"]
        for table, folder in (("readings", "raw"), ("dead_letters", "dead_letters"), ("alerts", "alerts")):
            rows, went = self._tables.rows(folder), removed.get(folder, 0)
            if rows + went != totals[table]:
                raise self._job.CountsDiffer(f"{table}: {rows} rows in the files, {went} removed, {totals[table]} noted batch by batch")
        counts = self._tables.window_counts()
        if sum(counts) != totals["readings"] - totals["late"]:
            held = f"raw holds {totals['readings']}, {totals['late']} of them late"
            raise self._job.CountsDiffer(f"the windows hold {sum(counts)} readings, {held}")
        totals["windows"], totals["removed"] = len(counts), removed
        totals["files"] = {table: self._tables.glob(table) for table in ("raw", "dead_letters", "alerts", "windows")}
        print(json.dumps(totals), flush=True)
        return 0


def say(text):
    """A line of progress."""
    print(f"pipeline: {text}", file=sys.stderr, flush=True)


class Away:
    """How long a broker has been away, without a batch between; `patience_s` 0: for ever is not too long."""

    def __init__(self, patience_s):
        self._patience_s = patience_s
        self._since = 0.0  # of time.monotonic(); 0: not away
        self._batch: object = None

    def over(self, batch):
        """True when patience is; `batch`: the newest one that was done."""
        if not self._since or batch != self._batch:
            self._since, self._batch = time.monotonic() - RETRY_S, batch  # as long as the query has waited
        return 0 < self._patience_s <= self.seconds()

    def seconds(self):
        return time.monotonic() - self._since


def raised(error):
    """The names of the exceptions of our own code, or of a mistake in it, that Spark's error tells of."""
    errors = re.findall(r"^(leveret\.\S+|ValueError|TypeError|AssertionError)\b", str(error), re.MULTILINE)
    return [name.rstrip(":").rpartition(".")[2] for name in errors]


def is_away(error):
    """True when a query ended because a broker could not be reached."""
    return raised(error)[-1:] == ["StreamUnavailable"]


def is_final(error):
    """True when starting the query again would not help: what our code raised, but for a broker that was away."""
    return bool(raised(error)) and not is_away(error)


def cause(error):
    """The source's own sentence inside what Spark raised; for anything else all that Spark says."""
    if TOO_BUSY in str(error):
        return (
            "a Python process did not answer Spark within 10 s: this machine is too busy, or PYSPARK_PYTHON "
            f"({os.environ.get('PYSPARK_PYTHON', sys.executable)}) does not start"
        )
    sentences = re.findall(r"^(?:leveret\.ports\.spark\.\w+\.\w+|ValueError): (.+)$", str(error), re.MULTILINE)
    return sentences[-1] if sentences else str(error)
