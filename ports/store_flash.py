"""Log segments straight on a flash block device: no file system between, nothing is written twice without being erased, wear goes round.

The contract is in core/log/segments.py; the device is one of MicroPython's (docs: os, block devices, extended interface):
    readblocks(block, buffer, offset)   writeblocks(block, buffer, offset): programs what is erased   ioctl(op, argument): 3 sync,
    4 block count, 5 octets of a block, 6 erase a block.            Numbers are big-endian.

    block of a segment:   head | chunk | chunk | ... | erased ...                          (the first of a segment: | cut mark)
    head (20 octets):     "LVFB" | long segment | long oldest | short part | short attempt | long crc32
    chunk:                short size | long crc32 of segment, part, size, payload | payload | padding to the program size
    cut mark:             "CUT " | long offset | long crc32, alone in the last program unit of a segment's first block

A segment is as many blocks (parts, counted from 0) as it needs; each commit is one chunk, or one for each block that it reaches. A block is
erased when it is taken, never before: those free longest come first, so all are erased equally often. Removing a segment writes nothing:
each new head names the oldest segment there was, and those before it are gone. Until the next head they come back at a start, whole; so one
block stays free always, and no block is erased before such a head is written. A segment that was removed and begun again has a later
attempt. A block that cannot be erased is left out until the next start; one that cannot be programmed stays in its segment, which the
log leaves.
"""

import struct
from array import array
from binascii import crc32

from ..core.shim import const

if False:  # for the type checker alone
    from typing import Any

_MAGIC = b"LVFB"
_CUT = b"CUT "
_HEAD_SIZE = const(20)
_CHUNK_SIZE = const(6)  # of a chunk's own numbers
_MARK_SIZE = const(12)
_ERASED = b"\xff" * 6
_READ_SIZE = const(256)
_CYCLES = const(100000)
_ENOSPC = const(28)
_UNIT_MIN = const(16)
_KEPT_BACK = const(4)  # blocks: one that is never taken, and what a full log needs to become smaller


