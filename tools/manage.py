"""Asking a running broker: core/management/requests.py's requests over an ordinary connection, TCP or serial.

Laws: an answer comes in pages and is put together here; a broker that cannot be reached, refuses or does not know the request is one
sentence (ManageFailed). It keeps nothing: one connection, closed at the end.
"""

import json

from leveret.core import shim
from leveret.ports.client import connect
from leveret.ports.client_errors import ClientError, Unroutable
from leveret.ports.clock import now_ms
from leveret.ports.sockets import name_of

URL_DEFAULT = "amqp://guest:guest@127.0.0.1:5672/"
URL_HELP = (
    f"the broker's URL with the user's name and password (default {URL_DEFAULT}), amqps://... with TLS, or "
    "serial://USER:PASSWORD@/dev/ttyX?baud=115200"
)
KEY = "amq.leveret.management"
REPLY_TO = "amq.rabbitmq.reply-to"
TIMEOUT_MS = 20000


class ManageFailed(Exception):
    """The error of the broker, or of the connection to it; one sentence. `condition`: the broker's (core/errors.py), 0: none."""

    def __init__(self, text, condition=0):
        super().__init__(text)
        self.condition = condition


class Manager:
    """A connection for requests; use it in a `with`."""

    def __init__(self, url):
        self._place = url_without_password(url)
        try:
            self._client = connect(url, TIMEOUT_MS)
        except (ClientError, ValueError) as error:
            hint = "; perhaps its port is one with TLS: amqps://" if url.startswith("amqp://") and "no AMQP broker" in str(error) else ""
            raise ManageFailed(f"{self._place}: {error}{hint}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._client.close()
        except ClientError:
            pass  # what went wrong has been said

    def ask(self, request, **given):
        """The answer to one request, a dict. Raises ManageFailed."""
        try:
            body = self._exchange(json.dumps(dict(given, request=request)).encode())
        except Unroutable:
            raise ManageFailed(f"the broker at {self._place} is no Leveret, or one without management: it has no queue {KEY}") from None
        except ClientError as error:
            raise ManageFailed(str(error)) from None
        answer = json.loads(body)
        if not answer["ok"]:
            raise ManageFailed(answer["error"], answer.get("condition", 0))
        return answer

    def own_name(self):
        """This connection as the broker calls it, "" where that is not known (a serial line)."""
        try:
            place = self._client._stream.pollable.getsockname()
        except AttributeError:
            return ""
        return name_of(place)

    def _exchange(self, body):
        client = self._client
        tag = client.consume(REPLY_TO, no_ack=True)
        client.publish("", KEY, body, {"content_type": "application/json", "reply_to": REPLY_TO}, mandatory=True)
        started = now_ms()
        while shim.elapsed(now_ms(), started) < TIMEOUT_MS:
            for message in client.poll(100):
                client.cancel(tag)
                return message.body
        raise ManageFailed(f"no answer in {TIMEOUT_MS} ms")

    def pages(self, request):
        """(the first answer, all items by section) of a request that is answered in pages. Raises ManageFailed."""
        first = answer = self.ask(request)
        items: dict = {}
        while True:
            for section, rows in answer["items"].items():
                items.setdefault(section, []).extend(rows)
            if answer["next"] is None:
                return first, items
            answer = self.ask(request, after=answer["next"])


def url_without_password(url):
    """For messages."""
    head, slashes, rest = url.partition("://")
    return head + slashes + rest.rpartition("@")[2]
