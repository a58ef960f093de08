"""The first twenty lines of a user's own Spark program, and what is said when a part is missing."""

import os
import shutil
import subprocess
import sys

from leveret.ports.client import connect

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from leveret.ports.spark import register
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
frame = spark.read.format("amqp").options(url=sys.argv[1], stream="steps").load()
print("read", [row[0] for row in frame.select(udf(lambda value: len(value), "int")("value")).collect()])
spark.stop()
"""


def test_spark_uses_the_python_that_runs_the_program_whatever_is_on_the_path(java, leveret, tmp_path):
    """A venv that is not activated: another python3, without leveret, comes first on the PATH."""
    connection = connect(leveret.url)
    connection.queue_declare("steps", durable=True, arguments={"x-queue-type": "stream"})
    for body in (b"a", b"bb"):
        connection.publish("", "steps", body)
    connection.close()
    other = tmp_path / "bin"
    other.mkdir()
    (other / "python3").write_text("#!/bin/sh\necho 'the wrong python' >&2\nexit 1\n")
    (other / "python3").chmod(0o755)
    environment = {name: text for name, text in os.environ.items() if name not in ("PYSPARK_PYTHON", "VIRTUAL_ENV", "PYTHONPATH")}
    environment["PATH"] = os.pathsep.join([str(other), os.path.dirname(shutil.which("java")), "/usr/bin", "/bin"])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, leveret.url], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0 and "read [1, 2]" in done.stdout, done.stderr


def test_a_missing_package_is_named_with_the_command_that_brings_it():
    for name in ("numpy", "pyarrow", "pyspark"):
        hide = f"import sys; sys.modules[{name!r}] = None; import leveret.ports.spark"
        done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1 and f"needs {name}" in last and "pip install 'leveret[spark]'" in last, done.stderr
