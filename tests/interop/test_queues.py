"""Queues: declare in all its variants, bind, purge, delete, and who may touch them (class queue)."""

import pytest
from amqp_wire import Closed, RawClient, method
from broker_process import BrokerProcess
from conftest import KIND

LOCKED = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '%s' in vhost '/'"


def declare(peer, queue="", channel=1, **values):
    return peer.call("queue.declare-ok", channel, "queue.declare", queue=queue, **values)


def exists(connect, queue):
    peer = connect()
    peer.send(method(1, "queue.declare", queue=queue, passive=True))
    got = peer.read_frame()
    return got.name == "queue.declare-ok"


def test_declare_tells_name_messages_and_consumers(raw, name):
    got = declare(raw, name)
    assert (got["queue"], got["message_count"], got["consumer_count"]) == (name, 0, 0)
    for _ in range(3):
        raw.publish("", name, b"x")
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=1)
    tag = raw.call("basic.consume-ok", 1, "basic.consume", queue=name)["consumer_tag"]
    raw.read_content("basic.deliver")
    raw.wait_for_count(name, 2)
    assert declare(raw, name, passive=True)["consumer_count"] == 1
    raw.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag=tag)
    raw.send(method(1, "basic.nack", delivery_tag=1, requeue=True))
    raw.wait_for_count(name, 3)
    assert raw.call("queue.delete-ok", 1, "queue.delete", queue=name)["message_count"] == 3


def test_declare_is_idempotent(raw, name):
    for _ in range(3):
        declare(raw, name, durable=True)
    raw.call("queue.delete-ok", 1, "queue.delete", queue=name)


@pytest.mark.parametrize(
    "first, second, argument, received, current",
    [
        ({}, {"durable": True}, "durable", "true", "false"),
        ({"durable": True}, {}, "durable", "false", "true"),
        ({}, {"auto_delete": True}, "auto_delete", "true", "false"),
    ],
)
def test_a_declare_that_differs_is_406_and_names_the_difference(raw, connect, name, first, second, argument, received, current):
    declare(raw, name, **first)
    raw.send(method(1, "queue.declare", queue=name, **second))
    text = "PRECONDITION_FAILED - inequivalent arg '%s' for queue '%s' in vhost '/': received '%s' but current is '%s'"
    raw.expect_channel_close(406, text % (argument, name, received, current), method_of="queue.declare")
    connect().call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_arguments_without_a_meaning_are_ignored(raw, name):
    declare(raw, name, exclusive=True, arguments={"foo": 5, "bar": {"a": [1, 2]}})
    declare(raw, name, exclusive=True)


def test_an_unknown_x_argument_is_kept_with_the_queue(raw, broker, name):
    """It is taken (test_beside_rabbitmq.py); Leveret compares a second declaration with it, RabbitMQ 3.10 looks at those that it knows."""
    declare(raw, name, exclusive=True, arguments={"x-nobody-knows": 1})
    raw.send(method(1, "queue.declare", queue=name, exclusive=True, arguments={"x-nobody-knows": 2}))
    if broker.kind == "rabbitmq":
        raw.expect("queue.declare-ok")
        return
    raw.expect_channel_close(406, "inequivalent arg 'x-nobody-knows' for queue '%s' in vhost '/': received '2' but current is '1'" % name)


def test_a_server_named_queue_has_a_name_of_its_own(raw):
    names = {declare(raw, "", exclusive=True)["queue"] for _ in range(5)}
    assert len(names) == 5
    assert all(one.startswith("amq.gen") for one in names)


