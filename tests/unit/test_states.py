"""Every input in every state of the tables of core/ (core/states.py), and of 0-9-1's against the running broker: what a client may send, by
the specification's sections 2.2.4, 2.2.5, 4.2.3 and 4.2.6 and the reply codes of its reference's section 1.2, is written down here again.
"""

from peer import Peer, content, encoded, new_broker

from leveret.core import states
from leveret.core.amqp_0_9 import frame, handshake, method, verbs
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER, METHODS
from leveret.core.amqp_0_9.states import CHANNEL, CONNECTION
from leveret.core.errors import ProtocolError

VALUES = {"o": 0, "s": 0, "l": 0, "L": 0, "S": "", "T": b"", "F": {}, "b": False}
FROM_CLIENTS = [row[method.NAME] for row in METHODS if row[method.SENDER] & method.CLIENT]
FRAMES = FROM_CLIENTS + ["content_header", "content_body"]
START_OK = ({}, "PLAIN", b"\0guest\0guest", "en_US")
CLOSED = "connection_close"  # by the broker


def named(name, channel):
    """A frame with this name on a channel: a method with the plainest arguments, or a content frame."""
    if name == "content_header":
        return frame.content_header(channel, 1, b"\0\0")
    if name == "content_body":
        return frame.encode(frame.BODY, channel, b"x")
    arguments = {
        "connection_start_ok": START_OK,
        "connection_open": ("/", "", False),
        "connection_secure_ok": (b"no proof",),
        "basic_publish": (0, "", "q", False, False),
        "exchange_declare": (0, "e", "direct", False, False, False, False, False, {}),
    }
    fields = method.named(METHODS, name)[method.FIELDS]
    return encoded(name, channel, *arguments.get(name, [VALUES[code] for code in fields]))


def at(state, broker):
    """A peer whose connection is in a state."""
    peer = Peer(broker, log_in=state == "open" or state == "closing")
    if state == "closing":
        peer.give(b"\x01\0\0\0\0\0\x00\xce")  # no method: 502
        peer.expect("connection_close")
        return peer
    if state == "open":
        return peer
    peer.give(HEADER)
    peer.expect("connection_start")
    if state == "secure":
        peer.give(encoded("connection_start_ok", 0, {}, "SCRAM-SHA-256", b"n,,n=guest,r=nonce", "en_US"))
        peer.expect("connection_secure")
    if state in ("tune", "opening"):
        peer.give(encoded("connection_start_ok", 0, *START_OK))
        peer.expect("connection_tune")
    if state == "opening":
        peer.give(encoded("connection_tune_ok", 0, 0, 0, 0))
    return peer


# What a connection lets a client send on channel 0: (state, method): (what comes back, state behind it; None: the stream ends).
ALLOWED = {
    ("start", "connection_start_ok"): (("connection_tune",), "tune"),  # section 1.4.2.2
    ("secure", "connection_secure_ok"): ((), "login"),  # a wrong proof: its refusal waits
    ("tune", "connection_tune_ok"): ((), "opening"),
    ("opening", "connection_open"): (("connection_open_ok",), "open"),
    ("open", "connection_update_secret"): (("connection_update_secret_ok",), "open"),
    ("open", "connection_close"): (("connection_close_ok",), "closing"),
    ("closing", "connection_close"): (("connection_close_ok",), "closing"),
}


def refusal(state, name):
    """The reply code for what is not allowed on channel 0."""
    if name.startswith("content_"):
        return 505  # content on channel 0: section 4.2.3
    if state == "open":
        if name == "connection_close_ok" or name.startswith("channel_"):
            return 504
        if name.startswith("connection_"):
            return 530  # 504 from RabbitMQ; begun is begun
    return 503


def test_each_frame_on_channel_0_in_each_state_of_a_connection():
    for state in ("start", "secure", "tune", "opening", "open", "closing"):
        each_frame_on_channel_0(state)


def each_frame_on_channel_0(state):
    """Every frame in one state of a connection."""
    broker = new_broker()
    for name in FRAMES:
        peer = at(state, broker)
        session = peer.connection.session
        assert session.state == state
        peer.give(named(name, 0))
        came = peer.frames()
        if state == "closing" and name == "connection_close_ok":
            assert came == [] and peer.connection.closed
        elif (state, name) in ALLOWED:
            assert (tuple([each[0] for each in came]), session.state) == ALLOWED[state, name], (name, came)
        elif state == "closing":
            assert came == [] and session.state == state and not peer.connection.closed, name
        else:
            assert [each[0] for each in came] == [CLOSED] and came[0][2][0] == refusal(state, name), (name, came)
            assert session.state == "closing"
        assert broker.counters["internal_errors"] == 0, name
        peer.connection.finish()


def test_each_frame_on_a_channel_while_the_connection_is_not_open():
    """504: the client worked with a channel that had not been opened."""
    for state in ("start", "secure", "tune", "opening", "closing"):
        each_frame_on_channel_1(state)


def each_frame_on_channel_1(state):
    """Every frame in one state of a connection."""
    broker = new_broker()
    for name in FRAMES:
        peer = at(state, broker)
        peer.give(named(name, 1))
        came = peer.frames()
        assert ([each[0] for each in came], [each[2][0] for each in came]) == (([], []) if state == "closing" else ([CLOSED], [504])), name
        assert peer.connection.session.state == "closing"
        peer.connection.finish()


