"""AMQP 0-10: controls and commands one by one, where no other file has them (core/SPEC.md, controls and commands)."""

from memory_store import MemoryStore, durable_broker
from peer_0_10 import Peer, command, control, frame, new_broker, structs

from leveret.core.amqp_0_10 import properties
from leveret.core.amqp_0_10.spec_0_10 import HEADER
from leveret.core.memory import layout

ROOM = {"content_size_max": 4096, "argument_size_max": 1024, "receive_buffer_size": 8192, "send_buffer_size": 8192}


def declared(broker=None, **given):
    peer = Peer(broker or new_broker(**ROOM))
    peer.do("queue_declare", queue="q", **given)
    peer.all()
    return peer


def names(peer):
    return [each[0] for each in peer.all()]


def of_kind(peer, name):
    """The fields of all of a name that have come."""
    return [fields for found, fields, _, _, _ in peer.all() if found == name]


def result(peer, title, **given):
    """The struct that a command results in."""
    peer.all()
    peer.do(title, **given)
    octets = of_kind(peer, "execution_result")[0]["value"]
    return structs.read(structs.RESULTS[title], len(octets).to_bytes(4, "big") + octets, 0, len(octets) + 4)[0]


def error(peer):
    """The error-code that the session ended with, or None."""
    codes = [fields["error_code"] for fields in of_kind(peer, "execution_exception")]
    return codes[0] if codes else None


def later(peer, milliseconds):
    """Time passes."""
    broker = peer.broker
    broker.tick(broker.now + milliseconds, broker.seconds + layout.EPOCH + milliseconds // 1000)
    if not peer.connection.closed:
        peer.connection.tick(broker.now)


def test_a_log_in_that_fails_closes_with_connection_forced():
    """connection.secure, close: what is no user's ends the connection."""
    peer = Peer(new_broker(login_pause_ms=0, **ROOM), opens=False)
    peer.give(HEADER)
    peer.take(8)
    peer.expect("connection_start")
    peer.give(control("connection_start_ok", mechanism="PLAIN", response=b"\x00guest\x00wrong", locale="en_US"))
    for _ in range(5):
        peer.broker.run()
        later(peer, 3000)
    assert names(peer) in (["connection_close"], []) and peer.connection.ending or peer.connection.closed


def test_an_unknown_mechanism_is_refused():
    peer = Peer(new_broker(login_pause_ms=0, **ROOM), opens=False)
    peer.give(HEADER)
    peer.take(8)
    peer.expect("connection_start")
    peer.give(control("connection_start_ok", mechanism="NONE", response=b"", locale="en_US"))
    later(peer, 3000)
    assert peer.connection.ending or peer.connection.closed


def test_scram_takes_a_challenge():
    """connection.secure and secure-ok."""
    peer = Peer(new_broker(**ROOM), opens=False)
    peer.give(HEADER)
    peer.take(8)
    assert "SCRAM-SHA-256" in peer.expect("connection_start")["mechanisms"]
    peer.give(control("connection_start_ok", mechanism="SCRAM-SHA-256", response=b"n,,n=guest,r=abc", locale="en_US"))
    for _ in range(3):
        peer.broker.run()
    assert peer.expect("connection_secure")["challenge"].startswith(b"r=abc")
    peer.give(control("connection_secure_ok", response=b"c=biws,r=abc,p=AAAA"))
    later(peer, 3000)
    assert "connection_tune" not in names(peer)


def test_more_than_was_proposed_ends_the_connection():
    """connection.tune-ok: "the server MUST close the connection without attempting a negotiated close"."""
    peer = Peer(new_broker(**ROOM), opens=False)
    peer.log_in()
    peer.give(control("connection_tune_ok", channel_max=65535, max_frame_size=4096, heartbeat=0))
    assert names(peer) == [] and (peer.connection.closed or peer.connection.ending)


def test_a_virtual_host_that_is_not_there():
    """connection.open; close with invalid-path."""
    peer = Peer(new_broker(**ROOM), opens=False)
    peer.log_in()
    peer.give(control("connection_tune_ok", channel_max=8, max_frame_size=4096, heartbeat=0))
    peer.give(control("connection_open", virtual_host="nowhere"))
    assert of_kind(peer, "connection_close")[0]["reply_code"] == 402
    peer.give(control("connection_close_ok"))
    assert peer.connection.closed or peer.connection.ending


def test_a_peers_close_is_answered():
    """connection.close and close-ok."""
    peer = declared()
    peer.give(control("connection_close", reply_code=200, reply_text="bye"))
    assert "connection_close_ok" in names(peer)


def test_heartbeats_go_out_and_two_that_are_missed_end_the_connection():
    """connection.heartbeat."""
    peer = Peer(new_broker(**ROOM), heartbeat=2)
    peer.all()
    later(peer, 1100)
    assert names(peer) == ["connection_heartbeat"]
    for _ in range(5):
        peer.give(control("connection_heartbeat"))
        later(peer, 1500)
    assert not peer.connection.closed and "connection_heartbeat" in names(peer)
    later(peer, 4100)
    assert peer.connection.closed


def test_a_command_that_is_not_whole_is_no_heartbeat_but_octets_are():
    peer = Peer(new_broker(**ROOM), heartbeat=1)
    octets = command("execution_sync")
    for each in range(len(octets)):
        peer.give(octets[each : each + 1])
        later(peer, 900)
    assert not peer.connection.closed


def test_a_gap_completes_and_what_is_behind_goes_on():
    """session.gap: "MUST be added to the completed and confirmed sets"."""
    peer = declared()
    peer.give(control("session_gap", commands=[(1, 3)]))
    assert peer.completed() == [(0, 3)]
    peer.give(control("session_flush", confirmed=True, expected=True))
    assert peer.expect("session_expected")["commands"] == [(4, 4)] and peer.expect("session_confirmed")["commands"] == [(0, 3)]
    peer.publish(b"x")
    assert peer.broker.queues["q"].message_count() == 1


def test_a_gap_aborts_a_command_that_is_half_here():
    """session.gap: "If a session.gap covers a partially received command, the receiving peer MUST treat the command as aborted"."""
    peer = declared()
    fields = {"destination": "", "accept_mode": 1}
    peer.give(frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, structs.write_command("message_transfer", fields), 65535))
    peer.give(control("session_gap", commands=[(1, 1)]))
    peer.publish(b"x")
    assert peer.broker.queues["q"].message_count() == 1 and not peer.connection.closed