def test_the_reserved_prefix_is_403(raw):
    raw.send(method(1, "queue.declare", queue="amq.mine"))
    raw.expect_channel_close(403, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'", method_of="queue.declare")


def test_a_server_named_queue_may_be_declared_again_by_its_name(raw, broker):
    """queue.declare: "The client MAY declare a queue starting with "amq." if the passive option is set, or the queue already exists."
    RabbitMQ 3.10 refuses it with 403 all the same."""
    queue = declare(raw, "", exclusive=True)["queue"]
    assert declare(raw, queue, passive=True)["queue"] == queue
    if broker.kind == "rabbitmq":
        raw.send(method(1, "queue.declare", queue=queue, exclusive=True))
        raw.expect_channel_close(403)
        return
    assert declare(raw, queue, exclusive=True)["queue"] == queue


def test_names_of_255_octets_and_any_utf8(raw):
    for queue in ("q" * 255, "\u96f7\u5154/ \t'\"", "\u20ac" * 85):
        assert declare(raw, queue, exclusive=True)["queue"] == queue
        raw.publish("", queue, b"x")
        raw.send(method(1, "basic.get", queue=queue, no_ack=True))
        assert raw.read_content("basic.get-ok")["routing_key"] == queue


def test_passive_of_a_missing_queue_is_404(raw, name):
    raw.send(method(1, "queue.declare", queue=name, passive=True))
    raw.expect_channel_close(404, "NOT_FOUND - no queue '%s' in vhost '/'" % name, method_of="queue.declare")


def test_no_wait_declares_binds_purges_and_deletes_without_a_word(raw, name):
    raw.send(method(1, "queue.declare", queue=name, no_wait=True))
    raw.send(method(1, "queue.bind", queue=name, exchange="amq.direct", routing_key=name, no_wait=True))
    raw.publish("amq.direct", name, b"1")
    raw.publish("amq.direct", name, b"2")
    raw.wait_for_count(name, 2)
    raw.send(method(1, "queue.purge", queue=name, no_wait=True))
    raw.wait_for_count(name, 0)
    raw.send(method(1, "queue.delete", queue=name, no_wait=True))
    assert raw.silent(0.1)
    raw.send(method(1, "queue.declare", queue=name, passive=True))
    raw.expect_channel_close(404)


@pytest.mark.parametrize(
    "name_of_method, values",
    [
        ("queue.declare", {"exclusive": True}),
        ("queue.declare", {"passive": True}),
        ("queue.bind", {"exchange": "amq.direct"}),
        ("queue.purge", {}),
        ("queue.delete", {}),
        ("basic.consume", {}),
        ("basic.get", {}),
    ],
)
def test_an_exclusive_queue_is_locked_for_other_connections(connect, name, name_of_method, values):
    owner = connect()
    declare(owner, name, exclusive=True)
    other = connect()
    other.send(method(1, name_of_method, queue=name, **values))
    other.expect_channel_close(405, LOCKED % name, method_of=name_of_method)
    declare(owner, name, passive=True)


def test_an_exclusive_queue_is_open_to_the_channels_of_its_connection(connect):
    peer = connect(channels=2)
    queue = declare(peer, "", exclusive=True)["queue"]
    declare(peer, queue, channel=2, passive=True)
    peer.call("basic.consume-ok", 2, "basic.consume", queue=queue)


def test_anyone_may_publish_to_an_exclusive_queue(connect):
    owner, other = connect(), connect()
    queue = declare(owner, "", exclusive=True)["queue"]
    owner.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    other.publish("", queue, b"reply")
    assert owner.read_content("basic.deliver").body == b"reply"


@pytest.mark.parametrize("end", ["close", "cut"])
def test_an_exclusive_queue_goes_with_its_connection(connect, name, end):
    owner = connect()
    declare(owner, name, exclusive=True)
    if end == "close":
        owner.close()
    else:
        owner.socket.close()
    watcher = connect()
    for _ in range(100):
        watcher.send(method(1, "queue.declare", queue=name, passive=True))
        got = watcher.read_frame()
        if got.name == "channel.close" and got["reply_code"] == 404:
            return
        if got.name == "channel.close":
            watcher.send(method(1, "channel.close-ok"))
            watcher.call("channel.open-ok", 1, "channel.open")
    raise AssertionError("the queue is still there")


def test_an_exclusive_queue_outlives_its_channel(connect):
    peer = connect(channels=2)
    queue = declare(peer, "", exclusive=True)["queue"]
    peer.call("channel.close-ok", 1, "channel.close", reply_code=200)
    declare(peer, queue, channel=2, passive=True)


def test_auto_delete_goes_with_its_last_consumer(connect, name):
    peer = connect()
    declare(peer, name, auto_delete=True)
    assert exists(connect, name)
    for tag in ("a", "b"):
        peer.call("basic.consume-ok", 1, "basic.consume", queue=name, consumer_tag=tag)
    peer.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag="a")
    assert exists(connect, name)
    peer.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag="b")
    assert not exists(connect, name)


def test_auto_delete_goes_when_the_consumers_channel_closes(connect, name):
    peer = connect()
    declare(peer, name, auto_delete=True)
    peer.call("basic.consume-ok", 1, "basic.consume", queue=name)
    peer.call("channel.close-ok", 1, "channel.close", reply_code=200)
    assert not exists(connect, name)


