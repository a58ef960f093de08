"""Streams with readings in them, published through Leveret's own client."""

import json

from brokers import PATIENCE_MS

from leveret.ports.client import connect

TIME_S = 1_700_000_000.0
JSON = "application/json"


def body(device, metric, sequence, time_s=None, value=None):
    """One reading as the sensors send it; the value and the time follow from the sequence unless given."""
    return json.dumps(
        {
            "device": device,
            "metric": metric,
            "sequence": sequence,
            "time": TIME_S + sequence if time_s is None else time_s,
            "value": sequence / 4 if value is None else value,
        }
    ).encode()


class Stream:
    """A stream queue and a connection that publishes to it with confirms."""

    def __init__(self, broker, name, **arguments):
        self.name = name
        self.url = broker.url
        self._connection = connect(broker.url, PATIENCE_MS)
        self._arguments = dict(arguments)
        self.declare()

    def declare(self):
        self._connection.queue_declare(self.name, durable=True, arguments={"x-queue-type": "stream", **self._arguments})

    def delete(self):
        self._connection.queue_delete(self.name)

    def publish(self, bodies, **properties):
        """Publish and wait until all are confirmed."""
        for one in bodies:
            self._connection.publish("", self.name, one, {"content_type": JSON, "delivery_mode": 2, **properties}, confirm=False)
        self._connection.wait_confirmed()

    def readings(self, first, end, device="kiln"):
        self.publish([body(device, "temperature", number) for number in range(first, end)])

    def close(self):
        self._connection.close()
