"""The 49 pairs of versions in C: what a receiver has of a message is what core/CONVERSIONS.md says, as in Python."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def test_the_49_pairs_in_c():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "in_c", os.path.join(ROOT, "tests", "tools", "test_conversions.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env=dict(os.environ, PYTHONPATH=HERE),
    )
    assert done.returncode == 0, done.stdout[-3000:]
