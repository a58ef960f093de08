"""Files over the client: one that is sent, and those that are received (class file). Sans-IO, as the client.

    Sending(client, read, identifier, size, properties, exchange, key)    read(at, most) -> octets
    Receiving(client, queue, sink)

They are given what events say: `command`, `content`, `body`, `completed` and `room`, by the names of events.Events.
"""

from .. import frame, structs

FILE = "file-properties"


class Sending:
    """A file on its way to an exchange. `properties`: fields of file-properties by name. `phase`: "opening", "staging", "published",
    "done"."""

    def __init__(self, client, read, identifier, size, properties, exchange, key):
        self.client = client
        self.read = read
        self.identifier = identifier
        self.size = size
        self.properties = properties
        self.exchange = exchange
        self.key = key
        self.phase = "opening"
        self.at = 0  # octets that the peer has, or that are on their way to it
        self.resumed_at = 0
        self.returned: "tuple | None" = None  # (code, text) of a file.return
        self._id = 0
        client.command("file_open", {"identifier": identifier, "content_size": size})

    def command(self, name, fields):
        """A command of the peer's."""
        if name == "file_open_ok" and self.phase == "opening":
            self.phase = "staging"
            self.at = self.resumed_at = fields["staged_size"] or 0
            self.client.command("file_stage", {}, structs.write(FILE, self.properties), self.at < self.size)
            self.room()

    def content(self, name, fields, header):
        """A content of the peer's."""
        if name == "file_return":
            self.returned = fields["reply_code"] or 0, fields["reply_text"] or ""

    def room(self):
        """Send what there is room for."""
        client = self.client
        most = client.frame_max - frame.HEAD
        while self.phase == "staging" and self.at < self.size and client.room() >= client.frame_max:
            octets = self.read(self.at, min(most, self.size - self.at))
            self.at += len(octets)
            client.body(octets, self.at == self.size)
        if self.phase == "staging" and self.at == self.size:
            self.phase = "published"
            given = {"exchange": self.exchange, "routing_key": self.key, "mandatory": True, "identifier": self.identifier}
            self._id = client.command("file_publish", given, tell=True)

    def completed(self, id_):
        """The broker has taken it."""
        if self.phase == "published" and id_ == self._id:
            self.phase = "done"


class Receiving:
    """One file out of a queue. `sink` has

    begin(identifier, size) -> octets of it that are there      write(octets)      whole(properties, redelivered) -> true: acknowledge it
    """

    def __init__(self, client, queue, sink):
        self.client = client
        self.sink = sink
        self.properties: "dict" = {}
        self.is_whole = False
        self.is_acknowledged = False  # the broker has our acknowledgement
        self._id: "int | None" = None
        client.command("file_qos", {"prefetch_count": 1})
        client.command("file_consume", {"queue": queue, "consumer_tag": "file"})

    def command(self, name, fields):
        """A command of the peer's."""
        if name == "file_open" and not self.is_whole:
            staged = self.sink.begin(fields["identifier"] or "", fields["content_size"] or 0)
            self.client.command("file_open_ok", {"staged_size": staged})
        elif name == "file_deliver":
            tag = fields["delivery_tag"]
            self.is_whole = True
            self.client.command("file_cancel", {"consumer_tag": "file"})
            if self.sink.whole(self.properties, fields["redelivered"]):
                self._id = self.client.command("file_ack", {"delivery_tag": tag}, tell=True)
            else:
                self.client.command("file_reject", {"delivery_tag": tag, "requeue": True})

    def content(self, name, fields, header):
        """A file.stage begins."""
        if name == "file_stage":
            named = [row for row in structs.each_struct(header, 0, len(header)) if row[0] == FILE]
            self.properties = structs.read(FILE, header, named[0][1], named[0][2])[0] if named else {}

    def body(self, octets):
        """Octets of it."""
        self.sink.write(octets)

    def completed(self, id_):
        """The broker has the acknowledgement."""
        if id_ == self._id:
            self.is_acknowledged = True
