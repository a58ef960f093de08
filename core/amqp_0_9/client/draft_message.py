"""A message as the client of the drafts of 2005 hands it out: message.py's, with what the draft's method says and contents within it."""

from .. import method
from .message import DELIVER, GET_OK, RETURN, Message

if False:  # for the type checker alone
    from typing import Any

# What a method with a content is about, by the end of its name.
ENDINGS = {"deliver": DELIVER, "get_ok": GET_OK, "browse_ok": GET_OK, "bounce": RETURN}

# The arguments of these methods in the order of their tables. A namespace and a queue (0.9a5) are those that the consumer asked for.
FIELDS = {
    (0x070006, "LbSSS"): ("delivery_tag", "redelivered", "exchange", "namespace", "queue"),
    (0x070008, "Lbl"): ("delivery_tag", "redelivered", "message_count"),
    (0x060002, "bl"): ("redelivered", "message_count"),
    (0x070006, "sSSS"): ("reply_code", "reply_text", "exchange", "routing_key"),
    (0x060006, "sSSS"): ("reply_code", "reply_text", "exchange", "routing_key"),
    (0x070007, "sLbSS"): ("consumer_tag", "delivery_tag", "redelivered", "exchange", "routing_key"),
    (0x060007, "sSS"): ("consumer_tag", "exchange", "routing_key"),
    (0x070009, "LbSSl"): ("delivery_tag", "redelivered", "exchange", "routing_key", "message_count"),
    (0x060009, "SSl"): ("exchange", "routing_key", "message_count"),
}


class Content:
    """A content within another: `class_id`, `properties` by name, `body`, `children`. `left`: children that are still to come."""

    def __init__(self, wire: "Any") -> None:
        self.wire = wire
        self.body = b""
        self.children: "list[Content]" = []
        self.left = 0

    def take_header(self, head: "Any") -> None:
        """What Wire.read_header gives."""
        self.class_id, self.left, self.body_size, self.properties_octets = head

    @property
    def properties(self) -> "dict[str, Any]":
        """The properties as a new dict. Raises ProtocolError when they cannot be read."""
        given: "dict[str, Any]" = self.wire.properties(self.class_id, self.properties_octets)
        return given


class DraftMessage(Message):
    """A Message of a draft. Its attributes are the arguments of its method by name, as far as it has them; 0.9a5 has the routing key among
    the properties, as destination. Its consumer tag is a number."""

    __slots__ = ("row", "arguments", "children", "left", "class_id")

    def __init__(self, channel, row, code, arguments):
        self.channel = channel
        self.code = code
        self.row = row
        names = FIELDS[(row[method.CODE], row[method.FIELDS])]
        self.arguments = {names[index]: arguments[index] for index in range(len(names))}
        self.properties_octets: "Any" = None
        self.body: "Any" = None
        self.body_size = 0
        self.taken = 0
        self.children: "list[Content]" = []
        self.left = 0
        self.class_id = 0

    def take_header(self, head):
        """What Wire.read_header gives."""
        self.class_id, self.left, self.body_size, self.properties_octets = head

    @property
    def properties(self):
        """As of a Content."""
        return self.channel.client.wire.properties(self.class_id, self.properties_octets)

    @property
    def consumer_tag(self):
        """The number of the consumer; 0.9r1's deliver only."""
        return self.arguments["consumer_tag"]

    @property
    def delivery_tag(self):
        """Number to acknowledge with."""
        return self.arguments["delivery_tag"]

    @property
    def redelivered(self):
        """True when the message may have been delivered before."""
        return self.arguments["redelivered"]

    @property
    def exchange(self):
        """The exchange it was published to; not of 0.9a5's browse-ok."""
        return self.arguments["exchange"]

    @property
    def routing_key(self):
        """The routing key, or destination."""
        return self.arguments["routing_key"] if "routing_key" in self.arguments else self.properties.get("destination", "")

    @property
    def message_count(self):
        """Messages left in the queue; get-ok and browse-ok only."""
        return self.arguments["message_count"]

    @property
    def reply_code(self):
        """Why it came back; bounce only."""
        return self.arguments["reply_code"]

    @property
    def reply_text(self):
        """Why it came back, in words; bounce only."""
        return self.arguments["reply_text"]