class FlashStore:
    """Segments on `device`. `program_size`: octets that are programmed at once and only once after an erasure (256 on most NOR flash)."""

    cycles = _CYCLES  # erasures that a block of NOR flash bears, as its makers promise

    def __init__(self, device: "Any", program_size: int = 256) -> None:
        self.device = device
        self.program_size = program_size
        self.block_count: int = device.ioctl(4, 0)
        self.block_size: int = device.ioctl(5, 0)
        if self.block_size % program_size or self.block_size < 8 * program_size or program_size < _UNIT_MIN:
            raise ValueError("a block of %d octets is not at least 8 program units of %d, of 16 or more" % (self.block_size, program_size))
        self.capacity = self.block_count * self.block_size
        self.medium_octets = 0
        self.erases = 0
        self.blocks: "dict[int, array[int]]" = {}  # segment number -> array of its blocks
        self.sizes = array("H", bytes(2 * self.block_count))  # octets of payload in each block
        self.cuts: dict[int, int] = {}  # segment number -> octets that count
        self.free_blocks: list[int] = []  # the one that was freed first is first
        self.attempt = 0
        self.oldest = 0  # the oldest segment when the newest block was begun
        self.number: "Any" = None  # of the segment that is written to
        self.at = 0  # where in its last block
        self.waiting: list[bytes | bytearray | memoryview] = []  # octets that were appended and are not on the medium
        self.waiting_size = 0
        self.look()

    # At start

    def look(self) -> None:
        """Find the segments on the device."""
        segments: dict[int, dict[int, int]] = {}  # segment number -> {part: block}
        unused = []
        attempts: dict[int, int] = {}
        oldest = 0
        for block in range(self.block_count):
            head = self.head(block)
            if head is None:
                unused.append(block)
                continue
            number, before, part, attempt = head
            oldest = max(oldest, before)
            if attempt > attempts.get(number, -1):
                unused.extend(segments.pop(number, {}).values())
                attempts[number] = attempt
            if attempt == attempts[number]:
                segments.setdefault(number, {})[part] = block
            else:
                unused.append(block)
        self.oldest = oldest
        for number in sorted(segments):
            parts = sorted(segments[number])
            blocks = array("H", [segments[number][part] for part in parts])
            if number < oldest:
                self.free_blocks.extend(blocks)
            else:
                self.measure(number, parts, blocks)
        self.free_blocks = unused + self.free_blocks

    def head(self, block: int) -> tuple[int, int, int, int] | None:
        """(segment, oldest, part, attempt) of a block, or None when it has none or nothing behind it."""
        octets = self.get(block, 0, _HEAD_SIZE + _CHUNK_SIZE)
        magic, number, oldest, part, attempt, crc = struct.unpack(">4sIIHHI", octets[:_HEAD_SIZE])
        if magic != _MAGIC or crc32(octets[: _HEAD_SIZE - 4]) & 0xFFFFFFFF != crc or octets[_HEAD_SIZE:] == _ERASED:
            return None
        return number, oldest, part, attempt

    def cut_of(self, block: int) -> int | None:
        """The offset in the cut mark of a segment's first block, or None."""
        magic, offset, crc = struct.unpack(">4sII", self.get(block, self.end_of(0), _MARK_SIZE))
        return offset if magic == _CUT and crc32(struct.pack(">4sI", magic, offset)) & 0xFFFFFFFF == crc else None

    def measure(self, number: int, parts: list[int], blocks: "array[int]") -> None:
        """Note a segment and how much is in each of its blocks."""
        for index in range(len(blocks)):
            self.sizes[blocks[index]] = self.measure_block(number, parts[index], blocks[index])
        self.blocks[number] = blocks
        cut = self.cut_of(blocks[0]) if parts[0] == 0 else None
        if cut is not None:
            self.cuts[number] = cut

    def measure_block(self, number: int, part: int, block: int) -> int:
        """Octets of payload in a block, up to the first wrong chunk and with it, so that the log sees it."""
        at, total = _HEAD_SIZE, 0
        end = self.end_of(part)
        while at + _CHUNK_SIZE < end:
            octets = self.get(block, at, _CHUNK_SIZE)
            if octets == _ERASED:
                break
            size = self.chunk_size(octets, at, end)
            if self.crc_of(number, part, block, at + _CHUNK_SIZE, size) != octets:
                return total + size
            total += size
            at = self.aligned(at + _CHUNK_SIZE + size)
        return total

    def chunk_size(self, octets: bytes | bytearray | memoryview, at: int, end: int) -> int:
        """Octets of payload of the chunk at `at` that begins with `octets`; all up to `end` when what it says cannot be."""
        size = (octets[0] << 8) + octets[1]
        return size if 0 < size <= end - at - _CHUNK_SIZE else end - at - _CHUNK_SIZE

    def crc_of(self, number: int, part: int, block: int, at: int, size: int) -> bytes:
        """The head of a chunk: its size and CRC."""
        whole = size
        crc = crc32(struct.pack(">IHH", number, part, size))
        while size:
            octets = self.get(block, at, min(size, _READ_SIZE))
            crc = crc32(octets, crc)
            at += len(octets)
            size -= len(octets)
        return struct.pack(">HI", whole, crc & 0xFFFFFFFF)

    def get(self, block: int, at: int, size: int) -> bytes:
        """Octets of a block."""
        octets = bytearray(size)
        self.device.readblocks(block, octets, at)
        return bytes(octets)

    def end_of(self, part: int) -> int:
        """Where the chunks of a block end at the latest."""
        return self.block_size if part else self.block_size - self.program_size

    def aligned(self, at: int) -> int:
        """The next program unit's begin."""
        return (at + self.program_size - 1) // self.program_size * self.program_size

    # The contract

    def numbers(self) -> list[int]:
        """All segment numbers, rising."""
        return sorted(self.blocks)

    def noted(self) -> "Any":
        """As core/log/segments.py has it, of the start: only the oldest, by the newest head. One in the middle shows in the numbers of the
        records behind it; that the newest is lost nothing tells here."""
        return self.oldest, [(self.oldest, self.oldest + 1)] if self.oldest else []

    def size(self, number: int) -> int:
        """Octets of a segment."""
        total = sum([self.sizes[block] for block in self.blocks.get(number, ())])
        total = min(total, self.cuts.get(number, total))
        return total + self.waiting_size if number == self.number else total

    def free(self) -> int:
        """Octets that the log can count on: half of what the free blocks have, because commits are padded, less the blocks that the
        store keeps back for settlements and definitions."""
        return max(0, len(self.free_blocks) - _KEPT_BACK) * (self.block_size // 2)

    def read(self, number: int, offset: int, size: int) -> bytes:
        """Octets of a segment, at most what one chunk has; none at its end."""
        size = min(size, self.size(number) - offset)
        for block in self.blocks[number]:
            if offset < self.sizes[block]:
                return self.read_block(block, self.end_of(0 if block == self.blocks[number][0] else 1), offset, size)
            offset -= self.sizes[block]
        return b""

    def read_block(self, block: int, end: int, offset: int, size: int) -> bytes:
        """Octets at an offset of a block's payload."""
        at = _HEAD_SIZE
        while True:
            chunk = self.chunk_size(self.get(block, at, 2), at, end)
            if offset < chunk:
                return self.get(block, at + _CHUNK_SIZE + offset, min(size, chunk - offset))
            offset -= chunk
            at = self.aligned(at + _CHUNK_SIZE + chunk)

    def append(self, number: int, octets: bytes | bytearray | memoryview) -> None:
        """Buffer octets for the end of a segment; `sync` programs them."""
        if number != self.number:
            if self.waiting:
                self.sync(self.number)
            self.number = number
            self.attempt = (self.attempt + 1) & 0xFFFF
            self.blocks[number] = array("H")
            self.at = self.block_size  # no room: the first octets take a block
        self.waiting.append(bytes(octets))
        self.waiting_size += len(octets)

    def sync(self, number: int) -> None:
        """Program all appended octets. After an error a part of them may be on the medium."""
        if number != self.number or not self.waiting:
            return
        octets = memoryview(b"".join(self.waiting))
        self.waiting = []
        self.waiting_size = 0
        while len(octets):
            octets = octets[self.write_some(octets) :]
        self.device.ioctl(3, 0)

    def write_some(self, octets: bytes | bytearray | memoryview) -> int:
        """Write a chunk: how many of `octets` went into it. Raises OSError."""
        blocks = self.blocks[self.number]
        part = len(blocks) - 1
        head = b""
        if part < 0 or self.at + _CHUNK_SIZE >= self.end_of(part):
            part += 1
            head = self.begin_block(part)
        start = self.at
        size = min(len(octets), self.end_of(part) - start - len(head) - _CHUNK_SIZE)
        self.sizes[blocks[-1]] += size
        self.at = self.aligned(start + len(head) + _CHUNK_SIZE + size)
        self.program(blocks[-1], start, head + self.chunk(part, octets[:size]))
        return size

    def begin_block(self, part: int) -> bytes:
        """Erase the next free block. Returns the head it is to have. Raises OSError when no block is free or can be erased."""
        while len(self.free_blocks) > 1:
            block = self.free_blocks.pop(0)
            if self.erase(block):
                self.blocks[self.number].append(block)
                self.sizes[block] = 0
                self.at = 0
                head = struct.pack(">4sIIHH", _MAGIC, self.number, min(self.blocks), part, self.attempt)
                return head + struct.pack(">I", crc32(head) & 0xFFFFFFFF)
        raise OSError(_ENOSPC)

    def chunk(self, part: int, payload: bytes | bytearray | memoryview) -> bytes:
        """A chunk's octets."""
        crc = crc32(payload, crc32(struct.pack(">IHH", self.number, part, len(payload))))
        return struct.pack(">HI", len(payload), crc & 0xFFFFFFFF) + bytes(payload)

    def erase(self, block: int) -> bool:
        """Erase a block; true when that worked."""
        self.erases += 1
        self.medium_octets += self.block_size
        try:
            return not self.device.ioctl(6, block)
        except OSError:
            return False

    def program(self, block: int, at: int, octets: bytes) -> None:
        """Program octets, padded. Raises OSError."""
        self.device.writeblocks(block, octets + b"\xff" * (-len(octets) % self.program_size), at)

    def remove(self, number: int) -> None:
        """Remove a segment, the oldest: it has gone for good when the next block is taken."""
        self.free_blocks.extend(self.blocks.pop(number))
        self.cuts.pop(number, None)
        if number == self.number:
            self.number = None
            self.waiting = []
            self.waiting_size = 0

    def keep_aside(self, number: int, offset: int) -> None:
        """Cut a segment at `offset`. Octets behind it stay in their blocks until these are erased."""
        self.cuts[number] = offset
        block = self.blocks[number][0]
        if self.cut_of(block) is None:
            octets = struct.pack(">4sI", _CUT, offset)
            self.program(block, self.end_of(0), octets + struct.pack(">I", crc32(octets) & 0xFFFFFFFF))
            self.device.ioctl(3, 0)

    def close(self) -> None:
        """Program the buffered octets."""
        if self.number is not None:
            self.sync(self.number)
