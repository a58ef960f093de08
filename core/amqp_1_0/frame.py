"""Frames of AMQP 1.0 (section 2.3.1):

    size (4 octets, the whole frame) | doff (offset of the body in words of four octets) | type | channel (2; of a SASL frame: nothing) |
    extended header up to doff, which nobody reads | body

A frame of type AMQP has a performative, behind a transfer its payload, or nothing: an empty frame keeps a connection alive.
"""

import struct

from ..errors import FRAME_ERROR, ProtocolError
from ..shim import const

HEADER_SIZE = const(8)
AMQP = const(0)
SASL = const(1)
SIZE_MIN_MAX = const(512)  # every peer accepts this, and no larger frame may be sent before open (section 2.4.1)


def read(buffer, at, end, size_max):
    """The header of the frame at `at` of `buffer`, of which octets up to `end` are there: (type, channel, position of the body, position
    behind the frame), or None while it is not whole. Raises ProtocolError for a size that no frame has or that is above `size_max`."""
    if end - at < 4:
        return None
    size = struct.unpack_from(">I", buffer, at)[0]
    if size < HEADER_SIZE:
        raise ProtocolError(FRAME_ERROR, "a frame of %d octets, which is less than its header" % size)
    if size > size_max:
        raise ProtocolError(FRAME_ERROR, "a frame of %d octets where at most %d are taken" % (size, size_max))
    if end - at < size:
        return None
    _, offset, type_, channel = struct.unpack_from(">IBBH", buffer, at)
    if not HEADER_SIZE <= 4 * offset <= size:
        raise ProtocolError(FRAME_ERROR, "a body at octet %d of a frame of %d" % (4 * offset, size))
    if type_ not in (AMQP, SASL):
        raise ProtocolError(FRAME_ERROR, "a frame of type 0x%02x, which is neither AMQP nor SASL" % type_)
    return type_, channel, at + 4 * offset, at + size


def write(type_, channel, body):
    """A frame around its body (bytes)."""
    return struct.pack(">IBBH", HEADER_SIZE + len(body), 2, type_, channel) + body
