"""What was published before a channel fails was taken: its return and its confirm go before channel.close (0-9-1 section 1.8.3.9)."""

from peer import Peer, assemble, content, encoded, idle, new_broker

NO_SUCH_TAG = encoded("basic_ack", 1, 77, False)
BIG = bytes(range(250)) * 12  # 3,000 octets: more than a send buffer of 1,024


def give_now(peer, octets):
    """Have the broker take this before anything more is read from it."""
    view = peer.connection.writable()
    view[: len(octets)][:] = octets
    peer.connection.received(len(octets))


def failing(octets, confirm=False, broker=None):
    """A peer that sends this and an acknowledgement of nothing in one piece: (broker, peer)."""
    broker = broker or new_broker(receive_buffer_size=8192)
    peer = Peer(broker)
    if confirm:
        peer.ask("confirm_select", "confirm_select_ok", False)
    give_now(peer, octets + NO_SUCH_TAG)
    broker.run()
    return broker, peer


def returned(frames):
    """The bodies of the returns that are all of these frames."""
    found = assemble(frames)
    assert [each[0] for each in found] == ["basic_return"] * len(found) and {each[1][0] for each in found} <= {312}
    return [each[3] for each in found]


def test_a_return_goes_before_the_close_of_its_channel_in_the_same_read():
    _, peer = failing(content(1, "", "nowhere", b"x", mandatory=True))
    frames = peer.frames()
    assert frames[-1][0] == "channel_close" and frames[-1][2][0] == 406
    assert returned(frames[:-1]) == [b"x"]


def test_a_confirm_goes_before_it_too_behind_the_return():
    _, peer = failing(content(1, "", "nowhere", b"x", mandatory=True) + content(1, "", "nowhere", b"y"), confirm=True)
    frames = peer.frames()
    assert [each[0] for each in frames[-2:]] == ["basic_ack", "channel_close"] and frames[-2][2] == [2, True]
    assert returned(frames[:-2]) == [b"x"]


def test_returns_that_have_to_wait_for_room_go_before_it_and_everything_comes_back():
    """More than the send buffer has room for: they are written as the peer reads, and the channel can be opened again behind the close."""
    broker = new_broker(receive_buffer_size=16384)
    empty = idle(broker)
    bodies = [b"%d" % number + BIG for number in range(3)]
    _, peer = failing(b"".join([content(1, "", "nowhere", body, mandatory=True) for body in bodies]), broker=broker)
    frames = peer.frames()
    assert frames[-1][0] == "channel_close" and returned(frames[:-1]) == bodies
    peer.give(encoded("channel_close_ok", 1))
    peer.ask("channel_open", "channel_open_ok", "")
    peer.declare("q")
    broker.topology.drop_queue(broker.queues["q"])
    peer.connection.finish()
    assert idle(broker) == empty


def test_what_waits_is_free_when_the_connection_ends():
    broker = new_broker(receive_buffer_size=16384)
    empty = idle(broker)
    _, peer = failing(b"".join([content(1, "", "nowhere", BIG, mandatory=True)] * 3), broker=broker)
    assert idle(broker) != empty, "returns wait"
    peer.connection.finish()
    assert idle(broker) == empty


def test_a_client_that_closes_the_channel_meanwhile_is_answered_behind_them_and_one_that_says_too_early_that_it_has_gets_no_more():
    """Section 1.5.2.6: closes may cross. A close-ok before the close breaks the rules and ends the channel."""
    broker = new_broker(receive_buffer_size=16384)
    empty = idle(broker)
    for octets, behind in (
        (encoded("channel_close", 1, 200, "", 0, 0), ["channel_close", "channel_close_ok"]),
        (encoded("channel_close_ok", 1), []),
    ):
        _, peer = failing(b"".join([content(1, "", "nowhere", BIG, mandatory=True)] * 3), broker=broker)
        give_now(peer, octets)
        names = [each[0] for each in peer.frames() if each[0] not in ("header", "body")]
        assert names == ["basic_return"] * (names.count("basic_return")) + behind, names
        peer.ask("channel_open", "channel_open_ok", "")
        peer.connection.finish()
        assert idle(broker) == empty


def test_returns_and_confirms_go_before_the_close_of_a_connection_too():
    """Section 1.4.2.10: as far as there is room at that moment."""
    broker = new_broker(receive_buffer_size=8192)
    empty = idle(broker)
    peer = Peer(broker)
    peer.ask("confirm_select", "confirm_select_ok", False)
    give_now(peer, content(1, "", "nowhere", b"x", mandatory=True) + b"\x09garbage")
    frames = peer.frames()
    assert [each[0] for each in frames[-2:]] == ["basic_ack", "connection_close"] and frames[-1][2][0] == 501
    assert returned(frames[:-2]) == [b"x"]
    peer.connection.finish()
    assert idle(broker) == empty


def test_another_channel_goes_on_while_the_returns_of_a_failed_one_wait():
    broker = new_broker(receive_buffer_size=16384)
    _, peer = failing(b"".join([content(1, "", "nowhere", BIG, mandatory=True)] * 2), broker=broker)
    give_now(peer, encoded("channel_open", 2, ""))
    frames = peer.frames()
    names = [each[0] for each in frames]
    assert sorted(names[-2:]) == ["channel_close", "channel_open_ok"] and names.count("basic_return") == 2, names
