"""Stream queues by frames: offsets that stay valid, retention, cursors, the state that basic.get tells (core/SPEC.md, streams)."""

from peer import Peer, assemble, encoded, idle, new_broker

from leveret.core.amqp_0_9 import packed, properties
from leveret.core.broker.policies import Policy
from leveret.core.memory import layout
from leveret.core.stream.stream import EPOCH

ARGUMENTS = {"x-queue-type": "stream", "x-max-length-bytes": 2000}


def stream_of(count, size=20, **overrides):
    """A broker with a stream "s" of `count` messages, and a peer with prefetch 100."""
    broker = new_broker(**overrides)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments=ARGUMENTS)
    for number in range(count):
        broker.tick(0, EPOCH + 1000 + number)
        peer.publish("s", str(number).encode() + bytes(size))
    peer.ask("basic_qos", "basic_qos_ok", 0, 100, False)
    return broker, peer


def offsets(found):
    """The x-stream-offset of each delivery, after seeing that the body belongs to it."""
    for each in found:
        assert each[3].rstrip(b"\x00") == str(each[2]["headers"]["x-stream-offset"]).encode(), each
    return [each[2]["headers"]["x-stream-offset"] for each in found]


def state(peer):
    """The stream's (first offset, next offset, octets) as basic.get tells them."""
    peer.give(encoded("basic_get", 1, 0, "s", True))
    name, _, given, body = assemble(peer.frames())[0]
    headers = given["headers"]
    assert name == "basic_get_ok" and body == b"" and headers["x-stream-id"].startswith("stream-")
    return headers["x-stream-first-offset"], headers["x-stream-next-offset"], headers["x-stream-bytes"]


def test_where_a_consumer_starts():
    """x-stream-offset: first, last, next, a number, a timestamp (RabbitMQ's stream queues)."""
    for given, expected in (
        ("first", list(range(8))),
        ("last", [7]),
        ("next", []),
        (5, [5, 6, 7]),
        (99, []),
        (("T", EPOCH + 1006), [6, 7]),
        (("T", 0), list(range(8))),
    ):
        _, peer = stream_of(8)
        found = offsets(peer.consume("s", arguments={"x-stream-offset": given}))
        assert found == expected, (given, found)
        peer.publish("s", b"8")
        assert offsets(peer.contents()) == [8]


def test_reading_takes_nothing_away_and_readers_do_not_disturb_each_other():
    """Two readers at their own pace, a third later: each gets everything."""
    broker, peer = stream_of(5)
    slow = Peer(broker)
    slow.ask("basic_qos", "basic_qos_ok", 0, 1, False)
    assert offsets(peer.consume("s", arguments={"x-stream-offset": "first"})) == [0, 1, 2, 3, 4]
    assert offsets(slow.consume("s", arguments={"x-stream-offset": "first"})) == [0]
    slow.give(encoded("basic_ack", 1, 1, False))
    assert offsets(slow.contents()) == [1]
    peer.give(encoded("basic_ack", 1, 0, True))
    assert broker.queues["s"].message_count() == 5


def test_retention_drops_the_oldest_and_keeps_offsets():
    """x-max-length-bytes: never more octets than that; offsets stay dense and are never given again."""
    broker, peer = stream_of(100, 20)
    first, following, size = state(peer)
    assert following == 100 and size <= 2000 and first > 20
    assert broker.queues["s"].dropped == first
    assert offsets(peer.consume("s", arguments={"x-stream-offset": 0})) == list(range(first, 100))
    assert peer.ask("queue_purge", "queue_purge_ok", 0, "s", False) == [100 - first]
    assert state(peer) == (100, 100, 0)


def test_a_reader_that_was_overtaken_goes_on_at_the_first_message_left():
    """A consumer without credit while retention passes it."""
    broker, peer = stream_of(3)
    peer.give(encoded("basic_qos", 1, 0, 1, False))
    assert peer.frames() == [("basic_qos_ok", 1, [])]
    assert offsets(peer.consume("s", arguments={"x-stream-offset": 0})) == [0]
    for number in range(3, 150):
        peer.publish("s", str(number).encode() + bytes(20))
    peer.give(encoded("basic_ack", 1, 1, False))
    assert offsets(peer.contents()) == [broker.queues["s"].first_offset]


