"""Files over AMQP 0-10's class file, blocking, for CPython: one connection each; who lost it calls again, and goes on where it stopped.

    send(url, path, exchange, key)          receive(url, queue, path)

A file bears its SHA-256 as the header x-sha256, and its name. What is received lies at PATH.part, with PATH.part.json beside it that says
which file it is, until it is whole and its checksum right: then it gets its name, durably, and is acknowledged. So the same file may come
twice, and never a wrong one.
"""

import hashlib
import json
import os
import time
from typing import Any, Callable

from ..core.amqp_0_10.client.files import Receiving, Sending
from . import client_0_10
from .client_errors import ClientError, ConnectionLost
from .url import read_url

CHECKSUM = "x-sha256"
FORCED = 320  # connection-forced: a broker that stops, and comes back
UNNAMED = "received"  # the file in a folder that has no name of its own
PIECE = 1 << 20


class Refused(ClientError):
    """The broker, or what has come, says no: trying again changes nothing."""


def nothing(at: int, size: int) -> None:
    """No progress is shown."""


class Connection(client_0_10.Connection):
    """An open connection with a session, and the file that goes over it. Raises ConnectFailed, LoginRefused, ConnectionLost, Timeout."""

    file: Any = None

    def command(self, name: str, fields: "dict[str, Any]") -> None:
        if self.file is None:
            super().command(name, fields)
        else:
            self.file.command(name, fields)

    def content(self, name: str, fields: "dict[str, Any]", header: bytes) -> None:
        if self.file is not None:
            self.file.content(name, fields, header)

    def body(self, octets: bytes, is_last: bool) -> None:
        if isinstance(self.file, Receiving):
            self.file.body(octets)

    def completed(self, id_: int) -> None:
        if self.file is None:
            super().completed(id_)
        else:
            self.file.completed(id_)

    def room(self) -> None:
        if isinstance(self.file, Sending):
            self.file.room()

    def look_for(self, exchange: str, queue: str) -> None:
        """Raise Refused where the broker has no such exchange; with the default exchange, where it has no such queue."""
        if exchange:
            is_there = not (self.do("exchange_query", name=exchange) or {}).get("not_found")
        else:
            is_there = bool((self.do("queue_query", queue=queue) or {}).get("queue"))
        if not is_there:
            raise Refused("the broker has no %s" % ("exchange '%s'" % exchange if exchange else "queue '%s'" % queue))

    def move(self, done: "Callable[[], bool]", news: "Callable[[], int]", wait_s: float) -> None:
        """Step until `done()`. Raises ConnectionLost, also when `news()` has stayed the same for `wait_s`; Refused where the broker raised
        an exception."""
        before, moved_at = news(), time.monotonic()
        while not done():
            try:
                self.step(1000)
            except ConnectionLost as error:
                if error.code and error.code != FORCED:
                    raise Refused("the broker says: %s (%d)" % (error.text, error.code)) from None
                raise
            if news() != before:
                before, moved_at = news(), time.monotonic()
            if time.monotonic() - moved_at > wait_s:
                self._stream.close()
                raise ConnectionLost("nothing has come for %d s" % wait_s, 0, "")


def checksum(path: str) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        while octets := file.read(PIECE):
            hashed.update(octets)
    return hashed.hexdigest()


def send(
    url: str,
    path: str,
    exchange: str,
    key: str,
    identifier: str = "",
    shown: "Callable[[int, int], None]" = nothing,
    timeout_ms: int = 10000,
) -> int:
    """Send a file: the octets that the broker had from before. Raises Refused, before anything is sent where the broker has no such
    exchange or queue, and another ClientError where a further call may go on;
    OSError of the file."""
    before = os.stat(path)
    hashed = checksum(path)
    size = before.st_size
    name = os.path.basename(path)
    # The name may differ between two files of the same content, and is a part of what is staged.
    identifier = identifier or hashlib.sha256(("%s %s" % (hashed, name)).encode()).hexdigest()
    connection = Connection(read_url(url), timeout_ms)
    try:
        with open(path, "rb", buffering=0) as file:

            def check() -> None:
                now = os.fstat(file.fileno())
                if (now.st_ino, now.st_size, now.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns):
                    raise Refused("%s has changed while it was sent" % path)

            def read(at: int, most: int) -> bytes:
                file.seek(at)
                octets = file.read(most)
                check()
                return octets

            check()
            connection.look_for(exchange, key)  # first: the broker says so behind the whole file else
            given = {"filename": name, "headers": {CHECKSUM: hashed}, "timestamp": int(os.path.getmtime(path))}
            connection.file = sending = Sending(connection._client, read, identifier, size, given, exchange, key)

            def news() -> int:
                shown(sending.at, size)
                return sending.at

            connection.move(lambda: sending.phase == "done", news, timeout_ms / 1000)
            shown(size, size)
        if sending.returned is not None:
            raise Refused("the broker returns the file: %s (%d)" % (sending.returned[1], sending.returned[0]))
        connection.close()
        return sending.resumed_at
    finally:
        connection._stream.close()


