"""AMQP 0-10, class dtx: branches that nobody ends, at their limits, and commits that are cut off (core/amqp_0_10/branches.py)."""

import json

from memory_store import MemoryStore
from peer_0_10 import Peer, command, control, new_broker
from test_0_10_dtx import DURABLE, ROOM, X, Y, ask, bodies, counts, durable, later, prepared, ready, refused, start, work

from leveret.core.amqp_0_10.branches import HEURMIX, OK, RBROLLBACK, RBTIMEOUT
from leveret.core.errors import ProtocolError
from leveret.core.memory import layout


def test_operators_end_branches_that_were_never_prepared():
    """dtx.set-timeout: "Once set, this timeout value is effective until this command is reinvoked": a peer that has gone may have left
    any."""
    broker, peer = ready()
    peer.publish(b"old")
    peer.subscribe(accept=0)
    peer.transfers()
    peer.do("message_cancel", destination="d")
    for xid in (X, Y):
        start(peer, xid)
        peer.do("dtx_set_timeout", xid=xid, timeout=0xFFFFFFFF)
        peer.publish(b"new")
        if xid == X:
            peer.do("message_accept", transfers=[(0, 0)])
            assert ask(peer, "dtx_end", xid=X) == OK
    tell, decide = (broker.beyond.requests[name][0] for name in ("branches", "decide-branch"))
    rows = sorted(json.loads(tell(broker, {}))["branches"], key=lambda row: row["xid"])
    assert [(row["state"], row["published"], row["consumed"]) for row in rows] == [("active", 1, 1), ("active", 1, 0)]
    guest = broker.access.users["guest"]
    for row in rows:
        assert refused(lambda row=row: decide(broker, {"user": guest, "xid": row["xid"], "outcome": "commit"})) is ProtocolError
        assert json.loads(decide(broker, {"user": guest, "xid": row["xid"], "outcome": "rollback"}))["ok"]
    broker.run()
    assert [branch.doom for branch in broker.beyond.branches.by_xid.values()] == [RBROLLBACK]  # the session works in it yet
    assert ask(peer, "dtx_end", xid=Y) == RBROLLBACK and ask(peer, "dtx_rollback", xid=Y) == OK
    assert broker.beyond.branches.by_xid == {} and counts(broker) == 1


def test_branches_leave_places_for_sessions():
    """A branch outlives who began it: those of one user could keep every other out."""
    broker, peer = ready(new_broker(channel_count_max=16, transaction_count_max=256))
    for number in range(12):
        xid = {"format": 1, "global_id": b"%d" % number, "branch_id": b""}
        start(peer, xid)
        assert ask(peer, "dtx_end", xid=xid) == OK
    peer.do("dtx_start", xid=X)
    ((error, text),) = [(fields["error_code"], fields["description"]) for name, fields, *_ in peer.all() if name == "execution_exception"]
    assert error == 506 and "keeps 12 branches at most" in text
    Peer(broker, name=b"another")


def test_clients_do_not_reach_the_queue_of_prepared_messages():
    broker = prepared(MemoryStore())
    peer = Peer(broker, name=b"thief")
    peer.publish(b"x", key="leveret.prepared")
    peer.subscribe("leveret.prepared")
    assert peer.transfers() == [] and broker.queues["leveret.prepared"].message_count() == 0


# What a broker has, and what it says to a branch more.
LIMITS = (
    ({"transaction_count_max": 6}, "this broker keeps no more branches (transaction_count_max)"),
    ({"transaction_count_max": 4}, "this broker keeps no more publishes and acknowledgements for commits (transaction_count_max)"),
    ({"channel_count_max": 2}, "this broker holds 2 sessions and branches at most"),
)


def told(peer, title, **given):
    """(error-code, description) of the exception that a command meets, or None."""
    peer.all()
    peer.do(title, **given)
    peer.broker.run()
    for name, fields, _, _, _ in peer.all():
        if name == "execution_exception":
            return fields["error_code"], fields["description"]
    return None


def test_a_branch_that_has_no_place_is_refused_with_the_limit():
    for limits, text in LIMITS:
        room = dict(ROOM)
        room.update(limits)
        broker, peer = ready(new_broker(**room))
        start(peer)
        assert ask(peer, "dtx_end", xid=X) == OK
        assert told(peer, "dtx_start", xid=Y) == (506, text)
        assert [branch.xid[2] for branch in broker.beyond.branches.by_xid.values()] == [b"b1"]


def test_what_is_accepted_in_a_branch_whose_time_is_over_goes_back():
    """dtx.set-timeout: the branch is rolled back; so is what comes to it later."""
    broker, peer = ready()
    left = broker.tables.transactions_left
    peer.publish(b"old")
    peer.subscribe(accept=0)
    assert len(peer.transfers()) == 1
    start(peer)
    peer.do("dtx_set_timeout", xid=X, timeout=5)
    peer.do("message_cancel", destination="d")
    later(broker, 7)
    peer.do("message_accept", transfers=[(0, 0)])
    broker.run()
    assert (counts(broker), broker.queues["q"].unsettled_count()) == (1, 0)
    peer.publish(b"new")
    assert ask(peer, "dtx_end", xid=X) == RBTIMEOUT and ask(peer, "dtx_rollback", xid=X) == RBTIMEOUT
    assert counts(broker) == 1 and broker.tables.transactions_left == left