def test_headers_of_the_publisher_are_kept_beside_the_offset():
    """The offset is added to whatever properties and headers there are."""
    _, peer = stream_of(0)
    cases = (
        {},
        {"content_type": "t"},
        {"content_type": "t", "content_encoding": "e", "headers": {"a": 1}, "priority": 3, "app_id": "x"},
        {"headers": {}},
        {"timestamp": 99},
    )
    for given in cases:
        peer.publish("s", b"x", given=given)
    found = peer.consume("s", arguments={"x-stream-offset": "first"})
    for index in range(len(cases)):
        expected = dict(cases[index])
        expected["headers"] = dict(expected.get("headers", {}))
        expected["headers"]["x-stream-offset"] = index
        assert found[index][2] == expected, found[index]


def test_what_a_stream_refuses():
    """no-ack and basic.get with acknowledgement (540); no prefetch, a bad offset, exclusive or transient declarations (406)."""
    broker, _ = stream_of(1)
    for prefetch, no_ack, arguments, code in (
        (10, True, {}, 540),
        (0, False, {}, 406),
        (10, False, {"x-stream-offset": "soon"}, 406),
        (10, False, {"x-stream-offset": -1}, 406),
    ):
        peer = Peer(broker)
        peer.ask("basic_qos", "basic_qos_ok", 0, prefetch, False)
        peer.give(encoded("basic_consume", 1, 0, "s", "c", False, no_ack, False, False, arguments))
        assert peer.frames()[0][2][0] == code, arguments
    for durable, exclusive, size in ((False, False, 1), (True, True, 1), (True, False, 0), (True, False, "big")):
        peer = Peer(broker)
        peer.give(
            encoded(
                "queue_declare", 1, 0, "t", False, durable, exclusive, False, False, {"x-queue-type": "stream", "x-max-length-bytes": size}
            )
        )
        assert peer.expect("channel_close")[0] == 406
    peer = Peer(broker)
    peer.give(encoded("basic_get", 1, 0, "s", False))
    assert peer.expect("connection_close")[0] == 540


