"""The threaded file store with a thread of C for what it does most: octets that are written at the end of the open segment and synced.

What is rarer the thread of ports/store_thread.py does: a segment that is opened or removed, a reserve that is owed, and what a full disk
has left of a write.
"""

import threading

from leveret.ports.store_file import FULL
from leveret.ports.store_thread import ThreadedFileStore

from ._hot import ffi, lib


class DiskStore(ThreadedFileStore):
    """As ThreadedFileStore. Raises DirectoryInUse, OSError; MemoryError where there is none for it."""

    def __init__(self, path, pollable=None):
        ThreadedFileStore.__init__(self, path, pollable)
        self.disk = lib.leveret_make_disk(self.pollable)
        if self.disk == ffi.NULL:
            self.disk = None
            self.close()
            raise MemoryError("there is no memory for the log's thread")
        self.worker = threading.Thread(target=lib.leveret_work_disk, args=(self.disk,), name="leveret-disk", daemon=True)
        self.worker.start()
        self.error_at = ffi.new("int32_t *")
        self.writing = None  # the octets that C writes

    def begin(self, number, octets):
        """As core/log/segments.py has it."""
        if number != self.number or self.fresh or self.reserve_size and not self.reserved:
            ThreadedFileStore.begin(self, number, octets)
            return
        self.writing = octets
        self.left -= len(octets)
        lib.leveret_begin_write(self.disk, self.file, ffi.from_buffer("uint8_t[]", octets), len(octets))

    def ended(self):
        """As core/log/segments.py has it."""
        if self.writing is None:
            return ThreadedFileStore.ended(self)
        written = lib.leveret_write_ended(self.disk, self.error_at)
        if written < 0:
            return False
        octets, self.writing = self.writing, None
        self.unsynced += written
        error = self.error_at[0]
        if error in FULL:
            self.left += len(octets) - written
            self._begin(self._write, self.number, memoryview(octets)[written:])
            return False
        if error:
            raise OSError(error, "the log cannot be written")
        self.has_synced()
        return True

    def wait(self):
        """As core/log/segments.py has it."""
        if self.writing is None:
            ThreadedFileStore.wait(self)
        else:
            lib.leveret_wait_write(self.disk)

    def close(self):
        """End both threads and unlock the directory."""
        if self.disk is not None:
            lib.leveret_end_disk(self.disk)
            self.worker.join()
            lib.leveret_drop_disk(self.disk)
            self.disk = None
        ThreadedFileStore.close(self)
