"""Makes a littlefs of a folder: micropython field_format.py DOUBLES IMAGE FOLDER. IMAGE is a file of whole blocks."""

import os
import sys

sys.path[:] = [sys.argv[1]]
import vfs  # noqa: E402 - MicroPython's own
from flash_disk import FlashDisk  # noqa: E402 - of the path above

disk = FlashDisk(sys.argv[2])
vfs.VfsLfs2.mkfs(disk)
vfs.mount(vfs.VfsLfs2(disk), "/flash")


def copy(source, target):
    """Copy a folder."""
    for name in os.listdir(source):
        place = source + "/" + name
        if os.stat(place)[0] & 0x4000:
            os.mkdir(target + "/" + name)
            copy(place, target + "/" + name)
            continue
        with open(place, "rb") as file, open(target + "/" + name, "wb") as copied:
            copied.write(file.read())


copy(sys.argv[3], "/flash")
