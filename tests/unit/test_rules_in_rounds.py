"""What a queue's rules do between the deliveries of one round, where the engine makes those by itself."""

from peer import Peer, encoded
from test_queue_rules import bodies, pair, pass_time


def test_a_single_active_consumer_without_credit_is_waited_for():
    """The others get nothing while it may take no more; a channel's prefetch (section 1.8.3.1) is what stops it here."""
    broker, peer = pair({"x-single-active-consumer": True})
    second = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 2, False)
    peer.consume("q")
    second.consume("q", no_ack=True)
    for number in range(5):
        peer.publish("q", b"%d" % number)
    found = peer.contents()
    assert [each[3] for each in found] == [b"0", b"1"] and second.contents() == []
    peer.give(encoded("basic_ack", 1, found[1][1][1], True))
    assert [each[3] for each in peer.contents()] == [b"2", b"3"] and second.contents() == []


def test_expired_messages_between_others_are_dead_letters_and_the_others_are_delivered_in_one_round():
    """The head alone is looked at: "b" and "d" have expired when they come to it, in the middle of a round's deliveries."""
    broker, peer = pair({"x-message-ttl": 60000, "x-dead-letter-exchange": "dlx"})
    for body, lifetime in ((b"a", None), (b"b", "50"), (b"c", None), (b"d", "50"), (b"e", "50"), (b"f", None)):
        peer.publish("q", body, given={} if lifetime is None else {"expiration": lifetime})
    pass_time(broker, 200)
    assert bodies(peer, "dead") == []
    came = peer.consume("q", no_ack=True)
    assert [each[3] for each in came + peer.contents()] == [b"a", b"c", b"f"]
    assert broker.queues["q"].message_count() == 0 and broker.counters["expired"] == 3
    assert bodies(peer, "dead") == [b"b", b"d", b"e"]
