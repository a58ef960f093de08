"""Connections as ports show them: names, streams, and what their peers say of themselves, kept only where something shows it."""

from typing import Any
from weakref import WeakKeyDictionary, ref

from ..core.wire.registry import FAMILIES

NAMES_MAX = 32
TEXT_MAX = 256  # characters of a name or a text that is kept
DEPTH_MAX = 2


class Peers:
    """A function for Places.introduced."""

    def __init__(self) -> None:
        self.said: Any = WeakKeyDictionary()  # connection -> (properties, mechanism)
        self.streams: Any = WeakKeyDictionary()  # connection -> a weak reference to its stream

    def __call__(self, connection: Any, properties: Any, mechanism: str) -> None:
        self.said[connection] = shortened(properties or {}), mechanism[:TEXT_MAX]

    def met(self, connection: Any, stream: Any) -> None:
        """A connection was accepted on a stream."""
        self.streams[connection] = ref(stream)

    def stream_of(self, connection: Any) -> Any:
        """The stream of a connection; None: it has none, or not any more."""
        reference = self.streams.get(connection)
        return None if reference is None else reference()

    def properties_of(self, connection: Any) -> dict[str, Any]:
        """The peer's properties by name, without what is too long."""
        made: dict[str, Any] = self.said.get(connection, ({}, ""))[0]
        return made

    def mechanism_of(self, connection: Any) -> str:
        """How it logged in; "": not known."""
        return str(self.said.get(connection, ({}, ""))[1])

    def name_of(self, connection: Any) -> str:
        """The name that it gave itself, or ""."""
        name = self.properties_of(connection).get("connection_name", "")
        return name if isinstance(name, str) else ""


def peers_of(broker: Any) -> Peers:
    """The Peers of a broker, which notes them from the first call on."""
    if not isinstance(broker.places.introduced, Peers):
        broker.places.introduced = Peers()
    peers: Peers = broker.places.introduced
    return peers


def shortened(given: dict[Any, Any], depth: int = 1) -> dict[str, Any]:
    """Texts, numbers, truth values and tables of them; no more than a peer may have us keep."""
    made: dict[str, Any] = {}
    for name, value in list(given.items())[:NAMES_MAX]:
        key = str(name[-1] if isinstance(name, tuple) else name)[:TEXT_MAX]  # a symbol of AMQP 1.0
        if isinstance(value, tuple) and value:
            value = value[-1]
        if isinstance(value, (bool, int, float)):
            made[key] = value
        elif isinstance(value, str):
            made[key] = value[:TEXT_MAX]
        elif isinstance(value, dict) and depth < DEPTH_MAX:
            made[key] = shortened(value, depth + 1)
    return made


def channel_name(session: Any) -> str:
    """RabbitMQ's name of a channel."""
    return f"{session.connection.name} ({session.number})"


def host_and_port(name: str) -> tuple[str, int]:
    """The peer's address in the name of a stream; "" and 0 for a line."""
    host, colon, port = name.rpartition(":")
    return (host, int(port)) if colon and port.isdigit() else (name, 0)


def family_of(session: Any) -> str:
    """The protocol that a connection speaks, by the name of its family."""
    if session is None:
        return ""
    header = getattr(getattr(session, "dialect", None), "HEADER", None)  # of a version in the folder of 0-9-1
    families = [family for family in FAMILIES if folder_of(family.protocol) == folder_of(type(session))]
    return str([family for family in families if header in (None, family.header)][0].name)


def folder_of(made: Any) -> str:
    """The folder of core/ that a class or a function is from."""
    return str(made.__module__.rpartition(".")[0])
