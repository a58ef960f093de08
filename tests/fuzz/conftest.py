"""The wire codec of the interop tests is what the fuzz reads the broker's words with; stores and link ends are those of the unit tests."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for _folder in [HERE] + [os.path.join(HERE, os.pardir, name) for name in ("interop", "simulate", "unit")]:
    if _folder not in sys.path:
        sys.path.insert(0, _folder)
