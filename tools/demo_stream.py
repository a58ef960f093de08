"""The two brokers as the demo sees them: what is declared, and what really lies in the upstream's stream queue.

The upstream may be any AMQP 0-9-1 broker with stream queues (Leveret, RabbitMQ 3.9 or newer). The stream is read back by an ordinary
consumer from its first offset: a count that neither the sensors nor the bridge had a hand in.
"""

import collections
import time

from leveret.ports.client import connect

GATEWAY_EXCHANGE = "sensors"
GATEWAY_QUEUE = "uplink"
PREFETCH = 500
STREAM_BYTES_MAX = 48 << 20


def without_password(url):
    """The URL as it may be shown."""
    login, at, place = url.rpartition("@")
    return login.rsplit(":", 1)[0] + ":..." + at + place if login.count(":") > 1 else url


class Upstream:
    """Names and address of the upstream side. `suffix` keeps a foreign broker's own queues apart from the demo's."""

    def __init__(self, url, suffix=""):
        self.url = url
        self.exchange = "telemetry" + suffix
        self.queue = "readings" + suffix

    def declare(self):
        connection = connect(self.url)
        connection.exchange_declare(self.exchange, "topic", durable=True)
        connection.queue_declare(self.queue, durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": STREAM_BYTES_MAX})
        connection.queue_bind(self.queue, self.exchange, "#")
        connection.close()

    def delete(self):
        connection = connect(self.url)
        connection.queue_delete(self.queue)
        connection.exchange_delete(self.exchange)
        connection.close()


def declare_gateway(url):
    connection = connect(url)
    connection.exchange_declare(GATEWAY_EXCHANGE, "topic", durable=True)
    connection.queue_declare(GATEWAY_QUEUE, durable=True)
    connection.queue_bind(GATEWAY_QUEUE, GATEWAY_EXCHANGE, "#")
    connection.close()


class StreamReader:
    """Counts what arrives in the upstream's stream queue, by message_id."""

    def __init__(self, upstream):
        self.copies: collections.Counter = collections.Counter()
        self._connection = connect(upstream.url)
        self._connection.qos(PREFETCH)
        self._connection.consume(upstream.queue, arguments={"x-stream-offset": "first"})

    @property
    def count(self):
        return sum(self.copies.values())

    def poll(self, timeout_ms):
        """Take what has come within `timeout_ms`; the number of messages."""
        messages = self._connection.poll(timeout_ms)
        for message in messages:
            self.copies[message.properties.get("message_id")] += 1
        if messages:
            self._connection.ack(messages[-1], multiple=True)
        return len(messages)

    def wait_quiet(self, distinct, quiet_s):
        """Read until `distinct` messages are there and nothing more comes for a second, or nothing comes for `quiet_s`."""
        heard = time.monotonic()
        while time.monotonic() - heard < (1 if len(self.copies) >= distinct else quiet_s):
            if self.poll(200):
                heard = time.monotonic()

    def close(self):
        self._connection.close()
