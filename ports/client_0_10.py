"""AMQP 0-10, blocking, for CPython: one connection with one session, over core/amqp_0_10/client.

    connection = connect("amqp://guest:guest@127.0.0.1:5672/?protocol=0-10")
    connection.do("queue_declare", queue="readings")        -> the fields of its result, or None; commands by their names in spec_0_10.py
    connection.close()

Raises ConnectFailed, LoginRefused, ConnectionLost (also for an exception of the broker's, whose code and text it has), Timeout.
"""

import os
from typing import Any

from ..core.amqp_0_10 import structs
from ..core.amqp_0_10.client.client import LOGIN_REFUSED, Client
from ..core.amqp_0_10.client.events import Events
from .client_errors import ConnectFailed, ConnectionLost, LoginRefused
from .moving import Moving, open_stream
from .url import Url, read_url
from .url_0_10 import read_url_0_10

TIMEOUT_MS = 10000


def connect(url: str, timeout_ms: int = TIMEOUT_MS) -> "Connection":
    """A Connection to the broker of a URL, with or without `protocol=0-10`."""
    return Connection(read_url(url) if "protocol=" in url else read_url_0_10(url), timeout_ms)


class Connection(Moving, Events):
    """An open connection with a session."""

    def __init__(self, place: Url, timeout_ms: int) -> None:
        Moving.__init__(self, open_stream(place, timeout_ms), timeout_ms)
        self.is_open = False
        self._waits = -1  # the id of the command whose completion is waited for; -1: none
        self._result: "dict[str, Any] | None" = None
        given = place.login()
        self._client = Client(self, open_timeout_ms=timeout_ms, name=b"leveret-%s" % os.urandom(8).hex().encode(), **given)
        try:
            self.wait(lambda: self.is_open)
        except ConnectionLost as error:
            if error.code == LOGIN_REFUSED:
                raise LoginRefused("%s refuses the log-in: %s" % (place.place(), error.text)) from None
            raise ConnectFailed("%s: %s" % (place.place(), error.text)) from None

    def opened(self) -> None:
        self.is_open = True

    def command(self, name: str, fields: "dict[str, Any]") -> None:
        if name == "execution_result" and fields["command_id"] == self._waits:
            octets = fields["value"] or b""
            self._result = structs.read(self._struct, len(octets).to_bytes(4, "big") + octets, 0, 4 + len(octets))[0]

    def completed(self, id_: int) -> None:
        if id_ == self._waits:
            self._waits = -1

    def ended(self, code: int, text: str) -> None:
        self._end = (code, text)

    def do(self, name: str, /, **fields: "Any") -> "dict[str, Any] | None":
        """A command without a content, until it is completed."""
        self._struct, self._result = structs.RESULTS[name], None
        self._waits = self._client.command(name, fields, tell=True)
        self.wait(lambda: self._waits < 0)
        return self._result

    def hand_over(self) -> "tuple[Any, int, int, bytes]":
        """(the stream, octets in a frame at most, seconds between heartbeats or 0, octets received and not looked at) for one that
        goes on with channel 0 in its own way, with commands from id 0 on; this object ends here."""
        while self._flush():
            self.step(self._timeout_ms)
        client = self._client
        return self._stream, client.frame_max, client.beat_ms // 1000, bytes(client._receive[: client._filled])

    def close(self) -> None:
        """Close, as far as the broker answers."""
        self._client.close()
        try:
            for _ in range(3):
                self.step(1000)
        except ConnectionLost:
            return
