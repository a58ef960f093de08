"""No room: what the broker does at its limits (core/limits.py), and that one connection's trouble stays its own."""

from peer import Peer, content, encoded, idle, new_broker

from leveret.core import limits
from leveret.core.amqp_0_9 import frame
from leveret.core.memory import layout, micropython_sizes


def test_a_full_queue_slows_its_publisher_and_nobody_else():
    """The publisher is not read (and told, section connection.blocked of RabbitMQ) until a consumer makes room; nothing is lost."""
    broker = new_broker()
    writer = Peer(broker, capabilities={"connection.blocked": True})
    other = Peer(broker)
    writer.declare("full")
    other.declare("free")
    sent = 0
    while writer.publish("full", bytes(1000)) == len(content(1, "", "full", bytes(1000))) and writer.connection.reading:
        sent += 1
        assert sent < 100
    assert not writer.connection.reading and len(writer.connection.writable()) == 0
    other.publish("free", b"goes on")
    assert broker.queues["free"].message_count() == 1
    for now in (100, 400):
        broker.tick(now, 0)
        writer.connection.tick(now)
    assert writer.expect("connection_blocked") == ["no room for more messages"]
    reader = Peer(broker)
    got = len(reader.consume("full", no_ack=True)) + len(reader.contents())
    assert writer.connection.reading
    assert writer.expect("connection_unblocked") == []
    broker.run()
    got += len(reader.contents())
    assert got == sent + 1


def test_one_queue_never_takes_all():
    """A queue holds at most four times what is left, so a second queue always finds room."""
    broker = new_broker()
    peers = [Peer(broker), Peer(broker)]
    for index in range(2):
        peers[index].declare("q%d" % index)
        while peers[index].connection.reading:
            peers[index].publish("q%d" % index, bytes(500))
    counts = [broker.queues["q%d" % index].message_count() for index in range(2)]
    assert counts[0] > 2 * counts[1] > 0, counts


