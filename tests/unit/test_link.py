"""The serial link, two ends on a good line: sessions, what outlives a cable, time, closing, memory."""

import gc
import sys

from link_ends import Inner, Maker, count_of, drain, ends, exchange, frame, give, hello, text, tick

from leveret.core.limits import Limits
from leveret.core.memory.micropython_sizes import line_memory
from leveret.core.serial_link.frame import CALL
from leveret.core.serial_link.link import NONCE_MAX, VERSION, Link

WRAP_AT = 0x40000000


def test_octets_arrive_both_ways_in_one_session():
    for check_size in (2, 4):
        for window_size, payload_size_max in ((256, 32), (512, 64), (4096, 512), (16384, 1024)):
            forth, back = Maker([text(8000)]), Maker([text(9000)])
            active, passive = ends(forth, back, check_size=check_size, window_size=window_size, payload_size_max=payload_size_max)
            assert len(forth.made) == len(back.made) == 1
            assert bytes(back.made[0].incoming) == text(8000) and bytes(forth.made[0].incoming) == text(9000)
            for link in (active, passive):
                assert link.session_count == 1
                for name in ("sent again", "damaged", "discarded", "foreign", "own"):
                    assert count_of(link, name) == 0, name


def test_ends_with_different_sizes_and_checks_agree():
    for one, other in (
        (
            {"payload_size_max": 1024, "check_size": 2, "window_size": 4096, "stream_count": 1, "stream_room": 100},
            {"payload_size_max": 32, "check_size": 4, "window_size": 512, "receive_size": 16, "stream_count": 9, "stream_room": 5000},
        ),
        ({"window_size": 16384, "payload_size_max": 2048}, {"window_size": 256, "payload_size_max": 64}),
    ):
        for first, second in ((one, other), (other, one)):
            forth, back = Maker([text(5000)]), Maker([text(5000)])
            active, passive = Link(forth, 1, active=True, **first), Link(back, 2, **second)
            exchange(active, passive)
            assert bytes(back.made[0].incoming) == text(5000) and bytes(forth.made[0].incoming) == text(5000)
            assert active.frame_size == passive.frame_size == min(one["payload_size_max"], other["payload_size_max"])
            assert count_of(passive, "damaged") == count_of(active, "damaged") == 0


def test_nothing_is_made_before_the_session_and_text_on_the_line_does_no_harm():
    maker = Maker()
    passive = Link(maker, 5)
    passive.tick(0)
    assert drain(passive) == b"\x7e" + frame(CALL, bytes((VERSION,)), False)[1:], "whoever is there, say HELLO"
    give(passive, b"MicroPython v1.27\r\n>>> ")
    assert drain(passive) == b"" and maker.made == [] and not passive.is_open
    active = Link(Maker(), 5, active=True)
    give(active, b"login: ")
    exchange(active, passive)
    assert active.is_open and passive.is_open


def test_hello_is_repeated_until_it_is_answered():
    active = Link(Maker(), 5, active=True, retransmit_ms=100)
    active.tick(0)
    first = drain(active)
    assert len(first) > 20
    active.tick(99)
    assert drain(active) == b""
    active.tick(100)
    assert drain(active) == first
    passive = Link(Maker(), 6)
    active.tick(200)
    exchange(active, passive)
    assert active.is_open and passive.is_open


def test_a_doubled_hello_does_not_begin_a_second_session():
    passive = Link(Maker(), 5)
    give(passive, hello(77))
    first = drain(passive)
    give(passive, hello(77))
    assert drain(passive) == first and passive.session_count == 1


def test_a_restarted_active_end_is_noticed():
    back = Maker()
    _, passive = ends(Maker([b"one"]), back)
    second = Link(Maker([b"two"]), 1001, active=True)
    exchange(second, passive)
    assert [bytes(inner.incoming) for inner in back.made] == [b"one", b"two"]
    assert [inner.gone_count for inner in back.made] == [1, 0]


def test_a_restarted_passive_end_calls_and_the_connection_ends_cleanly():
    forth, back = Maker([b"one", b"two"]), Maker()
    active, _ = ends(forth, Maker())
    second = Link(back, 2001)
    exchange(active, second)
    assert forth.made[0].gone_count == 1 and active.session_count == 2, "at once: it has called"
    assert bytes(back.made[0].incoming) == b"two"


