"""Sessions and channels of the versions that have the classes file and stream: AMQP 0-8, 0-9 and the drafts of 2005.

What their peers stage and publish comes in as the contents of class basic do, and lies in core/staging until it is published. What they
are sent: file_delivery.py and stream_class.py. A content that goes back is written here, with the method of the class it came with.
"""

from .. import states
from ..broker import crossing
from ..errors import ProtocolError
from ..limits import REPLY_ROOM
from ..message import reading
from ..outcomes import NO_ROOM, NOT_YET, TAKEN
from ..staging import properties as shared
from ..staging import publishing
from ..staging.contents import contents_of
from . import older_actions, properties
from .channel import Channel
from .foreign import Lead
from .older_states import OLDER_CHANNEL
from .session import Session

if False:  # for the type checker alone
    from typing import Any

NO_ROUTE, NO_CONSUMERS = 312, 313  # reply codes of returns
LEAST_ROOM = 512  # octets beside those for replies, so that a return begins


class FilingChannel(Channel):
    """A channel, with what it has of the two classes. `class_id`: of its last content."""

    class_id = 60
    is_immediate = False
    files: "Any" = None  # file_class.Files
    file: "Any" = None  # the staged Content that file.publish publishes
    classes: "Any" = None  # message -> class of a content that is mandatory, until it is known whether it goes back
    readers: "dict" = {}  # consumer's tag -> file_delivery.FileReader or stream_class.StreamReader
    stream_rate = 0  # octets a second (stream.qos)

    def files_of(self):
        """The account of class file."""
        if self.files is None:
            from .file_class import Files

            self.files = Files(self)
        return self.files

    def is_staging(self):
        """True while the body of file.stage comes."""
        return self.files is not None and self.files.properties is not None

    def append(self, octets, at, size):
        """`size` octets of the body from `at`."""
        if not self.is_staging():
            return Channel.append(self, octets, at, size)
        self.body_left -= size
        self.session.content_moved = self.session.broker.now
        return contents_of(self.session.broker).append(self.files.staging, self, octets, at, size)

    def complete(self):
        """The content is whole: as core/broker/incoming.py."""
        if self.is_staging():
            return self.files.finish()
        session = self.session
        broker, message = session.broker, self.message
        if self.is_immediate and self.transaction is None and publishing.is_unread(broker, self):
            session.goes_back(self, message, self.class_id, NO_CONSUMERS, "no consumer is there")
            self.end()
            self.published()
            return TAKEN
        if self.mandatory:
            self.classes = dict(self.classes or {})
            self.classes[message] = self.class_id
        outcome = Channel.complete(self)
        if outcome not in (NO_ROOM, NOT_YET):
            if self.transaction is None:
                self.classes = None
            self.published()
        return outcome

    def published(self):
        """The publish is done."""
        self.is_immediate = False
        staged, self.file = self.file, None
        if staged is not None:
            publishing.ended(self.session.broker, staged)

    def let_go(self):
        """The channel ends."""
        self.classes = self.file = None
        if self.files is not None:
            self.files.stop_staging()
            self.files.out = None
            if self.session.broker.contents is not None:  # it makes none now: the disk may refuse
                self.session.broker.contents.let_go(self)
            self.files = None
        self.readers = {}


