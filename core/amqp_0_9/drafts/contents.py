"""Content headers of the two drafts: their properties as class basic's of 0-9-1, in which the broker keeps them, and back; and trees.

A content may have others within it (structured content). The broker keeps those of a message as its header TREE, one octet string, which is
whole in the log, through dead letters and for receivers of other families. Each of them, the outer before the inner:

    short class | short weight | long size of its properties | long size of its body | properties, class basic's | body

A tree has at most CONTENTS_MAX contents beside the outermost, LEVELS_MAX levels below it, and OCTETS_MAX octets in these.
"""

import struct

from ...errors import CONTENT_TOO_LARGE, FRAME_ERROR, PRECONDITION_FAILED, RESOURCE_ERROR, SYNTAX_ERROR, ProtocolError
from ...limits import REPLY_ROOM
from ...shim import const
from ...staging import properties as shared
from .. import properties
from .fields import Reader, number

TREE = "x-content-tree"
DESTINATION = shared.DESTINATION  # no header of a draft's publisher: its names have no hyphens
CONTENTS_MAX = const(64)
LEVELS_MAX = const(8)
OCTETS_MAX = const(16384)
HEADS = const(64)  # octets of a content header's frame beside its properties, at most

_HEAD = ">HHII"
_HEAD_SIZE = const(12)


class Head:
    """A content header. `given`: its properties by the names of class basic, and `destination`."""

    def __init__(self, session, octets, at, end):
        size = session.framing.number_size
        reader = Reader(session.fields, octets, at, end, "a content header")
        self.class_id = reader.number(size)
        self.weight = reader.number(size)
        self.body_size = reader.number(8)
        row = session.wire.CONTENTS.get(self.class_id)
        if row is None:
            raise ProtocolError(FRAME_ERROR, "a content header of class %d, which has no contents" % self.class_id)
        self.given = read(reader, row[1])


