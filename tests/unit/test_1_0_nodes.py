"""Nodes behind the links of AMQP 1.0: what a broker has, makes, binds and refuses for a source and a target."""

from peer import Peer, new_broker

from leveret.core.access.permissions import User
from leveret.core.amqp_1_0 import addresses, nodes
from leveret.core.amqp_1_0.nodes import Terminus
from leveret.core.errors import ACCESS_REFUSED, NOT_FOUND, PRECONDITION_FAILED, RESOURCE_ERROR, RESOURCE_LOCKED, ProtocolError
from leveret.core.memory import invariants
from leveret.core.patterns.expression import Pattern


def world(**limits):
    """(broker, connection of a user who may do everything)."""
    given = {"name_size_max": 255, "send_buffer_size": 32768, "queue_count_max": 32}
    given.update(limits)
    broker = new_broker(**given)
    return broker, Peer(broker).connection


def refused(condition, function, *arguments):
    """The text of the error."""
    try:
        given = function(*arguments)
    except ProtocolError as error:
        assert error.condition == condition, (error.condition, error.text)
        return error.text
    raise AssertionError(given)


def route(broker, connection, text, capabilities=()):
    """Where a target's publishes go."""
    return nodes.route(broker, connection, addresses.target(text, False, capabilities))


def reading(broker, connection, text, capabilities=(), link="l", durable=False, dynamic=False, container="c", key=None):
    """What a source reads from."""
    node = addresses.source(text, dynamic, capabilities)
    return nodes.reading(broker, connection, node, Terminus(container, link, capabilities, durable, key))


def bindings(broker, queue):
    """Of a queue."""
    return nodes.bindings_of(broker.queues[queue])


def test_a_target_is_an_exchange_and_a_key():
    broker, connection = world()
    broker.topology.declare_queue(connection, "q", False, False, False, False, {})
    broker.topology.declare_exchange(connection, "e", "fanout", False, False, False, False, {})
    assert route(broker, connection, "/queues/q") == ("", b"q")
    assert route(broker, connection, "q") == ("", b"q")
    assert route(broker, connection, "e") == ("e", None)
    assert route(broker, connection, "/exchanges/e/k") == ("e", b"k")
    assert route(broker, connection, "/exchange/e") == ("e", None)
    assert route(broker, connection, "/queue") == ("", None)
    assert route(broker, connection, "t.x", ["topic"]) == ("amq.topic", b"t.x")
    assert route(broker, connection, "e", ["topic"]) == ("e", None)
    assert len(broker.queues) == 1


def test_what_is_not_there_is_not_found_and_the_first_form_makes_its_queue():
    broker, connection = world()
    assert refused(NOT_FOUND, route, broker, connection, "/queues/q") == "no queue 'q' in vhost '/'"
    assert refused(NOT_FOUND, route, broker, connection, "/amq/queue/q") == "no queue 'q' in vhost '/'"
    assert refused(NOT_FOUND, route, broker, connection, "/exchanges/e/k") == "no exchange 'e' in vhost '/'"
    assert refused(NOT_FOUND, route, broker, connection, "x") == "no queue and no exchange 'x' in vhost '/'"
    assert refused(NOT_FOUND, reading, broker, connection, "/exchange/e/k") == "no exchange 'e' in vhost '/'"
    assert refused(NOT_FOUND, reading, broker, connection, "x", ["queue"]) == "no queue 'x' in vhost '/'"
    assert broker.queues == {}
    assert route(broker, connection, "/queue/made") == ("", b"made")
    assert reading(broker, connection, "/queue/made").queue == "made" and broker.queues["made"].durable
    assert refused(ACCESS_REFUSED, route, broker, connection, "/queue/amq.x").startswith("queue name 'amq.x'")