def test_a_body_above_the_limit_closes_its_channel_and_its_octets_are_dropped():
    """311 content-too-large is a channel's error; the frames that are under way do no harm."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    body = bytes(broker.limits.content_size_max + 1)
    peer.give(content(1, "", "q", body))
    code, text, _, _ = peer.expect("channel_close")
    assert code == 311 and text.startswith("CONTENT_TOO_LARGE - a body of 12289 octets; this broker takes 12288"), text
    peer.give(encoded("channel_close_ok", 1))
    peer.ask("channel_open", "channel_open_ok", "")
    peer.connection.received(0)
    assert idle(broker) == before


def test_a_second_unfinished_content_without_room_is_refused():
    """506: it could never be finished, because the first holds the room and this connection would not be read."""
    broker = new_broker()
    peer = Peer(broker)
    peer.ask("channel_open", "channel_open_ok", "", channel=2)
    peer.ask("channel_open", "channel_open_ok", "", channel=3)
    for channel in (1, 2, 3):
        peer.give(encoded("basic_publish", channel, 0, "", "q", False, False) + frame.content_header(channel, 12000, b"\x00\x00"))
    frames = peer.frames()
    assert [(each[0], each[2][0]) for each in frames] == [("connection_close", 506)], frames


def test_a_content_that_does_not_move_is_refused():
    """content_timeout_ms without an octet: 506."""
    broker = new_broker()
    peer = Peer(broker)
    peer.give(content(1, "", "q", bytes(100))[:-50])
    for now in (10000, 20000, 29000, 31000):
        broker.tick(now, 0)
        peer.connection.last_received = now
        peer.connection.tick(now)
    assert peer.expect("connection_close")[0] == 506


def test_each_table_at_its_limit_refuses_with_506_and_serves_on():
    """Queues, exchanges, bindings, consumers, channels: resource-error names the number."""
    cases = (
        ("queues", [("queue_declare", (0, "q%d", False, False, False, False, True, {}))], 12),
        ("exchanges", [("exchange_declare", (0, "e%d", "direct", False, False, False, False, True, {}))], 11),
        ("consumers", [("basic_consume", (0, "one", "c%d", False, True, False, True, {}))], 16),
        ("bindings", [("queue_bind", (0, "one", "amq.direct", "k%d", True, {}))], 32),
    )
    for what, calls, most in cases:
        broker = new_broker()
        peer = Peer(broker)
        if what in ("consumers", "bindings"):
            peer.declare("one")
        for number in range(most + 1):
            for name, arguments in calls:
                given = [each % number if isinstance(each, str) and "%d" in each else each for each in arguments]
                peer.give(encoded(name, 1, *given))
        frames = peer.frames()
        assert [each[0] for each in frames] == ["connection_close"], (what, frames)
        assert frames[0][2][0] == 506 and " at most" in frames[0][2][1], frames
        Peer(broker).declare("another")


def test_channels_at_their_limit():
    """506 when all channel records are taken; 530 when one more is opened than were negotiated, whatever their numbers (section 4.9)."""
    broker = new_broker(channel_count_max=3)
    peer = Peer(broker)
    for number in (2, 3, 4):
        peer.give(encoded("channel_open", number, ""))
    assert peer.frames()[-1][2][0] == 506
    peer = Peer(new_broker(channel_max=8))
    for number in range(2, 9):
        peer.give(encoded("channel_open", number, ""))
        assert peer.expect("channel_open_ok")
    peer.give(encoded("channel_close", 8, 200, "", 0, 0))
    peer.give(encoded("channel_open", 3000, ""))
    assert [found[0] for found in peer.frames()] == ["channel_close_ok", "channel_open_ok"]
    peer.give(encoded("queue_declare", 3000, 0, "q", False, False, False, False, False, {}))
    assert peer.expect("queue_declare_ok") == ["q", 0, 0]
    peer.give(encoded("channel_open", 9, ""))
    assert peer.expect("connection_close")[:2] == [
        530,
        "NOT_ALLOWED - number of channels opened (8) has reached the negotiated channel_max (8)",
    ]


def test_connections_at_their_limit_are_closed_at_once():
    """connection_count_max."""
    broker = new_broker(connection_count_max=2)
    peers = [Peer(broker), Peer(broker)]
    refused = Peer(broker, log_in=False)
    assert refused.connection.closed and broker.counters["connections_refused"] == 1
    peers[0].connection.received(0)
    Peer(broker).declare("q")


def test_a_reader_that_does_not_read_holds_one_buffer():
    """Deliveries are encoded when there is room: a slow reader's messages stay in the queue for the others."""
    broker = new_broker()
    slow = Peer(broker)
    slow.declare("q")
    slow.give(encoded("basic_consume", 1, 0, "q", "c", False, True, False, False, {}))
    quick = Peer(broker)
    for _ in range(30):
        quick.publish("q", bytes(300))
    waiting = broker.queues["q"].message_count()
    assert waiting >= 26 and len(slow.connection.pending()) <= broker.limits.send_buffer_size
    assert len(quick.consume("q", no_ack=True)) == waiting


def test_many_returns_to_a_peer_that_does_not_read_are_bounded():
    """return_count_max: then the publisher is not read."""
    broker = new_broker()
    peer = Peer(broker)
    for _ in range(200):
        view = peer.connection.writable()
        if len(view) == 0:
            break
        octets = content(1, "", "nowhere", b"x" * 20, None, True)
        size = min(len(view), len(octets))
        view[0:size][:] = octets[:size]
        peer.connection.received(size)
    assert len(peer.connection.session.channels[1].returns) <= broker.limits.return_count_max
    assert not peer.connection.reading
    peer.take()
    assert peer.connection.reading


def test_limits_say_what_is_wrong():
    """A value outside its range, of the wrong type, unknown, or against a relation is a ValueError that names it."""
    for overrides, words in (
        ({"queue_count_max": 0}, "queue_count_max is 0; it must be a whole number from 1 to 65535 (queues)"),
        ({"arena_size": "much"}, "arena_size"),
        ({"no_such": 1}, "no limit called no_such"),
        ({"send_buffer_size": 1024}, "must fit in send_buffer_size"),
        ({"heartbeat_s": True}, "heartbeat_s"),
    ):
        try:
            limits.Limits(**overrides)
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(overrides)


def test_memory_is_the_sum_of_its_parts_and_a_board_has_room_for_it():
    """memory_needed: octets; the board's profile with 4 connections and a 24 KB arena."""
    board = limits.Limits(**limits.BOARD)
    assert micropython_sizes.memory_needed(board) == sum([each[1] for each in micropython_sizes.memory_parts(board)])
    assert micropython_sizes.memory_needed(board) < 235000, micropython_sizes.memory_parts(board)
    needed = micropython_sizes.memory_needed
    one, two = limits.Limits(), limits.Limits(arena_size=128 << 20)
    blocks = limits.block_count(two) - limits.block_count(one)
    assert needed(two) - needed(one) == blocks * (one.block_size + 4)


