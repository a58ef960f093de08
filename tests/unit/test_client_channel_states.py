"""Every frame that may come, and what the client may ask, in each state of a client's channel (0-9-1 sections 1.5, 2.2.5, 4.2.6), by the
specification and its reply codes, which are written down here again.
"""

from test_client_channel import HANDSHAKE, Recorder, drain, feed, methods, says

from leveret.core import states
from leveret.core.amqp_0_9 import frame, method
from leveret.core.amqp_0_9.client import channel as actions
from leveret.core.amqp_0_9.client.client import Client
from leveret.core.amqp_0_9.client.states import CHANNEL
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS

STATES = ("closed", "opening", "open", "header", "body", "closing")
VALUES = {"o": 0, "s": 0, "l": 0, "L": 0, "S": "", "T": b"", "F": {}, "b": False}
CONTENTS = ("basic_deliver", "basic_return")
NAMES = [row[method.NAME] for row in METHODS if not row[method.NAME].startswith("connection_")] + ["content_header", "content_body"]


def named(name):
    """A frame on channel 1: a method with the plainest arguments, or a content frame of a body of one octet."""
    if name == "content_header":
        return frame.content_header(1, 1, b"\0\0")
    if name == "content_body":
        return frame.encode(frame.BODY, 1, b"x")
    return says(name, *[VALUES[code] for code in method.named(METHODS, name)[method.FIELDS]])


def at(state):
    """(recorder, client, channel 1) in a state."""
    events = Recorder()
    client = Client(events)
    feed(client, HANDSHAKE)
    channel = client.channels[1]
    if state != "closed":
        assert channel.open() is True
    if state not in ("closed", "opening"):
        feed(client, says("channel_open_ok", b""))
    if state in ("header", "body"):
        feed(client, named("basic_deliver"))
    if state == "body":
        feed(client, named("content_header"))
    if state == "closing":
        assert channel.close() is True
    drain(client)
    events.taken()
    assert channel.state == state
    return events, client, channel


def expected(state, name):
    """(state behind a frame, names of the methods that the client answers with), or the reply code with which the client ends."""
    if state == "closing":
        if name == "channel_close_ok":
            return "closed", []
        return state, ["channel_close_ok"] if name == "channel_close" else []
    if state in ("closed", "opening"):
        if name.startswith("content_"):
            return state, []
        if state == "opening" and name == "channel_open_ok":
            return "open", []
        return ("closed", ["channel_close_ok"]) if state == "opening" and name == "channel_close" else 504
    if state in ("header", "body"):
        if name == {"header": "content_header", "body": "content_body"}[state]:
            return {"header": "body", "body": "open"}[state], []
        return 505
    if name in CONTENTS:
        return "header", []
    if name == "channel_close":
        return "closed", ["channel_close_ok"]
    if name == "channel_flow":
        return "open", ["channel_flow_ok"]
    if name == "basic_cancel":
        return "open", ["basic_cancel_ok"]
    return 505 if name.startswith("content_") else 503


def test_each_frame_in_each_state_of_a_clients_channel():
    for state in STATES:
        for name in NAMES:
            events, client, channel = at(state)
            feed(client, named(name))
            answers = methods(drain(client))
            wanted = expected(state, name)
            if isinstance(wanted, int):
                assert client.closed and events.seen[-1][:2] == ("ended", wanted), (state, name, events.seen)
            else:
                assert not client.closed, (state, name, events.seen)
                assert (channel.state, [each[0] for each in answers]) == wanted, (state, name)


def test_a_method_that_nobody_knows_in_each_state():
    for state, code in (("closed", 504), ("opening", 504), ("open", 503), ("header", 505), ("body", 505), ("closing", None)):
        events, client, channel = at(state)
        feed(client, frame.encode(frame.METHOD, 1, b"\x01\x01\x01\x01"))
        if code is None:
            assert not client.closed and channel.state == state
        else:
            assert events.seen[-1][:2] == ("ended", code), (state, events.seen)


def test_what_the_client_asks_in_each_state():
    """channel.open where it is closed, channel.close where it is open; else it is our own mistake, which changes nothing."""
    for state in STATES:
        for deed, allowed, behind in (("open", ("closed",), "opening"), ("close", ("open", "header", "body"), "closing")):
            _, client, channel = at(state)
            try:
                done = getattr(channel, deed)()
            except ValueError:
                assert state not in allowed and channel.state == state and drain(client) == b"", (state, deed)
            else:
                assert done is True and state in allowed and channel.state == behind, (state, deed)


def test_a_request_without_room_leaves_the_state():
    for state, deed in (("closed", "open"), ("open", "close")):
        _, client, channel = at(state)
        client.output.write = lambda channel, octets: False
        assert getattr(channel, deed)() is False and channel.state == state and channel.waiting == ()


def test_a_delivery_goes_the_way_of_its_rows_without_their_look_up():
    """Channel.on_method, on_header and _finish do what these rows say."""
    rows = (
        ("open", "content_begins", "header", "begin_content"),
        ("header", "content_header", "body", "on_content_header"),
        ("body", "content_ends", "open", "end_content"),
    )
    for row in rows:
        assert states.find(CHANNEL, row[0], row[1]) == row
    events, client, channel = at("open")
    looked = states.step
    states.step = None
    try:
        for body in (b"", b"x"):
            feed(client, named("basic_deliver"))
            assert channel.state == "header"
            feed(client, frame.content_header(1, len(body), b"\0\0"))
            assert channel.state == ("body" if body else "open")
            if body:
                feed(client, frame.encode(frame.BODY, 1, body))
            assert channel.state == "open" and events.taken()[0].body == body
    finally:
        states.step = looked


def test_each_input_has_a_row_in_each_state_and_each_action_is_there():
    for state in STATES:
        for name in NAMES + ["content_begins", "content_ends", "open", "close", "method 1.1"]:
            assert len(states.find(CHANNEL, state, name)) == 4
    for row in CHANNEL:
        assert row[0] in STATES + ("*",) and row[2] in STATES + ("*",)
        assert row[3][0] == "!" or callable(getattr(actions.Channel, row[3]))
