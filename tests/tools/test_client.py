"""The blocking client (ports/client.py) against a broker in this process: its stream is a pair of buffers, its clock stands still unless a
test moves it. What it says of brokers that are far away: tests/bridge/test_blocking_client.py."""

import socket

import pytest
from inside import Clock, Stream, new_broker

from leveret.ports import client as module
from leveret.ports import client_errors as errors
from leveret.ports import moving

LOGIN = {"user": "guest", "password": "guest", "virtual_host": "/"}


@pytest.fixture
def clock(monkeypatch):
    moment = Clock()
    for each in (module, moving):
        monkeypatch.setattr(each, "now_ms", moment)
    return moment


@pytest.fixture
def inside(clock):
    """(client, its stream, the broker)."""
    broker = new_broker()
    stream = Stream(broker)
    made = module.Connection(stream, 500, dict(module.SIZES, **LOGIN))
    yield made, stream, broker
    stream.close()


def test_a_queue_from_its_declaration_to_its_end(inside):
    """Each request has its reply: names and counts as the broker tells them."""
    client, _, broker = inside
    assert client.queue_declare("q", durable=True) == ("q", 0, 0)
    client.exchange_declare("x", "topic")
    client.queue_bind("q", "x", "a.*")
    client.publish("x", "a.b", b"1")
    client.publish("x", "other", b"nowhere")
    client.queue_unbind("q", "x", "a.*")
    client.publish("x", "a.b", b"gone")
    client.publish("", "q", b"2")
    assert client.queue_declare("q", passive=True) == ("q", 2, 0)
    assert client.queue_purge("q") == 2 and client.queue_purge("q") == 0
    client.publish("", "q", b"3")
    with pytest.raises(errors.ChannelClosed, match="406"):
        client.queue_delete("q", if_empty=True)
    assert client.queue_delete("q") == 1 and "q" not in broker.queues
    client.exchange_delete("x")
    assert "x" not in broker.exchanges


def test_get_gives_a_message_or_none_and_what_is_not_acknowledged_comes_back(inside):
    client, _, broker = inside
    client.queue_declare("q")
    assert client.get("q") is None
    client.publish("", "q", b"body", {"type": "t"})
    message = client.get("q")
    assert (message.body, message.routing_key, message.properties, message.redelivered) == (b"body", "q", {"type": "t"}, False)
    client.nack(message)
    again = client.get("q")
    assert again.redelivered and again.body == b"body"
    client.nack(again.delivery_tag, requeue=False)
    assert client.get("q") is None and broker.queues["q"].message_count() == 0


def test_a_consumer_gets_what_its_prefetch_lets_through_and_ends(inside):
    client, _, broker = inside
    client.queue_declare("q")
    client.qos(2)
    tag = client.consume("q", "mine")
    assert tag == "mine"
    for number in range(5):
        client.publish("", "q", b"%d" % number)
    first = client.poll()
    assert [each.body for each in first] == [b"0", b"1"]
    client.ack(first[-1], multiple=True)
    second = client.poll()
    assert [each.body for each in second] == [b"2", b"3"]
    client.ack(second[0].delivery_tag)
    assert [each.body for each in client.poll()] == [b"4"]
    client.cancel(tag)
    client.publish("", "q", b"5")
    assert client.poll() == [] and broker.queues["q"].message_count() == 1


def test_poll_waits_for_as_long_as_it_is_told_and_messages_goes_on_until_then(inside, clock):
    client, _, _ = inside
    clock.runs = 1
    client.queue_declare("q")
    client.consume("q", no_ack=True)
    before = clock.now
    assert client.poll(300) == [] and 300 <= clock.now - before < 400
    for body in (b"a", b"b"):
        client.publish("", "q", body)
    assert [message.body for message in client.messages(50)] == [b"a", b"b"]


def test_a_channel_that_the_broker_closed_is_opened_by_the_next_request(inside):
    client, _, _ = inside
    with pytest.raises(errors.ChannelClosed) as told:
        client.queue_declare("absent", passive=True)
    assert told.value.code == 404 and "no queue 'absent'" in told.value.text
    with pytest.raises(errors.ChannelClosed, match="the channel is closed"):
        client.ack(1)
    assert client.queue_declare("q")[0] == "q"


def test_what_closed_the_channel_is_raised_by_the_next_call_that_needs_it(inside):
    """An acknowledgement of nothing: the broker's answer comes later, and is the reason that a call gets."""
    client, _, _ = inside
    client.queue_declare("q")
    client.ack(77)
    client.step(0)
    with pytest.raises(errors.ChannelClosed, match="unknown delivery tag 77"):
        client.ack(78)


