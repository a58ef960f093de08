"""What a broker answers to random input, from a seed: `micropython same_bytes.py SEED STEPS` prints digests of all octets it sent and of
all its flat memory, one line each ten steps. Two builds of the same core print the same lines, or one of them is wrong.

Input: publishes of all sizes, in pieces and in several body frames, plain and with headers, some of them damaged; to a queue, a fanout and
a topic exchange; acknowledgements single, multiple, negative; basic.get; confirms. A connection that the broker closes is made anew.
"""

import hashlib
import struct
import sys

from board_load import OPENING, method_frame, short

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.memory import layout

KEYS = (b"", b"one", b"two", b"a.b.c", b"nothing")
EXCHANGES = (b"", b"", b"", b"amq.fanout", b"amq.topic")


class Chance:
    """Numbers below 2^15 from a seed, the same on every interpreter."""

    def __init__(self, seed):
        self.state = seed

    def below(self, count):
        self.state = (self.state * 75 + 74) % 65537
        return (self.state >> 1) % count


def declare(peer, feed):
    for name in (b"one", b"two", b"three"):
        feed(peer, method_frame(1, 50, 10, b"\x00\x00" + short(name) + b"\x00\x00\x00\x00\x00"))
        feed(peer, method_frame(1, 50, 20, b"\x00\x00" + short(name) + short(b"amq.fanout") + b"\x00\x00\x00\x00\x00\x00"))
    feed(peer, method_frame(1, 50, 20, b"\x00\x00" + short(b"two") + short(b"amq.topic") + short(b"a.#") + b"\x00\x00\x00\x00\x00"))
    feed(peer, method_frame(1, 60, 20, b"\x00\x00" + short(b"one") + short(b"c1") + b"\x00\x00\x00\x00\x00"))
    feed(peer, method_frame(1, 60, 20, b"\x00\x00" + short(b"two") + short(b"c2") + b"\x02\x00\x00\x00\x00"))
    feed(peer, method_frame(1, 85, 10, b"\x00"))


