"""A queue: messages in order, ready for one of its consumers.

The order is flat (records of layout.QUEUE and layout.ENTRY); the object here holds fields off the hot path: names, arguments, consumers. A
requeued message (reject, recover, a closed channel) returns to its old place, as in RabbitMQ.
"""

from ..memory import hot, layout, returned

if False:  # for the type checker alone
    from typing import Any

STEPS_A_TURN = 50000  # in Python from an entry to the next one, on the way to an old place: together one turn


class Queue:
    """One queue on the record `handle` of the queue table."""

    is_stream = False
    is_exchange = False
    type = "classic"
    is_own = False  # the broker's own (poison.py): clients only read it
    # Attributes that few queues change are the class's: on a board an attribute costs 8 octets of each queue.
    policy = None  # the name of the policy that applies
    operator_policy = None
    pages: "Any" = None  # chunk_index.Paged: its messages that are only in the log; None: it keeps all in memory
    id_in_log = 0  # 0: the log does not know the queue
    farewell = None  # called with it in place of its removal when it goes by itself (AMQP 0-10: what it holds goes on)
    outlasts_consumers = False  # auto-delete is for its owner's end, not for its last consumer's (an exclusive one of AMQP 0-10)
    prioritised = False  # a consumer has a priority of its own
    single_active = False  # x-single-active-consumer: its first consumer gets all
    needs_care = False  # its rules must see each message before delivery

    def __init__(self, tables, handle, name, durable, auto_delete, arguments, owner):
        self.tables = tables
        self.handle = handle
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.arguments = arguments
        self.owner = owner  # the connection it is exclusive to, or None
        self.declared_by = None  # whose share it counts on
        self.consumers = []
        self.bound = {}  # its bindings, by the identity of the object
        self.exclusive_consumer = False
        self.rules = None  # core/queue/rules.py; None: nothing but first in, first out
        self.effective = arguments  # the arguments and policy that `rules` was made of
        self.used = True  # declared or read since the last tick (features/unused.py)
        queues = tables.queues
        for field in range(layout.QUEUE_WIDTH):
            queues[handle + field] = 0
        queues[handle + layout.QUEUE_HEAD] = layout.NONE
        queues[handle + layout.QUEUE_TAIL] = layout.NONE
        queues[handle + layout.QUEUE_RETURNED] = layout.NONE
        self.log_position = -1
        self.update_plain()

    def update_plain(self):
        """Write into the flat record which messages the queue accepts unread (QUEUE_PLAIN): ingest pushes those itself.

        Call this after every change of `rules`, `id_in_log` or another field that decides whether Python must see a push.
        """
        single_active = self.rules is not None and self.rules.single_active
        if self.single_active != single_active:
            self.single_active = single_active
        queues = self.tables.queues
        limits = None
        try:
            limits = (0, layout.NONE, layout.NONE, layout.NONE) if self.rules is None else self.rules.flat(self.tables.engine.limits)
        finally:  # where the rules fail they see each message
            plain = layout.PLAIN
            passes = self.is_paging() and limits is not None and self.passes_by(limits[0])
            if limits is None or self.is_paging() and not passes:
                plain = layout.NOT_PLAIN
            elif passes:
                plain = layout.PLAIN_PAGED
            elif self.id_in_log or self.is_stream:
                plain = self.plain_in_log()
            queues[self.handle + layout.QUEUE_PLAIN] = plain
            queues[self.handle + layout.QUEUE_IDENTITY] = self.id_in_log
            for at in range(4):
                queues[self.handle + layout.QUEUE_LIMITS + at] = 0 if limits is None else limits[at]
            if passes:
                queues[self.handle + layout.QUEUE_LIMITS] |= layout.LIMIT_PAGED
            care = limits is None or limits[0] & layout.LIMIT_GROUPS != 0
            if self.needs_care != care:
                self.needs_care = care
        self.tables.engine.see_queue(self)

    def passes_by(self, limits):
        """True when the engine may have persistent messages pass by memory: no rule looks at one that comes."""
        known = self.tables.engine.limits & layout.LIMIT_PAGED
        asked = limits & ((1 << layout.LIMIT_MOST) - 1) & ~layout.LIMIT_COUNTS
        return bool(known and self.id_in_log and not asked & ~(layout.LIMIT_RETURNS | layout.LIMIT_DEAD_LETTERS))

    def plain_in_log(self):
        """QUEUE_PLAIN of a queue that the log knows, whose rules are flat."""
        return layout.PLAIN_LOGGED

    @property
    def log_position(self):
        """The whole position of the last message that the log has seen; -1: none."""
        queues = self.tables.queues
        return (queues[self.handle + layout.QUEUE_LOGGED_HIGH] << 30) + queues[self.handle + layout.QUEUE_LOGGED]

    @log_position.setter
    def log_position(self, position):
        self.tables.queues[self.handle + layout.QUEUE_LOGGED] = position & layout.MASK
        self.tables.queues[self.handle + layout.QUEUE_LOGGED_HIGH] = position >> 30

    @staticmethod
    def with_defaults(arguments):
        """The arguments that rules are made of: those of the declaration, then the policy's."""
        return arguments

    def may_be_read(self, subject, prefetch):
        """Raise when the queue refuses a consumer on a channel with this prefetch (basic.qos global; 0: none). `subject`: its words."""

    def message_count(self):
        """Messages ready (the message-count of queue.declare-ok), in memory or not."""
        count = self.tables.queues[self.handle + layout.QUEUE_LENGTH]
        return count if self.pages is None else count + self.pages.count

    def octets(self):
        """Octets of the bodies of the ready messages."""
        octets = self.tables.queues[self.handle + layout.QUEUE_OCTETS]
        return octets if self.pages is None else octets + self.pages.octets

    def is_paging(self):
        """True when messages of the queue are only in the log: the next message goes to the log too, behind them."""
        return self.pages is not None and self.pages.count > 0

    def must_page(self, block_total):
        """True when the next message, of so many blocks, is to be only in the log."""
        return self.pages is not None and (self.pages.count > 0 or self.over_share(block_total))

    def unsettled_count(self):
        """Messages delivered and not settled."""
        return self.tables.queues[self.handle + layout.QUEUE_UNSETTLED]

    def full(self, block_total):
        """True when a publisher must wait: `block_total` more blocks would pass the queue's share, and all its messages stay in memory."""
        if self.rules is not None and self.rules.full(self):
            return True
        if self.pages is not None:
            return self.pages.full() and self.must_page(block_total)
        return self.over_share(block_total)

    def over_share(self, block_total):
        """True when the queue with `block_total` more blocks would be over its share: four times the blocks, entries or messages left.

        So one queue alone gets four fifths of the arena, two get four ninths each, and some is always left for another.
        Rule "share": also may_push in publish.py and in publish.h; test_homes.py holds them together.
        """
        queues = self.tables.queues
        state = self.tables.state
        held = queues[self.handle + layout.QUEUE_LENGTH] + queues[self.handle + layout.QUEUE_UNSETTLED]
        if held == 0:
            return False
        return (
            queues[self.handle + layout.QUEUE_BLOCKS] + block_total > 4 * state[layout.POOL_BLOCKS + 2]
            or held >= 4 * state[layout.POOL_ENTRIES + 2]
            or held >= 4 * state[layout.POOL_MESSAGES + 2]
        )

    def push(self, message):
        """Append a message to the queue; returns its entry. The caller has seen that an entry is free."""
        tables = self.tables
        entry = hot.push(tables.messages, tables.entries, tables.queues, tables.state, self.handle, message)
        tables.entries[entry + layout.ENTRY_TAG] = layout.NONE
        return entry

    def head(self):
        """The first ready entry, or NONE."""
        return self.tables.queues[self.handle + layout.QUEUE_HEAD]

    def pop(self):
        """Unlink the entry at the head of the ready list and return it; NONE: the queue is empty."""
        entry = self.head()
        if entry != layout.NONE:
            self.unlink(entry)
        return entry

    def unlink(self, entry):
        """Unlink an entry from the ready list."""
        tables = self.tables
        if self.rules is not None and self.rules.priority is not None and entry != self.head():
            self.rules.priority.leave(self, entry)
        hot.unlink_ready(tables.messages, tables.entries, tables.queues, self.handle, entry)

    def link(self, entry, before):
        """Put an entry that is in no list behind `before` (NONE: at the head) of the ready list."""
        tables = self.tables
        entries, queues, queue = tables.entries, tables.queues, self.handle
        behind = queues[queue + layout.QUEUE_HEAD] if before == layout.NONE else entries[before + layout.ENTRY_NEXT]
        entries[entry + layout.ENTRY_NEXT] = behind
        entries[entry + layout.ENTRY_PREVIOUS] = before
        entries[entry + layout.ENTRY_TAG] = layout.NONE
        if before == layout.NONE:
            queues[queue + layout.QUEUE_HEAD] = entry
        else:
            entries[before + layout.ENTRY_NEXT] = entry
        if behind == layout.NONE:
            queues[queue + layout.QUEUE_TAIL] = entry
        else:
            entries[behind + layout.ENTRY_PREVIOUS] = entry
        queues[queue + layout.QUEUE_LENGTH] += 1
        queues[queue + layout.QUEUE_OCTETS] += tables.messages[entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_BODY]

    def is_later(self, entry, other):
        """True when `entry` came into the queue after `other`; positions wrap at 2^30 and lie less than half of that apart."""
        entries = self.tables.entries
        ahead = (entries[entry + layout.ENTRY_POSITION] - entries[other + layout.ENTRY_POSITION]) & layout.MASK
        return 0 < ahead < 0x20000000

    def requeue(self, entry):
        """Put an entry that is in no list back where its position says."""
        if self.rules is not None and self.rules.priority is not None:
            self.rules.priority.requeue(self, entry)
            return
        tables = self.tables
        if self.needs_care:  # its rules may have changed the order
            tables.queues[self.handle + layout.QUEUE_RETURNED] = layout.NONE
        steps = returned.requeue(tables.messages, tables.entries, tables.queues, self.handle, entry)
        tables.state[layout.STATE_LEFT] -= steps * tables.engine.effort // STEPS_A_TURN

    def purge(self, most=layout.MASK):
        """Drop ready messages (0-9-1 section 1.7.2.7: not unsettled ones), the oldest first: `most`, or fewer where many are only in the
        log. Returns how many."""
        count = self.message_count()
        self.tables.engine.purge(self.handle, most)
        if self.is_paging():
            self.pages.pager.purge(self, most - count + self.message_count())
        return count - self.message_count()

    def end(self):
        """The queue is deleted."""
        if self.rules is not None:
            self.rules.end()

    def drop(self, entry):
        """Free an entry that is in no list."""
        tables = self.tables
        hot.drop(tables.blocks, tables.messages, tables.entries, tables.queues, tables.state, entry)
