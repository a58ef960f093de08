"""Dead letters without room or route wait in a list that takes no memory; so do those beyond a round's part.

Boards without the rule dead_letter do not carry this file.
"""

from ..memory import layout

LETTERS_MAX = 64  # dead letters in a round, so that a queue that drops thousands does not delay every connection

REASONS = ("expired", "maxlen", "rejected", "delivery_limit", "deleted")  # deleted: its queue, by a client of AMQP 0-10


class DeadLetters:
    """Entries, in no list of a queue, whose dead letters are to be tried again: linked by ENTRY_NEXT, the reason in ENTRY_PREVIOUS.

    The rounds to come try those up to `until`, this round `left` more of them; NONE: all wait for time to pass. `has_turns`: the next round
    is to call `turn`.
    """

    def __init__(self, tables):
        self.entries = tables.entries
        self.first = self.last = self.until = layout.NONE
        self.left = LETTERS_MAX
        self.has_turns = False

    def add(self, entry, reason):
        """Append an entry."""
        self.entries[entry + layout.ENTRY_NEXT] = layout.NONE
        self.entries[entry + layout.ENTRY_PREVIOUS] = REASONS.index(reason)
        if self.first == layout.NONE:
            self.first = entry
        else:
            self.entries[self.last + layout.ENTRY_NEXT] = entry
        self.last = entry

    def has_turn(self, entry, reason):
        """True when a dead letter may be published in this round; else its entry is appended to the list."""
        self.has_turns = True
        if self.left > 0:
            self.left -= 1
            return True
        self.add(entry, reason)
        self.until = entry
        return False

    def all(self, broker):
        """(queue, entry) of each."""
        entry = self.first
        while entry != layout.NONE:
            yield broker.queue_objects[self.entries[entry + layout.ENTRY_QUEUE]], entry
            entry = self.entries[entry + layout.ENTRY_NEXT]

    def retry(self):
        """Time has passed: publish each dead letter again; a letter for which no queue has room stays in the list."""
        self.until = self.last if self.first != layout.NONE else layout.NONE
        self.has_turns = True

    def turn(self, broker):
        """A round begins: publish some of the dead letters up to `until`. While any are left, no new one is published."""
        self.left = LETTERS_MAX
        while self.until != layout.NONE and self.left > 0:
            entry = self.first
            self.first = self.entries[entry + layout.ENTRY_NEXT]
            if entry == self.until:
                self.until = layout.NONE
            queue = broker.queue_objects[self.entries[entry + layout.ENTRY_QUEUE]]
            if broker.queues.get(queue.name) is not queue:
                broker.counters["dropped_with_queue"] += 1
                self.left -= 1
            broker.discard(queue, entry, REASONS[self.entries[entry + layout.ENTRY_PREVIOUS]])
        self.has_turns = self.left < LETTERS_MAX or self.until != layout.NONE
