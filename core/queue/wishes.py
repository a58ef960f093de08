"""Consumers that want only some of a queue's messages, as AMQP 1.0's filters ask for. Boards do not carry it.

A wish is one consumer's filter: `fits(broker, message)` says whether the consumer gets a message. Other messages stay in place for other
consumers; where no other consumer reads the queue (`alone`) they are dropped. A wish goes through the queue once: it remembers the last
message that it has read, of each level where the queue has priorities (refusals.py), and reads only returning messages again; where these
wait first (x-delayed-retry-min) it reads the first SCAN_MAX each time. Of a queue with a single active consumer that one alone is asked:
what it does not want waits for the next.

A wish reads only messages in memory: a queue with more in the log brings these into memory as others leave. A queue without wishes
pays for none of this.

A consumer that refuses a message (AMQP 1.0 part 3, section 3.4.5, undeliverable-here) wants all but that: `refuse`. The message stays in
its place for other consumers, in queues of every kind (refusals.py has those that choose by themselves).
"""

from ..errors import NOT_IMPLEMENTED, RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..parts import needed
from .features.feature import Feature
from .rules import Rules

if False:  # for the type checker alone
    from typing import Any

LOOKS_MAX = 64  # messages that `fits` is called for in one delivery, before others have their turn
STEPS_MAX = 4096  # messages, already read, that one delivery passes by
WALK_STEPS = 16  # messages passed by, that take as long as a delivery
MARK_STEPS = 64  # messages between two places that a wish remembers
SCAN_MAX = 256
REFUSED_MAX = 1024  # messages that one consumer is not to get again


class Walk:
    """How far a wish has read the messages of a queue, or of one level of its priorities."""

    def __init__(self):
        self.passed = layout.NONE  # the position up to which it has read; NONE: it has not begun
        self.marks = []  # (entry, position) of messages on that way, in order


class Wish:
    """The filter of one consumer. `fits`: a function of the broker and a message."""

    def __init__(self, consumer, fits, alone):
        self.consumer = consumer
        self.fits = fits
        self.alone = alone
        self.walks = {}  # level of the queue's priorities, 0 where it has none -> Walk
        self.returned = {}  # entry -> position of messages that returned to a place that a walk has passed
        self.fitting = {}  # entry -> position of those among them that it has read again, and that fit
        self.unfit = {}  # where returning messages wait: entry -> (position, message) of those that it has read, and that did not fit
        self.waits = False  # its looks took what the last round had left: others are asked once before it, whatever their priority
        self.refused = {}  # position -> entry of those that the consumer is not to get again, though they fit

    def walk(self, level):
        """The walk through a level's messages."""
        walk = self.walks.get(level)
        if walk is None:
            walk = self.walks[level] = Walk()
        return walk

    def has_refused(self, queue, entry, position):
        """True for a message that the consumer is not to get again. Messages that were only in the log for a while have other entries."""
        known = self.refused.get(position, layout.NONE)
        return known == entry or known != layout.NONE and queue.pages is not None

    def forget_refused(self, queue):
        """Forget refused messages that have gone from the queue."""
        entries = queue.tables.entries
        for position in [] if queue.is_paging() else list(self.refused):
            entry = self.refused[position]
            if entries[entry + layout.ENTRY_QUEUE] != queue.handle or entries[entry + layout.ENTRY_POSITION] != position:
                del self.refused[position]


