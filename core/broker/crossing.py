"""Messages that one family published and another delivers: which file of core/ converts them for other families.

Converted properties have the names and kinds that families share (core/message/README.md), numbers with the letter of their
kind: (letter, number); a text that is not UTF-8 is ("S", octets). Such a file has:

    exact(octets, wide)             the properties (bytes) with exact types, as their publisher sent them. `wide`: also
                                    what class basic has no words for, and 1.0 and 0-10 both have (core/message/README.md)
    payload(octets, size, read)     None: the body, of `size` octets, is payload as it lies. Else ([(position, octets)], type): the pieces
                                    of the body that are payload, in order, and the value of the property type for them, or None;
                                    read(position, most): octets of the body

A format in no row of SOURCES has both functions itself.
"""

from ..memory import layout
from ..message import reading
from ..message.formats import AMQP_0_10, AMQP_1_0, BASIC, format_of
from ..parts import needed

GRAFTED = "death"  # in the names of the headers that core/queue/letters.py puts behind the publisher's, and in no name of those
SOURCES = {BASIC: "amqp_0_9.exact", AMQP_1_0: "amqp_1_0.exact", AMQP_0_10: "amqp_0_10.exact"}


def source_of(kind):
    """The file that converts messages of this kind for other families."""
    number = kind & layout.KIND_FORMAT
    return needed(SOURCES[number], "what other families are told of a message") if number in SOURCES else format_of(kind)


def told(tables, message, wide=False):
    """(properties by name, pieces of its body or None: all of it) of a message, for receivers of another family; without annotations.
    `wide`: for receivers of 1.0 or 0-10."""
    kind = tables.messages[message + layout.MESSAGE_KIND]
    source = source_of(kind)
    octets = tables.properties_of(message)
    given = source.exact(octets, wide)
    if kind & layout.KIND_GRAFTED:
        headers = given.pop("headers")
        headers = {name: headers[name] for name in headers if GRAFTED not in name}
        if headers:
            given["headers"] = headers
    pieces_and_type = payload(tables, message, source, octets)
    if pieces_and_type is None:
        return given, None
    if pieces_and_type[1] is not None:
        given["type"] = pieces_and_type[1]
    return given, pieces_and_type[0]


def annotations_of(tables, message):
    """A message's annotations, exact, with those that are among its publisher's headers (layout.KIND_GRAFTED); {}: it has none."""
    changes = reading.annotations_of(tables, message)
    kind = tables.messages[message + layout.MESSAGE_KIND]
    if kind & layout.KIND_GRAFTED:
        headers = source_of(kind).exact(tables.properties_of(message))["headers"]
        headers = {name: headers[name] for name in headers if GRAFTED in name}
        headers.update(changes.get("headers", {}))
        changes["headers"] = headers
    return changes


def pieces(tables, message):
    """The pieces alone, or None: all of the body."""
    source = source_of(tables.messages[message + layout.MESSAGE_KIND])
    pieces_and_type = payload(tables, message, source, tables.properties_of(message))
    return None if pieces_and_type is None else pieces_and_type[0]


def payload(tables, message, source, octets):
    """`payload` of a message, by the file of its family; `octets`: its properties."""
    size = tables.messages[message + layout.MESSAGE_BODY]
    return source.payload(octets, size, reader(tables, message))


def reader(tables, message):
    """A function of (position, most): up to `most` octets of a message's body."""
    size = tables.messages[message + layout.MESSAGE_BODY]
    start = tables.size_of(message) - size
    return lambda at, most: tables.octets(message, start + at, min(most, size - at))
