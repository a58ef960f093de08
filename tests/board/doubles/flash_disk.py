"""A board's flash as a block device over a file, for the long run: it counts erasures of blocks."""

BLOCK = 4096


class FlashDisk:
    """`path`: a file of whole blocks."""

    def __init__(self, path):
        self.file = open(path, "r+b")
        self.count = self.file.seek(0, 2) // BLOCK
        self.erased = 0

    def readblocks(self, number, octets, offset=0):
        """Read."""
        self.file.seek(number * BLOCK + offset)
        self.file.readinto(octets)

    def writeblocks(self, number, octets, offset=0):
        """Write what has been erased."""
        self.file.seek(number * BLOCK + offset)
        self.file.write(octets)

    def ioctl(self, request, argument):
        """Blocks (4), their size (5), erase one (6), and what asks for nothing."""
        if request == 4:
            return self.count
        if request == 5:
            return BLOCK
        if request == 6:
            self.erased += 1
        return 0
