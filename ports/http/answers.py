"""Answers to requests, and refusals: a status, headers, and JSON as RabbitMQ writes it. No octet is moved here.

A refusal is {"error": word, "reason": sentence}; its words are RabbitMQ's, because clients compare them.
"""

import json
from collections.abc import Iterator
from typing import Any

from ...core.errors import ACCESS_REFUSED, INTERNAL_ERROR, NOT_FOUND, ProtocolError

JSON = "application/json"
REALM = 'Basic realm="RabbitMQ Management"'
REASONS = {
    200: "OK",
    201: "Created",
    204: "No Content",
    301: "Moved Permanently",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

Piece = bytes | None


class Answer:
    """What a request is answered with. `body`: octets, or an iterator of pieces whose None means: other work first. `number`: what has to
    be durable in the log before the answer leaves."""

    def __init__(
        self, status: int, body: bytes | Iterator[Piece] = b"", headers: tuple[tuple[str, str], ...] = (), kind: str = JSON, number: int = 0
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.kind = kind
        self.number = number


class Refused(Exception):
    """A request that is not carried out."""

    def __init__(self, status: int, error: str, reason: str | list[Any], headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(str(reason))
        self.status = status
        self.error = error
        self.reason = reason
        self.headers = headers

    def answer(self) -> Answer:
        return Answer(self.status, written({"error": self.error, "reason": self.reason}), self.headers)


def written(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def of(value: Any, number: int = 0) -> Answer:
    """200 with a value."""
    return Answer(200, written(value), number=number)


def not_found() -> Refused:
    """Nothing is there, in RabbitMQ's words."""
    return Refused(404, "Object Not Found", "Not Found")


def bad(reason: str) -> Refused:
    """The request makes no sense."""
    return Refused(400, "bad_request", reason)


def forbidden(reason: str) -> Refused:
    """The user is known and may not do this: in RabbitMQ's spelling, which is another one than that of a log-in that fails."""
    return Refused(401, "not_authorised", reason)


def not_logged_in(reason: str = "", asks: bool = True) -> Answer:
    """401; without a body for a peer that sent no credentials, as RabbitMQ has it. `asks`: a browser is to ask for a password by itself."""
    body = written({"error": "not_authorized", "reason": reason}) if reason else b""
    return Answer(401, body, (("www-authenticate", REALM),) if asks else ())


def refusal(error: ProtocolError) -> Refused:
    """The answer to a request that the broker's verbs refuse."""
    if error.condition == NOT_FOUND:
        return Refused(404, "not_found", error.text)
    if error.condition == ACCESS_REFUSED:
        return forbidden("ACCESS_REFUSED - " + error.text)
    if error.condition == INTERNAL_ERROR:
        return Refused(500, "internal_error", error.text)
    return bad(error.text)
