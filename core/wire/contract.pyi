"""What the core and a family of protocols may ask of each other. It is read by people and by mypy; nothing imports it at run time.

Four parties. A *connection* (core/connection) has the octets of one peer. A *protocol* is what a family speaks on it: one object for each
connection, made when the first octets are the family's. A *session* is what a peer publishes and settles in: 0-9-1 and 0-10 call it a
channel and
a session, 1.0 a session, MQTT has one for each connection; the protocol makes it, its record is the broker's. A *consumer* is the broker's.

Rules that no type says:

1. Nobody waits. What has no room is answered so, and tried again: a protocol that holds a publish puts its connection into `broker.held`,
   one
   that waits for the disk calls `broker.journal.wait_for(protocol)`. After either the broker has `process` called again.
2. What a peer does wrong is a ProtocolError out of `process`, `room` or `tick`; the connection gives it to `fail`. Any other exception is a
   fault of ours, and ends this connection only.
3. A protocol writes to `connection.send` only what there is room for, and keeps `limits.REPLY_ROOM` octets free of deliveries.
4. The broker never calls `deliver` from inside a verb, but in its rounds (core/queue/turns.py). `returned`, `answered` and `cancelled` it
   calls
   from inside of a verb: they note what is to be written, and write it in `room` or at the end of `process`.
5. A session's answers have the order of its publishes.
"""

from collections.abc import Iterable
from typing import Any
from typing import Protocol as Structure

class Family(Structure):
    """One row of core/wire/registry.py. `format` reads and writes properties of messages."""

    name: str
    header: bytes
    format: Any
    def sniff(self, octets: bytes) -> int:
        """NO, MORE or MATCH (core/wire/family.py)."""
    def protocol(self, connection: Connection) -> Protocol:
        """The peer speaks this family. Its first octets, those that were sniffed at too, are in `connection.receive` yet."""

class Protocol(Structure):
    """What a family speaks on one connection."""

    has_intake: bool
    """False: `take_in` and `took_in` are never called, and need not be there (core/DESIGN.md section 1, large bodies)."""
    most_taken: int
    """Octets: there may be more when `take_in` has read so many."""
    closing: bool
    """True once this side or the peer has said that the connection ends."""
    connection: Connection
    unfinished: int
    """Contents of its peer that have begun (Incoming.begin). `tick` calls timeouts.check_moving while there are any and the peer is
    read."""
    content_moved: int
    """broker.now when something came of one of them."""

    # The connection calls:
    def process(self) -> None:
        """Take what is whole in `connection.receive`, until it is incomplete or has to wait. `connection.reading` says afterwards whether
        the
        peer is read; who has taken a turn's worth calls `connection.wait_for_turn()` and returns."""
    def room(self) -> None:
        """The peer has read: write what waits, then `connection.send.feed()`."""
    def tick(self) -> int | None:
        """Time passes (broker.now): milliseconds until it has to be told again if nothing happens, None: soon."""
    def fail(self, condition: str, text: str) -> None:
        """End the connection for an error, in the family's words. `condition`: core/errors.py."""
    def shut(self, text: str) -> None:
        """End the connection from our side without an error."""
    def lost(self) -> None:
        """The peer has gone: give back all sessions hold (Broker.close_session). It may be called again when it raised."""
    def sessions(self) -> Iterable[Session]:
        """Those that are open."""
    def take_in(self, descriptor: int, most: int | None) -> int | None: ...
    def took_in(self) -> None: ...

    # The broker calls:
    def deliver(self, consumer: Consumer, most: int, before: int = 0) -> int:
        """Write up to `most` deliveries: how many. Fewer than `most`: the queue has no more, the consumer no credit, or the connection no
        room;
        in the last case the consumer is in `connection.send.starve(consumer, count + before)`. `before`: deliveries it has got in this
        turn."""
    def returned(self, channel: Session, message: int, condition: int) -> None:
        """A mandatory publish came to `condition` (outcomes.UNROUTABLE). The message's reference is the protocol's from now on."""
    def answered(self, channel: Session, outcome: int) -> None:
        """The next publish of a session, in their order, came to outcomes.TAKEN, UNROUTABLE or REFUSED. A confirm for it leaves when the
        log is
        durable up to what it had got by then: the family counts its publishes and gives the outcome to `channel.promises.decided`."""
    def cancelled(self, consumer: Consumer, condition: str) -> None:
        """The broker has ended a consumer; `condition` says why (core/errors.py: NOT_FOUND when its queue is gone)."""

