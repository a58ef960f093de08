"""A store that is octets in memory, and brokers on it."""

from peer import new_broker, taken

from leveret.core.recovery import opening


class MemoryStore:
    """Segments in memory; `durable` is what a power cut leaves."""

    def __init__(self):
        self.segments = {}
        self.durable = {}
        self.aside = []
        self.full = False
        self.sync_fails = False

    def numbers(self):
        return sorted(self.segments)

    def size(self, number):
        return len(self.segments[number])

    def read(self, number, offset, size):
        return bytes(self.segments[number][offset : offset + size])

    def append(self, number, octets):
        if self.full:
            self.segments[number] = self.segments.get(number, b"") + bytes(octets[: len(octets) // 2])
            raise OSError(28, "no space")
        self.segments[number] = self.segments.get(number, b"") + bytes(octets)

    def sync(self, number):
        if self.sync_fails:
            self.segments[number] = self.durable.get(number, b"") + bytes(len(self.segments[number]) - len(self.durable.get(number, b"")))
            raise OSError(5, "input/output error")
        self.durable[number] = self.segments[number]

    def remove(self, number):
        del self.segments[number]
        self.durable.pop(number, None)

    def keep_aside(self, number, offset):
        self.aside.append((number, self.segments[number][offset:]))
        self.segments[number] = self.segments[number][:offset]

    def cut(self):
        """The store after a power cut."""
        after = MemoryStore()
        after.segments = dict(self.durable)
        after.durable = dict(self.durable)
        return after


class SlowStore(MemoryStore):
    """A store that syncs beside its caller; while it `stalls` nothing comes to an end."""

    def __init__(self):
        MemoryStore.__init__(self)
        self.stalls = False
        self.under_way = None

    def begin(self, number, octets):
        self.append(number, octets)
        self.under_way = number

    def begin_remove(self, number):
        self.remove(number)

    def ended(self):
        if self.stalls:
            return False
        if self.under_way in self.segments:
            self.sync(self.under_way)
        return True

    def wait(self):
        self.stalls = False


PERSISTENT = {"delivery_mode": 2}


def durable_broker(store, mode="each", segment_size=4096, size_max=1 << 20, batch_ms=100, log=None, **overrides):
    """A broker on a store: (broker, report). `log`: a function that takes its sentences."""
    broker = new_broker(**overrides)
    broker.log = log or broker.log
    report = opening.make_durable(broker, store, mode, batch_ms, 65536, segment_size, size_max)
    return broker, report


def bodies(peer, queue):
    """What basic.get takes out of a queue."""
    return [body for _, body in taken(peer, queue)]
