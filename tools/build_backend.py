"""The package's build: setuptools, after cffi has written the C halves of leveret.c_accel's modules from their headers.

pyproject.toml names this file as its build backend and the modules among setuptools' extension modules.
"""
import os
import re
import sys

import cffi
from setuptools import build_meta
from setuptools.build_meta import (build_sdist, get_requires_for_build_editable, get_requires_for_build_sdist,  # noqa: F401 - handed on
                                   get_requires_for_build_wheel, prepare_metadata_for_build_editable, prepare_metadata_for_build_wheel)

sys.path.append("c_accel")
import sources  # noqa: E402 - the package is not installed yet

MODULES = ("hot", "perf")


def write_modules():
    """Write the C files that give Python the functions of hot.h and perf.h."""
    for name in MODULES:
        with open(os.path.join("c_accel", name + ".h"), encoding="utf-8") as file:
            declarations = re.sub(r"(?ms)^#.*?$|/\*.*?\*/", "", file.read())
        builder = cffi.FFI()
        builder.cdef(declarations + "static const unsigned int leveret_sources;")
        number = "static const unsigned int leveret_sources = %dU;" % sources.fingerprint()
        builder.set_source("leveret.c_accel._" + name, '#include "%s.h"\n%s' % (name, number))
        os.makedirs(os.path.join("build", "c_accel"), exist_ok=True)
        builder.emit_c_code(os.path.join("build", "c_accel", "_%s.c" % name))


def build_wheel(*given):
    """PEP 517."""
    write_modules()
    return build_meta.build_wheel(*given)


def build_editable(*given):
    """PEP 660."""
    write_modules()
    return build_meta.build_editable(*given)
