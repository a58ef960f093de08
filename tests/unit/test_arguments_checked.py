"""What a declaration, a consumer or a policy asks for is looked at before anything is kept of it (core/SPEC.md, "Queues"), as RabbitMQ
3.10 does where it has the argument; what an earlier version has let into a log does not stop a start."""

import json

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, encoded, new_broker

from leveret.core.broker.policies import Policy
from leveret.core.errors import ProtocolError

KEY = "amq.leveret.management"
REPLY = "amq.rabbitmq.reply-to"

ROOM = {"management_size_max": 4096, "content_size_max": 4096, "argument_size_max": 1024}


def refused(peer, *request):
    """The text with which a method closes channel 1, which is open again then."""
    peer.give(encoded(*request))
    code, text, _, _ = peer.expect("channel_close")
    assert code == 406, text
    peer.give(encoded("channel_close_ok", 1))
    peer.ask("channel_open", "channel_open_ok", "")
    return text


def test_a_second_declaration_is_compared_in_type_and_value():
    """406 for 10.0 where 10 is, and for 1 where true is; whole numbers of all widths are alike, octets are text (RabbitMQ 3.10.8)."""
    for first, second, same in ((10, ("l", 10), True), (10, 10.0, False), (10, 11, False), (("s", 10), ("b", 10), True)):
        peer = Peer(new_broker())
        peer.declare("q", arguments={"x-max-length": first})
        if same:
            peer.declare("q", arguments={"x-max-length": second})
        else:
            text = refused(peer, "queue_declare", 1, 0, "q", False, False, False, False, False, {"x-max-length": second})
            assert "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received '%s' but current is '10'" % second in text, text
    peer = Peer(new_broker())
    peer.declare("q", arguments={"x-single-active-consumer": True, "x-dead-letter-exchange": "a"})
    peer.declare("q", arguments={"x-single-active-consumer": True, "x-dead-letter-exchange": b"a"})
    text = refused(peer, "queue_declare", 1, 0, "q", False, False, False, False, False, {"x-single-active-consumer": 1})
    assert "received '1' but current is 'true'" in text, text


