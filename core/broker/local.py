"""No-local: messages that a peer has published do not go to its own subscription, in the families that have this (AMQP 1.0, 0-10).

Who publishes is known while a message is put into its queues (`publishing`); messages that the broker publishes by itself (dead letters)
are nobody's. Two rules:

    Kept       of a queue that is one subscription's: an own message is taken and not kept.
    Noted      of any other queue, as long as all of it is in memory: own messages stay for others. It notes them as they come, while its
               consumer is there.
"""

from ..memory import layout
from ..outcomes import SWALLOWED, TAKEN
from ..queue.features.feature import Feature
from ..queue.rules import Rules

if False:  # for the type checker alone
    from typing import Any


class Local:
    """Of a broker (Broker.local)."""

    def __init__(self):
        self.rules = 0
        self.publisher: "Any" = None  # the protocol whose publish is under way
        self.has_looked = False  # for rules of before the start (amqp_1_0/no_local.py)

    def publishing(self, protocol, publish):
        """Call `publish()` while the rules know the peer of `protocol` as publisher. Returns its answer."""
        if not self.rules:
            return publish()
        self.publisher = protocol
        try:
            return publish()
        finally:
            self.publisher = None


def of(broker):
    """The Local of a broker."""
    if broker.local is None:
        broker.local = Local()
    return broker.local


class Rule(Feature):
    """What both have. `owner`: the protocol (contract.Protocol) of a peer, or the name of all of its connections (container_id)."""

    def __init__(self, broker, queue, owner):
        self.broker = broker
        self.queue = queue
        self.owner = owner
        of(broker).rules += 1
        self.install()

    def install(self):
        """Become a rule of the queue."""
        queue = self.queue
        if queue.rules is None:
            queue.rules = Rules({})
        queue.rules.features.append(self)
        queue.update_plain()

    def is_own(self, broker):
        """True while the owner publishes."""
        publisher = of(broker).publisher
        return publisher is not None and self.owner in (publisher.container_id or publisher, publisher)

    def is_over(self):
        """True when nobody needs it any more."""
        return self.broker.queues.get(self.queue.name) is not self.queue

    def end(self):
        """The queue has other rules now, and this one again; or it is deleted."""
        if self.is_over() or self.queue.rules is not None and self in self.queue.rules.features:
            of(self.broker).rules -= 1
        else:
            self.install()


class Kept(Rule):
    """Of a subscription's queue."""

    def gate(self, broker, queue, message):
        """An own message is not kept."""
        return SWALLOWED if self.is_own(broker) else TAKEN


class Noted(Rule):
    """Of a queue that others read too, for one consumer. A message is noted by its record, which holds one message as long as the queue has
    it: whatever comes next in that record is seen here first."""

    is_alone = True  # nothing else wants the queue in memory

    def __init__(self, broker, queue, owner):
        self.own = bytearray(broker.limits.message_count_max // 8 + 1)  # a bit for each record
        self.consumer: "Any" = None
        Rule.__init__(self, broker, queue, owner)

    def install(self):
        """Become a rule of the queue, whose messages stay in memory: one that comes back from the log has another record."""
        Rule.install(self)
        self.is_alone = not self.queue.rules.looks_at_all
        self.queue.rules.looks_at_all = True

    def gate(self, broker, queue, message):
        """Note an own message."""
        at, bit = place_of(message)
        self.own[at] = self.own[at] | bit if self.is_own(broker) else self.own[at] & ~bit
        return TAKEN

    def fits(self, facts):
        """True for a message that is not the owner's own (filters.Taken.tests)."""
        at, bit = place_of(facts.message)
        return not self.own[at] & bit

    def is_over(self):
        """True when the consumer has gone."""
        return Rule.is_over(self) or self.consumer not in self.queue.consumers

    def tick(self, broker, queue):
        """Time has passed: a rule whose consumer has gone goes."""
        if self.is_over():
            self.remove()

    def remove(self):
        """Remove the rule from its queue."""
        queue = self.queue
        of(self.broker).rules -= 1
        queue.rules.features.remove(self)
        if self.is_alone and not [rule for rule in queue.rules.features if isinstance(rule, Noted)]:
            queue.rules.looks_at_all = False
        if not queue.rules.features and not queue.rules.consumer_timeout_ms:
            queue.rules = None
        queue.update_plain()


def place_of(message):
    """(octet, bit) of a message's record."""
    number = message // layout.MESSAGE_WIDTH
    return number >> 3, 1 << (number & 7)


def keep_out(broker, queue, owner):
    """Add the rule that a queue keeps no messages of `owner`; of one that has the rule `owner` is another from now on."""
    kept = [] if queue.rules is None else [rule for rule in queue.rules.features if isinstance(rule, Kept)]
    if kept:
        kept[0].owner = owner
    else:
        Kept(broker, queue, owner)


def publishing(protocol, publish):
    """Local.publishing of the protocol's broker."""
    local = protocol.broker.local
    return publish() if local is None else local.publishing(protocol, publish)
