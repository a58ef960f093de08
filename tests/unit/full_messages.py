"""A message of each version of AMQP with every property, every type of header and every form of body that the version has, and how messages
read: written and read here octet by octet, without the broker's codecs (core/CONVERSIONS.md is made of it).

    MESSAGES[version]: [(octets of the header as the version has it, body)]; SPLIT: the body of 1.0 is its sections
    view(version, header, body) -> {name: "type value"}; headers are named "header NAME", annotations of 1.0 "annotation NAME"
"""

import struct

VERSIONS = ("0.9a5", "0.9r1", "0-8", "0-9", "0-9-1", "0-10", "1.0")
DRAFTS = VERSIONS[:2]
BASIC = VERSIONS[2:5]
SECONDS = 1700000000
TEXT_ID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
UUID = bytes(range(16))
BODY = b"some octets\x00\xff"
KEY = "k"


def sized(width, octets):
    """Octets behind their number, which has `width` octets."""
    return len(octets).to_bytes(width, "big") + octets


def short(text):
    return sized(1, text if isinstance(text, bytes) else text.encode("utf-8"))


def number(form, value):
    return struct.pack(">" + form, value)


# Class basic, and the drafts' jms

PROPERTIES = (
    ("content-type", "S"),
    ("content-encoding", "S"),
    ("headers", "F"),
    ("delivery-mode", "B"),
    ("priority", "B"),
    ("correlation-id", "S"),
    ("reply-to", "S"),
    ("expiration", "S"),
    ("message-id", "S"),
    ("timestamp", "Q"),
    ("type", "S"),
    ("user-id", "S"),
    ("app-id", "S"),
    ("cluster-id", "S"),
)
JMS_9R1 = PROPERTIES[:13]
JMS_9A5 = tuple(
    [(name, "S" if name == "timestamp" else form) for name, form in PROPERTIES[:2] + (("destination", "S"),) + PROPERTIES[2:13]]
)

# Headers: (name, letter, octets of the value). Names are those that drafts may have, but for one.
FORMS = {"b": "b", "B": "B", "s": "h", "u": "H", "I": "i", "i": "I", "l": "q", "L": "q", "f": "f", "d": "d", "T": "Q"}
NUMBERS = (("b", -5), ("B", 250), ("s", -500), ("u", 65000), ("I", -70000), ("i", 4000000000), ("l", -1 << 40), ("f", 0.5), ("d", 0.1))
TIME = ("time", "T", number("Q", SECONDS))
DECIMAL = ("decimal", "D", b"\x02" + number("i", 12345))
TABLE = ("table", "F", sized(4, b"\x01aI" + number("i", 1)))


def text_pair(name, text, letter="S", width=4):
    return name, letter, sized(width, text)


HEADERS = tuple(
    [
        text_pair("text", "w\u00f6rter".encode("utf-8")),
        text_pair("x-name", b"with a hyphen"),
        text_pair("octets", b"\xff\x00", "x"),
        text_pair("no_text", b"\xfe"),
        ("true", "t", b"\x01"),
    ]
    + [("number_" + letter, letter, number(FORMS[letter], value)) for letter, value in NUMBERS]
    + [
        TIME,
        DECIMAL,
        ("void", "V", b""),
        TABLE,
        ("list", "A", sized(4, b"I" + number("i", 1) + b"S" + sized(4, b"y"))),
        text_pair("CC", b"", "A"),
    ]
)
HEADERS_9R1 = (text_pair("text", b"words"), ("number", "I", number("i", -5)), DECIMAL, TIME, TABLE)
HEADERS_9A5 = (
    (text_pair("text", b"words", "S", 1), text_pair("long_text", b"w" * 300, "L", 2))
    + HEADERS_9R1[1:4]
    + (("table", "F", sized(4, b"\x01aI" + number("i", 1))),)
)
SAID = {
    "content-type": "text/plain",
    "content-encoding": "gzip",
    "destination": KEY,
    "delivery-mode": 2,
    "priority": 7,
    "correlation-id": "corr",
    "reply-to": "answers",
    "expiration": "60000",
    "message-id": "id",
    "timestamp": SECONDS,
    "type": "kind",
    "user-id": "guest",
    "app-id": "app",
    "cluster-id": "cluster",
}


def table(headers):
    """A field table with its size."""
    return sized(4, b"".join([short(name) + letter.encode() + value for name, letter, value in headers]))


def listed(properties, said, headers):
    """Property flags and list."""
    flags, octets = 0, b""
    for place, (name, form) in enumerate(properties):
        value = headers if name == "headers" else said.get(name)
        if value is None:
            continue
        flags |= 0x8000 >> place
        octets += (
            table(value)
            if form == "F"
            else short(value if isinstance(value, bytes) else "%s" % value)
            if form == "S"
            else number(form, value)
        )
    return number("H", flags) + octets


# 0-10

