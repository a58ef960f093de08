"""A scripted AMQP 1.0 client for the unit tests: it drives a Connection through the endpoint contract alone, with whole frames."""

from peer import new_broker  # noqa: F401 - for those who import the peer

from leveret.core.amqp_1_0 import composites, frame, types
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.connection.connection import Connection

OPEN = {"container-id": "unit"}
BEGIN = {"next-outgoing-id": 0, "incoming-window": 100, "outgoing-window": 100}


def performative(title, number=0, octets=b"", **given):
    """A frame of type AMQP on a channel; names of fields with _ in the place of -."""
    fields = {key.replace("_", "-"): given[key] for key in given}
    return frame.write(frame.AMQP, number, composites.write(title, fields) + octets)


def sasl(title, **given):
    """A SASL frame."""
    fields = {key.replace("_", "-"): given[key] for key in given}
    return frame.write(frame.SASL, 0, composites.write(title, fields))


def data(body, header=None):
    """A message of one data section."""
    octets = b"" if header is None else composites.write("header", header)
    return octets + b"\x00\x53\x75" + types.encode(body)


def body_of(octets):
    """The octets of the data sections of a message."""
    at, body = 0, b""
    while at < len(octets):
        value, at = types.decode(octets, at, len(octets))
        if value[1] == ("ulong", 0x75):
            body += value[2]
    return body


class Peer:
    """One connection to `broker`. `step`: the most octets that one `received` gets (0: as many as fit)."""

    def __init__(self, broker, step=0, opens=True, begins=True, container="unit", **given):
        self.broker = broker
        self.connection = Connection(broker, "unit", True)
        self.step = step
        self.inbox = b""
        if opens:
            self.log_in()
            self.give(performative("open", container_id=container, **given))
            self.opened = self.expect("open")[1]
            if begins:
                self.begin()

    def log_in(self, response=b"\x00guest\x00guest"):
        """The SASL layer, and the header of AMQP behind it."""
        self.give(HEADER_SASL)
        assert self.take(8) == HEADER_SASL
        self.expect("sasl-mechanisms")
        self.give(sasl("sasl-init", mechanism="PLAIN", initial_response=response))
        assert self.expect("sasl-outcome")[1]["code"] == 0
        self.give(HEADER_AMQP)
        assert self.take(8) == HEADER_AMQP

    def begin(self, channel=0, **given):
        """A session: the fields of the broker's begin."""
        fields = {"next_outgoing_id": 0, "incoming_window": 100, "outgoing_window": 100}
        fields.update(given)
        self.give(performative("begin", channel, **fields))
        return self.expect("begin")[1]

    def attach(self, name, handle, role, address, channel=0, **given):
        """A link (role false: we send): the fields of the broker's attach."""
        fields = {"source": ("source", {}), "target": ("target", {})}
        fields["source" if role else "target"][1]["address"] = address
        if not role:
            fields["initial_delivery_count"] = 0
        fields.update(given)
        self.give(performative("attach", channel, name=name, handle=handle, role=role, **fields))
        return self.expect("attach")[1]

    def sender(self, address="/queues/q", name="out", handle=0, **given):
        """A link on which we send: its credit."""
        self.attach(name, handle, False, address, **given)
        return self.expect("flow")[1]["link-credit"]

    def receiver(self, address="/queues/q", name="in", handle=1, credit=10, **given):
        """A link on which the broker sends."""
        self.attach(name, handle, True, address, **given)
        if credit:
            self.credit(credit, handle)

    def credit(self, credit, handle=1, channel=0, **given):
        """A flow of a receiver."""
        fields = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 0, "outgoing_window": 100, "delivery_count": 0}
        fields.update(given)
        self.give(performative("flow", channel, handle=handle, link_credit=credit, **fields))

    def send(self, number, body, handle=0, channel=0, header=None, **given):
        """One message in one transfer."""
        fields = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
        fields.update(given)
        self.give(performative("transfer", channel, data(body, header), handle=handle, **fields))

    def settle(self, first, state, last=None, settled=True, channel=0):
        """A disposition of a receiver."""
        self.give(performative("disposition", channel, role=True, first=first, last=last, settled=settled, state=state))

    def give(self, octets):
        """Send octets; returns how many were taken before the broker stopped reading."""
        at = 0
        while at < len(octets) and not self.connection.closed:
            view = self.connection.writable()
            size = min(len(view), len(octets) - at, self.step or len(octets))
            if size == 0:
                self.broker.run()
                if not len(self.connection.writable()):
                    break
                continue
            view[:size] = octets[at : at + size]
            self.connection.received(size)
            at += size
            self.broker.run()
        return at

    def collect(self):
        """Read what has come."""
        self.broker.run()
        while len(self.connection.pending()):
            view = self.connection.pending()
            self.inbox += bytes(view)
            self.connection.sent(len(view))
            self.broker.run()

    def take(self, size):
        """The next octets, bytes."""
        self.collect()
        octets, self.inbox = self.inbox[:size], self.inbox[size:]
        return octets

    def frames(self):
        """[(name, fields, payload, channel)] of the frames that have come; an empty one is ("", {}, b"", 0)."""
        self.collect()
        found = []
        while True:
            header = frame.read(self.inbox, 0, len(self.inbox), 1 << 30)
            if header is None:
                return found
            _, channel, at, end = header
            if at == end:
                found.append(("", {}, b"", 0))
            else:
                name, fields, at = composites.read(self.inbox, at, end)
                found.append((name, fields, self.inbox[at:end], channel))
            self.inbox = self.inbox[end:]

    def expect(self, name):
        """The next frame, which has this name; those behind it stay."""
        self.collect()
        header = frame.read(self.inbox, 0, len(self.inbox), 1 << 30)
        assert header is not None, "no %s has come" % name
        _, channel, at, end = header
        found, fields, at = composites.read(self.inbox, at, end)
        assert found == name, (found, fields)
        payload, self.inbox = self.inbox[at:end], self.inbox[end:]
        return found, fields, payload, channel

    def messages(self):
        """[(delivery-id, body)] of the deliveries that have come, each whole; other frames are dropped."""
        found: list = []
        for name, fields, payload, _ in self.frames():
            if name == "transfer":
                if fields["delivery-id"] is None:
                    found[-1][1] += payload
                else:
                    found.append([fields["delivery-id"], payload])
        return [(number, body_of(octets)) for number, octets in found]


