"""Policies: definitions for all queues and exchanges whose name fits a pattern (RabbitMQ's; a template for what is declared later).

The policy with the highest priority among those that fit applies, alone. Its keys are those of RabbitMQ, without x-: message-ttl, expires,
max-length, dead-letter-exchange, alternate-exchange ... Arguments of the declaration come before the policy; of two lengths or lifetimes
the smaller one counts. Setting or removing a policy changes existing queues and exchanges at once.
"""

from ..errors import PRECONDITION_FAILED, ProtocolError
from ..exchange.base import ALTERNATE
from ..limits import pattern_size_max
from ..log.definition_records import gone, policy_definition
from ..patterns.expression import Pattern
from ..queue import rules, stream_arguments
from . import route_cache

APPLY_TO = ("all", "queues", "exchanges", "streams", "classic_queues", "quorum_queues")

# Keys that a declaration alone can set: they shape a queue from its first message on.
DECLARED_ONLY = ("x-max-priority", "x-single-active-consumer", "x-last-value-key", "x-group-key")

PATTERN_SIZE_MAX = 8192  # octets of a compiled pattern; a broker with small limits takes less

COMPARISONS_MAX = 2000  # of names with patterns in one turn
APPLYING = 10  # comparisons that take as long as giving a queue its rules

SMALLER = ("x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-delivery-limit")

PRIORITY_MAX = (1 << 31) - 1

STREAM_KEYS = ("x-max-length-bytes", "x-max-age")


class Policy:
    """One policy. `definition`: a dict by key, without x-; raises ProtocolError for an invalid one."""

    kind = "policy"  # in the log (definition_records.py)

    def __init__(self, name, pattern, definition, priority=0, apply_to="all"):
        if apply_to not in APPLY_TO:
            bad(name, "apply-to is '%s'; it is one of %s" % (apply_to, ", ".join(APPLY_TO)))
        if not isinstance(priority, int) or isinstance(priority, bool) or not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
            bad(name, "priority must be a whole number from -%d to %d" % (PRIORITY_MAX, PRIORITY_MAX))
        if not isinstance(definition, dict) or not definition:
            bad(name, "the definition must have at least one key")
        if not isinstance(pattern, str):
            bad(name, "the pattern is not a text")
        try:
            self.expression = Pattern(pattern, PATTERN_SIZE_MAX)
        except ValueError as error:
            bad(name, "the regular expression '%s' %s" % (pattern[:80], error))
        self.name = name
        self.pattern = pattern
        self.definition = definition
        self.priority = priority
        self.apply_to = apply_to
        self.alternate = definition.get(ALTERNATE)
        self.arguments = {"x-" + key: definition[key] for key in definition if key != ALTERNATE}
        for key in self.arguments:
            if key in DECLARED_ONLY:
                bad(name, "%s can only be declared with the queue" % key[2:])
        if not isinstance(definition.get(ALTERNATE, ""), str):
            bad(name, "alternate-exchange is not a text")
        ages = {key: self.arguments[key] for key in self.arguments if key == "x-max-age"}
        rules.check_rows(stream_arguments.ROWS, "policy '%s'" % name, ages)
        rules.check("policy '%s'" % name, {key: self.arguments[key] for key in self.arguments if key not in ages})

    def fits(self, name, kinds):
        """True when the policy is for this name and one of these kinds."""
        return self.apply_to in kinds and self.expression.matches(name)


def bad(name, reason):
    """Raise precondition-failed for a policy."""
    raise ProtocolError(PRECONDITION_FAILED, "policy '%s': %s" % (name, reason))


