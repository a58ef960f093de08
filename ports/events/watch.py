"""Where events happen: functions of a broker's objects, each of which tells when it has done its work.

The functions are put over those of the objects of one broker when events are asked for (`Watch`), so a broker without events has nothing
of this, neither a call nor an octet. Headers are RabbitMQ's, as its 3.10.8 gives them (tests/http/test_events.py);
README.md has a table of what differs.
"""

import time
from typing import Any
from weakref import WeakKeyDictionary

from ...core.broker import parameters as runtime_parameters
from ...core.management import parameters, rabbitmq_definitions
from ...core.memory import layout
from ..over import over
from ..peers import channel_name, family_of, host_and_port, peers_of
from ..troubles import alarms
from .outbox import Notice, Outbox
from .words import address, header, long, table, version

EXCHANGE = "amq.rabbitmq.event"
GLOBAL = "global"  # what events call the component of a global parameter
NOBODY = "rmq-internal"  # who acts when no user does
Row = dict[str, Any]

# What RabbitMQ says of a connection and nothing here knows (ports/http/README.md).
NOT_KNOWN = dict.fromkeys(
    "ssl_protocol ssl_key_exchange ssl_cipher ssl_hash peer_cert_subject peer_cert_issuer peer_cert_validity".split(), ""
)


