"""The demo: sensors, gateway, bridge, upstream, Spark, Parquet, all real processes on this machine, with every stage counted.

    python3 tools/dev.py demo [--seconds N] [--csv FILE] [--upstream amqp://...] [--keep DIR]

One sensor comes over TCP, one over a serial line (a pair of pseudo-terminals stands in for the cable). The numbers of all stages must
agree exactly: a reading lost or doubled anywhere makes the demo fail. Without Java the Spark stage is left out and the verdict says so.
Children are ended on every way out; their logs and the Parquet files stay in the directory that is named at the end.
"""

import json
import os
import signal
import sys
import tempfile
import time
from typing import Any

from rich.console import Console

from leveret.ports.client import ClientError

from . import demo_stream, demo_tables, readings
from .cable import Cable
from .children import ChildFailed, Children
from .cli import Parser, positive_seconds
from .components import JAVA
from .usage import UsageError

START_SECONDS_MAX = 15
DRAIN_QUIET_S = 15
PIPELINE_SECONDS_MAX = 300
WINDOW_S = 10
RECORDED_WINDOW_S = 3600  # a recorded series keeps its own times, which lie minutes apart
BAUD = 115200
SERIES_COUNT_MAX = 50000
PLAIN_WIDTH = 110  # columns where the output is no terminal


class DemoFailed(Exception):
    """A stage did not do what it had to; the text is for the user."""


class Stages:
    """The counts of each stage; `agree` compares them all with the publishers' counts."""

    def __init__(self):
        self.sensors = []  # the sensors' own summaries
        self.upstream = None  # Counter of message_id
        self.bridge = None  # the bridge's last status
        self.pipeline = None  # the Spark job's summary, None when left out
        self.parquet = None  # demo_tables.Parquet, read back independently

    @property
    def published(self):
        return sum(sensor["published"] for sensor in self.sensors)

    def expected(self):
        """message_id of every reading that was published."""
        return {
            f"{sensor['device']}/{metric}/{number}"
            for sensor in self.sensors
            for metric, count in sensor["metrics"].items()
            for number in range(1, count + 1)
        }


class Demo:
    """One run in `directory`."""

    def __init__(self, options, directory, children, console):
        self.options = options
        self.directory = directory
        self.children = children
        self.console = console
        self.stages = Stages()
        self.cable: Any = None
        self.gateway_url = self.serial_url = None
        self.upstream: Any = None

    def say(self, text):
        self.console.print(text, highlight=False, markup=False)

    def run(self):
        self.cable = Cable()
        try:
            self._start_brokers()
            try:
                self._move_readings()
                self._run_pipeline()
            finally:
                self._leave_upstream()
        finally:
            self.children.end_all()
            self.cable.close()

    def _start_brokers(self):
        serial = f"serial://{self.cable.ends[0]}?baud={BAUD}"
        gateway = self.children.start("gateway", ["leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0", "--listen", serial])
        self.gateway_url = gateway.wait_line("ready amqp://", START_SECONDS_MAX).split()[1]
        gateway.wait_line("ready serial://", START_SECONDS_MAX)
        self.serial_url = f"serial://{self.cable.ends[1]}?baud={BAUD}"
        self.say(f"gateway broker: {self.gateway_url} and {serial}")
        if self.options.upstream:
            # The names carry our process number: a foreign broker's own queues are left alone.
            self.upstream = demo_stream.Upstream(self.options.upstream, f".demo.{os.getpid()}")
            self.say(
                f"upstream broker: {demo_stream.without_password(self.options.upstream)} (exchange {self.upstream.exchange}, "
                f"stream queue {self.upstream.queue}, deleted at the end)"
            )
        else:
            upstream = self.children.start("upstream", ["leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"])
            self.upstream = demo_stream.Upstream(upstream.wait_line("ready amqp://", START_SECONDS_MAX).split()[1])
            self.say(f"upstream broker: {self.upstream.url} (a second Leveret)")
        demo_stream.declare_gateway(self.gateway_url)
        self.upstream.declare()

    def _leave_upstream(self):
        """Delete what was declared on a foreign broker."""
        if self.options.upstream:
            try:
                self.upstream.delete()
            except ClientError as error:
                self.say(f"queue {self.upstream.queue} could not be deleted upstream: {error}")

    def _start_sensors(self):
        seconds = ["--seconds", str(self.options.seconds)]
        if self.options.csv:
            device = os.path.splitext(os.path.basename(self.options.csv))[0]
            first = ["--device", device, "--csv", self.options.csv]
        else:
            first = ["--device", "machine", "--read", "cpu,memory,network"]
        second = ["--device", "cabinet", "--read", "disk,temperature,cpu"]
        self.say(f"sensors: {first[1]} over TCP, {second[1]} over the serial line, for {self.options.seconds:g} s")
        return [
            self.children.start("sensor-" + arguments[1], ["leveret.tools.sensors", "--to", url, *arguments, *seconds])
            for url, arguments in ((self.gateway_url, first), (self.serial_url, second))
        ]

    def _move_readings(self):
        """Sensors to gateway, bridge to upstream, until everything that was published is there or nothing moves any more."""
        bridge = self.children.start(
            "bridge",
            [
                "leveret.tools.cli",
                "bridge",
                "--from",
                self.gateway_url,
                "--queue",
                demo_stream.GATEWAY_QUEUE,
                "--to",
                self.upstream.url,
                "--exchange",
                self.upstream.exchange,
                "--gateway",
                "demo",
            ],
        )
        sensors = self._start_sensors()
        reader = demo_stream.StreamReader(self.upstream)
        limit = time.monotonic() + self.options.seconds + START_SECONDS_MAX + DRAIN_QUIET_S
        with self.console.status("") as status:
            while any(sensor.running() for sensor in sensors):
                reader.poll(200)
                status.update(f"{reader.count} readings have arrived upstream")
                self.children.check()
                if time.monotonic() > limit:
                    raise DemoFailed(f"the sensors did not end in {self.options.seconds:g} s and a grace time (logs: {self.directory})")
        self.stages.sensors = [json.loads(sensor.wait_end(1)[-1]) for sensor in sensors]
        self.say(f"sensors: done, {self.stages.published} readings published; waiting for the last to arrive upstream")
        reader.wait_quiet(self.stages.published, DRAIN_QUIET_S)
        reader.close()
        self.stages.upstream = reader.copies
        bridge.end()
        self.stages.bridge = json.loads(bridge.wait_end(1)[-1])

    def _run_pipeline(self):
        if not JAVA.present():
            self.say(JAVA.sentence())
            return
        out = os.path.join(self.directory, "parquet")
        window_s = RECORDED_WINDOW_S if self.options.csv else WINDOW_S
        job = self.children.start(
            "pipeline",
            [
                "leveret.tools.cli",
                "pipeline",
                "--source",
                self.upstream.url,
                "--stream",
                self.upstream.queue,
                "--out",
                out,
                "--window",
                str(window_s),
                "--available-now",
            ],
        )
        self.say(f"Spark: reads the stream, cleans, de-duplicates, aggregates in windows of {window_s} s, writes Parquet")
        began = time.monotonic()
        with self.console.status("starting Java") as status:
            while job.running() and time.monotonic() - began < PIPELINE_SECONDS_MAX:
                time.sleep(0.2)
                status.update(job.last_error_line() or "starting Java")
        self.stages.pipeline = json.loads(job.wait_end(0)[-1])
        self.say(f"Spark: done in {time.monotonic() - began:.0f} s")
        self.stages.parquet = demo_tables.Parquet(self.stages.pipeline["files"], window_s)