def test_flush_has_each_of_its_bits():
    """session.flush."""
    peer = declared()
    peer.give(control("session_flush", completed=True))
    assert names(peer) == ["session_completed"]
    peer.give(control("session_flush", expected=True, confirmed=True, completed=True))
    assert names(peer) == ["session_expected", "session_confirmed", "session_completed"]


def test_purge_empties():
    """queue.purge."""
    peer = declared()
    for _ in range(3):
        peer.publish(b"x")
    peer.do("queue_purge", queue="q")
    assert peer.broker.queues["q"].message_count() == 0
    peer.do("queue_purge", queue="none")
    assert error(peer) == 404


def test_bound_says_what_does_not_fit():
    """exchange.bound: exchange-bound-result."""
    peer = declared()
    peer.do("exchange_declare", exchange="e", type="direct")
    peer.do("exchange_bind", queue="q", exchange="e", binding_key="k")
    flags = ("exchange_not_found", "queue_not_found", "queue_not_matched", "key_not_matched", "args_not_matched")
    cases = (
        ({"exchange": "e", "queue": "q", "binding_key": "k"}, ()),
        ({"exchange": "none", "queue": "q"}, ("exchange_not_found",)),
        ({"exchange": "e", "queue": "none"}, ("queue_not_found",)),
        ({"exchange": "e", "queue": "q", "binding_key": "other"}, ("key_not_matched",)),
        ({"exchange": "amq.topic", "queue": "q"}, ("queue_not_matched",)),
        ({"exchange": "e", "queue": "q", "binding_key": "k", "arguments": {"a": 1}}, ("args_not_matched",)),
    )
    for given, wanted in cases:
        found = result(peer, "exchange_bound", **given)
        assert tuple(each for each in flags if found[each]) == wanted, given
    peer.do("exchange_unbind", queue="q", exchange="e", binding_key="k")
    assert result(peer, "exchange_bound", exchange="e", queue="q")["queue_not_matched"]
    assert result(peer, "exchange_query", name="e")["type"] == "direct"
    peer.do("exchange_delete", exchange="e")
    assert result(peer, "exchange_query", name="e")["not_found"]