def test_streams_make_room_for_others():
    """A stream over its share lets its oldest messages go when a queue needs the room: publishers never wait for a stream."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for _ in range(60):
        peer.publish("s", bytes(1000))
    peer.declare("q")
    for _ in range(3):
        peer.publish("q", bytes(1000))
    assert peer.connection.reading and broker.queues["q"].message_count() == 3
    for name in ("s", "q"):
        peer.ask("queue_delete", "queue_delete_ok", 0, name, False, False, False)
    peer.connection.received(0)
    assert idle(broker) == before


def consume_with(peer, tag="c", **arguments):
    """Deliveries of a subscription with these x-stream- arguments."""
    return peer.consume("s", tag, arguments={"x-stream-" + name.replace("_", "-"): arguments[name] for name in arguments})


def test_arguments_of_a_subscription_that_make_no_sense_are_refused():
    """core/SPEC.md, streams: each with its name in the sentence; the last values that are good are taken."""
    good = (
        {"x-stream-filter": "a"},
        {"x-stream-filter": ["a", "b"]},
        {"x-stream-filter": []},
        {"x-stream-match-unfiltered": True, "x-stream-filter": "a"},
        {"x-stream-consumer": "c" * 255},
        {"x-stream-consumer": "c", "x-stream-offset": "stored"},
        {"x-stream-pack-records": 1},
        {"x-stream-offset": ("T", 1)},
        {"x-stream-offset": 0},
    )
    bad = (
        {"x-stream-filter": 5},
        {"x-stream-filter": ["a", 5]},
        {"x-stream-filter": {"a": "b"}},
        {"x-stream-match-unfiltered": 1},
        {"x-stream-strict": "yes"},
        {"x-stream-consumer": ""},
        {"x-stream-consumer": "c" * 256},
        {"x-stream-consumer": 5},
        {"x-stream-pack-records": 0},
        {"x-stream-pack-records": True},
        {"x-stream-pack-octets": -1},
        {"x-stream-offset": -1},
        {"x-stream-offset": True},
        {"x-stream-offset": "middle"},
        {"x-stream-offset": "stored"},
    )
    for number, arguments in enumerate(good + bad):
        _, peer = stream_of(1)
        peer.give(encoded("basic_consume", 1, 0, "s", "c", False, False, False, False, arguments))
        frame = peer.frames()[0]
        if number < len(good):
            assert frame[0] == "basic_consume_ok", arguments
        else:
            assert frame[0] == "channel_close" and frame[2][0] == 406, arguments
            assert [name for name in arguments if "invalid arg '%s'" % name in frame[2][1]], frame[2][1]


def test_a_strict_reader_never_jumps():
    """x-stream-strict: an offset that is gone is refused with the first offset; so is a cursor that retention overtakes."""
    broker, peer = stream_of(100, 20)
    first = broker.queues["s"].first_offset
    other = Peer(broker)
    other.ask("basic_qos", "basic_qos_ok", 0, 1, False)
    other.give(encoded("basic_consume", 1, 0, "s", "c", False, False, False, False, {"x-stream-offset": 3, "x-stream-strict": True}))
    text = "PRECONDITION_FAILED - offset 3 of stream 's' is out of range: the first is %d, the next 100" % first
    assert other.expect("channel_close")[:2] == [406, text]
    peer.give(encoded("basic_qos", 1, 0, 1, False))
    peer.frames()
    assert offsets(consume_with(peer, offset=first, strict=True)) == [first]
    for number in range(100, 250):
        peer.publish("s", str(number).encode() + bytes(20))
    peer.give(encoded("basic_ack", 1, 1, False))
    code, text, _, _ = peer.expect("channel_close")
    assert code == 406 and "begins at offset %d now" % broker.queues["s"].first_offset in text


def test_packed_fetch():
    """x-stream-pack-records: dense records in one message, as many as asked and as fit; then as they come."""
    broker, peer = stream_of(0)
    for number in range(10):
        peer.publish("s", str(number).encode(), given={"message_id": "m%d" % number})
    found = consume_with(peer, offset=2, pack_records=5)
    assert [each[2]["headers"] for each in found] == [
        {"x-stream-offset": 2, "x-stream-records": 5},
        {"x-stream-offset": 7, "x-stream-records": 3},
    ]
    records = packed.unpack(found[0][3]) + packed.unpack(found[1][3])
    wanted = [(number, b"", b"s", str(number).encode()) for number in range(2, 10)]
    assert [(each[0], each[2], each[3], each[5]) for each in records] == wanted
    assert records[0][4].endswith(b"\x02m2")
    peer.publish("s", b"10")
    assert packed.unpack(peer.contents()[0][3])[0][0] == 10
    small = consume_with(Peer_with_prefetch(broker), offset=0, pack_records=100, pack_octets=100)
    assert len(small) > 2 and sum([each[2]["headers"]["x-stream-records"] for each in small]) == 11


def test_the_first_packs_are_small_whatever_the_send_buffer_takes():
    """A line that is always cut after some octets gets something whole through, so that a reader behind it comes on."""
    broker = new_broker(
        send_buffer_size=1 << 20,
        frame_size_max=1 << 20,
        content_size_max=1 << 18,
        arena_size=1 << 20,
        message_count_max=2048,
        entry_count_max=2048,
    )
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for _ in range(1000):
        peer.publish("s", bytes(100))
    found = Peer_with_prefetch(broker).consume("s", arguments={"x-stream-offset": 0, "x-stream-pack-records": 1000})
    sizes = [len(each[3]) for each in found]
    assert len(sizes) > 3 and all(8192 << at < size <= 16384 << at for at, size in enumerate(sizes[:-1]))


def test_packed_records_have_the_kind_of_each_message():
    """amqp_0_9/packed.py, version 3: a column with layout.MESSAGE_KIND."""
    broker, peer = stream_of(0)
    given = ({}, {"delivery_mode": 2}, {"priority": 9})
    for each in given:
        peer.publish("s", b"x", given=each)
    found = Peer_with_prefetch(broker).consume("s", arguments={"x-stream-offset": 0, "x-stream-pack-records": 1000})
    records = [record for each in found for record in packed.unpack(each[3])]
    assert [record[6] for record in records] == [0, layout.KIND_DURABLE, layout.KIND_HAS_PRIORITY | 9 << layout.KIND_PRIORITY]
    assert [properties.decode_all(record[4]) for record in records] == list(given)


def test_packed_fetch_of_records_larger_than_the_send_buffer():
    """A record that no send buffer holds comes alone and whole; the others come as many as the buffer takes."""
    broker, peer = stream_of(0)
    peer.declare("large", durable=True, arguments={"x-queue-type": "stream"})
    large = bytes(range(256)) * (broker.limits.send_buffer_size // 256 + 1)
    bodies = [b"first", large, large] + [str(number).encode() for number in range(100)]
    for body in bodies:
        peer.publish("large", body)
    found = Peer_with_prefetch(broker).consume("large", arguments={"x-stream-offset": 0, "x-stream-pack-records": 1000})
    records = [record for each in found for record in packed.unpack(each[3])]
    assert [(record[0], record[5]) for record in records] == list(enumerate(bodies))
    assert max([len(each[3]) for each in found if each[2]["headers"]["x-stream-records"] > 1]) < broker.limits.send_buffer_size


def Peer_with_prefetch(broker):
    """One more peer, prefetch 100."""
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 100, False)
    return peer


def test_kept_offsets():
    """x-stream-consumer: the stream remembers what was settled; stored without a memory is first."""
    broker, peer = stream_of(6)
    assert offsets(consume_with(peer, consumer="job", offset="stored")) == [0, 1, 2, 3, 4, 5]
    peer.give(encoded("basic_ack", 1, 3, True))
    peer.connection.received(0)
    peer = Peer_with_prefetch(broker)
    assert offsets(consume_with(peer, consumer="job")) == [3, 4, 5]
    peer.give(encoded("basic_ack", 1, 0, True))
    peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
    assert offsets(consume_with(peer, consumer="job", offset="stored")) == []
    assert broker.queues["s"].kept == {"job": 6}


def test_filters():
    """x-stream-filter, x-stream-match-unfiltered (RabbitMQ 3.13, where an empty value is none)."""
    _, peer = stream_of(0)
    for value in ("a", "b", None, "c", "a", ""):
        peer.publish("s", b"x", given={} if value is None else {"headers": {"x-stream-filter-value": value}})
    for index, (wanted, unfiltered, expected) in enumerate(
        (("a", False, [0, 4]), (["b", "c"], False, [1, 3]), ("a", True, [0, 2, 4, 5]), (["b", ""], False, [1, 2, 5]))
    ):
        found = consume_with(peer, "c%d" % index, offset="first", filter=wanted, match_unfiltered=unfiltered)
        assert [each[2]["headers"]["x-stream-offset"] for each in found] == expected


def test_old_messages_go():
    """x-max-age."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "1m"})
    for second in (0, 30, 59):
        broker.tick(second * 1000, EPOCH + 1000 + second)
        peer.publish("s", b"x")
    broker.tick(61000, EPOCH + 1061)
    assert state(peer)[:2] == (1, 3)
    for bad in ("soon", "5", "0s", 5):
        other = Peer(broker)
        other.give(encoded("queue_declare", 1, 0, "t", False, True, False, False, False, {"x-queue-type": "stream", "x-max-age": bad}))
        assert other.expect("channel_close")[0] == 406


