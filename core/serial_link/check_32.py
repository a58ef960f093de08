"""CRC-32 (as zlib.crc32) of a frame's octets in halves of 16 bits: a number of 32 bits is an object of heap on a board.

The interpreter's own makes one each time. `numbers` has the check so far: its lower half, and its upper.
"""

from ..shim import quicker


def in_halves(octets, start, size, numbers, link):
    """Make `numbers`, the check of the octets before them, that of octets[start:start + size] as well; `link`: of frame.py."""
    low = numbers[0] ^ 0xFFFF
    high = numbers[1] ^ 0xFFFF
    end = start + size
    while start < end:
        low ^= octets[start]
        nibble = low & 15
        low = (low >> 4 | (high & 15) << 12) ^ link[nibble]
        high = high >> 4 ^ link[16 + nibble]
        nibble = low & 15
        low = (low >> 4 | (high & 15) << 12) ^ link[nibble]
        high = high >> 4 ^ link[16 + nibble]
        start += 1
    numbers[0] = low ^ 0xFFFF
    numbers[1] = high ^ 0xFFFF


in_halves = quicker(in_halves)
