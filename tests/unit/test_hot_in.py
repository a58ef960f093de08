"""What 0-9-1 takes in without a session is what its session would take: the flat readers of amqp_0_9/hot_in.py against the readers of
field_table.py and properties.py, octet for octet, and every publish that is cut or has one wrong octet."""

import struct

from peer import Peer, content, encoded, idle, new_broker
from same_random import Random

from leveret.core.amqp_0_9 import field_table, hot_in, properties
from leveret.core.errors import ProtocolError
from leveret.core.memory import layout

# One value of each type letter (0-9-1 section 4.2.5.5), as its octets.
VALUES = (
    b"t\x01",
    b"b\xff",
    b"B\xff",
    b"s\x80\x00",
    b"u\xff\xff",
    b"I\x80\x00\x00\x00",
    b"i\xff\xff\xff\xff",
    b"f\x3f\x80\x00\x00",
    b"l" + bytes(8),
    b"L" + bytes(8),
    b"d" + bytes(8),
    b"T" + bytes(8),
    b"D\x02\x00\x00\x01\x00",
    b"V",
    b"S\x00\x00\x00\x03abc",
    b"x\x00\x00\x00\x03\x00\xff\x80",
    b"A\x00\x00\x00\x00",
    b"A\x00\x00\x00\x04Vt\x00V",
    b"F\x00\x00\x00\x00",
    b"F\x00\x00\x00\x04\x01kt\x01",
)
DEPTH = 8  # levels of tables and arrays that field_table reads


def nested(letter, depth):
    """The pairs of a table of `depth` levels, all but the first of this type."""
    octets = b""
    for level in range(depth, 1, -1):
        octets = letter + struct.pack(">I", len(octets)) + octets
        if letter == b"F" or level == 2:
            octets = b"\x01k" + octets
    return octets


def is_table(octets):
    """Whether field_table reads these pairs and no name among them is one that a session has to see."""
    try:
        table = field_table.pairs(octets, 0, len(octets), 1)
    except ProtocolError:
        return False
    return "CC" not in table and "BCC" not in table


def looked_at(octets):
    return hot_in.check_table(octets, 0, len(octets), 1) == 1


def test_a_value_of_every_type_is_read_to_its_last_octet_and_no_further():
    """Each alone, each behind another, each cut anywhere: as field_table does."""
    for value in VALUES:
        pair = b"\x01k" + value
        assert is_table(pair) and looked_at(pair), value
        assert looked_at(pair + b"\x02nx" + value), value
        for size in range(1, len(pair)):
            assert not is_table(pair[:size]) and not looked_at(pair[:size]), (value, size)


def test_every_other_type_octet_is_refused():
    letters = [value[0] for value in VALUES]
    for letter in range(256):
        pair = b"\x01k" + bytes([letter]) + bytes(12)
        if letter not in letters:
            assert not is_table(pair) and not looked_at(pair), letter


def test_tables_and_arrays_have_as_many_levels_as_a_session_reads():
    for letter in (b"F", b"A"):
        for depth in range(2, DEPTH + 3):
            octets = nested(letter, depth)
            assert is_table(octets) == looked_at(octets) == (depth <= DEPTH), (letter, depth)


def test_names_that_a_session_has_to_see_are_not_looked_over():
    """CC and BCC of the first level (core/SPEC.md), and names that are not ASCII; names that only end or begin so are common."""
    for name in (b"CC", b"BCC", b"\xc3\xa9", b"\xff"):
        assert not looked_at(bytes([len(name)]) + name + b"V"), name
    for name in (b"ACC", b"BC", b"CCC", b"xBCC", b"C", b"cc", b"CB", b"BCB", b"", b"BBC"):
        assert looked_at(bytes([len(name)]) + name + b"V"), name
    for name in (b"CC", b"BCC"):
        inner = bytes([len(name)]) + name + b"V"
        assert looked_at(b"\x01kF" + struct.pack(">I", len(inner)) + inner), name