def make_parser():
    parser = Parser(prog="dev.py demo", description="Sensors, gateway, bridge, upstream, Spark, Parquet: every stage counted.")
    parser.add_argument("--seconds", type=positive_seconds, default=20, metavar="N", help="how long the sensors publish (default 20)")
    parser.add_argument("--csv", metavar="FILE", help="the TCP sensor replays this recorded timestamp,value series in time-lapse")
    parser.add_argument("--upstream", metavar="URL", help="an AMQP 0-9-1 broker with stream queues instead of a second Leveret")
    parser.add_argument("--keep", metavar="DIR", help="put logs and Parquet files there (default: a new directory for temporary files)")
    return parser


def check_options(options):
    """Raise UsageError for what cannot work, before anything is started."""
    if options.csv:
        options.csv = os.path.abspath(options.csv)
        count = len(readings.read_series(options.csv))
        if count > SERIES_COUNT_MAX:
            raise UsageError(f"--csv: {options.csv} holds {count} readings; at most {SERIES_COUNT_MAX} fit into the upstream's memory")
    if options.upstream and not options.upstream.startswith("amqp://"):
        raise UsageError(f"--upstream: {options.upstream!r} is not a broker's URL, as amqp://user:password@host:5672/")
    if options.keep and os.path.isdir(options.keep) and os.listdir(options.keep):
        raise UsageError(f"--keep: {options.keep} is not empty")


def verdict(demo, console):
    """Print the tables and the verdict; the exit status."""
    console.print(demo_tables.stage_table(demo.stages))
    if demo.stages.parquet is not None:
        console.print(demo_tables.aggregate_table(demo.stages.parquet))
    demo.say(f"files: {demo.directory}")
    faults = demo_tables.faults(demo.stages)
    for fault in faults:
        demo.say("  " + fault)
    if faults:
        demo.say("VERDICT: FAILED, the stages do not agree")
        return 1
    left_out = "" if demo.stages.pipeline is not None else "; the Spark stage was left out (" + JAVA.name + " is missing)"
    demo.say(f"VERDICT: passed, {demo.stages.published} readings at every stage, none lost, none doubled{left_out}")
    return 0


def run(options):
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    directory = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="leveret-demo-")
    os.makedirs(directory, exist_ok=True)
    with Children(directory) as children:
        demo = Demo(options, directory, children, console)
        try:
            demo.run()
        except (ChildFailed, DemoFailed, ClientError) as error:
            demo.say(f"VERDICT: FAILED, {error}\nfiles: {directory}")
            return 1
    return verdict(demo, console)


def main(arguments=None):
    options = make_parser().parse_args(arguments)
    # Told to end: leave through the `with` blocks, which end the children.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        check_options(options)
        return run(options)
    except UsageError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted: the children were ended.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
