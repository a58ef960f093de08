"""What the scripted AMQP 0-10 client of peer_0_10.py does with the classes file and stream."""

from peer_0_10 import Peer, new_broker

from leveret.core.amqp_0_10 import frame, structs

FILE = "file-properties"
STREAM = "stream-properties"
SMALL = 3000  # octets of a content that is an ordinary message
LARGE = 30000  # of one that is larger than a message may be
GIVEN = {
    "content_type": "a/b",
    "content_encoding": "gzip",
    "headers": {"n": 1, "t": "x"},
    "priority": 3,
    "reply_to": "r",
    "message_id": "an id",
    "filename": "image.bin",
    "timestamp": 1700000000,
    "cluster_id": "here",
}


def content(title, body, given=None, struct=FILE, size=1000, number=0, **fields):
    """The frames of a command with a header and a body, in frames of `size` octets."""
    parts = [
        frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, number, structs.write_command(title, fields), 65535),
        frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, number, structs.write(struct, given or {}), 65535),
    ]
    if body:
        parts.append(frame.segment(frame.LAST_SEGMENT, frame.BODY, number, body, size))
    return b"".join(parts)


def octets(size):
    """A content (bytes) in which no two runs of 251 octets are alike for long."""
    return bytes([(place * 7 + place // 251) & 255 for place in range(size)])


def broker_of(**given):
    """A broker that stages contents of up to a MiB."""
    values = {"staged_count_max": 8, "staged_memory_max": 1 << 20, "staged_size_max": 1 << 22, "staged_share_max": 100}
    values.update(given)
    return new_broker(**values)


class FilePeer(Peer):
    """One connection with a session."""

    def stage(self, identifier, body, given=None, at=0, size=1000):
        """Open and stage a content from octet `at` on; the answers stay in the inbox."""
        self.do("file_open", identifier=identifier, content_size=len(body))
        self.give(content("file_stage", body[at:], given, size=size))
        self.ids += 1

    def send(self, identifier, body, key="q", given=None, **fields):
        """Stage and publish a content."""
        self.stage(identifier, body, given)
        return self.do("file_publish", exchange="", routing_key=key, identifier=identifier, **fields)

    def named(self, name):
        """[(fields, header octets, body)] of the commands of this name that have come; others are dropped."""
        return [each[1:4] for each in self.all() if each[0] == name]

    def error(self):
        """(error code, text) of the exception that has come."""
        ((fields, _, _),) = self.named("execution_exception")
        return fields["error_code"], fields["description"]

    def take_file(self, staged=0):
        """Answer a file.open that has come with the octets that are there: (open, header fields, body, deliver)."""
        ((opened, _, _),) = self.named("file_open")
        self.do("file_open_ok", staged_size=staged)
        found = self.all()
        ((_, header, body),) = [each[1:4] for each in found if each[0] == "file_stage"]
        ((deliver, _, _),) = [each[1:4] for each in found if each[0] == "file_deliver"]
        return opened, structs.read(FILE, header, 0, len(header))[0], body, deliver
