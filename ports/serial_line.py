"""Serial devices for CPython, through pyserial: a line as a stream, a listener that opens its device again, a client's connection.

A UART, a USB adapter or a pseudo-terminal carries a Link (core/serial_link/link.py), which carries the AMQP connection. Laws: a device is
opened for this process alone; nothing here blocks; what goes wrong is one sentence that says what to do (`LineFailed`). pyserial opens the
device and sets it up; octets go straight through its file descriptor, because pyserial's own read cannot tell "nothing yet" from
"unplugged". It decides nothing about octets, and it runs where `select.poll` and termios are (Linux, macOS).
"""

import errno
import os
import select
import termios
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import serial

from ..core.bridge.backoff import Backoff
from ..core.serial_link.bus import Bus
from ..core.serial_link.link import NONCE_MAX, Link
from ..core.serial_link.window import GRAIN_COUNT_MAX, WINDOW_SIZES
from ..core.shim import elapsed
from .client import SIZES, ClientError, ConnectFailed, Connection, ConnectionLost, Timeout
from .clock import now_ms
from .url import LOGIN_SIZE_MAX, unquote

BAUD = 115200  # where a URL says nothing
BITS = 10  # of an octet on the line: a start and a stop bit with it
WINDOW_SIZE = 16384  # octets, at most; half of them where a line is slow
PAYLOAD_SIZE = 1024
PAYLOAD_SIZE_MIN = 128
RECEIVE_SIZE = 4096
STREAM_COUNT = 16
STREAM_ROOM = 16384
KEEPALIVE_MS = 2000
DEAD_MS = 60000  # so long a session waits for its cable
QUEUE_MS = 30  # of octets that may wait in the device
QUEUE_STEP_MS = 10
TURN_STEP_MS = 2
NOTHING = memoryview(b"")
REOPEN_MS_MIN, REOPEN_MS_MAX = 250, 5000
STEP_MS_MAX = 50
GOODBYE_MS = 1000
GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF)


class LineFailed(Exception):
    """A serial device cannot be opened; str() says why and what to do."""


class SerialStream:
    """An open serial device as a stream (core/DESIGN.md section 2). Raises LineFailed."""

    def __init__(self, device: str, baud: int) -> None:
        self.name = device
        self.closed = False
        try:
            self._port = serial.Serial(device, baud, timeout=0, write_timeout=0, exclusive=True)
        except (OSError, ValueError, OverflowError, termios.error) as error:
            raise LineFailed(explain(device, baud, error)) from None
        self.pollable = self._port.fileno()
        self._report_nothing_as_an_error()

    def _report_nothing_as_an_error(self) -> None:
        """With VMIN 0, as pyserial leaves it, a read of nothing looks like the end; with VMIN 1 it is EAGAIN."""
        settings = termios.tcgetattr(self.pollable)
        settings[6][termios.VMIN] = 1
        termios.tcsetattr(self.pollable, termios.TCSANOW, settings)

    def read_into(self, view: memoryview | bytearray) -> int | None:
        """Octets read; 0: unplugged; None: nothing now."""
        try:
            return os.readv(self.pollable, [view])
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in GONE:
                return 0
            raise

    def write(self, view: memoryview | bytearray) -> int | None:
        """Octets written; None: no room now; 0: unplugged."""
        try:
            return os.write(self.pollable, view)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in GONE:
                return 0
            raise

    def waiting(self) -> int:
        """Octets that were written and are not on the line yet."""
        try:
            octets: int = self._port.out_waiting
            return octets
        except (OSError, serial.SerialException):
            return 0

    def set_speed(self, baud: int) -> None:
        """Change the speed. Raises LineFailed."""
        try:
            self._port.baudrate = baud
            self._report_nothing_as_an_error()
        except (OSError, ValueError, termios.error) as error:
            raise LineFailed(explain(self.name, baud, error)) from None

    def close(self) -> None:
        """Give the device back; the system sends what it still holds."""
        self.closed = True
        self._port.close()


