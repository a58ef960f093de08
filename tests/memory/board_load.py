"""A board's load: CONNECTIONS connections, QUEUES queues, every message published by one, delivered to another and acknowledged.

It drives the endpoints of a Broker with the octets that clients would send, allocates next to nothing itself, and checks that each message
comes out whole and in the order of its queue. Bodies are of several sizes; their first four octets count.
"""

import struct

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import Limits

CONNECTIONS = 4
QUEUES = 16
LOGIN = b"\x00guest\x00guest"
SIZES = (16, 64, 200, 33)  # octets of a body, in turn


def method_frame(channel, class_id, method_id, arguments):
    payload = struct.pack(">HH", class_id, method_id) + arguments
    return struct.pack(">BHI", 1, channel, len(payload)) + payload + b"\xce"


OPENING = (
    b"AMQP\x00\x00\x09\x01",
    method_frame(0, 10, 11, struct.pack(">I", 0) + b"\x05PLAIN" + struct.pack(">I", len(LOGIN)) + LOGIN + b"\x05en_US"),
    method_frame(0, 10, 31, struct.pack(">HIH", 4, 4096, 0)) + method_frame(0, 10, 40, b"\x01/\x00\x00"),
    method_frame(1, 20, 10, b"\x00"),
)


def queue_name(number):
    return b"queue.%02d" % number


def short(text):
    return bytes((len(text),)) + text


def publish_frames(number, size):
    """A publish to queue `number`, its body of `size` octets: (frames, where the body begins)."""
    method = method_frame(1, 60, 40, b"\x00\x00\x00" + short(queue_name(number)) + b"\x00")
    header = struct.pack(">BHIHHQHB", 2, 1, 15, 60, 0, size, 0x1000, 1) + b"\xce"
    body = struct.pack(">BHI", 3, 1, size)
    return bytearray(method + header + body + bytes(size) + b"\xce"), len(method) + len(header) + len(body)


class Peer:
    """One client: what it gets is read frame by frame; `acknowledge` answers every delivery."""

    def __init__(self, broker):
        self.connection = Connection(broker, "peer", True)
        self.broker = broker
        self.ack = bytearray(method_frame(1, 60, 80, bytes(9)))
        self.tag = 0
        self.expected = [0] * QUEUES
        self.queue = 0
        self.received = 0

    def open(self, step):
        """One step of the opening: the log-in is calculated in many turns of the broker."""
        self.feed(OPENING[step])
        while self.connection.session.state == "login":
            self.broker.run()
        self.broker.run()
        self.drain()

    def feed(self, octets):
        """Give the broker `octets`, as much at a time as it reads; what it does not read raises."""
        at = 0
        while at < len(octets):
            view = self.connection.writable()
            size = min(len(view), len(octets) - at)
            if size == 0:
                raise RuntimeError("the broker does not read")
            index = 0
            while index < size:
                view[index] = octets[at + index]
                index += 1
            self.connection.received(size)
            at += size

    def drain(self):
        """Take what is to be sent, which is whole frames: how many octets."""
        view = self.connection.pending()
        end, at = len(view), 0
        while at < end:
            size = view[at + 5] << 8 | view[at + 6]
            self.frame(view, view[at], at + 7, size)
            at += size + 8
        if at != end:
            raise RuntimeError("the last frame is cut")
        self.connection.sent(end)
        return end

    def frame(self, view, type_, at, size):
        if type_ == 1 and view[at + 1] == 60 and view[at + 3] == 60:
            at += 5 + view[at + 4]
            self.tag = view[at + 5] << 16 | view[at + 6] << 8 | view[at + 7]
            self.queue = (view[at + 17] - 48) * 10 + view[at + 18] - 48
        elif type_ == 3:
            number = view[at + 1] << 16 | view[at + 2] << 8 | view[at + 3]
            if number != self.expected[self.queue]:
                raise RuntimeError("queue %d: message %d came, %d was next" % (self.queue, number, self.expected[self.queue]))
            self.expected[self.queue] = number + 1
            self.received += 1
        elif type_ == 1 and view[at + 1] in (10, 20) and view[at + 3] in (40, 50):
            raise RuntimeError("the broker closes: " + str(bytes(view[at : at + size])))

    def acknowledge(self):
        """Settle all deliveries so far."""
        for index in range(3):
            self.ack[16 + index] = self.tag >> 16 - 8 * index & 255
        self.ack[19] = 1
        self.feed(self.ack)


class Load:
    """The broker with its connections: the first publishes, the others consume a share of the queues each."""

    def __init__(self, **limits):
        self.broker = Broker(Limits(**limits), b"load")
        self.peers = []
        self.sent = [0] * QUEUES
        self.turn = 0
        self.prepared = 0
        self.frames = [publish_frames(0, size) for size in SIZES]

    def prepare(self):
        """The next step of opening the connections and declaring the queues; false when all is there."""
        number = self.prepared
        self.prepared += 1
        if number < CONNECTIONS * len(OPENING):
            if number % len(OPENING) == 0:
                self.peers.append(Peer(self.broker))
            self.peers[-1].open(number % len(OPENING))
            return True
        number -= CONNECTIONS * len(OPENING)
        if number == QUEUES:
            return False
        name = short(queue_name(number))
        peer = self.peers[1 + number % (CONNECTIONS - 1)]
        peer.feed(method_frame(1, 50, 10, b"\x00\x00" + name + b"\x00\x00\x00\x00\x00"))
        peer.feed(method_frame(1, 60, 20, b"\x00\x00" + name + short(b"c%02d" % number) + b"\x00\x00\x00\x00\x00"))
        self.broker.run()
        peer.drain()
        return True

    def publish(self):
        """One message to the next queue."""
        number = self.turn % QUEUES
        frames, body = self.frames[self.turn // QUEUES % len(self.frames)]
        frames[21] = 48 + number // 10
        frames[22] = 48 + number % 10
        count = self.sent[number]
        frames[body + 1] = count >> 16 & 255
        frames[body + 2] = count >> 8 & 255
        frames[body + 3] = count & 255
        self.sent[number] = count + 1
        self.turn += 1
        self.peers[0].feed(frames)

    def round(self, count):
        """`count` messages, then everything is delivered and acknowledged."""
        for _ in range(count):
            self.publish()
        self.settle()

    def settle(self):
        """Deliver and acknowledge all there is."""
        for _ in range(200):
            if self.settled():
                return
        raise RuntimeError("%d of %d messages came out" % (sum([peer.received for peer in self.peers]), self.turn))

    def settled(self):
        """One turn: true when all that was published has come out, and is acknowledged."""
        self.broker.run()
        count = 0
        for peer in self.peers:
            before = peer.received
            while peer.drain():
                self.broker.run()
            if peer.received != before:
                peer.acknowledge()
            count += peer.received
        return count == self.turn

    def run(self, count, told=None):
        """`count` messages in rounds of different lengths; `told(done)` is called now and then."""
        done = lap = 0
        while done < count:
            size = min((1, 5, 16, 40)[lap % 4], count - done)
            self.round(size)
            done += size
            lap += 1
            if lap % 64 == 0:
                self.broker.tick(lap * 5 & 0x3FFFFFFF, 1700000000 + lap // 200)
                if told is not None:
                    told(done)
        if self.broker.counters["internal_errors"]:
            raise RuntimeError("%d errors of the broker" % self.broker.counters["internal_errors"])
