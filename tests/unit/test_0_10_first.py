"""AMQP 0-10: one message in, one message out, and what is said of it."""

import peer_0_10
from peer_0_10 import Peer, new_broker

from leveret.core.amqp_0_10 import header, properties, spec_0_10, structs


def declared(**given):
    peer = Peer(new_broker())
    peer.do("queue_declare", queue="q", **given)
    return peer


def test_connection_start_has_mechanisms_and_tune_proposes():
    """connection.start: "the security mechanisms that the server supports"; connection.tune: limits that the client may lower."""
    peer = Peer(new_broker())
    assert "PLAIN" in peer.started["mechanisms"] and peer.started["locales"] == ["en_US"]
    assert peer.tuned["max_frame_size"] >= 1024 and peer.tuned["channel_max"] > 0


def test_a_message_goes_in_and_out():
    peer = declared()
    peer.publish(b"hello", header={"content_type": "text/plain", "application_headers": {"n": 5}})
    assert peer.completed() == [(0, 1)]
    peer.subscribe()
    ((found, body),) = peer.transfers()
    assert body == b"hello"
    assert found[properties.DELIVERY]["routing_key"] == "q" and found[properties.DELIVERY]["exchange"] == ""
    assert found[properties.MESSAGE]["content_type"] == "text/plain" and found[properties.MESSAGE]["application_headers"] == {"n": 5}


def test_a_body_in_frames_and_one_without():
    peer = declared()
    body = bytes([number & 255 for number in range(6000)])
    peer.publish(body)
    peer.publish(b"")
    peer.subscribe()
    assert [each[1] for each in peer.transfers()] == [body, b""]


def test_window_mode_gives_credit_with_completion():
    """message.set-flow-mode: "message transfer completion implicitly grants a single unit of message credit"."""
    peer = declared()
    for number in range(5):
        peer.publish(b"%d" % number)
    peer.subscribe(messages=2)
    assert [each[1] for each in peer.transfers()] == [b"0", b"1"]
    peer.give(peer_0_10.control("session_completed", commands=[(0, 0)]))
    assert [each[1] for each in peer.transfers()] == [b"2"]


def test_credit_by_octets():
    """message.set-flow-mode: "If either value reaches zero, the flow of message data must stop"."""
    peer = declared()
    for _ in range(3):
        peer.publish(b"x" * 100)
    peer.subscribe(messages=10, octets=150)
    assert len(peer.transfers()) == 1
    peer.do("message_flow", destination="d", unit=1, value=1000)
    assert len(peer.transfers()) == 2


def test_accept_and_release():
    peer = declared()
    peer.publish(b"1")
    peer.publish(b"2")
    peer.subscribe(accept=0)
    assert [each[1] for each in peer.transfers()] == [b"1", b"2"]
    peer.do("message_accept", transfers=[(0, 0)])
    peer.do("message_release", transfers=[(1, 1)], set_redelivered=True)
    ((found, body),) = peer.transfers()
    assert body == b"2" and found[properties.DELIVERY]["redelivered"] is True


def test_an_unroutable_message_is_rejected_where_its_sender_wants_to_know():
    """delivery-properties.discard-unroutable; message.reject with code 1, unroutable."""
    peer = Peer(new_broker())
    peer.publish(b"x", key="nowhere", accept_mode=0)
    found = [(name, fields) for name, fields, _, _, _ in peer.all() if name == "message_reject"]
    assert found[0][1]["transfers"] == [(0, 0)] and found[0][1]["code"] == 1


def test_an_exception_ends_the_session():
    peer = Peer(new_broker())
    peer.do("queue_delete", queue="nothing")
    found = [(name, fields) for name, fields, _, _, _ in peer.all() if name in ("execution_exception", "session_detach")]
    assert found[0][0] == "execution_exception"
    assert (found[0][1]["error_code"], found[0][1]["command_id"]) == (404, 0)
    assert found[1] == ("session_detach", {"name": b"unit"})
    peer.give(peer_0_10.control("session_detached", name=b"unit", code=0))
    peer.attach(b"another")


def test_queries():
    peer = declared(durable=True)
    peer.do("queue_query", queue="q")
    result = [fields for name, fields, _, _, _ in peer.all() if name == "execution_result"][0]
    octets = result["value"]
    found, _ = structs.read("queue-query-result", len(octets).to_bytes(4, "big") + octets, 0, len(octets) + 4)
    assert found["queue"] == "q" and found["durable"] and found["message_count"] == 0


def test_a_transaction():
    peer = declared()
    peer.do("tx_select")
    peer.publish(b"in")
    peer.subscribe(accept=0)
    assert peer.transfers() == []
    peer.do("tx_commit")
    assert [each[1] for each in peer.transfers()] == [b"in"]


def test_the_header_is_that_of_the_tables():
    assert header.HEADER == spec_0_10.HEADER


def test_a_session_is_busy_on_one_transport_and_moves_where_force_is_said():
    """session.attach: "A session MUST NOT be attached to more than one transport at a time"; force detaches the other one."""
    broker = new_broker()
    first, second = Peer(broker, name=b"same"), Peer(broker, attaches=False)
    second.give(peer_0_10.control("session_attach", name=b"same"))
    assert second.expect("session_detached") == {"name": b"same", "code": 1}
    second.give(peer_0_10.control("session_attach", name=b"same", force=True))
    assert second.expect("session_attached") == {"name": b"same"}
    assert first.expect("session_detached") == {"name": b"same", "code": 1}


def test_a_command_before_any_command_point_detaches_with_unknown_ids():
    """session.command-point: "the session MUST be detached with an "unknown-id" reason-code"."""
    peer = Peer(new_broker(), attaches=False)
    peer.give(peer_0_10.control("session_attach", name=b"new") + peer_0_10.command("execution_sync"))
    assert peer.expect("session_attached") == {"name": b"new"}
    assert peer.expect("session_detached") == {"name": b"new", "code": 4}
