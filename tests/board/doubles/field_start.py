"""Starts a board for the long run as a reset does: micropython -X heapsize=N field_start.py ONLY_TELL DOUBLES IMAGE [ROMFS].

DOUBLES: the folder of this file's neighbours. IMAGE: the octets of the flash, a littlefs. ROMFS: an image that flash holds beside the
file system. ONLY_TELL: "tell" ends it before boot.py. First it prints "FIELD 0 FREE TAKEN ADDRESS": octets of heap that are free before
boot.py, what doubles, file system and image have taken of it, and where in memory it lies. (A board has its pins and radio in C, and its
image in flash: long_run.py makes the heap larger by what is taken here.)
"""

import gc
import os
import sys

sys.path[:] = [sys.argv[2]]
import vfs  # noqa: E402 - MicroPython's own

if len(sys.argv) > 4:
    with open(sys.argv[4], "rb") as _file:
        _image = _file.read()
    vfs.mount(vfs.VfsRom(_image), "/rom")
from flash_disk import FlashDisk  # noqa: E402 - of the path above

disk = FlashDisk(sys.argv[3])
vfs.mount(vfs.VfsLfs2(disk), "/flash")
os.chdir("/flash")
sys.path[:] = [sys.argv[2], "", ".frozen", "/flash/lib"] + (["/rom/lib"] if len(sys.argv) > 4 else [])
import machine  # noqa: E402, F401 - the doubles
import network  # noqa: E402, F401 - the doubles

gc.collect()
print("FIELD 0", gc.mem_free(), gc.mem_alloc(), id(disk))
if sys.argv[1] == "tell":
    sys.exit()
for _name in ("boot.py", "main.py"):
    try:
        with open(_name) as _file:
            _source = _file.read()
        exec(compile(_source, _name, "exec"), {"__name__": "__main__"})
    except Exception as _error:  # as a board: told, and the next one runs
        sys.print_exception(_error)
gc.collect()
print("ENDED", disk.erased, gc.mem_free())
