"""Values at the ends of what can come in, and random ones between: for field tables, short strings, JSON, TOML and URLs.

Every function takes a random.Random; the same seed gives the same value. `field` gives what amqp_wire encodes, with the type letters of
field tables.
"""

import math

from amqp_wire import Typed

NUMBERS = (
    0,
    1,
    -1,
    2,
    5,
    127,
    128,
    -128,
    255,
    256,
    1000,
    32767,
    32768,
    65535,
    65536,
    (1 << 30) - 1,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31),
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    1 << 41,
    315360000000,
    315360000001,
    1 << 53,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
)
FRACTIONS = (0.0, -0.0, 0.5, 1.0, 10.0, -1.5, 1e-320, 1e300, -1e300, math.inf, -math.inf, math.nan)
TEXTS = (
    "",
    " ",
    "a",
    "0",
    "1",
    "-1",
    "10",
    "007",
    "1_0",
    "+5",
    " 5",
    "5 ",
    "1.5",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "true",
    "null",
    "\0",
    "a\0b",
    "\n\r\t",
    "\u00b2",
    "\u0665",
    "\u00b2D",
    "7D",
    "1Y",
    "999999999Y",
    "0s",
    "\u2603" * 20,
    "\U0001f407",
    "9" * 18,
    "9" * 30,
    "9" * 300,
    "a" * 255,
    "a" * 256,
    "a" * 3000,
    "%s%d%n",
    "{0}",
    "{key}",
    "\\",
    "'",
    '"',
    "^(a+)+$",
    "(",
    "[[:alpha:]]",
    "amq.",
    "amq.direct",
    "leveret.poison",
    "all",
    "any",
    "any-with-x",
    "first",
    "last",
    "next",
    "stored",
    "stream",
    "quorum",
    "classic",
    "drop-head",
    "block",
    "reject-publish-dlx",
    "direct",
    "topic",
    "headers",
    "message_id",
    "timestamp",
    "4294967296",
    "315360000000",
    "9223372036854775807",
    "9223372036854775808",
    "priority > 5",
    "a = 1e999",
    "a LIKE '%' ESCAPE 'x'",
    "a + 9223372036854775807 * 9223372036854775807 > 0.5",
    "1 / a = 1",
    "a IN (1, 'b')",
    "NOT NOT a IS NULL",
    "-" * 40 + "a > 1",
    "(" * 60 + "a" + ")" * 60 + " = 1",
)
OCTETS = (b"", b"\xff", b"\xff\xfe", b"\x00" * 9, b"\x80abc", bytes(range(256)), b"\xc3", b"\xed\xa0\x80")

LETTERS = {"b": 8, "s": 16, "I": 32, "l": 64}  # signed widths
UNSIGNED = {"B": 8, "u": 16, "i": 32}

DEPTH_MAX = 9  # one more than field tables may have


def number(source):
    """A whole number, of 64 bits at most."""
    if source.random() < 0.6:
        return source.choice(NUMBERS)
    return source.getrandbits(source.choice((1, 7, 15, 31, 40, 62))) * source.choice((1, 1, -1))


def text(source):
    """A text; some are not what anybody reads."""
    if source.random() < 0.7:
        return source.choice(TEXTS)
    size = source.choice((1, 3, 20, 255, 400))
    return "".join(chr(source.choice((source.randrange(32, 127), source.randrange(0, 0xD800)))) for _ in range(size))


def octets(source):
    """Octets that need not be UTF-8."""
    return source.choice(OCTETS) if source.random() < 0.6 else source.randbytes(source.choice((1, 4, 60, 255)))


def short(source):
    """A short string's octets, 255 at most."""
    return text(source).encode()[:255] if source.random() < 0.7 else octets(source)[:255]


def field(source, depth=1):
    """A value of a field table."""
    kind = source.random()
    if kind < 0.35:
        letter = source.choice("bsIlBui")
        bits = LETTERS.get(letter) or UNSIGNED[letter]
        value = number(source) & (1 << bits) - 1
        return Typed(letter, value - (1 << bits) if letter in LETTERS and value >> bits - 1 else value)
    if kind < 0.6:
        return text(source)
    if kind < 0.68:
        return Typed(source.choice("Sx"), octets(source))
    if kind < 0.76:
        return Typed("d", source.choice(FRACTIONS))
    if kind < 0.78:
        return Typed("f", source.choice((0.0, 1.5, math.inf, math.nan)))
    if kind < 0.80:
        return Typed("D", (source.choice((0, 1, 9, 10, 255)), source.choice((0, 5, (1 << 32) - 1))))
    if kind < 0.84:
        return Typed("T", source.choice((0, 5, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)))
    if kind < 0.88:
        return source.choice((True, False, None))
    if depth >= DEPTH_MAX:
        return 0
    if kind < 0.94:
        return [field(source, depth + 1) for _ in range(source.randrange(4))]
    return table(source, ("a", "x-match", "count", "queue", "reason", ""), depth + 1)


