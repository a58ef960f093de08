"""Protocol header, log-in, tune, open, heartbeat and close, octet by octet (AMQP 0-9-1 sections 2.2.4, 4.2.2, 4.2.7, class connection)."""

import socket
import time

import pytest
from amqp_wire import BODY, HEARTBEAT, METHOD, PROTOCOL_HEADER, Closed, RawClient, Typed, encode_table, frame, header, method
from broker_process import BrokerProcess

WRONG_HEADERS = (
    b"AMQP\x00\x00\x09\x02",
    b"AMQP\x03\x02\x00\x00",  # SASL of a version after 1.0
    b"AMQP\x09\x09\x09\x09",
    b"HTTP/1.1",
    b"GET / HT",
    b"\x00" * 8,
    b"\xff" * 8,
    b"amqp\x00\x00\x09\x01",
)


def read_to_end(stream):
    data = b""
    while True:
        try:
            got = stream.recv(4096)
        except ConnectionResetError:
            return data
        if not got:
            return data
        data += got


@pytest.mark.parametrize("octets", WRONG_HEADERS)
def test_a_wrong_header_is_answered_with_ours_and_the_end(connect, octets):
    peer = connect(opened=False)
    peer.send(octets)
    assert read_to_end(peer.socket) == PROTOCOL_HEADER


def test_a_header_octet_by_octet_is_a_header(connect):
    peer = connect(opened=False)
    for octet in PROTOCOL_HEADER:
        peer.send(bytes((octet,)))
        time.sleep(0.005)
    peer.expect("connection.start", 0)


def test_start_tells_version_mechanisms_and_capabilities(connect):
    start = connect(opened=False).start()
    assert (start["version_major"], start["version_minor"]) == (0, 9)
    assert {b"PLAIN", b"AMQPLAIN"} <= set(start["mechanisms"].split(b" "))
    assert b"en_US" in start["locales"].split(b" ")
    properties = start["server_properties"]
    assert properties["product"] and properties["version"]
    for capability in ("publisher_confirms", "basic.nack", "consumer_cancel_notify", "authentication_failure_close", "per_consumer_qos"):
        assert properties["capabilities"][capability] is True, capability


def test_plain(connect):
    connect(mechanism="PLAIN", response="\0guest\0guest")


def test_amqplain(connect):
    connect(mechanism="AMQPLAIN", response=encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:])


def test_amqplain_with_the_fields_the_other_way_round(connect):
    connect(mechanism="AMQPLAIN", response=encode_table({"PASSWORD": "guest", "LOGIN": "guest"})[4:])


@pytest.mark.parametrize("user, password", [("guest", "wrong"), ("guest", ""), ("nobody", "guest"), ("", "")])
def test_a_wrong_password_closes_with_403_and_says_no_more_than_that(connect, user, password):
    peer = connect(opened=False)
    close = peer.log_in(user, password)
    assert close.name == "connection.close" and close["reply_code"] == 403, close
    assert close["reply_text"].startswith("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."), close
    peer.send(method(0, "connection.close-ok"))
    peer.expect_end()


def test_a_wrong_password_without_the_capability_just_ends_the_stream(connect):
    peer = connect(opened=False)
    with pytest.raises(Closed) as end:
        peer.log_in("guest", "wrong", capabilities={})
    assert end.value.octets == b""


def test_a_wrong_amqplain_password_closes_with_403(connect):
    peer = connect(opened=False)
    close = peer.log_in(mechanism="AMQPLAIN", response=encode_table({"LOGIN": "guest", "PASSWORD": "x"})[4:])
    assert close.name == "connection.close" and close["reply_code"] == 403, close
    assert "AMQPLAIN" in close["reply_text"]


@pytest.mark.parametrize(
    "mechanism, response",
    [
        ("PLAIN", b""),
        ("PLAIN", b"guest"),
        ("PLAIN", b"\0guest"),
        ("PLAIN", b"\0\0\0\0\0"),
        ("PLAIN", b"\0" + b"x" * 300 + b"\0guest"),
        ("AMQPLAIN", b""),
        ("AMQPLAIN", b"\xff\xff"),
        ("AMQPLAIN", b"\x05LOGINS\xff\xff\xff\xff"),
        ("AMQPLAIN", encode_table({"LOGIN": 5, "PASSWORD": True})[4:]),
        ("AMQPLAIN", encode_table({"LOGIN": "guest"})[4:]),
    ],
)
def test_a_malformed_response_is_refused_and_not_a_crash(connect, mechanism, response):
    peer = connect(opened=False)
    try:
        close = peer.log_in(mechanism=mechanism, response=response)
    except Closed:
        return
    assert close.name == "connection.close" and close["reply_code"] in (403, 501, 502, 541), close


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "", "plain", "EXTERNAL"])
def test_an_unknown_mechanism_is_refused(connect, broker, mechanism):
    """RabbitMQ 3.10 ends the stream without a word (its check comes before it looks at the capability)."""
    peer = connect(opened=False)
    try:
        close = peer.log_in(mechanism=mechanism, response=b"\0guest\0guest")
    except Closed:
        assert broker.kind == "rabbitmq"
        return
    assert close.name == "connection.close" and close["reply_code"] in (403, 530, 504, 541), close


