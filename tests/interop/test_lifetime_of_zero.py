"""Lifetimes of messages as RabbitMQ has them (x-message-ttl, property expiration): a lifetime of 0."""

import pytest
from amqp_wire import method, publish
from basic_calls import bodies_of, consume, deliveries

EXPIRATION_0 = b"\x01\x00\x010"
OF_QUEUE = ({"x-message-ttl": 0}, b"\x00\x00")
OF_MESSAGE = ({}, EXPIRATION_0)
BOTH = ({"x-message-ttl": 60000}, EXPIRATION_0)


@pytest.mark.parametrize("arguments, properties", [OF_QUEUE, OF_MESSAGE, BOTH], ids=["queue", "message", "both"])
def test_what_nobody_takes_at_once_is_over(raw, name, arguments, properties):
    """basic.get in the same piece as the publish gets nothing, queue.declare counts nothing, and who subscribes then gets nothing."""
    raw.declare_queue(name, arguments=arguments)
    for _ in range(25):
        raw.send(publish(1, "", name, b"x", properties, 131072) + method(1, "basic.get", queue=name, no_ack=True))
        raw.expect("basic.get-empty")
    raw.send(publish(1, "", name, b"x", properties, 131072) + method(1, "queue.declare", queue=name, passive=True))
    assert raw.expect("queue.declare-ok")["message_count"] == 0
    raw.send(publish(1, "", name, b"x", properties, 131072) + method(1, "basic.consume", queue=name, consumer_tag="t", no_ack=True))
    raw.expect("basic.consume-ok")
    raw.publish("", name, b"behind")
    assert bodies_of(deliveries(raw, 1)) == [b"behind"]
    raw.call("queue.delete-ok", 1, "queue.delete", queue=name)


@pytest.mark.parametrize("arguments, properties", [OF_QUEUE, OF_MESSAGE], ids=["queue", "message"])
def test_a_consumer_that_waits_gets_it(connect, name, arguments, properties):
    waits, asks = connect(), connect()
    waits.declare_queue(name, arguments=arguments)
    consume(waits, name)
    for number in range(20):
        asks.publish("", name, b"%d" % number, properties)
    assert bodies_of(deliveries(waits, 20)) == [b"%d" % number for number in range(20)]
    waits.call("queue.delete-ok", 1, "queue.delete", queue=name)
