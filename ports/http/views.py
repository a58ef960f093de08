"""What can be seen: the functions of the GETs about queues, exchanges, bindings, connections, channels, consumers, virtual hosts, nodes.

Who has only the tag management or policymaker sees his own connections and channels; queues, exchanges and bindings are all to be seen for
who may enter the virtual host.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote_plus

from ...core.broker import parameters
from ...core.exchange.registry import TYPES, type_named
from ...core.management import overview as facts
from ...core.management import statistics
from ...core.version import PRODUCT, VERSION
from ..peers import channel_name
from . import answers, listing, machine
from .answers import Answer
from .call import Call
from .counts import COUNTED, of_broker
from .listing import Listed, Row, Work
from .shapes import DEFAULT_NAME

COMPATIBLE = "3.13.7"  # the RabbitMQ whose API this is: clients compare it


# The broker


def overview(call: Call) -> Answer:
    """/api/overview."""
    server, broker = call.server, call.broker
    history = server.history
    age = {name: int(call.query.get(name, "0")) if call.query.get(name, "0").isdigit() else 0 for name in AGES}
    counts = {**of_broker(broker), **server.churn.counts}
    rate_ages = age["msg_rates_age"], age["msg_rates_incr"]
    stats: Row = {}
    for name in COUNTED:
        stats[name] = counts[name]
        stats[name + "_details"] = history.details(name, *rate_ages)
    queues: Row = {}
    for name in ("messages", "messages_ready", "messages_unacknowledged"):
        queues[name] = counts[name]
        queues[name + "_details"] = history.details(name, age["lengths_age"], age["lengths_incr"])
    churn: Row = {}
    for name in ("connection_created", "connection_closed", *server.churn.counts):
        churn[name] = counts[name]
        churn[name + "_details"] = history.details(name)
    made: Row = {
        "management_version": COMPATIBLE,
        "rabbitmq_version": COMPATIBLE,
        "product_name": PRODUCT,
        "product_version": VERSION,
        "erlang_version": "",
        "erlang_full_version": "",
        "release_series_support_status": "supported",
        "cluster_name": parameters.cluster_name(broker),
        "cluster_tags": parameters.value_of(broker, parameters.CLUSTER_TAGS, dict, {}),
        "node_tags": {},
        "default_queue_type": "classic",
        "node": server.node,
        "rates_mode": "basic",
        "sample_retention_policies": {"global": [600], "basic": [600], "detailed": [600]},
        "disable_stats": False,
        "enable_queue_totals": True,
        "statistics_db_event_queue": 0,
        "exchange_types": exchange_types(),
        "message_stats": stats,
        "churn_rates": churn,
        "queue_totals": queues,
        "object_totals": object_totals(call),
        "listeners": listeners(server) if call.sees_all() else [],
        "contexts": contexts(server) if call.sees_all() else [],
    }
    return listing.one(call, made)


AGES = ("lengths_age", "lengths_incr", "msg_rates_age", "msg_rates_incr")


def exchange_types() -> list[Row]:
    """The types of exchanges that this build carries."""
    return [{"name": name, "description": "", "enabled": True, "internal_purpose": ""} for name, _ in TYPES if type_named(name) is not None]


def object_totals(call: Call) -> Row:
    """How many of each there are."""
    totals = facts.totals(call.broker)
    names = ("channels", "connections", "consumers", "exchanges", "queues")
    made = {name: totals[name] for name in names}
    made["exchanges"] += 1  # the default one
    made["connections"] = sum(each.user is not None for each in call.broker.connections)
    return made


def listeners(server: Any) -> list[Row]:
    """Where the process listens."""
    return [
        {"node": server.node, "protocol": protocol, "ip_address": host, "port": port, "socket_opts": {}}
        for protocol, host, port in server.listeners
    ]


def contexts(server: Any) -> list[Row]:
    """Where it listens for HTTP."""
    return [
        {
            "node": server.node,
            "description": "Leveret management",
            "path": "/",
            "port": str(port),
            "ip": host,
            "protocol": protocol,
            "ssl_opts": [],
        }
        for protocol, host, port in server.listeners
        if protocol in ("http", "https")
    ]


def version(call: Call) -> Answer:
    """/api/version: of the API."""
    return answers.of(COMPATIBLE)


def extensions(call: Call) -> Answer:
    """/api/extensions: the page has none."""
    return answers.of([])


def auth(call: Call) -> Answer:
    """/api/auth: no OAuth."""
    return answers.of({"oauth_enabled": False, "enable_uaa": False, "uaa_client_id": "", "uaa_location": ""})


def limits(call: Call) -> Answer:
    """/api/leveret/limits: how full each limit is, which no other broker tells."""
    rows = [{"name": name, "used": used, "max": most} for name, used, most in statistics.pools(call.broker)]
    rows.append({"name": "memory_max", "used": machine.resident(), "max": call.broker.octets_max or machine.memory()})
    return answers.of(rows)


def status(call: Call) -> Answer:
    """/api/leveret/status: the overview that AMQP clients get, with the bridges' reports and the serial lines' counters."""
    broker = call.broker
    bridges = {name: {"age_ms": broker.uptime_ms - at, **report} for name, (at, report) in broker.bridges.items()}
    return answers.of(
        {
            "overview": facts.overview(broker),
            "counters": facts.counters(broker),
            "bridges": bridges,
            "lines": [line.figures() for line in call.server.lines],
            "alerts": call.server.alerts(),
        }
    )


# Queues


def queue_list(call: Call) -> Listed:
    """All queues, as a list has them."""
    shape = call.server.shapes.queue
    subjects = list(call.broker.queues.items())
    return Listed(((name, queue) for name, queue in subjects if may_see(call, queue)), shape, len(subjects))


def may_see(call: Call, queue: Any) -> bool:
    """The broker's own queues are the administrators'."""
    return not queue.is_own or call.sees_all()


def queues(call: Call) -> Work:
    """/api/queues[/VHOST]."""
    if not call.sees_into():
        return listing.plain(call, [])
    return listing.answer(call, queue_list(call))


def queue(call: Call) -> Answer:
    """/api/queues/VHOST/NAME."""
    return listing.one(call, call.server.shapes.whole_queue(the_queue(call)))


def the_queue(call: Call) -> Any:
    """The queue that the path names. Raises Refused."""
    call.own_host()
    queue_ = call.broker.queues.get(call.names["name"])
    if queue_ is None or not may_see(call, queue_):
        raise answers.not_found()
    return queue_


def queue_bindings(call: Call) -> Work:
    """/api/queues/VHOST/NAME/bindings."""
    queue_ = the_queue(call)
    return binding_list(call, [queue_, *queue_.bound.values()])


# Exchanges, bindings


def exchange_row(call: Call, exchange: Any) -> Row | None:
    """The row of an exchange; None stands for the default one."""
    row: Row | None = call.server.shapes.default_exchange() if exchange is None else call.server.shapes.exchange(exchange)
    return row


def exchanges(call: Call) -> Work:
    """/api/exchanges[/VHOST]."""
    if not call.sees_into():
        return listing.plain(call, [])
    subjects = [("", None), *call.broker.exchanges.items()]
    return listing.answer(call, Listed(subjects, lambda each: exchange_row(call, each)))


def the_exchange(call: Call, name: str) -> Any:
    """The exchange that the path names; None: the default one. Raises Refused."""
    call.own_host()
    name = call.names[name]
    if name in ("", DEFAULT_NAME):
        return None
    exchange_ = call.broker.exchanges.get(name)
    if exchange_ is None:
        raise answers.not_found()
    return exchange_


def exchange(call: Call) -> Answer:
    """/api/exchanges/VHOST/NAME."""
    row = exchange_row(call, the_exchange(call, "name"))
    if row is None:
        raise answers.not_found()
    row.update(incoming=[], outgoing=[])
    return listing.one(call, row)


def exchange_source(call: Call) -> Work:
    """/api/exchanges/VHOST/NAME/bindings/source."""
    exchange_ = the_exchange(call, "name")
    return binding_list(call, default_bindings(call) if exchange_ is None else list(exchange_.bindings.values()))


def exchange_destination(call: Call) -> Work:
    """/api/exchanges/VHOST/NAME/bindings/destination."""
    exchange_ = the_exchange(call, "name")
    return binding_list(call, [] if exchange_ is None else list(exchange_.bound.values()))


def default_bindings(call: Call) -> list[Any]:
    """Queues stand for their bindings to the default exchange."""
    return [each for each in call.broker.queues.values() if may_see(call, each)]


def binding_row(call: Call, subject: Any) -> Row | None:
    """The row of a binding, or of a queue's binding to the default exchange."""
    shapes = call.server.shapes
    row: Row | None = shapes.binding(subject) if hasattr(subject, "destination") else shapes.default_binding(subject)
    return row