def test_arguments_of_qpids():
    """queue.declare with the names of Qpid's brokers."""
    broker = new_broker(**ROOM)
    peer = Peer(broker)
    given = {
        "ring": ({"qpid.max_count": 2, "qpid.policy_type": "ring"}, [b"1", b"2"]),
        "last": ({"qpid.last_value_queue_key": "k"}, [b"2"]),
        "levels": ({"qpid.priorities": 10}, [b"2", b"1", b"0"]),
    }
    for name in ("last", "levels", "ring"):
        arguments, bodies = given[name]
        peer.do("queue_declare", queue=name, arguments=arguments)
        for each in range(3):
            peer.publish(b"%d" % each, key=name, delivery={"priority": each}, header={"application_headers": {"k": "same"}})
        peer.subscribe(name, name)
        assert [body for _, body in peer.transfers()] == bodies, name
    peer.do("queue_declare", queue="full", arguments={"qpid.max_count": 1, "qpid.policy_type": "reject"})
    peer.publish(b"1", key="full")
    peer.publish(b"2", key="full")
    assert error(peer) == 506


def test_a_stream_is_read_with_its_offsets():
    """message.subscribe to a stream (deliver_stream.py)."""
    broker = durable_broker(MemoryStore(), **ROOM)[0]
    peer = Peer(broker)
    peer.do("queue_declare", queue="s", durable=True, arguments={"x-queue-type": "stream"})
    for each in range(3):
        peer.publish(b"%d" % each, key="s")
    for _ in range(4):
        broker.run()
    peer.subscribe("s", arguments={"x-stream-offset": "first"})
    for _ in range(4):
        broker.run()
    came = peer.transfers()
    assert [body for _, body in came] == [b"0", b"1", b"2"]
    assert [header[properties.MESSAGE]["application_headers"]["x-stream-offset"] for header, _ in came] == [0, 1, 2]
    peer.give(control("session_completed", commands=[(0, 2)]))
    peer.subscribe("s", "again", arguments={"x-stream-offset": 1}, accept=0)
    for _ in range(4):
        broker.run()
    assert [body for _, body in peer.transfers()] == [b"1", b"2"]


def test_no_local_keeps_a_connections_own_messages_out_of_its_queue():
    """An argument of queue.declare of Qpid's clients: for a topic's subscriber with noLocal. Others' messages come, and the peer's own go
    to other queues; in transactions too, and for a durable queue those of whoever has declared it last."""
    broker = new_broker()
    peer, other = Peer(broker), Peer(broker, name=b"other")
    peer.do("queue_declare", queue="mine", durable=True, arguments={"no-local": True})
    peer.do("queue_declare", queue="all")
    for queue in ("mine", "all"):
        peer.do("exchange_bind", queue=queue, exchange="amq.topic", binding_key="#")
    peer.do("tx_select")
    for each, body in ((peer, b"own"), (other, b"other's"), (peer, b"own too")):
        each.publish(body, key="k", destination="amq.topic")
    peer.do("tx_commit")
    for _ in range(3):
        broker.run()
    assert [broker.queues[queue].message_count() for queue in ("mine", "all")] == [1, 3]
    peer.connection.finish()
    other.do("queue_declare", queue="mine", durable=True, arguments={"no-local": True})
    other.publish(b"own now", key="k", destination="amq.topic")
    Peer(broker, name=b"third").publish(b"a third one's", key="k", destination="amq.topic")
    other.subscribe("mine")
    assert [body for _, body in other.transfers()] == [b"other's", b"a third one's"]
    other.do("queue_delete", queue="mine")
    broker.tick(broker.now + 2000, 1700000000)
    assert broker.local.rules == 0


