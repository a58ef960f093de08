"""AMQP 0-10, class session: sessions that live beyond their transport (core/amqp_0_10/sessions.py)."""

from memory_store import MemoryStore, durable_broker
from peer_0_10 import Peer, command, control, new_broker, transfer

from leveret.core.amqp_0_10 import properties
from leveret.core.memory import layout

ROOM = {"content_size_max": 4096, "argument_size_max": 1024, "receive_buffer_size": 8192, "send_buffer_size": 8192}
DURABLE = {"delivery_mode": 2}


def lasting(broker, name=b"s", timeout=60, again=False, force=False):
    """A peer with a session of this timeout; `again`: the session is attached again, and what it had said by itself is dropped."""
    peer = Peer(broker, attaches=False)
    peer.give(control("session_attach", name=name, force=force))
    assert peer.expect("session_attached") == {"name": name}
    peer.ids = 0
    if not again:
        peer.give(control("session_request_timeout", timeout=timeout))
        broker.run()
        peer.timeout = peer.expect("session_timeout")["timeout"]
        point(peer, 0)
    return peer


def point(peer, id_):
    """Our next command has this id."""
    peer.give(control("session_command_point", command_id=id_, command_offset=0))
    peer.ids = id_


def cut(peer):
    """The connection is lost."""
    peer.connection.finish()


def counts(broker, name="q"):
    return broker.queues[name].message_count()


def expects(peer):
    """What session.flush says is expected."""
    peer.all()
    peer.give(control("session_flush", expected=True))
    return peer.expect("session_expected")["commands"]


def later(broker, seconds):
    """Time passes."""
    broker.tick(broker.now + 1000 * seconds, broker.seconds + layout.EPOCH + seconds)


def ready(accept=0, count=3, **given):
    """(broker, peer) with a queue q, `count` messages, a subscription d."""
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    peer.subscribe(accept=accept, **given)
    for number in range(count):
        peer.publish(b"%d" % number)
    return broker, peer


def sent(peer):
    """[(id, body)] of the transfers that have come, by command-points and gaps; other commands count too."""
    ids, rows = getattr(peer, "their_ids", 0), []
    for name, fields, _, body, _ in peer.all():
        if name == "session_command_point":
            ids = fields["command_id"]
        elif name == "message_transfer":
            rows.append((ids, body))
        if not name.startswith(("session", "connection")):
            ids += 1
    peer.their_ids = ids
    return rows


def test_the_timeout_is_at_most_the_limit_and_none_asks_for_ever():
    """session.request-timeout: "the maximum allowed value less than or equal to the requested timeout"."""
    broker = new_broker(session_timeout_s=100, **ROOM)
    assert [lasting(broker, b"%d" % n, each).timeout for n, each in enumerate((30, 100, 1000, 0, None))] == [30, 100, 100, 0, 100]


def test_a_quarter_of_all_sessions_may_live_on():
    broker = new_broker(channel_count_max=8, **ROOM)
    assert [lasting(broker, b"%d" % each).timeout for each in range(3)] == [60, 60, 0]


def test_commands_that_come_again_are_completed_and_not_executed_twice():
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    for each in (b"1", b"2"):
        peer.publish(each)
    cut(peer)
    again = lasting(broker, again=True)
    assert again.completed() == [(0, 2)]
    assert expects(again) == [(3, 3)]
    point(again, 1)
    for each in (b"1", b"2", b"3"):
        again.publish(each)
    assert counts(broker) == 3 and again.completed() == [(0, 3)]


def test_what_the_peer_knows_to_be_completed_is_not_said_again():
    """session.known-completed: "MUST be excluded from the set of all completed commands"."""
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    peer.publish(b"1")
    peer.give(control("session_known_completed", commands=[(0, 0)]))
    cut(peer)
    assert lasting(broker, again=True).completed() == [(1, 1)]


def test_a_command_that_was_half_here_comes_whole_on_the_next_transport():
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    octets = transfer(b"x" * 3000, key="q")
    peer.give(octets[:-100])
    cut(peer)
    again = lasting(broker, again=True)
    assert expects(again) == [(1, 1)] and counts(broker) == 0
    point(again, 1)
    again.give(octets)
    assert counts(broker) == 1