def binding_list(call: Call, subjects: list[Any]) -> Work:
    """A list of bindings."""
    named = (
        (f"{subject.exchange.name} {subject.destination.name}" if hasattr(subject, "destination") else f" {subject.name}", subject)
        for subject in subjects
    )
    return listing.answer(call, Listed(named, lambda subject: binding_row(call, subject), len(subjects)))


def bindings(call: Call) -> Work:
    """/api/bindings[/VHOST]."""
    if not call.sees_into():
        return listing.plain(call, [])
    subjects = default_bindings(call)
    for each in call.broker.exchanges.values():
        subjects.extend(each.bindings.values())
    return binding_list(call, subjects)


def between(call: Call) -> list[Any]:
    """The bindings from the source to the destination of the path."""
    call.own_host()
    source, kind = call.names["source"], call.names["kind"]
    if kind not in ("q", "e"):
        raise answers.not_found()
    there = (call.broker.queues if kind == "q" else call.broker.exchanges).get(call.names["destination"])
    if there is None:
        return []
    if source in ("", DEFAULT_NAME):
        return [there] if kind == "q" else []
    return [each for each in there.bound.values() if each.exchange.name == source]


def bindings_between(call: Call) -> Work:
    """/api/bindings/VHOST/e/SOURCE/q/DESTINATION, and to an exchange."""
    return binding_list(call, between(call))


