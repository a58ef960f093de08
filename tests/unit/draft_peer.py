"""Clients of the two drafts of 2005, written against their texts and sharing no code with core/amqp_0_9/drafts: frames, fields, contents.

peer = Peer9a5(broker); peer.say(1, ACCESS, 1, short("/data"), bits(0, 1, 1, 1, 1)); peer.heard() -> [(type, channel, payload)]
"""

import struct

from peer import new_broker

from leveret.core.amqp_0_9.drafts.family import families
from leveret.core.connection.connection import Connection

END = b"\xce"
CONNECTION, CHANNEL, ACCESS, EXCHANGE, QUEUE, BASIC, JMS, FILE, STREAM, TX, DTX, TEST = range(1, 13)


def octet(number):
    return bytes((number,))


def word(number):
    return struct.pack(">H", number)


def long(number):
    return struct.pack(">I", number)


def longlong(number):
    return struct.pack(">Q", number)


def short(text):
    octets = text.encode("utf-8")
    return octet(len(octets)) + octets


def bits(*flags):
    """Up to eight bits, from the low one."""
    return octet(sum([1 << place for place in range(len(flags)) if flags[place]]))


def flags_of(*present):
    """The property flags of up to 15 properties, from bit 15 down."""
    return word(sum([0x8000 >> place for place in range(len(present)) if present[place]]))


class DraftPeer:
    """What both share. `version`: that of its listener; `header`: the eight octets."""

    version = header = wide = None

    def __init__(self, broker=None, log_in=True):
        self.broker = broker or new_broker()
        self.connection = Connection(self.broker, "draft")
        self.connection.families = families(self.version)
        self.inbox = b""
        if log_in:
            self.give(self.header)
            self.log_in()

    def give(self, octets):
        """Send octets, as many as are taken."""
        at = 0
        while at < len(octets) and len(self.connection.writable()):
            view = self.connection.writable()
            size = min(len(view), len(octets) - at)
            view[:size] = octets[at : at + size]
            self.connection.received(size)
            at += size
            self.broker.run()
            self.take()
        return at

    def take(self):
        """Read all that waits."""
        while len(self.connection.pending()):
            view = self.connection.pending()
            self.inbox += bytes(view)
            self.connection.sent(len(view))
            self.broker.run()

    def heard(self):
        """[(type, channel, payload)] of all that came."""
        self.take()
        frames = []
        while self.inbox:
            kind, channel, lead, size = self.head()
            assert self.inbox[lead + size : lead + size + 1] == END, self.inbox
            frames.append((kind, channel, self.inbox[lead : lead + size]))
            self.inbox = self.inbox[lead + size + 1 :]
        return frames

    def say(self, channel, class_id, method_id, *fields):
        """A method."""
        self.give(self.frame(1, channel, self.ids(class_id, method_id) + b"".join(fields)))

    def heard_one(self, class_id, method_id, channel=1):
        """The arguments of the only frame that came, which has to be this method."""
        frames = self.heard()
        wanted = self.ids(class_id, method_id)
        assert len(frames) == 1 and frames[0][:2] == (1, channel) and frames[0][2][:4] == wanted, (wanted, frames)
        return frames[0][2][4:]

    def ask(self, class_id, method_id, *fields, channel=1):
        """A method, and the arguments of its answer, whose number is one higher."""
        self.say(channel, class_id, method_id, *fields)
        return self.heard_one(class_id, method_id + 1, channel)

    def content(self, channel, class_id, properties, body=b"", children=(), size=None, weight=None):
        """The frames of a content; `children`: frames of contents within it."""
        head = self.number(class_id) + self.number(len(children) if weight is None else weight)
        head += longlong(len(body) if size is None else size)
        octets = self.frame(2, channel, head + properties) + b"".join(children)
        return octets + (self.frame(3, channel, body) if body else b"")

    def pause(self):
        """The pause that an error of the negotiation is answered after passes; nothing has come before."""
        assert self.heard() == [] and not self.connection.closed
        self.broker.now += self.broker.limits.login_pause_ms
        self.connection.tick(self.broker.now)

    def closed(self, code, channel=1):
        """The only frame that came is the close of a channel, or (0) of the connection, with this reply code: (class, method)."""
        frames = self.heard()
        assert len(frames) == 1, frames
        assert frames[0][1] == channel and frames[0][2][:4] == self.ids(*((2, 4) if channel else self.closes)), frames
        payload = frames[0][2]
        assert struct.unpack_from(">H", payload, 4)[0] == code, payload
        rest = payload[7 + payload[6] :]
        return tuple(rest) if len(rest) == 2 else struct.unpack(">HH", rest)


