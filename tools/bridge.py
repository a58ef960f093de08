"""`leveret bridge`: runs ports/bridge.py as a process.

    leveret bridge --from amqp://127.0.0.1:5672 --queue uplink --to amqp://user:password@upstream/ --exchange telemetry

Laws: one JSON status line on standard output every --status-seconds and one at the end, sentences for people on standard error;
SIGTERM and Ctrl-C finish the outstanding confirms (at most 5 s), close both connections and exit with 0.
"""
import argparse
import json
import signal
import sys
import time

from leveret.ports.bridge import Bridge
from leveret.ports.tcp import Loop
from leveret.ports.url import read_url

STEP_MS = 100


def broker_url(text):
    """An argument that is an amqp:// URL; for argparse."""
    try:
        read_url(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a broker's URL, as amqp://user:password@host:5672/: {error}") from None
    return text


def whole_number(text):
    """A prefetch count (0-9-1: a short, 0 would be no limit); for argparse."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 4096):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 4095")
    return int(text)


def add_arguments(parser):
    """The subcommand's arguments."""
    from .cli import positive_seconds
    parser.add_argument("--from", dest="source", required=True, type=broker_url, metavar="URL", help="the broker that has the queue")
    parser.add_argument("--queue", required=True, help="the queue to take messages from")
    parser.add_argument("--to", dest="target", required=True, type=broker_url, metavar="URL", help="the upstream broker")
    parser.add_argument("--exchange", required=True, help="the upstream exchange to publish to")
    parser.add_argument("--routing-key", metavar="KEY", help="publish with this routing key; without it each message keeps its own")
    parser.add_argument("--prefetch", type=whole_number, default=500, metavar="COUNT", help="most messages held at a time (default 500)")
    parser.add_argument("--status-seconds", type=positive_seconds, default=10, metavar="N", help="between two status lines (default 10)")


def say(sentence):
    """For people."""
    print("bridge: " + sentence, file=sys.stderr, flush=True)


def run(options):
    """Bridge until told to end; returns 0."""
    loop = Loop(2)
    bridge = Bridge(loop, options.source, options.queue, options.target, options.exchange, say, options.routing_key, options.prefetch)
    asked = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    due = time.monotonic() + options.status_seconds
    while not bridge.stopped:
        bridge.step(STEP_MS)
        if asked and not bridge.stopping:
            bridge.stop()
        if time.monotonic() >= due:
            due = time.monotonic() + options.status_seconds
            print(json.dumps(bridge.status()), flush=True)
    loop.close()
    print(json.dumps(bridge.status()), flush=True)
    return 0
