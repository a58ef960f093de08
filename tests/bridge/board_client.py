"""The blocking client at work, on either interpreter: `python board_client.py amqp://127.0.0.1:5672/`; ends with the line "done".

Small buffers, as on a board: frames and bodies are larger than both of them. Called by test_blocking_client.py.
"""

import sys

from leveret.ports.client import ChannelClosed, ConnectFailed, LoginRefused, TooLarge, Unroutable, connect

SIZES = {"receive_size": 2048, "send_size": 2048, "frame_size_max": 8192, "content_size_max": 20000, "confirm_window": 32}
BODY_SIZES = (0, 1, 1000, 2047, 2048, 2049, 4096, 8184, 8185, 20000)


def expect(error, ask, text):
    """`ask()` raises `error`, and its sentence has `text` in it."""
    try:
        ask()
    except error as caught:
        assert text in str(caught), str(caught)
        return caught
    raise AssertionError("no " + error.__name__)


def body_of(size):
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def publish_and_get(client, queue):
    for size in BODY_SIZES:
        given = {"message_id": "m%d" % size, "headers": {"size": size}, "delivery_mode": 2}
        client.publish("", queue, body_of(size), given)
        message = client.get(queue)
        assert message.body == body_of(size) and message.properties == given and message.routing_key == queue
        client.ack(message)
    assert client.get(queue) is None


def refusals(client, queue, url):
    expect(Unroutable, lambda: client.publish("", "nonesuch", b"1", mandatory=True), "no queue for routing key 'nonesuch'")
    closed = expect(ChannelClosed, lambda: client.queue_declare("nonesuch", passive=True), "NOT_FOUND - no queue 'nonesuch'")
    assert closed.code == 404
    client.publish("", queue, bytes(20001))
    large = expect(TooLarge, lambda: client.get(queue), "20001 octets where 20000 are the most")
    client.nack(large.message, requeue=False)
    assert client.get(queue) is None
    expect(ConnectFailed, lambda: connect("amqp://127.0.0.1:1/"), "no broker answers at 127.0.0.1:1")
    refused = expect(LoginRefused, lambda: connect(url.replace("guest:guest", "guest:wrong"), **SIZES), "ACCESS_REFUSED")
    assert "403" in str(refused)


def stream_through(client, queue, count):
    """Publish without waiting, consume with acknowledgements for ten at a time."""
    for number in range(count):
        client.publish("", queue, b"%d" % number, confirm=False)
    client.wait_confirmed()
    client.qos(20)
    tag = client.consume(queue)
    bodies = []
    for message in client.messages(20000):
        bodies.append(int(message.body))
        if len(bodies) % 10 == 0:
            client.ack(message, multiple=True)
        if len(bodies) == count:
            break
    assert bodies == list(range(count))
    client.cancel(tag)


def main(url):
    client = connect(url, **SIZES)
    queue = "board-client"
    client.queue_delete(queue)
    assert client.queue_declare(queue, durable=True) == (queue, 0, 0)
    publish_and_get(client, queue)
    refusals(client, queue, url)
    stream_through(client, queue, 500)
    client.queue_delete(queue)
    client.close()
    print("done")


main(sys.argv[1])
