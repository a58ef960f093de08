"""A long tx.commit takes its turns with others, and is all or nothing all the same (0-9-1 section 1.9; core/SPEC.md, tx)."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, content, encoded, idle, new_broker

from leveret.core.broker import transaction
from leveret.core.limits import GATEWAY
from leveret.core.memory import invariants

ROOM = {
    "transaction_count_max": 8192,
    "message_count_max": 8192,
    "entry_count_max": 8192,
    "arena_size": 4 << 20,
    "receive_buffer_size": 65536,
}
TURN = 32  # in these tests: the same in a tenth of the time
MANY = 9 * TURN + 7
CONFIRM = ("confirm_select", "confirm_select_ok", False)


def in_short_turns(test):
    """A test during which a turn has TURN publishes."""

    def shortened():
        before, transaction.TURN = transaction.TURN, TURN
        try:
            test()
        finally:
            transaction.TURN = before

    return shortened


def step(broker):
    """One turn of those that wait for theirs, without the rest of a round."""
    broker.behind.pop(0).go_on()


def begun(count=MANY, broker=None, given=None, durable=False, mandatory=False):
    """(broker, peer): tx.commit of so many publishes to "q" has come and takes effect, in part."""
    broker = new_broker(**ROOM) if broker is None else broker
    peer = Peer(broker)
    peer.declare("q", durable=durable)
    peer.ask("tx_select", "tx_select_ok")
    peer.give(b"".join([content(1, "", "q", str(number).encode(), given, mandatory) for number in range(count)]))
    finish(broker)
    commit(peer)
    for _ in range(100):
        if broker.commit is not None:
            return broker, peer
        step(broker)
    raise AssertionError("the commit does not take effect")


def commit(peer):
    """tx.commit arrives, and nothing else happens."""
    octets = encoded("tx_commit", 1)
    peer.connection.writable()[: len(octets)] = octets
    peer.connection.received(len(octets))


def finish(broker, most=100):
    """Rounds until nobody waits for a turn."""
    for _ in range(most):
        if not broker.has_active() and not broker.jobs:
            return
        broker.run()
    raise AssertionError("the broker always has something to do")


@in_short_turns
def test_a_long_commit_goes_in_turns_and_keeps_its_order():
    """No turn takes more than transaction.TURN publishes; another connection is served between two of them."""
    broker = new_broker(**ROOM)
    before = idle(broker)
    _, peer = begun(broker=broker)
    other = Peer(broker, log_in=False)
    seen = [broker.queues["q"].message_count()]
    while broker.commit is not None:
        step(broker)
        seen.append(broker.queues["q"].message_count())
    assert seen[-1] == MANY and len(seen) >= 4
    assert max([after - now for now, after in zip([0] + seen, seen)]) <= TURN
    other.log_in({})
    assert peer.expect("tx_commit_ok") == []
    assert bodies(other, "q") == [str(number).encode() for number in range(MANY)]
    other.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    peer.connection.received(0)
    other.connection.received(0)
    assert idle(broker)[:3] == before[:3] and broker.tables.transactions_left == 8192


@in_short_turns
def test_a_short_commit_is_one_step_even_beside_a_long_one():
    """It takes no turn of its own, and is answered when it is done."""
    broker = new_broker(**ROOM)
    other = Peer(broker)
    other.ask("tx_select", "tx_select_ok")
    other.publish("elsewhere", b"short", mandatory=True)
    _, peer = begun(broker=broker)
    commit(other)
    assert broker.commit is peer.connection.session.channels[1].transaction
    assert [each[0] for each in other.frames()] == ["basic_return", "header", "body", "tx_commit_ok"]
    other.publish("q", b"short")
    other.ask("tx_commit", "tx_commit_ok")
    finish(broker)
    assert broker.queues["q"].message_count() == MANY + 1


@in_short_turns
def test_after_every_cut_of_power_a_long_commit_is_there_whole_or_not_at_all():
    """After each turn, and in the middle of other people's confirmed publishes: these are there in each case."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=1 << 16, size_max=1 << 22, **ROOM)
    other = Peer(broker)
    other.declare("others", durable=True)
    other.ask(*CONFIRM)
    other.publish("others", b"0", given=PERSISTENT)
    assert other.frames()[0][0] == "basic_ack"
    _, peer = begun(broker=broker, given=PERSISTENT, durable=True)
    confirmed, published, turns = 1, 1, 0
    while True:
        after, _ = durable_broker(store.cut(), segment_size=1 << 16, size_max=1 << 22, **ROOM)
        count, others = after.queues["q"].message_count(), bodies(Peer(after), "others")
        assert count in (0, MANY), (turns, count)
        assert others == [str(number).encode() for number in range(len(others))] and len(others) >= confirmed
        if count == MANY:
            break
        assert peer.frames() == []  # no round of the broker
        other.publish("others", str(published).encode(), given=PERSISTENT)  # with one, and so a turn
        published += 1
        turns += 1
        confirmed += len([each for each in other.frames() if each[0] == "basic_ack"])
        assert turns < 50
    finish(broker)
    assert turns >= 2 and peer.expect("tx_commit_ok") == []
    assert other.ask("queue_declare", "queue_declare_ok", 0, "others", True, False, False, False, False, {})[1] == published


