"""Turns: of queues within one run of the broker, and of a connection's consumers when its send buffer is what is short."""

from peer import Peer, content, encoded, new_broker


def consumers_in_order(peer, octets, count):
    """Which consumers the next `count` deliveries are for, taken in pieces of `octets`."""
    order = []
    while len(order) < count:
        peer.broker.run()
        view = peer.connection.pending()
        size = min(len(view), octets)
        assert size, "nothing more comes after %r" % order
        peer.inbox += bytes(view[:size])
        peer.connection.sent(size)
        while len(peer.inbox) >= 7 and len(peer.inbox) >= 8 + int.from_bytes(peer.inbox[3:7], "big"):
            whole = 8 + int.from_bytes(peer.inbox[3:7], "big")
            if peer.inbox[0] == 1 and peer.inbox[7:11] == b"\x00\x3c\x00\x3c":
                order.append(str(peer.inbox[12 : 12 + peer.inbox[11]], "utf-8"))
            peer.inbox = peer.inbox[whole:]
    return order


def backlog(queue_names, body, count, **limits):
    """A broker whose queues have `count` messages each."""
    broker = new_broker(message_count_max=1024, entry_count_max=1024, arena_size=1 << 20, **limits)
    filler = Peer(broker)
    for name in queue_names:
        filler.declare(name)
        for _ in range(count):
            filler.publish(name, body)
    return broker


def test_consumers_of_one_connection_have_their_turns_when_the_send_buffer_is_short():
    """One message fills the buffer: without turns the first consumer would have it whenever there is room. On channels, and within one."""
    for channels in ((1, 2, 3), (1, 1, 1)):
        broker = backlog(("a", "b", "c"), b"x" * 500, 30)
        peer = Peer(broker)
        for number in sorted(set(channels)):
            if number > 1:
                peer.ask("channel_open", "channel_open_ok", "", channel=number)
        for name, number in zip("abc", channels):
            peer.give(encoded("basic_consume", number, 0, name, name, False, True, False, True, {}))
        order = consumers_in_order(peer, 300, 30)
        for name in "abc":
            assert 9 <= order.count(name) <= 11, order


def test_a_quiet_queue_comes_before_the_rest_of_a_busy_one():
    """Large bodies that go out frame by frame: a message for the quiet consumer is next, or the one after."""
    broker = backlog(("busy",), b"x" * 3000, 40)
    peer, publisher = Peer(broker), Peer(broker)
    peer.ask("channel_open", "channel_open_ok", "", channel=2)
    publisher.declare("quiet")
    peer.give(encoded("basic_consume", 2, 0, "quiet", "quiet", False, True, False, True, {}))
    peer.give(encoded("basic_consume", 1, 0, "busy", "busy", False, True, False, True, {}))
    assert consumers_in_order(peer, 500, 5) == ["busy"] * 5
    publisher.publish("quiet", b"now")
    assert "quiet" in consumers_in_order(peer, 500, 3)


def test_one_run_of_the_broker_is_bounded_and_the_next_goes_on():
    broker = new_broker(message_count_max=8192, entry_count_max=8192, arena_size=1 << 20, send_buffer_size=1 << 20)
    filler, peer = Peer(broker), Peer(broker)
    for name in ("long", "short"):
        filler.declare(name)
    for _ in range(5000):
        filler.publish("long", b"x")
    filler.publish("short", b"x")
    for name in ("long", "short"):
        view = peer.connection.writable()
        octets = encoded("basic_consume", 1, 0, name, name, False, True, False, True, {})
        target = view[0 : len(octets)]
        target[:] = octets
        peer.connection.received(len(octets))
    broker.run()
    assert broker.queues["short"].message_count() == 0
    left = broker.queues["long"].message_count()
    assert 0 < left < 5000 and broker.has_active()
    for _ in range(12):
        broker.run()
    assert broker.queues["long"].message_count() == 0 and not broker.has_active()


