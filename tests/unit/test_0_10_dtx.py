"""AMQP 0-10, class dtx: branches of distributed transactions (core/amqp_0_10/dtx.py, branches.py)."""

import json

from memory_store import MemoryStore, durable_broker
from peer_0_10 import Peer, control, new_broker, structs

from leveret.core.amqp_0_10.branches import HEURCOM, OK, RBROLLBACK, RBTIMEOUT, RDONLY
from leveret.core.errors import ProtocolError
from leveret.core.memory import layout

ROOM = {"content_size_max": 4096, "argument_size_max": 1024, "receive_buffer_size": 8192, "send_buffer_size": 8192}
X = {"format": 1, "global_id": b"global", "branch_id": b"b1"}
Y = {"format": 1, "global_id": b"global", "branch_id": b"b2"}
DURABLE = {"delivery_mode": 2}


def ready(broker=None, name=b"unit", makes=True):
    """(broker, peer) with a queue q, and a session that is selected."""
    broker = broker or new_broker(**ROOM)
    peer = Peer(broker, name=name)
    if makes:
        peer.do("queue_declare", queue="q", durable=True)
    peer.do("dtx_select")
    return broker, peer


def ask(peer, title, **given):
    """The result of a command: its struct's fields; or the error-code of the exception that it met."""
    peer.all()
    peer.do(title, **given)
    for _ in range(4):
        peer.broker.run()
    for name, fields, _, _, _ in peer.all():
        if name == "execution_result":
            octets = fields["value"]
            found = structs.read(structs.RESULTS[title], len(octets).to_bytes(4, "big") + octets, 0, len(octets) + 4)[0]
            return found["status"] if "status" in found else found
        if name == "execution_exception":
            return fields["error_code"]
    return None


def counts(broker):
    return broker.queues["q"].message_count()


def start(peer, xid=X, **given):
    assert ask(peer, "dtx_start", xid=xid, **given) == OK


def work(peer, body=b"in", xid=X):
    """A message in a branch, which ends."""
    start(peer, xid)
    peer.publish(body, delivery=DURABLE)
    assert ask(peer, "dtx_end", xid=xid) == OK


def test_one_phase():
    broker, peer = ready()
    work(peer)
    assert counts(broker) == 0
    assert ask(peer, "dtx_commit", xid=X, one_phase=True) == OK and counts(broker) == 1
    assert ask(peer, "dtx_commit", xid=X, one_phase=True) == 404


def test_two_phases_with_what_was_consumed():
    broker, peer = ready()
    peer.publish(b"old")
    peer.subscribe(accept=0)
    assert len(peer.transfers()) == 1
    start(peer)
    peer.do("message_accept", transfers=[(0, 0)])
    peer.publish(b"new", delivery=DURABLE)
    assert ask(peer, "dtx_end", xid=X) == OK
    assert ask(peer, "dtx_prepare", xid=X) == OK and ask(peer, "dtx_recover") == {"in_doubt": [X]}
    assert broker.queues["q"].unsettled_count() == 1
    peer.do("message_cancel", destination="d")
    assert ask(peer, "dtx_commit", xid=X) == OK
    assert broker.queues["q"].unsettled_count() == 0 and counts(broker) == 1
    assert ask(peer, "dtx_recover") in ({"in_doubt": []}, {"in_doubt": None})


def test_rollback_requeues_and_discards():
    broker, peer = ready()
    peer.publish(b"old")
    peer.subscribe(accept=0)
    peer.transfers()
    start(peer)
    peer.do("message_accept", transfers=[(0, 0)])
    peer.do("message_cancel", destination="d")
    peer.publish(b"new")
    ask(peer, "dtx_end", xid=X)
    for prepares in (False, True):
        if prepares:
            start(peer, Y)
            peer.publish(b"newer")
            ask(peer, "dtx_end", xid=Y)
            assert ask(peer, "dtx_prepare", xid=Y) == OK
        assert ask(peer, "dtx_rollback", xid=Y if prepares else X) == OK
        assert counts(broker) == 1 and broker.queues["q"].unsettled_count() == 0
    assert broker.tables.transactions_left == broker.limits.transaction_count_max


def test_work_outside_a_branch_is_not_transactional():
    broker, peer = ready()
    work(peer)
    peer.publish(b"outside")
    assert counts(broker) == 1