TYPES_10 = (
    (0x00, "bin8", b"\x81"),
    (0x01, "int8", number("b", -5)),
    (0x02, "uint8", number("B", 250)),
    (0x04, "char", b"c"),
    (0x08, "boolean", b"\x01"),
    (0x10, "bin16", b"\x81\x82"),
    (0x11, "int16", number("h", -500)),
    (0x12, "uint16", number("H", 65000)),
    (0x20, "bin32", b"\x81\x82\x83\x84"),
    (0x21, "int32", number("i", -70000)),
    (0x22, "uint32", number("I", 4000000000)),
    (0x23, "float", number("f", 0.5)),
    (0x27, "char-utf32", number("I", 0x1F600)),
    (0x30, "bin64", b"\x81" * 8),
    (0x31, "int64", number("q", -1 << 40)),
    (0x32, "uint64", number("Q", (1 << 64) - 1)),
    (0x33, "double", number("d", 0.1)),
    (0x38, "datetime", number("q", SECONDS)),
    (0x40, "bin128", b"\x81" * 16),
    (0x48, "uuid", UUID),
    (0x80, "vbin8", sized(1, b"\xff\x00")),
    (0x84, "str8-latin", sized(1, b"w\xf6rter")),
    (0x85, "str8", sized(1, b"words")),
    (0x86, "str8-utf16", sized(1, b"\x00w\x00o")),
    (0x90, "vbin16", sized(2, b"\xff\x00")),
    (0x94, "str16-latin", sized(2, b"w\xf6rter")),
    (0x95, "str16", sized(2, b"words")),
    (0x96, "str16-utf16", sized(2, b"\x00w\x00o")),
    (0xA0, "vbin32", sized(4, b"\xff\x00")),
    (0xA8, "map", sized(4, b"\x00\x00\x00\x01\x01a\x21\x00\x00\x00\x01")),
    (0xA9, "list", sized(4, b"\x00\x00\x00\x02\x21\x00\x00\x00\x01\x85\x01y")),
    (0xAA, "array", sized(4, b"\x21\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02")),
    (0xAB, "struct32", sized(4, b"\x7f\x01zz")),
    (0xC8, "dec32", b"\x02" + number("i", 12345)),
    (0xD8, "dec64", b"\x02" + number("q", 12345)),
    (0xF0, "void", b""),
)


def struct32(code, width, fields):
    """A struct whose packing flags have `width` octets; `fields`: octets of each, None where it is not present, b"" for a bit."""
    flags = sum([1 << place for place in range(len(fields)) if fields[place] is not None])
    octets = flags.to_bytes(width, "little") + b"".join([each for each in fields if each is not None])
    return sized(4, number("H", code) + octets)


def map_10(pairs):
    return sized(4, number("I", len(pairs)) + b"".join(pairs))


def delivery_10(ttl, timestamp, priority=7, mode=2):
    return struct32(
        0x0401,
        2,
        [b"", None, None, bytes((priority,)), bytes((mode,)), number("Q", ttl), number("q", timestamp), None, b"\x00", short(KEY)],
    )


def message_10(id_, correlation, reply_to, user, app, headers):
    fields = [number("Q", len(BODY)), id_, sized(2, correlation), reply_to, short("text/plain"), short("gzip"), user, app, headers]
    return struct32(0x0403, 2, fields)


def reply_to_10(exchange, key):
    octets = b"\x03\x00" + short(exchange) + short(key)
    return sized(2, octets)


# 1.0

_C = {
    "null": (b"\x40", ""),
    "boolean": (b"\x56", "B"),
    "ubyte": (b"\x50", "B"),
    "ushort": (b"\x60", "H"),
    "uint": (b"\x70", "I"),
    "ulong": (b"\x80", "Q"),
    "byte": (b"\x51", "b"),
    "short": (b"\x61", "h"),
    "int": (b"\x71", "i"),
    "long": (b"\x81", "q"),
    "float": (b"\x72", "f"),
    "double": (b"\x82", "d"),
    "decimal32": (b"\x74", "I"),
    "decimal64": (b"\x84", "Q"),
    "char": (b"\x73", "I"),
    "timestamp": (b"\x83", "q"),
}
_VARIABLE = {"string": b"\xb1", "symbol": b"\xb3", "binary": b"\xb0"}
VALUES_1_0 = (
    ("null", None),
    ("boolean", True),
    ("ubyte", 250),
    ("ushort", 65000),
    ("uint", 4000000000),
    ("ulong", (1 << 64) - 1),
    ("byte", -5),
    ("short", -500),
    ("int", -70000),
    ("long", -1 << 40),
    ("float", 0.5),
    ("double", 0.1),
    ("decimal32", 0x32800001),
    ("decimal64", 0x31C0000000000001),
    ("char", 0x1F600),
    ("timestamp", SECONDS * 1000 + 999),
    ("uuid", UUID),
    ("binary", b"\xff\x00"),
    ("string", "w\u00f6rter"),
    ("symbol", "words"),
)


def value_1_0(name, value):
    """A value behind its constructor."""
    if name in _VARIABLE:
        return _VARIABLE[name] + sized(4, value if isinstance(value, bytes) else value.encode("utf-8"))
    if name == "uuid":
        return b"\x98" + value
    constructor, form = _C[name]
    return constructor + (number(form, value) if form else b"")


def compound_1_0(constructor, values):
    body = number("I", len(values)) + b"".join(values)
    return constructor + sized(4, body)


