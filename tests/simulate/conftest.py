"""The simulation's own modules, and the scripted client of tests/unit, are imported by their plain names."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "unit")]
