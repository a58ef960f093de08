"""A link that copies a queue's messages and removes none (section 3.5.3, distribution-mode copy): a browser.

It is no consumer. It goes through what is ready in the queue, in the queue's order, and remembers how far it has come by positions, one for
each priority; what comes to the queue later it gets as time passes. What is delivered to others, or comes back to a place that it has
passed, it does not see; nor what a queue keeps beyond memory, or more than STEPS_MAX messages behind the head. Its receiver's outcomes
change nothing.
"""

from ..access.permissions import READ, check
from ..errors import CONTENT_TOO_LARGE
from ..memory import hot, layout, serial
from ..queue.turns import is_overdue
from ..shim import const
from . import addresses, dispositions, filters, link_out
from .conditions import INVALID_FIELD, LinkError
from .link import SETTLED, Link
from .link_in import text_of

if False:  # for the type checker alone
    from typing import Any

STEPS_MAX = const(16384)  # messages that one search passes by
LOOKS_MAX = const(64)  # messages that a filter reads, and deliveries, before others have their turn


def kind_of(fields, broker):
    """The class of a link that wants to copy a queue, by its attach; None: it is another link."""
    source = fields["source"]
    if not fields["role"] or not isinstance(source, tuple) or source[0] != "source" or source[1]["distribution-mode"] != "copy":
        return None
    queue = broker.queues.get(name_of(source[1]))
    return None if queue is None or queue.is_stream else BrowsingLink


def name_of(given):
    """The name of the queue that a source's address stands for, or None."""
    address = given["address"]
    if not isinstance(address, str) or given["dynamic"]:
        return None
    node = addresses.parsed(address, given["capabilities"])
    return node[1] if node is not None and node[0] in (addresses.QUEUE, addresses.MADE, addresses.NAME) else None