def test_a_publish_is_confirmed_refused_or_comes_back(inside):
    client, _, _ = inside
    client.queue_declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.publish("", "full", b"fits")
    with pytest.raises(errors.NotConfirmed, match="did not take 1 messages"):
        client.publish("", "full", b"one too many")
    with pytest.raises(errors.Unroutable, match="no queue for routing key 'nowhere' of exchange '': 312") as told:
        client.publish("", "nowhere", b"x", mandatory=True)
    assert told.value.message.body == b"x"
    client.publish("", "nowhere", b"x")
    for _ in range(2):
        client.publish("", "full", b"x", confirm=False)
    with pytest.raises(errors.NotConfirmed, match="did not take 2 messages"):
        client.wait_confirmed()
    client.wait_confirmed()


def test_unconfirmed_publishes_go_out_once_a_millisecond(inside, clock):
    client, stream, _ = inside
    client.queue_declare("q")
    client.publish("", "q", b"x", confirm=False)
    before = stream.written
    client.publish("", "q", b"y", confirm=False)
    assert stream.written == before and client.unconfirmed >= 1
    clock.now += 1
    client.publish("", "q", b"z", confirm=False)
    assert stream.written > before
    client.wait_confirmed()
    assert client.unconfirmed == 0


def test_a_transaction_takes_effect_at_its_commit(inside):
    client, _, broker = inside
    client.queue_declare("q")
    client.tx_select()
    client.tx_publish("", "q", b"1")
    client.tx_publish("", "q", b"2")
    client.step(0)
    assert broker.queues["q"].message_count() == 0
    client.tx_commit()
    assert broker.queues["q"].message_count() == 2
    client.tx_publish("", "nowhere", b"3", mandatory=True)
    with pytest.raises(errors.Unroutable):
        client.tx_commit()


def test_no_answer_is_a_time_out_after_its_time_and_not_before(inside, clock):
    client, stream, _ = inside
    stream.deaf = True
    clock.runs = 1
    before = clock.now
    with pytest.raises(errors.Timeout, match="no answer from the broker in 500 ms"):
        client.queue_declare("q")
    assert 500 <= clock.now - before < 600


def test_a_consumer_whose_queue_goes_is_told(inside):
    client, _, broker = inside
    client.queue_declare("q")
    tag = client.consume("q")
    broker.topology.drop_queue(broker.queues["q"])
    client.step(0)
    assert client.cancelled_consumers == [tag]


def test_a_content_that_is_too_large_is_told_and_stays(clock):
    broker = new_broker()
    stream = Stream(broker)
    client = module.Connection(stream, 500, dict(module.SIZES, **LOGIN, content_size_max=10))
    client.queue_declare("q")
    client.publish("", "q", b"x" * 11)
    with pytest.raises(errors.TooLarge, match="the message stays unacknowledged") as told:
        client.get("q")
    client.nack(told.value.message)
    client.step(0)
    assert broker.queues["q"].message_count() == 1
    stream.close()


def test_the_end_is_said_in_the_broker_s_words_to_every_later_call(inside):
    client, stream, broker = inside
    stream.served.close("the broker is shutting down")
    for _ in range(2):
        with pytest.raises(errors.ConnectionLost, match="is over: .*shutting down") as told:
            client.queue_declare("q")
        assert told.value.code == 320
    assert stream.closed
    client.close()


def test_close_ends_the_connection_in_good_order(inside):
    client, stream, broker = inside
    client.close()
    assert stream.closed and stream.served.closed and not broker.connections


def test_a_log_in_that_is_refused_is_told_with_its_code(clock):
    broker = new_broker()
    stream = Stream(broker)
    clock.runs = 1
    broker.tick(0, 0)
    ticks = stream.read_into

    def read_into(view):
        clock.now += 50
        broker.tick(clock.now, 0)
        stream.served.tick(clock.now)
        return ticks(view)

    stream.read_into = read_into
    given = dict(LOGIN, password="wrong")
    with pytest.raises(errors.LoginRefused, match="the broker refuses the log-in: 403 "):
        module.Connection(stream, 5000, dict(module.SIZES, **given))
    stream.close()


def test_who_takes_the_stream_over_gets_it_with_nothing_under_way(inside):
    client, stream, _ = inside
    taken, frame_size_max, heartbeat_s = client.hand_over()
    assert (taken, frame_size_max, heartbeat_s, len(client._client.pending())) == (stream, 4096, 60, 0)


def test_where_no_broker_is_nobody_answers():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(errors.ConnectFailed, match="no broker answers at 127.0.0.1:%d: " % port):
        module.connect("amqp://127.0.0.1:%d/" % port, timeout_ms=2000)
