"""Boards for the tests: the WebAssembly build always, a `micropython` binary where there is one (on the PATH, or LEVERET_MICROPYTHON
names it).
"""

import os
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "micropython"), os.path.join(os.path.dirname(HERE), "serial")]

import toolchain  # noqa: E402 - in tests/micropython
from board import UnixBoard, WasmBoard  # noqa: E402 - beside this file

FLASH = (sys.executable, "-m", "leveret.tools.cli", "flash")


def micropython():
    """The `micropython` binary. Raises toolchain.Missing."""
    return os.environ.get("LEVERET_MICROPYTHON") or toolchain.unix()


@pytest.fixture(scope="session")
def webassembly():
    """(node, package directory)."""
    try:
        return toolchain.webassembly()
    except toolchain.Missing as missing:
        pytest.skip("node: %s" % missing)


@pytest.fixture(params=["wasm", "unix"])
def make_board(request):
    """A function that makes a board of a folder."""
    if request.param == "wasm":
        return lambda folder: WasmBoard(*request.getfixturevalue("webassembly"), folder)
    try:
        binary = micropython()
    except toolchain.Missing:
        pytest.skip("there is no `micropython` binary")
    return lambda folder: UnixBoard(binary, folder)


@pytest.fixture
def unix_binary():
    """The path of a `micropython` binary."""
    try:
        return micropython()
    except toolchain.Missing:
        pytest.skip("there is no `micropython` binary")


def flash(*arguments, board="unix", environment=None, timeout=180):
    """`leveret flash --board ...` as a process: the subprocess.CompletedProcess."""
    return subprocess.run(
        [*FLASH, "--board", board, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=dict(os.environ, **(environment or {})),
    )


def put(folder, files):
    """Lay out Files below a folder."""
    for file in files:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.octets)


@pytest.fixture(scope="session")
def flashed_files():
    """The Files of the board "unix", as `leveret flash` would copy them."""
    from leveret.tools import boards, flash

    return flash.plan(boards.load("unix"), False)


@pytest.fixture
def flashed(tmp_path, flashed_files):
    """A folder that looks like a board on which the flash has been done, but for its settings."""
    folder = tmp_path / "flashed"
    put(folder, flashed_files)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