def test_the_priority_of_a_consumer_is_a_whole_number():
    """basic.consume with x-priority of another type is 406 in RabbitMQ's words; any whole number that a field holds is taken."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    for value, word in (
        ("1", "longstr"),
        ({}, "table"),
        (None, "void"),
        (True, "bool"),
        (1.0, "double"),
        ([1], "array"),
        (("T", 1), "timestamp"),
        (b"\xff", "binary"),
    ):
        text = refused(peer, "basic_consume", 1, 0, "q", "c", False, False, False, False, {"x-priority": value})
        assert "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got %s\"" % word in text, text
    refused(peer, "basic_consume", 1, 0, "q", "c", False, False, False, False, {"x-cancel-on-ha-failover": 1})
    refused(peer, "basic_consume", 1, 0, "q", "c", False, False, False, False, {"x-stream-offset": "first"})
    assert broker.queues["q"].consumers == []
    for number, value in enumerate((-1 << 63, -1, 0, 1, (1 << 63) - 1)):
        peer.consume("q", "c%d" % number, arguments={"x-priority": ("l", value)})
    assert [each.tag for each in broker.queues["q"].consumers] == ["c4", "c3", "c2", "c1", "c0"]


BAD_POLICIES = (
    {"message-ttl": 1 << 62},
    {"message-ttl": 315360000001},
    {"message-ttl": 1.5},
    {"message-ttl": float("nan")},
    {"message-ttl": True},
    {"expires": 0},
    {"expires": 1 << 62},
    {"max-length": -1},
    {"max-length": 1 << 63},
    {"max-length-bytes": "1"},
    {"max-age": "\u00b2D"},
    {"max-age": 7},
    {"dead-letter-exchange": "e" * 256},
    {"dead-letter-exchange": "e", "dead-letter-routing-key": "k" * 256},
    {"overflow": ["drop-head"]},
    {"overflow": {}},
    {"alternate-exchange": 5},
    {"delivery-limit": None},
    {"consumer-timeout": 1 << 62},
)


def test_a_policy_is_looked_at_before_it_is_kept():
    """set-policy: what is answered with an error is neither there nor in the log, and the next start is as the one before."""
    store = MemoryStore()
    broker, _ = durable_broker(store, **ROOM)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.publish("q", b"kept", given=PERSISTENT)
    peer.consume(REPLY, no_ack=True)
    broker.run()
    for number, definition in enumerate(BAD_POLICIES):
        request = {"request": "set-policy", "name": "p%d" % number, "pattern": ".*", "definition": definition}
        peer.publish(KEY, json.dumps(request).encode(), given={"reply_to": REPLY})
        ((_, _, _, body),) = peer.contents()
        answer = json.loads(str(body, "utf-8"))
        assert not answer["ok"] and answer["condition"] == "precondition-failed", (definition, answer)
        assert broker.policies.by_name == {} and broker.counters["internal_errors"] == 0, definition
    broker.journal.finish()
    again, _ = durable_broker(store.cut(), **ROOM)
    assert again.policies.by_name == {} and bodies(Peer(again), "q") == [b"kept"]


def test_a_priority_of_a_policy_is_a_number_of_32_bits():
    """RabbitMQ takes any; this broker keeps what it can compare."""
    for priority in (1 << 31, -(1 << 31), 1.5, True, "1", None, float("inf")):
        try:
            Policy("p", ".*", {"max-length": 1}, priority)
        except ProtocolError as error:
            assert "priority must be a whole number from -2147483647 to 2147483647" in error.text
        else:
            raise AssertionError(priority)


def test_a_log_with_what_is_refused_now_does_not_stop_the_start():
    """Definitions that an earlier version has taken: told and left out, the queue and its messages are there."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-length": 5})
    peer.publish("q", b"kept", given=PERSISTENT)
    broker.run()
    identity = broker.queues["q"].id_in_log
    broker.journal.define(
        {"kind": "policy", "name": "p", "pattern": ".*", "definition": {"message-ttl": 1 << 62}, "priority": 0, "apply_to": "all"}
    )
    broker.journal.define(
        {
            "kind": "queue",
            "id": identity,
            "name": "q",
            "auto_delete": False,
            "arguments": {
                "x-max-length": 5,
                "x-message-ttl": 1 << 62,
                "x-dead-letter-routing-key": "k",
                "x-dead-letter-exchange": "",
                "x-max-age": "1D",
            },
        }
    )
    broker.journal.finish()
    told = []
    again, _ = durable_broker(store.cut(), log=told.append)
    assert again.policies.by_name == {}
    assert again.queues["q"].arguments == {"x-max-length": 5, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k"}
    assert len(told) == 3 and "message-ttl" in told[0] and "comes back without 'x-message-ttl'" in told[1] + told[2], told
    for _ in range(5):
        again.tick(again.now + 100, 0)
        again.run()
    assert bodies(Peer(again), "q") == [b"kept"]


def test_a_route_that_the_cache_has_no_room_for_is_looked_up_each_time():
    """basic.publish with a routing key of 255 octets, and a fanout to more queues than a small cache has places for (route_count_max 8)."""
    broker = new_broker(route_count_max=8, queue_count_max=40, queue_share_max=40, binding_count_max=80, binding_share_max=80)
    peer = Peer(broker)
    for number in range(20):
        peer.declare("q%d" % number)
        peer.ask("queue_bind", "queue_bind_ok", 0, "q%d" % number, "amq.fanout", "", False, {})
    peer.ask("queue_bind", "queue_bind_ok", 0, "q0", "amq.topic", "#", False, {})
    for _ in range(3):
        peer.publish("k" * 255, b"x", "amq.topic")
        peer.publish("", b"x", "amq.fanout")
    assert peer.frames() == [] and broker.counters["internal_errors"] == 0
    assert [broker.queues[name].message_count() for name in ("q0", "q19")] == [6, 3]


def test_a_name_in_definitions_is_one_that_clients_can_ask_for():
    """import: CR and LF are taken out of names as declare does it; a queue that kept them could not be deleted by anybody."""
    broker = new_broker(**ROOM)
    peer = Peer(broker)
    peer.consume(REPLY, no_ack=True)
    definitions = {
        "queues": [{"name": "\n\r\t", "durable": True}, {"name": "\r\n"}],
        "exchanges": [{"name": "e\n", "type": "topic"}],
        "bindings": [{"source": "\re", "destination": "\t\n", "destination_type": "queue", "routing_key": "#"}],
    }
    peer.publish(KEY, json.dumps({"request": "import", "definitions": definitions}).encode(), given={"reply_to": REPLY})
    ((_, _, _, body),) = peer.contents()
    answer = json.loads(str(body, "utf-8"))
    assert [answer["loaded"][name] for name in ("queues", "exchanges", "bindings")] == [1, 1, 1], answer
    assert "e" in broker.exchanges and len(broker.exchanges["e"].bindings) == 1
    peer.ask("queue_delete", "queue_delete_ok", 0, "\n\r\t", False, False, False)
    assert "\t" not in broker.queues and "\n\r\t" not in broker.queues