def explain(device: str, baud: int, error: BaseException) -> str:
    """The sentence for a device that cannot be opened."""
    number = getattr(error, "errno", None)
    if number == errno.ENOENT or number in (errno.ENXIO, errno.ENODEV):
        return "there is no serial device %s: plug it in, or see what is there with `python3 -m serial.tools.list_ports`" % device
    if number in (errno.EACCES, errno.EPERM):
        return "%s may not be opened by this user: `sudo usermod -aG dialout $USER`, then log in again" % device
    if number == errno.EBUSY or "exclusively lock" in str(error):
        return "%s is in use by another program: end that one (`fuser %s` names it)" % (device, device)
    if number in (errno.ENOTTY, errno.EISDIR) or "Could not configure port" in str(error):
        return "%s is not a serial device: name a terminal device as /dev/ttyUSB0" % device
    return "%s cannot be opened at %s baud: %s; try a usual speed as 115200" % (device, baud, error)


def window_for(baud: int, payload_size_max: int) -> int:
    """The window_size for a speed: what is on its way takes a second at most, so that answers come soon, and is two frames at least."""
    window_size = WINDOW_SIZES[0]
    while window_size * 2 <= min(baud // BITS, WINDOW_SIZE, payload_size_max * GRAIN_COUNT_MAX) or window_size < 2 * payload_size_max:
        window_size *= 2
    return window_size


def new_link(make_inner: Callable[[], Any] | None, baud: int, active: bool = False, **options: Any) -> Link:
    """A Link whose sizes and times fit the speed of the line; `options` as Link has them, before what would be chosen here."""
    fastest = max(baud, options.get("speed", 0))
    settings = {"receive_size": RECEIVE_SIZE, "stream_count": STREAM_COUNT, "stream_room": STREAM_ROOM}
    settings.update(options)
    if "window_size" not in settings:
        settings["window_size"] = window_for(fastest, options.get("payload_size_max", PAYLOAD_SIZE_MIN))
    settings.setdefault("payload_size_max", max(PAYLOAD_SIZE_MIN, min(PAYLOAD_SIZE, settings["window_size"] // 8)))
    on_its_way_ms = settings["window_size"] * BITS * 1000 // fastest
    keepalive_ms = max(KEEPALIVE_MS, 2 * on_its_way_ms)
    settings.setdefault("retransmit_ms", 100 + 2 * on_its_way_ms)
    settings.setdefault("keepalive_ms", keepalive_ms)
    settings.setdefault("dead_ms", max(DEAD_MS, 4 * keepalive_ms))
    return Link(make_inner, int.from_bytes(os.urandom(4), "big") % NONCE_MAX + 1, active, **settings)


def queue_max_for(baud: int, window_size: int) -> int:
    """Octets that may wait in a device."""
    return max(64, min(baud // BITS * QUEUE_MS // 1000, window_size // 4))


class Plug:
    """The endpoint that a loop sees: a Link or a Bus (`inner`) that outlives the device it speaks through.

    It asks for no more octets than keep the device busy for QUEUE_MS: what is sent again should not stand behind a long queue.
    """

    def __init__(self, inner: Any, stream: SerialStream, baud: int) -> None:
        self.closed = False
        self._inner = inner
        self._stream = stream
        self._baud = baud

    def writable(self) -> Any:
        return self._inner.writable()

    def received(self, size: int) -> None:
        if size == 0:
            self.closed = True
            self._inner.unplugged()
        elif not self.closed:
            self._inner.received(size)
            self.closed = self._inner.closed

    def pending(self) -> Any:
        if self.closed or self._stream.waiting() > queue_max_for(self._baud, self._inner.window_size):
            return NOTHING
        view = self._inner.pending()
        self.closed = self._inner.closed
        return view

    def sent(self, size: int) -> None:
        self._inner.sent(size)

    def tick(self, now: int) -> None:
        """The line tells its endpoint the time, also while there is no device."""


class SerialLine:
    """A serial device with the Link or Bus that speaks over it; opened again when it was unplugged, and the session goes on.

    The first opening is now and raises LineFailed; later ones are tried again and again, with pauses of 250 ms to 5 s.
    `trouble` is a sentence that says why there is no line, or why the other end cannot be worked with, else "". `stream` is the device.
    """

    def __init__(self, loop: Any, device: str, baud: int, endpoint: Any, links: Sequence[Any]) -> None:
        self.stream: "Any" = None
        self.links = links
        self._trouble = ""
        self._loop = loop
        self._device = device
        self._baud = baud
        self._endpoint = endpoint
        self._backoff = Backoff(REOPEN_MS_MIN, REOPEN_MS_MAX)
        self._pause_ms = 0
        self._tried_at = 0
        self._open()

    @property
    def trouble(self) -> str:
        return self._trouble or next((link.trouble for link in self.links if link.trouble), "")

    def figures(self) -> "dict[str, Any]":
        """For management: the line, whether there is one, and the counters of its links together."""
        made: dict[str, Any] = {"line": self._device, "plugged_in": self.plugged_in, "trouble": self.trouble, "links": len(self.links)}
        made["open"] = sum(link.is_open for link in self.links)
        for link in self.links:
            for name, count in link.counters:
                key = name.replace(" ", "_")
                made[key] = made.get(key, 0) + count
        return made

    @property
    def plugged_in(self) -> bool:
        """True while the device is open."""
        return self.stream is not None and not self.stream.closed

    def _open(self) -> None:
        self.stream = SerialStream(self._device, self._baud)
        self._loop.add(self.stream, Plug(self._endpoint, self.stream, self._baud))

    def tick(self, now: int) -> None:
        """To be called at each step of the loop; `now` as for endpoints."""
        self._endpoint.tick(now)
        if self.plugged_in:
            self._keep_speed()
        elif self._endpoint.closed:
            pass
        elif self._pause_ms == 0:
            self._trouble = "%s was unplugged" % self._device
            self._pause(now)
        elif elapsed(now, self._tried_at) >= self._pause_ms:
            self._try_again(now)

    def wait_ms(self) -> int:
        """How long a step of the loop may take, if nothing happens, without harm to the times on the line."""
        if not self.plugged_in:
            return STEP_MS_MAX
        if any(link.turns for link in self.links):
            return TURN_STEP_MS
        return QUEUE_STEP_MS if self.stream.waiting() else STEP_MS_MAX

    def leave(self) -> None:
        """Say that this end is done with its sessions; that is on the line when `is_leaving` is over."""
        for link in self.links:
            link.leave()

    def is_leaving(self) -> bool:
        """True while the end of a session is still to be said and the device is there."""
        return self.plugged_in and any(link.leaving for link in self.links)

    def _keep_speed(self) -> None:
        """Change the device's speed when the ends have agreed to, and all that was sent before is on the line."""
        link = self.links[0]
        if link.speed == link.speed_set or self.stream.waiting():
            return
        try:
            self.stream.set_speed(link.speed or self._baud)
        except LineFailed as error:
            self._trouble = str(error)
        link.speed_set = link.speed

    def _try_again(self, now: int) -> None:
        try:
            self._open()
        except LineFailed as error:
            self._trouble = str(error)
            self._pause(now)
            return
        self._trouble = ""
        self._pause_ms = 0
        self._backoff.reset()
        self._endpoint.plugged()

    def _pause(self, now: int) -> None:
        self._pause_ms = self._backoff.next_ms(int.from_bytes(os.urandom(4), "big"))
        self._tried_at = now


class SerialListener(SerialLine):
    """Waits for sessions on a serial device, and for the device when it is unplugged: a SerialLine with the passive end of a link.

    `make_inner(stream)`: the endpoint of a new connection, or None. `options` as Link has them; an `address` makes it a station of a
    half-duplex line.
    """

    def __init__(self, loop: Any, device: str, baud: int, make_inner: Callable[[Any], Any], **options: Any) -> None:
        link = new_link(lambda: make_inner(self.stream), baud, turns=bool(options.get("address")), **options)
        SerialLine.__init__(self, loop, device, baud, link, (link,))


def new_bus(baud: int, addresses: Iterable[int], **options: Any) -> Bus:
    """The master's end of a half-duplex line: a Bus with one active Link for each of `addresses`, in that order."""
    links = [new_link(None, baud, active=True, address=address, turns=True, **options) for address in addresses]
    return Bus(links, baud // BITS, receive_size=RECEIVE_SIZE)


class SerialConnection(Connection):
    """A client's Connection whose octets go through a Link; as for TCP it is over when the line or the session is."""

    def __init__(self, stream: SerialStream, baud: int, timeout_ms: int, settings: dict[str, Any]) -> None:
        self._link = new_link(self._client_once, baud, active=True)
        self._taken = False
        try:
            Connection.__init__(self, stream, timeout_ms, settings)
        except Timeout:
            if self._link.trouble:
                raise ConnectFailed(self._link.trouble) from None
            raise

    def _client_once(self) -> Any:
        """The one inner endpoint: a second session would be another connection."""
        taken, self._taken = self._taken, True
        return None if taken else self._client

    def step(self, timeout_ms: int) -> None:
        """As Connection.step; returns after 50 ms at the latest, so that the link keeps its times."""
        self._move(min(timeout_ms, STEP_MS_MAX) if self._end is None else 0)
        if self._end is None and self._link.closed:
            self._client.received(0)
        if self._end is not None:
            self._say_goodbye()
            self._stream.close()
            raise ConnectionLost("the connection over %s is over: %s" % (self._stream.name, self._end[1]), self._end[0], self._end[1])

    def _move(self, timeout_ms: int) -> None:
        """Send pending octets, wait until the line can be read, and read it."""
        link = self._link
        self._poll.modify(self._stream.pollable, select.POLLIN | select.POLLOUT if self._write() else select.POLLIN)
        if self._poll.poll(timeout_ms):
            count = self._stream.read_into(link.writable())
            if count is not None:
                link.received(count)
        link.tick(now_ms())
        self._write()

    def _write(self) -> bool:
        """Write until no octets are pending or the device accepts no more. Returns True when some are left."""
        pending = self._link.pending()
        while pending:
            count = self._stream.write(pending)
            if count is None:
                return True
            if count == 0:
                self._link.received(0)
                return False
            self._link.sent(count)
            pending = self._link.pending()
        return False

    def _say_goodbye(self) -> None:
        """Send the last octets and the session's END, for at most a second."""
        started = now_ms()
        while self._link.is_open and elapsed(now_ms(), started) < GOODBYE_MS:
            self._move(STEP_MS_MAX)
        self._write()


def read_serial_url(url: str) -> tuple[str, int, dict[str, str]]:
    """The device, its speed in baud, and the log-in arguments of core's Client, of a client's URL. Raises ValueError with a sentence.

        serial://user:password@/dev/ttyX?baud=115200

    Left out: guest, guest, 115200. User and password are percent-encoded as those of ports/url.py; a / in them is %2F.
    """
    whole, _, query = url[len("serial://") :].partition("?")
    login, slash, path = whole.partition("/")
    user, _, password = login[:-1].partition(":") if login else ("guest", "", "guest")
    if not path or login[-1:] not in ("", "@"):
        raise ValueError(
            "a serial line is serial:///dev/ttyX, or serial://USER:PASSWORD@/dev/ttyX with / as %2F and @ as %40 in its log-in"
        )
    name, _, text = query.partition("=")
    if query and (name != "baud" or not (text.isascii() and text.isdigit())):
        raise ValueError("behind the ? of a client's serial line there is baud=NUMBER and nothing else")
    user, password = unquote(user), unquote(password)
    if len(user) + len(password) > LOGIN_SIZE_MAX:
        raise ValueError("user and password have %d characters together at most" % LOGIN_SIZE_MAX)
    return slash + path, int(text or BAUD), {"user": user, "password": password}


def connect_serial(device: str, baud: int, timeout_ms: int = 10000, **options: Any) -> SerialConnection:
    """A Connection to the broker at the other end of `device`; arguments and errors as `client.connect`."""
    settings = dict(SIZES)
    settings.update(options)
    try:
        stream = SerialStream(device, baud)
    except LineFailed as error:
        raise ConnectFailed(str(error)) from None
    try:
        return SerialConnection(stream, baud, timeout_ms, settings)
    except Timeout:
        stream.close()
        raise ConnectFailed("no broker answers on %s at %d baud in %d ms" % (device, baud, timeout_ms)) from None
    except ClientError:
        stream.close()
        raise
