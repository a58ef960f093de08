"""Small things that clients rely on, as RabbitMQ 3.10 has them: each was seen to differ, and runs on both brokers."""

import time

import pytest
from amqp_tables import PROPERTIES
from amqp_wire import BODY, Reader, encode_table, frame, method, publish, shortstr
from basic_calls import bodies_of, consume, deliveries, get, numbered, queue_of

NO_PROPERTIES = b"\x00\x00"


def with_headers(**headers):
    """Properties with headers alone."""
    return b"\x20\x00" + encode_table(headers)


def properties_in(content):
    """The properties of a content, by name."""
    reader = Reader(content.properties)
    flags = reader.unpack(">H")
    return {name: reader.field(kind) for place, (name, kind) in enumerate(PROPERTIES) if flags & 1 << (15 - place)}


def headers_in(content):
    return properties_in(content)["headers"]


def qos(peer, count, is_global=True, channel=1):
    peer.call("basic.qos-ok", channel, "basic.qos", prefetch_count=count, **{"global": is_global})


def ready(peer, queue, channel=1):
    """How many messages a passive declare tells."""
    return peer.call("queue.declare-ok", channel, "queue.declare", queue=queue, passive=True)["message_count"]


def ready_becomes(peer, queue, count):
    """The number of ready messages comes to `count` and stays there."""
    peer.wait_for_count(queue, count)
    time.sleep(0.2)
    assert ready(peer, queue) == count


def all_of(peer, queue):
    """(body, redelivered) of what is ready."""
    found = []
    while (content := get(peer, queue)) is not None:
        found.append((content.body, content["redelivered"]))
    return found


def is_there(peer, what, name, channel=9):
    """Whether a passive declare, on a channel of its own, finds the queue or exchange."""
    peer.call("channel.open-ok", channel, "channel.open")
    peer.send(method(channel, what + ".declare", passive=True, **{what: name}))
    found = peer.read_frame()
    if found.name == "channel.close":
        assert found["reply_code"] == 404, found
        peer.send(method(channel, "channel.close-ok"))
        return False
    peer.call("channel.close-ok", channel, "channel.close", reply_code=200)
    return True


# Transactions (section 1.9)


def test_recover_leaves_what_is_acknowledged_and_not_committed(raw):
    """basic.recover (1.8.3.16) in a transaction: a kept acknowledgement is one to the client; it counts at the commit, not before."""
    queue = queue_of(raw, [b"a", b"b"])
    raw.call("tx.select-ok", 1, "tx.select")
    raw.send(method(1, "basic.ack", delivery_tag=get(raw, queue, no_ack=False)["delivery_tag"]))
    raw.call("basic.recover-ok", 1, "basic.recover", requeue=True)
    assert ready(raw, queue) == 1
    second = get(raw, queue, no_ack=False)
    assert (second.body, second["redelivered"]) == (b"b", False)
    raw.call("tx.commit-ok", 1, "tx.commit")
    raw.send(method(1, "basic.nack", delivery_tag=second["delivery_tag"], requeue=True))
    raw.call("tx.commit-ok", 1, "tx.commit")
    assert all_of(raw, queue) == [(b"b", True)]


def test_recover_leaves_what_is_to_be_requeued_at_the_commit(raw):
    queue = queue_of(raw, numbered(3))
    raw.call("tx.select-ok", 1, "tx.select")
    for _ in range(3):
        get(raw, queue, no_ack=False)
    raw.send(method(1, "basic.nack", delivery_tag=2, multiple=True, requeue=True))
    raw.call("basic.recover-ok", 1, "basic.recover", requeue=True)
    assert ready(raw, queue) == 1
    raw.call("tx.commit-ok", 1, "tx.commit")
    ready_becomes(raw, queue, 3)
    assert [body for body, _ in all_of(raw, queue)] == numbered(3)