class BrowsingLink(Link):
    """A link that browses a classic queue: it copies messages and settles none in the queue."""

    role = True  # the peer's: receiver

    def __init__(self, session, fields):
        Link.__init__(self, session, fields)
        self.settled = fields["snd-settle-mode"] == SETTLED
        self.size_max = fields["max-message-size"] or 0  # 0: any
        self.queue: "Any" = None
        self.passed: "dict" = {}  # level of priority -> the position that it has come to
        self.newest = layout.NONE  # the queue's next position when it had seen all
        self.fits: "Any" = None  # a function of the broker and a message, where there are filters

    def open(self, fields):
        """The queue (section 2.6.3)."""
        given = dict(fields["source"][1])
        text_of(given["address"])
        name = name_of(given)
        check(self.broker, self.protocol.connection.user, READ, "queue", name)
        self.queue = self.broker.topology.queue(name, self.protocol.connection)
        filters.charge(self.broker, given["filter"])
        taken = filters.read_set(given["filter"], False, False, self.broker.seconds + layout.EPOCH)
        self.protocol.places.reserve(self, taken.size)
        self.fits = taken.fits if taken.tests else None
        given["filter"] = taken.echo or None
        given["dynamic-node-properties"] = None  # of a node that is not made for the link (section 3.5.3)
        given["outcomes"] = link_out.SYMBOLS
        given["default-outcome"] = ("released", {})
        self.source, self.target = ("source", given), fields["target"]
        return self.steal()

    def flow(self, fields):
        """The receiver's state (section 2.6.7): with credit it gets the ready messages, now and as time passes."""
        if fields["link-credit"] is not None:
            self.credit = self.granted(fields)
        self.drain = fields["drain"]
        self.protocol.drains(self)
        if fields["echo"]:
            self.session.say_flow(self)

    def drained(self):
        """Deliver what is there; true when there is no credit left for more (Protocol.drains looks again while there is)."""
        if self.state == "attached" and self.is_gone():
            self.step("error", "resource-deleted", "the queue '%s' was deleted" % self.queue.name)
        if self.state != "attached":
            return True
        if self.credit and self.go_on() and self.drain:
            self.delivery_count = serial.after(self.delivery_count, self.credit)
            self.credit = 0
        if self.drain and not self.credit:
            self.session.say_flow(self)
        return not self.credit

    def put_flow(self, fields):
        """Put the link's state into a flow, with drain as its receiver said it last (section 2.7.4)."""
        Link.put_flow(self, fields)
        fields["drain"] = self.drain

    def is_gone(self):
        """True when the queue was deleted."""
        return self.broker.queues.get(self.queue.name) is not self.queue

    def go_on(self):
        """Deliver messages from where it has come to; true when it has seen all that is there."""
        tables, queue = self.broker.tables, self.queue
        newest = tables.queues[queue.handle + layout.QUEUE_POSITION]
        if newest == self.newest:
            return True  # nothing has come since it saw all
        if is_overdue(queue):
            self.broker.activate(queue)
            return False
        if self.protocol.searching <= 0:
            return False
        left = tables.engine.left
        is_done, steps, looked_at = self.search()
        most = tables.engine.deliveries
        self.protocol.searching -= max(left - tables.engine.left, most * looked_at // LOOKS_MAX) + most * steps // STEPS_MAX + 1
        if is_done:
            self.newest = newest
        return is_done

    def search(self):
        """As `go_on`, in one piece: (true when it has seen all, messages that it has passed by, messages that it has read)."""
        tables, queue = self.broker.tables, self.queue
        entries, looked_at, steps = tables.entries, 0, 0
        entry = queue.head()
        enough = tables.engine.left - tables.engine.deliveries  # a filter charges its work there
        while entry != layout.NONE and steps < STEPS_MAX:
            steps += 1
            level, position = entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL, entries[entry + layout.ENTRY_POSITION]
            if not self.has_passed(level, position):
                if not self.credit or looked_at == LOOKS_MAX or tables.engine.left <= enough or self.session.session.replies:
                    return False, steps, looked_at
                looked_at += 1
                message = entries[entry + layout.ENTRY_MESSAGE]
                if self.wants(message):
                    if not self.deliver(message, entry):
                        return False, steps, looked_at
                self.passed[level] = position
            entry = entries[entry + layout.ENTRY_NEXT]
        return True, steps, looked_at

    def wants(self, message):
        """True for a message that passes the filters and has its body itself."""
        broker = self.broker
        return (broker.contents is None or broker.contents.has_body(message)) and (self.fits is None or self.fits(broker, message))

    def has_passed(self, level, position):
        """True for a place that it has come by; positions go around at 30 bits."""
        return level in self.passed and (self.passed[level] - position) & layout.MASK <= layout.MASK >> 1

    def deliver(self, message, entry):
        """Write one delivery; false when there is no room for it, or it ends the link."""
        session, tables = self.session, self.broker.tables
        lead = link_out.lead_of(self.broker, self.queue, entry)
        size = len(lead) + tables.messages[message + layout.MESSAGE_BODY]
        if 0 < self.size_max < size:
            self.step("error", CONTENT_TOO_LARGE, "a message of %d octets; max-message-size of the link is %d" % (size, self.size_max))
            return False
        if not session.may_send() or not link_out.has_room(session, len(lead), size - len(lead)):
            return False
        hot.next_number(tables.channels, session.handle + layout.CHANNEL_TAG)
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
        self.delivery_count = serial.after(self.delivery_count, 1)
        self.credit -= 1
        number = dispositions.tail_number(session)
        link_out.write(self, message, number, lead, (number, b"", False))
        return True

    def transfer(self, fields, octets, at, end):
        """A receiver does not send."""
        raise LinkError(INVALID_FIELD, "a transfer on link '%s', whose sender is this broker" % self.name[:80])

    def give_back(self):
        """A half-written delivery ends here."""
        if self.session.outgoing.link is self:
            self.session.outgoing.abandon()
            self.session.wake()
        return True
