"""The broker's things as rows of RabbitMQ's JSON. What a row says of them comes from core/management/statistics.py.

Fields that speak of Erlang (garbage_collection, reductions, backing_queue_status) are not there; README.md has a table of what else
differs.
"""

import base64
import hashlib
import json
import math
from typing import Any
from urllib.parse import quote_plus

from ...core.management import statistics
from ..peers import channel_name, family_of, host_and_port
from . import sockets
from .listing import Row

REPLICATED = ("quorum", "stream")  # types whose rows name nodes
DEFAULT_NAME = "amq.default"  # what a path calls the default exchange


def details(counts: dict[str, int], rates: dict[str, float]) -> Row:
    """Counts with NAME_details.rate beside each."""
    made: Row = {}
    for name, count in counts.items():
        made[name] = count
        made[name + "_details"] = {"rate": rates.get(name, 0.0)}
    return made


def arguments(given: dict[str, Any]) -> Row:
    """Arguments as JSON can have them."""
    return {name: plain(value) for name, value in given.items()}


def plain(value: Any) -> Any:
    """A value of a field table as JSON can have it; octets become text."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):  # a type's letter and the value
        return plain(value[-1]) if value else None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # no number of JSON's
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


class Shapes:
    """Rows of one broker's things. `server`: server.HttpServer."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.broker = server.broker

    # Queues

    def queue(self, queue: Any) -> Row | None:
        """A row of /api/queues."""
        broker = self.broker
        if broker.queues.get(queue.name) is not queue:
            return None
        figures = statistics.of_queue(queue)
        ready, unsettled, in_log = figures["ready"], figures["unsettled"], figures["in_log"]
        left = figures["placed"] - ready if not queue.is_stream else 0
        counts = {"publish": figures["placed"], "deliver_get": max(left, 0), "ack": max(left - unsettled, 0)}
        rates = self.server.rates.of(
            ("queue", queue.name), broker.uptime_ms, {**counts, "messages": ready + unsettled, "messages_ready": ready}
        )
        held = statistics.octets_held(queue)
        alone = next((each.tag for each in queue.consumers), None)
        row: Row = {
            "name": queue.name,
            "vhost": broker.virtual_host,
            "type": queue.type,
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "exclusive": queue.owner is not None,
            "arguments": arguments(queue.arguments),
            "node": self.server.node,
            "state": "flow" if queue.full(1) else "running",
            "policy": queue.policy,
            "operator_policy": queue.operator_policy,
            "effective_policy_definition": effective_definition(broker, queue),
            "consumers": len(queue.consumers),
            "consumer_capacity": 1.0 if queue.consumers else 0.0,
            "consumer_utilisation": 1.0 if queue.consumers else 0.0,
            "exclusive_consumer_tag": alone if queue.exclusive_consumer else None,
            "single_active_consumer_tag": alone if queue.single_active else None,
            "memory": held,
            "messages": ready + unsettled,
            "messages_ready": ready,
            "messages_unacknowledged": unsettled,
            "messages_ram": ready + unsettled - in_log,
            "messages_ready_ram": ready - in_log,
            "messages_unacknowledged_ram": unsettled,
            "messages_persistent": ready + unsettled if queue.id_in_log else 0,
            "messages_paged_out": in_log,
            "message_bytes": max(figures["octets"], held if unsettled else 0),
            "message_bytes_ready": figures["octets"],
            "message_bytes_unacknowledged": max(held - figures["octets"], 0) if unsettled else 0,
            "message_bytes_ram": held,
            "message_bytes_persistent": figures["octets"] if queue.id_in_log else 0,
            "message_bytes_paged_out": figures["in_log_octets"],
            "head_message_timestamp": None,
            "recoverable_slaves": None,
            "message_stats": details(counts, rates),
        }
        for name in ("messages", "messages_ready"):
            row[name + "_details"] = {"rate": rates.get(name, 0.0)}
        row["messages_unacknowledged_details"] = {"rate": rates.get("messages", 0.0) - rates.get("messages_ready", 0.0)}
        if queue.owner is not None:
            row["owner_pid_details"] = self.connection_details(queue.owner)
        if queue.type in REPLICATED:
            row.update(leader=self.server.node, members=[self.server.node], online=[self.server.node])
        if queue.type == "quorum":
            row.update(messages_dlx=0, message_bytes_dlx=0)  # dead letters are never held for their queue: they are there, or here
        if queue.is_stream:
            row["readers"] = {self.server.node: len(queue.consumers)}
        return row

    def whole_queue(self, queue: Any) -> Row | None:
        """One queue, with its consumers."""
        row = self.queue(queue)
        if row is not None:
            row["consumer_details"] = [made for each in queue.consumers if (made := self.consumer(each)) is not None]
            row.update(incoming=[], deliveries=[])
        return row

    # Exchanges and bindings

    def exchange(self, exchange: Any) -> Row | None:
        """A row of /api/exchanges."""
        if self.broker.exchanges.get(exchange.name) is not exchange:
            return None
        return {
            "name": exchange.name,
            "vhost": self.broker.virtual_host,
            "type": exchange.type,
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": arguments(exchange.arguments),
            "user_who_performed_action": "",
            "policy": None,
        }

    def default_exchange(self) -> Row:
        """The one without a name."""
        return {
            "name": "",
            "vhost": self.broker.virtual_host,
            "type": "direct",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {},
            "user_who_performed_action": "rmq-internal",
            "policy": None,
        }

    def binding(self, binding: Any) -> Row | None:
        """A row of /api/bindings."""
        if binding.exchange.bindings.get(binding.identity) is not binding:
            return None
        row: Row = {
            "source": binding.exchange.name,
            "vhost": self.broker.virtual_host,
            "destination": binding.destination.name,
            "destination_type": "exchange" if binding.destination.is_exchange else "queue",
            "routing_key": bytes(binding.key).decode("utf-8", "replace"),
            "arguments": arguments(binding.arguments),
        }
        row["properties_key"] = properties_key(row["routing_key"], row["arguments"])
        return row

    def default_binding(self, queue: Any) -> Row | None:
        """The binding of a queue to the default exchange."""
        if self.broker.queues.get(queue.name) is not queue:
            return None
        return {
            "source": "",
            "vhost": self.broker.virtual_host,
            "destination": queue.name,
            "destination_type": "queue",
            "routing_key": queue.name,
            "arguments": {},
            "properties_key": properties_key(queue.name, {}),
        }

    # Connections, their sessions, consumers

    def connection(self, connection: Any) -> Row | None:
        """A row of /api/connections."""
        if connection.closed or connection.user is None:
            return None
        host, port = host_and_port(connection.name)
        broker = self.broker
        row: Row = {
            "name": connection.name,
            "node": self.server.node,
            "vhost": broker.virtual_host,
            "user": connection.user.name,
            "user_who_performed_action": connection.user.name,
            "type": "network" if connection.address else "direct",
            "protocol": family_of(connection.session).replace(".", "-"),  # AMQP 1-0, as RabbitMQ writes it
            "state": "closing" if connection.ending else "running" if connection.reading else "blocked",
            "channels": len(connection.sessions()),
            "channel_max": getattr(connection.session, "channel_max", 0) or broker.limits.channel_max,
            "frame_max": getattr(connection.session, "frame_size_max", 0) or broker.limits.frame_size_max,
            "timeout": getattr(connection.session, "heartbeat_ms", 0) // 1000,
            "connected_at": self.server.opened_at(connection) * 1000,
            "auth_mechanism": self.server.peers.mechanism_of(connection),
            "client_properties": self.server.peers.properties_of(connection),
            "user_provided_name": self.server.peers.name_of(connection),
            "peer_host": host,
            "peer_port": port,
            "ssl": connection.identities is not None and bool(connection.address),
            "peer_cert_subject": None,
            "peer_cert_issuer": None,
            "peer_cert_validity": None,
        }
        container = getattr(connection.session, "container_id", "")
        if container:  # of AMQP 1.0 alone, as RabbitMQ 4 has it
            row["container_id"] = container
        stream = self.server.peers.stream_of(connection)
        row["host"], row["port"] = sockets.here(stream)
        row.update(sockets.tls(stream))
        traffic = sockets.traffic(stream)
        rates = self.server.rates.of(("connection", connection.name), broker.uptime_ms, traffic)
        for name in ("recv_oct", "send_oct") if traffic else ():
            row[name + "_details"] = {"rate": rates.get(name, 0.0)}
        row.update(traffic)
        return row

    def connection_details(self, connection: Any) -> Row:
        """The fields about a connection in rows of channels and consumers."""
        host, port = host_and_port(connection.name)
        return {"name": connection.name, "peer_host": host, "peer_port": port}

    def channel(self, session: Any) -> Row | None:
        """A row of /api/channels."""
        connection = session.connection
        if connection.closed or session.closing:
            return None
        broker = self.broker
        figures = statistics.of_session(broker.tables, session)
        counts = {"deliver_get": figures["delivered"], "ack": max(figures["delivered"] - figures["unsettled"], 0)}
        if figures["confirms"]:
            counts.update(publish=figures["published"], confirm=figures["published"])
        rates = self.server.rates.of(("channel", connection.name, session.number), broker.uptime_ms, counts)
        transaction = getattr(session, "transaction", None)
        return {
            "name": channel_name(session),
            "number": session.number,
            "node": self.server.node,
            "vhost": broker.virtual_host,
            "user": connection.user.name,
            "user_who_performed_action": connection.user.name,
            "connection_details": self.connection_details(connection),
            "state": "running",
            "consumer_count": len(session.consumers),
            "messages_unacknowledged": figures["unsettled"],
            "messages_unconfirmed": 0,
            "messages_uncommitted": 0,
            "acks_uncommitted": 0,
            "prefetch_count": getattr(session, "prefetch", 0),
            "global_prefetch_count": figures["prefetch"],
            "confirm": figures["confirms"],
            "transactional": transaction is not None,
            "pending_raft_commands": 0,
            "message_stats": details(counts, rates),
        }

    def whole_channel(self, session: Any) -> Row | None:
        """One channel, with its consumers."""
        row = self.channel(session)
        if row is not None:
            row["consumer_details"] = [made for each in session.consumers.values() if (made := self.consumer(each)) is not None]
            row.update(publishes=[], deliveries=[])
        return row

    def consumer(self, consumer: Any) -> Row | None:
        """A row of /api/consumers."""
        session = consumer.channel
        if session.closing or session.consumers.get(consumer.tag) is not consumer:
            return None
        credit = statistics.credit_of(self.broker.tables, consumer)
        is_active = not consumer.queue.single_active or consumer.queue.consumers[:1] == [consumer]
        return {
            "consumer_tag": consumer.tag,
            "queue": {"name": consumer.queue.name, "vhost": self.broker.virtual_host},
            "channel_details": {
                "name": channel_name(session),
                "number": session.number,
                "user": session.connection.user.name,
                "connection_name": session.connection.name,
                "peer_host": host_and_port(session.connection.name)[0],
                "peer_port": host_and_port(session.connection.name)[1],
                "node": self.server.node,
            },
            "consumer_timeout": self.broker.limits.consumer_timeout_ms,
            "ack_required": not consumer.no_ack,
            "active": is_active,
            "activity_status": "waiting" if not is_active else "single_active" if consumer.queue.single_active else "up",
            "exclusive": consumer.exclusive,
            "prefetch_count": getattr(session, "prefetch", 0) or (0 if credit is None else credit),
            "arguments": consumer_arguments(consumer),
        }


