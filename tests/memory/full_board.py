"""A broker with everything at its limit: `Fill(limits)` fills one kind of thing after the other, with the longest names and most arguments.

It drives a connection's endpoint with a client's octets. `kinds` are the parts of memory_parts that the peers of a broker can fill.
"""

import struct

from board_load import OPENING, method_frame, short

from leveret.core.access.passwords import hashed
from leveret.core.access.permissions import Pattern, User
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import Limits, pattern_size_max
from leveret.core.parts import part

TEXT_COST = 66  # octets that Topology.check_size counts for a table with one text, beside the text itself
WORD_SIZE = 84  # octets of each of three words of a binding's topic pattern: together the 255 of the longest key, weighing one binding


def long_name(text, number, size):
    name = text + b"%d-" % number
    return name + b"n" * (size - len(name))


def text_table(size):
    """A table with one text of `size` octets."""
    return struct.pack(">I", size + 8) + short(b"at") + b"S" + struct.pack(">I", size) + b"t" * size


class Fill:
    """The broker, and what it took to fill it; each of `fill_*` goes to one limit."""

    def __init__(self, limits):
        self.limits = Limits(**limits)
        self.broker = Broker(self.limits, b"full")
        self.broker.tick(0, 1700000000)
        self.peers = []
        self.arguments = text_table(self.limits.argument_size_max - TEXT_COST)

    def feed(self, peer, octets):
        connection = self.peers[peer % len(self.peers)]
        at = 0
        while at < len(octets):
            view = connection.writable()
            size = min(len(view), len(octets) - at)
            for index in range(size):
                view[index] = octets[at + index]
            connection.received(size)
            at += size
        self.broker.run()
        self.drain()
        if connection.closed or connection.ending:
            raise RuntimeError("the broker has closed the connection")

    def drain(self):
        for connection in self.peers:
            size = len(connection.pending())
            while size:
                said = bytes(connection.pending())
                if said[7:11] in (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28"):
                    raise RuntimeError(str(said))
                connection.sent(size)
                size = len(connection.pending())

    def fill_connections(self):
        for number in range(self.limits.connection_count_max):
            self.peers.append(Connection(self.broker, "peer", True))
            for octets in OPENING:
                self.feed(number, octets)

    def fill_channels(self):
        for number in range(self.limits.channel_count_max):
            channel = 1 + number // len(self.peers)
            if channel > 1:
                self.feed(number, method_frame(channel, 20, 10, b"\x00"))
            self.feed(number, self.longest_publish(channel))

    def longest_publish(self, channel):
        """A content with the longest routing key and as many copies (CC) as there may be; no queue gets it."""
        size = max(self.limits.copy_size_max - 2, 0)
        copies = b"S" + struct.pack(">I", size) + b"c" * size if self.limits.copy_size_max else b""
        table = short(b"CC") + b"A" + struct.pack(">I", len(copies)) + copies
        properties = struct.pack(">HI", 0x2000, len(table)) + table
        header = struct.pack(">BHIHHQ", 2, channel, 12 + len(properties), 60, 0, 0) + properties + b"\xce"
        return method_frame(channel, 60, 40, b"\x00\x00" + self.exchange(0) + short(b"k" * 255) + b"\x00") + header

    def longest_pattern(self, letter):
        """An expression that fits every name and is about as large as there may be once compiled."""
        if part("patterns.expression_parser") is None:
            return ".*"
        size_max = pattern_size_max(self.limits)
        text = "(" + letter + "|..)?"
        while Pattern(text + "(z[a-y])?", 1 << 20).size <= size_max:
            text += "(z[a-y])?"
        return text

    def fill_users(self):
        """Users with the longest expressions, who are known to be granted as many names as there may be."""
        patterns = [self.longest_pattern(letter) for letter in "cwr"]
        for user in self.broker.access.users.values():
            user.permit(patterns)
        for number in range(self.limits.user_count_max - 1):
            user = User(
                "user%d" % number,
                hashed("password", b"salt" * 4, 1),
                (),
                patterns,
                self.limits.granted_count_max,
                pattern_size_max(self.limits),
            )
            self.broker.access.put(user)
        users = list(self.broker.access.users.values())
        for number in range(self.limits.granted_count_max):
            name = str(long_name(b"n", number, self.limits.name_size_max), "utf-8")
            if not users[number % len(users)].may(number % 3, name):
                raise RuntimeError("not permitted")

    def exchange(self, number):
        return short(long_name(b"x", number, self.limits.name_size_max))

    def queue(self, number):
        return short(long_name(b"q", number, self.limits.name_size_max))

    def fill_queues(self):
        for number in range(self.limits.queue_count_max):
            self.feed(number, method_frame(1, 50, 10, b"\x00\x00" + self.queue(number) + b"\x00" + self.arguments))

    def fill_exchanges(self):
        for number in range(self.limits.exchange_count_max - len(self.broker.exchanges)):
            name = self.exchange(number)
            self.feed(number, method_frame(1, 40, 10, b"\x00\x00" + name + short(b"topic") + b"\x00" + self.arguments))

    def fill_bindings(self):
        for number in range(self.limits.binding_count_max):
            pattern = b".".join([long_name(letter, number, WORD_SIZE) for letter in (b"a", b"b", b"c")])
            self.feed(
                number,
                method_frame(
                    1,
                    50,
                    20,
                    b"\x00\x00"
                    + self.queue(number % self.limits.queue_count_max)
                    + self.exchange(0)
                    + short(pattern)
                    + b"\x00"
                    + self.arguments,
                ),
            )

    def fill_consumers(self):
        for number in range(self.limits.consumer_count_max):
            tag = short(long_name(b"c", number, self.limits.name_size_max))
            self.feed(
                number,
                method_frame(1, 60, 20, b"\x00\x00" + self.queue(number % self.limits.queue_count_max) + tag + b"\x00" + self.arguments),
            )