def test_any_octets_are_a_table_for_both_readers_or_for_none():
    chance = Random(13)
    whole = b"".join(b"\x02n%d" % (number % 10) + value for number, value in enumerate(VALUES))
    for _ in range(400):
        octets = bytearray(whole)
        for _ in range(chance.below(3) + 1):
            octets[chance.below(len(octets))] = chance.choice((0, 1, 2, 4, 65, 70, 83, 127, chance.below(128)))
        octets = bytes(octets[: len(octets) - chance.below(4)])
        try:
            known = is_table(octets)
        except (UnicodeError, OverflowError):
            continue
        assert looked_at(octets) == known, octets


GIVEN = {
    "content_type": "a/b",
    "content_encoding": "c",
    "headers": {"k": "v", "n": 7},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "id",
    "reply_to": "me",
    "expiration": "1500",
    "message_id": "m",
    "timestamp": 1700000000,
    "type": "t",
    "app_id": "app",
}


def checked(octets):
    """(what check_properties answers, the kind and the lifetime that it leaves) of properties."""
    state = [0] * layout.STATE_WIDTH
    answer = hot_in.check_properties(state, octets, 0, len(octets))
    return answer, state[layout.STATE_KIND], state[layout.STATE_LIFETIME]


def is_content(octets):
    try:
        properties.decode_all(octets)
    except ProtocolError:
        return False
    return True


def test_each_property_is_read_to_its_last_octet_and_says_what_it_says_of_the_message():
    """KIND: persistent, priority + 1; LIFETIME: the expiration in milliseconds, or none."""
    rows = [{}, GIVEN] + [{name: value} for name, value in GIVEN.items()]
    for given in rows:
        octets = properties.encode(given)
        kind = (layout.KIND_DURABLE if "delivery_mode" in given else 0) | (layout.KIND_HAS_PRIORITY | 9 << 8 if "priority" in given else 0)
        assert checked(octets) == (1, kind, 1500 if "expiration" in given else -1), given
        for size in range(2, len(octets)):
            assert not is_content(octets[:size]) and checked(octets[:size] + b"")[0] == 0, (given, size)
        assert not is_content(octets + b"\x00") and checked(octets + b"\x00")[0] == 0, given


def test_what_a_session_has_to_look_at_is_left_to_it():
    """A user-id, a reply-to as long as amq.rabbitmq.reply-to, an expiration that is no number of one to eight digits; flags without a
    property, and a second word of flags."""
    for given in (
        {"user_id": "u"},
        {"reply_to": "x" * 21},
        {"expiration": ""},
        {"expiration": "123456789"},
        {"expiration": "12a"},
        {"expiration": "-1"},
        {"expiration": "1/"},
        {"expiration": "1:"},
    ):
        assert checked(properties.encode(given))[0] == 0, given
    for flags in (b"\x00\x01", b"\x00\x02", b"\x00\x03"):
        assert checked(flags)[0] == 0
    for given, lifetime in (({"expiration": "0"}, 0), ({"expiration": "12345678"}, 12345678), ({"expiration": "90"}, 90)):
        assert checked(properties.encode(given)) == (1, 0, lifetime)
    for given in ({"reply_to": "x" * 20}, {"reply_to": "x" * 22}, {"delivery_mode": 1}):
        assert checked(properties.encode(given)) == (1, 0, -1), given


BODY = bytes(range(200)) * 30


def session_of():
    """A session whose way to the queue "q" is known."""
    peer = Peer(new_broker(arena_size=1 << 17, receive_buffer_size=16384, message_count_max=512, entry_count_max=512))
    peer.declare("q")
    peer.publish("q", b"one")
    return peer, peer.connection.session


