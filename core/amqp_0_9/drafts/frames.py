"""Frames of the two drafts of 2005. Each has a class: how a header is read and written, and where numbers stand in a payload.

    0.9a5   octet type | octet channel | short size | payload | 0xCE        `size` counts the payload and the end octet
            9 0 0 0 (META), then octet type | octet 0 | short channel | longlong size | payload | 0xCE
    0.9r1   octet type | octet cycle | short channel | long size | payload | 0xCE        `size` counts the payload alone

0.9a5 uses the extended form for channels above 255 and for payloads that a short size cannot tell. The cycle is 0 unless peers use the
failover of connections, which this broker does not: any cycle is read, 0 is written.
"""

from ...errors import FRAME_ERROR, ProtocolError
from ...shim import const
from .fields import number

METHOD = const(1)
HEADER = const(2)
BODY = const(3)
TRACE = const(7)
HEARTBEAT = const(8)
META = const(9)
END = b"\xce"


def broken(text):
    """Raise the error of a header that cannot be."""
    raise ProtocolError(FRAME_ERROR, text)


class Frames9a5:
    """0.9a5: "The Frame Header Wire Format", "Meta Frames", "Extended Frame Header Wire Format"."""

    least = 1024  # octets of a frame that every peer takes
    overhead = 17  # octets of a frame beside its payload, at most
    heartbeat = b"\x08\x00\x00\x01\xce"
    number_size = 1  # octets of a class id, a method id and a weight
    drops_empty = True  # "Multiplexed Channel Content": a body frame without octets MUST be discarded, wherever it comes

    @staticmethod
    def head(octets, at, end):
        """(type, channel, octets of the header, octets of the payload), or None: it is not whole."""
        if end - at < 4:
            return None
        if octets[at] != META:
            size = octets[at + 2] << 8 | octets[at + 3]
            if size == 0 and 0 < octets[at] < META:  # one of an unknown type is worse
                broken("a frame of size 0, which has no end octet")
            return octets[at], octets[at + 1], 4, size - 1
        if octets[at + 1] | octets[at + 2] | octets[at + 3]:
            broken("a meta frame whose channel or size is not 0")
        if end - at < 16:
            return None
        if not 0 < octets[at + 4] <= META:  # the session ends the connection without a word, whatever its size
            return octets[at + 4], 0, 16, 0
        if octets[at + 4] == META or octets[at + 5]:
            broken("a meta frame behind a meta frame, or flags in an extended header")
        size = int.from_bytes(bytes(octets[at + 8 : at + 16]), "big")
        if size == 0:
            broken("a frame of size 0, which has no end octet")
        return octets[at + 4], octets[at + 6] << 8 | octets[at + 7], 16, size - 1

    @staticmethod
    def lead(kind, channel, size):
        """The header of a frame with a payload of `size` octets."""
        if channel < 256 and size < 65535:
            return bytes((kind, channel)) + number(2, size + 1)
        return bytes((META, 0, 0, 0, kind, 0)) + number(2, channel) + number(8, size + 1)

    @staticmethod
    def method(class_id, method_id):
        """The first octets of a method's payload; the two behind the numbers are reserved."""
        return bytes((class_id, method_id, 0, 0))

    @staticmethod
    def code(octets, at):
        """class << 16 | method of a payload."""
        if octets[at + 2] | octets[at + 3]:
            broken("the two reserved octets of a method are not 0")
        return octets[at] << 16 | octets[at + 1]


class Frames9r1:
    """0.9r1: "General Frame Format", "Method Frames"."""

    least = 4096
    overhead = 9
    heartbeat = b"\x08\x00\x00\x00\x00\x00\x00\x00\xce"
    number_size = 2
    drops_empty = False

    @staticmethod
    def head(octets, at, end):
        """As in Frames9a5."""
        if end - at < 8:
            return None
        size = int.from_bytes(bytes(octets[at + 4 : at + 8]), "big")
        return octets[at], octets[at + 2] << 8 | octets[at + 3], 8, size

    @staticmethod
    def lead(kind, channel, size):
        """As in Frames9a5."""
        return bytes((kind, 0)) + number(2, channel) + number(4, size)

    @staticmethod
    def method(class_id, method_id):
        """As in Frames9a5."""
        return number(2, class_id) + number(2, method_id)

    @staticmethod
    def code(octets, at):
        """As in Frames9a5."""
        return int.from_bytes(bytes(octets[at : at + 4]), "big")
