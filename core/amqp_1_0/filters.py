"""The filter set of a source (section 3.5.8): which filters the broker accepts, and their meaning.

A filter is a described value under any name. By descriptor:

    apache.org:selector-filter:string              0x468C00000004   a text: a JMS selector (patterns/selector.py); of a stream also a
                                                                    position as Event Hubs has them (positions.py)
    apache.org:no-local-filter:list                0x468C00000003   anything: not what the link's own container publishes (no_local.py)
    apache.org:legacy-amqp-direct-binding:string   0x468C00000000   a text: the key that a private queue is bound with to an exchange
    apache.org:legacy-amqp-topic-binding:string    0x468C00000001   the same
    amqp:properties-filter                         0x173            a map: fields of the section properties
    amqp:application-properties-filter             0x174            a map: application properties
    amqp:sql-filter                                0x120            a text: patterns/sql.py
    rabbitmq:stream-offset-spec                                     first, last, next, an age as 10m, an offset, a timestamp
    rabbitmq:stream-filter                                          a text or a list of texts
    rabbitmq:stream-match-unfiltered                                a boolean

(AMQP Filter Expressions 1.0; the registry of Apache's filters; RabbitMQ 4.) Those that are not known, not for this kind of node, or without
sense are left out of the echoed source, as section 3.5.3 wants it; a selector without sense is an error, as JMS wants it. A message has to
pass all accepted filters. Of SQL and the two filters of properties, only one kind is accepted, and of these one for each section: the first
by its name.
"""

from ..errors import PRECONDITION_FAILED, ProtocolError
from ..limits import cost
from ..memory import layout
from ..message.formats import AMQP_1_0
from ..patterns.selector import Selector
from ..patterns.sql import Condition
from ..shim import const
from . import convert, positions, properties
from .addresses import INVALID_FIELD

if False:  # for the type checker alone
    from typing import Any

SELECTOR = 0x0000468C00000004
NO_LOCAL = 0x0000468C00000003
DIRECT_BINDING = 0x0000468C00000000
TOPIC_BINDING = 0x0000468C00000001
PROPERTIES = 0x173
APPLICATION_PROPERTIES = 0x174
SQL = 0x120
STREAM_OFFSET = "rabbitmq:stream-offset-spec"
STREAM_FILTER = "rabbitmq:stream-filter"
STREAM_UNFILTERED = "rabbitmq:stream-match-unfiltered"

FIELDS_MAX = 16  # of one filter of properties (AMQP Filter Expressions, 7.1)
TEXT_MAX = 4096  # characters of the selectors of a set
FILTERS_MAX = 16  # in a set

# What a look at a message costs, in steps of a selector's program: all that a round of the broker may take, the least, and how many octets
# of the message's sections take as long as a step.
ROUND_STEPS = const(8192)
LOOK_STEPS = const(64)
STEP_OCTETS = const(2)
TURN_SIZE = const(2048)  # of filter sets, as limits.cost counts it, that a connection's turn reads

NAMES = {
    "apache.org:selector-filter:string": SELECTOR,
    "apache.org:no-local-filter:list": NO_LOCAL,
    "apache.org:legacy-amqp-direct-binding:string": DIRECT_BINDING,
    "apache.org:legacy-amqp-topic-binding:string": TOPIC_BINDING,
    "amqp:properties-filter": PROPERTIES,
    "amqp:application-properties-filter": APPLICATION_PROPERTIES,
    "amqp:sql-filter": SQL,
}

_AGES = {"Y": 31536000, "M": 2592000, "D": 86400, "h": 3600, "m": 60, "s": 1}
_DIGITS = "0123456789"

# Fields of the section properties, and the types that a reference to one may have.
FIELDS = {
    "message-id": ("ulong", "uuid", "binary", "string"),
    "user-id": ("binary",),
    "to": ("string",),
    "subject": ("string",),
    "reply-to": ("string",),
    "correlation-id": ("ulong", "uuid", "binary", "string"),
    "content-type": ("symbol", "string"),
    "content-encoding": ("symbol", "string"),
    "absolute-expiry-time": ("timestamp",),
    "creation-time": ("timestamp",),
    "group-id": ("string",),
    "group-sequence": ("uint",),
    "reply-to-group-id": ("string",),
}