class Filing(Session):
    """One connection. `file_id`, `stream_id`: the numbers of the two classes."""

    channel_class = FilingChannel
    file_id = 70
    stream_id = 80
    returns: "list" = []  # (channel, message, class, reply code, reply text) of contents that go back
    paused: "list" = []  # StreamReaders whose next packet waits for their rate
    file_window = (0, 0)  # octets and count of file.qos for the whole connection

    # In

    def step_of(self, channel, input_, *given):
        """Run a channel's action for an input, by the table OLDER_CHANNEL. Returns the action's answer."""
        return states.step(channel, OLDER_CHANNEL, older_actions, input_, self, channel, *given)

    def body_piece(self):
        """As of 0-9-1; the octets of file.stage wait while the store writes those before them."""
        channel = self.body_channel
        size = min(self.body_left, self.receive.end - self.receive.start)
        if size and channel is not None and channel.state == "body" and channel.is_staging():
            try:
                if not contents_of(self.broker).may_append(channel.files.staging, channel, size):
                    self.waiting = True
                    if self.connection.has_turn:
                        self.wait_for_room()
                    return False
            except ProtocolError as error:
                self.soft(channel, error)
        return Session.body_piece(self)

    # Out

    def properties_of_file(self, octets):
        """The properties of a message for what a client of these versions has staged."""
        return without_destination(octets)

    def header_frame(self, number, class_id, size, given):
        """The frame of a content header of class file or stream; `given`: properties by the names that families share."""
        raise NotImplementedError  # each subclass has its own

    def begin_content(self, number, message, frames, body):
        """Write whole frames (octets), then a body (foreign.Lead), now or as the peer reads: false when there is no room for the frames
        now, and nothing has changed."""
        if len(frames) > self.send.room() - REPLY_ROOM:
            return False
        self.send.write(frames)
        if len(body):
            self.outgoing.start_chain(self, number, message, body, 0)
        return True

    def content_out(self, number, class_id, message):
        """(frames of its header, its body) of a message as a content of class file or stream."""
        pieces = crossing.pieces(self.broker.tables, message)
        body = Lead(self.broker.tables, message, pieces)
        given = shared.fields_of(publishing.properties_of(self.broker, message), class_id == self.file_id)
        return self.header_frame(number, class_id, len(body), given), body

    def deliver(self, consumer, most, before=0):
        """Write up to `most` deliveries for a consumer beside `before` in this turn: how many."""
        reader = consumer.channel.readers.get(consumer.tag)
        if reader is None or reader.consumer is not consumer:
            return self.deliver_messages(consumer, most, before)
        if self.state == "closing":
            return 0
        if self.outgoing.active() or self.replies or self.settling >= 0 or self.returns:
            self.send.starve(consumer, before)
            return 0
        try:
            return reader.deliver(most, before)
        except Exception as error:  # ours: this connection ends, the others go on
            self.connection.broke(error)
            return 0

    def deliver_messages(self, consumer, most, before):
        """As `deliver`, for consumers of class basic."""
        return Session.deliver(self, consumer, most, before)

    def returned(self, channel, message, condition):
        """A mandatory content has no route: it goes back with the method of its class."""
        class_id = (channel.classes or {}).get(message, 60)
        if class_id == 60:
            Session.returned(self, channel, message, condition)
            return
        self.goes_back(channel, message, class_id, NO_ROUTE, "no queue takes the message")

    def goes_back(self, channel, message, class_id, code, text):
        """A content goes back, before what is written later; this session releases its message."""
        self.returns = self.returns + [(channel, message, class_id, code, text)]

    def flush(self):
        """Write the contents that go back as far as there is room, then what else waits."""
        self.outgoing.go_on(self)
        while self.returns and not self.outgoing.active():
            if self.send.room() < REPLY_ROOM + LEAST_ROOM and self.send.start != self.send.end:
                break
            channel, message, class_id, code, text = self.returns[0]
            if not channel.closing and self.state == "open" and not self.write_return(channel, message, class_id, code, text):
                break
            self.returns = self.returns[1:]
            self.broker.tables.release(message)
        if self.returns:
            self.send.busy = True
        else:
            Session.flush(self)

    def write(self, octets):
        """Write whole frames (bytes) in the order of replies, behind what goes back."""
        if self.returns:
            self.replies.append(octets)
            self.send.busy = True
        else:
            Session.write(self, octets)

    def write_return(self, channel, message, class_id, code, text):
        """Write file.return, whose content its sender has staged, or stream.return: false when there is no room now."""
        exchange, key = reading.names_of(self.broker.tables, message)
        name = "file_return" if class_id == self.file_id else "stream_return"
        method_frame = self.encoded(name, channel.number, (code, text, exchange, key))
        if class_id == self.file_id:
            given = shared.fields_of(publishing.properties_of(self.broker, message), True)
            header, body = self.header_frame(channel.number, class_id, 0, given), b""
        else:
            header, body = self.content_out(channel.number, class_id, message)
        return self.begin_content(channel.number, message, method_frame + header, body)

    def may_begin(self, number, octets, at):
        """As of 0-9-1; what goes back goes before the answer to a later method."""
        if self.returns:
            self.flush()
            if self.returns:
                return False
        return Session.may_begin(self, number, octets, at)

    # Time, and the end

    def tick(self):
        """As time passes, packets that wait for their rate are delivered."""
        due = Session.tick(self)
        for reader in self.paused:
            if reader.is_over() or reader.rate.fill():
                self.paused = [each for each in self.paused if each is not reader]
                if not reader.is_over():
                    self.broker.activate(reader.consumer.queue)
        return None if self.paused else due

    def lost(self):
        """The peer has closed."""
        for row in self.returns:
            self.broker.tables.release(row[1])
        self.returns, self.paused = [], []
        Session.lost(self)


def without_destination(octets):
    """The properties of class basic (octets) without the header of a destination."""
    if shared.DESTINATION.encode("utf-8") not in octets:
        return octets
    given = properties.decode_all(octets)
    headers = given.get("headers") or {}
    given["headers"] = {name: headers[name] for name in headers if name != shared.DESTINATION} or None
    return properties.encode({name: given[name] for name in given if given[name] is not None})
