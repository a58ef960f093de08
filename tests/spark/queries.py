"""Streaming queries of the tests, on a machine that may be busy.

Spark gives a Python process 10 s (a constant of its own) to start and to import pyspark. A query whose process took longer has ended
before it did anything, and is started again; `leveret pipeline` does the same.
"""

import time

from pyspark.errors import StreamingQueryException

SLOW_START = "Python worker failed to connect back"
ATTEMPTS = 10
WAIT_S = 240


def finished(start):
    """The query that `start()` starts, when it has ended. Raises what it ended with."""
    for attempt in range(ATTEMPTS):
        query = start()
        try:
            query.awaitTermination()
            return query
        except StreamingQueryException as error:
            give_up_or_wait(error, attempt)
    return None


def begun(start, holds):
    """The query that `start()` starts, when `holds()` has become true. Raises what it ended with."""
    for attempt in range(ATTEMPTS):
        query = start()
        try:
            until(query, holds)
            return query
        except StreamingQueryException as error:
            give_up_or_wait(error, attempt)
    return None


def give_up_or_wait(error, attempt):
    """Raises what is not about a slow start; else lets the process that was too slow end, which is busy until then."""
    if SLOW_START not in str(error) or attempt + 1 == ATTEMPTS:
        raise error
    time.sleep(5 * attempt)


def until(query, holds):
    """Waits for something that a running query does."""
    end = time.monotonic() + WAIT_S
    while not holds():
        assert not query.awaitTermination(0.1), "the query has ended"
        assert time.monotonic() < end, f"it did not come in {WAIT_S} s"
