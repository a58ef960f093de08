"""What a scripted client of AMQP 0-8 and 0-9 (test_older.Old) does with the classes file and stream: written against their tables alone."""

import struct

from peer_file import broker_of
from test_older import HEADERS, Old

from leveret.core.amqp_0_9 import field_table, frame, method

FILE, STREAM = 70, 80
ROWS = {
    FILE: (
        ("content_type", "S"),
        ("content_encoding", "S"),
        ("headers", "F"),
        ("priority", "o"),
        ("reply_to", "S"),
        ("message_id", "S"),
        ("filename", "S"),
        ("timestamp", "L"),
        ("cluster_id", "S"),
    ),
    STREAM: (("content_type", "S"), ("content_encoding", "S"), ("headers", "F"), ("priority", "o"), ("timestamp", "L")),
}


def header(class_id, size, given):
    """The frame of a content header."""
    flags, octets = 0, b""
    for place, (name, code) in enumerate(ROWS[class_id]):
        if name in given:
            flags |= 0x8000 >> place
            item = given[name]
            if code == "S":
                octets += bytes((len(item),)) + item.encode("utf-8")
            elif code == "F":
                octets += field_table.encode(item)
            else:
                octets += struct.pack(">B" if code == "o" else ">Q", item)
    return frame.encode(2, 1, struct.pack(">HHQH", class_id, 0, size, flags) + octets)


def read_header(payload):
    """(class, body size, properties by name)."""
    class_id, weight, size, flags = struct.unpack_from(">HHQH", payload)
    assert weight == 0
    given, at = {}, 14
    for place, (name, code) in enumerate(ROWS[class_id]):
        if flags & 0x8000 >> place:
            given[name], at = method.decode_field((0, "header"), code, payload, at, len(payload))
    assert at == len(payload)
    return class_id, size, given


def bodies(body, size=1000):
    """Body frames."""
    return b"".join([frame.encode(3, 1, body[at : at + size]) for at in range(0, len(body), size)])


class FileOld(Old):
    """One connection with a channel."""

    def method(self, name, *arguments):
        """The frame of a method on channel 1."""
        return method.encode(method.named(self.spec.METHODS, name), 1, arguments)

    def all(self):
        """[(method, arguments)] that came, of those with a content also (class, size, properties) and the body."""
        self.take()
        found = []
        while self.inbox:
            size = int.from_bytes(self.inbox[3:7], "big")
            assert len(self.inbox) >= size + 8 and self.inbox[7 + size] == 0xCE, self.inbox
            kind, payload, self.inbox = self.inbox[0], self.inbox[7 : 7 + size], self.inbox[8 + size :]
            if kind == 1:
                row = method.find(self.spec.METHODS, int.from_bytes(payload[:4], "big"))
                found.append([row[method.NAME], method.decode(row, payload, 4, size)])
            elif kind == 2:
                found[-1] += [read_header(payload), b""]
            elif kind == 3:
                found[-1][3] += payload
        return found

    def named(self, name):
        """The arguments of all methods of this name; others are dropped."""
        return [each[1] for each in self.all() if each[0] == name]

    def stage(self, identifier, body, given=None, size=1000):
        """Open and stage a content, or what is left of it: octets that were staged before."""
        self.say("file_open", 1, identifier, len(body))
        ((staged,),) = self.named("file_open_ok")
        rest = body[staged:]
        self.give(self.method("file_stage") + header(FILE, len(rest), given or {}) + bodies(rest, size))
        return staged

    def publish_file(self, identifier, key="q", exchange="", mandatory=False, immediate=False):
        """file.publish."""
        self.say("file_publish", 1, 0, exchange, key, mandatory, immediate, identifier)

    def send(self, identifier, body, key="q", given=None, **flags):
        """Stage and publish."""
        self.stage(identifier, body, given)
        self.publish_file(identifier, key, **flags)

    def consume(self, class_name="file", tag="c", queue="q", no_ack=False, exclusive=False, nowait=True):
        """file.consume or stream.consume."""
        more = ({},) if self.spec.METHODS[0] and self.spec.VERSION == (0, 9) else ()
        bits = (False, no_ack, exclusive, nowait) if class_name == "file" else (False, exclusive, nowait)
        self.say(class_name + "_consume", 1, 0, queue, tag, *bits, *more)

    def take_file(self, staged=0):
        """Answer the file.open that has come: (its arguments, properties, body, arguments of file.deliver)."""
        (opened,) = self.named("file_open")
        self.say("file_open_ok", 1, staged)
        found = self.all()
        assert [each[0] for each in found[:2]] == ["file_stage", "file_deliver"], found
        (class_id, size, given), body = found[0][2:]
        assert class_id == FILE and size == len(body)
        self.inbox = b"".join([self.method(*[each[0]] + each[1]) for each in found[2:]])
        return opened, given, body, found[1][1]

    def stream(self, body, key="q", given=None, mandatory=False, immediate=False):
        """stream.publish."""
        octets = self.method("stream_publish", 0, "", key, mandatory, immediate) + header(STREAM, len(body), given or {})
        self.give(octets + bodies(body))

    def closed(self):
        """(method, reply code) of the close that came."""
        ((name, arguments),) = [each for each in self.all() if each[0].endswith("_close")]
        return name, arguments[0]


def started(which=0, **given):
    """A peer of a broker with a queue q."""
    header_, spec = HEADERS[which]
    return FileOld(header_, spec, broker_of(**given)).declared()


def all_started(**given):
    """One of each header."""
    return [started(which, **given) for which in range(len(HEADERS))]