def test_an_unknown_virtual_host_closes_with_530(connect):
    peer = connect(opened=False)
    peer.log_in()
    peer.send(method(0, "connection.tune-ok", channel_max=10, frame_max=131072, heartbeat=0))
    peer.send(method(0, "connection.open", virtual_host="nowhere"))
    peer.expect_connection_close(530, "NOT_ALLOWED - ", "connection.open")


def outside_address():
    """An address of this machine that is not the loopback, or None. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def test_guest_from_outside_the_loopback_is_refused(broker):
    address = outside_address()
    if address is None:
        pytest.skip("this machine has no address but the loopback")
    outside = BrokerProcess(broker.kind, address)
    try:
        with RawClient(outside.host, outside.port) as peer:
            close = peer.log_in()
            assert close.name == "connection.close" and close["reply_code"] == 403, close
            assert close["reply_text"].startswith("ACCESS_REFUSED - "), close
    finally:
        outside.stop()


def test_tune_offers_numbers_a_client_can_live_with(raw):
    assert raw.tune["frame_max"] >= 4096 and raw.tune["channel_max"] >= 1
    assert 0 < raw.tune["heartbeat"] <= 600


def test_a_smaller_frame_max_is_kept_in_both_directions(connect):
    peer = connect(frame_max=4096)
    queue = peer.declare_queue(exclusive=True)
    body = bytes(range(256)) * 64
    peer.publish("", queue, body)
    peer.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    got = peer.read_content("basic.deliver")
    assert got.body == body
    assert max(got.body_frame_sizes) <= 4088


def open_with(peer, **tune_ok):
    """Log-in and connection.open with some tune-ok values changed (a function gets what the broker offered)."""
    tune = peer.log_in()
    values = {"channel_max": tune["channel_max"], "frame_max": tune["frame_max"], "heartbeat": 0}
    values.update({name: value(tune[name]) if callable(value) else value for name, value in tune_ok.items()})
    peer.frame_size_max = tune["frame_max"]
    peer.send(method(0, "connection.tune-ok", **values) + method(0, "connection.open", virtual_host="/"))


def test_channel_max_0_takes_the_brokers(connect):
    """0 means: no limit on the client's side. The broker's own still holds."""
    peer = connect(opened=False)
    open_with(peer, channel_max=0)
    try:
        peer.expect("connection.open-ok")
    except Closed:
        pytest.skip("RabbitMQ 3.10 counts 0 as above its own")
    peer.call("channel.open-ok", 1, "channel.open")


def refuses_tune(peer, text):
    """tune-ok out of range: "the server MUST close the connection without attempting a negotiated close. The server may
    report the error in some fashion": so the plain end (RabbitMQ, after 3 seconds) and 530 with a text are both right."""
    try:
        got = peer.read_frame()
    except Closed:
        return
    assert got.name == "connection.close" and got["reply_code"] == 530, got
    assert got["reply_text"].startswith("NOT_ALLOWED - "), got
    assert text in got["reply_text"], got


def test_frame_max_0_takes_the_brokers_or_is_refused(connect, broker):
    peer = connect(opened=False)
    open_with(peer, frame_max=0)
    if broker.kind == "rabbitmq":
        refuses_tune(peer, "frame_max")
        return
    peer.expect("connection.open-ok")
    peer.call("channel.open-ok", 1, "channel.open")


def test_a_frame_max_above_the_brokers_is_refused(connect):
    peer = connect(opened=False)
    open_with(peer, frame_max=lambda offered: offered + 1)
    refuses_tune(peer, "frame")


def test_a_frame_max_below_4096_is_refused(connect):
    peer = connect(opened=False)
    open_with(peer, frame_max=4095)
    refuses_tune(peer, "4095")


def test_a_channel_max_above_the_brokers_is_refused(connect):
    peer = connect(opened=False)
    open_with(peer, channel_max=lambda offered: offered + 1)
    refuses_tune(peer, "channel")


def test_a_channel_above_channel_max_closes_the_connection(connect):
    """0-9-1 channel.open gives 504 CHANNEL_ERROR; RabbitMQ 3.10 answers 530 NOT_ALLOWED and names the limit. Both pass."""
    peer = connect(channel_max=3, channels=3)
    peer.send(method(4, "channel.open"))
    close = peer.expect_connection_close((504, 530))
    assert "3" in close["reply_text"] or "4" in close["reply_text"]


