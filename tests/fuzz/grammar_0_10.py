"""Frames of AMQP 0-10 at random: every control and command of the tables with fields that mostly make sense, and header segments."""

from leveret.core.amqp_0_10 import frame, structs
from leveret.core.amqp_0_10.spec_0_10 import COMMANDS, CONTROLS, STRUCTS

NAMES = ("a", "b", "", "amq.direct", "amq.topic", "amq.fanout", "no such", "d0", "d1", "x" * 60)
TEXTS = ("", "direct", "topic", "fanout", "headers", "n > 3", "n >", "text/plain", "first", "\u00e9" * 20)
STRUCTURES = {row[0]: row for row in STRUCTS}


def value(source, type_, sent):
    """A value of a field of this type. `sent`: how many transfers came, so that sets name some."""
    if type_ in ("uint8", "int8"):
        return source.choice((0, 0, 1, 1, 2, 7, 127))
    if type_ in ("uint16", "uint32", "uint64", "sequence-no"):
        return source.choice((0, 1, 2, 5, 20, 300, 4096, 65535))
    if type_ == "datetime":
        return source.choice((0, 1_700_000_000, 1_700_000_000_000))
    if type_ == "uuid":
        return bytes(source.randrange(256) for _ in range(16))
    if type_ in ("str8", "str16"):
        return source.choice(NAMES if source.random() < 0.8 else TEXTS)
    if type_[:4] == "vbin":
        return bytes(source.randrange(256) for _ in range(source.choice((0, 4, 20))))
    if type_ == "map":
        return table(source)
    if type_ == "sequence-set":
        first = source.randrange(sent + 2)
        return [(first, first + source.choice((0, 0, 1, 5)))]
    if type_ == "struct32":
        return b"\x04\x04\x00\x00"
    if type_ in STRUCTURES:
        return fields(source, STRUCTURES[type_][4], sent)
    return []


def table(source):
    """A map: arguments that the broker knows, and some that it does not."""
    choices = (
        ("n", 5),
        ("x-max-length", 3),
        ("qpid.max_count", 2),
        ("qpid.policy_type", "ring"),
        ("x-filter-jms-selector", source.choice(("n > 3", "n >", ""))),
        ("x-priority", ("I", 1)),
        ("x-queue-type", source.choice(("stream", "classic", "quorum"))),
        ("x-stream-offset", "first"),
        ("x-max-priority", 4),
        ("l", [1, "x", {"y": None}]),
        ("f", 2.5),
    )
    return dict(source.sample(choices, source.choice((0, 1, 1, 2))))


def fields(source, rows, sent):
    """Fields of these rows, most of them present."""
    given = {}
    for name, type_ in rows:
        if source.random() < 0.75:
            given[name] = source.random() < 0.3 if type_ == "bit" else None if type_[-2:] == "[]" else value(source, type_, sent)
    return given


def header(source, sent):
    """A header segment."""
    parts = [structs.write(name, fields(source, STRUCTURES[name][4], sent)) for name in ("delivery-properties", "message-properties")]
    return b"".join(parts[: source.choice((0, 1, 2, 2, 2))])


def some_control(source, sent, of=None):
    """A control's frame."""
    _, name, _, rows = source.choice([row for row in CONTROLS if of is None or row[1].startswith(of)])
    octets = structs.write_control(name, fields(source, rows, sent))
    return frame.write(frame.WHOLE, frame.CONTROL, 0 if name.startswith("connection") else source.choice((0, 0, 0, 1)), octets)


def some_file(source):
    """A content of class file from its open to its publish, most of it as it should be, and perhaps a consumer of it."""
    body = b"f" * source.choice((0, 1, 100, 1500, 6000))
    name, queue = source.choice(("a", "b")), source.choice(("a", "b"))
    size = len(body) if source.random() < 0.9 else source.choice((0, 5, 1 << 40))
    properties = structs.write("file-properties", fields(source, STRUCTURES["file-properties"][4], 0))
    parts = [whole("file_open", {"identifier": name, "content_size": size})] if source.random() < 0.9 else []
    parts.append(with_content(source, structs.write_command("file_stage", {}), properties, body))
    if source.random() < 0.3:
        parts.insert(0, whole("file_consume", {"queue": queue, "consumer_tag": source.choice(("c", "d")), "no_ack": source.random() < 0.3}))
    if source.random() < 0.9:
        parts.append(whole("file_publish", {"exchange": "", "routing_key": queue, "identifier": name, "mandatory": source.random() < 0.3}))
    if source.random() < 0.5:
        parts.append(whole("file_open_ok", {"staged_size": source.choice((0, 0, 1, 1 << 33))}))
        parts.append(whole(source.choice(("file_ack", "file_reject")), {"delivery_tag": source.choice((0, 1, 2, 3, 7))}))
    return b"".join(parts)


def whole(name, given):
    """The frame of a command without content."""
    return frame.write(frame.WHOLE, frame.COMMAND, 0, structs.write_command(name, given))


def with_content(source, octets, header_octets, body):
    """The frames of a command with a header and a body."""
    size_max = source.choice((1024, 1024, 60))
    parts = [frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, octets, size_max)]
    parts.append(frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, 0, header_octets, size_max))
    if body:
        parts.append(frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, body, size_max))
    return b"".join(parts)


CONTENTS = {"file_stage": "file-properties", "file_return": "file-properties", "stream_publish": "stream-properties"}


def some_command(source, sent):
    """A command's frames, with a header and a body where it has them."""
    if source.random() < 0.1:
        return some_file(source)
    _, name, _, rows = source.choice(COMMANDS) if source.random() < 0.5 else next(row for row in COMMANDS if row[1] == "message_transfer")
    octets = structs.write_command(name, fields(source, rows, sent), source.random() < 0.3)
    if name in CONTENTS and source.random() < 0.8:
        properties = structs.write(CONTENTS[name], fields(source, STRUCTURES[CONTENTS[name]][4], sent))
        return with_content(source, octets, properties, b"b" * source.choice((0, 1, 100, 1500)))
    if name != "message_transfer":
        return frame.segment(frame.FIRST_SEGMENT | frame.LAST_SEGMENT, frame.COMMAND, 0, octets, source.choice((1024, 1024, 40)))
    return with_content(source, octets, header(source, sent), b"b" * source.choice((0, 1, 100, 1500)))
