"""The Spark session of `leveret pipeline`, on this machine or on a master, and what is shipped to the executors.

`leveret pipeline archive DIR` writes leveret.zip (core, ports and tools: all that the executors need of Leveret) and leveret_pipeline.py,
which starts the job under spark-submit; executors need Python with the packages of `.[spark]` beside it. With --master the archive
is made and shipped by the command itself.
"""

import atexit
import os
import re
import subprocess
import sys
import tempfile
import zipfile

SUBMITTED = "LEVERET_SPARK_SUBMIT"
JAVA_OLDEST = 17
# Starts faster and leaves the other cores alone: for a small machine. Long runs on many rows are faster without (--config, spark.settings).
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*|yarn|k8s://\S+")
LAUNCHER = '''"""For spark-submit: spark-submit --master URL --py-files leveret.zip leveret_pipeline.py --config pipeline.toml"""
import os
import sys

os.environ["{}"] = "1"
from leveret.tools.cli import main  # noqa: E402 - the lines above have to run first

sys.exit(main(["pipeline", "run"] + sys.argv[1:]))
'''


class NoSpark(Exception):
    """Spark did not start; the text is a sentence."""


def java_version():
    """The major version of the Java that Spark would start, 0 when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match else 0


def start_spark(master="local[*]", more=None):
    """A session with the source registered; tasks are tried again. On this machine nothing listens beyond loopback."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from leveret.ports.spark import register

    local = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    cores = local and (os.cpu_count() if local.group(1) == "*" else int(local.group(1) or 1))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": str(max(cores or 0, 2)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    if local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        }
    builder = SparkSession.builder.appName("leveret pipeline")
    if SUBMITTED not in os.environ:
        builder = builder.master(f"local[{local.group(1) or 1},4]" if local else master)
    for name, text in {**settings, **(more or {})}.items():
        builder = builder.config(name, str(text))
    spark = _session(builder, master)
    if not local and SUBMITTED not in os.environ:
        archive = tempfile.TemporaryDirectory(prefix="leveret-archive-")  # Spark serves the file from there until the end
        atexit.register(archive.cleanup)
        spark.sparkContext.addPyFile(write_archive(archive.name))
    register(spark)
    return spark


def _session(builder, master):
    """Raises NoSpark."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        causes = re.findall(r"^(?:Caused by: |: )?(?:[a-z]\w*\.)+\w*(?:Exception|Error): (.+)$", str(error), re.MULTILINE)
        reason = causes[-1] if causes else str(error).strip().splitlines()[0]
        if "stopped SparkContext" in reason:  # Spark gives up after a minute, and then trips over itself
            reason = "no master answers there, or it takes no jobs"
        raise NoSpark(f"Spark at {master} did not start: {reason}") from None


def write_archive(folder):
    """Writes leveret.zip into the folder: its path. The archive holds the Python files of the installed leveret."""
    path = os.path.join(folder, "leveret.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("leveret")  # a folder without __init__.py needs an entry of its own: else Python finds nothing in it
        for part in ("core", "ports", "tools"):
            package = __import__("leveret." + part, fromlist=["*"])
            for root in package.__path__:
                for directory, _, names in sorted(os.walk(root)):
                    archive.mkdir(os.path.normpath(os.path.join("leveret", part, os.path.relpath(directory, root))))
                    for name in sorted(names):
                        if name.endswith(".py"):
                            file = os.path.join(directory, name)
                            archive.write(file, os.path.join("leveret", part, os.path.relpath(file, root)))
    return path


def write_submission(folder):
    """Writes leveret.zip and leveret_pipeline.py into the folder: their paths."""
    os.makedirs(folder, exist_ok=True)
    launcher = os.path.join(folder, "leveret_pipeline.py")
    with open(launcher, "w", encoding="utf-8") as file:
        file.write(LAUNCHER.format(SUBMITTED))
    return write_archive(folder), launcher
