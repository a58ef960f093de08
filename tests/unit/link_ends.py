"""Two ends of a serial link for tests, and what carries octets between them. Runs on both interpreters."""

from leveret.core.serial_link.frame import HELLO, FrameChecks, FrameWriter
from leveret.core.serial_link.link import VERSION, Link


class Inner:
    """The endpoint inside: sends `outgoing`, keeps what comes in `incoming`, takes `room` octets and no more."""

    def __init__(self, outgoing=b"", room=1 << 20, piece=64):
        self.outgoing = outgoing
        self.incoming = bytearray()
        self.room = room
        self.piece = memoryview(bytearray(piece))
        self.gone_count = 0
        self.ticks = []
        self.closed = False

    def writable(self):
        return self.piece[: min(len(self.piece), self.room)]

    def received(self, size):
        if size == 0:
            self.gone_count += 1
        assert size <= self.room or size == 0
        self.incoming.extend(self.piece[:size])
        self.room -= size

    def pending(self):
        return memoryview(self.outgoing)

    def sent(self, size):
        self.outgoing = self.outgoing[size:]

    def tick(self, now):
        self.ticks.append(now)


class Maker:
    """Makes the inner endpoints of one end, and remembers them."""

    def __init__(self, outgoing=(), refuse=False):
        self.outgoing = list(outgoing)
        self.refuse = refuse
        self.made = []

    def __call__(self):
        if self.refuse:
            return None
        self.made.append(Inner(self.outgoing.pop(0) if self.outgoing else b""))
        return self.made[-1]


def text(size, start=0):
    return bytes([(start + index * 7 + (index >> 8)) & 0xFF for index in range(size)])


def drain(link):
    """Everything the link wants to send now."""
    out = bytearray()
    while True:
        view = link.pending()
        if len(view) == 0:
            return bytes(out)
        size = min(len(view), 50)
        out.extend(view[:size])
        link.sent(size)


def give(link, octets):
    """Octets come off the line."""
    start = 0
    while start < len(octets):
        view = link.writable()
        size = min(len(view), len(octets) - start)
        assert size > 0, "the link does not read"
        view[:size] = octets[start : start + size]
        link.received(size)
        start += size


def exchange(left, right):
    """Carry octets both ways until both are silent."""
    for _ in range(10000):
        forth = drain(left)
        give(right, forth)
        back = drain(right)
        give(left, back)
        if not forth and not back:
            return
    raise AssertionError("the ends never fall silent")


def tick(now, *links):
    for link in links:
        link.tick(now)


def ends(active_maker, passive_maker, **arguments):
    """(active, passive) with a session."""
    active = Link(active_maker, 1000, active=True, **arguments)
    passive = Link(passive_maker, 2000, **arguments)
    tick(0, active, passive)
    exchange(active, passive)
    assert active.is_open and passive.is_open
    return active, passive


def count_of(link, name):
    return dict(link.counters)[name]


def frame(name, payload=b"", active=True, sequence=0):
    """A frame of the handshake, as either end sends it."""
    writer = FrameWriter(4096, FrameChecks(active))
    writer.put(name, sequence, 0, memoryview(payload), len(payload))
    return bytes(writer.octets[: writer.end])


def hello(nonce=1, version=VERSION, knows=0, window_size=4096, payload_size_max=512, check_size=4, streams=4, speed=0):
    return frame(
        HELLO,
        bytes((version,))
        + nonce.to_bytes(4, "big")
        + knows.to_bytes(4, "big")
        + window_size.to_bytes(2, "big")
        + payload_size_max.to_bytes(2, "big")
        + bytes((check_size, streams))
        + speed.to_bytes(4, "big"),
    )