# What one more of each limit adds to a 32-bit MicroPython's heap, in octets: rows of tables (4 octets a field), buffers, and objects as
# they were measured. With names of 64 octets and arguments of 256.
ONE_MORE = {
    "connection_count_max": {"connections": 3109},
    "surplus_count_max": {"connections": 7169},
    "channel_max": {"connections": 16},
    "receive_buffer_size": {"connections": 4},
    "send_buffer_size": {"connections": 4},
    "channel_count_max": {"channels": 862 + 4 * layout.CHANNEL_WIDTH},
    "copy_size_max": {"channels": 16},
    "message_count_max": {"messages": 4 * layout.MESSAGE_WIDTH},
    "entry_count_max": {"queue entries": 4 * layout.ENTRY_WIDTH, "groups": 48},
    "chunk_count_max": {"index of the log": 4 * layout.CHUNK_WIDTH},
    "queue_count_max": {"queues": 565 + 4 * layout.QUEUE_WIDTH},
    "exchange_count_max": {"exchanges": 816},
    "binding_count_max": {"bindings": 1354},
    "policy_count_max": {"policies": 1616},
    "consumer_count_max": {"consumers": 298 + 4 * layout.CONSUMER_WIDTH},
    "user_count_max": {"users": 1024, "patterns": 2496},
    "granted_count_max": {"users": 102},
    "management_size_max": {"management": 8},
    "login_address_max": {"addresses": 400},
    "unknown_argument_count_max": {"unknown arguments": 96},
    "waiting_count_max": {"waiting": 64},
    "transaction_count_max": {"transactions": 64},
    "offset_count_max": {"offsets": 320},
    "identity_count_max": {"identities": 80},
    "bridge_count_max": {"queue entries": 4 * layout.ENTRY_WIDTH, "bridges": 4096},
}


def test_each_thing_that_a_limit_lets_in_is_in_the_sum_of_memory():
    """memory_parts: one more of a limit adds what one more of its things takes, to the parts that hold it and to no others."""

    def parts(name, value):
        values = dict(limits.BOARD, user_count_max=4, granted_count_max=8)
        values[name] = value
        return dict(micropython_sizes.memory_parts(limits.Limits(**values)))

    for name in ONE_MORE:
        for value in (limits.BOARD[name] + 1, limits.BOARD[name] + 9):
            before, more = parts(name, value), parts(name, value + 1)
            assert {part: more[part] - before[part] for part in more if more[part] != before[part]} == ONE_MORE[name], (name, value)


def test_after_close_ok_what_the_peer_still_writes_is_taken_and_dropped_for_a_while():
    """Section 1.4.2.10, as RabbitMQ does it: a stream closed with unread input would take close-ok back (amqplib writes on after close)."""
    broker = new_broker()
    peers = [Peer(broker), Peer(broker)]
    peers[0].declare("q")
    for peer in peers:
        peer.ask("connection_close", "connection_close_ok", 200, "done", 0, 0, channel=0)
        octets = content(1, "", "q", b"late")
        assert not peer.connection.closed and peer.give(octets) == len(octets) and peer.frames() == []
    assert broker.queues["q"].message_count() == 0
    peers[0].connection.received(0)
    assert [peer.connection.closed for peer in peers] == [True, False]
    broker.tick(4000, 0)
    peers[1].connection.tick(4000)
    assert peers[1].connection.closed


def test_a_frame_may_be_larger_than_negotiated_by_its_overhead_and_no_more():
    """Section 4.2.3; RabbitMQ's allowance for clients that do not count the eight octets around a payload."""
    broker = new_broker()
    most = broker.limits.frame_size_max
    peer = Peer(broker)
    peer.give(content(1, "", "nobody", bytes(most), mandatory=True, frame_size_max=most + frame.OVERHEAD))
    assert peer.contents()[0][-1] == bytes(most)
    peer.give(content(1, "", "nobody", bytes(most + 1), mandatory=True, frame_size_max=most + frame.OVERHEAD + 1))
    assert peer.expect("connection_close")[:2] == [501, "FRAME_ERROR - a frame of %d octets; %d were negotiated" % (most + 9, most)]
