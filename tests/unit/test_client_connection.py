"""The client's connection: handshake, heartbeats, and every way it ends (0-9-1 sections 2.2.4, 4.2.2, 4.2.3, 4.2.7)."""

from leveret.core.amqp_0_9 import frame, method
from leveret.core.amqp_0_9.client.client import Client, Events
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER, METHODS


class Recorder(Events):
    """Writes down what the client reports."""

    def __init__(self):
        self.seen = []

    def opened(self):
        self.seen.append("opened")

    def blocked(self, text):
        self.seen.append(("blocked", text))

    def unblocked(self):
        self.seen.append("unblocked")

    def ended(self, code, text):
        self.seen.append(("ended", code, text))


def says(name, *arguments, channel=0):
    """A method frame."""
    return method.encode(method.named(METHODS, name), channel, arguments)


START = says("connection_start", 0, 9, {"product": "scripted"}, b"AMQPLAIN PLAIN", b"en_US")
TUNE = says("connection_tune", 2047, 131072, 60)
OPEN_OK = says("connection_open_ok", "")
CLOSE_OK = says("connection_close_ok")


def feed(client, octets, step=0):
    """Give octets to the client, `step` at a time (0: as many as it takes)."""
    at = 0
    while at < len(octets):
        view = client.writable()
        size = min(len(view), len(octets) - at, step or len(octets))
        assert size > 0 or client.closed
        if client.closed:
            return
        target = view[0:size]
        target[:] = octets[at : at + size]
        client.received(size)
        at += size


def sent(client):
    """What the client sends now, as [(method name, arguments)] behind raw octets such as the protocol header and heartbeats."""
    octets = bytes(client.pending())
    if octets:
        client.sent(len(octets))
    found = []
    while octets:
        if octets[:4] == b"AMQP":
            found.append(octets[:8])
            octets = octets[8:]
            continue
        size = 7 + int.from_bytes(octets[3:7], "big")
        assert octets[size] == 0xCE
        if octets[0] == 1:
            row = method.find(METHODS, int.from_bytes(octets[7:11], "big"))
            found.append((row[method.NAME], method.decode(row, octets, 11, size)))
        else:
            found.append(octets[: size + 1])
        octets = octets[size + 1 :]
    return found


def opened(step=0, tune=TUNE, **options):
    """(recorder, client) with an open connection."""
    events = Recorder()
    client = Client(events, **options)
    feed(client, START + tune + OPEN_OK, step)
    sent(client)
    assert events.seen == ["opened"] and client.state == "open"
    return events, client


def test_the_handshake_in_the_order_of_2_2_4():
    client = Client(Recorder(), "me", "secret", "/farm")
    assert sent(client) == [HEADER]
    feed(client, START)
    ((name, arguments),) = sent(client)
    assert name == "connection_start_ok" and arguments[1:] == ["PLAIN", b"\x00me\x00secret", "en_US"]
    assert arguments[0]["capabilities"]["authentication_failure_close"] is True
    feed(client, TUNE)
    assert sent(client) == [("connection_tune_ok", [1, 8192, 60]), ("connection_open", ["/farm", "", False])]
    feed(client, OPEN_OK)
    assert client.events.seen == ["opened"] and sent(client) == []


def test_the_handshake_comes_in_pieces_of_any_size():
    for step in (1, 2, 3, 7, 8, 9, 50):
        opened(step)


def test_tune_takes_the_smaller_limit_and_zero_is_none_1_4_2_5():
    for server, answer in (((0, 0, 0), [1, 8192, 60]), ((1, 4096, 10), [1, 4096, 10]), ((9, 131072, 580), [1, 8192, 60])):
        client = Client(Recorder())
        feed(client, START)
        sent(client)
        feed(client, says("connection_tune", *server))
        assert sent(client)[0] == ("connection_tune_ok", answer)


def test_a_broker_that_wants_frames_under_4096_is_refused_4_2_3():
    client = Client(Recorder())
    feed(client, START + says("connection_tune", 0, 4095, 0))
    assert client.closed and client.events.seen == [("ended", 0, "the broker allows 1 channels and frames of 4095 octets")]


def test_a_broker_of_another_version_answers_with_its_header_4_2_2():
    client = Client(Recorder())
    feed(client, b"AMQP\x00\x01\x00\x00")
    assert client.closed and client.events.seen == [("ended", 0, "the broker speaks AMQP 1-0-0, not 0-9-1")]