def test_ids_between_executed_ones_are_expected():
    """session.expected: "MUST include the next command after the highest seen command"."""
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("execution_sync")
    point(peer, 4)
    peer.do("execution_sync")
    assert expects(peer) == [(1, 3), (5, 5)]
    point(peer, 2)
    peer.do("execution_sync")
    assert expects(peer) == [(1, 1), (3, 3), (5, 5)]


def test_transfers_that_were_not_completed_are_sent_again_with_their_ids():
    broker, peer = ready()
    assert sent(peer) == [(0, b"0"), (1, b"1"), (2, b"2")]
    peer.give(control("session_completed", commands=[(0, 0)]))
    cut(peer)
    assert broker.queues["q"].unsettled_count() == 3
    again = lasting(broker, again=True)
    assert sent(again) == [(1, b"1"), (2, b"2")]
    point(again, peer.ids)
    again.do("message_accept", transfers=[(0, 2)])
    assert counts(broker) == 0 and broker.queues["q"].unsettled_count() == 0
    again.publish(b"3")
    assert sent(again) == [(3, b"3")]


def numbered(peer):
    """[(id, name)] of the commands that have come."""
    ids, came = None, []
    for name, fields, _, _, _ in peer.all():
        if name == "session_command_point":
            ids = fields["command_id"]
        elif not name.startswith(("session", "connection")):
            came.append((ids, name))
            ids += 1
    return came


def attached_again(broker, peer, *frames):
    """A session that goes on on another transport: what has come when the peer had sent all of these."""
    again = Peer(broker, attaches=False)
    point_ = control("session_command_point", command_id=peer.ids, command_offset=0)
    again.give(control("session_attach", name=b"s") + point_ + b"".join(frames))
    return numbered(again)


def test_a_command_of_ours_goes_behind_what_is_sent_again():
    """Its id is behind theirs: sent before them, or between two, it made the peer count all of them wrong."""
    broker, peer = ready()
    peer.do("queue_declare", queue="idle")
    cut(peer)
    came = attached_again(broker, peer, transfer(b"x", key="idle", delivery={"immediate": True}, accept_mode=0))
    assert came == [(0, "message_transfer"), (1, "message_transfer"), (2, "message_transfer"), (3, "message_reject")]


def test_an_exception_while_commands_are_sent_again_has_an_id_of_its_own():
    broker, peer = ready(count=0)
    for _ in range(3):
        peer.publish(b"x" * 3500)
    sent(peer)
    cut(peer)
    came = attached_again(broker, peer, command("message_cancel", destination="none"))
    assert came == [(0, "message_transfer"), (1, "message_transfer"), (3, "execution_exception")]


def test_transfers_that_are_accepted_are_in_a_gap():
    """session.gap: "command ranges for which there will be no further data forthcoming"."""
    broker, peer = ready()
    peer.do("message_accept", transfers=[(1, 1)])
    cut(peer)
    again = lasting(broker, again=True)
    came = again.all()
    assert [fields["commands"] for name, fields, _, _, _ in came if name == "session_gap"] == [[(1, 1)]]
    assert [fields["command_id"] for name, fields, _, _, _ in came if name == "session_command_point"] == [0, 2]
    assert [body for name, _, _, body, _ in came if name == "message_transfer"] == [b"0", b"2"]


def test_a_confirmed_transfer_is_not_sent_again():
    """session.confirmed: "commands that will definitely be completed"."""
    broker, peer = ready()
    peer.give(control("session_confirmed", commands=[(0, 1)]))
    cut(peer)
    assert sent(lasting(broker, again=True)) == [(2, b"2")]


def test_accept_mode_none_is_held_until_the_transfer_is_completed():
    broker, peer = ready(accept=1)
    assert len(sent(peer)) == 3 and broker.queues["q"].unsettled_count() == 3
    peer.give(control("session_completed", commands=[(0, 1)]))
    assert broker.queues["q"].unsettled_count() == 1
    cut(peer)
    again = lasting(broker, again=True)
    assert sent(again) == [(2, b"2")]
    again.give(control("session_completed", commands=[(2, 2)]))
    assert broker.queues["q"].unsettled_count() == 0 and counts(broker) == 0