def table(source, names, depth=1):
    """A field table with some of these names."""
    return {source.choice(names): field(source, depth) for _ in range(source.randrange(1, 4))}


def deaths(source):
    """What somebody may write into x-death."""
    if source.random() < 0.2:
        return field(source)
    found = []
    for _ in range(source.randrange(4)):
        found.append(
            {
                name: field(source)
                if source.random() < 0.5
                else {"count": 1, "reason": "expired", "queue": "dying", "exchange": "", "routing-keys": ["a"], "time": Typed("T", 5)}[name]
                for name in ("count", "reason", "queue", "exchange", "routing-keys", "time")
                if source.random() < 0.8
            }
        )
    return found


def json_value(source, depth=1):
    """What JSON has, and what Python's reader of it takes beside."""
    kind = source.random()
    if kind < 0.35:
        return source.choice((number(source), 10**30, -(10**30))) if source.random() < 0.9 else source.choice(FRACTIONS)
    if kind < 0.7:
        return text(source) if source.random() < 0.9 else source.choice(("\ud800", "a\udfffb"))
    if kind < 0.8:
        return source.choice((True, False, None))
    if kind < 0.85:
        return source.choice(FRACTIONS)
    if depth >= DEPTH_MAX + 1:
        return []
    if kind < 0.93:
        return [json_value(source, depth + 1) for _ in range(source.randrange(3))]
    return {text(source)[:40]: json_value(source, depth + 1) for _ in range(source.randrange(3))}


def toml_value(source, depth=1):
    """The text of a TOML value."""
    kind = source.random()
    if kind < 0.3:
        return str(source.choice((number(source), 10**30, -(10**30))))
    if kind < 0.62:
        return toml_text(text(source))
    if kind < 0.72:
        return source.choice(("0.5", "nan", "inf", "-inf", "1e300", "-0.0", "1e-300"))
    if kind < 0.8:
        return source.choice(("true", "false", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z"))
    if depth > 4:
        return "[]"
    if kind < 0.92:
        return "[" + ", ".join(toml_value(source, depth + 1) for _ in range(source.randrange(3))) + "]"
    pairs = {toml_text(text(source)[:20]): toml_value(source, depth + 1) for _ in range(source.randrange(3))}
    return "{" + ", ".join(f"{name} = {value}" for name, value in pairs.items()) + "}"


def toml_text(value):
    """A basic string."""
    return '"' + "".join(each if " " <= each < "\x7f" and each not in '"\\' else f"\\U{ord(each):08x}" for each in value) + '"'


def url(source):
    """Something that may have been meant as a URL."""
    parts = [source.choice(("amqp://", "amqps://", "serial://", "amqp:", "http://", "", "amqp:///"))]
    if source.random() < 0.4:
        parts.append(source.choice(("guest:guest@", "@", ":@", "a%zz:b@", "%ff:x@", "u:" + "p" * 500 + "@", "%00:%00@")))
    parts.append(
        source.choice(
            (
                "127.0.0.1",
                "localhost",
                "a..b",
                "",
                "[::1]",
                "[::1",
                "::1",
                "h" * 64,
                "h" * 300,
                "\u2603.example",
                "a b",
                "x\0y",
                ".",
                "/dev/ttyUSB0",
                "/tmp/ttyA",
                "/",
                "/dev/\0",
                "[",
                "]",
                "h.",
                "%41",
            )
        )
    )
    parts.append(source.choice(("", ":", ":5672", ":0", ":65535", ":65536", ":-1", ":\u0665", ":" + "9" * 5000, ":1_0", ":+5", ": 5")))
    parts.append(source.choice(("", "/", "/%2f", "/%", "/" + "v" * 300, "/a/b", "#x")))
    if source.random() < 0.5:
        parts.append(
            "?"
            + "&".join(
                source.choice(
                    (
                        "cert=a",
                        "key=b",
                        "ca=c",
                        "verify=peer",
                        "verify=",
                        "cert=%00",
                        "auth=external",
                        "baud=9600",
                        "baud=\u0661",
                        "baud=" + "9" * 5000,
                        "window=256",
                        "frame=512",
                        "address=0",
                        "crc=17",
                        "x",
                        "=",
                        "",
                        "speed=1",
                        "name=%zz",
                        "a=%ff",
                    )
                )
                for _ in range(source.randrange(4))
            )
        )
    return "".join(parts)
