"""The local side's channel for the bridge's own affairs: management requests, and the queue of refused messages.

Laws: one management request at a time, answered within ANSWER_MS or the connection is given up; a refused record is done only
when the local broker has confirmed it. Where the marks make a record's properties too long for the local broker, it goes with fewer.
"""

import json

from ...core.amqp_0_9 import properties
from ...core.amqp_0_9.field_table import text_of
from ...core.shim import elapsed, json_text
from ..clock import now_ms

if False:  # for the type checker alone
    from typing import Any, Callable

    from .side import Side

KEY = "amq.leveret.management"
REPLY_TO = "amq.rabbitmq.reply-to"
TAG = "answers"
ANSWER_MS = 20000
REASON_MAX = 500
MARKS = (("reason", "tries", "exchange", "routing-key"), ("tries",), ())  # in turn, while the local broker answers that they are too many
CONTENT_TOO_LARGE = 311


class Keeper:
    """On channel `number` of `side`, whose owner calls `steps` in its own and passes on the events of that channel."""

    def __init__(self, side: "Side", number: int, refused: str) -> None:
        self.side = side
        self.number = number
        self.refused = refused
        self._answer: "Callable[[dict[str, Any]], object] | None" = None  # the function for the answer to the outstanding request
        self._asked_at = 0
        self._parting: "dict[int, Any]" = {}  # publish number -> Record
        self._fewer = 0  # row of MARKS for the next record

    @property
    def channel(self) -> "Any":
        """The keeper's channel of the side's client."""
        return self.side.client.channels[self.number]

    def steps(self, managed: bool) -> "list[Any]":
        """The steps that open the keeper's channel. `managed`: the broker is a Leveret and answers management requests."""
        steps = [self._open, lambda: self.channel.confirm_select(), lambda: self.channel.queue_declare(self.refused, durable=True)]
        if managed:
            steps.append(lambda: self.channel.basic_consume(REPLY_TO, TAG, no_ack=True))
        return steps

    def _open(self) -> "Any":
        self.forget()
        return self.channel.open()

    def forget(self) -> None:
        """Forget outstanding requests, because the connection has ended."""
        self._answer = None
        self._parting = {}

    def busy(self) -> bool:
        """True while a request is outstanding."""
        return self._answer is not None

    def ask(self, request: "dict[str, Any]", answer: "Callable[[dict[str, Any]], object]") -> bool:
        """Send a request (a dict); `answer(dict)` gets the response. False when there is no room now."""
        given = {"content_type": "application/json", "reply_to": REPLY_TO}
        if not self.channel.basic_publish("", KEY, json_text(request).encode("utf-8"), given, True):
            return False
        self._answer = answer
        self._asked_at = now_ms()
        return True

    def late(self, now: int) -> bool:
        """True when the outstanding request has had no answer for too long."""
        return self._answer is not None and elapsed(now, self._asked_at) > ANSWER_MS

    def delivered(self, message: "Any") -> None:
        """Pass a response on to the function that waits for it."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(json.loads(str(message.body, "utf-8")))

    def part(self, record: "Any") -> bool:
        """Put a record into the refused queue: true when it is on its way."""
        if self._fewer and self._parting:
            return False  # one at a time, until the one that is too large has gone
        octets = record.octets
        if MARKS[self._fewer]:
            marks = {
                "reason": record.reason[:REASON_MAX],
                "tries": record.tries,
                "exchange": text_of(record.exchange),
                "routing-key": text_of(record.key),
            }
            headers = {"x-bridge-" + name: marks[name] for name in MARKS[self._fewer]}
            octets = properties.merge(record.marked[1] if record.marked else octets, {"headers": headers, "delivery_mode": 2})
        number: int = self.channel.basic_publish("", self.refused, record.body, octets, True)
        if number:
            self._parting[number] = record
        return number != 0

    def parting(self) -> "list[Any]":
        """Records on their way into the refused queue."""
        return list(self._parting.values())

    def pop(self, number: int) -> "Any":
        """The record of the publish with this number, or None: it was a request."""
        record = self._parting.pop(number, None)
        if record is not None:
            self._fewer = 0
        return record

    def channel_closed(self, channel: "Any", code: int) -> None:
        """A channel of the bridge is closed: fewer marks for the next record, where it is this one and records were too large."""
        if code == CONTENT_TOO_LARGE and self._parting and channel is self.channel:
            self._fewer = min(self._fewer + 1, len(MARKS) - 1)