def test_heartbeats_are_sent_at_the_agreed_interval(connect):
    peer = connect(heartbeat=1)
    began = time.monotonic()
    while peer.heartbeats < 4:
        assert time.monotonic() - began < 20, "%d heartbeats" % peer.heartbeats
        try:
            assert peer.read_frame(0.4, heartbeats=True).kind == HEARTBEAT
            peer.heartbeats += 1
        except TimeoutError:
            pass
        peer.send(frame(HEARTBEAT, 0, b""))
    assert time.monotonic() - began > 1, "more than twice an interval"


def test_heartbeat_0_means_none(connect):
    peer = connect(heartbeat=0)
    with pytest.raises(TimeoutError):
        peer.read_frame(2.5, heartbeats=True)


def test_a_client_that_falls_silent_is_dropped_after_two_intervals(connect):
    """Nothing but the stream's end is due: a peer that is gone reads no close method (4.2.7)."""
    peer = connect(heartbeat=1)
    started = time.monotonic()
    with pytest.raises(Closed):
        while True:
            got = peer.read_frame(20)
            assert got.name == "connection.close", got
    assert 1.5 <= time.monotonic() - started <= 20


def test_any_traffic_counts_as_a_sign_of_life(connect):
    peer = connect(heartbeat=2)
    end = time.monotonic() + 5.5
    while time.monotonic() < end:
        peer.call("queue.declare-ok", 1, "queue.declare", queue="", exclusive=True, auto_delete=True)
        time.sleep(0.5)


def test_a_heartbeat_in_the_middle_of_content_is_allowed(connect):
    """4.2.7: heartbeats may come between any two frames."""
    peer = connect()
    queue = peer.declare_queue(exclusive=True)
    beat = frame(HEARTBEAT, 0, b"")
    peer.send(method(1, "basic.publish", routing_key=queue) + beat + header(1, 6) + beat)
    peer.send(frame(BODY, 1, b"abc") + beat + frame(BODY, 1, b"def"))
    peer.send(method(1, "basic.get", queue=queue, no_ack=True))
    assert peer.read_content("basic.get-ok").body == b"abcdef"


def test_a_silent_stream_before_the_header_is_dropped_or_kept_but_harmless(connect, broker):
    quiet = [connect(opened=False) for _ in range(3)]
    connect().close()
    assert all(peer.socket.fileno() >= 0 for peer in quiet)


def test_close_is_answered_and_channels_need_not_be_closed_first(connect):
    peer = connect(channels=5)
    peer.close()


def test_anything_after_close_is_ignored_until_close_ok(connect):
    """connection.close: after it nothing but close-ok is acted upon; here the broker closed and frames were on the way."""
    peer = connect()
    peer.send(method(1, "channel.open") + method(1, "queue.declare", queue="never") + method(9, "basic.qos"))
    peer.expect_connection_close(504)
    other = connect()
    other.send(method(1, "queue.declare", queue="never", passive=True))
    other.expect_channel_close(404)


def test_client_properties_of_every_type_are_swallowed(connect):
    peer = connect(opened=False)
    peer.start()
    peer.frame_size_max = 131072
    properties = {
        "t": True,
        "b": Typed("b", -1),
        "B": Typed("B", 255),
        "s": Typed("s", -3),
        "u": Typed("u", 65535),
        "I": -5,
        "i": Typed("i", 4000000000),
        "l": Typed("l", -(2**62)),
        "f": Typed("f", 1.5),
        "d": 2.5,
        "D": Typed("D", (2, 314)),
        "S": "text",
        "A": [1, "two", [3], {"four": 4}],
        "T": Typed("T", 1700000000),
        "F": {"nested": {"deeper": {"deepest": None}}},
        "V": None,
        "x": Typed("x", b"\x00\xff"),
    }
    credentials = {"mechanism": "PLAIN", "response": "\0guest\0guest", "locale": "en_US"}
    peer.send(method(0, "connection.start-ok", client_properties=properties, **credentials))
    peer.expect("connection.tune", 0)


def test_methods_before_the_log_in_are_an_error_not_a_way_in(connect):
    peer = connect(opened=False)
    peer.start()
    peer.send(method(0, "connection.open", virtual_host="/"))
    try:
        got = peer.read_frame()
    except Closed:
        return
    assert got.name == "connection.close" and got["reply_code"] in (503, 504, 530, 540, 505), got


def test_channel_frames_before_the_log_in_are_an_error(connect):
    peer = connect(opened=False)
    peer.start()
    peer.send(method(1, "channel.open"))
    try:
        got = peer.read_frame()
    except Closed:
        return
    assert got.name == "connection.close", got


def test_channel_0_takes_no_content_frame(connect):
    peer = connect(opened=False)
    peer.start()
    peer.send(frame(3, 0, b"body"))
    try:
        got = peer.read_frame()
    except Closed:
        return
    assert got.name == "connection.close" and got.kind == METHOD, got
