"""Message groups: messages with the same value of one header (x-group-key) go to one consumer at a time, in order.

A group belongs to the consumer that has an unsettled message of it; without one it is free for the next. Before a delivery the rule moves
the first message that the consumer may have to the head; it reads at most SCAN_MAX messages, once for all consumers.

The rule remembers each delivery of a group's owner, as one number a message, and checks them when it meets the group: it forgets settled
ones from the end, so the cost of a delivery does not grow with the number of unsettled ones. UNSETTLED_MAX bounds the remembered
deliveries.
"""

from ...memory import layout
from ...message import reading
from ..identities import digest
from .feature import Feature

if False:  # for the type checker alone
    from typing import Any

SCAN_MAX = 200
UNSETTLED_MAX = 8192  # of one queue with groups: a further delivery waits
FORGOTTEN_MAX = 256  # settled messages of a group that are forgotten at once; it stays its owner's until all are
SHIFT = 30  # a delivery is entry << SHIFT | position


class Owners:
    """Which consumer each group of a queue belongs to. c_accel/grouping.py has it in C."""

    key_of = staticmethod(digest)

    def __init__(self):
        self.held = {}  # group -> [consumer record, delivery, ...]
        self.swept = []  # groups still to be checked for deliveries to forget

    def __len__(self):
        return len(self.held)

    def delivered(self, broker, queue, consumer, entry, position, group):
        """The message of a group (None: of none) that stood at a position was delivered to a consumer (its record)."""
        if group is not None and self.is_held(broker, queue, consumer, entry, position):
            held = self.held.get(group)
            if held is None or held[0] != consumer:
                held = self.held[group] = [consumer]
            held.append(entry << SHIFT | position)
            self.forget_some(broker, queue, held)
        self.sweep(broker, queue)

    def is_held(self, broker, queue, consumer, entry, position):
        """True while the message that stood at `position` is with that consumer."""
        entries = broker.tables.entries
        return (
            entries[entry + layout.ENTRY_CONSUMER] == consumer
            and entries[entry + layout.ENTRY_POSITION] == position
            and entries[entry + layout.ENTRY_TAG] != layout.NONE
            and entries[entry + layout.ENTRY_TAG] != 0
            and entries[entry + layout.ENTRY_QUEUE] == queue.handle
        )

    def forget_some(self, broker, queue, held):
        """Forget up to two settled messages in the middle of a group's: so settled ones are never many more than others."""
        for _ in range(2):
            at = 1 + broker.tables.state[layout.STATE_DELIVERED] % (len(held) - 1) if len(held) > 2 else 1
            if at < len(held) - 1 and not self.is_held(broker, queue, held[0], held[at] >> SHIFT, held[at] & layout.MASK):
                held[at] = held[-1]
                held.pop()

    def sweep(self, broker, queue):
        """Look up the owners of two groups, which forgets a group without owner: perhaps no message of the group ever comes again."""
        for _ in range(2):
            if not self.swept:
                self.swept = list(self.held)
            if self.swept:
                self.owner_of(broker, queue, self.swept.pop())

    def owner_of(self, broker, queue, group):
        """The consumer record that a group belongs to, or None."""
        held = self.held.get(group)
        if held is None:
            return None
        for _ in range(FORGOTTEN_MAX):
            if len(held) == 1:
                del self.held[group]
                return None
            if self.is_held(broker, queue, held[0], held[-1] >> SHIFT, held[-1] & layout.MASK):
                return held[0]
            held.pop()
        broker.activate(queue)
        return held[0]


class Rule(Feature):
    """x-group-key: the name of the header."""

    bit = layout.LIMIT_GROUPS

    def __init__(self, arguments):
        self.header = arguments["x-group-key"]
        self.owners: "Any" = None  # Owners, from the first search on; an engine may have made its own
        self.seen = {}  # entry -> (position, group) of messages read lately
        self.first: dict = {}  # consumer record (None: any) -> the first message for it, as far as was looked since `begin`
        self.owned: dict = {}  # group -> the consumer record that it belongs to, of those met since `begin`
        self.next = layout.NONE  # the entry where the search continues, and the number left
        self.left = 0
        self.brought: "Any" = None  # (entry, position, group) of the message last moved to the head

    def pushed(self, broker, queue, message, entry):
        """A message that is not delivered has no tag."""
        broker.tables.entries[entry + layout.ENTRY_TAG] = layout.NONE

    def came_back(self, broker, queue, entry):
        """A message that comes back has no tag either."""
        broker.tables.entries[entry + layout.ENTRY_TAG] = layout.NONE
        return False

    def begin(self, broker, queue):
        """Begin a search at the head, before consumers are asked one by one. False when no consumer may have a further message."""
        if self.owners is None:
            self.owners = Owners()
        self.first, self.owned = {}, {}
        self.next = queue.head()
        self.left = SCAN_MAX
        return queue.unsettled_count() < UNSETTLED_MAX

    def bring(self, broker, queue, consumer):
        """Put the first message that `consumer` may have at the head; false: none among the first SCAN_MAX. After `begin`."""
        first = self.first
        entries = broker.tables.entries
        if None not in first and consumer.handle not in first:
            self.look(broker, queue, consumer.handle, entries)
        entry = first.get(consumer.handle, first.get(None))  # a message that any consumer may have was the last one read
        if entry is None:
            return False
        if entry != queue.head():
            queue.unlink(entry)
            queue.link(entry, layout.NONE)
        self.brought = (entry, entries[entry + layout.ENTRY_POSITION], self.group_at(broker, entry))
        return True

    def look(self, broker, queue, consumer, entries):
        """Go on with the search, up to the first message that this consumer (its record) may have."""
        first, seen, owned = self.first, self.seen, self.owned
        looked, left = self.next, self.left
        while left and looked != layout.NONE:
            known = seen.get(looked)
            group = known[1] if known is not None and known[0] == entries[looked + layout.ENTRY_POSITION] else self.group_at(broker, looked)
            if group not in owned:
                owned[group] = None if group is None else self.owners.owner_of(broker, queue, group)
            owner = owned[group]
            if owner not in first:
                first[owner] = looked
            looked = entries[looked + layout.ENTRY_NEXT]
            left -= 1
            if owner is None or owner == consumer:
                break
        self.next, self.left = looked, left

    def delivered(self, broker, queue, consumer):
        """The message that `bring` put at the head was delivered to a consumer."""
        entry, position, group = self.brought
        self.seen.pop(entry, None)
        self.owners.delivered(broker, queue, consumer.handle, entry, position, group)

    def group_at(self, broker, entry):
        """The group of a message in the queue, read once while it is near the head; None: it has none."""
        position = broker.tables.entries[entry + layout.ENTRY_POSITION]
        known = self.seen.get(entry)
        if known is None or known[0] != position:
            if len(self.seen) > 2 * SCAN_MAX:
                self.seen.clear()
            known = self.seen[entry] = (position, self.group_of(broker, broker.tables.entries[entry + layout.ENTRY_MESSAGE]))
        return known[1]

    def group_of(self, broker, message):
        """The digest of the value of the header, or None."""
        value = reading.header_of(broker.tables, message, self.header)
        return None if value is None or isinstance(value, (list, dict)) else self.owners.key_of(value)
