"""Publish, get, return, consume, cancel, qos and flow (class basic), frame by frame."""

from amqp_wire import encode_properties, method, publish
from basic_calls import bodies_of, consume, deliveries, get, numbered, queue_of


def test_get_takes_in_order_and_counts_what_is_left(raw):
    queue = queue_of(raw, numbered(3))
    for left in (2, 1, 0):
        got = get(raw, queue)
        assert (got.body, got["message_count"], got["redelivered"]) == (b"%d" % (3 - left), left, False)
        assert (got["exchange"], got["routing_key"]) == ("", queue)
    assert get(raw, queue) is None


def test_get_counts_delivery_tags_per_channel(connect):
    peer = connect(channels=2)
    queue = queue_of(peer, numbered(4))
    assert [get(peer, queue, channel=channel)["delivery_tag"] for channel in (1, 1, 2, 1)] == [1, 2, 1, 3]


def test_get_from_a_missing_queue_is_404(raw, name):
    raw.send(method(1, "basic.get", queue=name))
    raw.expect_channel_close(404, "NOT_FOUND - no queue '%s' in vhost '/'" % name, method_of="basic.get")


def test_publish_without_mandatory_to_nowhere_is_dropped_quietly(raw):
    raw.publish("amq.direct", "t.nobody", b"x")
    raw.call("basic.qos-ok", 1, "basic.qos")


def test_mandatory_comes_back_whole(raw):
    properties = {"content_type": "text/plain", "message_id": "m1", "headers": {"a": 1}}
    raw.publish("amq.topic", "t.nobody.home", b"come back", properties, mandatory=True)
    got = raw.read_content("basic.return")
    assert (got["reply_code"], got["reply_text"]) == (312, "NO_ROUTE")
    assert (got["exchange"], got["routing_key"], got.body) == ("amq.topic", "t.nobody.home", b"come back")
    assert got.properties == encode_properties(properties)


def test_mandatory_that_is_routed_does_not_come_back(raw):
    queue = queue_of(raw)
    raw.publish("", queue, b"x", mandatory=True)
    raw.call("basic.qos-ok", 1, "basic.qos")


def test_a_return_keeps_its_place_among_the_replies_of_its_channel(raw):
    """Without confirms a synchronous method is the only way to know that nothing came back: the return may not come after its answer."""
    for turn in range(3):
        raw.publish("amq.direct", "t.nobody", b"%d" % turn, mandatory=True)
        raw.send(method(1, "basic.qos"))
        assert raw.read_content("basic.return").body == b"%d" % turn
        raw.expect("basic.qos-ok")


def test_consume_gets_what_is_there_and_what_comes(raw):
    queue = queue_of(raw, numbered(2))
    tag = consume(raw, queue, no_ack=True)
    raw.publish("", queue, b"3")
    got = deliveries(raw, 3)
    assert bodies_of(got) == numbered(3)
    assert [one["delivery_tag"] for one in got] == [1, 2, 3]
    assert {(one["consumer_tag"], one["redelivered"], one["exchange"], one["routing_key"]) for one in got} == {(tag, False, "", queue)}


def test_a_consumer_tag_of_the_clients_choice(raw):
    queue = queue_of(raw, [b"x"])
    assert consume(raw, queue, consumer_tag="my tag \u20ac", no_ack=True) == "my tag \u20ac"
    assert deliveries(raw, 1)[0]["consumer_tag"] == "my tag \u20ac"


def test_the_brokers_consumer_tags_differ(raw):
    queue = queue_of(raw)
    assert len({consume(raw, queue) for _ in range(5)}) == 5


def test_consume_no_wait(raw):
    queue = queue_of(raw, [b"x"])
    raw.send(method(1, "basic.consume", queue=queue, consumer_tag="quiet", no_ack=True, no_wait=True))
    assert deliveries(raw, 1)[0]["consumer_tag"] == "quiet"
    raw.send(method(1, "basic.cancel", consumer_tag="quiet", no_wait=True))
    raw.publish("", queue, b"y")
    raw.wait_for_count(queue, 1)


def test_a_consumer_tag_used_twice_on_a_channel_is_530(connect):
    peer = connect(channels=2)
    queue = queue_of(peer)
    consume(peer, queue, consumer_tag="twice")
    consume(peer, queue, channel=2, consumer_tag="twice")
    peer.send(method(1, "basic.consume", queue=queue, consumer_tag="twice"))
    peer.expect_connection_close(530, "NOT_ALLOWED - attempt to reuse consumer tag 'twice'", "basic.consume")


