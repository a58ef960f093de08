"""A pytest plugin that has every broker of a test run work in C: `pytest -p in_c` with this folder on PYTHONPATH."""

from leveret import c_accel

assert c_accel.install() == "the hot functions run in C", "the C module is not there: pip install -e . builds it where there is a compiler"
