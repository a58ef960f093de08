"""A file consumer: each message is staged at its client before it is delivered. One after the other in a session: file.stage does not say
which content it has.

    file.open ->   <- file.open-ok (what the client has)   file.stage, with the rest ->   file.deliver ->

Its identifier is the same whenever it is delivered, for what was published with file.publish and is larger than a message: so a client
whose connection was lost goes on where it stopped. Another message has the same one in a run of the broker, and none of it has another's:
a client that has a part of one goes on with that one alone.
"""

from ..broker import crossing
from ..limits import REPLY_ROOM
from ..memory import layout
from ..message import reading
from ..message.formats import AMQP_0_10, NUMBER, STORED
from ..outcomes import ACCEPTED
from ..queue.turns import charge_made, is_overdue
from ..staging.content import Damaged
from ..staging.contents import name_of
from . import convert, file_content, frame, numbers, structs
from .outgoing import Outgoing
from .subscription import Subscription

NAMED_BY = 4096  # octets of an ordinary message that its identifier is made of
OPEN_ROOM = 128  # octets of a send buffer for file.open


class Delivery:
    """A delivery whose content the client has not been sent yet."""

    def __init__(self, made, tag, entry, message, size, token, identifier):
        self.made = made  # the FileConsumer
        self.tag = tag
        self.entry = entry
        self.message = message
        self.size = size
        self.token = token  # of a staged content, or None
        self.identifier = identifier


class FileConsumer(Subscription):
    """One consumer of class file. Its credit is the session's window (file_class.Files)."""

    lasts = False

    def __init__(self, session, tag, no_ack):
        Subscription.__init__(self, session, tag, False)
        self.no_ack = no_ack

    def deliver(self, most, before):
        """Begin the next delivery, if there can be one now: how many."""
        session, broker, queue = self.session, self.broker, self.consumer.queue
        files, tables = session.files, broker.tables
        while not session.closing and files.out is None and not is_overdue(queue):
            entry = queue.head()
            if entry == layout.NONE:
                break
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            size, token, is_there = content_of(broker, message)
            if not self.no_ack and not files.has_window(size):  # "The prefetch-size is ignored if the no-ack option is set"
                break
            if session.connection.send.room() < OPEN_ROOM + REPLY_ROOM:
                session.connection.send.starve(self.consumer, before)
                break
            queue.pop()
            if not is_there:
                broker.guard.rescue(queue, entry, Damaged("the staged content that a message refers to is lost"))
                continue
            identifier = token or identifier_of(broker, message)
            session.command("file_open", {"identifier": identifier, "content_size": size})
            broker.consumers.hold(self.consumer, entry)
            tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
            files.out = Delivery(self, numbers.tail(session), entry, message, size, token, identifier)
            charge_made(broker, queue)
            return 1
        return 0


def identifier_of(broker, message):
    """The identifier of an ordinary message: of where it is, when it came, and how it begins."""
    tables = broker.tables
    size = tables.size_of(message)
    said = "%d %d %d " % (message, tables.messages[message + layout.MESSAGE_ARRIVED], size)
    return "message-" + name_of(broker, said.encode("utf-8") + bytes(tables.octets(message, 0, min(size, NAMED_BY))))


def content_of(broker, message):
    """(octets, token or None, true when it can be read) of the content of a message."""
    tables = broker.tables
    kind = tables.messages[message + layout.MESSAGE_KIND] & NUMBER
    if kind == STORED:
        contents = broker.contents
        size, token = contents.reference_of(message)
        content = contents.by_token.get(token)
        return size, token, content is not None and content.is_whole and not content.is_damaged
    if kind in (0, AMQP_0_10):
        return tables.messages[message + layout.MESSAGE_BODY], None, True
    pieces = crossing.pieces(tables, message)
    size = tables.messages[message + layout.MESSAGE_BODY] if pieces is None else sum([each[1] for each in pieces])
    return size, None, True


