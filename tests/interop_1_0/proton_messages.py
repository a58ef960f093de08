"""Messages as Debian's python3-qpid-proton writes and reads them: run by /usr/bin/python3, which has it, as a program.

    proton_messages.py write SEED COUNT    a line of JSON for each of COUNT random messages: {"octets": hex, "is": description}
    proton_messages.py read                for each line of hex a line of JSON: its description, or {"error": text}

A description names sections and fields as core/amqp_1_0 does; a value is [type, value]: numbers with a fraction and octets as hex, a map
as sorted pairs.
"""

import json
import random
import sys
import uuid

import proton


def described(value):
    """A value with its type."""
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["boolean", value]
    for kind, name in NAMES:
        if isinstance(value, kind):
            return [name, told(value)]
    raise TypeError("no name for %r" % type(value))


def told(value):
    """What JSON has of a value."""
    if isinstance(value, float):
        return float(value).hex()
    if isinstance(value, uuid.UUID):
        return value.bytes.hex()
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return sorted([[described(key), described(each)] for key, each in value.items()], key=repr)
    if isinstance(value, proton.Array):
        return [described(each) for each in value.elements]
    if isinstance(value, list):
        return [described(each) for each in value]
    return int(value)


NAMES = (
    (proton.symbol, "symbol"),
    (proton.char, "char"),
    (str, "string"),
    (proton.decimal128, "decimal128"),
    ((bytes, memoryview), "binary"),
    (proton.ubyte, "ubyte"),
    (proton.ushort, "ushort"),
    (proton.uint, "uint"),
    (proton.byte, "byte"),
    (proton.short, "short"),
    (proton.int32, "int"),
    (proton.decimal32, "decimal32"),
    (proton.decimal64, "decimal64"),
    (proton.timestamp, "timestamp"),
    (proton.ulong, "ulong"),
    (proton.float32, "float"),
    (float, "double"),
    (uuid.UUID, "uuid"),
    (int, "long"),
    (dict, "map"),
    (proton.Array, "array"),
    (list, "list"),
)
FIELDS = {
    "message-id": "id",
    "to": "address",
    "subject": "subject",
    "reply-to": "reply_to",
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "group-id": "group_id",
    "reply-to-group-id": "reply_to_group_id",
    "correlation-id": "correlation_id",
}


def description(message):
    """What a message says; what is not set is not there."""
    found = {name: described(getattr(message, FIELDS[name])) for name in FIELDS if getattr(message, FIELDS[name]) is not None}
    for name in ("content-type", "content-encoding"):  # the word None where there is none
        if found[name] == ["symbol", "None"]:
            del found[name]
    for name in ("message-id", "correlation-id"):  # a ulong comes as int
        if name in found and found[name][0] == "long":
            found[name][0] = "ulong"
    if message.user_id:
        found["user-id"] = described(message.user_id)
    for name, milliseconds in (("absolute-expiry-time", message.expiry_time), ("creation-time", message.creation_time)):
        if milliseconds:
            found[name] = ["timestamp", round(milliseconds * 1000)]
    if message.group_sequence:
        found["group-sequence"] = ["uint", message.group_sequence]
    found["durable"] = message.durable
    found["priority"] = message.priority
    found["ttl"] = round(message.ttl * 1000)
    found["first-acquirer"] = message.first_acquirer
    found["delivery-count"] = message.delivery_count
    for name, table in (
        ("delivery-annotations", message.instructions),
        ("message-annotations", message.annotations),
        ("application-properties", message.properties),
    ):
        if table:
            found[name] = told(table)
    found["body"] = described(message.body)
    return found


