"""The commands of the classes exchange and queue: what exists, and what is bound to what.

Differences that a declaration of 0-10 has: an alternate exchange is a field, of queues also the place for what their consumers reject and
for what they hold when they are deleted (dead-letter exchange); exclusive is a session's here and a connection's in the broker (queue_of),
and a durable queue is not bound to either; what is there already is not asked for its durable and auto-delete; Qpid's names for arguments
of queues stand beside the broker's own (ARGUMENTS). The codes of exceptions are those of the specification's fields.
"""

from ..access.permissions import CONFIGURE, READ, WRITE, check
from ..errors import NOT_ALLOWED, NOT_FOUND, ProtocolError
from ..exchange.base import ALTERNATE
from ..exchange.registry import type_named
from ..memory import layout
from ..parts import needed
from ..queue import turns
from .conditions import ILLEGAL_ARGUMENT, INVALID_ARGUMENT, SessionError

# Qpid's arguments of queue.declare: the broker's, and how a value is made of it.
ARGUMENTS = {
    "qpid.max_count": "x-max-length",
    "qpid.max_size": "x-max-length-bytes",
    "qpid.priorities": "x-max-priority",
    "x-qpid-priorities": "x-max-priority",
    "qpid.last_value_queue_key": "x-last-value-key",
    "qpid.LVQ_key": "x-last-value-key",
    "qpid.message_group_key": "x-group-key",
    "qpid.group_header_key": "x-group-key",
    "qpid.auto_delete_timeout": "x-expires",
    "qpid.alert_count": None,
    "qpid.alert_size": None,
    "qpid.file_count": None,
    "qpid.file_size": None,
    "qpid.persist_last_node": None,
    "qpid.queue_msg_sequence": None,
    "qpid.last_value_queue": None,
    "qpid.shared_msg_group": None,
    "qpid.default_msg_group": None,
    "qpid.policy_type": "x-overflow",
    "no-local": None,
    "x-qpid-capacity": None,
    "x-qpid-flow-resume-capacity": None,
}
DEAD_LETTERS = "x-dead-letter-exchange"  # the alternate exchange of a queue
NO_LOCAL = "no-local"  # of a queue: it keeps no messages of the connection that has declared it last (Qpid's brokers)
POLICIES = {"ring": "drop-head", "ring-strict": "drop-head", "self-destruct": "reject-publish", "reject": "reject-publish"}
BINDING_FILTERS = ("x-filter-jms-selector", "no-local")  # of bindings: which Qpid's clients also ask of the subscription


def must_wait(session):
    """True while definitions may not change: a commit takes effect, or the log cannot be written."""
    broker = session.broker
    if broker.commit is None and (broker.journal is None or not broker.journal.log.trouble):
        return False
    session.session.connection.wait_for_turn()
    return True


def name_in(fields, title):
    """A field that is a name. Raises illegal-argument for one that is not there, invalid-argument for an empty one."""
    if not fields[title]:
        condition, word = (ILLEGAL_ARGUMENT, "missing") if fields[title] is None else (INVALID_ARGUMENT, "empty")
        raise SessionError(condition, "the field %s is %s" % (title.replace("_", "-"), word))
    return fields[title]


def queue_of(session, name):
    """A queue. Raises not-found; resource-locked for one that another session has for itself."""
    topology = session.broker.topology
    queue = topology.queue(name, session.connection)
    if queue.owner is not None and queue not in session.owned:
        topology.locked(name)
    return queue


def check_prefix(name):
    """Raise not-allowed for a name that no client may give."""
    if name[:4] == "amq.":
        raise ProtocolError(NOT_ALLOWED, "names that begin with 'amq.' are reserved")


# exchange


