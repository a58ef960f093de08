"""Checks of log records beyond the CRC: sizes add up, texts are UTF-8, definitions are complete.

Whatever its origin (another version, a faulty medium, an editor): recovery skips and reports a record that makes no sense, and loses only
that one. The checks know nothing of the other records; log/definition_records.py checks a definition's arguments when it restores it.
"""

import json
import struct

from ..errors import ProtocolError
from ..log import message_record, segments
from ..log.definition_records import rich
from ..memory import layout
from ..message import annotations
from ..message.formats import format_of

POSITION_MAX = 1 << 61  # positions and offsets count messages by one
IDENTITY_MAX = (1 << 31) - 1  # and ids queues; the broker never assigns the upper half, so such a number does not move its counters
DEPTH_MAX = 12

# Kind of a definition: its required fields. A removal has the fields that identify the definition.
FIELDS: dict = {
    "exchange": {"name": str, "type": str, "auto_delete": bool, "internal": bool, "arguments": dict},
    "queue": {"name": str, "id": int, "auto_delete": bool, "arguments": dict},
    "binding": {"name": str, "source": str, "to": str, "key": bytes, "arguments": dict},
    "policy": {"name": str, "pattern": str, "definition": dict, "priority": int, "apply_to": str},
    "operator policy": {"name": str, "pattern": str, "definition": dict, "priority": int, "apply_to": str},
    "user": {"name": str, "password": str, "tags": list},
    "clock": {"name": str, "frames": list},
}
OF_REMOVAL: dict = {"queue": {"name": str, "id": int}, "binding": FIELDS["binding"]}
NAMED = {"name": str}


def fault_of(type_, payload, at, size):
    """The fault of a record's payload, `size` octets from `at`, in words; "": none."""
    try:
        if type_ in (segments.MESSAGE, segments.TRANSIENT):
            return message(payload, at, size)
        return CHECKS[type_](payload, at, size) if type_ in CHECKS else ""
    except ProtocolError as error:
        return error.text
    except MemoryError:
        raise
    except Exception as error:  # too short, no JSON, no UTF-8, too deep: each interpreter has its own words for it
        return "it cannot be read (%s)" % error


def message(payload, at, size):
    """MESSAGE, TRANSIENT: head, places, route, annotations, properties, body."""
    heads = message_record.heads_at(payload, at)
    count, arrived, route, added, properties, _, kind, lifetime = heads
    start = message_record.route_at(at, count)
    if start + message_record.size_of(heads) != at + size or count == 0:
        return "its sizes do not add up"
    if arrived >= 1 << 31:
        return "it came at second %d" % arrived
    if kind > layout.MASK or lifetime > layout.MASK or lifetime < -layout.MASK:
        return "its kind is %d and its lifetime %d" % (kind, lifetime)
    for identity, position in message_record.places_at(payload, at):
        if identity >= IDENTITY_MAX or position >= POSITION_MAX:
            return "it is for position %d of queue %d" % (position, identity)
    name = payload[start] if route else 0
    if route < 2 or name + 2 > route or name + payload[start + 1 + name] + 2 != route:
        return "its route is none"
    str(payload[start + 1 : start + 1 + name], "utf-8")
    if bool(added) != bool(kind & layout.KIND_ANNOTATED):
        return "its annotations have %d octets" % added
    changes = annotations.read(payload[start + route : start + route + added], True) if added else None
    start = message_record.properties_at(at, heads)
    reader = format_of(kind)
    if reader is not None:
        reader.check(payload, start, start + properties)
        if added:
            reader.merge(payload[start : start + properties], changes)
    return ""


def settled(payload, at, size):
    """SETTLED: queue, count, ranges."""
    identity, count = struct.unpack_from(">IH", payload, at)
    if size != 6 + 12 * count or identity >= IDENTITY_MAX:
        return "its size is not that of %d ranges" % count
    for place in range(at + 6, at + size, 12):
        first, length = struct.unpack_from(">QI", payload, place)
        if first >= POSITION_MAX or length == 0:
            return "it has a range that is none"
    return ""


def kept(payload, at, size):
    """KEPT: queue, offset, a consumer's name."""
    identity, offset = struct.unpack_from(">IQ", payload, at)
    str(payload[at + 12 : at + size], "utf-8")
    return "" if size >= 12 and offset < POSITION_MAX else "it has no offset"


def defined(payload, at, size):
    """DEFINED: a definition, or the removal of one."""
    definition = rich(json.loads(str(payload[at : at + size], "utf-8")))
    if not isinstance(definition, dict):
        return "it is no definition"
    kind = definition.get("kind")
    gone = definition.get("gone")
    if not isinstance(gone if kind is None else kind, str) or kind == "" or not is_offset(definition.get("id", 0)):
        return "it is no definition"
    fields = OF_REMOVAL.get(gone, NAMED) if kind is None else FIELDS.get(kind, NAMED)
    for name in fields:
        if not isinstance(definition[name], fields[name]):
            return "the %s of a definition is %r" % (name, definition[name])
        if fields[name] is str and len(definition[name].encode("utf-8")) > 65535:
            return "the %s of a definition is too long" % name
    check_value(definition, DEPTH_MAX)
    if kind is not None and "name" in fields and len(definition["name"].encode("utf-8")) > 255:
        return "it has a name of more than 255 octets"
    return OTHERS[kind](definition) if kind in OTHERS else ""


def queue(definition):
    """A queue's id, and the fields of a stream."""
    if not 0 < definition["id"] < IDENTITY_MAX:
        return "queue id %d" % definition["id"]
    is_stream = definition["arguments"].get("x-queue-type") == "stream"
    if is_stream != ("stream" in definition):
        return "its arguments are not those of its kind"
    if is_stream and not (
        isinstance(definition["stream"], str)
        and is_offset(definition["next"])
        and isinstance(definition["kept"], dict)
        and all(is_offset(definition["kept"][name]) for name in definition["kept"])
    ):
        return "the offsets of a stream are none"
    return ""


def binding(definition):
    """To a queue or an exchange."""
    return "" if definition["to"] in ("queue", "exchange") and len(definition["key"]) <= 255 else "a binding to nothing"


def user(definition):
    """Three permissions or none."""
    permissions = definition["permissions"]
    good = permissions is None or isinstance(permissions, list) and len(permissions) == 3
    words = definition["tags"] + (permissions or [])
    return "" if good and not [each for each in words if not isinstance(each, str)] else "the rights of a user are none"


def clock(definition):
    """Frames of ages.py: three numbers each."""
    for frame in definition["frames"]:
        if len(frame) != 3 or [each for each in frame if not isinstance(each, int) or not -POSITION_MAX < each < POSITION_MAX]:
            return "a frame of the clock is none"
    return "" if definition["frames"] else "it has no frame"


def is_offset(value):
    """True for a value that can be an offset."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < POSITION_MAX


def check_value(value, depth):
    """Raise ValueError for a value that no field table can hold."""
    if depth == 0:
        raise ValueError("too deep")
    if isinstance(value, dict):
        for name in value:
            check_value(name, depth - 1)
            check_value(value[name], depth - 1)
    elif isinstance(value, list):
        for each in value:
            check_value(each, depth - 1)
    elif isinstance(value, tuple):
        if len(value) != 2 or value[0] != "T" or not isinstance(value[1], int) or not 0 <= value[1] < 1 << 64:
            raise ValueError("a timestamp that is none")
    elif isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("a number of more than 64 bits")


CHECKS = {segments.SETTLED: settled, segments.KEPT: kept, segments.DEFINED: defined}
OTHERS = {"queue": queue, "binding": binding, "user": user, "clock": clock}
