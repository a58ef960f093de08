"""Scenes of a broker with a log."""

from peer import content, encoded
from scenes import acknowledge, bind_often, row, shuffled

from leveret.core.recovery import opening

KEPT = {"delivery_mode": 2}
SEGMENT = 16 << 20


class Pieces:
    """A store in memory that does next to nothing itself: what is timed is the broker's part."""

    def __init__(self):
        self.pieces = {}

    def numbers(self):
        return sorted(self.pieces)

    def size(self, number):
        return sum([len(piece) for piece in self.pieces[number]])

    def read(self, number, offset, size):
        if len(self.pieces[number]) > 1:
            self.pieces[number] = [b"".join(self.pieces[number])]
        return bytes(memoryview(self.pieces[number][0])[offset : offset + size])

    def append(self, number, octets):
        self.pieces.setdefault(number, []).append(bytes(octets))

    def sync(self, number):
        """Everything is durable."""

    def remove(self, number):
        del self.pieces[number]


def logged(crowd, segment_size=SEGMENT, size_max=1 << 30, mode="batch"):
    """A peer of the broker, which has a log now."""
    opening.make_durable(crowd.broker, Pieces(), mode, 10, 1 << 20, segment_size, size_max)
    return crowd.peer()


def kept(peer, name, count, body=b"x", arguments=None):
    """A durable queue with so many persistent messages."""
    peer.queue(name, arguments, durable=True)
    peer.fill(name, count, given=KEPT, body=body)


@row("log: persistent publishes", 100000)
def log_publish(crowd, n):
    peer = logged(crowd)
    peer.queue("q", durable=True)
    yield
    peer.do("confirm_select", True)
    peer.fill("q", n, given=KEPT)
    crowd.pass_time(100)
    assert crowd.broker.queues["q"].message_count() == n


@row("log: persistent publishes of a large body", 60)
def log_large(crowd, n):
    peer = logged(crowd)
    peer.queue("q", durable=True)
    yield
    peer.do("confirm_select", True)
    for _ in range(n):
        peer.send(content(1, "", "q", bytes(1 << 20), KEPT, frame_size_max=131072))
    crowd.pass_time(100)


@row("log: basic.ack, one by one, at random", 100000)
def log_ack(crowd, n):
    peer = logged(crowd)
    kept(peer, "q", n)
    peer.read("q")
    tags = shuffled(n)
    yield
    acknowledge(peer, tags)
    crowd.pass_time(100)


@row("log: queue.purge", 100000)
def log_purge(crowd, n):
    peer = logged(crowd)
    kept(peer, "q", n)
    yield
    peer.do("queue_purge", 0, "q", False)
    crowd.pass_time(100)


@row("log: queue.delete", 100000)
def log_delete(crowd, n):
    peer = logged(crowd)
    kept(peer, "q", n)
    yield
    peer.do("queue_delete", 0, "q", False, False, False)
    crowd.pass_time(100)


@row("log: tx.commit of publishes", 20000)
def log_commit(crowd, n):
    peer = logged(crowd)
    peer.queue("q", durable=True)
    peer.do("tx_select")
    peer.fill("q", n, given=KEPT)
    yield
    peer.do("tx_commit")
    crowd.pass_time(100)
    assert crowd.broker.queues["q"].message_count() == n


@row("log: tx.commit of acknowledgements", 20000)
def log_commit_acks(crowd, n):
    peer = logged(crowd)
    peer.do("tx_select")
    kept(crowd.peer(), "q", n)
    peer.read("q")
    peer.rest()
    acknowledge(peer, shuffled(n))
    yield
    peer.do("tx_commit")
    crowd.pass_time(100)


def bound_durable(peer, n):
    """n bindings of a durable queue to a durable exchange."""
    peer.queue("q", durable=True)
    peer.do("exchange_declare", 0, "e", "direct", False, True, False, False, True, {})
    bind_often(peer, n, "e")


@row("log: queue.bind and unbind", 12000)
def log_bind(crowd, n):
    peer = logged(crowd)
    yield
    bound_durable(peer, n)
    peer.send(b"".join([encoded("queue_unbind", 1, 0, "q", "e", "k%d" % each, {}) for each in range(n)]))
    crowd.pass_time(100)


@row("log: queue.delete with bindings", 12000)
def log_delete_bound(crowd, n):
    peer = logged(crowd)
    bound_durable(peer, n)
    yield
    peer.do("queue_delete", 0, "q", False, False, False)
    crowd.pass_time(100)


@row("log: exchange.delete with bindings", 12000)
def log_delete_exchange(crowd, n):
    peer = logged(crowd)
    bound_durable(peer, n)
    yield
    peer.do("exchange_delete", 0, "e", False, False)
    crowd.pass_time(100)


