"""A session's unsettled deliveries by their numbers: the low 32 bits of their delivery tags, compared as serial numbers (memory/serial.py).

The unsettled list has them in their order; an entry has the low 30 bits of its tag.
"""

from ..memory import layout, serial


def tail_number(session):
    """The number of the last delivery of a session."""
    channels, handle = session.broker.tables.channels, session.handle
    return (channels[handle + layout.CHANNEL_TAG_HIGH] << 30 | channels[handle + layout.CHANNEL_TAG]) & 0xFFFFFFFF


def number_of(session, entry):
    """The number of an unsettled entry: the last one with its low 30 bits."""
    last = tail_number(session)
    tag = session.broker.tables.entries[entry + layout.ENTRY_TAG]
    return serial.after(last, -((last - tag) & layout.MASK))


def entry_from(session, first, last):
    """The oldest unsettled entry whose number is from `first` to `last`; NONE: there is none."""
    tables = session.broker.tables
    entries, channels = tables.entries, tables.channels
    head = channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD]
    if head == layout.NONE:
        return layout.NONE
    oldest = number_of(session, head)
    if serial.distance(oldest, last) < 0 or serial.distance(first, tail_number(session)) < 0:
        return layout.NONE
    if serial.distance(first, oldest) >= 0:
        return head
    entry = tables.engine.find_tag(session.handle, first & layout.MASK)
    if entry != layout.NONE:
        return entry
    entry, passed = head, 0
    while entry != layout.NONE and 0 < (first - entries[entry + layout.ENTRY_TAG]) & layout.MASK <= layout.MASK >> 1:
        passed += 1
        entry = entries[entry + layout.ENTRY_NEXT]
    tables.state[layout.STATE_LEFT] -= passed
    if entry != layout.NONE and serial.distance(number_of(session, entry), last) < 0:
        return layout.NONE
    return entry


def is_held(session, entry):
    """True when a session holds the entry of its last delivery."""
    return session.broker.tables.channels[session.handle + layout.CHANNEL_UNSETTLED_TAIL] == entry
