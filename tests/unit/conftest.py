"""What the collector of garbage costs this leg: a third of its time, most of it for objects of imports that live until the end anyway."""

import gc

THRESHOLD = 20_000  # objects, where CPython has 700: a test makes a broker of some ten thousand and drops it


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD)
