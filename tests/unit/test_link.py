"""The serial link, two ends on a good line: sessions, flow control, time, and what it answers to wrong frames."""

from leveret.core.link import NONCE_MAX, Link
from leveret.core.link_frame import FrameReader, FrameWriter

WRAP_AT = 0x40000000
DATA, ANSWER, BUSY, REJECT, PING, HELLO, WELCOME, RESET = range(1, 9)
FROM_ACTIVE, CHECK_32 = 0x10, 0x20


class Inner:
    """The endpoint inside: sends `outgoing`, keeps what comes in `incoming`, takes `room` octets and no more."""

    def __init__(self, outgoing=b"", room=1 << 20, piece=64):
        self.outgoing = outgoing
        self.incoming = bytearray()
        self.room = room
        self.piece = memoryview(bytearray(piece))
        self.gone_count = 0
        self.ticks = []
        self.closed = False

    def writable(self):
        return self.piece[:min(len(self.piece), self.room)]

    def received(self, size):
        if size == 0:
            self.gone_count += 1
        assert size <= self.room or size == 0
        self.incoming.extend(self.piece[:size])
        self.room -= size

    def pending(self):
        return memoryview(self.outgoing)

    def sent(self, size):
        self.outgoing = self.outgoing[size:]

    def tick(self, now):
        self.ticks.append(now)


class Maker:
    """Makes the inner endpoints of one end, and remembers them."""

    def __init__(self, outgoing=(), refuse=False):
        self.outgoing = list(outgoing)
        self.refuse = refuse
        self.made = []

    def __call__(self):
        if self.refuse:
            return None
        self.made.append(Inner(self.outgoing.pop(0) if self.outgoing else b""))
        return self.made[-1]


def drain(link):
    """Everything the link wants to send now."""
    out = bytearray()
    while True:
        view = link.pending()
        if len(view) == 0:
            return bytes(out)
        size = min(len(view), 50)
        out.extend(view[:size])
        link.sent(size)


def give(link, octets):
    """Octets come off the line."""
    start = 0
    while start < len(octets):
        view = link.writable()
        size = min(len(view), len(octets) - start)
        assert size > 0, "the link does not read"
        view[:size] = octets[start:start + size]
        link.received(size)
        start += size


def exchange(left, right):
    """Carry octets both ways until both are silent."""
    for _ in range(10000):
        forth = drain(left)
        give(right, forth)
        back = drain(right)
        give(left, back)
        if not forth and not back:
            return
    raise AssertionError("the ends never fall silent")


def ends(active_maker, passive_maker, **arguments):
    active = Link(active_maker, 1000, active=True, **arguments)
    passive = Link(passive_maker, 2000, **arguments)
    active.tick(0)
    passive.tick(0)
    exchange(active, passive)
    return active, passive


def frames(octets):
    """(name, sequence, acknowledged, payload) of the frames in `octets`."""
    reader = FrameReader(4096)
    found = []
    at = 0
    while at < len(octets):
        at = reader.take(octets, at, len(octets))
        if reader.size:
            frame = bytes(reader.octets[:reader.size])
            found.append((frame[0] & 0x0F, frame[1], frame[2], frame[3:]))
    assert reader.bad_count == 0
    return found


def frame(kind, sequence=0, acknowledged=0, payload=b"", mark=FROM_ACTIVE | CHECK_32):
    writer = FrameWriter(4096)
    writer.put(kind | mark, sequence, acknowledged, memoryview(payload), len(payload), True)
    return bytes(writer.octets[:writer.end])


def hello(nonce=1, version=1, payload_size_max=256):
    payload = bytes((version, payload_size_max >> 8, payload_size_max & 255)) + nonce.to_bytes(4, "big") + bytes(4)
    return frame(HELLO, payload=payload)


def names(octets):
    return [found[0] for found in frames(octets)]


def text(size):
    return bytes([(index * 7 + (index >> 8)) & 0xFF for index in range(size)])