def the_binding(call: Call) -> Any:
    """The binding that the path names, and its row. Raises Refused."""
    key = call.names["key"]
    for each in between(call):
        row = binding_row(call, each)
        if row is not None and row["properties_key"] in (key, quote_plus(key).replace("%7E", "~"), quote_plus(key)):
            return each, row
    raise answers.not_found()


def binding(call: Call) -> Answer:
    """One binding."""
    return listing.one(call, the_binding(call)[1])


# Connections, channels, consumers


def seen_connections(call: Call) -> list[Any]:
    """The connections that the user sees."""
    return [each for each in call.broker.connections if each.user is not None and (call.sees_all() or each.user is call.user)]


def connections(call: Call) -> Work:
    """/api/connections, /api/vhosts/VHOST/connections."""
    call.host()
    return listing.answer(call, Listed([(each.name, each) for each in seen_connections(call)], call.server.shapes.connection))


def connections_of(call: Call) -> Work:
    """/api/connections/username/NAME."""
    rows = []
    for each in seen_connections(call):
        if each.user.name == call.names["user"]:
            rows.append({"name": each.name, "node": call.server.node, "user": each.user.name, "vhost": call.broker.virtual_host})
    return listing.plain(call, rows)


def the_connection(call: Call) -> Any:
    """The connection that the path names. Raises Refused."""
    name, _, _ = call.names["name"].partition(" -> ")  # RabbitMQ's names have both ends
    for each in call.broker.connections:
        if each.name == name and each.user is not None:
            if not call.sees_all() and each.user is not call.user:
                raise answers.forbidden("User not authorised to access connection")
            return each
    raise answers.not_found()


def connection(call: Call) -> Answer:
    """/api/connections/NAME."""
    row = call.server.shapes.connection(the_connection(call))
    if row is None:
        raise answers.not_found()
    return listing.one(call, row)


def channel_list(call: Call, sessions: Iterable[Any]) -> Work:
    """A list of channels."""
    subjects = [(channel_name(each), each) for each in sessions if not each.closing]
    return listing.answer(call, Listed(subjects, call.server.shapes.channel))


def connection_channels(call: Call) -> Work:
    """/api/connections/NAME/channels."""
    return channel_list(call, the_connection(call).sessions())


def channels(call: Call) -> Work:
    """/api/channels, /api/vhosts/VHOST/channels."""
    call.host()
    return channel_list(call, [session for each in seen_connections(call) for session in each.sessions()])


def channel(call: Call) -> Answer:
    """/api/channels/NAME."""
    for each in seen_connections(call):
        if call.names["name"].startswith(each.name):
            for session in each.sessions():
                if channel_name(session) == call.names["name"]:
                    row = call.server.shapes.whole_channel(session)
                    if row is not None:
                        return listing.one(call, row)
    raise answers.not_found()


def consumers(call: Call) -> Work:
    """/api/consumers[/VHOST]."""
    if not call.sees_into():
        return listing.plain(call, [])
    seen = seen_connections(call)
    subjects = [
        (each.tag, each)
        for queue in call.broker.queues.values()
        for each in queue.consumers
        if call.sees_all() or each.channel.connection in seen
    ]
    return listing.answer(call, Listed(subjects, call.server.shapes.consumer))


# Virtual hosts


def a_vhost(call: Call) -> Row:
    """The one that there is."""
    broker = call.broker
    counts = of_broker(broker)
    history = call.server.history
    made: Row = {
        "name": broker.virtual_host,
        "description": "the virtual host of this broker",
        "tags": [],
        "metadata": {"description": "the virtual host of this broker", "tags": []},
        "tracing": call.server.is_traced(),
        "default_queue_type": "classic",
        "cluster_state": {call.server.node: "running"},
        "message_stats": {},
    }
    for name in ("messages", "messages_ready", "messages_unacknowledged"):
        made[name] = counts[name]
        made[name + "_details"] = {"rate": history.rate(name)}
    for name in COUNTED:
        made["message_stats"][name] = counts[name]
        made["message_stats"][name + "_details"] = {"rate": history.rate(name)}
    return made


def vhosts(call: Call) -> Work:
    """/api/vhosts."""
    return listing.plain(call, [a_vhost(call)] if call.user.permissions is not None or call.sees_all() else [])


def vhost(call: Call) -> Answer:
    """/api/vhosts/VHOST."""
    call.host()
    return listing.one(call, a_vhost(call))