def test_the_configuration_makes_nodes_by_pattern_and_kind():
    broker, connection = world()
    broker.made_on_use = ((Pattern("^orders\\.", 1000), "queue"), (Pattern("^events", 1000), "fanout"), (Pattern(".*x$", 1000), "stream"))
    assert route(broker, connection, "orders.1") == ("", b"orders.1")
    assert reading(broker, connection, "/queues/orders.2").queue == "orders.2"
    assert route(broker, connection, "events") == ("events", None) and broker.exchanges["events"].type == "fanout"
    assert route(broker, connection, "events2", ["topic"]) == ("events2", None)
    assert refused(NOT_FOUND, route, broker, connection, "/queues/events3") == "no queue 'events3' in vhost '/'"
    assert route(broker, connection, "orders.3", ["topic"]) == ("amq.topic", b"orders.3")
    assert refused(NOT_FOUND, route, broker, connection, "other")
    assert sorted(broker.queues) == ["orders.1", "orders.2"]
    connection.user = User("u", None, (), ("^e", ".*", ".*"))
    assert "access to queue 'orders.4'" in refused(ACCESS_REFUSED, route, broker, connection, "orders.4")


def test_an_exchange_as_a_source_is_a_queue_of_the_links_own():
    broker, connection = world()
    source = reading(broker, connection, "/topic/a.#")
    assert bindings(broker, source.queue) == [("amq.topic", b"a.#")] and source.private and not source.ends and source.address is None
    queue = broker.queues[source.queue]
    assert queue.owner is connection and queue.auto_delete and source.queue.startswith("amq.gen-")
    assert bindings(broker, reading(broker, connection, "/exchange/amq.direct/k").queue) == [("amq.direct", b"k")]
    assert bindings(broker, reading(broker, connection, "amq.topic").queue) == [("amq.topic", b"#")]
    assert bindings(broker, reading(broker, connection, "amq.fanout").queue) == [("amq.fanout", b"")]
    assert bindings(broker, reading(broker, connection, "amq.direct", key=b"from a filter").queue) == [("amq.direct", b"from a filter")]
    assert bindings(broker, reading(broker, connection, "t", ["topic"]).queue) == [("amq.topic", b"t")]
    invariants.check(broker.tables)


def test_a_durable_subscription_stays_until_its_link_closes():
    broker, connection = world()
    source = reading(broker, connection, "t", ["topic"], "s", True)
    assert (source.queue, source.exclusive, source.ends) == ("subscription/c/s", True, True) and broker.queues[source.queue].durable
    assert reading(broker, connection, "t", ["topic"], "s", True).queue == source.queue
    again = reading(broker, connection, None, (), "s")
    assert (again.queue, again.address, again.ends) == (source.queue, "t", True)
    assert refused(NOT_FOUND, reading, broker, connection, None, (), "other").startswith("a source without an address")
    assert refused(NOT_FOUND, reading, broker, connection, None, (), "s", False, False, "other").startswith("a source without an address")
    assert reading(broker, connection, "u", ["topic"], "s", True).queue == source.queue  # another topic: begun anew (JMS 2.0, 8.3.3)
    assert bindings(broker, source.queue) == [("amq.topic", b"u")]
    assert nodes.close(broker, connection, source.queue, False) and source.queue not in broker.queues
    assert nodes.close(broker, connection, source.queue, False)


def test_a_subscription_in_use_keeps_its_topic_and_what_shares_it():
    broker, connection = world()
    shared = ["topic", "shared", "global"]
    source = reading(broker, connection, "t", shared, "s|global", True)
    assert source.queue == "subscription//s" and not source.exclusive
    broker.queues[source.queue].consumers.append(None)
    assert reading(broker, connection, "t", shared, "s|global-2", True, container="d").queue == source.queue
    assert "in use" in refused(RESOURCE_LOCKED, reading, broker, connection, "u", shared, "s|global", True)
    assert nodes.close(broker, connection, source.queue, False) and source.queue in broker.queues
    assert reading(broker, connection, None, (), "s|global").queue == source.queue
    volatile = reading(broker, connection, "t", ["topic", "shared"], "s|volatile1")
    assert volatile.queue == "volatile/c/s" and broker.queues[volatile.queue].auto_delete and not volatile.ends


