"""How much of a line's speed the link leaves to its user: `python tests/measure/serial_link.py [--seconds N] [--seed N] [--plot FILE.png]`.

Two ends in virtual time over a line of 115,200 baud, 11,520 octets a second each way, with devices that hold what ports/serial_line.py
leaves in them (30 ms, and no more than a quarter of a window). Bodies of 1 KiB of random octets, one connection. A bit error turns over
one of the ten bits that an octet takes on the line, so 1e-4 damages one octet of 1,000: of the eight in the middle it alters the octet,
the start bit swallows it, the stop bit makes two of it. Efficiency: octets of bodies that arrived, of those the line carries in that time,
losses at the start included (frames begin at their largest size). A computer is set up as `leveret attach` and `leveret serve` do, a
board as firmware/ does. Both ways: the lower of the two, both at full load. With --plot (matplotlib, which nothing else here needs: pip
install matplotlib) the table is a picture too.
"""

import argparse
import random

from leveret.core.limits import BOARD as LIMITS
from leveret.firmware import line
from leveret.ports.serial_line import new_link, queue_max_for

BAUD = 115200
OCTETS_PER_MS = BAUD / 10000
BODY_SIZE = 1024
RATES = (0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
BOARD = {
    "window_size": line.WINDOW_SIZE,
    "payload_size_max": line.PAYLOAD_SIZE,
    "receive_size": line.RECEIVE_SIZE,
    "stream_count": LIMITS["line_connection_count_max"],
    "stream_room": LIMITS["line_connection_room"],
}
SETUPS = (  # name, whether the active and the passive end send, settings of the passive end
    ("computer to computer", True, False, {}),
    ("both ways", True, True, {}),
    ("computer to board", True, False, BOARD),
    ("board to computer", False, True, BOARD),
    ("both ways", True, True, BOARD),
)


class Source:
    """The endpoint inside: sends bodies without end, counts what arrives, and compares it with what was sent."""

    def __init__(self, bodies, sending):
        self._bodies = memoryview(bodies)
        self._at = 0
        self._sending = sending
        self._room = memoryview(bytearray(4096))
        self.arrived = 0
        self.closed = False

    def writable(self):
        return self._room

    def received(self, size):
        if size == 0:
            raise AssertionError("the session was lost")
        at = self.arrived % len(self._bodies)
        wanted = bytes(self._bodies[at : at + size])
        wanted += bytes(self._bodies[: size - len(wanted)])
        assert bytes(self._room[:size]) == wanted, "altered"
        self.arrived += size

    def pending(self):
        return self._bodies[self._at % len(self._bodies) :] if self._sending else self._bodies[:0]

    def sent(self, size):
        self._at += size

    def tick(self, now):
        """Nothing here is on a clock."""


class Way:
    """One direction: the device's queue, the line's speed, the noise."""

    def __init__(self, bit_error_rate, seed):
        self.queue = bytearray()
        self.random = random.Random(seed)
        self.rate = bit_error_rate * 10
        self.clean = self._distance()
        self.budget = 0.0

    def _distance(self):
        return int(self.random.expovariate(self.rate)) if self.rate else 1 << 62

    def load(self, link):
        while len(self.queue) <= queue_max_for(BAUD, link.window_size):
            view = link.pending()
            if not len(view):
                return
            self.queue += view
            link.sent(len(view))

    def unload(self, link):
        self.budget += OCTETS_PER_MS
        count = min(int(self.budget), len(self.queue))
        self.budget -= int(self.budget)
        octets = bytes(self.queue[:count])
        del self.queue[:count]
        octets = self.damaged(octets)
        if octets:
            link.writable()[: len(octets)] = octets
            link.received(len(octets))

    def damaged(self, octets):
        out = bytearray()
        while len(octets) > self.clean:
            out += octets[: self.clean] + self.hit(octets[self.clean])
            octets = octets[self.clean + 1 :]
            self.clean = self._distance()
        self.clean -= len(octets)
        return bytes(out) + octets

    def hit(self, octet):
        bit = self.random.randrange(10)
        if bit == 8:
            return b""
        return bytes((octet ^ 1 << bit,)) if bit < 8 else bytes((octet, self.random.randrange(256)))


def measure(forth, back, settings, bit_error_rate, seconds, seed):
    """(efficiency, octets of payload in a frame at the end)."""
    bodies = random.Random(seed).randbytes(BODY_SIZE * 64)
    ends = [Source(bodies, forth), Source(bodies, back)]
    links = [new_link(lambda: ends[0], BAUD, active=True), new_link(lambda: ends[1], BAUD, **settings)]
    ways = [Way(bit_error_rate, seed), Way(bit_error_rate, seed + 1)]
    for now in range(seconds * 1000):
        for link in links:
            link.tick(now)
        for index in (0, 1):
            ways[index].load(links[index])
        for index in (0, 1):
            ways[index].unload(links[1 - index])
    assert links[0].session_count == 1, "the session was lost"
    arrived = min([end.arrived for end, asked in zip(ends, (back, forth)) if asked])
    return arrived / (seconds * BAUD / 10), links[not forth].frame_size


def measure_all(seconds, seed):
    """[(name, [(efficiency, frame size) for each of RATES])], printed as it comes."""
    print(f"seed {seed}, {seconds} s of the line at {BAUD} baud; efficiency (octets in a frame)")
    print(f"{'bit error rate':21}" + "".join(f"{rate:>14g}" for rate in RATES))
    found = []
    for name, forth, back, settings in SETUPS:
        found.append((name, [measure(forth, back, settings, rate, seconds, seed) for rate in RATES]))
        print(f"{name:21}" + "".join(f"{share:>8.1%} {size:4} " for share, size in found[-1][1]), flush=True)
    return found


def plot(found, path):
    """A picture of the table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    places = [rate or 1e-7 for rate in RATES]
    for number, (name, figures) in enumerate(found):
        if name == "both ways":
            name = ("two computers" if number < 2 else "computer and board") + ", both ways"
        axes.plot(places, [100 * share for share, _ in figures], marker="o", label=name)
    axes.axhline(95, color="grey", linewidth=0.6, linestyle="--")
    axes.axhline(70, color="grey", linewidth=0.6, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(places, ["none"] + [f"{rate:g}" for rate in RATES[1:]], fontsize=8)
    axes.set_ylim(0, 100)
    axes.set_xlabel("bit error rate")
    axes.set_ylabel("% of the raw speed, 1 KiB bodies")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print("wrote", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="of the line's time, for each figure")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", metavar="FILE.png")
    options = parser.parse_args()
    found = measure_all(options.seconds, options.seed)
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
