"""A scripted client for the unit tests: it drives a Connection through the endpoint contract alone, with whole frames."""

from leveret.core.amqp_0_9 import frame, method, properties
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER, METHODS
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits


def new_broker(**overrides):
    """A broker with a board's limits but places for more connections, changed by name."""
    values = dict(BOARD)
    values.update(connection_count_max=16, stranger_share_max=100)
    values.update(overrides)
    return Broker(Limits(**values), b"unit")


def encoded(name, channel, *arguments):
    """A method frame."""
    return method.encode(method.named(METHODS, name), channel, arguments)


def content(channel, exchange, key, body, given=None, mandatory=False, frame_size_max=4096):
    """basic.publish, header and body frames."""
    octets = encoded("basic_publish", channel, 0, exchange, key, mandatory, False)
    octets += frame.content_header(channel, len(body), properties.encode(given or {}))
    size = frame_size_max - 8
    for at in range(0, len(body), size):
        octets += frame.encode(frame.BODY, channel, body[at : at + size])
    return octets


class Peer:
    """One connection to `broker`. `step`: the most octets that one `received` gets (0: as many as fit)."""

    def __init__(self, broker, step=0, log_in=True, capabilities=None):
        self.broker = broker
        self.connection = Connection(broker, "unit", True)
        self.step = step
        self.inbox = b""
        if log_in:
            self.log_in(capabilities or {})

    def log_in(self, capabilities):
        """The whole handshake, and channel 1."""
        self.give(HEADER)
        self.expect("connection_start")
        self.give(encoded("connection_start_ok", 0, {"capabilities": capabilities}, "PLAIN", b"\x00guest\x00guest", "en_US"))
        self.expect("connection_tune")
        self.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
        self.expect("connection_open_ok")
        self.ask("channel_open", "channel_open_ok", "")

    def give(self, octets):
        """Send octets; returns how many were taken before the broker stopped reading."""
        at = 0
        while at < len(octets) and not self.connection.closed:
            view = self.connection.writable()
            size = min(len(view), len(octets) - at, self.step or len(octets))
            if size == 0:
                self.broker.run()
                self.take()
                if len(self.connection.writable()) == 0:
                    break
                continue
            target = view[0:size]
            target[:] = octets[at : at + size]
            self.connection.received(size)
            at += size
        self.broker.run()
        return at

    def take(self, most=1 << 30):
        """Read up to `most` octets that wait, letting the broker go on between."""
        while most > 0:
            view = self.connection.pending()
            size = min(len(view), most)
            if size == 0:
                return
            self.inbox += bytes(view[:size])
            most -= size
            self.connection.sent(size)
            self.broker.run()

    def frames(self):
        """All whole frames that came: (name, channel, arguments), ("header", channel, (size, properties)), ("body", channel, octets)."""
        self.take()
        frames, self.inbox = split(self.inbox)
        return frames

    def expect(self, name):
        """The arguments of the only frame that came, which must be this method."""
        found = self.frames()
        assert len(found) == 1 and found[0][0] == name, (name, found)
        return found[0][2]

    def ask(self, request, reply, *arguments, channel=1):
        """A method on a channel and the arguments of its reply."""
        self.give(encoded(request, channel, *arguments))
        return self.expect(reply)

    def declare(self, name, durable=False, exclusive=False, auto_delete=False, arguments=None, channel=1):
        """queue.declare: (name, messages, consumers)."""
        return self.ask(
            "queue_declare", "queue_declare_ok", 0, name, False, durable, exclusive, auto_delete, False, arguments or {}, channel=channel
        )

    def declare_delaying(self, name):
        """A durable exchange of type x-delayed-message that routes as a fanout."""
        self.ask(
            "exchange_declare",
            "exchange_declare_ok",
            0,
            name,
            "x-delayed-message",
            *(False, True, False, False, False),
            {"x-delayed-type": "fanout"},
        )

    def consume(self, name, tag="c", no_ack=False, arguments=None, channel=1):
        """basic.consume; deliveries that follow at once stay for `contents`."""
        self.give(encoded("basic_consume", channel, 0, name, tag, False, no_ack, False, False, arguments or {}))
        found = self.frames()
        assert found[0][0] == "basic_consume_ok", found
        return assemble(found[1:])

    def contents(self):
        """The deliveries, returns and get-oks that came: [(method, arguments, properties, body)]."""
        return assemble(self.frames())

    def publish(self, key, body, exchange="", given=None, mandatory=False, channel=1):
        """basic.publish; how many octets of it the broker took."""
        return self.give(content(channel, exchange, key, body, given, mandatory))


class Patient(Peer):
    """A peer that lets the broker go on until a write that was begun has ended."""

    def give(self, octets):
        taken = Peer.give(self, octets)
        for _ in range(3):
            self.broker.run()
        return taken


def decoded(octets):
    """One whole frame."""
    channel = octets[1] << 8 | octets[2]
    if octets[0] == frame.METHOD:
        row = method.find(METHODS, int.from_bytes(octets[7:11], "big"))
        return row[method.NAME], channel, method.decode(row, octets, 11, len(octets) - 1)
    if octets[0] == frame.HEADER:
        return "header", channel, (int.from_bytes(octets[11:19], "big"), properties.decode(octets, 19, len(octets) - 1))
    if octets[0] == frame.BODY:
        return "body", channel, octets[7:-1]
    return "heartbeat", channel, ()


def split(octets):
    """(the whole frames at the front of `octets`, as `decoded` has them; the octets behind them)."""
    frames = []
    while len(octets) >= 7:
        size = int.from_bytes(octets[3:7], "big") + 8
        if len(octets) < size:
            break
        frames.append(decoded(octets[:size]))
        octets = octets[size:]
    return frames, octets


def assemble(found):
    """Frames of contents, none of them interleaved, put together."""
    whole = []
    at = 0
    while at < len(found):
        name, channel, arguments = found[at]
        assert found[at + 1][:2] == ("header", channel), found[at:]
        size, given = found[at + 1][2]
        at += 2
        body = b""
        while len(body) < size:
            assert found[at][:2] == ("body", channel), found[at]
            body += found[at][2]
            at += 1
        whole.append((name, arguments, given, body))
    return whole


def taken(peer, queue):
    """What basic.get takes out of a queue until it is empty: (properties, body) of each."""
    found = []
    while True:
        peer.give(encoded("basic_get", 1, 0, queue, True))
        frames = peer.frames()
        if frames[0][0] == "basic_get_empty":
            return found
        found.append(assemble(frames)[0][2:])


def idle(broker):
    """The pools of a broker that holds nothing: blocks, messages, entries, channels, consumers left."""
    tables = broker.tables
    return [tables.state[2], tables.state[5], tables.state[8], tables.channel_pool[2], tables.consumer_pool[2]]
