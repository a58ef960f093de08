"""When the passive end of a serial link calls the peer: whoever is there, say HELLO (core/serial_link/link.py, CALL)."""

from link_ends import Maker, count_of, drain, ends, exchange, give, text, tick

from leveret.core.serial_link.frame import CALL, DATA, FrameChecks, FrameWriter
from leveret.core.serial_link.link import VERSION, Link


def call():
    """The octets of a call."""
    writer = FrameWriter(64, FrameChecks(False))
    writer.put(CALL, 0, 0, bytes((VERSION,)), 1)
    return bytes(writer.octets[: writer.end])


def test_only_a_frame_that_an_end_without_a_session_does_not_know_makes_it_call():
    """The beginning of a frame, an idle line, and a bad frame within a session are no reason (core/serial_link/link.py, CALL)."""
    writer = FrameWriter(64, FrameChecks(True))
    writer._checks.begin(b"another.", 4)
    writer.put(DATA, 0, 0, b"old", 3)
    foreign = bytes(writer.octets[: writer.end])
    passive = Link(Maker(), 5, retransmit_ms=100)
    tick(0, passive)
    drain(passive)
    tick(100, passive)
    give(passive, foreign[:-1])
    assert drain(passive) == b"", "it may become a frame"
    give(passive, foreign[-1:])
    assert drain(passive).count(call()[1:]) == 1
    forth, back = Maker([text(100)]), Maker([text(100)])
    active, passive = ends(forth, back)
    tick(1000, active, passive)
    exchange(active, passive)
    give(passive, foreign)
    octets = drain(passive)
    assert passive.is_open and count_of(passive, "damaged") + count_of(passive, "foreign") > 0
    assert call()[1:] not in octets
