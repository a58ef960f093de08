"""Segments that are lost: told with what they had, by numbers that are kept apart from them; nothing of what is left is let go unseen
(core/DESIGN.md section 5)."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer

from leveret.core.log import segments
from leveret.core.log.message_record import route_at
from leveret.core.log.segment_list import Noted


class NotingStore(MemoryStore):
    """A MemoryStore that notes which segments there are to be, and keeps what is set aside."""

    def __init__(self):
        MemoryStore.__init__(self)
        self.note = Noted(b"")
        self.note.ranges = []
        self.orphans = {}

    def noted(self):
        return self.note.known()

    def sync(self, number):
        MemoryStore.sync(self, number)
        self.note.add(number)

    def remove(self, number):
        self.note.remove(number, self.numbers())
        MemoryStore.remove(self, number)

    def set_aside(self, number, pieces):
        if self.full:
            raise OSError(28, "no space")
        self.orphans[number] = b"".join(pieces)
        return "%d.orphans" % number


def filled(queues=("q",), count=60):
    """A store with numbered messages in segments of 2,000 octets, all of them wanted."""
    store = NotingStore()
    broker, _ = durable_broker(store, segment_size=2000)
    peer = Peer(broker)
    for name in queues:
        peer.declare(name, durable=True)
    for number in range(count):
        for name in queues:
            peer.publish(name, b"%03d" % number + bytes(100), given=PERSISTENT)
    assert len(store.segments) >= 4
    return store


def lose(store, number):
    """A segment is not there any more."""
    del store.segments[number], store.durable[number]


def heads(octets):
    """Payloads of the messages in what was set aside."""
    store = MemoryStore()
    number = int.from_bytes(octets[19:23], "big")
    store.segments[number] = octets
    reader = segments.Reader(store, number)
    found = []
    record = reader.next() if reader.head() else None
    while record is not None:
        found.append(record[1])
        record = reader.next()
    assert reader.damage is None
    return found


def test_a_log_that_has_lost_nothing_tells_nothing():
    """Restarts, removals and a power cut are no loss."""
    store = filled()
    for _ in range(3):
        broker, report = durable_broker(store, segment_size=2000)
        assert ";" not in report, report
        Peer(broker).ask("queue_purge", "queue_purge_ok", 0, "q", False)
        peer = Peer(broker)
        for number in range(60):
            peer.publish("q", b"%03d" % number + bytes(100), given=PERSISTENT)
    assert min(store.segments) > 4 and store.note.first == min(store.segments)


def test_a_lost_first_segment_is_told_and_its_queues_messages_are_put_aside():
    """They are for a queue id that nothing defines; the segments go in their turn."""
    for empty in (False, True):
        store = filled()
        size = len(store.segments[1])
        lose(store, 1)
        if empty:
            store.segments[1] = store.durable[1] = b""
        left = b"".join(store.segments.values()).count(bytes(100))
        broker, report = durable_broker(store, segment_size=2000)
        assert "; segment 1 is %s (there were %d octets with" % ("empty" if empty else "missing", size) in report, report
        assert "; %d messages are for 1 queues that nothing defines (queue id 1: %d): they were put in " % (left, left) in report, report
        kept = [payload for number in sorted(store.orphans) for payload in heads(store.orphans[number])]
        assert len(kept) == left and kept[-1][route_at(0, 1) :].startswith(b"\x00\x01q") and kept[-1].endswith(b"059" + bytes(100))
        peer = Peer(broker)
        peer.declare("q", durable=True)
        assert broker.queues["q"].id_in_log == 2, "an id was given twice"
        peer.publish("q", b"new", given=PERSISTENT)
        again, report = durable_broker(store, segment_size=2000)
        assert bodies(Peer(again), "q") == [b"new"] and again.queues["q"].id_in_log == 2, report


def test_a_lost_last_segment_is_told_at_each_start_until_the_log_has_moved_on():
    """Its number is not given again."""
    for empty in (False, True):
        store = filled()
        last = max(store.segments)
        lose(store, last)
        if empty:
            store.segments[last] = store.durable[last] = b""
        word = "; segment %d is %s" % (last, "empty" if empty else "missing")
        broker, report = durable_broker(store, segment_size=2000)
        assert word in report, report
        peer = Peer(broker)
        peer.publish("q", b"new", given=PERSISTENT)
        assert max(store.segments) == last + 1
        broker, report = durable_broker(store, segment_size=2000)
        assert word in report and bodies(Peer(broker), "q")[-1] == b"new"
        for _ in range(4):
            peer = Peer(broker)
            peer.ask("queue_purge", "queue_purge_ok", 0, "q", False)
            for number in range(60):
                peer.publish("q", b"%03d" % number + bytes(100), given=PERSISTENT)
        assert store.note.first > last
        assert ";" not in durable_broker(store, segment_size=2000)[1] and min(store.segments) > last


def test_a_gap_is_told_with_what_was_in_it_and_the_rest_is_delivered():
    store = filled()
    sizes = len(store.segments[2]) + len(store.segments[3])
    count = b"".join([store.segments[2], store.segments[3]]).count(bytes(100))
    lose(store, 2)
    broker, report = durable_broker(store, segment_size=2000)
    assert "; segment 2 is missing (there were " in report, report
    lose(store, 3)
    broker, report = durable_broker(store, segment_size=2000)
    assert "; segments 2 to 3 are missing (there were at least " in report and "acknowledged there may come again" in report, report
    left = bodies(Peer(broker), "q")
    assert len(left) == 60 - count and left[-1].startswith(b"059") and sizes > 3000


def test_orphans_that_cannot_be_put_aside_stay():
    """A full disk: their segment is never removed."""
    store = filled(("a", "b"))
    lose(store, 1)
    store.full = True
    broker, report = durable_broker(store, segment_size=2000)
    store.full = False
    assert "for 2 queues that nothing defines" in report and "they stay" in report and not store.orphans, report
    peer = Peer(broker)
    peer.declare("c", durable=True)
    for _number in range(60):
        peer.publish("c", bytes(100), given=PERSISTENT)
        peer.ask("queue_purge", "queue_purge_ok", 0, "c", False)
    assert 2 in store.segments and store.segments[2].count(bytes(100)) > 3


def test_messages_of_a_queue_that_was_deleted_are_no_orphans():
    """Nor are those that were acknowledged before their queue's definition was lost."""
    store = filled(("gone", "q"))
    broker, _ = durable_broker(store, segment_size=2000)
    Peer(broker).ask("queue_delete", "queue_delete_ok", 0, "gone", False, False, False)
    Peer(broker).ask("queue_purge", "queue_purge_ok", 0, "q", False)
    if 1 in store.segments:
        lose(store, 1)
    broker, report = durable_broker(store, segment_size=2000)
    assert "nothing defines" not in report and not store.orphans, report


