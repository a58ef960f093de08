"""Scenes of messages on their way to consumers and back: get, deliver, settle, confirm, return, transactions."""

from peer import content, encoded
from scenes import acknowledge, consume_often, fan, filled, holding, row, shuffled


@row("basic.ack, all at once", 100000)
def ack_all(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.do("basic_ack", 0, True)
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("basic.ack, one by one, in order", 100000)
def ack_each(crowd, n):
    peer = holding(crowd, n)
    yield
    acknowledge(peer, range(1, n + 1))


@row("basic.ack, one by one, at random", 100000)
def ack_random(crowd, n):
    peer = holding(crowd, n)
    tags = shuffled(n)
    yield
    acknowledge(peer, tags)
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("basic.ack, from the middle outwards", 100000)
def ack_middle(crowd, n):
    peer = holding(crowd, n)
    tags = [tag for pair in zip(range(n // 2, n), range(n // 2 - 1, 0, -1)) for tag in pair]
    yield
    acknowledge(peer, tags)
    assert crowd.broker.queues["q"].unsettled_count() < 5


@row("basic.nack, all at once, requeued", 100000)
def nack_all(crowd, n):
    peer = holding(crowd, n)
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_nack", 0, True, True)
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.nack, half of all, then the other half, requeued", 100000)
def nack_halves(crowd, n):
    peer = holding(crowd, n)
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_nack", n // 2, True, True)
    peer.do("basic_nack", 0, True, True)
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.nack, one by one at random, requeued", 20000)
def nack_random(crowd, n):
    peer = holding(crowd, n)
    peer.do("basic_cancel", "c", True)
    tags = shuffled(n)
    yield
    peer.send(b"".join([encoded("basic_nack", 1, tag, False, True) for tag in tags]))
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.nack, all at once, dropped", 100000)
def nack_drop(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.do("basic_nack", 0, True, False)


@row("basic.nack, all at once, to dead letters", 20000)
def nack_dead(crowd, n):
    peer = crowd.peer()
    peer.queue("dead")
    peer.hold("q", n, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    yield
    peer.do("basic_nack", 0, True, False)
    crowd.pass_time(1000)
    assert crowd.broker.queues["dead"].message_count() == n


@row("basic.recover", 100000)
def recover(crowd, n):
    peer = holding(crowd, n)
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_recover", True)
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.recover, a queue with rules", 100000)
def recover_rules(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n, arguments={"x-single-active-consumer": True})
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_recover", True)


@row("basic.recover in a transaction that keeps some", 100000)
def recover_transaction(crowd, n):
    peer = holding(crowd, n)
    peer.do("basic_cancel", "c", True)
    peer.do("tx_select")
    acknowledge(peer, range(1, n, 1000))
    yield
    peer.do("basic_recover", True)
    assert crowd.broker.queues["q"].message_count() + len(range(1, n, 1000)) == n


@row("basic.ack in a transaction, the newest first, then all", 100000)
def ack_transaction(crowd, n):
    peer = holding(crowd, n)
    peer.do("tx_select")
    yield
    acknowledge(peer, range(n, 1, -1))
    peer.do("basic_ack", 0, True)


@row("basic.cancel, beside what is unsettled", 100000)
def cancel(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.do("basic_cancel", "c", True)


@row("basic.cancel, of many consumers beside what is unsettled", 100000)
def cancel_many(crowd, n):
    peer = holding(crowd, n)
    consume_often(peer, 1000)
    yield
    peer.send(b"".join([encoded("basic_cancel", 1, "t%d" % each, True) for each in range(1000)]))


@row("delivery to many consumers of one queue", 4000)
def consumers(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    consume_often(peer, n)
    yield
    peer.fill("q", 2000)


@row("delivery to many consumers, all without credit", 4000)
def consumers_full(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("basic_qos", 0, 1, False)
    consume_often(peer, n, {"x-priority": 1})
    peer.fill("q", n)
    yield
    peer.fill("q", 2000)
    acknowledge(peer, range(1, 1000))


@row("basic.ack at a prefetch of the channel, many consumers", 4000)
def prefetch(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    consume_often(peer, n)
    peer.fill("q", 20000)
    peer.do("basic_qos", 0, 1, True)
    yield
    acknowledge(peer, range(1, 12001))


@row("basic.qos of a channel with many consumers", 4000)
def qos(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    consume_often(peer, n)
    yield
    peer.send(b"".join([encoded("basic_qos", 1, 0, each, True) for each in range(1, 600)]))


@row("basic.cancel of many consumers", 4000)
def cancels(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    consume_often(peer, n)
    yield
    peer.send(b"".join([encoded("basic_cancel", 1, "t%d" % each, True) for each in reversed(range(n))]))


@row("basic.get", 20000)
def gets(crowd, n):
    peer = filled(crowd, n)
    yield
    peer.send(encoded("basic_get", 1, 0, "q", True) * n)
    assert crowd.broker.queues["q"].message_count() == 0


@row("tx.commit of publishes", 60000)
def commit(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("tx_select")
    peer.fill("q", n)
    yield
    peer.do("tx_commit")
    assert crowd.broker.queues["q"].message_count() == n


@row("tx.commit of publishes to many queues", 400)
def commit_fan(crowd, n):
    peer = fan(crowd, 200, "fanout", "")
    peer.do("tx_select")
    peer.fill("", n, "e")
    yield
    peer.do("tx_commit")
    assert crowd.broker.queues["q7"].message_count() == n


@row("tx.commit of publishes to a queue with rules", 20000)
def commit_rules(crowd, n):
    peer = crowd.peer()
    peer.queue("q", {"x-max-priority": 9})
    peer.do("tx_select")
    peer.fill("q", n, given={"priority": 3})
    yield
    peer.do("tx_commit")
    assert crowd.broker.queues["q"].message_count() == n


@row("tx.commit of one rejection of many", 20000)
def commit_rejection(crowd, n):
    peer = crowd.peer()
    peer.do("tx_select")
    other = crowd.peer()
    other.queue("dead")
    other.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    other.fill("q", n)
    peer.read("q")
    peer.rest()
    yield
    peer.do("basic_nack", 0, True, False)
    peer.do("tx_commit")
    crowd.pass_time(1000)
    assert crowd.broker.queues["dead"].message_count() == n


@row("tx.rollback of publishes", 100000)
def rollback(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("tx_select")
    peer.fill("q", n)
    yield
    peer.do("tx_rollback")


@row("tx.commit of acknowledgements", 20000)
def commit_acks(crowd, n):
    peer = crowd.peer()
    peer.do("tx_select")
    other = crowd.peer()
    other.queue("q")
    other.fill("q", n)
    peer.read("q")
    peer.rest()
    yield
    acknowledge(peer, shuffled(n))
    peer.do("tx_commit")
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("confirms", 20000)
def confirms(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("confirm_select", True)
    yield
    peer.fill("q", n)


@row("mandatory publishes that are returned", 5000)
def returns(crowd, n):
    peer = crowd.peer()
    yield
    peer.send(content(1, "", "nowhere", b"x", mandatory=True) * n)


@row("a stream: publish, read, settle", 20000)
def stream(crowd, n):
    peer = crowd.peer()
    peer.queue("s", {"x-queue-type": "stream"}, durable=True)
    yield
    peer.fill("s", n)
    peer.do("basic_qos", 0, 50000, False)
    peer.read("s", "c", arguments={"x-stream-offset": "first"})
    peer.rest()
    peer.do("basic_ack", 0, True)
