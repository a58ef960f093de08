"""What takes seconds to make and follows from texts alone, made once for many processes: kept in the folder that LEVERET_KEPT names.

`dev.py test` names a folder that goes with the run, for all its legs. Without the variable everything is made where it is asked for.
"""

import functools
import glob
import hashlib
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VARIABLE = "LEVERET_KEPT"


def kept(given, make):
    """What `make()` returns, which JSON can say, or what it returned for the same `given` (of texts and numbers) and the same tools."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return make()
    path = os.path.join(directory, hashlib.sha256(repr((_tools(), given)).encode()).hexdigest())
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        made = make()
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False, encoding="utf-8") as new:
        json.dump(made, new)
    os.replace(new.name, path)  # whole, whoever reads it meanwhile
    return made


@functools.cache
def _tools():
    """One text for the programs that make it."""
    seen = hashlib.sha256(sys.version.encode())
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        with open(path, "rb") as file:
            seen.update(file.read())
    return seen.hexdigest()
