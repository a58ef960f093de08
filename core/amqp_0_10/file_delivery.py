"""A file consumer: each message is staged at its client before it is delivered (core/staging/delivering.py). One after the other in a
session: file.stage does not say which content it has.
"""

from ..memory import layout
from ..message import reading
from ..outcomes import ACCEPTED
from ..staging import delivering, publishing
from ..staging.content import Damaged
from . import convert, file_content, frame, numbers, structs
from .outgoing import Outgoing
from .subscription import Subscription


class FileConsumer(Subscription):
    """One consumer of class file. Its credit is the session's window (file_class.Files)."""

    lasts = False

    def __init__(self, session, tag, no_ack):
        Subscription.__init__(self, session, tag, False)
        self.no_ack = no_ack

    @property
    def send(self):
        """The send buffer."""
        return self.session.connection.send

    def is_closing(self):
        """True when no delivery may begin."""
        return self.session.closing

    def has_window(self, size):
        """True when a delivery of `size` octets may be sent in advance."""
        return self.session.files.has_window(size)

    def open(self, identifier, size):
        """Write file.open."""
        self.session.command("file_open", {"identifier": identifier, "content_size": size})

    def hold(self, entry):
        """Hold a delivery: its tag."""
        self.broker.consumers.hold(self.consumer, entry)
        return numbers.tail(self.session)

    def deliver(self, most, before):
        """Begin the next delivery, if there can be one now: how many."""
        return delivering.begin_next(self, self.session.files, before)


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
    header = file_content.header_of(file_content.FILE, publishing.properties_of(broker, out.message))
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
    content = None
    if out.token is not None:
        content = session.broker.contents.by_token[out.token]
        pieces = [(staged, left)]
    else:
        pieces = delivering.pieces_of(session.broker, out.message, staged) or [(staged, 0)]
    if not isinstance(protocol.outgoing, Sender):
        protocol.outgoing = Sender()
    protocol.outgoing.send(protocol, session, out.message, lead, pieces, content)


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
