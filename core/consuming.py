"""Consumers and what they do with deliveries: subscribe, cancel, settle, reject, requeue (0-9-1 section 1.8.3).

A delivery that is not settled is an entry in the list of its channel (layout.py); the functions of hot.py take it out of there. What goes
back to a queue finds its old place. Here the broker's queues are also told that they may have something to deliver.
"""

from . import hot, layout
from .errors import ACCESS_REFUSED, NOT_ALLOWED, RESOURCE_ERROR, ProtocolError
from .message_reading import MessageReading
from .parts import needed
from .rules import CONSUMER_ARGUMENTS, check_rows, invalid


class Consumer:
    """One subscription. `cursor` and `cursor_offset` say where a stream's consumer stands (the entry, NONE at the end).

    What only a stream's consumer has stands here, so that no other pays for it.
    """

    cursor = layout.NONE
    cursor_offset = 0
    overtaken = False  # retention moved the cursor
    strict = False  # the rest: what stream_reading.py read from the arguments
    keeps = None
    filter = None
    unfiltered = False
    pack_records = 0
    pack_octets = 0
    pack_now = 0  # the most octets of the next pack: they grow while the reader takes them

    def __init__(self, handle, tag, queue, channel, no_ack, exclusive):
        self.handle = handle
        self.tag = tag
        self.queue = queue
        self.channel = channel
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.priority = 0  # x-priority: those with a higher one are served first
        self.hungry = False  # its session had no room for a delivery
        self.prefix = b""  # the wire folder's, see amqp_0_9/deliver.py
        self.prefix_at = None  # the same as the engine wants it


