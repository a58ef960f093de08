"""Targets that the broker keeps while their links are detached: a sender can resume, and gets the outcomes of its deliveries (section
2.6.13).

A sender that wants each message taken exactly once attaches with rcv-settle-mode second. The target then remembers each delivery that was
accepted, by its delivery-tag, until the sender has settled it; a sender that attaches again, with its own map of unsettled deliveries,
hears which of them were accepted, and does not send them again.

The key of a target is its sender's container and link name. Its expiry-policy says how long the broker keeps it once its link has ended
without closing:

    link-detach        for its timeout, from then on
    session-end        until the session has ended, and its timeout from then on (the default, with a timeout of 0)
    connection-close   the same of the connection
    never              until a link of that name closes

With durable unsettled-state (2) the log has both target and deliveries, each delivery in one group with its message's publish. So the
target's memory outlives a power cut. After a start a timeout counts anew.

Sources keep nothing: a message that a receiver has not settled is in its queue again, and its delivery-tag names it (resuming.py).
"""

from ..errors import RESOURCE_ERROR, RESOURCE_LOCKED
from ..shim import const
from . import composites, types
from .bounds import Places, tags_max
from .conditions import LinkError

if False:  # for the type checker alone
    from typing import Any

UNSETTLED_STATE = const(2)  # terminus-durability (section 3.5.5)
KIND = "kept"  # of definitions in the log; `part` says which file reads them
TAG_KIND = "kept part"  # of definitions that recovery reads after all of KIND


class Target:
    """One target. `durable`: section 3.5.5; `policy` and `timeout_s`: section 3.5.6 and the target's timeout."""

    def __init__(self, container, name, user, durable, policy, timeout_s):
        self.container = container
        self.name = name
        self.user = user
        self.durable = durable
        self.policy = policy
        self.timeout_s = timeout_s
        self.address: "Any" = None  # and capabilities: of the target, for a link that its name recovers
        self.capabilities: "list" = []
        self.accepted: "dict" = {}  # delivery-tag -> None: accepted deliveries that their sender has not settled
        self.link: "Any" = None  # the link that is attached to it
        self.scope: "Any" = None  # the session or the protocol that has to end before its timeout begins
        self.until = None  # uptime in seconds when it is forgotten; None: not yet known

    def is_as(self, target):
        """True for a target of these fields."""
        given = target["expiry-policy"], target["timeout"], target["address"], target["capabilities"]
        return (self.policy, self.timeout_s, self.address, self.capabilities) == given

    def attach_as(self, target):
        """Set the fields of a further attach."""
        self.policy, self.timeout_s = target["expiry-policy"], target["timeout"]
        self.address, self.capabilities = target["address"], target["capabilities"]

    def key(self):
        """Its key: container and link name."""
        return self.container, self.name

    def name_in_log(self):
        """The name of its definition."""
        return "1.0\n%s\n%s" % (self.container, self.name)

    def definition(self):
        """Its definition, for the log."""
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
        """The definition of a delivery, for the log."""
        name = self.name_in_log()
        return {
            "kind": TAG_KIND,
            "part": "amqp_1_0.termini",
            "name": "%s\n%s" % (name, tag.hex()),
            "of": [self.container, self.name],
            "tag": tag,
        }


class Termini:
    """All targets of a broker (Broker.kept), and the places for links."""

    def __init__(self, broker):
        self.broker = broker
        self.places = Places(broker.limits)
        self.targets: "dict[Any, Any]" = {}
        self.count = 0  # deliveries of all targets

    # Links

    def check_place(self, link):
        """Raise LinkError where a link that attaches cannot have its target: there is no place for another, or it is another user's."""
        self.sweep()
        there: "Any" = self.targets.get((link.protocol.container_id, link.name))
        if there is not None and there.user != link.connection.user.name:
            if there.user in self.broker.access.users:
                raise LinkError(RESOURCE_LOCKED, "the target of link '%s' of this container is another user's" % link.name[:80])
            self.forget(there)
            there = None
        most = self.broker.limits.target_count_max
        if there is None and link.second and len(self.targets) >= most:
            raise LinkError(RESOURCE_ERROR, "this broker keeps what is unsettled of %d links, and that is the most" % most)

    def attach(self, link, fields, target):
        """The target of a link that attaches, with the deliveries that its sender has not settled; None: the target is not to be kept.

        `fields`: of the attach; `target`: the target's. `check_place` has not refused the link.
        """
        key = link.protocol.container_id, link.name
        there: "Any" = self.targets.get(key)
        durable = target["durable"] if self.broker.journal is not None else 0
        if there is None:
            if not link.second:
                return None
            there = Target(key[0], key[1], link.connection.user.name, durable, None, 0)
            self.targets[key] = there
        if not there.is_as(target):
            there.attach_as(target)
            self.log(there, there.definition())
        there.link, there.scope, there.until = link, None, None
        if not fields["incomplete-unsettled"]:
            given = fields["unsettled"] or {}
            for tag in list(there.accepted):
                if tag not in given:
                    self.settle(there, tag)  # its sender has settled it
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
        """Have the target of a link that ended without closing wait for the next link."""
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
        """Forget the target of a link that has closed."""
        if link.kept is not None and link.kept.link is link:
            self.forget(link.kept)

    def ended(self, scope):
        """Begin the timeouts of targets that waited for the end of a session or connection."""
        for target in self.all():
            if target.scope is scope:
                target.scope = None
                self.begin_timeout(target)

    def begin_timeout(self, target):
        """Begin the timeout of a target."""
        if target.timeout_s:
            target.until = self.broker.uptime_s + target.timeout_s
        else:
            self.forget(target)

    def sweep(self):
        """Forget targets whose timeout is over."""
        for target in self.all():
            if target.until is not None and target.until <= self.broker.uptime_s:
                self.forget(target)

    def forget(self, target):
        """Forget a target."""
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
        """A list of all targets."""
        return list(self.targets.values())

    # Deliveries

    def has_room(self):
        """True when there is a place for another delivery."""
        return self.count < tags_max(self.broker.limits)

    def accept(self, target, tag):
        """Note a delivery that was accepted in this step of the broker; the log has it in one group with the message."""
        if tag not in target.accepted:
            target.accepted[tag] = None
            self.count += 1
            self.log(target, target.tag_definition(tag))

    def settle(self, target, tag):
        """Forget a delivery that its sender has settled."""
        if tag in target.accepted:
            del target.accepted[tag]
            self.count -= 1
            self.log(target, gone(target.tag_definition(tag)))

    # The log

    def log(self, target, definition):
        """Log a definition, where the target is durable with its deliveries."""
        if target.durable == UNSETTLED_STATE:
            self.broker.journal.define(definition)

    def definitions(self):
        """All definitions for the log (core/log/definition_records.py)."""
        for target in self.all():
            if target.durable == UNSETTLED_STATE and self.has(target):
                yield target.definition()
                for tag in list(target.accepted):
                    if tag in target.accepted:
                        yield target.tag_definition(tag)


def gone(definition):
    """The record that removes a definition."""
    return {"gone": definition["kind"], "name": definition["name"]}


def of(broker):
    """The Termini of a broker."""
    if broker.kept is None:
        broker.kept = Termini(broker)
    return broker.kept


def restore(broker, definition):
    """Restore a target, or (read later) a delivery of one, from a definition of the log."""
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
