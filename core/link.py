"""A reliable link over a line that flips, drops, doubles and invents octets: the endpoint between a serial stream and a connection.

Towards the stream a Link is an endpoint; it carries one endpoint inside (same contract: DESIGN.md section 1). What the peer's inner
endpoint sends arrives in this one's `writable()`, whole, in order, once. One end of a line is the active one and asks for a session,
the other waits for it.

    kind     | sequence            | acknowledged    | payload
    DATA     | its number          | all before this | octets of the inner endpoint
    ANSWER   | 0                   | all before this | -          go on: room is there
    BUSY     | 0                   | all before this | -          the inner endpoint takes no more now: send no data
    REJECT   | 0                   | all before this | -          one was missing: send again from here
    PING     | next to be sent     | all before this | -          say where you are (ANSWER, BUSY or REJECT)
    HELLO    | 0                   | 0               | version 1, payload_size_max 2, nonce 4, 0 4          active end: let us begin
    WELCOME  | 0                   | 0               | version 1, payload_size_max 2, nonce 4, peer's nonce 4   the other: begun
    RESET    | 0                   | 0               | -          there is no session (any more)

Laws: the line keeps the order of what it does not destroy, so a frame of an old session can only come before the handshake of the new one.
Both nonces belong to a session; either one new means a peer that began again: the inner endpoint gets `received(0)`, the next session
has a new one. A frame is acknowledged when the inner endpoint has taken all of it: a slow one holds one frame here and stops the peer.
Nothing is sent again on a clock alone: when an acknowledgement is overdue a PING asks, and the answer says what is missing.
All buffers are made in the constructor: (window + 4) x payload_size_max + receive_size octets. With its objects a Link takes 5,008 octets
of a 32-bit MicroPython heap as it stands, 2,320 with window 4, payload_size_max 128, receive_size 64. Numbers stay below 2^30,
but for a CRC-32 and a foreign nonce, once in a frame.

What it does not do yet: send again only what is missing (it goes back to the first missing frame), resume a session over a
re-opened device, several connections on a line (bits 6 and 7 of `kind` are kept 0 for that).
"""

from struct import pack_into, unpack_from

from .link_frame import CHECK_32, HEADER_SIZE, FrameReader, FrameWriter
from .link_window import SEQUENCE_MASK, SendWindow
from .shim import const, copy, elapsed

_DATA = const(1)
_ANSWER = const(2)
_BUSY = const(3)
_REJECT = const(4)
_PING = const(5)
_HELLO = const(6)
_WELCOME = const(7)
_RESET = const(8)
_NAME_MASK = const(0x0F)
_FROM_ACTIVE = const(0x10)

# What is to be sent before data: bits, so that a flood of requests stays one answer.
_DUE_RESET = const(1)
_DUE_HELLO = const(2)
_DUE_WELCOME = const(4)
_DUE_REJECT = const(8)
_DUE_BUSY = const(16)
_DUE_ANSWER = const(32)
_DUE_PING = const(64)
_DUE_ACKNOWLEDGE = const(128)  # any frame does, data too

_WAITING = const(0)  # for a HELLO
_OPENING = const(1)  # HELLO is out
_OPEN = const(2)
_ENDED = const(3)

_VERSION = const(1)
_GREETING = ">BHII"
_GREETING_SIZE = const(11)
NONCE_MAX = 0x3FFFFFFF
_NO_GAP = const(255)


