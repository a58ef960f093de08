"""A channel in transaction mode (0-9-1 section 1.9): publishes and acknowledgements are kept and take effect together, at tx.commit.

Kept contents hold their place in the arena; kept acknowledgements leave their deliveries unsettled until the commit, and for ever after
a rollback, as the specification asks.
"""

from .. import layout
from ..errors import RESOURCE_ERROR, ProtocolError
from ..hot import find_tag
from . import content
from .channel import with_copies

COPIES_SIZE = 64  # octets of CC and BCC that count as one thing more


class Transaction:
    """What one channel has kept since the last commit or rollback; all channels together transaction_count_max things."""

    def __init__(self, tables):
        self.tables = tables
        self.count = 0  # of `transactions_left`
        self.publishes = []  # (message, Channel.copies, mandatory, expires)
        self.settlements = []  # (delivery tag, multiple, how): how is None for accepted, else whether to requeue
        self.single = set()  # delivery tags of those that are not multiple
        self.kept_to = 0  # the highest tag of those that are: to the client all up to it are settled

    def check_room(self):
        """Raise resource-error when no more may be kept."""
        if self.tables.transactions_left < 1:
            raise ProtocolError(RESOURCE_ERROR,
                                "this broker keeps no more publishes and acknowledgements for commits (transaction_count_max)")

    def took(self, count):
        """So many more are kept."""
        self.count += count
        self.tables.transactions_left -= count

    def add(self, channel):
        """Keep the content that a channel has completed; there was room when it began."""
        self.took(1 + len(channel.copies) // COPIES_SIZE)
        self.publishes.append((channel.message, channel.copies, channel.mandatory, channel.expires))

    def keep(self, tag, multiple, how):
        """Keep a settlement for the commit."""
        self.check_room()
        self.took(1)
        self.settlements.append((tag, multiple, how))
        if multiple:
            self.kept_to = max(self.kept_to, tag)
        else:
            self.single.add(tag)

    def holds(self, tag):
        """True when a kept acknowledgement covers this delivery tag: to the client it is settled."""
        return tag <= self.kept_to or tag in self.single

    def last_open(self, tables, channel):
        """The delivery tag of the last unsettled entry that no kept settlement covers; 0 when there is none: so each covers at least one,
        and there are no more of them than entries."""
        entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL]
        last = 0
        while entry != layout.NONE:
            tag = whole_tag(tables, channel, entry)
            last = last or tag
            if not self.holds(tag):
                return tag
            if tag <= self.kept_to:
                break
            entry = tables.entries[entry + layout.ENTRY_PREVIOUS]
        self.kept_to = max(self.kept_to, last)  # whoever asks again need not look at them again
        return 0

    def recover(self, broker, channel):
        """basic.recover: requeue what no kept settlement covers, the newest first. As in RabbitMQ the others stay for the commit."""
        unsettled = broker.unsettled_back_from(channel, layout.NONE)
        broker.requeue((entry for entry in unsettled if not self.holds(whole_tag(broker.tables, channel, entry))), channel)

    def take_settlements(self):
        """The kept settlements; nothing is kept then."""
        self.took(-self.count)
        settlements = self.settlements
        self.settlements = []
        self.single = set()
        self.kept_to = 0
        return settlements

    def has_room(self, broker):
        """True when all kept contents can be taken now."""
        entries = 0
        for message, copies, _, _ in self.publishes:
            exchange, key = names_of(broker, message, copies)
            blocks = broker.tables.messages[message + layout.MESSAGE_BLOCKS]
            targets = broker.route(exchange, key, lambda: broker.properties_of(message))
            entries += len(targets)
            if broker.is_full(targets, blocks, broker.journal is not None):
                return False
        return broker.has_entries(entries)

    def commit(self, session, channel):
        """Let everything take effect, in order. The caller has seen `has_room`."""
        broker = session.broker
        publishes, settlements = self.publishes, self.take_settlements()
        done = 0
        broker.committing = True
        try:
            for message, copies, mandatory, expires in publishes:
                exchange, key = names_of(broker, message, copies)
                outcome = content.put(broker, message, exchange, key, expires)
                done += 1
                content.settle(session, channel, message, mandatory, outcome)
        finally:
            broker.committing = False
            self.publishes = publishes[done:]  # none, unless something raised
        for tag, multiple, requeue in settlements:
            entry = unsettled_up_to(broker.tables, channel, tag, multiple)
            if entry == layout.NONE:
                continue  # its queue has gone meanwhile
            if requeue is None:
                broker.settle(channel, entry, multiple)
            else:
                broker.reject(channel, entry, multiple, requeue)
        broker.counters["commits"] += 1

    def rollback(self, broker):
        """Forget everything that was kept."""
        for kept in self.publishes:
            broker.tables.release(kept[0])
        self.publishes = []
        self.take_settlements()
        broker.counters["rollbacks"] += 1


def names_of(broker, message, copies):
    """The exchange's name and the key or keys of a kept content."""
    exchange, key = broker.names_of(message)
    return exchange, with_copies(key, copies)


def whole_tag(tables, channel, entry):
    """The delivery tag of an unsettled entry, which has its low 30 bits."""
    low = tables.entries[entry + layout.ENTRY_TAG]
    high = tables.channels[channel.handle + layout.CHANNEL_TAG_HIGH]
    return (high if low <= tables.channels[channel.handle + layout.CHANNEL_TAG] else high - 1) << 30 | low


def unsettled_up_to(tables, channel, tag, multiple):
    """The unsettled entry with a delivery tag, or (multiple) the last one up to it; NONE when there is none left."""
    entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
    if not multiple:
        return find_tag(tables.entries, tables.channels, tables.state, channel.handle, tag & layout.MASK)
    last = layout.NONE
    while entry != layout.NONE and (tag - tables.entries[entry + layout.ENTRY_TAG]) & layout.MASK < 0x20000000:
        last = entry
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return last
