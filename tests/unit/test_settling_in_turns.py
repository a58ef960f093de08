"""Settling many deliveries takes several turns of a connection, and nobody sees the middle (0-9-1 sections 1.8.3.13 to 1.8.3.16).

No peer holds the loop: a turn settles `effort` deliveries at most, here TURN. What a client asks next waits until all are settled.
"""

from peer import Peer, assemble, encoded, idle, new_broker, taken

from leveret.core.broker import transaction
from leveret.core.memory import layout

TURN = 10
COUNT = 45
ROOM = {
    "receive_buffer_size": 8192,
    "send_buffer_size": 16384,
    "transaction_count_max": 100,
    "entry_count_max": 400,
    "message_count_max": 400,
    "arena_size": 65536,
}


def prepared(arguments=None):
    """A broker whose turns are short, a peer that has got COUNT messages of queue q and not settled any, and another one."""
    broker = new_broker(**ROOM)
    peer, other = Peer(broker), Peer(broker)
    other.declare("dead")
    other.declare("q", arguments=arguments)
    peer.consume("q")
    for number in range(COUNT):
        other.publish("q", b"%d" % number)
    assert [each[3] for each in peer.contents()] == [b"%d" % number for number in range(COUNT)]
    broker.tables.engine.effort = TURN
    broker.tables.begin_turn()
    return broker, peer, other


def say(peer, *frames):
    """The broker takes this in one turn."""
    octets = b"".join(frames)
    view = peer.connection.writable()
    view[: len(octets)][:] = octets
    peer.connection.received(len(octets))


def rounds(broker):
    """Until the broker has nothing to do: how many rounds."""
    count = 0
    while broker.has_active() or broker.jobs:
        broker.run()
        count += 1
        assert count < 200
    return count


def bodies(found):
    return [each[3] for each in found]


def in_order(most=COUNT):
    return [b"%d" % number for number in range(most)]


def names(peer):
    return [each[0] for each in peer.frames() if each[0] not in ("header", "body")]


def test_many_that_are_refused_come_back_in_their_order_over_several_turns():
    """basic.nack with multiple and requeue: as RabbitMQ, at their old places."""
    for arguments in (None, {"x-delivery-limit": 5}, {"x-max-priority": 3}, {"x-single-active-consumer": True}, {"x-last-value-key": "k"}):
        broker, peer, _ = prepared(arguments)
        say(peer, encoded("basic_nack", 1, COUNT, True, True))
        assert 0 < broker.queues["q"].unsettled_count() < COUNT, arguments
        assert rounds(broker) >= COUNT // TURN - 1, arguments
        found = peer.contents()
        assert bodies(found) == in_order() and {each[1][2] for each in found} == {True}, arguments
        assert [each[1][1] for each in found] == list(range(COUNT + 1, 2 * COUNT + 1)), arguments


def test_nobody_gets_anything_of_the_queue_before_all_is_back():
    """Another consumer, and basic.get, would have later messages before earlier ones."""
    broker, peer, other = prepared()
    other.publish("q", b"last")
    peer.frames()
    say(peer, encoded("basic_cancel", 1, "c", True), encoded("basic_nack", 1, 0, True, True))
    say(other, encoded("basic_get", 1, 0, "q", True))
    assert broker.tables.queues[broker.queues["q"].handle + layout.QUEUE_RETURNING] > 0
    assert bytes(other.connection.pending()) == b""
    rounds(broker)
    found = other.contents()
    assert bodies(found) == [b"0"], found
    other.consume("q", "d", no_ack=True)
    rounds(broker)
    assert broker.queues["q"].message_count() == 0


def test_what_a_client_asks_next_waits_for_its_turn():
    """Section 4.7: the methods of a channel are taken in their order."""
    broker, peer, _ = prepared()
    say(
        peer,
        encoded("basic_cancel", 1, "c", True),
        encoded("basic_nack", 1, 0, True, True),
        encoded("queue_declare", 1, 0, "q", True, False, False, False, False, {}),
    )
    assert bytes(peer.connection.pending()) == b""
    rounds(broker)
    assert peer.expect("queue_declare_ok") == ["q", COUNT, 0]


def test_recover_is_answered_before_anything_is_delivered_again():
    """Section 1.8.3.16."""
    broker, peer, _ = prepared()
    say(peer, encoded("basic_recover", 1, True))
    rounds(broker)
    frames = peer.frames()
    assert frames[0][0] == "basic_recover_ok" and bodies(assemble(frames[1:])) == in_order()


def test_many_that_are_accepted_or_dropped_go_over_several_turns():
    for octets in (encoded("basic_ack", 1, 0, True), encoded("basic_ack", 1, COUNT - 5, True), encoded("basic_nack", 1, 0, True, False)):
        broker, peer, _ = prepared()
        say(peer, octets)
        left = 5 if octets == encoded("basic_ack", 1, COUNT - 5, True) else 0
        assert left < broker.queues["q"].unsettled_count() < COUNT
        rounds(broker)
        assert broker.queues["q"].unsettled_count() == left and not peer.frames()
        assert broker.queues["q"].message_count() == 0


