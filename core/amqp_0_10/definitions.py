"""The commands of the classes exchange and queue: what exists, and what is bound to what.

Differences that a declaration of 0-10 has: an alternate exchange is a field, of queues also the place for what their consumers reject
(dead-letter exchange); exclusive is a session's here and a connection's in the broker, and a durable queue is not bound to either; Qpid's
names for arguments of queues stand beside the broker's own (ARGUMENTS).
"""

from ..access.permissions import CONFIGURE, READ, WRITE, check
from ..errors import PRECONDITION_FAILED, ProtocolError
from ..parts import needed
from ..queue import turns
from .conditions import ILLEGAL_ARGUMENT, SessionError

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
    """A field that is a name. Raises illegal-argument for one that is not there."""
    if fields[title] is None:
        raise SessionError(ILLEGAL_ARGUMENT, "the field %s is missing" % title.replace("_", "-"))
    return fields[title]


# exchange


def exchange_declare(session, fields):
    """Declare: made, or the same as what is there."""
    broker, connection = session.broker, session.connection
    name, type_ = name_in(fields, "exchange"), fields["type"] or ""
    if must_wait(session):
        return False
    arguments = dict(fields["arguments"] or {})
    if fields["alternate_exchange"]:
        arguments["alternate-exchange"] = fields["alternate_exchange"]
    if not fields["passive"]:
        check(broker, connection.user, CONFIGURE, "exchange", name)
        allow_forward(broker, connection.user, "exchange", name, arguments.get("alternate-exchange"), broker.exchanges)
    if name == "" or name in broker.exchanges and (fields["passive"] or name[:4] == "amq."):
        is_there(session, name, type_)
        return True
    broker.topology.declare_exchange(connection, name, type_, fields["passive"], fields["durable"], fields["auto_delete"], False, arguments)
    return True


def is_there(session, name, type_):
    """An exchange that is only looked for, or the broker's own: of that type, where one is given."""
    current = "direct" if name == "" else session.broker.exchanges[name].type
    if type_ and type_ != current:
        raise ProtocolError(PRECONDITION_FAILED, "exchange '%s' is of type %s, and not %s" % (name, current, type_[:40]))


def allow_forward(broker, user, kind, name, target, there):
    """The permissions for an alternate or dead letter exchange of something that is not there yet (RabbitMQ's)."""
    if isinstance(target, str) and name not in there:
        check(broker, user, READ, kind, name)
        check(broker, user, WRITE, "exchange", target)


def exchange_delete(session, fields):
    """Delete; false: more bindings than one turn is for."""
    name = name_in(fields, "exchange")
    if must_wait(session):
        return False
    check(session.broker, session.connection.user, CONFIGURE, "exchange", name)
    session.broker.topology.exchange(name)
    return bool(session.broker.topology.delete_exchange(name, fields["if_unused"]))


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
    """Bind a queue to an exchange."""
    return bind(session, fields, session.broker.topology.bind, fields["arguments"])


def exchange_unbind(session, fields):
    """End a binding: "If the binding does not exist" it ends nothing. The arguments of a binding are not named, so all of its key end."""
    broker = session.broker
    name, queue_name = fields["exchange"] or "", fields["queue"] or ""
    exchange = broker.exchanges.get(name)
    if exchange is None or queue_name not in broker.queues:
        return bind(session, fields, broker.topology.unbind, None)
    key = (fields["binding_key"] or "").encode("utf-8")
    for arguments in bound_with(exchange, broker.queues[queue_name], key):
        if bind(session, fields, broker.topology.unbind, arguments) is False:
            return False
    return True


def bind(session, fields, verb, arguments):
    """A change of a binding."""
    broker, user = session.broker, session.connection.user
    queue, exchange = name_in(fields, "queue"), name_in(fields, "exchange")
    if must_wait(session):
        return False
    check(broker, user, WRITE, "queue", queue)
    check(broker, user, READ, "exchange", exchange, fields["binding_key"] or "")
    verb(session.connection, queue, exchange, (fields["binding_key"] or "").encode("utf-8"), broker_arguments(arguments))
    return True


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
    """Declare: made, or the same as what is there."""
    broker, connection = session.broker, session.connection
    name = name_in(fields, "queue")
    if must_wait(session):
        return False
    arguments = queue_arguments(fields["arguments"] or {})
    if fields["alternate_exchange"]:
        arguments["x-dead-letter-exchange"] = fields["alternate_exchange"]
    is_owned = fields["exclusive"] and not fields["durable"]
    if not fields["passive"]:
        check(broker, connection.user, CONFIGURE, "queue", name)
        allow_forward(broker, connection.user, "queue", name, arguments.get("x-dead-letter-exchange"), broker.queues)
    queue = broker.queues.get(name)
    if queue is not None:
        turns.serve(broker, queue)
    queue = broker.topology.declare_queue(
        connection, name, fields["passive"], fields["durable"], is_owned, fields["auto_delete"], arguments
    )
    if (fields["arguments"] or {}).get(NO_LOCAL) and not fields["passive"] and not queue.is_stream:
        needed("broker.local", "no-local").keep_out(broker, queue, session.session)
    if queue.owner is connection and queue not in session.owned:
        session.owned.append(queue)
    broker.consumers.end_unclaimed(queue)
    return True


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
    queue = broker.topology.queue(name, session.connection)
    turns.serve(broker, queue)
    if broker.topology.delete_queue(session.connection, name, fields["if_unused"], fields["if_empty"]) is None:
        return session.session.go_on_later()
    return True


def queue_purge(session, fields):
    """Purge; false: some of what is ready is there yet."""
    broker = session.broker
    name = name_in(fields, "queue")
    check(broker, session.connection.user, READ, "queue", name)
    queue = broker.topology.queue(name, session.connection)
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
    name = name_in(fields, "queue")
    queue = broker.queues.get(name)
    if queue is None:
        return {}
    turns.serve(broker, queue)
    return {
        "queue": name,
        "alternate_exchange": queue.arguments.get("x-dead-letter-exchange"),
        "durable": queue.durable,
        "exclusive": queue.owner is not None,
        "auto_delete": queue.auto_delete,
        "arguments": queue.arguments,
        "message_count": queue.message_count(),
        "subscriber_count": len(queue.consumers),
    }
