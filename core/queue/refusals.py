"""Wishes of consumers, and messages that they are not to get again, in queues that choose by themselves who gets what (wishes.py has the
others, and those with a single active consumer). Boards do not carry it.

Priorities: a consumer gets the first message that it wants; those in front of that stay in their levels.

Groups (x-group-key): a group stays in order. No message of a group goes to a consumer that has refused one that stands before it; another
consumer has the group as soon as no delivery of it is unsettled. Where there is no other, that group waits, and no other one does.
"""

from ..memory import hot, layout
from .features.groups import SCAN_MAX
from .wishes import Rule

if False:  # for the type checker alone
    from typing import Any

LOOKS = 4  # messages that a search reads, which take as long as a delivery
NOBODY: "set" = set()  # never changed


class Levelled(Rule):
    """The rule of a queue with x-max-priority: a message that it has put at the head is back in its level before another one comes."""

    def install(self):
        """Become the first rule of the queue: before that of priorities."""
        Rule.install(self)
        features = self.queue.rules.features
        features.remove(self)
        features.insert(0, self)

    def level_of(self, entry):
        """The level of an entry."""
        return self.queue.tables.entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL

    def first_of(self, queue, level):
        """The first ready entry of a level, or one of a lower level, or NONE."""
        before = queue.rules.priority.around(queue, level)[2]
        return queue.head() if before == layout.NONE else queue.tables.entries[before + layout.ENTRY_NEXT]

    def comes_before(self, queue, entry, other):
        """True when a ready entry is to be delivered before another one: by its level, then by its age."""
        level, others = self.level_of(entry), self.level_of(other)
        return level > others if level != others else Rule.comes_before(self, queue, entry, other)

    def first(self, broker, queue, wish):
        """The first message that a wish wants, level by level, or NONE."""
        if not self.is_ordered():
            return self.among_first(broker, queue, wish)
        returned = self.among_returned(broker, queue, wish)
        if wish.returned or queue.head() == layout.NONE:
            return layout.NONE
        for last in reversed(queue.rules.priority.lasts(queue)):
            level = self.level_of(last)
            if returned != layout.NONE and self.level_of(returned) >= level:
                break
            self.is_cut = False
            entry = self.among_new(broker, queue, wish, level)
            if entry != layout.NONE or self.is_cut:
                return entry
        return returned

    def before_delivery(self, broker, queue):
        """Rules are about to see the head."""
        self.put_back(broker, queue)

    def pushed(self, broker, queue, message, entry):
        """A message has been put at the tail, where it is not at its level yet: so it is out of the list while another one goes back."""
        tables = broker.tables
        hot.unlink_ready(tables.messages, tables.entries, tables.queues, queue.handle, entry)
        self.put_back(broker, queue)
        queue.link(entry, tables.queues[queue.handle + layout.QUEUE_TAIL])

    def came_back(self, broker, queue, entry):
        """A message returns."""
        self.put_back(broker, queue)
        return Rule.came_back(self, broker, queue, entry)


class Grouped(Rule):
    """The rule of a queue with x-group-key, in the place of `inner`, which knows whose each group is."""

    def __init__(self, broker, queue):
        Rule.__init__(self, broker, queue)
        self.barred = {}  # entry -> (position, the wishes of those that are not to get its message)
        self.next = layout.NONE  # the entry where this delivery's search goes on, and how many it may read yet
        self.left = 0
        self.owned = {}  # consumer record -> (place, entry) of the first message of its groups
        self.free: "list" = []  # (place, entry, barred wishes) of messages of nobody's groups, each for a consumer that has none before it
        self.without: "Any" = None  # the wishes that have none of them; None: nobody has
        self.behind = {}  # group -> the wishes that are not to get a message which this search has passed

    def refused(self, wish, entry, position):
        """A consumer is not to get a message again."""
        self.barred[entry] = (position, self.barred_from(entry, position) | {wish})

    def barred_from(self, entry, position):
        """The wishes of those that are not to get a message."""
        known = self.barred.get(entry)
        if known is None:
            return NOBODY
        if known[0] != position:
            del self.barred[entry]
            return NOBODY
        return {each for each in known[1] if each.consumer.channel.consumers.get(each.consumer.tag) is each.consumer}

    def begin(self, broker, queue):
        """Begin a search at the head, before consumers are asked one by one. False when no consumer may have a further message."""
        self.next, self.left = queue.head(), SCAN_MAX
        self.owned, self.free, self.without, self.behind = {}, [], None, {}
        return self.inner.begin(broker, queue)

    def bring(self, broker, queue, consumer):
        """Put the first message that `consumer` may have at the head; false: none among the first SCAN_MAX, or the round has no more effort
        left. After `begin`."""
        engine = broker.tables.engine
        if engine.left <= 0:
            broker.activate(queue)  # it is asked in the next round
            return False
        wish = self.wishes.get(consumer.handle)
        entry, before = self.choice(consumer, wish), self.left
        while entry == layout.NONE and self.left and self.next != layout.NONE:
            self.look(broker, queue)
            entry = self.choice(consumer, wish)
        engine.turned((before - self.left) // LOOKS)
        if entry == layout.NONE:
            return False
        if entry != queue.head():
            self.move(queue, entry)
        self.inner.brought = (entry, broker.tables.entries[entry + layout.ENTRY_POSITION], self.inner.group_at(broker, entry))
        return True

    def choice(self, consumer, wish):
        """The first message that a consumer may have among those that the search has read, or NONE."""
        place, entry = self.owned.get(consumer.handle, (SCAN_MAX, layout.NONE))
        for each in self.free:
            if wish not in each[2]:
                return each[1] if each[0] < place else entry
        return entry

    def look(self, broker, queue):
        """Read the next message."""
        entry, place = self.next, SCAN_MAX - self.left
        self.next = broker.tables.entries[entry + layout.ENTRY_NEXT]
        self.left -= 1
        barred = self.barred_from(entry, broker.tables.entries[entry + layout.ENTRY_POSITION])
        group = self.inner.group_at(broker, entry)
        owner = None
        if group is not None:
            barred = barred | self.behind.get(group, NOBODY)
            if barred:
                self.behind[group] = barred
            owner = self.inner.owners.owner_of(broker, queue, group)
        if owner is not None:
            if owner not in self.owned and self.wishes.get(owner) not in barred:
                self.owned[owner] = (place, entry)
            return
        without = barred if self.without is None else self.without & barred
        if without != self.without:
            self.without = without
            self.free.append((place, entry, barred))

    def delivered(self, broker, queue, consumer):
        """The message that `bring` put at the head was delivered."""
        self.inner.delivered(broker, queue, consumer)

    def came_back(self, broker, queue, entry):
        """A message returns: `inner` is told so too."""
        return False
