"""Durable definitions as dicts for the log, and back: users, exchanges, queues, bindings, policies, parameters (kept over a restart)."""

import json

from ..access import users
from ..errors import NOT_IMPLEMENTED, PRECONDITION_FAILED, RESOURCE_ERROR, ProtocolError, words_of
from ..parts import needed
from ..queue import rules


def exchange_definition(exchange):
    """A durable exchange."""
    return {
        "kind": "exchange",
        "name": exchange.name,
        "type": exchange.type,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": exchange.arguments,
    }


def queue_definition(queue):
    """A durable queue or stream."""
    definition = {
        "kind": "queue",
        "id": queue.id_in_log,
        "name": queue.name,
        "auto_delete": queue.auto_delete,
        "arguments": queue.arguments,
    }
    if queue.is_stream:
        definition["stream"] = queue.id
        definition["next"] = queue.next_offset()
        definition["kept"] = queue.kept
    return definition


def binding_definition(binding):
    """A binding between durable queues or exchanges."""
    return {
        "kind": "binding",
        "source": binding.exchange.name,
        "to": "exchange" if binding.destination.is_exchange else "queue",
        "name": binding.destination.name,
        "key": binding.key,
        "arguments": binding.arguments,
    }


def policy_definition(policy):
    """A policy."""
    return {
        "kind": policy.kind,
        "name": policy.name,
        "pattern": policy.pattern,
        "definition": policy.definition,
        "priority": policy.priority,
        "apply_to": policy.apply_to,
    }


def clock_definition(ages):
    """Where the wall clock has jumped (ages.py)."""
    return {"kind": "clock", "name": "", "frames": ages.frames}


def gone(definition):
    """The record that removes a definition."""
    removal = {name: definition[name] for name in definition if name != "kind"}
    removal["gone"] = definition["kind"]
    return removal


def is_durable(binding):
    """True when both ends of a binding survive a restart."""
    destination = binding.destination
    return binding.exchange.durable and (destination.durable if destination.is_exchange else destination.id_in_log != 0)


def is_made(broker, definition):
    """True when something of that name was made since a definition of the log could not be made again: that is its definition now."""
    policies = broker.policies
    made = {
        "policy": policies.by_name,
        "operator policy": policies.operators,
        "exchange": broker.exchanges,
        "queue": broker.queues,
        "user": broker.access.users,
    }
    return definition["name"] in made.get(definition["kind"], ())


def all_definitions(broker):
    """Every durable definition of a broker. Others may make and remove things between two of them: each definition is current when it is
    yielded, and removed ones are passed over."""
    for definition in broker.unrestored:
        if not is_made(broker, definition):
            yield definition
    for definition in list(users.definitions(broker)):
        yield definition
    if len(broker.ages.frames) > 1:
        yield clock_definition(broker.ages)
    for policy in list(broker.policies.by_name.values()) + list(broker.policies.operators.values()):
        if broker.policies.rows_of(policy).get(policy.name) is policy:
            yield policy_definition(policy)
    for exchange in list(broker.exchanges.values()):
        if exchange.durable and not exchange.name.startswith("amq.") and broker.exchanges.get(exchange.name) is exchange:
            yield exchange_definition(exchange)
    for queue in list(broker.queues.values()):
        if queue.id_in_log and broker.queues.get(queue.name) is queue:
            yield queue_definition(queue)
    for exchange in list(broker.exchanges.values()):
        for binding in list(exchange.bindings.values()):
            if exchange.bindings.get(binding.identity) is binding and is_durable(binding):
                yield binding_definition(binding)
    for kept in (broker.kept, broker.beyond, broker.parameters):
        if kept is not None:
            for definition in kept.definitions():
                yield definition


def restore(broker, definitions, nobody, faults, watch):
    """Restore all definitions in an empty broker, on no connection's account: queues by their id in the log, and bindings without their
    ends.

    `watch(queue)` is called for each queue. A definition that raises is left out and described in `faults`; it stays in the log
    (Broker.unrestored). Raises ProtocolError when the limits or the parts of this build are too small for the definitions.
    """
    by_id: dict = {}
    loose: list = []
    for kind in ("no-guest", "user", "policy", "operator policy", "exchange", "queue", "binding", "kept", "kept part"):
        for each in of_kind(definitions, kind):
            try:
                restore_one(broker, each, nobody, by_id, loose, watch)
            except Exception as error:  # a bad definition does not prevent the others
                if isinstance(error, ProtocolError) and error.condition in (RESOURCE_ERROR, NOT_IMPLEMENTED):
                    raise
                broker.unrestored.append(each)
                faults.append(
                    "%s '%s' could not be made again (%s); its definition stays in the log" % (kind, each.get("name"), words_of(error))
                )
    return by_id, loose


