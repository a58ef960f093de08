"""The collector of garbage passes over what imports have made, which lives until the run ends: a twentieth of the processor's time."""

import gc

THRESHOLD = 20_000  # objects, where CPython has 700: a test makes a broker of some ten thousand and drops it


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD)
