"""What the AMQP 0-10 client does with each control of a peer (AMQP 0-10 sections 7 and 9), octet by octet and without a broker."""

from leveret.core.amqp_0_10 import frame, structs
from leveret.core.amqp_0_10.client.client import HEADER, Client
from leveret.core.amqp_0_10.client.events import Events

WHOLE = frame.FIRST_SEGMENT | frame.LAST_SEGMENT


class Ear(Events):
    """Notes what it hears."""

    def __init__(self):
        self.heard = []

    def opened(self):
        self.heard.append("opened")

    def command(self, name, fields):
        self.heard.append(name)

    def content(self, name, fields, header):
        self.heard.append((name, header))

    def body(self, octets, is_last):
        self.heard.append((octets, is_last))

    def completed(self, id_):
        self.heard.append(id_)

    def room(self):
        pass

    def ended(self, code, text):
        self.heard.append((code, text))


def give(client, octets):
    """Octets of the peer's."""
    client.writable()[: len(octets)] = octets
    client.received(len(octets))


def control(title, channel=0, **fields):
    return frame.segment(WHOLE, frame.CONTROL, channel, structs.write_control(title, fields), 65535)


def said(client):
    """[(control, fields)] that the client has sent, or the octets of what is none."""
    octets = b""
    while len(client.pending()):
        part = bytes(client.pending())
        octets += part
        client.sent(len(part))
    told, at = [], 0
    if octets[:8] == HEADER:
        told, at = ["header"], 8
    while at < len(octets):
        _, type_, _, _, begin, at = frame.read(octets, at, len(octets), 65535)
        told.append(structs.control(octets[begin:at]) if type_ == frame.CONTROL else octets[begin:at])
    return told


def client_in(state, **given):
    """A client in a state, to which nothing more is to be sent."""
    client = Client(Ear(), **given)
    steps = (
        ("starting", HEADER),
        ("tuning", control("connection_start", mechanisms=["PLAIN", "EXTERNAL"], locales=["en_US"])),
        ("opening", control("connection_tune", channel_max=9, max_frame_size=4096, heartbeat_min=0, heartbeat_max=120)),
        ("attaching", control("connection_open_ok")),
        ("open", control("session_attached", name=b"leveret") + control("session_command_point", command_id=7, command_offset=0)),
    )
    for name, octets in steps:
        if client.state == state:
            break
        give(client, octets)
        assert client.state == name
    said(client)
    client.events.heard.clear()
    return client


def fields_of(told, name):
    """The fields of the one control of a name."""
    (fields,) = [each[1] for each in told if each[0] == name]
    return fields


def test_each_step_of_a_log_in():
    client = Client(Ear())
    assert said(client) == ["header"]
    give(client, HEADER)
    assert said(client) == [] and client.state == "starting"
    give(client, control("connection_start", mechanisms=["PLAIN"], locales=["en_US"]))
    fields = fields_of(said(client), "connection_start_ok")
    assert (fields["mechanism"], fields["response"], fields["locale"]) == ("PLAIN", b"\0guest\0guest", "en_US")
    assert fields["client_properties"]["product"] == "Leveret"
    give(client, control("connection_tune", channel_max=9, max_frame_size=4096, heartbeat_min=0, heartbeat_max=120))
    told = said(client)
    fields = fields_of(told, "connection_tune_ok")
    assert (fields["channel_max"], fields["max_frame_size"], fields["heartbeat"]) == (9, 4096, 30)
    assert fields_of(told, "connection_open")["virtual_host"] == "/" and client.frame_max == 4096
    give(client, control("connection_open_ok"))
    fields = fields_of(said(client), "session_attach")
    assert fields["name"] == b"leveret" and fields["force"]
    give(client, control("session_attached", name=b"leveret"))
    assert fields_of(said(client), "session_command_point")["command_id"] == 0 and client.events.heard == ["opened"]


def test_the_heartbeat_lies_between_the_brokers_bounds_and_a_frame_is_never_larger_than_ours():
    for wanted, least, most, beat in ((30, 0, 120, 30), (30, 40, 120, 40), (30, 0, 10, 10), (30, 0, 0, 0), (30, 60, 50, 50)):
        client = client_in("tuning", heartbeat_s=wanted)
        give(client, control("connection_tune", channel_max=9, max_frame_size=0, heartbeat_min=least, heartbeat_max=most))
        fields = fields_of(said(client), "connection_tune_ok")
        assert fields["heartbeat"] == beat and client.beat_ms == 1000 * beat and fields["max_frame_size"] == client.frame_max == 65535


def test_a_mechanism_that_the_broker_lacks_is_named_with_those_that_it_has():
    for offered, text in ((["EXTERNAL", "X"], "EXTERNAL X"), ([], "")):
        client = client_in("starting")
        give(client, control("connection_start", mechanisms=offered, locales=["en_US"]))
        assert client.closed and client.events.heard == [(320, "the broker offers no PLAIN log-in but " + text)]


def test_a_control_that_comes_at_the_wrong_time_ends_it():
    client = client_in("tuning")
    give(client, control("connection_open_ok"))
    assert client.events.heard == [(0, "command-invalid: connection_open_ok in the state tuning")]
    assert client.closed and len(client.writable()) == 0


def test_a_frame_of_another_channel_ends_it():
    client = client_in("open")
    give(client, control("session_flush", 3))
    ((code, text),) = client.events.heard
    assert code == 0 and text.endswith("a frame on channel 3, where no session is")