def test_a_filter_that_finds_nothing_gives_others_their_turn():
    broker = new_broker(message_count_max=8192, entry_count_max=8192, arena_size=1 << 20)
    filler, peer = Peer(broker), Peer(broker)
    filler.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for _ in range(5000):
        filler.publish("s", b"", given={"headers": {"x-stream-filter-value": "other"}})
    peer.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    peer.give(encoded("basic_consume", 1, 0, "s", "s", False, False, False, False, {"x-stream-offset": "first", "x-stream-filter": "mine"}))
    looking = peer.connection.session.channels[1].consumers["s"]
    assert 0 < looking.cursor_offset < 5000 and broker.has_active()
    for _ in range(60):
        broker.run()
    assert looking.cursor_offset == 5000 and not broker.has_active()


def test_a_consumer_that_ends_while_it_waits_for_room_leaves_its_place_to_another():
    """The next consumer, of another connection, has the same record: it waits in its own connection's list, and is not forgotten there."""
    for taken in (0, 300):
        broker = backlog(("a", "b", "c"), b"x" * 500, 5)
        old, new = Peer(broker), Peer(broker)
        for name in "abc":
            old.give(encoded("basic_consume", 1, 0, name, name, False, True, False, True, {}))
        old.take(taken)
        assert old.connection.send.is_short()
        for name in "acb":
            old.give(encoded("basic_cancel", 1, name, True))
        assert not old.connection.send.is_short()
        for name in "abc":
            new.give(encoded("basic_consume", 1, 0, name, name, False, True, False, True, {}))
        left = sum([broker.queues[name].message_count() for name in "abc"])
        assert new.connection.send.is_short() and left
        in_buffer = bytes(new.connection.pending()).count(b"\x00\x3c\x00\x3c")
        assert len(new.contents()) == left + in_buffer and not new.connection.send.is_short()


def test_acknowledgements_with_a_prefetch_of_the_channel_are_taken_by_the_engine():
    """basic.qos global (RabbitMQ's channel prefetch): room in the channel wakes the queues of all its consumers, and needs no thought."""
    broker = backlog(("a", "b"), b"x", 20)
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 5, True)
    for name in "ab":
        peer.give(encoded("basic_consume", 1, 0, name, name, False, False, False, True, {}))
    seen = [found[1][0] for found in peer.contents()]
    assert seen == ["a"] * 5, "the channel has no room for b yet"
    thought = []
    peer.connection.session.one_frame = lambda: thought.append(1)
    while len(seen) < 40:
        peer.give(encoded("basic_ack", 1, len(seen), True))
        found = [content[1][0] for content in peer.contents()]
        assert len(found) == 5
        seen += found
    assert seen.count("b") == 20 and not thought
    assert seen[5:15].count("b") == 5, "both have their turn"


def flood(peer, count):
    """Have a peer send `count` publishes for a queue with a rule at once, and wait for nothing."""
    octets = content(1, "", "ruled", b"x") * count
    target = peer.connection.writable()[: len(octets)]
    target[:] = octets
    peer.connection.received(len(octets))


def ruled(peer):
    """Declare the queue: how many messages it has."""
    return peer.declare("ruled", arguments={"x-max-length": 100000, "x-overflow": "block"})[1]


def test_a_buffer_full_of_frames_that_are_taken_one_by_one_lets_others_have_their_turn():
    """Three such connections and one that asks for something: it is answered in the next run, and nothing is lost or comes twice."""
    broker = new_broker(message_count_max=8192, entry_count_max=8192, arena_size=1 << 20, receive_buffer_size=1 << 17)
    asking, *peers = [Peer(broker) for _ in range(4)]
    ruled(asking)
    for peer in peers:
        flood(peer, 1500)
    assert 0 < broker.queues["ruled"].message_count() < 300 and broker.has_active()
    assert list(asking.declare("other")[1:]) == [0, 0]
    assert broker.queues["ruled"].message_count() < 1500
    for _ in range(100):
        broker.run()
    assert broker.queues["ruled"].message_count() == 4500 and not broker.has_active()
    assert ruled(peers[0]) == 4500


def test_what_came_before_the_end_of_a_stream_counts_whoever_has_the_turn():
    broker = new_broker(message_count_max=8192, entry_count_max=8192, arena_size=1 << 20, receive_buffer_size=1 << 17)
    peer, other = Peer(broker), Peer(broker)
    ruled(peer)
    flood(peer, 1500)
    peer.connection.received(0)
    assert not peer.connection.closed, "it keeps the others waiting"
    while broker.has_active():
        broker.run()
    assert peer.connection.closed and broker.queues["ruled"].message_count() == 1500 == ruled(other)