def section_1_0(code, octets):
    return b"\x00\x53" + bytes((code,)) + octets


def list_1_0(code, values):
    return section_1_0(code, compound_1_0(b"\xd0", values))


def map_1_0(code, pairs):
    return section_1_0(code, compound_1_0(b"\xd1", [each for pair in pairs for each in pair]))


NULL = value_1_0("null", None)


def string(text):
    return value_1_0("string", text)


def symbol(text):
    return value_1_0("symbol", text)


def data(octets):
    return section_1_0(0x75, b"\xb0" + sized(4, octets))


HEAD_1_0 = list_1_0(0x70, [b"\x41", value_1_0("ubyte", 7), value_1_0("uint", 60000), b"\x41", value_1_0("uint", 0)])
NOTED_1_0 = map_1_0(0x72, [(symbol("x-opt-noted"), string("a note")), (symbol("other"), string("a note"))])
FOOTER = map_1_0(0x78, [(symbol("x-opt-sum"), b"\x54\x05")])


def properties_1_0(message_id, correlation_id, user_id=b"guest", reply_to="/queues/answers"):
    return list_1_0(
        0x73,
        [
            message_id,
            value_1_0("binary", user_id),
            string("/queues/q"),
            string("subject"),
            string(reply_to),
            correlation_id,
            symbol("text/plain"),
            symbol("gzip"),
            value_1_0("timestamp", (SECONDS + (1 << 32)) * 1000),
            value_1_0("timestamp", SECONDS * 1000 + 999),
            string("group"),
            value_1_0("uint", 3),
            string("reply-group"),
        ],
    )


APPLICATION_1_0 = map_1_0(
    0x74, [(string("x-name"), string("with a hyphen"))] + [(string(name), value_1_0(name, value)) for name, value in VALUES_1_0]
)
ANNOTATED_1_0 = map_1_0(
    0x72,
    [
        (symbol("x-map"), compound_1_0(b"\xd1", [symbol("a"), value_1_0("int", 1)])),
        (symbol("x-list"), compound_1_0(b"\xd0", [value_1_0("int", 1), string("y")])),
        (symbol("x-described"), b"\x00" + symbol("kind") + string("value")),
    ],
)

# A draft's content within another one: (properties, body), octets that tests/unit/draft_peer.py puts into frames.
WITHIN = (b"\x00\x00", b"within")

MESSAGES: "dict" = {
    "0.9a5": [(listed(JMS_9A5, SAID, HEADERS_9A5), BODY), ("tree", b"outer")],
    "0.9r1": [(listed(JMS_9R1, SAID, HEADERS_9R1), BODY), ("tree", b"outer")],
    "0-10": [
        (
            delivery_10(60000, SECONDS * 1000 + 999)
            + message_10(
                UUID,
                b"corr",
                reply_to_10("ex", "answers"),
                sized(2, b"guest"),
                sized(2, b"app"),
                map_10(
                    [short(name.replace("-", "_")) + bytes((code,)) + value for code, name, value in TYPES_10]
                    + [short("x-name") + b"\x85" + short("with a hyphen")]
                ),
            )
            + b"\x00\x00\x00\x06\x7f\x01\x00\x00zz",
            BODY,
        ),
        (
            delivery_10(60000, SECONDS)
            + message_10(
                UUID,
                b"\xff\x00",
                reply_to_10("", "answers"),
                sized(2, b"guest"),
                sized(2, b"\xfe"),
                map_10(
                    [
                        short("x-jms-type") + b"\x95" + sized(2, b"kind"),
                        short("qpid.subject") + b"\x95" + sized(2, b"subject"),
                        short("JMSXGroupSeq") + b"\x21" + number("i", 3),
                    ]
                ),
            ),
            b"",
        ),
        (
            delivery_10(60000, SECONDS) + message_10(UUID, b"c" * 300, None, None, sized(2, b"a" * 300), None),
            BODY,
        ),
    ],
    "1.0": [
        (HEAD_1_0 + NOTED_1_0 + properties_1_0(value_1_0("uuid", UUID), value_1_0("ulong", 1 << 63)) + APPLICATION_1_0, data(BODY)),
        (
            properties_1_0(value_1_0("binary", b"\xff\x00"), value_1_0("binary", b"\xff\x01"), b"guest", "/exchanges/ex/answers")
            + FOOTER[:0],
            data(b"one") + data(b"two"),
        ),
        (
            ANNOTATED_1_0 + list_1_0(0x73, [string("i" * 300), NULL, NULL, string("s" * 300), NULL, string("corr")]),
            section_1_0(0x77, string("a value")),
        ),
        (map_1_0(0x72, [(symbol("x-basic-type"), string("kind"))]), list_1_0(0x76, [value_1_0("int", 1)])),
        (b"", data(BODY) + FOOTER),
    ],
}
for _version in BASIC:
    MESSAGES[_version] = [
        (listed(PROPERTIES, SAID, HEADERS), BODY),
        (listed(PROPERTIES, {"message-id": TEXT_ID, "correlation-id": b"\xff", "app-id": "app"}, ()), b""),
    ]
