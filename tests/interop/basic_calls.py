"""What the tests of class basic say to a broker again and again: a queue with messages, get, consume, deliveries."""

import struct

from amqp_wire import method


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
