"""Publish, get, consume, acknowledge, requeue, qos, return and confirms (class basic, class confirm), frame by frame."""
import struct

import pytest

from amqp_wire import encode_properties, method


def queue_of(peer, bodies=(), queue="", **values):
    """A new queue (exclusive, server-named unless told) holding these bodies."""
    values.setdefault("exclusive", True)
    queue = peer.declare_queue(queue, **values)
    for body in bodies:
        peer.publish("", queue, body)
    peer.wait_for_count(queue, len(bodies))
    return queue


def get(peer, queue, no_ack=True, channel=1):
    """A Content, or None when the queue is empty."""
    peer.send(method(channel, "basic.get", queue=queue, no_ack=no_ack))
    first = peer.read_frame()
    if first.name == "basic.get-empty":
        return None
    return finish(peer, first, "basic.get-ok")


def finish(peer, first, name):
    """The content whose method was read already."""
    assert first.name == name, first
    peer.buffer = rebuilt(first) + peer.buffer
    return peer.read_content(name)


def rebuilt(got):
    return struct.pack(">BHI", got.kind, got.channel, len(got.payload)) + got.payload + b"\xce"


def consume(peer, queue, channel=1, **values):
    return peer.call("basic.consume-ok", channel, "basic.consume", queue=queue, **values)["consumer_tag"]


def deliveries(peer, count):
    return [peer.read_content("basic.deliver") for _ in range(count)]


def bodies_of(contents):
    return [content.body for content in contents]


def numbered(count, start=1):
    return [b"%d" % number for number in range(start, start + count)]


# ---- publish and get

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


# ---- consume and cancel

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


# ---- qos

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


# ---- ack, nack, reject, recover

def test_ack_takes_the_message_away_for_good(connect, name):
    peer = connect()
    queue_of(peer, numbered(3), name, exclusive=False)
    consume(peer, name)
    deliveries(peer, 3)
    peer.send(method(1, "basic.ack", delivery_tag=2))
    peer.call("channel.close-ok", 1, "channel.close", reply_code=200)
    peer.call("channel.open-ok", 1, "channel.open")
    got = [get(peer, name) for _ in range(2)]
    assert [(one.body, one["redelivered"]) for one in got] == [(b"1", True), (b"3", True)]
    assert get(peer, name) is None
    peer.call("queue.delete-ok", 1, "queue.delete", queue=name)


def test_a_lost_connection_gives_back_in_order(connect, name):
    peer, other = connect(), connect()
    queue_of(other, numbered(5), name, exclusive=False)
    peer.call("basic.qos-ok", 1, "basic.qos", prefetch_count=3)
    consume(peer, name)
    deliveries(peer, 3)
    peer.socket.close()
    other.wait_for_count(name, 5)
    got = [get(other, name) for _ in range(5)]
    assert [(one.body, one["redelivered"]) for one in got] == [
        (b"1", True), (b"2", True), (b"3", True), (b"4", False), (b"5", False)]
    other.call("queue.delete-ok", 1, "queue.delete", queue=name)


@pytest.mark.parametrize("name_of_method", ["basic.nack", "basic.reject"])
def test_requeue_puts_back_in_place_and_marks(raw, name_of_method):
    queue = queue_of(raw, numbered(4))
    taken = [get(raw, queue, no_ack=False) for _ in range(3)]
    raw.send(method(1, name_of_method, delivery_tag=taken[1]["delivery_tag"], requeue=True))
    raw.wait_for_count(queue, 2)
    raw.send(method(1, name_of_method, delivery_tag=taken[0]["delivery_tag"], requeue=True))
    raw.wait_for_count(queue, 3)
    got = [get(raw, queue) for _ in range(3)]
    assert [(one.body, one["redelivered"]) for one in got] == [(b"1", True), (b"2", True), (b"4", False)]


@pytest.mark.parametrize("name_of_method", ["basic.nack", "basic.reject"])
def test_without_requeue_it_is_gone(raw, name_of_method):
    queue = queue_of(raw, numbered(2))
    raw.send(method(1, name_of_method, delivery_tag=get(raw, queue, no_ack=False)["delivery_tag"]))
    assert get(raw, queue).body == b"2"
    assert get(raw, queue) is None


