"""The seeds of one `dev.py test`: chosen once, said at the start, and the same for every leg and for every second attempt.

A seed that is in the environment already is kept, so that a run can be done again with what an earlier one said.
"""

import random

# PYTHONHASHSEED is Python's own: the order of sets of text.
NAMES = ("LEVERET_FUZZ_SEED", "LEVERET_KILL_SEED", "LEVERET_SPARK_SEED", "LEVERET_CABLE_SEED", "LEVERET_ATTACK_SEED", "PYTHONHASHSEED")
SEED_MAX = (1 << 32) - 1


def choose(environment):
    """{name: text} of every seed: from `environment` where it is there (PYTHONHASHSEED may say `random`), else drawn."""
    drawn = random.SystemRandom()
    return {name: environment.get(name) or str(drawn.randint(0, SEED_MAX)) for name in NAMES}


def sentence(chosen):
    """The line that repeats a run's seeds."""
    return "seeds: " + " ".join(f"{name}={value}" for name, value in chosen.items())
