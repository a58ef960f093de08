"""The bench's rows of other verbs and topologies than a publish to a queue that somebody consumes: the load is verbs_load.py.

Columns and messages as in rows_features.py, of whose table these rows are a part. Transactions, twenty publishers with ten messages each,
and the connections that publish in turn have as many messages on their way as the others: 200. Requests and replies are transient, and the
queues that come and go are exclusive. The rows beyond memory fill a queue with 16 times the octets of the broker's memory for messages
(RabbitMQ: a lazy queue) before it is drained.
"""

import json
import subprocess

from loading import RunFailed, command_of

COLUMNS = ("leveret", "plain", "rabbitmq")
ACKS = ("--ack-every", 50, "--prefetch", 200)
DURABLE = ("--vary", "--persistent")
CONFIRMS = (*DURABLE, "--confirm", 200, *ACKS)
MIB = 1 << 20
TIMES = 16  # as many octets in a queue as in memory
BODY = 256

STREAM = ("--argument", "x-queue-type=stream")
REPLAY = ("--first", "--count", 100000, *CONFIRMS, *STREAM, "--consumer-argument", "x-stream-offset=first")
OURS = ("leveret", "plain")
REJECTS = (
    *CONFIRMS,
    "--consumers",
    2,
    "--argument",
    "x-dead-letter-exchange=",
    "--argument",
    "x-dead-letter-routing-key=leveret-perf-2",
)
RETURNS = (*DURABLE, "--confirm", 200, "--ack-every", 50, "--prefetch", 50, "--argument", "x-queue-type=quorum")
RETURNS += ("--argument", "x-delivery-limit=20")

# name, title, options of verbs_load.py, the columns that can do it (None: all)
SCENARIOS = (
    ("transactions", "transactions of 10", ("--form", "transactions", *DURABLE, "--publishers", 20, "--confirm", 10, *ACKS), None),
    ("get", "basic.get, 200 on their way", ("--form", "get", "--window", 200, "--first", "--count", 20000, *CONFIRMS), None),
    ("get_one", "basic.get, one after the other", ("--form", "get", "--window", 1, "--first", "--count", 4000, *CONFIRMS), None),
    ("headers", "headers exchange, 100 bindings", ("--topology", "headers", *CONFIRMS), None),
    ("topic", "topic exchange, 10,000 bindings", ("--topology", "topic", *CONFIRMS), None),
    ("alternate", "alternate exchange", ("--topology", "alternate", *CONFIRMS), None),
    ("cc", "CC, to a second queue", ("--topology", "cc", *CONFIRMS), None),
    ("replies", "direct reply-to, 200 on their way", ("--form", "replies", "--vary", "--confirm", 200, *ACKS), None),
    ("replies_one", "direct reply-to, one after the other", ("--form", "replies", "--vary", "--confirm", 1, "--ack-every", 1), None),
    ("queues_1000", "1,000 queues with a consumer each", (*CONFIRMS, "--queues", 1000, "--consumers", 10), None),
    ("turns", "1,000 connections that publish in turn", ("--form", "turns", *CONFIRMS, "--publishers", 1000), None),
    (
        "cycles",
        "queues coming and going, cycles/s",
        ("--form", "cycles", "--vary", "--publishers", 20, "--confirm", 1, "--consumers", 0),
        None,
    ),
    ("stream_replay", "a stream read from the first by five, deliveries", ("--topology", "readers", "--consumers", 5, *REPLAY), None),
    (
        "stream_packed",
        "a stream read from the first by one, packed",
        ("--form", "packs", *REPLAY, "--consumer-argument", "x-stream-pack-records=1000"),
        OURS,
    ),
    (
        "stream_filter",
        "a stream read with a filter",
        ("--topology", "filtered", *CONFIRMS, *STREAM, "--consumer-argument", "x-stream-filter=site-7"),
        OURS,
    ),
    ("expired_dead", "x-message-ttl 0: each becomes a dead letter", ("--topology", "expired", *CONFIRMS), None),
    ("over_length_dead", "x-max-length 0: each becomes a dead letter", ("--topology", "over_length", *CONFIRMS), None),
    ("rejected_dead", "each is rejected and becomes a dead letter", ("--form", "rejects", "--topology", "rejected", *REJECTS), None),
    (
        "returned",
        "each is returned once, x-delivery-limit (quorum queues)",
        ("--form", "returns", "--topology", "returned", *RETURNS),
        None,
    ),
)
BEYOND = (
    ("beyond_fill", "a queue beyond memory, filled", (), None),
    ("beyond_drain", "a queue beyond memory, drained", (), None),
)
NOT_COMPARED = ("get_one", "replies", "replies_one", "turns", "cycles")  # with a plain durable queue: other work than publish and deliver


def run_of(broker, seconds, options):
    """(summary, the broker's CPU seconds) of a run. Raises RunFailed."""
    options = ["--json", "-", "--server-pid", broker.server_pid, *options]
    if "--count" not in options:
        options += ["--seconds", seconds]
    done = subprocess.run([*command_of("verbs_load.py"), broker.url, *map(str, options)], capture_output=True, text=True)
    if done.returncode:
        raise RunFailed("%s, %s: %s" % (broker.column, " ".join(map(str, options)), done.stderr[-1000:]))
    summary = json.loads(done.stdout)["summary"]
    return summary, summary["server_cpu_s"]


def beyond(broker, mib):
    """What filling and draining a queue with `mib` MiB gives: two of `run_of`'s results. Raises RunFailed."""
    lazy = ("--argument", "x-queue-mode=lazy") if broker.column == "rabbitmq" else ()
    summary, cpu_s = run_of(broker, 0, (*CONFIRMS, "--first", "--count", mib * MIB // BODY, *lazy))
    first = summary.pop("first")
    return (first, first["server_cpu_s"]), (summary, cpu_s)


def limits_beyond(mib):
    """The limits of a Leveret for the rows beyond memory, as lines of its configuration."""
    return "arena_size = %d\n" % (mib * MIB // TIMES)
