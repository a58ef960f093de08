"""Orphans: messages of queues that nothing in the log defines, for a lost segment had their definitions. Files beside the log keep them.

A file is like a segment: a head, and a record for each message, with its places in undefined queues. `leveret log salvage` reads it. The
broker does not count the file towards the size of the log, and never removes it.
"""

import struct

from ..log import message_record, segments
from .first_pass import is_orphan, records


def keep(store, contents):
    """Have the store put the orphans of each segment into a file. A segment whose file the store refuses is never removed. A store that
    has no such files loses orphans with their segments."""
    if not hasattr(store, "set_aside"):
        return
    for segment in contents.segments:
        if segment.orphans:
            try:
                contents.aside.append(store.set_aside(segment.number, pieces_of(store, contents, segment.number)))
            except OSError:
                segment.pinned = True


def pieces_of(store, contents, number):
    """The file of a segment's orphans, a record at a time."""
    payload = segments.MAGIC + struct.pack(">HII", segments.VERSION, number, number)
    yield segments.record(0, segments.HEAD, (payload,), len(payload))
    sequence = 0
    for payload, places in orphans_of(store, contents, number):
        parts = message_record.moved(payload, 0, places)
        parts.append(payload[message_record.route_at(0, message_record.count_at(payload, 0)) :])
        yield segments.record(sequence, segments.MESSAGE, parts, sum([len(part) for part in parts]))
        sequence += 1


def orphans_of(store, contents, number):
    """(payload of its record, its places (queue id, position) in undefined queues) of each orphan in a segment."""
    for type_, octets, at, size, _, _ in records(store, number, contents.ends[number]):
        if type_ == segments.MESSAGE:
            places = []
            for identity, position in message_record.places_at(octets, at):
                if identity in contents.orphans and is_orphan(contents, (), identity, position):
                    places.append((identity, position))
            if places:
                yield octets[at : at + size], places