def test_auto_delete_without_a_consumer_stays(connect, name):
    peer = connect()
    declare(peer, name, auto_delete=True)
    peer.close()
    assert exists(connect, name)
    connect().call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_a_plain_queue_keeps_messages_without_a_connection(connect, name):
    peer = connect()
    declare(peer, name)
    peer.publish("", name, b"kept")
    peer.close()
    peer = connect()
    peer.send(method(1, "basic.get", queue=name, no_ack=True))
    assert peer.read_content("basic.get-ok").body == b"kept"
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_purge_counts_what_was_ready(raw, name):
    queue = declare(raw, "", exclusive=True)["queue"]
    for _ in range(7):
        raw.publish("", queue, b"x" * 100)
    raw.send(method(1, "basic.get", queue=queue))
    raw.read_content("basic.get-ok")
    assert raw.call("queue.purge-ok", 1, "queue.purge", queue=queue)["message_count"] == 6
    assert raw.call("queue.purge-ok", 1, "queue.purge", queue=queue)["message_count"] == 0
    raw.call("basic.recover-ok", 1, "basic.recover", requeue=True)
    raw.wait_for_count(queue, 1)


def test_delete_if_unused_and_if_empty(raw, connect, name):
    declare(raw, name)
    raw.publish("", name, b"x")
    raw.send(method(1, "queue.delete", queue=name, if_empty=True))
    raw.expect_channel_close(406, "PRECONDITION_FAILED - queue '%s' in vhost '/' not empty" % name, method_of="queue.delete")
    raw.call("channel.open-ok", 1, "channel.open")
    raw.call("basic.consume-ok", 1, "basic.consume", queue=name, no_ack=True)
    raw.read_content("basic.deliver")
    raw.send(method(1, "queue.delete", queue=name, if_unused=True))
    raw.expect_channel_close(406, "PRECONDITION_FAILED - queue '%s' in vhost '/' in use" % name, method_of="queue.delete")
    raw.call("channel.open-ok", 1, "channel.open")
    assert raw.call("queue.delete-ok", 1, "queue.delete", queue=name, if_unused=True, if_empty=True)["message_count"] == 0


def test_delete_counts_the_messages_lost(raw, name):
    declare(raw, name)
    for _ in range(4):
        raw.publish("", name, b"x")
    assert raw.call("queue.delete-ok", 1, "queue.delete", queue=name)["message_count"] == 4


def test_delete_of_a_missing_queue_is_fine(raw):
    assert raw.call("queue.delete-ok", 1, "queue.delete", queue="t.never.was")["message_count"] == 0


def test_purge_of_a_missing_queue_is_404(raw, name):
    raw.send(method(1, "queue.purge", queue=name))
    raw.expect_channel_close(404, "NOT_FOUND - no queue '%s' in vhost '/'" % name, method_of="queue.purge")


def test_bind_names_what_is_missing(raw, name):
    raw.send(method(1, "queue.bind", queue=name, exchange="amq.direct"))
    raw.expect_channel_close(404, "NOT_FOUND - no queue '%s' in vhost '/'" % name, method_of="queue.bind")
    raw.call("channel.open-ok", 1, "channel.open")
    queue = declare(raw, "", exclusive=True)["queue"]
    raw.send(method(1, "queue.bind", queue=queue, exchange=name))
    raw.expect_channel_close(404, "NOT_FOUND - no exchange '%s' in vhost '/'" % name, method_of="queue.bind")


def test_unbind_of_what_is_not_bound_is_fine(raw, connect, name):
    """RabbitMQ made unbind idempotent in 3.2, for missing exchanges and queues too; the specification has 404 for them. Either passes."""
    queue = declare(raw, "", exclusive=True)["queue"]
    raw.call("queue.unbind-ok", 1, "queue.unbind", queue=queue, exchange="amq.direct", routing_key="never")
    raw.send(method(1, "queue.unbind", queue=queue, exchange=name, routing_key="never"))
    got = raw.read_frame()
    assert got.name == "queue.unbind-ok" or got["reply_code"] == 404, got


def test_an_empty_name_means_the_last_declared_queue(connect, name):
    peer = connect(channels=2)
    declare(peer, name + ".other", exclusive=True)
    declare(peer, name, exclusive=True)
    peer.call("queue.bind-ok", 1, "queue.bind", queue="", exchange="amq.direct", routing_key=name)
    peer.publish("amq.direct", name, b"x")
    peer.send(method(1, "basic.get", queue=""))
    assert peer.read_content("basic.get-ok").body == b"x"
    assert declare(peer, name, passive=True)["message_count"] == 0
    tag = peer.call("basic.consume-ok", 1, "basic.consume", queue="")["consumer_tag"]
    assert declare(peer, name, passive=True)["consumer_count"] == 1
    peer.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag=tag)
    peer.call("queue.purge-ok", 1, "queue.purge", queue="")
    peer.call("queue.delete-ok", 1, "queue.delete", queue="")
    peer.send(method(2, "queue.bind", queue="", exchange="amq.direct"))
    peer.expect_channel_close(404, "NOT_FOUND - no previously declared queue", channel=2, method_of="queue.bind")