# Identifiers of selectors: the field of the section properties (JMS mapping, 3.2); None: below.
JMS_NAMES = {
    "JMSMessageID": "message-id",
    "JMSCorrelationID": "correlation-id",
    "JMSType": "subject",
    "JMSDestination": "to",
    "JMSReplyTo": "reply-to",
    "JMSTimestamp": "creation-time",
    "JMSExpiration": "absolute-expiry-time",
    "JMSXUserID": "user-id",
    "JMSXGroupID": "group-id",
    "JMSXGroupSeq": "group-sequence",
    "JMSPriority": None,
    "JMSDeliveryMode": None,
    "JMSXDeliveryCount": None,
    "JMSRedelivered": None,
}


class Taken:
    """The accepted part of a filter set. `arguments`: for Consumers.subscribe; `tests`: functions of a message's facts; `echo`: the
    filters, for the source that goes back, or None where there were none."""

    def __init__(self):
        self.arguments: "dict" = {}
        self.tests: list = []
        self.echo: "dict" = {}
        self.kinds: list = []  # of the tests
        self.is_position = False  # a position of Event Hubs is among them
        self.size = 0  # octets of these, as bounds.Places counts them
        self.characters = 0  # of the selectors
        self.steps = LOOK_STEPS  # of all tests with a message without octets

    def fits(self, broker, message):
        """True when a message is for this receiver: for wishes.attach. The work is charged to the round; who asks sees what is left."""
        if not self.tests:
            return True
        engine = broker.tables.engine
        steps = self.steps + broker.tables.messages[message + layout.MESSAGE_PROPERTIES] // STEP_OCTETS
        engine.turned(max(engine.deliveries * steps // ROUND_STEPS, 1))
        facts = Facts(broker, message)
        for test in self.tests:
            if not test(facts):
                return False
        return True


def read_set(given, is_stream, is_bound, seconds, is_local=False):
    """Taken of a filter set (a map as types.py gives it, or None). `is_bound`: a private queue is bound to an exchange for it; `is_local`:
    no-local is kept to; `seconds`: the wall clock. Raises ProtocolError, invalid-field, for a selector without sense."""
    made = Taken()
    for name in sorted(given or {}, key=repr):
        if len(made.echo) == FILTERS_MAX:
            break
        value = given[name]
        if not isinstance(value, tuple) or value[0] != "described":
            if not isinstance(name, tuple) or name[0] != "symbol" or not name[1].startswith("rabbitmq:stream-"):
                continue
            value = ("described", name, value)  # RabbitMQ accepts values that are not described too
        kind = kind_of(value[1])
        if kind == NO_LOCAL:
            is_taken = is_local
        elif kind in (DIRECT_BINDING, TOPIC_BINDING):
            is_taken = is_bound and isinstance(value[2], str)
        elif isinstance(kind, str):
            is_taken = is_stream and add_argument(made, kind, value[2], seconds)
        elif kind == SELECTOR and is_stream and positions.place(value[2]) is not None:
            made.arguments["x-stream-offset"] = positions.place(value[2])
            made.is_position = is_taken = True
        else:
            is_taken = add_test(made, kind, value[2])
        if is_taken:
            made.echo[name] = given[name]
    return made


def charge(broker, given):
    """A filter set (a map, or None) is about to be read: that takes some of what the connection's turn may do."""
    if given:
        tables = broker.tables
        tables.state[layout.STATE_LEFT] -= tables.engine.effort * cost(given) // TURN_SIZE


def binding_key(given):
    """The octets of the key that a filter set asks a binding to be made with, or None."""
    for name in given or {}:
        value = given[name]
        if isinstance(value, tuple) and value[0] == "described" and kind_of(value[1]) in (DIRECT_BINDING, TOPIC_BINDING):
            if isinstance(value[2], str):
                return value[2].encode("utf-8")
    return None


def wants_no_local(given):
    """True when a filter set has the filter no-local."""
    return bool(
        [name for name in given or {} if isinstance(given[name], tuple) and len(given[name]) == 3 and kind_of(given[name][1]) == NO_LOCAL]
    )


def kind_of(descriptor):
    """A number for a filter's descriptor, or the name of a stream's; None: it is not known."""
    if not isinstance(descriptor, tuple):
        return None
    if descriptor[0] == "ulong":
        return descriptor[1] if descriptor[1] in NAMES.values() else None
    if descriptor[0] != "symbol":
        return None
    name = descriptor[1]
    return name if name in (STREAM_OFFSET, STREAM_FILTER, STREAM_UNFILTERED) else NAMES.get(name)


def add_argument(made, kind, value, seconds):
    """Turn a stream's filter into an argument; true unless it makes no sense."""
    plain = value[1] if isinstance(value, tuple) and value[0] not in ("described", "array") else value
    if kind == STREAM_UNFILTERED:
        if not isinstance(plain, bool):
            return False
        made.arguments["x-stream-match-unfiltered"] = plain
    elif kind == STREAM_FILTER:
        texts = [each for each in plain if isinstance(each, str)] if isinstance(plain, list) else plain
        if not isinstance(texts, (str, list)):
            return False
        made.arguments["x-stream-filter"] = texts
    else:
        offset = ("T", max(plain // 1000, 0)) if isinstance(value, tuple) and value[0] == "timestamp" else plain
        if isinstance(offset, str) and offset not in ("first", "last", "next"):
            age = age_of(offset)
            if age is None:
                return False
            offset = ("T", max(seconds - age, 0))
        whole = isinstance(offset, int) and not isinstance(offset, bool) and 0 <= offset < 1 << 63
        if not whole and not isinstance(offset, str) and not (isinstance(offset, tuple) and offset[0] == "T"):
            return False
        made.arguments["x-stream-offset"] = offset
    return True


def age_of(text):
    """The seconds of an age as 7D or 10m, or None."""
    digits, unit = text[:-1], text[-1:]
    if unit not in _AGES or not digits or len(digits) > 9 or [letter for letter in digits if letter not in _DIGITS]:
        return None
    return int(digits) * _AGES[unit]


def add_test(made, kind, value):
    """Turn any other filter into a test; true unless it is not known, makes no sense, or does not go with one taken before."""
    if kind == SELECTOR and isinstance(value, str):
        made.tests.append(selector_test(made, value))
        return True
    test: "Any" = None
    if kind == SQL:
        test = sql_test(made, value) if not made.kinds else None
    elif kind in (PROPERTIES, APPLICATION_PROPERTIES) and kind not in made.kinds and SQL not in made.kinds:
        test = properties_test(kind, value)
        made.size += cost(value)
    if test is None:
        return False
    made.kinds.append(kind)
    made.tests.append(test)
    return True


# Facts of a message


class Facts:
    """The sections of a message of any family before its body, by name, read when the first one is asked for."""

    def __init__(self, broker, message):
        self.broker = broker
        self.message = message
        self.sections: "Any" = None

    def section(self, name):
        """The fields of a section, or its map, with values as types.py has them; an empty one where there is none."""
        if self.sections is None:
            tables = self.broker.tables
            if tables.messages[self.message + layout.MESSAGE_KIND] & layout.KIND_FORMAT == AMQP_1_0:
                octets = tables.properties_of(self.message)
            else:
                octets = convert.head_for_1_0(self.broker, self.message)
            self.sections = properties.facts(octets, 0, len(octets))
        return self.sections.get(name) or {}

    def priority(self):
        """Of the header; 4 where it says none (section 3.2.1)."""
        priority = self.section("header").get("priority")
        return 4 if priority is None else priority


def plain(value):
    """A value without the name of its type."""
    return value[1] if isinstance(value, tuple) and len(value) == 2 else value


def comparable(value):
    """A value as filters compare them: None, bool, number or octets; texts of all types are octets."""
    value = plain(value)
    if isinstance(value, str):
        return value.encode("utf-8")
    return value if value is None or isinstance(value, (bool, int, float, bytes)) else None


# Selectors


def selector_test(made, text):
    """The test of a JMS selector."""
    made.characters += len(text)
    if made.characters > TEXT_MAX:
        raise ProtocolError(INVALID_FIELD, "selectors of more than %d characters" % TEXT_MAX)
    try:
        selector = Selector(text, JMS_NAMES)
    except ProtocolError as error:
        raise ProtocolError(INVALID_FIELD if error.condition == PRECONDITION_FAILED else error.condition, error.text) from None
    made.size += cost(selector.program)
    made.steps += steps_of(selector.program)
    return lambda facts: selector.fits(facts, jms_value)


def steps_of(program):
    """How many steps a program has: an operation with a list of constants or of a pattern's pieces looks at each of these."""
    return len(program) + sum([len(argument) for operation, argument in program if isinstance(argument, list)])


def jms_value(name, facts):
    """The value of a selector's identifier: unknown (None) when it is of no type that selectors have."""
    header = facts.section("header")
    if name not in JMS_NAMES:
        value = plain(facts.section("application-properties").get(name))
        if value is None and name.startswith("amqp.annotation."):
            value = plain(facts.section("message-annotations").get(("symbol", name[16:])))
    elif name == "JMSPriority":
        value = facts.priority()
    elif name == "JMSDeliveryMode":
        value = "PERSISTENT" if header.get("durable") else "NON_PERSISTENT"
    elif name == "JMSXDeliveryCount":
        value = 1 + (header.get("delivery-count") or 0)
    elif name == "JMSRedelivered":
        value = bool(header.get("delivery-count"))
    else:
        value = identifier(facts.section("properties").get(JMS_NAMES[name]))
    return value if isinstance(value, (bool, int, float, str)) else None


def identifier(value):
    """A field of the section properties as JMS has it: identifiers of other types than string are texts (JMS mapping, 3.2.1.1)."""
    if isinstance(value, bytes):
        try:
            return str(value, "utf-8")
        except UnicodeError:
            return None
    if isinstance(value, tuple) and value[0] == "ulong":
        return "ID:AMQP_ULONG:%d" % value[1]
    if isinstance(value, tuple) and value[0] == "uuid":
        return "ID:AMQP_UUID:" + properties.urn_of(value[1])[9:]
    return plain(value)


# AMQP Filter Expressions


def sql_test(made, value):
    """The test of an SQL filter, or None."""
    if not isinstance(value, str):
        return None
    try:
        condition = Condition(value)
    except ProtocolError:
        return None
    if [name for name in condition.names() if sql_name(name) is None]:
        return None
    made.size += cost(condition.program)
    made.steps += steps_of(condition.program)
    return lambda facts: condition.fits(lambda name: sql_value(name, facts), facts.broker.seconds * 1000)


def sql_name(name):
    """(section, name) of an identifier in SQL, or None for one that there is not."""
    section, field = name
    if section in (None, "application_properties", "a"):
        return "application-properties", field
    if section in ("header", "h") and field == "priority":
        return "header", field
    field = field.replace("_", "-")
    return ("properties", field) if section in ("properties", "p") and field in FIELDS and "-" not in name[1] else None


def sql_value(name, facts):
    """The value of an identifier in SQL."""
    section, field = sql_name(name)
    return facts.priority() if section == "header" else comparable(facts.section(section).get(field))


def properties_test(kind, value):
    """The test of a filter of one of the sections properties and application-properties, or None."""
    if not isinstance(value, dict) or not 0 < len(value) <= FIELDS_MAX:
        return None
    wanted = []
    for key in value:
        reference = value[key]
        name = key[1] if isinstance(key, tuple) and key[0] == "symbol" else key
        if not isinstance(name, str) or kind == PROPERTIES and not is_field(name, reference):
            return None
        reference = reference_of(reference)
        if reference is None:
            return None
        wanted.append((name, reference))
    section = "properties" if kind == PROPERTIES else "application-properties"

    def test(facts):
        """True when all references match."""
        given = facts.section(section)
        for name, reference in wanted:
            if name not in given and kind != PROPERTIES or not matches(reference, comparable(given.get(name))):
                return False
        return True

    return test


def is_field(name, reference):
    """True when a reference may be one to a field of the section properties."""
    if name not in FIELDS:
        return False
    type_ = reference[0] if isinstance(reference, tuple) else "binary" if isinstance(reference, bytes) else "string"
    return reference is None or type_ in FIELDS[name] and not isinstance(reference, (bool, int, float, list, dict))


def reference_of(value):
    """(kind, value) of a reference: "is", "begins", "ends", or "any" for null (AMQP Filter Expressions, 4.1.1). None: it makes no sense."""
    if value is None:
        return "any", None
    if isinstance(value, str) and value.startswith("&"):
        if value[:3] in ("&p:", "&s:"):
            return "begins" if value[1] == "p" else "ends", value[3:].encode("utf-8")
        return ("is", value[1:].encode("utf-8")) if value.startswith("&&") else None
    reference = comparable(value)
    return None if reference is None else ("is", reference)


def matches(reference, value):
    """True when a message's value matches a reference."""
    how, wanted = reference
    if how == "any":
        return True
    if how == "is":
        return value is not None and value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
    if not isinstance(value, bytes):
        return False
    return value.startswith(wanted) if how == "begins" else value.endswith(wanted)
