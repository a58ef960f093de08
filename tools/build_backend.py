"""The package's build: setuptools, after cffi has written the C half of leveret.c_accel._hot from c_accel/hot.h.

pyproject.toml names this file as its build backend and the module among setuptools' extension modules.
"""
import os
import re

import cffi
from setuptools import build_meta
from setuptools.build_meta import (build_sdist, get_requires_for_build_editable, get_requires_for_build_sdist,  # noqa: F401 - handed on
                                   get_requires_for_build_wheel, prepare_metadata_for_build_editable, prepare_metadata_for_build_wheel)

HEADER = os.path.join("c_accel", "hot.h")
MODULE = os.path.join("build", "c_accel", "_hot.c")


def write_module():
    """Write the C file that gives Python the functions of hot.h."""
    with open(HEADER, encoding="utf-8") as file:
        declarations = re.sub(r"(?ms)^#.*?$|/\*.*?\*/", "", file.read())
    builder = cffi.FFI()
    builder.cdef(declarations)
    builder.set_source("leveret.c_accel._hot", '#include "hot.h"')
    os.makedirs(os.path.dirname(MODULE), exist_ok=True)
    builder.emit_c_code(MODULE)


def build_wheel(*given):
    """PEP 517."""
    write_module()
    return build_meta.build_wheel(*given)


def build_editable(*given):
    """PEP 660."""
    write_module()
    return build_meta.build_editable(*given)