def test_acknowledge_all_in_a_transaction_is_about_what_was_delivered_before_it(raw):
    """Tag 0 with multiple (1.8.3.13): all deliveries so far, again and again; a rollback takes it back."""
    queue = queue_of(raw, numbered(4))
    raw.call("tx.select-ok", 1, "tx.select")
    get(raw, queue, no_ack=False)
    for _ in range(3):
        raw.send(method(1, "basic.ack", multiple=True))
    get(raw, queue, no_ack=False)
    raw.call("tx.commit-ok", 1, "tx.commit")
    raw.send(method(1, "basic.ack", multiple=True))
    raw.call("tx.rollback-ok", 1, "tx.rollback")
    raw.call("basic.recover-ok", 1, "basic.recover", requeue=True)
    ready_becomes(raw, queue, 3)
    assert all_of(raw, queue) == [(b"2", True), (b"3", False), (b"4", False)]


# Prefetch of a channel (section 1.8.3.1)


def test_what_get_has_taken_does_not_stop_a_consumer(raw):
    """qos with global=true counts what consumers have got."""
    queue = queue_of(raw, numbered(4))
    qos(raw, 1)
    got = get(raw, queue, no_ack=False)
    consume(raw, queue)
    assert bodies_of(deliveries(raw, 1)) == [b"2"]
    raw.send(method(1, "basic.ack", delivery_tag=got["delivery_tag"]))
    assert raw.silent(0.3)
    raw.send(method(1, "basic.ack", delivery_tag=got["delivery_tag"] + 1))
    assert bodies_of(deliveries(raw, 1)) == [b"3"]


def test_a_cancelled_consumers_deliveries_still_count(raw):
    queue = queue_of(raw, numbered(3))
    qos(raw, 1)
    tag = consume(raw, queue)
    assert bodies_of(deliveries(raw, 1)) == [b"1"]
    raw.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag=tag)
    consume(raw, queue)
    assert raw.silent(0.3)
    raw.send(method(1, "basic.ack", delivery_tag=1))
    assert bodies_of(deliveries(raw, 1)) == [b"2"]


def test_a_reached_prefetch_of_the_channel_holds_consumers_without_acknowledgement_too(raw):
    acknowledged, other = queue_of(raw, [b"a"]), queue_of(raw, [b"x", b"y", b"z"])
    qos(raw, 1)
    consume(raw, acknowledged)
    assert bodies_of(deliveries(raw, 1)) == [b"a"]
    consume(raw, other, no_ack=True)
    assert raw.silent(0.3)
    raw.send(method(1, "basic.ack", delivery_tag=1))
    assert bodies_of(deliveries(raw, 3)) == [b"x", b"y", b"z"]


# Queues that hold only so much


@pytest.mark.parametrize("arguments", [{"x-max-length": 2}, {"x-max-length-bytes": 2}], ids=["messages", "octets"])
@pytest.mark.parametrize("name_of_method", ["basic.nack", "basic.recover", "channel.close"])
def test_what_comes_back_counts_for_the_length(raw, arguments, name_of_method):
    """x-max-length: the oldest go, and what comes back is older than what came meanwhile."""
    queue = raw.declare_queue(exclusive=True, arguments=arguments)
    raw.call("channel.open-ok", 2, "channel.open")
    for body in numbered(2):
        raw.publish("", queue, body)
    raw.wait_for_count(queue, 2)
    for _ in range(2):
        get(raw, queue, no_ack=False, channel=2)
    for body in numbered(2, 3):
        raw.publish("", queue, body)
    raw.wait_for_count(queue, 2)
    if name_of_method == "basic.nack":
        raw.send(method(2, "basic.nack", multiple=True, requeue=True))
        raw.call("basic.qos-ok", 2, "basic.qos")
    elif name_of_method == "basic.recover":
        raw.call("basic.recover-ok", 2, "basic.recover", requeue=True)
    else:
        raw.call("channel.close-ok", 2, "channel.close", reply_code=200)
    ready_becomes(raw, queue, 2)
    assert all_of(raw, queue) == [(b"3", False), (b"4", False)]