def test_dead_letters_of_many_keep_their_order():
    broker, peer, other = prepared({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    say(peer, encoded("basic_nack", 1, 0, True, False))
    assert broker.queues["q"].unsettled_count() > 0
    rounds(broker)
    other.consume("dead", "d", no_ack=True)
    rounds(broker)
    assert broker.queues["dead"].message_count() == 0 and broker.counters["dead_lettered"] == COUNT


def test_a_channel_that_closes_is_answered_when_all_is_back():
    """Section 1.5.2.5; what was unsettled is requeued (RabbitMQ)."""
    broker, peer, other = prepared()
    say(peer, encoded("channel_close", 1, 200, "", 0, 0))
    assert bytes(peer.connection.pending()) == b"" and broker.queues["q"].message_count() < COUNT
    say(peer, encoded("channel_open", 1, ""))
    rounds(broker)
    assert names(peer) == ["channel_close_ok", "channel_open_ok"]
    other.give(encoded("basic_consume", 1, 0, "q", "d", False, True, False, True, {}))
    rounds(broker)
    assert bodies(other.contents()) == in_order()


def test_a_connection_that_closes_is_answered_when_all_is_back():
    """Section 1.4.2.9."""
    broker, peer, other = prepared()
    say(peer, encoded("connection_close", 0, 200, "", 0, 0))
    assert bytes(peer.connection.pending()) == b"" and broker.queues["q"].message_count() < COUNT
    rounds(broker)
    assert names(peer) == ["connection_close_ok"] and broker.queues["q"].message_count() == COUNT


def test_what_a_lost_connection_had_comes_back_in_rounds_and_its_channel_is_taken_until_then():
    """In the middle of a nack too; a standby consumer gets all of it in order."""
    for before in (b"", encoded("basic_nack", 1, COUNT - 7, True, True), encoded("channel_close", 1, 200, "", 0, 0)):
        broker, peer, other = prepared({"x-single-active-consumer": True})
        other.give(encoded("basic_consume", 1, 0, "q", "standby", False, False, False, True, {}))
        free = broker.tables.channel_pool[2]
        if before:
            say(peer, before)
        peer.connection.finish()
        assert 0 < broker.queues["q"].unsettled_count() < COUNT and broker.tables.channel_pool[2] == free
        assert broker.counters["internal_errors"] == 0
        rounds(broker)
        assert bodies(other.contents()) == in_order(), before
        assert broker.tables.channel_pool[2] == free + 1 and not broker.consumers.leaving
        other.give(encoded("basic_ack", 1, 0, True))
        other.connection.received(0)  # what came before the end counts
        rounds(broker)
        assert broker.queues["q"].message_count() + broker.queues["q"].unsettled_count() == 0


def test_an_exclusive_queue_of_a_lost_connection_goes_with_all_that_comes_back_to_it():
    broker, peer, other = prepared()
    empty = idle(broker)
    third = Peer(broker)
    third.declare("mine", exclusive=True)
    third.consume("mine")
    for number in range(COUNT):
        third.publish("mine", b"%d" % number)
    third.contents()
    third.connection.finish()
    assert "mine" not in broker.queues
    rounds(broker)
    assert idle(broker) == empty


def test_a_queue_that_is_deleted_in_the_middle_ends_the_settling():
    """The delivery tag up to which it was to go is gone by then: that is no error of the client's."""
    for octets in (
        encoded("basic_nack", 1, COUNT, True, True),
        encoded("basic_ack", 1, COUNT, True),
        encoded("basic_recover_async", 1, True),
    ):
        broker, peer, other = prepared()
        say(peer, octets)
        assert broker.queues["q"].unsettled_count() > 0
        broker.topology.drop_queue(broker.queues["q"])
        rounds(broker)
        assert "channel_close" not in names(peer)
        assert peer.ask("queue_declare", "queue_declare_ok", 0, "q", False, False, False, False, False, {}) == ["q", 0, 0]


def test_a_channel_that_fails_in_the_middle_gives_back_the_rest():
    """A consumer's time-out closes it from our side (section 1.5.2.5)."""
    broker, peer, other = prepared()
    say(peer, encoded("basic_nack", 1, COUNT, True, True))
    session = peer.connection.session
    session.shut_channel(session.channels[1], 406, "late")
    rounds(broker)
    assert broker.queues["q"].message_count() == COUNT and broker.queues["q"].unsettled_count() == 0
    assert names(peer) == ["channel_close"]
    peer.give(encoded("channel_close_ok", 1))
    peer.ask("channel_open", "channel_open_ok", "")


def test_a_fault_in_the_middle_costs_a_second_and_nothing_is_lost():
    """Nothing that is done in a round ends the broker (guard.py)."""
    broker, peer, other = prepared()
    broker.tick(0, 0)
    peer.connection.finish()
    assert broker.consumers.leaving
    settle = broker.consumers.return_some

    def fail(channel, last):
        raise ValueError("on purpose")

    broker.consumers.return_some = fail
    rounds(broker)
    assert broker.consumers.leaving and broker.counters["internal_errors"] == 1
    broker.consumers.return_some = settle
    broker.tick(1001, 1)
    rounds(broker)
    assert not broker.consumers.leaving and broker.queues["q"].message_count() == COUNT


def test_single_acknowledgements_of_one_read_are_cut_into_turns():
    """A read holds thousands of them: others go on in between."""
    broker, peer, other = prepared()
    say(peer, b"".join([encoded("basic_ack", 1, tag, False) for tag in range(1, COUNT + 1)]))
    assert broker.queues["q"].unsettled_count() == COUNT - TURN
    say(other, encoded("queue_declare", 1, 0, "q", True, False, False, False, False, {}))
    other.expect("queue_declare_ok")
    rounds(broker)
    assert broker.queues["q"].unsettled_count() == 0


def test_what_comes_back_counts_for_the_length_at_once():
    """x-max-length, with nack, with recover, and with a recover in a transaction: before a tick trims what one turn could not."""
    for tx in (False, True):
        for octets in (encoded("basic_recover", 1, True),) + (() if tx else (encoded("basic_nack", 1, 0, True, True),)):
            broker = new_broker()
            peer, other = Peer(broker), Peer(broker)
            peer.declare("q", arguments={"x-max-length": 2})
            if tx:
                peer.ask("tx_select", "tx_select_ok")
            peer.consume("q", no_ack=False)
            for number in range(4):
                other.publish("q", b"%d" % number)
            peer.frames()
            peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
            assert broker.queues["q"].unsettled_count() == 4
            peer.give(octets)
            peer.frames()
            assert broker.queues["q"].message_count() == 2 and [body for _, body in taken(other, "q")] == [b"2", b"3"], (tx, octets)


def in_a_transaction(broker, peer):
    """The peer's consumer has gone, and every tenth delivery is settled in a transaction."""
    say(peer, encoded("basic_cancel", 1, "c", True))
    say(peer, encoded("tx_select", 1))
    peer.frames()
    say(peer, b"".join([encoded("basic_ack", 1, tag, False) for tag in range(10, COUNT, 10)]))


def test_recover_in_a_transaction_goes_over_several_turns_and_leaves_what_is_kept():
    """As RabbitMQ: what is settled and not committed stays; nobody gets anything of the rest before all of it is back, in order."""
    for arguments in (None, {"x-delivery-limit": 5}, {"x-last-value-key": "k"}):
        broker, peer, other = prepared(arguments)
        in_a_transaction(broker, peer)
        other.publish("q", b"last")
        say(peer, encoded("basic_recover", 1, True))
        say(other, encoded("basic_get", 1, 0, "q", True))
        count = 0
        while peer.connection in broker.behind:
            assert bytes(other.connection.pending()) == b"" and bytes(peer.connection.pending()) == b"", arguments
            broker.run()
            count += 1
        assert count >= 2 * COUNT // TURN - 1, (arguments, count)
        rounds(broker)
        assert names(peer) == ["basic_recover_ok"], arguments
        assert other.contents()[0][3] == b"0", arguments
        say(other, encoded("basic_consume", 1, 0, "q", "t", False, True, False, True, {}))
        rounds(broker)
        kept = [b"%d" % (tag - 1) for tag in range(10, COUNT, 10)]
        assert bodies(other.contents()) == [body for body in in_order()[1:] + [b"last"] if body not in kept], arguments
        say(peer, encoded("tx_commit", 1))
        rounds(broker)
        assert names(peer) == ["tx_commit_ok"] and broker.queues["q"].unsettled_count() == 0, arguments
        assert broker.queues["q"].message_count() == 0, arguments


def test_a_queue_that_goes_in_the_middle_of_a_recover_in_a_transaction_takes_its_deliveries_along():
    broker, peer, other = prepared()
    in_a_transaction(broker, peer)
    for _ in range(3):
        say(peer, encoded("basic_recover", 1, True))
        broker.run()
        say(other, encoded("queue_delete", 1, 0, "q", False, False, False))
        rounds(broker)
        assert names(peer) == ["basic_recover_ok"]
    say(peer, encoded("tx_commit", 1))
    rounds(broker)
    assert names(peer) == ["tx_commit_ok"] and "q" not in broker.queues


def test_all_in_a_transaction_that_keeps_many_of_them_one_by_one_is_found_in_turns():
    """An acknowledgement of all so far covers the last one that is not acknowledged: in front of it is only what is kept already."""
    broker, peer, _ = prepared()
    say(peer, encoded("tx_select", 1))
    peer.frames()
    transaction.TURN_LOOKED_AT, before = TURN, transaction.TURN_LOOKED_AT
    try:
        for tag in range(COUNT, 3, -1):
            say(peer, encoded("basic_ack", 1, tag, False))
        say(peer, encoded("basic_ack", 1, 0, True), encoded("tx_commit", 1))
        assert peer.connection in broker.behind
        rounds(broker)
    finally:
        transaction.TURN_LOOKED_AT = before
    assert names(peer) == ["tx_commit_ok"] and broker.queues["q"].unsettled_count() == 0
