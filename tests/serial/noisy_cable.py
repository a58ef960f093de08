"""A serial cable of two pseudo-terminals that flips, drops and invents octets, from a seed.

    with noisy_cable(seed=7, error_rate=1e-3) as cable:
        cable.ends          # two device names, as /dev/pts/5
        cable.damages       # octets damaged so far
        cable.unplug(0)     # the device at end 0 is gone, as when a USB adapter is pulled out

Laws: no speed limit; a full end stops the other one (WAITING_MAX octets in between at most), so only the noise loses anything; the same
seed damages the same octet numbers of each direction.
"""

import contextlib
import os
import pty
import random
import select
import threading
import tty

CHUNK = 4096
WAITING_MAX = 16384


class Direction:
    """From one master to the other, through the noise."""

    def __init__(self, source, target, seed, error_rate):
        self.source = source
        self.target = target
        self.waiting = b""
        self.damages = 0
        self.carried = 0
        self._random = random.Random(seed)
        self._rate = error_rate
        self._clean = self._distance()

    def _distance(self):
        return int(self._random.expovariate(self._rate)) if self._rate else 1 << 62

    def take(self, octets):
        self.carried += len(octets)
        out = bytearray()
        while len(octets) > self._clean:
            out += octets[: self._clean]
            out += self._damaged(octets[self._clean])
            octets = octets[self._clean + 1 :]
            self._clean = self._distance()
            self.damages += 1
        self._clean -= len(octets)
        self.waiting += bytes(out) + octets

    def _damaged(self, octet):
        way = self._random.randrange(4)
        if way == 0:
            return b""
        if way == 1:
            return bytes((self._random.randrange(256), octet))
        return bytes((octet ^ 1 << self._random.randrange(8),))


class NoisyCable:
    def __init__(self, seed, error_rate):
        pairs = (pty.openpty(), pty.openpty())
        self._masters = [master for master, _ in pairs]
        self._slaves = [slave for _, slave in pairs]
        for slave in self._slaves:
            tty.setraw(slave)
        for master in self._masters:
            os.set_blocking(master, False)
        self.ends = tuple(os.ttyname(slave) for slave in self._slaves)
        left, right = self._masters
        self._ways = [Direction(left, right, seed, error_rate), Direction(right, left, seed + 1, error_rate)]
        self._pulled = set()
        self._stopping = False
        self._wake = os.pipe()
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._carry, name="noisy cable", daemon=True)
        self._thread.start()

    @property
    def damages(self):
        return sum(way.damages for way in self._ways)

    @property
    def carried(self):
        """Octets that went in at both ends."""
        return sum(way.carried for way in self._ways)

    def _carry(self):
        while not self._stopping:
            ways = [way for way in self._ways if not {way.source, way.target} & self._pulled]
            readers = [way.source for way in ways if len(way.waiting) < WAITING_MAX] + [self._wake[0]]
            readable, writable, _ = select.select(readers, [way.target for way in ways if way.waiting], [])
            if self._wake[0] in readable:
                os.read(self._wake[0], 1)
                self._close_pulled()
                continue
            for way in ways:
                if way.source in readable:
                    way.take(os.read(way.source, CHUNK))
                if way.target in writable:
                    way.waiting = way.waiting[write_some(way.target, way.waiting) :]

    def _close_pulled(self):
        for master in self._pulled & set(self._masters):
            index = self._masters.index(master)
            os.close(master)
            os.close(self._slaves[index])
            self._masters[index] = self._slaves[index] = None
        self._changed.set()

    def unplug(self, index):
        self._changed.clear()
        self._pulled.add(self._masters[index])
        os.write(self._wake[1], b"x")
        self._changed.wait(60)

    def close(self):
        self._stopping = True
        os.write(self._wake[1], b"x")
        self._thread.join()
        for descriptor in (*self._masters, *self._slaves, *self._wake):
            if descriptor is not None:
                os.close(descriptor)


def write_some(descriptor, octets):
    """Octets written; a pseudo-terminal may call itself writable and have no room after all."""
    try:
        return os.write(descriptor, octets[:CHUNK])
    except BlockingIOError:
        return 0


@contextlib.contextmanager
def noisy_cable(seed, error_rate):
    """Both ends of a new NoisyCable, taken away at the end."""
    cable = NoisyCable(seed, error_rate)
    try:
        yield cable
    finally:
        cable.close()