def test_a_branch_without_work_is_read_only():
    _, peer = ready()
    start(peer)
    ask(peer, "dtx_end", xid=X)
    assert ask(peer, "dtx_prepare", xid=X) == RDONLY
    assert ask(peer, "dtx_commit", xid=X) == 404


def test_end_with_fail_leaves_rollback_only():
    """dtx.end: "the transaction branch SHOULD be marked as rollback-only and the end result SHOULD have the xa-rbrollback status set"."""
    broker, peer = ready()
    start(peer)
    peer.publish(b"x")
    assert ask(peer, "dtx_end", xid=X, fail=True) == RBROLLBACK
    assert ask(peer, "dtx_prepare", xid=X) == RBROLLBACK
    start(peer, Y)
    peer.publish(b"x")
    assert ask(peer, "dtx_end", xid=Y, fail=True) == RBROLLBACK
    assert ask(peer, "dtx_rollback", xid=Y) == OK and counts(broker) == 0


def test_a_branch_that_can_only_roll_back_is_told_so_by_its_commit_and_is_over():
    """dtx.commit: "xa-rbrollback: The broker marked the transaction branch rollback-only for an unspecified reason."; as dtx.prepare says
    it, the branch is forgotten with what it held."""
    broker, peer = ready()
    left = broker.tables.transactions_left
    start(peer)
    peer.publish(b"x")
    assert ask(peer, "dtx_end", xid=X, fail=True) == RBROLLBACK
    assert ask(peer, "dtx_commit", xid=X, one_phase=True) == RBROLLBACK
    assert counts(broker) == 0 and broker.tables.transactions_left == left
    assert ask(peer, "dtx_commit", xid=X, one_phase=True) == 404


def test_suspend_and_resume():
    broker, peer = ready()
    start(peer)
    peer.publish(b"1")
    assert ask(peer, "dtx_end", xid=X, suspend=True) == OK
    peer.publish(b"outside")
    start(peer, X, resume=True)
    peer.publish(b"2")
    ask(peer, "dtx_end", xid=X)
    assert counts(broker) == 1
    assert ask(peer, "dtx_commit", xid=X, one_phase=True) == OK and counts(broker) == 3


def test_two_sessions_join():
    broker, first = ready()
    _, second = ready(broker, b"second", False)
    start(first)
    assert ask(second, "dtx_start", xid=X, join=True) == OK
    first.publish(b"1")
    second.publish(b"2")
    ask(first, "dtx_end", xid=X)
    assert ask(first, "dtx_commit", xid=X, one_phase=True) == 409
    ask(second, "dtx_end", xid=X)
    assert ask(second, "dtx_commit", xid=X, one_phase=True) == OK and counts(broker) == 2


def test_what_is_out_of_its_place_raises_an_exception():
    """ "MUST raise an exception": codes of execution.exception."""
    cases = (
        (409, [], "dtx_end", {"xid": X}, False),
        (409, [], "dtx_start", {"xid": X}, False),
        (530, [], "dtx_start", {"xid": X, "join": True, "resume": True}, True),
        (404, [], "dtx_start", {"xid": X, "join": True}, True),
        (409, [], "dtx_end", {"xid": X}, True),
        (404, [], "dtx_prepare", {"xid": X}, True),
        (404, [], "dtx_rollback", {"xid": X}, True),
        (404, [], "dtx_forget", {"xid": X}, True),
        (404, [], "dtx_get_timeout", {"xid": X}, True),
        (404, [], "dtx_set_timeout", {"xid": X, "timeout": 1}, True),
        (409, [("dtx_start", X)], "dtx_start", {"xid": Y}, True),
        (409, [("dtx_start", X)], "dtx_prepare", {"xid": X}, True),
        (409, [("dtx_start", X)], "dtx_rollback", {"xid": X}, True),
        (530, [("dtx_start", X)], "dtx_end", {"xid": X, "fail": True, "suspend": True}, True),
        (530, [("dtx_start", X), ("dtx_end", X)], "dtx_start", {"xid": X}, True),
        (409, [("dtx_start", X), ("dtx_end", X)], "dtx_start", {"xid": X, "resume": True}, True),
        (409, [("dtx_start", X), ("dtx_end", X)], "dtx_end", {"xid": X}, True),
        (409, [("dtx_start", X), ("dtx_end", X)], "dtx_commit", {"xid": X}, True),
        (409, [("dtx_start", X), ("dtx_end", X)], "dtx_forget", {"xid": X}, True),
        (409, [], "tx_select", {}, True),
        (409, [], "tx_commit", {}, True),
    )
    for code, before, title, given, selects in cases:
        peer = Peer(new_broker(**ROOM))
        if selects:
            peer.do("dtx_select")
        for each, xid in before:
            assert ask(peer, each, xid=xid) == OK
        assert ask(peer, title, **given) == code, (title, given, before)


