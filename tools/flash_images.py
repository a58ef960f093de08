"""Code that does not lie in a board's file system: the sources for a firmware with Leveret frozen in, and ROMFS images.

DIR/leveret/...        the sources of a board, as boards/manifest.py freezes them
DIR/leveret.romfs      the same compiled, as `mpremote romfs deploy` takes it, and `leveret flash --update --image` on another computer

An image has a file ABOUT, which says whose it is and what its other files are: an image of another board, a part of one, or one with an
octet that was changed on its way is not taken.
"""

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tempfile

from . import flash_files, romfs

IMAGE = "leveret.romfs"
ABOUT = "leveret.txt"
DEPLOY_S = 300


def image(board, native):
    """The octets of a board's ROMFS image. Raises CompileFailed."""
    return packed(board, flash_files.compiled(board, native))


def packed(board, files):
    """The octets of an image of a board's Files."""
    from mpremote.romfs import make_romfs

    with tempfile.TemporaryDirectory(prefix="leveret-romfs-") as directory:
        for path, octets in [(file.path, file.octets) for file in files] + [(ABOUT, about(board, files))]:
            place = os.path.join(directory, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as target:
                target.write(octets)
        with contextlib.redirect_stdout(io.StringIO()):  # it prints the tree
            return bytes(make_romfs(directory, mpy_cross=False))


def about(board, files):
    """The octets of ABOUT: the board's name, and one digest of all paths and octets."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path} {file.sha256}\n".encode())
    return f"board {board.name}\nsha256 {digest.hexdigest()}\n".encode()


def unpacked(path, board):
    """The Files of the image at `path`, which is to be one of this board. Raises flash.Unsuitable."""
    from .flash import Unsuitable

    try:
        with open(path, "rb") as source:
            octets_of = dict(romfs.files(source.read()))
    except OSError as error:
        raise Unsuitable(f"{path} cannot be read: {error.strerror}") from None
    except romfs.NotWhole as error:
        raise Unsuitable(f"{path} {error}: receive it again") from None
    said = octets_of.pop(ABOUT, b"").split()
    if len(said) != 4:
        raise Unsuitable(f"{path} is not an image that `leveret flash --stage` has made: it has no {ABOUT}")
    if said[1] != board.name.encode():
        raise Unsuitable(f"{path} is an image of the board {said[1].decode('ascii', 'replace')}, not of {board.name}")
    files = [flash_files.File(name, octets) for name, octets in sorted(octets_of.items())]
    if about(board, files).split() != said:
        raise Unsuitable(f"{path} has other octets than it was made of: receive it again")
    return files


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
