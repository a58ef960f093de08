"""What is in a ROMFS image, the file system that MicroPython reads where it lies: records of a kind, a size and octets, one in the other.

    0xd2 0xcd 0x31, size, records       the whole
    directory: size of name, name, records
    file: size of name, name, one record of data

Numbers are of seven bits an octet, the most significant first; all but the last octet have bit 7. mpremote writes such images.
"""

HEAD = b"\xd2\xcd\x31"
DATA, DIRECTORY, FILE = 2, 4, 5  # kinds of records
NUMBER_MAX = 10  # octets of a number


class NotWhole(ValueError):
    """The octets are no image, or not all of one; the text says which."""


def files(octets):
    """[(path, octets)] of an image, in its order. Raises NotWhole."""
    if octets[: len(HEAD)] != HEAD:
        raise NotWhole("is no ROMFS image")
    size, at = number(octets, len(HEAD), len(octets))
    if at + size != len(octets):
        raise NotWhole(f"is not a whole ROMFS image: its head says {at + size} octets, and it has {len(octets)}")
    return list(below("", octets, at, len(octets)))


def below(folder, octets, at, end):
    """The files of the records from `at` to `end`."""
    while at < end:
        kind, at = number(octets, at, end)
        size, at = number(octets, at, end)
        if size > end - at:
            raise NotWhole(f"has a record of {size} octets where {end - at} are left")
        if kind in (DIRECTORY, FILE):
            length, start = number(octets, at, at + size)
            if length > at + size - start:
                raise NotWhole(f"has a name of {length} octets where {at + size - start} are left")
            path = folder + octets[start : start + length].decode("ascii", "replace")
            start += length
            if kind == DIRECTORY:
                yield from below(path + "/", octets, start, at + size)
            else:
                yield path, data(octets, start, at + size)
        at += size


def data(octets, at, end):
    """The octets of a file, which lie in its record."""
    kind, at = number(octets, at, end)
    size, at = number(octets, at, end)
    if kind != DATA or size != end - at:
        raise NotWhole("has a file whose octets are not in its record")
    return octets[at:end]


def number(octets, at, end):
    """(the number at `at`, where it ends)."""
    value = 0
    for place in range(at, min(end, at + NUMBER_MAX)):
        value = value << 7 | octets[place] & 0x7F
        if octets[place] < 0x80:
            return value, place + 1
    raise NotWhole("has a number without an end")
