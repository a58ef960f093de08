"""A scripted AMQP 0-10 client for the unit tests: it drives a Connection through the endpoint contract alone, with whole frames."""

import peer_1_0
from peer import new_broker  # noqa: F401 - for those who import the peer

from leveret.core.amqp_0_10 import frame, properties, structs
from leveret.core.amqp_0_10.spec_0_10 import HEADER


def control(title, number=0, **given):
    """A control's frame."""
    return frame.write(frame.WHOLE, frame.CONTROL, number, structs.write_control(title, given))


def command(title, number=0, sync=False, **given):
    """The frame of a command without content."""
    return frame.write(frame.WHOLE, frame.COMMAND, number, structs.write_command(title, given, sync))


def transfer(body, number=0, destination="", key="", delivery=None, header=None, **given):
    """The frames of message.transfer: three, or two without a body. `header`: fields of message-properties."""
    fields = {"destination": destination, "accept_mode": 1, "acquire_mode": 0}
    fields.update(given)
    says = {"routing_key": key}
    says.update(delivery or {})
    octets = structs.write(properties.DELIVERY, says)
    if header is not None:
        octets += structs.write(properties.MESSAGE, header)
    parts = [
        frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, number, structs.write_command("message_transfer", fields), 65535),
        frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, number, octets, 65535),
    ]
    if body:
        parts.append(frame.segment(frame.LAST_SEGMENT, frame.BODY, number, body, 1024))
    return b"".join(parts)


class Peer(peer_1_0.Peer):
    """One connection to `broker`. `step`: the most octets that one `received` gets (0: as many as fit)."""

    def __init__(self, broker, step=0, opens=True, attaches=True, name=b"unit", **given):
        peer_1_0.Peer.__init__(self, broker, step, False)
        self.segments = {}
        if opens:
            self.log_in()
            fields = {"channel_max": self.tuned["channel_max"], "max_frame_size": self.tuned["max_frame_size"], "heartbeat": 0}
            fields.update(given)
            self.give(control("connection_tune_ok", **fields))
            self.give(control("connection_open", virtual_host="/"))
            self.expect("connection_open_ok")
            if attaches:
                self.attach(name)

    def log_in(self, response=b"\x00guest\x00guest"):
        """The header, and PLAIN."""
        self.give(HEADER)
        assert self.take(8) == HEADER
        self.started = self.expect("connection_start")
        self.give(control("connection_start_ok", mechanism="PLAIN", response=response, locale="en_US"))
        self.tuned = self.expect("connection_tune")

    def attach(self, name=b"unit", number=0):
        """A session, whose commands begin at 0."""
        self.give(control("session_attach", number, name=name))
        assert self.expect("session_attached") == {"name": name}
        self.give(control("session_command_point", number, command_id=0, command_offset=0))
        self.ids = 0

    def do(self, title, number=0, **given):
        """A command: its id."""
        self.give(command(title, number, **given))
        self.ids += 1
        return self.ids - 1

    def publish(self, body, key="q", number=0, **given):
        """A transfer: its id."""
        self.give(transfer(body, number, key=key, **given))
        self.ids += 1
        return self.ids - 1

    def subscribe(self, queue="q", destination="d", messages=10, octets=0xFFFFFFFF, accept=1, **given):
        """A subscription with credit. `accept`: 1 none, 0 explicit."""
        self.do("message_subscribe", queue=queue, destination=destination, accept_mode=accept, acquire_mode=0, **given)
        self.do("message_flow", destination=destination, unit=0, value=messages)
        self.do("message_flow", destination=destination, unit=1, value=octets)

    def all(self):
        """[(name, fields, header octets, body, channel)] of all that has come, whole."""
        self.collect()
        found = []
        while True:
            head = frame.read(self.inbox, 0, len(self.inbox), 65535)
            if head is None:
                return found
            flags, type_, _, number, at, end = head
            payload, self.inbox = self.inbox[at:end], self.inbox[end:]
            if type_ == frame.CONTROL:
                found.append(structs.control(payload) + (b"", b"", number))
                continue
            parts = self.segments.setdefault(number, {frame.COMMAND: b"", frame.HEADER: b"", frame.BODY: b""})
            parts[type_] += payload
            if flags & frame.LAST_SEGMENT and flags & frame.LAST_FRAME:
                name, fields, _ = structs.command(parts[frame.COMMAND])
                found.append((name, fields, parts[frame.HEADER], parts[frame.BODY], number))
                del self.segments[number]

    def expect(self, name):
        """The fields of the next control or command, which has this name; those behind it stay."""
        self.collect()
        head = frame.read(self.inbox, 0, len(self.inbox), 65535)
        assert head is not None, "no %s has come" % name
        _, type_, _, _, at, end = head
        found, fields = (structs.control if type_ == frame.CONTROL else structs.command)(self.inbox[at:end])[:2]
        assert found == name, (found, fields)
        self.inbox = self.inbox[end:]
        return fields

    def completed(self):
        """The last set of completed commands that has come; other frames are dropped."""
        sets = [fields["commands"] for name, fields, _, _, _ in self.all() if name == "session_completed"]
        return sets[-1] if sets else None

    def transfers(self):
        """[(header by struct, body)] of the deliveries that have come; other frames are dropped."""
        return [(properties.facts(header, 0, len(header)), body) for name, _, header, body, _ in self.all() if name == "message_transfer"]