def test_nack_multiple_requeues_all_in_order(raw):
    queue = queue_of(raw, numbered(6))
    for _ in range(5):
        get(raw, queue, no_ack=False)
    raw.send(method(1, "basic.nack", delivery_tag=4, multiple=True, requeue=True))
    raw.wait_for_count(queue, 5)
    assert [get(raw, queue).body for _ in range(5)] == [b"1", b"2", b"3", b"4", b"6"]
    raw.send(method(1, "basic.ack", delivery_tag=5))
    raw.call("basic.qos-ok", 1, "basic.qos")


def test_tag_0_multiple_means_all(raw):
    queue = queue_of(raw, numbered(3))
    for _ in range(3):
        get(raw, queue, no_ack=False)
    raw.send(method(1, "basic.nack", delivery_tag=0, multiple=True, requeue=True))
    raw.wait_for_count(queue, 3)
    raw.send(method(1, "basic.ack", delivery_tag=0, multiple=True))
    raw.call("basic.qos-ok", 1, "basic.qos")


def test_requeued_goes_to_a_consumer_again(raw):
    queue = queue_of(raw, [b"x"])
    consume(raw, queue)
    for turn in range(3):
        got = deliveries(raw, 1)[0]
        assert (got.body, got["redelivered"], got["delivery_tag"]) == (b"x", turn > 0, turn + 1)
        raw.send(method(1, "basic.nack", delivery_tag=got["delivery_tag"], requeue=True))


@pytest.mark.parametrize("name_of_method", ["basic.ack", "basic.nack", "basic.reject"])
@pytest.mark.parametrize("tag", [0, 7, 2 ** 31, 2 ** 62, 2 ** 64 - 1])
def test_an_unknown_delivery_tag_closes_the_channel_with_406(raw, name_of_method, tag):
    raw.send(method(1, name_of_method, delivery_tag=tag))
    raw.expect_channel_close(406, "PRECONDITION_FAILED - unknown delivery tag %d" % tag, method_of=name_of_method)


def test_an_ack_twice_is_406(raw):
    queue = queue_of(raw, numbered(2))
    tag = get(raw, queue, no_ack=False)["delivery_tag"]
    for _ in range(2):
        raw.send(method(1, "basic.ack", delivery_tag=tag))
    raw.expect_channel_close(406, "PRECONDITION_FAILED - unknown delivery tag 1")


def test_an_ack_for_no_ack_is_406(raw):
    queue = queue_of(raw, [b"x"])
    tag = get(raw, queue, no_ack=True)["delivery_tag"]
    raw.send(method(1, "basic.ack", delivery_tag=tag))
    raw.expect_channel_close(406, "unknown delivery tag")


def test_a_tag_of_another_channel_is_unknown(connect):
    peer = connect(channels=2)
    queue = queue_of(peer, [b"x"])
    get(peer, queue, no_ack=False)
    peer.send(method(2, "basic.ack", delivery_tag=1))
    peer.expect_channel_close(406, "unknown delivery tag 1", channel=2)


def test_ack_multiple_beyond_the_last_is_406(raw):
    raw.send(method(1, "basic.ack", delivery_tag=5, multiple=True))
    raw.expect_channel_close(406, "PRECONDITION_FAILED - unknown delivery tag 5")


def test_a_channel_error_gives_back_what_was_unacknowledged(connect):
    peer = connect()
    queue = queue_of(peer, numbered(2))
    get(peer, queue, no_ack=False)
    peer.send(method(1, "basic.ack", delivery_tag=9))
    peer.expect_channel_close(406)
    peer.call("channel.open-ok", 1, "channel.open")
    peer.wait_for_count(queue, 2)
    got = get(peer, queue)
    assert (got.body, got["redelivered"], got["delivery_tag"]) == (b"1", True, 1)


def test_recover_requeues_all_of_the_channel(raw):
    queue = queue_of(raw, numbered(3))
    for _ in range(2):
        get(raw, queue, no_ack=False)
    raw.call("basic.recover-ok", 1, "basic.recover", requeue=True)
    raw.wait_for_count(queue, 3)
    got = [get(raw, queue) for _ in range(3)]
    assert [(one.body, one["redelivered"]) for one in got] == [(b"1", True), (b"2", True), (b"3", False)]


