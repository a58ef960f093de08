"""The package's build: setuptools, after cffi has written the C halves of leveret.c_accel's modules from their headers.

pyproject.toml names this file as its build backend and the modules among setuptools' extension modules. cffi has no wheels for some
machines (32-bit ARM, RISC-V) and does not build without a compiler: there the package is built without its C half, unless the C half
is asked for with LEVERET_ACCEL=1 or everything that cffi's own build needs is there.
"""

import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile

from setuptools import build_meta

sys.path.append("c_accel")
import sources  # type: ignore[import-not-found]  # noqa: E402 - the package is not installed yet

# Handed on as they are.
build_sdist = build_meta.build_sdist
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel

# Each with the headers that say what Python calls.
MODULES = {"hot": ("hot.h", "amqp_0_9.h", "amqp_0_9_drafts.h", "amqp_0_10.h", "amqp_1_0.h", "disk.h"), "perf": ("perf.h",)}
CFFI = "cffi==2.1.1"
WITH_WHEELS = ("x86_64", "AMD64", "i686", "aarch64", "arm64", "ARM64", "ppc64le", "s390x")  # of cffi, on PyPI; pyproject.toml has them too


def compiles_cffi():
    """True when cffi's own source would compile here: a compiler, Python's headers and libffi's."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "look.c")
        with open(path, "w") as file:
            file.write("#include <Python.h>\n#include <ffi.h>\n")
        try:
            command = [*compiler.split(), "-I", sysconfig.get_path("include"), "-c", path, "-o", os.path.join(folder, "look.o")]
            return subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            return False


def _with_cffi(asked):
    wanted = os.environ.get("LEVERET_ACCEL") == "1" or platform.machine() in WITH_WHEELS or compiles_cffi()
    return [*asked, CFFI] if wanted else asked


def get_requires_for_build_wheel(settings=None):
    """PEP 517."""
    return _with_cffi(build_meta.get_requires_for_build_wheel(settings))


def get_requires_for_build_editable(settings=None):
    """PEP 660."""
    return _with_cffi(build_meta.get_requires_for_build_editable(settings))


def write_modules():
    """Write the C files that give Python the functions of hot.h and perf.h; without cffi there are none, and the modules are left out."""
    try:
        import cffi
    except ImportError:
        print("cffi is not here: leveret is built without its C half (LEVERET_ACCEL=1 asks for it)", file=sys.stderr)
        for name in MODULES:
            if os.path.exists(_path(name)):
                os.remove(_path(name))
        return
    for name, headers in MODULES.items():
        declarations = ""
        for header in headers:
            with open(os.path.join("c_accel", header), encoding="utf-8") as file:
                declarations += re.sub(r"(?ms)^#.*?$|/\*.*?\*/", "", file.read())
        builder = cffi.FFI()
        builder.cdef(declarations + "static const unsigned int leveret_sources;")
        number = "static const unsigned int leveret_sources = %dU;" % sources.fingerprint()
        builder.set_source("leveret.c_accel._" + name, "".join('#include "%s"\n' % header for header in headers) + number)
        os.makedirs(os.path.dirname(_path(name)), exist_ok=True)
        builder.emit_c_code(_path(name))


def _path(name):
    return os.path.join("build", "c_accel", "_%s.c" % name)


def build_wheel(*given):
    """PEP 517."""
    write_modules()
    return build_meta.build_wheel(*given)


def build_editable(*given):
    """PEP 660."""
    write_modules()
    return build_meta.build_editable(*given)