class Link:
    """One end of the line.

    `make_inner()` gives the inner endpoint of a new session, or None to refuse it. `nonce`: 1 to NONCE_MAX, another one each time the
    program starts (the port takes it from the system's randomness). `active`: this end asks for the session; it is `closed` when its
    inner endpoint is and everything has arrived, or when `make_inner` refuses; the other end then waits for the next HELLO.
    `window` 1, 2, 4 ... 64 frames; `payload_size_max` 16 to 4096 octets of a frame, the smaller one of both ends counts;
    `check_size` 4 (CRC-32) or 2 (CRC-16: once in 65,536 damaged frames goes unseen); `receive_size` 16 to 65536 octets read at once.
    `retransmit_ms`: an acknowledgement is overdue, at least what a full window takes on the line, both ways. `keepalive_ms`: after so
    much silence ask whether the peer is there. `dead_ms`: it is not; the session ends. Raises ValueError for a value out of range.
    """

    def __init__(self, make_inner, nonce, active=False, window=8, payload_size_max=256, check_size=4, receive_size=512,
                 retransmit_ms=500, keepalive_ms=5000, dead_ms=15000):
        require(1 <= nonce <= NONCE_MAX, "nonce must be from 1 to 2^30 - 1")
        require(window in (1, 2, 4, 8, 16, 32, 64), "window must be 1, 2, 4, 8, 16, 32 or 64 frames")
        require(16 <= payload_size_max <= 4096, "payload_size_max must be from 16 to 4096 octets")
        require(check_size in (2, 4), "check_size must be 2 or 4 octets")
        require(16 <= receive_size <= 65536, "receive_size must be from 16 to 65536 octets")
        require(1 <= retransmit_ms <= keepalive_ms < dead_ms < 1 << 28, "retransmit_ms <= keepalive_ms < dead_ms < 2^28 must hold")
        self.closed = False
        self.inner = None
        self._make_inner = make_inner
        self._active = active
        self._retransmit_ms = retransmit_ms
        self._keepalive_ms = keepalive_ms
        self._dead_ms = dead_ms
        self._payload_size_max = payload_size_max
        self._mark = (_FROM_ACTIVE if active else 0) | (CHECK_32 if check_size == 4 else 0)
        self._nonce = nonce
        self._peer_nonce = 0
        self._peer_mark = 0
        self._payload_size = payload_size_max
        self._state = _OPENING if active else _WAITING
        self._due = _DUE_HELLO if active else 0
        self._receive = memoryview(bytearray(receive_size))
        self._nothing = memoryview(b"")
        self._reader = FrameReader(payload_size_max)
        self._writer = FrameWriter(payload_size_max)
        self._small = bytearray(_GREETING_SIZE)
        self._window = SendWindow(window, payload_size_max)
        self._held = memoryview(bytearray(payload_size_max))
        self._held_start = self._held_end = 0
        self._expected = 0
        self._gap = _NO_GAP
        self._peer_busy = False
        self._said_busy = False
        self._line_silent = True
        self._now = 0
        self._ticking = False
        self._heard_at = 0
        self._asked_at = 0
        self.session_count = 0
        self.sent_count = 0
        self.resent_count = 0
        self.received_count = 0
        self.discarded_count = 0
        self.foreign_count = 0

    @property
    def is_open(self):
        """True while there is a session."""
        return self._state == _OPEN

    @property
    def bad_count(self):
        """Pieces off the line that were no whole frame."""
        return self._reader.bad_count

    # The endpoint that the stream sees

    def writable(self):
        return self._nothing if self.closed else self._receive

    def received(self, size):
        if self.closed:
            return
        if size == 0:
            self._end_session(_ENDED)
            self._writer.clear()
            self._due = 0
            return
        at = 0
        while at < size:
            at = self._reader.take(self._receive, at, size)
            if self._reader.size and not self.closed:
                self._take_frame(self._reader.octets, self._reader.size)

    def pending(self):
        writer = self._writer
        if writer.start == writer.end:
            self._look_after_inner()
            self._compose()
            self._line_silent = writer.start == writer.end
        return writer.octets[writer.start:writer.end]

    def sent(self, size):
        self._writer.start += size

    def tick(self, now):
        if not self._ticking:
            self._ticking = True
            self._heard_at = self._asked_at = now
        self._now = now
        if self._state == _OPENING:
            if elapsed(now, self._asked_at) >= self._retransmit_ms:
                self._ask(_DUE_HELLO)
        elif self._state == _OPEN:
            if elapsed(now, self._heard_at) >= self._dead_ms:
                self._lose_session()
            else:
                self._ask_when_overdue(now)
                self.inner.tick(now)

    # Time

    def _ask(self, due):
        self._due |= due
        self._asked_at = self._now

    def _ask_when_overdue(self, now):
        asked_ms = elapsed(now, self._asked_at)
        if asked_ms < self._retransmit_ms:
            return
        waiting = self._peer_busy or self._window.outstanding() > 0
        if waiting or (elapsed(now, self._heard_at) >= self._keepalive_ms and asked_ms >= self._keepalive_ms):
            self._ask(_DUE_PING)

    # Sessions

    def _begin_session(self, peer_nonce, peer_mark, payload_size):
        """True when there is an inner endpoint for it."""
        self.inner = self._make_inner()
        if self.inner is None:
            return False
        self._state = _OPEN
        self._peer_nonce = peer_nonce
        self._peer_mark = peer_mark
        self._payload_size = min(payload_size, self._payload_size_max)
        self._window.reset()
        self._held_start = self._held_end = 0
        self._expected = 0
        self._gap = _NO_GAP
        self._peer_busy = False
        self._said_busy = False
        self._heard_at = self._asked_at = self._now
        self.session_count += 1
        return True

    def _end_session(self, state):
        inner = self.inner
        self.inner = None
        self._due = 0
        self._state = state
        self.closed = state == _ENDED
        if inner is not None and not inner.closed:
            inner.received(0)

    def _lose_session(self):
        """The peer is gone, or knows nothing of this session: the active end asks for a new one, after a pause of `retransmit_ms`."""
        if self._active:
            self._end_session(_OPENING)
            self._next_nonce()
            self._asked_at = self._now
        else:
            self._end_session(_WAITING)
            self._due = _DUE_RESET

    def _next_nonce(self):
        self._nonce = self._nonce % NONCE_MAX + 1

    def _look_after_inner(self):
        """Give it what waits for room; when it is closed and all it sent has arrived, end the session."""
        inner = self.inner
        if inner is None:
            return
        if self._held_start < self._held_end:
            self._held_start = self._deliver(self._held, self._held_start, self._held_end)
            if self._held_start == self._held_end:
                self._accept()
        if inner.closed and self._window.outstanding() == 0 and len(inner.pending()) == 0:
            self._end_session(_ENDED if self._active else _WAITING)
            self._due = _DUE_RESET

    def _greet(self, name, octets, size):
        """A HELLO or WELCOME. One with a wrong size, version or nonce is counted and not answered."""
        fits = size == HEADER_SIZE + _GREETING_SIZE
        version, payload_size, nonce, echo = unpack_from(_GREETING, octets, HEADER_SIZE) if fits else (0, 0, 0, 0)
        if version != _VERSION or payload_size == 0 or not 0 < nonce <= NONCE_MAX or (name == _HELLO) == self._active:
            self.foreign_count += 1
        elif name == _HELLO:
            self._greeted(nonce, octets[0], payload_size)
        elif echo == self._nonce:
            self._welcomed(nonce, octets[0], payload_size)

    def _greeted(self, nonce, mark, payload_size):
        if self._state == _OPEN and nonce == self._peer_nonce:
            self._due |= _DUE_WELCOME
            return
        self._end_session(_WAITING)
        self._next_nonce()
        self._due = _DUE_WELCOME if self._begin_session(nonce, mark, payload_size) else _DUE_RESET

    def _welcomed(self, nonce, mark, payload_size):
        if self._state == _OPEN:
            if nonce != self._peer_nonce:
                self._lose_session()
        elif self._begin_session(nonce, mark, payload_size):
            self._due = 0
        else:
            self._end_session(_ENDED)
            self._due = _DUE_RESET

    # Frames off the line

    def _take_frame(self, octets, size):
        kind = octets[0]
        name = kind & _NAME_MASK
        if (kind & _FROM_ACTIVE != 0) == self._active or kind > 0x3F:
            self.foreign_count += 1  # our own echo, or not of this version
        elif name == _HELLO or name == _WELCOME:
            self._greet(name, octets, size)
        elif self._state != _OPEN:
            self.discarded_count += 1
            if self._state == _WAITING and name != _RESET:
                self._due |= _DUE_RESET
        elif name == _RESET:
            self._lose_session()
            self._due &= ~_DUE_RESET
        elif (kind ^ self._peer_mark) & CHECK_32 or not self._window.is_known(octets[2]):
            self.foreign_count += 1
        else:
            self._heard_at = self._now
            if self._window.release(octets[2]):
                self._asked_at = self._now
            self._follow(name, octets, size)

    def _follow(self, name, octets, size):
        """A frame of the session; what it acknowledges is done."""
        if name == _DATA:
            self._take_data(octets, size)
        elif name == _PING:
            self._answer_where(octets[1])
        elif name == _BUSY:
            self._peer_busy = True
        elif name == _REJECT or (name == _ANSWER and self._peer_busy):
            self._peer_busy = False
            self.resent_count += self._window.go_back()
            self._asked_at = self._now
        elif name != _ANSWER:
            self.foreign_count += 1

    def _answer_where(self, sequence):
        """PING: `sequence` is what the peer sends next; when we expect an earlier one, that one was lost."""
        if self._held_end:
            self._due |= _DUE_BUSY
        elif 0 < (sequence - self._expected) & SEQUENCE_MASK < 128:
            self._due |= _DUE_REJECT
        else:
            self._due |= _DUE_ANSWER
        self._gap = _NO_GAP

    def _take_data(self, octets, size):
        distance = (octets[1] - self._expected) & SEQUENCE_MASK
        if distance == 0 and self._held_end == 0 and size - HEADER_SIZE <= len(self._held):
            self._take_expected(octets, size)
            return
        self.discarded_count += 1
        if self._held_end:
            self._due |= _DUE_BUSY
        elif distance >= 128:
            self._due |= _DUE_ACKNOWLEDGE
        else:
            # Numbers rise while the peer sends on; a step back means it has gone back and the missing frame was lost again.
            if distance <= self._gap:
                self._due |= _DUE_REJECT
            self._gap = distance

    def _take_expected(self, octets, size):
        self.received_count += 1
        self._gap = _NO_GAP
        at = self._deliver(octets, HEADER_SIZE, size)
        if at == size:
            self._accept()
            return
        copy(self._held, 0, octets, at, size - at)
        self._held_start = 0
        self._held_end = size - at
        self._due |= _DUE_BUSY

    def _accept(self):
        """The inner endpoint has all of the expected frame."""
        self._held_start = self._held_end = 0
        self._expected = (self._expected + 1) & SEQUENCE_MASK
        self._due = self._due & ~_DUE_BUSY | (_DUE_ANSWER if self._said_busy else _DUE_ACKNOWLEDGE)

    def _deliver(self, source, at, end):
        """Give source[at:end] to the inner endpoint, as far as it takes it; returns where it stopped."""
        inner = self.inner
        while at < end:
            view = inner.writable()
            size = min(len(view), end - at)
            if size == 0:
                break
            copy(view, 0, source, at, size)
            inner.received(size)
            at += size
        return at

    # Frames onto the line

    def _compose(self):
        """Make the next frame, if there is anything to say."""
        due = self._due
        if due & _DUE_RESET:
            self._put(_RESET, 0, 0, self._small, 0)
            self._due = due & ~_DUE_RESET
        elif due & (_DUE_HELLO | _DUE_WELCOME):
            pack_into(_GREETING, self._small, 0, _VERSION, self._payload_size_max, self._nonce, 0 if self._active else self._peer_nonce)
            self._put(_HELLO if self._active else _WELCOME, 0, 0, self._small, _GREETING_SIZE)
            self._due = due & ~(_DUE_HELLO | _DUE_WELCOME)
        elif self._state == _OPEN:
            self._compose_in_session(due)

    def _compose_in_session(self, due):
        # Data acknowledges too, but only an ANSWER ends the peer's waiting after BUSY.
        if due & _DUE_REJECT:
            self._say(_REJECT)
        elif due & _DUE_BUSY:
            self._say(_BUSY)
        elif due & _DUE_ANSWER:
            self._say(_ANSWER)
        elif due & _DUE_PING:
            self._put(_PING, self._window.cursor, self._expected, self._small, 0)
            self._due = due & ~(_DUE_PING | _DUE_ACKNOWLEDGE)
        elif not self._compose_data() and due & _DUE_ACKNOWLEDGE:
            self._say(_ANSWER)

    def _say(self, name):
        """Where we are: this one frame is the answer to everything that asked for one."""
        self._put(name, 0, self._expected, self._small, 0)
        self._due &= ~(_DUE_REJECT | _DUE_BUSY | _DUE_ANSWER | _DUE_ACKNOWLEDGE)
        self._said_busy = name == _BUSY

    def _compose_data(self):
        """True when a frame of data goes out."""
        window = self._window
        if self._peer_busy:
            return False
        if window.cursor == window.next and not self._fill(window):
            return False
        self._put(_DATA, window.cursor, self._expected, window.payload(), window.payload_size())
        window.step()
        self.sent_count += 1
        self._due &= ~_DUE_ACKNOWLEDGE
        return True

    def _fill(self, window):
        """Move what the inner endpoint has to send into the window; True when there was something and room."""
        if not window.has_room():
            return False
        view = self.inner.pending()
        size = min(len(view), self._payload_size)
        if size == 0:
            return False
        if window.outstanding() == 0:
            self._asked_at = self._now
        window.put(view, size)
        self.inner.sent(size)
        return True

    def _put(self, name, sequence, acknowledged, payload, size):
        self._writer.put(name | self._mark, sequence, acknowledged, payload, size, self._line_silent)


def require(holds, reason):
    """Raise ValueError(reason) unless `holds`."""
    if not holds:
        raise ValueError(reason)
