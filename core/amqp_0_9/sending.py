"""Output of a 0-9-1 session: replies in their order, returns and confirms, deliveries, all through one send buffer.

Replies have room kept for them (limits.REPLY_ROOM). A content that does not fit continues, frame by frame, as the peer reads (outgoing.py);
meanwhile replies wait. Consumers without room for a delivery are served first once there is room.
"""

from ..errors import PRECONDITION_FAILED
from ..memory import layout
from ..outcomes import REFUSED, TAKEN
from . import deliver, method, outgoing, replies

if False:  # for the type checker alone
    from typing import Any
NO_ROUTE_CODE = 312  # 0-9-1 section 1.8.3.9: the reply code of basic.return


class Sending:
    """The half of a Session (session.py) that writes."""

    settling: "Any"
    shut_channel: "Any"
    capabilities: "Any"
    dialect: "Any"
    promised = 0  # the log's number that must be durable before the next replies leave
    starved = False  # there was no room for the last delivery

    def __init__(self, connection):
        self.connection = connection
        self.broker = connection.broker
        self.send = connection.send
        self.state = "start"  # of the connection: states.CONNECTION
        self.replies = []  # frames that wait for room, or until the changes that they promise are durable
        self.writing = []  # channels with confirms or returns to write
        self.outgoing = outgoing.Outgoing()

    def promise(self, number):
        """The replies to come say that what the log has up to record `number` is durable: they wait until it is."""
        self.promised = max(self.promised, number)

    @property
    def closing(self):
        """True once this side or the peer has said that the connection ends (contract.Protocol)."""
        return self.state == "closing"

    def reply(self, number, name, arguments):
        """Write a method frame, now or as soon as there is room and no content is half written."""
        self.write(self.encoded(name, number, arguments))

    def encoded(self, name, number, arguments):
        """A method frame of this side."""
        row = method.named(self.dialect.METHODS, name)
        return method.encode(row, number, arguments[: len(row[method.FIELDS])])

    def write(self, octets):
        """Write whole frames (bytes) in the order of replies."""
        if not self.keeps_promises() or self.replies or self.outgoing.active() or self.send.room() < len(octets):
            self.replies.append(octets)
            self.send.busy = True
        else:
            self.send.write(octets)

    def keeps_promises(self):
        """True when the changes that our replies promise are durable; else the journal resumes this session once they are."""
        journal = self.broker.journal
        if journal is None or journal.durable(self.promised):
            return True
        journal.wait_for(self)
        return False

    def returned(self, channel, message, condition):
        """A mandatory content has no route: return it; this session releases its message."""
        channel.returns.append((message, NO_ROUTE_CODE, "NO_ROUTE"))

    def answered(self, channel, outcome):
        """A content was accepted, returned or refused: confirm it in confirm mode."""
        channels = self.broker.tables.channels
        if channels[channel.handle + layout.CHANNEL_CONFIRM]:
            number = (channels[channel.handle + layout.CHANNEL_PUBLISHED] + 1) & layout.MASK
            channels[channel.handle + layout.CHANNEL_PUBLISHED] = number
            if number == 0:
                channels[channel.handle + layout.CHANNEL_PUBLISHED_HIGH] += 1
            channel.promises.decided(number, REFUSED if outcome == REFUSED else TAKEN)
        elif not channel.returns:
            return
        self.wants_to_write(channel)

    def wants_to_write(self, channel):
        """A channel has confirms or returns to write."""
        if not channel.waits_to_write:
            channel.waits_to_write = True
            self.writing.append(channel)

    def flush(self):
        """Write waiting frames as far as possible; while a content is half written or replies wait, there are no deliveries."""
        outgoing = self.outgoing  # it is active where it has a message
        if outgoing.message != layout.NONE or self.replies or self.writing:
            self.write_waiting()
        self.send.busy = self.state == "closing" or outgoing.message != layout.NONE or len(self.replies) > 0 or self.settling >= 0

    def write_waiting(self):
        """Write in order: the content that is half written, replies, then returns and confirms."""
        if not self.outgoing.go_on(self):
            return
        while self.replies:
            if not self.keeps_promises() or self.send.room() < len(self.replies[0]):
                return
            self.send.write(self.replies.pop(0))
        at = 0
        while at < len(self.writing) and self.state != "closing":
            outcome = deliver.returns_and_confirms(self, self.writing[at])
            if outcome == deliver.NO_ROOM:
                return
            if outcome == deliver.NOT_YET:
                at += 1
            else:
                done = self.writing.pop(at)  # not assigned to as it comes: MicroPython makes a bound method then, on the heap
                done.waits_to_write = False

    def room(self):
        """The peer has read: continue writing, and activate the queues of our consumers."""
        self.flush()
        if self.outgoing.message == layout.NONE and self.settling < 0:
            self.send.feed()

    def deliver(self, consumer, most, before=0):
        """Write up to `most` deliveries for a consumer beside `before` in this turn: how many (0: no room, no credit, or nothing there)."""
        if self.state == "closing":
            return 0
        if self.outgoing.message != layout.NONE or self.replies or self.settling >= 0:
            self.send.starve(consumer, before)
            return 0
        try:
            self.starved = False
            count = deliver.deliver(self, consumer, most)
        except Exception as error:  # ours: this connection ends, the others go on
            self.connection.broke(error)
            return 0
        if self.starved:
            self.send.starve(consumer, count + before)
        return count

    def end_overtaken(self, consumer):
        """Retention has removed a strict reader's place in a stream: close its channel with the first offset left, or readable."""
        stream = consumer.queue
        self.closing_method = 0
        text = "retention went past consumer '%s': stream '%s' begins at offset %d now" % (consumer.tag, stream.name, stream.first_offset)
        if consumer.cursor_offset > stream.first_offset:
            text = "consumer '%s': what stream '%s' had before offset %d cannot be read any more" % (
                consumer.tag,
                stream.name,
                consumer.cursor_offset,
            )
        self.shut_channel(consumer.channel, 406, replies.reply_text(PRECONDITION_FAILED, text))

    def cancelled(self, consumer, condition):
        """The broker has ended a consumer (its queue is deleted): send basic.cancel to a client that announced to understand it."""
        if self.capabilities.get("consumer_cancel_notify") and not consumer.channel.closing and self.state != "closing":
            self.reply(consumer.channel.number, "basic_cancel", (consumer.tag, True))