@in_short_turns
def test_the_log_writes_between_two_long_commits():
    """Who commits without end does not keep the log from writing what others wait for: the next one begins behind a group."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=1 << 16, size_max=1 << 22, **ROOM)
    one, two, other = [Peer(broker) for _ in range(3)]
    one.declare("q", durable=True)
    other.ask(*CONFIRM)
    for peer in (one, two):
        peer.ask("tx_select", "tx_select_ok")
        peer.give(content(1, "", "q", b"x", PERSISTENT) * MANY)
        finish(broker)
    commit(one)
    commit(two)
    groups = broker.journal.log.group
    held = []
    while broker.has_active():
        broker.run()
        held.append((broker.commit, broker.journal.log.group))
    first, second = [each[1] for each in held if each[0]][0], [each[1] for each in held if each[0]][-1]
    assert first == groups and second > first
    assert one.expect("tx_commit_ok") == two.expect("tx_commit_ok") == []


@in_short_turns
def test_a_connection_lost_in_the_middle_of_a_commit_has_committed():
    """By its peer, or by the broker: what began to take effect does so whole, with its settlements."""
    for way in (lambda peer: peer.connection.received(0), lambda peer: peer.connection.finish(), lambda peer: peer.connection.close()):
        broker = new_broker(**ROOM)
        filler = Peer(broker)
        filler.declare("taken")
        filler.publish("taken", b"x")
        peer = Peer(broker)
        peer.consume("taken")
        peer.declare("q")
        peer.ask("tx_select", "tx_select_ok")
        peer.give(content(1, "", "q", b"x") * MANY)
        finish(broker)
        peer.give(encoded("basic_ack", 1, 1, False))
        commit(peer)
        while broker.commit is None:
            step(broker)
        assert 0 < broker.queues["q"].message_count() < MANY
        way(peer)
        finish(broker)
        assert broker.commit is None and broker.queues["q"].message_count() == MANY
        assert broker.queues["taken"].message_count() == broker.queues["taken"].unsettled_count() == 0
        assert broker.tables.transactions_left == 8192
        filler.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
        assert broker.tables.state[8] == 8192 and broker.tables.state[5] == 8192


@in_short_turns
def test_a_connection_lost_before_a_commit_takes_effect_has_committed_nothing():
    """While it is looked for room for it, or waits for that."""
    broker = new_broker(**ROOM)
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("tx_select", "tx_select_ok")
    peer.give(content(1, "", "q", b"x") * MANY)
    finish(broker)
    commit(peer)
    assert broker.commit is None and broker.behind == [peer.connection]
    peer.connection.finish()
    finish(broker)
    assert broker.queues["q"].message_count() == 0 and broker.tables.state[5] == 8192 and broker.tables.transactions_left == 8192


@in_short_turns
def test_others_do_not_take_the_room_that_a_commit_was_found_to_have():
    """The places in queues of what is still to take effect are out of the pool: entry_count_max is reached by others, not by it."""
    broker = new_broker(**dict(ROOM, entry_count_max=MANY + 200, message_count_max=2 * MANY))
    other = Peer(broker)
    _, peer = begun(broker=broker)
    other.give(content(1, "", "q", b"other") * 400)
    finish(broker)
    assert peer.expect("tx_commit_ok") == []
    found = bodies(Peer(broker), "q")
    assert [each for each in found if each != b"other"] == [str(number).encode() for number in range(MANY)]


@in_short_turns
def test_who_declares_binds_or_deletes_waits_for_a_commit_that_takes_effect():
    """So it goes to the queues that were there; all is in the queue that is deleted then."""
    broker = new_broker(**ROOM)
    other = Peer(broker)
    _, peer = begun(broker=broker)
    assert broker.queues["q"].message_count() < MANY
    other.give(encoded("queue_delete", 1, 0, "q", False, False, False))
    finish(broker)
    assert other.expect("queue_delete_ok") == [MANY] and peer.expect("tx_commit_ok") == []


@in_short_turns
def test_who_declares_what_is_there_does_not_wait_for_a_commit():
    """It changes nothing; the connection would be told that it is blocked for want of room, which is not so."""
    broker = new_broker(**ROOM)
    other = Peer(broker, capabilities={"connection.blocked": True})
    other.declare("there")
    begun(broker=broker)
    for name, arguments in (
        ("queue_declare", (0, "q", True, False, False, False, False, {})),
        ("queue_declare", (0, "there", False, False, False, False, False, {})),
        ("exchange_declare", (0, "amq.direct", "direct", True, True, False, False, False, {})),
    ):
        octets = encoded(name, 1, *arguments)
        other.connection.writable()[: len(octets)] = octets
        other.connection.received(len(octets))
        assert broker.commit is not None and [each[0] for each in given_out(other)] == [name + "_ok"]


def given_out(peer):
    """What waits for a peer now, without a round of the broker."""
    octets = bytes(peer.connection.pending())
    peer.connection.sent(len(octets))
    peer.inbox += octets
    return peer.frames()


@in_short_turns
def test_a_queue_that_goes_by_itself_takes_nothing_else_of_a_commit_with_it():
    """An exclusive queue whose connection is lost in between: the rest goes to the others."""
    broker = new_broker(**ROOM)
    owner = Peer(broker)
    owner.declare("own", exclusive=True)
    owner.ask("queue_bind", "queue_bind_ok", 0, "own", "amq.fanout", "", False, {})
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.fanout", "", False, {})
    peer.ask("tx_select", "tx_select_ok")
    peer.give(content(1, "amq.fanout", "", b"x") * MANY)
    finish(broker)
    commit(peer)
    while broker.commit is None:
        step(broker)
    owner.connection.finish()
    finish(broker)
    assert peer.expect("tx_commit_ok") == [] and broker.queues["q"].message_count() == MANY
    assert 8192 - broker.tables.state[8] == MANY


@in_short_turns
def test_an_error_of_ours_in_the_middle_does_not_keep_the_rest_of_a_commit():
    """One message that no queue can take costs that message and the answer; the others and the settlements take effect."""
    broker, peer = begun(mandatory=True)  # as the session publishes them, by Queue.push
    queue = broker.queues["q"]
    push, left = queue.push, [1]

    def fails_once(message):
        if left and not left.clear():
            raise ValueError("injected")
        return push(message)

    queue.push = fails_once
    finish(broker)
    assert queue.message_count() == MANY - 1 and broker.counters["internal_errors"] == 1 and broker.commit is None
    assert [each[0] for each in peer.frames()] == ["connection_close"]
    assert 8192 - broker.tables.state[8] == 8192 - broker.tables.state[5] == MANY - 1


@in_short_turns
def test_a_settlement_that_raises_whenever_it_is_tried_ends_no_commit_and_keeps_no_log_waiting():
    """It is told, once; the commit comes to its end, those of others too, and what has taken effect is nobody's to let go of."""

    def always(*_):
        raise ValueError("injected")

    for owner, name in (
        (transaction, "unsettled_up_to"),
        (transaction.Transaction, "settle_next"),
        (transaction.Transaction, "end"),
        (None, "settle"),
    ):
        broker, _ = durable_broker(MemoryStore(), segment_size=1 << 16, size_max=1 << 22, **ROOM)
        filler, peer = Peer(broker), Peer(broker)
        filler.declare("q", durable=True)
        filler.declare("p", durable=True)
        filler.give(content(1, "", "q", b"x", PERSISTENT) * MANY)
        peer.consume("q")
        peer.take()
        finish(broker)
        assert broker.queues["q"].unsettled_count() == MANY
        peer.ask("tx_select", "tx_select_ok")
        peer.give(content(1, "", "p", b"y", PERSISTENT) * MANY + encoded("basic_ack", 1, MANY, True))
        owner = broker.consumers if owner is None else owner
        before = getattr(owner, name)
        setattr(owner, name, always)
        try:
            commit(peer)
            finish(broker)
        finally:
            setattr(owner, name, before)
        assert broker.commit is None and broker.counters["internal_errors"] > 0, name
        assert broker.queues["p"].message_count() == MANY and broker.tables.transactions_left == 8192, name
        broker.tick(2000, 2)
        finish(broker)
        invariants.check(broker.tables)
        filler.ask(*CONFIRM)
        filler.publish("p", b"z", given=PERSISTENT)
        assert filler.frames()[-1][0] == "basic_ack", name


