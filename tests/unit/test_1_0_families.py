"""Messages of AMQP 1.0 and 0-9-1 in one broker, two connections: what rules, exchanges and receivers read of either."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, encoded, new_broker, taken
from peer_1_0 import Peer as Peer10
from peer_1_0 import performative
from sections_1_0 import message

from leveret.core.amqp_1_0 import sections
from leveret.core.amqp_1_0.properties import facts
from leveret.core.memory.layout import EPOCH

STREAM = {"x-queue-type": "stream"}


def both(broker=None, **limits):
    """(broker, a peer of 0-9-1, one of 1.0)."""
    broker = broker or new_broker(properties_size_max=1024, receive_buffer_size=8192, send_buffer_size=8192, **limits)
    return broker, Peer(broker), Peer10(broker)


def send(peer, octets, number=0, handle=0, **given):
    """A message (bytes) in one transfer: the state it comes to."""
    fields = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
    fields.update(given)
    peer.give(performative("transfer", 0, octets, handle=handle, **fields))
    if fields.get("more"):
        return None
    states = [frame[1]["state"][0] for frame in peer.frames() if frame[0] == "disposition"]
    assert len(states) == 1, states
    return states[0]


def came(peer):
    """The messages (bytes) that have come to a peer of 1.0, each in one transfer or in several."""
    messages = []
    goes_on = False
    for name, fields, octets, _ in peer.frames():
        if name == "transfer":
            if goes_on:
                messages[-1] += octets
            else:
                messages.append(octets)
            goes_on = fields["more"]
    return messages


def said(octets):
    """(facts, octets of the body) of a message."""
    at, _, _ = sections.split(octets, 0, len(octets))
    return facts(octets, 0, at), octets[at:]


WHOLE = message(
    b"abc",
    b"def",
    (sections.FOOTER, {("symbol", "f"): 1}),
    header={"durable": True, "first-acquirer": True},
    noted={"x-opt-a": ("array", "symbol", ["b"])},
    properties={"message-id": ("ulong", 5), "absolute-expiry-time": 1, "group-id": "g", "group-sequence": 7, "content-encoding": "gzip"},
    application={"a": ("decimal32", b"1234"), "": ("char", "\u20ac")},
)


def test_a_receiver_of_1_0_gets_what_a_sender_of_1_0_sent_octet_for_octet():
    """With a log and without, in one transfer and in several."""
    for broker in (new_broker(), durable_broker(MemoryStore())[0]):
        _, basic, ten = both(broker)
        basic.declare("q", True)
        ten.sender()
        assert send(ten, WHOLE) == "accepted"
        for at in range(0, len(WHOLE), 7):
            send(ten, WHOLE[at : at + 7], 1, more=at + 7 < len(WHOLE))
        ten.receiver()
        assert came(ten) == [WHOLE, WHOLE]
        assert broker.counters["internal_errors"] == 0


def test_a_message_survives_the_end_of_its_broker_octet_for_octet():
    store = MemoryStore()
    broker, _ = durable_broker(store)
    _, basic, ten = both(broker)
    basic.declare("q", True)
    ten.sender()
    value = message((sections.VALUE, None), header={"durable": True, "priority": 3, "ttl": 500000})
    bare = message(header={"durable": True})
    for number, octets in enumerate((WHOLE, value, bare)):
        assert send(ten, octets, number) == "accepted"
    broker, report = durable_broker(store.cut())
    assert "damage" not in report, report
    _, basic, ten = both(broker)
    ten.receiver(credit=3)
    # They may have been delivered before: redelivered to 0-9-1, a delivery-count of 1 to 1.0 (section 3.2.1). All else is as it was.
    heads = ({"durable": True, "first-acquirer": True}, {"durable": True, "priority": 3, "ttl": 500000}, {"durable": True})
    for octets, sent, header in zip(came(ten), (WHOLE, value, bare), heads):
        rest = sent[len(message(header=header)) :]
        header = dict(header)
        header.pop("first-acquirer", None)
        header["delivery-count"] = 1
        assert octets == message(header=header) + rest
    ten.settle(1, ("modified", {"delivery-failed": True}), 3)
    assert [given.get("type") for given, _ in taken(basic, "q")] == [None, "amqp-1.0", None]


def test_delivery_annotations_are_for_the_broker_alone():
    broker, basic, ten = both()
    basic.declare("q")
    ten.sender()
    rest = {"header": {"priority": 4}, "noted": {"x-b": 2}, "properties": {"subject": "s"}}
    assert send(ten, message(b"x", delivery={"x-a": 1}, **rest)) == "accepted"
    ten.receiver()
    assert came(ten) == [message(b"x", **rest)]


def test_a_delivery_that_failed_is_counted_and_nothing_else_is_changed():
    broker, basic, ten = both()
    basic.declare("q")
    ten.sender()
    send(ten, WHOLE)
    ten.receiver(credit=1)
    assert came(ten) == [WHOLE]
    header = message(header={"durable": True, "first-acquirer": True})
    for count in (1, 2):
        ten.settle(count, ("modified", {"delivery-failed": True}))
        ten.credit(1, delivery_count=count)
        assert came(ten) == [message(header={"durable": True, "delivery-count": count}) + WHOLE[len(header) :]]


def test_ttl_is_less_for_the_time_that_a_message_waited():
    broker, basic, ten = both()
    basic.declare("q")
    ten.sender()
    send(ten, message(b"x", header={"ttl": 60000}))
    basic.publish("q", b"y", given={"expiration": "60000"})
    broker.tick(10000, EPOCH + 10)
    ten.receiver()
    for octets in came(ten):
        left = said(octets)[0]["header"]["ttl"]
        assert 50000 <= left <= 51000


def test_priority_and_ttl_of_a_header_are_rules():
    broker, basic, ten = both()
    basic.declare("p", arguments={"x-max-priority": 10})
    basic.declare("t", arguments={"x-message-ttl": 1000000})
    ten.sender("/queues/p")
    for number, priority in enumerate((1, 9, 5)):
        send(ten, message(b"%d" % priority, header={"priority": priority}), number)
    assert [body for _, body in taken(basic, "p")] == [b"9", b"5", b"1"]
    ten.sender("/queues/t", "second", 5)
    send(ten, message(b"short", header={"ttl": 500}), 3, 5)
    send(ten, message(b"long", header={"ttl": 500000}), 4, 5)
    broker.tick(2000, EPOCH + 2)
    assert [body for _, body in taken(basic, "t")] == [b"long"]


def test_a_dead_letter_tells_both_families_how_it_died():
    """x-death to 0-9-1; x-opt-deaths and x-first-death-*, x-last-death-* to 1.0 (RabbitMQ 4); the ttl is gone."""
    for publisher in ("0-9-1", "1.0"):
        broker, basic, ten = both()
        basic.declare("dead")
        basic.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 100})
        if publisher == "1.0":
            ten.sender()
            send(ten, message(b"x", header={"ttl": 60000}, noted={"x-mine": 1}, application={"a": True}))
        else:
            basic.publish("q", b"x", given={"expiration": "60000", "headers": {"a": True, "x-mine": ("l", 1)}})
        broker.tick(1500, EPOCH + 1)
        ten.receiver("/queues/dead", credit=1)
        (octets,) = came(ten)
        found, body = said(octets)
        assert body == b"x" and found["application-properties"] == {"a": True}
        assert found.get("header", {}).get("ttl") is None
        noted = {key[1]: value for key, value in found["message-annotations"].items()}
        deaths = noted.pop("x-opt-deaths")
        assert deaths[:2] == ("array", "map") and len(deaths[2]) == 1
        death = {key[1]: value for key, value in deaths[2][0].items()}
        assert death.pop("first-time") == death.pop("last-time")
        assert death == {
            "ttl": ("uint", 60000),
            "queue": "q",
            "reason": ("symbol", "expired"),
            "count": ("ulong", 1),
            "exchange": "",
            "routing-keys": ("array", "string", ["q"]),
        }
        assert noted.pop("x-exchange", "") == "" and noted.pop("x-routing-key", "dead") == "dead"
        told = {"reason": "expired", "queue": "q", "exchange": ""}
        assert noted == dict(
            [("x-%s-death-%s" % (which, name), told[name]) for which in ("first", "last") for name in told], **{"x-mine": 1}
        )
        ten.settle(1, ("released", {}))
        ((given, body),) = taken(basic, "dead")
        assert body == b"x" and "expiration" not in given
        assert given["headers"]["x-death"][0]["count"] == 1 and given["headers"]["a"] is True and given["headers"]["x-mine"] == 1


def test_a_death_that_comes_again_has_the_times_of_its_first_and_its_last():
    """RabbitMQ 4's x-opt-deaths: first-time stays, last-time is the last death's, in milliseconds since 1970."""
    broker, basic, ten = both()
    basic.declare("dead", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 1000})
    basic.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    basic.publish("q", b"x")
    for tag, now, second in ((1, 1000, 10), (2, 3000, 25)):
        broker.tick(now, EPOCH + second)
        broker.run()
        basic.give(encoded("basic_get", 1, 0, "q", False))
        assert basic.frames()[0][0] == "basic_get_ok"
        basic.give(encoded("basic_reject", 1, tag, False))
    broker.tick(3200, EPOCH + 40)
    ten.receiver("/queues/dead", credit=1)
    (octets,) = came(ten)
    noted = {key[1]: value for key, value in said(octets)[0]["message-annotations"].items()}
    last, other = [{key[1]: value for key, value in death.items()} for death in noted["x-opt-deaths"][2]]
    assert (last["queue"], last["reason"], last["count"]) == ("q", ("symbol", "rejected"), ("ulong", 2))
    assert (last["first-time"], last["last-time"]) == (("timestamp", 1000 * (EPOCH + 10)), ("timestamp", 1000 * (EPOCH + 25)))
    assert (other["queue"], other["reason"], other["count"]) == ("dead", ("symbol", "expired"), ("ulong", 1))
    assert other["first-time"] == other["last-time"] == ("timestamp", 1000 * (EPOCH + 25))


def test_exchanges_read_application_properties():
    broker, basic, ten = both()
    for name in ("all", "any", "selected"):
        basic.declare(name)
    basic.ask("queue_bind", "queue_bind_ok", 0, "all", "amq.match", "", False, {"x-match": "all", "a": 1, "b": "x"})
    basic.ask("queue_bind", "queue_bind_ok", 0, "any", "amq.match", "", False, {"x-match": "any", "a": 1, "b": "x"})
    ten.sender("/exchanges/amq.match/")
    for number, (application, outcome) in enumerate(
        (
            ({"a": ("ubyte", 1), "b": ("symbol", "x")}, "accepted"),
            ({"a": ("ulong", 1), "b": "y"}, "accepted"),
            ({"a": True}, "released"),
            ({"A": 1}, "released"),
            ({}, "released"),
        )
    ):
        assert send(ten, message(b"%d" % number, application=application), number) == outcome
    assert [body for _, body in taken(basic, "all")] == [b"0"]
    assert [body for _, body in taken(basic, "any")] == [b"0", b"1"]


def test_keys_of_x_cc_are_routes_too():
    broker, basic, ten = both()
    for name in ("a", "b", "q"):
        basic.declare(name)
    ten.sender()
    assert send(ten, message(b"x", noted={"x-cc": ["a", "b"]})) == "accepted"
    for name in ("a", "b", "q"):
        assert [(given["headers"], body) for given, body in taken(basic, name)] == [({"CC": ["a", "b"]}, b"x")]
    assert send(ten, message(b"x", noted={"x-cc": "a"}), 1) == "rejected"
    assert send(ten, message(b"x"), 2) == "accepted"
    assert len(taken(basic, "q")) == 1 and taken(basic, "a") == []


def test_keys_of_x_cc_have_as_many_octets_as_copy_size_max_says():
    """Each key with two octets for its size."""
    for over, outcome in ((0, "accepted"), (1, "rejected")):
        broker, basic, ten = both(copy_size_max=100)
        basic.declare("q")
        ten.sender()
        assert send(ten, message(b"x", noted={"x-cc": ["a" * 46, "b" * (50 + over)]})) == outcome


def test_streams_have_messages_of_both_families_for_both():
    broker, basic, ten = both(durable_broker(MemoryStore())[0])
    basic.declare("s", True, arguments=STREAM)
    ten.sender("/queues/s")
    send(ten, message(b"abc", b"def", noted={"x-stream-filter-value": "f"}, application={"a": ("ushort", 1)}))
    basic.publish("s", b"ghi", given={"headers": {"a": 2}})
    broker.run()
    basic.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    found = basic.consume("s", "plain", arguments={"x-stream-offset": "first"})
    assert [(each[2]["headers"], each[3]) for each in found] == [
        ({"x-stream-filter-value": "f", "a": 1, "x-stream-offset": 0}, b"abcdef"),
        ({"a": 2, "x-stream-offset": 1}, b"ghi"),
    ]
    ten.receiver(
        "/queues/s", source=("source", {"address": "/queues/s", "filter": {("symbol", "rabbitmq:stream-offset-spec"): offset("first")}})
    )
    one, two = came(ten)
    assert said(one)[0]["message-annotations"] == {("symbol", "x-stream-filter-value"): "f", ("symbol", "x-stream-offset"): 0}
    assert said(two)[0]["application-properties"] == {"a": ("int", 2)} and said(two)[1] == b"ghi"
    assert broker.counters["internal_errors"] == 0


def offset(value):
    return ("described", ("symbol", "rabbitmq:stream-offset-spec"), value)


def test_packs_of_a_stream_have_a_message_of_1_0_as_0_9_1_delivers_it():
    from leveret.core.amqp_0_9 import packed, properties

    broker, basic, ten = both(durable_broker(MemoryStore())[0])
    basic.declare("s", True, arguments=STREAM)
    ten.sender("/queues/s")
    basic.publish("s", b"first", given={"headers": {"a": 1}})
    send(ten, message(b"abc", b"def", application={"a": ("ubyte", 2)}))
    basic.publish("s", b"last")
    broker.run()
    basic.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    found = basic.consume("s", "packs", arguments={"x-stream-offset": "first", "x-stream-pack-records": 100})
    records = []
    for each in found:
        records += packed.unpack(each[3])
    assert [(record[0], properties.decode_all(record[4]), record[5], record[6] & 255) for record in records] == [
        (0, {"headers": {"a": 1}}, b"first", 0),
        (1, {"headers": {"a": 2}}, b"abcdef", 0),
        (2, {}, b"last", 0),
    ]


def test_repeated_messages_are_known_by_their_message_id_of_any_type():
    broker, basic, ten = both()
    basic.declare("q", arguments={"x-deduplication": 8})
    ten.sender()
    number = 0
    for identity in (("ulong", 1), ("uuid", bytes(16)), b"\xff\x00", "text", "x" * 300):
        for _ in range(2):
            assert send(ten, message(b"x", properties={"message-id": identity}), number) == "accepted"
            number += 1
    assert broker.queues["q"].message_count() == 5


def test_a_poisoned_message_of_1_0_can_be_read():
    broker, basic, ten = both()
    basic.declare("q")
    ten.sender()
    send(ten, WHOLE)
    from leveret.core.broker import poison
    from leveret.core.memory import layout

    entry = broker.queues["q"].pop()
    assert poison.keep(broker, broker.queues["q"], broker.tables.entries[entry + layout.ENTRY_MESSAGE], "a reason")
    broker.queues["q"].drop(entry)
    ten.receiver("/queues/leveret.poison")
    (octets,) = came(ten)
    found, body = said(octets)
    assert found["message-annotations"][("symbol", "x-poison-reason")] == "a reason"
    assert found["application-properties"] == said(WHOLE)[0]["application-properties"]


def test_basic_get_has_a_value_as_it_is_encoded():
    broker, basic, ten = both()
    basic.declare("q")
    ten.sender()
    octets = message((sections.VALUE, "text"))
    send(ten, message((sections.VALUE, "text"), properties={"content-type": "text/plain"}))
    basic.give(encoded("basic_get", 1, 0, "q", True))
    frames = basic.frames()
    assert frames[0][:1] == ("basic_get_ok",) and frames[1][2] == (len(octets), {"content_type": "text/plain", "type": "amqp-1.0"})
    assert frames[2][2] == octets


def test_priority_and_selectors_of_consumers_and_exchanges():
    """A selector exchange reads a message of 1.0 by the names of class basic."""
    broker, basic, ten = both()
    basic.declare("q")
    basic.ask("exchange_declare", "exchange_declare_ok", 0, "e", "x-selector", False, False, False, False, False, {})
    basic.ask("queue_bind", "queue_bind_ok", 0, "q", "e", "", False, {"x-selector": "colour = 'red' AND JMSPriority > 5"})
    ten.sender("/exchanges/e/")
    red = {"colour": "red"}
    assert send(ten, message(b"1", header={"priority": 6}, application=red), 0) == "accepted"
    assert send(ten, message(b"2", header={"priority": 5}, application=red), 1) == "released"
    assert send(ten, message(b"3", header={"priority": 6}, application={"colour": "blue"}), 2) == "released"
    assert [body for _, body in taken(basic, "q")] == [b"1"]


def kinds(number):
    """Messages of every kind of body in turns."""
    word = b"%06d" % number
    bodies = (
        (word,),
        (word[:3], word[3:]),
        ((sections.VALUE, word),),
        ((sections.SEQUENCE, [word]), (sections.FOOTER, {})),
        (word, (sections.FOOTER, {})),
    )
    return message(*bodies[number % 5], header={"durable": True}, application={"n": number, "pad": bytes(60)})


def test_far_more_than_memory_comes_back_octet_for_octet():
    """A queue and a stream that are mostly in the log, with messages of every kind of body; to both families."""
    count = 300
    for name, arguments in (("q", {}), ("s", STREAM)):
        broker, _ = durable_broker(MemoryStore(), chunk_count_max=256)
        _, basic, ten = both(broker)
        basic.declare(name, True, arguments=arguments)
        ten.sender("/queues/" + name)
        for number in range(count):
            assert send(ten, kinds(number), number) == "accepted"
        if name == "q":
            assert broker.queues["q"].is_paging()
        ten.receiver("/queues/" + name, credit=0, source=first_of("/queues/" + name))
        found: list = []
        while len(found) < count:
            ten.credit(50, delivery_count=len(found), next_incoming_id=len(found), incoming_window=1000)
            come = []
            for _ in range(200):
                come += came(ten)
                if len(come) >= 50:
                    break
            assert come, len(found)
            found += come
            ten.settle(len(found) - len(come) + 1, ("accepted", {}), len(found))
        for number, octets in enumerate(found):
            at = octets.index(b"\x00\x53\x74")
            assert octets[at:] == kinds(number)[kinds(number).index(b"\x00\x53\x74") :], number
        assert broker.counters["internal_errors"] == 0 and broker.counters["poisoned"] == 0


def first_of(address):
    """A source that begins with the first message of a stream."""
    return (
        "source",
        {"address": address, "filter": {("symbol", "rabbitmq:stream-offset-spec"): offset("first")}}
        if address == "/queues/s"
        else {"address": address},
    )


def test_hostile_messages_are_refused_with_a_sentence():
    for octets, text in (
        (b"\x01", "begins no descriptor"),
        (b"\x00\x53\x75\xb0\xff\xff\xff\xff", "ends inside its body"),
        (b"\x00\x53\x74\xc1\x03\x02\xa1\x01", "a string of 1 octets where 0 are left"),
        (message(b"x", properties={"user-id": b"\xff"}), "user_id"),
        (message((sections.VALUE, 1), (sections.VALUE, 2)), "two sections amqp-value"),
        (message(b"x", (sections.SEQUENCE, [])), "stands behind data"),
        (b"\x00\x53\x72\xd1\x00\x00\x07\xd4\x00\x00\x00\x02" + b"\x00" * 2000, "levels deep"),
        (b"\x00\x53\x77" + b"\x00" * 2000, "descriptors"),
        (b"\x00\x53\x72\xd1\x00\x00\x00\x04\xff\xff\xff\xff", "values in"),
    ):
        broker, basic, ten = both()
        basic.declare("q")
        ten.sender()
        ten.give(performative("transfer", 0, octets, handle=0, delivery_id=0, delivery_tag=b"a", message_format=0))
        frames = ten.frames()
        assert text in repr(frames), (octets, frames)
        assert broker.counters["internal_errors"] == 0
