"""AMQP 0-10: what one session of a peer may have the broker keep (core/amqp_0_10/ranges.py, protocol.py)."""

from memory_store import SlowStore, durable_broker
from peer_0_10 import Peer, command, control, frame, new_broker, properties, structs

ROOM = {"content_size_max": 4096, "argument_size_max": 1024, "receive_buffer_size": 8192, "send_buffer_size": 8192}
SMALL = dict(ROOM, content_size_max=1024, argument_size_max=256, properties_size_max=256)


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


def test_controls_that_have_begun_are_bounded_over_a_connection():
    """A control may come in several frames (section on assembly): each channel kept the first ones of one, before a log-in too."""
    begun = frame.FIRST_SEGMENT | frame.LAST_SEGMENT | frame.FIRST_FRAME
    for opens in (False, True):
        for octets, most in ((b"", 18), (bytes(100), 7), (bytes(1000), 2)):
            broker = new_broker(**ROOM)
            peer = Peer(broker, opens=opens, attaches=False)
            if not opens:
                peer.give(b"AMQP\x01\x01\x00\x0a")
            channel = 0
            while peer.connection.session.state in ("starting", "open") and channel < 60:
                peer.give(frame.write(begun, frame.CONTROL, channel, octets))
                channel += 1
            assert channel == most, (opens, len(octets), channel)


def test_headers_of_messages_that_have_not_begun_are_bounded_over_a_connection():
    """Each session kept command and header segments as large as one message may have."""
    broker = new_broker(properties_size_max=2048, **ROOM)
    most = broker.limits.argument_size_max + broker.limits.properties_size_max
    peer = Peer(broker, attaches=False)
    first = frame.FIRST_SEGMENT | frame.FIRST_FRAME | frame.LAST_FRAME
    header = structs.write(properties.MESSAGE, {"app_id": bytes(900)})
    for number in range(8):
        peer.attach(b"s%d" % number, number)
    for number in range(8):
        peer.give(frame.write(first, frame.COMMAND, number, structs.write_command("message_transfer", {"destination": "amq.fanout"})))
        peer.give(frame.write(3, frame.HEADER, number, header))
    kept = sum([len(each.part) + len(each.header) for each in peer.connection.session.attached.values()])
    ended = [each for each in peer.all() if each[0] == "execution_exception"]
    assert 900 < kept <= most and ended and ended[0][1]["error_code"] == 506
    assert "in the sessions of a connection" in ended[0][1]["description"]


def test_a_message_that_has_begun_keeps_its_header_in_the_arena_alone():
    """An interrupted message has its header from there (message.resume)."""
    broker = new_broker(properties_size_max=2048, **ROOM)
    peer = Peer(broker)
    header = structs.write(properties.DELIVERY, {"routing_key": "k", "resume_id": "r"}) + structs.write(
        properties.MESSAGE, {"app_id": bytes(400)}
    )
    first = frame.FIRST_SEGMENT | frame.FIRST_FRAME | frame.LAST_FRAME
    peer.give(frame.write(first, frame.COMMAND, 0, structs.write_command("message_transfer", {"destination": "amq.fanout"})))
    peer.give(frame.write(3, frame.HEADER, 0, header) + frame.write(6, frame.BODY, 0, b"half"))
    assert len(peer.connection.session.attached[0].header) < 10
    peer.give(control("session_detach", name=b"unit"))
    (row,) = broker.beyond.halves.rows
    assert row[1:4] == ("r", header, b"half")


def test_sizes_of_frames():
    """tune, tune-ok: MIN-MAX-FRAME-SIZE, and what a board does whose buffer is smaller (core/SPEC.md, Frames)."""
    for buffer, proposed, size, answer in (
        (8192, 8192, 8192, "open"),
        (8192, 8192, 4096, "open"),
        (8192, 8192, 0, "open"),
        (8192, 8192, 4095, "close"),
        (8192, 8192, 1, "close"),
        (8192, 8192, 8193, "end"),
        (4096, 4096, 4096, "open"),
        (2048, 2048, 2048, "open"),
        (2048, 2048, 2047, "close"),
        (2048, 2048, 4096, "end"),
    ):
        broker = new_broker(**dict(SMALL, receive_buffer_size=buffer, frame_size_max=65536))
        peer = Peer(broker, opens=False)
        peer.log_in()
        assert peer.tuned["max_frame_size"] == proposed
        peer.give(control("connection_tune_ok", channel_max=8, max_frame_size=size, heartbeat=0))
        peer.give(control("connection_open", virtual_host="/"))
        came = [(name, fields.get("reply_code")) for name, fields, *_ in peer.all()]
        told = {"open": [("connection_open_ok", None)], "close": [("connection_close", 320)], "end": []}[answer]
        assert came == told and (answer == "open") == (peer.connection.session.state == "open"), (buffer, size, came)


def test_a_frame_larger_than_was_proposed_is_a_framing_error():
    """ "A peer that receives an oversized frame MUST close the connection with the framing-error close-code"; one of that size is taken,
    before tune too."""
    for buffer in (2048, 4096, 8192):
        for size, closes in ((buffer, False), (buffer + 1, True), (11, True)):
            peer = Peer(new_broker(**dict(SMALL, receive_buffer_size=buffer, frame_size_max=65536)))
            head = frame.head(frame.WHOLE, frame.COMMAND, 0, size - frame.HEAD)
            peer.give(head + bytes(max(size - frame.HEAD, 0)))
            came = [(name, fields.get("reply_code")) for name, fields, *_ in peer.all()]
            assert (("connection_close", 501) in came) == closes, (buffer, size, came)