def test_a_tag_is_free_again_after_cancel(raw):
    queue = queue_of(raw)
    for _ in range(20):
        consume(raw, queue, consumer_tag="again")
        raw.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag="again")


def test_cancel_of_an_unknown_tag_is_fine(raw):
    assert raw.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag="never")["consumer_tag"] == "never"


def test_consume_from_a_missing_queue_is_404(raw, name):
    raw.send(method(1, "basic.consume", queue=name))
    raw.expect_channel_close(404, "NOT_FOUND - no queue '%s' in vhost '/'" % name, method_of="basic.consume")


def test_nothing_comes_after_cancel_ok(raw):
    queue = queue_of(raw)
    tag = consume(raw, queue, no_ack=True)
    raw.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag=tag)
    raw.publish("", queue, b"x")
    raw.wait_for_count(queue, 1)
    assert raw.silent(0.1)


def test_cancel_keeps_what_is_unacknowledged_on_the_channel(raw):
    queue = queue_of(raw, numbered(2))
    tag = consume(raw, queue)
    got = deliveries(raw, 2)
    raw.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag=tag)
    raw.wait_for_count(queue, 0)
    raw.send(method(1, "basic.ack", delivery_tag=got[0]["delivery_tag"]))
    raw.send(method(1, "basic.reject", delivery_tag=got[1]["delivery_tag"], requeue=True))
    raw.wait_for_count(queue, 1)


def test_an_exclusive_consumer_shuts_the_others_out(connect, name):
    peer, other = connect(), connect()
    queue_of(peer, queue=name, exclusive=False)
    consume(peer, name, exclusive=True)
    other.send(method(1, "basic.consume", queue=name))
    text = "ACCESS_REFUSED - queue '%s' in vhost '/' in exclusive use" % name
    other.expect_channel_close(403, text, method_of="basic.consume")
    peer.close()
    other.call("channel.open-ok", 1, "channel.open")
    other.call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_exclusive_is_refused_while_another_consumes(raw):
    queue = queue_of(raw)
    consume(raw, queue)
    raw.send(method(1, "basic.consume", queue=queue, exclusive=True))
    raw.expect_channel_close(403, "ACCESS_REFUSED - queue '%s' in vhost '/' in exclusive use" % queue)


def test_consumers_take_turns(connect):
    peer = connect(channels=3)
    queue = queue_of(peer)
    for channel in (1, 2, 3):
        consume(peer, queue, channel=channel, no_ack=True)
    for body in numbered(30):
        peer.publish("", queue, body)
    channels = [peer.read_content("basic.deliver").method.channel for _ in range(30)]
    assert {channel: channels.count(channel) for channel in (1, 2, 3)} == {1: 10, 2: 10, 3: 10}


def test_consumers_on_two_connections_take_turns(connect, name):
    first, second, publisher = connect(), connect(), connect()
    queue_of(publisher, queue=name, exclusive=False)
    consume(first, name, no_ack=True)
    consume(second, name, no_ack=True)
    for body in numbered(20):
        publisher.publish("", name, body)
    got = bodies_of(deliveries(first, 10)) + bodies_of(deliveries(second, 10))
    assert sorted(got, key=int) == numbered(20)
    publisher.call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_no_local_is_not_obeyed(raw):
    """0-9-1 has no-local; RabbitMQ (and so Leveret) ignores it: kombu and others set it without meaning it."""
    queue = queue_of(raw)
    consume(raw, queue, no_local=True, no_ack=True)
    raw.publish("", queue, b"mine")
    assert deliveries(raw, 1)[0].body == b"mine"


def test_prefetch_holds_back(raw):
    queue = queue_of(raw, numbered(10))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=3)
    consume(raw, queue)
    assert bodies_of(deliveries(raw, 3)) == numbered(3)
    assert raw.silent(0.1)
    raw.send(method(1, "basic.ack", delivery_tag=1))
    assert bodies_of(deliveries(raw, 1)) == [b"4"]
    assert raw.silent(0.1)
    raw.send(method(1, "basic.ack", delivery_tag=4, multiple=True))
    assert bodies_of(deliveries(raw, 3)) == numbered(3, 5)
    assert raw.silent(0.1)


def test_prefetch_is_per_consumer_and_taken_at_consume(raw):
    first, second = queue_of(raw, numbered(9)), queue_of(raw, numbered(9))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=2)
    consume(raw, first)
    assert {one["routing_key"] for one in deliveries(raw, 2)} == {first}
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=4)
    consume(raw, second)
    assert {one["routing_key"] for one in deliveries(raw, 4)} == {second}
    assert raw.silent(0.1)