def exchange_declare(session, fields):
    """Declare: made, or the same as what is there, whose durable and auto-delete are not looked at."""
    broker, connection = session.broker, session.connection
    name, type_ = name_in(fields, "exchange"), fields["type"] or ""
    if must_wait(session):
        return False
    exchange = broker.exchanges.get(name)
    if not fields["passive"]:
        check(broker, connection.user, CONFIGURE, "exchange", name)
    if exchange is not None and type_ and type_ != exchange.type:
        raise ProtocolError(NOT_ALLOWED, "exchange '%s' is of type %s, and not %s" % (name, exchange.type, type_[:40]))
    if fields["passive"]:
        broker.topology.exchange(name)
        return True
    arguments = with_alternate(fields["arguments"], ALTERNATE, fields["alternate_exchange"], exchange)
    allow_forward(broker, connection.user, "exchange", name, arguments.get(ALTERNATE), broker.exchanges)
    durable, auto_delete, internal = fields["durable"], fields["auto_delete"], False
    if exchange is None:
        check_prefix(name)
        if type_named(type_) is None:
            raise ProtocolError(NOT_FOUND, "there is no exchange type '%s'" % type_[:40])
    else:
        type_, durable, auto_delete, internal = exchange.type, exchange.durable, exchange.auto_delete, exchange.internal
    broker.topology.declare_exchange(connection, name, type_, False, durable, auto_delete, internal, arguments)
    return True


def with_alternate(given, title, alternate, current):
    """The arguments of a declaration with its alternate exchange as the argument `title`; `current`: what is there, or None, which keeps
    its own where none is named. Raises not-allowed for another one."""
    arguments = dict(given or {})
    if alternate:
        arguments[title] = alternate
    if current is not None:
        there = current.arguments.get(title)
        if alternate and alternate != there:
            raise ProtocolError(
                NOT_ALLOWED, "the alternate exchange of '%s' is '%s', and not '%s'" % (current.name, there or "", alternate)
            )
        if there is not None:
            arguments.setdefault(title, there)
    return arguments


def allow_forward(broker, user, kind, name, target, there):
    """The permissions for an alternate or dead letter exchange of something that is not there yet (RabbitMQ's)."""
    if isinstance(target, str) and name not in there:
        check(broker, user, READ, kind, name)
        check(broker, user, WRITE, "exchange", target)


def exchange_delete(session, fields):
    """Delete; false: more bindings than one turn is for."""
    broker, name = session.broker, name_in(fields, "exchange")
    if must_wait(session):
        return False
    check(broker, session.connection.user, CONFIGURE, "exchange", name)
    broker.topology.exchange(name)
    if is_alternate(broker, name):
        raise ProtocolError(NOT_ALLOWED, "exchange '%s' is the alternate exchange of a queue or an exchange" % name)
    return bool(broker.topology.delete_exchange(name, fields["if_unused"]))


def is_alternate(broker, name):
    """True for an exchange that is in use as an alternate exchange."""
    for each in broker.exchanges.values():
        if each.alternate == name:
            return True
    for each in broker.queues.values():
        if each.arguments.get(DEAD_LETTERS) == name:
            return True
    return False


def exchange_query(session, fields):
    """Query: exchange-query-result."""
    name = fields["name"] or ""
    if name == "":
        return {"type": "direct", "durable": True, "arguments": {}}
    exchange = session.broker.exchanges.get(name)
    if exchange is None:
        return {"not_found": True}
    return {"type": exchange.type, "durable": exchange.durable, "arguments": exchange.arguments}


def exchange_bind(session, fields):
    """Bind a queue to an exchange. A binding of this key stays as it is: "The value of the arguments used for the binding MUST NOT be
    altered by subsequent binding requests"."""
    given = binding_of(session, fields)
    if given is None:
        return False
    queue, exchange, key = given
    arguments = broker_arguments(fields["arguments"])
    if not (arguments or not exchange.by_key) or not bound_with(exchange, queue, key):
        session.broker.topology.bind(session.connection, queue.name, exchange.name, key, arguments)
    return True


def exchange_unbind(session, fields):
    """End a binding. The arguments of a binding are not named, so all of its key end."""
    given = binding_of(session, fields)
    if given is None:
        return False
    queue, exchange, key = given
    bindings = bound_with(exchange, queue, key)
    if not bindings:
        text = "queue '%s' is not bound to exchange '%s' with the key '%s'"
        raise ProtocolError(NOT_FOUND, text % (queue.name, exchange.name, str(key, "utf-8")[:80]))
    for arguments in bindings:
        session.broker.topology.unbind(session.connection, queue.name, exchange.name, key, arguments)
    return True


