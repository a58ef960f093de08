"""A queue of a broker of AMQP 1.0 for queue_source.py: url with `?protocol=1.0`, and the queue's address as `stream`.

A message is turned into what columns.py reads: its properties into those of class basic (core/SPEC.md says what is lost), its subject
into the routing key. A body that is no data section is its text, or JSON.
"""

import json
from typing import Any

from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_1_0 import exact, sections

from ..client_1_0 import Connection, connect

LENGTH_MAX = 1 << 27


class Row:
    """A message: the attributes of core/amqp_0_9/client/message.py that columns.py reads. `delivery`: what is accepted."""

    exchange_octets = b""

    def __init__(self, delivery: Any) -> None:
        octets = delivery.octets
        parts = sections.split(octets, 0, len(octets), True, LENGTH_MAX)
        head = octets[: parts[0]]
        self.delivery = delivery
        self.properties_octets = properties.encode(exact.exact(head))
        self.routing_key_octets = (sections.address(head)[1] or "").encode()[:255]
        body = delivery.body
        self.body = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body, default=str).encode()


class Queue:
    """A consumer: what queue_source.py asks of ports/client.py's Connection."""

    def __init__(self, url: str, timeout_ms: int, prefetch: int, address: str) -> None:
        self._connection: Connection = connect(url, timeout_ms)
        self._receiver = self._connection.receiver(address, prefetch)
        self._unsettled: list[Row] = []

    def poll(self, timeout_ms: int) -> list[Row]:
        """Messages that have come, at the latest after `timeout_ms`."""
        rows = [Row(delivery) for delivery in self._connection.poll(timeout_ms)]
        self._unsettled += rows
        return rows

    def ack(self, row: Row, multiple: bool) -> None:
        """Accept all up to a message."""
        end = self._unsettled.index(row) + 1
        for each in self._unsettled[:end]:
            self._receiver.accept(each.delivery)
        del self._unsettled[:end]
