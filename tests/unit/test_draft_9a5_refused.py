"""What AMQP/Fast 0.9a5 refuses at the log-in and when a channel is opened, and the limits that a peer may ask for."""

from draft_peer import Peer9a5, bits, long, octet, short, word
from peer import new_broker

from leveret.core.broker.policies import Policy


def begun(frame_max=0):
    """A peer that has come to connection.open."""
    peer = Peer9a5(log_in=False)
    peer.give(peer.header)
    peer.heard_one(1, 1, 0)
    peer.ask(1, 2, short("PLAIN"), short("en_US"), channel=0)
    peer.say(0, 1, 4, word(12) + b"\x00guest\x00guest")
    peer.heard_one(1, 5, 0)
    peer.say(0, 1, 6, long(frame_max), word(0), word(0), word(0), bits(1, 0, 0), long(0))
    return peer


def code_of(peer, channel=0):
    """The reply code of the close that has come, 0: something else came, or nothing."""
    heard = peer.heard()
    closes = (2, 4) if channel else peer.closes
    if len(heard) != 1 or heard[0][2][:2] != bytes(closes):
        return 0
    return int.from_bytes(heard[0][2][4:6], "big")


def test_the_log_in_happens_once_and_in_its_order():
    """connection.start-ok: in the state start, on channel 0, and not twice."""
    for steps in (1, 2):
        peer = Peer9a5(log_in=False)
        peer.give(peer.header)
        peer.heard()
        for _ in range(steps):
            peer.say(0, 1, 2, short("PLAIN"), short("en_US"))
        assert len(peer.heard()) == 1
        peer.broker.now += peer.broker.limits.login_pause_ms
        peer.connection.tick(peer.broker.now)
        assert [frame[2][:2] for frame in peer.heard()] == [bytes(peer.closes)] * (steps == 2)
    peer = Peer9a5()
    peer.say(0, 1, 2, short("PLAIN"), short("en_US"))
    assert code_of(peer) == 503


def test_the_smallest_frame_max_and_none():
    """connection.tune-ok: 0 is no limit; what no peer may ask for is refused."""
    for frame_max, code in ((0, 0), (1, 507), (1023, 507), (1024, 0), (4096, 0)):
        peer = begun(frame_max)
        if not code:
            assert peer.ask(1, 7, short("/"), short("me"), channel=0) is not None
        else:
            peer.pause()
            assert code_of(peer) == code, frame_max


def test_modes_of_transactions_that_a_channel_may_have():
    """channel.open: tx-mode 1 automatic, 2 standard, 3 distributed; and a transport beside this one."""
    for mode, code in ((0, 502), (1, 0), (2, 0), (3, 540), (4, 502), (255, 502)):
        peer = Peer9a5()
        peer.say(2, 2, 1, long(0), short(""), octet(mode))
        assert code_of(peer) == code, mode
    peer = Peer9a5()
    peer.say(2, 2, 1, long(0), short("elsewhere"), octet(1))
    assert code_of(peer) == 540


def test_the_prefetch_of_a_channel():
    """channel.open's prefetch-max bounds the messages of all consumers of the channel that are not acknowledged; 0: nothing does."""
    for prefetch, count in ((0, 5), (1, 1), (3, 3), (0xFFFFFFFF, 5)):
        peer = Peer9a5().queue()
        for number in range(5):
            peer.publish(b"%d" % number)
        peer.open(2, prefetch=prefetch)
        peer.say(2, 7, 1, peer.ticket, short(""), short("q"), word(0), word(0), bits(0, 0, 0))
        assert len([kind for kind, _, _ in peer.heard() if kind == 3]) == count, prefetch


def test_a_consumer_counts_messages_and_no_octets():
    peer = Peer9a5().queue()
    peer.say(1, 7, 1, peer.ticket, short(""), short("q"), word(1), word(0), bits(0, 0, 0))
    assert code_of(peer) == 540


def test_a_queue_is_purged_and_deleted_in_its_namespace():
    peer = Peer9a5().queue("a", "jobs").queue("a")
    peer.publish(b"x")
    queues = peer.broker.queues
    assert queues["a"].message_count() == queues["jobs.a"].message_count() == 1
    assert peer.ask(5, 5, peer.ticket, short("jobs"), short("a")) == long(1)
    assert queues["a"].message_count() == 1 and queues["jobs.a"].message_count() == 0


def test_a_template_gives_a_queue_its_arguments():
    """queue.assert: the template is a policy of the broker."""
    broker = new_broker()
    broker.policies.set(broker, Policy("short", "^none$", {"max-length": 1}))
    peer = Peer9a5(broker)
    peer.ask(5, 1, peer.ticket, short(""), short("t"), short("short"), bits(0, 0, 0, 0))
    assert broker.queues["t"].arguments == {"x-max-length": 1}
