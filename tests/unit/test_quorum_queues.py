"""x-queue-type=quorum on one node, arguments that mean nothing, the name of the virtual host (core/SPEC.md, "Queues", "Connection")."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import HEADER, Peer, encoded, new_broker

from leveret.core.broker.policies import Policy
from leveret.core.errors import ProtocolError
from leveret.core.management import rabbitmq_definitions
from leveret.core.outcomes import nobody
from leveret.core.queue import rules

QUORUM = {"x-queue-type": "quorum"}
ROOM = {"argument_size_max": 1024, "management_size_max": 4096, "content_size_max": 4096, "arena_size": 65536}


def refusal(broker, arguments, durable=True, exclusive=False, auto_delete=False):
    """The text with which a declaration of "q" is refused."""
    peer = Peer(broker)
    peer.give(encoded("queue_declare", 1, 0, "q", False, durable, exclusive, auto_delete, False, arguments))
    code, text, _, _ = peer.expect("channel_close")
    assert code == 406, text
    return text


def rejected(peer, times):
    """Have the message at the head of "q" come back so often: how often that could be done."""
    for count in range(times):
        peer.give(encoded("basic_get", 1, 0, "q", False))
        if peer.frames()[0][0] == "basic_get_empty":
            return count
        peer.give(encoded("basic_reject", 1, count + 1, True))
    return times


def opened(broker, virtual_host):
    """A peer that opens a virtual host of this name: what the broker answers."""
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    peer.expect("connection_start")
    peer.give(encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"))
    peer.expect("connection_tune")
    peer.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, virtual_host, "", False))
    return peer.frames()[0]


def test_a_quorum_queue_is_a_durable_queue_that_gives_a_message_back_20_times():
    store = MemoryStore()
    broker, _ = durable_broker(store, **ROOM)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments=QUORUM)
    assert broker.queues["q"].type == "quorum" and broker.queues["q"].arguments == QUORUM
    peer.publish("q", b"poison", given=PERSISTENT)
    assert rejected(peer, 30) == 21 and broker.counters["delivery_limit"] == 1
    peer.publish("q", b"kept", given=PERSISTENT)
    broker.run()
    again, _ = durable_broker(store.cut(), **ROOM)
    assert again.queues["q"].type == "quorum" and again.queues["q"].rules.counts_returns
    assert bodies(Peer(again), "q") == [b"kept"]


def test_a_delivery_limit_of_its_own_or_of_a_policy_comes_before_the_default():
    """RabbitMQ: -1 is none; the default is for queues that say nothing and have no policy that does."""
    for arguments, policy, limit in (
        ({}, None, 20),
        ({"x-delivery-limit": 3}, None, 3),
        ({"x-delivery-limit": -1}, None, None),
        ({}, 50, 50),
        ({"x-delivery-limit": 7}, 50, 7),
    ):
        broker, _ = durable_broker(MemoryStore(), policy_count_max=4, **ROOM)
        if policy is not None:
            broker.policies.set(broker, Policy("p", "^q$", {"delivery-limit": policy}, 0, "quorum_queues"))
        Peer(broker).declare("q", durable=True, arguments=dict(QUORUM, **arguments))
        found = [each.limit for each in broker.queues["q"].rules.features if hasattr(each, "limit")] if broker.queues["q"].rules else []
        assert found == ([] if limit is None else [limit]), (arguments, policy, found)


def test_what_is_no_quorum_queue_is_refused_in_rabbitmqs_words():
    broker, _ = durable_broker(MemoryStore(), **ROOM)
    what = "queue 'q' in vhost '/'"
    for arguments, properties, text in (
        ({}, {"durable": False}, "invalid property 'non-durable' for " + what),
        ({}, {"exclusive": True}, "invalid property 'exclusive-owner' for " + what),
        ({}, {"auto_delete": True}, "invalid property 'auto-delete' for " + what),
        ({"x-max-priority": 5}, {}, "invalid arg 'x-max-priority' for %s of queue type rabbit_quorum_queue" % what),
        ({"x-queue-mode": "lazy"}, {}, "invalid arg 'x-queue-mode' for %s of queue type rabbit_quorum_queue" % what),
        ({"x-max-age": "1D"}, {}, "invalid arg 'x-max-age' for %s of queue type rabbit_quorum_queue" % what),
        ({"x-message-ttl": "x"}, {}, "invalid arg 'x-message-ttl' for %s: \"expected integer, got longstr\"" % what),
        ({"x-quorum-initial-group-size": "x"}, {}, "invalid arg 'x-quorum-initial-group-size' for %s: \"expected integer" % what),
        ({"x-queue-leader-locator": "nowhere"}, {}, "invalid arg 'x-queue-leader-locator' for %s: " % what),
        ({"x-delivery-limit": -2}, {}, "invalid arg 'x-delivery-limit' for %s: {value_negative,-2}" % what),
    ):
        found = refusal(broker, dict(QUORUM, **arguments), **properties)
        assert found.startswith("PRECONDITION_FAILED - " + text), found


def test_a_broker_without_a_log_says_what_to_do_for_a_quorum_queue():
    """It would promise what it cannot keep."""
    text = refusal(new_broker(**ROOM), QUORUM)
    assert "start it with --data" in text and "quorum" in text, text


def test_a_quorum_queue_has_no_consumers_under_a_prefetch_of_the_channel():
    """basic.qos with global: 540, as from RabbitMQ."""
    broker, _ = durable_broker(MemoryStore(), **ROOM)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments=QUORUM)
    peer.ask("basic_qos", "basic_qos_ok", 0, 5, True)
    peer.give(encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}))
    assert peer.expect("connection_close")[:2] == [540, "NOT_IMPLEMENTED - queue 'q' in vhost '/' does not support global qos"]


def test_quorum_queues_and_unknown_arguments_go_through_definitions():
    broker, _ = durable_broker(MemoryStore(), **ROOM)
    item = {
        "name": "q",
        "vhost": "/",
        "durable": True,
        "auto_delete": False,
        "type": "quorum",
        "arguments": {"x-queue-type": "quorum", "x-ha-policy": "all"},
    }
    for given in (item, dict(item, arguments={"x-ha-policy": "all"})):
        assert rabbitmq_definitions.load(broker, "queues", given) == (True, "")
    assert rabbitmq_definitions.a_queue(broker.virtual_host, broker.queues["q"]) == item


UNKNOWN = ("x-initial-cluster-size", "x-stream-filter-size-bytes", "x-ha-policy", "x-internal-purpose", "x-anything")


def test_arguments_that_mean_nothing_are_kept_compared_and_told_once():
    """Queues, exchanges and consumers; over a restart too. RabbitMQ takes them as well, and does not compare them."""
    store, told = MemoryStore(), []
    broker, _ = durable_broker(store, log=told.append, unknown_argument_count_max=16, **ROOM)
    given = dict.fromkeys(UNKNOWN, 5)
    peer = Peer(broker)
    for _ in range(2):
        peer.declare("q", durable=True, arguments=given)
        peer.ask("exchange_declare", "exchange_declare_ok", 0, "e", "direct", False, True, False, False, False, given)
    peer.ask("basic_consume", "basic_consume_ok", 0, "q", "c", False, False, False, False, {"x-anything": 1, "x-other": 1})
    kept = [each for each in told if "means nothing" in each]
    assert len(kept) == len(UNKNOWN) + 1, kept
    assert "inequivalent arg 'x-anything'" in refusal(broker, dict(given, **{"x-anything": 6}))
    assert "inequivalent arg 'x-anything'" in refusal(broker, {name: 5 for name in UNKNOWN if name != "x-anything"})
    broker.run()
    again, _ = durable_broker(store.cut(), **ROOM)
    assert again.queues["q"].arguments == given and again.exchanges["e"].arguments == given
    assert rabbitmq_definitions.a_queue(again.virtual_host, again.queues["q"])["arguments"] == given


def test_the_log_is_told_of_so_many_unknown_arguments_and_no_more():
    """unknown_argument_count_max; their size counts for argument_size_max."""
    told = []
    broker, _ = durable_broker(MemoryStore(), log=told.append, unknown_argument_count_max=3, **ROOM)
    peer = Peer(broker)
    for number in range(6):
        peer.declare("q%d" % number, arguments={"x-%d" % number: 1, "x-%d\n" % number + 200 * "n": 1})
    kept = [each for each in told if "means nothing" in each]
    assert len(kept) == 3 and not [each for each in kept if "\n" in each or len(each) > 200], kept
    assert "larger than the 1024 octets" in refusal(broker, {"x-%d" % number: 1 for number in range(30)})


def test_no_type_is_the_classic_type():
    peer = Peer(new_broker())
    peer.declare("q")
    peer.declare("q", arguments={"x-queue-type": "classic"})
    peer.declare("r", arguments={"x-queue-type": "classic"})
    peer.declare("r")


def test_policies_know_no_unknown_arguments():
    """As in RabbitMQ: what a policy asks for is to be there."""
    try:
        rules.check("policy 'p'", {"x-anything": 1})
    except ProtocolError as error:
        assert "does not serve the argument 'x-anything'" in error.text
    else:
        raise AssertionError("taken")


def test_the_virtual_host_has_a_name_and_aliases():
    """connection.open (1.4.2.7), and every text that names it."""
    broker = new_broker(**ROOM)
    broker.virtual_host, broker.virtual_host_aliases = "/production", ("/", "prod")
    for name in ("/production", "/", "prod"):
        assert opened(broker, name)[0] == "connection_open_ok", name
    peer = Peer(broker)
    peer.give(encoded("queue_declare", 1, 0, "none", True, False, False, False, False, {}))
    assert peer.expect("channel_close")[1] == "NOT_FOUND - no queue 'none' in vhost '/production'"
    name, _, arguments = opened(broker, "other")
    assert name == "connection_close" and arguments[:2] == [530, "NOT_ALLOWED - vhost other not found"]
    broker.topology.declare_queue(nobody, "here", False, True, False, False, {})
    assert rabbitmq_definitions.a_queue(broker.virtual_host, broker.queues["here"])["vhost"] == "/production"
    document = {"queues": [{"name": "a", "vhost": "/production"}, {"name": "b", "vhost": "/"}, {"name": "c"}]}
    assert [each["name"] for each in rabbitmq_definitions.ours(document["queues"], broker.virtual_host)] == ["a", "c"]