def answer_to(session, octets):
    """(the answer of hot_in to these octets, how many it took)."""
    receive = session.receive
    receive.reset()
    view = receive.writable()
    target = view[: len(octets)]
    target[:] = octets
    receive.end = len(octets)
    state = session.broker.tables.state
    session.broker.tables.begin_turn()
    for column, value in (
        (layout.STATE_AT, receive.start),
        (layout.STATE_END, receive.end),
        (layout.STATE_SIZE, receive.size),
        (layout.STATE_FRAME_MAX, session.frame_size_max),
        (layout.STATE_NUMBERS, len(session.numbers)),
        (layout.STATE_USER, session.connection.user.number),
    ):
        state[column] = value
    answer = session.hot.ingest(session.numbers_at, receive.address)
    taken = state[layout.STATE_AT] - receive.start
    receive.reset()
    return answer, taken


def test_a_publish_is_taken_when_its_last_octet_is_there_and_changes_nothing_before():
    """A body of none, one and two frames; cut anywhere it is only incomplete."""
    peer, session = session_of()
    for body, step in ((b"", 1), (b"abc", 1), (BODY, 211)):
        octets = content(1, "", "q", body, {"headers": {"k": "v"}, "delivery_mode": 2})
        before = idle(session.broker), session.broker.queues["q"].message_count()
        for size in list(range(0, len(octets), step)) + [len(octets) - 1]:
            assert answer_to(session, octets[:size]) == (layout.INCOMPLETE, 0), size
        assert (idle(session.broker), session.broker.queues["q"].message_count()) == before
        assert answer_to(session, octets) == (layout.INCOMPLETE, len(octets))
        assert session.broker.queues["q"].message_count() == before[1] + 1


def test_publishes_are_taken_wherever_they_stand_in_the_buffer():
    """As many as fill it; the last one ends near its last octet."""
    _, session = session_of()
    for body in (b"", BODY[:500], BODY):
        octets = content(1, "", "q", body, {"headers": {"k": "v"}})
        count, before = session.receive.size // len(octets), session.broker.queues["q"].message_count()
        assert answer_to(session, octets * min(count, 50)) == (layout.INCOMPLETE, len(octets) * min(count, 50)), len(body)
        assert session.broker.queues["q"].message_count() == before + min(count, 50)


def test_one_wrong_octet_of_a_frame_leaves_a_publish_to_its_session():
    """Types, channels, sizes, class and weight, the body's size and the end octets, of the three frames."""
    peer, session = session_of()
    octets = content(1, "", "q", b"abc", {})
    method_size = len(octets) - 22 - 11
    header, body = method_size, method_size + 22
    assert octets[header] == 2 and octets[body] == 3
    count = session.broker.queues["q"].message_count()
    places = [0, 1, 2, 3, 7, 8, 9, 10, method_size - 2, method_size - 1]
    places += [header + at for at in (0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14, 21)] + [body + at for at in (0, 1, 2, 3, 10)]
    for place in places:
        wrong = bytearray(octets)
        wrong[place] ^= 0x42 if place == method_size - 2 else 0x40
        assert answer_to(session, bytes(wrong))[0] == layout.ASK, place
    for at, value in ((body + 6, 0), (body + 6, 4), (header + 6, 13)):
        wrong = bytearray(octets)
        wrong[at] = value
        assert answer_to(session, bytes(wrong))[0] == layout.ASK, (at, value)
    assert session.broker.queues["q"].message_count() == count


def test_a_settlement_counts_in_a_turn_as_many_as_it_settles():
    """basic.ack of one, of several and of all: each delivery is one (layout.STATE_LEFT)."""
    peer, session = session_of()
    for _ in range(9):
        peer.publish("q", b"m")
    peer.consume("q")
    for tag, multiple, settled in ((1, False, 1), (4, True, 3), (0, True, 6)):
        octets = encoded("basic_ack", 1, tag, multiple)
        answer, taken = answer_to(session, octets)
        assert (answer, taken) == (layout.INCOMPLETE, len(octets))
        tables = session.broker.tables
        left = tables.state[layout.STATE_LEFT]
        tables.begin_turn()
        assert tables.state[layout.STATE_LEFT] - left == settled, tag
    assert session.broker.queues["q"].unsettled_count() == 0
