"""A flash chip in memory with MicroPython's block-device interface, for both interpreters: it refuses what real flash cannot do, counts
erasures, and loses power at the operation it is told, with that operation undone, half done or done."""

UNDONE = 0
HALF = 1
DONE = 2


class PowerCut(BaseException):
    """The power has gone. Not an Exception: nothing may carry on after it."""


class Misuse(BaseException):
    """Something that flash cannot do."""


class RamFlash:
    """`block_count` blocks of `block_size`; programs whole units of `program_size`, each once between two erasures."""

    def __init__(self, block_count, block_size=4096, program_size=256):
        self.block_count = block_count
        self.block_size = block_size
        self.program_size = program_size
        self.octets = bytearray(b"\xff" * (block_count * block_size))
        self.erased = [0] * block_count
        self.operations = 0  # programs and erasures since the last power-up
        self.programmed = 0  # octets
        self.cut_at = None
        self.torn = HALF
        self.dead = False
        self.refuses = ()  # blocks that cannot be erased or programmed

    def power_up(self):
        """The chip again after a cut."""
        self.dead = False
        self.cut_at = None
        self.operations = 0

    def size_of(self, size):
        """How much of an operation of `size` octets is done; notes the cut."""
        self.operations += 1
        if self.cut_at is None or self.operations < self.cut_at:
            return size
        self.dead = True
        return (0, size // 2, size)[self.torn]

    def readblocks(self, block, buffer, offset=0):
        start = block * self.block_size + offset
        for index in range(len(buffer)):
            buffer[index] = self.octets[start + index]

    def writeblocks(self, block, buffer, offset=0):
        if self.dead:
            return
        if block in self.refuses:
            raise OSError(5)
        if offset % self.program_size or len(buffer) % self.program_size or offset + len(buffer) > self.block_size:
            raise Misuse("program of %d octets at %d" % (len(buffer), offset))
        start = block * self.block_size + offset
        for index in range(len(buffer)):
            if self.octets[start + index] != 0xFF:
                raise Misuse("block %d offset %d is not erased" % (block, offset + index))
        for index in range(self.size_of(len(buffer))):
            self.octets[start + index] = buffer[index]
        self.programmed += len(buffer)
        if self.dead:
            raise PowerCut()

    def ioctl(self, operation, argument):
        if operation == 4:
            return self.block_count
        if operation == 5:
            return self.block_size
        if operation == 6 and not self.dead:
            self.erase(argument)
        return 0

    def erase(self, block):
        """Erase a block; one that is half done has its second half erased, so that the first half looks as before."""
        if block in self.refuses:
            raise OSError(5)
        size = self.size_of(self.block_size)
        end = (block + 1) * self.block_size
        for index in range(end - size, end):
            self.octets[index] = 0xFF
        self.erased[block] += 1
        if self.dead:
            raise PowerCut()
