"""A hostile connection to the broker, octet by octet, and the attack that it belongs to.

Laws: nothing waits for ever: an attack has an end, a bounded number of connections and of octets, and each wait looks at them. What the
broker answers is counted (`close 501`, `channel 406`, `nack`, `reset` ...). What no broker may send (a frame without its end, more than
was negotiated) is a finding. The methods are made by amqp_wire, which shares nothing with the broker.
"""

import collections
import json
import random
import select
import socket
import struct
import time

import amqp_tables
import amqp_wire as wire

CONNECTIONS_MAX = 4000  # of one attack, in all
OPEN_MAX = 160  # at one time
OCTETS_MAX = 192 << 20
WAIT_S = 3.0
IP_BIND_ADDRESS_NO_PORT = 24
RESET = struct.pack("ii", 1, 0)
PASSWORD = "secret"
NAMES = {row[:2]: row[2] for row in amqp_tables.METHODS}


class Gone(Exception):
    """The connection has ended."""


class Over(Exception):
    """The attack's time, connections or octets are used up."""


class Attack:
    """One attack on the broker at `port`: its chance, its end, and what became of it."""

    def __init__(self, port, name, seed, seconds):
        self.port = port
        self.name = name
        self.chance = random.Random(f"{name} {seed}")
        self.ends = time.monotonic() + seconds
        self.counts = collections.Counter()
        self.findings = []
        self.octets = 0
        self.peers = []
        self.address = f"127.6.{self.chance.randrange(1, 250)}.{self.chance.randrange(1, 250)}"

    def check(self):
        """Raise Over when it is."""
        if time.monotonic() >= self.ends or self.octets > OCTETS_MAX:
            raise Over()

    def pause(self, seconds):
        """Wait; Over when the end comes first."""
        time.sleep(max(0, min(seconds, self.ends - time.monotonic())))
        self.check()

    def rest(self):
        """Hold what is open until the end, and look at what comes."""
        while True:
            for peer in list(self.peers):
                if peer.reads:
                    try:
                        peer.take()
                    except Gone:
                        pass
            self.pause(0.1)

    def connect(self, address=None, kind=None, **options):
        """A Peer (or another kind of one) without a log-in."""
        self.check()
        if self.counts["connections"] >= CONNECTIONS_MAX:
            raise Over()
        if len(self.peers) >= OPEN_MAX:
            self.peers[0].close()
        self.counts["connections"] += 1
        peer = (kind or Peer)(self, address or self.address, **options)
        self.peers.append(peer)
        return peer

    def open(self, user="mallory", channels=1, **options):
        """A Peer that is logged in, with channels 1 to `channels`."""
        return self.connect(**options).open(user, channels)

    def finding(self, text):
        """Keep what no peer may see of this broker."""
        if len(self.findings) < 20:
            self.findings.append(text)

    def name_of(self, kind="q"):
        """One of the names that attackers share."""
        return f"mallory.{kind}{self.chance.randrange(40)}"

    def close(self):
        """Leave nothing open."""
        for peer in list(self.peers):
            peer.close()


