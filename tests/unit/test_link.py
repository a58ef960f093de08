"""The serial link, two ends on a good line: sessions, what outlives a cable, speed, time, and what wrong frames do."""

import gc
import sys

from link_ends import Inner, Maker, count_of, drain, ends, exchange, give, text, tick

from leveret.core.limits import Limits
from leveret.core.memory.micropython_sizes import line_memory
from leveret.core.serial_link.frame import CALL, DATA, END, HELLO, STATUS, WELCOME, FrameChecks, FrameWriter
from leveret.core.serial_link.link import NONCE_MAX, VERSION, Link

WRAP_AT = 0x40000000


def frame(name, payload=b"", active=True, sequence=0):
    """A frame of the handshake, as either end sends it."""
    writer = FrameWriter(4096, FrameChecks(active))
    writer.put(name, sequence, 0, memoryview(payload), len(payload))
    return bytes(writer.octets[: writer.end])


def hello(nonce=1, version=VERSION, knows=0, window_size=4096, payload_size_max=512, check_size=4, streams=4, speed=0):
    return frame(
        HELLO,
        bytes((version,))
        + nonce.to_bytes(4, "big")
        + knows.to_bytes(4, "big")
        + window_size.to_bytes(2, "big")
        + payload_size_max.to_bytes(2, "big")
        + bytes((check_size, streams))
        + speed.to_bytes(4, "big"),
    )


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


# What each input makes of each state (core/serial_link/states.py), at the end that waits and at the one that asks.
WAITS = {
    "waiting": {"hello": "open", "question": "waiting", "noise": "waiting", "lost": "waiting", "leave": "waiting", "over": "ended"},
    "open": {
        "hello": "open",
        "again": "open",
        "question": "waiting",
        "noise": "open",
        "lost": "waiting",
        "leave": "waiting",
        "over": "ended",
    },
    "ended": dict.fromkeys(("hello", "again", "question", "noise", "lost", "leave", "over"), "ended"),
}
ASKS = {
    "opening": {"welcome": "open", "other": "open", "noise": "opening", "lost": "opening", "leave": "opening", "over": "ended"},
    "open": {"welcome": "open", "other": "opening", "noise": "open", "lost": "opening", "leave": "ended", "over": "ended"},
    "ended": dict.fromkeys(("welcome", "other", "noise", "lost", "leave", "over"), "ended"),
}


def do(link, name, greeting):
    """An input of a link; `greeting`: the octets of one."""
    if name == "over":
        link.end()
    elif name == "leave":
        link.leave()
    elif name == "lost":
        link.step("lost")
    elif link.closed:
        assert len(link.writable()) == 0
    else:
        give(link, b"~no frame~" if name == "noise" else greeting)


def test_each_input_in_each_state_of_the_end_that_waits():
    greetings = {"hello": hello(9), "again": hello(7), "question": hello(8, knows=5)}
    for state in WAITS:
        for name in WAITS[state]:
            link = Link(Maker(), 2)
            if state != "waiting":
                give(link, hello(7))
                assert link.is_open
            if state == "ended":
                link.end()
            drain(link)
            sessions = link.session_count
            do(link, name, greetings.get(name, b""))
            assert (link.state, link.closed, link.is_open) == (WAITS[state][name], link.state == "ended", link.state == "open"), (
                state,
                name,
            )
            assert link.session_count - sessions == (name == "hello" and state != "ended"), (state, name)


def test_each_input_in_each_state_of_the_end_that_asks():
    for state in ASKS:
        for name in ASKS[state]:
            link = Link(None, 1, active=True)
            asked = drain(link)
            peers = [Link(Maker(), nonce) for nonce in (2, 3)]
            greetings = {}
            for peer, kind in zip(peers, ("welcome", "other")):
                drain(peer)
                give(peer, asked)
                greetings[kind] = drain(peer)
            if state != "opening":
                give(link, greetings["welcome"])
                assert link.is_open
            if state == "ended":
                link.end()
            sessions = link.session_count
            do(link, name, greetings.get(name, b""))
            assert (link.state, link.closed, link.is_open) == (ASKS[state][name], link.state == "ended", link.state == "open"), (
                state,
                name,
            )
            assert link.session_count - sessions == (state == "opening" and name in greetings), (state, name)


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


def test_another_version_is_said_on_both_sides():
    passive = Link(Maker(), 5)
    drain(passive)
    give(passive, hello(version=1))
    assert "version 1 of the link" in passive.trouble and "version 2" in passive.trouble and not passive.is_open
    active = Link(Maker(), 6, active=True)
    drain(active)
    tick(0, active, passive)
    drain(passive)
    give(active, frame(WELCOME, b"\x03" + bytes(18), False))
    assert "version 3 of the link" in active.trouble and not active.is_open
    active.tick(1000)
    exchange(active, passive)
    assert active.trouble == passive.trouble == "" and active.is_open


def test_an_old_leverets_hello_is_understood_as_such():
    passive = Link(Maker(), 5)
    give(passive, frame(HELLO, bytes((1, 1, 0)) + bytes(8)))
    assert "version 1 of the link" in passive.trouble


def test_frames_of_another_kind_size_or_direction_are_counted_and_do_nothing():
    maker = Maker()
    passive = Link(maker, 5)
    drain(passive)
    wrong = (
        hello(nonce=0),
        hello(nonce=0x7FFFFFFF),
        hello(payload_size_max=0),
        hello(window_size=300),
        hello(check_size=3),
        hello(streams=0),
        frame(HELLO, bytes((VERSION,)) + b"short"),
        frame(WELCOME, bytes(19)),
        frame(CALL, b"\x02"),
    )
    for count, octets in enumerate(wrong):
        give(passive, octets)
        assert drain(passive) == b"" and count_of(passive, "foreign") == count + 1, count
    for octets in (frame(CALL, b"\x02", False), frame(WELCOME, bytes(19), False)):
        give(passive, octets)
    assert drain(passive) == b"" and count_of(passive, "own") == 2 and maker.made == []