def test_what_comes_back_to_a_full_queue_is_dead_lettered_in_order(raw):
    dead = raw.declare_queue(exclusive=True)
    queue = raw.declare_queue(
        exclusive=True, arguments={"x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    )
    for body in numbered(2):
        raw.publish("", queue, body)
    raw.wait_for_count(queue, 2)
    tags = [get(raw, queue, no_ack=False)["delivery_tag"] for _ in range(2)]
    for body in numbered(2, 3):
        raw.publish("", queue, body)
    raw.wait_for_count(queue, 2)
    raw.send(method(1, "basic.nack", delivery_tag=tags[1], multiple=True, requeue=True))
    raw.wait_for_count(dead, 2)
    found = [get(raw, dead) for _ in range(2)]
    assert [(one.body, headers_in(one)["x-death"][0]["reason"]) for one in found] == [(b"1", "maxlen"), (b"2", "maxlen")]
    assert bodies_of([get(raw, queue), get(raw, queue)]) == [b"3", b"4"]


def test_a_queue_that_refuses_publishes_takes_back_all(raw):
    """x-overflow=reject-publish is about publishes alone."""
    queue = raw.declare_queue(exclusive=True, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    for body in numbered(2):
        raw.publish("", queue, body)
    raw.wait_for_count(queue, 2)
    for _ in range(2):
        get(raw, queue, no_ack=False)
    for body in numbered(2, 3):
        raw.publish("", queue, body)
    raw.wait_for_count(queue, 2)
    raw.send(method(1, "basic.nack", multiple=True, requeue=True))
    ready_becomes(raw, queue, 4)
    assert [body for body, _ in all_of(raw, queue)] == numbered(4)


# Dead letters


def dead_letters_of(raw, arguments, headers, names):
    """Have a message with these headers rejected: {name of the queue it came to: its headers}; `names`: queues to look in."""
    for name in names:
        raw.declare_queue(name, exclusive=True)
    queue = raw.declare_queue(exclusive=True, arguments=dict(arguments, **{"x-dead-letter-exchange": ""}))
    raw.call("exchange.declare-ok", 1, "exchange.declare", exchange=names[0], type="direct", auto_delete=True)
    raw.call("queue.bind-ok", 1, "queue.bind", queue=queue, exchange=names[0], routing_key="k")
    raw.publish(names[0], "k", b"dead", with_headers(**headers))
    raw.wait_for_count(queue, 1)
    raw.send(method(1, "basic.reject", delivery_tag=get(raw, queue, no_ack=False)["delivery_tag"]))
    raw.wait_for_count(names[0], 1)
    found = {}
    for name in names:
        content = get(raw, name)
        if content is not None:
            found[name] = headers_in(content)
            assert found[name]["x-death"][0]["queue"] == queue
            assert found[name]["x-death"][0]["routing-keys"][0] == "k"
    return found


def test_a_dead_letter_with_a_key_of_its_queue_has_no_cc(raw, name):
    """x-dead-letter-routing-key: CC goes, for it was the old way; x-death has all its keys."""
    found = dead_letters_of(raw, {"x-dead-letter-routing-key": name}, {"CC": [name + ".cc"], "z": 1}, [name, name + ".cc"])
    assert list(found) == [name]
    assert "CC" not in found[name] and found[name]["z"] == 1
    assert found[name]["x-death"][0]["routing-keys"][1:] == [name + ".cc"]


def test_a_dead_letter_that_keeps_its_keys_goes_by_cc_too(raw, name):
    found = dead_letters_of(raw, {}, {"CC": [name + ".cc"]}, [name + ".cc"])
    assert found[name + ".cc"]["CC"] == [name + ".cc"]
    assert found[name + ".cc"]["x-death"][0]["routing-keys"][1:] == [name + ".cc"]


# Queues


def test_a_passive_declare_is_use_of_a_queue_that_goes_unused(connect, name):
    """x-expires counts from the last declare, passive ones too (1.7.2.1)."""
    asks, other = connect(), connect()
    other.declare_queue(name, arguments={"x-expires": 2500})
    for _ in range(8):
        time.sleep(0.7)
        ready(asks, name)
    time.sleep(5)
    asks.send(method(1, "queue.declare", queue=name, passive=True))
    asks.expect_channel_close(404)


def test_a_server_asks_by_declare_whether_who_awaits_its_reply_is_there(connect, name):
    """Direct reply-to: declare-ok with one consumer while it is, passive or not, 404 when it has gone or the name is made up."""
    client, server = connect(), connect()
    server.declare_queue(name, exclusive=True)
    consume(client, "amq.rabbitmq.reply-to", no_ack=True)
    client.publish("", name, b"?", b"\x02\x00" + shortstr("amq.rabbitmq.reply-to"))
    server.wait_for_count(name, 1)
    reply_to = properties_in(get(server, name))["reply_to"]
    for queue in (reply_to, "amq.rabbitmq.reply-to"):
        for passive in (True, False):
            answer = server.call("queue.declare-ok", 1, "queue.declare", queue=queue, passive=passive)
            assert (answer["queue"], answer["message_count"], answer["consumer_count"]) == (queue, 0, 1)
    assert not is_there(server, "queue", reply_to[:-3] + "xyz")
    assert not is_there(server, "queue", "amq.rabbitmq.reply-to.xyz")
    client.close()
    deadline = time.monotonic() + 60
    while is_there(server, "queue", reply_to):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_consumer_with_credit_gets_a_message_before_get_does(connect, name):
    """A publish and a basic.get (1.8.3.10) in one piece, beside a consumer that waits."""
    waits, asks = connect(), connect()
    waits.declare_queue(name)
    consume(waits, name)
    for _ in range(20):
        asks.send(publish(1, "", name, b"x", NO_PROPERTIES, 131072) + method(1, "basic.get", queue=name, no_ack=True))
        asks.expect("basic.get-empty")
    assert bodies_of(deliveries(waits, 20)) == [b"x"] * 20
    waits.call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_a_consumer_without_credit_leaves_the_rest_to_get(connect, name):
    waits, asks = connect(), connect()
    waits.declare_queue(name)
    qos(waits, 1, False)
    consume(waits, name)
    asks.send(publish(1, "", name, b"1", NO_PROPERTIES, 131072) + publish(1, "", name, b"2", NO_PROPERTIES, 131072))
    asks.send(method(1, "basic.get", queue=name, no_ack=True))
    assert asks.read_content("basic.get-ok").body == b"2"
    assert bodies_of(deliveries(waits, 1)) == [b"1"]
    asks.call("queue.delete-ok", 1, "queue.delete", queue=name)


# Channels


def test_channels_are_counted_not_their_numbers(connect):
    """channel-max (1.4.2.6): RabbitMQ takes any number, and refuses one channel too many with 530."""
    peer = connect(channel_max=20)
    peer.call("channel.open-ok", 3000, "channel.open")
    queue = peer.declare_queue(channel=3000, exclusive=True)
    peer.publish("", queue, b"far", channel=3000)
    consume(peer, queue, channel=3000)
    assert bodies_of(deliveries(peer, 1)) == [b"far"]
    peer.call("channel.close-ok", 3000, "channel.close", reply_code=200)
    peer.call("channel.open-ok", 65535, "channel.open")


@pytest.mark.parametrize("octets", [method(9, "channel.open"), method(9, "basic.qos"), frame(BODY, 9, b"x")], ids=["open", "qos", "body"])
def test_one_channel_too_many_ends_the_connection(connect, octets):
    peer = connect(channel_max=3, channels=3)
    peer.send(octets)
    peer.expect_connection_close(530, "number of channels opened (3) has reached the negotiated channel_max (3)")


def test_a_closed_channel_makes_room_for_another(connect):
    peer = connect(channel_max=3, channels=3)
    peer.call("channel.close-ok", 2, "channel.close", reply_code=200)
    peer.call("channel.open-ok", 9, "channel.open")


# Names


def test_line_ends_are_taken_out_of_the_names_of_what_is_declared_bound_and_deleted(connect, name):
    """CR and LF in the names of exchange and queue; not in routing keys, and not where it is published, consumed or got."""
    peer = connect()
    assert peer.declare_queue(name + "\r\n.q") == name + ".q"
    peer.call("exchange.declare-ok", 1, "exchange.declare", exchange=name + "\n.x", type="direct")
    assert ready(peer, name + ".q\r") == 0
    peer.call("queue.bind-ok", 1, "queue.bind", queue="\n" + name + ".q", exchange=name + ".x\r", routing_key="k\n")
    peer.publish(name + ".x", "k\n", b"1")
    peer.publish(name + ".x", "k", b"2")
    peer.wait_for_count(name + ".q", 1)
    peer.call("exchange.bind-ok", 1, "exchange.bind", source="amq.\ntopic", destination=name + ".x\r", routing_key="k\n")
    peer.call("exchange.unbind-ok", 1, "exchange.unbind", source="amq.topic\n", destination=name + ".x", routing_key="k\n")
    peer.call("queue.unbind-ok", 1, "queue.unbind", queue=name + ".q\n", exchange=name + ".x\n", routing_key="k\n")
    peer.publish("", name + "\n.q", b"lost", mandatory=True)
    assert peer.read_content("basic.return").body == b"lost"
    assert not peer.declare_queue("\r\n", exclusive=True).startswith("\r")
    assert peer.call("queue.delete-ok", 1, "queue.delete", queue=name + "\n.q")["message_count"] == 1
    assert not is_there(peer, "queue", name + ".q")
    peer.call("exchange.delete-ok", 1, "exchange.delete", exchange=name + "\n.x")
    assert not is_there(peer, "exchange", name + ".x")
    peer.send(method(1, "basic.get", queue="no\n.q"))
    peer.expect_channel_close(404, "no queue 'no\n.q'")


@pytest.mark.parametrize("what", ["queue", "exchange"])
def test_a_name_is_reserved_without_its_line_ends_too(raw, what):
    raw.send(method(1, what + ".declare", **dict({what: "am\nq.mine"}, **({} if what == "queue" else {"type": "direct"}))))
    raw.expect_channel_close(403, "%s name 'amq.mine' contains reserved prefix 'amq.*'" % what)


# What a broker says of itself, and what outlives it


def test_the_server_tells_what_it_is_and_what_it_can_do(connect):
    """connection.start (1.4.2.1): what clients show or choose by; capabilities are those of RabbitMQ 3.10."""
    peer = connect(opened=False)
    properties = peer.start()["server_properties"]
    assert set(properties) == {"product", "version", "platform", "copyright", "information", "cluster_name", "capabilities"}
    assert all(isinstance(properties[each], str) and properties[each] for each in properties if each != "capabilities"), properties
    assert properties["capabilities"] == dict.fromkeys(
        (
            "publisher_confirms",
            "exchange_exchange_bindings",
            "basic.nack",
            "consumer_cancel_notify",
            "connection.blocked",
            "consumer_priorities",
            "authentication_failure_close",
            "per_consumer_qos",
            "direct_reply_to",
        ),
        True,
    )


@pytest.mark.parametrize("durable", [False, True])
def test_exclusive_queues_go_when_the_broker_stops_and_auto_delete_exchanges_with_them(kept, name, durable):
    """exchange.declare, auto-delete (1.6.2.1): the last binding goes with its queue, also where the peer does not answer the close."""
    peer = kept.connect()
    peer.call("exchange.declare-ok", 1, "exchange.declare", exchange=name, type="direct", auto_delete=True, durable=True)
    peer.declare_queue(name + ".q", exclusive=True, durable=durable)
    peer.call("queue.bind-ok", 1, "queue.bind", queue=name + ".q", exchange=name, routing_key="k")
    kept.restart()
    other = kept.connect()
    assert not is_there(other, "queue", name + ".q")
    assert not is_there(other, "exchange", name)
    peer.socket.close()
    other.close()


# Quorum queues and arguments that mean nothing to the broker

QUORUM = {"x-queue-type": "quorum"}


def test_a_quorum_queue_can_be_declared_and_keeps_what_is_published(kept, name):
    """What Telegraf, NServiceBus and Dapr declare; over a restart it is there, with its messages."""
    peer = kept.connect()
    for _ in range(2):
        peer.declare_queue(name, durable=True, arguments=QUORUM)
    peer.call("confirm.select-ok", 1, "confirm.select")
    peer.publish("", name, b"kept", b"\x10\x00\x02")
    peer.expect("basic.ack")
    got = get(peer, name, no_ack=False)
    assert (got.body, got["redelivered"]) == (b"kept", False)
    peer.send(method(1, "basic.nack", delivery_tag=got["delivery_tag"], requeue=True))
    peer.close()
    kept.restart()
    peer = kept.connect()
    peer.declare_queue(name, durable=True, arguments=QUORUM)
    consume(peer, name)
    again = deliveries(peer, 1)[0]
    assert (again.body, again["redelivered"]) == (b"kept", True)
    peer.send(method(1, "basic.ack", delivery_tag=again["delivery_tag"]))
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)
    peer.socket.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-delivery-limit": 5},
        {"x-quorum-initial-group-size": 3},
        {"x-message-ttl": 60000},
        {"x-max-length": 5, "x-overflow": "reject-publish"},
        {"x-dead-letter-exchange": "", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
        {"x-single-active-consumer": True},
        {"x-queue-leader-locator": "balanced"},
        {"x-max-in-memory-length": 5},
        {"x-delivery-limit": -1},
        {"x-ha-policy": "all"},
        {"x-internal-purpose": "mine"},
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_arguments_that_a_quorum_queue_takes(kept, name, arguments):
    peer = kept.connect()
    arguments = dict(QUORUM, **arguments)
    for _ in range(2):
        peer.declare_queue(name, durable=True, arguments=arguments)
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)
    peer.close()


@pytest.mark.parametrize(
    "values, text",
    [
        ({"durable": False}, "invalid property 'non-durable' for queue '%s' in vhost '/'"),
        ({"exclusive": True}, "invalid property 'exclusive-owner' for queue '%s' in vhost '/'"),
        ({"auto_delete": True}, "invalid property 'auto-delete' for queue '%s' in vhost '/'"),
        ({"x-max-priority": 5}, "invalid arg 'x-max-priority' for queue '%s' in vhost '/' of queue type rabbit_quorum_queue"),
        ({"x-max-age": "1D"}, "invalid arg 'x-max-age' for queue '%s' in vhost '/' of queue type rabbit_quorum_queue"),
        ({"x-queue-mode": "lazy"}, "invalid arg 'x-queue-mode' for queue '%s' in vhost '/' of queue type rabbit_quorum_queue"),
        ({"x-message-ttl": "x"}, "invalid arg 'x-message-ttl' for queue '%s' in vhost '/': \"expected integer, got longstr\""),
        ({"x-quorum-initial-group-size": "x"}, "invalid arg 'x-quorum-initial-group-size' for queue '%s' in vhost '/': \"expected integer"),
        ({"x-queue-leader-locator": "x"}, "invalid arg 'x-queue-leader-locator' for queue '%s' in vhost '/': "),
    ],
)
def test_what_is_no_quorum_queue(kept, name, values, text):
    peer = kept.connect()
    flags = {each: values[each] for each in values if not each.startswith("x-")}
    arguments = dict(QUORUM, **{each: values[each] for each in values if each.startswith("x-")})
    peer.send(method(1, "queue.declare", **dict({"queue": "q", "durable": True, "arguments": arguments}, **flags)))
    peer.expect_channel_close(406, text % "q")
    peer.close()


def test_a_quorum_queue_under_a_prefetch_of_the_channel(kept, name):
    peer = kept.connect()
    peer.declare_queue(name, durable=True, arguments=QUORUM)
    qos(peer, 1)
    peer.send(method(1, "basic.consume", queue=name))
    peer.expect_connection_close(540, "queue '%s' in vhost '/' does not support global qos" % name)
    peer = kept.connect()
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)
    peer.close()


@pytest.mark.parametrize(
    "first, second",
    [({}, QUORUM), (QUORUM, {}), (QUORUM, {"x-queue-type": "classic"})],
    ids=["none quorum", "quorum none", "quorum classic"],
)
def test_a_quorum_queue_is_no_classic_one(kept, name, first, second):
    peer = kept.connect()
    peer.declare_queue(name, durable=True, arguments=first)
    peer.send(method(1, "queue.declare", queue=name, durable=True, arguments=second))
    peer.expect_channel_close(406, "inequivalent arg 'x-queue-type' for queue '%s' in vhost '/': received" % name)
    peer.call("channel.open-ok", 1, "channel.open")
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)
    peer.close()


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "classic"}], ids=["none", "classic"])
def test_no_type_is_the_classic_type(raw, name, arguments):
    raw.declare_queue(name, exclusive=True, arguments=arguments)
    raw.declare_queue(name, exclusive=True, arguments={})
    raw.declare_queue(name, exclusive=True, arguments={"x-queue-type": "classic"})


