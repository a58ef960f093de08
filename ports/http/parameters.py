"""Runtime parameters, global parameters, limits of the virtual host, and the name of the cluster, which is a global parameter.

Statuses and words are RabbitMQ 3.10's, but where it answers 500: a request that makes no sense is 400 here.
"""

from typing import Any

from ...core.broker import parameters
from ...core.broker.parameters import CLUSTER_ID, CLUSTER_NAME, Parameters
from ...core.management import parameters as shown
from . import answers, listing
from .answers import Answer, bad
from .call import Call, missing
from .changes import done, new_or_not
from .listing import Row, Work


def kept(call: Call) -> Parameters:
    """The broker's parameters."""
    made: Parameters = parameters.of(call.broker)
    return made


def invalid(error: Exception) -> answers.Refused:
    """The refusal of a value."""
    return bad(f"Validation failed\n\n{error}\n")


# Parameters of components


def rows(call: Call) -> list[Row]:
    """The rows of the path's component, or all rows; nothing of a virtual host that the user may not enter."""
    if not call.sees_into():
        return []
    component = call.names.get("component")
    return [row for _, row in shown.rows(call.broker) if component in (None, row["component"])]


def all_parameters(call: Call) -> Work:
    """/api/parameters[/COMPONENT[/VHOST]]."""
    call.host()
    return listing.plain(call, rows(call))


def the_parameter(call: Call) -> Row:
    """The parameter that the path names. Raises Refused."""
    call.own_host()
    for row in rows(call):
        if row["name"] == call.names["name"]:
            return row
    raise answers.not_found()


def parameter(call: Call) -> Answer:
    """/api/parameters/COMPONENT/VHOST/NAME."""
    return listing.one(call, the_parameter(call))


def put_parameter(call: Call) -> Answer:
    """PUT /api/parameters/COMPONENT/VHOST/NAME: {"value": ...}."""
    call.own_host()
    given = call.json()
    missing(given, "value")
    component, name = call.names["component"], call.names["name"]
    if component == "policy":
        raise bad("policies may not be set using this method")
    is_new = all(row["name"] != name for row in rows(call))
    try:
        shown.load(call.broker, {"component": component, "name": name, "value": given["value"]})
    except ValueError as error:
        raise invalid(error) from None
    return new_or_not(call, is_new)


def delete_parameter(call: Call) -> Answer:
    """DELETE /api/parameters/COMPONENT/VHOST/NAME."""
    row = the_parameter(call)
    if row["component"] == shown.HOST_LIMITS:
        kept(call).put_limits({})
    else:
        call.broker.policies.remove(call.broker, row["name"], call.broker.policies.operators)
    return done(call)


# Global parameters


def global_rows(call: Call) -> dict[str, Row]:
    """All of them by name, RabbitMQ's own among them."""
    made: dict[str, Row] = dict(shown.global_rows(call.broker))
    made.setdefault(CLUSTER_ID, {"name": CLUSTER_ID, "value": parameters.cluster_id(call.broker)})
    return made


def global_parameters(call: Call) -> Work:
    """/api/global-parameters."""
    return listing.plain(call, global_rows(call).values())


def global_parameter(call: Call) -> Answer:
    """/api/global-parameters/NAME."""
    row = global_rows(call).get(call.names["name"])
    if row is None:
        raise answers.not_found()
    return listing.one(call, row)


def put_global(call: Call) -> Answer:
    """PUT /api/global-parameters/NAME: {"value": ...}."""
    given = call.json()
    missing(given, "value")
    return load_global(call, call.names["name"], given["value"])


def load_global(call: Call, name: str, value: Any) -> Answer:
    """Set one."""
    is_new = name not in global_rows(call)
    try:
        shown.load_global(call.broker, {"name": name, "value": value})
    except ValueError as error:
        raise bad(str(error)) from None
    return new_or_not(call, is_new)


def delete_global(call: Call) -> Answer:
    """DELETE /api/global-parameters/NAME."""
    if not kept(call).remove(call.names["name"]):
        raise answers.not_found()
    return done(call)


def get_cluster_name(call: Call) -> Answer:
    """/api/cluster-name."""
    return answers.of({"name": parameters.cluster_name(call.broker)})


def put_cluster_name(call: Call) -> Answer:
    """PUT /api/cluster-name: {"name": text}."""
    given = call.json()
    missing(given, "name")
    load_global(call, CLUSTER_NAME, given["name"])
    return done(call)


# Limits of the virtual host


def limits(call: Call) -> Work:
    """/api/vhost-limits[/VHOST]: of all for who sees all."""
    host = call.host()
    is_shown = call.sees_all() or call.sees_into()
    given = call.broker.parameters.limits if is_shown and call.broker.parameters is not None else {}
    return listing.plain(call, [{"vhost": host, "value": dict(given)}] if given else [])


def put_limit(call: Call) -> Answer:
    """PUT /api/vhost-limits/VHOST/NAME: {"value": number}, below 0 none."""
    call.host()
    given = call.json()
    missing(given, "value")
    try:
        kept(call).put_limits({**kept(call).limits, call.names["name"]: given["value"]})
    except ValueError as error:
        raise invalid(error) from None
    return done(call)


def delete_limit(call: Call) -> Answer:
    """DELETE /api/vhost-limits/VHOST/NAME, also where there is none."""
    call.host()
    kept(call).put_limits({name: value for name, value in kept(call).limits.items() if name != call.names["name"]})
    return done(call)