def test_a_dynamic_source_is_an_exclusive_queue_under_a_name_that_says_whose():
    broker, connection = world()
    source = reading(broker, connection, None, (), "link", False, True, "container")
    assert source.queue.startswith("amq.dyn-container-link-") and addresses.source(source.address) == ("queue", source.queue, None)
    assert broker.queues[source.queue].owner is connection and source.ends and source.own
    assert nodes.close(broker, connection, source.queue, True) and source.queue not in broker.queues
    name, address = nodes.make_own(broker, connection, addresses.target(None, True), "c" * 300, "l")
    assert len(name) == 30 and address == "/queues/" + name
    assert reading(broker, connection, None, ["rabbitmq:volatile-queue"], "l", False, True).queue.startswith("amq.rabbitmq.reply-to.")
    topic = reading(broker, connection, None, ["temporary-topic"], "l", False, True)
    assert topic.address.startswith("/topic/amq.dyn-") and bindings(broker, topic.queue) == [("amq.topic", topic.address[7:].encode())]
    assert addresses.target(topic.address) == ("exchange", "amq.topic", topic.address[7:].encode())
    broker, connection = world(queue_share_max=1)
    broker.topology.declare_queue(connection, "q", False, False, False, False, {})
    assert "declares 1 queues at most" in refused(RESOURCE_ERROR, reading, broker, connection, None, (), "l", False, True)


def test_permissions_are_those_of_0_9_1():
    broker, connection = world()
    broker.topology.declare_queue(connection, "q", False, False, False, False, {})
    connection.user = User("u", None, (), ("", "", ""))
    called = "access to %s refused for user 'u'"
    assert refused(ACCESS_REFUSED, route, broker, connection, "q") == called % "exchange 'amq.default' in vhost '/'"
    assert refused(ACCESS_REFUSED, route, broker, connection, "/exchange/amq.direct/k") == called % "exchange 'amq.direct' in vhost '/'"
    assert refused(ACCESS_REFUSED, reading, broker, connection, "q") == called % "queue 'q' in vhost '/'"
    assert refused(ACCESS_REFUSED, reading, broker, connection, "/topic/t") == called % "exchange 'amq.topic' in vhost '/'"
    assert refused(ACCESS_REFUSED, route, broker, connection, "/queue/new") == called % "queue 'new' in vhost '/'"
    connection.user = User("u", None, (), ("", "", "^amq.topic$"))
    assert refused(ACCESS_REFUSED, reading, broker, connection, "/topic/t").startswith("access to queue 'amq.gen-")
    assert (
        refused(ACCESS_REFUSED, reading, broker, connection, "t", ["topic"], "s", True) == called % "queue 'subscription/c/s' in vhost '/'"
    )
    assert refused(ACCESS_REFUSED, reading, broker, connection, None, (), "l", False, True).startswith("access to queue 'amq.dyn-c-l-")
    assert list(broker.queues) == ["q"]


def test_an_internal_exchange_and_another_connections_queue_are_refused():
    broker, connection = world()
    broker.topology.declare_exchange(connection, "i", "fanout", False, False, False, True, {})
    assert "internal exchange 'i'" in refused(ACCESS_REFUSED, route, broker, connection, "/exchanges/i")
    broker.topology.declare_queue(Peer(broker).connection, "theirs", False, False, True, False, {})
    assert refused(RESOURCE_LOCKED, reading, broker, connection, "/queues/theirs")
    assert route(broker, connection, "/queues/theirs") == ("", b"theirs")
    assert "longer than" in refused(PRECONDITION_FAILED, reading, broker, connection, "t", ["topic"], "s" * 300, True)