UNKNOWN = ("x-stream-filter-size-bytes", "x-ha-policy", "x-internal-purpose", "x-anything")


@pytest.mark.parametrize("argument", UNKNOWN)
def test_arguments_that_mean_nothing_are_taken(raw, name, argument):
    """By queues, exchanges, bindings and consumers, and by the same declaration again."""
    given = {argument: {"of": ["any", 1, True]}}
    for _ in range(2):
        raw.declare_queue(name, exclusive=True, arguments=given)
        raw.call("exchange.declare-ok", 1, "exchange.declare", exchange=name, type="direct", auto_delete=True, arguments=given)
        raw.call("queue.bind-ok", 1, "queue.bind", queue=name, exchange=name, routing_key="k", arguments=given)
    consume(raw, name, arguments=given)
    raw.publish(name, "k", b"x")
    assert bodies_of(deliveries(raw, 1)) == [b"x"]


@pytest.mark.parametrize(
    "arguments", [{"x-initial-cluster-size": 1}, {"x-stream-filter-size-bytes": 32}, {"x-queue-leader-locator": "balanced"}], ids=" ".join
)
def test_what_stream_clients_declare(kept, name, arguments):
    peer = kept.connect()
    for _ in range(2):
        peer.declare_queue(name, durable=True, arguments=dict(arguments, **{"x-queue-type": "stream"}))
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)
    peer.close()


@pytest.mark.parametrize(
    "arguments, type_",
    [
        ({"x-max-age": "1D"}, "classic"),
        ({"x-stream-max-segment-size-bytes": 100}, "classic"),
        ({"x-queue-type": "stream", "x-max-length": 5}, "stream"),
        ({"x-queue-type": "stream", "x-message-ttl": 5}, "stream"),
        ({"x-queue-type": "stream", "x-dead-letter-exchange": ""}, "stream"),
    ],
)
def test_arguments_of_another_type_of_queue_are_refused(raw, arguments, type_):
    raw.send(method(1, "queue.declare", queue="q", durable=True, arguments=arguments))
    last = list(arguments)[-1]
    raw.expect_channel_close(406, "invalid arg '%s' for queue 'q' in vhost '/' of queue type rabbit_%s_queue" % (last, type_))
