"""A consumer of 0-8 or 0-9 that browses: Qpid's argument x-filter-no-consume. It is sent a queue's messages, and removes none.

It is no consumer of the broker. It goes through what is ready in the queue, in the queue's order, and remembers by positions how far it has
come, one for each level of priority; what comes to the queue later it gets as time passes. With x-filter-auto-close it ends itself when it
has seen all that is there: basic.cancel-ok. What a queue keeps beyond memory it does not see, nor more than STEPS_MAX messages behind the
head.
"""

from .. import limits
from ..errors import NOT_ALLOWED, NOT_IMPLEMENTED, PRECONDITION_FAILED, RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..queue.turns import is_overdue
from ..shim import const
from . import deliver, field_table, frame

STEPS_MAX = const(16384)  # messages that one search passes by
LOOKS_MAX = const(64)  # messages that a selector reads, and deliveries, before others have their turn
BROWSERS_MAX = const(64)  # of one connection
STOPPED = const(-1)  # layout.CHANNEL_PREFETCH of a channel that channel.flow has stopped

NO_CONSUME, AUTO_CLOSE = "x-filter-no-consume", "x-filter-auto-close"


class Browser:
    """One of them. `fits`: a function of the broker and a message, or None; `ends`: when it has seen all."""

    def __init__(self, channel, tag, queue, fits, ends):
        self.session = channel.session
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.fits = fits
        self.ends = ends
        self.passed = {}  # level of priority -> the position that it has come to
        self.newest = layout.NONE  # the queue's next position when it had seen all

    def go_on(self):
        """Deliver messages from where it has come to; true when it is over."""
        session, queue, broker = self.session, self.queue, self.session.broker
        if self.channel.closing:
            return True
        if broker.queues.get(queue.name) is not queue:
            session.cancelled(self, "not-found")
            return True
        newest = broker.tables.queues[queue.handle + layout.QUEUE_POSITION]
        if is_overdue(queue):
            broker.activate(queue)
        elif newest != self.newest and broker.tables.channels[self.channel.handle + layout.CHANNEL_PREFETCH] != STOPPED and self.search():
            self.newest = newest
        if self.newest == layout.NONE or not self.ends:
            return False
        session.reply(self.channel.number, "basic_cancel_ok", (self.tag,))
        return True

    def search(self):
        """Deliver what is new; true when all that is there was seen."""
        broker, session = self.session.broker, self.session
        entries, looked_at, steps = broker.tables.entries, 0, 0
        entry = self.queue.head()
        while entry != layout.NONE:
            steps += 1
            level, position = entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL, entries[entry + layout.ENTRY_POSITION]
            if level not in self.passed or (self.passed[level] - position) & layout.MASK > layout.MASK >> 1:
                looked_at += 1
                if looked_at > LOOKS_MAX or steps > STEPS_MAX or session.outgoing.active() or session.replies:
                    return False
                message = entries[entry + layout.ENTRY_MESSAGE]
                has_body = broker.contents is None or broker.contents.has_body(message)
                if has_body and (self.fits is None or self.fits(broker, message)) and not self.deliver(entry, message):
                    return False
                self.passed[level] = position
            entry = entries[entry + layout.ENTRY_NEXT]
        return True

    def deliver(self, entry, message):
        """Write one delivery; false when there is no room for its method and header."""
        session, tables, number = self.session, self.session.broker.tables, self.channel.number
        header = deliver.reworked_header(session, number, message)
        size = deliver.header_size(tables, message, header)
        if deliver.refuses_header(session, self, size, "the next message"):
            return False
        payload = deliver.DELIVER + field_table.shortstr(self.tag)
        if len(payload) + 18 + tables.messages[message + layout.MESSAGE_ROUTE] + size > session.send.room() - limits.REPLY_ROOM:
            session.send.busy = True
            return False
        redelivered = bytes((1 if tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 else 0,))
        payload += deliver.count_tag(tables, self.channel) + redelivered + tables.route_of(message)
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
        session.outgoing.start(session, number, message, frame.encode(frame.METHOD, number, payload), header)
        return True


def begin(session, channel, queue, tag, no_ack, fits, ends):
    """A browser; what is there goes out at the end of `process`."""
    if not no_ack:
        raise ProtocolError(NOT_IMPLEMENTED, "who browses (%s) acknowledges nothing: no-ack has to be true" % NO_CONSUME)
    if queue.is_stream:
        raise ProtocolError(PRECONDITION_FAILED, "%s on a stream, which no consumer empties" % NO_CONSUME)
    if tag in channel.consumers or of(session, channel, tag):
        raise ProtocolError(NOT_ALLOWED, "attempt to reuse consumer tag '%s'" % tag)
    if len(session.browsers) >= BROWSERS_MAX:
        raise ProtocolError(RESOURCE_ERROR, "a connection browses %d queues at most" % BROWSERS_MAX)
    session.browsers = session.browsers + [Browser(channel, tag, queue, fits, ends)]


def of(session, channel, tag):
    """The browsers of a channel with this tag: one, or none."""
    return [each for each in session.browsers if each.channel is channel and each.tag == tag]


def forget(session, browsers):
    """They are over."""
    session.browsers = [each for each in session.browsers if each not in browsers]


def look(session):
    """Have all go on, until one fills the send buffer."""
    for browser in session.browsers:
        if browser.go_on():
            forget(session, [browser])
