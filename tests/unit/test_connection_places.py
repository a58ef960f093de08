"""Who has not logged in keeps nobody out: such connections have a share of the places and give way (core/SPEC.md, "Access").

A connection beyond connection_count_max has a small place in which it is told so (0-9-1 section 1.1: 506 resource-error).
"""

from link_ends import Maker, ends, exchange, tick
from peer import Peer, encoded, new_broker

from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.connection.connection import Connection

START_OK = encoded("connection_start_ok", 0, {"product": "p" * 500}, "PLAIN", b"\x00guest\x00guest", "en_US")


class From(Peer):
    """A peer from an address; silent unless told to log in."""

    def __init__(self, broker, address, log_in=False):
        self.broker = broker
        self.connection = Connection(broker, address, True, address)
        self.step = 0
        self.inbox = b""
        if log_in:
            self.log_in({})


def crowded(places=8, share=100, **given):
    return new_broker(connection_count_max=places, stranger_share_max=share, channel_count_max=32, **given)


def closed(peers):
    return [peer.connection.closed for peer in peers]


def test_silent_connections_keep_nobody_out():
    """All places are taken by peers that say nothing, or only the header: each that logs in gets one, until all have logged in."""
    broker = crowded()
    silent = [From(broker, "10.0.0.1") for _ in range(8)]
    for peer in silent[::2]:
        peer.give(HEADER)
    guests = [From(broker, "10.0.0.2", True) for _ in range(8)]
    assert closed(silent) == [True] * 8 and closed(guests) == [False] * 8
    assert broker.counters["strangers_closed"] == 8 and broker.counters["connections_refused"] == 0
    for peer in guests:
        peer.declare("q")
    assert From(broker, "10.0.0.2").connection.closed and broker.counters["connections_refused"] == 1


def test_they_have_a_share_of_the_places_and_the_oldest_gives_way():
    broker = crowded(share=40)
    silent = [From(broker, "10.0.0.1") for _ in range(5)]
    assert closed(silent) == [True, True, False, False, False]
    assert len(broker.connections) == 3


def test_who_opens_many_stands_in_its_own_way_first():
    """The address that has most of them gives way: one silent connection from elsewhere, or over a serial line, stays and logs in."""
    broker = crowded()
    others = [From(broker, "10.0.0.3"), From(broker, ""), From(broker, "2001:db8:1:2::1")]
    many = [From(broker, "10.0.0.%d" % (1 + number % 2)) for number in range(20)]
    assert closed(others) == [False] * 3 and closed(many) == [True] * 15 + [False] * 5
    site = [From(broker, "2001:db8:1:2::%d" % number) for number in range(2, 20)]
    assert closed(others) == [False, False, True] and closed(site)[-1] is False
    for peer in others[:2]:
        peer.log_in({})
        peer.declare("q")


def test_who_has_logged_in_does_not_give_way_though_it_has_not_opened_the_connection():
    broker = crowded(places=2)
    tuned = From(broker, "10.0.0.1")
    tuned.give(HEADER + START_OK)
    silent = From(broker, "10.0.0.2")
    From(broker, "10.0.0.3", True)
    assert closed([tuned, silent]) == [False, True]
    assert [name for name, _, _ in tuned.frames()] == ["connection_start", "connection_tune"]


def test_a_connection_too_many_is_told_so_after_start_ok():
    """Whoever it is: its password is not looked at."""
    broker = crowded(places=2, surplus_count_max=2)
    guests = [From(broker, "10.0.0.2", True) for _ in range(2)]
    refused = From(broker, "10.0.0.2")
    refused.give(HEADER)
    refused.expect("connection_start")
    refused.give(START_OK)
    assert list(refused.expect("connection_close"))[:2] == [
        506,
        "RESOURCE_ERROR - this broker holds 2 connections at most (connection_count_max)",
    ]
    refused.give(encoded("connection_close_ok", 0))
    assert refused.connection.closed and broker.counters["connections_refused"] == 1 and broker.counters["logins_refused"] == 0
    guests[0].connection.finish()
    From(broker, "10.0.0.2", True).declare("q")