def consumer_arguments(consumer: Any) -> Row:
    """The arguments that a consumer still goes by; the offset at which it began in a stream is forgotten."""
    made: Row = {"x-priority": consumer.priority} if consumer.priority else {}
    if consumer.filter is not None:
        made.update({"x-stream-filter": plain(list(consumer.filter)), "x-stream-match-unfiltered": consumer.unfiltered})
    if consumer.keeps is not None:
        made["x-stream-consumer"] = consumer.keeps
    return made


def properties_key(key: str, given: Row) -> str:
    """The name of a binding among those of its source and destination, made as RabbitMQ makes it: clients give it back."""
    quoted = quote_plus(key).replace("~", "%7E")
    if not given:
        return quoted or "~"
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).digest()[:15]
    return quoted + "~" + base64.urlsafe_b64encode(digest).decode()


def effective_definition(broker: Any, queue: Any) -> Row:
    """The definition that a queue's policy and operator policy make together."""
    policy = broker.policies.by_name.get(queue.policy)
    operator = broker.policies.operators.get(queue.operator_policy)
    given = {} if policy is None else policy.definition
    return given if operator is None else {**operator.definition, **given, **smaller(given, operator.definition)}


def smaller(given: Row, bounds: Row) -> Row:
    """Of the keys that both have the smallest values."""
    return {key: min(given[key], bounds[key]) for key in given if key in bounds}
