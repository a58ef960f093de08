"""Ids of our commands and the delivery tags that they are counted with: the id of a transfer is its delivery's tag less 1."""

from ..memory import layout
from . import serial


def tail(session):
    """The id of our next command: as many as we have sent, modulo 2**32."""
    channels, handle = session.broker.tables.channels, session.handle
    return (channels[handle + layout.CHANNEL_TAG_HIGH] << 30 | channels[handle + layout.CHANNEL_TAG]) & serial.ALL


def of(session, entry):
    """The id of the transfer of an unsettled entry: the last one with its low 30 bits."""
    last = tail(session)
    return serial.after(last, -((last - session.broker.tables.entries[entry + layout.ENTRY_TAG]) & layout.MASK) - 1)


def entry_from(session, first, last):
    """The oldest unsettled entry whose transfer's id is from `first` to `last`; NONE: there is none."""
    tables = session.broker.tables
    entries = tables.entries
    head = tables.channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD]
    if head == layout.NONE:
        return layout.NONE
    oldest = of(session, head)
    if serial.distance(oldest, last) < 0 or serial.distance(first, tail(session)) <= 0:
        return layout.NONE
    if serial.distance(first, oldest) >= 0:
        return head
    entry = tables.engine.find_tag(session.handle, first + 1 & layout.MASK)
    if entry != layout.NONE:
        return entry
    entry, passed = head, 0
    while entry != layout.NONE and serial.distance(of(session, entry), first) > 0:
        passed += 1
        entry = entries[entry + layout.ENTRY_NEXT]
    tables.state[layout.STATE_LEFT] -= passed
    if entry != layout.NONE and serial.distance(of(session, entry), last) < 0:
        return layout.NONE
    return entry
