"""RabbitMQ's runtime parameters, as far as a broker without its plugins has them: global parameters, and the limits of the virtual host.

A global parameter is a name with any value that JSON can write; nothing here goes by one but `cluster_name`, which clients are told.
A limit of the virtual host is a whole number, and none below 0; lowered, it ends nothing: it holds for what is opened or declared from
then on. Both are definitions of the log, and count as policies do against policy_count_max. Errors have RabbitMQ's words.
"""

from ..access.user_limits import check_limits, word
from ..errors import NOT_ALLOWED, PRECONDITION_FAILED, ProtocolError

CONNECTIONS, QUEUES = NAMES = "max-connections", "max-queues"
CLUSTER_NAME, CLUSTER_ID, CLUSTER_TAGS = "cluster_name", "internal_cluster_id", "cluster_tags"

PART = "broker.parameters"  # what of the log this file restores, behind all queues (log/definition_records.py)
GLOBAL, LIMITS = "global parameter\n", "vhost limits"  # names there: the first with the parameter's behind it
NAME_SIZE_MAX = 255 - len(GLOBAL)
LIMITS_NAME = "limits"  # the one name of the component vhost-limits


class Parameters:
    """The parameters of one broker: `rows`, the global ones by name, and `limits`, {name: number} of the virtual host."""

    def __init__(self, broker):
        self.broker = broker
        self.rows: dict = {}
        self.limits: dict = {}

    def count(self):
        """How many there are; all limits are one, as RabbitMQ keeps them."""
        return len(self.rows) + bool(self.limits)

    # Global parameters

    def put(self, name, value):
        """Add or replace a global parameter. Raises ProtocolError."""
        broker = self.broker
        size_max = min(broker.limits.name_size_max, NAME_SIZE_MAX)
        if not 0 < len(name.encode("utf-8")) <= size_max:
            bad("the name of a global parameter has 1 to %d octets" % size_max)
        if name == CLUSTER_NAME and not isinstance(value, str):
            bad("%s is not a text" % CLUSTER_NAME)
        broker.topology.check_size([value])
        if name not in self.rows:
            self.check_count()
        define(broker, definition(GLOBAL + name, value))
        self.rows[name] = value
        self.name_cluster()

    def remove(self, name):
        """Remove a global parameter; false when there is none of this name."""
        if name not in self.rows:
            return False
        define(self.broker, {"gone": "kept", "name": GLOBAL + name})
        del self.rows[name]
        self.name_cluster()
        return True

    def name_cluster(self):
        """Tell clients the name that is set, or the broker's own."""
        self.broker.cluster_name = self.rows.get(CLUSTER_NAME)

    # Limits of the virtual host

    def put_limits(self, limits):
        """Replace all limits. Raises ValueError in RabbitMQ's words, ProtocolError where there are too many parameters."""
        if not isinstance(limits, dict):
            raise ValueError("limits not a list " + word(limits))
        check_limits(limits, NAMES, "limits")
        if limits and not self.limits:
            self.check_count()
        if limits:
            define(self.broker, definition(LIMITS, limits))
        elif self.limits:
            define(self.broker, {"gone": "kept", "name": LIMITS})
        self.limits = dict(limits)

    def check_connection(self, connection):
        """Raise not-allowed where a connection that opens is one more than there may be."""
        broker = self.broker
        most = self.limits.get(CONNECTIONS, -1)
        insider = broker.access.insider
        if most < 0 or connection.user is insider:
            return
        if len([1 for each in broker.connections if each.user not in (None, insider) and not each.closed and not each.is_refused]) > most:
            connection.is_refused = True
            text = "access to vhost '%s' refused for user '%s': connection limit (%d) is reached"
            raise ProtocolError(NOT_ALLOWED, text % (broker.virtual_host, connection.user.name, most), True)

    def check_queue(self, name):
        """Raise precondition-failed where a queue that is declared is one more than there may be."""
        most = self.limits.get(QUEUES, -1)
        if 0 <= most <= len(self.broker.queues):
            text = "cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached"
            raise ProtocolError(PRECONDITION_FAILED, text % (name, self.broker.virtual_host, most))

    # The log, and room

    def check_count(self):
        """Raise precondition-failed where there is no place for one more."""
        most = self.broker.limits.policy_count_max
        if self.broker.policies.taken(self.broker) >= most:
            bad("this broker holds %d policies at most, and parameters count too" % most)

    def definitions(self):
        """All definitions for the log (log/definition_records.py); others may change some between two of them."""
        for name in list(self.rows):
            if name in self.rows:
                yield definition(GLOBAL + name, self.rows[name])
        if self.limits:
            yield definition(LIMITS, self.limits)


def of(broker):
    """The Parameters of a broker."""
    if broker.parameters is None:
        broker.parameters = Parameters(broker)
    return broker.parameters


def value_of(broker, name, kind, default):
    """The value of a global parameter of this kind, else the default."""
    value = None if broker.parameters is None else broker.parameters.rows.get(name)
    return value if isinstance(value, kind) else default


def cluster_name(broker):
    """The name that an operator has set, or the broker's own."""
    return value_of(broker, CLUSTER_NAME, str, broker.name)


def cluster_id(broker):
    """The permanent identity, which an import may have brought."""
    return value_of(broker, CLUSTER_ID, str, "rabbitmq-cluster-id-" + broker.name)


def definition(name, value):
    """One as the log has it."""
    return {"kind": "kept", "part": PART, "name": name, "value": value}


def restore(broker, logged):
    """Put one of the log back."""
    name, value = logged["name"], logged["value"]
    if name == LIMITS:
        of(broker).put_limits(value)
    else:
        of(broker).put(name[len(GLOBAL) :], value)


def define(broker, definition):
    """Log a definition, where there is a log."""
    if broker.journal is not None:
        broker.journal.define(definition)


def bad(sentence):
    """Raise precondition-failed."""
    raise ProtocolError(PRECONDITION_FAILED, sentence)
