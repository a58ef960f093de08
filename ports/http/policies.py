"""Policies and operator policies; and the one virtual host, beside which there is no other: making one is refused in a sentence."""

from typing import Any

from ...core.broker.operator_policies import OperatorPolicy
from ...core.broker.policies import PRIORITY_MAX, Policy
from ...core.management import rabbitmq_definitions
from . import answers, listing
from .answers import Answer, bad
from .call import Call, flag, missing, number, text
from .changes import done, new_or_not
from .listing import Row, Work


def row(call: Call, policy: Any) -> Row:
    """A row of /api/policies."""
    made: Row = rabbitmq_definitions.a_policy(call.broker.virtual_host, policy)
    return made


def rows_of(call: Call) -> Any:
    """The policies that the path is of, by name: operator policies, or the others."""
    return call.broker.policies.operators if call.path.startswith(b"/api/operator-policies") else call.broker.policies.by_name


def all_policies(call: Call) -> Work:
    """/api/policies[/VHOST], /api/operator-policies[/VHOST]."""
    if not call.sees_into():
        return listing.plain(call, [])
    return listing.plain(call, [row(call, each) for each in rows_of(call).values()])


def the_policy(call: Call) -> Any:
    """The policy that the path names. Raises Refused."""
    call.own_host()
    policy_ = rows_of(call).get(call.names["name"])
    if policy_ is None:
        raise answers.not_found()
    return policy_


def policy(call: Call) -> Answer:
    """/api/policies/VHOST/NAME, /api/operator-policies/VHOST/NAME."""
    return listing.one(call, row(call, the_policy(call)))


def put_policy(call: Call) -> Answer:
    """PUT /api/policies/VHOST/NAME."""
    return put(call, Policy)


def put_operator_policy(call: Call) -> Answer:
    """PUT /api/operator-policies/VHOST/NAME."""
    return put(call, OperatorPolicy)


def put(call: Call, kind: Any) -> Answer:
    """Set a policy of a kind; its apply-to is "all" where none is given."""
    call.own_host()
    given = call.json()
    name = call.names["name"]
    missing(given, "pattern", "definition")
    try:
        definition = rabbitmq_definitions.table(given, "definition")
    except ValueError as error:
        raise bad(str(error)) from None
    apply_to = text(given, "apply-to", "all") or "all"
    is_new = name not in rows_of(call)
    made = kind(name, text(given, "pattern"), definition, number(given, "priority", 0, -PRIORITY_MAX, PRIORITY_MAX), apply_to)
    call.broker.policies.set(call.broker, made)
    return new_or_not(call, is_new)


def delete_policy(call: Call) -> Answer:
    """DELETE /api/policies/VHOST/NAME, /api/operator-policies/VHOST/NAME."""
    policy_ = the_policy(call)
    call.broker.policies.remove(call.broker, policy_.name, rows_of(call))
    return done(call)


# The virtual host


def put_vhost(call: Call) -> Answer:
    """PUT /api/vhosts/VHOST: the one that there is stays as it is; there is no other."""
    host = call.names["vhost"]
    if host == call.broker.virtual_host or host in call.broker.virtual_host_aliases:
        given = call.json() if call.body else {}
        if "tracing" in given:
            call.server.trace(flag(given, "tracing"))
        return Answer(204)
    raise bad(f"this broker has one virtual host, '{call.broker.virtual_host}': no other can be made")


def delete_vhost(call: Call) -> Answer:
    """DELETE /api/vhosts/VHOST."""
    call.host()
    raise bad(f"'{call.broker.virtual_host}' is the only virtual host of this broker: it cannot be deleted")


def protect_vhost(call: Call) -> Answer:
    """POST /api/vhosts/VHOST/deletion/protection: it cannot be deleted in any case."""
    call.host()
    return Answer(204)
