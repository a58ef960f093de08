"""Targets that are kept while their links are detached: a sender can resume, and is told what became of its deliveries (section 2.6.13).

A sender that wants each message taken exactly once attaches with rcv-settle-mode second. The target then remembers each delivery that was
accepted, by its delivery-tag, until the sender has settled it; a sender that attaches again, with its own map of what is unsettled, is told
which of these were accepted, and does not send them again.

A target is known by its sender's container and link name. It is kept, from when its link has ended without closing, by its expiry-policy:

    link-detach        for its timeout, from then on
    session-end        until the session has ended, and its timeout from then on (the default, with a timeout of 0)
    connection-close   the same of the connection
    never              until a link of that name closes

With durable unsettled-state (2) the log has both target and deliveries: what a message's publish is in one group with. So the memory of it
outlives a broker whose power is cut. After a start a timeout counts anew.

Sources keep nothing: what a receiver has not settled is in its queue again, and is told by its delivery-tag (resuming.py).
"""

from ..errors import RESOURCE_ERROR
from ..shim import const
from . import composites, types
from .bounds import Places, tags_max
from .conditions import LinkError

if False:  # for the type checker alone
    from typing import Any

UNSETTLED_STATE = const(2)  # terminus-durability (section 3.5.5)
KIND = "kept"  # of definitions in the log; `part` says who reads them
TAG_KIND = "kept part"  # of those that are read when all of KIND have been


class Target:
    """One target. `durable`: section 3.5.5; `policy` and `timeout_s`: section 3.5.6 and the target's timeout."""

    def __init__(self, container, name, user, durable, policy, timeout_s):
        self.container = container
        self.name = name
        self.user = user
        self.durable = durable
        self.policy = policy
        self.timeout_s = timeout_s
        self.address: "Any" = None  # and capabilities: of the target, for a link that is recovered by its name
        self.capabilities: "list" = []
        self.accepted: "dict" = {}  # delivery-tag -> None: accepted, and not settled by their sender
        self.link: "Any" = None  # that is attached to it
        self.scope: "Any" = None  # the session or the protocol that has to end before its timeout begins
        self.until = None  # uptime in seconds when it is forgotten; None: not yet known

    def is_as(self, target):
        """True for a target of these fields."""
        given = target["expiry-policy"], target["timeout"], target["address"], target["capabilities"]
        return (self.policy, self.timeout_s, self.address, self.capabilities) == given

    def take(self, target):
        """It has these fields now."""
        self.policy, self.timeout_s = target["expiry-policy"], target["timeout"]
        self.address, self.capabilities = target["address"], target["capabilities"]

    def key(self):
        """What it is known by."""
        return self.container, self.name

    def name_in_log(self):
        """The name of its definition."""
        return "1.0\n%s\n%s" % (self.container, self.name)

    def definition(self):
        """It, for the log."""
        return {
            "kind": KIND,
            "part": "amqp_1_0.termini",
            "name": self.name_in_log(),
            "container": self.container,
            "link": self.name,
            "user": self.user,
            "policy": self.policy,
            "timeout": self.timeout_s,
            "address": self.address,
            "capabilities": self.capabilities,
        }

    def tag_definition(self, tag):
        """A delivery, for the log."""
        name = self.name_in_log()
        return {
            "kind": TAG_KIND,
            "part": "amqp_1_0.termini",
            "name": "%s\n%s" % (name, tag.hex()),
            "of": [self.container, self.name],
            "tag": tag,
        }