def test_strange_frames_are_counted_in_a_session_and_without_one():
    """HELLO with a wrong nonce, and a frame of the session that acknowledges what was never sent."""
    active, passive = ends(Maker((text(10),)), Maker())
    give(passive, hello(nonce=0))
    assert count_of(passive, "foreign") == 1
    writer = FrameWriter(4096, active._checks)
    writer.put(STATUS, 0, 200, memoryview(b""), 0)
    give(passive, bytes(writer.octets[: writer.end]))
    assert count_of(passive, "foreign") == 2 and passive.is_open
    writer = FrameWriter(4096, active._checks)
    writer.put(STATUS, 0, 0, memoryview(b""), 0)
    give(passive, bytes(writer.octets[: writer.end]))
    assert count_of(passive, "foreign") == 3 and passive.is_open, "a STATUS without an answer"


def test_a_line_that_is_gone_for_good_wants_nothing_more():
    """Half of a frame was on it: what is left of that is nobody's."""
    for sent in (0, 1, 5):
        maker = Maker((text(3000),))
        active, passive = ends(maker, Maker())
        active.tick(1)
        maker.made[0].outgoing = text(100)
        view = active.pending()
        assert len(view) > sent
        active.sent(sent)
        active.end()
        assert active.closed and len(active.pending()) == 0 and maker.made[0].gone_count == 1, sent
        active.end()
        assert maker.made[0].gone_count == 1, "once"


def test_a_frame_without_a_session_is_no_frame_and_answered_with_a_call_at_most_now_and_then():
    passive = Link(Maker(), 5, retransmit_ms=100)
    tick(0, passive)
    drain(passive)
    writer = FrameWriter(64, FrameChecks(True))
    for name in (DATA, END):
        writer._checks.begin(b"another.", 4)
        writer.put(name, 0, 0, b"old", 3)
        tick(100, passive)
        give(passive, bytes(writer.octets[: writer.end]) * 20)
        assert not passive.is_open
    assert drain(passive).count(b"\x7e") == 2, "one frame"


def test_a_line_that_echoes_itself_makes_no_session():
    active = Link(Maker(), 5, active=True)
    give(active, drain(active))
    assert not active.is_open and count_of(active, "own") == 1


class FastLine:
    """Two ends whose devices have speeds: what is sent at another speed than the receiver has arrives as garbage."""

    def __init__(self, works_up_to, *speeds):
        self.makers = Maker([text(2000)]), Maker([text(2000, 5)])
        self.links = [
            Link(self.makers[side], 5 + side, active=side == 0, retransmit_ms=200, keepalive_ms=1000, speed=speeds[side]) for side in (0, 1)
        ]
        self.works_up_to = works_up_to
        self.now = 0

    def run(self, ms):
        for _ in range(ms // 20):
            self.now += 20
            tick(self.now, *self.links)
            for side in (0, 1):
                self.carry(self.links[side], self.links[1 - side])

    def carry(self, source, target):
        octets = drain(source)
        good = source.speed_set == target.speed_set <= self.works_up_to
        give(target, octets if good else bytes([octet ^ 0x55 for octet in octets]))
        source.speed_set = source.speed  # all is on the line

    def arrived(self):
        return bytes(self.makers[0].made[0].incoming) == text(2000, 5) and bytes(self.makers[1].made[0].incoming) == text(2000)


def test_both_ends_change_to_the_speed_that_both_can_do():
    line = FastLine(2000000, 921600, 460800)
    line.run(1000)
    assert [link.speed for link in line.links] == [460800, 460800] and line.arrived()
    line.run(10000)
    assert [link.speed for link in line.links] == [460800, 460800], "a quiet session keeps it"
    assert [link.session_count for link in line.links] == [1, 1]
    line = FastLine(2000000, 921600, 0)
    line.run(1000)
    assert [link.speed for link in line.links] == [0, 0] and line.arrived()


def test_a_speed_at_which_nothing_is_heard_is_given_up_and_the_session_goes_on():
    line = FastLine(115200, 921600, 921600)
    line.run(10000)
    assert [link.speed for link in line.links] == [0, 0] and line.arrived()
    assert [link.session_count for link in line.links] == [1, 1]
    line.run(20000)
    assert [link.speed for link in line.links] == [0, 0], "it is not tried for ever"


def test_an_end_that_begins_anew_at_the_first_speed_is_found_again():
    for side in (0, 1):
        line = FastLine(2000000, 921600, 921600)
        line.run(1000)
        assert line.links[1 - side].speed == 921600
        line.makers[side].outgoing = [b"new"]
        line.links[side] = Link(line.makers[side], 99, active=side == 0, retransmit_ms=200, keepalive_ms=1000, speed=921600)
        line.run(6000)
        assert [link.speed for link in line.links] == [921600, 921600], side
        assert bytes(line.makers[1 - side].made[-1].incoming) == b"new" and line.makers[1 - side].made[0].gone_count == 1


def test_the_cable_is_pulled_at_a_high_speed():
    line = FastLine(2000000, 921600, 921600)
    line.run(1000)
    line.links[0].unplugged()
    line.makers[0].made[0].outgoing = b"more"
    line.now += 3000
    line.links[0].plugged()
    line.run(10000)
    assert [link.speed for link in line.links] == [921600, 921600] and [link.session_count for link in line.links] == [1, 1]
    assert bytes(line.makers[1].made[0].incoming)[2000:] == b"more"


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