@row("log: segments that go, with stragglers", 100000)
def log_turns(crowd, n):
    peer = logged(crowd, 1 << 18)
    kept(peer, "old", n // 4)
    yield
    for _ in range(4):
        peer.queue("q", durable=True)
        peer.fill("q", n // 4, given=KEPT)
        peer.do("queue_purge", 0, "q", False)
        crowd.pass_time(1000)
    assert crowd.broker.queues["old"].message_count() == n // 4


@row("log: all definitions written anew", 12000)
def log_snapshot(crowd, n):
    peer = logged(crowd, 1 << 16)
    bound_durable(peer, n)
    peer.queue("p", durable=True)
    yield
    for _ in range(20):
        peer.fill("p", 5000, given=KEPT)
        peer.do("queue_purge", 0, "p", False)
        crowd.pass_time(100)


@row("log: a queue beyond memory, filled and read", 400000)
def log_beyond(crowd, n):
    peer = logged(crowd)
    peer.queue("q", durable=True)
    yield
    peer.fill("q", n, given=KEPT)
    assert crowd.broker.queues["q"].message_count() == n
    peer.read("q", no_ack=True)
    for _ in range(3000):
        peer.rest()
        if not crowd.broker.queues["q"].message_count():
            break
        crowd.pass_time(100)
    assert crowd.broker.queues["q"].message_count() == 0


@row("log: a queue beyond memory, purged", 400000)
def log_beyond_purge(crowd, n):
    peer = logged(crowd)
    kept(peer, "q", n)
    yield
    peer.do("queue_purge", 0, "q", False)
    crowd.pass_time(100)


@row("log: a stream beyond memory, filled and read", 200000)
def log_stream(crowd, n):
    peer = logged(crowd)
    peer.queue("s", {"x-queue-type": "stream"}, durable=True)
    yield
    peer.fill("s", n)
    peer.do("basic_qos", 0, 50000, False)
    peer.read("s", "c", arguments={"x-stream-offset": "first"})
    for _tag in range(20000, n + 1, 20000):
        peer.rest()
        crowd.pass_time(100)
        if crowd.broker.queues["s"].unsettled_count():
            peer.do("basic_ack", 0, True)


def straggling(peer, n, exchange, given, others=4, body=b"x"):
    """n messages that stay, through an exchange, each among `others` of queue q that go with a purge: a fifth of each segment stays."""
    peer.queue("q", durable=True)
    staying = dict(KEPT, **given)
    octets = content(1, exchange, "", body, staying) + content(1, "", "q", b"x", KEPT) * others
    for at in range(0, n, 100):
        peer.send(octets * min(100, n - at))


def turn(crowd, peer):
    """Until no segment is left to be copied."""
    peer.do("queue_purge", 0, "q", False)
    crowd.pass_time(1000)
    assert crowd.broker.journal.log.counters["log_copied_forward"] > 0
    for _ in range(2000):
        if not crowd.broker.journal.goes_on:
            return
        crowd.pass_time(100)
    raise AssertionError("the log copies without end")


def delayed(peer, n):
    """n delayed messages, among four times as many of queue q."""
    peer.queue("old", durable=True)
    peer.exchange("later", "x-delayed-message", {"x-delayed-type": "fanout"})
    peer.bind("old", "later")
    straggling(peer, n, "later", {"headers": {"x-delay": 1000000}})


@row("log: segments that go, with delayed messages", 60000)
def log_turns_delayed(crowd, n):
    peer = logged(crowd, 40 * n)
    delayed(peer, n)
    assert len(crowd.broker.waiting.heap) == n
    yield
    turn(crowd, peer)


@row("log: segments that go, with messages of many queues", 60000)
def log_turns_shared(crowd, n):
    peer = logged(crowd, 40 * n)
    for each in range(4):
        peer.queue("old%d" % each, durable=True)
        peer.bind("old%d" % each, "amq.fanout")
    straggling(peer, n // 4, "amq.fanout", {}, 20)
    yield
    turn(crowd, peer)
    assert crowd.broker.queues["old3"].message_count() == n // 4


@row("log: segments that go, of a queue beyond memory", 10000)
def log_turns_beyond(crowd, n):
    peer = logged(crowd, 1000 * n)
    peer.queue("old", durable=True)
    peer.bind("old", "amq.fanout")
    straggling(peer, n, "amq.fanout", {}, 4, bytes(10240))
    yield
    turn(crowd, peer)
    assert crowd.broker.queues["old"].message_count() == n


@row("log: queue.delete of a queue in many pieces of the log", 60000)
def log_delete_pieces(crowd, n):
    peer = logged(crowd)
    delayed(peer, n)
    crowd.pass_time(100)
    yield
    peer.do("queue_delete", 0, "q", False, False, False)
    crowd.pass_time(100)
    assert crowd.broker.tables.chunk_pool[2] == crowd.broker.limits.chunk_count_max


@row("log: a stream in memory is deleted", 60000)
def log_delete_stream(crowd, n):
    peer = logged(crowd)
    peer.queue("s", {"x-queue-type": "stream"}, durable=True)
    peer.fill("s", n)
    crowd.pass_time(1000)
    yield
    peer.do("queue_delete", 0, "s", False, False, False)
    crowd.pass_time(100)
    assert crowd.broker.tables.queue_pool[2] == crowd.broker.limits.queue_count_max


@row("log: all messages of a stream get too old", 60000)
def log_stream_age(crowd, n):
    peer = logged(crowd, 1 << 20)
    peer.queue("s", {"x-queue-type": "stream", "x-max-age": "60s"}, durable=True)
    peer.fill("s", n)
    crowd.pass_time(1000)
    yield
    crowd.pass_time(120000, 1000)
    peer.fill("s", 1)
    crowd.pass_time(10000, 1000)
    assert crowd.broker.queues["s"].message_count() < 10
