"""The settings of a bridge: one Settings each, from a file, the command line or a board's own code.

Units and meanings: setting_words.py, which no board carries. A mistake is a ValueError with one sentence.
"""

from ...core.amqp_0_9.bridge_marks import Marks
from ...core.shim import MICROPYTHON
from ...core.stream.stream import age_of
from ..settings import Table, one_of, whole
from ..url import read_url

if False:  # for the type checker alone
    from typing import Any

WAIT, DROP_OLDEST = "wait", "drop-oldest"
STABLE_MS = 60000  # a connection that held so long was a good one: the next pause starts with the shortest again
NUMBER_MAX = 1 << 30


def as_text(value: object, least: float, most: float) -> str | None:
    return value if isinstance(value, str) and len(value.encode("utf-8")) <= most else None


def as_texts(value: object, least: float, most: float) -> "dict[str, str] | None":
    return value if isinstance(value, dict) and all(isinstance(value[each], str) for each in value) else None


def as_urls(value: object, least: float, most: float) -> "list[str] | None":
    given = [value] if isinstance(value, str) else value
    return given if isinstance(given, list) and given and all(isinstance(each, str) for each in given) else None


def as_seconds(value: "Any", least: float, most: float) -> "Any":
    return value if type(value) in (int, float) and least <= value <= most else None


def text(most: int) -> "tuple[Any, ...]":
    """A text; what becomes a short string of the protocol has so many octets at most, with what the bridge puts behind it."""
    return as_text, "a text", 0, most, "{name} has {octets} octets; it must have at most {most}"


URLS = as_urls, "a URL or a list of URLs", 0, 0, "{name} must be {words}"  # without the value: a URL has a password
TEXTS = as_texts, "a table of texts", 0, 0, None
SECONDS = as_seconds, "a number of seconds from {least} to {most}", 0.01, 86400, None  # times have 30 bits of milliseconds
FREE = whole(0, NUMBER_MAX)

ROWS = (
    ("name", text(200), None),
    ("direction", one_of("up", "down"), "up"),
    ("gateway", text(200), None),
    ("queue", text(255), None),
    ("stream", text(255), None),
    ("upstream", URLS, None),
    ("exchange", text(255), None),
    ("routing_key", text(NUMBER_MAX), None),
    ("headers", TEXTS, None),
    ("header_prefix", text(127), ""),
    ("hops_max", whole(1, 255), 8),
    ("prefetch", whole(1, 4000), 32 if MICROPYTHON else 1000),
    ("backlog_octets_max", whole(1024, 1 << 50), None),
    ("backlog_age_max", text(NUMBER_MAX), None),
    ("backlog_full", one_of(WAIT, DROP_OLDEST), WAIT),
    ("replay_messages_per_second", FREE, 0),
    ("replay_octets_per_second", FREE, 0),
    ("refusal_attempts", whole(0, 1000000), 10),
    ("heartbeat_seconds", whole(0, 3600), 15),
    ("connect_seconds", SECONDS, 10),
    ("stall_seconds", SECONDS, 30),
    ("reconnect_seconds_min", SECONDS, 0.5),
    ("reconnect_seconds_max", SECONDS, 60),
    ("buffer_size", whole(2048, 1 << 28), 4096 if MICROPYTHON else 262144),
    ("frame_size_max", whole(8192, 1 << 24), 8192 if MICROPYTHON else 131072),
)
OF_AN_OUTBOX = ("backlog_octets_max", "backlog_age_max", "backlog_full")
ONLY_UP = ("gateway", "stream", "replay_messages_per_second", "replay_octets_per_second") + OF_AN_OUTBOX


def is_up(values: "dict[str, object]") -> bool:
    """True for settings of a bridge from here to upstream."""
    return values["direction"] == "up"


