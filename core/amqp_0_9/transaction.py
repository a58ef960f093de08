"""A channel in transaction mode (0-9-1 section 1.9): publishes and acknowledgements are kept and take effect together, at tx.commit.

Kept contents hold their place in the arena; kept acknowledgements leave their deliveries unsettled until the commit, and for ever after
a rollback, as the specification asks.
"""

from .. import broker as broker_core
from .. import layout
from . import content


class Transaction:
    """What one channel has kept since the last commit or rollback."""

    def __init__(self):
        self.publishes = []  # (message, exchange, key, mandatory, expires)
        self.settlements = []  # (entry, multiple, how): how is None for accepted, else whether to requeue

    def add(self, channel):
        """Keep the content that a channel has completed."""
        self.publishes.append((channel.message, channel.exchange, channel.key(), channel.mandatory, channel.expires))

    def holds(self, entry):
        """True when a kept acknowledgement names this entry."""
        for kept in self.settlements:
            if kept[0] == entry:
                return True
        return False

    def has_room(self, broker):
        """True when all kept contents can be taken now."""
        entries = 0
        for message, exchange, key, _, _ in self.publishes:
            blocks = broker.tables.messages[message + layout.MESSAGE_BLOCKS]
            targets = broker.route(exchange, key, lambda: broker.properties_of(message))
            entries += len(targets)
            for found in targets:
                if found.full(blocks):
                    return False
        full = broker.journal is not None and broker.journal.log.full()
        return broker.tables.state[layout.POOL_ENTRIES + 2] >= entries and not full

    def commit(self, session, channel):
        """Let everything take effect, in order. The caller has seen `has_room`."""
        broker = session.broker
        publishes, settlements = self.publishes, self.settlements
        self.publishes, self.settlements = [], []
        for message, exchange, key, mandatory, expires in publishes:
            outcome = content.put(broker, message, exchange, key, expires)
            content.settle(session, channel, message, mandatory, broker_core.UNROUTABLE if outcome == broker_core.NO_ROOM else outcome)
        for entry, multiple, requeue in settlements:
            if requeue is None:
                broker.settle(channel, entry, multiple)
            else:
                broker.reject(channel, entry, multiple, requeue)
        broker.counters["commits"] += 1

    def rollback(self, broker):
        """Forget everything that was kept."""
        for kept in self.publishes:
            broker.tables.release(kept[0])
        self.publishes, self.settlements = [], []
        broker.counters["rollbacks"] += 1