def test_accept_mode_none_is_settled_too_when_the_session_has_given_up_its_timeout():
    """What it had completed came again, as redelivered, when its connection ended."""
    for mode in (0, 1):
        broker, peer = ready(accept=1, count=1)
        peer.do("message_stop", destination="d")
        peer.do("message_set_flow_mode", destination="d", flow_mode=mode)
        peer.give(control("session_request_timeout", timeout=0))
        peer.do("message_flow", destination="d", unit=0, value=0xFFFFFFFF)
        peer.do("message_flow", destination="d", unit=1, value=0xFFFFFFFF)
        peer.publish(b"1")
        rows = sent(peer)
        assert [body for _, body in rows] == [b"0", b"1"]
        peer.give(control("session_completed", commands=[(rows[0][0], rows[1][0])]))
        cut(peer)
        broker.run()
        assert counts(broker) == 0, mode


def test_credit_goes_on_where_it_was():
    broker, peer = ready(messages=2, count=4)
    assert len(sent(peer)) == 2
    cut(peer)
    again = lasting(broker, again=True)
    assert [each[1] for each in sent(again)] == [b"0", b"1"]
    again.give(control("session_completed", commands=[(0, 1)]))
    assert [each[1] for each in sent(again)] == [b"2", b"3"]


def test_a_large_transfer_is_sent_again_whole():
    broker, peer = ready(count=0)
    body = bytes([each & 255 for each in range(4000)])
    for _ in range(4):
        peer.publish(body)
    cut(peer)
    assert [each[1] for each in sent(lasting(broker, again=True))] == [body] * 4


def test_results_are_sent_again_until_they_are_completed():
    broker, peer = ready(count=0)
    peer.do("queue_query", queue="q")
    assert [name for name, _, _, _, _ in peer.all() if name == "execution_result"] == ["execution_result"]
    cut(peer)
    again = lasting(broker, again=True)
    assert [fields["command_id"] for name, fields, _, _, _ in again.all() if name == "execution_result"] == [peer.ids - 1]
    again.give(control("session_completed", commands=[(0, 0)]))
    cut(again)
    assert "execution_result" not in [each[0] for each in lasting(broker, again=True).all()]


def test_browsed_messages_are_sent_again_and_can_be_acquired():
    broker, peer = ready(count=0)
    peer.do("message_subscribe", queue="q", destination="b", accept_mode=1, acquire_mode=1)
    for unit in (0, 1):
        peer.do("message_flow", destination="b", unit=unit, value=0xFFFFFFFF)
    peer.do("message_cancel", destination="d")
    peer.publish(b"seen")
    assert sent(peer) == [(0, b"seen")]
    cut(peer)
    again = lasting(broker, again=True)
    assert sent(again) == [(0, b"seen")]
    point(again, peer.ids)
    again.do("message_acquire", transfers=[(0, 0)])
    assert counts(broker) == 0 and broker.queues["q"].unsettled_count() == 1


def test_when_the_timeout_is_over_what_was_acquired_goes_back():
    broker, peer = ready()
    sent(peer)
    cut(peer)
    later(broker, 59)
    assert broker.queues["q"].unsettled_count() == 3
    later(broker, 2)
    broker.run()
    assert counts(broker) == 3 and broker.beyond.by_name == {}
    again = lasting(broker)
    assert expects(again) == [(0, 0)]


def test_a_session_that_is_detached_lives_on_and_one_without_timeout_ends():
    """session.detach."""
    broker, peer = ready()
    peer.give(control("session_detach", name=b"s"))
    assert [each[1] for each in peer.all() if each[0] == "session_detached"] == [{"name": b"s", "code": 0}]
    assert broker.queues["q"].unsettled_count() == 3
    peer.give(control("session_attach", 3, name=b"s"))
    assert [body for name, _, _, body, number in peer.all() if name == "message_transfer" and number == 3] == [b"0", b"1", b"2"]
    peer.give(control("session_request_timeout", 3, timeout=0) + control("session_detach", 3, name=b"s"))
    broker.run()
    assert counts(broker) == 3 and broker.queues["q"].unsettled_count() == 0