class HotRow(Structure):
    """What a family reads and writes by itself on the hot path: a class made with tables. A session gets it from `engine.row(form)`,
    which may have another form of it (c_accel/amqp_0_9.py), or None: then the family takes and delivers message by message.

    Neutral functions do the rest: core/broker/publish.py with what `ingest` has read, hot.pump with `size_of` and `write` of the family.
    """

    name: str
    def ingest(self, numbers: Any, source: Any) -> int:
        """Take what needs no thought from source[state[AT]:state[END]]: INCOMPLETE, ASK, ASK_ROUTE or TURN_OVER (core/memory/layout.py)."""
    def pump(self, consumer: int, limit: int, prefix: Any, prefix_size: int, frame_size_max: int, target: Any, at: int, end: int) -> int:
        """Deliver up to `limit` messages of a consumer's queue into target[at:end], all in one call: the position behind them."""

class Session(Structure):
    """What the broker knows of a family's session; the family may keep more in it."""

    handle: int
    """Its record (layout.CHANNEL_*), from Consumers.open_session."""
    number: int
    """Its channel on the connection, 0 where none stands behind it: operators see it."""
    session: Protocol
    connection: Connection
    closing: bool
    """True: it has ended, and its deliveries are on their way back."""
    consumers: dict[str, Consumer]
    """By tag. The broker puts them in and takes them out."""
    promises: Promises
    watched_tag: int
    """-1 at first; it and `watched_since` are timeouts.overdue's."""
    watched_since: int

class Consumer(Structure):
    """A subscription, as Broker.subscribe makes it."""

    handle: int
    tag: str
    queue: Any
    channel: Session
    no_ack: bool
    prefix: bytes
    """Octets that the family's row writes its deliveries with: what they are, the row alone knows."""
    prefix_at: Any
    """None: the hot path does not deliver to it, Protocol.deliver does."""
    frame_size_max: int
    row: HotRow | None

class Promises(Structure):
    """broker/promises.py: what a session's publishes came to, until the log is durable."""

    waiting: list[list[int]]
    def logged(self) -> None: ...
    def decided(self, number: int, outcome: int, first: int | None = None) -> None:
        """In the order of publishes. `number` counts up by one and wraps at 30 bits."""
    def runs(self) -> list[tuple[int, int, int]]:
        """(first, last, outcome) of those whose sync is done; for the others the journal calls `process` again."""
    def answered(self, number: int) -> None: ...

class Incoming(Structure):
    """broker/incoming.py: a content on its way in. `begin` and `append` answer false when there is no room now: the family puts its
    connection into `broker.held`, reads no more, and tries again in `process`."""

    message: int
    body_left: int | None
    """None: of unknown size."""
    copies: bytes
    transaction: Transaction | None
    def to(self, route: bytes, mandatory: bool) -> None: ...
    def check_user(self, name: str) -> None: ...
    def begin(
        self, octets: Any, start: int, size: int, body_size: int | None, kind: int, lifetime: int, annotations: bytes = b""
    ) -> bool: ...
    def append(self, octets: Any, at: int, size: int) -> bool: ...
    def complete(self) -> int:
        """TAKEN, UNROUTABLE or REFUSED; NO_ROOM: it is tried again as `begin`; NOT_YET: again when the log has got further
        (`broker.journal.wait_for`)."""
    def abandon(self) -> None: ...

class Transaction(Structure):
    """broker/transaction.py: what a session publishes and settles until its commit."""

    def keep(self, tag: int, multiple: bool, outcome: int) -> None: ...
    def holds(self, tag: int) -> bool: ...
    def commit(self, channel: Session) -> bool:
        """False: not yet; `process` is called again. Raises what was met, at the end."""
    def rollback(self, broker: Broker) -> None: ...

class Service(Structure):
    """An in-process consumer of a reserved address (Broker.services): (None, outcome), or, with NO_ROOM or NOT_YET, what it is to get as
    `before` when it is asked again. What it raises closes the session."""

    def __call__(self, user: Any, message: int, before: Any) -> tuple[Any, int]: ...