def test_idempotent_publish():
    """x-publisher-id and x-publisher-sequence: confirmed again, appended once."""
    broker, peer = stream_of(0)
    peer.ask("confirm_select", "confirm_select_ok", False)
    for name, sequence in (("p", 1), ("p", 2), ("p", 2), ("q", 2), ("p", 1), ("p", 3)):
        peer.publish("s", b"x", given={"headers": {"x-publisher-id": name, "x-publisher-sequence": sequence}})
    assert peer.frames()[-1][2][0] == 6 and state(peer)[:2] == (0, 4) and broker.queues["s"].publishers.doubles == 2


def test_a_message_larger_than_its_stream_may_be_is_kept_while_it_is_the_last():
    """x-max-length-bytes: a stream is never emptied by its own size."""
    broker, peer = stream_of(0)
    for number in range(3):
        peer.publish("s", bytes([48 + number]) + bytes(2500))
        assert state(peer)[:2] == (number, number + 1)
    assert offsets(peer.consume("s", arguments={"x-stream-offset": "first"})) == [2]


def test_a_stream_that_a_policy_has_made_smaller_shrinks_in_turns():
    """Retention by octets drops no more than 64 messages for one that comes (a turn is bounded), the oldest first, and then no more than
    it has to."""
    broker = new_broker(arena_size=1 << 18, message_count_max=512, entry_count_max=1024)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    stream = broker.queues["s"]
    for number in range(200):
        peer.publish("s", b"%03d" % number + bytes(20))
    size = stream.size // 200
    assert stream.message_count() == 200
    broker.policies.set(broker, Policy("small", "", {"max-length-bytes": 20 * size}, 0, "streams"))
    counts = []
    for number in range(200, 204):
        peer.publish("s", b"%03d" % number + bytes(20))
        counts.append(stream.message_count())
    assert counts == [137, 74, 20, 20] and stream.first_offset == 184


