"""A log of each version from 3 on opens in every later one (old_log.py says what is in it), and is written on in this one's. Versions 1
and 2 were in no release: they are refused, and nothing of them is touched."""

import struct

import old_log
import pytest
from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, content, taken

from leveret.core.log import segments
from leveret.core.memory import layout
from leveret.core.message import reading


def version_of(octets):
    """The version in the head of a segment."""
    return int.from_bytes(octets[17:19], "big")


@pytest.mark.parametrize("version", range(segments.OLDEST, segments.VERSION + 1))
def test_a_log_of_an_earlier_version_opens_and_goes_on_in_this_one(version):
    store = old_log.kept(version)
    assert {version_of(octets) for octets in store.segments.values()} == {version}
    broker, report = durable_broker(store, segment_size=2048)
    assert "recovered 53 messages in 4 queues and streams, 11 settlements" in report, report
    assert len(broker.waiting.heap) == 1
    stream = broker.queues["s"]
    assert (stream.first_offset, stream.next_offset()) == (0, 10)
    dead = broker.tables.queues[broker.queues["q"].handle + layout.QUEUE_TAIL]
    whole = broker.tables.entries[broker.tables.entries[dead + layout.ENTRY_PREVIOUS] + layout.ENTRY_MESSAGE]
    assert (reading.priority_of(broker.tables, whole), reading.expiration_of(broker.tables, whole), broker.tables.is_durable(whole)) == (
        200,
        9999999000,
        True,
    )
    peer = Peer(broker)
    peer.give(content(1, "", "q", b"of today", PERSISTENT))
    broker.run()
    assert version_of(store.segments[max(store.segments)]) == segments.VERSION
    again, _ = durable_broker(store.cut(), segment_size=2048)
    left = [number for number in range(40) if number >= 20 or number % 2]
    reader = Peer(again)
    found = taken(reader, "q")
    assert [body for _, body in found] == [b"%06d" % number for number in left] + [b"whole", b"dead", b"of today"]
    assert found[-3][0] == old_log.WHOLE
    given = found[-2][0]
    assert given["headers"]["x-first-death-queue"] == "from" and [each["count"] for each in given["headers"]["x-death"]] == [1]
    assert given["headers"]["b"] == "two" and "BCC" not in given["headers"] and "expiration" not in given
    levels = sorted(range(0, 40, 4), key=lambda number: -(number % 3))
    assert bodies(reader, "levels") == [b"%06d" % number for number in levels]


@pytest.mark.parametrize("version", (1, 2))
def test_a_log_of_a_version_that_no_release_has_is_refused_and_left_alone(version):
    store = MemoryStore()
    durable_broker(store)
    head = segments.MAGIC + struct.pack(">HIIIII", version, 9, 1, 0, 0, 0)
    store.append(9, segments.record(0, segments.HEAD, (head,), len(head)))
    kept = dict(store.segments)
    with pytest.raises(segments.OtherLog) as refused:
        durable_broker(store)
    assert "version %d of its format" % version in str(refused.value) and "begin with an empty directory" in str(refused.value)
    assert store.segments == kept


def test_what_this_version_writes_is_what_the_log_that_is_kept_of_it_has():
    """Who changes the format raises its version: the log that is kept was written before the change."""
    assert old_log.written().segments == old_log.kept(segments.VERSION).segments