def test_immediate_wants_a_subscription():
    """delivery-properties.immediate; message.reject with code 2."""
    peer = declared()
    peer.publish(b"none", delivery={"immediate": True}, accept_mode=0)
    found = of_kind(peer, "message_reject")
    assert [(each["transfers"], each["code"]) for each in found] == [([(1, 1)], 2)]
    peer.publish(b"nobody hears", delivery={"immediate": True})
    assert peer.broker.queues["q"].message_count() == 0
    peer.subscribe()
    peer.publish(b"some", delivery={"immediate": True}, accept_mode=0)
    assert [body for _, body in peer.transfers()] == [b"some"]


def test_flow_stop_flush_and_cancel():
    """message.flow, stop, flush, cancel, set-flow-mode."""
    peer = declared()
    peer.do("message_subscribe", queue="q", destination="d", accept_mode=1, acquire_mode=0)
    peer.do("message_set_flow_mode", destination="d", flow_mode=0)
    for each in range(3):
        peer.publish(b"%d" % each)
    for unit, value in ((1, 0xFFFFFFFF), (0, 1)):
        peer.do("message_flow", destination="d", unit=unit, value=value)
    assert [body for _, body in peer.transfers()] == [b"0"]
    peer.give(control("session_completed", commands=[(0, 0)]))
    assert peer.transfers() == []
    peer.do("message_flow", destination="d", unit=0, value=5)
    peer.do("message_flush", destination="d")
    assert [body for _, body in peer.transfers()] == [b"1", b"2"]
    peer.publish(b"3")
    assert peer.transfers() == []
    peer.do("message_flow", destination="d", unit=0, value=5)
    peer.do("message_flow", destination="d", unit=1, value=5000)
    assert len(peer.transfers()) == 1
    peer.do("message_stop", destination="d")
    peer.publish(b"4")
    assert peer.transfers() == []
    peer.do("message_cancel", destination="d")
    peer.do("message_cancel", destination="d")
    assert error(peer) == 404


def test_reject_drops_and_acquire_takes():
    """message.reject, acquire."""
    peer = declared()
    peer.publish(b"1")
    peer.subscribe(accept=0)
    assert len(peer.transfers()) == 1
    peer.do("message_reject", transfers=[(0, 0)], code=0, text="no")
    queue = peer.broker.queues["q"]
    assert queue.message_count() == 0 and queue.unsettled_count() == 0
    peer.do("message_cancel", destination="d")
    peer.publish(b"2")
    peer.do("message_subscribe", queue="q", destination="b", accept_mode=0, acquire_mode=1)
    for unit in (0, 1):
        peer.do("message_flow", destination="b", unit=unit, value=0xFFFFFFFF)
    assert len(peer.transfers()) == 1 and queue.message_count() == 1
    assert result(peer, "message_acquire", transfers=[(1, 1)]) == {"transfers": [(1, 1)]}
    assert queue.message_count() == 0 and queue.unsettled_count() == 1


def test_rollback_of_tx():
    """tx.rollback: transfers are discarded, and what was accepted is unsettled as before."""
    peer = declared()
    peer.publish(b"1")
    peer.subscribe(accept=0)
    peer.do("tx_select")
    peer.do("message_accept", transfers=[(0, 0)])
    peer.publish(b"2")
    peer.do("tx_rollback")
    queue = peer.broker.queues["q"]
    assert queue.message_count() == 0 and queue.unsettled_count() == 1
    peer.do("tx_select")
    assert error(peer) == 409


def test_what_a_client_sends_of_execution():
    """execution.sync, result, exception."""
    peer = declared()
    peer.do("execution_sync")
    assert peer.completed() == [(0, 1)]
    peer.do("execution_exception", error_code=404)
    peer.do("execution_result", command_id=0)
    assert error(peer) == 531


def test_delete_of_queues():
    """queue.delete: if-empty, if-unused."""
    peer = declared()
    peer.publish(b"x")
    peer.do("queue_delete", queue="q", if_empty=True)
    assert error(peer) == 406
    other = Peer(peer.broker, name=b"other")
    other.do("queue_delete", queue="q")
    assert "q" not in peer.broker.queues