class Peer:
    """A socket; `got`: what came, by method; `tags`: delivery tags that came. `reads` off: what comes stays in the socket."""

    def __init__(self, attack, address, receive_buffer=None, reads=True):
        self.attack = attack
        self.chance = attack.chance
        self.reads = reads
        self.got = collections.defaultdict(int)
        self.before = {}  # `got` when we sent last
        self.tags = collections.deque(maxlen=200000)
        self.replies = False  # a consumer waits for management's answers
        self.queue = ""  # the name that the broker made last
        self.body = b""
        self.content = None
        self.buffer = bytearray()
        self.speaks = False  # frames come after the header
        self.frame_max = 1 << 20
        self.socket = socket.socket()
        try:
            if receive_buffer:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            self.socket.bind((address, 0))
            self.socket.settimeout(WAIT_S)
            self.socket.connect(("127.0.0.1", attack.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.setblocking(False)
        except OSError as error:
            self.socket.close()
            attack.counts["not connected"] += 1
            raise Gone() from error

    # Octets

    def close(self, reset=False):
        """End the stream, if asked with a reset."""
        if self in self.attack.peers:
            self.attack.peers.remove(self)
        try:
            if reset:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.socket.close()
        except OSError:
            pass

    def gone(self, how):
        """Count how it ended, and say so."""
        self.attack.counts[how] += 1
        self.close()
        raise Gone()

    def send(self, data):
        """All of it, while answers are read. Raises Gone, Over."""
        self.attack.check()
        view = memoryview(data)
        self.before = dict(self.got)
        self.attack.octets += len(view)
        while len(view):
            readable, writable, _ = select.select([self.socket] if self.reads else [], [self.socket], [], 0.1)
            if readable:
                self.take()
            if writable:
                try:
                    view = view[self.socket.send(view) :]
                except BlockingIOError:
                    pass
                except OSError:
                    self.gone("reset")
            elif not readable:
                self.attack.check()

    def take(self):
        """What has come."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            self.gone("reset")
        if not data:
            self.gone("end")
        self.buffer += data
        while self.speaks and len(self.buffer) >= 8 and self._frame():
            pass
        if not self.speaks and len(self.buffer) > 1 << 20:
            del self.buffer[:]

    def take_all(self):
        """What has come; an end is no matter."""
        try:
            self.look(0.05)
        except Gone:
            pass

    def _frame(self):
        if self.buffer[:4] == b"AMQP":
            self.attack.counts["header"] += 1
            self.gone("end")
        kind, channel, size = struct.unpack_from(">BHI", self.buffer)
        if kind not in (1, 2, 3, 8) or size > self.frame_max:
            self.attack.finding(f"the broker sent a frame of type {kind} with {size} octets (frame-max {self.frame_max})")
            self.gone("broken frame")
        if len(self.buffer) < size + 8:
            return False
        if self.buffer[size + 7] != wire.FRAME_END:
            self.attack.finding(f"the broker sent a frame of type {kind} that ends with {self.buffer[size + 7]}")
            self.gone("broken frame")
        payload = bytes(self.buffer[7 : size + 7])
        del self.buffer[: size + 8]
        if kind == wire.METHOD:
            self._method(channel, payload)
        elif kind == wire.HEADER:
            self.body = b""
        elif kind == wire.BODY and len(self.body) < 1 << 20:
            self.body += payload
        return True

    def _method(self, channel, payload):
        name = NAMES.get(struct.unpack_from(">HH", payload), "unknown method")
        self.got[name] += 1
        if name == "basic.deliver":
            self.tags.append(struct.unpack_from(">Q", payload, 5 + payload[4])[0])
        elif name == "basic.get-ok":
            self.tags.append(struct.unpack_from(">Q", payload, 4)[0])
        elif name == "queue.declare-ok":
            self.queue = payload[5 : 5 + payload[4]].decode("utf-8", "replace")
        elif name in ("basic.nack", "basic.return", "connection.blocked"):
            self.attack.counts[name.split(".")[1]] += 1
        elif name == "channel.close":
            self.attack.counts[f"channel {struct.unpack_from('>H', payload, 4)[0]}"] += 1
            self.replies = False
            self._answer(channel, "channel.close-ok")
        elif name == "connection.close":
            self.attack.counts[f"close {struct.unpack_from('>H', payload, 4)[0]}"] += 1
            self._answer(0, "connection.close-ok")
            self.close()
            raise Gone()

    def _answer(self, channel, name):
        try:
            self.socket.send(wire.method(channel, name))
        except OSError:
            pass

    def wait(self, *names, seconds=WAIT_S):
        """The first of the methods that has come since we sent last, or None."""
        ends = time.monotonic() + seconds
        while True:
            for name in names:
                if self.got[name] > self.before.get(name, 0):
                    return name
            left = ends - time.monotonic()
            self.attack.check()
            if left <= 0:
                self.attack.counts["no answer"] += 1
                return None
            if select.select([self.socket], [], [], min(left, 0.2))[0]:
                self.take()

    def look(self, seconds=0.0):
        """Read what comes, for so long."""
        if self not in self.attack.peers:
            raise Gone()
        ends = time.monotonic() + seconds
        while select.select([self.socket], [], [], max(0, min(0.2, ends - time.monotonic())))[0] or time.monotonic() < ends:
            self.take()
            self.attack.check()

    # The protocol, as it should be

    def start(self):
        """The header, and connection.start."""
        self.speaks = True
        self.send(wire.PROTOCOL_HEADER)
        self.wait("connection.start")
        return self

    def log_in(self, user, password=PASSWORD, mechanism="PLAIN", response=None):
        """Up to connection.tune: false when it does not come."""
        self.start()
        response = f"\0{user}\0{password}" if response is None else response
        self.send(
            wire.method(
                0,
                "connection.start-ok",
                client_properties={"capabilities": wire.CAPABILITIES},
                mechanism=mechanism,
                response=response,
                locale="en_US",
            )
        )
        return self.wait("connection.tune") is not None

    def open(self, user="mallory", channels=1):
        """Logged in, open, with its channels."""
        if not self.log_in(user):
            self.gone("no tune")
        self.send(
            wire.method(0, "connection.tune-ok", channel_max=0, frame_max=0, heartbeat=0)
            + wire.method(0, "connection.open", virtual_host="/")
            + b"".join(wire.method(channel, "channel.open") for channel in range(1, channels + 1))
        )
        if self.wait("connection.open-ok") is None:
            self.gone("no open-ok")
        return self

    def do(self, name, channel=1, **values):
        """Send a method."""
        self.send(wire.method(channel, name, **values))

    def call(self, name, channel=1, **values):
        """Send a method and wait for its answer, or for the refusal: the name of what came."""
        self.do(name, channel, **values)
        came = self.wait(name + "-ok", "channel.close", "basic.get-empty")
        if came == "channel.close":
            self.do("channel.open", channel)
        return came

    def declare(self, queue="", channel=1, durable=False, **arguments):
        """A queue: its name. Arguments by their names with _ for -."""
        table = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.call("queue.declare", channel, queue=queue, durable=durable, arguments=table)
        return queue or self.queue

    def publish(self, exchange, key, body=b"x", channel=1, properties=None, **bits):
        """One message."""
        given = b"\x00\x00" if properties is None else properties
        self.send(wire.publish(channel, exchange, key, body, given, 65536, **bits))

    def manage(self, request, seconds=WAIT_S):
        """A management request (or octets): the answer as an object, or None."""
        if not self.replies:
            self.replies = True
            self.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
        text = request if isinstance(request, bytes) else json.dumps(request).encode()
        self.publish("", "amq.leveret.management", text, properties={"reply_to": "amq.rabbitmq.reply-to"})
        if self.wait("basic.deliver", "channel.close", seconds=seconds) != "basic.deliver":
            self.replies = False
            return None
        self.look(0.02)
        try:
            return json.loads(self.body)
        except ValueError:
            return None