def place(path: str, name: str) -> str:
    """The path for a file that was sent as `name`: `path` itself, or a file in `path` where that is a folder."""
    if not os.path.isdir(path):
        return path
    base = os.path.basename(name)
    if base in ("", ".", "..") or "\0" in base or len(os.fsencode(base)) > 255 or os.path.isdir(os.path.join(path, base)):
        base = UNNAMED
    return os.path.join(path, base)


def sync_folder(path: str) -> None:
    """Make the names of a folder durable."""
    folder = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Part:
    """The file that is being received: the sink of a Receiving. `path`: what it is to be called, or the folder that it goes to."""

    def __init__(self, path: str, shown: "Callable[[int, int], None]") -> None:
        self.path = path
        self.part = (os.path.join(path, UNNAMED) if os.path.isdir(path) else path) + ".part"
        self.shown = shown
        self.file: Any = None
        self.at = self.size = self.resumed_at = 0
        self.name = ""
        self.trouble = ""
        self.is_named = False  # it is whole, and has its name

    def begin(self, identifier: str, size: int) -> int:
        """A file is announced: the octets of it that are here."""
        said = {"identifier": identifier, "size": size}
        self.size = size
        if self.known() != said:
            with open(self.part, "wb"):
                pass
            with open(self.part + ".json", "w", encoding="utf-8") as file:
                json.dump(said, file)
        self.file = open(self.part, "r+b", buffering=0)
        self.at = self.resumed_at = min(self.file.seek(0, os.SEEK_END), size)
        self.file.truncate(self.at)
        self.file.seek(self.at)
        return self.at

    def known(self) -> Any:
        """Which file lies here, or None."""
        try:
            with open(self.part + ".json", encoding="utf-8") as file:
                return json.load(file) if os.path.exists(self.part) else None
        except (OSError, ValueError):
            return None

    def write(self, octets: bytes) -> None:
        """Octets of it."""
        self.file.write(octets)
        self.at += len(octets)
        self.shown(self.at, self.size)

    def whole(self, properties: "dict[str, Any]", redelivered: bool) -> bool:
        """The last octet has come: false when the file differs from the one that was sent."""
        os.fsync(self.file.fileno())
        self.file.close()
        said = (properties.get("headers") or {}).get(CHECKSUM)
        self.name = properties.get("filename") or ""
        if self.at != self.size or said is not None and said != checksum(self.part):
            self.trouble = "%s has another checksum than the file that was sent" % self.part
            os.remove(self.part)
        else:
            os.replace(self.part, place(self.path, self.name))
            sync_folder(os.path.dirname(self.part))  # before the acknowledgement: the broker has it no more after that
            self.is_named = True
        os.remove(self.part + ".json")
        return not self.trouble


def receive(
    url: str,
    queue: str,
    path: str,
    shown: "Callable[[int, int], None]" = nothing,
    wait_s: float = 60,
    timeout_ms: int = 10000,
) -> "tuple[str, int]":
    """Receive the next file of a queue as `path`, or into it where it is a folder: (the name that it was sent with, octets that were here
    from before). Raises Refused, and another ClientError where a further call may go on; OSError of the file.

    A file that is here is received, also where the connection was lost before the broker has said that it has the acknowledgement: a
    further call would put the next file in its place."""
    connection = Connection(read_url(url), timeout_ms)
    sink = Part(path, shown)
    try:
        connection.file = receiving = Receiving(connection._client, queue, sink)
        try:
            connection.move(lambda: receiving.is_acknowledged or sink.trouble != "", lambda: sink.at, wait_s)
        except ConnectionLost:
            if not sink.is_named:
                raise
            return sink.name, sink.resumed_at
        if sink.trouble:
            connection.close()
            if sink.resumed_at:  # what was here from before may be what is wrong: it has gone
                raise ClientError(sink.trouble)
            raise Refused(sink.trouble)
        connection.close()
        return sink.name, sink.resumed_at
    finally:
        connection._stream.close()
        if sink.file is not None:
            sink.file.close()