def go_on(session, files, staged):
    """The client has `staged` octets: send the rest, then the delivery; false when that must wait."""
    protocol, broker, out = session.session, session.broker, files.out
    if protocol.replies or protocol.outgoing.active():
        return False
    if numbers.entry_from(session, out.tag - 1, out.tag - 1) != out.entry:
        files.out = None  # its queue was deleted, or the client has settled it as a transfer: the message is another's by now
        files.feed()
        return True
    tables = broker.tables
    redelivered = bool(tables.entries[out.entry + layout.ENTRY_REDELIVERED] & 255)
    exchange, key = reading.names_of(tables, out.message)
    header = file_content.header_of(file_content.FILE, file_content.told(broker, out.message))
    send_content(session, out, staged, header)
    given = {
        "consumer_tag": out.made.destination,
        "delivery_tag": out.tag,
        "redelivered": redelivered,
        "exchange": exchange,
        "routing_key": convert.text_of(key),
        "identifier": out.identifier,
    }
    session.command("file_deliver", given)
    files.out = None
    if out.made.no_ack:
        broker.consumers.settle(session, out.entry, out.entry, ACCEPTED)
    else:
        files.delivered.append((out.tag, out.size))
    files.feed()
    return True


def send_content(session, out, staged, header):
    """Write file.stage with the octets of a content from `staged` on, or begin to."""
    protocol, number, frame_max = session.session, session.number, session.session.frame_max_out
    session.say_point()
    session.count()
    left = out.size - staged
    lead = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, number, structs.write_command("file_stage", {}), frame_max)
    lead += frame.segment(0 if left else frame.LAST_SEGMENT, frame.HEADER, number, header, frame_max)
    pieces = [(staged, left)]
    content = None
    if out.token is not None:
        content = session.broker.contents.by_token[out.token]
    else:
        given = crossing.pieces(session.broker.tables, out.message) if foreign(session.broker, out.message) else None
        if given is not None:
            pieces = behind(given, staged)
    if not isinstance(protocol.outgoing, Sender):
        protocol.outgoing = Sender()
    protocol.outgoing.send(protocol, session, out.message, lead, pieces, content)


def foreign(broker, message):
    """True for a message whose body may be more than payload."""
    return broker.tables.messages[message + layout.MESSAGE_KIND] & NUMBER not in (0, AMQP_0_10, STORED)


def behind(pieces, passed):
    """Pieces of a body without their first octets."""
    left = []
    for at, size in pieces:
        skipped = min(passed, size)
        passed -= skipped
        if size > skipped:
            left.append((at + skipped, size - skipped))
    return left


class Sender(Outgoing):
    """An Outgoing whose body may be a staged content."""

    content = None

    def send(self, protocol, session, message, lead, pieces, content):
        """Begin file.stage; `pieces`: (position, octets) of the message's body, or of `content` where it is not None."""
        if content is None:
            return self.start(protocol, session, message, lead, pieces)
        tables = protocol.broker.tables
        tables.messages[message + layout.MESSAGE_REFERENCES] += 1
        self.session, self.message, self.lead, self.is_first = session, message, lead, True
        self.pieces, self.content = pieces, content
        self.left = pieces[0][1]
        return self.go_on(protocol)

    def put(self, protocol, size):
        """Write the next `size` octets of the body."""
        if self.content is None:
            Outgoing.put(self, protocol, size)
            return
        contents, send = protocol.broker.contents, protocol.send
        self.left -= size
        at, length = self.pieces[0]
        self.pieces = [(at + size, length - size)]
        while size:
            try:
                octets = contents.read(self.content, at, size)
            except (Damaged, OSError) as error:
                protocol.broker.log("a staged content cannot be read: %s" % (error,))
                raise
            send.write(octets)
            at += len(octets)
            size -= len(octets)

    def abandon(self, protocol, session=None):
        """Let go of the message."""
        if self.session is not None and (session is None or session is self.session):
            self.content = None
        Outgoing.abandon(self, protocol, session)
