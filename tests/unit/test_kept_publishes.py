"""What `ingest` takes for a transaction is kept and committed like what the session takes frame by frame, in one order with it."""

from peer import Peer, assemble, content, encoded, idle, new_broker

from leveret.core.memory import layout


def world(**overrides):
    """A broker with queue "q", and a peer with two transactional channels whose route to "q" is cached."""
    broker = new_broker(**overrides)
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("channel_open", "channel_open_ok", "", channel=2)
    for channel in (1, 2):
        peer.ask("tx_select", "tx_select_ok", channel=channel)
    peer.publish("q", b"first")
    peer.ask("tx_rollback", "tx_rollback_ok")
    return broker, peer


def got(broker, name="q"):
    peer = Peer(broker)
    peer.give(encoded("basic_consume", 1, 0, name, "c", False, True, False, False, {}))
    return [each[3] for each in assemble(peer.frames()[1:])]


def test_all_kinds_of_publishes_keep_their_order():
    """Kept by `ingest`: the first, the last two; with mandatory, with CC, without a queue: by the session."""
    broker, peer = world()
    octets = content(1, "", "q", b"1") + content(1, "", "q", b"2", None, True) + content(1, "", "q", b"3", {"headers": {"CC": ["x"]}})
    octets += content(1, "", "nowhere", b"-") + content(1, "", "q", b"4", {"delivery_mode": 2}) + content(1, "", "q", b"5")
    peer.give(octets)
    assert broker.queues["q"].message_count() == 0 and broker.tables.state[layout.STATE_KEPT_HEAD] == layout.NONE
    peer.ask("tx_commit", "tx_commit_ok")
    broker.fold_counters()
    assert broker.counters["commits"] == 1 and broker.counters["unroutable"] == 1
    assert got(broker) == [b"1", b"2", b"3", b"4", b"5"]


def test_two_channels_of_one_read_have_their_own():
    broker, peer = world()
    peer.give(content(1, "", "q", b"a") + content(2, "", "q", b"b") + content(1, "", "q", b"c") + content(2, "", "q", b"d"))
    peer.ask("tx_rollback", "tx_rollback_ok", channel=1)
    peer.ask("tx_commit", "tx_commit_ok", channel=2)
    assert got(broker) == [b"b", b"d"]


def test_a_rollback_and_a_lost_connection_give_back_what_was_kept():
    broker, peer = world()
    before = idle(broker)
    left = broker.tables.transactions_left
    peer.give(content(1, "", "q", b"a" * 100) * 3)
    assert broker.tables.transactions_left == left - 3
    peer.ask("tx_rollback", "tx_rollback_ok")
    assert idle(broker) == before and broker.tables.transactions_left == left
    peer.give(content(1, "", "q", b"a" * 100) * 3)
    peer.connection.finish()
    for _ in range(5):
        broker.run()
    assert broker.tables.transactions_left == left and broker.queues["q"].message_count() == 0


def test_no_more_are_kept_than_the_limit_says():
    broker, peer = world(transaction_count_max=4)
    peer.give(content(1, "", "q", b"a") * 4)
    assert broker.tables.transactions_left == 0 and peer.frames() == []
    peer.give(content(1, "", "q", b"a"))
    name, _, arguments = peer.frames()[0]
    assert name == "connection_close" and arguments[0] == 506


def test_a_queue_that_goes_before_the_commit_gets_nothing():
    broker, peer = world()
    other = Peer(broker)
    peer.give(content(1, "", "q", b"a") * 2)
    other.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    peer.ask("tx_commit", "tx_commit_ok")
    broker.fold_counters()
    assert broker.counters["unroutable"] == 2


def test_a_commit_with_rules_and_lifetimes():
    """A queue whose rules see each message gets what was kept by the session's way."""
    broker, peer = world()
    peer.ask("queue_declare", "queue_declare_ok", 0, "short", False, False, False, False, False, {"x-max-length": 2})
    peer.give(content(1, "", "short", b"0"))
    for body in (b"1", b"2", b"3"):
        peer.give(content(1, "", "short", body, {"expiration": "60000"}) + content(1, "", "q", body))
    peer.ask("tx_commit", "tx_commit_ok")
    assert got(broker, "short") == [b"2", b"3"] and got(broker) == [b"1", b"2", b"3"]
