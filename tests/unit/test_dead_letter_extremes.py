"""What a publisher may write into a message that later becomes a dead letter (core/queue/features/dead_letter.py): nothing of it ends the
broker, costs a consumer its connection, or loses the message. Sections 1.7.2.1 (arguments) and 4.2.5.5 (tables) of 0-9-1; RabbitMQ's
x-death."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, assemble, encoded, idle, new_broker

from leveret.core.amqp_0_9 import field_table, frame
from leveret.core.broker.policies import Policy
from leveret.core.memory import layout
from leveret.core.message import annotations
from leveret.core.message.annotations import GONE
from leveret.core.outcomes import REJECTED
from leveret.core.queue.dead_letters import LETTERS_MAX
from leveret.core.queue.features.dead_letter import annotated
from leveret.core.queue.features.feature import Feature
from leveret.core.stream.stream import EPOCH

MOST = (1 << 63) - 1  # of a signed 64-bit integer
LETTER = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def raw(table, key=b"q", exchange=b""):
    """A persistent publish whose table of headers has these encoded pairs, for exchange and key (bytes)."""
    given = b"\x30\x00" + len(table).to_bytes(4, "big") + table + b"\x02"
    route = bytes((len(exchange),)) + exchange + bytes((len(key),)) + key
    return (
        frame.encode(frame.METHOD, 1, b"\x00\x3c\x00\x28\x00\x00" + route + b"\x00")
        + frame.encode(frame.HEADER, 1, b"\x00\x3c\x00\x00" + (4).to_bytes(8, "big") + given)
        + frame.encode(frame.BODY, 1, b"body")
    )


def pair(name, value):
    """An encoded pair of a table."""
    return field_table.shortstr(name) + value


def pass_time(broker, milliseconds):
    """Let time pass in steps of 100 ms."""
    for _ in range(milliseconds // 100):
        broker.tick((broker.now + 100) & 0x3FFFFFFF, EPOCH + broker.seconds)
        broker.run()


def brokers(**overrides):
    """The same with messages in memory and with a log; each with a peer."""
    yield Peer(new_broker(**overrides))
    yield Peer(durable_broker(MemoryStore(), **overrides)[0])


def got(peer, queue):
    """Everything in a queue: (properties, body)."""
    found = []
    while True:
        peer.give(encoded("basic_get", 1, 0, queue, True))
        frames = peer.frames()
        if frames[0][0] == "basic_get_empty":
            return found
        found.append(assemble(frames)[0][2:])


def test_a_key_that_is_not_utf_8_becomes_a_dead_letter_with_its_octets():
    """Section 4.2.5.3: a routing key is any octets; x-death has them as a longstr (S), also when the letter dies once more."""
    for peer in brokers(properties_size_max=600, receive_buffer_size=2048, send_buffer_size=2048):
        broker = peer.broker
        peer.declare("dead", durable=True)
        peer.declare("q", durable=True, arguments=dict(LETTER, **{"x-message-ttl": 1000}))
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.fanout", "", False, {})
        peer.declare("again", durable=True, arguments=dict(LETTER))
        peer.give(raw(b"", b"\xff", b"amq.fanout"))
        pass_time(broker, 1300)
        [(given, body)] = got(peer, "dead")
        assert body == b"body" and given["headers"]["x-death"][0]["routing-keys"] == [b"\xff"]
        peer.publish("again", body, given=given)
        tag = peer.consume("again")[0][1][1]
        peer.give(encoded("basic_nack", 1, tag, False, False))
        [(given, _)] = got(peer, "dead")
        assert [each["routing-keys"] for each in given["headers"]["x-death"]] == [["again"], [b"\xff"]]


def test_a_dead_letter_has_keys_that_are_longstr():
    """The letter of each routing key on the wire is S, whatever its octets."""
    assert field_table.encode_value(("S", b"\xff")) == b"S\x00\x00\x00\x01\xff"
    assert field_table.encode_value(["k", ("S", b"k")]) == b"A\x00\x00\x00\x0cS\x00\x00\x00\x01kS\x00\x00\x00\x01k"


def histories():
    """Values of x-death that a publisher can send, encoded; and the count that the next death has."""

    def table(count):
        names = pair("queue", b"S" + sized(b"q")) + pair("reason", b"S" + sized(b"rejected"))
        return b"A" + sized(b"F" + sized(names + pair("count", count)))

    yield table(field_table.encode_value(("l", MOST))), MOST
    yield table(field_table.encode_value(("l", -MOST - 1))), 1
    yield table(b"T" + bytes([255] * 8)), MOST
    yield table(b"t\x01"), 1
    yield table(b"S" + sized(b"many")), 1
    yield table(b"S" + sized(b"\xff")), 1
    yield table(b"V"), 1
    yield table(b"d" + bytes([0x7F, 0xF8] + [0] * 6)), 1
    yield table(b"F" + sized(b"")), 1
    yield table(b"A" + sized(b"t\x01")), 1
    yield table(b"D\xff\x7f\xff\xff\xff"), 1
    yield table(field_table.encode_value(41)), 42
    for other in (
        b"V",
        b"S" + sized(b"text"),
        b"F" + sized(b""),
        b"t\x00",
        b"A" + sized(b""),
        b"A" + sized(b"V" * 9),
        b"A" + sized(b"F" + sized(b"")),
        b"A" + sized((b"F" + sized(b"")) * 30),
        b"A" + sized(b"F" + sized(pair("queue", b"V") + pair("reason", b"A" + sized(b"")) + pair("t", b"T" + bytes([255] * 8)))),
        b"A" + sized(b"F" + sized(pair("reason", b"S" + sized(b"\xfe")) + pair("routing-keys", b"x" + sized(b"\xff\xfe")))),
    ):
        yield other, 1


def sized(octets):
    """Octets behind their size, as a table's values have it."""
    return len(octets).to_bytes(4, "big") + octets


