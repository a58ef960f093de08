"""The wire codec of the interop tests is what the fuzz reads the broker's words with."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for _folder in (HERE, os.path.join(HERE, os.pardir, "interop")):
    if _folder not in sys.path:
        sys.path.insert(0, _folder)
