"""Several connections on one serial link: each gets its own octets, and none stops the others."""

from link_ends import Inner, Maker, count_of, exchange, give, text

from leveret.core.serial_link.link import Link
from leveret.core.serial_link.streams import Streams


def pair(back, **arguments):
    """(active, passive) with a session and no connection yet."""
    active, passive = Link(None, 1, active=True, **arguments), Link(back, 2, **arguments)
    exchange(active, passive)
    return active, passive


def opened(active, count, outgoing):
    inners = [Inner(outgoing(number)) for number in range(count)]
    for inner in inners:
        assert active.open(inner)
    return inners


def test_every_connection_gets_its_own_octets_both_ways():
    back = Maker([text(3000 + number, 2 * number) for number in range(4)])
    active, passive = pair(back)
    inners = opened(active, 4, lambda number: text(4000, 2 * number + 1))
    exchange(active, passive)
    assert [bytes(inner.incoming) for inner in inners] == [text(3000 + number, 2 * number) for number in range(4)]
    assert [bytes(inner.incoming) for inner in back.made] == [text(4000, 2 * number + 1) for number in range(4)]


def test_a_slow_reader_holds_its_room_and_nothing_else():
    back = Maker()
    active, passive = pair(back, stream_room=1000)
    inners = opened(active, 3, lambda number: b"x")
    exchange(active, passive)
    back.made[1].room = 0
    for inner in inners:
        inner.outgoing = text(20000)
    exchange(active, passive)
    assert [len(inner.incoming) for inner in back.made] == [20001, 1, 20001]
    assert len(inners[1].outgoing) == 19001, "no more than its room is taken from the sender"
    back.made[1].room = 1 << 20
    back.made[1].outgoing = text(5000)
    exchange(active, passive)
    assert bytes(back.made[1].incoming) == b"x" + text(20000) and bytes(inners[1].incoming) == text(5000)


def test_streams_take_turns():
    back = Maker()
    active, passive = pair(back, stream_room=4096)
    inners = opened(active, 2, lambda number: b"")
    exchange(active, passive)
    inners[0].outgoing, inners[1].outgoing = text(4000), text(10)
    view = active.pending()
    size = 0
    while len(view) and len(back.made[1].incoming) < 10:
        size += len(view)
        give(passive, bytes(view))
        active.sent(len(view))
        view = active.pending()
    assert len(back.made[1].incoming) == 10 and size < 1300, "a large piece of another one stands before it, not all of it"


def test_a_closed_connection_makes_room_for_the_next_one_and_the_others_go_on():
    back = Maker()
    active, passive = pair(back, stream_count=2)
    stays = Inner()
    assert active.open(stays)
    for number in range(100):
        inner = Inner(b"number %d" % number)
        assert active.open(inner), number
        assert not active.open(Inner())
        inner.closed = number % 2 == 0
        exchange(active, passive)
        if number % 2:
            back.made[-1].closed = True
            exchange(active, passive)
            assert inner.gone_count == 1
        assert bytes(back.made[-1].incoming) == b"number %d" % number
        assert back.made[-1].gone_count == 1 - number % 2
        assert active.streams.in_use() == passive.streams.in_use() == 1
    assert stays.gone_count == 0 and back.made[0].gone_count == 0


def test_what_was_sent_before_a_close_arrives_before_it():
    back = Maker()
    active, passive = pair(back, stream_room=512)
    inner = Inner(text(9000))
    inner.closed = True
    assert active.open(inner)
    exchange(active, passive)
    assert bytes(back.made[0].incoming) == text(9000) and back.made[0].gone_count == 1


def test_the_last_octets_wait_for_a_slow_endpoint_but_not_for_ever():
    back = Maker()
    for patient in (True, False):
        active, passive = pair(back, stream_room=512)
        inner = Inner(text(700))
        assert active.open(inner)
        back_room = Inner(room=100)
        back.made.append(back_room)
        passive.streams._make_inner = lambda: back.made[-1]
        exchange(active, passive)
        inner.outgoing = b""
        inner.closed = True
        exchange(active, passive)
        assert len(back_room.incoming) == 100 and back_room.gone_count == 0
        if patient:
            back_room.room = 10000
            passive.tick(1000)
        else:
            passive.tick(1000)
            passive.tick(60000 - 1)
        exchange(active, passive)
        assert back_room.gone_count == 1 and active.streams.in_use() == passive.streams.in_use() == 0
        assert len(back_room.incoming) == (512 if patient else 100)


def test_a_refused_connection_is_told_so_and_the_others_go_on():
    back = Maker()
    active, passive = pair(back)
    first, second = Inner(b"first"), Inner(b"second")
    assert active.open(first)
    exchange(active, passive)
    back.refuse = True
    assert active.open(second)
    exchange(active, passive)
    assert second.gone_count == 1 and first.gone_count == 0 and active.streams.in_use() == 1
    first.outgoing = b" again"
    exchange(active, passive)
    assert bytes(back.made[0].incoming) == b"first again"


def test_the_end_of_a_session_is_the_end_of_all_its_connections():
    back = Maker()
    active, passive = pair(back)
    inners = opened(active, 3, lambda number: b"x")
    exchange(active, passive)
    active.leave()
    exchange(active, passive)
    assert [inner.gone_count for inner in inners] == [1, 1, 1] and [inner.gone_count for inner in back.made] == [1, 1, 1]
    assert not passive.is_open and active.closed


WRONG = (
    b"\x40\x40",
    b"\x4f",  # a stream opened twice; one above the count
    b"\x01\x00\x01x",
    b"\x82\x00\x01",
    b"\xc1",  # data, credit, close of a stream that is not open
    b"\x40\x00\x02\x01" + bytes(513),  # more than there is credit for, and nobody takes it
    b"\x40\x80\xff\xff\x80\x00\x01",  # more credit than a number holds
    b"\x40\xc0\xc0",  # closed twice
)


def test_a_peer_that_breaks_the_rules_ends_its_session_and_nothing_else():
    for case in WRONG:
        for step in (1, 3, len(case)):
            streams = Streams(lambda: Inner(room=0), 4, 512, 64)
            for start in range(0, len(case), step):
                piece = case[start : start + min(step, 60)]
                for at in range(0, len(piece), 60):
                    part = piece[at : at + 60]
                    streams.writable()[: len(part)] = part
                    streams.received(len(part))
                if step == len(case):
                    for at in range(60, len(case), 60):
                        part = case[at : at + 60]
                        streams.writable()[: len(part)] = part
                        streams.received(len(part))
            assert streams.broken, (case[:8], step)
    back = Maker()
    active, passive = pair(back)
    active.streams.broken = False
    active.streams.octets[0] = 0xC3
    active.streams.end = 1
    exchange(active, passive)
    assert count_of(passive, "foreign") == 1 and not passive.closed
    exchange(Link(Maker([b"next"]), 9, active=True), passive)
    assert bytes(back.made[-1].incoming) == b"next"


def test_nobody_opens_a_connection_at_the_active_end():
    streams = Streams(None, 4, 512, 64)
    streams.writable()[:1] = b"\x40"
    streams.received(1)
    assert streams.broken
