"""Records of a log whose CRC fits and that make no sense (core/recovery/record_check.py): passed over and told, each costs only itself,
nothing is deleted for it, and the start is not stopped."""

import json
import struct
from binascii import crc32

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer

from leveret.core.errors import ProtocolError
from leveret.core.log import segments
from leveret.core.log.settled_positions import Settled

DEFINED = (
    b"",
    b"{",
    b"[]",
    b"5",
    b"{}",
    b"\xff",
    b'{"kind": 5, "name": "x"}',
    b'{"kind": "queue", "name": "x"}',
    b'{"gone": "queue", "name": "q"}',
    b'{"kind": "queue", "id": 2147483647, "name": "x", "auto_delete": false, "arguments": {}}',
    b'{"kind": "queue", "id": 9, "name": "x", "auto_delete": false, "arguments": {"x-queue-type": "stream"}}',
    b'{"kind": "queue", "id": 9, "name": "x", "auto_delete": false, "arguments": ["$l"]}',
    b'{"kind": "exchange", "name": "x", "type": "topic", "auto_delete": 1, "internal": false, "arguments": {}}',
    b'{"kind": "exchange", "name": "x", "type": "topic", "auto_delete": false, "internal": false, "arguments": {"a": ["$t", "x"]}}',
    b'{"kind": "exchange", "name": "x", "type": "topic", "auto_delete": false, "internal": false, "arguments": {"a": []}}',
    b'{"kind": "policy", "name": "x", "pattern": 5, "definition": {}, "priority": 0, "apply_to": "all"}',
    b'{"kind": "user", "name": "x", "password": "", "tags": ["$l", 5], "permissions": null}',
    b'{"kind": "binding", "source": "amq.topic", "to": "queue", "name": "q", "key": "a", "arguments": {}}',
    b'{"kind": "clock", "name": "", "frames": ["$l", 5]}',
    b'{"gone": 5, "name": "x"}',
    b'{"kind": "user", "name": "\\ud800"}',
    b"[" * 3000,
    b'{"kind": "x", "name": "x", "id": 99999999999999999999}',
)
LEFT_OUT = (
    {"kind": "exchange", "name": "x", "type": "nonsense", "auto_delete": False, "internal": False, "arguments": {}},
    {"kind": "exchange", "name": "amq.x", "type": "topic", "auto_delete": False, "internal": False, "arguments": {}},
    {"kind": "exchange", "name": "x", "type": "x-delayed-message", "auto_delete": False, "internal": False, "arguments": {}},
    {"kind": "user", "name": "x", "password": "no hash", "tags": ["$l"], "permissions": None},
)
MESSAGE_OF_Q = struct.pack(">HIHIIIIi", 1, 5, 4, 0, 2, 1, 0, -1) + struct.pack(">IQ", 1, 9) + b"\x00\x02q1" + b"\x00\x00" + b"z"
MESSAGES = (
    b"",
    b"\x00",
    MESSAGE_OF_Q[:-1],
    MESSAGE_OF_Q + b"z",
    b"\xff\xff" + MESSAGE_OF_Q[2:],
    b"\x00\x00" + MESSAGE_OF_Q[2:],
    MESSAGE_OF_Q[:2] + b"\xff\xff\xff\xff" + MESSAGE_OF_Q[6:],
    MESSAGE_OF_Q.replace(b"\x00\x02q1", b"\x09\x02q1"),
    MESSAGE_OF_Q.replace(b"\x00\x02q1", b"\x02\xff\xff\x00"),
    MESSAGE_OF_Q.replace(b"q1\x00\x00", b"q1\xff\xff"),
    MESSAGE_OF_Q.replace(struct.pack(">Q", 9), b"\xff" * 8),
)
SETTLED = (
    b"",
    b"\x00\x00\x00\x01\x00\x05",
    struct.pack(">IHQI", 1, 1, 1 << 63, 5),
    struct.pack(">IHQI", 1, 1, 5, 0),
    struct.pack(">IHQI", 1 << 31, 1, 5, 1),
)
KEPT = (b"", b"\x00" * 11, struct.pack(">IQ", 1, 1 << 63) + b"c", struct.pack(">IQ", 1, 1) + b"\xff")


