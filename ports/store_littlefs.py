"""Log segments as small files of a file system, with nothing but open, listdir, stat, remove and rename: as littlefs under MicroPython.

The contract is in core/log/segments.py. Durable means flush: littlefs commits a file's octets and size together then, and a file that was
not flushed is after a power cut as it was at the last flush. Where the interpreter has fsync it is used too.
A file cannot be cut here: the good part is copied and takes the name of the whole.
"""

import os
import time

from ..core.log import segment_list
from ..core.shim import const

if False:  # for the type checker alone
    from typing import Any

SUFFIX = ".log"
_DAMAGED = ".damaged-"
_COPY = "copy.new"
_COPY_SIZE = const(512)
_READ_MAX = const(1024)  # octets that one read gives at most: a board's heap has no more in one piece
_KEPT_MAX = const(2)  # damaged ends that are kept; an older one goes
_BLOCK_SIZE = const(4096)  # littlefs writes the last block of a file anew for every flush, and its directory entry


class FolderStore:
    """A folder of segments, made when it is not there. Raises OSError."""

    cycles = 100000  # erasures that a sector of NOR flash bears, as its makers promise

    def __init__(self, path: str) -> None:
        self.path = path
        self.number: int | None = None  # of the open file
        self.file: "Any" = None
        self.durable = 0  # its size at the last flush
        self.unsynced = 0
        self.medium_octets = 0
        self.erases = 0
        try:
            os.listdir(path)
        except OSError:
            os.mkdir(path)
        self.capacity = capacity_of(path)
        names = os.listdir(path)
        if _COPY in names:
            os.remove(self.place(_COPY))
        octets = b""
        if segment_list.FILE in names:
            with open(self.place(segment_list.FILE), "rb") as file:
                octets = file.read()
        self.note = segment_list.Noted(octets)
        if self.note.ranges is None and not self.numbers():
            self.note.ranges = []
            self.write_note()

    def place(self, name: str) -> str:
        """The path of a file."""
        return self.path + "/" + name

    def name(self, number: int) -> str:
        """The path of a segment."""
        return self.place("%08d%s" % (number, SUFFIX))

    def numbers(self) -> list[int]:
        """All segment numbers, rising."""
        names = [name for name in os.listdir(self.path) if name.endswith(SUFFIX) and len(name) == 12 and name[:8].isdigit()]
        return sorted([int(name[:8]) for name in names])

    def noted(self) -> "Any":
        """As core/log/segments.py has it; None: the file that says so is missing or damaged."""
        return self.note.known()

    def write_note(self) -> None:
        """Write the note of the segments that exist."""
        octets = self.note.octets()
        with open(self.place(_COPY), "wb") as file:
            file.write(octets)
            file.flush()
            if hasattr(os, "fsync"):
                os.fsync(file.fileno())
        os.rename(self.place(_COPY), self.place(segment_list.FILE))
        self.count(len(octets))

    def size(self, number: int) -> int:
        """Octets of a segment."""
        return os.stat(self.name(number))[6]

    def read(self, number: int, offset: int, size: int) -> bytes:
        """Octets of a segment: at most _READ_MAX, none at its end."""
        with open(self.name(number), "rb") as file:
            file.seek(offset)
            return file.read(min(size, _READ_MAX))

    def append(self, number: int, octets: bytes | bytearray | memoryview) -> None:
        """Write at the end of a segment. After an error a part may be there."""
        if number != self.number:
            self.finish()
            self.file = open(self.name(number), "ab")
            self.number = number
            self.durable = self.size(number)
        self.file.write(octets)
        self.unsynced += len(octets)

    def sync(self, number: int) -> None:
        """Make a segment durable. Segments that nobody writes to are durable already."""
        if number == self.number and self.unsynced:
            self.file.flush()
            if hasattr(os, "fsync"):
                os.fsync(self.file.fileno())
            self.count(self.durable % _BLOCK_SIZE + self.unsynced)
            self.durable += self.unsynced
            self.unsynced = 0
        if self.note.add(number):
            try:
                self.write_note()
            except OSError:
                self.note.remove(number, [])  # the sync has failed, and is done once more
                raise

    def count(self, octets: int) -> None:
        """Count the blocks that a flush makes the file system erase and write."""
        blocks = (octets + _BLOCK_SIZE - 1) // _BLOCK_SIZE
        self.erases += blocks
        self.medium_octets += blocks * _BLOCK_SIZE

    def remove(self, number: int) -> None:
        """Remove a segment. The note of the segments is written first; where there is no space even for the note, afterwards."""
        if number == self.number:
            self.finish()
        if self.note.remove(number, self.numbers()):
            try:
                self.write_note()
            except OSError:
                os.remove(self.name(number))
                self.write_note()
                return
        os.remove(self.name(number))

    def keep_aside(self, number: int, offset: int) -> None:
        """Copy what lies behind `offset` to a file named with the date, then cut it off. Raises OSError without room for that."""
        stamp = "%04d%02d%02dT%02d%02d%02d" % tuple(time.gmtime(time.time())[:6])
        damaged = "%08d-%d%s%s" % (number, offset, _DAMAGED, stamp)
        copy(self.name(number), self.place(damaged), offset, self.size(number))
        kept = sorted([name for name in os.listdir(self.path) if _DAMAGED in name and name != damaged])
        for name in kept[: max(0, len(kept) + 1 - _KEPT_MAX)]:
            os.remove(self.place(name))
        self.cut(number, offset)

    def cut(self, number: int, size: int) -> None:
        """Cut a segment to its first `size` octets."""
        copy(self.name(number), self.place(_COPY), 0, size)
        os.rename(self.place(_COPY), self.name(number))

    def finish(self) -> None:
        """Make the open segment durable and close it. An error here is of a segment that the log has left already."""
        file, self.file, self.number = self.file, None, None
        self.unsynced = 0
        try:
            if file is not None:
                file.close()
        except OSError:
            pass  # only where a write or a flush has failed before, or nobody asked for durability

    def close(self) -> None:
        """Close the open segment; its octets are durable."""
        self.finish()


def copy(source: str, target: str, first: int, end: int) -> None:
    """Make the file `target` of the octets [first, end) of the file `source`. Raises OSError, and leaves no half of it."""
    try:
        with open(source, "rb") as from_file, open(target, "wb") as to_file:
            from_file.seek(first)
            while first < end:
                octets = from_file.read(min(_COPY_SIZE, end - first))
                to_file.write(octets)
                first += len(octets)
            to_file.flush()
            if hasattr(os, "fsync"):
                os.fsync(to_file.fileno())
    except OSError:
        try:
            os.remove(target)
        except OSError:
            pass  # it was not made
        raise


def capacity_of(path: str) -> int:
    """Octets of the file system, 0 where it does not tell."""
    try:
        space = os.statvfs(path)
    except OSError:
        return 0
    return space[1] * space[2]  # f_frsize, f_blocks
