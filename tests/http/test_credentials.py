"""What the API remembers of names and passwords that were right, and which headers are none (ports/http/credentials.py; RFC 7617)."""

import base64

import pytest

from leveret.core.broker.broker import Broker
from leveret.core.limits import BOARD, Limits
from leveret.ports.http.answers import Refused
from leveret.ports.http.credentials import HEADER_MAX, REMEMBERED_MAX, SESSION_MS, SESSIONS_MAX, Known, Sessions, name_and_password


class Stream:
    """A peer on this machine, or at another address."""

    def __init__(self, address="127.0.0.1"):
        self.address, self.from_loopback = address, address == "127.0.0.1"


class World:
    """A broker with its user guest, and what its API remembers."""

    def __init__(self):
        self.broker = Broker(Limits(**BOARD), b"known")
        self.known = Known(self.broker, b"secret")
        self.guest = self.broker.access.find("guest", True)

    def remembered(self, header, stream=None):
        return self.known.user(stream or Stream(), header) is self.guest


def test_a_pair_is_remembered_for_its_network_until_the_password_changes():
    world = World()
    world.known.add(Stream(), b"a", world.guest)
    assert world.remembered(b"a") and not world.remembered(b"b") and not world.remembered(b"a", Stream("192.0.2.1"))
    world.known.add(Stream("192.0.2.1"), b"a", world.guest)
    assert not world.remembered(b"a", Stream("192.0.2.1")), "guest logs in from this machine alone"
    world.guest.stored = b"another"
    assert not world.remembered(b"a")


def test_so_many_pairs_are_remembered_and_the_oldest_goes():
    """Who logs in again after a change of the password costs nobody else the place, and is the youngest afterwards."""
    world = World()
    headers = [b"%d" % number for number in range(REMEMBERED_MAX)]
    for header in [*headers, headers[0]]:
        world.known.add(Stream(), header, world.guest)
    assert all(map(world.remembered, headers))
    world.known.add(Stream(), b"more", world.guest)
    assert [header for header in [*headers, b"more"] if not world.remembered(header)] == [headers[1]]


def header_of(octets):
    return b"Basic " + base64.b64encode(octets)


def test_the_first_colon_ends_the_name():
    """RFC 7617, section 2: a user-id has no colon, a password may; the scheme's case does not matter."""
    assert name_and_password(header_of(b"name:pass:word")) == (b"name", b"pass:word")
    assert name_and_password(b" bAsIC  " + base64.b64encode(b"n:") + b" ") == (b"n", b"")
    assert name_and_password(header_of(b"n:" + b"p" * (HEADER_MAX * 3 // 4 - 10)))[0] == b"n"


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Basic",
        b"Bearer " + base64.b64encode(b"a:b"),
        header_of(b"no colon"),
        header_of(b"a\0b:c"),
        header_of(b"a:b\0c"),
        header_of(b"\xff:b"),
        header_of(b"a:\xff"),
        b"Basic YT\npi",  # "a:b" with an octet between that base64 does not have (RFC 4648, section 3.3)
        b"Basic YTpi!",
        header_of(b"n:" + b"p" * HEADER_MAX),
    ],
)
def test_a_header_without_a_name_and_a_password_is_a_bad_request(header):
    with pytest.raises(Refused) as told:
        name_and_password(header)
    assert told.value.status == 400


def test_a_token_stands_for_a_user_until_the_password_changes_or_eight_hours_are_over():
    world = World()
    sessions = Sessions(world.broker)
    token = sessions.begin(world.guest)
    cookies = f"other=1; leveret={token}"
    assert sessions.user(cookies, Stream()) is world.guest and token.encode() not in b"".join(sessions.rows)
    for wrong in ("", "leveret=", "leveret=x", f"leverets={token}", token, f"leveret={token[:-1]}"):
        assert sessions.user(wrong, Stream()) is None
    assert sessions.user(cookies, Stream("192.0.2.1")) is None, "guest logs in from this machine alone"
    world.broker.uptime_ms += SESSION_MS - 1
    assert sessions.user(cookies, Stream()) is world.guest
    world.broker.uptime_ms += 1
    assert sessions.user(cookies, Stream()) is None and not sessions.rows
    cookies = "leveret=" + sessions.begin(world.guest)
    world.guest.stored = b"another"
    assert sessions.user(cookies, Stream()) is None and not sessions.rows


def test_so_many_log_ins_of_pages_are_kept_and_the_oldest_goes():
    world = World()
    sessions = Sessions(world.broker)
    tokens = [sessions.begin(world.guest) for _ in range(SESSIONS_MAX + 1)]
    there = [sessions.user("leveret=" + token, Stream()) is world.guest for token in tokens]
    assert there == [False] + [True] * SESSIONS_MAX and len(set(tokens)) == len(tokens)
    sessions.end("leveret=" + tokens[-1])
    assert sessions.user("leveret=" + tokens[-1], Stream()) is None
