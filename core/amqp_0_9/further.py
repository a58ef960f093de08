"""The way of a publish that depends on its headers, found in the route cache for `ingest`: CC, and what headers exchanges compare.

The cache has it under the route and the octets of these fields, with their names, in the message's order (core/broker/further.py). C
looks there by itself (c_accel/amqp_0_9_ingest.c), and asks Python for a way that the cache lacks.
"""

from ..broker import further
from ..broker.publish import find_route
from ..memory import layout
from . import hot_in, properties, sender_selected

OCTETS_MAX = 512  # of a route with its fields
MARKS = b"\x00", b"\x01"  # between the two, so that a route with no field is not the route alone: of CC alone, of names and CC


def find(session, at, route, exchange_name):
    """Find the way of the publish whose method frame stands at `at`: STATE_WAY has it then, and the answer is True. None: it depends on
    exchange and key alone, or its content header is not whole; False: it is not one for the route cache."""
    broker = session.broker
    state, octets = broker.tables.state, session.receive.octets
    exchange = broker.exchanges.get(exchange_name)
    header = at + len(route) + 15
    behind = hot_in.header_end(state, octets, at, header)
    if behind < 0:
        return None
    begin, end = table_in(octets, header + 19, behind - 1)
    if begin == end or exchange is None and exchange_name:
        return None
    names = further.names_of(broker, exchange)
    if names is None:
        return None
    named = [name.encode("utf-8") for name in names]
    if not named and b"CC" not in bytes(octets[begin:end]):
        return None
    broker.tables.engine.see_names(exchange_name, named)
    fields = fields_in(octets, begin, end, named)
    if fields is None or not named and not fields:
        return None
    key = route + MARKS[len(named) > 0] + fields
    if len(key) > OCTETS_MAX:
        return False
    way = look_up(broker.tables, key)
    if way < 0 and remember(session, exchange, key, route, octets, header + 19, behind - 1):
        way = look_up(broker.tables, key)
    state[layout.STATE_WAY] = way
    return way >= 0


def look_up(tables, key):
    """The slot of the route cache that has these octets, or -1."""
    return find_route(tables.state, tables.routes, tables.route_octets, key, 0, len(key))


def table_in(octets, at, end):
    """(begin, end) of the pairs of the table of headers in the properties between `at` and `end`; twice the same: there is none."""
    flags = octets[at]
    at += 2
    for bit in (0x80, 0x40):
        if flags & bit and at < end:
            at += 1 + octets[at]
    if not flags & 0x20 or end - at < 4 or octets[at]:
        return end, end
    size = octets[at + 1] << 16 | octets[at + 2] << 8 | octets[at + 3]
    return (at + 4, at + 4 + size) if size <= end - at - 4 else (end, end)


def fields_in(octets, at, end, named):
    """The octets of the fields of a table that are in `named` or CC, one behind the other; None: the table is not valid, or has BCC."""
    fields = b""
    while at < end:
        behind = at + 1 + octets[at]
        if behind >= end:
            return None
        name = bytes(octets[at + 1 : behind])
        behind = hot_in.value_end(octets, behind, end, 1)
        if behind < 0 or name == b"BCC":
            return None
        if name == b"CC" or name in named:
            fields += bytes(octets[at:behind])
        at = behind
    return fields


def remember(session, exchange, key, route, octets, at, end):
    """Cache the way of a message with the properties between `at` and `end`; false: there is none, or it is not for the cache."""
    headers = properties.decode(octets, at, end)["headers"]
    keys = None
    if "CC" in headers:
        if not isinstance(headers["CC"], list):
            return False
        copies = sender_selected.keys_of("CC", headers["CC"])
        if sum([2 + len(each) for each in copies]) > session.broker.limits.copy_size_max:
            return False
        first = route[2 + route[0] :]
        keys = (first,) + tuple(copies)
    return further.remember(session.broker, session.connection.user.number, exchange, key, headers, keys)
