"""CPython's own forms of what hot_in.py reads of a content before it moves anything: heads by a call of struct, names of a table as bytes.

No board carries this file. Each function does what the one of its name there says, for an interpreter to which each look at an octet
costs as much as a whole call in C. tests/accel/test_quicker.py holds the forms together.
"""

from struct import Struct

from ..memory.layout import *

_DEPTH_MAX = 8
_header = Struct(">BHIHHQH").unpack_from  # type, channel, size; class, weight, size of the body, property flags
_frame = Struct(">BHI").unpack_from
_TEXT, _TABLE, _MODE, _PRIORITY, _TIME, _REPLY, _EXPIRATION = range(7)  # how check_properties reads a property
# From 0x8000 down to 0x0004, the cluster-id of 0-8.
_KINDS = (_TEXT, _TEXT, _TABLE, _MODE, _PRIORITY, _TEXT, _REPLY, _EXPIRATION, _TEXT, _TIME, _TEXT, _TEXT, _TEXT, _TEXT)

# Octets of a value by its letter; 255: the value says it; 254: there is no such letter.
_OF_LETTERS = {b"V": 0, b"tbB": 1, b"su": 2, b"Iif": 4, b"D": 5, b"lLdT": 8, b"SxAF": 255}
_SIZES = bytes([next((size for letters, size in _OF_LETTERS.items() if letter in letters), 254) for letter in range(256)])


_KNOWN_MAX = 64
_known: dict = {}  # property flags -> as _kinds


def _kinds(flags):
    """How the properties are read that these flags name; None: some of the flags are for session.py."""
    if len(_known) >= _KNOWN_MAX:
        _known.clear()
    kinds = None if flags & 0x13 else tuple([kind for number, kind in enumerate(_KINDS) if flags & 0x8000 >> number])
    _known[flags] = kinds
    return kinds


def header_end(state, source, start, header):
    """See hot_in.header_end."""
    left = state[STATE_END] - header
    if left < 7:
        return INCOMPLETE
    if left < 21:  # a header of 14 octets of payload is not whole
        type_, number, size = _frame(source, header)
    else:
        type_, number, size, class_, weight, body, _ = _header(source, header)
    if type_ != 2 or number != source[start + 1] << 8 | source[start + 2]:
        return ASK
    if size < 14 or size > state[STATE_FRAME_MAX] or size - 12 > state[STATE_PROPERTIES_MAX] or size + 8 > state[STATE_SIZE]:
        return ASK
    if left < size + 8:
        return INCOMPLETE
    if source[header + 7 + size] != 0xCE or class_ != 60 or weight or body >> 29 or body > state[STATE_CONTENT_MAX]:
        return ASK
    return header + size + 8


def body_end(state, source, start, at, left):
    """See hot_in.body_end."""
    if at - start + left + 8 > state[STATE_SIZE]:
        return ASK
    end = state[STATE_END]
    number = source[start + 1] << 8 | source[start + 2]
    while left > 0:
        if end - at < 7:
            return INCOMPLETE
        type_, channel, size = _frame(source, at)
        if type_ != 3 or channel != number or size == 0 or size > left or size > state[STATE_FRAME_MAX]:
            return ASK
        at += size + 8
        if at > end:
            return INCOMPLETE
        if source[at - 1] != 0xCE:
            return ASK
        left -= size
    return at


def check_properties(state, source, at, end):
    """See hot_in.check_properties."""
    flags = source[at] << 8 | source[at + 1]
    kinds = _known[flags] if flags in _known else _kinds(flags)
    if kinds is None:
        return 0
    checked = 1
    kind = 0
    lifetime = -1
    at += 2
    for each in kinds:
        if at >= end:
            return 0
        if each == _TEXT:
            at += 1 + source[at]
        elif each == _TABLE:
            if end - at < 4 or source[at]:
                return 0
            size = 4 + (source[at + 1] << 16 | source[at + 2] << 8 | source[at + 3])
            if size > end - at:
                return 0
            checked = check_table(source, at + 4, at + size, 1)
            if checked == 0:
                return 0
            at += size
        elif each == _MODE:
            if source[at] == 2:
                kind |= KIND_DURABLE
            at += 1
        elif each == _PRIORITY:
            kind |= KIND_HAS_PRIORITY | source[at] << 8
            at += 1
        elif each == _TIME:
            at += 8
        else:
            size = source[at]
            if each == _REPLY:
                if size == 21:
                    return 0  # as long as amq.rabbitmq.reply-to
            else:
                digits = bytes(source[at + 1 : min(at + 1 + size, end)])
                if len(digits) != size or size > 8 or not digits.isdigit():
                    return 0
                lifetime = int(digits)
            at += 1 + size
        if at > end:
            return 0
    state[STATE_KIND] = kind
    state[STATE_LIFETIME] = lifetime
    return checked if at == end else 0


def check_table(source, at, end, depth):
    """See hot_in.check_table."""
    if depth > _DEPTH_MAX:
        return 0
    checked = 1
    octets = bytes(source[at:end])
    at, end = 0, end - at
    while at < end:
        behind = at + 1 + octets[at]
        if behind >= end:
            return 0
        name = octets[at + 1 : behind]
        if not name.isascii():
            return 0
        if depth == 1 and (name == b"CC" or name == b"BCC"):
            if len(name) == 3:
                return 0
            checked = 2
        at = value_end(octets, behind, end, depth)
        if at < 0:
            return 0
    return checked


def value_end(octets, at, end, depth):
    """See hot_in.value_end."""
    letter = octets[at]
    size = _SIZES[letter]
    at += 1
    if size < 254:
        return at + size if size <= end - at else -1
    if size == 254 or end - at < 4 or octets[at]:
        return -1
    size = octets[at + 1] << 16 | octets[at + 2] << 8 | octets[at + 3]
    at += 4
    if size > end - at:
        return -1
    if letter == 0x46 and check_table(octets, at, at + size, depth + 1) == 0:
        return -1
    if letter == 0x41 and check_array(octets, at, at + size, depth + 1) == 0:
        return -1
    return at + size


def check_array(octets, at, end, depth):
    """See hot_in.check_array."""
    if depth > _DEPTH_MAX:
        return 0
    while at < end:
        at = value_end(octets, at, end, depth)
        if at < 0:
            return 0
    return 1
