"""Runs in a `micropython` binary: the power-cut sweep with the folder store on littlefs and with the flash store; prints the cuts."""

import os

from flash_device import PowerCut, RamFlash
from power_cuts import sweep

from leveret.ports.store_flash import FlashStore
from leveret.ports.store_littlefs import FolderStore

PLACE = "/flash"


def formatted():
    """A chip with an empty littlefs."""
    device = RamFlash(32)
    os.VfsLfs2.mkfs(device, progsize=256)
    device.power_up()
    return device


def open_folder(device):
    """The store on the file system of a chip."""
    try:
        os.umount(PLACE)
    except OSError:
        pass  # the first time
    os.mount(os.VfsLfs2(device, progsize=256), PLACE)
    return FolderStore(PLACE + "/log")


def close_folder(store):
    """Let go of the open file, so that it is not closed later by the collector."""
    if store is not None and store.file is not None:
        try:
            store.file.close()
        except (OSError, PowerCut):
            pass  # there is no power


print(sweep(formatted, open_folder, close_folder, 60000, 3), "cuts on littlefs")
print(sweep(lambda: RamFlash(16), FlashStore, lambda store: None, 30000, 3), "cuts on raw flash")