def test_whatever_a_publisher_writes_into_x_death_the_message_dies_and_is_kept():
    """A count stops at the largest number of its field; what is no history of a death is not taken over; nobody is closed for it."""
    for value, count in histories():
        for peer in brokers():
            broker = peer.broker
            peer.declare("dead", durable=True)
            peer.declare("q", durable=True, arguments=dict(LETTER))
            before = idle(broker)
            peer.give(raw(pair("x-death", value)))
            peer.consume("q")
            peer.give(encoded("basic_nack", 1, 1, False, False))
            assert peer.frames() == [] and broker.counters["internal_errors"] == 0, value
            [(given, body)] = got(peer, "dead")
            death = given["headers"]["x-death"][0]
            assert body == b"body" and (death["queue"], death["reason"], death["count"]) == ("q", "rejected", count), (value, death)
            peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
            broker.run()
            assert idle(broker) == before, value


def test_a_lifetime_of_any_length_is_kept_until_the_end_of_time():
    """x-message-ttl of up to ten years on the target of a dead letter and on any queue: a deadline stops at the last second there is."""
    for lifetime in (1 << 28, 1 << 30, 1 << 31, 1 << 32, 315360000000):
        for peer in brokers():
            broker = peer.broker
            before = idle(broker)
            peer.declare("dead", durable=True, arguments={"x-message-ttl": lifetime})
            peer.declare("q", durable=True, arguments=dict(LETTER))
            peer.give(raw(b"") + raw(b"", b"dead"))
            peer.consume("q")
            peer.give(encoded("basic_nack", 1, 1, False, False))
            assert peer.frames() == [] and broker.counters["internal_errors"] == 0, lifetime
            pass_time(broker, 300)
            assert [body for _, body in got(peer, "dead")] == [b"body", b"body"], lifetime
            peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
            broker.run()
            assert idle(broker) == before, lifetime


def test_a_circle_of_full_queues_is_no_deep_stack():
    """x-max-length and x-dead-letter-exchange in a ring: each letter pushes another one out. Nothing fails, and all come to rest."""
    names = ["ring%d" % number for number in range(5)]
    for peer in brokers(
        message_count_max=1024,
        entry_count_max=1024,
        arena_size=1 << 20,
        properties_size_max=1024,
        receive_buffer_size=2048,
        send_buffer_size=2048,
    ):
        broker = peer.broker
        before = idle(broker)
        for number, name in enumerate(names):
            peer.declare(
                name,
                durable=True,
                arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": names[number - 1], "x-max-length": 40},
            )
        for number in range(260):
            peer.publish(names[number % 5], b"x", given={"delivery_mode": 2})
        assert peer.frames() == [] and broker.counters["internal_errors"] == 0
        pass_time(broker, 3000)
        assert [len(got(peer, name)) for name in names] == [40] * 5
        for name in names:
            peer.ask("queue_delete", "queue_delete_ok", 0, name, False, False, False)
        broker.run()
        assert idle(broker) == before


def test_a_queue_that_lets_go_of_hundreds_has_a_part_of_each_round():
    """The others have their turns meanwhile: at most LETTERS_MAX dead letters a round, in their order, whatever sets them off."""
    count = 2 * LETTERS_MAX + 10
    for way in ("expired", "rejected", "maxlen"):
        broker = new_broker(message_count_max=1024, entry_count_max=1024, arena_size=1 << 19)
        peer = Peer(broker)
        before = idle(broker)
        peer.declare("dead")
        peer.declare("q", arguments=dict(LETTER, **({"x-message-ttl": 1000} if way == "expired" else {})))
        for number in range(count):
            peer.publish("q", b"%d" % number, given={"headers": {"says": "death"}})  # C leaves those to Python: it has bounds of its own
        dead = broker.queues["dead"]
        if way == "rejected":
            peer.consume("q")
            channel = list(peer.connection.sessions())[0]
            first, last = [
                broker.tables.channels[channel.handle + field] for field in (layout.CHANNEL_UNSETTLED_HEAD, layout.CHANNEL_UNSETTLED_TAIL)
            ]
            broker.consumers.settle(channel, first, last, REJECTED)
        elif way == "expired":
            for _ in range(13):
                broker.tick((broker.now + 100) & 0x3FFFFFFF, EPOCH + broker.seconds)
        else:
            broker.policies.set(broker, Policy("short", "^q$", {"max-length": 0}, 0, "queues"))
        assert dead.message_count() <= LETTERS_MAX, way
        rounds = 0
        while broker.has_active():
            seen = dead.message_count()
            broker.run()
            rounds += 1
            assert dead.message_count() - seen <= LETTERS_MAX, way
        assert rounds >= 2, (way, rounds)
        assert [body for _, body in got(peer, "dead")] == [b"%d" % number for number in range(count)], way
        if way == "maxlen":
            broker.policies.remove(broker, "short")
        if way == "rejected":
            peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
        for name in ("q", "dead"):
            peer.ask("queue_delete", "queue_delete_ok", 0, name, False, False, False)
        broker.run()
        assert idle(broker) == before, way


