"""Messages through a broker, by frames: publish, deliver, settle, confirm, return (0-9-1 section 1.8 and RabbitMQ's confirms)."""

from peer import Peer, assemble, encoded, idle, new_broker

from leveret.core.memory import layout


def deliveries(found):
    """(delivery tag, redelivered, body) of deliveries."""
    return [(each[1][1], each[1][2], each[3]) for each in found if each[0] == "basic_deliver"]


def test_a_message_comes_out_as_it_went_in_whatever_the_pieces():
    """Section 4.2.6: content of any size, split anywhere, with its properties."""
    given = {
        "content_type": "text/plain",
        "headers": {"a": 1, "b": [True, None, "x"]},
        "delivery_mode": 2,
        "priority": 5,
        "message_id": "m",
    }
    for step in (0, 1, 7, 64):
        broker = new_broker()
        before = idle(broker)
        peer = Peer(broker, step)
        peer.declare("q")
        for size in (0, 1, 63, 64, 65, 1000, 4088, 4089, 9000):
            body = bytes([index * 7 & 255 for index in range(size)])
            peer.publish("q", body, given=given)
            found = assemble(peer.give(encoded("basic_get", 1, 0, "q", True)) * 0 or peer.frames())
            assert found == [("basic_get_ok", found[0][1], given, body)], (step, size)
        peer.connection.received(0)
        assert idle(broker) == before


def test_deliveries_go_on_as_the_peer_reads():
    """A body larger than the send buffer is written frame by frame; nothing else comes between its frames on its channel."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    body = bytes(range(256)) * 40
    peer.publish("q", body)
    peer.publish("q", b"next")
    peer.give(encoded("basic_consume", 1, 0, "q", "c", False, True, False, False, {}))
    for _ in range(2000):
        peer.take(13)
    frames = peer.frames()
    assert frames[0][0] == "basic_consume_ok"
    assert [each[3] for each in assemble(frames[1:])] == [body, b"next"]


def test_bodies_of_several_frames_that_fit_in_the_send_buffer_follow_one_another():
    """Larger than a frame and smaller than the buffer: neither of the two ways alone delivers them, and none may stay behind."""
    broker = new_broker(send_buffer_size=32768, frame_size_max=4096, arena_size=1 << 18)
    peer = Peer(broker)
    peer.declare("q")
    bodies = [bytes((number,)) * 6000 for number in range(12)]
    for body in bodies:
        peer.publish("q", body)
    got = [each[3] for each in peer.consume("q")]
    while len(got) < len(bodies):
        broker.run()
        more = [each[3] for each in assemble(peer.frames())]
        assert more, "%d of %d were delivered" % (len(got), len(bodies))
        got += more
    assert got == bodies


def test_prefetch_bounds_what_is_unsettled():
    """Section 1.8.3.1: no more than prefetch-count deliveries without acknowledgement."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    for number in range(6):
        peer.publish("q", b"%d" % number if hasattr(bytes, "__mod__") else str(number).encode())
    peer.ask("basic_qos", "basic_qos_ok", 0, 2, False)
    assert [each[2] for each in deliveries(peer.consume("q"))] == [b"0", b"1"]
    peer.give(encoded("basic_ack", 1, 1, False))
    assert [each[2] for each in deliveries(peer.contents())] == [b"2"]
    peer.give(encoded("basic_ack", 1, 3, True))
    assert [each[2] for each in deliveries(peer.contents())] == [b"3", b"4"]


def test_global_prefetch_bounds_the_channel():
    """RabbitMQ's reading of qos global: all consumers of the channel share it."""
    broker = new_broker()
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 3, True)
    for name in ("a", "b"):
        peer.declare(name)
        for _ in range(4):
            peer.publish(name, b"x")
    found = peer.consume("a", "ca") + peer.consume("b", "cb")
    assert len(found) == 3
    peer.give(encoded("basic_ack", 1, 0, True))
    assert len(peer.contents()) == 3


def test_what_comes_back_stands_where_it_stood_and_says_so():
    """Sections 1.8.3.13 to 1.8.3.16: reject, nack and a closed channel requeue in the old order, redelivered."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    for letter in (b"a", b"b", b"c", b"d"):
        peer.publish("q", letter)
    assert len(peer.consume("q")) == 4
    peer.give(encoded("basic_cancel", 1, "c", True) + encoded("basic_reject", 1, 3, True) + encoded("basic_nack", 1, 2, True, True))
    assert broker.queues["q"].message_count() == 3
    found = deliveries(peer.consume("q", "again"))
    assert [each[1:] for each in found] == [(True, b"a"), (True, b"b"), (True, b"c")]
    peer.ask("channel_close", "channel_close_ok", 0, "", 0, 0)
    peer.ask("channel_open", "channel_open_ok", "")
    assert [each[1:] for each in deliveries(peer.consume("q"))] == [(True, b"a"), (True, b"b"), (True, b"c"), (True, b"d")]


def test_reject_without_requeue_drops():
    """Section 1.8.3.14."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    peer.declare("q")
    peer.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_reject", 1, 1, False))
    broker.fold_counters()
    assert broker.counters["rejected"] == 1
    peer.connection.received(0)
    assert idle(broker) == before


