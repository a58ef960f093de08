"""The body of a message of AMQP 1.0 (sections 3.2.6 to 3.2.9), section by section, without their contents.

An incoming link checks a body piece by piece (`Body`): the order of sections, and the end of each; only
receivers read the inside of an amqp-sequence or an amqp-value. A delivery to a receiver of 0-9-1 asks where the payload lies
(`payload`).
"""

from ..errors import ProtocolError
from ..memory.layout import NONE
from ..shim import const
from . import sections, types
from .sections import DATA, FOOTER, VALUE, bad

if False:  # for the type checker alone
    from typing import Any

SECTIONS_MAX = const(1024)  # of one body
HEAD_MAX = const(320)  # octets of a section up to its value's data; an amqp-value may be described
_DEPTH_MAX = const(4)  # descriptors of an amqp-value


def begun(octets):
    """The Body behind a properties part (bytes)."""
    head = sections.data_head(octets)
    return Body(NONE if head is None else head[1])


class Body:
    """A body on its way in, behind a properties part: `size`: octets of the data section whose head ends that part, NONE: it ends with
    none."""

    def __init__(self, size):
        self.last = 0 if size == NONE else DATA
        self.left = 0 if size == NONE else size  # octets of the section that has begun
        self.count = 0
        self.carried = b""  # the beginning of a section's head

    def feed(self, octets, at, end):
        """Check the next octets, those between `at` and `end` of `octets`. Raises ProtocolError for octets that are no body."""
        while True:
            step = min(self.left, end - at)
            self.left -= step
            at += step
            if at == end:
                return
            piece = self.carried + bytes(octets[at : min(end, at + HEAD_MAX)])
            begun = section(piece, self.last)
            if begun is None:
                if len(piece) >= HEAD_MAX:
                    bad("a section of a body whose head has more than %d octets" % HEAD_MAX)
                self.carried = piece
                return
            self.last, size, self.left = begun
            at += size - len(self.carried)
            self.carried = b""
            self.count += 1
            if self.count > SECTIONS_MAX:
                bad("a body of more than %d sections" % SECTIONS_MAX)

    def end(self):
        """End the body of a message that is whole. Raises ProtocolError for a section that is not."""
        if self.left or self.carried:
            bad(
                "a message ends inside its body: %d octets of a section are missing" % self.left
                if self.left
                else "a message ends inside the head of a section"
            )


def section(octets, last):
    """The section that `octets` begin with: (code, octets before its value's data, octets of these), or None where they end within its
    head. `last`: the code of the section before it, 0: there is none in the body."""
    part = sections.descriptor(octets, 0, len(octets))
    if part is None:
        return None
    code, at = part
    if code < DATA:
        bad("the section %s stands in the body" % sections.NAMES[code][0])
    sections.check_order(code, last)
    if code != VALUE:
        part = sections.head(code, octets, at, len(octets))
        return None if part is None else (code, part[1], part[2])
    at = extent(octets, at, 0)
    return None if at is None else (code, at[0], at[1])


def extent(octets, at, depth):
    """(position of the data, their octets) of the value at `at`, or None where the octets end within its head."""
    while at < len(octets) and octets[at] == 0:
        if depth == _DEPTH_MAX:
            bad("an amqp-value with more than %d descriptors" % _DEPTH_MAX)
        inner = extent(octets, at + 1, depth + 1)
        if inner is None or inner[0] + inner[1] >= len(octets):
            return None
        at = inner[0] + inner[1]
        depth += 1
    if at >= len(octets):
        return None
    row: "Any" = sections.BY_CODE.get(octets[at])
    if row is None:
        bad("unknown constructor octet 0x%02x" % octets[at])
    name, category, width = row
    at += 1
    if category == "fixed":
        return at, width
    if at + width > len(octets):
        return None
    size, at = types.number(name, width, octets, at, len(octets))
    return at, size


def is_body(size, read):
    """True where `size` octets, which `read` gives as for `payload`, are the sections of a body."""
    at = last = count = 0
    try:
        while at < size and count < SECTIONS_MAX:
            begun: "Any" = section(read(at, HEAD_MAX), last)
            if begun is None:
                return False
            last, head, length = begun
            at += head + length
            count += 1
    except ProtocolError:
        return False
    return at == size and count > 0


def payload(octets, size, read):
    """What receivers of 0-9-1 get as the body of a message with the properties part `octets` and a body part of `size` octets: None, all of
    it, where that is its payload; else (pieces of the body part, [(position, octets)], is_encoded): data sections come without their heads,
    others as they are, with theirs. `read(at, most)`: octets of the body part from `at`, at most `most` of them."""
    data = sections.data_head(octets)
    if data is None:
        if not size:
            return None
        first: "Any" = section(read(0, HEAD_MAX), 0)
        return ([], False) if first[0] == FOOTER else ([(0, size)], True)
    if data[1] == size:
        return None
    pieces = [(0, data[1])] if data[1] else []
    at = data[1]
    while at < size:
        following: "Any" = section(read(at, HEAD_MAX), DATA)
        code, head, length = following
        if code == FOOTER:
            break
        if length:
            pieces.append((at + head, length))
        at += head + length
    return pieces, False
