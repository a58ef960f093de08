"""Log segments as files of a directory, for Linux: durable means fdatasync, and the directory synced when a file comes or goes.

The contract is in core/log.py. Only one program at a time has a directory: it holds a lock on the file `lock`.
"""

import fcntl
import os
import time

SUFFIX = ".log"
PAGE = 4096  # what a sync makes the medium write at least
CYCLES = 1000  # how often a cell of a memory card bears to be written: what makers of cheap ones promise
COPY_SIZE = 65536
LOOK_S = 0.1  # how often the file system is asked for its room


class DirectoryInUse(Exception):
    """Another program has the directory."""


class FileStore:
    """A directory of segments, made when it is not there. Raises DirectoryInUse, OSError."""

    cycles = CYCLES

    def __init__(self, path, make=True):
        self.path = path
        self.medium_octets = 0
        self.number = None  # of the open file
        self.file = None
        self.unsynced = 0  # octets of it that a power cut may take
        self.fresh = False  # its name is not durable yet
        if make:
            os.makedirs(path, 0o700, exist_ok=True)
        self.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.lock = open(os.path.join(path, "lock"), "a")
        except OSError:
            os.close(self.directory)
            raise
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.lock.close()
            os.close(self.directory)
            raise DirectoryInUse("the directory %s is in use by another broker or by leveret log" % path) from None
        space = os.fstatvfs(self.directory)
        self.capacity = space.f_blocks * space.f_frsize
        self.left = 0  # octets of the file system that were free when it was asked, less what was written since
        self.look_at = 0.0

    def name(self, number):
        """The path of a segment."""
        return os.path.join(self.path, "%08d%s" % (number, SUFFIX))

    def numbers(self):
        """All segment numbers, rising."""
        return sorted(int(name[:-len(SUFFIX)]) for name in os.listdir(self.path)
                      if name.endswith(SUFFIX) and name[:-len(SUFFIX)].isdigit())

    def size(self, number):
        """Octets of a segment."""
        return os.path.getsize(self.name(number))

    def read(self, number, offset, size):
        """Octets of a segment; fewer at its end."""
        with open(self.name(number), "rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size)

    def free(self):
        """Octets that the file system has left for us."""
        now = time.monotonic()
        if now >= self.look_at:
            self.look_at = now + LOOK_S
            space = os.fstatvfs(self.directory)
            self.left = space.f_bavail * space.f_frsize
        return self.left

    def append(self, number, octets):
        """Write at the end of a segment. After an error a part may be there."""
        self.left -= len(octets)
        if number != self.number:
            self.open_file(number)
        view = memoryview(octets)
        while len(view):
            view = view[os.write(self.file, view):]
        self.unsynced += len(octets)

    def open_file(self, number):
        """Open a segment to write to."""
        self.close_file()
        path = self.name(number)
        self.fresh = not os.path.exists(path)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.number = number
        self.unsynced = 0

    def sync(self, number):
        """Make a segment durable, its name too."""
        if number != self.number:
            with open(self.name(number), "rb") as file:
                os.fdatasync(file.fileno())
            self.sync_directory()
            return
        os.fdatasync(self.file)
        self.medium_octets += (self.unsynced + PAGE - 1) // PAGE * PAGE + PAGE  # the last page is written again, and the file's size
        self.unsynced = 0
        if self.fresh:
            self.sync_directory()
            self.fresh = False

    def sync_directory(self):
        """Make the coming and going of files durable."""
        os.fsync(self.directory)
        self.medium_octets += PAGE

    def remove(self, number):
        """Remove a segment."""
        if number == self.number:
            self.close_file()
        os.remove(self.name(number))
        self.look_at = 0.0
        self.sync_directory()

    def keep_aside(self, number, offset):
        """Copy what lies behind `offset` to a file named with the date, then cut it off."""
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        damaged = os.path.join(self.path, "%08d-%d.damaged-%s" % (number, offset, stamp))
        with open(self.name(number), "r+b", buffering=0) as file:
            file.seek(offset)
            with open(damaged, "wb", buffering=0) as kept:
                while octets := file.read(COPY_SIZE):
                    kept.write(octets)
                os.fsync(kept.fileno())
            self.sync_directory()
            file.truncate(offset)
            os.fsync(file.fileno())

    def close_file(self):
        """Close the segment that is written to."""
        if self.file is not None:
            os.close(self.file)
            self.file = None
            self.number = None

    def close(self):
        """Let go of the directory."""
        self.close_file()
        os.close(self.directory)
        self.lock.close()
