"""How a message of each version reads to its receiver, octet by octet and without the broker's codecs: {name: "type value"}."""

import struct

from full_messages import BASIC, DRAFTS, FORMS, JMS_9A5, JMS_9R1, PROPERTIES

from leveret.core.amqp_1_0 import types

FIELDS_1_0 = {
    0x70: ("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    0x73: (
        "message-id",
        "user-id",
        "to",
        "subject",
        "reply-to",
        "correlation-id",
        "content-type",
        "content-encoding",
        "absolute-expiry-time",
        "creation-time",
        "group-id",
        "group-sequence",
        "reply-to-group-id",
    ),
}
FIELDS_10 = {
    0x0401: (
        ("discard-unroutable", ""),
        ("immediate", ""),
        ("redelivered", ""),
        ("priority", "B"),
        ("delivery-mode", "B"),
        ("ttl", "Q"),
        ("timestamp", "q"),
        ("expiration", "q"),
        ("exchange", "str8"),
        ("routing-key", "str8"),
        ("resume-id", "str16"),
        ("resume-ttl", "Q"),
    ),
    0x0403: (
        ("content-length", "Q"),
        ("message-id", "uuid"),
        ("correlation-id", "vbin16"),
        ("reply-to", "reply-to"),
        ("content-type", "str8"),
        ("content-encoding", "str8"),
        ("user-id", "vbin16"),
        ("app-id", "vbin16"),
        ("headers", "map"),
    ),
}
NAMES_10 = {
    0x00: "bin8",
    0x01: "int8 b",
    0x02: "uint8 B",
    0x04: "char",
    0x08: "boolean B",
    0x10: "bin16",
    0x11: "int16 h",
    0x12: "uint16 H",
    0x20: "bin32",
    0x21: "int32 i",
    0x22: "uint32 I",
    0x23: "float f",
    0x27: "char-utf32 I",
    0x30: "bin64",
    0x31: "int64 q",
    0x32: "uint64 Q",
    0x33: "double d",
    0x38: "datetime q",
    0x40: "bin128",
    0x48: "uuid",
    0x80: "vbin8",
    0x84: "str8-latin",
    0x85: "str8",
    0x86: "str8-utf16",
    0x90: "vbin16",
    0x94: "str16-latin",
    0x95: "str16",
    0x96: "str16-utf16",
    0xA0: "vbin32",
    0xA8: "map",
    0xA9: "list",
    0xAA: "array",
    0xAB: "struct32",
    0xC8: "dec32",
    0xD8: "dec64",
    0xF0: "void",
}
WIDTHS_10 = {0x00: 1, 0x10: 2, 0x20: 4, 0x30: 8, 0x40: 16, 0x04: 1, 0x48: 16, 0xC8: 5, 0xD8: 9, 0xF0: 0}


def shown(octets):
    """Octets: a text where they are one that can be printed, else in hexadecimal."""
    octets = bytes(octets)
    if len(octets) > 40:
        return "%d octets" % len(octets)
    try:
        text = str(octets, "utf-8")
    except UnicodeError:
        text = "\x00"
    if octets and min([ord(each) for each in text]) >= 32:
        return '"%s"' % text
    return "".join(["%02x" % octet for octet in octets]) or "empty"


class Octets:
    """Octets that are read one behind the other."""

    def __init__(self, octets):
        self.octets = bytes(octets)
        self.at = 0

    def left(self):
        return len(self.octets) - self.at

    def take(self, size):
        assert size <= self.left(), (size, self.octets)
        self.at += size
        return self.octets[self.at - size : self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))[0]

    def sized(self, width):
        return self.take(int.from_bytes(self.take(width), "big"))


# Class basic, and the drafts


def letter_value(source, version):
    """A value of a field table behind its letter."""
    letter = chr(source.number("B"))
    if letter == "S":
        return "S " + shown(source.sized(1 if version == "0.9a5" else 4))
    if letter == "L" and version == "0.9a5":
        return "L " + shown(source.sized(2))
    if letter in FORMS:
        return "%s %r" % (letter, source.number(FORMS[letter]))
    if letter == "D":
        places = source.number("B")
        return "D %d/10^%d" % (source.number("i"), places)
    if letter == "t":
        return "t %d" % source.number("B")
    if letter == "x":
        return "x " + shown(source.sized(4))
    if letter == "V":
        return "V"
    inner = Octets(source.sized(4))
    items = []
    while inner.left():
        name = str(inner.sized(1), "utf-8") + ": " if letter == "F" else ""
        items.append(name + letter_value(inner, version))
    assert letter in "FA", letter
    return letter + " {%s}" % ", ".join(items) if letter == "F" else letter + " [%s]" % ", ".join(items)


def view_listed(version, octets, properties):
    """Property flags and list."""
    source, said = Octets(octets), {}
    flags = source.number("H")
    for place in range(len(properties)):
        name, form = properties[place]
        if not flags & 0x8000 >> place:
            continue
        if form == "S":
            said[name] = shown(source.sized(1))
        elif form != "F":
            said[name] = "%d" % source.number(form)
        else:
            inner = Octets(source.sized(4))
            while inner.left():
                title = "header " + str(inner.sized(1), "utf-8")
                said[title] = letter_value(inner, version)
    assert not source.left()
    return said