def test_octets_arrive_both_ways_in_one_session():
    for check_size in (2, 4):
        for window in (1, 2, 8, 64):
            forth, back = Maker([text(20000)]), Maker([text(30000)])
            active, passive = ends(forth, back, check_size=check_size, window=window)
            assert len(forth.made) == len(back.made) == 1
            assert bytes(back.made[0].incoming) == text(20000)
            assert bytes(forth.made[0].incoming) == text(30000)
            assert active.session_count == passive.session_count == 1
            assert active.resent_count == passive.resent_count == active.bad_count == passive.bad_count == 0


def test_ends_with_different_sizes_and_checks_agree():
    forth, back = Maker([text(5000)]), Maker([text(5000)])
    active = Link(forth, 1, active=True, payload_size_max=1024, check_size=2, window=4)
    passive = Link(back, 2, payload_size_max=32, check_size=4, window=16, receive_size=16)
    exchange(active, passive)
    assert bytes(back.made[0].incoming) == text(5000) and bytes(forth.made[0].incoming) == text(5000)
    assert passive.bad_count == 0


def test_nothing_is_said_or_made_before_the_session():
    maker = Maker()
    passive = Link(maker, 5)
    passive.tick(0)
    assert len(passive.pending()) == 0 and maker.made == [] and not passive.is_open
    give(passive, b"login: \r\n>>> ")
    assert len(passive.pending()) == 0
    active = Link(Maker(), 5, active=True)
    assert names(drain(active)) == [HELLO] and not active.is_open


def test_hello_is_repeated_until_it_is_answered():
    active = Link(Maker(), 5, active=True, retransmit_ms=100)
    active.tick(0)
    assert names(drain(active)) == [HELLO]
    active.tick(99)
    assert drain(active) == b""
    active.tick(100)
    assert names(drain(active)) == [HELLO]
    passive = Link(Maker(), 6)
    active.tick(200)
    exchange(active, passive)
    assert active.is_open and passive.is_open
    active.tick(400)
    assert drain(active) == b""


def test_a_doubled_hello_does_not_begin_a_second_session():
    maker = Maker()
    passive = Link(maker, 5)
    give(passive, hello(77))
    assert names(drain(passive)) == [WELCOME]
    give(passive, hello(77))
    assert names(drain(passive)) == [WELCOME]
    assert len(maker.made) == 1 and maker.made[0].gone_count == 0


def test_a_restarted_active_end_is_noticed():
    back = Maker()
    _, passive = ends(Maker([b"one"]), back)
    second = Link(Maker([b"two"]), 1001, active=True)
    exchange(second, passive)
    assert [bytes(inner.incoming) for inner in back.made] == [b"one", b"two"]
    assert [inner.gone_count for inner in back.made] == [1, 0]


def test_a_restarted_passive_end_is_noticed_by_what_it_answers():
    forth = Maker([b"one", b"two"])
    active, _ = ends(forth, Maker(), retransmit_ms=100)
    back = Maker()
    second = Link(back, 2001)
    active.tick(5000)
    exchange(active, second)
    assert forth.made[0].gone_count == 1 and not active.is_open
    active.tick(5100)
    exchange(active, second)
    assert bytes(back.made[0].incoming) == b"two" and len(forth.made) == 2


def test_a_welcome_from_a_second_peer_ends_the_session_with_the_first():
    forth = Maker()
    active, _ = ends(forth, Maker())
    again = Link(Maker(), 3000)
    give(again, hello(1000))
    give(active, drain(again))
    assert forth.made[0].gone_count == 1


def test_a_silent_line_is_noticed_on_both_ends_and_at_the_wrap_of_time():
    forth, back = Maker(), Maker()
    active, passive = ends(forth, back, keepalive_ms=5000, dead_ms=15000)
    start = WRAP_AT - 7000
    for link in (active, passive):
        link._heard_at = link._asked_at = start
        link.tick(start + 4999)
        assert drain(link) == b""
        link.tick(start + 5000)
        assert names(drain(link)) == [PING]
        link.tick(start + 6999)
        assert drain(link) == b"" and link.is_open
        link.tick((start + 10000) & (WRAP_AT - 1))
        assert names(drain(link)) == [PING]
        link.tick((start + 14999) & (WRAP_AT - 1))
        assert link.is_open
        link.tick((start + 15000) & (WRAP_AT - 1))
        assert not link.is_open
    assert forth.made[0].gone_count == back.made[0].gone_count == 1
    assert names(drain(passive)) == [RESET]


