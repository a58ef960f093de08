"""The rules of a queue: its arguments, and the policy that fits its name, turned into features.

ARGUMENTS is the table of what is served: argument, what a value must be, the feature's file. A value that makes no sense is refused when
the queue is declared, with RabbitMQ's words; a feature whose file a board does not carry is refused too.
"""

from . import layout
from .errors import PRECONDITION_FAILED, ProtocolError
from .features.feature import TAKEN

NUMBER = 0  # 0 or more
POSITIVE = 1
TEXT = 2
FLAG = 3

OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx", "block")

# argument, kind of value, feature
ARGUMENTS = (
    ("x-message-ttl", NUMBER, "expiry"),
    ("x-expires", POSITIVE, "unused"),
    ("x-max-length", NUMBER, "length"),
    ("x-max-length-bytes", NUMBER, "length"),
    ("x-overflow", OVERFLOWS, "length"),
    ("x-dead-letter-exchange", TEXT, "dead_letter"),
    ("x-dead-letter-routing-key", TEXT, "dead_letter"),
    ("x-dead-letter-strategy", ("at-most-once", "at-least-once"), "dead_letter"),
    ("x-max-priority", POSITIVE, "priority"),
    ("x-single-active-consumer", FLAG, ""),
    ("x-delivery-limit", NUMBER, "delivery_limit"),
    ("x-delayed-retry-min", POSITIVE, "delayed_retry"),
    ("x-delayed-retry-max", POSITIVE, "delayed_retry"),
    ("x-consumer-timeout", POSITIVE, ""),
    ("x-last-value-key", TEXT, "last_value"),
    ("x-group-key", TEXT, "groups"),
    ("x-deduplication", POSITIVE, "deduplication"),
    ("x-queue-mode", ("default", "lazy"), ""),  # where RabbitMQ keeps messages and which node has them: nothing to this broker
    ("x-queue-version", POSITIVE, ""),
    ("x-queue-leader-locator", TEXT, ""),
    ("x-queue-master-locator", TEXT, ""),
)

WITHOUT_EFFECT = ("x-queue-mode", "x-queue-version", "x-queue-leader-locator", "x-queue-master-locator")

PRIORITY_MAX = 255

LASTING = ("priority", "last_value", "groups", "deduplication")  # features that remember messages and that no policy changes


class Rules:
    """The features of one queue. `expires`: messages may have deadlines, so that each is looked at before it is delivered."""

    def __init__(self, arguments):
        self.expires = False
        self.single_active = arguments.get("x-single-active-consumer", False)
        self.consumer_timeout_ms = arguments.get("x-consumer-timeout", 0)
        self.dead_letter = None
        self.expiry = None
        self.groups = None
        self.length = None
        self.priority = None
        self.looks_at_all = False  # a feature looks at messages that are not at the head: all must be in memory
        self.counts_returns = False  # a feature counts how often a message has come back
        self.features = []

    def flat(self):
        """What QUEUE_LIMITS and the three fields behind it are to be so that nothing else has to look at the messages; None: something
        has to."""
        refuses = drops = False
        ttl = messages_max = octets_max = None
        for feature in self.features:
            if not feature.flat():
                return None
        if self.single_active or self.expires and self.dead_letter is not None:
            return None
        if self.expires:
            ttl = self.expiry.ttl_ms
        if self.length is not None:
            messages_max, octets_max = self.length.messages_max, self.length.octets_max
            drops = self.length.overflow == "drop-head"
            refuses = not drops
        limits = ((layout.LIMIT_EXPIRES if self.expires else 0) | (layout.LIMIT_DROPS if drops else 0)
                  | (layout.LIMIT_REFUSES if refuses else 0) | (layout.LIMIT_DEAD_LETTERS if self.dead_letter is not None else 0)
                  | (layout.LIMIT_RETURNS if self.counts_returns else 0))
        return (limits,) + tuple([layout.NONE if most is None else min(most, layout.MASK) for most in (ttl, messages_max, octets_max)])

    def full(self, queue):
        """True when one of the features has publishers wait."""
        for feature in self.features:
            if feature.full(queue):
                return True
        return False

    def take(self, broker, queue, message):
        """A message for the queue: TAKEN, or a feature's refusal."""
        for feature in self.features:
            verdict = feature.gate(broker, queue, message)
            if verdict != TAKEN:
                return verdict
        entry = queue.push(message)
        self.settle_in(broker, queue, message, entry)
        return TAKEN

    def settle_in(self, broker, queue, message, entry):
        """A message has come to the tail. The length is looked at last: it may let the message itself go again."""
        for feature in self.features:
            feature.pushed(broker, queue, message, entry)
        if self.length is not None:
            self.length.trim(broker, queue)

    def arrived(self, broker, queue, entry):
        """An entry that was delayed has come to the tail."""
        self.settle_in(broker, queue, broker.tables.entries[entry + layout.ENTRY_MESSAGE], entry)

    def before_delivery(self, broker, queue):
        """The queue's head is about to be delivered."""
        for feature in self.features:
            feature.before_delivery(broker, queue)

    def came_back(self, broker, queue, entry):
        """An entry comes back; true when a feature keeps it from the queue."""
        for feature in self.features:
            if feature.came_back(broker, queue, entry):
                return True
        return False

    def recovered(self, broker, queue):
        """The queue's messages came out of the log."""
        for feature in self.features:
            feature.recovered(broker, queue)

    def end(self, kept=()):
        """The queue goes, or has other rules now, with the features in `kept`."""
        for feature in self.features:
            if feature not in kept:
                feature.end()

    def tick(self, broker, queue):
        """Time has passed."""
        for feature in self.features:
            feature.tick(broker, queue)
            if broker.queue_objects.get(queue.handle) is not queue:
                return  # it has expired


