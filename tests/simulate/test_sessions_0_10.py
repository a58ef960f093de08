"""Sessions of AMQP 0-10 over cut connections and power cuts: each message once (sessions_0_10.py)."""

from sessions_0_10 import World

SEEDS = 24  # some 4 s of CPU: a seed has some five power cuts, and few seeds meet the one that matters
FIRST = 7001


def test_each_message_once_over_cut_connections():
    breaks = 0
    for seed in range(FIRST, FIRST + SEEDS // 2):
        world = World(seed, False)
        world.run()
        breaks += world.breaks
    assert breaks > SEEDS


def test_each_message_once_over_power_cuts_and_no_accepted_one_again():
    cuts = 0
    for seed in range(FIRST, FIRST + SEEDS):
        world = World(seed)
        world.run()
        cuts += world.cuts
    assert cuts > SEEDS
