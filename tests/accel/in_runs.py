"""A pytest plugin that has every broker of a test run work in c_accel/runs.py: `pytest -p in_runs` with this folder on PYTHONPATH."""

from leveret.c_accel import runs
from leveret.core import engine

engine.chosen = runs.Engine
