"""What a queue has, read over AMQP 0-10 (ports/client_0_10.py): tests read Broker-J so, which has no way from 0-10 to 1.0 here.

reader = Reader(url); reader.read("queue", 1.5) -> [(body, headers), ...]
"""

import time

from leveret.core.amqp_0_10 import properties
from leveret.ports.client_0_10 import TIMEOUT_MS, Connection
from leveret.ports.url import read_url

ALL = 0xFFFFFFFF


class Reader(Connection):
    """A connection that reads queues until they are empty."""

    def __init__(self, url):
        self.messages = []  # (body, headers) of what has come
        self.came_at = time.monotonic()
        Connection.__init__(self, read_url(url), TIMEOUT_MS)

    def content(self, name, fields, header):
        self.headers = properties.decode(header, 0, len(header)).get("headers") or {}
        self.octets = b""

    def body(self, octets, is_last):
        self.octets += octets
        if is_last:
            self.messages.append((self.octets, self.headers))
            self.came_at = time.monotonic()

    def read(self, queue, quiet_s):
        """Everything that a queue has, until nothing comes for `quiet_s`; it is gone then."""
        self.do("message_subscribe", queue=queue, destination="d", accept_mode=1, acquire_mode=0)
        for unit in (0, 1):
            self.do("message_flow", destination="d", unit=unit, value=ALL)
        self.came_at = time.monotonic()
        while time.monotonic() - self.came_at < quiet_s:
            self.step(100)
        self.do("message_cancel", destination="d")
        return self.messages