def test_a_session_of_tx_is_not_selected():
    peer = Peer(new_broker(**ROOM))
    peer.do("tx_select")
    assert ask(peer, "dtx_select") == 409


def test_timeouts():
    """dtx.set-timeout: "A value of zero resets the timeout value to the default value"."""
    broker, peer = ready()
    start(peer)
    assert ask(peer, "dtx_get_timeout", xid=X) == {"timeout": 1800}
    peer.do("dtx_set_timeout", xid=X, timeout=5)
    assert ask(peer, "dtx_get_timeout", xid=X) == {"timeout": 5}
    peer.publish(b"x")
    broker.tick(broker.now + 7000, broker.seconds + layout.EPOCH + 7)
    peer.publish(b"y")
    assert ask(peer, "dtx_end", xid=X) == RBTIMEOUT
    assert ask(peer, "dtx_rollback", xid=X) == RBTIMEOUT and counts(broker) == 0


def later(broker, seconds):
    """Time passes."""
    broker.tick(broker.now + 1000 * seconds, broker.seconds + layout.EPOCH + seconds)


def test_a_branch_whose_manager_is_gone_is_rolled_back_and_forgotten():
    """The work of a branch that has ended, and that nobody prepared, was held until the broker ended; dtx.recover does not list it."""
    broker, peer = ready()
    left = broker.tables.transactions_left
    peer.publish(b"old")
    peer.subscribe(accept=0)
    peer.transfers()
    start(peer)
    peer.do("message_accept", transfers=[(0, 0)])
    assert ask(peer, "dtx_end", xid=X) == OK
    peer.do("dtx_set_timeout", xid=X, timeout=7)
    peer.do("dtx_set_timeout", xid=X, timeout=0)
    work(peer, xid=Y)
    assert ask(peer, "dtx_prepare", xid=Y) == OK
    peer.connection.finish()
    later(broker, 1700)
    assert counts(broker) == 0
    later(broker, 101)
    broker.run()
    assert counts(broker) == 1 and len(broker.beyond.branches.by_xid) == 2
    later(broker, 1801)
    assert [branch.state for branch in broker.beyond.branches.by_xid.values()] == ["prepared"]
    manager = ready(broker, b"manager", False)[1]
    assert ask(manager, "dtx_rollback", xid=Y) == OK and broker.tables.transactions_left == left


def test_a_branch_that_a_session_has_suspended_is_not_prepared_and_not_committed():
    """dtx.prepare: "If this command is called when xid is still associated with a session then the server MUST raise an exception"; what
    is prepared was rolled back when the session that had suspended it ended."""
    for title, given in (("dtx_prepare", {}), ("dtx_commit", {"one_phase": True})):
        broker, peer = ready()
        start(peer)
        peer.publish(b"x")
        assert ask(peer, "dtx_end", xid=X, suspend=True) == OK
        manager = ready(broker, b"manager", False)[1]
        assert ask(manager, title, xid=X, **given) == 409, title
        assert ask(peer, "dtx_end", xid=X) == OK
        manager = ready(broker, b"another", False)[1]
        assert ask(manager, title, xid=X, **given) == OK, title
        peer.connection.finish()
        if title == "dtx_prepare":
            assert ask(manager, "dtx_commit", xid=X) == OK
        assert counts(broker) == 1


def test_recover_lists_more_than_the_send_buffer_holds():
    """It goes out frame by frame: what was larger waited for ever, and all behind it."""
    broker, peer = ready(new_broker(transaction_count_max=4096, channel_count_max=200, **ROOM))
    xids = [{"format": 1, "global_id": b"g" * 64, "branch_id": b"%064d" % number} for number in range(80)]
    for xid in xids:
        work(peer, b"x", xid)
        assert ask(peer, "dtx_prepare", xid=xid) == OK
    assert len(structs.write(structs.RESULTS["dtx_recover"], {"in_doubt": xids})) > 8192
    assert sorted([each["branch_id"] for each in ask(peer, "dtx_recover")["in_doubt"]]) == [each["branch_id"] for each in xids]