def test_a_branch_whose_copies_have_no_room_is_rolled_back_by_its_prepare():
    """With a log a prepared branch has a copy of what it publishes: xa-rbrollback where memory has no room for them."""
    broker, peer = ready(durable(MemoryStore()))
    before = broker.tables.transactions_left, broker.tables.state[layout.POOL_BLOCKS + 2]
    start(peer)
    for _ in range(6):
        peer.publish(b"x" * 2048, delivery=DURABLE)
    assert ask(peer, "dtx_end", xid=X) == OK
    assert ask(peer, "dtx_prepare", xid=X) == RBROLLBACK
    for _ in range(4):
        broker.run()
    assert ask(peer, "dtx_commit", xid=X) == 404 and counts(broker) == 0
    assert (broker.tables.transactions_left, broker.tables.state[layout.POOL_BLOCKS + 2]) == before


def test_a_prepared_branch_begins_nothing_more():
    broker, peer = ready()
    work(peer)
    assert ask(peer, "dtx_prepare", xid=X) == OK
    for title, given, text in (
        ("dtx_prepare", {}, "dtx.prepare of a branch that is prepared"),
        ("dtx_start", {"join": True}, "dtx.start of a branch that is prepared, or whose commit takes effect"),
    ):
        other = ready(broker, title.encode(), False)[1]
        assert told(other, title, xid=X, **given) == (409, text)
    assert ask(peer, "dtx_commit", xid=X) == OK and counts(broker) == 1


def test_several_places_in_a_row_come_through_a_power_cut():
    """What a prepared branch has consumed is one run of places of each queue; those between two runs are not its."""
    for accepted, runs, left in (
        ([(0, 1)], [[0, 2]], [b"2", b"3"]),
        ([(0, 0), (2, 3)], [[0, 1], [2, 2]], [b"1"]),
        ([(1, 1), (3, 3)], [[1, 1], [3, 1]], [b"0", b"2"]),
    ):
        store = MemoryStore()
        broker, peer = ready(durable(store))
        for number in range(4):
            peer.publish(b"%d" % number, delivery=DURABLE)
        peer.subscribe(accept=0)
        peer.transfers()
        start(peer)
        peer.do("message_accept", transfers=accepted)
        assert ask(peer, "dtx_end", xid=X) == OK and ask(peer, "dtx_prepare", xid=X) == OK
        first = broker.beyond.branches.by_xid[1, b"global", b"b1"].held_in_log[0][1]
        assert [[at - first[0][0] + runs[0][0], count] for at, count in first] == runs
        assert [each["name"] for each in broker.beyond.branches.definitions()] == ["0.10 xid\n1\n676c6f62616c\n6231"]
        after = durable(store.cut())
        assert counts(after) == len(left)
        manager = ready(after, b"manager", False)[1]
        assert ask(manager, "dtx_commit", xid=X) == OK
        assert bodies(durable(after.journal.log.store.cut())) == left


def test_a_queue_that_refuses_at_the_commit_makes_the_outcome_a_mixed_one():
    """xa-heurmix: "the transaction branch has been heuristically committed and rolled back", until dtx.forget."""
    broker, peer = ready(makes=False)
    peer.do("queue_declare", queue="q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    start(peer)
    for body in (b"1", b"2"):
        peer.publish(body)
    assert ask(peer, "dtx_end", xid=X) == OK
    assert ask(peer, "dtx_commit", xid=X, one_phase=True) == HEURMIX and counts(broker) == 1
    assert ask(peer, "dtx_rollback", xid=X) == HEURMIX
    peer.do("dtx_forget", xid=X)
    assert ask(peer, "dtx_rollback", xid=X) == 404


def test_a_commit_that_takes_effect_comes_to_its_end_when_its_transport_is_lost():
    """Half of it would stay: also of a session that lives on beyond the transport."""
    for timeout in (0, 60):
        room = dict(ROOM)
        room.update(entry_count_max=4096, message_count_max=4096, transaction_count_max=4096, arena_size=1 << 20)
        broker, peer = ready(new_broker(**room))
        left = broker.tables.transactions_left
        peer.give(control("session_request_timeout", timeout=timeout))
        start(peer)
        for _ in range(600):
            peer.publish(b"x")
        assert ask(peer, "dtx_end", xid=X) == OK
        octets = command("dtx_commit", xid=X, one_phase=True)
        peer.connection.writable()[: len(octets)] = octets
        peer.connection.received(len(octets))
        while not counts(broker):
            broker.run()
        assert counts(broker) < 600
        peer.connection.finish()
        broker.run()
        assert counts(broker) == 600 and broker.tables.transactions_left == left
        assert not broker.beyond.branches.by_xid