RELATIONS = (
    ((), lambda values: values["name"], "it needs a name of 1 to 200 octets"),
    ((), lambda values: values["exchange"] is not None, "it needs an exchange to publish to"),
    ((), lambda values: values["upstream"], "it needs upstream, a URL as amqps://user:password@host/"),
    (
        (),
        lambda values: values["reconnect_seconds_min"] <= values["reconnect_seconds_max"],
        "reconnect_seconds_min must not be above reconnect_seconds_max",
    ),
    (
        (),
        lambda values: not is_up(values) or (values["queue"] is None) != (values["stream"] is None),
        "it needs a queue or a stream to take from, and not both",
    ),
    ((), lambda values: is_up(values) or values["queue"] is not None, "it needs a queue, the one upstream to take from"),
    (ONLY_UP, is_up, "{name} is for direction up"),
    (OF_AN_OUTBOX, lambda values: values["queue"] is not None, "{name} is for a queue: a stream has its own retention"),
    (
        ("backlog_age_max",),
        lambda values: age_of(values["backlog_age_max"]) is not None,
        "backlog_age_max is a number and one of Y M D h m s",
    ),
    (("backlog_age_max",), lambda values: values["backlog_full"] == DROP_OLDEST, 'backlog_age_max needs backlog_full = "drop-oldest"'),
)
TABLE = Table(ROWS, "there is no setting {name!r}; there are {names}", "{name} is {value!r}; it must be {words}", RELATIONS)


class Settings:
    """One attribute for each row, and `upstream_urls` (a list of Url), `stable_ms`. `plain`: up, but without numbers (no gateway)."""

    name: "str"
    direction: "str"
    gateway: "str"
    queue: "str | None"
    stream: "str | None"
    upstream: "list[str]"
    exchange: "str"
    routing_key: "str | None"
    headers: "dict[str, str] | None"
    header_prefix: "str"
    hops_max: "int"
    prefetch: "int"
    backlog_octets_max: "int | None"
    backlog_age_max: "str | None"
    backlog_full: "str"
    replay_messages_per_second: "int"
    replay_octets_per_second: "int"
    refusal_attempts: "int"
    heartbeat_seconds: "int"
    connect_seconds: "float"
    stall_seconds: "float"
    reconnect_seconds_min: "float"
    reconnect_seconds_max: "float"
    buffer_size: "int"
    frame_size_max: "int"

    def __init__(self, given: "dict[str, Any]", plain: bool = False) -> None:
        values = TABLE.full({name: given[name] for name in given if given[name] is not None})
        for name in values:
            setattr(self, name, values[name])
        self.plain = plain
        self.stable_ms = STABLE_MS
        if self.up and not plain and not self.gateway:
            raise ValueError("it needs a gateway, an id that no other bridge has")
        if plain and [name for name in OF_AN_OUTBOX if name in given]:
            raise ValueError("%s is for a bridge with a gateway" % [name for name in OF_AN_OUTBOX if name in given][0])
        self.upstream_urls = [read_url(url) for url in self.upstream]
        for url in self.upstream_urls:
            if hasattr(url, "check"):
                url.check(self)
        self.marks()

    @property
    def up(self) -> bool:
        """From here to upstream."""
        return self.direction == "up"

    @property
    def outbox(self) -> str | None:
        """The bridge's own stream, where it has one."""
        return self.name + ".outbox" if self.up and self.queue is not None and not self.plain else None

    @property
    def refused(self) -> str:
        """The queue of messages that upstream refuses."""
        return self.name + ".refused"

    def marks(self, gateway: str | None = None) -> Marks:
        """The Marks; `gateway`: its name in messages, where that differs from the setting. Raises ValueError for a wrong template."""
        return Marks(
            "" if not self.up or self.plain else gateway or self.gateway, self.routing_key, self.headers, self.header_prefix, self.hops_max
        )

    def outbox_arguments(self) -> "dict[str, Any]":
        """x-arguments of the outbox."""
        arguments: "dict[str, Any]" = {"x-queue-type": "stream"}
        if self.backlog_octets_max is not None:
            arguments["x-max-length-bytes"] = self.backlog_octets_max
        if self.backlog_age_max is not None:
            arguments["x-max-age"] = self.backlog_age_max
        if self.backlog_full == WAIT:
            arguments["x-stream-hold"] = self.name
        return arguments