def binding_of(session, fields):
    """(queue, exchange, key) that a change of a binding is about; None: it must wait."""
    broker, user = session.broker, session.connection.user
    queue, exchange = name_in(fields, "queue"), name_in(fields, "exchange")
    if must_wait(session):
        return None
    key = fields["binding_key"] or ""
    check(broker, user, WRITE, "queue", queue)
    check(broker, user, READ, "exchange", exchange, key)
    return queue_of(session, queue), broker.topology.exchange(exchange), key.encode("utf-8")


def broker_arguments(arguments):
    """Arguments of a binding without those that are a subscription's too."""
    return {name: arguments[name] for name in arguments or {} if name not in BINDING_FILTERS}


def bound_with(exchange, queue, key):
    """The arguments of all bindings of a queue to an exchange with a key."""
    return [each.arguments for each in list(queue.bound.values()) if each.exchange is exchange and each.key == key]


def exchange_bound(session, fields):
    """Bound: which of exchange, queue, key and arguments does not fit (exchange-bound-result)."""
    broker = session.broker
    exchange_name, queue_name = fields["exchange"] or "", fields["queue"]
    exchange, queue = broker.exchanges.get(exchange_name), broker.queues.get(queue_name or "")
    result = {
        "exchange_not_found": exchange_name != "" and exchange is None,
        "queue_not_found": bool(queue_name) and queue is None,
    }
    if result["exchange_not_found"] or result["queue_not_found"]:
        return result
    key = fields["binding_key"]
    if exchange is None:
        result["key_not_matched"] = key is not None and queue_name is not None and key != queue_name
        return result
    if queue is None:
        bindings = list(exchange.bindings.values())
    else:
        bindings = [each for each in queue.bound.values() if each.exchange is exchange]
    result["queue_not_matched"] = queue is not None and not bindings
    if key is not None:
        bindings = [each for each in bindings if each.key == key.encode("utf-8")]
        result["key_not_matched"] = not bindings
    if fields["arguments"] is not None:
        wanted = broker_arguments(fields["arguments"])
        result["args_not_matched"] = not [each for each in bindings if each.arguments == wanted]
    return result


# queue


def queue_declare(session, fields):
    """Declare: made, or the same as what is there, whose durable and auto-delete are not looked at."""
    broker, connection = session.broker, session.connection
    name = name_in(fields, "queue")
    if must_wait(session):
        return False
    queue = broker.queues.get(name)
    if fields["passive"]:
        queue = broker.topology.declare_queue(connection, name, True, False, False, False, {})
    else:
        queue = made_queue(session, name, queue, fields)
    turns.serve(broker, queue)
    broker.consumers.end_unclaimed(queue)
    return True


def made_queue(session, name, queue, fields):
    """The queue of a declaration that is not passive; `queue`: the one that is there, or None."""
    broker, connection, alternate = session.broker, session.connection, fields["alternate_exchange"]
    given = fields["arguments"] or {}
    check(broker, connection.user, CONFIGURE, "queue", name)
    arguments = with_alternate(queue_arguments(given), DEAD_LETTERS, alternate, queue)
    allow_forward(broker, connection.user, "queue", name, arguments.get(DEAD_LETTERS), broker.queues)
    durable, auto_delete = fields["durable"], fields["auto_delete"]
    is_owned = fields["exclusive"] and not durable
    if queue is None:
        check_prefix(name)
        if alternate:
            broker.topology.exchange(alternate)
    else:
        turns.serve(broker, queue)
        queue_of(session, name)
        durable, auto_delete = queue.durable, queue.auto_delete
        is_owned = queue.owner is not None or fields["exclusive"] and not durable
    made = broker.topology.declare_queue(connection, name, False, durable, is_owned, auto_delete, arguments)
    if given.get(NO_LOCAL) and not made.is_stream:
        needed("broker.local", "no-local").keep_out(broker, made, session.session)
    if queue is None and is_owned:
        session.owned.append(made)
        made.outlasts_consumers = True  # "MUST be deleted when the session closes", and not before
    if alternate and made.auto_delete:
        made.farewell = lambda queue: broker.jobs.append(Farewell(broker, queue))
    return made


