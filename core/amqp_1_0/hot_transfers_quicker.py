"""CPython's own form of what hot_transfers.py writes for each message. No board carries this file. tests/accel/test_quicker.py holds the
forms together."""

from struct import Struct

from ..memory.hot import extract
from ..memory.layout import *

_put_size = Struct(">I").pack_into
_put_id = Struct(">BIHIBBB").pack_into  # constructor, delivery-id; head of the tag, the tag; message-format, settled, more
_BEHIND = 14  # octets of these


def write(arena, blocks, messages, entries, channels, state, entry, channel, prefix, prefix_size, frame_size_max, target, at):
    """See hot_transfers.write."""
    message = entries[entry + ENTRY_MESSAGE]
    octets = messages[message + MESSAGE_PROPERTIES] + messages[message + MESSAGE_BODY]
    number = (channels[channel + CHANNEL_TAG_HIGH] & 3) << 30 | channels[channel + CHANNEL_TAG]
    behind = at + prefix_size
    target[at:behind] = prefix[:prefix_size]
    _put_size(target, at, prefix_size + _BEHIND + octets)
    _put_id(target, behind, 0x70, number, 0xA004, number, prefix[prefix_size], prefix[prefix_size + 1], prefix[prefix_size + 2])
    behind += _BEHIND
    extract(arena, blocks, state, messages[message + MESSAGE_FIRST], messages[message + MESSAGE_ROUTE], target, behind, octets)
    return behind + octets
