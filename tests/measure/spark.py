"""Measures the Spark side: `python tests/measure/spark.py [--rows N] [--runs N] [--json FILE]`, the goals beside what was measured.

A broker of our own, a stream of --rows JSON readings (103 octets, one message each), local[2]; the broker has the same cores. Medians of
--runs after one run to get warm. The latency is the mean age of a batch's rows when the batch is done, at 1,000 readings a second.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "spark"))

from pyspark.sql import functions as F

from leveret.core.amqp_0_9 import properties
from leveret.ports.client import connect
from leveret.ports.spark.scoring import BUCKETS, scorer
from leveret.tools import pipeline_session

LIMITS = "[limits]\narena_size = 1073741824\nmessage_count_max = {0}\nentry_count_max = {1}\nblock_size = 256\n"
FIELDS = "device string, metric string, sequence long, time double, value double"
AGE_S, AGE_RATE = 20, 1000
DEVICES, DETECTOR_ROWS = 10_000, 125_000
GIVEN = properties.encode({"content_type": "application/json", "delivery_mode": 2})


def reading(number):
    return b'{"device":"kiln-%05d","metric":"temperature","sequence":%d,"time":%.3f,"value":%.3f}' % (
        number % DEVICES,
        number,
        1_700_000_000 + number / 1000,
        20 + number % 100 / 7,
    )


class Bench:
    """A broker with a full stream, a session, a folder."""

    def __init__(self, rows, runs):
        self.rows, self.runs, self.folder = rows, runs, tempfile.mkdtemp()
        config = os.path.join(self.folder, "leveret.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(LIMITS.format(2 * rows + 200_000, 3 * rows + 300_000))
        self.broker = subprocess.Popen(
            [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0", "--config", config],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.url = self.broker.stdout.readline().split()[1]
        self.fill("full", rows)
        # What the C1 compiler saves at the start it costs in a long run.
        java = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC", "spark.driver.memory": "3g"}
        self.spark = pipeline_session.start_spark("local[2]", java)

    def close(self):
        self.spark.stop()
        self.broker.kill()
        self.broker.wait()
        shutil.rmtree(self.folder)

    def fill(self, stream, rows):
        connection = connect(self.url)
        connection.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
        for number in range(rows):
            connection.publish("", stream, reading(number), GIVEN, confirm=False)
        connection.wait_confirmed()
        connection.close()

    def medians(self, one):
        """The median rows/s of `runs` calls of one(), a function that gives (rows, seconds)."""
        one()
        return statistics.median(rows / seconds for rows, seconds in (one() for _ in range(self.runs)))

    def streamed(self, frame, form, **options):
        """(rows, seconds) of an AvailableNow run: the time of its batches."""
        place = tempfile.mkdtemp(dir=self.folder)
        query = (
            frame.writeStream.format(form)
            .options(checkpointLocation=place + "/checkpoint", **{name: place + text for name, text in options.items()})
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [one for one in query.recentProgress if one.numInputRows]
        shutil.rmtree(place)
        return sum(one.numInputRows for one in batches), sum(one.durationMs["triggerExecution"] for one in batches) / 1000

    def messages(self, schema="value binary, offset long", url=None, stream="full"):
        return self.spark.readStream.format("amqp").option("url", url or self.url).option("stream", stream).schema(schema).load()

    def parsed(self, frame):
        return frame.select(F.from_json(F.col("value").cast("string"), FIELDS).alias("reading")).select("reading.*")

    def to_nothing(self):
        return self.medians(lambda: self.streamed(self.messages(), "noop"))

    def to_parquet(self):
        return self.medians(lambda: self.streamed(self.parsed(self.messages("value binary")), "parquet", path="/out"))

    def text_to_parquet(self):
        lines = os.path.join(self.folder, "lines")
        os.makedirs(lines, exist_ok=True)
        with open(os.path.join(lines, "readings.jsonl"), "wb") as file:
            file.writelines(reading(number) + b"\n" for number in range(self.rows))
        return self.medians(lambda: self.streamed(self.parsed(self.spark.readStream.text(lines)), "parquet", path="/out"))

    def detector(self):
        """Readings of 10,000 devices out of Parquet through the buckets, DETECTOR_ROWS a batch, the states going on from batch to batch."""
        place = os.path.join(self.folder, "readings")
        (
            self.spark.range(DETECTOR_ROWS)
            .selectExpr(
                f"concat('kiln-', id % {DEVICES}) as device",
                "'temperature' as metric",
                "id as sequence",
                "timestamp_millis(1700000000000 + id) as time",
                "20 + rand(1) as value",
                "cast(null as string) as unit",
                "'s' as stream",
                "id as offset",
                "0 as part",
                "'north' as gateway",
            )
            .write.parquet(place)
        )
        bucket = F.expr(f"pmod(hash(gateway, device, metric), {BUCKETS})")
        batches = iter(range(1000))

        def one():
            began = time.monotonic()
            frame = self.spark.read.parquet(place)
            schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema) + ", score double"
            score = scorer(self.folder + "/states", next(batches))
            scored = frame.withColumn("bucket", bucket).groupBy("bucket").applyInArrow(score, schema)
            scored.write.format("noop").mode("overwrite").save()
            return DETECTOR_ROWS, time.monotonic() - began

        one()
        return self.medians(one)

    def age(self):
        """The median over batches of the mean age of a batch's rows when it was in Parquet, in seconds."""
        done, ending, one_at_a_time = {}, threading.Event(), threading.Lock()
        connection = connect(self.url)
        connection.queue_declare("age", durable=True, arguments={"x-queue-type": "stream"})

        def publish():
            until = time.monotonic()
            while not ending.is_set():
                for _ in range(AGE_RATE // 50):
                    connection.publish("", "age", b'{"time":%.6f}' % time.time(), GIVEN, confirm=False)
                connection.wait_confirmed()
                until += 1 / 50
                time.sleep(max(until - time.monotonic(), 0))

        def batch(frame, number):
            with one_at_a_time:
                if ending.is_set():
                    raise RuntimeError("the query is being stopped")  # within a batch that ends in a StackOverflowError of Spark's
                frame.write.parquet(f"{self.folder}/age/{number}")
                done[number] = time.time()

        thread = threading.Thread(target=publish)
        thread.start()
        query = (
            self.messages("value binary", stream="age")
            .writeStream.foreachBatch(batch)
            .option("checkpointLocation", self.folder + "/age-checkpoint")
            .start()
        )
        time.sleep(AGE_S)
        ending.set()
        thread.join()
        with one_at_a_time:
            pass  # none is being written, and none begins any more
        query.stop()
        connection.close()
        sent = F.get_json_object(F.col("value").cast("string"), "$.time").cast("double")
        means = ((self.spark.read.parquet(f"{self.folder}/age/{number}").agg(F.avg(sent)).first()[0], end) for number, end in done.items())
        ages = [end - mean for mean, end in means if mean]
        return statistics.median(ages[len(ages) // 3 :])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    bench, found = Bench(options.rows, options.runs), {}
    try:
        for name, measure in (
            ("packed stream to nothing, rows/s", bench.to_nothing),
            ("to Parquet through from_json, rows/s", bench.to_parquet),
            ("the same lines from text files, rows/s", bench.text_to_parquet),
            ("detector, 10,000 devices, rows/s", bench.detector),
            ("mean row age at 1,000/s, s (p50)", bench.age),
        ):
            found[name] = round(measure(), 3)
            print(f"{name}: {found[name]:,}", file=sys.stderr, flush=True)
    finally:
        bench.close()
    found["stream through from_json, share of text"] = round(
        found["to Parquet through from_json, rows/s"] / found["the same lines from text files, rows/s"], 2
    )
    goals = {
        "packed stream to nothing, rows/s": 350_000,
        "stream through from_json, share of text": 0.35,
        "detector, 10,000 devices, rows/s": 100_000,
        "mean row age at 1,000/s, s (p50)": 0.6,
    }
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {options.rows} rows, medians of {options.runs}")
    print(f"{'':45}{'measured':>12}{'goal':>10}")
    for name, value in found.items():
        print(f"{name:45}{value:12,}{goals.get(name, ''):>10}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**found, "load": os.getloadavg()[0]}, file)


if __name__ == "__main__":
    main()