def restore_one(broker, each, nobody, by_id, loose, watch):
    """Restore one definition."""
    kind = each["kind"]
    if kind in ("policy", "operator policy"):
        restore_policy(broker, each)
    elif kind == "exchange":
        broker.topology.declare_exchange(
            nobody, each["name"], each["type"], False, True, each["auto_delete"], each["internal"], each["arguments"]
        )
    elif kind == "queue":
        restore_queue(broker, each, nobody, by_id, watch)
    elif kind == "binding":
        if not restore_binding(broker, each, nobody):
            (broker.unrestored if waits_for_other(broker, each) else loose).append(each)
    elif kind in ("kept", "kept part"):
        needed(each["part"], "what peers left").restore(broker, each)
    else:
        users.restore(broker, each)


def waits_for_other(broker, binding):
    """True when a binding's exchange or queue is one that could not be made again."""
    for each in broker.unrestored:
        kind, name = each["kind"], each["name"]
        if kind == "exchange" and name == binding["source"] or kind == binding["to"] and name == binding["name"]:
            return True
    return False


def restore_queue(broker, each, nobody, by_id, watch):
    """Make a queue or a stream again."""
    broker.topology.check_queue_room(nobody)
    queue = broker.topology.make_queue(
        nobody, each["name"], True, False, each["auto_delete"], acceptable(broker, each["name"], each["arguments"])
    )
    queue.id_in_log = each["id"]
    queue.update_plain()
    if queue.is_stream:
        queue.id = each["stream"]
        queue.log_position = each["next"] - 1
        queue.kept = each["kept"]
    try:
        watch(queue)
    except Exception:  # all or nothing: the queue is not there
        broker.topology.drop_queue(queue)
        raise
    by_id[queue.id_in_log] = queue


def restore_policy(broker, each):
    """Restore a policy; one that this version refuses (an earlier version has logged it) is described in `faults` and left out."""
    try:
        made = broker.policies.made
        if each["kind"] != "policy":
            made = needed("broker.operator_policies", "operator policies").OperatorPolicy
        made = made(each["name"], each["pattern"], each["definition"], each["priority"], each["apply_to"])
    except ProtocolError as error:
        if error.condition != PRECONDITION_FAILED:
            raise  # this build has no policies
        broker.log("a policy of the log does not come back, set it anew: " + error.text)
    else:
        broker.policies.set(broker, made)


def acceptable(broker, name, arguments):
    """The arguments of a logged queue or stream less those that this version refuses (an earlier version has logged them), which are
    described in `faults`: better without them than without its messages."""
    sound: dict = {}
    # The type decides how others are read, and the dead letter exchange comes before its routing key.
    for argument in sorted(arguments, key=lambda each: (each != "x-queue-type", each)):
        trial = dict(sound)
        trial[argument] = arguments[argument]
        try:
            rules.check_queue("queue '%s'" % name, trial)
            sound = trial
        except ProtocolError as error:
            if error.condition != PRECONDITION_FAILED:
                raise  # this build has no streams
            broker.log("queue '%s' comes back without '%s': %s" % (name, argument, error.text))
    return sound


def restore_binding(broker, each, nobody):
    """Restore a binding; false when damage has removed one of its ends, or another exchange has that name now."""
    destination = (broker.exchanges if each["to"] == "exchange" else broker.queues).get(each["name"])
    if destination is None or each["source"] not in broker.exchanges:
        return False
    try:
        broker.topology.bind_to(nobody, destination, broker.exchanges[each["source"]], each["key"], each["arguments"])
    except ProtocolError as error:
        if error.condition != PRECONDITION_FAILED:
            raise  # the limits are too small
        return False
    return True


def of_kind(definitions, kind):
    """The definitions of one kind."""
    return [each for each in definitions if each["kind"] == kind]


def written(definition):
    """A definition's octets in the log."""
    return json.dumps(plain(definition)).encode()


def plain(item):
    """A definition with values that JSON lacks written as lists: tuples as ["$t", ...], octets as ["$x", hex]."""
    if isinstance(item, dict):
        return {name: plain(item[name]) for name in item}
    if isinstance(item, tuple):
        return ["$t"] + [plain(each) for each in item]
    if isinstance(item, list):
        return ["$l"] + [plain(each) for each in item]
    if isinstance(item, (bytes, bytearray)):
        return ["$x", bytes(item).hex()]
    return item


def rich(item):
    """The inverse of `plain`."""
    if isinstance(item, dict):
        return {name: rich(item[name]) for name in item}
    if isinstance(item, list):
        if item[0] == "$x":
            return bytes.fromhex(item[1])
        rest = [rich(each) for each in item[1:]]
        return tuple(rest) if item[0] == "$t" else rest
    return item
