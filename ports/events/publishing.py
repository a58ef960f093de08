"""A message of the broker's own to one of its exchanges."""

from typing import Any

from ...core.amqp_0_9 import properties
from ...core.amqp_0_9.described import described
from ...core.exchange.registry import type_named
from ...core.message.route import pack
from ...core.outcomes import NO_ROOM

KEY_MAX = 255  # octets of a routing key


def made(broker: Any, name: str) -> Any:
    """The exchange called `name`, to which the broker alone publishes; made where it is not there."""
    if name not in broker.exchanges:
        class_ = type_named("topic")
        broker.exchanges[name] = class_(name, True, False, True, {})
    return broker.exchanges[name]


def publish(broker: Any, exchange: str, key: bytes, given: dict[str, Any], body: bytes) -> bool:
    """Publish with properties by name; false: there is no room now, and nothing has changed. Raises ValueError for what cannot be
    written."""
    key = key[:KEY_MAX]
    octets = properties.encode(given)
    kind, lifetime = described(octets, 0)
    route = pack(exchange.encode(), key)
    tables = broker.tables
    if not tables.has_room(tables.blocks_for(len(route) + len(octets) + len(body)), 1):
        return False
    message = tables.new_message(route, len(octets), len(body), broker.seconds, kind, lifetime)
    try:
        tables.append(message, octets, 0, len(octets))
        tables.append(message, body, 0, len(body))
        return bool(broker.publish(message, exchange, key) != NO_ROOM)
    finally:
        tables.release(message)
