"""The work on every octet of the serial line: a frame's octets stuffed, unstuffed, and CRC-16/X.25 over them (frame.py).

As in HDLC (RFC 1662) a flag 0x7E stands between frames, and 0x7D in a frame says that the next octet has bit 0x20 turned over. The
functions are pure: buffers and numbers as arguments, no objects, no default arguments; c_accel/framing.c has the same functions in C. New
links use the form `chosen`; the program that starts a link may put another form there before (leveret.c_accel.install).

`numbers` of a reader: octets of the frame so far (one more than there is room for: too many), room for them, 1 behind an escape, 1 when a
flag has ended the frame.
"""

from ..shim import const

if False:  # for the type checker alone
    from typing import Any

_FLAG = const(0x7E)
_ESCAPE = const(0x7D)
_TURNED = const(0x20)

_FILL = const(0)
_ROOM = const(1)
_TURN = const(2)
_ENDED = const(3)


def check_16(octets, size, value):
    """CRC-16/X.25 of octets[0:size]; `value` is the check of the octets before them, 0 for none."""
    value ^= 0xFFFF
    for index in range(size):
        octet = (octets[index] ^ value) & 0xFF
        octet ^= octet << 4 & 0xFF  # with the next line the remainder of 0x8408 (x^16 + x^12 + x^5 + 1, reflected), without a table
        value = value >> 8 ^ octet << 8 ^ octet << 3 ^ octet >> 4
    return value ^ 0xFFFF


def unstuff(source, at, end, octets, numbers):
    """Unstuff source[at:end] to the first flag or the end into `octets`, behind the octets that `numbers` counts; returns where it
    stopped."""
    fill = numbers[_FILL]
    room = numbers[_ROOM]
    while at < end:
        octet = source[at]
        at += 1
        if octet == _FLAG:
            numbers[_ENDED] = 1
            break
        if octet == _ESCAPE:
            numbers[_TURN] = 1
            continue
        if numbers[_TURN]:
            octet ^= _TURNED
            numbers[_TURN] = 0
        if fill < room:
            octets[fill] = octet
            fill += 1
        elif fill == room:
            fill += 1
    numbers[_FILL] = fill
    return at


def stuff(source, start, size, target, at, escaped, escaped_below):
    """Stuff `size` octets of source from `start` on behind target[0:at], which has room for twice as many octets; returns where they end.

    Besides flag and escape the octet `escaped` and those below `escaped_below` are escaped.
    """
    for index in range(start, start + size):
        octet = source[index]
        if octet == _FLAG or octet == _ESCAPE or octet == escaped or octet < escaped_below:
            target[at] = _ESCAPE
            at += 1
            octet ^= _TURNED
        target[at] = octet
        at += 1
    return at


class Plain:
    """The functions in Python. `octets` and `integers` prepare the arguments for buffers that many calls use."""

    name = "plain Python"
    check_16 = staticmethod(check_16)
    unstuff = staticmethod(unstuff)
    stuff = staticmethod(stuff)

    @staticmethod
    def octets(view):
        """The argument of `unstuff` and `stuff` for the buffer that they write into."""
        return view

    @staticmethod
    def integers(numbers):
        """The argument of `unstuff` for its numbers."""
        return numbers


chosen: "Any" = Plain
