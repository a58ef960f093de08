"""Serial devices for CPython, through pyserial: a line as a stream, a listener that opens its device again, a client's connection.

A UART, a USB adapter or a pseudo-terminal carries a Link (core/link.py), which carries the AMQP connection. Laws: a device is opened for
this process alone; nothing here blocks; what goes wrong is one sentence that says what to do (`LineFailed`). pyserial opens the device and
sets it up; octets go straight through its file descriptor, because pyserial's own read cannot tell "nothing yet" from "unplugged".
It decides nothing about octets, and it runs where `select.poll` and termios are (Linux, macOS).
"""

import errno
import os
import select
import termios

import serial

from ..core.backoff import Backoff
from ..core.link import NONCE_MAX, Link
from ..core.shim import elapsed
from .client import SIZES, ClientError, ConnectFailed, Connection, ConnectionLost, Timeout
from .clock import now_ms

WINDOW = 8  # frames
PAYLOAD_SIZE = 256  # octets
RECEIVE_SIZE = 4096
FRAME_BITS = (PAYLOAD_SIZE + 8) * 10  # on the line: header, check and flag with it, a start and a stop bit for each octet
REOPEN_MS_MIN, REOPEN_MS_MAX = 250, 5000
STEP_MS_MAX = 50
GOODBYE_MS = 1000
GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF)


class LineFailed(Exception):
    """A serial device cannot be opened; str() says why and what to do."""


class SerialStream:
    """An open serial device as a stream (core/DESIGN.md section 2). Raises LineFailed."""

    def __init__(self, device, baud):
        self.name = device
        self.closed = False
        try:
            self._port = serial.Serial(device, baud, timeout=0, write_timeout=0, exclusive=True)
        except (OSError, ValueError, OverflowError, termios.error) as error:
            raise LineFailed(explain(device, baud, error)) from None
        self.pollable = self._port.fileno()
        self._report_nothing_as_an_error()

    def _report_nothing_as_an_error(self):
        """With VMIN 0, as pyserial leaves it, a read of nothing looks like the end; with VMIN 1 it is EAGAIN."""
        settings = termios.tcgetattr(self.pollable)
        settings[6][termios.VMIN] = 1
        termios.tcsetattr(self.pollable, termios.TCSANOW, settings)

    def read_into(self, view):
        """Octets read; 0: unplugged; None: nothing now."""
        try:
            return os.readv(self.pollable, [view])
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in GONE:
                return 0
            raise

    def write(self, view):
        """Octets written; None: no room now; 0: unplugged."""
        try:
            return os.write(self.pollable, view)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in GONE:
                return 0
            raise

    def close(self):
        """Give the device back; the system sends what it still holds."""
        self.closed = True
        self._port.close()


def explain(device, baud, error):
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


def new_link(make_inner, baud, active=False):
    """A Link whose times fit the speed of the line."""
    retransmit_ms = 100 + 2 * WINDOW * FRAME_BITS * 1000 // baud
    keepalive_ms = max(5000, retransmit_ms)
    nonce = int.from_bytes(os.urandom(4), "big") % NONCE_MAX + 1
    return Link(make_inner, nonce, active, window=WINDOW, payload_size_max=PAYLOAD_SIZE, receive_size=RECEIVE_SIZE,
                retransmit_ms=retransmit_ms, keepalive_ms=keepalive_ms, dead_ms=3 * keepalive_ms)


class SerialListener:
    """Waits for sessions on a serial device, and for the device when it is unplugged.

    `make_inner(stream)`: the endpoint of a new session, or None. The first opening is now and raises LineFailed; later ones are tried
    again and again, with pauses of 250 ms to 5 s; `trouble` is then the sentence that says why there is no line, else "".
    """

    def __init__(self, loop, device, baud, make_inner):
        self.trouble = ""
        self._loop = loop
        self._device = device
        self._baud = baud
        self._make_inner = make_inner
        self._backoff = Backoff(REOPEN_MS_MIN, REOPEN_MS_MAX)
        self._pause_ms = 0
        self._tried_at = 0
        self._open()

    def _open(self):
        stream = SerialStream(self._device, self._baud)
        self._stream = stream
        self._loop.add(stream, new_link(lambda: self._make_inner(stream), self._baud))

    def tick(self, now):
        """To be called at each step of the loop; `now` as for endpoints."""
        if not self._stream.closed:
            return
        if self._pause_ms == 0:
            self.trouble = "%s was unplugged" % self._device
            self._pause(now)
        elif elapsed(now, self._tried_at) >= self._pause_ms:
            self._try_again(now)

    def _try_again(self, now):
        try:
            self._open()
        except LineFailed as error:
            self.trouble = str(error)
            self._pause(now)
            return
        self.trouble = ""
        self._pause_ms = 0
        self._backoff.reset()

    def _pause(self, now):
        self._pause_ms = self._backoff.next_ms(int.from_bytes(os.urandom(4), "big"))
        self._tried_at = now


class SerialConnection(Connection):
    """A client's Connection whose octets go through a Link; as for TCP it is over when the line or the session is."""

    def __init__(self, stream, baud, timeout_ms, settings):
        self._link = new_link(self._take_client, baud, active=True)
        self._taken = False
        Connection.__init__(self, stream, timeout_ms, settings)

    def _take_client(self):
        """The one inner endpoint: a second session would be another connection."""
        taken, self._taken = self._taken, True
        return None if taken else self._client

    def step(self, timeout_ms):
        """As Connection.step; returns after 50 ms at the latest, so that the link keeps its times."""
        self._move(min(timeout_ms, STEP_MS_MAX) if self._end is None else 0)
        if self._end is None and self._link.closed:
            self._client.received(0)
        if self._end is not None:
            self._say_goodbye()
            self._stream.close()
            raise ConnectionLost("the connection over %s is over: %s" % (self._stream.name, self._end[1]), self._end[0], self._end[1])

    def _move(self, timeout_ms):
        """Send what is pending, wait for something to read and take it."""
        link = self._link
        self._poll.modify(self._stream.pollable, select.POLLIN | select.POLLOUT if self._write() else select.POLLIN)
        if self._poll.poll(timeout_ms):
            count = self._stream.read_into(link.writable())
            if count is not None:
                link.received(count)
        link.tick(now_ms())
        self._write()

    def _write(self):
        """Write until nothing is pending or the line takes no more; True when something is left."""
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

    def _say_goodbye(self):
        """Let the peer have the last octets and the end of the session, for a second at most."""
        started = now_ms()
        while self._link.is_open and elapsed(now_ms(), started) < GOODBYE_MS:
            self._move(STEP_MS_MAX)
        self._write()


def connect_serial(device, baud, timeout_ms=10000, **options):
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