def declare(broker, name="q", arguments=None, durable=True):
    """A queue, made on behalf of nobody."""
    from leveret.core.outcomes import nobody

    return broker.topology.declare_queue(nobody, name, False, durable, False, False, arguments or {})


def ways(octets):
    """The same octets as lists of pieces: whole, one by one, and in two at every place."""
    yield [octets]
    yield [octets[at : at + 1] for at in range(len(octets))]
    for at in range(1, len(octets)):
        yield [octets[:at], octets[at:]]


def answers(octets, make=None, **given):
    """What comes back for octets, which is the same in all their ways: [(name, fields, payload, channel)], and the last peer. `make`: a
    function that gives a peer; else one that has logged in."""
    first = peer = None
    for pieces in ways(octets):
        peer = make() if make is not None else Peer(new_broker(), **given)
        for piece in pieces:
            peer.give(piece)
        found = peer.frames()
        assert peer.broker.counters["internal_errors"] == 0
        if first is None:
            first = found
        assert one_by_one(found) == one_by_one(first), (pieces[0], found, first)
    return first, peer


def one_by_one(frames):
    """Frames with a disposition for each delivery: how many deliveries one is about depends on how much came at a time."""
    found = []
    for name, fields, octets, channel in frames:
        if name != "disposition":
            found.append((name, fields, octets, channel))
            continue
        for number in range(fields["first"], (fields["first"] if fields["last"] is None else fields["last"]) + 1):
            found.append((name, dict(fields, first=number, last=None), octets, channel))
    return found


def error_in(frames, name):
    """(condition, description) of the error of the only frame with this name."""
    ((_, fields, _, _),) = [each for each in frames if each[0] == name]
    error = fields["error"]
    return error and (error["condition"], error["description"])
