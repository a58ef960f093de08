"""What the broker says of a message stands apart from its publisher's octets (core/message/annotations.py), which are never rewritten; a
receiver gets both together: in memory and with a log, from queues, streams and packs."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, content, encoded, idle, new_broker, taken
from toy_family import ToyPeer, installed

from leveret.core.amqp_0_9 import packed, properties
from leveret.core.memory import invariants, layout
from leveret.core.message import annotations, reading
from leveret.core.message.annotations import GONE
from leveret.core.recovery import record_check
from leveret.core.stream.stream import EPOCH

HOPS = 10
ROOM = {"properties_size_max": 3000, "receive_buffer_size": 8192, "send_buffer_size": 8192, "arena_size": 60000}
GIVEN = {
    "content_type": "text/plain",
    "headers": {"a": 1, "deep": {"list": [1, "two", None, 2.5, True, b"\xff"]}, "when": ("T", 77), "CC": ["nowhere"]},
    "delivery_mode": 2,
    "priority": 3,
    "expiration": "1000000",
    "message_id": "m",
}


def brokers(**overrides):
    """In memory and with a log."""
    values = dict(ROOM, **overrides)
    yield new_broker(**values)
    yield durable_broker(MemoryStore(), **values)[0]


def head_of(broker, name):
    """The message at the head of a queue."""
    return broker.tables.entries[broker.queues[name].head() + layout.ENTRY_MESSAGE]


def octets_of(broker, name):
    """What its publisher sent."""
    return broker.tables.properties_of(head_of(broker, name))


def is_annotated(broker, name):
    """Whether its kind says that it has annotations."""
    return broker.tables.messages[head_of(broker, name) + layout.MESSAGE_KIND] & layout.KIND_ANNOTATED != 0


def letters_to(name, exchange=""):
    """A queue's arguments for dead letters that go to another one."""
    return {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": name}


def reject_head(peer, name):
    """Get the message at the head of a queue and reject it: its properties as they came."""
    peer.give(encoded("basic_get", 1, 0, name, False))
    [(_, arguments, given, _)] = peer.contents()
    peer.give(encoded("basic_reject", 1, arguments[0], False))
    assert peer.frames() == []
    return given


def raised(function, *arguments):
    """True when a call raises what a reader of annotations may."""
    try:
        function(*arguments)
    except (ValueError, IndexError, KeyError, RuntimeError, UnicodeError):
        return True
    except Exception as error:  # struct.error, which MicroPython has not
        return "error" in type(error).__name__
    return False


def test_annotations_are_read_as_they_were_written():
    given = {
        "headers": {"x-death": [{"count": ("l", 7), "key": ("S", b"\xff"), "none": None}], "CC": GONE, "t": True, "f": False},
        "expiration": GONE,
        "reply_to": "texte \u20ac",
        "numbers": [0, -1, (1 << 63) - 1, -(1 << 63), 2.5, ("T", (1 << 64) - 1), b"", b"\x00", [], {}],
    }
    octets = annotations.write(given)
    assert annotations.read(octets, True) == given
    plain = annotations.read(octets)
    assert plain["headers"]["x-death"] == [{"count": 7, "key": b"\xff", "none": None}] and plain["headers"]["CC"] is GONE
    assert annotations.read(annotations.write({"k": ("S", b"text")}), True) == {"k": "text"}


def test_annotations_have_a_largest_size():
    most = annotations.SIZE_MAX - 5
    assert len(annotations.write({"n": "x" * most})) == 2 + annotations.SIZE_MAX
    for given in ({"n": "x" * (most + 1)}, {"n": "x" * 70000}, {"n": [None] * 70000}, {"n": {"m": ["x" * 66000]}}):
        assert raised(annotations.write, given)


def test_octets_that_are_no_annotations_are_refused():
    octets = annotations.write({"headers": {"a": [1, "two", {"c": b"3"}], "gone": GONE}, "d": 2.5})
    for end in range(len(octets)):
        assert raised(annotations.read, octets[:end])
        inner = octets[2:end]
        whole = bytes((len(inner) >> 8, len(inner) & 255)) + inner
        assert raised(annotations.read, whole) or annotations.write(annotations.read(whole, True)) == whole, end
    deep = []
    for _ in range(annotations.DEPTH_MAX + 1):
        deep = [deep]
    assert raised(annotations.read, annotations.write({"d": deep}))
    assert raised(annotations.read, b"\x00\x03\x01kz")


def test_what_receivers_get_is_the_properties_with_the_annotations_over_them():
    """By name (put_over) and as octets of class basic (merge) it is the same; what no annotation names stays octet for octet."""
    for given, changes in (
        (GIVEN, {}),
        (GIVEN, {"expiration": GONE}),
        (GIVEN, {"headers": {"a": GONE, "new": "n", "deep": 5}, "reply_to": "r", "priority": GONE}),
        (GIVEN, {"headers": {"a": GONE, "deep": GONE, "when": GONE, "CC": GONE}}),
        ({}, {"headers": {"a": GONE}, "expiration": GONE}),
        ({}, {"headers": {"a": 1}, "message_id": "i"}),
        ({"message_id": "i"}, {"headers": {}}),
    ):
        octets = properties.encode(given)
        merged = properties.merge(octets, changes)
        wanted = annotations.put_over(properties.decode_all(octets), changes)
        assert properties.decode_all(merged) == wanted, (given, changes)
        for name in wanted:
            if name != "headers":
                assert reading.given(changes, properties.field_in, octets, name) == wanted[name], (given, changes, name)
        headers = wanted.get("headers", {})
        for name in list(headers) + ["a", "deep", "new"]:
            assert reading.given(changes.get("headers"), properties.header, octets, name) == headers.get(name), (given, changes, name)
    assert properties.merge(properties.encode(GIVEN), {}) == properties.encode(GIVEN)
    twice = (
        b"\x20\x00" + (13).to_bytes(4, "big") + b"\x01bt\x07" + b"\x01au\x00\x01" + b"\x01bt\x00"
    )  # true written as 7, a name that comes twice
    assert properties.merge(twice, {"headers": {"c": None}}) == b"\x20\x00\x00\x00\x00\x10" + twice[6:] + b"\x01cV"


def test_ten_dead_letters_leave_the_publishers_octets_as_they_are():
    """Section 4.2.6.1; x-death as RabbitMQ writes it."""
    for broker in brokers():
        peer = Peer(broker)
        names = ["h%d" % number for number in range(HOPS + 1)]
        for number, name in enumerate(names):
            peer.declare(name, True, arguments=letters_to(names[number + 1]) if number < HOPS else {})
        before = idle(broker)
        peer.publish("h0", b"body" * 100, given=GIVEN)
        octets = octets_of(broker, "h0")
        assert octets == properties.encode(GIVEN) and not is_annotated(broker, "h0")
        for number in range(HOPS):
            given = reject_head(peer, names[number])
            deaths = (given["headers"] or {}).get("x-death", [])
            assert [each["queue"] for each in deaths] == names[:number][::-1]
            assert octets_of(broker, names[number + 1]) == octets and is_annotated(broker, names[number + 1])
            invariants.check(broker.tables)
        merged = reading.merged(broker.tables, head_of(broker, names[-1]))
        assert b"\x05countl\x00" in merged and b"\x04timeT" in merged and b"\x0crouting-keysA\x00\x00\x00\x13S\x00\x00\x00\x02h0S" in merged
        [(given, body)] = taken(peer, names[-1])
        assert body == b"body" * 100
        headers = given["headers"]
        assert [each.pop("time")[0] for each in headers["x-death"]] == ["T"] * HOPS
        assert headers["x-death"][-1] == {
            "count": 1,
            "reason": "rejected",
            "queue": "h0",
            "exchange": "",
            "routing-keys": ["h0", "nowhere"],
            "original-expiration": "1000000",
        }
        assert [each["routing-keys"] for each in headers["x-death"][:-1]] == [[name] for name in names[HOPS - 1 : 0 : -1]]
        told = {name: headers.pop(name) for name in list(headers) if "-death" in name and name != "x-death"}
        assert told == {
            "x-first-death-reason": "rejected",
            "x-first-death-queue": "h0",
            "x-first-death-exchange": "",
            "x-last-death-reason": "rejected",
            "x-last-death-queue": "h9",
            "x-last-death-exchange": "",
        }
        del headers["x-death"]
        wanted = dict(GIVEN, headers={name: GIVEN["headers"][name] for name in ("a", "deep", "when")})
        del wanted["expiration"]
        assert given == wanted
        broker.run()
        assert idle(broker) == before


def test_a_death_in_the_same_queue_is_counted_and_a_publishers_history_is_taken_over():
    for broker in brokers():
        peer = Peer(broker)
        peer.declare("a", True, arguments=letters_to("b"))
        peer.declare("b", True, arguments=letters_to("a"))
        history = {"x-death": [{"queue": "a", "reason": "rejected", "count": 4, "mine": 1}, "no table"], "x-first-death-reason": "mine"}
        peer.publish("a", b"", given={"headers": history})
        octets = octets_of(broker, "a")
        for _ in range(3):
            reject_head(peer, "a")
            reject_head(peer, "b")
        assert octets_of(broker, "a") == octets
        [(given, _)] = taken(peer, "a")
        assert [(each["queue"], each["count"]) for each in given["headers"]["x-death"]] == [("b", 3), ("a", 7)]
        assert given["headers"]["x-death"][1]["mine"] == 1 and given["headers"]["x-first-death-reason"] == "mine"


def test_rules_see_what_receivers_get():
    """Headers exchange and selector behind a dead letter; the cycle of dead letters that nobody rejected."""
    for broker in brokers(binding_share_max=8):
        peer = Peer(broker)
        for name in ("by-header", "by-selector"):
            peer.declare(name, True)
        peer.declare("q", True, arguments={"x-dead-letter-exchange": "amq.headers", "x-message-ttl": 100})
        peer.ask(
            "queue_bind", "queue_bind_ok", 0, "by-header", "amq.headers", "", False, {"x-match": "all-with-x", "x-first-death-queue": "q"}
        )
        peer.publish("q", b"old", given={"expiration": "50"})
        broker.tick(300, EPOCH + 1)
        broker.run()
        assert broker.queues["by-header"].message_count() == 1
        [(given, _)] = taken(peer, "by-header")
        assert given["headers"]["x-death"][0]["original-expiration"] == "50" and "expiration" not in given
        peer.declare("round", True, arguments=dict(letters_to("round"), **{"x-message-ttl": 100}))
        peer.publish("round", b"circles")
        for now in range(600, 2000, 200):
            broker.tick(now, EPOCH + 2)
            broker.run()
        assert broker.queues["round"].message_count() == 0 and broker.counters["internal_errors"] == 0


def test_bcc_and_the_direct_reply_queue_are_annotations():
    """RabbitMQ: nobody but its publisher sees BCC, and a request's reply-to names the queue of the one who asks."""
    for broker in brokers():
        peer = Peer(broker)
        peer.declare("a", True)
        peer.declare("hidden", True)
        given = {"headers": {"BCC": ["hidden"], "x": 1}, "message_id": "i"}
        peer.publish("a", b"body", given=given)
        for name in ("a", "hidden"):
            assert octets_of(broker, name) == properties.encode(given)
            assert taken(peer, name) == [({"headers": {"x": 1}, "message_id": "i"}, b"body")]
        peer.publish("nobody", b"body", given={"headers": {"BCC": []}}, mandatory=True)
        [(name, arguments, given, body)] = peer.contents()
        assert (name, given, body) == ("basic_return", {"headers": {}}, b"body")
        peer.consume("amq.rabbitmq.reply-to", no_ack=True)
        peer.publish("a", b"ask", given={"reply_to": "amq.rabbitmq.reply-to"})
        assert octets_of(broker, "a") == properties.encode({"reply_to": "amq.rabbitmq.reply-to"})
        other = Peer(broker)
        [(given, _)] = taken(other, "a")
        assert given["reply_to"].startswith("amq.rabbitmq.reply-to.")
        other.publish(given["reply_to"], b"answer")
        assert [each[3] for each in peer.contents()] == [b"answer"]
        invariants.check(broker.tables)


def test_a_large_annotated_body_goes_out_whole():
    """deliver.py, outgoing.py: what does not fit in the send buffer at once."""
    for broker in brokers(arena_size=200000, content_size_max=60000):
        peer = Peer(broker)
        peer.declare("a", True)
        body = bytes(range(256)) * 150
        given = {"headers": {"BCC": ["hidden"], "x": 1}}
        peer.publish("a", body, given=given)
        [(_, _, given, found)] = peer.consume("a")
        assert (given, found) == ({"headers": {"x": 1}}, body)


def annotated_log(**values):
    """A store whose queue q has dead letters among others, with a broker and what a receiver is to get: [(properties, body)]."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=4096, **dict(ROOM, **values))
    peer = Peer(broker)
    peer.declare("q", True)
    peer.declare("from", True, arguments=letters_to("q"))
    wanted = []
    for number in range(12):
        body = b"%06d" % number
        if number % 3:
            peer.give(content(1, "", "q", body, GIVEN))
            wanted.append((GIVEN, body))
        else:
            peer.give(content(1, "", "from", body, GIVEN))
            reject_head(peer, "from")
            wanted.append((None, body))
    broker.run()
    return store, broker, peer, wanted


def see(found, wanted):
    """Compare what a receiver gets; None: the properties of a dead letter."""
    assert [body for _, body in found] == [body for _, body in wanted]
    for (given, _), (expected, _) in zip(found, wanted):
        if expected is None:
            assert given["headers"]["x-death"][0]["queue"] == "from" and "expiration" not in given and given["priority"] == 3, given
        else:
            assert given == expected


def test_annotations_survive_a_power_cut():
    store, _, _, wanted = annotated_log()
    broker, report = durable_broker(store.cut(), **ROOM)
    assert "recovered 12 messages" in report, report
    assert octets_of(broker, "q") == properties.encode(GIVEN) and is_annotated(broker, "q")
    invariants.check(broker.tables)
    see(taken(Peer(broker), "q"), wanted)


def test_annotations_are_copied_forward():
    store, broker, peer, wanted = annotated_log()
    peer.declare("other", True)
    first = min(store.segments)
    for number in range(400):
        peer.give(content(1, "", "other", bytes(100), {"delivery_mode": 2}))
        assert len(taken(peer, "other")) == 1
        broker.tick(number * 100, EPOCH + number)
        broker.run()
    assert broker.journal.log.counters["log_copied_forward"] > 0 and min(store.segments) > first
    again, _ = durable_broker(store.cut(), **ROOM)
    see(taken(Peer(again), "q"), wanted)


def test_annotations_come_back_from_beyond_memory():
    store, _, _, wanted = annotated_log()
    broker, _ = durable_broker(store.cut(), **dict(ROOM, arena_size=16384, message_count_max=16, entry_count_max=20, content_size_max=1024))
    assert broker.queues["q"].pages.count > 0
    see(taken(Peer(broker), "q"), wanted)


def test_a_record_whose_annotations_make_no_sense_costs_only_itself():
    """core/recovery/record_check.py."""
    from leveret.core.log import message_record, segments

    _, broker, _, _ = annotated_log()
    message = head_of(broker, "q")
    record = b"".join(broker.journal.parts_of(message, [message_record.place(1, 0)]))
    assert record_check.fault_of(segments.MESSAGE, record, 0, len(record)) == ""
    heads = message_record.heads_at(record, 0)
    at = message_record.properties_at(0, heads) - heads[3]
    kind = record.index(heads[6].to_bytes(4, "big"))
    for place, value in ((at, 9), (at + 1, 0), (at + 2, 200), (at + 3, 255), (kind + 1, record[kind + 1] & ~4)):
        wrong = bytearray(record)
        wrong[place] = value
        assert record_check.fault_of(segments.MESSAGE, bytes(wrong), 0, len(wrong)) != "", place


def streams():
    """Brokers with a stream whose second message is a dead letter, and a peer that may read it."""
    for broker in brokers(arena_size=200000, content_size_max=60000):
        peer = Peer(broker)
        peer.declare("s", True, arguments={"x-queue-type": "stream"})
        peer.declare("from", True, arguments=letters_to("s"))
        yield broker, peer


def test_a_stream_gives_its_offset_beside_annotations():
    for _, peer in streams():
        for number in range(4):
            if number % 2:
                peer.publish("from", b"%d" % number, given=GIVEN)
                reject_head(peer, "from")
            else:
                peer.publish("s", b"%d" % number, given=GIVEN)
        peer.ask("basic_qos", "basic_qos_ok", 0, 100, False)
        found = peer.consume("s", arguments={"x-stream-offset": 0})
        assert [(each[2]["headers"]["x-stream-offset"], each[3]) for each in found] == [(n, b"%d" % n) for n in range(4)]
        assert ["x-death" in each[2]["headers"] for each in found] == [False, True, False, True]
        assert ["expiration" in each[2] for each in found] == [True, False, True, False]


def test_packs_have_what_receivers_get():
    """amqp_0_9/packed.py: also of a record that no send buffer holds, and as many as there are in a row."""
    large = bytes(range(256)) * 150
    for broker, peer in streams():
        bodies = [b"0", b"1", large, b"3", large, b"5", b"6", b"7"]
        dead = (1, 2, 5, 6)
        for number, body in enumerate(bodies):
            peer.publish("from" if number in dead else "s", body, given=GIVEN)
            if number in dead:
                reject_head(peer, "from")
        peer.ask("basic_qos", "basic_qos_ok", 0, 100, False)
        found = peer.consume("s", arguments={"x-stream-offset": 0, "x-stream-pack-records": 1000})
        records = [record for each in found for record in packed.unpack(each[3])]
        assert [(record[0], record[5]) for record in records] == list(enumerate(bodies))
        for number, record in enumerate(records):
            given = properties.decode_all(record[4])
            assert ("x-death" in given["headers"], "expiration" in given) == (number in dead, number not in dead), number
            assert record[6] == layout.KIND_DURABLE | layout.KIND_HAS_PRIORITY | 3 << layout.KIND_PRIORITY
            if number not in dead:
                assert record[4] == properties.encode(GIVEN)
        invariants.check(broker.tables)


def test_a_message_of_another_family_keeps_its_octets_too():
    """Both families get the history of what the other one published."""
    with installed():
        for broker in brokers():
            peer, toy = Peer(broker), ToyPeer(broker)
            peer.declare("a", True, arguments=letters_to("b"))
            peer.declare("b", True, arguments=letters_to("c"))
            peer.declare("c", True)
            for publish in (
                lambda: toy.ask("publish", "", "a", "body", {"delivery_mode": 2, "headers": {"x": 1}, "expiration": "100000"}),
                lambda: peer.publish("a", b"body", given={"delivery_mode": 2, "headers": {"x": 1}, "expiration": "100000"}),
            ):
                for reader in ("toy", "0-9-1"):
                    publish()
                    octets = octets_of(broker, "a")
                    reject_head(peer, "a")
                    reject_head(peer, "b")
                    assert octets_of(broker, "c") == octets
                    if reader == "toy":
                        [line] = [each for each in toy.ask("subscribe", "c", "t", 0, True) if each[0] == "message"]
                        given, body = line[7], line[6]
                        toy.ask("cancel", "t")
                    else:
                        [(given, body)] = taken(peer, "c")
                        body = str(body, "utf-8")
                    assert body == "body" and given["headers"]["x"] == 1 and "expiration" not in given
                    deaths = given["headers"]["x-death"]
                    assert [(each["queue"], each["count"]) for each in deaths] == [("b", 1), ("a", 1)]
                    assert deaths[1]["original-expiration"] == "100000" and given["headers"]["x-first-death-queue"] == "a"


def test_poison_is_told_in_annotations():
    from leveret.core.broker import poison

    for broker in brokers():
        peer = Peer(broker)
        peer.declare("q", True)
        peer.publish("q", b"body", given=GIVEN)
        octets = octets_of(broker, "q")
        assert poison.keep(broker, broker.queues["q"], broker.queues["q"].head(), "why")
        assert octets_of(broker, poison.NAME) == octets
        [(given, body)] = taken(peer, poison.NAME)
        assert given["headers"]["x-poison-reason"] == "why" and "expiration" not in given and body == b"body"
