"""Frames of the 0-8, 0-9 and 0-9-1 wire (0-9-1 section 4.2.3).

    octet 0    1         3              7              7 + size
    +------+---------+------------+----- - - - -----+-----------+
    | type | channel |    size    |    payload      | end 0xCE  |
    +------+---------+------------+----- - - - -----+-----------+
     1       2         4            size octets        1

`size` counts the payload only; the negotiated frame-max counts all, so a payload is at most frame-max - 8 (section 4.2.3).
"""

from ..shim import const

METHOD = const(1)
HEADER = const(2)
BODY = const(3)
HEARTBEAT = const(8)
END = const(0xCE)
OVERHEAD = const(8)  # octets of a frame that are not payload
FRAME_MIN_SIZE = const(4096)  # section 4.2.3: every peer accepts frames up to this size before and after tuning

HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"


def encode(type_, channel, payload):
    """One whole frame as bytes."""
    size = len(payload)
    return bytes((type_, channel >> 8, channel & 255, size >> 24 & 255, size >> 16 & 255, size >> 8 & 255, size & 255)) + payload + b"\xce"


def content_header(channel, body_size, properties):
    """The content header frame of class basic; `properties` is the flags and the property list as on the wire (section 4.2.6.1)."""
    return encode(HEADER, channel, b"\x00\x3c\x00\x00" + body_size.to_bytes(8, "big") + properties)