@in_short_turns
def test_settlements_of_many_go_in_turns_too():
    """All that a `multiple` covers, and no more; dropped, put back and accepted ones."""
    for method_name, arguments, ready in (
        ("basic_ack", (MANY, True), 0),
        ("basic_nack", (MANY, True, True), MANY),
        ("basic_nack", (MANY, True, False), 0),
    ):
        broker = new_broker(**dict(ROOM, send_buffer_size=65536))
        filler, peer = Peer(broker), Peer(broker)
        filler.declare("q")
        filler.give(content(1, "", "q", b"x") * (MANY + 5))
        peer.consume("q")
        peer.take()
        finish(broker)
        peer.ask("tx_select", "tx_select_ok")
        peer.inbox = b""
        peer.give(encoded("basic_cancel", 1, "c", True) + encoded(method_name, 1, *arguments))
        commit(peer)
        assert broker.commit is not None
        finish(broker)
        assert peer.expect("tx_commit_ok") == []
        queue = broker.queues["q"]
        assert (queue.message_count(), queue.unsettled_count()) == (ready, 5)


def test_a_rollback_of_many_gives_its_memory_back_in_rounds():
    """At most transaction.FORGOTTEN_A_TURN messages at once; all in the end."""
    count = transaction.FORGOTTEN_A_TURN + 10
    broker = new_broker(**dict(ROOM, transaction_count_max=8192, message_count_max=8192, arena_size=2 << 20))
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("tx_select", "tx_select_ok")
    peer.give(content(1, "", "q", b"x") * count)
    peer.take()
    finish(broker)
    assert broker.tables.state[5] == 8192 - count
    octets = encoded("tx_rollback", 1)
    peer.connection.writable()[: len(octets)] = octets
    peer.connection.received(len(octets))
    assert broker.tables.state[5] == 8192 - 10
    finish(broker)
    assert broker.tables.state[5] == 8192 and peer.expect("tx_rollback_ok") == []