def properties(notice: Notice) -> Row:
    """The properties of an event."""
    headers = {**(notice.headers or {}), "timestamp_in_ms": long(notice.at)}
    return {"headers": headers, "delivery_mode": 2, "timestamp": notice.at // 1000}


class Watch:
    """Tells the events of one broker. `node`: its name."""

    def __init__(self, broker: Any, node: str) -> None:
        self.broker = broker
        self.node = node
        self.outbox = Outbox(broker, EXCHANGE, "events", properties)
        self.peers = peers_of(broker)
        self.acting: Any = None  # the connection or the user whose work is done now
        self.numbers: Any = WeakKeyDictionary()  # connection or session -> its number
        self.made = 0  # the last of them
        self.opening: dict[int, Notice | None] = {}  # sessions that are being made, by their records
        self.alarms: list[str] = []

    def begin(self) -> None:
        """Publish the events that happen from here on."""
        broker = self.broker
        topology, places, consumers, given = broker.topology, broker.places, broker.consumers, runtime_parameters.of(broker)
        for owner, name, function in (
            (places, "attach", self.attach),
            (places, "admit", self.admit),
            (places, "login_refused", self.login_refused),
            (places, "opened", self.opened),
            (places, "detach", self.detach),
            (consumers, "open_session", self.open_session),
            (consumers, "close_session", self.close_session),
            (consumers, "subscribe", self.subscribe),
            (consumers, "cancel", self.cancel),
            (topology, "declare_exchange", self.declare_exchange),
            (topology, "exchange_gone", self.exchange_gone),
            (topology, "make_queue", self.make_queue),
            (topology, "forget_queue", self.forget_queue),
            (topology, "bind_to", self.bind_to),
            (topology, "remove_bindings", self.remove_bindings),
            (broker.policies, "set", self.set_policy),
            (broker.policies, "remove", self.remove_policy),
            (broker.policies, "apply_to_queue", self.apply_to_queue),
            (given, "put", self.put_parameter),
            (given, "remove", self.remove_parameter),
            (given, "put_limits", self.put_limits),
            (broker.access, "put", self.put_user),
            (broker.access, "remove", self.remove_user),
        ):
            over(owner, name, function)
        for user in broker.access.users.values():
            over(user, "permit", lambda before, permissions, user=user: self.permit(before, user, permissions))

    def web(self, server: Any) -> None:
        """Attribute the acts of HTTP requests to their users."""
        over(server, "run", self.run_request)

    def run_request(self, before: Any, call: Any, route: Any) -> Any:
        """The generator of a request, whose every turn is its user's."""
        work = before(call, route)
        while True:
            try:
                turn = self.act_as(call.user, next, work)
            except StopIteration as done:
                return done.value
            yield turn

    def step(self) -> bool:
        """Publish the events that wait; true: some are left, and there is room for them."""
        if self.opening:
            self.name_sessions()
        now = [kind for kind, _ in alarms(self.broker)]
        if now != self.alarms:
            for kind in sorted(set(now) ^ set(self.alarms)):
                self.outbox.put("alarm.set" if kind in now else "alarm.cleared", {"source": kind, "node": self.node})
            self.alarms = now
        return self.outbox.step()

    def tell(self, key: str, headers: Row, user: Any = None) -> None:
        """Note an event of a user: of `user`, or of the connection that acts now."""
        self.outbox.put(key, {**headers, "user_who_performed_action": self.actor() if user is None else user.name})

    def actor(self) -> str:
        """The name of who acts now."""
        user = getattr(self.acting, "user", self.acting)
        return NOBODY if user is None else str(user.name)

    def act_as(self, actor: Any, function: Any, *given: Any) -> Any:
        """Call a function in the name of a connection or a user."""
        before, self.acting = self.acting, actor
        try:
            return function(*given)
        finally:
            self.acting = before

    def pid(self, owner: Any) -> str:
        """The identity of a connection or a session, in RabbitMQ's form: never given twice."""
        number = self.numbers.get(owner)
        if number is None:
            self.made += 1
            number = self.numbers[owner] = self.made
        return f"<{self.node}.{number}.0>"

    @property
    def host(self) -> Row:
        """The name of the virtual host."""
        return {"vhost": self.broker.virtual_host}

    # Connections

    def attach(self, before: Any, connection: Any) -> Any:
        """A connection has a place: what its peer asks for is done in its name."""
        pair = before(connection)
        over(connection, "guarded", lambda guarded, action: self.act_as(connection, guarded, action))
        return pair

    def admit(self, before: Any, connection: Any, user: Any) -> None:
        """A peer has logged in."""
        before(connection, user)
        self.outbox.put("user.authentication.success", {**self.login_of(connection), "name": user.name})

    def login_refused(self, before: Any, from_address: str, sentence: str, name: Any = None, counts: bool = True) -> None:
        """A peer's log-in was refused."""
        before(from_address, sentence, name, counts)
        connection = self.acting
        known = self.login_of(connection) if hasattr(connection, "session") else {"peer_host": address(from_address)}
        self.outbox.put("user.authentication.failure", {**known, "name": name or "", "error": sentence})

    def login_of(self, connection: Any) -> Row:
        """What events about a log-in say of the connection."""
        peer_host, peer_port = host_and_port(connection.name)
        return {
            "connection_type": "network" if connection.address else "direct",
            "connection_name": connection.name,
            "peer_host": address(peer_host),
            "peer_port": long(peer_port),
            "protocol": version(family_of(connection.session)),
            "auth_mechanism": self.peers.mechanism_of(connection),
            "ssl": connection.identities is not None and bool(connection.address),
            "host": "",
        }

    def peer_of(self, connection: Any) -> Row:
        """What the peer of a connection says of itself."""
        row: Row = {"client_properties": table(self.peers.properties_of(connection))}
        if self.peers.name_of(connection):
            row["user_provided_name"] = self.peers.name_of(connection)
        return row

    def opened(self, before: Any, connection: Any) -> None:
        """A connection is open."""
        before(connection)
        limits, session = self.broker.limits, connection.session
        row = self.login_of(connection)
        row["type"] = row.pop("connection_type")
        row["name"] = row.pop("connection_name")
        row.update(
            **self.host,
            **NOT_KNOWN,
            port=long(0),
            pid=self.pid(connection),
            user=connection.user.name,
            node=self.node,
            channel_max=long(getattr(session, "channel_max", 0) or limits.channel_max),
            frame_max=long(getattr(session, "frame_size_max", 0) or limits.frame_size_max),
            timeout=long(getattr(session, "heartbeat_ms", 0) // 1000),
            connected_at=long(self.now()),
            **self.peer_of(connection),
        )
        self.tell("connection.created", row, connection.user)

    @staticmethod
    def now() -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def detach(self, before: Any, connection: Any) -> None:
        """A connection has gone."""
        before(connection)
        if connection in self.numbers or connection in self.peers.said:
            row = {"name": connection.name, "pid": self.pid(connection), "node": self.node, **self.peer_of(connection)}
            self.outbox.put("connection.closed", row)

    # Sessions and consumers

    def open_session(self, before: Any, connection: Any = None) -> Any:
        """A session gets its record; `name_sessions` says later whose it is."""
        handle = before(connection)
        if handle is not None:
            self.opening[handle] = self.outbox.put("channel.created", None)
        return handle

    def name_sessions(self) -> None:
        """Complete the events of sessions that were made since."""
        opening, self.opening = self.opening, {}
        for connection in self.broker.connections:
            for session in connection.sessions():
                if session.handle in opening:
                    self.name_session(session, opening.pop(session.handle))

    def name_session(self, session: Any, event: Notice | None) -> None:
        """Say whose session it is."""
        pid = self.pid(session)
        if event is not None:
            event.headers = {
                "pid": pid,
                "name": channel_name(session),
                "connection": self.pid(session.connection),
                "number": long(session.number),
                "user": session.connection.user.name,
                "user_who_performed_action": session.connection.user.name,
                **self.host,
            }

    def close_session(self, before: Any, session: Any) -> None:
        """A session ends."""
        is_named = hasattr(session, "number")
        if session.handle in self.opening:
            event = self.opening.pop(session.handle)
            if is_named:
                self.name_session(session, event)
        is_open = session.handle != layout.NONE and session in self.numbers
        pid = self.pid(session) if is_open else ""
        before(session)
        if is_open:
            del self.numbers[session]  # called again for the rest of its deliveries
            self.tell("channel.closed", {"pid": pid}, session.connection.user)

    def consumer(self, consumer: Any) -> Row:
        """What both events of a consumer say."""
        session = consumer.channel
        return {"consumer_tag": consumer.tag, "channel": self.pid(session), "queue": consumer.queue.name, **self.host}

    def subscribe(
        self, before: Any, session: Any, name: str, tag: str, no_ack: bool, exclusive: bool, arguments: Row, prefetch: int
    ) -> Any:
        """A consumer is there."""
        made = before(session, name, tag, no_ack, exclusive, arguments, prefetch)
        row = {"exclusive": bool(exclusive), "ack_required": not no_ack, "prefetch_count": long(prefetch), "arguments": table(arguments)}
        self.tell("consumer.created", {**self.consumer(made), **row}, session.connection.user)
        return made

    def cancel(self, before: Any, consumer: Any, *given: Any) -> Any:
        """A consumer ends."""
        row = self.consumer(consumer)
        made = before(consumer, *given)
        self.tell("consumer.deleted", row, consumer.channel.connection.user)
        return made

    # Exchanges, queues, bindings

    def declare_exchange(self, before: Any, connection: Any, name: str, *given: Any) -> Any:
        """An exchange may be new."""
        is_new = name not in self.broker.exchanges
        made = before(connection, name, *given)
        if is_new:
            row = {"name": name, "type": made.type, "durable": made.durable, "auto_delete": made.auto_delete, "internal": made.internal}
            self.tell("exchange.created", {**row, "arguments": table(made.arguments), "policy": "", **self.host})
        return made

    def exchange_gone(self, before: Any, exchange: Any) -> None:
        """An exchange is removed, and with it the bindings to it that are left."""
        before(exchange)
        self.tell("exchange.deleted", {"name": exchange.name, **self.host})
        for binding in exchange.bound.values():
            self.tell("binding.deleted", self.binding(binding))

    def make_queue(self, before: Any, connection: Any, name: str, durable: bool, exclusive: bool, auto_delete: bool, arguments: Row) -> Any:
        """A queue is made."""
        made = before(connection, name, durable, exclusive, auto_delete, arguments)
        row = {"name": name, "durable": bool(durable), "auto_delete": bool(auto_delete), "exclusive": bool(exclusive)}
        owner = self.pid(connection) if exclusive else ""
        self.tell("queue.created", {**row, "arguments": table(arguments), "owner_pid": owner, **self.host})
        return made

    def forget_queue(self, before: Any, queue: Any) -> None:
        """A queue is removed."""
        before(queue)
        self.tell("queue.deleted", {"name": queue.name, **self.host})

    def binding(self, binding: Any) -> Row:
        """What both events of a binding say."""
        return {
            "source_name": binding.exchange.name,
            "source_kind": "exchange",
            "destination_name": binding.destination.name,
            "destination_kind": "exchange" if binding.destination.is_exchange else "queue",
            "routing_key": bytes(binding.key).decode("utf-8", "replace"),
            "arguments": table(binding.arguments),
            **self.host,
        }

    def bind_to(self, before: Any, connection: Any, destination: Any, exchange: Any, key: bytes, arguments: Row) -> None:
        """A binding may be new."""
        is_new = exchange.find(destination, key, arguments) is None
        before(connection, destination, exchange, key, arguments)
        if is_new:
            self.tell("binding.created", self.binding(exchange.find(destination, key, arguments)))

    def remove_bindings(self, before: Any, bindings: Any) -> None:
        """Bindings are removed."""
        chosen = [each for each in bindings if each.exchange.bindings.get(each.identity) is each]
        before(chosen)
        for each in chosen:
            self.tell("binding.deleted", self.binding(each))

    # Policies

    def set_policy(self, before: Any, broker: Any, policy: Any) -> None:
        """A policy is set."""
        before(broker, policy)
        if broker.policies.by_name.get(policy.name) is policy:
            self.tell("policy.set", self.policy(policy))
        else:
            self.tell("parameter.set", {"component": parameters.OPERATOR, "name": policy.name, **self.host})

    def remove_policy(self, before: Any, broker: Any, name: str, rows: Any = None) -> Any:
        """A policy, or an operator policy, is removed."""
        made = before(broker, name, rows)
        if made and rows is broker.policies.operators:
            self.tell("parameter.cleared", {"component": parameters.OPERATOR, "name": name, **self.host})
        elif made:
            self.tell("policy.cleared", {"name": name, **self.host})
        return made

    def policy(self, policy: Any) -> Row:
        """A policy as events have it."""
        row = rabbitmq_definitions.a_policy(self.broker.virtual_host, policy)
        definition = {key: long(value) if type(value) is int else value for key, value in row["definition"].items()}
        return {**row, "definition": definition, "priority": long(row["priority"])}

    def apply_to_queue(self, before: Any, broker: Any, queue: Any) -> None:
        """A queue may have another policy now."""
        had, was = getattr(queue, "policy", None), queue.effective
        before(broker, queue)
        kind = {"name": queue.name, "type": f"rabbit_{queue.type}_queue", **self.host}
        policy = broker.policies.by_name.get(queue.policy) if queue.policy else None
        if policy is not None and (queue.policy != had or queue.effective != was):
            self.tell("queue.policy.updated", {**self.policy(policy), **kind})
        elif had and policy is None:
            self.tell("queue.policy.cleared", kind)

    # Parameters

    def put_parameter(self, before: Any, name: str, value: Any) -> None:
        """A global parameter is set."""
        before(name, value)
        self.tell("parameter.set", {"component": GLOBAL, "name": name, "value": header(value)})

    def remove_parameter(self, before: Any, name: str) -> Any:
        """A global parameter is removed; RabbitMQ tells parameter.set then, without a value."""
        made = before(name)
        if made:
            self.tell("parameter.cleared", {"component": GLOBAL, "name": name})
        return made

    def put_limits(self, before: Any, limits: Row) -> None:
        """The limits of the virtual host are set, or removed."""
        had = dict(self.broker.parameters.limits)
        before(limits)
        name = {"name": runtime_parameters.LIMITS_NAME}
        row = {"component": parameters.HOST_LIMITS, **name, **self.host}
        numbers = {each: long(value) for each, value in limits.items()}
        if limits:
            self.tell("parameter.set", {**row, "value": numbers})
            self.tell("vhost.limits.set", {**name, **numbers})
        elif had:
            self.tell("parameter.cleared", row)
            self.tell("vhost.limits.cleared", name)

    # Users

    def put_user(self, before: Any, user: Any) -> None:
        """A user is made, or has another password or other tags."""
        known = self.broker.access.users.get(user.name)
        stored = None if known is None else known.stored
        before(user)
        if known is None:
            over(user, "permit", lambda before, permissions: self.permit(before, user, permissions))
            self.tell("user.created", {"name": user.name})
        elif user.stored is not stored:
            self.tell("user.password.cleared" if user.stored is None else "user.password.changed", {"name": user.name})
        self.tell("user.tags.set", {"name": user.name, "tags": list(user.tags)})

    def remove_user(self, before: Any, name: str) -> None:
        """A user is removed."""
        is_there = name in self.broker.access.users
        before(name)
        if is_there:
            self.tell("user.deleted", {"name": name})

    def permit(self, before: Any, user: Any, permissions: Any) -> None:
        """A user's permissions are set or cleared."""
        had = user.permissions
        before(permissions)
        if not self.broker.access.has(user) or permissions == had:
            return
        row = {"user": user.name, **self.host}
        if permissions is None:
            self.tell("permission.deleted", row)
        else:
            self.tell("permission.created", {**row, **dict(zip(("configure", "write", "read"), permissions, strict=True))})
