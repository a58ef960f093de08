"""Log segments as files of a directory, for Linux: durable means fdatasync, and the directory synced when a file comes or goes.

The contract is in core/log.py. Only one broker at a time has a directory: it holds a lock on the file `lock`.
"""

import fcntl
import os
import time

SUFFIX = ".log"


class DirectoryInUse(Exception):
    """Another broker has the directory."""


class FileStore:
    """A directory of segments, made when it is not there."""

    def __init__(self, path):
        self.path = path
        os.makedirs(path, exist_ok=True)
        self.lock = open(os.path.join(path, "lock"), "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.lock.close()
            raise DirectoryInUse("%s is used by another broker" % path) from None
        self.directory = os.open(path, os.O_RDONLY)
        self.number = None  # of the open file
        self.file = None
        self.fresh = False  # its name is not durable yet

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
        with open(self.name(number), "rb") as file:
            file.seek(offset)
            return file.read(size)

    def append(self, number, octets):
        """Write at the end of a segment."""
        if number != self.number:
            self.close_file()
            path = self.name(number)
            self.fresh = not os.path.exists(path)
            self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self.number = number
        view = memoryview(octets)
        start = os.lseek(self.file, 0, os.SEEK_END)
        try:
            while len(view):
                view = view[os.write(self.file, view):]
        except OSError:
            os.ftruncate(self.file, start)  # a full disk may have taken a part; the same octets come again
            raise

    def sync(self, number):
        """Make what was appended durable."""
        if self.file is not None:
            os.fdatasync(self.file)
        if self.fresh:
            os.fsync(self.directory)
            self.fresh = False

    def remove(self, number):
        """Remove a segment."""
        if number == self.number:
            self.close_file()
        os.remove(self.name(number))
        os.fsync(self.directory)

    def keep_aside(self, number, offset):
        """Copy what lies behind `offset` to a file named with the date, then cut it off."""
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        damaged = os.path.join(self.path, "%08d-%d.damaged-%s" % (number, offset, stamp))
        with open(self.name(number), "r+b") as file:
            file.seek(offset)
            tail = file.read()
            with open(damaged, "wb") as kept:
                kept.write(tail)
                kept.flush()
                os.fsync(kept.fileno())
            file.truncate(offset)
            os.fsync(file.fileno())
        os.fsync(self.directory)

    def close_file(self):
        """Close the segment that is written to."""
        if self.file is not None:
            os.fdatasync(self.file)
            os.close(self.file)
            self.file = None
            self.number = None

    def close(self):
        """Let go of the directory."""
        self.close_file()
        os.close(self.directory)
        self.lock.close()
