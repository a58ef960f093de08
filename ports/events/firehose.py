"""The firehose: each message that is published or delivered, copied to the exchange amq.rabbitmq.trace (RabbitMQ's; its documentation
"Firehose Tracer"). The key is publish.EXCHANGE or deliver.QUEUE, the headers say the rest, the body is the message's.

While it is on every message takes Python: sessions read frame by frame, no route is cached, and queues that are traced are served one
message at a time. Off, all functions are the broker's own again. What an operator publishes and gets has the connection OPERATOR,
channel 0.
"""

from typing import Any

from ...core.broker import route_cache
from ...core.memory import layout
from ...core.message import reading
from ...core.outcomes import nobody
from ...core.stream.reading_on import is_wanted
from .outbox import Notice, Outbox
from .words import long

EXCHANGE = "amq.rabbitmq.trace"
OPERATOR = "management"
Row = dict[str, Any]
NUMBERS = ("delivery_mode", "priority")


class Firehose:
    """Of one broker. `node`: its name; `exchanges`, `queues`: names of those that are told, None: all."""

    def __init__(self, broker: Any, node: str) -> None:
        self.broker = broker
        self.node = node
        self.is_on = False
        self.exchanges: set[str] | None = None
        self.queues: set[str] | None = None
        self.outbox = Outbox(broker, EXCHANGE, "traced messages", properties)
        self.step = self.outbox.step
        self.undo: list[Any] = []

    def turn_on(self, exchanges: list[str] | None, queues: list[str] | None) -> None:
        """Copy the messages that pass these exchanges and queues from here on."""
        self.turn_off()
        self.exchanges, self.queues = (None if names is None else set(names) for names in (exchanges, queues))
        broker = self.broker
        engine = broker.tables.engine
        self.is_on = True
        self.put(engine, "ingests", False)
        self.put(broker, "remember_route", lambda *given: False)
        self.over(broker, "published", self.published)
        self.over(broker.places, "opened", self.opened)
        self.put(broker, "trace", self)
        if hasattr(engine, "hand_over"):
            self.over(engine, "see_queue", self.see_queue)
            for queue in broker.queues.values():
                engine.hand_over(queue)
        for connection in broker.connections:
            self.see_session(connection.session)
        route_cache.forget(broker.tables)

    def turn_off(self) -> None:
        """Stop copying."""
        if not self.is_on:
            return
        self.is_on = False
        for owner, name, value in reversed(self.undo):
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        self.undo = []
        for connection in self.broker.connections:
            if connection.session is not None:
                vars(connection.session).pop("deliver", None)
        for queue in self.broker.queues.values():
            self.broker.tables.engine.see_queue(queue)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Have owner.NAME be `value` while this is on."""
        self.undo.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    def over(self, owner: Any, name: str, function: Any) -> None:
        """Have owner.NAME(...) be function(its own, ...) while this is on."""
        before = getattr(owner, name)
        self.put(owner, name, lambda *given: function(before, *given))

    def opened(self, before: Any, connection: Any) -> None:
        """A connection is open."""
        before(connection)
        self.see_session(connection.session)

    def see_session(self, session: Any) -> None:
        """Copy the messages that a session delivers."""
        if session is not None:
            before = session.deliver
            session.deliver = lambda *given: self.deliver(before, *given)

    def see_queue(self, before: Any, queue: Any) -> None:
        """A queue's consumers have changed."""
        before(queue)
        self.broker.tables.engine.hand_over(queue)

    def published(self, before: Any, session: Any, message: int, mandatory: bool, outcome: int) -> None:
        """A message was published."""
        self.tell_publish(message, session.connection.name, session.number, session.connection.user)
        before(session, message, mandatory, outcome)

    def published_by(self, user: Any, message: int) -> None:
        """An operator has published a message."""
        self.tell_publish(message, OPERATOR, 0, user)

    def tell_publish(self, message: int, connection: str, channel: int, user: Any) -> None:
        """A message was published by a user."""
        exchange, key = reading.names_of(self.broker.tables, message)
        if exchange != EXCHANGE and (self.exchanges is None or exchange in self.exchanges) and self.outbox.exchange.bindings:
            targets = self.broker.route(exchange, bytes(key), message)
            row = {**self.row(message, connection, channel, user), "routed_queues": [queue.name for queue in targets]}
            self.outbox.put("publish." + exchange, row, self.body(message))

    def deliver(self, before: Any, consumer: Any, most: int, made: int = 0) -> int:
        """Messages go to a consumer, one at a time."""
        queue = consumer.queue
        if not self.is_on or not self.tells(queue):
            return int(before(consumer, most, made))
        if queue.is_stream:
            return self.deliver_stream(before, consumer, most, made)
        count = 0
        while count < most and queue.head() != layout.NONE and self.broker.consumers.has_credit(consumer):
            copied = self.delivery(consumer.channel, queue)
            if not before(consumer, 1, made + count):
                break
            count += 1
            self.tell_delivery(queue, copied)
        return count

    def deliver_stream(self, before: Any, consumer: Any, most: int, made: int) -> int:
        """A stream delivers records to a reader: copy those that it was sent and had asked for."""
        consumer.queue.find(consumer)
        entry, offset, entries = consumer.cursor, consumer.cursor_offset, self.broker.tables.entries
        count = int(before(consumer, most, made))
        while count and offset < consumer.cursor_offset and entry != layout.NONE:
            if is_wanted(self.broker, consumer, entries[entry + layout.ENTRY_MESSAGE]):
                self.tell_delivery(consumer.queue, self.copy(consumer.channel, entry))
            entry, offset = entries[entry + layout.ENTRY_NEXT], offset + 1
        return count

    def tells(self, queue: Any) -> bool:
        """True for a queue whose deliveries are copied."""
        return bool(self.outbox.exchange.bindings) and (self.queues is None or queue.name in self.queues)

    def delivery(self, session: Any, queue: Any) -> tuple[Row, bytes] | None:
        """The headers and the body of the message at a queue's head, which goes to a session; None: it is not copied."""
        return self.copy(session, queue.head()) if self.tells(queue) else None

    def copy(self, session: Any, entry: int) -> tuple[Row, bytes] | None:
        """The headers and the body of an entry's message; None: it is a copy itself."""
        entries = self.broker.tables.entries
        message = entries[entry + layout.ENTRY_MESSAGE]
        client = session.connection
        whose = (OPERATOR, session.user) if client is nobody else (client.name, client.user)
        row = self.row(message, whose[0], session.number, whose[1])
        if row["exchange_name"] == EXCHANGE:
            return None
        row["redelivered"] = 1 if entries[entry + layout.ENTRY_REDELIVERED] & 255 else 0
        return row, self.body(message)

    def tell_delivery(self, queue: Any, copied: tuple[Row, bytes] | None) -> None:
        """A message has left a queue."""
        if copied is not None:
            self.outbox.put("deliver." + queue.name, *copied)

    def row(self, message: int, connection: str, channel: int, user: Any) -> Row:
        """The headers that copies of publishes and of deliveries share."""
        exchange, key = reading.names_of(self.broker.tables, message)
        given = reading.properties_of(self.broker.tables, message)
        keys = [bytes(key).decode("utf-8", "replace")]
        headers = given.get("headers")
        for name in ("CC", "BCC"):
            if isinstance(headers, dict) and isinstance(headers.get(name), list):
                keys += [each for each in headers[name] if isinstance(each, str)]
        return {
            "exchange_name": exchange,
            "routing_keys": keys,
            "properties": {name: plain(value) for name, value in given.items() if value is not None},
            "node": self.node,
            "vhost": self.broker.virtual_host,
            "connection": connection,
            "channel": channel,
            "user": user.name,
        }

    def body(self, message: int) -> bytes:
        """The body of a message."""
        tables = self.broker.tables
        size = tables.messages[message + layout.MESSAGE_BODY]
        return bytes(tables.octets(message, tables.size_of(message) - size, size))


def properties(notice: Notice) -> Row:
    """The properties of a copy: headers alone."""
    return {"headers": notice.headers}


def plain(value: Any) -> Any:
    """A value of any family as a field table has it."""
    if isinstance(value, dict):
        return {str(name)[:255]: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return long(value) if type(value) is int and abs(value) >= 1 << 31 else value
    return plain(value[-1]) if isinstance(value, tuple) and value else str(value)
