"""Which tests were unsteady in earlier runs of `dev.py test`: one that is so again within RUNS runs fails the run.

The memory is a file of the working copy, `.cache/unsteady.json`, or the one that LEVERET_UNSTEADY names: CI tests a fresh copy each time
and keeps the file of its own checkout (.ci/run). It counts runs, not days. A run that is interrupted leaves it as it was.
tests/unsteady.toml is committed: the tests that may be unsteady for a while, each with its reason and the last day of that.
"""

import datetime
import fcntl
import json
import os
import tomllib

from . import environment

RUNS = 20
VARIABLE = "LEVERET_UNSTEADY"
EXCUSED = os.path.join(environment.ROOT, "tests", "unsteady.toml")


def place():
    """The memory's path."""
    return os.environ.get(VARIABLE) or os.path.join(environment.ROOT, ".cache", "unsteady.json")


def read_excused(path=EXCUSED):
    """{test: (reason, last day)} of the committed list. Raises ValueError for an entry without one of the two."""
    with open(path, "rb") as file:
        rows = tomllib.load(file).get("test", [])
    for row in rows:
        if sorted(row) != ["name", "reason", "until"] or not row["reason"].strip() or not isinstance(row["until"], datetime.date):
            raise ValueError(f"{path}: an entry has a name, a reason, and the day `until` which it holds: {row}")
    return {row["name"]: (row["reason"], row["until"]) for row in rows}


def _read(path):
    """(number of runs so far, {test: number of the run in which it was unsteady last}); a broken memory is an empty one."""
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        return int(kept["runs"]), {str(name): int(run) for name, run in kept["unsteady"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0, {}


def remember(names, path, excused, today):
    """Count a run in which the tests `names` were unsteady: the sentences of those that were so in one of the last RUNS runs too."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs, before = _read(path)
        runs += 1
        known = {name: run for name, run in before.items() if runs - run <= RUNS}
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"runs": runs, "unsteady": {**known, **dict.fromkeys(names, runs)}}, file, indent=1, sort_keys=True)
        os.replace(path + ".new", path)
    return [
        f"{name} was unsteady {runs - known[name]} runs ago and is so again: mend it, or give its reason in tests/unsteady.toml"
        for name in names
        if name in known and not (name in excused and today <= excused[name][1])
    ]
