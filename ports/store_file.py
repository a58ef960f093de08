"""Log segments as files of a directory, for Linux: durable means fdatasync, and the directory synced when a file comes or goes.

The contract is in core/log/segments.py. A store can have a reserve (`keep_reserve`): a file without meaning, which the store deletes when
other programs have filled the disk. In its place the log still records acknowledgements, and can then remove the segments they empty.

    00000017.log                  a segment                      segments     which of them there are to be (core/log/segment_list.py)
    00000016-512.damaged-<date>   what was cut off one           lock         held by who has the directory
    00000009.orphans              messages of queues that nothing defines (core/recovery/orphans.py)

The store makes each of them for its owner alone (0600), whatever the directory's mode, and at the start those of an earlier version too.

Only one program at a time has a directory: it holds a lock on the file `lock`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from ..core.log import segment_list

if False:  # for the type checker alone: an idle broker does without the module
    from typing import Any

SUFFIX = ".log"
ORPHANS = ".orphans"
DAMAGED = ".damaged-"
NEW = ".new"  # behind the name of a file that is to have that name when it is whole
NUMBER_END = 1 << 30  # a file with a number from here on is not a segment
PRIVATE = 0o600
PAGE = 4096  # what a sync makes the medium write at least
CYCLES = 1000  # how often a cell of a memory card bears to be written: what makers of cheap ones promise
COPY_SIZE = 65536
MEASURE_S = 0.1  # how often the file system is asked for its room
RESERVE = "reserve"
FULL = (errno.ENOSPC, errno.EDQUOT)


class DirectoryInUse(Exception):
    """Another program has the directory."""


class FileStore:
    """A directory of segments, made when it is not there. Raises DirectoryInUse, OSError."""

    cycles = CYCLES

    def __init__(self, path: str, make: bool = True) -> None:
        self.path = path
        self.medium_octets = 0
        self.number: int | None = None  # of the open file
        self.file: Any = None
        self.unsynced = 0  # octets of it that a power cut may take
        self.fresh = False  # its name is not durable yet
        if make:
            os.makedirs(path, 0o700, exist_ok=True)
        self.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.lock = open(os.path.join(path, "lock"), "a", opener=private)
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
        self.measure_at = 0.0
        self.reserve_size = 0
        self.reserved = False
        self.note = segment_list.Noted(self.read_file(segment_list.FILE))
        self.repaired = self.make_private() if make else 0
        if make and self.note.ranges is None and not self.numbers():
            self.note.ranges = []
            self.write_file(segment_list.FILE, [self.note.octets()])

    def make_private(self) -> int:
        """Take from everybody else the files of the log that others may read or write: how many there were."""
        count = 0
        for entry in os.scandir(self.path):
            if is_ours(entry.name) and entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mode & 0o77:
                try:
                    os.chmod(entry.path, PRIVATE)
                    count += 1
                except PermissionError:
                    continue  # it is another user's
        return count

    def name(self, number: int) -> str:
        """The path of a segment."""
        return os.path.join(self.path, "%08d%s" % (number, SUFFIX))

    def numbers(self) -> list[int]:
        """All segment numbers, rising."""
        return sorted(number_of(entry.name) for entry in os.scandir(self.path) if number_of(entry.name) and entry.is_file())

    def strays(self) -> list[str]:
        """Names of files that end as segments do and are none: the store leaves them alone."""
        return sorted(
            entry.name for entry in os.scandir(self.path) if entry.name.endswith(SUFFIX) and not (number_of(entry.name) and entry.is_file())
        )

    def noted(self) -> "Any":
        """As core/log/segments.py has it; None: the file that says so is missing or damaged."""
        return self.note.known()

    def size(self, number: int) -> int:
        """Octets of a segment."""
        return os.path.getsize(self.name(number))

    def read(self, number: int, offset: int, size: int) -> bytes:
        """Octets of a segment; fewer at its end."""
        with open(self.name(number), "rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size)

    def free(self) -> int:
        """Octets that the file system has left for us, less what the reserve lacks."""
        now = time.monotonic()
        if now >= self.measure_at:
            self.measure_at = now + MEASURE_S
            space = os.fstatvfs(self.directory)
            self.left = space.f_bavail * space.f_frsize
        return self.left - (0 if self.reserved else self.reserve_size)

    def keep_reserve(self, size: int) -> None:
        """Keep a reserve of so many octets for the time when the disk is full; the store writes it as soon as the disk has the space."""
        self.reserve_size = size
        self.make_reserve()

    def make_reserve(self) -> None:
        """Write the reserve file, if the disk has twice its size free."""
        path = os.path.join(self.path, RESERVE)
        space = os.fstatvfs(self.directory)
        there = os.path.exists(path) and os.path.getsize(path) == self.reserve_size
        if not there and space.f_bavail * space.f_frsize < 2 * self.reserve_size:
            return
        try:
            if not there:
                with open(path, "wb", opener=private) as file:
                    os.posix_fallocate(file.fileno(), 0, self.reserve_size)
            self.reserved = True
        except OSError:
            self.give_reserve()

    def give_reserve(self) -> bool:
        """Delete the reserve because the disk is full. Returns false when there was none."""
        try:
            os.remove(os.path.join(self.path, RESERVE))
        except OSError:
            return False
        finally:
            self.reserved = False
            self.measure_at = 0.0
        return True

    def append(self, number: int, octets: bytes | bytearray | memoryview) -> None:
        """Write at the end of a segment. After an error a part may be there."""
        self.left -= len(octets)
        if self.reserve_size and not self.reserved:
            self.make_reserve()
        if number != self.number:
            self.with_reserve(self.open_file, number)
        view = memoryview(octets)
        while len(view):
            view = view[self.with_reserve(os.write, self.file, view) :]
        self.unsynced += len(octets)

    def with_reserve(self, action: "Any", *given: "Any") -> "Any":
        """Call `action`; if the disk is full, give the reserve up and call it once more."""
        try:
            return action(*given)
        except OSError as error:
            if error.errno not in FULL or not self.give_reserve():
                raise
        return action(*given)

    def open_file(self, number: int) -> None:
        """Open a segment to write to."""
        self.close_file()
        path = self.name(number)
        self.fresh = not os.path.exists(path)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
        self.number = number
        self.unsynced = 0

    def sync(self, number: int) -> None:
        """Make a segment durable, its name too."""
        if number != self.number:
            with open(self.name(number), "rb") as file:
                os.fdatasync(file.fileno())
            self.sync_directory()
            self.note_durable(number)
            return
        self.with_reserve(os.fdatasync, self.file)
        self.has_synced()
        if self.fresh:
            self.sync_directory()
            self.note_durable(number)
            self.fresh = False

    def has_synced(self) -> None:
        """The octets of the open file are durable."""
        self.medium_octets += (self.unsynced + PAGE - 1) // PAGE * PAGE + PAGE  # the last page is written again, and the file's size
        self.unsynced = 0

    def note_durable(self, number: int) -> None:
        """A segment is durable: note it."""
        if self.note.add(number):
            try:
                self.write_note()
            except OSError:
                self.note.remove(number, [])  # the sync has failed, and is done once more
                raise

    def write_note(self) -> None:
        """Write the note of the segments that exist."""
        self.with_reserve(self.write_file, segment_list.FILE, [self.note.octets()])

    def read_file(self, name: str) -> bytes:
        """The octets of a file; none where it cannot be read."""
        try:
            with open(os.path.join(self.path, name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def write_file(self, name: str, pieces: list[bytes]) -> None:
        """Replace a file by these octets, durably: after a power cut it has the old octets or the new ones."""
        path = os.path.join(self.path, name)
        try:
            with open(path + NEW, "wb", opener=private) as file:
                for octets in pieces:
                    file.write(octets)
                file.flush()
                os.fsync(file.fileno())
                self.medium_octets += (file.tell() + PAGE - 1) // PAGE * PAGE
            os.rename(path + NEW, path)
        except OSError:
            if os.path.exists(path + NEW):
                os.remove(path + NEW)
            raise
        self.sync_directory()

    def sync_directory(self) -> None:
        """Sync the directory, so that new and removed files survive a power cut."""
        os.fsync(self.directory)
        self.medium_octets += PAGE

    def remove(self, number: int) -> None:
        """Remove a segment. The note of the segments comes first; on a disk so full that there is no space for it, afterwards."""
        if number == self.number:
            self.close_file()
        before = self.note.octets() if self.note.ranges is not None else b""
        owes_note = self.note.remove(number, self.numbers())
        if owes_note:
            try:
                self.write_note()
                owes_note = False
            except OSError as error:
                if error.errno not in FULL:
                    self.note = segment_list.Noted(before)
                    raise
        os.remove(self.name(number))
        self.measure_at = 0.0
        self.sync_directory()
        if owes_note:
            self.write_note()
        if self.reserve_size and not self.reserved:
            self.make_reserve()

    def keep_aside(self, number: int, offset: int) -> None:
        """Copy what lies behind `offset` to a file named with the date, then cut it off."""
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        damaged = os.path.join(self.path, "%08d-%d%s%s" % (number, offset, DAMAGED, stamp))
        with open(self.name(number), "r+b", buffering=0) as file:
            file.seek(offset)
            with open(damaged, "wb", buffering=0, opener=private) as kept:
                while octets := file.read(COPY_SIZE):
                    kept.write(octets)
                os.fsync(kept.fileno())
            self.sync_directory()
            file.truncate(offset)
            os.fsync(file.fileno())

    def set_aside(self, number: int, pieces: list[bytes]) -> str:
        """Keep octets that belong to a segment in a file of their own, unless an earlier start has: its name."""
        made = "%08d%s%s" % (number, ORPHANS, NEW)
        self.write_file(made, pieces)
        name, attempt = "%08d%s" % (number, ORPHANS), 1
        size = os.path.getsize(os.path.join(self.path, made))
        while os.path.exists(os.path.join(self.path, name)):
            if os.path.getsize(os.path.join(self.path, name)) == size:
                os.remove(os.path.join(self.path, made))
                return name
            attempt += 1
            name = "%08d-%d%s" % (number, attempt, ORPHANS)
        os.rename(os.path.join(self.path, made), os.path.join(self.path, name))
        self.sync_directory()
        return name

    def close_file(self) -> None:
        """Close the segment that is written to."""
        if self.file is not None:
            os.close(self.file)
            self.file = None
            self.number = None

    def close(self) -> None:
        """Close the files and unlock the directory."""
        self.close_file()
        os.close(self.directory)
        self.lock.close()


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, also where it was there and others could (an `opener` of open)."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, PRIVATE)
    if os.fstat(descriptor).st_mode & 0o77:
        os.fchmod(descriptor, PRIVATE)
    return descriptor


def number_of(name: str) -> int:
    """The number of the segment that a file has by its name; 0: it is none."""
    digits = name[: -len(SUFFIX)]
    if not (name.endswith(SUFFIX) and digits.isascii() and digits.isdigit() and len(digits) < 12):
        return 0
    number = int(digits)
    return number if number < NUMBER_END and name == "%08d%s" % (number, SUFFIX) else 0


def is_ours(name: str) -> bool:
    """True for a name that this store gives to its files."""
    return (
        number_of(name) > 0 or ORPHANS in name or DAMAGED in name or name in (segment_list.FILE, segment_list.FILE + NEW, RESERVE, "lock")
    )
