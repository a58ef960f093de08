"""Sessions, and what their consumers do with deliveries: subscribe, cancel, settle, reject, requeue (0-9-1 section 1.8.3).

An unsettled delivery is an entry in the list of its channel (layout.py); the functions of hot.py unlink it. A message
that goes back to a queue gets its old place. This file also marks queues that may have something to deliver as active.
"""

from ..access.permissions import LIMITS
from ..errors import ACCESS_REFUSED, NOT_ALLOWED, RESOURCE_ERROR, ProtocolError
from ..memory import hot, layout
from ..memory.tables import clear
from ..outcomes import ACCEPTED, FAILS, MODIFIED, REJECTED, RELEASED
from ..parts import needed
from ..queue.rules import CONSUMER_ARGUMENTS, check_rows, invalid

if False:  # for the type checker alone
    from typing import Any

AGAIN_MS = 1000  # until the broker tries the failed part of a closed channel again

LOOKED_AT_MAX = 1000  # deliveries that one turn settles where the rules of a queue see each


class Consumer:
    """One subscription. `cursor` and `cursor_offset` say where a stream's consumer stands (the entry, NONE at the end).

    Fields of a stream's consumer are attributes of the class, so that other consumers pay nothing for them.
    """

    cursor = layout.NONE
    cursor_offset = 0
    wanted: "Any"  # with queue/wishes.py: a function of the broker and a message, true for a message of the stream that this consumer gets
    overtaken = False  # retention moved the cursor
    strict = False  # this and the rest: from the arguments, read by stream/subscription.py
    keeps = None
    filter = None
    unfiltered = False
    pack_records = 0
    pack_octets = 0
    pack_now = 0  # the most octets of the next pack, which grows while the reader keeps up

    def __init__(self, handle, tag, queue, channel, no_ack, exclusive):
        self.handle = handle
        self.tag = tag
        self.queue = queue
        self.channel = channel
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.priority = 0  # x-priority: consumers with a higher one are served first
        self.hungry = False  # its session had no room for a delivery
        self.prefix = b""  # octets that a family's row writes deliveries with (contract.HotRow)
        self.prefix_at = None  # the prefix in the engine's form
        self.frame_size_max = 0  # the largest frame that its peer accepts
        self.row = None  # the row