def test_a_restarted_passive_end_whose_call_is_lost_is_found_by_asking():
    forth, back = Maker(), Maker()
    active, _ = ends(forth, Maker(), retransmit_ms=100, keepalive_ms=1000)
    second = Link(back, 2001)
    drain(second)
    for now in range(0, 3000, 20):
        tick(now, active, second)
        exchange(active, second)
    assert forth.made[0].gone_count == 1 and active.session_count == 2 and len(back.made) == 1


def test_a_welcome_from_a_second_peer_ends_the_session_with_the_first():
    forth = Maker()
    active, _ = ends(forth, Maker())
    again = Link(Maker(), 3000)
    drain(again)
    give(again, hello(1000))
    give(active, drain(again))
    assert forth.made[0].gone_count == 1


def test_what_is_on_the_way_when_the_cable_is_pulled_arrives_when_it_is_back():
    forth, back = Maker(), Maker()
    active, passive = ends(forth, back, retransmit_ms=100)
    forth.made[0].outgoing, back.made[0].outgoing = text(9000), text(7000, 3)
    half = drain(active)
    give(passive, half[: len(half) // 2])
    give(active, drain(passive)[:700])
    now = 0
    for first, second in ((active, passive), (passive, active), (active, None), (passive, None)):
        for link in (first, second):
            if link is not None:
                drain(link)
                link.unplugged()
        now += 20000
        tick(now, active, passive)
        for link in (first, second):
            if link is not None:
                link.plugged()
        give(passive, drain(active)[:300])
        give(active, drain(passive)[:300])
    for _ in range(50):
        now += 50
        tick(now, active, passive)
        exchange(active, passive)
    assert bytes(back.made[0].incoming) == text(9000) and bytes(forth.made[0].incoming) == text(7000, 3)
    assert active.session_count == passive.session_count == 1
    assert forth.made[0].gone_count == back.made[0].gone_count == 0


def test_another_board_on_the_same_cable_gets_nothing_of_the_first_ones():
    """Two pairs with sessions; their cables are changed over without anybody noticing, then back."""
    makers = [Maker() for _ in range(4)]
    left, left_peer = ends(makers[0], makers[1], retransmit_ms=100)
    right, right_peer = Link(makers[2], 7777, active=True, retransmit_ms=100), Link(makers[3], 8888, retransmit_ms=100)
    exchange(right, right_peer)
    for number in range(4):
        makers[number].made[0].outgoing = text(3000, number)
    for now in range(0, 200, 50):
        tick(now, left, left_peer, right, right_peer)
        give(right_peer, drain(left))
        give(left_peer, drain(right))
        give(right, drain(left_peer))
        give(left, drain(right_peer))
    assert [len(maker.made[0].incoming) for maker in makers] == [0, 0, 0, 0]


def test_a_session_waits_for_its_cable_and_no_longer():
    forth, back = Maker(), Maker()
    active, passive = ends(forth, back, keepalive_ms=5000, dead_ms=15000)
    start = WRAP_AT - 7000
    for link in (active, passive):
        link._heard_at = link._asked_at = start
        link.tick(start + 4999)
        assert drain(link) == b""
        link.tick(start + 5000)
        assert len(drain(link)) > 0
        link.tick((start + 14999) & (WRAP_AT - 1))
        assert link.is_open
        link.tick((start + 15000) & (WRAP_AT - 1))
        assert not link.is_open
    assert forth.made[0].gone_count == back.made[0].gone_count == 1


def test_a_quiet_session_is_kept_alive():
    forth, back = Maker(), Maker()
    active, passive = ends(forth, back)
    carried = 0
    for now in range(0, 30000, 500):
        tick(now, active, passive)
        octets = drain(active)
        carried += len(octets)
        give(passive, octets)
        exchange(passive, active)
    assert active.is_open and passive.is_open and active.session_count == 1
    assert forth.made[0].ticks[-1] == 29500
    assert 0 < carried < 700, "a question now and then"


def test_a_lost_last_frame_is_asked_for_and_only_that_goes_out_again():
    forth, back = Maker(), Maker()
    active, passive = ends(forth, back, retransmit_ms=800)
    forth.made[0].outgoing = b"the last words"
    drain(active)
    active.tick(99)
    exchange(active, passive)
    assert len(back.made[0].incoming) == 0
    active.tick(100)
    exchange(active, passive)
    assert bytes(back.made[0].incoming) == b"the last words" and count_of(active, "sent again") == 1


def test_every_session_has_nonces_of_its_own():
    passive = Link(Maker(), NONCE_MAX)
    drain(passive)
    welcomes = []
    for nonce in (7, 8, 7):
        give(passive, hello(nonce))
        welcomes.append(drain(passive))
    assert len(set(welcomes)) == 3
    active, passive = ends(Maker(), Maker())
    active.step("lost")
    exchange(active, passive)
    assert active.session_count == passive.session_count == 2


def test_closing_waits_until_everything_has_arrived():
    forth, back = Maker([text(3000)]), Maker()
    active, passive = Link(forth, 1, active=True), Link(back, 2)
    give(passive, drain(active))
    give(active, drain(passive))
    forth.made[0].closed = True
    sent = drain(active)
    assert not active.closed
    give(passive, sent)
    exchange(active, passive)
    assert active.closed and not passive.closed and not passive.is_open
    assert bytes(back.made[0].incoming) == text(3000) and back.made[0].gone_count == 1
    assert forth.made[0].gone_count == 0, "it ended by itself"
    exchange(Link(Maker([b"next"]), 9, active=True), passive)
    assert bytes(back.made[1].incoming) == b"next"


def test_a_passive_inner_endpoint_that_closes_is_the_end_of_the_active_one():
    forth, back = Maker(), Maker([b"bye"])
    active, passive = ends(forth, back)
    back.made[0].closed = True
    exchange(active, passive)
    assert bytes(forth.made[0].incoming) == b"bye" and forth.made[0].gone_count == 1
    assert active.closed and not passive.closed


def test_the_end_of_the_stream_is_the_end_of_the_inner_endpoint():
    forth = Maker([text(100)])
    active, _ = ends(forth, Maker())
    active.received(0)
    assert active.closed and forth.made[0].gone_count == 1
    assert len(active.pending()) == 0 and len(active.writable()) == 0
    active.received(0)
    active.tick(1)
    assert forth.made[0].gone_count == 1


def test_a_refused_connection_is_over_and_can_be_asked_for_again():
    back = Maker(refuse=True)
    forth = Maker()
    active, passive = Link(forth, 1, active=True), Link(back, 2)
    exchange(active, passive)
    assert active.closed and forth.made[0].gone_count == 1 and not passive.closed
    back.refuse = False
    exchange(Link(Maker([b"again"]), 9, active=True), passive)
    assert bytes(back.made[0].incoming) == b"again"
    refusing, passive = Link(Maker(refuse=True), 3, active=True), Link(Maker(), 4)
    exchange(refusing, passive)
    assert refusing.closed and not passive.is_open


def test_arguments_out_of_range_are_refused_with_the_reason():
    cases = (
        {"nonce": 0},
        {"nonce": NONCE_MAX + 1},
        {"window_size": 3000},
        {"window_size": 32768},
        {"payload_size_max": 31},
        {"payload_size_max": 4096},
        {"payload_size_max": 2049},
        {"check_size": 3},
        {"receive_size": 15},
        {"retransmit_ms": 0},
        {"keepalive_ms": 60000},
        {"dead_ms": 1 << 28},
        {"speed": -1},
        {"address": 256},
        {"stream_count": 65},
        {"stream_room": 10},
    )
    for case in cases:
        arguments = {"nonce": 1}
        arguments.update(case)
        try:
            Link(Maker(), **arguments)
        except ValueError as error:
            assert list(case)[0] in str(error), (case, error)
        else:
            raise AssertionError("accepted: %r" % (case,))


def test_a_link_takes_no_more_memory_than_the_limits_say():
    """What the heap of a 32-bit MicroPython holds of it; CPython's objects are of other sizes."""
    if not hasattr(gc, "mem_alloc") or sys.maxsize > 0x7FFFFFFF:
        return
    for window_size, payload_size_max, count, room in ((2048, 256, 2, 1024), (256, 64, 1, 64), (16384, 1024, 4, 4096)):
        gc.collect()
        before = gc.mem_alloc()
        link = Link(
            None, 1, window_size=window_size, payload_size_max=payload_size_max, receive_size=256, stream_count=count, stream_room=room
        )
        gc.collect()
        took = gc.mem_alloc() - before
        said = line_memory(Limits(line_connection_count_max=count, line_connection_room=room), window_size, payload_size_max)
        assert said - 1500 <= took <= said, (window_size, took, said)
        link.end()


def test_an_active_end_without_an_endpoint_of_its_own_opens_connections_when_asked():
    back = Maker()
    active, passive = Link(None, 1, active=True, stream_count=2), Link(back, 2, stream_count=9)
    assert not active.open(Inner(b"too soon"))
    exchange(active, passive)
    assert [active.open(Inner(b"%d" % number)) for number in range(3)] == [True, True, False]
    exchange(active, passive)
    assert [bytes(inner.incoming) for inner in back.made] == [b"0", b"1"]
