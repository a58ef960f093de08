"""Messages in the log of queues that nothing defines: a lost segment has their definitions. They are kept in files beside the log.

A file is as a segment: a head, and a record for each message, with those of its places that nobody can have. `leveret log salvage` reads
it. The broker counts none of it towards the size of the log, and never removes it.
"""

import struct

from . import log
from .read_back import MESSAGE_HEAD, PLACE_SIZE
from .recovery_look import is_orphan, records


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
    payload = log.MAGIC + struct.pack(">HII", log.VERSION, number, number)
    yield log.record(0, log.HEAD, (payload,), len(payload))
    sequence = 0
    for payload, places in orphans_of(store, found, number):
        count = struct.unpack_from(">H", payload, 0)[0]
        parts = [struct.pack(">H", len(places)), payload[2:MESSAGE_HEAD]]
        parts += [struct.pack(">IQ", identity, position) for identity, position in places]
        parts.append(payload[MESSAGE_HEAD + PLACE_SIZE * count:])
        yield log.record(sequence, log.MESSAGE, parts, sum([len(part) for part in parts]))
        sequence += 1


def orphans_of(store, found, number):
    """(payload of its record, places (queue id, position) that nobody can have) of each orphan in a segment."""
    for type_, octets, at, size, _, _ in records(store, number, found.ends[number]):
        if type_ == log.MESSAGE:
            places = []
            for index in range(struct.unpack_from(">H", octets, at)[0]):
                identity, position = struct.unpack_from(">IQ", octets, at + MESSAGE_HEAD + PLACE_SIZE * index)
                if identity in found.orphans and is_orphan(found, (), identity, position):
                    places.append((identity, position))
            if places:
                yield octets[at:at + size], places
