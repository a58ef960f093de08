"""A few rounds of kills.py: driver, Python worker and broker die, and every reading, window, score and alert is right.

LEVERET_SPARK_KILLS sets how often (3 unless set), LEVERET_SPARK_SEED repeats a run's choices.
"""

import os
import random

import kills

KILLS = int(os.environ.get("LEVERET_SPARK_KILLS", "3"))
SEED = int(os.environ.get("LEVERET_SPARK_SEED", random.randrange(2**32)))


def test_exactly_once_whatever_is_killed(java, tmp_path):
    print(f"seed {SEED}")
    summary = kills.run(KILLS, SEED, str(tmp_path))
    assert summary["readings"] == summary["published"] and summary["alerts"] >= 1
