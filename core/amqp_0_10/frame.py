"""Frames of AMQP 0-10, and how they make segments and assemblies.

    flags octet | segment type octet | frame size short (with these 12 octets) | 0 | track octet | channel short | 0 long | payload

    flags 0xC0 version, 0; 0x30 reserved, 0; 8 first segment, 4 last segment of an assembly; 2 first frame, 1 last frame of a segment

A control is an assembly of one segment on track 0; a command, perhaps with a header and a body, one on track 1.
"""

import struct

from ..errors import FRAME_ERROR, ProtocolError
from ..shim import const

HEAD = const(12)
FIRST_SEGMENT = const(8)
LAST_SEGMENT = const(4)
FIRST_FRAME = const(2)
LAST_FRAME = const(1)
WHOLE = const(15)  # all four: an assembly of one frame
ONLY_SEGMENT = const(12)  # of an assembly of one segment, in all of its frames

CONTROL = const(0)  # segment types
COMMAND = const(1)
HEADER = const(2)
BODY = const(3)

SIZE_LEAST = const(4096)  # MIN-MAX-FRAME-SIZE: what every peer takes


def read(buffer, at, end, size_max):
    """(flags, segment type, track, channel, begin of the payload, its end) of the frame at `at`; None: it is not whole. Raises frame-error
    for one that cannot be."""
    if end - at < HEAD:
        return None
    flags, type_, size, zero, track, channel, nothing = struct.unpack_from(">BBHBBHI", buffer, at)
    if flags & 0xF0 or type_ > BODY or track > 1 or zero or nothing:
        raise ProtocolError(FRAME_ERROR, "a frame with flags 0x%02x, segment type %d, track %d" % (flags, type_, track))
    if not HEAD <= size <= size_max:
        raise ProtocolError(FRAME_ERROR, "a frame of %d octets; from %d to %d are taken" % (size, HEAD, size_max))
    if (type_ == CONTROL) != (track == 0):
        raise ProtocolError(FRAME_ERROR, "a segment of type %d on track %d" % (type_, track))
    if end - at < size:
        return None
    return flags, type_, track, channel, at + HEAD, at + size


def write(flags, type_, channel, octets):
    """A frame with a payload (bytes)."""
    return head(flags, type_, channel, len(octets)) + octets


def head(flags, type_, channel, size):
    """The twelve octets before a payload of `size` octets."""
    return struct.pack(">BBHBBHI", flags, type_, HEAD + size, 0, 0 if type_ == CONTROL else 1, channel, 0)


def each_of(octets):
    """Whole frames (bytes), one by one."""
    frames, at = [], 0
    while at < len(octets):
        size = octets[at + 2] << 8 | octets[at + 3]
        frames.append(octets[at : at + size])
        at += size
    return frames


def segment(first_and_last, type_, channel, octets, size_max):
    """The frames of one segment (bytes), as many as a peer that takes `size_max` octets each needs. `first_and_last`: the flags
    FIRST_SEGMENT and LAST_SEGMENT."""
    most = size_max - HEAD
    if len(octets) <= most:
        return write(first_and_last | FIRST_FRAME | LAST_FRAME, type_, channel, octets)
    parts = []
    for at in range(0, len(octets), most):
        flags = first_and_last | (0 if at else FIRST_FRAME) | (LAST_FRAME if at + most >= len(octets) else 0)
        parts.append(write(flags, type_, channel, octets[at : at + most]))
    return b"".join(parts)
