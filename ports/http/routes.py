"""The routes: method, pattern of the path, tag that its users need, function. The table is the API's list of contents.

A pattern's `{name}` stands for one part of a path, decoded behind the split at slashes, so a name may have a slash in it (%2F). Tags, as
RabbitMQ has them: `management` is every user with a tag; an administrator may everything; `monitoring` includes what a `policymaker` sees.
"""

from typing import Any

from . import answers, changes, definitions, health, metrics, nodes, page, parameters, policies, users, views
from .answers import Refused
from .call import Call, decoded

MANAGEMENT = "management"
MONITORING = "monitoring"
POLICYMAKER = "policymaker"
ADMINISTRATOR = "administrator"
INCLUDES = {
    MANAGEMENT: (MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR),
    MONITORING: (MONITORING, ADMINISTRATOR),
    POLICYMAKER: (POLICYMAKER, ADMINISTRATOR),
    ADMINISTRATOR: (ADMINISTRATOR,),
}
MISSING = {
    MANAGEMENT: "Not management user",
    MONITORING: "Not monitor user",
    POLICYMAKER: "User not authorised to access object",
    ADMINISTRATOR: "Not administrator user",
}

ROUTES: tuple[tuple[str, str, str | None, Any], ...] = (
    ("GET", "/", None, page.index),
    ("GET", "/api", None, page.moved),
    ("GET", "/api/index.html", None, page.moved),
    ("GET", "/favicon.ico", None, page.no_icon),
    ("GET", "/page.js", None, page.script),
    ("GET", "/views.js", None, page.views),
    ("GET", "/page.css", None, page.style),
    ("POST", "/api/rebalance/queues", ADMINISTRATOR, health.rebalanced),
    ("GET", "/metrics", MONITORING, metrics.aggregated),
    ("GET", "/metrics/per-object", MONITORING, metrics.per_object),
    ("GET", "/metrics/detailed", MONITORING, metrics.detailed),
    ("GET", "/api/overview", MANAGEMENT, views.overview),
    ("GET", "/api/cluster-name", MANAGEMENT, parameters.get_cluster_name),
    ("GET", "/api/extensions", MANAGEMENT, views.extensions),
    ("GET", "/api/whoami", MANAGEMENT, users.whoami),
    ("POST", "/api/login", MANAGEMENT, users.log_in),
    ("DELETE", "/api/login", MANAGEMENT, users.log_out),
    ("GET", "/api/auth", None, views.auth),
    ("GET", "/api/nodes", MONITORING, nodes.nodes),
    ("GET", "/api/nodes/{node}", MONITORING, nodes.node),
    ("GET", "/api/nodes/{node}/memory", MONITORING, nodes.node_memory),
    ("GET", "/api/nodes/{node}/memory/relative", MONITORING, nodes.relative_memory),
    ("GET", "/api/version", MANAGEMENT, views.version),
    ("DELETE", "/api/reset", ADMINISTRATOR, nodes.reset),
    ("DELETE", "/api/reset/{node}", ADMINISTRATOR, nodes.reset),
    ("GET", "/api/leveret/limits", MONITORING, views.limits),
    ("GET", "/api/leveret/status", MONITORING, views.status),
    ("GET", "/api/connections", MANAGEMENT, views.connections),
    ("GET", "/api/connections/{name}", MANAGEMENT, views.connection),
    ("GET", "/api/connections/{name}/channels", MANAGEMENT, views.connection_channels),
    ("GET", "/api/connections/username/{user}", MANAGEMENT, views.connections_of),
    ("GET", "/api/vhosts/{vhost}/connections", MANAGEMENT, views.connections),
    ("GET", "/api/vhosts/{vhost}/channels", MANAGEMENT, views.channels),
    ("GET", "/api/channels", MANAGEMENT, views.channels),
    ("GET", "/api/channels/{name}", MANAGEMENT, views.channel),
    ("GET", "/api/consumers", MANAGEMENT, views.consumers),
    ("GET", "/api/consumers/{vhost}", MANAGEMENT, views.consumers),
    ("GET", "/api/exchanges", MANAGEMENT, views.exchanges),
    ("GET", "/api/exchanges/{vhost}", MANAGEMENT, views.exchanges),
    ("GET", "/api/exchanges/{vhost}/{name}", MANAGEMENT, views.exchange),
    ("GET", "/api/exchanges/{vhost}/{name}/bindings/source", MANAGEMENT, views.exchange_source),
    ("GET", "/api/exchanges/{vhost}/{name}/bindings/destination", MANAGEMENT, views.exchange_destination),
    ("GET", "/api/queues", MANAGEMENT, views.queues),
    ("GET", "/api/queues/detailed", MANAGEMENT, views.queues),
    ("GET", "/api/queues/{vhost}", MANAGEMENT, views.queues),
    ("GET", "/api/queues/{vhost}/{name}", MANAGEMENT, views.queue),
    ("GET", "/api/queues/{vhost}/{name}/bindings", MANAGEMENT, views.queue_bindings),
    ("GET", "/api/bindings", MANAGEMENT, views.bindings),
    ("GET", "/api/bindings/{vhost}", MANAGEMENT, views.bindings),
    ("GET", "/api/bindings/{vhost}/e/{source}/{kind}/{destination}", MANAGEMENT, views.bindings_between),
    ("GET", "/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{key}", MANAGEMENT, views.binding),
    ("GET", "/api/vhosts", MANAGEMENT, views.vhosts),
    ("GET", "/api/vhosts/{vhost}", ADMINISTRATOR, views.vhost),
    ("GET", "/api/vhosts/{vhost}/permissions", ADMINISTRATOR, users.permissions),
    ("GET", "/api/vhosts/{vhost}/topic-permissions", ADMINISTRATOR, users.topics),
    ("GET", "/api/users", ADMINISTRATOR, users.all_users),
    ("GET", "/api/users/without-permissions", ADMINISTRATOR, users.without_permissions),
    ("GET", "/api/users/{user}", ADMINISTRATOR, users.user),
    ("GET", "/api/users/{user}/queues", MANAGEMENT, users.queues_of),
    ("GET", "/api/users/{user}/permissions", ADMINISTRATOR, users.permissions_of),
    ("GET", "/api/users/{user}/topic-permissions", ADMINISTRATOR, users.topics_of),
    ("GET", "/api/permissions", ADMINISTRATOR, users.permissions),
    ("GET", "/api/permissions/{vhost}/{user}", ADMINISTRATOR, users.permission),
    ("GET", "/api/topic-permissions", ADMINISTRATOR, users.topics),
    ("GET", "/api/topic-permissions/{vhost}/{user}", ADMINISTRATOR, users.topics_of_one),
    ("GET", "/api/user-limits", ADMINISTRATOR, users.limits),
    ("GET", "/api/user-limits/{user}", MANAGEMENT, users.limits_of),
    ("GET", "/api/policies", MANAGEMENT, policies.all_policies),
    ("GET", "/api/policies/{vhost}", MANAGEMENT, policies.all_policies),
    ("GET", "/api/policies/{vhost}/{name}", POLICYMAKER, policies.policy),
    ("GET", "/api/operator-policies", MANAGEMENT, policies.all_policies),
    ("GET", "/api/operator-policies/{vhost}", MANAGEMENT, policies.all_policies),
    ("GET", "/api/operator-policies/{vhost}/{name}", ADMINISTRATOR, policies.policy),
    ("GET", "/api/parameters", POLICYMAKER, parameters.all_parameters),
    ("GET", "/api/parameters/{component}", POLICYMAKER, parameters.all_parameters),
    ("GET", "/api/parameters/{component}/{vhost}", POLICYMAKER, parameters.all_parameters),
    ("GET", "/api/parameters/{component}/{vhost}/{name}", POLICYMAKER, parameters.parameter),
    ("GET", "/api/global-parameters", POLICYMAKER, parameters.global_parameters),
    ("GET", "/api/global-parameters/{name}", POLICYMAKER, parameters.global_parameter),
    ("GET", "/api/vhost-limits", MANAGEMENT, parameters.limits),
    ("GET", "/api/vhost-limits/{vhost}", MANAGEMENT, parameters.limits),
    ("GET", "/api/all-configuration", ADMINISTRATOR, definitions.export),
    ("GET", "/api/definitions", ADMINISTRATOR, definitions.export),
    ("GET", "/api/definitions/{vhost}", ADMINISTRATOR, definitions.export),
    ("GET", "/api/aliveness-test/{vhost}", MANAGEMENT, changes.aliveness),
    ("GET", "/api/health/checks/alarms", MANAGEMENT, health.alarms),
    ("GET", "/api/health/checks/local-alarms", MANAGEMENT, health.alarms),
    ("GET", "/api/health/checks/certificate-expiration/{within}/{unit}", MANAGEMENT, health.certificates),
    ("GET", "/api/health/checks/port-listener/{port}", MANAGEMENT, health.port_listener),
    ("GET", "/api/health/checks/protocol-listener/{protocol}", MANAGEMENT, health.protocol_listener),
    ("GET", "/api/health/checks/virtual-hosts", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/ready-to-serve-clients", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/is-in-service", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/node-is-mirror-sync-critical", MANAGEMENT, health.alone),
    ("GET", "/api/health/checks/node-is-quorum-critical", MANAGEMENT, health.alone),
    ("GET", "/api/health/checks/below-node-connection-limit", MANAGEMENT, health.connection_limit),
    ("GET", "/api/health/checks/reached-target-cluster-size", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/metadata-store/initialized", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/metadata-store/initialized/with-data", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}", MANAGEMENT, health.well),
    ("GET", "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}", MANAGEMENT, health.led),
    ("GET", "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}", MANAGEMENT, health.led),
    ("GET", "/api/healthchecks/node", MANAGEMENT, health.node),
    ("GET", "/api/healthchecks/node/{node}", MANAGEMENT, health.node),
    ("GET", "/api/feature-flags", MANAGEMENT, health.feature_flags),
    ("GET", "/api/auth/attempts/{node}", MONITORING, health.attempts),
    ("GET", "/api/auth/attempts/{node}/source", MONITORING, health.attempts_by_source),
    ("DELETE", "/api/auth/attempts/{node}", ADMINISTRATOR, health.forget_attempts),
    ("DELETE", "/api/auth/attempts/{node}/source", ADMINISTRATOR, health.forget_attempts),
    ("GET", "/api/auth/hash_password/{password}", ADMINISTRATOR, users.hash_password),
    ("GET", "/api/shovels", MONITORING, users.nothing),
    ("GET", "/api/shovels/{vhost}", MONITORING, users.nothing),
    ("GET", "/api/federation-links", MONITORING, users.nothing),
    ("GET", "/api/federation-links/{vhost}", MONITORING, users.nothing),
    ("GET", "/api/deprecated-features", MANAGEMENT, users.nothing),
    ("GET", "/api/deprecated-features/used", MANAGEMENT, users.nothing),
    ("PUT", "/api/cluster-name", ADMINISTRATOR, parameters.put_cluster_name),
    ("PUT", "/api/queues/{vhost}/{name}", MANAGEMENT, changes.put_queue),
    ("DELETE", "/api/queues/{vhost}/{name}", MANAGEMENT, changes.delete_queue),
    ("DELETE", "/api/queues/{vhost}/{name}/contents", MANAGEMENT, changes.purge),
    ("POST", "/api/queues/{vhost}/{name}/get", MANAGEMENT, changes.get),
    ("POST", "/api/leveret/queues/{vhost}/{name}/move", MANAGEMENT, changes.move),
    ("POST", "/api/queues/{vhost}/{name}/actions", ADMINISTRATOR, changes.queue_action),
    ("PUT", "/api/exchanges/{vhost}/{name}", MANAGEMENT, changes.put_exchange),
    ("DELETE", "/api/exchanges/{vhost}/{name}", MANAGEMENT, changes.delete_exchange),
    ("POST", "/api/exchanges/{vhost}/{name}/publish", MANAGEMENT, changes.publish),
    ("POST", "/api/bindings/{vhost}/e/{source}/{kind}/{destination}", MANAGEMENT, changes.post_binding),
    ("DELETE", "/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{key}", MANAGEMENT, changes.delete_binding),
    ("DELETE", "/api/connections/{name}", MANAGEMENT, changes.close_connection),
    ("DELETE", "/api/connections/username/{user}", MANAGEMENT, changes.close_connections_of),
    ("PUT", "/api/vhosts/{vhost}", ADMINISTRATOR, policies.put_vhost),
    ("DELETE", "/api/vhosts/{vhost}", ADMINISTRATOR, policies.delete_vhost),
    ("POST", "/api/vhosts/{vhost}/start/{node}", ADMINISTRATOR, nodes.start_vhost),
    ("POST", "/api/vhosts/{vhost}/deletion/protection", ADMINISTRATOR, policies.protect_vhost),
    ("DELETE", "/api/vhosts/{vhost}/deletion/protection", ADMINISTRATOR, policies.delete_vhost),
    ("PUT", "/api/feature-flags/{name}/enable", ADMINISTRATOR, health.enable_flag),
    ("PUT", "/api/users/{user}", ADMINISTRATOR, users.put_user),
    ("DELETE", "/api/users/{user}", ADMINISTRATOR, users.delete_user),
    ("POST", "/api/users/bulk-delete", ADMINISTRATOR, users.delete_users),
    ("PUT", "/api/permissions/{vhost}/{user}", ADMINISTRATOR, users.put_permission),
    ("DELETE", "/api/permissions/{vhost}/{user}", ADMINISTRATOR, users.delete_permission),
    ("PUT", "/api/topic-permissions/{vhost}/{user}", ADMINISTRATOR, users.put_topic),
    ("DELETE", "/api/topic-permissions/{vhost}/{user}", ADMINISTRATOR, users.delete_topics),
    ("DELETE", "/api/topic-permissions/{vhost}/{user}/{exchange}", ADMINISTRATOR, users.delete_topic),
    ("PUT", "/api/user-limits/{user}/{name}", ADMINISTRATOR, users.put_limit),
    ("DELETE", "/api/user-limits/{user}/{name}", ADMINISTRATOR, users.delete_limit),
    ("PUT", "/api/policies/{vhost}/{name}", POLICYMAKER, policies.put_policy),
    ("DELETE", "/api/policies/{vhost}/{name}", POLICYMAKER, policies.delete_policy),
    ("PUT", "/api/operator-policies/{vhost}/{name}", ADMINISTRATOR, policies.put_operator_policy),
    ("DELETE", "/api/operator-policies/{vhost}/{name}", ADMINISTRATOR, policies.delete_policy),
    ("PUT", "/api/parameters/{component}/{vhost}/{name}", POLICYMAKER, parameters.put_parameter),
    ("DELETE", "/api/parameters/{component}/{vhost}/{name}", POLICYMAKER, parameters.delete_parameter),
    ("PUT", "/api/global-parameters/{name}", POLICYMAKER, parameters.put_global),
    ("DELETE", "/api/global-parameters/{name}", POLICYMAKER, parameters.delete_global),
    ("PUT", "/api/vhost-limits/{vhost}/{name}", ADMINISTRATOR, parameters.put_limit),
    ("DELETE", "/api/vhost-limits/{vhost}/{name}", ADMINISTRATOR, parameters.delete_limit),
    ("POST", "/api/definitions", ADMINISTRATOR, definitions.load),
    ("POST", "/api/definitions/{vhost}", ADMINISTRATOR, definitions.load),
)


class Route:
    """One path, with a function for each method."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts = parts
        self.methods: dict[str, tuple[str | None, Any]] = {}


class Found:
    """A function, and the tag that its users need."""

    def __init__(self, tag: str | None, function: Any, is_metrics: bool) -> None:
        self.tag = tag
        self.function = function
        self.is_metrics = is_metrics


def planted() -> dict[tuple[int, str], list[Route]]:
    """The routes by the number of their parts and the second part, where patterns have none."""
    known: dict[tuple[str, ...], Route] = {}
    for method, pattern, tag, function in ROUTES:
        parts = tuple(pattern.split("/")[1:])
        known.setdefault(parts, Route(parts)).methods[method] = (tag, function)
    rows: dict[tuple[int, str], list[Route]] = {}
    for parts, route in known.items():
        rows.setdefault((len(parts), parts[min(1, len(parts) - 1)]), []).append(route)
    for routes in rows.values():
        routes.sort(key=lambda route: sum(part.startswith("{") for part in route.parts))  # words go before names
    return rows


TREE = planted()


def find(method: str, path: bytes) -> tuple[Found, dict[str, str]]:
    """The function for a request and the names in its path. Raises Refused."""
    parts = [decoded(part) for part in path.split(b"/")[1:]]
    if len(parts) > 1 and parts[-1] == "" and parts[0] == "api":
        parts.pop()  # a slash at the end says nothing
    allowed: set[str] = set()
    for route in TREE.get((len(parts), parts[min(1, len(parts) - 1)]) if parts else (0, ""), ()):
        names = matched(route.parts, parts)
        if names is None:
            continue
        row = route.methods.get("GET" if method == "HEAD" else method)
        if row is not None:
            return Found(row[0], row[1], parts[0] == "metrics"), names
        allowed.update(route.methods)
    if not allowed:
        raise answers.not_found()
    if "GET" in allowed:
        allowed.add("HEAD")
    allowed.add("OPTIONS")
    listed = ", ".join(sorted(allowed))
    if method == "OPTIONS":
        return Found(None, lambda call: answers.Answer(200, b"", (("allow", listed),)), False), {}
    raise Refused(405, "method_not_allowed", f"{method} is not one of {listed}", (("allow", listed),))


def matched(pattern: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    """The names in the parts of a path, None: it is another path."""
    names = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            names[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return names


def permit(call: Call, route: Found) -> None:
    """Raise Refused unless the user has a tag that the route asks for."""
    assert route.tag is not None
    if not call.has_tag(*INCLUDES[MANAGEMENT]):
        raise answers.forbidden(MISSING[MANAGEMENT])
    if not call.has_tag(*INCLUDES[route.tag]):
        raise answers.forbidden(MISSING[route.tag])