def test_force_moves_the_session_with_all_it_has():
    """session.attach: "a busy session will be forcibly detached from its other transport and reattached to the current transport"."""
    broker, peer = ready()
    sent(peer)
    again = lasting(broker, again=True, force=True)
    assert peer.expect("session_detached") == {"name": b"s", "code": 1}
    assert sent(again) == [(0, b"0"), (1, b"1"), (2, b"2")]
    peer.give(command("execution_sync"))
    assert peer.expect("session_detached")["code"] == 3


def test_a_session_of_another_user_of_that_name_is_another():
    """session.attach: "Attachment to the same session name from distinct authentication principals MUST succeed"."""
    broker, peer = ready()
    cut(peer)
    broker.beyond.by_name[("other", b"s")] = broker.beyond.by_name.pop(("guest", b"s"))
    assert expects(lasting(broker)) == [(0, 0)]


def test_an_exclusive_queue_stays_with_its_session_and_goes_with_it():
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="x", exclusive=True, auto_delete=True)
    cut(peer)
    assert "x" in broker.queues
    again = lasting(broker, again=True)
    point(again, 1)
    again.publish(b"1", key="x")
    again.subscribe("x")
    assert [each[1] for each in again.transfers()] == [b"1"]
    cut(again)
    later(broker, 61)
    broker.run()
    assert "x" not in broker.queues


def test_a_transaction_goes_on():
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    peer.do("tx_select")
    peer.publish(b"1")
    cut(peer)
    again = lasting(broker, again=True)
    point(again, 3)
    again.publish(b"2")
    assert counts(broker) == 0
    again.do("tx_commit")
    assert counts(broker) == 2


def test_an_error_that_it_met_without_transport_is_told_on_the_next():
    broker, peer = ready()
    cut(peer)
    other = Peer(broker, name=b"other")
    other.do("queue_delete", queue="q")
    broker.run()
    again = Peer(broker, attaches=False)
    again.give(control("session_attach", name=b"s"))
    names = [each[0] for each in again.all()]
    assert names[0] == "session_attached" and "execution_exception" in names and names[-1] == "session_detach"


def test_too_many_commands_that_nobody_completes_end_the_session():
    broker, peer = ready(count=0)
    names = []
    for _ in range(1100):
        peer.do("queue_query", queue="q")
        names += [each[0] for each in peer.all()]
        if names[-1] == "session_detach":
            break
    assert names.count("session_flush") == 1 and names[-2:] == ["execution_exception", "session_detach"]


# With a log


def durable(store):
    broker, _ = durable_broker(store, **ROOM)
    return broker


def rounds(broker):
    for _ in range(4):
        broker.run()


def test_nothing_is_executed_twice_after_a_power_cut():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    for each in (b"1", b"2"):
        peer.publish(each, delivery=DURABLE)
    rounds(broker)
    assert peer.completed() == [(0, 2)]
    after = durable(store.cut())
    again = lasting(after, again=True)
    assert again.completed() == [(0, 2)] and expects(again) == [(3, 3)]
    point(again, 1)
    for each in (b"1", b"2", b"3"):
        again.publish(each, delivery=DURABLE)
    rounds(after)
    assert counts(after) == 3


def test_what_was_executed_before_an_error_of_the_connection_is_not_executed_twice():
    """Between connection.close and its answer the log has the work, and that it was done."""
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    rounds(broker)
    peer.give(transfer(b"1", key="q", delivery=DURABLE) + b"\xff" * 12)
    rounds(broker)
    assert "connection_close" in [each[0] for each in peer.all()] and not peer.connection.closed
    after = durable(store.cut())
    again = lasting(after, again=True)
    point(again, 1)
    again.publish(b"1", delivery=DURABLE)
    rounds(after)
    assert counts(after) == 1


def test_what_no_commit_had_is_executed_after_a_power_cut():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    rounds(broker)
    left = store.cut()
    peer.publish(b"1", delivery=DURABLE)
    after = durable(left)
    again = lasting(after, again=True)
    assert expects(again) == [(1, 1)]
    point(again, 1)
    again.publish(b"1", delivery=DURABLE)
    assert counts(after) == 1