def test_results_that_nobody_completes_are_bounded_by_their_octets():
    """A session beyond its transport keeps them, and the list of recover is long: 1,023 of them were gigabytes."""
    broker, peer = ready(new_broker(transaction_count_max=4096, channel_count_max=200, **ROOM))
    for number in range(60):
        xid = {"format": 1, "global_id": b"g" * 255, "branch_id": b"%0255d" % number}
        work(peer, b"x", xid)
        assert ask(peer, "dtx_prepare", xid=xid) == OK
    peer.give(control("session_request_timeout", timeout=60))
    session = broker.beyond.by_name[("guest", b"unit")]
    largest, flushes, ended = 0, 0, False
    for _ in range(60):
        peer.do("dtx_recover")
        names = [each[0] for each in peer.all()]
        flushes += names.count("session_flush")
        ended = ended or "execution_exception" in names
        largest = max(largest, session.kept_size)
    assert ended and flushes == 1 and 1 << 20 < largest < (1 << 20) + 65536 and not session.kept
    other = ready(broker, b"other", False)[1]
    other.give(control("session_request_timeout", timeout=60))
    session = broker.beyond.by_name[("guest", b"other")]
    other.do("dtx_recover")
    assert session.kept_size > 30000 and other.all()
    other.give(control("session_completed", commands=[(0, 0)]))
    assert session.kept_size == 0


def test_nobody_ends_a_branch_whose_commit_takes_effect():
    """Neither its timeout nor an operator nor another session's rollback: half of it would stay."""
    for prepares in (False, True):
        room = dict(ROOM)
        room.update(entry_count_max=4096, message_count_max=4096, transaction_count_max=4096, arena_size=1 << 20)
        broker, peer = ready(new_broker(**room))
        start(peer)
        for _ in range(600):
            peer.publish(b"x")
        assert ask(peer, "dtx_end", xid=X) == OK
        peer.do("dtx_set_timeout", xid=X, timeout=5)
        if prepares:
            assert ask(peer, "dtx_prepare", xid=X) == OK
        there = broker.beyond.branches
        (branch,) = there.by_xid.values()
        while branch.sender is None:
            there.commit(branch, peer.connection)
        assert 0 < counts(broker) < 600
        broker.uptime_s += 10
        there.tick()
        assert not branch.doom
        if prepares:
            assert not there.by_heuristics(broker.access.users["guest"], branch.xid, False)
        other = ready(broker, b"other", False)[1]
        other.do("dtx_rollback", xid=X)
        assert 0 < counts(broker)
        while there.commit(branch, peer.connection) is None:
            pass
        assert counts(broker) == 600


def test_a_session_that_ends_in_a_branch_leaves_rollback_only():
    """dtx.end: "When a session is closed then the currently associated transaction branches MUST be marked rollback-only"."""
    broker, peer = ready()
    start(peer)
    peer.publish(b"x")
    peer.give(control("session_detach", name=b"unit"))
    _, other = ready(broker, b"other", False)
    assert ask(other, "dtx_prepare", xid=X) == RBROLLBACK
    assert counts(broker) == 0


def test_a_prepared_branch_is_no_sessions():
    broker, peer = ready()
    work(peer)
    assert ask(peer, "dtx_prepare", xid=X) == OK
    peer.connection.finish()
    _, other = ready(broker, b"other", False)
    assert ask(other, "dtx_recover") == {"in_doubt": [X]}
    assert ask(other, "dtx_commit", xid=X) == OK and counts(broker) == 1


def durable(store):
    return durable_broker(store, **ROOM)[0]


def prepared(store):
    """A durable broker with a branch that is prepared: a message `old` consumed, one `new` published."""
    broker, peer = ready(durable(store))
    peer.publish(b"other", delivery=DURABLE)
    peer.publish(b"old", delivery=DURABLE)
    peer.subscribe(accept=0)
    peer.transfers()
    start(peer)
    peer.do("message_accept", transfers=[(1, 1)])
    peer.publish(b"new", delivery=DURABLE)
    assert ask(peer, "dtx_end", xid=X) == OK
    assert ask(peer, "dtx_prepare", xid=X) == OK
    return broker


