"""Who attacks when, and what is done to the broker's process meanwhile: both follow from the seed alone."""

import collections
import importlib
import random

FILES = ("connections", "frames", "messages", "memory", "cpu", "access", "1_0", "links", "0_10", "sessions")
LANES = 4  # attackers at a time
SECONDS = (2.0, 6.0)  # of one attack
CALM_S = 2.0  # before the first attacker
DEED_S = (15.0, 45.0)  # between two deeds to the broker's process


def attackers():
    """{name: (file, function)} of all attackers."""
    table = {}
    for file in FILES:
        for function in importlib.import_module("hostile_" + file).ATTACKERS:
            assert function.__name__ not in table, function.__name__
            table[function.__name__] = file, function
    return table


def schedule(names, seed, seconds):
    """For each lane [(start, name, seconds, seed of the attack)]: each name once before any comes again."""
    chance = random.Random(f"schedule {seed}")
    lanes = [[] for _ in range(LANES)]
    free = [CALM_S + 0.5 * number for number in range(LANES)]
    turns = collections.Counter()
    deck = []
    while True:
        if not deck:
            deck = list(names)
            chance.shuffle(deck)
        lane = free.index(min(free))
        if free[lane] >= seconds - 1:
            return lanes
        name = deck.pop()
        lasts = min(chance.uniform(*SECONDS), seconds - free[lane])
        turns[name] += 1
        lanes[lane].append((free[lane], name, lasts, f"{seed}.{turns[name]}"))
        free[lane] += lasts + 0.1


def deeds(seed, seconds):
    """[(start, what is done to the broker's process)]."""
    chance = random.Random(f"deeds {seed}")
    at, done = chance.uniform(8, 25), []
    while at < seconds - 5:
        done.append((at, chance.choice(("kill", "kill", "hangup"))))
        at += chance.uniform(*DEED_S)
    return done
