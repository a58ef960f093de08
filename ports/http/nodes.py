"""The one node of a broker: what it is, what it has and takes, and a fresh start for what is counted.

RabbitMQ counts memory by parts of Erlang; of those there is the arena, and the rest.
"""

import sys

from ...core.management import overview as facts
from ...core.version import PRODUCT, VERSION
from .. import troubles
from . import answers, listing, machine
from .answers import Answer, bad
from .call import Call
from .counts import of_broker
from .listing import Row, Work
from .views import contexts, exchange_types


def nodes(call: Call) -> Work:
    """/api/nodes: the one that there is."""
    return listing.plain(call, [a_node(call)])


def node(call: Call) -> Answer:
    """/api/nodes/NAME."""
    check_node(call)
    return listing.one(call, a_node(call))


def node_memory(call: Call) -> Answer:
    """/api/nodes/NAME/memory."""
    check_node(call)
    total, parts = memory(call)
    return answers.of({"memory": {**parts, "strategy": "rss", "total": {"rss": total, "allocated": total, "erlang": total}}})


def relative_memory(call: Call) -> Answer:
    """/api/nodes/NAME/memory/relative: the parts in percent."""
    check_node(call)
    total, parts = memory(call)
    shares = {name: -(-octets * 100 // total) for name, octets in parts.items()}  # rounded up, as RabbitMQ does
    return answers.of({"memory": {**shares, "total": 100}})


def memory(call: Call) -> tuple[int, dict[str, int]]:
    """Octets of memory that the process takes, and what of them is what: the arena, and the rest; typed clients need every key."""
    held = facts.memory(call.broker)
    total = machine.resident()
    arena = held["blocks_used"] * held["block_size"]
    return total, {**dict.fromkeys(MEMORY, 0), "binary": arena, "other_system": max(total - arena, 0)}


MEMORY = tuple(
    "connection_readers connection_writers connection_channels connection_other queue_procs queue_slave_procs quorum_queue_procs "
    "quorum_queue_dlx_procs stream_queue_procs stream_queue_replica_reader_procs stream_queue_coordinator_procs plugins metadata_store "
    "other_proc metrics mgmt_db mnesia quorum_ets metadata_store_ets other_ets binary msg_index code atom other_system allocated_unused "
    "reserved_unallocated".split()
)


def check_node(call: Call) -> None:
    """Raise Refused for another node."""
    if not is_here(call):
        raise answers.not_found()


def is_here(call: Call) -> bool:
    """Whether the path names the node that there is."""
    return call.names["node"] in (call.server.node, call.broker.name)


def start_vhost(call: Call) -> Answer:
    """POST /api/vhosts/VHOST/start/NODE: it runs already."""
    call.host()
    if not is_here(call):
        raise bad(f"Request to node {call.names['node'][:64]} failed with nodedown")
    return Answer(204)


def reset(call: Call) -> Answer:
    """DELETE /api/reset[/NODE]: what was counted for rates and charts is forgotten."""
    if "node" in call.names:
        check_node(call)
    call.server.rates.rows.clear()
    call.server.history.samples.clear()
    return Answer(204)


def a_node(call: Call) -> Row:
    """The node."""
    server, broker = call.server, call.broker
    used, total = machine.descriptors()
    free, limit = machine.disk(server.directory), 0
    rss = machine.resident()
    most = broker.octets_max or machine.memory()
    journal = broker.journal
    logged = {} if journal is None else journal.log.counters
    history = server.history
    made: Row = {
        "name": server.node,
        "type": "disc" if journal is not None else "ram",
        "running": True,
        "being_drained": False,
        "os_pid": str(machine.PID),
        "uptime": broker.uptime_ms - (broker.began_ms or 0),
        "processors": machine.processors(),
        "run_queue": 0,
        "net_ticktime": 0,
        "rates_mode": "basic",
        "mem_used": rss,
        "mem_limit": most,
        "mem_alarm": any(name == "memory" for name, _ in troubles.alarms(server.broker)),
        "mem_calculation_strategy": "rss",
        "fd_used": used,
        "fd_total": total,
        "sockets_used": len(broker.connections),
        "sockets_total": broker.limits.connection_count_max,
        "proc_used": 1,
        "proc_total": 1,
        "disk_free": free,
        "disk_free_limit": limit,
        "disk_free_alarm": bool(journal is not None and journal.log.trouble),
        "io_write_bytes": logged.get("log_octets", 0),
        "io_sync_count": logged.get("log_syncs", 0),
        "db_dir": server.directory or "",
        "config_files": [],
        "log_files": ["<stderr>"],
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_prometheus"],
        "partitions": [],
        "cluster_links": [],
        "applications": [{"name": "leveret", "description": f"{PRODUCT} on Python {sys.version.split()[0]}", "version": VERSION}],
        "auth_mechanisms": [{"name": name, "description": "", "enabled": True} for name in ("PLAIN", "SCRAM-SHA-256", "EXTERNAL")],
        "exchange_types": exchange_types(),
        "contexts": contexts(server),
    }
    for name, source in NODE_RATES:
        made[name + "_details"] = {"rate": history.rate(source)}
    for name in ("connection_created", "connection_closed"):
        made[name] = of_broker(broker)[name]
        made[name + "_details"] = {"rate": history.rate(name)}
    return made


NODE_RATES = (("io_write_bytes", "log_octets"), ("io_sync_count", "log_syncs"))