def test_a_broker_without_plain_is_refused():
    for mechanisms in (b"EXTERNAL PLAINER", b"", b"\xff"):
        client = Client(Recorder())
        feed(client, says("connection_start", 0, 9, {}, mechanisms, b"en_US"))
        ((what, code, text),) = client.events.seen
        assert (what, code) == ("ended", 0) and text.startswith("the broker offers no PLAIN log-in but ")
    assert "EXTERNAL" not in text


def test_a_refused_log_in_gives_the_brokers_text():
    client = Client(Recorder())
    feed(client, START)
    sent(client)
    feed(client, says("connection_close", 403, "ACCESS_REFUSED - no", 10, 11))
    assert client.closed and client.events.seen == [("ended", 403, "ACCESS_REFUSED - no")]
    assert sent(client) == [("connection_close_ok", [])]


def test_the_end_of_the_stream_is_reported_once():
    events, client = opened()
    client.received(0)
    client.received(0)
    assert client.closed and events.seen[1:] == [("ended", 0, "the peer closed the stream")]
    assert len(client.writable()) == 0


def test_closing_waits_for_close_ok_and_discards_the_rest_1_4_2_9():
    events, client = opened()
    client.close()
    assert sent(client) == [("connection_close", [200, "closed", 0, 0])] and not client.closed
    feed(client, says("basic_cancel", "x", True, channel=1) + says("connection_blocked", "late") + CLOSE_OK)
    assert client.closed and events.seen[1:] == [("ended", 200, "closed")]


def test_both_sides_close_at_once():
    events, client = opened()
    client.close()
    sent(client)
    feed(client, says("connection_close", 320, "CONNECTION_FORCED - bye", 0, 0))
    assert sent(client) == [("connection_close_ok", [])] and events.seen[1:] == [("ended", 320, "CONNECTION_FORCED - bye")]


def test_blocked_and_unblocked_are_told():
    events, client = opened()
    feed(client, says("connection_blocked", "low on memory"))
    assert client.blocked
    feed(client, says("connection_unblocked"))
    assert not client.blocked and events.seen[1:] == [("blocked", "low on memory"), "unblocked"]


def test_heartbeats_are_sent_after_half_the_interval_and_only_then_4_2_7():
    _, client = opened()
    client.tick(1000)
    client.tick(30999)
    assert sent(client) == []
    client.tick(31000)
    assert sent(client) == [frame.HEARTBEAT_FRAME]
    client.tick(31001)
    client.tick(61000)
    assert sent(client) == []
    client.tick(61001)
    assert sent(client) == [frame.HEARTBEAT_FRAME]


def test_a_silent_broker_is_given_up_after_two_intervals_4_2_7():
    events, client = opened()
    client.tick(0)
    client.tick(120000)
    assert not client.closed
    client.tick(120001)
    assert client.closed and events.seen[1:] == [("ended", 0, "no heartbeat from the broker for 120 s")]


def test_any_octet_counts_as_a_sign_of_life_4_2_7():
    _, client = opened()
    client.tick(0)
    feed(client, frame.HEARTBEAT_FRAME)
    client.tick(120000)
    client.tick(239999)
    assert not client.closed
    client.tick(240001)
    assert client.closed


def test_the_clock_may_wrap():
    _, client = opened()
    client.tick(0x3FFFFFF0)
    client.tick(0x10)
    assert not client.closed and sent(client) == []
    client.tick(0x10 + 30000)
    assert sent(client) == [frame.HEARTBEAT_FRAME]


def test_no_heartbeats_where_both_sides_want_none():
    _, client = opened(tune=says("connection_tune", 0, 0, 0), heartbeat_s=0)
    client.tick(0)
    client.tick(500000)
    assert not client.closed and sent(client) == []


def test_opening_and_closing_are_bounded_in_time():
    client = Client(Recorder(), open_timeout_ms=3000)
    client.tick(5)
    client.tick(3005)
    assert not client.closed
    client.tick(3006)
    assert client.closed and client.events.seen == [("ended", 0, "no answer from the broker for 3000 ms")]
    events, client = opened(open_timeout_ms=3000)
    client.tick(0)
    client.close()
    client.tick(10)
    client.tick(3011)
    assert client.closed


def refused(octets, step=0):
    """(code, text) that an open client ends with, and says to the broker, for these octets."""
    events, client = opened()
    feed(client, octets, step)
    assert client.closed and len(events.seen) == 2
    _, code, text = events.seen[1]
    assert sent(client) == [("connection_close", [code, text, 0, 0])]
    return code, text


