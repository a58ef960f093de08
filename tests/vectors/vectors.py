"""The form of a recorded frame, how its fields are written in JSON, and how a second codec (pamqp) is asked about it.

A row: `source`, `sender` (client or server), `type` (method, header, body, heartbeat), `name`, `channel`, `frame` (all octets as hex) and
`fields`, a list of [name, value] in order. Values: numbers and booleans as they are, shortstr as text, longstr as hex, a table as
[[name, letter, value], ...] where S is text (or {"hex"}), x hex, D [scale, number], A [[letter, value], ...], F a table again.
"""

import json
import struct

import amqp_tables
import amqp_wire
import pamqp.base
import pamqp.commands
import pamqp.frame

TYPES = {amqp_wire.METHOD: "method", amqp_wire.HEADER: "header", amqp_wire.BODY: "body", amqp_wire.HEARTBEAT: "heartbeat"}


def kind_of(octets):
    """The method's ids, or the frame type."""
    return octets[7:11] if octets[0] == amqp_wire.METHOD else octets[0]


def typed_value(reader):
    """[letter, value] of one table value, its type kept."""
    letter = chr(reader.unpack(">B"))
    if letter == "F":
        return [letter, typed_table(reader)]
    if letter == "A":
        inside = amqp_wire.Reader(reader.field("longstr"))
        items = []
        while inside.at < len(inside.data):
            items.append(typed_value(inside))
        return [letter, items]
    if letter in "Sx":
        octets = reader.field("longstr")
        if letter == "x":
            return [letter, octets.hex()]
        try:
            return [letter, octets.decode()]
        except UnicodeDecodeError:
            return [letter, {"hex": octets.hex()}]
    if letter == "D":
        return [letter, [reader.unpack(">B"), reader.unpack(">I")]]
    if letter == "V":
        return [letter, None]
    return [letter, reader.unpack(amqp_tables.VALUE_LAYOUTS[letter])]


def typed_table(reader):
    """[[name, letter, value], ...]."""
    inside = amqp_wire.Reader(reader.field("longstr"))
    rows = []
    while inside.at < len(inside.data):
        name = inside.field("shortstr")
        rows.append([name] + typed_value(inside))
    return rows


def fields_of(pairs, octets):
    """[[name, value], ...] of fields of these kinds."""
    reader = amqp_wire.Reader(octets)
    fields = []
    place = 8
    for name, kind in pairs:
        if kind == "bit":
            if place == 8:
                bits, place = reader.unpack(">B"), 0
            fields.append([name, bool(bits >> place & 1)])
            place += 1
            continue
        place = 8
        if kind == "table":
            fields.append([name, typed_table(reader)])
        elif kind == "longstr":
            fields.append([name, reader.field(kind).hex()])
        else:
            fields.append([name, reader.field(kind)])
    assert reader.at == len(octets), "octets left over"
    return fields


def row_of(source, sender, octets):
    """One row of the file from the octets of one frame."""
    got = amqp_wire.Frame(octets[0], struct.unpack_from(">H", octets, 1)[0], octets[7:-1])
    if got.kind == amqp_wire.METHOD:
        pairs = [field.split(":") for field in amqp_tables.BY_NAME[got.name][5].split()]
        fields = fields_of(pairs, got.payload[4:])
    elif got.kind == amqp_wire.HEADER:
        class_id, weight, size, flags = struct.unpack_from(">HHQH", got.payload)
        pairs = [row for place, row in enumerate(amqp_tables.PROPERTIES) if flags >> 15 - place & 1]
        fields = [["class_id", class_id], ["weight", weight], ["body_size", size]] + fields_of(pairs, got.payload[14:])
    else:
        fields = []
    return {
        "source": source,
        "sender": sender,
        "type": TYPES[got.kind],
        "name": got.name,
        "channel": got.channel,
        "fields": fields,
        "frame": octets.hex(),
    }


def check_row(row):
    """pamqp must take the same frame apart in the same way."""
    octets = bytes.fromhex(row["frame"])
    assert row_of(row["source"], row["sender"], octets) == row, row
    size, channel, other = pamqp.frame.unmarshal(octets)
    assert (size, channel) == (len(octets), row["channel"]), row
    if row["type"] == "method":
        assert other.name.lower().replace(".", "") == row["name"].replace(".", "").replace("-", ""), (other.name, row["name"])
        values = [list(other.attributes()).index(name) for name in other.attributes()]
        assert len(values) == len(row["fields"]), row
        for attribute, (name, value) in zip(other.attributes(), row["fields"]):
            check_value(getattr(other, attribute), value, name)
    elif row["type"] == "header":
        assert [60, 0, other.body_size] == [value for _, value in row["fields"][:3]]
        set_ones = [[name, getattr(other.properties, pamqp_name(name))] for name, _ in row["fields"][3:]]
        for (name, mine), (_, theirs) in zip(row["fields"][3:], set_ones):
            if name != "timestamp":
                check_value(theirs, mine, name)
            else:
                assert theirs.timestamp() == mine


def pamqp_name(name):
    return "message_type" if name == "type" else name


def check_value(theirs, mine, name):
    """Whether pamqp's value of a field is ours (it gives longstr as text or bytes, tables as dicts)."""
    if isinstance(mine, list):
        assert list(theirs or {}) == [row[0] for row in mine], (name, theirs, mine)
        for field, letter, value in mine:
            if letter in "tbBsuIilLfdSV":
                assert theirs[field] == value, (name, field, theirs[field], value)
    elif isinstance(theirs, bytes):
        assert theirs.hex() == mine or theirs.decode() == mine, (name, theirs, mine)
    elif isinstance(theirs, str) and theirs != mine:
        assert theirs.encode().hex() == mine, (name, theirs, mine)
    else:
        assert theirs == mine, (name, theirs, mine)


def module_text(rows):
    """The same rows as a Python module that MicroPython reads without files: [sender, type, name, channel, fields, frame]."""
    lines = [
        '"""Golden octets, recorded: made by tests/vectors/record.py from amqp_0_9_1.json beside it; do not edit.',
        "",
        "Each of TEXTS is JSON: [sender, type, name, channel, fields, frame]; tests/vectors/vectors.py tells the form of fields.",
        '"""',
        "",
        "TEXTS = (",
    ]
    for row in rows:
        text = json.dumps([row[key] for key in ("sender", "type", "name", "channel", "fields", "frame")], ensure_ascii=True)
        for start in range(0, len(text), 120):
            piece = text[start : start + 120]
            lines.append("    %s%s" % (quoted(piece), "," if start + 120 >= len(text) else ""))
    return "\n".join(lines + [")", ""])


def quoted(text):
    """A Python string in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
