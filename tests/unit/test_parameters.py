"""Global parameters and the limits of the virtual host (core/broker/parameters.py): kept over a restart, in definitions, in force."""

import peer_0_10
import peer_1_0
from memory_store import MemoryStore, durable_broker
from peer import HEADER, Peer, encoded, new_broker
from test_users_logged import restarted

from leveret.core.broker import parameters
from leveret.core.errors import ProtocolError
from leveret.core.management import parameters as shown
from leveret.core.management import rabbitmq_definitions

VALUES = {"number": 1.5, "none": None, "yes": True, "text": "\u00e9", "list": [], "deep": {"a": [1, ["$x"]], "e": {}}}


def raised(function, *given):
    """The sentence of what a call raises."""
    try:
        function(*given)
    except (ValueError, ProtocolError) as error:
        return error.text if isinstance(error, ProtocolError) else str(error)
    raise AssertionError(given)


def exported(broker):
    """{section: items} of the definitions."""
    return {name: [make(subject) for _, subject in subjects] for name, subjects, make in rabbitmq_definitions.sections(broker)}


def test_parameters_survive_a_restart_and_a_rewritten_log():
    broker, _ = durable_broker(MemoryStore())
    kept = parameters.of(broker)
    for name, value in VALUES.items():
        kept.put(name, value)
    kept.put("number", 2)
    kept.put("gone", 1)
    assert kept.remove("gone") and not kept.remove("gone")
    kept.put(parameters.CLUSTER_NAME, "the fleet")
    kept.put_limits({"max-queues": 5, "max-connections": -1})
    first = restarted(broker)
    first.journal.snapshot()
    for again in (first, restarted(first)):
        assert again.parameters.rows == dict(VALUES, number=2, cluster_name="the fleet")
        assert again.parameters.limits == {"max-queues": 5, "max-connections": -1}
        assert again.cluster_name == parameters.cluster_name(again) == "the fleet"
    first.parameters.put_limits({})
    assert first.parameters.remove(parameters.CLUSTER_NAME)
    again = restarted(first)
    assert again.parameters.limits == {} and again.cluster_name is None and parameters.cluster_name(again) == again.name


def test_queues_beyond_a_lower_limit_come_back():
    """A limit ends nothing that is there."""
    broker, _ = durable_broker(MemoryStore())
    peer = Peer(broker)
    for name in ("one", "two"):
        peer.give(encoded("queue_declare", 1, 0, name, False, True, False, False, False, {}))
        peer.expect("queue_declare_ok")
    parameters.of(broker).put_limits({"max-queues": 1})
    assert sorted(restarted(broker).queues) == ["one", "two"]