class Rule(Feature):
    """The wishes of one queue's consumers; in the place of the rule of groups, which asks for a message for a consumer too."""

    is_cut = False  # the last `among_new` has ended before its level did

    def __init__(self, broker, queue):
        self.broker = broker
        self.queue = queue
        self.inner: "Any" = None  # the queue's rule of groups, where it has one
        self.wishes = {}  # by consumer record
        self.moved = layout.NONE  # the entry that `bring` put at the head
        self.moved_position = 0

    def install(self):
        """Become a rule of the queue."""
        queue = self.queue
        if queue.rules is None:
            queue.rules = Rules({})
        self.inner = queue.rules.groups
        queue.rules.groups = self
        queue.rules.features.append(self)
        self.broker.tables.queues[queue.handle + layout.QUEUE_RETURNED] = layout.NONE  # the tree of returned messages uses the tags

    def end(self):
        """The queue has other rules now, and this one again; or it is deleted."""
        if self.wishes and (self.queue.rules is None or self not in self.queue.rules.features):
            self.install()

    def refused(self, wish, entry, position):
        """A consumer is not to get a message again."""

    def is_ordered(self):
        """True when every message that comes before others by its position, and tells in `came_back`."""
        return "x-delayed-retry-min" not in self.queue.effective

    def level_of(self, entry):
        """The level of the queue's priorities that an entry is in."""
        return 0

    def came_back(self, broker, queue, entry):
        """A message returns: every wish that has read beyond its place reads it again."""
        entries = broker.tables.entries
        entries[entry + layout.ENTRY_TAG] = layout.NONE
        position = entries[entry + layout.ENTRY_POSITION]
        level = self.level_of(entry)
        for wish in self.wishes.values():
            passed = wish.walk(level).passed
            if passed != layout.NONE and not is_behind(position, passed):
                wish.returned[entry] = position
        return False

    def tick(self, broker, queue):
        """Forget the wishes of removed consumers, and, with the last of them, this rule."""
        for handle in list(self.wishes):
            if self.wishes[handle].consumer not in queue.consumers:
                del self.wishes[handle]
        if not self.wishes:
            queue.rules.features.remove(self)
            queue.rules.groups = self.inner
            if not queue.rules.features and not queue.rules.consumer_timeout_ms and not queue.rules.single_active:
                queue.rules = None
            queue.update_plain()

    def begin(self, broker, queue):
        """Consumers are about to be asked one by one: true."""
        self.put_back(broker, queue)
        return True

    def put_back(self, broker, queue):
        """Move the message that was put at the head and not delivered back to its place."""
        entry, position = self.moved, self.moved_position
        self.moved = layout.NONE
        if entry != layout.NONE and entry == queue.head() and broker.tables.entries[entry + layout.ENTRY_POSITION] == position:
            queue.unlink(entry)
            queue.requeue(entry)

    def bring(self, broker, queue, consumer):
        """Put the first message that `consumer` wants at the head; false: it wants none of those that are there, or may have none."""
        if not broker.consumers.has_credit(consumer) or consumer.hungry:
            return False
        self.put_back(broker, queue)
        wish = self.wishes.get(consumer.handle)
        if wish is None or wish.consumer is not consumer:
            return True
        if broker.tables.engine.left <= 0:
            broker.activate(queue)  # it is asked in the next round
            return False
        if wish.waits:
            wish.waits = False
            broker.activate(queue)
            return False
        entry = self.first(broker, queue, wish)
        if entry == layout.NONE:
            if broker.tables.engine.left <= 0:  # the next one is asked first in the next round
                wish.waits = True
                broker.tables.queues[queue.handle + layout.QUEUE_TURN] = queue.consumers.index(consumer) + 1
                broker.activate(queue)
            return False
        if entry != queue.head():
            self.moved, self.moved_position = entry, broker.tables.entries[entry + layout.ENTRY_POSITION]
            self.move(queue, entry)
        if queue.rules.expires:
            queue.rules.expiry.before_delivery(broker, queue)
            if queue.head() != entry:  # its time was over
                broker.activate(queue)
                return False
        return True

    def move(self, queue, entry):
        """Put an entry at the head."""
        queue.unlink(entry)
        queue.link(entry, layout.NONE)

    def delivered(self, broker, queue, consumer):
        """The message that `bring` put at the head was delivered."""
        self.moved = layout.NONE

    def first(self, broker, queue, wish):
        """The first message that a wish wants, or NONE: there is none, or the round has no more effort left (`fits` charges it)."""
        if not self.is_ordered():
            return self.among_first(broker, queue, wish)
        entry = self.among_returned(broker, queue, wish)
        if entry != layout.NONE or wish.returned:
            return entry
        return self.among_new(broker, queue, wish, 0)

    def first_of(self, queue, level):
        """The first ready entry of a level, or NONE."""
        return queue.head()

    def among_new(self, broker, queue, wish, level):
        """The first message of a level that a wish has not read, and wants, or NONE."""
        entries, engine = broker.tables.entries, broker.tables.engine
        walk = wish.walk(level)
        entry = self.place(broker, queue, walk, level)
        looks, steps = 0, 0
        while entry != layout.NONE and self.level_of(entry) == level:
            behind = entries[entry + layout.ENTRY_NEXT]
            position = entries[entry + layout.ENTRY_POSITION]
            steps += 1
            if walk.passed == layout.NONE or is_behind(position, walk.passed):
                looks += 1
                is_refused = wish.has_refused(queue, entry, position)
                if not is_refused and wish.fits(broker, entries[entry + layout.ENTRY_MESSAGE]):
                    break
                walk.passed = position
                if wish.alone and not is_refused:
                    queue.unlink(entry)
                    queue.drop(entry)
                elif looks % MARK_STEPS == 1:
                    mark(entries, walk, entry, position)
            elif steps % MARK_STEPS == 0:
                mark(entries, walk, entry, position)
            if looks >= LOOKS_MAX or steps >= STEPS_MAX or engine.left <= 0:
                if behind != layout.NONE:
                    broker.activate(queue)  # the search continues in the next round
                self.is_cut = True
                entry = layout.NONE
                break
            entry = behind
        else:
            entry = layout.NONE
        engine.turned(steps // WALK_STEPS)
        return entry

    def among_first(self, broker, queue, wish):
        """The first of SCAN_MAX messages that a wish wants, or NONE; those that it has read in their places it does not read again, and
        passes by those that were refused."""
        entries, engine = broker.tables.entries, broker.tables.engine
        before, wish.unfit = wish.unfit, {}
        entry = queue.head()
        looks = steps = 0
        while entry != layout.NONE and looks < SCAN_MAX and engine.left > 0:
            steps += 1
            behind = entries[entry + layout.ENTRY_NEXT]
            look = entries[entry + layout.ENTRY_POSITION], entries[entry + layout.ENTRY_MESSAGE]
            if not wish.has_refused(queue, entry, look[0]):
                looks += 1
                if before.get(entry) != look and wish.fits(broker, look[1]):
                    break
                if wish.alone:
                    queue.unlink(entry)
                    queue.drop(entry)
                else:
                    wish.unfit[entry] = look
            entry = behind
        else:
            entry = layout.NONE
        engine.turned(steps // WALK_STEPS)
        return entry

    def among_returned(self, broker, queue, wish):
        """The first message that returned to a place that the wish has passed, and that fits; NONE: there is none, or the round has no more
        effort left for those that are in wish.returned yet."""
        entries, engine = broker.tables.entries, broker.tables.engine
        while wish.returned and engine.left > 0:
            entry, position = wish.returned.popitem()
            if is_ready(broker, queue, entry, position) and wish.fits(broker, entries[entry + layout.ENTRY_MESSAGE]):
                wish.fitting[entry] = position
            elif entry in wish.fitting:
                del wish.fitting[entry]
        if wish.returned:
            broker.activate(queue)
            return layout.NONE
        best = layout.NONE
        for entry in list(wish.fitting):
            position = wish.fitting[entry]
            if not is_ready(broker, queue, entry, position) or wish.has_refused(queue, entry, position):
                del wish.fitting[entry]
            elif best == layout.NONE or self.comes_before(queue, entry, best):
                best = entry
        return best

    def comes_before(self, queue, entry, other):
        """True when a ready entry is to be delivered before another one."""
        return queue.is_later(other, entry)

    def place(self, broker, queue, walk, level):
        """Where to go on: behind the last of the remembered places that is there yet."""
        while walk.marks:
            entry, position = walk.marks[-1]
            if is_ready(broker, queue, entry, position):
                return broker.tables.entries[entry + layout.ENTRY_NEXT]
            walk.marks.pop()
        return self.first_of(queue, level)


def mark(entries, walk, entry, position):
    """Remember a place on a walk; the entry is ready, and has no tag."""
    if entries[entry + layout.ENTRY_TAG] >= 0:
        entries[entry + layout.ENTRY_TAG] = layout.NONE
    if not walk.marks or is_behind(position, walk.marks[-1][1]):
        walk.marks.append((entry, position))


def is_behind(position, other):
    """True when a position comes after another one: they wrap at 30 bits and lie less than half of that apart."""
    return 0 < (position - other) & layout.MASK < 0x20000000


def is_ready(broker, queue, entry, position):
    """True while the message that stood at `position`, and had no tag then, is ready in the queue."""
    entries = broker.tables.entries
    return (
        entries[entry + layout.ENTRY_QUEUE] == queue.handle
        and entries[entry + layout.ENTRY_POSITION] == position
        and entries[entry + layout.ENTRY_TAG] < 0
    )


def attach(broker, consumer, fits, alone):
    """A consumer that was just subscribed gets only messages for which `fits(broker, message)` is true. `alone`: no other consumer gets the
    rest.

    Its wish ends with it. Raises not-implemented for a queue with groups, of which each is to come in order and whole; the caller cancels
    the consumer. A stream's reader passes the others by: `consumer.wanted`.
    """
    queue = consumer.queue
    if queue.is_stream:
        consumer.wanted = fits
        return
    if "x-group-key" in queue.effective:
        text = "no filter for consumers of %s: it has x-group-key, and a group comes whole and in order"
        raise ProtocolError(NOT_IMPLEMENTED, text % broker.topology.called("queue", queue.name))
    rule_of(broker, queue).wishes[consumer.handle] = Wish(consumer, fits, alone)
    broker.activate(queue)


def refuse(broker, consumer, entry):
    """A consumer is not to get an entry's message again: how many those are. Raises resource-error when that would be more than
    REFUSED_MAX."""
    queue = consumer.queue
    rule = rule_of(broker, queue)
    wish = rule.wishes.get(consumer.handle)
    if wish is None or wish.consumer is not consumer:
        wish = rule.wishes[consumer.handle] = Wish(consumer, everything, False)
    if len(wish.refused) >= REFUSED_MAX:
        wish.forget_refused(queue)
        if len(wish.refused) >= REFUSED_MAX:
            raise ProtocolError(RESOURCE_ERROR, "a consumer has refused %d messages of its queue, and that is the most" % REFUSED_MAX)
    position = broker.tables.entries[entry + layout.ENTRY_POSITION]
    wish.refused[position] = entry
    rule.refused(wish, entry, position)
    return len(wish.refused)


def rule_of(broker, queue):
    """The Rule of a queue, installed where it has none."""
    rule = None if queue.rules is None else queue.rules.groups
    if not isinstance(rule, Rule):
        rule = kind_of(queue)(broker, queue)
        rule.install()
        queue.update_plain()
    return rule


def kind_of(queue):
    """The class of the rule for a queue whose consumers have no wishes yet."""
    if queue.rules is None or queue.rules.groups is None and queue.rules.priority is None:
        return Rule
    refusals = needed("queue.refusals", "undeliverable-here")
    return refusals.Grouped if queue.rules.groups is not None else refusals.Levelled


def everything(broker, message):
    """The wish of who wants all but what it has refused."""
    return True
