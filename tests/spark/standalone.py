"""The pipeline on a Spark master of this machine, with Spark's own Master and Worker classes: `python tests/spark/standalone.py`.

It runs the lines of ports/spark/README.md that have spark://HOST:7077 in them, as they stand there, with this master in its place and a
folder of its own for each; prints what it runs and what that says. Exit status 0: each found every reading.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import brokers
import pyspark
from telemetry import Stream

COUNT = 1000
START_S, RUN_S = 300, 1800
HOME = os.path.dirname(pyspark.__file__)
README = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "ports", "spark", "README.md")
IN_README = "spark://HOST:7077"
ENVIRONMENT = {
    **os.environ,
    "SPARK_HOME": HOME,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PATH": os.pathsep.join([os.path.dirname(sys.executable), f"{HOME}/bin", os.environ["PATH"]]),
}


def start(folder, name, sentence, *arguments):
    """One of Spark's daemons; returns when its log has the sentence."""
    command = ["spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    print("$", shlex.join(command), flush=True)
    path = f"{folder}/{name.rpartition('.')[2]}.log"
    with open(path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
    until = time.monotonic() + START_S
    while True:
        with open(path, encoding="utf-8") as log:
            told = log.read()
        if sentence in told:
            return process
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise AssertionError(f"{name} did not start:\n{told}")
        time.sleep(0.2)


def run(line, folder):
    """The readings that a line of shell found."""
    print("$", line, flush=True)
    done = subprocess.run(line, shell=True, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout, end="", flush=True)
    return json.loads(done.stdout.splitlines()[-1])["readings"]


def main():
    """The exit status."""
    with open(README, encoding="utf-8") as file:
        lines = re.findall(rf"^(leveret .*{IN_README}.*)$", file.read(), re.MULTILINE)
    running = []
    with tempfile.TemporaryDirectory() as folder:
        broker = brokers.start_leveret()
        try:
            stream, port = Stream(broker, "readings"), brokers.free_port()
            stream.readings(0, COUNT)
            master = f"spark://127.0.0.1:{port}"
            running.append(start(folder, "master.Master", "New state: ALIVE", "--port", str(port)))
            running.append(start(folder, "worker.Worker", "Successfully registered", "-c", "2", "-m", "2g", "-d", f"{folder}/work", master))
            with open(f"{folder}/pipeline.toml", "w", encoding="utf-8") as file:
                file.write(f'[source]\nurl = "{broker.url}"\nstreams = "{stream.name}"\n')
            found = [
                run(f"{line.replace(IN_README, master)} --out out-{number} --available-now", folder) for number, line in enumerate(lines)
            ]
            print(f"{found} readings of {COUNT}", flush=True)
            return 0 if found == [COUNT] * 2 else 1
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()
            broker.end()


if __name__ == "__main__":
    sys.exit(main())