def test_every_offset_is_where_a_reader_begins():
    """Of streams of one message to nine, from either end."""
    for count in range(1, 10):
        _, peer = stream_of(count)
        for offset in range(count):
            tag = "from %d" % offset
            assert offsets(peer.consume("s", tag, arguments={"x-stream-offset": offset})) == list(range(offset, count))
            peer.ask("basic_cancel", "basic_cancel_ok", tag, False)


def test_a_partitioned_stream():
    """Streams bound to an x-consistent-hash exchange: one key always goes to one partition, and keys spread over all of them."""
    broker = new_broker(queue_count_max=20)
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "telemetry", "x-consistent-hash", False, True, False, False, False, {})
    for number in range(3):
        name = "telemetry-%d" % number
        peer.declare(name, durable=True, arguments={"x-queue-type": "stream"})
        peer.ask("queue_bind", "queue_bind_ok", 0, name, "telemetry", "1", False, {})
    for _ in range(2):
        for device in range(20):
            peer.publish("device-%d" % device, b"x", "telemetry")
    counts = [broker.queues["telemetry-%d" % number].message_count() for number in range(3)]
    assert sum(counts) == 40 and min(counts) > 0 and [count % 2 for count in counts] == [0, 0, 0], counts


def test_names_of_readers_are_bounded_over_all_streams():
    """offset_count_max: basic.consume with a further x-stream-consumer is refused with 506; a known name is not."""
    broker = new_broker(offset_count_max=2)
    peer = Peer(broker)
    for name in ("s", "t", "u"):
        peer.declare(name, durable=True, arguments={"x-queue-type": "stream"})
    peer.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    peer.consume("s", "c1", arguments={"x-stream-consumer": "one"})
    peer.consume("t", "c2", arguments={"x-stream-consumer": "two"})
    peer.ask("basic_cancel", "basic_cancel_ok", "c2", False)
    peer.consume("t", "c2", arguments={"x-stream-consumer": "two"})
    peer.consume("s", "c3", arguments={"x-stream-consumer": "one"})
    peer.give(encoded("basic_consume", 1, 0, "u", "c4", False, False, False, False, {"x-stream-consumer": "three"}))
    assert peer.expect("connection_close")[0] == 506


def test_a_filter_is_bounded():
    """x-stream-filter: what a consumer keeps counts by argument_size_max; a table of a whole frame is not kept."""
    broker = new_broker(argument_size_max=1024)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    peer.consume("s", "c1", arguments={"x-stream-filter": ["word", "other"]})
    peer.give(encoded("basic_consume", 1, 0, "s", "c2", False, False, False, False, {"x-stream-filter": ["w"] * 50}))
    assert peer.expect("channel_close")[0] == 406
