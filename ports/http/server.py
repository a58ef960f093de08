"""The HTTP server of a broker: its connections, their memory and time, and from a request to the function of its route.

Laws: it runs in the broker's loop. A round gives all requests together WORK_S; what is left comes in the next round, behind the broker's
own work. At most `connection_max` connections are there, and of their bodies `bodies_max` octets.
"""

import hashlib
import time
import weakref
from typing import Any

from ...core.shim import elapsed
from ..peers import peers_of
from . import answers, routes
from .answers import Answer, Refused
from .call import Call
from .churn import Churn
from .connection import HttpConnection
from .counts import of_broker
from .credentials import Known, Sessions
from .listing import Work
from .rates import History, Rates
from .shapes import Shapes

CONNECTIONS_MAX = 32
BODIES_MAX = 16 << 20
WORK_S = 0.0005
ALERTS_S = 3600
ALERTS_MAX = 200
SENTENCE_MAX = 512  # characters
MEMORY = BODIES_MAX + CONNECTIONS_MAX * 65536  # octets of all that peers can make it hold; see tools/memory.py

HEADERS = (
    ("cache-control", "no-cache"),
    ("vary", "accept, accept-encoding, origin"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
)


READING = ("GET", "HEAD", "OPTIONS")


def is_of_another_site(headers: dict[str, str]) -> bool:
    """True for a request that a browser sends for a page from elsewhere, perhaps with a password that it has kept (CSRF)."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return True
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


class HttpServer:
    """`listeners`: (protocol, host, port) of all that the process listens on; `facts`: what only the process knows."""

    def __init__(self, broker: Any, secret: bytes, metrics_open: bool = False) -> None:
        self.broker = broker
        self.connections: list[HttpConnection] = []
        self.known = Known(broker, hashlib.sha256(secret + b"http").digest())
        self.sessions = Sessions(broker)
        self.headers = HEADERS
        self.body_size = 0
        self.bodies_max = BODIES_MAX
        self.metrics_open = metrics_open
        self.listeners: list[tuple[str, str, int]] = []
        self.lines: list[Any] = []  # ports/serial_line.SerialLine of each serial line that it listens on
        self.certificates: list[str] = []  # files of them, of all listeners
        self.directory: str | None = None  # where messages are kept
        self.opened: Any = weakref.WeakKeyDictionary()  # connection -> seconds since 1970
        self.peers = peers_of(broker)
        self.churn = Churn(broker)
        self.trace: Any = lambda is_on: None  # turns the firehose on or off
        self.is_traced: Any = lambda: False
        self.attempts_before = (0, 0)  # log-ins, refused and not, when somebody reset their count
        self.rates = Rates()
        self.history = History()
        self.shapes = Shapes(self)
        self.log: list[tuple[int, str]] = []  # (seconds since 1970, sentence) of the last alerts
        self.node = "rabbit@" + broker.name.rpartition("@")[2]
        self._turn = 0

    def accept(self, stream: Any) -> HttpConnection | None:
        """The endpoint of an accepted stream; None: it is refused."""
        if self.broker.failures.refuses(stream.address):
            self.broker.counters["addresses_refused"] += 1
            return None
        if len(self.connections) >= CONNECTIONS_MAX:
            min(self.connections, key=lambda each: (each.user is not None, each.is_answering())).close()
        return HttpConnection(self, stream)

    def wait_ms(self, most: int) -> int:
        """Milliseconds that the loop may wait."""
        return 0 if any(each.is_fresh or each.wants_work() for each in self.connections) else most

    def step(self) -> None:
        """Look at the broker's counts now and then; give requests their turns."""
        now = self.broker.uptime_ms
        if self.history.is_due(now):
            self.history.add(now, self.seconds(), {**of_broker(self.broker), **self.churn.counts})
            self.rates.sweep(now)
            for each in self.broker.connections:
                self.opened_at(each)
        if not self.connections:
            return
        began = time.monotonic()
        while True:
            waiting = [each for each in self.connections if each.wants_work()]
            if not waiting:
                return
            self._turn += 1
            each = waiting[self._turn % len(waiting)]
            try:
                each.work()
            except Exception as error:  # an error of ours ends this connection alone
                each.broke(error)
            if time.monotonic() - began >= WORK_S:
                return

    def is_durable(self, number: int) -> bool:
        """True when the log has got as far as this number."""
        return not number or self.broker.journal is None or bool(self.broker.journal.durable(number))

    @staticmethod
    def seconds() -> int:
        """Since 1970."""
        return int(time.time())

    def opened_at(self, connection: Any) -> int:
        """When a connection began, seconds since 1970; kept, because the broker's milliseconds tell of 6 days at most (core/shim.py)."""
        at = self.opened.get(connection)
        if at is None:
            at = self.opened[connection] = self.seconds() - max(elapsed(self.broker.now, connection.started), 0) // 1000
        return int(at)

    def alerts(self) -> list[dict[str, Any]]:
        """The sentences for the operator of the last hour."""
        since = self.seconds() - ALERTS_S
        return [{"at": at, "sentence": sentence} for at, sentence in self.log if at >= since]

    def note(self, sentence: str) -> None:
        """Keep a sentence for the operator."""
        self.log.append((self.seconds(), sentence[:SENTENCE_MAX]))
        if len(self.log) > ALERTS_MAX:
            del self.log[0]

    def promised(self) -> int:
        """The number of all changes so far, for an answer."""
        return 0 if self.broker.journal is None else int(self.broker.journal.promise())

    def answer(self, connection: HttpConnection, method: str, target: bytes, body: bytes, headers: dict[str, str]) -> Answer | Work:
        """The Answer to a request, or a generator that returns it. Raises Refused."""
        if target[:7].lower() == b"http://" or target[:8].lower() == b"https://":  # RFC 9112 section 3.2.2
            target = b"/" + target.split(b"/", 3)[3] if target.count(b"/") > 2 else b"/"
        path, _, query = target.partition(b"?")
        if method not in READING and is_of_another_site(headers):
            raise Refused(403, "forbidden", "this request comes from a page of another site")
        route, names = routes.find(method, path)
        if route.tag is not None and connection.user is None:
            if not (route.is_metrics and (self.metrics_open or connection.stream.from_loopback)):
                return answers.not_logged_in(asks=not connection.is_of_page)
        call = Call(self, connection.user, connection.stream, method, path, query, body, headers)
        call.names = names
        if connection.user is not None and route.tag is not None:
            routes.permit(call, route)
        return self.run(call, route)

    def run(self, call: Call, route: Any) -> Work:
        """The function of a route, as a generator, so that all that it raises is answered in one place."""
        made = route.function(call)
        if not isinstance(made, Answer):
            made = yield from made
        call.body = b""  # a long answer keeps its call, and the body is no longer counted
        return made