def test_a_quiet_session_is_kept_alive():
    forth, back = Maker(), Maker()
    active, passive = ends(forth, back)
    for now in range(0, 100000, 1000):
        active.tick(now)
        passive.tick(now)
        exchange(active, passive)
    assert active.is_open and passive.is_open and active.session_count == 1
    assert forth.made[0].ticks[-1] == 99000


def test_the_first_tick_may_be_any_time():
    active, passive = Link(Maker(), 1, active=True), Link(Maker(), 2)
    exchange(active, passive)
    active.tick(500000000)
    passive.tick(900000000)
    assert active.is_open and passive.is_open


def test_a_slow_inner_endpoint_stops_the_peer_and_loses_nothing():
    forth, back = Maker([text(10000)]), Maker()
    active = Link(forth, 1, active=True, retransmit_ms=100)
    passive = Link(back, 2, retransmit_ms=100)
    give(passive, drain(active))
    back.made[0].room = 0
    for now in range(0, 60000, 50):
        active.tick(now)
        passive.tick(now)
        exchange(active, passive)
        if now == 30000:
            assert active.is_open and passive.is_open, "a slow peer is not a dead one"
            assert len(forth.made[0].outgoing) >= 10000 - 8 * 256, "no more than a window is taken from the sender"
            assert len(back.made[0].incoming) == 0
        if now >= 30000:
            back.made[0].room = 37
    assert bytes(back.made[0].incoming) == text(10000)
    assert active.session_count == passive.session_count == 1


def test_data_flows_on_one_way_while_the_other_is_stopped():
    forth, back = Maker([text(9000)]), Maker([text(9000)])
    active = Link(forth, 1, active=True)
    passive = Link(back, 2)
    give(passive, drain(active))
    back.made[0].room = 10
    exchange(active, passive)
    assert bytes(forth.made[0].incoming) == text(9000)
    assert bytes(back.made[0].incoming) == text(10)


def test_the_peer_goes_on_at_once_when_there_is_room_again():
    forth, back = Maker([text(9000)]), Maker([text(9000)])
    active = Link(forth, 1, active=True)
    passive = Link(back, 2)
    give(passive, drain(active))
    back.made[0].room = 10
    exchange(active, passive)
    back.made[0].outgoing = text(2000)
    back.made[0].room = 100000
    exchange(active, passive)
    assert bytes(back.made[0].incoming) == text(9000), "without any time passing"


def test_a_full_window_waits_and_a_late_answer_is_asked_for():
    active, passive = ends(Maker(), Maker(), window=4, retransmit_ms=100)
    active.inner.outgoing = text(5000)
    active.tick(1000)
    assert names(drain(active)) == [DATA] * 4
    active.tick(1050)
    assert drain(active) == b""
    active.tick(1100)
    assert frames(drain(active)) == [(PING, 4, 0, b"")]
    assert active.resent_count == 0, "nothing is sent again on a clock alone"
    give(passive, frame(PING, 4, 0))
    assert frames(drain(passive)) == [(REJECT, 0, 0, b"")]
    give(active, frame(REJECT, 0, 0, mark=CHECK_32))
    assert [found[:2] for found in frames(drain(active))] == [(DATA, 0), (DATA, 1), (DATA, 2), (DATA, 3)]
    assert active.resent_count == 4


