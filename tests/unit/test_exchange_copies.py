"""CC and BCC (RabbitMQ's sender-selected distribution): further routing keys in headers; BCC is taken out."""

from peer import Peer, encoded, new_broker

from leveret.core.amqp_0_9 import properties
from leveret.core.message.annotations import GONE


def queues(peer, *names):
    for name in names:
        peer.declare(name)


def get(peer, name):
    """The (arguments, properties, body) of the message at the head of a queue, or None."""
    peer.give(encoded("basic_get", 1, 0, name, True))
    frames = peer.frames()
    if frames[0][0] == "basic_get_empty":
        return None
    return frames[0][2], frames[1][2][1], frames[2][2] if len(frames) > 2 else b""


def test_the_default_exchange_copies_to_every_queue_named():
    broker = new_broker()
    peer = Peer(broker)
    queues(peer, "a", "b", "c", "d")
    peer.publish("a", b"body", given={"headers": {"CC": ["b", "a", "nobody"], "BCC": ["c", "b"], "kept": 1}, "message_id": "m"})
    for name in ("a", "b", "c"):
        arguments, given, body = get(peer, name)
        assert arguments[2:4] == ["", "a"] and body == b"body"
        assert given == {"headers": {"CC": ["b", "a", "nobody"], "kept": 1}, "message_id": "m"}
        assert get(peer, name) is None, "one copy"
    assert get(peer, "d") is None


def test_keys_of_each_exchange_type():
    """direct and topic look at all keys; fanout copies once; a headers exchange has no use for keys."""
    peer = Peer(new_broker())
    queues(peer, "a", "b")
    for exchange, first, second in (("amq.direct", "one", "two"), ("amq.topic", "one.*", "*.two"), ("amq.fanout", "", "")):
        peer.ask("queue_bind", "queue_bind_ok", 0, "a", exchange, first, False, {})
        peer.ask("queue_bind", "queue_bind_ok", 0, "b", exchange, second, False, {})
        peer.publish("one.x" if exchange == "amq.topic" else "one", b"", exchange, {"headers": {"BCC": ["two", "x.two"]}})
        assert get(peer, "a") is not None and get(peer, "b") is not None, exchange
        assert get(peer, "a") is None and get(peer, "b") is None, exchange


def test_a_second_message_does_not_inherit_the_keys():
    peer = Peer(new_broker())
    queues(peer, "a", "b")
    peer.publish("a", b"", given={"headers": {"CC": ["b"]}})
    peer.publish("a", b"", given={"headers": {"other": 1}})
    peer.publish("a", b"")
    assert peer.ask("queue_purge", "queue_purge_ok", 0, "a", False) == [3]
    assert peer.ask("queue_purge", "queue_purge_ok", 0, "b", False) == [1]


def test_mandatory_is_about_all_keys():
    peer = Peer(new_broker())
    queues(peer, "b")
    peer.publish("nobody", b"", given={"headers": {"BCC": ["b"]}}, mandatory=True)
    assert peer.frames() == []
    peer.publish("nobody", b"", given={"headers": {"BCC": ["no"], "CC": []}}, mandatory=True)
    name, _, given, _ = peer.contents()[0]
    assert name == "basic_return" and given == {"headers": {"CC": []}}


def test_headers_that_are_no_arrays_are_refused():
    """406, as RabbitMQ words it."""
    broker = new_broker()
    for name, value, type_ in (("CC", "b", "longstr"), ("BCC", 5, "signedint"), ("CC", None, "void"), ("CC", {}, "table")):
        peer = Peer(broker)
        peer.publish("a", b"", given={"headers": {name: value}})
        assert peer.expect("channel_close")[:2] == [
            406,
            'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"%s",%s}' % (name, type_),
        ]


def test_what_is_no_text_in_the_array_does_not_count():
    peer = Peer(new_broker())
    queues(peer, "a", "5")
    peer.publish("a", b"", given={"headers": {"CC": [5, None, True]}})
    assert get(peer, "a") is not None and get(peer, "5") is None


def test_keys_are_bounded():
    """copy_size_max: their octets, and two for each, so that many short ones are bounded too."""
    broker = new_broker(copy_size_max=10)
    queues(Peer(broker), "a", "b")
    for copies, more, taken in (
        (["b" * 3], ["b" * 3], True),
        (["b" * 3], ["b" * 4], False),
        (["b" * 8], [], True),
        ([""] * 5, [], True),
        ([""] * 6, [], False),
    ):
        peer = Peer(broker)
        peer.publish("a", b"", given={"headers": {"CC": copies, "BCC": more}})
        if taken:
            assert get(peer, "a") is not None, copies
        else:
            assert peer.expect("channel_close")[0] == 406, copies


def test_what_hides_a_header_leaves_every_other_octet():
    given = {
        "content_type": "t",
        "content_encoding": "e",
        "headers": {"a": 1, "BCC": ["x"], "z": {"BCC": "inner"}},
        "delivery_mode": 2,
        "app_id": "app",
    }
    octets = properties.merge(properties.encode(given), {"headers": {"BCC": GONE}})
    del given["headers"]["BCC"]
    assert properties.decode(octets, 0, len(octets)) == given
    octets = properties.merge(properties.encode({"headers": {"BCC": []}}), {"headers": {"BCC": GONE}})
    assert properties.decode(octets, 0, len(octets)) == {"headers": {}}


def test_a_dead_letter_goes_by_all_keys_of_its_message_or_by_its_queues_own():
    """RabbitMQ: without x-dead-letter-routing-key CC counts and stays in the headers; with one that is the only key. x-death has all."""
    for key, queues_of_it in ((None, ("t", "b")), ("other", ("other",))):
        broker = new_broker()
        peer = Peer(broker)
        arguments = {"x-dead-letter-exchange": "dead"}
        if key is not None:
            arguments["x-dead-letter-routing-key"] = key
        peer.ask("exchange_declare", "exchange_declare_ok", 0, "dead", "direct", False, False, False, False, False, {})
        peer.declare("t", arguments=arguments)
        for name in ("dead-t", "dead-b", "dead-other"):
            peer.declare(name)
            peer.ask("queue_bind", "queue_bind_ok", 0, name, "dead", name[5:], False, {})
        peer.publish("t", b"body", given={"headers": {"CC": ["b"]}})
        peer.give(encoded("basic_get", 1, 0, "t", False))
        tag = peer.frames()[0][2][0]
        peer.give(encoded("basic_reject", 1, tag, False))
        for name in ("t", "b", "other"):
            found = get(peer, "dead-" + name)
            assert (found is not None) == (name in queues_of_it), (key, name)
            if found is not None:
                headers = found[1]["headers"]
                assert headers["x-death"][0]["routing-keys"] == ["t", "b"] and found[2] == b"body"
                assert headers.get("CC") == (["b"] if key is None else None)
        assert broker.counters["internal_errors"] == 0
