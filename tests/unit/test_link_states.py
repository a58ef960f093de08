"""What each input makes of each state of a serial link (core/serial_link/states.py), and what frames do that no state has."""

from link_ends import Maker, count_of, drain, ends, exchange, frame, give, hello, text, tick

from leveret.core.serial_link.frame import CALL, DATA, END, HELLO, STATUS, WELCOME, FrameChecks, FrameWriter
from leveret.core.serial_link.link import VERSION, Link

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