def test_global_prefetch_is_shared_by_the_channels_consumers(raw):
    first, second = queue_of(raw, numbered(9)), queue_of(raw, numbered(9))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=5, **{"global": True})
    consume(raw, first)
    got = deliveries(raw, 5)
    consume(raw, second)
    assert raw.silent(0.1)
    raw.send(method(1, "basic.ack", delivery_tag=got[0]["delivery_tag"]))
    deliveries(raw, 1)
    assert raw.silent(0.1)


def test_both_prefetches_together_the_smaller_holds(raw):
    queue = queue_of(raw, numbered(9))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=2)
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=6, **{"global": True})
    consume(raw, queue)
    deliveries(raw, 2)
    assert raw.silent(0.1)


def test_prefetch_0_is_no_limit(raw):
    queue = queue_of(raw, numbered(300))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=0)
    consume(raw, queue)
    assert bodies_of(deliveries(raw, 300)) == numbered(300)


def test_no_ack_consumers_know_no_prefetch(raw):
    queue = queue_of(raw, numbered(20))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=1)
    consume(raw, queue, no_ack=True)
    assert bodies_of(deliveries(raw, 20)) == numbered(20)


def test_get_is_not_held_back_by_prefetch(raw):
    queue = queue_of(raw, numbered(4))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=1)
    assert [get(raw, queue, no_ack=False).body for _ in range(4)] == numbered(4)


def test_prefetch_window_with_nack_and_reject(raw):
    queue = queue_of(raw, numbered(6))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=2)
    consume(raw, queue)
    deliveries(raw, 2)
    raw.send(method(1, "basic.reject", delivery_tag=1))
    assert deliveries(raw, 1)[0].body == b"3"
    raw.send(method(1, "basic.nack", delivery_tag=3, multiple=True))
    assert bodies_of(deliveries(raw, 2)) == [b"4", b"5"]


def test_channel_flow_on_is_answered(raw):
    assert raw.call("channel.flow-ok", 1, "channel.flow", active=True)["active"] is True


def test_channel_flow_off_is_not_served(raw):
    """class channel: "asks the peer to pause or restart the flow of content data". RabbitMQ has it not, and clients count on 540."""
    raw.send(method(1, "channel.flow", active=False))
    raw.expect_connection_close(540, "NOT_IMPLEMENTED - active=false", "channel.flow")


def test_a_consumer_that_does_not_read_stops_nobody(connect, name):
    """16 MB wait for the slow one, far more than its stream holds; the other's messages flow on meanwhile, and nothing is lost."""
    slow, fast, publisher = connect(receive_buffer=4096), connect(), connect()
    slow_queue, fast_queue = name + ".slow", name + ".fast"
    for queue in (slow_queue, fast_queue):
        publisher.declare_queue(queue)
    consume(slow, slow_queue, no_ack=True)
    consume(fast, fast_queue, no_ack=True)
    body = b"s" * 131064
    for number in range(128):
        publisher.publish("", slow_queue, body)
        publisher.publish("", fast_queue, b"%d" % number)
        assert fast.read_content("basic.deliver").body == b"%d" % number
    for _ in range(128):
        assert slow.read_content("basic.deliver").body == body
    for queue in (slow_queue, fast_queue):
        publisher.call("queue.delete-ok", 1, "queue.delete", queue=queue)


def test_a_slow_reader_shares_a_queue_with_a_fast_one(connect, name):
    """Both consume from one queue with a prefetch: the fast one is not kept waiting by what the slow one holds."""
    slow, fast, publisher = connect(receive_buffer=4096), connect(), connect()
    publisher.declare_queue(name)
    for peer in (slow, fast):
        peer.call("basic.qos-ok", 1, "basic.qos", prefetch_count=1)
        consume(peer, name)
    for number in range(20):
        publisher.publish("", name, b"%d" % number * 1000)
    for _ in range(19):
        fast.send(method(1, "basic.ack", delivery_tag=fast.read_content("basic.deliver")["delivery_tag"]))
    publisher.wait_for_count(name, 0)
    publisher.call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_a_return_comes_before_the_close_of_a_channel_that_fails_in_the_same_read(raw):
    """Section 1.8.3.9: what was published before the error was taken."""
    raw.send(
        publish(1, "amq.topic", "t.nobody.home", b"come back", mandatory=True) + method(1, "basic.ack", delivery_tag=77, multiple=False)
    )
    assert raw.read_content("basic.return").body == b"come back"
    raw.expect_channel_close(406, method_of="basic.ack")
