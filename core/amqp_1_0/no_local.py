"""The filter no-local (`apache.org:no-local-filter:list`): messages that a link's own container has published do not go to the link.

Who publishes is known while a message is put into its queues (Termini.publisher); a message is a container's own when it comes over any
connection of that container, or, of one that has no name, over the same connection. Messages that the broker publishes by itself (dead
letters) are nobody's. Two rules:

    Kept       of a queue that is one subscription's: an own message is taken and not kept. A durable subscription says it in its argument
               `no-local`, with its container's name, and so it holds while the link is away, and after a start of the broker.
    Noted      of any other queue, as long as all of it is in memory: own messages stay for others. It notes them as they come, while its
               link is attached.
"""

from ..memory import layout
from ..outcomes import SWALLOWED, TAKEN
from ..queue.features.feature import Feature
from ..queue.rules import Rules
from . import termini

if False:  # for the type checker alone
    from typing import Any

ARGUMENT = "no-local"  # of a subscription's queue: the container whose messages it does not get


class Rule(Feature):
    """What both have. `owner`: a container's name, or the protocol (contract.Protocol) of a peer without one."""

    def __init__(self, broker, queue, owner):
        self.broker = broker
        self.queue = queue
        self.owner = owner
        termini.of(broker).local_rules += 1
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
        publisher = termini.of(broker).publisher
        return publisher is not None and self.owner in (publisher.container_id or publisher, publisher)

    def is_over(self):
        """True when nobody needs it any more."""
        return self.broker.queues.get(self.queue.name) is not self.queue

    def end(self):
        """The queue has other rules now, and this one again; or it is deleted."""
        if self.is_over():
            termini.of(self.broker).local_rules -= 1
        elif self.queue.rules is None or self not in self.queue.rules.features:
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
        termini.of(self.broker).local_rules -= 1
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


def owner_of(protocol):
    """The owner whose messages a peer's links with the filter do not get: its container's name, or the protocol."""
    return protocol.container_id or protocol


def keep_out(broker, queue, owner):
    """Add the rule that a subscription's queue gets no messages of `owner`, unless the queue has it."""
    if queue.rules is None or not [rule for rule in queue.rules.features if isinstance(rule, Kept)]:
        Kept(broker, queue, owner)


def look_for_kept(broker):
    """Subscriptions that a start of the broker has found in the log have their rule again: called before anything is published by a
    container, and of use once."""
    kept = termini.of(broker)
    if not kept.has_looked:
        kept.has_looked = True
        for queue in list(broker.queues.values()):
            if isinstance(queue.arguments.get(ARGUMENT), str) and not queue.is_stream:
                keep_out(broker, queue, queue.arguments[ARGUMENT])


def publishing(protocol, publish):
    """Call `publish()` while the rules know the peer of `protocol` as publisher. Returns its answer."""
    kept = protocol.broker.kept
    if kept is None or not kept.local_rules:
        return publish()
    kept.publisher = protocol
    try:
        return publish()
    finally:
        kept.publisher = None
