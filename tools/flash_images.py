"""Code that does not lie in a board's file system: the sources for a firmware with Leveret frozen in, and ROMFS images.

DIR/leveret/...        the sources of a board, as boards/manifest.py freezes them
DIR/leveret.romfs      the same compiled, as `mpremote romfs deploy` takes it
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile

from . import flash_files

IMAGE = "leveret.romfs"
DEPLOY_S = 300


def image(board, native):
    """The octets of a board's ROMFS image. Raises CompileFailed."""
    from mpremote.romfs import make_romfs

    with tempfile.TemporaryDirectory(prefix="leveret-romfs-") as directory:
        for file in flash_files.compiled(board, native):
            place = os.path.join(directory, file.path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as target:
                target.write(file.octets)
        with contextlib.redirect_stdout(io.StringIO()):  # it prints the tree
            return bytes(make_romfs(directory, mpy_cross=False))


def write(board, directory):
    """Write both to a directory: what was written, in a sentence."""
    native = board.architecture in flash_files.MACHINE_CODE
    tree = flash_files.sources(board, native)
    flash_files.write_tree(tree, directory)
    octets = image(board, native)
    with open(os.path.join(directory, IMAGE), "wb") as file:
        file.write(octets)
    return f"{len(tree)} sources in {os.path.join(directory, 'leveret')}, and {os.path.join(directory, IMAGE)} of {len(octets)} octets"


def deploy(place, octets):
    """Put an image into the ROMFS partition of the board at `place` (a flash_board.BoardPort), with mpremote. Raises BoardFailed,
    PortFailed.
    """
    from .flash_board import BoardFailed

    with tempfile.TemporaryDirectory(prefix="leveret-romfs-") as directory:
        path = os.path.join(directory, IMAGE)
        with open(path, "wb") as file:
            file.write(octets)
        place.close()
        command = [sys.executable, "-m", "mpremote", "connect", place.port, "romfs", "deploy", path]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEPLOY_S)
            said = (done.stdout + done.stderr).strip().splitlines()
            trouble = "" if done.returncode == 0 else said[-1] if said else "no reason given"
        except subprocess.TimeoutExpired:
            trouble = f"no end in {DEPLOY_S} s"
    place.open()
    place.enter()
    if trouble or not said or "not enabled" in said[-1]:
        raise BoardFailed(f"the ROMFS image cannot be put on the board: {trouble or said}")
