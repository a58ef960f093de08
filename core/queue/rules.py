"""The rules of a queue: its arguments, and the policy that fits its name, turned into features.

ARGUMENTS is the table of served arguments: name, kind of value, the feature's file. A value that makes no sense is refused when
the queue is declared, or a policy is set, with RabbitMQ's words; a feature whose file a board does not carry is refused too.
"""

from ..errors import PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..message.type_words import type_word
from ..outcomes import TAKEN
from ..parts import needed, part

if False:  # for the type checker alone
    from typing import Any

# Kinds of values beside a range of whole numbers, (least, most, unit), and a tuple of words.
TEXT = 0
FLAG = 1
NAME = 2  # as field tables and methods can have it: at most 255 octets
AGE = 3

NUMBER_MAX = (1 << 63) - 1  # of a field table
LIFETIME_MS_MAX = 315360000000  # ten years, as in RabbitMQ

NUMBER = (0, NUMBER_MAX, "")
LIFETIME = (0, LIFETIME_MS_MAX, " ms")
PAUSE = (1, LIFETIME_MS_MAX, " ms")

OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx", "block")

# argument, kind of value, feature
ARGUMENTS = (
    ("x-message-ttl", LIFETIME, "expiry"),
    ("x-expires", PAUSE, "unused"),
    ("x-max-length", (0, NUMBER_MAX, " messages"), "length"),
    ("x-max-length-bytes", (0, NUMBER_MAX, " octets"), "length"),
    ("x-overflow", OVERFLOWS, "length"),
    ("x-dead-letter-exchange", NAME, "dead_letter"),
    ("x-dead-letter-routing-key", NAME, "dead_letter"),
    ("x-dead-letter-strategy", ("at-most-once", "at-least-once"), "dead_letter"),
    ("x-max-priority", (0, 255, ""), "priority"),
    ("x-single-active-consumer", FLAG, ""),
    ("x-delivery-limit", NUMBER, "delivery_limit"),
    ("x-delayed-retry-min", PAUSE, "delayed_retry"),
    ("x-delayed-retry-max", PAUSE, "delayed_retry"),
    ("x-consumer-timeout", PAUSE, ""),
    ("x-last-value-key", NAME, "last_value"),
    ("x-group-key", NAME, "groups"),
    ("x-deduplication", (1, NUMBER_MAX, " message ids"), "deduplication"),
    ("x-queue-mode", ("default", "lazy"), ""),  # where RabbitMQ keeps messages and which node has them: nothing to this broker
    ("x-queue-version", (1, 2, ""), ""),
    ("x-queue-leader-locator", TEXT, ""),
    ("x-queue-master-locator", TEXT, ""),
)

OF_STREAMS = ("x-max-age", "x-stream-max-segment-size-bytes", "x-stream-hold")  # a limit that no other queue keeps: refused there

# For basic.consume; stream/subscription.py checks those of streams.
CONSUMER_ARGUMENTS = (
    ("x-priority", (-NUMBER_MAX - 1, NUMBER_MAX, "")),
    ("x-cancel-on-ha-failover", FLAG),
)

WITHOUT_EFFECT = ("x-queue-mode", "x-queue-version", "x-queue-leader-locator", "x-queue-master-locator")

LASTING = ("priority", "last_value", "groups", "deduplication")  # features that remember messages and that no policy changes


