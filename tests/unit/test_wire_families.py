"""Which family a connection belongs to (core/wire): MATCH, MORE or NO for its first octets, and what is told of those that are nobody's."""

from peer import new_broker

from leveret.core.amqp_0_9.family import FAMILY
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.connection.connection import Connection
from leveret.core.wire import registry
from leveret.core.wire.family import MATCH, MORE, NO, SNIFF_MAX, Family


def begin(octets, broker=None):
    """(what a connection answers to its first octets, whether it ends)."""
    connection = Connection(broker or new_broker(), "unit")
    connection.writable()[: len(octets)] = octets
    connection.received(len(octets))
    return bytes(connection.pending()), connection.ending


class Lines(Family):
    """Begins with a name and a line's end, within SNIFF_MAX octets."""

    def sniff(self, octets):
        return MATCH if octets[-1:] == b"\n" else MORE


def test_each_octet_of_a_header_is_more_the_last_one_is_a_match_and_any_other_is_no():
    for size in range(1, len(HEADER)):
        assert FAMILY.sniff(HEADER[:size]) == registry.sniff(HEADER[:size])[0] == MORE, size
        assert FAMILY.sniff(HEADER[:size] + b"?") == NO, size
    assert FAMILY.sniff(HEADER + b"?") == MATCH
    assert registry.sniff(HEADER) == (MATCH, FAMILY)
    assert registry.sniff(b"?") == (NO, None)


def test_a_family_registers_once():
    before = list(registry.FAMILIES)
    registry.register(FAMILY)
    assert registry.FAMILIES == before


def test_a_second_family_is_asked_and_one_that_never_says_no_has_said_it_after_so_many_octets():
    lines = Lines("lines", b"", None, None)
    registry.register(lines)
    try:
        assert registry.sniff(b"name") == (MORE, None)
        assert registry.sniff(b"name\n") == (MATCH, lines)
        assert registry.sniff(HEADER) == (MATCH, FAMILY)
        assert registry.sniff(b"n" * (SNIFF_MAX - 1)) == (MORE, None)
        assert registry.sniff(b"n" * SNIFF_MAX) == (NO, None)
        assert begin(b"n" * (SNIFF_MAX - 1)) == (b"", False)
        assert begin(b"n" * SNIFF_MAX) == (HEADER, True)
    finally:
        registry.FAMILIES.remove(lines)


def test_octets_of_nobody_are_answered_with_the_header_and_the_operator_hears_what_they_are():
    """Section 4.2.2: the server answers with a valid protocol header and closes the connection."""
    for octets, word in (
        (b"GET / HTTP/1.1\r\n", "speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "speaks TLS"),
        (b"AMQP\x01\x01\x07\x00", "speaks another version of AMQP"),
        (b"\x10\x1f\x00\x04MQTT", "speaks MQTT"),
        (b"\x00\x01\x02", "begins with"),
    ):
        broker = new_broker()
        told = []
        broker.inform = lambda sentence, is_fault=False, told=told: told.append(sentence)
        assert begin(octets, broker) == (HEADER, True), octets
        assert len(told) == 1 and word in told[0] and "serves AMQP 0-9-1" in told[0], told