def kept_log():
    """A store and a broker with a message in queue q (id 1)."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.publish("q", b"kept", given=PERSISTENT)
    broker.run()
    return store, broker


def test_a_record_that_makes_no_sense_costs_itself():
    """Each kind: the start tells of it, the message in front of it and the one behind it are there, and in the start after that."""
    for type_, payloads in (
        (segments.DEFINED, DEFINED),
        (segments.MESSAGE, MESSAGES),
        (segments.TRANSIENT, MESSAGES),
        (segments.SETTLED, SETTLED),
        (segments.KEPT, KEPT),
    ):
        for payload in payloads:
            store, broker = kept_log()
            broker.journal.log.append(type_, (payload,))
            broker.journal.touch()
            Peer(broker).publish("q", b"behind", given=PERSISTENT)
            broker.journal.finish()
            again, report = durable_broker(store.cut())
            assert "is passed over" in report, (type_, payload, report)
            Peer(again).declare("new", durable=True)
            again.run()
            assert bodies(Peer(again), "q") == [b"kept", b"behind"], (type_, payload)
            assert again.counters["internal_errors"] == 0


def test_a_definition_that_nothing_can_be_made_of_is_told_and_left_out():
    """An exchange that no build has, a user whose hash is none."""
    for definition in LEFT_OUT:
        store, broker = kept_log()
        broker.journal.log.append(segments.DEFINED, (json.dumps(definition).encode(),))
        broker.journal.touch()
        broker.journal.finish()
        again, report = durable_broker(store.cut())
        assert "%s 'amq.x'" % definition["kind"] in report or "%s 'x' could not be made again" % definition["kind"] in report, report
        assert definition["name"] not in again.exchanges and definition["name"] not in again.access.users
        assert bodies(Peer(again), "q") == [b"kept"]


def test_of_many_definitions_left_out_eight_are_named_and_the_others_counted():
    """The report is one line for the operator's log."""
    for count in (1, 8, 11):
        store, broker = kept_log()
        for number in range(count):
            definition = dict(LEFT_OUT[0], name="lost%02d" % number)
            broker.journal.log.append(segments.DEFINED, (json.dumps(definition).encode(),))
        broker.journal.touch()
        broker.journal.finish()
        _, report = durable_broker(store.cut())
        assert report.count("exchange 'lost") == min(count, 8), report
        assert ("; and 3 more like these" in report) == (count == 11), report
        assert count == 11 or "more like these" not in report, report


def test_a_head_that_names_a_later_segment_as_the_oldest_removes_none():
    """log/segments.py, head: the oldest segment when a segment was begun is not behind it; else those in front would be removed."""
    store, broker = kept_log()
    broker.journal.finish()
    number = max(store.durable)
    octets = store.durable[number]
    size = struct.unpack_from(">I", octets, 4)[0]
    head = bytearray(octets[: 13 + size])
    struct.pack_into(">I", head, 13 + 10, number + 1)
    struct.pack_into(">I", head, 0, crc32(bytes(head[4:])) & 0xFFFFFFFF)
    store.durable[number] = bytes(head) + octets[13 + size :]
    after = store.cut()
    _, report = durable_broker(after)
    assert "put aside" in report and [each for each in after.aside if octets[13 + size :] in each[1]], report


def test_a_log_with_more_queues_than_the_limits_have_is_refused_in_words():
    """Nothing changed, one sentence: recovery would have given two queues one record."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    for number in range(10):
        peer.declare("q%d" % number, durable=True)
    broker.journal.finish()
    try:
        durable_broker(store.cut(), queue_count_max=8, queue_share_max=8)
    except ProtocolError as error:
        assert "8 queues at most" in error.text
    else:
        raise AssertionError("it started")


def test_a_gap_of_any_size_is_looked_at_at_once():
    """Settled.covers goes from range to range, not from page to page: a range of 2^60 positions is one step."""
    found = Settled()
    found.add(0, 1 << 60)
    assert found.covers(5, 1 << 59) and not found.covers(5, (1 << 60) + 1)
