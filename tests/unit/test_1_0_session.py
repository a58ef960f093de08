"""Sessions of AMQP 1.0: part 2, sections 2.5 and 2.7.2, 2.7.4, 2.7.8."""

from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, performative

from leveret.core.memory import layout, serial

BEGIN = {"next_outgoing_id": 0, "incoming_window": 10, "outgoing_window": 10}
TO_Q = {"source": ("source", {}), "target": ("target", {"address": "/queues/q"}), "initial_delivery_count": 0}


def test_serial_numbers_go_around():
    """RFC 1982."""
    assert serial.after(0xFFFFFFFF, 1) == 0 and serial.after(0, -1) == 0xFFFFFFFF
    assert serial.distance(0xFFFFFFFE, 3) == 5 and serial.distance(3, 0xFFFFFFFE) == -5
    assert serial.distance(7, 7) == 0 and serial.distance(0, 0x7FFFFFFF) == 0x7FFFFFFF


def test_a_begin_is_answered_on_its_channel_octet_for_octet():
    """Section 2.7.2: remote-channel, next-outgoing-id 0, incoming-window 2048, outgoing-window 2^31-1, handle-max 255."""
    peer = Peer(new_broker(), begins=False)
    peer.give(performative("begin", 2, **BEGIN))
    octets = "0000002102000002" + "005311" + "c01408" + "600002" + "43" + "7000000800" + "707fffffff" + "52ff" + "404040"
    assert peer.take(100).hex() == octets


def test_a_begin_that_cannot_be_ends_the_connection():
    """Sections 2.5.1 and 2.7.2: a channel that has a session; an answer to a begin that we have not sent."""
    for given in (dict(BEGIN), dict(BEGIN, remote_channel=5)):
        channel = 0 if "remote_channel" not in given else 1
        found, _ = answers(performative("begin", channel, **given))
        assert error_in(found, "close")[0] == "amqp:illegal-state", given


def test_a_frame_on_a_channel_without_a_session_ends_the_connection():
    for name, given in (("end", {}), ("detach", {"handle": 0}), ("disposition", {"role": True, "first": 0})):
        found, _ = answers(performative(name, 1, **given))
        assert error_in(found, "close") == ("amqp:illegal-state", "the performative %s on channel 1, where no session has begun" % name)


def test_an_end_is_answered_its_deliveries_go_back_and_the_channel_is_free():
    """Section 2.5.4."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    peer.sender()
    peer.send(0, b"x")
    peer.frames()
    peer.receiver()
    assert len(peer.messages()) == 1 and broker.queues["q"].unsettled_count() == 1
    peer.give(performative("end"))
    assert [(each[0], each[1]["error"]) for each in peer.frames()] == [("end", None)]
    assert broker.queues["q"].message_count() == 1 and not broker.queues["q"].consumers
    peer.begin()
    peer.receiver()
    assert len(peer.messages()) == 1


def test_a_session_that_has_ended_for_an_error_drops_what_comes_until_the_peers_end():
    """Sections 2.5.4 and 2.5.5: DISCARDING."""
    broker = new_broker()
    peer = Peer(broker)
    peer.give(performative("detach", handle=7))
    assert error_in(peer.frames(), "end") == ("amqp:session:unattached-handle", "handle 7 has no link")
    peer.give(performative("attach", name="l", handle=0, role=False, **TO_Q) + performative("detach", handle=9))
    assert peer.frames() == []
    peer.give(performative("end"))
    assert peer.frames() == []
    peer.begin()


def test_handles_up_to_handle_max_and_each_once():
    """Sections 2.7.2, 2.7.3 and 2.8.17."""
    for handle, name, condition in ((256, "close", "amqp:connection:framing-error"), (0, "end", "amqp:session:handle-in-use")):
        broker = new_broker()
        declare(broker)
        peer = Peer(broker)
        peer.sender()
        peer.give(performative("attach", name="l", handle=handle, role=False, **TO_Q))
        assert error_in(peer.frames(), name)[0] == condition
    peer = Peer(broker, begins=False)
    peer.begin(handle_max=1)
    peer.give(performative("attach", name="l", handle=2, role=False, **TO_Q))
    assert error_in(peer.frames(), "end")[0] == "amqp:not-allowed"


def test_our_window_is_told_again_when_half_of_it_is_used():
    """Section 2.5.6: the session's flow-control window, presettled transfers."""
    broker = new_broker()
    declare(broker, arguments={"x-max-length": 1})
    peer = Peer(broker)
    peer.sender()
    flows = []
    for number in range(1030):
        peer.send(number, b"", settled=True)
        flows += [each[1] for each in peer.frames()]
    assert all(each["incoming-window"] == 2048 for each in flows)
    windows = [each for each in flows if each["handle"] is None]
    links = [each for each in flows if each["handle"] is not None]
    assert links and [each["next-incoming-id"] for each in windows] in ([], [1024])
    assert broker.queues["q"].message_count() == 1