def test_what_breaks_the_protocol_is_answered_with_its_code():
    assert refused(b"\x08\x00\x00\x00\x00\x00\x00\xcd")[0] == 501  # frame end, section 4.2.3
    assert refused(b"\x01\x00\x00\x00\x00\x1f\xf9\x00") == (501, "FRAME_ERROR - a frame of 8193 octets; 8192 are the most")
    assert refused(b"\x03\x00\x00\x00\x00\x00\x00\xce")[0] == 503
    assert refused(b"\x04\x00\x01\x00\x00\x00\x00\xce")[0] == 501
    assert refused(b"\x01\x00\x07\x00\x00\x00\x00\xce") == (504, "CHANNEL_ERROR - channel 7; there are 1")
    assert refused(says("connection_tune", 0, 0, 0)) == (503, "COMMAND_INVALID - connection.tune in the state open")
    assert refused(frame.encode(1, 0, b"\x00\x0a"))[0] == 503
    assert refused(frame.encode(1, 0, b"\x00\x0a\x00\x3c\x05abc"))[0] == 502
    assert refused(says("channel_open_ok", b"", channel=1))[0] == 504


def test_a_method_frame_larger_than_the_receive_buffer_is_refused():
    assert refused(b"\x01\x00\x00\x00\x00\x08\x00\x00") == (501, "FRAME_ERROR - a frame of 2056 octets; the receive buffer has 2048")


def test_nothing_is_read_after_the_end():
    events, client = opened()
    feed(client, b"\x08\x00\x00\x00\x00\x00\x00\xcd" + frame.HEARTBEAT_FRAME * 3)
    assert len(events.seen) == 2 and len(client.writable()) == 0


def test_reset_makes_it_ready_for_a_new_stream():
    events, client = opened()
    feed(client, says("connection_blocked", "x"))
    client.received(0)
    client.reset()
    assert not client.closed and not client.blocked and sent(client) == [HEADER]
    events.seen = []
    feed(client, START + TUNE + OPEN_OK)
    assert events.seen == ["opened"]


# What a broker may say on channel 0, by the client's state (section 2.2.4): the state behind it.
ALLOWED = {
    ("start", "connection_start"): "tune",
    ("tune", "connection_tune"): "opening",
    ("opening", "connection_open_ok"): "open",
    ("open", "connection_blocked"): "open",
    ("open", "connection_unblocked"): "open",
    ("closing", "connection_close_ok"): "ended",
}
FRAMES = {"connection_start": START, "connection_tune": TUNE, "connection_open_ok": OPEN_OK}
VALUES = {"o": 0, "s": 0, "l": 0, "L": 0, "S": "", "T": b"", "F": {}, "b": False}


def at(state):
    """(recorder, client) in a state."""
    events = Recorder()
    client = Client(events)
    for name, behind in (("connection_start", "tune"), ("connection_tune", "opening"), ("connection_open_ok", "open")):
        if client.state != state:
            feed(client, FRAMES[name])
            assert client.state == behind
    if state == "closing":
        client.close()
    sent(client)
    assert client.state == state
    return events, client


def test_each_method_in_each_state():
    for state in ("start", "tune", "opening", "open", "closing"):
        for row in METHODS:
            name = row[method.NAME]
            events, client = at(state)
            feed(client, FRAMES.get(name) or says(name, *[VALUES[code] for code in row[method.FIELDS]]))
            answers = [each[0] for each in sent(client)]
            if name == "connection_close":
                assert client.state == "ended" and answers == ["connection_close_ok"], (state, name)
            elif (state, name) in ALLOWED:
                assert client.state == ALLOWED[state, name] and "connection_close" not in answers, (state, name)
            elif state == "closing":
                assert client.state == state and answers == [], (state, name)
            else:
                assert client.state == "ended" and events.seen[-1][:2] == ("ended", 503), (state, name, events.seen)
                assert answers == ([] if state == "start" else ["connection_close"]), (state, name)
            assert (client.state == "ended") == client.closed


def test_close_in_each_state_ends_at_once_where_nobody_would_answer():
    for state in ("start", "tune", "opening"):
        events, client = at(state)
        client.close(200, "enough")
        assert client.state == "ended" and events.seen == [("ended", 200, "enough")] and sent(client) == []
        client.close()
        assert len(events.seen) == 1
    events, client = at("open")
    client.close(200, "enough")
    client.close(200, "again")
    assert client.state == "closing" and [each[0] for each in sent(client)] == ["connection_close"] and events.seen == ["opened"]
