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
from . import shapes

GRAFTED = "death"  # in the names of the headers that core/queue/letters.py puts behind the publisher's, and in no name of those
RESULTS = 2  # times the largest properties that results of conversions take
RESULT_SIZE = 512  # octets of a result beside those of its properties: objects and their place in the table
SOURCES = {BASIC: "amqp_0_9.exact", AMQP_1_0: "amqp_1_0.exact", AMQP_0_10: "amqp_0_10.exact"}


def source_of(kind):
    """The file that converts messages of this kind for other families."""
    number = kind & layout.KIND_FORMAT
    return needed(SOURCES[number], "what other families are told of a message") if number in SOURCES else format_of(kind)


def neutral_of(tables, message, wide=False):
    """(properties by name, pieces of its body or None: all of it) of a message, for receivers of another family; without annotations.
    `wide`: for receivers of 1.0 or 0-10."""
    kind = tables.messages[message + layout.MESSAGE_KIND]
    source = source_of(kind)
    octets = tables.properties_of(message)
    places, type_ = payload(tables, message, source, octets) or (None, None)
    return named(source, kind, octets, type_, wide), places


def named(source, kind, octets, type_, wide):
    """Properties (bytes) of a message by name, without the headers that are annotations; `type_`: of its body, or None."""
    given = source.exact(octets, wide)
    if kind & layout.KIND_GRAFTED:
        headers = given.pop("headers")
        headers = {name: headers[name] for name in headers if GRAFTED not in name}
        if headers:
            given["headers"] = headers
    if type_ is not None:
        given["type"] = type_
    return given


def once(broker, message, wide, version, convert, octets=None):
    """(what `convert` makes of a message's properties by name, pieces of its body): made once for all receivers of a version, as long as
    there is room for it (Results). `version`: a tuple of all else that the result is made of, the version's name first; `convert`: a
    function of the properties as `neutral_of` gives them; `octets`: the message's properties, where they have been read."""
    tables = broker.tables
    messages = tables.messages
    kind = messages[message + layout.MESSAGE_KIND] & (layout.KIND_FORMAT | layout.KIND_GRAFTED)
    if octets is None:
        octets = tables.properties_of(message)
    if broker.results is None:
        broker.results = Results(RESULTS * broker.limits.properties_size_max)
    # Whether a body is payload as it lies follows from the properties, and of 1.0 from its size.
    size = messages[message + layout.MESSAGE_BODY] if kind & layout.KIND_FORMAT == AMQP_1_0 else 0
    key = (version, kind, octets, size)
    made = broker.results.made_of(key)
    if made is not None:
        return made, None
    source = source_of(kind)
    places, type_ = payload(tables, message, source, octets) or (None, None)
    if places is not None:
        key = (version, kind, octets, type_)
        made = broker.results.by_key.get(key)
    if made is None:
        given = named(source, kind, octets, type_, wide)
        ids = shapes.ids_of(given) if places is None and len(octets) <= shapes.SIZE_MAX else ()
        made = convert(given)
        broker.results.keep(key, made, len(octets))
        if any(ids):
            broker.results.learn(key, made, ids)
    return made, places


class Results:
    """Results of conversions by what they were made of, and shapes by the size of that. `room`: octets that they and that take at most;
    where a further one does not fit all others go."""

    def __init__(self, room):
        self.room = room
        self.taken = 0
        self.by_key = {}

    def made_of(self, key):
        """What was made of a key, or is made by the shape that it has; None: neither is known."""
        made = self.by_key.get(key)
        if made is None:
            version, kind, octets, size = key
            shape = self.by_key.get((version, kind, b"", len(octets), size))
            if shape is not None:
                made = shape.made_of(octets)
        return made

    def learn(self, key, made, ids):
        """Have what was made of a key, with those ids, show how others are made of the same shape, if there is room beside the result."""
        version, kind, octets, size = key
        place = (version, kind, b"", len(octets), size)
        shape = self.by_key.get(place)
        if shape is None or shape.rest is not None or not shape.learn(octets, made, ids):
            self.forget(place)
            shape = shapes.Shape(octets, made, ids)
            if self.taken + len(shape) + RESULT_SIZE <= self.room:
                self.keep(place, shape, 0)

    def forget(self, place):
        """Forget the shape at a place, if there is one."""
        shape = self.by_key.pop(place, None)
        if shape is not None:
            self.taken -= len(shape) + RESULT_SIZE

    def keep(self, key, made, size):
        """Keep a result (octets, or a tuple that begins with them) of a key that has `size` octets, or a shape."""
        size += len(made[0] if isinstance(made, tuple) else made) + RESULT_SIZE
        if self.taken + size > self.room:
            self.by_key = {}
            self.taken = 0
        if size <= self.room:
            self.by_key[key] = made
            self.taken += size


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