class Consumers:
    """The verbs of a broker's consumers and of their sessions."""

    def __init__(self, broker):
        self.broker = broker
        self.tables = broker.tables
        self.leaving = []  # closed channels whose deliveries are on their way back to their queues
        self.leaves_at = 0  # uptime before which the broker tries none of them: each has failed
        self.stuck = 0  # of them, the last ones, that have failed

    def open_session(self, connection=None):
        """The record of a session of a peer (0-9-1: a channel), or None when all are in use. Raises not-allowed where the user of the
        connection has as many as he may."""
        if connection is not None and connection.user.limits:
            needed(*LIMITS).check_session(self.broker, connection)
        tables = self.tables
        if tables.channel_pool[2] < 1:
            return None
        handle = hot.allocate(tables.channels, tables.channel_pool, 0, layout.CHANNEL_WIDTH)
        clear(tables.channels, handle, layout.CHANNEL_WIDTH)
        tables.channels[handle + layout.CHANNEL_UNSETTLED_HEAD] = layout.NONE
        tables.channels[handle + layout.CHANNEL_UNSETTLED_TAIL] = layout.NONE
        tables.channels[handle + layout.CHANNEL_CONSUMERS] = layout.NONE
        tables.channels[handle + layout.CHANNEL_INDEXED] = layout.NONE
        return handle

    def close_session(self, channel):
        """End a channel's consumers and requeue its unsettled deliveries (section 1.8.3.13)."""
        if channel.handle == layout.NONE:
            return  # an earlier call raised, and the channel has been released since
        self.leaving += [] if channel in self.leaving else [channel]  # first: a queue deleted with its last consumer reads it
        self.end_consumers(channel)
        if self.has_left(channel):
            self.leaving.remove(channel)

    def end_consumers(self, channel):
        """End the consumers of a closed channel; its unsettled deliveries are on their way back."""
        consumers = list(channel.consumers.values())
        for consumer in [each for each in consumers if each.queue.is_stream]:  # a stream reads the unsettled deliveries
            self.cancel(consumer, False)
        self.tables.engine.leave(channel.handle, self.last_unsettled(channel), layout.MASK)
        for consumer in [each for each in consumers if not each.queue.is_stream]:
            self.cancel(consumer, False)

    def first_unsettled(self, channel):
        """The oldest unsettled entry of a channel, NONE: it has none."""
        return self.tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]

    def last_unsettled(self, channel):
        """The newest unsettled entry of a channel, NONE: it has none."""
        return self.tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL]

    def has_left(self, channel):
        """Requeue deliveries of a closed channel, as many as this turn has effort left for; true when none is left, and its record is free
        (its handle is NONE)."""
        if self.return_some(channel, self.last_unsettled(channel)) != layout.NONE:
            return False
        hot.give(self.tables.channels, self.tables.channel_pool, 0, channel.handle)
        channel.handle = layout.NONE
        return True

    def leaving_now(self):
        """True when a closed channel has deliveries left to requeue in the next round."""
        return len(self.leaving) > 0 and self.broker.uptime_ms >= self.leaves_at

    def let_leave(self):
        """Requeue some more deliveries of the first closed channel; then the next channel has its turn."""
        broker = self.broker
        channel = self.leaving[0]
        try:
            if channel.consumers:  # one of them raised
                self.end_consumers(channel)
            gone = self.has_left(channel)
        except Exception as error:  # an error of ours: told, and tried again
            broker.guard.trouble("a channel of connection %s", channel.connection.name, error)
            gone = False
            self.stuck += 1
            if self.stuck >= len(self.leaving):
                self.leaves_at = broker.uptime_ms + AGAIN_MS
                self.stuck = 0
        else:
            self.stuck = 0
        self.leaving.pop(0)
        if not gone:
            self.leaving.append(channel)

    def open_sessions(self):
        """The channels that may have unsettled deliveries: open ones, and closed ones in `leaving`."""
        for connection in self.broker.connections:
            for channel in connection.sessions():
                if not channel.closing:
                    yield channel
        for channel in self.leaving if self.broker.beyond is None else self.leaving + self.broker.beyond.sessions():
            yield channel

    def subscribe(self, channel, name, tag, no_ack, exclusive, arguments, prefetch):
        """A consumer of a queue (section 1.8.3.3). `prefetch`: most unsettled deliveries, 0: no limit."""
        broker, tables = self.broker, self.tables
        consumer = self.prepare(channel, name, tag, no_ack, exclusive, arguments, prefetch)
        queue = consumer.queue
        self.end_unclaimed(queue)
        for each in arguments:
            if not each.startswith("x-stream-") and each not in [row[0] for row in CONSUMER_ARGUMENTS]:
                broker.topology.log_unknown("consumer", each)
        handle = hot.allocate(tables.consumers, tables.consumer_pool, 0, layout.CONSUMER_WIDTH)
        consumer.handle = handle
        tables.consumers[handle + layout.CONSUMER_QUEUE] = queue.handle
        tables.consumers[handle + layout.CONSUMER_CHANNEL] = channel.handle
        tables.consumers[handle + layout.CONSUMER_CREDIT] = prefetch if prefetch and not no_ack else layout.CREDIT_UNLIMITED
        tables.consumers[handle + layout.CONSUMER_NO_ACK] = 1 if no_ack else 0
        tables.consumers[handle + layout.CONSUMER_MODE] = layout.WINDOW
        tables.consumers[handle + layout.CONSUMER_NEXT] = layout.NONE
        hot.link_consumer(tables.channels, tables.consumers, channel.handle, layout.NONE, handle)
        tables.engine.see_consumer(consumer)  # without a family's prefix, Python delivers to the consumer
        channel.consumers[tag] = consumer
        queue.exclusive_consumer = exclusive
        try:
            self.line_up(queue, consumer, arguments.get("x-priority", 0))
            if broker.contents is not None:
                broker.contents.subscribed(consumer)
        except Exception:  # all or nothing: no consumer was made
            self.end_consumer(consumer)
            raise
        broker.activate(queue)
        return consumer

    def prepare(self, channel, name, tag, no_ack, exclusive, arguments, prefetch, ending=()):
        """The consumer that `subscribe` is to make, in no list yet. Raises what `subscribe` raises, with the consumers
        `ending` gone."""
        broker, tables = self.broker, self.tables
        queue = broker.topology.queue(name, channel.connection)
        if tag in channel.consumers and channel.consumers[tag] not in ending:
            raise ProtocolError(NOT_ALLOWED, "attempt to reuse consumer tag '%s'" % tag)
        if (exclusive or queue.exclusive_consumer) and [each for each in queue.consumers if each not in ending]:
            raise ProtocolError(ACCESS_REFUSED, broker.topology.called("queue", name) + " in exclusive use")
        subject = broker.topology.called("queue", queue.name)
        check_rows(CONSUMER_ARGUMENTS, subject, arguments)
        if "x-stream-offset" in arguments and not queue.is_stream:
            invalid(subject, "x-stream-offset", "it is no stream")
        if tables.consumer_pool[2] + len(ending) < 1:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d consumers at most" % broker.limits.consumer_count_max)
        queue.may_be_read(subject, max(tables.channels[channel.handle + layout.CHANNEL_PREFETCH], 0))
        consumer = Consumer(layout.NONE, tag, queue, channel, no_ack, exclusive)
        if queue.is_stream:
            needed("stream.subscription", "streams").begin(broker, consumer, queue, arguments, prefetch)
        return consumer

    def end_unclaimed(self, queue):
        """A client declares or reads a queue: if no consumer could get messages at once, lifetimes of 0 end now (RabbitMQ)."""
        if queue.rules is not None and queue.rules.expiry is not None and not queue.consumers:
            queue.rules.expiry.let_go(self.broker, queue, 1)

    def line_up(self, queue, consumer, priority):
        """Insert a consumer in its queue's list, behind all with its priority or a higher one."""
        consumer.priority = priority
        if priority:
            queue.prioritised = True
        at = len(queue.consumers)
        while at and queue.consumers[at - 1].priority < priority:
            at -= 1
        queue.consumers.insert(at, consumer)
        self.tables.queues[queue.handle + layout.QUEUE_CONSUMERS] = len(queue.consumers)
        self.tables.engine.see_queue(queue)

    def cancel(self, consumer, has_unsettled=True):
        """End a subscription (section 1.8.3.5); its unsettled deliveries stay with its channel."""
        broker = self.broker
        queue = consumer.queue
        if queue.is_stream:
            try:
                queue.keep(consumer)
                if broker.journal is not None:
                    broker.journal.kept(queue, consumer.keeps)
            except Exception as error:  # the offset that was kept before counts
                broker.guard.queue_failed(queue, error)
        self.end_consumer(consumer, has_unsettled)
        if queue.is_stream and queue.pages is not None:
            queue.pages.windows.prune()
        if queue.auto_delete and not queue.consumers and not queue.outlasts_consumers:
            (queue.farewell or broker.topology.drop_queue)(queue)

    def end_consumer(self, consumer, has_unsettled=True):
        """Remove a consumer from every list; `has_unsettled` false: no delivery refers to it any more."""
        queue = consumer.queue
        del consumer.channel.consumers[consumer.tag]
        consumer.channel.connection.send.forget(consumer)
        hot.link_consumer(
            self.tables.channels,
            self.tables.consumers,
            consumer.channel.handle,
            consumer.handle,
            self.tables.consumers[consumer.handle + layout.CONSUMER_NEXT],
        )
        if consumer in queue.consumers:
            queue.consumers.remove(consumer)
        self.tables.queues[queue.handle + layout.QUEUE_CONSUMERS] = len(queue.consumers)
        self.tables.engine.see_queue(queue)
        queue.exclusive_consumer = False
        if has_unsettled:
            self.tables.engine.disown(consumer.channel.handle, consumer.handle)
        hot.give(self.tables.consumers, self.tables.consumer_pool, 0, consumer.handle)

    def settle(self, channel, first, last, outcome):
        """Settle a session's deliveries from the unsettled entry `first` to `last`, all at once: ACCEPTED, REJECTED, MODIFIED or RELEASED
        (outcomes.py). Verbs on possibly thousands of deliveries use settle_some and return_some, in turns."""
        tables = self.tables
        if outcome & FAILS:
            outcome &= ~FAILS
            for entry in self.unsettled_back_from(channel, last, first):
                fail(tables, entry, outcome)
        if outcome in (ACCEPTED, REJECTED) and first != last and first != tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]:
            for entry in list(self.unsettled_back_from(channel, last, first)):
                self.settle(channel, entry, entry, outcome)
            return
        if outcome != RELEASED and tables.engine.settle(channel.handle, first, last, outcome):
            return
        self.wake_consumers(channel, last, first != last)
        if outcome == REJECTED:
            self.refuse(channel, first if first == last else self.first_unsettled(channel), last)
        else:
            self.requeue(
                self.unsettled_back_from(channel, last, first), channel, outcome
            )  # the newest first: so each one's place is at the head

    def refuse(self, channel, entry, last):
        """Drop or dead-letter the unsettled entries of a channel from `entry` to `last`."""
        broker, tables = self.broker, self.tables
        while True:
            behind = tables.entries[entry + layout.ENTRY_NEXT]
            hot.unhold(tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, channel.handle, entry)
            broker.counters["rejected"] += 1
            broker.discard(broker.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]], entry, "rejected")
            if entry == last:
                return
            entry = behind

    def settle_some(self, channel, tag, how):
        """Accept or refuse deliveries of a channel up to a delivery tag (its low 30 bits), the oldest first, as many as this turn has
        effort left for: true when none is left. `how`: layout.ACCEPTED or REFUSED."""
        tables, handle = self.tables, channel.handle
        left = tables.state[layout.STATE_LEFT]
        if left <= 0:
            return False
        last = tables.engine.reach(handle, tag, left)
        if last == layout.NONE:
            return True
        first = self.first_unsettled(channel)
        count = self.count_between(first, last)
        if not tables.engine.settle(handle, first, last, how):
            count = self.looked_at(left)
            last = tables.engine.reach(handle, tag, count)
            count *= self.look_cost()
            self.wake_consumers(channel, last, True)
            self.refuse(channel, self.first_unsettled(channel), last)
        tables.state[layout.STATE_LEFT] -= count
        return tables.engine.reach(handle, tag, 1) == layout.NONE

    def return_some(self, channel, last, most=layout.MASK):
        """Requeue deliveries of a channel from the unsettled entry `last` (NONE: none) to older ones, `most` or as many as this turn has
        effort left for. Returns the next entry, NONE when none is left. The newest come first: so each one's place is at the head."""
        tables = self.tables
        left = min(tables.state[layout.STATE_LEFT], most)
        if last == layout.NONE or left <= 0:
            return last
        first = tables.engine.reach_back(last, left)
        behind = tables.entries[first + layout.ENTRY_PREVIOUS]
        count = self.count_between(first, last)
        if not tables.engine.settle(channel.handle, first, last, layout.RETURNED):
            count = self.looked_at(left)
            first = tables.engine.reach_back(last, count)
            behind = tables.entries[first + layout.ENTRY_PREVIOUS]
            count *= self.look_cost()
            self.requeue(self.unsettled_back_from(channel, last, first), channel)
        tables.state[layout.STATE_LEFT] -= count
        return behind

    def has_credit(self, consumer):
        """True when the consumer and its session may get one more delivery."""
        tables = self.tables
        if tables.consumers[consumer.handle + layout.CONSUMER_CREDIT] <= 0:
            return False
        channel = consumer.channel.handle
        prefetch = tables.channels[channel + layout.CHANNEL_PREFETCH]
        return prefetch == 0 or tables.channels[channel + layout.CHANNEL_UNSETTLED] < prefetch

    def add_credit(self, consumer, count):
        """Grant `count` more deliveries to a consumer that settles; after its first grant a consumer gets only as many deliveries as were
        granted."""
        consumers, handle = self.tables.consumers, consumer.handle
        if consumers[handle + layout.CONSUMER_MODE] == layout.WINDOW:
            consumers[handle + layout.CONSUMER_MODE] = layout.COUNTED
            consumers[handle + layout.CONSUMER_CREDIT] = 0
        consumers[handle + layout.CONSUMER_CREDIT] = min(consumers[handle + layout.CONSUMER_CREDIT] + count, layout.CREDIT_UNLIMITED - 1)
        self.broker.activate(consumer.queue)

    def hold(self, consumer, entry):
        """Deliver an entry in no list to a consumer that settles: its session holds the entry under the last tag, and one credit is
        used."""
        tables = self.tables
        hot.hold(tables.entries, tables.queues, tables.channels, consumer.channel.handle, entry, consumer.handle)
        if tables.consumers[consumer.handle + layout.CONSUMER_CREDIT] != layout.CREDIT_UNLIMITED:
            tables.consumers[consumer.handle + layout.CONSUMER_CREDIT] -= 1

    def count_between(self, first, last):
        """An upper bound for the deliveries of a channel between two unsettled entries, by their tags."""
        entries = self.tables.entries
        return ((entries[last + layout.ENTRY_TAG] - entries[first + layout.ENTRY_TAG]) & layout.MASK) + 1

    def look_cost(self):
        """The effort, of a turn's, for a delivery that rules see."""
        return max(self.tables.engine.effort // LOOKED_AT_MAX, 1)

    def looked_at(self, left):
        """How many such deliveries the turn's remaining effort allows."""
        return max(left // self.look_cost(), 1)

    def unsettled_back_from(self, channel, entry, oldest=layout.NONE):
        """The unsettled entries of a channel, from `entry` (NONE: the newest) to older ones, the last is `oldest`; the caller may unlink
        each one while it is current."""
        tables = self.tables
        if entry == layout.NONE:
            entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL]
        while entry != layout.NONE:
            before = tables.entries[entry + layout.ENTRY_PREVIOUS]
            yield entry
            if entry == oldest:
                return
            entry = before

    def requeue(self, entries, channel, outcome=MODIFIED):
        """Requeue unsettled entries, RELEASED or MODIFIED; then queues with a maximum length drop what exceeds it."""
        broker = self.broker
        limited = {}
        for entry in entries:
            queue = broker.queue_objects[self.tables.entries[entry + layout.ENTRY_QUEUE]]
            self.requeue_entry(channel, entry, outcome)
            if queue.rules is not None:
                limited[queue.handle] = queue
        for queue in limited.values():
            try:
                queue.rules.trim(broker, queue)
            except Exception as error:  # an error of ours is this queue's alone
                broker.guard.queue_failed(queue, error)

    def requeue_entry(self, channel, entry, outcome):
        """Requeue one unsettled entry; a stream still has its message."""
        broker, tables = self.broker, self.tables
        queue = broker.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]]
        hot.unhold(tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, channel.handle, entry)
        if queue.is_stream:
            queue.drop(entry)
        else:
            broker.counters["redelivered"] += 1
            if outcome == MODIFIED and tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 < 255:
                tables.entries[entry + layout.ENTRY_REDELIVERED] += 1
            if tables.entries[entry + layout.ENTRY_DEADLINE] == broker.now > 1:
                tables.entries[entry + layout.ENTRY_DEADLINE] -= 1  # as in returned.give_back
            if outcome == RELEASED and (tables.entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_RELEASED) & 255 < 255:
                tables.entries[entry + layout.ENTRY_REDELIVERED] += 1 << layout.ENTRY_RELEASED
            if queue.rules is None:
                queue.requeue(entry)
            else:
                self.come_back(queue, entry)
        broker.activate(queue)

    def come_back(self, queue, entry):
        """An entry, in no list, comes back to a queue with rules."""
        broker = self.broker
        try:
            kept = queue.rules.came_back(broker, queue, entry)
        except Exception as error:  # an error of ours: told, and the entry comes back
            broker.guard.trouble("queue '%s'", queue.name, error)
            kept = False
        try:
            if not kept:
                queue.requeue(entry)
        except Exception as error:  # an error of ours: the entry is put aside
            broker.guard.rescue(queue, entry, error)

    def wake_consumers(self, channel, last, multiple):
        """Settling gives credit: the queues of the channel's consumers may deliver again."""
        broker = self.broker
        if not multiple and self.tables.channels[channel.handle + layout.CHANNEL_PREFETCH] == 0:
            queue = broker.queue_objects[self.tables.entries[last + layout.ENTRY_QUEUE]]
            broker.activate(queue)
            return
        for consumer in channel.consumers.values():
            broker.activate(consumer.queue)


def fail(tables, entry, outcome):
    """Note that a delivery of an entry has failed, for its message's dead letter: REJECTED counts here, MODIFIED where it is requeued."""
    entries = tables.entries
    tables.messages[entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_KIND] |= layout.KIND_FAILED
    if outcome == REJECTED and entries[entry + layout.ENTRY_REDELIVERED] & 255 < 255:
        entries[entry + layout.ENTRY_REDELIVERED] += 1
