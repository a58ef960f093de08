"""What the C modules are made of, as one number: a module that was built from other sources is not to be used.

The package's build (tools/build_backend.py) writes the number into each module; where the sources lie beside it (a checkout, installed
with -e), c_accel/__init__.py compares. Imports nothing of Leveret's: the build runs before it is installed.
"""

import os
import zlib

FOLDER = os.path.dirname(os.path.abspath(__file__))


def hot_files():
    """The C files of the hot functions, those that pyproject.toml builds `_hot` of: paths."""
    return [os.path.join(FOLDER, name) for name in sorted(os.listdir(FOLDER)) if name.endswith(".c") and name != "perf.c"]


def fingerprint():
    """A CRC-32 over the C files in their order, None where there are none (a wheel)."""
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith((".c", ".h")))
    crc = 0
    for name in names:
        with open(os.path.join(FOLDER, name), "rb") as file:
            crc = zlib.crc32(file.read(), crc)
    return crc if names else None