def read(reader, rows):
    """The properties by name."""
    flags = [reader.number(2)]
    while flags[-1] & 1:
        flags.append(reader.number(2))
    given = {}
    for index in range(15 * len(flags)):
        if flags[index // 15] >> 15 - index % 15 & 1:
            if index >= len(rows):
                raise ProtocolError(SYNTAX_ERROR, "a content header has the property %d, and its class has %d" % (index + 1, len(rows)))
            name, code = rows[index]
            given[name] = reader.item(code)
    if reader.at != reader.end:
        raise ProtocolError(SYNTAX_ERROR, "a content header has %d octets behind its last property" % (reader.end - reader.at))
    return given


def basic(given, destination=False):
    """Properties by name as class basic's octets. A timestamp that is text and no number is refused. `destination`: it is kept, as a
    header: nothing else says that of a content within another one."""
    given = dict(given)
    moment = given.get("timestamp")
    if isinstance(moment, str):
        if not moment.isdigit() or len(moment) > 18:
            raise ProtocolError(PRECONDITION_FAILED, "invalid timestamp '%s': a number of seconds since 1970" % moment[:40])
        given["timestamp"] = int(moment)
    name = given.pop("destination", None)
    if destination and name:
        given["headers"] = dict(given.get("headers") or {})
        given["headers"][DESTINATION] = name
    try:
        return properties.encode(given)
    except (ValueError, KeyError) as error:
        raise ProtocolError(SYNTAX_ERROR, "properties that cannot be kept: %s" % error) from None


def header_0_8(head, tree=b"", keeps=False):
    """The payload of a content header as 0-8 has it; `tree`: the contents within it; `keeps`: its destination too."""
    given = head.given
    if tree:
        given = dict(given, headers=dict(given.get("headers") or {}))
        given["headers"][TREE] = tree
    return b"\x00\x3c\x00\x00" + number(8, head.body_size) + basic(given, keeps)


def of_file(given, is_file):
    """The properties of class file or stream by the names of class basic, and `destination`."""
    message = shared.named(given)
    if message.get("priority", 0) > shared.PRIORITY_MAX:
        raise ProtocolError(SYNTAX_ERROR, "priority is %d; from 0 to 9 are" % message["priority"])
    for each in ("timestamp", "destination"):
        if each in given:
            message[each] = given[each]
    message["delivery_mode"] = 2 if is_file else 1
    return message


class Tree:
    """A content with others within it, on its way in."""

    def __init__(self, channel, head):
        self.channel = channel
        self.number = channel.number
        self.root = head
        self.open = [[head.weight, None, head, b""]]  # contents that are not whole: contents to come in it, octets to come, header, body
        self.nodes: "list" = []  # octets of each, or its place: filled in when it is whole
        self.size = 0

    def header(self, head):
        """The header of a content within; true when the tree is whole but for the outermost body."""
        parent = self.open[-1]
        if parent[0] == 0:
            raise ProtocolError(FRAME_ERROR, "a content header where %d octets of a body are to come" % parent[1])
        if head.class_id != self.root.class_id:
            raise ProtocolError(FRAME_ERROR, "a content of class %d within one of class %d" % (head.class_id, self.root.class_id))
        if len(self.open) > LEVELS_MAX or len(self.nodes) >= CONTENTS_MAX:
            raise ProtocolError(
                RESOURCE_ERROR, "a content has %d others in %d levels within it at most here" % (CONTENTS_MAX, LEVELS_MAX), True
            )
        octets = basic(head.given, True)
        self.grow(_HEAD_SIZE + len(octets) + head.body_size)
        self.nodes.append(struct.pack(_HEAD, head.class_id, head.weight, len(octets), head.body_size) + octets)
        self.open.append([head.weight, head.body_size, head, b"", len(self.nodes) - 1])
        return self.ended()

    def body(self, octets):
        """A body frame of a content within; as `header`."""
        content = self.open[-1]
        if content[0] or content[1] is None or len(octets) > content[1]:
            raise ProtocolError(FRAME_ERROR, "a body frame of %d octets where a content header is to come, or fewer octets" % len(octets))
        content[1] -= len(octets)
        content[3] += octets
        return self.ended()

    def ended(self):
        """Let contents that are whole end; true when only the outermost body is to come."""
        while len(self.open) > 1 and not self.open[-1][0] and not self.open[-1][1]:
            _, _, _, body, place = self.open.pop()
            self.nodes[place] += body
            self.open[-1][0] -= 1
        return len(self.open) == 1 and not self.open[0][0]

    def grow(self, size):
        """So many octets more. Raises content-too-large."""
        self.size += size
        if self.size > OCTETS_MAX:
            raise ProtocolError(
                CONTENT_TOO_LARGE, "contents of %d octets within another one; this broker takes %d" % (self.size, OCTETS_MAX), True
            )

    def payload(self):
        """The outermost header as 0-8 has it."""
        return header_0_8(self.root, b"".join(self.nodes))


# Out


def native(session, class_id, given):
    """Properties by the names of class basic as those of a draft's class: flags and list. What the class has not is left out."""
    flags, codes, items = [0], "", []
    index = 0
    for name, code in session.wire.CONTENTS[class_id][1]:
        item = given.get(name)
        if item is not None:
            flags[index // 15] |= 0x8000 >> index % 15
            codes += code
            items.append("%d" % item if code == "S" and isinstance(item, int) else item)
        index += 1
    return b"".join([number(2, each) for each in flags]) + session.fields.encode(codes, items)


def header_out(session, class_id, weight, body_size, given):
    """The payload of a content header, without its headers where the send buffer could never have them."""
    size = session.framing.number_size
    octets = native(session, class_id, given)
    if len(octets) > session.send.size - REPLY_ROOM - HEADS:
        octets = native(session, class_id, dict(given, headers=None))
    return number(size, class_id) + number(size, weight) + number(8, body_size) + octets


def tree_of(given):
    """(weight, nodes) of the contents within a message, and its header TREE is taken out of its properties; (0, []) where there are none or
    where the header is no tree. A node: (weight, properties by name, body)."""
    headers = given.get("headers")
    octets = headers.get(TREE) if isinstance(headers, dict) else None
    if not isinstance(octets, bytes):
        return 0, []
    nodes, at = [], 0
    try:
        while at < len(octets):
            _, weight, size, body_size = struct.unpack_from(_HEAD, octets, at)
            at += _HEAD_SIZE
            inner = properties.decode(octets, at, at + size)
            at += size + body_size
            nodes.append((weight, inner, octets[at - body_size : at]))
    except (ProtocolError, ValueError, IndexError, struct.error):
        return 0, []
    weight = roots(nodes)
    if at != len(octets) or weight is None:
        return 0, []
    given["headers"] = {name: headers[name] for name in headers if name != TREE} or None
    return weight, nodes


def roots(nodes):
    """How many of the nodes are within no other one; None: their weights do not fit, or are more than both drafts can say."""
    left: list = []
    count = 0
    for weight, _, _ in nodes:
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        else:
            count += 1
        left.append(weight)
        if len(left) > LEVELS_MAX + 1 or weight > 255:
            return None
    return None if count > 255 or [each for each in left if each] else count


def largest(session, frames):
    """Octets of the largest payload among whole frames."""
    most = at = 0
    while at < len(frames):
        _, _, head, size = session.framing.head(frames, at, len(frames))
        most = max(most, size)
        at += head + size + 1
    return most


def frames_of(session, class_id, number_, nodes):
    """The frames of contents within another one."""
    parts, bodies = [], []  # bodies: [contents to come, body] of those whose body waits for them
    for weight, given, body in nodes:
        headers = given.get("headers") or {}
        name = headers.get(DESTINATION)
        if isinstance(name, (str, bytes)):
            given = dict(given, headers=dict(headers), destination=name)
            del given["headers"][DESTINATION]
            given["headers"] = given["headers"] or None
        parts.append(session.frame(2, number_, header_out(session, class_id, weight, len(body), given)))
        bodies.append([weight, body])
        while bodies and not bodies[-1][0]:
            body = bodies.pop()[1]
            size = max(session.frame_size_max - session.framing.overhead, 1)
            parts += [session.frame(3, number_, body[at : at + size]) for at in range(0, len(body), size)]
            if bodies:
                bodies[-1][0] -= 1
    return b"".join(parts)
