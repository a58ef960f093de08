"""Messages of AMQP 1.0 for tests: made of sections, published at the broker's verbs, and as a receiver would get them."""

from leveret.core.amqp_1_0 import composites, convert, sections, types
from leveret.core.memory import layout


def section(code, value):
    """A section with its descriptor."""
    return types.encode(("described", ("ulong", code), value))


def message(*body, header=None, delivery=None, noted=None, properties=None, application=None):
    """The octets of a message out of fields and maps, and sections of its body: bytes are a data section, what else is as it is given."""
    octets = b""
    if header is not None:
        octets += composites.write("header", header)
    for code, table in ((sections.DELIVERY_ANNOTATIONS, delivery), (sections.MESSAGE_ANNOTATIONS, noted)):
        if table is not None:
            octets += section(code, {("symbol", name): table[name] for name in table})
    if properties is not None:
        octets += composites.write("properties", properties)
    if application is not None:
        octets += section(sections.APPLICATION_PROPERTIES, application)
    return octets + b"".join([section(sections.DATA, each) if isinstance(each, bytes) else section(*each) for each in body])


def made(broker, route, octets):
    """A message of the store, with one reference; `route`: (exchange, key), texts."""
    at, kind, lifetime = sections.split(octets, 0, len(octets))
    route = bytes((len(route[0]),)) + route[0].encode() + bytes((len(route[1]),)) + route[1].encode()
    record = broker.tables.new_message(route, at, len(octets) - at, broker.seconds, kind, lifetime)
    broker.tables.append(record, octets, 0, len(octets))
    return record


def publish(broker, exchange, key, octets):
    """Publish a message: the outcome."""
    record = made(broker, (exchange, key), octets)
    outcome = broker.publish(record, exchange, key.encode())
    broker.tables.release(record)
    return outcome


def head_of(broker, name):
    """The message at the head of a queue."""
    return broker.tables.entries[broker.queues[name].head() + layout.ENTRY_MESSAGE]


def received(broker, record, failed=0, noted=None):
    """What a receiver of 1.0 gets of a message."""
    tables = broker.tables
    size = tables.messages[record + layout.MESSAGE_BODY]
    return convert.head_for_1_0(broker, record, failed, noted) + tables.octets(record, tables.size_of(record) - size, size)


def received_from(broker, name, failed=0):
    """The same for the message at the head of a queue."""
    return received(broker, head_of(broker, name), failed)
