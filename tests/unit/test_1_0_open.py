"""How a connection of AMQP 1.0 begins and ends: part 2, sections 2.2 to 2.4 and 2.7.1, 2.7.9; part 5, section 5.3."""

from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, performative, sasl

from leveret.core.amqp_1_0 import frame, opening
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL, HEADER_TLS
from leveret.core.amqp_1_0.watch import EMPTY
from leveret.core.version import PRODUCT, VERSION

PLAIN = sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest")


def stranger():
    """A peer that has said nothing."""
    return Peer(new_broker(), opens=False)


def logged_in():
    """A peer behind the SASL layer, with the header of AMQP exchanged."""
    peer = stranger()
    peer.log_in()
    return peer


def test_the_sasl_layer_offers_our_mechanisms_octet_for_octet():
    """Sections 5.3.1 and 5.3.3.1."""
    peer = stranger()
    peer.give(HEADER_SASL)
    assert peer.take(8) == HEADER_SASL
    assert peer.take(1000).hex() == "0000002602010000005340c01901e01602a305504c41494e0d534352414d2d5348412d323536"


def test_all_of_a_connection_can_be_sent_before_anything_has_come_back():
    """Section 2.4.1: a pipelined open, and frames behind it; here with the SASL layer in front of it and a message behind."""

    def make():
        broker = new_broker()
        declare(broker)
        return Peer(broker, opens=False)

    octets = HEADER_SASL + PLAIN + HEADER_AMQP + performative("open", container_id="x")
    octets += performative("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    target = ("target", {"address": "/queues/q"})
    octets += performative("attach", name="l", handle=0, role=False, target=target, initial_delivery_count=0)
    first = None
    for size in (len(octets), 1, 2, 3, 7, 64):
        peer = make()
        for at in range(0, len(octets), size):
            peer.give(octets[at : at + size])
        assert peer.take(8) == HEADER_SASL
        assert [peer.expect(name)[0] for name in ("sasl-mechanisms", "sasl-outcome")]
        assert peer.take(8) == HEADER_AMQP
        frames = peer.frames()
        first = first or frames
        assert frames == first and [each[0] for each in frames] == ["open", "begin", "attach", "flow"]
        peer.give(performative("transfer", 0, data(b"x"), handle=0, delivery_id=0, delivery_tag=b"t", settled=True))
        assert peer.frames() == [] and peer.broker.queues["q"].message_count() == 1


def test_our_open_says_who_we_are_and_what_we_take():
    """Section 2.7.1; the properties are named as RabbitMQ names them."""
    found, peer = answers(performative("open", container_id="x", hostname="some.host"), logged_in)
    ((name, fields, _, channel),) = found
    limits = peer.broker.limits
    assert (name, channel) == ("open", 0)
    assert fields["container-id"] == peer.broker.name
    assert fields["max-frame-size"] == min(limits.frame_size_max, limits.receive_buffer_size)
    assert fields["channel-max"] == limits.channel_max - 1
    assert fields["idle-time-out"] == limits.heartbeat_s * 1000
    assert fields["offered-capabilities"] == ["ANONYMOUS-RELAY", "LINK_PAIR_V1_0", "SHARED-SUBS"]
    properties = {name[1]: fields["properties"][name] for name in fields["properties"]}
    assert (properties["product"], properties["version"]) == opening.COMPATIBLE
    assert properties["node"] == peer.broker.name
    assert properties["server"] == PRODUCT + " " + VERSION and properties["cluster_name"] == peer.broker.name


REFUSED = [
    ({"max_frame_size": 511}, "amqp:invalid-field", "511"),
    ({"idle_time_out": 99}, "amqp:not-allowed", "99 ms"),
    ({"hostname": "vhost:other"}, "amqp:not-found", "vhost other not found"),
]


def test_an_open_that_cannot_be_is_answered_by_ours_and_a_close():
    """Section 2.4.1: an open goes before the close; 2.7.1, 2.4.5."""
    for given, condition, word in REFUSED:
        found, peer = answers(performative("open", container_id="x", **given), logged_in)
        assert [each[0] for each in found] == ["open", "close"]
        told = error_in(found, "close")
        assert told[0] == condition and word in told[1]
        peer.give(performative("close"))
        assert peer.connection.closed or peer.connection.ending


def test_a_hostname_may_name_our_virtual_host():
    assert [each[0] for each in answers(performative("open", container_id="x", hostname="vhost:/"), logged_in)[0]] == ["open"]


def test_an_open_stands_on_channel_0_and_comes_once():
    """Section 2.4.1."""
    found, _ = answers(performative("open", 1, container_id="x"), logged_in)
    assert error_in(found, "close")[0] == "amqp:connection:framing-error"
    found, _ = answers(performative("open", container_id="x"))
    assert error_in(found, "close") == ("amqp:illegal-state", "open in the state 'open' of a connection")


EARLY = ["begin", "close", "end", "flow"]


def test_no_frame_goes_before_the_open():
    """Section 2.4.1."""
    for name in EARLY:
        given = {
            "begin": {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1},
            "flow": {"incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 1},
        }
        found, _ = answers(performative(name, **given.get(name, {})), logged_in)
        assert [each[0] for each in found] == ["open", "close"]
        assert error_in(found, "close") == ("amqp:illegal-state", "%s in the state 'opening' of a connection" % name)


def test_frames_that_are_none_end_the_connection_with_a_framing_error():
    """Section 2.3.1: a size below 8, a body before the header's end or behind the frame, an unknown type, a SASL frame behind the layer."""
    limits = new_broker().limits
    too_large = min(limits.frame_size_max, limits.receive_buffer_size) + 1
    for octets in (
        b"\x00\x00\x00\x07\x02\x00\x00\x00",
        b"\x00\x00\x00\x08\x01\x00\x00\x00",
        b"\x00\x00\x00\x08\x03\x00\x00\x00",
        b"\x00\x00\x00\x08\x02\x07\x00\x00",
        sasl("sasl-response", response=b"x"),
        too_large.to_bytes(4, "big"),
    ):
        found, peer = answers(octets)
        assert error_in(found, "close")[0] == "amqp:connection:framing-error", octets
        assert peer.connection.ending


def test_a_performative_that_cannot_be_read_is_a_decode_error():
    for body in (b"\x40", b"\x00\x53\x99\x45", b"\x00\x53\x12\xc0\x02\x01", b"\x00\x53\x12\x45", performative("end")[8:] + b"x"):
        found, _ = answers(frame.write(frame.AMQP, 0, body))
        assert error_in(found, "close")[0] == "amqp:decode-error", body


def test_an_extended_header_is_skipped():
    """Section 2.3.1: doff above 2."""
    octets = performative("close")
    octets = (len(octets) + 4).to_bytes(4, "big") + b"\x03" + octets[5:8] + b"what" + octets[8:]
    found, _ = answers(octets)
    assert [each[0] for each in found] == ["close"] and error_in(found, "close") is None


def test_a_close_is_answered_and_the_stream_ends():
    """Section 2.4.3."""
    found, peer = answers(performative("close"))
    assert [each[0] for each in found] == ["close"] and error_in(found, "close") is None and peer.connection.ending


def test_channels_up_to_channel_max_and_no_further():
    """Section 2.7.1: a channel outside is a framing-error; a peer may set a lower maximum."""
    found, _ = answers(performative("begin", 3, next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel_max=3)
    assert [each[0] for each in found] == ["begin"] and found[0][3] == 3 and found[0][1]["remote-channel"] == 3
    found, _ = answers(performative("begin", 4, next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel_max=3)
    assert error_in(found, "close")[0] == "amqp:connection:framing-error"


def test_no_frame_of_ours_is_larger_than_the_peer_takes():
    """Section 2.7.1, max-frame-size."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker, max_frame_size=512)
    peer.sender()
    for number in range(3):
        peer.send(number, b"x" * 800)
    peer.frames()
    peer.receiver()
    peer.collect()
    sizes = []
    while peer.inbox:
        size = int.from_bytes(peer.inbox[:4], "big")
        sizes.append(size)
        peer.inbox = peer.inbox[size:]
    assert max(sizes) == 512 and len(sizes) == 6


def test_the_peer_hears_from_us_within_its_idle_time_out():
    """Section 2.4.5: an empty frame after half of it."""
    peer = Peer(new_broker(), idle_time_out=1000)
    peer.frames()
    broker = peer.broker
    for now, expected in ((400, b""), (500, EMPTY), (900, b""), (1001, EMPTY)):
        broker.tick(now, 0)
        peer.connection.tick(now)
        view = bytes(peer.connection.pending())
        assert view == expected, now
        if view:
            peer.connection.sent(len(view))


def test_a_peer_that_is_silent_for_twice_our_idle_time_out_is_closed_and_an_empty_frame_counts_as_a_word():
    """Section 2.4.5."""
    broker = new_broker(heartbeat_s=1)
    peer = Peer(broker)
    assert peer.opened["idle-time-out"] == 1000
    for now in (1500, 3000, 4500):
        broker.tick(now, 0)
        peer.connection.tick(now)
        assert peer.frames() == []
        peer.give(EMPTY)
    broker.tick(6600, 0)
    peer.connection.tick(6600)
    assert error_in(peer.frames(), "close")[0] == "amqp:resource-limit-exceeded"


def test_headers_that_are_not_served_are_answered_with_one_that_is():
    """Section 2.2: TLS where the port has none, another version, AMQP without a log-in."""
    for header in (HEADER_TLS, b"AMQP\x00\x01\x01\x00", b"AMQP\x03\x01\x00\x01", HEADER_AMQP):
        for size in (8, 1):
            peer, said = stranger(), []
            peer.broker.inform = lambda text, is_fault=False: said.append(text)
            for at in range(0, 8, size):
                peer.give(header[at : at + size])
            assert peer.take(100) == HEADER_SASL and peer.connection.ending, header
            assert ["asks for TLS by its header" in text for text in said] == [True] * (header == HEADER_TLS)


def test_anonymous_by_its_mechanism_and_by_the_plain_header_where_it_is_allowed():
    """Section 5.3.1, RFC 4505."""
    for octets, said in (
        (HEADER_SASL + sasl("sasl-init", mechanism="ANONYMOUS") + HEADER_AMQP, True),
        (HEADER_AMQP, False),
    ):
        broker = new_broker()
        broker.access.anonymous = "guest"
        peer = Peer(broker, opens=False)
        peer.give(octets)
        if said:
            peer.take(8)
            assert "ANONYMOUS" in peer.expect("sasl-mechanisms")[1]["sasl-server-mechanisms"]
            assert peer.expect("sasl-outcome")[1]["code"] == 0
        assert peer.take(8) == HEADER_AMQP
        peer.give(performative("open", container_id="x"))
        peer.expect("open")
        assert peer.connection.user.name == "guest"


def test_a_wrong_password_is_answered_after_the_pause_with_an_outcome_and_the_end():
    """Section 5.3.3.6: code 1."""
    peer = stranger()
    peer.give(HEADER_SASL + sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00wrong"))
    peer.take(8)
    peer.expect("sasl-mechanisms")
    assert peer.frames() == []
    peer.broker.tick(2000, 0)
    peer.connection.tick(2000)
    assert peer.expect("sasl-outcome")[1]["code"] == 1
    assert peer.connection.closed or peer.connection.ending


def test_an_unknown_mechanism_and_a_sasl_frame_of_more_than_512_octets():
    """Sections 5.3.3.2 and 5.3.1."""
    peer = stranger()
    peer.give(HEADER_SASL + sasl("sasl-init", mechanism="NONE"))
    peer.take(8)
    peer.expect("sasl-mechanisms")
    peer.broker.tick(2000, 0)
    peer.connection.tick(2000)
    assert peer.expect("sasl-outcome")[1]["code"] == 1
    peer = stranger()
    peer.give(HEADER_SASL + sasl("sasl-init", mechanism="PLAIN", initial_response=b"x" * 600))
    peer.take(8)
    peer.expect("sasl-mechanisms")
    assert peer.frames() == [] and peer.connection.ending


def test_scram_takes_its_steps_as_challenges():
    """Section 5.3.2, RFC 7677."""
    peer = stranger()
    peer.give(HEADER_SASL + sasl("sasl-init", mechanism="SCRAM-SHA-256", initial_response=b"n,,n=guest,r=abc"))
    peer.take(8)
    peer.expect("sasl-mechanisms")
    challenge = peer.expect("sasl-challenge")[1]["challenge"]
    assert challenge.startswith(b"r=abc")
    peer.give(sasl("sasl-response", response=b"c=biws,r=abc,p=wrong"))
    assert peer.frames() == []


def test_a_connection_beyond_the_places_is_told_so():
    """Section 2.4.1: it opens, and closes with resource-limit-exceeded."""
    broker = new_broker(connection_count_max=1, surplus_count_max=1, stranger_share_max=100)
    first = Peer(broker)
    second = Peer(broker, opens=False)
    second.log_in()
    second.give(performative("open", container_id="x"))
    frames = second.frames()
    assert [each[0] for each in frames] == ["open", "close"]
    assert error_in(frames, "close")[0] == "amqp:resource-limit-exceeded"
    assert not first.connection.closed


def test_a_container_has_one_connection_where_its_peer_asks_for_that():
    """AMQP Enforcing Connection Uniqueness 1.0: the new one is refused, or those that are there are closed."""
    sole = {"desired_capabilities": ["sole-connection-for-container"]}
    for first, second in ((sole, sole), ({}, sole), (sole, {}), ({}, {})):
        broker = new_broker()
        peer = Peer(broker, **first)
        assert ("sole-connection-for-container" in peer.opened["offered-capabilities"]) is bool(first)
        other = Peer(broker, opens=False)
        other.log_in()
        other.give(performative("open", container_id="unit", **second))
        frames = other.frames()
        if first or second:
            assert [each[0] for each in frames] == ["open", "close"]
            assert frames[0][1]["properties"][("symbol", "amqp:connection-establishment-failed")] is True
            error = frames[1][1]["error"]
            assert error["condition"] == "amqp:invalid-field"
            assert error["info"] == {("symbol", "invalid-field"): ("symbol", "container-id")}
        else:
            assert [each[0] for each in frames] == ["open"]
        assert peer.frames() == []
        peer.connection.received(0)
        Peer(broker, **second)
    broker = new_broker()
    peer = Peer(broker, **sole)
    Peer(broker, properties={("symbol", "sole-connection-enforcement-policy"): ("uint", 1)}, **sole)
    assert error_in(peer.frames(), "close")[0] == "amqp:resource-locked"
    Peer(broker, container="another", **sole)


def test_what_comes_behind_a_close_is_dropped_and_the_buffer_stays_whole():
    for octets in (
        performative("close"),
        performative("open", container_id="x"),
        b"\x00\x00\x00\x08\x02\x00\x00\x00" + performative("close"),
    ):
        peer = Peer(new_broker())
        peer.give(octets)
        for _ in range(3):
            receive = peer.connection.receive
            assert receive is None or 0 <= receive.start <= receive.end <= receive.size
            peer.give(performative("end") * 20)
        assert peer.broker.counters["internal_errors"] == 0


def test_the_answer_to_a_close_for_an_error_ends_the_connection():
    """Section 2.4.3: the frame that was wrong is not taken again."""
    peer = Peer(new_broker())
    peer.give(performative("end", 5))
    assert error_in(peer.frames(), "close")[0] == "amqp:illegal-state"
    assert not peer.connection.ending
    peer.give(performative("begin", 1, next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    assert not peer.connection.ending
    peer.give(performative("close"))
    assert peer.connection.closed or peer.connection.ending
