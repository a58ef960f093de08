"""Packed fetch: many records of a stream in one message, for readers that replay at speed (x-stream-pack-records).

    octet version = 3 | 3 octets 0 | long count | longlong first offset
    long arrived[count]  seconds since 1970 | long route size[count] | long properties size[count] | long body size[count]
    long kind[count]     whose format the properties have, and what they say (layout.MESSAGE_KIND)
    records: each its route (exchange and routing key, two short strings) | properties (flags and list, as in a content header) | body

All numbers big-endian. The records are dense: record i has offset first + i, and each is one piece, as it lies in the arena; one with
annotations, or of another family, is as 0-9-1 delivers it, and its kind does not say so. The message's headers have x-stream-offset (the
first) and x-stream-records (the count).
"""

import struct

from ..memory import layout
from ..memory.layout import EPOCH
from ..message import reading
from . import field_table, frame, properties
from .outgoing import foreign

VERSION = 3
HEAD_SIZE = 16
COLUMNS_SIZE = 20  # of one record
OCTETS_DEFAULT = 1 << 20

CONTENT_TYPE = "application/vnd.leveret.records"


def collect(broker, consumer, octets_max):
    """The records at a consumer's cursor, at least one: (body as octets, count, the entry behind the last)."""
    most = min(consumer.pack_records, consumer.queue.readable_offset() - consumer.cursor_offset)
    body, count, behind = pack(broker, consumer.row.pack, consumer.cursor, most, octets_max)
    struct.pack_into(">BBHIQ", body, 0, VERSION, 0, 0, count, consumer.cursor_offset)
    return body, count, behind


def pack(broker, quicker, entry, most, octets_max):
    """Up to `most` records from `entry` on, at least one: (a body as a bytearray whose head is not filled in, count, the entry behind).

    `quicker`: the function that has this in C, or None; it packs up to a record that is reworked (layout.KIND_REWORKED). A pack that begins
    with one has all that come behind it.
    """
    tables = broker.tables
    is_merged = tables.messages[tables.entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_KIND] & layout.KIND_REWORKED != 0
    if quicker is not None and not is_merged:
        return quicker(entry, most, octets_max)
    return pack_here(broker, entry, most, octets_max, is_merged)


def pack_here(broker, entry, most, octets_max, is_merged):
    """Pack in Python; `is_merged`: reworked records too."""
    tables = broker.tables
    entries, messages, arena, block_size = tables.entries, tables.messages, tables.arena, tables.block_size
    size = HEAD_SIZE
    sizes: list = []
    records: list = []
    while entry != layout.NONE and len(records) < most:
        message = entries[entry + layout.ENTRY_MESSAGE]
        route = messages[message + layout.MESSAGE_ROUTE]
        given = messages[message + layout.MESSAGE_PROPERTIES]
        body = messages[message + layout.MESSAGE_BODY]
        kind = messages[message + layout.MESSAGE_KIND]
        octets = content = b""
        if kind & layout.KIND_REWORKED:
            if not is_merged:
                break
            kind &= ~layout.KIND_REWORKED
            octets, content = reworked_content(broker, message)
            given, body = len(octets), len(content)
        whole = route + given + body
        size += COLUMNS_SIZE + whole
        if records and size > octets_max:
            break
        sizes += (messages[message + layout.MESSAGE_ARRIVED] + EPOCH, route, given, body, kind)
        if octets:
            octets = tables.route_of(message) + octets + content
        elif whole <= block_size:
            start = messages[message + layout.MESSAGE_FIRST] * block_size
            octets = bytes(arena[start : start + whole])
        else:
            octets = tables.octets(message, 0, whole)
        records.append(octets)
        entry = entries[entry + layout.ENTRY_NEXT]
    count = len(records)
    form = ">%dI" % count
    columns = [struct.pack(form, *sizes[column::5]) for column in range(5)]
    return bytearray().join([bytes(HEAD_SIZE)] + columns + records), count, entry


def reworked_content(broker, message):
    """(properties, body) of a message that is not delivered as its publisher sent it, both bytes."""
    tables = broker.tables
    if tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT:
        return foreign().content(broker, message)
    size = tables.messages[message + layout.MESSAGE_BODY]
    return reading.merged(broker.tables, message), tables.octets(message, tables.size_of(message) - size, size)


def header(channel_number, size, offset, count):
    """The content header frame of a packed message."""
    given = {"content_type": CONTENT_TYPE, "headers": {"x-stream-offset": ("l", offset), "x-stream-records": count}}
    return frame.content_header(channel_number, size, properties.encode(given))


def unpack(octets):
    """A packed body as (offset, seconds since 1970, exchange, key, properties, body, kind) of each record; the broker only packs."""
    version, _, _, count, first = struct.unpack_from(">BBHIQ", octets, 0)
    if version != VERSION:
        field_table.bad("packed records of version %d; version %d is known" % (version, VERSION))
    form = ">%dI" % count
    arrived, routes, given, bodies, kinds = [struct.unpack_from(form, octets, HEAD_SIZE + 4 * count * index) for index in range(5)]
    at = HEAD_SIZE + COLUMNS_SIZE * count
    messages = []
    for index in range(count):
        exchange_end = at + 1 + octets[at]
        route_end = at + routes[index]
        properties_end = route_end + given[index]
        body_end = properties_end + bodies[index]
        messages.append(
            (
                first + index,
                arrived[index],
                bytes(octets[at + 1 : exchange_end]),
                bytes(octets[exchange_end + 1 : route_end]),
                bytes(octets[route_end:properties_end]),
                bytes(octets[properties_end:body_end]),
                kinds[index],
            )
        )
        at = body_end
    return messages