class Consuming(MessageReading):
    """The verbs of consumers; `Broker` has the rest."""

    def subscribe(self, channel, name, tag, no_ack, exclusive, arguments, prefetch):
        """A consumer of a queue (section 1.8.3.3). `prefetch`: most unsettled deliveries, 0: no limit."""
        found = self.queue(name, channel.connection)
        if tag in channel.consumers:
            raise ProtocolError(NOT_ALLOWED, "attempt to reuse consumer tag '%s'" % tag)
        if found.exclusive_consumer or (exclusive and found.consumers):
            raise ProtocolError(ACCESS_REFUSED, self.called("queue", name) + " in exclusive use")
        what = self.called("queue", found.name)
        check_rows(CONSUMER_ARGUMENTS, what, arguments)
        if "x-stream-offset" in arguments and not found.is_stream:
            invalid(what, "x-stream-offset", "it is no stream")
        self.end_unclaimed(found)
        tables = self.tables
        if tables.consumer_pool[2] < 1:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d consumers at most" % self.limits.consumer_count_max)
        found.may_be_read(what, tables.channels[channel.handle + layout.CHANNEL_PREFETCH])
        for each in arguments:
            if not each.startswith("x-stream-") and each not in [row[0] for row in CONSUMER_ARGUMENTS]:
                self.tell_unknown("consumer", each)
        consumer = Consumer(layout.NONE, tag, found, channel, no_ack, exclusive)
        if found.is_stream:
            needed("stream_reading", "streams").begin(self, consumer, found, arguments, prefetch)
        handle = hot.take(tables.consumers, tables.consumer_pool, 0, layout.CONSUMER_WIDTH)
        consumer.handle = handle
        tables.consumers[handle + layout.CONSUMER_QUEUE] = found.handle
        tables.consumers[handle + layout.CONSUMER_CHANNEL] = channel.handle
        tables.consumers[handle + layout.CONSUMER_CREDIT] = prefetch if prefetch and not no_ack else layout.CREDIT_UNLIMITED
        tables.consumers[handle + layout.CONSUMER_NO_ACK] = 1 if no_ack else 0
        tables.consumers[handle + layout.CONSUMER_NEXT] = layout.NONE
        hot.link_consumer(tables.channels, tables.consumers, channel.handle, layout.NONE, handle)
        channel.consumers[tag] = consumer
        found.exclusive_consumer = exclusive
        try:
            self.line_up(found, consumer, arguments.get("x-priority", 0))
        except Exception:
            self.end_consumer(consumer)
            raise
        self.activate(found)
        return consumer

    def end_unclaimed(self, found):
        """Somebody looks at a queue: where it had no consumer to take a message at once a lifetime of 0 is over (RabbitMQ)."""
        if found.rules is not None and found.rules.expiry is not None and not found.consumers:
            found.rules.expiry.let_go(self, found, 1)

    def line_up(self, found, consumer, priority):
        """Put a consumer among those of its queue: behind all with its priority or a higher one."""
        consumer.priority = priority
        if priority:
            found.prioritised = True
        at = len(found.consumers)
        while at and found.consumers[at - 1].priority < priority:
            at -= 1
        found.consumers.insert(at, consumer)
        self.tables.queues[found.handle + layout.QUEUE_CONSUMERS] = len(found.consumers)
        self.tables.engine.see_queue(found)

    def cancel(self, consumer, has_unsettled=True):
        """End a subscription (section 1.8.3.5); what it has not settled stays with its channel."""
        found = consumer.queue
        if found.is_stream:
            try:
                found.keep(consumer)
                if self.journal is not None:
                    self.journal.kept(found, consumer.keeps)
            except Exception as error:  # what was kept before counts
                self.guard.queue_failed(found, error)
        self.end_consumer(consumer, has_unsettled)
        if found.is_stream and found.pages is not None:
            found.pages.prune()
        if found.auto_delete and not found.consumers:
            self.drop_queue(found)

    def end_consumer(self, consumer, has_unsettled=True):
        """Take a consumer out of everything that knows it; `has_unsettled` false: its deliveries do not know it any more."""
        found = consumer.queue
        del consumer.channel.consumers[consumer.tag]
        consumer.channel.session.send.forget(consumer)
        hot.link_consumer(self.tables.channels, self.tables.consumers, consumer.channel.handle, consumer.handle,
                          self.tables.consumers[consumer.handle + layout.CONSUMER_NEXT])
        if consumer in found.consumers:
            found.consumers.remove(consumer)
        self.tables.queues[found.handle + layout.QUEUE_CONSUMERS] = len(found.consumers)
        self.tables.engine.see_queue(found)
        found.exclusive_consumer = False
        if has_unsettled:
            self.tables.engine.disown(consumer.channel.handle, consumer.handle)
        hot.give(self.tables.consumers, self.tables.consumer_pool, 0, consumer.handle)

    def settle(self, channel, last, multiple):
        """Accept deliveries: `last` is an unsettled entry of the channel; `multiple`: all up to it."""
        tables = self.tables
        self.wake_consumers(channel, last, multiple)
        return hot.settle(tables.blocks, tables.messages, tables.entries, tables.queues, tables.channels, tables.consumers, tables.state,
                          channel.handle, last, 1 if multiple else 0, layout.STATE_SETTLED)

    def reject(self, channel, last, multiple, requeue):
        """Refuse deliveries: back to the queue, or dropped, or dead-lettered (section 1.8.3.14)."""
        self.wake_consumers(channel, last, multiple)
        if requeue:
            if multiple:
                self.requeue_from(channel, last)
            else:
                self.requeue((last,), channel)
            return
        tables = self.tables
        entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD] if multiple else last
        while True:
            behind = tables.entries[entry + layout.ENTRY_NEXT]
            hot.unhold(tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, channel.handle, entry)
            self.counters["rejected"] += 1
            self.discard(self.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]], entry, "rejected")
            if entry == last:
                return
            entry = behind

    def discard(self, found, entry, reason):
        """Let go of an entry that is in no list, by way of its queue's dead letters where it has any."""
        rule = None if found.rules is None else found.rules.dead_letter
        if rule is None or self.send_dead_letter(rule, found, entry, reason):
            found.drop(entry)

    def send_dead_letter(self, rule, found, entry, reason):
        """Have an entry's message published as a dead letter: true when the entry can be dropped; else it waits, or is kept as poison."""
        try:
            if not self.dead_letters.has_turn(entry, reason):
                return False
            try:
                if rule.send(self, found, entry, reason):
                    return True
            except MemoryError as error:  # there may be some later
                self.guard.trouble("a dead letter of queue '%s'", found.name, error)
            self.dead_letters.add(entry, reason)
        except Exception as error:
            self.guard.rescue(found, entry, error)
        return False

    def requeue_from(self, channel, last):
        """Requeue the unsettled entries of a channel up to `last` (NONE: all), the newest first: each then finds its place at the head."""
        if last != layout.NONE or not self.tables.engine.return_all(channel.handle):
            self.requeue(self.unsettled_back_from(channel, last), channel)

    def unsettled_back_from(self, channel, entry):
        """The unsettled entries of a channel, from `entry` (NONE: the newest) to older ones; each may be taken off while it is there."""
        tables = self.tables
        if entry == layout.NONE:
            entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL]
        while entry != layout.NONE:
            before = tables.entries[entry + layout.ENTRY_PREVIOUS]
            yield entry
            entry = before

    def requeue(self, entries, channel):
        """Requeue unsettled entries; then queues that hold only so much let go of what is too much."""
        limited = {}
        for entry in entries:
            found = self.queue_objects[self.tables.entries[entry + layout.ENTRY_QUEUE]]
            self.requeue_entry(channel, entry)
            if found.rules is not None:
                limited[found.handle] = found
        for found in limited.values():
            try:
                found.rules.trim(self, found)
            except Exception as error:
                self.guard.queue_failed(found, error)

    def requeue_entry(self, channel, entry):
        """Requeue one unsettled entry; a stream's message is there anyway."""
        tables = self.tables
        found = self.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]]
        hot.unhold(tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, channel.handle, entry)
        if found.is_stream:
            found.drop(entry)
        else:
            self.counters["redelivered"] += 1
            if tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 < 255:
                tables.entries[entry + layout.ENTRY_REDELIVERED] += 1
            if found.rules is None:
                found.requeue(entry)
            else:
                self.come_back(found, entry)
        self.activate(found)

    def come_back(self, found, entry):
        """An entry, in no list, comes back to a queue with rules."""
        try:
            kept = found.rules.came_back(self, found, entry)
        except Exception as error:
            self.guard.trouble("queue '%s'", found.name, error)
            kept = False
        try:
            if not kept:
                found.requeue(entry)
        except Exception as error:
            self.guard.rescue(found, entry, error)

    def wake_consumers(self, channel, last, multiple):
        """Settling gives credit: the queues of the channel's consumers may deliver again."""
        if not multiple and self.tables.channels[channel.handle + layout.CHANNEL_PREFETCH] == 0:
            found = self.queue_objects[self.tables.entries[last + layout.ENTRY_QUEUE]]
            self.activate(found)
            return
        for consumer in channel.consumers.values():
            self.activate(consumer.queue)

    def activate(self, found):
        """Remember that a queue may have something to deliver."""
        hot.activate(self.tables.queues, self.tables.state, found.handle)

    def has_active(self):
        """True when `run` may have something to do: a queue to deliver from, a connection that waits for its turn."""
        return (self.tables.state[layout.STATE_ACTIVE_HEAD] != layout.NONE or len(self.behind) > 0
                or self.dead_letters.until != layout.NONE or len(self.policies.pending) > 0
                or self.journal is not None and self.journal.pager.busy)
