"""Messages of the broker's own that wait for the round behind the one in which they were made, so that no verb publishes in another.

Laws: at most WAITING_MAX messages with OCTETS_MAX octets wait for room (one of any size may, alone); what comes beyond is counted and told
once. A fault of ours in a message is told, and costs that message alone.
"""

import time
from collections import deque
from typing import Any

from . import publishing

WAITING_MAX = 4096
OCTETS_MAX = 4 << 20  # of bodies
A_ROUND = 128  # messages that one round publishes


class Notice:
    """One message. `headers`: None until they are known; without headers in its turn it is dropped; `at`: milliseconds since 1970."""

    def __init__(self, key: str, headers: dict[str, Any] | None, body: bytes) -> None:
        self.key = key
        self.headers = headers
        self.body = body
        self.at = time.time_ns() // 1_000_000


class Outbox:
    """Of one exchange. `noun`: its messages, for the log; `properties`: a function from a Notice to properties by name."""

    def __init__(self, broker: Any, name: str, noun: str, properties: Any) -> None:
        self.broker = broker
        self.name = name
        self.noun = noun
        self.properties = properties
        self.exchange = publishing.made(broker, name)
        self.waiting: deque[Notice] = deque()
        self.octets = 0
        self.lost = 0

    def put(self, key: str, headers: dict[str, Any] | None, body: bytes = b"") -> Notice | None:
        """Note a message; None: no queue is bound to the exchange."""
        if not self.exchange.bindings:
            return None
        if len(self.waiting) >= WAITING_MAX or self.waiting and self.octets + len(body) > OCTETS_MAX:
            if not self.lost:
                self.broker.log(f"{len(self.waiting)} {self.noun} wait for room: further ones are not told until there is some")
            self.lost += 1
            return None
        notice = Notice(key, headers, body)
        self.waiting.append(notice)
        self.octets += len(body)
        return notice

    def step(self) -> bool:
        """Publish the messages that wait; true: some are left, and there is room for them."""
        for _ in range(min(len(self.waiting), A_ROUND)):
            notice = self.waiting[0]
            try:
                if notice.headers is not None and not publishing.publish(
                    self.broker, self.name, notice.key.encode(), self.properties(notice), notice.body
                ):
                    return False
            except Exception as error:  # an error of ours: told, and the message is not
                self.broker.guard.trouble("a message of the exchange %s", self.name, error)
            self.waiting.popleft()
            self.octets -= len(notice.body)
        if self.lost and not self.waiting:
            self.broker.log(f"{self.lost} {self.noun} were not told")
            self.lost = 0
        return bool(self.waiting)
