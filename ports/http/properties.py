"""Properties of messages between JSON and class basic (0-9-1 section 4.2.6.1)."""

import struct
from typing import Any

from ...core.amqp_0_9 import properties
from ...core.amqp_0_9.described import described
from ...core.amqp_0_9.spec_0_9_1 import PROPERTIES
from ...core.errors import ProtocolError
from ...core.management import rabbitmq_definitions
from .answers import bad
from .listing import Row
from .shapes import plain

MOST = {"o": 255, "L": (1 << 64) - 1}
KINDS = dict(PROPERTIES)


def octets_and_columns(given: Any, user: Any) -> tuple[bytes, tuple[int, int]]:
    """Properties by name as octets, and the columns that they say. Raises Refused."""
    if given == []:
        given = {}
    if not isinstance(given, dict):
        raise bad("properties is not an object")
    made: Row = {}
    for name, value in given.items():
        made[name] = checked(name, value)
    name = made.get("user_id")
    if name is not None and name != user.name and "impersonator" not in user.tags:
        raise bad(f"user_id property set to '{name}' but authenticated user was '{user.name}'")
    try:
        octets = properties.encode(made)
        properties.check(octets, 0, len(octets))
    except (ValueError, TypeError, OverflowError, struct.error) as error:
        raise bad(f"the properties cannot be written: {error}") from None
    except ProtocolError as error:
        raise bad(error.text) from None
    return octets, described(octets, 0)


def checked(name: str, value: Any) -> Any:
    """One property. Raises Refused."""
    code = KINDS.get(name)
    if code is None:
        raise bad(f"unknown_property: {name[:64]}")
    if code == "F":
        try:
            return rabbitmq_definitions.table({"headers": value}, "headers")
        except ValueError as error:
            raise bad(str(error)) from None
    if code in MOST:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if type(value) is not int or not 0 <= value <= MOST[code]:
            raise bad(f"{name} is not a whole number from 0 to {MOST[code]}")
        return value
    if not isinstance(value, str) or len(value.encode("utf-8", "replace")) > 255:
        raise bad(f"{name} is not a text of at most 255 octets")
    return value


def shown(given: Row) -> Row:
    """Properties as JSON has them."""
    return {name: plain(value) for name, value in given.items() if value is not None}
