"""Basic authentication (RFC 7617) with the broker's users: the same log-in as over AMQP, PLAIN, with the same pauses and refusals.

A browser sends its password with each request, and a stored password is slow to compare on purpose. So a pair of name and password that was
right from a network is remembered, as a keyed digest, until the user, its password or the place among REMEMBERED_MAX is gone. A network
from which log-ins as the user are refused meanwhile is refused here too. The page logs in once and gets a cookie.
"""

import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any

from ...core.access.login import Login
from ...core.access.login_failures import network_of
from ...core.access.sasl import Plain
from .answers import Refused

REMEMBERED_MAX = 64
HEADER_MAX = 1024  # octets
COOKIE = "leveret"
TOKEN_SIZE = 32  # octets of chance
SESSIONS_MAX = 64
SESSION_MS = 8 * 3600 * 1000


class Peer:
    """One log-in: stands for the session and the connection that core/access/login.py asks. `ended(user or None)` is called at the end."""

    state = "served"
    identities = None

    def __init__(self, broker: Any, stream: Any, ended: Callable[[Any], None]) -> None:
        self.broker = broker
        self.name: str = stream.name
        self.address: str = stream.address
        self.from_loopback: bool = stream.from_loopback
        self.closed = False
        self.session = self.connection = self
        self.ended = ended
        self.login: Any = Login(self, (Plain,), Plain.name, self.step)

    def begin(self, name: bytes, password: bytes) -> None:
        """Compare a name and a password."""
        self.login.receive(b"\0" + name + b"\0" + password)

    def step(self, input_: str, *given: Any) -> None:
        """The outcome of the log-in."""
        self.login = None
        self.closed = True
        self.ended(given[0] if input_ == "accepted" else None)

    def tick(self, now: int) -> None:
        """Time passes."""
        if self.login is not None:
            self.login.tick(now)

    def guarded(self, action: Callable[[], Any]) -> Any:
        """Run a part of the log-in."""
        return action()

    def process(self) -> None:
        """There are no frames that wait for the log-in."""


class Known:
    """Names with passwords that were right. `secret`: octets that nobody can guess."""

    def __init__(self, broker: Any, secret: bytes) -> None:
        self.broker = broker
        self.secret = secret
        self.rows: dict[bytes, tuple[Any, Any]] = {}  # digest -> (user, its stored password then)

    def digest(self, stream: Any, header: bytes) -> bytes:
        """The key under which an Authorization header from the network of a stream is kept."""
        return hmac.digest(self.secret, network_of(stream.address).encode() + b"\0" + header, hashlib.sha256)

    def user(self, stream: Any, header: bytes) -> Any:
        """The user whom this header has logged in before, if it still may; else None."""
        user, stored = self.rows.get(self.digest(stream, header), (None, None))
        if user is None or user.stored is not stored or not self.broker.access.has(user):
            return None
        if self.broker.failures.refuses_user(stream.address, user.name):
            return None
        return user if self.broker.access.find(user.name, stream.from_loopback) is user else None

    def add(self, stream: Any, header: bytes, user: Any) -> None:
        """This header has logged in a user."""
        digest = self.digest(stream, header)
        self.rows.pop(digest, None)
        if len(self.rows) >= REMEMBERED_MAX:
            del self.rows[next(iter(self.rows))]
        self.rows[digest] = (user, user.stored)


def name_and_password(header: bytes) -> tuple[bytes, bytes]:
    """Both parts of an Authorization header. Raises Refused."""
    scheme, _, rest = header.strip().partition(b" ")
    try:
        if scheme.lower() != b"basic" or len(header) > HEADER_MAX:
            raise ValueError
        name, colon, password = binascii.a2b_base64(rest.strip(), strict_mode=True).partition(b":")
        name.decode(), password.decode()
    except ValueError:
        raise Refused(400, "bad_request", "the Authorization header is not Basic with a name and a password in base64") from None
    if not colon or b"\0" in name or b"\0" in password:
        raise Refused(400, "bad_request", "the Authorization header has no name and password with a colon between them")
    return name, password


class Sessions:
    """Log-ins of the page: a token in a cookie stands for the user, so that no script keeps the password. Kept as digests; gone when the
    user, its password or SESSION_MS are, and the oldest beyond SESSIONS_MAX."""

    def __init__(self, broker: Any) -> None:
        self.broker = broker
        self.rows: dict[bytes, tuple[Any, Any, int]] = {}  # digest of a token -> (user, its stored password then, uptime at its end in ms)

    def begin(self, user: Any) -> str:
        """A new token for a user."""
        token = secrets.token_urlsafe(TOKEN_SIZE)
        if len(self.rows) >= SESSIONS_MAX:
            del self.rows[next(iter(self.rows))]
        self.rows[digest_of(token)] = (user, user.stored, self.broker.uptime_ms + SESSION_MS)
        return token

    def end(self, cookies: str) -> None:
        """A browser logs out."""
        self.rows.pop(digest_of(token_in(cookies)), None)

    def user(self, cookies: str, stream: Any) -> Any:
        """The user whom the cookies of a request stand for, or None."""
        digest = digest_of(token_in(cookies))
        user, stored, ends = self.rows.get(digest, (None, None, 0))
        if user is None:
            return None
        if user.stored is not stored or not self.broker.access.has(user) or self.broker.uptime_ms >= ends:
            del self.rows[digest]
            return None
        return user if self.broker.access.find(user.name, stream.from_loopback) is user else None


def digest_of(token: str) -> bytes:
    """The digest of a token, which the server keeps in place of the token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def token_in(cookies: str) -> str:
    """The token in a Cookie header (RFC 6265 section 4.2.1); "": none is there."""
    for each in cookies.split(";"):
        name, _, value = each.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