def test_a_gap_is_rejected_once_and_again_when_the_frame_is_lost_again():
    back = Maker()
    passive = Link(back, 5)
    give(passive, hello())
    drain(passive)
    for sequence in (1, 2, 3):
        give(passive, frame(DATA, sequence, 0, b"later"))
    assert frames(drain(passive)) == [(REJECT, 0, 0, b"")]
    give(passive, frame(DATA, 4, 0, b"later"))
    assert drain(passive) == b""
    give(passive, frame(DATA, 1, 0, b"later"))
    assert frames(drain(passive)) == [(REJECT, 0, 0, b"")]
    give(passive, frame(DATA, 0, 0, b"first"))
    assert frames(drain(passive)) == [(ANSWER, 0, 1, b"")]
    assert bytes(back.made[0].incoming) == b"first"


def test_a_ping_finds_a_frame_that_was_lost_twice():
    passive = Link(Maker(), 5)
    give(passive, hello())
    drain(passive)
    give(passive, frame(DATA, 1, 0, b"later"))
    assert names(drain(passive)) == [REJECT]
    give(passive, frame(PING, 3, 0))
    assert names(drain(passive)) == [REJECT]
    give(passive, frame(DATA, 2, 0, b"later"))
    assert names(drain(passive)) == [REJECT], "after a PING nothing of an earlier round is on the line"


def test_busy_stops_data_until_the_answer():
    active, _ = ends(Maker(), Maker(), retransmit_ms=100)
    give(active, frame(BUSY, 0, 0, mark=CHECK_32))
    active.inner.outgoing = text(100)
    assert drain(active) == b""
    active.tick(100)
    assert names(drain(active)) == [PING], "the ANSWER may have been lost"
    give(active, frame(ANSWER, 0, 0, mark=CHECK_32))
    assert names(drain(active)) == [DATA]


def test_an_acknowledgement_starts_the_clock_anew():
    active, _ = ends(Maker(), Maker(), retransmit_ms=100)
    active.inner.outgoing = text(600)
    assert names(drain(active)) == [DATA] * 3
    active.tick(90)
    give(active, frame(ANSWER, 0, 1, mark=CHECK_32))
    active.tick(180)
    assert drain(active) == b""
    active.tick(190)
    assert names(drain(active)) == [PING]


def test_every_session_has_nonces_of_its_own():
    passive = Link(Maker(), NONCE_MAX)
    nonces = []
    for nonce in (7, 8, 7):
        give(passive, hello(nonce))
        nonces.append(frames(drain(passive))[0][3][3:7])
    assert len(set(nonces)) == 3
    active, _ = ends(Maker(), Maker(), retransmit_ms=100)
    give(active, frame(RESET, mark=CHECK_32))
    active.tick(100)
    assert frames(drain(active))[0][3][3:7] == (1001).to_bytes(4, "big")


def test_a_doubled_frame_is_taken_once_and_answered():
    back = Maker()
    passive = Link(back, 5)
    give(passive, hello())
    drain(passive)
    give(passive, frame(DATA, 0, 0, b"x") * 3)
    assert frames(drain(passive)) == [(ANSWER, 0, 1, b"")]
    assert bytes(back.made[0].incoming) == b"x" and passive.discarded_count == 2
    give(passive, frame(DATA, 0, 0, b"x"))
    assert frames(drain(passive)) == [(ANSWER, 0, 1, b"")], "the first answer may have been lost"


def test_closing_waits_until_everything_has_arrived():
    forth, back = Maker([text(3000)]), Maker()
    active = Link(forth, 1, active=True)
    passive = Link(back, 2)
    give(passive, drain(active))
    give(active, drain(passive))
    forth.made[0].closed = True
    sent = drain(active)
    assert names(sent) == [DATA] * 8 and not active.closed
    give(passive, sent)
    exchange(active, passive)
    assert active.closed and not passive.closed
    assert bytes(back.made[0].incoming) == text(3000)
    assert back.made[0].gone_count == 1 and not passive.is_open
    exchange(Link(Maker([b"next"]), 9, active=True), passive)
    assert bytes(back.made[1].incoming) == b"next"