def test_recover_async_has_no_answer(raw):
    queue = queue_of(raw, [b"x"])
    get(raw, queue, no_ack=False)
    raw.send(method(1, "basic.recover-async", requeue=True))
    raw.wait_for_count(queue, 1)
    assert get(raw, queue)["redelivered"]


def test_recover_without_requeue_is_540(raw):
    """RabbitMQ has it not; a redelivery to the same consumer is nothing a requeue does not do."""
    raw.send(method(1, "basic.recover", requeue=False))
    raw.expect_connection_close(540, "NOT_IMPLEMENTED - ", "basic.recover")


def test_out_of_order_acks(raw):
    queue = queue_of(raw, numbered(50))
    raw.call("basic.qos-ok", 1, "basic.qos", prefetch_count=25)
    consume(raw, queue)
    got = deliveries(raw, 25)
    for one in reversed(got):
        raw.send(method(1, "basic.ack", delivery_tag=one["delivery_tag"]))
    assert sorted(bodies_of(deliveries(raw, 25)), key=int) == numbered(25, 26)


# ---- confirms

def confirmed_up_to(peer, highest):
    """Reads acks until every tag up to `highest` is confirmed, each exactly once; returns the set of nacked ones."""
    open_tags = set(range(1, highest + 1))
    nacked = set()
    while open_tags:
        got = peer.read_frame()
        assert got.name in ("basic.ack", "basic.nack"), got
        tag = got["delivery_tag"]
        covered = {one for one in open_tags if one <= tag} if got["multiple"] else {tag} & open_tags
        assert covered, "confirms nothing that is open: %r" % got
        open_tags -= covered
        if got.name == "basic.nack":
            nacked |= covered
    return nacked


def test_confirms_count_from_1_and_each_comes_once(raw):
    queue = queue_of(raw)
    for _ in range(2):
        raw.call("confirm.select-ok", 1, "confirm.select")
    for body in numbered(100):
        raw.publish("", queue, body, {"delivery_mode": 2})
    assert confirmed_up_to(raw, 100) == set()
    assert raw.silent(0.1)
    raw.wait_for_count(queue, 100)


def test_confirm_select_no_wait(raw):
    queue = queue_of(raw)
    raw.send(method(1, "confirm.select", nowait=True))
    raw.publish("", queue, b"x")
    assert confirmed_up_to(raw, 1) == set()


def test_what_goes_nowhere_is_confirmed_too(raw):
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("amq.direct", "t.nobody", b"x")
    assert confirmed_up_to(raw, 1) == set()


def test_the_return_comes_before_the_confirm(raw):
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("amq.direct", "t.nobody", b"x", mandatory=True)
    assert raw.read_content("basic.return").body == b"x"
    assert raw.expect("basic.ack")["delivery_tag"] == 1


def test_confirms_are_counted_per_channel(connect):
    peer = connect(channels=2)
    queue = queue_of(peer)
    for channel in (1, 2):
        peer.call("confirm.select-ok", channel, "confirm.select")
    for channel in (1, 2, 2):
        peer.publish("", queue, b"x", channel=channel)
    seen = {}
    while seen != {1: 1, 2: 2}:
        got = peer.expect("basic.ack")
        seen[got.channel] = max(seen.get(got.channel, 0), got["delivery_tag"])


def test_the_count_starts_with_select(raw):
    queue = queue_of(raw, numbered(3))
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("", queue, b"x")
    assert confirmed_up_to(raw, 1) == set()


def test_a_confirmed_publish_to_a_missing_exchange_is_404_and_no_ack(raw):
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("t.missing", "k", b"x")
    raw.expect_channel_close(404)


def test_confirms_while_consuming_on_the_same_channel(raw):
    queue = queue_of(raw)
    raw.call("confirm.select-ok", 1, "confirm.select")
    consume(raw, queue, no_ack=True)
    for body in numbered(50):
        raw.publish("", queue, body)
    open_tags, got = set(range(1, 51)), []
    while open_tags or len(got) < 50:
        first = raw.read_frame()
        if first.name == "basic.deliver":
            got.append(finish(raw, first, "basic.deliver").body)
        else:
            assert first.name == "basic.ack", first
            open_tags -= {tag for tag in open_tags if tag == first["delivery_tag"] or first["multiple"] and tag < first["delivery_tag"]}
    assert got == numbered(50)


# ---- channel.flow, fairness, slow readers

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
