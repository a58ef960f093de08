"""The exchange amq.rabbitmq.event: what happens in a broker, as messages whose headers say it (RabbitMQ's event exchange).

Laws: an event is noted where it happens and published in the round behind it, so that no verb publishes in the middle of another. At most
WAITING_MAX wait for room; what comes beyond is counted and told once. Without a binding nothing is noted. A fault of ours in an event
is told, and costs that event alone.
"""

import time
from collections import deque
from typing import Any

from . import publishing
from .words import long

EXCHANGE = "amq.rabbitmq.event"
WAITING_MAX = 4096
A_ROUND = 128  # events that one round publishes
NOBODY = "rmq-internal"  # who acts when no user does


class Event:
    """`headers`: None until it is known whose it is (a channel's, which has no name while it is made)."""

    def __init__(self, key: str, headers: dict[str, Any] | None) -> None:
        self.key = key
        self.headers = headers
        self.at = time.time_ns() // 1_000_000


class Teller:
    """The events of one broker."""

    def __init__(self, broker: Any) -> None:
        self.broker = broker
        self.exchange = publishing.made(broker, EXCHANGE)
        self.waiting: deque[Event] = deque()
        self.lost = 0

    def tell(self, key: str, headers: dict[str, Any] | None) -> Event | None:
        """Note an event; None: nobody hears it."""
        if not self.exchange.bindings:
            return None
        if len(self.waiting) >= WAITING_MAX:
            if not self.lost:
                self.broker.log(f"{WAITING_MAX} events wait for room: further ones are not told until there is some")
            self.lost += 1
            return None
        event = Event(key, headers)
        self.waiting.append(event)
        return event

    def step(self) -> bool:
        """Publish what waits; true: there is more, for which there is room."""
        for _ in range(min(len(self.waiting), A_ROUND)):
            event = self.waiting[0]
            try:
                if event.headers is not None and not self.publish(event):
                    return False
            except Exception as error:  # an error of ours: told, and the event is not
                self.broker.guard.trouble("the event %s", event.key, error)
            self.waiting.popleft()
        if self.lost and not self.waiting:
            self.broker.log(f"{self.lost} events were not told")
            self.lost = 0
        return bool(self.waiting)

    def publish(self, event: Event) -> bool:
        """False: there is no room now."""
        headers = {**(event.headers or {}), "timestamp_in_ms": long(event.at)}
        given = {"headers": headers, "delivery_mode": 2, "timestamp": event.at // 1000}
        return publishing.publish(self.broker, EXCHANGE, event.key.encode(), given, b"")
