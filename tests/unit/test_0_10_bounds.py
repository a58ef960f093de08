"""AMQP 0-10: what one session of a peer may have the broker keep (core/amqp_0_10/ranges.py, protocol.py)."""

from memory_store import SlowStore, durable_broker
from peer_0_10 import Peer, command, control, new_broker

ROOM = {"content_size_max": 4096, "argument_size_max": 1024, "receive_buffer_size": 8192, "send_buffer_size": 8192}


def test_ids_with_too_many_holes_end_the_session():
    """Each hole is a range that is kept: of what is executed, completed, or confirmed."""
    for kind in ("point", "gap", "confirmed", "known"):
        broker = new_broker(**ROOM)
        peer = Peer(broker, name=b"s")
        peer.give(control("session_request_timeout", timeout=60))
        if kind == "known":
            peer.give(control("session_gap", commands=[(0, 8000)]))
        session, ended = broker.beyond.by_name[("guest", b"s")], False
        for number in range(1101 if kind == "point" else 21):
            if kind == "point":
                peer.give(control("session_command_point", command_id=2 * number, command_offset=0))
                peer.do("execution_sync")
            else:
                first = 200 * number if kind == "known" else 0x80001000 + 200 * number
                title = "session_known_completed" if kind == "known" else "session_" + kind
                peer.give(control(title, commands=[(first + 2 * each, first + 2 * each) for each in range(100)]))
            if number % 10 == 0:
                peer.collect()
                ended = ended or b"in more than 1024 ranges" in bytes(peer.inbox)
                peer.inbox = b""
        assert ended, kind
        assert len(session.received.runs) < 1200 and len(session.completed.runs) < 1200 and len(session.confirmed.runs) < 1200
        assert broker.beyond.by_name == {}


def test_a_bounded_number_of_commands_waits_for_the_log():
    """A medium that stalls, or is full, let a peer's commands wait without bound."""
    store = SlowStore()
    broker, _ = durable_broker(store, **ROOM)
    peer = Peer(broker)
    broker.run()
    broker.run()
    store.stalls = True
    peer.do("queue_declare", queue="q", durable=True)
    session = peer.connection.session.attached[0]
    frames = command("execution_sync") * 100
    taken = 1
    for _ in range(100):
        taken += peer.give(frames) // (len(frames) // 100)
    assert len(session.undurable) == 8192 and not peer.connection.reading and taken < 10001
    store.stalls = False
    for _ in range(80):
        broker.run()
    assert peer.completed() == [(0, taken - 1)] and peer.connection.reading
