"""What a session keeps of what its peer said is bounded, however much the peer says."""

from peer import Peer, encoded, new_broker

from leveret.core.amqp_0_9.spec_0_9_1 import HEADER


def started(response, mechanism="PLAIN", capabilities=None):
    """A connection that has sent start-ok, with a broker whose buffer would take much more."""
    broker = new_broker(receive_buffer_size=65536, send_buffer_size=65536)
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    peer.expect("connection_start")
    peer.give(encoded("connection_start_ok", 0, {"capabilities": capabilities or {}}, mechanism, response, "en_US"))
    return broker, peer


def test_of_a_client_s_capabilities_only_those_that_change_something_are_kept():
    """0-9-1 section 1.4.2.2.1: client-properties may be as large as a frame."""
    capabilities = {"much%d" % number: "x" * 100 for number in range(30)}
    capabilities["consumer_cancel_notify"] = True
    _, peer = started(b"\x00guest\x00guest", capabilities=capabilities)
    peer.expect("connection_tune")
    assert peer.connection.session.capabilities == {"consumer_cancel_notify": True}


def test_a_long_response_is_refused_before_anything_of_it_is_kept():
    """0-9-1 section 1.4.2.2.3: a log-in is held until its pause is over, by as many as there are connections."""
    for mechanism, response in (("PLAIN", b"\x00" + b"u" * 2000 + b"\x00p"), ("SCRAM-SHA-256", b"n,,n=u,r=" + b"r" * 2000)):
        broker, peer = started(response, mechanism)
        assert peer.connection.session.login.attempt is None and broker.counters["logins_refused"] == 1, mechanism
        assert peer.frames() == [], "the answer waits"


def test_keys_that_a_sender_selects_are_kept_as_octets():
    """CC and BCC (limit copy_size_max): a channel keeps them until the next content."""
    broker = new_broker(
        receive_buffer_size=65536, send_buffer_size=65536, properties_size_max=32768, copy_size_max=4096, arena_size=1 << 20
    )
    peer = Peer(broker)
    peer.publish("nobody", b"", given={"headers": {"CC": ["%02d" % (number % 100) for number in range(300)]}})
    assert len(peer.connection.session.channels[1].copies) == 1200