def check(what, arguments):
    """Raise precondition-failed for an argument that is not served or has a wrong value. `what` names the queue for the text."""
    for name in arguments:
        if not name.startswith("x-") or name == "x-queue-type":
            continue
        row = row_of(name)
        if row is None:
            raise ProtocolError(PRECONDITION_FAILED, "this broker does not serve the argument '%s' of a queue" % name)
        check_value(what, name, row[1], arguments[name])
        if row[2] and feature_class(row[2]) is None:
            raise ProtocolError(PRECONDITION_FAILED, "this build of the broker does not carry the argument '%s'" % name)
    if arguments.get("x-max-priority", 1) > PRIORITY_MAX:
        invalid(what, "x-max-priority", "at most %d" % PRIORITY_MAX)
    if "x-dead-letter-routing-key" in arguments and "x-dead-letter-exchange" not in arguments:
        invalid(what, "x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")
    for name in ("x-dead-letter-exchange", "x-dead-letter-routing-key"):
        if len(arguments.get(name, "").encode("utf-8")) > 255:
            invalid(what, name, "a name has at most 255 octets")
    if "x-max-priority" in arguments and ("x-last-value-key" in arguments or "x-group-key" in arguments):
        invalid(what, "x-max-priority", "not together with x-last-value-key or x-group-key")


def check_value(what, name, kind, value):
    """Raise precondition-failed unless a value is of its kind."""
    if kind == TEXT:
        if not isinstance(value, str):
            invalid(what, name, "expected longstr")
    elif kind == FLAG:
        if not isinstance(value, bool):
            invalid(what, name, "expected boolean")
    elif kind in (NUMBER, POSITIVE):
        if not isinstance(value, int) or isinstance(value, bool):
            invalid(what, name, "expected integer")
        if value < 0:
            invalid(what, name, "{value_negative,%d}" % value)
        if kind == POSITIVE and value == 0:
            invalid(what, name, "{value_zero,0}")
    elif value not in kind:
        invalid(what, name, "expected one of " + ", ".join(kind))


def invalid(what, name, reason):
    """Raise, as RabbitMQ words it."""
    raise ProtocolError(PRECONDITION_FAILED, "invalid arg '%s' for %s: %s" % (name, what, reason))


def row_of(name):
    """The row of ARGUMENTS for an argument, or None."""
    for row in ARGUMENTS:
        if row[0] == name:
            return row
    return None


def feature_class(name):
    """The class `Rule` of a feature's file, or None when this build does not carry the file."""
    try:
        module = __import__(__package_name() + ".features." + name, None, None, ("Rule",))
    except ImportError:
        return None
    return module.Rule


def __package_name():
    """The name of the package that this file is in."""
    return __name__[:__name__.rindex(".")]


def rules_of(arguments, before=None):
    """The Rules for checked arguments, or None when they ask for nothing. `before`: the queue's Rules so far, which know its messages."""
    asked = [name for name in arguments if row_of(name) is not None and name not in WITHOUT_EFFECT]
    if not asked:
        return None
    rules = Rules(arguments)
    names = []
    for row in ARGUMENTS:
        if row[0] in arguments and row[2] and row[2] not in names:
            names.append(row[2])
    for name in names:
        add_feature(rules, name, arguments, before)
    return rules


def add_feature(rules, name, arguments, before=None):
    """Attach one feature: the one `before`, when it is one that only a declaration can set."""
    class_ = feature_class(name)
    same = [each for each in before.features if isinstance(each, class_)] if before is not None and name in LASTING else []
    made = same[0] if same else class_(arguments)
    rules.features.append(made)
    if name in ("priority", "last_value", "groups"):
        rules.looks_at_all = True
    if name in ("delivery_limit", "delayed_retry"):
        rules.counts_returns = True
    if name == "dead_letter":
        rules.dead_letter = made
    elif name == "expiry":
        rules.expiry = made
        rules.expires = True
    elif name == "groups":
        rules.groups = made
    elif name == "priority":
        rules.priority = made
    elif name == "length":
        rules.length = made


def with_expiry(rules):
    """Rules under which single messages may have a deadline; `rules` may be None."""
    if rules is None:
        rules = Rules({})
    if rules.expiry is None:
        add_feature(rules, "expiry", {})
    return rules