class Peer9a5(DraftPeer):
    """AMQP/Fast 0.9a5."""

    version = "0.9a5"
    header = b"AMQP\x01\x01\x00\x09"
    closes = (1, 10)

    @staticmethod
    def frame(kind, channel, payload, extended=False):
        size = len(payload) + 1
        if extended or channel > 255 or size > 65535:
            return b"\x09\x00\x00\x00" + bytes((kind, 0)) + word(channel) + longlong(size) + payload + END
        return bytes((kind, channel)) + word(size) + payload + END

    @staticmethod
    def number(number):
        return octet(number)

    @staticmethod
    def ids(class_id, method_id):
        return bytes((class_id, method_id, 0, 0))

    def head(self):
        if self.inbox[0] == 9:
            assert self.inbox[:4] == b"\x09\x00\x00\x00" and self.inbox[5] == 0
            return self.inbox[4], struct.unpack_from(">H", self.inbox, 6)[0], 16, struct.unpack_from(">Q", self.inbox, 8)[0] - 1
        return self.inbox[0], self.inbox[1], 4, struct.unpack_from(">H", self.inbox, 2)[0] - 1

    def log_in(self, frame_max=0):
        self.started = self.heard_one(1, 1, 0)
        assert self.ask(1, 2, short("PLAIN"), short("en_US"), channel=0) == word(0)
        self.say(0, 1, 4, word(12) + b"\x00guest\x00guest")
        self.tuned = self.heard_one(1, 5, 0)
        self.say(0, 1, 6, long(frame_max), word(0), word(0), word(0), bits(1, 0, 0), long(0))
        self.opened = self.ask(1, 7, short("/"), short("me"), channel=0)
        self.open(1)

    def open(self, channel, mode=1, prefetch=0):
        """A channel, with a ticket that has all rights."""
        assert self.ask(2, 1, long(prefetch), short(""), octet(mode), channel=channel) == b""
        self.ticket = self.ask(3, 1, short("/data"), bits(0, 1, 1, 1, 1), channel=channel)

    def queue(self, name="q", namespace="", exchange="amq.direct", destination="k"):
        """A queue that is registered for a destination."""
        self.ask(5, 1, self.ticket, short(namespace), short(name), short(""), bits(0, 0, 0, 0))
        pairs = short("destination") + b"S" + short(destination)
        self.ask(5, 3, self.ticket, short(namespace), short(name), short(exchange), long(len(pairs)) + pairs)
        return self

    def publish(self, body, destination="k", exchange="amq.direct", flags=b"\x20\x00", properties=None, children=(), channel=1):
        """jms.publish."""
        self.say(channel, 7, 5, self.ticket, short(exchange), bits(0))
        given = flags + (short(destination) if properties is None else properties)
        return self.give(self.content(channel, 7, given, body, children))


class Peer9r1(DraftPeer):
    """AMQP 0.9 revision 1."""

    version = "0.9r1"
    header = b"AMQP\x01\x01\x09\x01"
    closes = (1, 9)

    @staticmethod
    def frame(kind, channel, payload, cycle=0):
        return bytes((kind, cycle)) + word(channel) + long(len(payload)) + payload + END

    @staticmethod
    def number(number):
        return word(number)

    @staticmethod
    def ids(class_id, method_id):
        return word(class_id) + word(method_id)

    def head(self):
        assert self.inbox[1] == 0
        return self.inbox[0], struct.unpack_from(">H", self.inbox, 2)[0], 8, struct.unpack_from(">I", self.inbox, 4)[0]

    def log_in(self, frame_max=0):
        self.started = self.heard_one(1, 1, 0)
        self.say(0, 1, 2, long(0), short("PLAIN"), long(12) + b"\x00guest\x00guest", short("en_US"))
        self.tuned = self.heard_one(1, 5, 0)
        self.say(0, 1, 6, word(0), long(frame_max), word(0))
        self.opened = self.ask(1, 7, short("/"), short("context"), channel=0)
        self.open(1)

    def open(self, channel, prefetch=0):
        """A channel, with a ticket that has all rights."""
        assert self.ask(2, 1, long(prefetch), short(""), channel=channel) == b""
        self.ticket = self.ask(3, 1, short("/data"), bits(0, 1, 1, 1, 1), channel=channel)

    def queue(self, name="q", exchange="amq.direct", key="k"):
        """A queue that is bound."""
        self.ask(5, 1, self.ticket, short(name), bits(0, 0, 0, 0))
        self.ask(5, 3, self.ticket, short(name), short(exchange), short(key), long(0))
        return self

    def publish(self, body, key="k", exchange="amq.direct", class_id=7, mandatory=0, properties=b"\x00\x00", children=(), channel=1):
        """basic.publish or jms.publish."""
        self.say(channel, class_id, 5, self.ticket, short(exchange), short(key), bits(mandatory, 0))
        return self.give(self.content(channel, class_id, properties, body, children))
