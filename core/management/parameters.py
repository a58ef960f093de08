"""Runtime parameters in RabbitMQ's JSON: operator policies, the limits of the virtual host, and global parameters; loaded and shown.

RabbitMQ's other components are its plugins' (federation, shovel): without the plugin it refuses them in the words that this file has.
"""

from ..broker import parameters
from ..broker.operator_policies import OperatorPolicy
from . import rabbitmq_definitions

OPERATOR = "operator_policy"
HOST_LIMITS = "vhost-limits"


def load(broker, item):
    """Take a parameter: {"component", "name", "value"}. Raises ValueError and ProtocolError."""
    component = item.get("component")
    if component == HOST_LIMITS:
        if item.get("name") != parameters.LIMITS_NAME:
            raise ValueError("the limits of a virtual host have the name '%s'" % parameters.LIMITS_NAME)
        limits = item.get("value")
        parameters.of(broker).put_limits({} if limits == [] else limits)  # RabbitMQ writes an empty object so
        return
    if component != OPERATOR:
        raise ValueError("component %s not found" % str(component)[:64])
    given = rabbitmq_definitions.table(item, "value")
    name, definition = rabbitmq_definitions.text(item, "name", 255), rabbitmq_definitions.table(given, "definition")
    pattern = rabbitmq_definitions.text(given, "pattern", 1024)
    broker.policies.set(broker, OperatorPolicy(name, pattern, definition, given.get("priority", 0), given.get("apply-to", "queues")))


def load_global(broker, item):
    """Take a global parameter: {"name", "value"}. Raises ValueError and ProtocolError."""
    if "value" not in item:
        raise ValueError("it has no value")
    rabbitmq_definitions.check_value("value", item["value"], rabbitmq_definitions.DEPTH_MAX)
    parameters.of(broker).put(rabbitmq_definitions.text(item, "name", 255), rabbitmq_definitions.plain(item["value"]))


def rows(broker):
    """((component, name), item) of each parameter."""
    host = broker.virtual_host
    made = []
    for policy in broker.policies.operators.values():
        value = rabbitmq_definitions.a_policy(host, policy)
        del value["vhost"], value["name"]
        made.append((OPERATOR, policy.name, value))
    if broker.parameters is not None and broker.parameters.limits:
        made.append((HOST_LIMITS, parameters.LIMITS_NAME, broker.parameters.limits))
    return [((component, name), {"vhost": host, "component": component, "name": name, "value": value}) for component, name, value in made]


def global_rows(broker):
    """(name, item) of each global parameter."""
    given = {} if broker.parameters is None else broker.parameters.rows
    return [(name, {"name": name, "value": given[name]}) for name in given]
