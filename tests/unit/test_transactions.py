"""Transactions (0-9-1 section 1.9), RabbitMQ's direct reply-to, by frames."""

from peer import Peer, assemble, content, encoded, idle, new_broker


def in_transaction(**overrides):
    """A broker with queue "q" and a peer whose channel is transactional."""
    broker = new_broker(**overrides)
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("tx_select", "tx_select_ok")
    return broker, peer


def test_publishes_take_effect_at_commit():
    """Section 1.9.2.3; and a rollback forgets them (1.9.2.5)."""
    broker, peer = in_transaction()
    before = idle(broker)
    peer.publish("q", b"a")
    peer.publish("q", b"b")
    assert broker.queues["q"].message_count() == 0
    peer.ask("tx_rollback", "tx_rollback_ok")
    assert idle(broker) == before
    peer.publish("q", b"c")
    peer.ask("tx_commit", "tx_commit_ok")
    assert broker.queues["q"].message_count() == 1
    peer.publish("q", b"d")
    peer.connection.received(0)
    assert broker.queues["q"].message_count() == 1


def test_settlements_take_effect_at_commit():
    """Acknowledged in a transaction that is rolled back: still unsettled, not delivered again; the same tag can be used again."""
    broker, peer = in_transaction()
    for letter in (b"a", b"b", b"c"):
        peer.publish("q", letter)
    peer.ask("tx_commit", "tx_commit_ok")
    assert len(peer.consume("q")) == 3
    peer.give(encoded("basic_ack", 1, 1, False) + encoded("basic_reject", 1, 2, True))
    assert broker.queues["q"].unsettled_count() == 3
    peer.ask("tx_rollback", "tx_rollback_ok")
    assert broker.queues["q"].unsettled_count() == 3 and peer.frames() == []
    peer.give(encoded("basic_ack", 1, 1, False) + encoded("basic_reject", 1, 2, True) + encoded("tx_commit", 1))
    frames = peer.frames()
    assert frames[0][0] == "tx_commit_ok" and [each[3] for each in assemble(frames[1:])] == [b"b"]


def test_returns_come_before_commit_ok():
    """An unroutable mandatory content is found out at commit."""
    _, peer = in_transaction()
    peer.publish("nowhere", b"x", mandatory=True)
    assert peer.frames() == []
    peer.give(encoded("tx_commit", 1))
    assert [each[0] for each in peer.frames()] == ["basic_return", "header", "body", "tx_commit_ok"]


def test_a_commit_waits_for_room_and_is_all_or_nothing():
    """No room for one of its messages: nothing of it takes effect until there is."""
    broker, peer = in_transaction()
    filler = Peer(broker)
    filler.declare("other")
    while filler.connection.reading:
        filler.publish("other", bytes(500))
    peer.publish("q", b"small")
    peer.publish("other", b"does not fit")
    peer.give(encoded("tx_commit", 1))
    assert peer.frames() == [] and broker.queues["q"].message_count() == 0
    Peer(broker).ask("queue_purge", "queue_purge_ok", 0, "other", False)
    broker.run()
    assert peer.expect("tx_commit_ok") == [] and broker.queues["q"].message_count() == 1


def test_modes_exclude_each_other():
    """406 with RabbitMQ's words."""
    for calls, text in (
        (("tx_select", "confirm_select"), "cannot switch from tx to confirm mode"),
        (("confirm_select", "tx_select"), "cannot switch from confirm to tx mode"),
        (("tx_commit",), "channel is not transactional"),
        (("tx_rollback",), "channel is not transactional"),
    ):
        peer = Peer(new_broker())
        for name in calls:
            peer.give(encoded(name, 1, *((False,) if name == "confirm_select" else ())))
        assert peer.frames()[-1][2][:2] == [406, "PRECONDITION_FAILED - " + text]


def test_direct_reply_to():
    """RabbitMQ's direct reply-to: the pseudo-queue is consumed without acknowledgement, its name is replaced in what is published."""
    broker = new_broker()
    before = idle(broker)
    server = Peer(broker)
    server.declare("work")
    server.consume("work", no_ack=True)
    client = Peer(broker)
    client.consume("amq.rabbitmq.reply-to", no_ack=True)
    client.publish("work", b"question", given={"reply_to": "amq.rabbitmq.reply-to", "correlation_id": "7"})
    _, _, given, body = server.contents()[0]
    assert body == b"question" and given["reply_to"].startswith("amq.rabbitmq.reply-to.") and given["correlation_id"] == "7"
    server.publish(given["reply_to"], b"answer", given={"correlation_id": "7"})
    assert [each[3] for each in client.contents()] == [b"answer"]
    client.connection.received(0)
    server.give(content(1, "", given["reply_to"], b"late", None, True))
    assert server.frames()[0][0] == "basic_return"
    server.connection.received(0)
    assert [before[0], before[2:]] == [idle(broker)[0], idle(broker)[2:]]


def test_direct_reply_to_without_its_consumer():
    """406: fast reply consumer does not exist; and with acknowledgement."""
    peer = Peer(new_broker())
    peer.publish("work", b"x", given={"reply_to": "amq.rabbitmq.reply-to"})
    assert peer.expect("channel_close")[:2] == [406, "PRECONDITION_FAILED - fast reply consumer does not exist"]
    peer = Peer(new_broker())
    peer.give(encoded("basic_consume", 1, 0, "amq.rabbitmq.reply-to", "c", False, False, False, False, {}))
    assert peer.expect("channel_close")[:2] == [406, "PRECONDITION_FAILED - reply consumer cannot acknowledge"]


def test_what_is_kept_for_commits_is_bounded_over_all_channels():
    """transaction_count_max: a publish or an acknowledgement too many closes its connection with 506, which gives back what it kept."""
    broker, peer = in_transaction(transaction_count_max=4)
    for number in range(4):
        peer.publish("q", b"%d" % number)
    other = Peer(broker)
    other.ask("tx_select", "tx_select_ok")
    other.publish("q", b"x")
    assert other.expect("connection_close")[0] == 506
    peer.ask("tx_commit", "tx_commit_ok")
    assert broker.tables.transactions_left == 4 and broker.queues["q"].message_count() == 4
    third = Peer(broker)
    third.ask("tx_select", "tx_select_ok")
    tags = [each[1][1] for each in third.consume("q")]
    for tag in tags:
        third.give(encoded("basic_ack", 1, tag, False))
    assert broker.tables.transactions_left == 0 and third.frames() == []
    peer.publish("q", b"x")
    assert peer.expect("connection_close")[0] == 506
    third.connection.received(0)
    assert broker.tables.transactions_left == 4 and broker.queues["q"].message_count() == 4


def test_selected_keys_of_kept_publishes_count_by_their_octets():
    """transaction_count_max: each 64 octets of CC and BCC are one more; the commit routes by them."""
    broker, peer = in_transaction(transaction_count_max=10, copy_size_max=200)
    peer.declare("r")
    peer.publish("q", b"x", given={"headers": {"CC": ["r", "k" * 130]}})
    assert broker.tables.transactions_left == 7
    peer.ask("tx_commit", "tx_commit_ok")
    assert [broker.queues[name].message_count() for name in "qr"] == [1, 1] and broker.tables.transactions_left == 10