def test_a_transfer_beyond_our_window_ends_the_session():
    """Section 2.8.17: window-violation."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    peer.sender()
    peer.connection.session.mapped[0].incoming_window = 1
    peer.send(0, b"x", settled=True)
    peer.connection.session.mapped[0].incoming_window = 0
    peer.send(1, b"x", settled=True)
    assert error_in(peer.frames(), "end")[0] == "amqp:session:window-violation"
    assert broker.queues["q"].message_count() == 1


def test_we_send_no_transfer_beyond_the_peers_window_and_go_on_when_it_opens():
    """Section 2.5.6: remote-incoming-window, whole deliveries and one of several transfers, across the end of the numbers."""
    broker = new_broker(receive_buffer_size=8192)
    declare(broker)
    peer = Peer(broker, begins=False, max_frame_size=512)
    peer.begin(incoming_window=2)
    session = peer.connection.session.mapped[0]
    session.next_outgoing_id = 0xFFFFFFFE
    peer.sender()
    for number, body in enumerate((b"a", b"b" * 1200, b"c")):
        peer.send(number, body)
    peer.frames()
    peer.attach("in", 1, True, "/queues/q")
    peer.credit(10, incoming_window=2, next_incoming_id=0xFFFFFFFE)
    transfers = [each[1:3] for each in peer.frames() if each[0] == "transfer"]
    assert [each[0]["more"] for each in transfers] == [False, True]
    octets = transfers[1][1]
    for window, expected in ((1, [True]), (0, []), (5, [False, False])):
        seen = session.next_outgoing_id
        flow = {"next_incoming_id": seen, "incoming_window": window, "next_outgoing_id": 3, "outgoing_window": 9}
        peer.give(performative("flow", **flow))
        transfers = [each[1:3] for each in peer.frames() if each[0] == "transfer"]
        assert [each[0]["more"] for each in transfers] == expected, window
        if expected:
            octets += transfers[0][1]
    assert octets == data(b"b" * 1200)
    assert session.next_outgoing_id == 3


def test_a_flow_of_a_session_is_echoed_when_it_asks_for_that():
    """Section 2.7.4, echo."""
    flow = {"next_incoming_id": 0, "incoming_window": 5, "next_outgoing_id": 7, "outgoing_window": 9}
    assert answers(performative("flow", **flow))[0] == []
    ((name, fields, _, _),) = answers(performative("flow", echo=True, **flow))[0]
    assert name == "flow" and fields["handle"] is None and fields["next-incoming-id"] == 7 and fields["next-outgoing-id"] == 0


def test_delivery_ids_go_around():
    """Section 2.8.9: ours are the session's delivery tags modulo 2^32; the peer's count up across the end as well."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    channels, handle = broker.tables.channels, peer.connection.session.mapped[0].handle
    channels[handle + layout.CHANNEL_TAG], channels[handle + layout.CHANNEL_TAG_HIGH] = layout.MASK - 1, 3
    peer.sender()
    for number in (0xFFFFFFFE, 0xFFFFFFFF, 0, 1):
        peer.send(number, b"%d" % number)
    told = [each[1] for each in peer.frames() if each[0] == "disposition"]
    assert [(each["first"], each["last"]) for each in told] == [(0xFFFFFFFE, None), (0xFFFFFFFF, None), (0, None), (1, None)]
    peer.receiver()
    assert [each[0] for each in peer.messages()] == [0xFFFFFFFF, 0, 1, 2]
    peer.settle(0xFFFFFFFF, ("accepted", {}), 1)
    assert broker.queues["q"].unsettled_count() == 1
    peer.settle(2, ("accepted", {}))
    assert broker.queues["q"].unsettled_count() == 0 and broker.queues["q"].message_count() == 0


def test_sessions_beyond_the_brokers_places_are_refused_with_their_connection():
    broker = new_broker(channel_count_max=1)
    Peer(broker)
    peer = Peer(broker, begins=False)
    peer.give(performative("begin", **BEGIN))
    assert error_in(peer.frames(), "close") == ("amqp:resource-limit-exceeded", "this broker holds 1 sessions at most")


def test_a_connection_that_closes_delivers_nothing_more():
    """Section 2.4.3: whoever has sent a close sends nothing behind it. `deliver` (wire/contract.pyi) answers how many it has written."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    peer.receiver()
    (consumer,) = broker.queues["q"].consumers
    protocol = peer.connection.session
    assert not protocol.closing and protocol.deliver(consumer, 5) == 0, "the queue is empty"
    protocol.shut("it goes")
    assert protocol.closing and protocol.deliver(consumer, 5) == 0
    assert peer.frames()[-1][0] == "close"