class Rules:
    """The features of one queue. `expires`: messages may have deadlines, so that the rules check each one before delivery."""

    def __init__(self, arguments):
        self.expires = False
        self.single_active = arguments.get("x-single-active-consumer", False)
        self.consumer_timeout_ms = arguments.get("x-consumer-timeout", 0)
        self.dead_letter = None
        self.expiry: "Any" = None
        self.groups = None
        self.length = None
        self.priority = None
        self.looks_at_all = False  # a feature reads messages behind the head: all must be in memory
        self.counts_returns = False  # a feature counts how often a message has come back
        self.features = []

    def flat(self, known=0):
        """The values of QUEUE_LIMITS and the three fields behind it with which no rule has to see the messages; None: a rule has to.
        `known`: bits for what the engine does in the place of features."""
        limits = 0
        refuses = drops = False
        ttl = messages_max = octets_max = None
        for feature in self.features:
            if not feature.flat() and not feature.bit & known:
                return None
            limits |= feature.bit
        if self.expires:
            ttl = self.expiry.ttl_ms
        if self.length is not None:
            messages_max, octets_max = self.length.messages_max, self.length.octets_max
            drops = self.length.overflow == "drop-head"
            refuses = not drops
        limits |= (
            (layout.LIMIT_EXPIRES if self.expires else 0)
            | (layout.LIMIT_DROPS if drops else 0)
            | (layout.LIMIT_REFUSES if refuses else 0)
            | (layout.LIMIT_DEAD_LETTERS if self.dead_letter is not None else 0)
            | (layout.LIMIT_RETURNS if drops or self.looks_at_all else 0)
            | (layout.LIMIT_LEVELS | self.priority.highest << layout.LIMIT_HIGHEST if self.priority is not None else 0)
        )
        return (limits,) + tuple([layout.NONE if most is None else min(most, layout.MASK) for most in (ttl, messages_max, octets_max)])

    def full(self, queue):
        """True when a feature makes publishers wait."""
        for feature in self.features:
            if feature.full(queue):
                return True
        return False

    def accept(self, broker, queue, message):
        """Whether the queue accepts a message: TAKEN, or a feature's refusal."""
        for feature in self.features:
            verdict = feature.gate(broker, queue, message)
            if verdict != TAKEN:
                return verdict
        entry = queue.push(message)
        self.settle_in(broker, queue, message, entry)
        return TAKEN

    def settle_in(self, broker, queue, message, entry):
        """A message was appended. The length feature comes last: it may drop the message itself."""
        for feature in self.features:
            feature.pushed(broker, queue, message, entry)
        self.trim(broker, queue)

    def arrived(self, broker, queue, entry):
        """A delayed entry was appended."""
        self.settle_in(broker, queue, broker.tables.entries[entry + layout.ENTRY_MESSAGE], entry)

    def before_delivery(self, broker, queue):
        """The queue's head is about to be delivered."""
        for feature in self.features:
            feature.before_delivery(broker, queue)

    def came_back(self, broker, queue, entry):
        """An entry is to be requeued; true when a feature keeps it from the queue."""
        for feature in self.features:
            if feature.came_back(broker, queue, entry):
                return True
        return False

    def trim(self, broker, queue):
        """Messages have come back: the length counts them, as in RabbitMQ."""
        if self.length is not None:
            self.length.trim(broker, queue)

    def recovered(self, broker, queue):
        """The queue's messages came out of the log."""
        for feature in self.features:
            try:
                feature.recovered(broker, queue)
            except Exception as error:  # an error of ours is this queue's alone
                broker.guard.queue_failed(queue, error)

    def end(self, kept=()):
        """The queue is deleted, or has other rules now, which keep the features in `kept`."""
        for feature in self.features:
            if feature not in kept:
                feature.end()

    def tick(self, broker, queue):
        """Time has passed."""
        for feature in self.features:
            feature.tick(broker, queue)
            if broker.queues.get(queue.name) is not queue:
                return  # it has expired


def check(subject, arguments):
    """Raise precondition-failed for an argument that is not served or has a wrong value. `subject` names the queue for the text."""
    for name in arguments:
        if not name.startswith("x-") or name == "x-queue-type":
            continue
        row = row_of(name)
        if row is None:
            raise ProtocolError(PRECONDITION_FAILED, "this broker does not serve the argument '%s' here" % name)
        check_value(subject, name, row[1], arguments[name])
        if row[2] and feature_class(row[2]) is None:
            raise ProtocolError(PRECONDITION_FAILED, "this build of the broker does not carry the argument '%s'" % name)
    if "x-dead-letter-routing-key" in arguments and "x-dead-letter-exchange" not in arguments:
        invalid(subject, "x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")
    if "x-max-priority" in arguments and ("x-last-value-key" in arguments or "x-group-key" in arguments):
        invalid(subject, "x-max-priority", "not together with x-last-value-key or x-group-key")