def test_those_too_many_are_bounded_in_number_and_memory():
    """The oldest gives way; their small buffers are used again, the large ones are not taken for them."""
    broker = crowded(places=2, surplus_count_max=3, frame_size_max=16384)
    for _ in range(2):
        From(broker, "10.0.0.2", True)
    refused = [From(broker, "10.0.0.2") for _ in range(40)]
    assert closed(refused) == [True] * 37 + [False] * 3 and len(broker.connections) == 5 and broker.counters["strangers_closed"] == 0
    for peer in refused[-3:]:
        peer.give(HEADER)
        peer.expect("connection_start")
        view = peer.connection.writable()
        assert len(view) <= 4096
        peer.give(encoded("connection_start_ok", 0, {"product": "p" * 5000}, "PLAIN", b"", "en_US"))
        assert peer.expect("connection_close")[0] == 506
        peer.connection.finish()
    assert len(broker.places.surplus_buffers) == 3 and broker.places.surplus == [] and len(broker.places.buffers) == 0


def test_one_too_many_that_stays_silent_or_comes_when_a_place_is_free_again():
    """login_timeout_ms holds for it too, and it keeps no place from another."""
    broker = crowded(places=1, surplus_count_max=1)
    guest = From(broker, "10.0.0.2", True)
    refused = From(broker, "10.0.0.2")
    guest.connection.finish()
    From(broker, "10.0.0.2", True).declare("q")
    broker.tick(broker.now + broker.limits.login_timeout_ms + 1, 1700000000)
    refused.connection.tick(broker.now)
    assert refused.connection.closed and not broker.places.surplus


def test_a_silent_stream_of_a_serial_line_gives_way_and_the_line_serves_the_next():
    """core/serial_link/link.py: the far end is told that its connection is over."""
    broker = crowded(places=2)
    made = []

    def make():
        made.append(Connection(broker, "line", True))
        return made[-1]

    far = Maker()
    active, passive = ends(far, make)
    (active_inner,) = far.made
    guests = [From(broker, "10.0.0.2", True) for _ in range(2)]
    assert made[0].closed and closed(guests) == [False, False]
    for now in range(0, 2000, 100):
        tick(now, active, passive)
        exchange(active, passive)
    assert active_inner.gone_count == 1
    guests[0].connection.finish()
    ends(Maker(), make)
    assert not made[1].closed and broker.counters["strangers_closed"] == 1


class Full(list):
    """A list that the heap has no room for."""

    def append(self, _):
        raise MemoryError


def test_all_buffers_are_made_at_the_start_and_used_again():
    broker = crowded(places=3)
    broker.places.make_buffers(3)
    made = list(broker.places.buffers)
    assert len(made) == 3
    for _ in range(2):
        peers = [From(broker, "10.0.0.1", True) for _ in range(3)]
        assert not broker.places.buffers and {id(peer.connection.receive) for peer in peers} == {id(pair[0]) for pair in made}
        for peer in peers:
            peer.connection.received(0)
        assert len(broker.places.buffers) == 3


def test_a_heap_that_is_used_up_costs_the_new_connection_alone():
    broker = crowded()
    first = From(broker, "10.0.0.1", True)
    strangers = broker.places.strangers
    for name, where in (("strangers", broker.places), ("connections", broker)):
        before = getattr(where, name)
        setattr(where, name, Full(before))
        count = len(broker.connections)
        try:
            From(broker, "10.0.0.1")
            raise AssertionError("it has no place")
        except MemoryError:
            pass
        assert len(broker.connections) == count and broker.places.strangers == strangers
        setattr(where, name, before)
    broker.places.make_buffers(1)
    assert not From(broker, "10.0.0.1", True).connection.closed and not first.connection.closed
