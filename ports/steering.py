"""Requests of management (core/management/requests.py) that only a broker with a process around it has; a board carries none of them.

    close-connection {"name" or "of_user", "reason"}     closes connections with the protocol's words; "closed": how many (administrator;
                                their own: everybody)
    trace {"on", "exchanges", "queues"}     the firehose (ports/events/firehose.py), for those with these names, or all; each time anew
                                (administrator)
    drain {"keep"}              no client comes in any more, and those that are there are told to go, but for the connection of that name;
                                "left": how many are still there (administrator)
    look {"queue", "count"}     what is at the head of a queue, as if nobody had looked; "messages", with bodies in base64 that are cut to
                                what the answer has room for (read permission on the queue)
    reload {"number"}           the configuration file is read anew; "number" of this reading. With the number of an earlier answer: how
                                that went: "over", "failed" and "sentences" (administrator)

`install(broker, port)` adds them to the table. `port`: what of the process they need, a Port.
"""

import base64
from typing import Any, Protocol

from ..core.errors import ACCESS_REFUSED, NOT_FOUND, ProtocolError
from ..core.management import messages, requests
from ..core.management.rabbitmq_definitions import plain
from ..core.outcomes import RELEASED
from ..core.shim import json_text

LOOK_MAX = 100  # messages of one `look`
REASON = "closed by an operator"
REASON_MAX = 200


class Port(Protocol):
    """The functions of the process that the requests call."""

    def drain(self) -> None:
        """Accept no further connections."""

    def trace(self, is_on: bool, exchanges: list[str] | None, queues: list[str] | None) -> None:
        """Turn the firehose on, for those with these names (None: all), or off."""

    def reload(self) -> int:
        """Begin to read the configuration file anew: the number of this reading. Raises ProtocolError where there is none."""

    def reading(self, number: int) -> Any:
        """The reading with this number: `over`, `failed` (the file has a mistake) and `sentences`. Raises ProtocolError."""


def install(broker: Any, port: Port) -> None:
    """Let a broker answer these requests."""
    broker.port = port
    requests.REQUESTS.update(REQUESTS)


def close_connection(broker: Any, request: dict[str, Any]) -> str:
    """Close the connections of a name, or of a user."""
    key = "name" if "name" in request else "of_user"
    wanted, user = request.get(key), request["user"]
    if not isinstance(wanted, str):
        raise ValueError("close-connection needs the name of a connection, or of_user")
    reason = request.get("reason", REASON)
    if not isinstance(reason, str):
        raise ValueError("its reason is not a text")
    chosen = [each for each in broker.connections if wanted == (each.name if key == "name" else each.user and each.user.name)]
    if not chosen:
        raise ProtocolError(NOT_FOUND, f"there is no connection {'of user ' if key != 'name' else ''}'{wanted}'")
    if "administrator" not in user.tags and any(each.user is None or each.user.name != user.name for each in chosen):
        raise ProtocolError(ACCESS_REFUSED, "only an administrator closes connections of others")
    for each in chosen:
        shut(each, reason)
    return str(json_text({"ok": True, "closed": len(chosen)}))


def shut(connection: Any, reason: str) -> None:
    """Close a connection with the protocol's words."""
    connection.guarded(lambda: connection.close(reason[:REASON_MAX]))
    if not connection.closed:
        connection.send.touch()


def drain(broker: Any, request: dict[str, Any]) -> str:
    """Close all connections but the one called `keep`."""
    broker.port.drain()
    others = [each for each in broker.connections if each.name != request.get("keep")]
    for each in others:
        if not each.ending:
            shut(each, "the broker is being drained for maintenance")
    return str(json_text({"ok": True, "left": len(others)}))


def trace(broker: Any, request: dict[str, Any]) -> str:
    """Turn the firehose on or off."""
    is_on = request.get("on")
    if not isinstance(is_on, bool):
        raise ValueError("trace needs on: true or false")
    chosen = []
    for key in ("exchanges", "queues"):
        names = request.get(key)
        if names is not None and (not isinstance(names, list) or any(not isinstance(name, str) for name in names)):
            raise ValueError(f"{key} of trace is not a list of names")
        chosen.append(names)
    broker.port.trace(is_on, *chosen)
    return str(json_text({"ok": True}))


def look(broker: Any, request: dict[str, Any]) -> str:
    """Messages at the head of a queue. They go back to their places, and no delivery is counted."""
    name, count = request.get("queue"), request.get("count", 1)
    if not isinstance(name, str) or type(count) is not int or not 0 < count <= LOOK_MAX:
        raise ValueError(f"look needs the name of a queue, and a count from 1 to {LOOK_MAX}")
    most = broker.limits.management_size_max // 4  # base64 and the rest of each row take as much again
    got = messages.get(broker, request["user"], name, count, RELEASED, most, most // count)
    rows: list[dict[str, Any]] = []
    left = broker.limits.management_size_max - 256
    for each in got or ():
        row = row_of(messages.described(each))
        left -= len(json_text(row)) + 2
        if left < 0:
            break
        rows.append(row)
    return str(json_text({"ok": True, "messages": rows, "on_their_way": got is None}))


def row_of(message: dict[str, Any]) -> dict[str, Any]:
    """A message as `look` answers."""
    try:
        properties = plain(message["properties"])
    except ValueError:
        properties = {name: repr(value) for name, value in message["properties"].items()}
    return {
        "exchange": message["exchange"],
        "routing_key": message["key"].decode("utf-8", "replace"),
        "redelivered": message["redelivered"],
        "properties": properties,
        "payload_bytes": message["size"],
        "payload": base64.b64encode(message["body"]).decode(),
        "message_count": message["left"],
    }


def reload(broker: Any, request: dict[str, Any]) -> str:
    """Begin a reading of the configuration file, or tell how one went."""
    number = request.get("number")
    if number is None:
        return str(json_text({"ok": True, "number": broker.port.reload()}))
    reading = broker.port.reading(number)
    room = broker.limits.management_size_max - 256
    sentences: list[str] = []
    for sentence in reading.sentences:
        room -= len(json_text(sentence).encode()) + 2
        if room < 0:
            break
        sentences.append(sentence)
    return str(json_text({"ok": True, "over": reading.over, "failed": reading.failed, "sentences": sentences}))


REQUESTS = {
    "close-connection": (close_connection, requests.READERS, requests.NOTHING),
    "trace": (trace, requests.ADMINISTRATORS, requests.NOTHING),
    "drain": (drain, requests.ADMINISTRATORS, requests.NOTHING),
    "look": (look, requests.READERS, requests.NOTHING),
    "reload": (reload, requests.ADMINISTRATORS, requests.NOTHING),
}
