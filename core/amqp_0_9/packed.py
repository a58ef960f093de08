"""Packed fetch: many records of a stream in one message, for readers that replay at speed (x-stream-pack-records).

    octet version = 1 | 3 octets 0 | long count | longlong first offset
    long arrived[count]  seconds since 1970 | long key size[count] | long properties size[count] | long body size[count]
    keys | properties (flags and list, as in a content header) | bodies

All numbers big-endian. The records are dense: record i has offset first + i. The message's headers have x-stream-offset (the first) and
x-stream-records (the count).
"""

import struct

from .. import layout
from ..stream import EPOCH
from . import field_table, frame, properties

VERSION = 1
OCTETS_DEFAULT = 1 << 20

CONTENT_TYPE = "application/vnd.leveret.records"


def collect(tables, consumer, octets_max):
    """The records at a consumer's cursor, at least one: (body as bytes, count)."""
    entries, messages = tables.entries, tables.messages
    entry = consumer.cursor
    count = 0
    size = 16
    times, keys, lists, bodies, sizes = [], [], [], [], ([], [], [])
    end = consumer.queue.readable_offset()
    while entry != layout.NONE and count < consumer.pack_records and consumer.cursor_offset + count < end:
        message = entries[entry + layout.ENTRY_MESSAGE]
        route = tables.route_of(message)
        key = route[2 + route[0]:]
        given = tables.properties_of(message)
        body_size = messages[message + layout.MESSAGE_BODY]
        size += 16 + len(key) + len(given) + body_size
        if count and size > octets_max:
            break
        times.append(messages[message + layout.MESSAGE_ARRIVED] + EPOCH)
        keys.append(key)
        lists.append(given)
        bodies.append(tables.octets(message, len(route) + len(given), body_size))
        for column, part in zip(sizes, (key, given, bodies[-1])):
            column.append(len(part))
        count += 1
        entry = entries[entry + layout.ENTRY_NEXT]
    form = ">%dI" % count
    head = struct.pack(">BBHIQ", VERSION, 0, 0, count, consumer.cursor_offset)
    columns = [struct.pack(form, *column) for column in (times,) + sizes]
    return b"".join([head] + columns + keys + lists + bodies), count


def header(channel_number, size, offset, count):
    """The content header frame of a packed message."""
    given = {"content_type": CONTENT_TYPE, "headers": {"x-stream-offset": ("l", offset), "x-stream-records": count}}
    return frame.content_header(channel_number, size, properties.encode(given))


def unpack(octets):
    """A packed body as a list of (offset, seconds since 1970, key, properties, body). For clients; the broker only packs."""
    version, _, _, count, first = struct.unpack_from(">BBHIQ", octets, 0)
    if version != VERSION:
        field_table.bad("packed records of version %d; version %d is known" % (version, VERSION))
    form = ">%dI" % count
    columns = [struct.unpack_from(form, octets, 16 + 4 * count * index) for index in range(4)]
    at = 16 + 16 * count
    parts = []
    for column in columns[1:]:
        found = []
        for size in column:
            found.append(bytes(octets[at:at + size]))
            at += size
        parts.append(found)
    return [(first + index, columns[0][index], parts[0][index], parts[1][index], parts[2][index]) for index in range(count)]
