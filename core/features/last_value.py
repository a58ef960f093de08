"""A last-value queue: of all ready messages with the same value of one header (x-last-value-key) only the newest stays.

The newest stands at the tail. A message that is delivered and not settled is out of the queue and is not replaced.
"""

from .. import layout
from .feature import Feature


class Rule(Feature):
    """x-last-value-key: the name of the header."""

    def __init__(self, arguments):
        self.header = arguments["x-last-value-key"]
        self.latest = {}  # value -> (entry, position)

    def pushed(self, broker, queue, message, entry):
        """Drop the message that this one replaces."""
        entries = broker.tables.entries
        value = broker.headers_of(message).get(self.header)
        if value is None or isinstance(value, (list, dict)):
            return
        entries[entry + layout.ENTRY_TAG] = layout.NONE  # not delivered
        old = self.latest.get(value)
        if old is not None and is_ready(entries, queue, old):
            queue.unlink(old[0])
            queue.drop(old[0])
            broker.counters["replaced"] += 1
        self.latest[value] = (entry, entries[entry + layout.ENTRY_POSITION])
        self.forget_gone(entries, queue)

    def recovered(self, broker, queue):
        """What came out of the log is there; the newest of each value is the one to be replaced."""
        entries = broker.tables.entries
        entry = queue.head()
        while entry != layout.NONE:
            value = broker.headers_of(entries[entry + layout.ENTRY_MESSAGE]).get(self.header)
            if value is not None and not isinstance(value, (list, dict)):
                entries[entry + layout.ENTRY_TAG] = layout.NONE
                self.latest[value] = (entry, entries[entry + layout.ENTRY_POSITION])
            entry = entries[entry + layout.ENTRY_NEXT]

    def forget_gone(self, entries, queue):
        """Keep `latest` at about the size of the queue."""
        if len(self.latest) > 2 * queue.message_count() + 16:
            self.latest = {each: found for each, found in self.latest.items() if is_ready(entries, queue, found)}


def is_ready(entries, queue, found):
    """True when an entry is still that message, in the queue; its delivery gives it a tag, and its end 0."""
    entry, position = found
    return (entries[entry + layout.ENTRY_QUEUE] == queue.handle and entries[entry + layout.ENTRY_POSITION] == position
            and entries[entry + layout.ENTRY_TAG] == layout.NONE)
