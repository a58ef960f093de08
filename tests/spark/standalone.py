"""The pipeline on a Spark master of this machine, with Spark's own Master and Worker classes: `python tests/spark/standalone.py`.

Once as `leveret pipeline run --master`, once with spark-submit and the archive, both over one stream; prints every command, and each
summary. Exit status 0: both found every reading.
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

import brokers
import pyspark
from telemetry import Stream

COUNT = 1000
START_S = 180
HOME = os.path.dirname(pyspark.__file__)
ENVIRONMENT = {**os.environ, "SPARK_HOME": HOME, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
               "PYSPARK_DRIVER_PYTHON": sys.executable}


def start(folder, name, sentence, *arguments):
    """One of Spark's daemons; returns when its log has the sentence."""
    command = [f"{HOME}/bin/spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
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


def run(*command):
    """What a command says on standard output; raises AssertionError with all that it said when it fails."""
    print("$", shlex.join(command), flush=True)
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout, end="", flush=True)
    return done.stdout


def main():
    """The exit status."""
    leveret, running = (sys.executable, "-m", "leveret.tools.cli"), []
    with tempfile.TemporaryDirectory() as folder:
        broker = brokers.start_leveret()
        try:
            stream = Stream(broker, "readings")
            stream.readings(0, COUNT)
            port = brokers.free_port()
            master = f"spark://127.0.0.1:{port}"
            running.append(start(folder, "master.Master", "New state: ALIVE", "--port", str(port)))
            running.append(start(folder, "worker.Worker", "Successfully registered", "-c", "2", "-m", "2g", "-d", f"{folder}/work", master))
            config = f"{folder}/pipeline.toml"
            with open(config, "w", encoding="utf-8") as file:
                file.write(f'[source]\nurl = "{broker.url}"\nstreams = "{stream.name}"\n')
            run(*leveret, "pipeline", "archive", f"{folder}/ship")
            told = [run(*leveret, "pipeline", "run", "--config", config, "--out", f"{folder}/first", "--master", master, "--available-now"),
                    run(f"{HOME}/bin/spark-submit", "--master", master, "--py-files", f"{folder}/ship/leveret.zip",
                        f"{folder}/ship/leveret_pipeline.py", "--config", config, "--out", f"{folder}/second", "--available-now")]
            found = [json.loads(text.splitlines()[-1])["readings"] for text in told]
            print(f"{found} readings of {COUNT}", flush=True)
            return 0 if found == [COUNT, COUNT] else 1
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()
            broker.end()


if __name__ == "__main__":
    sys.exit(main())
