"""A sensor client: publishes real readings to a gateway, each confirmed by the broker.

    python -m leveret.tools.sensors --to amqp://127.0.0.1:5672 --device greenhouse --read cpu,memory --seconds 20

Exchange `sensors` (topic), routing key `<device>.<metric>`, message_id `<device>/<metric>/<sequence>`, body JSON with device, metric,
sequence (from 1), time (epoch seconds) and value. Laws: a reading counts as confirmed only after basic.ack; mandatory publishing, so a
gateway without a queue for it is an error and not a silent loss; after a lost connection it connects again and sends what was not
confirmed once more under the same message_id. The last line on standard output is a JSON summary.
"""

import collections
import json
import random
import sys
import time

from leveret.core.bridge.backoff import Backoff
from leveret.ports.client import ClientError, ConnectFailed, ConnectionLost, connect

from . import address, readings
from .cli import Parser, positive_seconds
from .usage import UsageError

EXCHANGE = "sensors"
CONNECT_SECONDS_MAX = 20
RANDOM_MAX = 1 << 30


class Reading:
    """One message, kept until it is confirmed."""

    def __init__(self, device, metric, sequence, value, moment):
        self.routing_key = f"{device}.{metric}"
        moment = time.time() if moment is None else moment
        self.body = json.dumps({"device": device, "metric": metric, "sequence": sequence, "time": moment, "value": value}).encode()
        self.properties = {"content_type": "application/json", "delivery_mode": 2, "message_id": f"{device}/{metric}/{sequence}"}


class Publisher:
    """Publishes readings with confirms and survives the loss of its connection. `open_connection()` gives a new one."""

    def __init__(self, open_connection):
        self._open_connection = open_connection
        self._waiting: collections.deque = collections.deque()  # published and not known to be confirmed, oldest first
        self.published = 0
        self.resent = 0
        self._connection = self._connect()

    @property
    def confirmed(self):
        return self.published - len(self._waiting)

    def publish(self, reading):
        self._waiting.append(reading)
        self.published += 1
        try:
            self._send(reading)
        except ConnectionLost:
            self._resume()

    def serve(self, timeout_ms):
        """Move bytes (confirms, heartbeats) for at most `timeout_ms`."""
        try:
            self._connection.poll(timeout_ms)
            self._forget_confirmed()
        except ConnectionLost:
            self._resume()

    def finish(self):
        """Wait for the last confirm and close."""
        while self._waiting:
            try:
                self._connection.wait_confirmed()
                self._forget_confirmed()
            except ConnectionLost:
                self._resume()
        self._connection.close()

    def _send(self, reading):
        self._connection.publish(EXCHANGE, reading.routing_key, reading.body, reading.properties, mandatory=True, confirm=False)
        self._forget_confirmed()

    def _forget_confirmed(self):
        while len(self._waiting) > self._connection.unconfirmed:
            self._waiting.popleft()

    def _connect(self):
        backoff, limit = Backoff(100, 2000), time.monotonic() + CONNECT_SECONDS_MAX
        while True:
            try:
                return self._open_connection()
            except ConnectFailed:
                pause_s = backoff.next_ms(random.randrange(RANDOM_MAX)) / 1000
                if time.monotonic() + pause_s > limit:
                    raise
                time.sleep(pause_s)

    def _resume(self):
        """A new connection, and everything unconfirmed once more; again from the start when that one is lost too."""
        lost = collections.deque(self._waiting)
        self._connection = self._connect()
        self._waiting.clear()
        while lost:
            try:
                self._waiting.append(lost[0])
                self._send(lost.popleft())
                self.resent += 1
            except ConnectionLost:
                lost.extendleft(reversed(self._waiting))
                self._connection = self._connect()
                self._waiting.clear()


def publish_rounds(publisher, device, source, seconds):
    """Publish every round when it is due, none after `seconds`; readings per metric."""
    began = time.monotonic()
    sequences: collections.Counter = collections.Counter()
    for due_s, read in source:
        while True:
            left_s = due_s - (time.monotonic() - began)
            if left_s <= 0:
                break
            publisher.serve(int(min(left_s, 1) * 1000) + 1)
        if time.monotonic() - began > seconds + 1:
            break
        for metric, value, moment in read():
            sequences[metric] += 1
            publisher.publish(Reading(device, metric, sequences[metric], value, moment))
    return sequences


def make_parser():
    parser = Parser(prog="leveret.tools.sensors", description="Publish readings to a gateway.")
    parser.add_argument("--to", required=True, metavar="URL", help="amqp://HOST:PORT or serial:///dev/ttyX?baud=115200")
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=positive_seconds, default=10)
    parser.add_argument("--interval", type=positive_seconds, default=0.1, metavar="SECONDS", help="between two readings of this machine")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--read", default=",".join(readings.GROUPS), metavar="GROUPS", help="of " + ", ".join(readings.GROUPS))
    source.add_argument("--csv", metavar="FILE", help="replay a recorded timestamp,value series in time-lapse")
    return parser


def make_source(options):
    if options.csv:
        return readings.Replay(options.csv, "value", options.seconds)
    groups = options.read.split(",")
    unknown = [group for group in groups if group not in readings.GROUPS]
    if unknown:
        raise UsageError(f"--read: there is no group {unknown[0]!r}; there are {', '.join(readings.GROUPS)}")
    return readings.Machine(groups, options.interval, options.seconds)


def opener(url):
    """A function that gives a new connection to `url`."""
    place = address.parse(url)
    if isinstance(place, address.SerialAddress):
        from leveret.ports.serial_line import connect_serial

        return lambda: connect_serial(place.device, place.baud)
    return lambda: connect(place.url())


def run(options):
    source = make_source(options)
    publisher = Publisher(opener(options.to))
    sequences = publish_rounds(publisher, options.device, source, options.seconds)
    publisher.finish()
    print(
        json.dumps(
            {
                "device": options.device,
                "published": publisher.published,
                "confirmed": publisher.confirmed,
                "resent": publisher.resent,
                "metrics": sequences,
            }
        ),
        flush=True,
    )
    return 0


def main(arguments=None):
    options = make_parser().parse_args(arguments)
    try:
        return run(options)
    except UsageError as error:
        print(f"sensors: {error}", file=sys.stderr)
        return 2
    except ClientError as error:
        print(f"sensors: {options.device}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