class Termini:
    """All of a broker's (Broker.kept), and the places for links."""

    def __init__(self, broker):
        self.broker = broker
        self.places = Places(broker.limits)
        self.targets: "dict[Any, Any]" = {}
        self.count = 0  # deliveries of all of them
        self.local_rules = 0  # of no_local.py, which knows by the next two what a rule has to know
        self.publisher: "Any" = None  # the protocol that publishes just now
        self.has_looked = False

    # Links

    def attach(self, link, fields, target):
        """The target of a link that attaches, with the deliveries that its sender has not settled; None: it keeps nothing.

        `fields`: of the attach; `target`: the target's. Raises LinkError where there is no place for another.
        """
        key = link.protocol.container_id, link.name
        self.sweep()
        there: "Any" = self.targets.get(key)
        if there is not None and there.user != link.connection.user.name:
            self.forget(there)
            there = None
        durable = target["durable"] if self.broker.journal is not None else 0
        if there is None:
            if not link.second:
                return None
            most = self.broker.limits.target_count_max
            if len(self.targets) >= most:
                raise LinkError(RESOURCE_ERROR, "this broker keeps what is unsettled of %d links, and that is the most" % most)
            there = Target(key[0], key[1], link.connection.user.name, durable, None, 0)
            self.targets[key] = there
        if not there.is_as(target):
            there.take(target)
            self.log(there, there.definition())
        there.link, there.scope, there.until = link, None, None
        if not fields["incomplete-unsettled"]:
            given = fields["unsettled"] or {}
            for tag in list(there.accepted):
                if tag not in given:
                    self.settle(there, tag)  # its sender has
        return there

    def terminus(self, link):
        """The target, as composites.py has it, that a link with no target of its own recovers; None: there is none of its name."""
        there = self.targets.get((link.protocol.container_id, link.name))
        if there is None or there.user != link.connection.user.name:
            return None
        given = {"address": there.address, "durable": there.durable, "expiry-policy": there.policy, "timeout": there.timeout_s}
        given.update({"dynamic": False, "dynamic-node-properties": None, "capabilities": there.capabilities})
        return "target", given

    def detached(self, link):
        """A link has ended without closing: its target waits for the next one."""
        target = link.kept
        if target is None or target.link is not link:
            return
        target.link = None
        if target.policy == "session-end":
            target.scope = link.session
        elif target.policy == "connection-close":
            target.scope = link.protocol
        elif target.policy == "link-detach":
            self.begin_timeout(target)

    def closed(self, link):
        """A link has closed: its target goes."""
        if link.kept is not None and link.kept.link is link:
            self.forget(link.kept)

    def ended(self, scope):
        """A session or a connection has ended."""
        for target in self.all():
            if target.scope is scope:
                target.scope = None
                self.begin_timeout(target)

    def begin_timeout(self, target):
        """A target has its timeout from now on."""
        if target.timeout_s:
            target.until = self.broker.uptime_s + target.timeout_s
        else:
            self.forget(target)

    def sweep(self):
        """Forget those whose time has come."""
        for target in self.all():
            if target.until is not None and target.until <= self.broker.uptime_s:
                self.forget(target)

    def forget(self, target):
        """A target is not kept any more."""
        target.link = None
        for tag in list(target.accepted):
            self.settle(target, tag)
        if self.has(target):
            del self.targets[target.key()]
            self.log(target, gone(target.definition()))

    def has(self, target):
        """True while a target is kept."""
        return self.targets.get(target.key()) is target

    def all(self):
        """Those that there are now, a list."""
        return list(self.targets.values())

    # Deliveries

    def has_room(self):
        """True when another delivery can be remembered."""
        return self.count < tags_max(self.broker.limits)

    def accept(self, target, tag):
        """A delivery was accepted, in this step of the broker; what the log has of it is in one group with the message."""
        if tag not in target.accepted:
            target.accepted[tag] = None
            self.count += 1
            self.log(target, target.tag_definition(tag))

    def settle(self, target, tag):
        """The sender has settled a delivery."""
        if tag in target.accepted:
            del target.accepted[tag]
            self.count -= 1
            self.log(target, gone(target.tag_definition(tag)))

    # The log

    def log(self, target, definition):
        """Have the log get a definition of a target that is durable with its deliveries."""
        if target.durable == UNSETTLED_STATE:
            self.broker.journal.define(definition)

    def definitions(self):
        """All of the log's (core/log/definition_records.py)."""
        for target in self.all():
            if target.durable == UNSETTLED_STATE and self.has(target):
                yield target.definition()
                for tag in list(target.accepted):
                    if tag in target.accepted:
                        yield target.tag_definition(tag)


def gone(definition):
    """The removal of what a definition made."""
    return {"gone": definition["kind"], "name": definition["name"]}


def of(broker):
    """A broker's."""
    if broker.kept is None:
        broker.kept = Termini(broker)
    return broker.kept


def restore(broker, definition):
    """Make again what a definition of the log says: a target, or (read later) a delivery of one."""
    kept = of(broker)
    if "of" in definition:
        target = kept.targets.get(tuple(definition["of"]))
        if target is not None:
            target.accepted[definition["tag"]] = None
            kept.count += 1
        return
    target = Target(
        definition["container"], definition["link"], definition["user"], UNSETTLED_STATE, definition["policy"], definition["timeout"]
    )
    target.address, target.capabilities = definition.get("address"), definition.get("capabilities", [])
    if target.policy != "never":
        target.until = broker.uptime_s + target.timeout_s
    kept.targets[target.key()] = target


def unsettled_map(target, octets_max):
    """(the field unsettled of an attach, incomplete-unsettled): the deliveries of a target that were accepted, as many as `octets_max`
    have room for."""
    accepted = composites.described("accepted", {})
    table: "dict" = {}
    left = octets_max
    for tag in target.accepted:
        left -= len(types.encode(tag)) + 4
        if left < 0:
            return table, True
        table[tag] = accepted
    return table, False