def test_a_control_in_several_frames_is_one():
    client = client_in("open")
    octets = structs.write_control("connection_close", {"reply_code": 501, "reply_text": "why not"})
    give(client, frame.write(WHOLE | frame.FIRST_FRAME, frame.CONTROL, 0, octets[:5]))
    assert not client.closed
    give(client, frame.write(WHOLE | frame.LAST_FRAME, frame.CONTROL, 0, octets[5:]))
    assert client.events.heard == [(501, "why not")] and [each[0] for each in said(client)] == ["connection_close_ok"]


def test_a_close_of_the_brokers_without_fault_has_no_code():
    client = client_in("open")
    give(client, control("connection_close", reply_code=200, reply_text="bye"))
    assert client.events.heard == [(0, "bye")]


def test_a_session_that_the_broker_detaches_is_the_end():
    client = client_in("open")
    give(client, control("session_detach", name=b"leveret"))
    assert client.events.heard == [(0, "the broker has detached the session")]
    assert fields_of(said(client), "session_detached")["name"] == b"leveret"
    for state in ("attaching", "open"):
        client = client_in(state)
        give(client, control("session_detached", name=b"leveret", code=4))
        assert client.events.heard == [(0, "the broker has detached the session (code 4)")]


def test_completions_are_told_once_and_answered_when_the_broker_asks():
    client = client_in("open")
    first = client.command("message_flush", {"destination": "d"}, tell=True)
    second = client.command("message_flush", {"destination": "d"}, tell=True)
    client.command("message_flush", {"destination": "d"})
    said(client)
    give(client, control("session_completed", commands=[(first, first)], timely_reply=False))
    assert client.events.heard == [first] and said(client) == []
    give(client, control("session_completed", commands=[(first, second)], timely_reply=True))
    assert client.events.heard == [first, second] and second == first + 1
    assert fields_of(said(client), "session_known_completed")["commands"] == [(first, second)]


def command(title, **fields):
    return frame.segment(WHOLE, frame.COMMAND, 0, structs.write_command(title, fields), 65535)


def test_commands_are_numbered_from_the_point_and_their_completion_is_said():
    client = client_in("open")
    give(client, command("execution_sync") + command("execution_sync"))
    assert client.events.heard == ["execution_sync"] * 2 and client.expected == 9
    fields = fields_of(said(client), "session_completed")
    assert fields["commands"] == [(7, 8)] and fields["timely_reply"]
    give(client, control("session_flush", completed=True))
    assert fields_of(said(client), "session_completed")["commands"] == [(7, 8)]
    give(client, control("session_known_completed", commands=[(7, 8)]))
    give(client, control("session_flush", completed=True))
    assert fields_of(said(client), "session_completed")["commands"] == []


def test_a_command_before_its_point_ends_it():
    client = client_in("attaching")
    give(client, control("session_attached", name=b"leveret"))
    give(client, command("execution_sync"))
    code, text = client.events.heard[-1]
    assert client.closed and code == 0 and text.endswith("a command before session.command-point")


def test_contents_come_with_their_header_in_pieces():
    client = client_in("open")
    fields = structs.write_command("message_transfer", {"destination": "d"})
    octets = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, fields, 65535)
    octets += frame.segment(0, frame.HEADER, 0, b"\0\0\0\x04\x04\x01\0\0", 65535)
    octets += frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, b"abcde", 12 + 3)
    for at in range(len(octets)):
        give(client, octets[at : at + 1])
    name, header = client.events.heard[0]
    assert name == "message_transfer" and header == b"\0\0\0\x04\x04\x01\0\0"
    bodies = client.events.heard[1:]
    assert b"".join([part for part, _ in bodies]) == b"abcde" and [last for _, last in bodies] == [False] * (len(bodies) - 1) + [True]
    assert len(bodies) > 1 and client.expected == 8


def test_silence_is_the_end_after_two_beats_and_ours_are_one_apart():
    client = client_in("open", heartbeat_s=2)
    client.tick(1000)
    client.tick(2999)
    assert said(client) == []
    client.tick(3000)
    assert [each[0] for each in said(client)] == ["connection_heartbeat"]
    give(client, control("connection_heartbeat"))
    client.tick(4000)
    client.tick(8000)
    assert not client.closed
    client.tick(8001)
    assert client.closed and client.events.heard == [(0, "nothing from the broker for 4000 ms")]
    client.tick(9000)
    assert len(client.events.heard) == 1


def test_the_end_of_the_stream():
    for state, text in (
        ("start", "no AMQP 0-10 broker answers"),
        ("starting", "the peer closed the stream"),
        ("open", "the peer closed the stream"),
    ):
        client = Client(Ear()) if state == "start" else client_in(state)
        client.received(0)
        assert client.events.heard == [(0, text)] and client.closed
        client.received(0)
        client.received(5)
        assert len(client.events.heard) == 1


def test_a_client_that_leaves_asks_for_a_session_without_a_rest():
    client = client_in("open")
    client.close()
    told = said(client)
    assert [each[0] for each in told] == ["connection_close"] and fields_of(told, "connection_close")["reply_code"] == 200
    give(client, control("connection_close_ok"))
    assert client.events.heard == [(0, "closed")]
    client = client_in("tuning")
    client.close()
    assert client.events.heard == [(0, "closed")] and said(client) == []


def test_room_is_what_the_send_size_leaves():
    client = client_in("open", send_size=1000)
    assert client.room() == 1000
    client.put(b"x" * 300)
    assert client.room() == 700
    client.sent(100)
    assert client.room() == 800 and len(client.pending()) == 200
