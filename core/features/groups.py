"""Message groups: messages with the same value of one header (x-group-key) go to one consumer at a time, in order.

A group belongs to the consumer that has an unsettled message of it; without one it is free for the next. Before a delivery the first
message that the consumer may have is brought to the head; at most SCAN_MAX messages are looked at for that.
"""

from .. import layout
from .feature import Feature

SCAN_MAX = 200


class Rule(Feature):
    """x-group-key: the name of the header."""

    def __init__(self, arguments):
        self.header = arguments["x-group-key"]

    def bring(self, broker, queue, consumer):
        """Put the first message that `consumer` may have at the head; false when there is none among the first SCAN_MAX."""
        owners = self.owners(broker, queue)
        entries = broker.tables.entries
        entry = queue.head()
        left = SCAN_MAX
        while entry != layout.NONE and left:
            group = self.group_of(broker, entries[entry + layout.ENTRY_MESSAGE])
            if group is None or owners.get(group, consumer.handle) == consumer.handle:
                if entry != queue.head():
                    queue.unlink(entry)
                    queue.link(entry, layout.NONE)
                return True
            entry = entries[entry + layout.ENTRY_NEXT]
            left -= 1
        return False

    def owners(self, broker, queue):
        """Group -> consumer record, from what is unsettled."""
        owners = {}
        entries = broker.tables.entries
        for consumer in queue.consumers:
            entry = broker.tables.channels[consumer.channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
            while entry != layout.NONE:
                if entries[entry + layout.ENTRY_QUEUE] == queue.handle and entries[entry + layout.ENTRY_CONSUMER] == consumer.handle:
                    owners[self.group_of(broker, entries[entry + layout.ENTRY_MESSAGE])] = consumer.handle
                entry = entries[entry + layout.ENTRY_NEXT]
        return owners

    def group_of(self, broker, message):
        """The value of the header, or None."""
        value = broker.headers_of(message).get(self.header)
        return None if isinstance(value, (list, dict)) else value
