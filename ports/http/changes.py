"""What can be changed: the functions of the PUTs, POSTs and DELETEs about queues, exchanges, bindings, messages, connections.

They call the broker's verbs with the permissions that the same methods of AMQP 0-9-1 need, in the same order. An answer leaves when the
log has what it says. A verb that goes in turns, as the deletion of a queue with thousands of bindings, gives others their turns between.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ...core.access.permissions import CONFIGURE, READ, WRITE
from ...core.amqp_0_9.permissions import allow_forward
from ...core.bridge import requests
from ...core.errors import ACCESS_REFUSED, ProtocolError
from ...core.management import messages, rabbitmq_definitions
from ...core.outcomes import ACCEPTED, MODIFIED, NO_ROOM, REFUSED, REJECTED, RELEASED, UNROUTABLE, nobody
from . import answers
from .answers import Answer, Piece, Refused, bad
from .call import Call, flag, integer, missing, number, text
from .listing import AT_ONCE, WAIT_MS, Held, Row, Work, hold
from .properties import octets_and_columns, shown
from .shapes import DEFAULT_NAME, properties_key
from .views import the_binding, the_connection, the_exchange, the_queue

GET_MAX = 1000  # messages of one get
GET_OCTETS = 4 << 20
MOVED_AT_ONCE = 200  # messages in one turn
ALIVENESS = "aliveness-test"
ACKMODES = {
    "ack_requeue_true": MODIFIED,
    "reject_requeue_true": MODIFIED,
    "ack_requeue_false": ACCEPTED,
    "reject_requeue_false": REJECTED,
    "release": RELEASED,  # RabbitMQ has none that does not count against x-delivery-limit: the page's
}


def new_or_not(call: Call, is_new: bool) -> Answer:
    """The answer to a PUT: 201 for a new object, 204 for one that was there."""
    return Answer(201 if is_new else 204, number=call.server.promised())


def done(call: Call) -> Answer:
    """204, when all is durable."""
    return Answer(204, number=call.server.promised())


def given_arguments(given: Row) -> Row:
    """The arguments of a declaration. Raises Refused."""
    try:
        made: Row = rabbitmq_definitions.table(given, "arguments")
    except ValueError as error:
        raise bad(str(error)) from None
    return made


def name_in(call: Call, name: str) -> str:
    """A name of the path, as 0-9-1 can carry it."""
    value = call.names[name].replace("\r", "").replace("\n", "")
    if len(value.encode()) > 255:
        raise bad(f"{name} is longer than 255 octets")
    return value


# Queues


def put_queue(call: Call) -> Answer:
    """PUT /api/queues/VHOST/NAME."""
    call.own_host()
    given = call.json()
    name = name_in(call, "name")
    if name == "":
        raise bad("a queue has a name")
    made = given_arguments(given)
    kind = given.get("queue_type")
    if isinstance(kind, str) and kind:
        made.setdefault("x-queue-type", kind)
    is_new = name not in call.broker.queues
    call.check(CONFIGURE, "queue", name)
    allow_forward(call.broker, call.user, "queue_declare", (None, name, made))
    durable = flag(given, "durable")
    call.broker.topology.declare_queue(nobody, name, False, durable, False, flag(given, "auto_delete"), made)
    return new_or_not(call, is_new)


def delete_queue(call: Call) -> Work:
    """DELETE /api/queues/VHOST/NAME?if-empty=true&if-unused=true."""
    queue = the_queue(call)
    call.check(CONFIGURE, "queue", queue.name)
    unused, empty = (call.query.get(name) == "true" for name in ("if-unused", "if-empty"))
    while call.broker.topology.delete_queue(nobody, queue.name, unused, empty) is None:
        unused = empty = False
        yield
    return done(call)


def purge(call: Call) -> Work:
    """DELETE /api/queues/VHOST/NAME/contents: the messages that are ready now."""
    queue = the_queue(call)
    call.check(READ, "queue", queue.name)
    if queue.owner is not None:
        call.broker.topology.locked(queue.name)
    left = queue.message_count()
    while left > 0 and call.broker.queues.get(queue.name) is queue:
        count = call.broker.purge(queue, left)
        left -= count
        if left > 0 and not queue.message_count():
            break
        yield
    return done(call)


def queue_action(call: Call) -> Answer:
    """POST /api/queues/VHOST/NAME/actions: mirrors, which there are none of, are always in step."""
    the_queue(call)
    action = text(call.json(), "action")
    if action not in ("sync", "cancel_sync"):
        raise Refused(400, "bad_request", ["unknown", action[:64]])
    return Answer(204)


# Exchanges


def put_exchange(call: Call) -> Answer:
    """PUT /api/exchanges/VHOST/NAME."""
    call.own_host()
    given = call.json()
    name = name_in(call, "name")
    made = given_arguments(given)
    is_new = name not in call.broker.exchanges
    if name in ("", DEFAULT_NAME):
        name = ""
    else:
        call.check(CONFIGURE, "exchange", name)
        allow_forward(call.broker, call.user, "exchange_declare", (None, name, made))
    call.broker.topology.declare_exchange(
        nobody,
        name,
        text(given, "type", "direct"),
        False,
        flag(given, "durable"),
        flag(given, "auto_delete"),
        flag(given, "internal"),
        made,
    )
    return new_or_not(call, is_new)


def delete_exchange(call: Call) -> Work:
    """DELETE /api/exchanges/VHOST/NAME?if-unused=true."""
    exchange = the_exchange(call, "name")
    name = "" if exchange is None else exchange.name
    if name:
        call.check(CONFIGURE, "exchange", name)
    unused = call.query.get("if-unused") == "true"
    while not call.broker.topology.delete_exchange(name, unused):
        unused = False
        yield
    return done(call)


# Bindings


def post_binding(call: Call) -> Answer:
    """POST /api/bindings/VHOST/e/SOURCE/q/DESTINATION, and to an exchange: 201 with the place of the binding."""
    call.own_host()
    given = call.json()
    source, destination, kind = name_in(call, "source"), name_in(call, "destination"), call.names["kind"]
    if source == DEFAULT_NAME:
        source = ""
    key = "" if given.get("routing_key") is None else text(given, "routing_key")
    if len(key.encode()) > 255:
        raise bad("routing_key is longer than 255 octets")
    made = given_arguments(given)
    topology = call.broker.topology
    if kind not in ("q", "e"):
        raise answers.not_found()
    call.check(WRITE, "queue" if kind == "q" else "exchange", destination)
    if source:
        call.check(READ, "exchange", source, key)
    (topology.bind if kind == "q" else topology.bind_exchange)(nobody, destination, source, key.encode(), made)
    place = quote(destination, "") + "/" + quote(properties_key(key, made), "")  # relative to the path, as RabbitMQ's: clients cut it
    return Answer(201, headers=(("location", place),), number=call.server.promised())


def delete_binding(call: Call) -> Answer:
    """DELETE /api/bindings/VHOST/e/SOURCE/q/DESTINATION/KEY."""
    call.own_host()
    binding, row = the_binding(call)
    if not hasattr(binding, "destination"):
        raise answers.refusal(ProtocolError(ACCESS_REFUSED, "operation not permitted on the default exchange"))
    target = binding.destination
    call.check(WRITE, "exchange" if target.is_exchange else "queue", target.name)
    call.check(READ, "exchange", row["source"], row["routing_key"])
    if not target.is_exchange:
        call.broker.topology.queue(target.name, nobody)
    call.broker.topology.remove_bindings((binding,))
    return done(call)


# Messages


def publish(call: Call) -> Work:
    """POST /api/exchanges/VHOST/NAME/publish: {"routed": true or false}."""
    call.own_host()
    name = call.names["name"]
    exchange = "" if name == DEFAULT_NAME else name
    if exchange and exchange not in call.broker.exchanges:
        raise bad("404 NOT_FOUND - no " + call.broker.topology.called("exchange", exchange))
    given = call.json()
    missing(given, "routing_key", "properties", "payload", "payload_encoding")
    body = payload(given)
    octets, columns = octets_and_columns(given["properties"], call.user)
    key = text(given, "routing_key").encode()
    if len(key) > 255:
        raise bad("routing_key is longer than 255 octets")
    began = call.broker.uptime_ms
    while True:
        try:
            outcome = messages.publish(call.broker, call.user, exchange, key, octets, columns, body)
        except ProtocolError as error:
            if error.condition != ACCESS_REFUSED:
                raise
            raise bad("403 ACCESS_REFUSED - " + error.text) from None  # RabbitMQ publishes on a channel, and tells how that ended
        if outcome != NO_ROOM:
            break
        if call.broker.uptime_ms - began > WAIT_MS:
            raise Refused(503, "service_unavailable", "there is no room for the message: a queue, or the broker, is full")
        yield
    if outcome == REFUSED:
        raise bad("rejected")
    return answers.of({"routed": outcome != UNROUTABLE}, call.server.promised())


def payload(given: Row) -> bytes:
    """The body of a message that is to be published."""
    body, encoding = text(given, "payload"), text(given, "payload_encoding")
    if encoding == "string":
        return body.encode()
    if encoding != "base64":
        raise bad(f"unsupported_encoding: {encoding[:64]}")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise bad("payload is not base64") from None


def get(call: Call) -> Work:
    """POST /api/queues/VHOST/NAME/get. A count below 0 is as many as one get gives: RabbitMQ then gives all that there are."""
    queue = the_queue(call)
    given = call.json()
    if "requeue" in given:
        given.setdefault("ackmode", "ack_requeue_true" if flag(given, "requeue") else "ack_requeue_false")
    missing(given, "ackmode", "count", "encoding")
    count = integer(given["count"])
    if given["encoding"] not in ("auto", "base64"):
        raise bad("Unsupported encoding. Please use auto or base64.")
    encoding, mode = text(given, "encoding"), text(given, "ackmode")
    if mode not in ACKMODES:
        raise bad(f"unsupported_ackmode: {mode[:64]}")
    cut = integer(given.get("truncate", GET_OCTETS))
    if cut < 0:
        raise bad("truncate is below 0")
    held = yield from hold(call, GET_OCTETS)
    got = yield from some(call, queue.name, GET_MAX if count < 0 else min(count, GET_MAX), ACKMODES[mode], min(cut, GET_OCTETS))
    number_ = call.server.promised()
    rows = []
    got.reverse()
    while got:
        each = messages.described(got.pop())
        body, how = shown_body(each["body"], encoding)
        rows.append(
            answers.written(
                {
                    "payload_bytes": each["size"],
                    "redelivered": each["redelivered"],
                    "exchange": each["exchange"],
                    "routing_key": each["key"].decode("utf-8", "replace"),
                    "message_count": each["left"],
                    "properties": shown(each["properties"]),
                    "payload": body,
                    "payload_encoding": how,
                }
            )
        )
        if len(rows) % AT_ONCE == 0:
            yield
    held.resize(sum(len(row) for row in rows))
    return Answer(200, pieces(rows, held), number=number_)


def pieces(rows: list[bytes], held: Held) -> Iterator[Piece]:
    """Rows as a JSON list, AT_ONCE a piece; what has gone is not held."""
    rows.reverse()
    before = b"["
    while rows:
        piece = before + b",".join([rows.pop() for _ in range(min(AT_ONCE, len(rows)))])
        held.resize(sum(len(row) for row in rows))
        yield piece
        before = b","
    yield b"[]" if before == b"[" else b"]"


def some(call: Call, name: str, count: int, outcome: int, cut: int) -> Work:
    """Messages at the head of a queue, as messages.get has them."""
    began = call.broker.uptime_ms
    while True:
        got = messages.get(call.broker, call.user, name, count, outcome, GET_OCTETS, cut)
        if got is not None or call.broker.uptime_ms - began > WAIT_MS:
            return got or []
        yield


def shown_body(body: bytes, encoding: str) -> tuple[str, str]:
    """A body as JSON has it, and how it is encoded."""
    if encoding == "auto":
        try:
            return body.decode(), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), "base64"


def move(call: Call) -> Work:
    """POST /api/leveret/queues/VHOST/NAME/move: {"to": another queue, "count": how many at most, all that are ready where it is left out}.
    Out of the one and into the other stand in one commit of the log."""
    queue = the_queue(call)
    given = call.json()
    target = call.broker.topology.queue(text(given, "to"), nobody)
    if queue.is_stream or queue is target:
        raise bad(
            f"messages of '{queue.name}' can not be moved: a stream keeps its own" if queue.is_stream else "both queues are the same one"
        )
    call.check(READ, "queue", queue.name)
    call.check(WRITE, "exchange", "")
    call.broker.topology.queue(queue.name, nobody)  # another connection's is locked
    left = min(queue.message_count(), number(given, "count", 1 << 30, 0, 1 << 30))
    moved = 0
    while moved < left and all(call.broker.queues.get(each.name) is each for each in (queue, target)):
        count = requests.move(call.broker, queue, target, min(MOVED_AT_ONCE, left - moved))
        moved += count
        if count == 0:
            break
        yield
    answer = {"moved": moved, "left": queue.message_count()}
    if moved < left:
        answer["reason"] = f"queue '{target.name}' has no room for more, or refuses one"
    return answers.of(answer, call.server.promised())


def aliveness(call: Call) -> Work:
    """/api/aliveness-test/VHOST: a queue is declared, a message goes in and comes out."""
    call.own_host()
    broker = call.broker
    call.check(CONFIGURE, "queue", ALIVENESS)
    broker.topology.declare_queue(nobody, ALIVENESS, False, False, False, False, {})
    outcome = messages.publish(broker, call.user, "", ALIVENESS.encode(), *octets_and_columns({}, call.user), b"test_message")
    if outcome == NO_ROOM:
        raise Refused(503, "service_unavailable", "there is no room for a message")
    yield from some(call, ALIVENESS, 1, ACCEPTED, 64)
    return answers.of({"status": "ok"}, call.server.promised())


# Connections


def close_connection(call: Call) -> Answer:
    """DELETE /api/connections/NAME, with the header X-Reason."""
    connection = the_connection(call)
    check_own(call, connection.user.name)
    close(connection, call.headers.get("x-reason", "Closed via management plugin"))
    return Answer(204)


def close(connection: Any, reason: str) -> None:
    """Close a connection with the protocol's words."""
    connection.guarded(lambda: connection.close(reason[:200]))
    connection.send.touch()


def check_own(call: Call, name: str) -> None:
    """Raise Refused unless it is the user's own connection: others' are closed by administrators alone; monitoring only sees them."""
    if name != call.user.name and not call.has_tag("administrator"):
        raise answers.forbidden("User not authorised to access connection")


def close_connections_of(call: Call) -> Answer:
    """DELETE /api/connections/username/NAME."""
    check_own(call, call.names["user"])
    for each in list(call.broker.connections):
        if each.user is not None and each.user.name == call.names["user"]:
            close(each, call.headers.get("x-reason", "Closed via management plugin"))
    return Answer(204)
