"""One request as the functions of routes.py get it: who asks, for what, with what."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, unquote

from ...core.access.permissions import check
from .answers import Refused, bad, forbidden, not_found

VALUES_MAX = 50000  # of a body that is no definitions
NUMBERS = {"true": True, "false": False}
SIGNED = re.compile(r"[+-]?[0-9]{1,18}")
INTEGER_MAX = 1 << 63


class Call:
    """`names`: the parts of the path that the route's pattern names, decoded; `query`: the last text of each name behind the ?, `queries`:
    all; `headers`: by their names in small letters."""

    def __init__(
        self, server: Any, user: Any, stream: Any, method: str, path: bytes, query: bytes, body: bytes, headers: dict[str, str]
    ) -> None:
        self.server = server
        self.broker = server.broker
        self.user = user
        self.stream = stream
        self.method = method
        self.path = path
        self.body = body
        self.headers = headers
        self.names: dict[str, str] = {}
        try:
            self.queries = parse_qs(query.decode("ascii"), keep_blank_values=True)
            self.query = {name: texts[-1] for name, texts in self.queries.items()}
        except ValueError:
            raise bad("the query is not text") from None

    def stream_has_tls(self) -> bool:
        """True when the peer has come with TLS."""
        return hasattr(self.stream, "identities")

    def has_tag(self, *tags: str) -> bool:
        """True when the user has one of these tags."""
        return any(tag in self.user.tags for tag in tags)

    def sees_all(self) -> bool:
        """True when the user sees what is other users'."""
        return self.has_tag("administrator", "monitoring")

    def host(self) -> str:
        """The virtual host of the path, which must be the one that there is."""
        if not self.is_ours():
            raise Refused(404, "not_found", "vhost_not_found") if self.method in ("PUT", "POST") else not_found()
        return str(self.broker.virtual_host)

    def is_ours(self) -> bool:
        """Whether the virtual host of the path is the one that there is, by one of its names."""
        host = self.names.get("vhost", self.broker.virtual_host)
        return bool(host == self.broker.virtual_host or host in self.broker.virtual_host_aliases)

    def own_host(self) -> str:
        """The same for who looks into it or changes something in it: without permissions nobody does, whatever his tags."""
        host = self.host()
        if not self.enters():
            raise forbidden("User not authorised to access virtual host")
        return host

    def enters(self) -> bool:
        """True when the user may enter the virtual host."""
        return self.user.permissions is not None

    def sees_into(self) -> bool:
        """Whether a list of all virtual hosts shows the user something; for the one that the path names, who may not enter is refused."""
        if "vhost" in self.names:
            self.own_host()
        return self.enters()

    def check(self, permission: int, kind: str, name: str, key: "str | None" = None) -> None:
        """Raise ProtocolError unless the user has this permission on the exchange or queue, and there for this routing key."""
        check(self.broker, self.user, permission, kind, name, key)

    def json(self) -> dict[str, Any]:
        """The body, an object; an empty body is an empty one."""
        if not self.body.strip():
            return {}
        try:
            given = json.loads(checked(self.body.decode()), parse_constant=no_number)
        except (ValueError, RecursionError):
            raise bad("not_json") from None
        if not isinstance(given, dict):
            raise bad("not_json")
        return given


def checked(document: str) -> str:
    """A JSON text with at most VALUES_MAX values: millions of empty lists in 8 MiB would hold the broker up for seconds. Raises Refused."""
    if len(document) > VALUES_MAX:
        bare = document.replace("\\\\", "").replace('\\"', "")
        if bare.count('"') > 4 * VALUES_MAX or sum(part.count(",") for part in bare.split('"')[::2]) > VALUES_MAX:
            raise Refused(413, "content_too_large", f"this broker takes {VALUES_MAX} values in a body")
    return document


def no_number(word: str) -> None:
    """Python reads NaN and Infinity, which JSON has not (RFC 8259 section 6)."""
    raise ValueError(word)


def decoded(part: bytes) -> str:
    """A part of a path, between slashes. Raises Refused for octets that are no text."""
    try:
        return unquote(part.decode("ascii"), errors="strict")
    except UnicodeError:
        raise bad("the path is not UTF-8") from None


def missing(given: dict[str, Any], *names: str) -> None:
    """Raise Refused, in RabbitMQ's words, where the body has not all of these keys."""
    absent = [f"{{key_missing,{name}}}" for name in names if name not in given]
    if absent:
        raise bad(f"[{','.join(absent)}]")


def flag(given: dict[str, Any], name: str, default: bool = False) -> bool:
    """true or false, also as a text: rabbitmqadmin sends those."""
    value = given.get(name, default)
    value = NUMBERS.get(value, value) if isinstance(value, str) else value
    if not isinstance(value, bool):
        raise bad(f"{name} is neither true nor false")
    return value


def number(given: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number, also as a text."""
    value = given.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise bad(f"{name} is not a whole number from {least} to {most}")
    return value


def integer(value: Any) -> int:
    """A number that RabbitMQ reads as a whole one: less its fraction, or a text of digits with a sign or without."""
    if isinstance(value, str) and SIGNED.fullmatch(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > INTEGER_MAX:
        raise Refused(400, "bad_request", ["not_integer", value])
    return int(value)


def text(given: dict[str, Any], name: str, default: str | None = None) -> str:
    """A text."""
    value = given.get(name, default)
    if not isinstance(value, str):
        raise bad(f"[{{key_missing,{name}}}]" if value is None else f"{name} is not a text")
    if not is_text(value):
        raise bad(f"{name} is not a text")
    return value


def is_text(value: str) -> bool:
    """False for a text with half of a surrogate pair, which JSON can write and UTF-8 cannot (RFC 8259 section 8.2)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
