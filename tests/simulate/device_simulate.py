"""A few seeds of the simulation inside MicroPython: the same log, the same faults, the same checks.

Run by `python tests/micropython/run.py tests/simulate/device_simulate.py`, which lays out tests/simulate as it lays out tests/unit;
the scripted client comes from there.
"""

import sys

sys.path.append(__file__.rsplit("/", 2)[0] + "/unit")

from world import World

FIRST = 500001
SEEDS = 16


def test_seeds_of_the_simulation():
    """Power cuts, torn writes, full disks: what was confirmed is there, what was settled and synced is not."""
    cuts = 0
    for seed in range(FIRST, FIRST + SEEDS):
        cuts += World(seed, lives=4).run()["cuts"]
    assert cuts > SEEDS, cuts
