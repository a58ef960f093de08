"""A subscription with acquire-mode not-acquired: it is sent a queue's messages and removes none; message.acquire makes some its own.

It is no consumer. It goes through what is ready in the queue, in the queue's order, and remembers how far it has come by positions, one for
each priority; what comes to the queue later it gets as time passes. What is delivered to others, or comes back to a place that it has
passed, it does not see; nor what a queue keeps beyond memory, or more than STEPS_MAX messages behind the head.
"""

from ..memory import hot, layout, serial
from ..parts import needed
from ..queue.turns import is_overdue
from ..shim import const
from . import convert, numbers
from .ranges import Ranges, ascending
from .subscription import ENDLESS, RUNS_MAX, Subscription, body_size, has_room, pieces_of, write

STEPS_MAX = const(16384)  # messages that one search passes by
LOOKS_MAX = const(64)  # messages that a selector reads, and deliveries, before others have their turn
BROWSED_MAX = const(1024)  # messages of a session that it was sent and may acquire


class Browsing(Subscription):
    """One such subscription."""

    def __init__(self, session, destination, accept_none, queue, fits):
        Subscription.__init__(self, session, destination, accept_none, True)
        self.queue = queue
        self.fits = fits  # a function of the broker and a message, or None
        self.is_exclusive = False  # its queue has no other subscription meanwhile
        self.passed: "dict" = {}  # level of priority -> the position that it has come to
        self.newest = layout.NONE  # the queue's next position when it had seen all

    def tell_broker(self):
        """It has credit, perhaps: it is looked at now and as time passes."""
        browsing = self.session.session.browsing
        if self.messages and self.octets and self not in browsing:
            browsing.append(self)

    def let_others(self):
        """It ends: others may subscribe."""
        if self.is_exclusive:
            self.queue.exclusive_consumer = False

    def is_gone(self):
        """True when it was cancelled, or its session or its queue has gone."""
        session = self.session
        if session.closing or session.subscriptions.get(self.destination) is not self:
            return True
        if self.broker.queues.get(self.queue.name) is self.queue:
            return False
        session.queue_gone(self.destination, self.queue.name)
        return True

    def go_on(self):
        """Deliver messages from where it has come to; true when it has seen all that is there, or has no credit."""
        tables, queue = self.broker.tables, self.queue
        newest = tables.queues[queue.handle + layout.QUEUE_POSITION]
        if newest == self.newest or not (self.messages and self.octets):
            return True
        if is_overdue(queue):
            self.broker.activate(queue)
            return False
        is_done = self.search()
        if is_done and self.messages and self.octets:
            self.newest = newest
        return is_done

    def search(self):
        """As `go_on`, in one piece."""
        tables, session = self.broker.tables, self.session
        entries, looked_at, steps = tables.entries, 0, 0
        entry = self.queue.head()
        while entry != layout.NONE:
            steps += 1
            level, position = entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL, entries[entry + layout.ENTRY_POSITION]
            if not self.has_passed(level, position):
                if not (self.messages and self.octets):
                    return True
                if looked_at == LOOKS_MAX or steps > STEPS_MAX or is_busy(session):
                    return False
                looked_at += 1
                message = entries[entry + layout.ENTRY_MESSAGE]
                if self.wants(message) and not self.deliver(entry, message):
                    return False
                self.passed[level] = position
            entry = entries[entry + layout.ENTRY_NEXT]
        return True

    def wants(self, message):
        """True for a message that passes the selector and has its body itself."""
        broker = self.broker
        return (broker.contents is None or broker.contents.has_body(message)) and (self.fits is None or self.fits(broker, message))

    def has_passed(self, level, position):
        """True for a place that it has come by; positions go around at 30 bits."""
        return level in self.passed and (self.passed[level] - position) & layout.MASK <= layout.MASK >> 1

    def deliver(self, entry, message):
        """Write one delivery; false when there is no room or no credit for it."""
        session, tables = self.session, self.broker.tables
        header = convert.header_segment(self.broker, message, bool(tables.entries[entry + layout.ENTRY_REDELIVERED] & 255), self.more)
        pieces = pieces_of(self.broker, message)
        size = len(header) + body_size(tables, message, pieces)
        if len(session.sent) >= RUNS_MAX or not has_room(session, self, len(header), size):
            return False
        if self.octets != ENDLESS and size > self.octets:
            return False
        session.say_point()
        id_ = numbers.tail(session)
        session.count()
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
        tables.entries[entry + layout.ENTRY_TAG] = layout.NONE  # from a delivery before, perhaps: `acquire` sees by it that nobody has it
        session.browsed[id_] = (self.queue, entry, tables.entries[entry + layout.ENTRY_POSITION])
        if len(session.browsed) > BROWSED_MAX:
            del session.browsed[next(iter(session.browsed))]
        write(self, message, header, pieces)
        self.used(size)
        return True


def is_busy(session):
    """True while something goes before deliveries."""
    return session.session.replies or session.session.outgoing.active() or session.replay_at is not None


def look(protocol):
    """Look again at the subscriptions that browse and have credit."""
    for browsing in list(protocol.browsing):
        if browsing.is_gone() or not (browsing.messages and browsing.octets):
            protocol.browsing.remove(browsing)
        else:
            browsing.go_on()


def acquire(session, ranges):
    """message.acquire: the ids of those of these transfers that are acquired now, as ranges. Those whose messages others have, or have had,
    are not."""
    acquired, asked = Ranges(), ascending(ranges)
    for id_ in list(session.browsed):
        if not asked.has(id_):
            continue
        queue, entry, position = session.browsed.pop(id_)
        broker = session.broker
        is_there = broker.queues.get(queue.name) is queue
        if is_there and needed("queue.wishes", "message.acquire").is_ready(broker, queue, entry, position):
            queue.unlink(entry)
            hold(session, entry, id_)
            acquired.add(id_, id_)
    return acquired.runs


def hold(session, entry, id_):
    """Put an entry that is in no list on the session's unsettled list, at the place that the id of its transfer has there."""
    tables = session.broker.tables
    entries, channels, handle = tables.entries, tables.channels, session.handle
    hot.hold(entries, tables.queues, channels, handle, entry, layout.GOT)
    entries[entry + layout.ENTRY_TAG] = (id_ + 1) & layout.MASK
    before = entries[entry + layout.ENTRY_PREVIOUS]
    behind = layout.NONE
    while before != layout.NONE and serial.distance(numbers.of(session, before), id_) < 0:
        behind, before = before, entries[before + layout.ENTRY_PREVIOUS]
    if behind == layout.NONE:
        return
    last = entries[entry + layout.ENTRY_PREVIOUS]
    entries[last + layout.ENTRY_NEXT] = layout.NONE
    channels[handle + layout.CHANNEL_UNSETTLED_TAIL] = last
    entries[entry + layout.ENTRY_PREVIOUS], entries[entry + layout.ENTRY_NEXT] = before, behind
    entries[behind + layout.ENTRY_PREVIOUS] = entry
    if before == layout.NONE:
        channels[handle + layout.CHANNEL_UNSETTLED_HEAD] = entry
    else:
        entries[before + layout.ENTRY_NEXT] = entry