def test_definitions_have_them_and_load_them():
    broker = new_broker(argument_size_max=4096)
    kept = parameters.of(broker)
    kept.put("one", VALUES)
    kept.put_limits({"max-queues": 7})
    told = exported(broker)
    assert told["global_parameters"] == [{"name": "one", "value": VALUES}]
    assert told["parameters"] == [{"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 7}}]
    other = new_broker(argument_size_max=4096)
    for section in ("global_parameters", "parameters"):
        for item in told[section]:
            assert rabbitmq_definitions.load(other, section, item) == (True, "")
    assert exported(other) == told
    for section, item, words in (
        ("global_parameters", {"name": "x"}, "it has no value"),
        ("global_parameters", {"value": 1}, "its name is not a text"),
        ("global_parameters", {"name": "", "value": 1}, "1 to 64 octets"),
        ("global_parameters", {"name": "x", "value": float("inf")}, "JSON cannot write"),
        ("global_parameters", {"name": "x", "value": [[[[[[[[[1]]]]]]]]]}, "levels deep"),
        ("global_parameters", {"name": "x", "value": 1 << 64}, "64 bits"),
        ("global_parameters", {"name": "cluster_name", "value": 1}, "cluster_name is not a text"),
        ("global_parameters", {"name": "x", "value": "y" * 100000}, "octets that this broker keeps"),
        ("parameters", {"component": "shovel", "name": "x", "value": {}}, "component shovel not found"),
        ("parameters", {"component": "vhost-limits", "name": "x", "value": {}}, "the name 'limits'"),
        ("parameters", {"component": "vhost-limits", "name": "limits", "value": 5}, "limits not a list 5"),
        ("parameters", {"component": "vhost-limits", "name": "limits", "value": {"x": 1}}, 'Unrecognised terms [{<<"x">>,1}] in limits'),
        (
            "parameters",
            {"component": "vhost-limits", "name": "limits", "value": {"max-queues": "1"}},
            'max-queues should be a number, actually was <<"1">>',
        ),
    ):
        loaded, sentence = rabbitmq_definitions.load(other, section, item)
        assert not loaded and words in sentence, sentence
    assert exported(other) == told


def test_parameters_count_with_policies_and_a_log_that_fails_changes_nothing():
    broker = new_broker(policy_count_max=3)
    kept = parameters.of(broker)
    kept.put("one", 1)
    kept.put_limits({"max-queues": 7})
    policy = broker.policies.made("p", ".*", {"max-length": 1})
    broker.policies.set(broker, policy)
    for call in (
        lambda: kept.put("two", 1),
        lambda: broker.policies.set(broker, broker.policies.made("q", ".*", {"max-length": 1})),
    ):
        assert "3 policies at most" in raised(call)
    kept.put("one", 2)
    kept.put_limits({"max-queues": 8})
    broker.policies.remove(broker, "p")
    kept.put("two", 1)

    class Broken:
        def define(self, definition):
            raise OSError("the disk is away")

    broker.journal = Broken()
    for call in (
        lambda: kept.put("one", 3),
        lambda: kept.remove("two"),
        lambda: kept.put_limits({}),
        lambda: kept.put_limits({"max-queues": 1}),
    ):
        try:
            call()
        except OSError:
            pass
        else:
            raise AssertionError(call)
    assert kept.rows == {"one": 2, "two": 1} and kept.limits == {"max-queues": 8}


def test_what_a_broken_log_says_of_them_is_described():
    broker, _ = durable_broker(MemoryStore())
    parameters.of(broker).put("one", 1)
    broker.journal.define(parameters.definition(parameters.LIMITS, {"nosuch": 1}))
    again = restarted(broker)
    assert again.parameters.rows == {"one": 1} and again.parameters.limits == {}
    assert [each["name"] for each in again.unrestored] == [parameters.LIMITS]


NO_CONNECTION = "access to vhost '/' refused for user 'guest': connection limit (2) is reached"


def test_connections_of_all_protocols_count_together_and_the_brokers_own_do_not():
    """RabbitMQ: rabbit_reader, connection.open."""
    broker = new_broker()
    parameters.of(broker).put_limits({"max-connections": 2})
    one, other = Peer(broker), peer_1_0.Peer(broker)
    third = Peer(broker, log_in=False)
    third.give(HEADER)
    third.expect("connection_start")
    third.give(encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"))
    third.expect("connection_tune")
    third.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
    assert third.expect("connection_close")[:2] == [530, "NOT_ALLOWED - " + NO_CONNECTION]
    fourth = peer_0_10.Peer(broker, opens=False)
    fourth.log_in()
    fourth.give(peer_0_10.control("connection_tune_ok", channel_max=8, max_frame_size=1024, heartbeat=0))
    fourth.give(peer_0_10.control("connection_open", virtual_host="/"))
    assert NO_CONNECTION in fourth.expect("connection_close")["reply_text"]
    other.connection.finish()
    Peer(broker)
    parameters.of(broker).put_limits({"max-connections": -1})
    Peer(broker)
    assert one.connection.closed is False


def declaration(name, exclusive=False):
    """A queue.declare."""
    return encoded("queue_declare", 1, 0, name, False, False, exclusive, False, False, {})


def test_queues_are_refused_whoever_declares_them():
    """RabbitMQ: 406 on the channel; a queue that is there may be declared again."""
    broker = new_broker()
    peer = Peer(broker)
    parameters.of(broker).put_limits({"max-queues": 1})
    for _ in range(2):
        peer.give(declaration("one"))
        peer.expect("queue_declare_ok")
    for exclusive in (False, True):
        peer.give(declaration("two", exclusive))
        code, text = peer.expect("channel_close")[:2]
        assert (code, text) == (406, "PRECONDITION_FAILED - cannot declare queue 'two': queue limit in vhost '/' (1) is reached")
        peer.give(encoded("channel_close_ok", 1) + encoded("channel_open", 1, ""))
        peer.expect("channel_open_ok")
    loaded, sentence = rabbitmq_definitions.load(broker, "queues", {"name": "three", "durable": True})
    assert not loaded and "queue limit in vhost '/' (1) is reached" in sentence
    parameters.of(broker).put_limits({})
    peer.give(declaration("two"))
    peer.expect("queue_declare_ok")


def test_clients_are_told_the_clusters_name():
    """0-9-1 section 1.4.2.1.3: server properties."""
    broker = new_broker()
    shown.load_global(broker, {"name": parameters.CLUSTER_NAME, "value": "the fleet"})
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    assert peer.expect("connection_start")[2]["cluster_name"] == "the fleet"