class Run:
    """One broker with two connections and the digest of what it has said."""

    def __init__(self, seed):
        self.chance = Chance(seed)
        self.said = hashlib.sha256()
        limits = dict(BOARD)
        limits["arena_size"] = 16384
        limits["content_size_max"] = 2048
        self.broker = Broker(Limits(**limits), b"same")
        self.peers = [None, None]
        self.taken = 0

    def feed(self, number, octets):
        """Give octets in pieces of random sizes; what is not read is kept from the broker (and told apart by the digest)."""
        connection = self.peers[number]
        at = 0
        while at < len(octets) and not connection.closed:
            view = connection.writable()
            size = min(len(view), len(octets) - at, 1 + self.chance.below(300))
            if size == 0:
                self.said.update(b"slowed")
                self.turn()
                if len(connection.writable()) == 0:
                    self.peers[number] = None
                    connection.received(0)
                    return
                continue
            for index in range(size):
                view[index] = octets[at + index]
            connection.received(size)
            at += size
        self.turn()

    def turn(self):
        self.broker.run()
        for connection in self.peers:
            while connection is not None and len(connection.pending()):
                size = min(len(connection.pending()), 1 + self.chance.below(2000))
                self.said.update(bytes(connection.pending()[:size]))
                self.taken += size
                connection.sent(size)
                self.broker.run()

    def is_open(self, connection):
        """True when channel 1 takes methods."""
        channel = connection.session.channels.get(1)
        return channel is not None and not channel.closing

    def connected(self, number):
        connection = self.peers[number]
        if connection is None or connection.closed or connection.ending or not self.is_open(connection):
            if connection is not None and not connection.closed:
                connection.received(0)
            self.peers[number] = Connection(self.broker, "peer", True)
            for octets in OPENING:
                self.feed(number, octets)
            declare(number, self.feed)

    def step(self):
        chance = self.chance
        number = chance.below(2)
        self.connected(number)
        kind = chance.below(16)
        if 7 <= kind < 13 and self.tag(number) == 99999 and chance.below(8):
            kind = 0
        if kind < 7:
            self.feed(number, self.publish())
        elif kind < 12:
            self.feed(number, method_frame(1, 60, 80, struct.pack(">IIB", 0, self.tag(number), chance.below(2))))
        elif kind == 12:
            self.feed(number, method_frame(1, 60, 120, struct.pack(">IIB", 0, self.tag(number), chance.below(4))))
        elif kind == 13:
            self.feed(number, method_frame(1, 60, 70, b"\x00\x00" + short(b"three") + b"\x01"))
        else:
            self.feed(number, method_frame(1, 50, 30, b"\x00\x00" + short(b"three") + b"\x00"))

    def tag(self, number):
        """A delivery tag of one of the first unsettled deliveries; now and then one that there is not."""
        tables = self.broker.tables
        channel = self.peers[number].session.channels.get(1)
        entry = -1 if channel is None else tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
        if entry < 0 or self.chance.below(40) == 0:
            return 99999
        for _ in range(self.chance.below(3)):
            if tables.entries[entry + layout.ENTRY_NEXT] >= 0:
                entry = tables.entries[entry + layout.ENTRY_NEXT]
        return tables.entries[entry + layout.ENTRY_TAG]

    def properties(self):
        chance = self.chance
        kind = chance.below(5)
        if kind == 0:
            return b"\x00\x00"
        if kind == 1:
            return b"\x10\x00" + bytes((1 + chance.below(2),))
        if kind == 2:
            return b"\x80\x40" + short(b"text/plain") + struct.pack(">II", 0, 1234567)
        letters = (
            b"V",
            b"t\x01",
            b"I\x00\x00\x01\x02",
            b"S\x00\x00\x00\x03abc",
            b"A\x00\x00\x00\x02b\x01",
            b"F\x00\x00\x00\x04\x01xt\x01",
            b"l\x00\x00\x00\x00\x00\x00\x00\x09",
            b"D\x02\x00\x00\x00\x07",
        )
        table = b"".join([short(b"h%d" % index) + letters[chance.below(8)] for index in range(chance.below(5))])
        if chance.below(8) == 0:
            table += short(b"CC") + b"A\x00\x00\x00\x08S\x00\x00\x00\x03two"
        return b"\x20\x00" + struct.pack(">I", len(table)) + table

    def publish(self):
        chance = self.chance
        size = (0, 1, 40, 63, 64, 65, 200, 700, 1500)[chance.below(9)]
        body = bytes([65 + (index + size) % 26 for index in range(size)])
        properties = self.properties()
        octets = method_frame(
            1, 60, 40, b"\x00\x00" + short(EXCHANGES[chance.below(5)]) + short(KEYS[chance.below(5)]) + bytes((chance.below(2),))
        )
        octets += struct.pack(">BHIHHQ", 2, 1, 12 + len(properties), 60, 0, size) + properties + b"\xce"
        at = 0
        while at < size:
            part = min(size - at, 1 + chance.below(900))
            octets += struct.pack(">BHI", 3, 1, part) + body[at : at + part] + b"\xce"
            at += part
        if chance.below(60) == 0:
            octets = bytearray(octets)
            octets[chance.below(len(octets))] ^= 1 << chance.below(8)
        return bytes(octets)

    def figures(self):
        tables = self.broker.tables
        flat = hashlib.sha256()
        for each in (tables.messages, tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, tables.blocks):
            for number in each:
                flat.update(struct.pack(">i", number))
        flat.update(bytes(tables.arena))
        return flat.digest()


def text(digest):
    return "".join(["%02x" % octet for octet in digest[:8]])


def main(seed, steps):
    run = Run(seed)
    for number in range(1, steps + 1):
        run.step()
        if number % 10 == 0:
            print(number, run.taken, text(run.figures()))
    print("said", text(run.said.digest()), run.taken, run.broker.counters["internal_errors"])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
