"""Reading messages for rules: properties, headers, expiration, and copies with other annotations.

A message that no rule reads never passes through this file. Properties are read as the message's kind says (core/message/formats.py),
with the broker's annotations over them: as receivers get them.
"""

from ..limits import REPLY_ROOM
from ..memory import layout
from . import annotations, formats
from .route import exchange_of, key_of

HEADS = 128  # octets of a delivery's method and header frames beside consumer tag, route and properties, with a stream's offset


def format_of(tables, message):
    """The format that reads and writes the properties of a message."""
    return formats.format_of(tables.messages[message + layout.MESSAGE_KIND])


def properties_of(tables, message):
    """A message's properties by name, as receivers get them."""
    return decoded(format_of(tables, message), tables.properties_of(message), tables.annotations_of(message))


def decoded(format_, octets, annotated):
    """The properties by name that octets of a format have, with the annotations `annotated` (octets, b"": none) over them."""
    properties = format_.decode(octets, 0, len(octets))
    return annotations.put_over(properties, annotations.read(annotated)) if annotated else properties


def annotations_of(tables, message):
    """A message's annotations, exact; {}: it has none."""
    octets = tables.annotations_of(message)
    return annotations.read(octets, True) if octets else {}


def merged(tables, message):
    """A message's properties as receivers get them (bytes), in its own format."""
    octets = tables.properties_of(message)
    changes = annotations_of(tables, message)
    return format_of(tables, message).merge(octets, changes) if changes else octets


def field_of(tables, message, name):
    """One property of a message as receivers get it, None: it has none. The dict of all of them is not made."""
    changes = tables.annotations_of(message)
    return given(annotations.read(changes) if changes else None, format_of(tables, message).field_in, tables.properties_of(message), name)


def header_of(tables, message, name):
    """One header of a message as receivers get it, None: the message has none."""
    changes = tables.annotations_of(message)
    changes = annotations.read(changes).get("headers") if changes else None
    return given(changes, format_of(tables, message).header, tables.properties_of(message), name)


def given(changes, read, octets, name):
    """The value of a name in `changes`, else the one that `read` gives from the octets."""
    if not changes or name not in changes:
        return read(octets, name)
    return None if changes[name] is annotations.GONE else changes[name]


def expiration_of(tables, message):
    """A message's expiration in milliseconds, or None."""
    lifetime = tables.messages[message + layout.MESSAGE_LIFETIME]
    if lifetime < layout.NONE:
        return 1000 * (-2 - lifetime)
    return None if lifetime == layout.NONE else lifetime


def priority_of(tables, message):
    """A message's priority; 0 when it has none."""
    return tables.messages[message + layout.MESSAGE_KIND] >> layout.KIND_PRIORITY & 255


def names_of(tables, message):
    """The (exchange name, routing key as bytes) that a message was published with."""
    route = tables.route_of(message)
    return exchange_of(route), key_of(route)


def copy_with(tables, message, route, octets):
    """A new message with the content and kind of another, without expiration, with one reference; NONE when there is no room. `route`:
    two short strings in a row; `octets`: its annotations."""
    properties_size = tables.messages[message + layout.MESSAGE_PROPERTIES]
    size = tables.messages[message + layout.MESSAGE_BODY]
    if not tables.has_room(tables.blocks_for(len(route) + len(octets) + properties_size + size), 1):
        return layout.NONE
    kind = tables.messages[message + layout.MESSAGE_KIND] & ~(layout.KIND_CHANGED | layout.KIND_REPLY_TO)
    copy = tables.new_message(route, properties_size, size, tables.state[layout.STATE_SECONDS], kind, layout.NONE, len(octets))
    try:
        tables.append(copy, octets, 0, len(octets))
        tables.copy_content(message, copy)
    except Exception:  # all or nothing: no object holds the copy
        tables.release(copy)
        raise
    return copy


def properties_room(limits, route_size):
    """Octets of properties with which a message with such a route can still be delivered: all heads must fit in a send buffer."""
    return max(limits.properties_size_max, limits.send_buffer_size - REPLY_ROOM - limits.name_size_max - route_size - HEADS)