def channel_at(state, broker):
    """A peer on an open connection whose channel 1 is in a state, and queue q."""
    peer = at("open", broker)
    peer.declare("q")
    octets = content(1, "", "q", b"x")
    publish_size = len(encoded("basic_publish", 1, 0, "", "q", False, False))
    if state == "closed":
        peer.ask("channel_close", "channel_close_ok", 200, "", 0, 0)
    elif state == "header":
        peer.give(octets[:publish_size])
    elif state == "body":
        peer.give(octets[: publish_size + len(frame.content_header(1, 1, b"\0\0"))])
        peer.connection.session.process_part()
    elif state == "closing":
        peer.give(encoded("queue_delete", 1, 0, "nobody's", True, True, False) + encoded("basic_get", 1, 0, "nobody's", True))
        while [each for each in peer.frames() if each[0] != "queue_delete_ok"] == []:
            pass
    if state == "header":
        peer.connection.session.process_part()
    return peer


def expected_of_channel(state, name):
    """(frames that come, reply code or None, state behind it) of a frame on channel 1; None: what the method itself does decides."""
    wrong = 505
    if name.startswith("connection_"):
        return (CLOSED,), 503
    if state == "closed":
        if name == "channel_open":
            return ("channel_open_ok",), None
        return ((), None) if name == "channel_close_ok" else ((CLOSED,), 504)
    if state == "closing":
        return (("channel_close_ok",) if name == "channel_close" else ()), None
    if state == "header":
        return ((), None) if name == "content_header" else ((CLOSED,), wrong)
    if state == "body":
        return ((), None) if name == "content_body" else ((CLOSED,), wrong)
    if name.startswith("content_"):
        return (CLOSED,), wrong
    if name in ("channel_open", "channel_close_ok"):
        return (CLOSED,), 504
    return None


AFTER = {
    ("closed", "channel_open"): "open",
    ("closing", "channel_close"): "closed",
    ("closing", "channel_close_ok"): "closed",
    ("header", "content_header"): "body",
    ("body", "content_body"): "open",
    ("open", "basic_publish"): "header",
    ("open", "channel_close"): "closed",
}


def test_each_frame_in_each_state_of_a_channel():
    for state in ("open", "header", "body", "closing", "closed"):
        each_frame_of_a_channel(state)


def each_frame_of_a_channel(state):
    """Every frame in one state of a channel."""
    broker = new_broker()
    for name in FRAMES:
        peer = channel_at(state, broker)
        session = peer.connection.session
        assert state_of(session) == state
        peer.give(named(name, 1))
        session.process_part()
        came = peer.frames()
        expected = expected_of_channel(state, name)
        codes = [each[2][0] for each in came if each[0] == CLOSED]
        if expected is None:
            assert not set(codes) & {503, 504, 505}, (name, came)
        else:
            assert (tuple([each[0] for each in came]), codes) == (expected[0], [expected[1]] if expected[1] else []), (name, came)
        if not codes:
            closed_softly = [each for each in came if each[0] == "channel_close"]
            assert state_of(session) == ("closing" if closed_softly else AFTER.get((state, name), state)), (name, came)
        assert broker.counters["internal_errors"] == 0, name
        peer.connection.finish()


def state_of(session):
    """The state of channel 1."""
    channel = session.channels.get(1)
    return "closed" if channel is None else channel.state


def raised(kind, function, *given):
    """The exception of this kind that a call raises."""
    try:
        function(*given)
    except kind as error:
        return error
    raise AssertionError("nothing was raised")


def test_each_input_has_a_row_in_each_state():
    of_connections = FROM_CLIENTS + ["on_channel", "content_header", "error", "shut", "late"]
    for table, inputs in ((CONNECTION, of_connections), (CHANNEL, FRAMES)):
        for state in {row[0] for row in table} - {"*"}:
            for name in inputs:
                assert len(states.find(table, state, name)) == 4
        raised(KeyError, states.find, table[:1], "nowhere", "nothing")


def test_what_an_action_raises_or_waits_for_leaves_the_machine_where_it_was_and_a_further_input_has_the_last_word():
    class Machine:
        state = "one"

        def fine(self):
            return None

        def wait(self):
            return False

        def fault(self):
            raise ValueError(self.state)

        def further(self):
            states.step(self, table, self, "go")
            return False

        def refuse(self, condition, input_, state):
            raise ProtocolError(condition, input_ + state)

    table = (
        ("one", "go", "two", "fine"),
        ("one", "wait", "two", "wait"),
        ("one", "fault", "two", "fault"),
        ("two", "g*", "three", "fine"),
        ("one", "further", "two", "further"),
        ("*", "bad_*", "*", "!not-allowed"),
        ("three", "*", "*", "fine"),
    )
    machine = Machine()
    assert states.step(machine, table, machine, "wait") is False and machine.state == "one"
    assert "two" in str(raised(ValueError, states.step, machine, table, machine, "fault"))
    assert machine.state == "one"
    assert states.step(machine, table, machine, "further") is False and machine.state == "three"
    assert states.step(machine, table, machine, "whatever") is None and machine.state == "three"
    assert raised(ProtocolError, states.step, machine, table, machine, "bad_thing").text == "bad_thingthree"
    assert machine.state == "three"


def test_each_action_is_there():
    for table, actions in ((CONNECTION, handshake), (CHANNEL, verbs)):
        for row in table:
            assert row[3][0] == "!" or callable(getattr(actions, row[3]))