def test_closing_waits_for_the_last_acknowledgement():
    forth = Maker([b"last"])
    active = Link(forth, 1, active=True)
    passive = Link(Maker(), 2)
    give(passive, drain(active))
    give(active, drain(passive))
    forth.made[0].closed = True
    assert names(drain(active)) == [DATA] and not active.closed
    give(active, frame(ANSWER, 0, 1, mark=CHECK_32))
    assert names(drain(active)) == [RESET] and active.closed
    assert forth.made[0].gone_count == 0, "it ended by itself"


def test_a_passive_inner_endpoint_that_closes_ends_the_session_not_the_link():
    forth, back = Maker(), Maker([b"bye"])
    active, passive = ends(forth, back, retransmit_ms=100)
    back.made[0].closed = True
    exchange(active, passive)
    assert bytes(forth.made[0].incoming) == b"bye" and forth.made[0].gone_count == 1
    assert not passive.closed and not active.closed
    active.tick(100)
    exchange(active, passive)
    assert len(forth.made) == len(back.made) == 2


def test_the_end_of_the_stream_is_the_end_of_the_inner_endpoint():
    forth = Maker([text(100)])
    active, _ = ends(forth, Maker())
    active.inner.outgoing = b"never sent"
    active.received(0)
    assert active.closed and forth.made[0].gone_count == 1
    assert len(active.pending()) == 0 and len(active.writable()) == 0
    active.received(0)
    active.tick(1)
    assert forth.made[0].gone_count == 1


def test_a_refused_session_is_answered_and_can_be_asked_for_again():
    back = Maker(refuse=True)
    active, passive = ends(Maker(), back, retransmit_ms=100)
    assert not active.is_open and not passive.is_open and not active.closed
    back.refuse = False
    active.tick(100)
    exchange(active, passive)
    assert active.is_open and passive.is_open
    refusing, passive = ends(Maker(refuse=True), Maker())
    assert refusing.closed and not passive.is_open


def test_data_without_a_session_is_answered_with_reset():
    passive = Link(Maker(), 5)
    give(passive, frame(DATA, 3, 0, b"old") * 20)
    assert names(drain(passive)) == [RESET]
    give(passive, frame(RESET))
    assert drain(passive) == b""


def test_frames_of_another_kind_version_or_direction_are_counted_and_do_nothing():
    maker = Maker()
    passive = Link(maker, 5)
    wrong = (hello(version=2), hello(nonce=0), hello(nonce=0x7FFFFFFF), hello(payload_size_max=0), frame(HELLO, payload=b"short"),
             frame(WELCOME, payload=bytes(11)), frame(DATA, mark=CHECK_32), frame(DATA, mark=FROM_ACTIVE | 0x40))
    for count, octets in enumerate(wrong):
        give(passive, octets)
        assert drain(passive) == b"" and passive.foreign_count == count + 1, count
    give(passive, hello())
    drain(passive)
    for octets in (frame(DATA, 0, 1, b"acknowledges what was never sent"), frame(DATA, 0, 0, b"other check", mark=FROM_ACTIVE),
                   frame(9), frame(15), frame(0)):
        give(passive, octets)
    assert drain(passive) == b"" and passive.foreign_count == len(wrong) + 5
    assert len(maker.made) == 1 and len(maker.made[0].incoming) == 0


def test_a_line_that_echoes_itself_makes_no_session():
    active = Link(Maker(), 5, active=True)
    give(active, drain(active))
    assert not active.is_open and active.foreign_count == 1


def test_arguments_out_of_range_are_refused_with_the_reason():
    cases = (dict(nonce=0), dict(nonce=NONCE_MAX + 1), dict(window=3), dict(window=128), dict(payload_size_max=15),
             dict(payload_size_max=4097), dict(check_size=3), dict(receive_size=15), dict(retransmit_ms=0), dict(retransmit_ms=6000),
             dict(keepalive_ms=15000), dict(dead_ms=1 << 28))
    for case in cases:
        arguments = {"nonce": 1}
        arguments.update(case)
        try:
            Link(Maker(), **arguments)
        except ValueError as error:
            name = list(case)[0]
            assert name in str(error), (case, error)
        else:
            raise AssertionError("accepted: %r" % (case,))
