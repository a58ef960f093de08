"""Acknowledge, reject, requeue and recover (class basic), frame by frame."""

import pytest
from amqp_wire import method
from basic_calls import bodies_of, consume, deliveries, get, numbered, queue_of


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
    assert [(one.body, one["redelivered"]) for one in got] == [(b"1", True), (b"2", True), (b"3", True), (b"4", False), (b"5", False)]
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
@pytest.mark.parametrize("tag", [0, 7, 2**31, 2**62, 2**64 - 1])
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