def queue_arguments(given):
    """Arguments of a queue by the broker's names."""
    arguments: "dict" = {}
    for name in given:
        value = given[name]
        title = ARGUMENTS.get(name, name)
        if title is None:
            continue
        if title == "x-overflow" and name != title:
            value = POLICIES.get(value)
            if value is None:
                continue  # flow_to_disk: a durable queue here always can
        elif name == "qpid.auto_delete_timeout":
            value = 1000 * value if isinstance(value, int) else value
        elif title == "x-max-priority" and isinstance(value, int):
            value = min(max(value - 1, 1), 255)  # Qpid counts the levels, the broker names the highest
        arguments[title] = value
    return arguments


def queue_delete(session, fields):
    """Delete; false: more bindings than one turn is for."""
    name = name_in(fields, "queue")
    if must_wait(session):
        return False
    broker = session.broker
    check(broker, session.connection.user, CONFIGURE, "queue", name)
    queue = queue_of(session, name)
    turns.serve(broker, queue)
    may_go = not (queue.is_own or fields["if_unused"] and queue.consumers or fields["if_empty"] and queue.message_count())
    if may_go and not send_on(broker, queue):
        return session.session.go_on_later()
    if broker.topology.delete_queue(session.connection, name, fields["if_unused"], fields["if_empty"]) is None:
        return session.session.go_on_later()
    return True


def send_on(broker, queue):
    """Send what a queue that is to be deleted holds ready to its alternate exchange ("any pending messages are sent to the
    alternate-exchange if defined"): false when some of it is there yet. For what no queue has room it goes with its queue."""
    state, letters = broker.tables.state, broker.dead_letters
    if queue.is_stream or queue.rules is None or queue.rules.dead_letter is None:
        return True
    cost = broker.consumers.look_cost()
    while queue.message_count():
        if queue.head() == layout.NONE and queue.is_paging():
            queue.pages.pager.bring(queue)
        if state[layout.STATE_LEFT] <= 0 or letters.left <= 0 or queue.head() == layout.NONE:
            return False
        state[layout.STATE_LEFT] -= cost
        broker.discard(queue, queue.pop(), "deleted")
    return True


class Farewell:
    """The end of a queue with auto-delete and an alternate exchange: a job of the broker (`jobs`) until what is ready there is sent on
    ("orphaned messages MUST be routed to the alternate-exchange"). Another consumer meanwhile keeps the queue."""

    subject = "a queue that goes%s"

    def __init__(self, broker, queue):
        self.broker = broker
        self.queue = queue

    def work(self):
        """Send on some more."""
        broker, queue = self.broker, self.queue
        if broker.queues.get(queue.name) is not queue or queue.consumers:
            return
        is_coming_back = len(broker.consumers.leaving) > 0 and broker.tables.queues[queue.handle + layout.QUEUE_UNSETTLED] > 0
        if is_coming_back or not send_on(broker, queue):
            broker.jobs.append(self)
        else:
            broker.topology.drop_queue(queue)


def queue_purge(session, fields):
    """Purge; false: some of what is ready is there yet."""
    broker = session.broker
    name = name_in(fields, "queue")
    check(broker, session.connection.user, READ, "queue", name)
    queue = queue_of(session, name)
    if session.settling is None:
        turns.serve(broker, queue)
        session.settling = queue.message_count()
    session.settling -= broker.purge(queue, session.settling)
    if session.settling > 0 and queue.message_count():
        return session.session.go_on_later()
    session.settling = None
    return True


def queue_query(session, fields):
    """Query: queue-query-result; without fields where there is no such queue, as Qpid's brokers answer it."""
    broker = session.broker
    name = fields["queue"]
    queue = broker.queues.get(name if name == "" else name_in(fields, "queue"))
    if queue is None:
        return {}
    turns.serve(broker, queue)
    return {
        "queue": name,
        "alternate_exchange": queue.arguments.get(DEAD_LETTERS),
        "durable": queue.durable,
        "exclusive": queue.owner is not None,
        "auto_delete": queue.auto_delete,
        "arguments": queue.arguments,
        "message_count": queue.message_count(),
        "subscriber_count": len(queue.consumers),
    }
