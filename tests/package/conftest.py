"""What the tests of packages share: Debian systems of other processors as folders, and what `dev.py package` makes, once."""

import shutil
import subprocess
import sys

import pytest

from leveret.tools.devtool import package_deb, package_oci

SECONDS = 1200
DEBIAN = "http://deb.debian.org/debian"
PYTHON = "python3.11-minimal,libpython3.11-stdlib,python3-cffi-backend,python3-serial,libssl3"


def need(*programs):
    """Skip, naming the first of these programs that is not there."""
    for name in programs:
        if not shutil.which(name):
            pytest.skip(f"{name} is not there")


def checked(command, **given):
    """What a command writes to standard output; it must end with status 0."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, **given)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """made(KIND, NAME): the path of what `dev.py package KIND NAME` writes, made once in a run; packages and images of the same wheel."""
    out = str(tmp_path_factory.mktemp("dist"))
    known = {}

    def make(kind, name=None):
        if (kind, name) not in known:
            known[kind, name] = build(kind, name)
        return known[kind, name]

    def build(kind, name):
        if kind == "deb":
            return package_deb.build(name, out, wheel=make("wheel", package_deb.ARCHITECTURES[name]))
        if kind == "oci":
            return package_oci.build(name, out, make("wheel", package_oci.ARCHITECTURES[name]))
        command = [sys.executable, "-m", "leveret.tools.devtool.package", kind, *([name] if name else []), "--out", out]
        return checked(command).strip().splitlines()[-1]

    return make


@pytest.fixture(scope="session")
def systems(tmp_path_factory):
    """systems(ARCHITECTURE): a folder with Debian's Python 3.11 for it, unpacked and not set up."""
    known = {}

    def unpacked(architecture):
        need("mmdebstrap")
        if architecture not in known:
            folder = str(tmp_path_factory.mktemp(architecture) / "root")
            options = ["--variant=extract", f"--architectures={architecture}", f"--include={PYTHON}", "--quiet"]
            checked(["mmdebstrap", *options, "bookworm", folder, DEBIAN])
            known[architecture] = folder
        return known[architecture]

    return unpacked
