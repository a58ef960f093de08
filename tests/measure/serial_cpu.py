"""What an octet costs the processor that speaks over a serial line: `python tests/measure/serial_cpu.py [--octets N] [--profile]`.

Two ends of a link in one process, both at full load with bodies of 1 KiB, over a line that neither waits nor damages; CPU time of both ends
together, which send and receive every octet once, for each octet of a body. The plain form and the one in C take turns, three times; the
least counts.
"""

import argparse
import cProfile
import pstats
import random
import time

from serial_link import BAUD, BODY_SIZE, Source

from leveret import c_accel
from leveret.core.serial_link import stuffing
from leveret.ports.serial_line import new_link

RUNS = 3
PIECE = 400  # octets that a device gives at once
CHECKS = (4, 2)


def carry(check_size, octets):
    """Carry so many octets of bodies each way: the octets that arrived."""
    bodies = random.Random(1).randbytes(BODY_SIZE * 64)
    ends = [Source(bodies, True), Source(bodies, True)]
    links = [new_link(lambda: ends[0], BAUD, active=True, check_size=check_size), new_link(lambda: ends[1], BAUD, check_size=check_size)]
    now = 0
    while min(end.arrived for end in ends) < octets:
        now += 1
        for link in links:
            link.tick(now)
        for link, other in (links, links[::-1]):
            view = link.pending()
            size = min(len(view), PIECE)
            if size:
                other.writable()[:size] = view[:size]
                link.sent(size)
                other.received(size)
    return ends[0].arrived + ends[1].arrived


def measure(check_size, octets):
    """Nanoseconds of CPU time for an octet."""
    began = time.process_time()
    arrived = carry(check_size, octets)
    return (time.process_time() - began) * 1e9 / arrived


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octets", type=int, default=300000, help="of bodies, each way, for each figure")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    options = parser.parse_args()
    print(c_accel.install())
    forms = [stuffing.Plain, stuffing.chosen][: 1 + (stuffing.chosen is not stuffing.Plain)]
    found = {}
    for check_size in CHECKS * RUNS:
        for stuffing.chosen in forms:
            key = check_size, stuffing.chosen.name
            found[key] = min(measure(check_size, options.octets), found.get(key, 1e9))
    for check_size, name in sorted(found, reverse=True):
        ns = found[check_size, name]
        print(
            f"CRC-{8 * check_size}, {name}: {ns:.0f} ns an octet, sent and received: {ns * 2 * BAUD / 1e10:.2%} of a core for both ends "
            f"of a line at {BAUD} baud that is full both ways"
        )
    if options.profile:
        for stuffing.chosen in forms:
            print(stuffing.chosen.name)
            profile = cProfile.Profile()
            profile.runcall(carry, CHECKS[0], options.octets)
            pstats.Stats(profile).sort_stats("tottime").print_stats(16)


if __name__ == "__main__":
    main()