def test_a_note_that_is_damaged_is_told_and_written_anew():
    store = filled()
    whole = store.note.octets()
    for at in range(len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 0x04
        assert Noted(bytes(broken)).known() is None and Noted(whole[:at]).known() is None
    assert Noted(whole).known() == store.note.known()
    store.note = Noted(b"")
    broker, report = durable_broker(store, segment_size=2000)
    assert "the file that lists the segments is lost" in report and broker.queues["q"].message_count() == 60, report
    assert ";" not in durable_broker(store, segment_size=2000)[1]


STREAM = {"x-queue-type": "stream"}


def stream_filled(first, count, store, retention=None):
    """A stream with so many more messages, confirmed, on a store."""
    broker, report = durable_broker(store, segment_size=2000)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments=dict(STREAM, **(retention or {})))
    for number in range(first, first + count):
        peer.publish("s", b"%03d" % number + bytes(100), given=PERSISTENT)
    return broker, report


def read_from(broker, offset):
    """{offset: body} of what a reader gets that has kept `offset`."""
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 200, False)
    got = peer.consume("s", "c", arguments={"x-stream-offset": offset})
    return {each[2]["headers"]["x-stream-offset"]: each[3][:3] for each in got}


def test_an_offset_of_a_lost_newest_segment_is_not_given_to_another_message():
    """A reader that has kept it gets what comes next; the range is told, once for the loss, and stays when the log moves on."""
    for empty in (False, True):
        for lost_count in (1, 2):
            store = NotingStore()
            broker, _ = stream_filled(0, 60, store)
            confirmed = broker.queues["s"].next_offset()
            for last in sorted(store.segments)[-lost_count:]:
                lose(store, last)
                if empty:
                    store.segments[last] = store.durable[last] = b""
            broker, report = durable_broker(store, segment_size=2000)
            stream = broker.queues["s"]
            there = len(read_from(broker, "first"))
            end = stream.next_offset()
            assert confirmed == 60 and 20 < there < 60 and end >= confirmed, (there, end)
            assert "; stream 's' goes on at offset %d: its messages from %d to %d may be lost" % (end, there, end - 1) in report, report
            broker, _ = stream_filled(end, 1, store)
            for kept in (there, confirmed - 1, confirmed, end):
                assert set(read_from(broker, kept)) == {broker.queues["s"].next_offset() - 1}, kept
            again = stream_filled(0, 60, store)[0].queues["s"].next_offset()
            broker, report = durable_broker(store, segment_size=2000)
            assert broker.queues["s"].next_offset() == again and "goes on at offset" not in report, report
            assert "messages of streams are missing" not in report and len(read_from(broker, "first")) > 60, report


def test_a_stream_that_was_full_of_lost_segments_goes_on_behind_all_of_them():
    """All that is left is its definition; offsets below the next one are the lost ones'."""
    store = NotingStore()
    stream_filled(0, 60, store)
    for number in sorted(store.segments)[1:]:
        lose(store, number)
    broker, report = durable_broker(store, segment_size=2000)
    assert broker.queues["s"].next_offset() >= 60 and "goes on at offset" in report, report


def test_a_stream_says_itself_where_it_was_when_its_definition_is_newer_than_what_is_lost():
    """Nothing is passed over then."""
    store = NotingStore()
    broker, _ = stream_filled(0, 60, store)
    broker.journal.snapshot()
    Peer(broker).declare("later", durable=True)
    lose(store, 2)
    broker, report = durable_broker(store, segment_size=2000)
    assert broker.queues["s"].next_offset() == 60 and "goes on at offset" not in report, report


def test_a_stream_whose_older_settlements_are_lost_begins_where_the_next_start_has_it_begin():
    """What a lost segment had let go comes back in front of what a later one has: where that is let go again the stream begins behind
    both (seed 100374 of the simulation)."""
    store = NotingStore()
    stream_filled(0, 30, store, {"x-max-length-bytes": 2300})
    lose(store, sorted(store.segments)[1])
    broker, _ = durable_broker(store, segment_size=2000)
    stream = broker.queues["s"]
    holes = [each for each in range(20) if stream.pages.holes.has(each)]
    there = sorted(read_from(broker, "first"))
    assert there[0] == stream.first_offset < holes[0] < holes[-1] < there[-1] and not [each for each in there if each in holes]
    begins = [stream.first_offset]
    while begins[-1] < holes[0]:
        stream.pages.let_go(stream.first_offset + 1)
        broker.journal.commit(True)
        assert durable_broker(store.cut(), segment_size=2000)[0].queues["s"].first_offset == stream.first_offset
        begins.append(stream.first_offset)
    assert begins == there[: len(begins)]