class Connection(Structure):
    """What a protocol may use of its connection (core/connection/connection.py)."""

    broker: Broker
    name: str
    from_loopback: bool
    user: Any
    """None until Places.admit."""
    receive: Any
    send: Any
    reading: bool
    closed: bool
    state: str
    """connection/states.py: "served" until `end`, `finish` or an error of ours."""
    def wait_for_turn(self) -> None: ...
    def end(self, lingering: bool = False) -> None: ...
    def finish(self) -> None: ...
    def broke(self, error: Exception) -> None: ...
    def resume(self) -> None: ...

class Places(Structure):
    """broker/places.py."""

    def refuse_surplus(self, connection: Connection) -> None:
        """Raise resource-error for a connection that has a place only to be told that there is none."""
    def introduced(self, connection: Connection, properties: dict[Any, Any] | None, mechanism: str) -> None:
        """Its peer says what it is."""
    def admit(self, connection: Connection, user: Any) -> None:
        """It has logged in."""
    def opened(self, connection: Connection) -> None:
        """Its user may enter the virtual host: it is open."""

class Topology(Structure):
    """Broker.topology (broker/topology.py): what exists."""

    def declare_exchange(
        self,
        connection: Connection,
        name: str,
        type_: str,
        passive: bool,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        arguments: dict[str, Any],
    ) -> Any: ...
    def delete_exchange(self, name: str, if_unused: bool) -> None: ...
    def declare_queue(
        self, connection: Connection, name: str, passive: bool, durable: bool, exclusive: bool, auto_delete: bool, arguments: dict[str, Any]
    ) -> Any: ...
    def delete_queue(self, connection: Connection, name: str, if_unused: bool, if_empty: bool) -> int: ...
    def bind(self, connection: Connection, queue_name: str, exchange_name: str, key: bytes, arguments: dict[str, Any]) -> None: ...
    def unbind(self, connection: Connection, queue_name: str, exchange_name: str, key: bytes, arguments: dict[str, Any]) -> None: ...

class Consumers(Structure):
    """Broker.consumers (broker/consumers.py): sessions, their consumers, and what these do with deliveries."""

    def open_session(self, connection: "Connection | None" = None) -> int | None:
        """A record; None: the broker holds as many as it may."""
    def close_session(self, channel: Session) -> None: ...
    def subscribe(
        self, channel: Session, name: str, tag: str, no_ack: bool, exclusive: bool, arguments: dict[str, Any], prefetch: int
    ) -> Consumer:
        """`prefetch`: deliveries that may be unsettled at a time, 0: no limit."""
    def add_credit(self, consumer: Consumer, count: int) -> None:
        """So many deliveries more. A consumer that was given credit once has no window any more: settling gives it none."""
    def cancel(self, consumer: Consumer, has_unsettled: bool = True) -> None: ...
    def settle(self, channel: Session, first: int, last: int, outcome: int) -> None:
        """Deliveries from one unsettled entry to another: outcomes.ACCEPTED, REJECTED, MODIFIED (it counts as a failed delivery) or
        RELEASED (as if it had not been delivered)."""

class Broker(Structure):
    """The verbs. Names are texts, routing keys bytes; messages, entries and records are handles (core/memory/layout.py)."""

    tables: Any
    limits: Any
    journal: Any
    held: list[Connection]
    places: Places
    topology: Topology
    consumers: Consumers
    services: dict[bytes, Service]
    """By routing key, behind the default exchange: no client can declare such a queue."""
    growing: Any
    """Contents of unknown size (broker/growing.py); None: there was none yet."""

    def purge(self, queue: Any, most: int) -> int:
        """Drop ready messages of a queue, `most` or as many as the turn has left for: how many. It is called again for the rest."""

    # Publishing: Incoming makes the message, publishes it, and has it answered by `published`
    def publish(self, message: int, exchange_name: str, key: bytes | tuple[bytes, ...]) -> int: ...
    def published(self, channel: Session, message: int, mandatory: bool, outcome: int) -> None: ...

    # One message for who asks for it: broker/getting.py. What lasts too long: broker/timeouts.py.
