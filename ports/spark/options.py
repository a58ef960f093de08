"""The options of `format("amqp")`, checked. Each mistake is a ValueError of one sentence.

The rows are in option_tables.py; tools/SETTINGS.md shows them.

Laws: no password is in an option, hence in no plan, log or checkpoint; an Options is pickled to the executors and holds only where the
password is found.
"""

import calendar
import json
import math
import os
import time
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from .option_tables import SINK, SOURCE, checked
from .stream_client import Address, StreamError

Place = tuple[str, str, int, str, str, str]  # scheme, host, port, user, virtual host, query
Sources = dict[str, tuple[Place, str]]
Offset = Literal["earliest", "latest"] | int | tuple[str, int]
NAMED: dict[str, Offset] = {"earliest": "earliest", "latest": "latest"}
_TLS_SETTINGS = ("ca", "cert", "key", "name")
_SETTINGS_1_0 = ("protocol", "auth", "node")  # ports/url_1_0.py


class Login:
    """Where brokers are and where the password is found."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._password_env, self._password_file = options.get("passwordEnv"), options.get("passwordFile")
        texts = [text.strip() for text in (options.get("url") or "").split(",") if text.strip()]
        self.places = [self._place(text) for text in texts]
        if not texts:
            raise ValueError("amqp: option url is missing: amqp://[user@]host[:port][/vhost]")

    def address(self, place: Place) -> Address:
        """The address of a broker (a member of `places`) with the password, which is looked up here: in the process that connects."""
        scheme, host, port, user, virtual_host, query = place
        return Address(host, port, user, self._password(), virtual_host, scheme, query)

    def _place(self, text: str) -> Place:
        parts = urlsplit(text)
        try:
            port = parts.port
        except ValueError as error:
            raise ValueError(f"amqp: option url: {error}") from None
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise ValueError(f"amqp: option url must be amqp[s]://[user@]host[:port][/vhost], not {_without_password(text)!r}")
        if parts.password is not None:
            raise ValueError("amqp: no password in the url, options are shown in query plans: use passwordEnv or passwordFile")
        settings = [pair.partition("=")[0] for pair in parts.query.split("&") if pair]
        settings = [name for name in settings if name not in _SETTINGS_1_0]
        if settings and (parts.scheme != "amqps" or set(settings) - set(_TLS_SETTINGS)):
            raise ValueError(f"amqp: the settings of an amqps:// url are {', '.join(_TLS_SETTINGS)}; found {', '.join(settings)}")
        user = unquote(parts.username) if parts.username else "guest"
        if user != "guest" and not self._password_env and not self._password_file:
            raise ValueError(f"amqp: user {user} needs passwordEnv or passwordFile")
        return (
            parts.scheme,
            parts.hostname,
            port or (5671 if parts.scheme == "amqps" else 5672),
            user,
            unquote(parts.path[1:]) or "/",
            parts.query,
        )

    def _password(self) -> str:
        if self._password_env:
            if self._password_env not in os.environ:
                raise StreamError(f"amqp: environment variable {self._password_env} (passwordEnv) is not set in this process")
            return os.environ[self._password_env]
        if self._password_file:
            try:
                with open(self._password_file, encoding="utf-8") as file:
                    return file.read().rstrip("\r\n")
            except OSError as error:
                raise StreamError(f"amqp: passwordFile {self._password_file}: {error.strerror}") from None
        return "guest"


def _without_password(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return "..." + at + tail if at else text


def hub_and_partition(stream: str) -> tuple[str, str]:
    """(hub, number of the partition) of an address at Event Hubs. Raises ValueError for another text."""
    parts = stream.strip("/").split("/")
    if len(parts) != 5 or (parts[1], parts[3]) != ("ConsumerGroups", "Partitions") or "" in parts:
        form = "HUB/ConsumerGroups/GROUP/Partitions/NUMBER"
        raise ValueError(f"amqp: with protocol=1.0 in url a stream is {form}, not {stream!r}; queues are read with mode=queue")
    return parts[0], parts[4]


def sink_login(options: Mapping[str, Any]) -> Login:
    """The Login of a sink, by its options. Raises ValueError."""
    login = Login(checked(options, SINK))
    if len(login.places) > 1:
        raise ValueError("amqp: the sink writes to one broker: url names several")
    return login


class Options:
    """The checked options of one source. `sources`: {label: (place, stream)}, in order."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        options = checked(options, SOURCE)
        self.login = Login(options)
        self.mode = options["mode"]
        self.sources = _sources(self.login.places, options)
        if self.mode != "queue":
            for place, stream in self.sources.values():
                if "protocol=1.0" in place[5]:
                    hub_and_partition(stream)
        self.starting_offsets = _starting_offsets(options["startingOffsets"], self.sources)
        self.rows_per_trigger_max, self.octets_per_trigger_max = options["maxRowsPerTrigger"], options["maxBytesPerTrigger"]
        self.partitions_min, self.fail_on_data_loss = options["minPartitions"], options["failOnDataLoss"]
        self.retry_s = options["retrySeconds"] or math.inf

    def address(self, label: str) -> Address:
        """The address of the broker that has this source."""
        return self.login.address(self.sources[label][0])

    def stream(self, label: str) -> str:
        """The queue's name at that broker."""
        return self.sources[label][1]


def _sources(places: list[Place], options: Mapping[str, Any]) -> Sources:
    names = [name.strip() for name in (options["stream"] or options["streams"] or "").split(",") if name.strip()]
    if not names:
        raise ValueError("amqp: option stream is missing: the name of a queue with x-queue-type=stream, or several with commas")
    if len(places) == 1:
        sources = {name: (places[0], name) for name in names}
    else:
        sources = {"{1}:{2}/".format(*place) + name: (place, name) for place in places for name in names}
    if len(sources) != len(places) * len(names):
        raise ValueError("amqp: a stream or a broker is named twice")
    return sources


def _starting_offsets(text: str, sources: Sources) -> dict[str, Offset]:
    """{label: "earliest", "latest", a number or ("T", seconds)}."""
    if not text.lstrip().startswith("{"):
        return dict.fromkeys(sources, _starting_offset(text))
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ValueError(f"amqp: startingOffsets is no JSON: {error}") from None
    unknown = set(given) - set(sources)
    if unknown:
        raise ValueError(f"amqp: startingOffsets names {', '.join(sorted(unknown))}; the streams are {', '.join(sources)}")
    return {label: _starting_offset(str(given.get(label, "earliest"))) for label in sources}


def _starting_offset(text: str) -> Offset:
    if text in NAMED:
        return NAMED[text]
    if text.isdecimal():
        return int(text)
    try:
        return "T", calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        raise ValueError(f"amqp: startingOffsets is earliest, latest, a number or a time as 2026-01-31T12:00:00Z, not {text!r}") from None