def check_queue(subject, arguments):
    """Check the arguments of a queue of any type, as `check` those of a classic one; unknown arguments are accepted."""
    type_ = arguments.get("x-queue-type", "classic")
    if type_ == "stream":
        needed("queue.stream_arguments", "streams").check(subject, arguments)
    elif type_ == "classic":
        refuse(subject, "classic", arguments, OF_STREAMS)
        check(subject, {name: arguments[name] for name in arguments if row_of(name) is not None})
    elif type_ == "quorum":
        quorum = part("queue.quorum")
        if quorum is None:
            unacceptable(subject, "x-queue-type", type_, "this build of the broker does not carry quorum queues")
        quorum.check(subject, arguments)
    else:
        unacceptable(subject, "x-queue-type", type_, "this broker has classic, quorum and stream, not '%s'" % (type_,))


def refuse(subject, type_, arguments, names):
    """Raise precondition-failed for arguments of other types of queues: they ask for features that this type lacks."""
    for name in names:
        if name in arguments:
            raise ProtocolError(PRECONDITION_FAILED, "invalid arg '%s' for %s of queue type rabbit_%s_queue" % (name, subject, type_))


def is_known(name):
    """True for an argument of queues that means something to this broker, or is at least checked."""
    if row_of(name) is not None:
        return True
    streams = part("queue.stream_arguments")
    return streams is not None and name in streams.names()


def check_rows(rows, subject, arguments):
    """Raise precondition-failed for an argument of `rows` that has a wrong value."""
    for row in rows:
        if row[0] in arguments:
            check_value(subject, row[0], row[1], arguments[row[0]])


def check_value(subject, name, kind, value):
    """Raise precondition-failed unless a value is of its kind."""
    if kind in (TEXT, NAME):
        if not isinstance(value, str):
            unacceptable(subject, name, value, "expected longstr")
        if kind == NAME and len(value.encode("utf-8")) > 255:
            invalid(subject, name, "a name has at most 255 octets")
    elif kind == FLAG:
        if not isinstance(value, bool):
            unacceptable(subject, name, value, "expected boolean")
    elif kind == AGE:
        streams = part("stream.stream")
        if streams is None or streams.age_of(value) is None:
            invalid(subject, name, "a number and one of Y M D h m s, as 7D")
    elif isinstance(kind[0], str):
        if not isinstance(value, str) or value not in kind:
            unacceptable(subject, name, value, "expected one of " + ", ".join(kind))
    else:
        check_number(subject, name, value, kind[0], kind[1], kind[2])


def check_number(subject, name, value, least, most, unit):
    """Raise precondition-failed unless a value is a whole number from `least` to `most`. RabbitMQ's words go first."""
    if not isinstance(value, int) or isinstance(value, bool):
        invalid(subject, name, '"expected integer, got %s"' % type_word(value))
    if not least <= value <= most:
        word = "too_large" if value > most else "zero" if value == 0 else "negative"
        invalid(subject, name, "{value_%s,%d}: it is from %d to %d%s" % (word, value, least, most, unit))


def unacceptable(subject, name, value, expected):
    """Raise for a value of a wrong type, or one that is not among those that there are."""
    invalid(subject, name, expected if isinstance(value, str) else "{unacceptable_type,%s}: %s" % (type_word(value), expected))


def invalid(subject, name, reason):
    """Raise, as RabbitMQ words it."""
    raise ProtocolError(PRECONDITION_FAILED, "invalid arg '%s' for %s: %s" % (name, subject, reason))


def row_of(name):
    """The row of ARGUMENTS for an argument, or None."""
    for row in ARGUMENTS:
        if row[0] == name:
            return row
    return None


def feature_class(name):
    """The class `Rule` of a feature's file, or None when this build does not carry the file."""
    module = part("queue.features." + name)
    return None if module is None else module.Rule


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
    """Attach one feature: the object of the rules `before`, for a feature that only a declaration can set."""
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


def without_expiry(rules):
    """Remove the rule that with_expiry has just added."""
    rules.features.pop()
    rules.expiry = None
    rules.expires = False