# 0-10


def value_10(source, code):
    """A value of 0-10 of this type."""
    name = NAMES_10[code]
    if " " in name:
        name, form = name.split(" ")
        return "%s %r" % (name, source.number(form))
    if code in WIDTHS_10:
        octets = source.take(WIDTHS_10[code])
        return name if code == 0xF0 else name + " " + "".join(["%02x" % octet for octet in octets])
    octets = source.sized(1 if code < 0x90 else 2 if code < 0xA0 else 4)
    if code in (0xA8, 0xA9):
        inner, items = Octets(octets), []
        for _ in range(inner.number("I")):
            key = str(inner.sized(1), "utf-8") + ": " if code == 0xA8 else ""
            items.append(key + value_10(inner, inner.number("B")))
        return name + " [%s]" % ", ".join(items)
    if code == 0xAA:
        inner = Octets(octets)
        element, count = inner.number("B"), inner.number("I")
        return name + " [%s]" % ", ".join([value_10(inner, element) for _ in range(count)])
    return name + " " + shown(octets)


def view_10(octets):
    """The structs of a header segment."""
    source, said = Octets(octets), {}
    while source.left():
        inner = Octets(source.sized(4))
        code = inner.number("H")
        if code not in FIELDS_10:
            said["unknown struct"] = shown(inner.take(inner.left()))
            continue
        flags = int.from_bytes(inner.take(2), "little")
        fields = FIELDS_10[code]
        for place in range(len(fields)):
            name, form = fields[place]
            if not flags >> place & 1:
                continue
            if form == "":
                said[name] = "true"
            elif form in ("B", "Q", "q"):
                said[name] = "%d" % inner.number(form)
            elif form == "uuid":
                said[name] = "uuid " + "".join(["%02x" % octet for octet in inner.take(16)])
            elif form == "reply-to":
                pair = Octets(inner.sized(2))
                present = int.from_bytes(pair.take(2), "little")
                said[name] = ", ".join([shown(pair.sized(1)) if present >> bit & 1 else "-" for bit in range(2)])
            elif form == "map":
                pairs = Octets(inner.sized(4))
                for _ in range(pairs.number("I") if pairs.left() else 0):
                    title = "header " + str(pairs.sized(1), "utf-8")
                    said[title] = value_10(pairs, pairs.number("B"))
            else:
                said[name] = shown(inner.sized(1 if form == "str8" else 2))
        assert not inner.left(), (code, inner.octets)
    return said


# 1.0


def native(value):
    """A value of core/amqp_1_0/types.py with the name of its type."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "boolean %d" % value
    if isinstance(value, tuple):
        if value[0] == "described":
            return "described %s: %s" % (native(value[1]), native(value[2]))
        if value[0] == "array":
            return "array of %s %r" % (value[1], value[2])
        inner = value[1]
        if isinstance(inner, bytes):
            return value[0] + " " + "".join(["%02x" % octet for octet in inner])
        return "%s %s" % (value[0], shown(inner.encode("utf-8")) if isinstance(inner, str) else inner)
    if isinstance(value, bytes):
        return "binary " + ("".join(["%02x" % octet for octet in value]) if len(value) <= 40 else shown(value))
    if isinstance(value, str):
        return "string " + shown(value.encode("utf-8"))
    if isinstance(value, dict):
        return "map [%s]" % ", ".join(["%s: %s" % (native(key), native(value[key])) for key in value])
    if isinstance(value, list):
        return "list [%s]" % ", ".join([native(each) for each in value])
    return "%s %r" % ("double" if isinstance(value, float) else "long", value)


def view_1_0(octets):
    """The sections of a message, the body too."""
    at, said, body = 0, {}, []
    while at < len(octets):
        assert octets[at] == 0
        section, at = types.decode(octets, at, len(octets))
        code, value = section[1], section[2]
        code = code[1] if isinstance(code, tuple) else code
        if code in FIELDS_1_0:
            for place in range(len(value)):
                if value[place] is not None and value[place] is not False:
                    said[FIELDS_1_0[code][place]] = native(value[place])
        elif code in (0x71, 0x72, 0x74, 0x78):
            title = {0x71: "delivery-annotation ", 0x72: "annotation ", 0x74: "header ", 0x78: "footer "}[code]
            for key in value:
                said[title + (key[1] if isinstance(key, tuple) else key)] = native(value[key])
        else:
            body.append({0x75: "", 0x76: "sequence ", 0x77: "value "}[code] + (shown(value) if code == 0x75 else native(value)))
    said["body"] = "; ".join(body)
    return said


def view(version, header, body):
    """A message by names. `header`: as the version has it, that of 1.0 its sections up to the body; a draft's may be ("tree", properties,
    [(properties, body)] of what is within)."""
    if version == "1.0":
        return view_1_0(header + body)
    said = {"body": shown(body)}
    if version == "0-10":
        said.update(view_10(header))
    elif version in DRAFTS:
        properties = JMS_9A5 if version == "0.9a5" else JMS_9R1
        if header[0] == "tree":
            said["contents within"] = "; ".join([shown(each[1]) for each in header[2]])
            header = header[1]
        said.update(view_listed(version, header, properties))
    else:
        assert version in BASIC
        said.update(view_listed(version, header, PROPERTIES))
    return said
