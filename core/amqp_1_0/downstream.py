"""A message of an upstream of AMQP 1.0 for a bridge downwards: what class basic has of it, the reverse of upstream.py.

annotation x-routing-key, else subject      the routing key
annotation x-exchange                       the exchange that it was published to there, for the templates of routing keys and headers
header, properties, application-properties  properties and headers, as core/CONVERSIONS.md has them
annotations x-opt-type, and x-opt-NAME of a list or a map      type, and the header NAME: upstream.py made them so
data sections                               the body; of other sections the body is these, and type says amqp-1.0
"""

from . import exact, sections
from .properties import facts

NOTED = "x-opt-"


def content(octets):
    """(routing key, exchange, both bytes, properties by the names of class basic, body) of a message (bytes) of AMQP 1.0. Raises
    ProtocolError for octets that are none."""
    octets = bytes(octets)
    at = sections.split(octets, 0, len(octets))[0]
    part, size = octets[:at], len(octets) - at
    named = facts(part, 0, at)
    annotations = named.get("message-annotations") or {}
    subject = (named.get("properties") or {}).get("subject")
    key, exchange = text(annotations, "x-routing-key"), text(annotations, "x-exchange")
    given = exact.exact(part)
    if key is None:
        key = subject or ""
        if given.get("type") == subject:
            given.pop("type", None)
    unnoted(given)
    parted = exact.payload(part, size, lambda place, most: octets[at + place : at + min(place + most, size)])
    body = octets[at:]
    if parted is not None:
        body = b"".join([body[place : place + length] for place, length in parted[0]])
        if parted[1] is not None:
            given["type"] = parted[1]
    return key.encode("utf-8"), (exchange or "").encode("utf-8"), given, body


def text(annotations, name):
    """An annotation that is a text, else None."""
    value = annotations.get(("symbol", name))
    return value if isinstance(value, str) else None


def unnoted(given):
    """Give headers that upstream.py wrote as annotations their names again."""
    headers = given.get("headers") or {}
    for name in [name for name in headers if name.startswith(NOTED)]:
        value = headers[name]
        if name == NOTED + "type" and isinstance(value, str):
            given["type"] = value
        elif not isinstance(value, (list, dict)):
            continue
        else:
            headers[name[len(NOTED) :]] = value
        del headers[name]
    if "headers" in given and not headers:
        del given["headers"]
