"""Scenes of queues, exchanges, bindings, channels and connections that come and go, with what is in them."""

from peer import encoded
from scenes import bind_often, consume_often, filled, holding, row


@row("queue.purge", 100000)
def purge(crowd, n):
    peer = filled(crowd, n)
    yield
    peer.do("queue_purge", 0, "q", True)
    assert crowd.broker.queues["q"].message_count() == 0


@row("queue.delete, all ready", 100000)
def delete_ready(crowd, n):
    peer = filled(crowd, n)
    yield
    peer.do("queue_delete", 0, "q", False, False, True)
    assert "q" not in crowd.broker.queues


@row("queue.delete, all unsettled", 100000)
def delete_unsettled(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.do("queue_delete", 0, "q", False, False, True)
    assert "q" not in crowd.broker.queues


@row("queue.delete, all unsettled, in many channels", 100000)
def delete_unsettled_in_channels(crowd, n):
    peer, other = crowd.peer(), crowd.peer()
    peer.queue("p")
    peer.queue("q")
    for number in range(2, 102):
        peer.send(encoded("channel_open", number, ""))
        peer.do("basic_qos", 0, n // 100, True, channel=number)
        peer.read("q", "c", channel=number)
        peer.read("p", "d", channel=number)
    other.fill("p", n // 2)
    other.fill("q", n // 2)
    yield
    other.do("queue_delete", 0, "q", False, False, True)
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max - 1


@row("queue.delete, of many consumers beside what is unsettled", 100000)
def delete_consumers(crowd, n):
    peer = holding(crowd, n)
    consume_often(peer, 1000)
    yield
    peer.do("queue_delete", 0, "q", False, False, True)
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max


@row("queue.delete, all delayed", 60000)
def delete_delayed(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.exchange("later", "x-delayed-message", {"x-delayed-type": "fanout"})
    peer.bind("q", "later")
    peer.fill("", n, "later", {"headers": {"x-delay": 1000000}})
    assert len(crowd.broker.waiting.heap) == n
    yield
    peer.do("queue_delete", 0, "q", False, False, True)
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max


@row("an auto-delete queue with many messages goes", 100000)
def auto_delete(crowd, n):
    peer = crowd.peer()
    peer.queue("q", auto_delete=True)
    peer.fill("q", n)
    peer.do("basic_qos", 0, 1, False)
    peer.read("q")
    yield
    peer.do("basic_cancel", "c", True)
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max


@row("a queue with many messages expires", 100000)
def expires(crowd, n):
    filled(crowd, n, {"x-expires": 5000})
    yield
    crowd.pass_time(8000)
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max


@row("an auto-delete queue with many bindings goes", 12000)
def auto_delete_bound(crowd, n):
    peer = crowd.peer()
    peer.queue("q", auto_delete=True)
    bind_often(peer, n, "amq.direct")
    peer.read("q")
    yield
    peer.do("basic_cancel", "c", True)
    assert crowd.broker.topology.binding_count == 0


@row("channel.close", 100000)
def channel_close(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.do("channel_close", 0, "", 0, 0)


@row("channel.close with many consumers", 4000)
def channel_close_consumers(crowd, n):
    peer = crowd.peer()
    peer.hold("q", 25 * n)
    consume_often(peer, n)
    yield
    peer.do("channel_close", 0, "", 0, 0)


@row("connection.close", 100000)
def connection_close(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.do("connection_close", 0, "", 0, 0, channel=0)


@row("a connection that is lost", 100000)
def lost(crowd, n):
    peer = holding(crowd, n)
    yield
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()


@row("channel.open and close", 2000)
def channels(crowd, n):
    peer = crowd.peer()
    yield
    peer.send(b"".join([encoded("channel_open", number, "") for number in range(2, n)]))
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()


@row("queue.declare and delete", 768)
def declares(crowd, n):
    peer = crowd.peer()
    yield
    peer.send(b"".join([encoded("queue_declare", 1, 0, "q%d" % each, False, False, False, False, True, {}) for each in range(n)]))
    peer.send(b"".join([encoded("queue_delete", 1, 0, "q%d" % each, False, False, True) for each in range(n)]))


@row("a connection with exclusive queues that is lost", 768)
def lost_exclusive(crowd, n):
    peer = crowd.peer()
    peer.send(b"".join([encoded("queue_declare", 1, 0, "q%d" % each, False, False, True, False, True, {}) for each in range(n)]))
    others = crowd.peer()
    others.send(b"".join([encoded("channel_open", number, "") for number in range(2, 2000)]))
    yield
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()


@row("a connection with full exclusive queues that is lost", 100000)
def lost_exclusive_full(crowd, n):
    peer = crowd.peer()
    peer.send(b"".join([encoded("queue_declare", 1, 0, "q%d" % each, False, False, True, False, True, {}) for each in range(100)]))
    for each in range(100):
        peer.fill("q%d" % each, n // 100)
        if each % 2:
            peer.read("q%d" % each, "c%d" % each)
    yield
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max


@row("queue.bind and unbind", 12000)
def binds(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    yield
    bind_often(peer, n, "amq.direct")
    peer.send(b"".join([encoded("queue_unbind", 1, 0, "q", "amq.direct", "k%d" % each, {}) for each in range(n)]))


@row("queue.delete with bindings", 12000)
def delete_bound(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    bind_often(peer, n, "amq.direct")
    yield
    peer.do("queue_delete", 0, "q", False, False, True)


@row("exchange.delete with bindings", 12000)
def delete_exchange(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.exchange("e", "topic")
    bind_often(peer, n, "e")
    yield
    peer.do("exchange_delete", 0, "e", False, True)


@row("queue.unbind from one key that many queues have", 768)
def unbind_one_key(crowd, n):
    peer = crowd.peer()
    for each in range(n):
        peer.queue("q%d" % each)
        peer.bind("q%d" % each, "amq.topic", "a.#")
    yield
    peer.send(b"".join([encoded("queue_unbind", 1, 0, "q%d" % each, "amq.topic", "a.#", {}) for each in range(n)]))