def test_an_empty_routing_key_in_bind_means_the_queues_name_when_the_queue_is_empty_too(connect):
    """queue.bind: "If the queue name is empty, the server uses the last queue declared on the channel. If the routing key is also
    empty, the server uses this queue name for the routing key as well." """
    peer = connect()
    queue = declare(peer, "", exclusive=True)["queue"]
    peer.call("queue.bind-ok", 1, "queue.bind", queue="", exchange="amq.direct", routing_key="")
    peer.publish("amq.direct", queue, b"x", mandatory=True)
    peer.send(method(1, "basic.get", queue=queue, no_ack=True))
    assert peer.read_content("basic.get-ok").body == b"x"


def test_deleting_a_queue_cancels_its_consumers_with_a_notice(connect, name):
    peer, other = connect(), connect()
    declare(peer, name)
    tag = peer.call("basic.consume-ok", 1, "basic.consume", queue=name)["consumer_tag"]
    other.call("queue.delete-ok", 1, "queue.delete", queue=name)
    assert peer.expect("basic.cancel", 1)["consumer_tag"] == tag
    peer.call("basic.qos-ok", 1, "basic.qos")


def test_no_notice_for_a_client_that_cannot_take_it(connect, name):
    peer, other = connect(capabilities={}), connect()
    declare(peer, name)
    peer.call("basic.consume-ok", 1, "basic.consume", queue=name)
    other.call("queue.delete-ok", 1, "queue.delete", queue=name)
    assert peer.silent()


def test_a_queue_can_be_declared_anew_after_delete(raw, name):
    for body in (b"1", b"2"):
        declare(raw, name)
        raw.publish("", name, body)
        raw.send(method(1, "basic.get", queue=name, no_ack=True))
        assert raw.read_content("basic.get-ok").body == body
        raw.call("queue.delete-ok", 1, "queue.delete", queue=name)


SMALL = {
    "connection_count_max": 12,
    "channel_count_max": 16,
    "queue_count_max": 16,
    "queue_share_max": 16,
    "consumer_count_max": 16,
    "binding_count_max": 24,
    "binding_share_max": 24,
    "route_count_max": 16,
    "message_count_max": 64,
    "entry_count_max": 64,
    "arena_size": 65536,
    "content_size_max": 8192,
    "exchange_count_max": 16,
}
ROUNDS = 4 * max(SMALL[name] for name in SMALL if name.endswith("_count_max"))


@pytest.fixture
def connect_to_small(tmp_path):
    """Raw clients of a Leveret whose tables are full soon: a slot that is not given back is missed long before ROUNDS are over."""
    config = tmp_path / "leveret.toml"
    config.write_text("[limits]\n" + "".join("%s = %d\n" % row for row in SMALL.items()))
    process = BrokerProcess(KIND, arguments=("--config", str(config)))
    clients = []

    def connect():
        clients.append(RawClient(process.host, process.port, 30))
        return clients[-1].open(capabilities={})  # without consumer_cancel_notify: its time is not ours

    yield connect
    for client in clients:
        client.socket.close()
    said = process.error_text()
    process.stop()
    assert KIND != "leveret" or "Traceback" not in said


def come_and_go(peer):
    """A queue with a binding, a message on its way to a consumer, and one that nobody took."""
    queue = declare(peer, "", exclusive=True)["queue"]
    peer.call("queue.bind-ok", 1, "queue.bind", queue=queue, exchange="amq.direct", routing_key=queue)
    peer.call("basic.qos-ok", 1, "basic.qos", prefetch_count=1)
    for _ in range(2):
        peer.publish("amq.direct", queue, b"x" * 500)
    peer.call("basic.consume-ok", 1, "basic.consume", queue=queue)
    peer.read_content("basic.deliver")
    return queue


def test_many_queues_come_and_go_without_a_trace(connect_to_small):
    """Slots of queues, bindings, consumers, routes, messages and entries are given back: four times as many as any table has rows."""
    peer = connect_to_small()
    for _ in range(ROUNDS):
        queue = come_and_go(peer)
        peer.call("queue.delete-ok", 1, "queue.delete", queue=queue)


def test_connections_come_and_go_without_a_trace(connect_to_small):
    """So are those of connections and channels, whether they are closed or only gone."""
    for number in range(ROUNDS):
        try:
            peer = connect_to_small()
            come_and_go(peer)
        except Closed as error:
            raise AssertionError("refused after %d that are gone" % number) from error
        if number % 2:
            peer.close()
        peer.socket.close()