@in_short_turns
def test_the_broker_that_ends_in_the_middle_of_a_commit_ends_it():
    """Journal.finish writes the whole of it."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=1 << 16, size_max=1 << 22, **ROOM)
    begun(broker=broker, given=PERSISTENT, durable=True)
    assert broker.journal.finish()
    after, _ = durable_broker(store.cut(), segment_size=1 << 16, size_max=1 << 22, **ROOM)
    assert after.queues["q"].message_count() == MANY


def test_the_turn_is_for_a_gateway():
    """A board never keeps so much; a gateway's largest commit is many turns."""
    assert GATEWAY["transaction_count_max"] > 100 * transaction.TURN


def test_a_fault_between_two_publishes_of_a_commit_leaves_no_entry_reserved():
    """The entries that the rest of the commit needs are kept from others while it takes effect; a commit that fails gives them back."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("tx_select", "tx_select_ok")
    for _ in range(4):
        peer.publish("q", b"kept")
    publish_kept, calls = transaction.Transaction.publish_kept, []

    def fails_at_the_second(self, broker):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("a fault")
        return publish_kept(self, broker)

    try:
        transaction.Transaction.publish_kept = fails_at_the_second
        peer.give(encoded("tx_commit", 1))
    finally:
        transaction.Transaction.publish_kept = publish_kept
    assert peer.expect("connection_close")[0] == 541
    peer.give(encoded("connection_close_ok", 0))
    broker.topology.drop_queue(broker.queues["q"])
    for _ in range(3):
        broker.run()
    assert broker.connections == [] and idle(broker) == before, (idle(broker), before)
