"""Messages that live only so long: x-message-ttl of the queue, the expiration property of the message (the shorter counts).

The queue checks only its head, as RabbitMQ's classic queues do: a message behind a longer-lived one expires when it reaches the head, and
is never delivered late. The deadline stands in the entry: milliseconds (wrapping), or, when it is more than three days away, minus a second
of the broker's uptime. So none follows the wall clock.
"""

from ...memory import layout
from ...message import reading
from ...shim import after
from .feature import Feature

FAR_MS = 1 << 28


EXPIRED_MAX = 1000  # expired messages that one turn drops before other queues have theirs


class Rule(Feature):
    """x-message-ttl; `ttl_ms` None: only messages' own expiration counts."""

    behind = False  # more expired messages at the head than one turn drops: none may be delivered

    def __init__(self, arguments):
        self.ttl_ms = arguments.get("x-message-ttl")

    def flat(self):
        """The flat form cannot write deadlines that are far away: this rule does."""
        return self.ttl_ms is None or self.ttl_ms < FAR_MS

    def pushed(self, broker, queue, message, entry):
        """Write the deadline of a message."""
        self.write_deadline(broker, message, entry, 0)

    def write_deadline(self, broker, message, entry, waited_ms):
        """As `pushed`, for a message that has waited before it came to the queue.

        Rule "lifetime": also keep_limits in publish.py and in publish.h; test_homes.py holds them together.
        """
        ttl = self.ttl_ms
        own = reading.expiration_of(broker.tables, message)
        if own is not None and (ttl is None or own < ttl):
            ttl = own
        moment = 0 if ttl is None else deadline(broker, max(ttl - waited_ms, -1))
        broker.tables.entries[entry + layout.ENTRY_DEADLINE] = moment
        broker.note_due(moment)

    def begin_anew(self, broker, queue):
        """The rule is added to a queue with messages: their lifetimes begin now. A message without a deadline has no lifetime of
        its own either: else the queue would have had such a rule."""
        if queue.pages is not None:
            queue.pages.since = broker.uptime_s
        entries = broker.tables.entries
        moment = 0 if self.ttl_ms is None else deadline(broker, self.ttl_ms)
        broker.note_due(moment)
        for entry in broker.entries_of(queue):
            if entries[entry + layout.ENTRY_DEADLINE] == 0:
                entries[entry + layout.ENTRY_DEADLINE] = moment
            else:
                self.pushed(broker, queue, entries[entry + layout.ENTRY_MESSAGE], entry)

    def recovered(self, broker, queue):
        """The time while the broker was down does not count: lifetimes begin again."""
        if queue.pages is not None:
            queue.pages.since = broker.uptime_s
        for entry in broker.entries_of(queue):
            self.pushed(broker, queue, broker.tables.entries[entry + layout.ENTRY_MESSAGE], entry)

    def before_delivery(self, broker, queue):
        """Drop or dead-letter the messages at the head whose deadline has passed."""
        self.let_go(broker, queue, 0)

    def let_go(self, broker, queue, more_ms):
        """As `before_delivery`, for the moment `more_ms` milliseconds from now.

        Rule "expired": also expire in hot.py and in queues.h; test_homes.py holds them together.
        """
        self.behind = False
        entries = broker.tables.entries
        left = EXPIRED_MAX
        while True:
            answer = 1 if more_ms else broker.tables.engine.expire(queue.handle)  # 0: all are gone; 2: no more may go in this round
            entry = queue.head()
            if answer == 0 or entry == layout.NONE or not passed(broker, entries[entry + layout.ENTRY_DEADLINE], more_ms):
                return
            if left == 0 or answer == 2:
                self.behind = True
                return
            left -= 1
            queue.pop()
            broker.counters["expired"] += 1
            broker.discard(queue, entry, "expired")

    def tick(self, broker, queue):
        """The head may have become too old without anyone asking for it; a thousand queues are asked ten times a second."""
        entries = broker.tables.entries
        head = queue.head()
        if head != layout.NONE and passed(broker, entries[head + layout.ENTRY_DEADLINE], 0):
            self.let_go(broker, queue, 0)
            if self.behind and broker.overdue is None:
                broker.overdue = queue
            head = queue.head()
        if head != layout.NONE:
            moment = entries[head + layout.ENTRY_DEADLINE]
            due = broker.tables.state[layout.STATE_DUE]
            if moment > 0 and (due == 0 or (moment - due) & 0x20000000) and not (moment - broker.now) & 0x20000000:
                broker.tables.state[layout.STATE_DUE] = moment


def deadline(broker, ttl_ms):
    """The deadline `ttl_ms` from now, at most the last second that a record can hold; never 0, which means none."""
    if ttl_ms < FAR_MS:
        return after(broker.now, ttl_ms) or 1
    return -min(broker.uptime_s + ttl_ms // 1000 + 2, layout.MASK)  # never early: both are cut off


def passed(broker, moment, more_ms):
    """True when a deadline lies behind us in `more_ms`. The millisecond itself does not: a lifetime of 0 is for a consumer that waits."""
    if moment == 0:
        return False
    if moment < 0:
        return broker.uptime_s >= -moment
    return not (broker.now - moment - 1 + more_ms) & 0x20000000  # shim.elapsed, without a call