def test_a_session_that_a_restart_takes_its_subscriptions_from_is_told_what_is_completed_and_ends():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    peer.subscribe()
    rounds(broker)
    after = durable(store.cut())
    again = Peer(after, attaches=False)
    again.give(control("session_attach", name=b"s"))
    came = again.all()
    assert [each[0] for each in came if each[0] != "session_command_point"] == [
        "session_attached",
        "session_completed",
        "execution_exception",
        "session_detach",
    ]
    assert came[1][1]["commands"] == [(0, 3)]
    again.give(control("session_detach", name=b"s"))
    assert again.expect("session_detached") == {"name": b"s", "code": 0} and after.beyond.by_name == {}


def test_a_commit_of_which_the_log_has_all_is_not_done_twice_and_one_of_which_it_has_nothing_is_told():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    peer.do("tx_select")
    peer.publish(b"1", delivery=DURABLE)
    rounds(broker)
    before = store.cut()
    peer.do("tx_commit")
    rounds(broker)
    after = durable(store.cut())
    again = lasting(after, again=True)
    point(again, 3)
    again.do("tx_commit")
    again.publish(b"2", delivery=DURABLE)
    again.do("tx_commit")
    assert counts(after) == 2
    lost = durable(before)
    late = Peer(lost, attaches=False)
    late.give(control("session_attach", name=b"s"))
    assert "execution_exception" in [each[0] for each in late.all()] and counts(lost) == 0


def test_our_ids_go_on_behind_all_that_were_sent_before_a_restart():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    for _ in range(3):
        peer.do("queue_query", queue="q")
    rounds(broker)
    after = durable(store.cut())
    again = lasting(after, again=True)
    point(again, 4)
    again.do("queue_query", queue="q")
    points = [fields["command_id"] for name, fields, _, _, _ in again.all() if name == "session_command_point"]
    assert len(points) == 1 and 3 <= points[0] < 1 << 18


def test_a_session_that_has_ended_is_not_in_the_log():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.give(control("session_request_timeout", timeout=0))
    rounds(broker)
    after = durable(store.cut())
    assert after.beyond is None or after.beyond.by_name == {}


def test_the_log_keeps_sessions_when_it_writes_its_definitions_anew():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    broker.journal.snapshot()
    rounds(broker)
    again = lasting(durable(store.cut()), again=True)
    assert expects(again) == [(1, 1)]


def test_a_header_is_read_as_it_was():
    """What a transfer that is sent again says of its message."""
    broker, peer = ready(count=0)
    peer.publish(b"x", header={"content_type": "text/plain"})
    before = peer.transfers()
    cut(peer)
    after = lasting(broker, again=True).transfers()
    assert before == after and after[0][0][properties.MESSAGE]["content_type"] == "text/plain"


def test_a_reader_of_a_stream_goes_on_at_the_first_delivery_that_has_not_arrived():
    """The stream has it for ever: it is read again, with the credit that it took (message.flow), and none that came is lost or doubled."""
    for mode, first, again_first, then in (  # message.set-flow-mode: credit, window
        (0, [], [b"1", b"2"], [b"3", b"4"]),
        (1, [b"3"], [b"1", b"2", b"3"], [b"4"]),
    ):
        broker = new_broker(**ROOM)
        peer = lasting(broker)
        peer.do("queue_declare", queue="s", durable=True, arguments={"x-queue-type": "stream"})
        for number in range(5):
            peer.publish(b"%d" % number, key="s")
        peer.do("message_subscribe", queue="s", destination="d", accept_mode=0, acquire_mode=0, arguments={"x-stream-offset": "first"})
        peer.do("message_set_flow_mode", destination="d", flow_mode=mode)
        peer.do("message_flow", destination="d", unit=1, value=0xFFFFFFFF)
        peer.do("message_flow", destination="d", unit=0, value=3)
        got = sent(peer)
        assert [body for _, body in got] == [b"0", b"1", b"2"], mode
        peer.give(control("session_completed", commands=[(got[0][0], got[0][0])]))
        assert [body for _, body in sent(peer)] == first, mode
        cut(peer)
        again = lasting(broker, again=True)
        assert [body for _, body in sent(again)] == again_first, mode
        point(again, peer.ids)
        again.do("message_flow", destination="d", unit=0, value=10)
        assert [body for _, body in sent(again)] == then, mode