class Maker:
    """Random messages."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, most=20):
        return "".join([self.random.choice("abcXYZ /:.-_€äñ漢😀0123456789") for _ in range(self.random.randrange(most))])

    def symbol(self):
        return proton.symbol("x-" + "".join([self.random.choice("abcdef-") for _ in range(self.random.randrange(9))]))

    def octets(self, most=20):
        return bytes(self.random.randrange(256) for _ in range(self.random.randrange(most)))

    def bits(self, count, signed=False):
        number = self.random.getrandbits(self.random.randrange(count + 1))
        return number - (1 << count - 1) if signed and number >= 1 << count - 1 else number

    def simple(self):
        """A value that application-properties may have."""
        some = self.random
        return some.choice(
            (
                lambda: None,
                lambda: some.random() < 0.5,
                lambda: proton.ubyte(self.bits(8)),
                lambda: proton.ushort(self.bits(16)),
                lambda: proton.uint(self.bits(32)),
                lambda: proton.ulong(self.bits(64)),
                lambda: proton.byte(self.bits(8, True)),
                lambda: proton.short(self.bits(16, True)),
                lambda: proton.int32(self.bits(32, True)),
                lambda: self.bits(64, True),
                lambda: proton.float32(some.choice((0.0, 1.5, -2.25, 1e30))),
                lambda: some.uniform(-1e9, 1e9),
                lambda: proton.char(some.choice("a€😀")),
                lambda: proton.timestamp(self.bits(48)),
                lambda: uuid.UUID(int=some.getrandbits(128)),
                self.octets,
                self.text,
                lambda: self.text(400),
                self.symbol,
                lambda: proton.decimal32(self.bits(32)),
                lambda: proton.decimal64(self.bits(64)),
                lambda: proton.decimal128(bytes(some.randrange(256) for _ in range(16))),
            )
        )()

    def value(self, depth=0):
        """Any value."""
        some = self.random
        if depth < 3 and some.random() < 0.3:
            if some.random() < 0.5:
                return [self.value(depth + 1) for _ in range(some.randrange(5))]
            return {self.text(): self.value(depth + 1) for _ in range(some.randrange(5))}
        return self.simple()

    def identifier(self):
        some = self.random
        return some.choice(
            (None, proton.ulong(self.bits(64)), uuid.UUID(int=some.getrandbits(128)), self.octets(), self.text(), self.text(600))
        )

    def message(self):
        some = self.random
        message = proton.Message()
        message.durable = some.random() < 0.5
        message.priority = some.choice((4, 0, 9, 255))
        message.ttl = some.choice((0, 0, 0.001, 5, 4294967.295))
        message.first_acquirer = some.random() < 0.2
        message.delivery_count = some.choice((0, 0, 1, 300))
        message.id, message.correlation_id = self.identifier(), self.identifier()
        for name in ("address", "subject", "reply_to", "group_id", "reply_to_group_id"):
            if some.random() < 0.4:
                setattr(message, name, self.text())
        if some.random() < 0.3:
            message.content_type, message.content_encoding = proton.symbol("text/plain"), proton.symbol("gzip")
        if some.random() < 0.3:
            message.user_id = self.octets() or b"u"
        if some.random() < 0.3:
            message.creation_time, message.expiry_time = self.bits(31) + 1, self.bits(31) + 1
        if some.random() < 0.3:
            message.group_sequence = self.bits(31)
        if some.random() < 0.4:
            message.instructions = {self.symbol(): self.value() for _ in range(some.randrange(4))}
        if some.random() < 0.5:
            message.annotations = {self.symbol(): self.value() for _ in range(some.randrange(6))}
        if some.random() < 0.6:
            message.properties = {self.text(): self.simple() for _ in range(some.randrange(12))}
        message.inferred = some.random() < 0.7
        message.body = some.choice((lambda: None, self.octets, lambda: self.octets(700), self.text, self.value))()
        return message


def main(arguments):
    if arguments[0] == "write":
        maker = Maker(int(arguments[1]))
        for _ in range(int(arguments[2])):
            octets = maker.message().encode()
            again = proton.Message()
            again.decode(octets)
            print(json.dumps({"octets": octets.hex(), "is": description(again)}))
        return
    for line in sys.stdin:
        message = proton.Message()
        try:
            message.decode(bytes.fromhex(line))
            found = description(message)
        except proton.ProtonException as error:
            found = {"error": str(error)}
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