class Policies:
    """The policies of a broker, by name."""

    def __init__(self):
        self.by_name = {}
        self.operators = {}  # operator policies (operator_policies.py)
        self.pending = []  # queues and exchanges that are still to be updated
        self.failed = []  # those whose update raised: tried again a second later

    def rows_of(self, policy):
        """The policies of its kind, by name."""
        return self.by_name if policy.kind == Policy.kind else self.operators

    def count(self):
        """How many there are, operator policies too."""
        return len(self.by_name) + len(self.operators)

    def taken(self, broker):
        """How many places of policy_count_max are taken: by these, and by parameters."""
        return self.count() + (0 if broker.parameters is None else broker.parameters.count())

    def set(self, broker, policy):
        """Add or replace a policy, and apply."""
        broker.topology.check_size(policy.definition)
        if max(len(policy.name.encode("utf-8")), len(policy.pattern.encode("utf-8"))) > broker.limits.name_size_max:
            bad(policy.name, "its name or its pattern is longer than %d octets" % broker.limits.name_size_max)
        if policy.expression.size > pattern_size_max(broker.limits):
            bad(
                policy.name,
                "its pattern takes %d octets, more than the %d that this broker has for one"
                % (policy.expression.size, pattern_size_max(broker.limits)),
            )
        rows = self.rows_of(policy)
        if policy.name not in rows and self.taken(broker) >= broker.limits.policy_count_max:
            bad(policy.name, "this broker holds %d policies at most, and parameters count too" % broker.limits.policy_count_max)
        before = rows.get(policy.name)
        rows[policy.name] = policy
        try:
            self.apply_to_all(broker)
            if broker.journal is not None:  # after applying: a policy that cannot be applied must not return at the next start
                broker.journal.define(policy_definition(policy))
        except Exception:  # all or nothing: queues that have the policy already lose it in the rounds to come
            if before is None:
                del rows[policy.name]
            else:
                rows[policy.name] = before
            self.begin(broker)
            raise

    @staticmethod
    def made(*given):
        """The Policy of these arguments; raises what it raises."""
        return Policy(*given)

    def remove(self, broker, name, rows=None):
        """Remove a policy (of `rows`: by_name where None), and apply what is left; false when there is none of this name."""
        rows = self.by_name if rows is None else rows
        if name not in rows:
            return False
        if broker.journal is not None:
            broker.journal.define(gone(policy_definition(rows[name])))
        del rows[name]
        self.apply_to_all(broker)
        return True

    @staticmethod
    def best(rows, name, kinds):
        """The policy of `rows` with the highest priority that fits, or None."""
        best = None
        for each in rows.values():
            if each.fits(name, kinds) and (best is None or (each.priority, each.name) > (best.priority, best.name)):
                best = each
        return best

    def apply_to_all(self, broker):
        """Update every queue and exchange: some now, the others in the rounds of the broker to come."""
        self.begin(broker)
        self.work(broker)

    def begin(self, broker):
        """Mark every queue and exchange for update."""
        self.pending = everything(broker)
        self.failed = []

    def go_on(self, broker):
        """Update some in a round; when one raises, the others still have their turns."""
        try:
            self.work(broker)
        except Exception as error:  # an error of ours: its queue or exchange is in `failed`
            broker.guard.trouble("the policies of '%s'", self.failed[-1].name if self.failed else "", error)

    def again(self):
        """Time has passed: try again what has failed."""
        self.pending += self.failed
        self.failed = []

    def work(self, broker):
        """Update for one turn: COMPARISONS_MAX comparisons of a name with a pattern. An update that raises goes to `failed` and ends the
        turn."""
        left = COMPARISONS_MAX
        try:
            while self.pending and left > 0:
                self.failed.append(self.pending.pop())
                left -= APPLYING + self.count()
                self.apply_to(broker, self.failed[-1])
                self.failed.pop()
        finally:
            route_cache.forget(broker.tables)

    def apply_to(self, broker, each):
        """Update a queue or an exchange, if it still exists."""
        if each.is_exchange:
            self.apply_to_exchange(each)
        elif broker.queues.get(each.name) is each:
            self.apply_to_queue(broker, each)

    def apply_to_queue(self, broker, queue):
        """Give a queue the rules of its own arguments and its policy, where they have changed."""
        kinds = ("all", "queues", "streams" if queue.is_stream else queue.type + "_queues")
        policy, operator = [None if queue.is_own else self.best(rows, queue.name, kinds) for rows in (self.by_name, self.operators)]
        queue.policy = None if policy is None else policy.name
        queue.operator_policy = None if operator is None else operator.name
        arguments = queue.arguments
        for each in (policy, operator):
            if each is not None:
                arguments = merged(arguments, each.arguments)
        arguments = queue.with_defaults(arguments)
        if arguments == queue.effective:
            return
        queue.effective = None  # until all is done: an update that raises is tried again
        if queue.is_stream:
            queue.keep_within({key: arguments[key] for key in STREAM_KEYS if key in arguments})
        else:
            expired_before = queue.rules is not None and queue.rules.expires
            before = queue.rules
            made = rules.rules_of(arguments, before)
            queue.rules = rules.with_expiry(made) if expired_before else made  # in one step: a second attempt would not see the lifetimes
            if before is not None:
                before.end(() if queue.rules is None else queue.rules.features)
            if queue.rules is not None and queue.rules.expiry is not None:
                queue.rules.expiry.begin_anew(broker, queue)
            queue.update_plain()
            if queue.rules is not None:
                queue.rules.trim(broker, queue)
            broker.activate(queue)
        queue.effective = arguments

    def apply_to_exchange(self, exchange):
        """Give an exchange the alternate of its policy, unless it was declared with one."""
        policy = self.best(self.by_name, exchange.name, ("all", "exchanges"))
        declared = exchange.arguments.get(ALTERNATE)
        exchange.set_alternate(declared if declared is not None or policy is None else policy.alternate)


def everything(broker):
    """Every queue and exchange that a policy can apply to."""
    return list(broker.exchanges.values()) + list(broker.queues.values())


def merged(declared, policy):
    """The arguments of a declaration and of a policy together."""
    together = dict(policy)
    for key in declared:
        if key in SMALLER and key in policy:
            together[key] = min(declared[key], policy[key])
        else:
            together[key] = declared[key]
    return together