def test_digits_of_other_scripts_are_no_numbers():
    """expiration and x-delay are decimal digits: what Unicode calls a digit beside them is refused, or counts as none."""
    for text in ("\u00b2", "\u0661", "1\u00b2"):
        broker = new_broker()
        peer = Peer(broker)
        peer.declare("q", arguments={"x-message-ttl": 1000})
        peer.publish("q", b"x", given={"expiration": text})
        assert peer.expect("channel_close")[0] == 406 and broker.counters["internal_errors"] == 0
        peer = Peer(broker)
        peer.ask(
            "exchange_declare",
            "exchange_declare_ok",
            0,
            "later",
            "x-delayed-message",
            False,
            False,
            False,
            False,
            False,
            {"x-delayed-type": "fanout"},
        )
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "later", "", False, {})
        peer.publish("", b"x", "later", {"headers": {"x-delay": text}})
        assert [body for _, body in got(peer, "q")] == [b"x"] and broker.counters["internal_errors"] == 0


def test_a_dead_letter_that_cannot_be_made_leaves_no_record_behind():
    """Section 3.1.5 of the design (every record has an owner): the copy goes when the queue that it was for raises."""

    class Broken(Feature):
        def pushed(self, broker, queue, message, entry):
            raise ValueError("broken")

    for peer in brokers():
        broker = peer.broker
        peer.declare("dead", durable=True, arguments={"x-message-ttl": 100000})
        peer.declare("q", durable=True, arguments=dict(LETTER))
        before = idle(broker)[1]
        peer.give(raw(b""))
        broker.queues["dead"].rules.features.append(Broken())
        broker.queues["dead"].update_plain()
        peer.consume("q")
        peer.give(encoded("basic_nack", 1, 1, False, False))
        assert peer.frames() == []
        broker.queues["dead"].rules.features.pop()
        peer.ask("queue_purge", "queue_purge_ok", 0, "dead", False)
        for name in [each for each in ("leveret.poison",) if each in broker.queues]:
            assert [body for _, body in got(peer, name)] == [b"body"]
        broker.run()
        assert idle(broker)[1] == before


class Sized:
    """Properties whose size is 10 octets and 10 for each death."""

    def merge(self, octets, changes):
        return bytes(10 + 10 * len(changes["headers"].get("x-death", ())))


def test_a_history_that_just_fits_is_kept_whole_and_a_longer_one_as_far_as_it_just_fits():
    """x-death: the oldest deaths are left out where the properties would pass their largest size, and no others."""
    for deaths, size_max, kept in ((3, 40, 3), (3, 39, 2), (7, 40, 3), (7, 30, 2), (7, 79, 6), (2, 10, 0)):
        told = {"x-death": [{"count": number} for number in range(deaths)]}
        found = annotations.read(annotated(Sized(), b"", {"expiration": GONE}, told, size_max))
        assert found == {"expiration": GONE, "headers": {"x-death": told["x-death"][:kept]}}, (deaths, size_max)


def test_a_history_that_does_not_fit_at_all_leaves_what_was_said_before():
    for before in ({"expiration": GONE}, {"headers": {"CC": GONE, "x-death": [{"count": 7}]}}):
        assert annotations.read(annotated(Sized(), b"", before, {"x-death": [{}]}, 9)) == before


def test_a_history_of_more_octets_than_annotations_have_loses_its_oldest_deaths():
    """core/message/annotations.py: SIZE_MAX, of which ANNOTATIONS_MAX are for histories."""
    told = {"x-death": [{"text": "x" * 9000} for _ in range(20)]}
    found = annotated(Sized(), b"", {}, told, 1 << 20)
    assert annotations.read(found) == {"headers": {"x-death": told["x-death"][:7]}}
    told = {"x-death": [{}], "x-last-death-queue": "x" * 70000}
    assert annotations.read(annotated(Sized(), b"", {"expiration": GONE}, told, 1 << 20)) == {"expiration": GONE}