def test_an_unknown_delivery_tag_closes_the_channel():
    """Section 1.8.3.13: 406, as RabbitMQ words it; a tag counts once."""
    for name, arguments in (
        ("basic_ack", (7, False)),
        ("basic_ack", (1, True)),
        ("basic_nack", (7, False, True)),
        ("basic_reject", (7, True)),
        ("basic_ack", (0, False)),
    ):
        peer = Peer(new_broker())
        peer.give(encoded(name, 1, *arguments))
        code, text, class_id, _ = peer.expect("channel_close")
        assert (code, text, class_id) == (406, "PRECONDITION_FAILED - unknown delivery tag %d" % arguments[0], 60)
        peer.give(encoded("channel_close_ok", 1))
        peer.ask("channel_open", "channel_open_ok", "")


def test_consumers_take_turns():
    """A queue's consumers get its messages one after the other."""
    broker = new_broker()
    peers = [Peer(broker), Peer(broker), Peer(broker)]
    peers[0].declare("q")
    for peer in peers:
        peer.consume("q", no_ack=True)
    for _ in range(9):
        peers[0].publish("q", b"x")
    assert [len(peer.contents()) for peer in peers] == [3, 3, 3]


def test_confirms_cover_every_publish_once():
    """Publisher confirms: tags count from 1; multiple covers all up to it."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("confirm_select", "confirm_select_ok", False)
    last = 0
    for count in (1, 3, 2):
        octets = b"".join([bytes(each) for each in [_publish("q")] * count])
        peer.give(octets)
        tag, multiple = peer.expect("basic_ack")
        assert tag == last + count and multiple == (count > 1)
        last = tag


def _publish(key, mandatory=False):
    from peer import content

    return content(1, "", key, b"x", None, mandatory)


def test_a_return_comes_before_its_confirm():
    """Section 1.8.3.9: an unroutable mandatory content comes back with 312, then it is confirmed."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    peer.ask("confirm_select", "confirm_select_ok", False)
    peer.give(_publish("nowhere", True))
    frames = peer.frames()
    assert frames[0] == ("basic_return", 1, [312, "NO_ROUTE", "", "nowhere"])
    assert [each[0] for each in frames] == ["basic_return", "header", "body", "basic_ack"]
    peer.give(_publish("nowhere"))
    assert peer.expect("basic_ack") == [2, False]
    assert (broker.counters["returned"], broker.counters["unroutable"]) == (1, 1)
    peer.connection.received(0)
    assert idle(broker) == before


def test_tags_go_on_beyond_thirty_bits():
    """A delivery tag is a longlong (section 1.1); its two halves of 30 bits carry over."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    handle = peer.connection.session.channels[1].handle
    broker.tables.channels[handle + 3] = 0x3FFFFFFE
    for _ in range(3):
        peer.publish("q", b"x")
    tags = [each[0] for each in deliveries(peer.consume("q"))]
    assert tags == [0x3FFFFFFF, 0x40000000, 0x40000001]
    peer.give(encoded("basic_ack", 1, 0x40000000, True) + encoded("basic_ack", 1, 0x40000001, False))
    assert peer.frames() == [] and broker.queues["q"].unsettled_count() == 0


def test_a_tag_that_is_two_rounds_of_thirty_bits_old_is_unknown():
    """Only the tags of this round and of the one before can be unsettled."""
    for high, tag, known in ((3, 3 << 30 | 1, True), (3, 1 << 30 | 1, False), (3, 4 << 30 | 1, False)):
        broker = new_broker()
        peer = Peer(broker)
        peer.declare("q")
        handle = peer.connection.session.channels[1].handle
        broker.tables.channels[handle + layout.CHANNEL_TAG_HIGH] = high
        peer.publish("q", b"x")
        ((given, _, _),) = deliveries(peer.consume("q"))
        assert given == high << 30 | 1
        peer.give(encoded("basic_ack", 1, tag, False))
        if known:
            assert peer.frames() == [] and broker.queues["q"].unsettled_count() == 0
        else:
            assert peer.expect("channel_close")[:2] == [406, "PRECONDITION_FAILED - unknown delivery tag %d" % tag], tag


def test_a_queue_that_goes_tells_its_consumers_and_forgets_its_deliveries():
    """RabbitMQ's consumer cancel notification, for a client that can hear it."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker, capabilities={"consumer_cancel_notify": True})
    deaf = Peer(broker)
    peer.declare("q")
    peer.publish("q", b"x")
    assert len(peer.consume("q")) == 1
    deaf.consume("q")
    assert deaf.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False) == [0]
    assert peer.expect("basic_cancel") == ["c", True]
    for each in (peer, deaf):
        each.connection.received(0)
    assert idle(broker) == before


def test_who_deletes_a_queue_hears_of_its_own_consumers_after_delete_ok():
    """As from RabbitMQ (section 1.7.2.9): py-amqp raises for a cancel that comes while it waits for delete-ok."""
    broker = new_broker()
    peer = Peer(broker, capabilities={"consumer_cancel_notify": True})
    peer.ask("queue_declare", "queue_declare_ok", 0, "q", False, False, False, False, False, {})
    peer.ask("basic_consume", "basic_consume_ok", 0, "q", "c", False, False, False, False, {})
    peer.give(encoded("queue_delete", 1, 0, "q", False, False, False))
    assert peer.frames() == [("queue_delete_ok", 1, [0]), ("basic_cancel", 1, ["c", True])]


def test_flow_is_answered_and_cannot_be_stopped():
    """Section 1.5.2.3, as RabbitMQ has it: channel.flow with active=false is 540."""
    peer = Peer(new_broker())
    assert peer.ask("channel_flow", "channel_flow_ok", True) == [True]
    peer.give(encoded("channel_flow", 1, False))
    assert peer.expect("connection_close")[:2] == [540, "NOT_IMPLEMENTED - active=false"]
