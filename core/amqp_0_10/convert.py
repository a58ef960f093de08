"""Messages for receivers of AMQP 0-10: the header segment of any message of the store.

A publisher's structs are not written again where nothing more has to be said. In delivery-properties the broker says the exchange, the
routing key, and whether the message was delivered before ("Identifies the exchange ... MUST be set by the broker upon receipt").
"""

from ..broker import crossing
from ..memory import layout
from ..message import reading
from ..message.formats import AMQP_0_10
from ..message.route import exchange_of, key_of
from . import properties, structs

LATIN_MAX = 255  # octets of a str8
SAID = layout.KIND_DURABLE | layout.KIND_HAS_PRIORITY | 255 << layout.KIND_PRIORITY  # the part of a kind that delivery-properties say


def header_segment(broker, message, redelivered, more=None):
    """The octets of the header segment of a message. `more`: fields of delivery-properties that its subscription has asked for."""
    tables = broker.tables
    kind = tables.messages[message + layout.MESSAGE_KIND]
    exchange, key = reading.names_of(tables, message)
    changes = {"exchange": exchange, "routing_key": text_of(key)}
    if redelivered:  # else its sender's word counts: "any delivery of the message from that Server to a Client must also have" it
        changes["redelivered"] = True
    changes.update(more or {})
    annotations = crossing.annotations_of(tables, message) if kind & (layout.KIND_ANNOTATED | layout.KIND_GRAFTED) else {}
    if annotations and reading.expiration_of(tables, message) is None:
        changes["ttl"] = changes["expiration"] = None  # a dead letter's lifetime has ended
    if kind & layout.KIND_FORMAT == AMQP_0_10:
        octets = tables.properties_of(message)
        if not annotations and says(octets, changes):
            return octets
        return properties.rewritten(octets, changes, annotations)
    if not annotations and not more:
        return converted(broker, message, redelivered, tables.route_of(message))[0]
    lifetime = reading.expiration_of(tables, message)
    octets, _ = crossing.once(
        broker,
        message,
        True,
        ("0-10", kind & SAID, lifetime),
        lambda given: properties.encode(over(given, said_of(kind, lifetime))),
    )
    return properties.rewritten(octets, changes, annotations)


def converted(broker, message, redelivered, route, octets=None):
    """(header segment, pieces of its body) of a message of another family that has no annotations, for a receiver that asks for no more:
    made once for all such receivers. `route`, `octets`: its route and its properties; None: they have not been read."""
    kind = broker.tables.messages[message + layout.MESSAGE_KIND]
    lifetime = reading.expiration_of(broker.tables, message)

    def convert(given):
        changes = {"exchange": exchange_of(route), "routing_key": text_of(key_of(route)), "redelivered": redelivered}
        return properties.rewritten(properties.encode(over(given, said_of(kind, lifetime))), changes, {})

    return crossing.once(broker, message, True, ("0-10", kind & SAID, lifetime, redelivered, route), convert, octets)


def said_of(kind, lifetime):
    """What the columns of a message say of it, by the names of class basic."""
    said: "dict" = {"delivery_mode": properties.PERSISTENT if kind & layout.KIND_DURABLE else 1}
    if kind & layout.KIND_HAS_PRIORITY:
        said["priority"] = kind >> layout.KIND_PRIORITY & 255
    said["expiration"] = None if lifetime is None else str(lifetime)
    return said


def over(given, said):
    """Properties by name with others over them."""
    given.update(said)
    return given


def says(octets, changes):
    """True when the delivery-properties of a header segment say what the broker has to say."""
    for name, begin, behind in structs.each_struct(octets, 0, len(octets)):
        if name == properties.DELIVERY:
            fields = structs.read(name, octets, begin, behind)[0]
            return all(fields[each] == changes[each] for each in changes)
    return False


def text_of(key):
    """A routing key as a str8; octets that are no UTF-8 are each a character."""
    try:
        return str(key, "utf-8")
    except UnicodeError:
        return "".join([chr(octet) for octet in key])[: LATIN_MAX // 2]
