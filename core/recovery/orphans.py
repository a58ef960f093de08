"""Messages in the log of queues that nothing defines: a lost segment has their definitions. They are kept in files beside the log.

A file is as a segment: a head, and a record for each message, with those of its places that nobody can have. `leveret log salvage` reads
it. The broker counts none of it towards the size of the log, and never removes it.
"""

import struct

from ..log import message_record, segments
from .first_pass import is_orphan, records


def keep(store, found):
    """Have the store put the orphans of each segment aside. A segment where it refuses is never removed; one of a store that cannot goes
    in its turn, as any other."""
    if not hasattr(store, "set_aside"):
        return
    for segment in found.segments:
        if segment.orphans:
            try:
                found.aside.append(store.set_aside(segment.number, pieces_of(store, found, segment.number)))
            except OSError:
                segment.pinned = True


def pieces_of(store, found, number):
    """The file of a segment's orphans, a record at a time."""
    payload = segments.MAGIC + struct.pack(">HII", segments.VERSION, number, number)
    yield segments.record(0, segments.HEAD, (payload,), len(payload))
    sequence = 0
    for payload, places in orphans_of(store, found, number):
        parts = message_record.moved(payload, 0, places)
        parts.append(payload[message_record.route_at(0, message_record.count_at(payload, 0)) :])
        yield segments.record(sequence, segments.MESSAGE, parts, sum([len(part) for part in parts]))
        sequence += 1


def orphans_of(store, found, number):
    """(payload of its record, places (queue id, position) that nobody can have) of each orphan in a segment."""
    for type_, octets, at, size, _, _ in records(store, number, found.ends[number]):
        if type_ == segments.MESSAGE:
            places = []
            for identity, position in message_record.places_at(octets, at):
                if identity in found.orphans and is_orphan(found, (), identity, position):
                    places.append((identity, position))
            if places:
                yield octets[at : at + size], places
