"""A bridge's message for an upstream that speaks AMQP 1.0: the sections in front of its body, out of properties of class basic with the
bridge's marks in them (core/amqp_0_9/bridge_marks.py).

    header                    durable, priority and ttl out of delivery-mode, priority and expiration
    message-annotations       x-opt-type, and x-opt-NAME of each header that is a list or a table: application-properties cannot have those
    properties                subject: the routing key; to: the same, where the link has no address; the others by their names
    application-properties    headers, with the bridge's marks x-gateway, x-sequence, x-arrived and x-hops among them, for who reads there

An application reads application-properties with any client, and selects by them; an annotation whose name does not begin with x-opt- must
not be sent to who may not know it (part 3, section 3.2.10).
"""

from ..broker import crossing
from . import composites, convert, sections, types

TTL_MAX = 0xFFFFFFFF


def head(kind, octets, key, to_key):
    """The sections (bytes) of properties (bytes) of a kind of core/message/formats.py. `key`: the routing key, bytes; `to_key`: it is the
    address too. Raises ProtocolError for properties that cannot be read, ValueError for what AMQP 1.0 cannot hold."""
    given = crossing.source_of(kind).exact(octets)
    subject = sections.utf8(key)
    if subject is None:
        raise ValueError("a routing key that is not UTF-8 cannot be a subject")
    noted, pairs = {}, {}
    headers = given.get("headers") or {}
    for name in headers:
        value = convert.typed(headers[name])
        if isinstance(value, (dict, list)):
            if convert.is_ascii(name):
                noted["x-opt-" + name] = value
        else:
            pairs[name] = value
    if given.get("type") is not None:
        noted["x-opt-type"] = given["type"]
    fields = convert.fields_of(given)
    if "reply-to" in fields:
        fields["reply-to"] = given["reply_to"]
    fields["subject"] = subject
    if to_key:
        fields["to"] = subject
    parts = [header(given)]
    if noted:
        parts.append(convert.annotations(noted))
    parts.append(composites.write("properties", fields))
    if pairs:
        parts.append(types.encode(("described", ("ulong", sections.APPLICATION_PROPERTIES), pairs)))
    return b"".join(parts)


def header(given):
    """The section header; nothing where it would say what is so anyway."""
    fields: "dict" = {}
    if given.get("delivery_mode") == 2:
        fields["durable"] = True
    if given.get("priority") is not None:
        fields["priority"] = given["priority"]
    expiration = given.get("expiration")
    if isinstance(expiration, str) and expiration.isdigit():
        fields["ttl"] = min(int(expiration), TTL_MAX)
    return composites.write("header", fields) if fields else b""