def refused(action):
    """The kind of what an action raises."""
    try:
        action()
    except (ValueError, ProtocolError) as error:
        return type(error)
    return None


def bodies(broker):
    """What is in the queue, in a session of its own."""
    peer = Peer(broker, name=b"look")
    peer.subscribe()
    return [body for _, body in peer.transfers()]


def test_a_prepared_branch_comes_through_a_power_cut():
    for title, left in (("dtx_commit", [b"other", b"new"]), ("dtx_rollback", [b"other", b"old"])):
        store = MemoryStore()
        prepared(store)
        after = durable(store.cut())
        assert counts(after) == 1
        again = durable(after.journal.log.store.cut())
        assert counts(again) == 1
        _, peer = ready(again, makes=False)
        assert ask(peer, "dtx_recover") == {"in_doubt": [X]}
        assert ask(peer, title, xid=X) == OK
        assert ask(peer, "dtx_recover") in ({"in_doubt": []}, {"in_doubt": None})
        last = durable(again.journal.log.store.cut())
        assert bodies(last) == left, title
        assert last.beyond is None or last.beyond.branches is None
        assert last.queues["leveret.prepared"].message_count() == 0


def test_messages_that_a_prepared_branch_has_no_hold_of_are_told():
    """Also where the search has come to its end, or to its bound."""
    broker, lines = prepared(MemoryStore()), []
    broker.log = lines.append
    (branch,) = broker.beyond.branches.by_xid.values()
    broker.beyond.branches.lock(branch, broker.queues["q"], [[100000, 2]])
    assert lines == ["a prepared branch has no hold of 2 messages of queue 'q' in the log"]


def test_a_commit_before_a_power_cut_is_whole_behind_it():
    store = MemoryStore()
    broker = prepared(store)
    _, peer = ready(broker, b"manager", False)
    before = store.cut()
    assert ask(peer, "dtx_commit", xid=X) == OK
    assert bodies(durable(store.cut())) == [b"other", b"new"]
    assert counts(durable(before)) == 1


def test_a_branch_that_is_not_prepared_does_not_come_through():
    store = MemoryStore()
    broker, peer = ready(durable(store))
    work(peer)
    after = durable(store.cut())
    _, other = ready(after, makes=False)
    assert ask(other, "dtx_commit", xid=X, one_phase=True) == 404 and counts(after) == 0


def test_a_heuristic_decision_is_told_until_it_is_forgotten():
    store = MemoryStore()
    broker = prepared(store)
    branches = broker.beyond.branches
    branches.by_heuristics(broker.access.users["guest"], (1, b"global", b"b1"), True)
    for _ in range(3):
        broker.run()
    assert ask(ready(broker, b"manager", False)[1], "dtx_commit", xid=X) == HEURCOM
    after = durable(store.cut())
    _, peer = ready(after, makes=False)
    assert ask(peer, "dtx_recover") == {"in_doubt": [X]}
    assert ask(peer, "dtx_rollback", xid=X) == HEURCOM and ask(peer, "dtx_commit", xid=X) == HEURCOM
    peer.do("dtx_forget", xid=X)
    assert ask(peer, "dtx_commit", xid=X) == 404
    assert bodies(after) == [b"other", b"new"]


def test_operators_see_branches_and_decide():
    """core/amqp_0_10/branch_requests.py."""
    broker = prepared(MemoryStore())
    tell, _, _ = broker.beyond.requests["branches"]
    decide, tags, _ = broker.beyond.requests["decide-branch"]
    guest = broker.access.users["guest"]
    (row,) = json.loads(tell(broker, {}))["branches"]
    assert (row["state"], row["published"], row["consumed"]) == ("prepared", 1, 1) and tags == ("administrator",)
    for xid, outcome in ((None, "commit"), ("1:zz:00", "commit"), (row["xid"], "forget")):
        assert refused(lambda xid=xid, outcome=outcome: decide(broker, {"user": guest, "xid": xid, "outcome": outcome})) is ValueError
    assert refused(lambda: decide(broker, {"user": guest, "xid": "1:00:00", "outcome": "commit"})) is ProtocolError
    assert json.loads(decide(broker, {"user": guest, "xid": row["xid"], "outcome": "rollback"}))["ok"]
    (row,) = json.loads(tell(broker, {}))["branches"]
    assert (row["state"], row["outcome"]) == ("decided", "rolled back")
    assert counts(broker) == 1
