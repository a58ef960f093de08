"""Several connections on one serial link: streams of octets, each with an endpoint of its own and room of its own.

    first octet         | then
    DATA   0 | stream   | size 2 | octets of that stream
    OPEN   64 | stream  |                          from the active end: a new connection
    CREDIT 128 | stream | size 2                   so many octets more may be sent
    CLOSE  192 | stream |                          no more comes from here

Laws: an end sends no more of a stream than it has credit for, and an end gives credit for free room: so a stream whose endpoint reads
slowly holds `room` octets here, and stops neither the line nor the other streams. Streams take turns, a record each. A number is free again
when both ends have closed it; after its CLOSE an end sends nothing more for it. Buffers are made in the constructor: count x room + 3 x
(record_size + 3) octets. A broken rule is the fault of a wrong peer, not of a damaged octet (the link has none): `broken` says so, and the
session ends.
"""

from struct import pack_into

from ..shim import const, copy, elapsed, octets, table

_DATA = const(0)
_OPEN = const(0x40)
_CREDIT = const(0x80)
_CLOSE = const(0xC0)
_KIND_MASK = const(0xC0)
_NUMBER_MASK = const(0x3F)
_HEADER_SIZE = const(3)
_PIECE_MIN = const(16)  # no record is begun for less room

STREAM_COUNT_MAX = 64
ROOM_MAX = 32768

# Records to send for a stream, and those sent: bits.
_SAY_OPEN = const(1)
_SAY_CLOSE = const(2)
_IN_USE = const(4)
_CLOSED_HERE = const(8)
_CLOSED_THERE = const(16)

_PATIENCE_MS = const(5000)  # how long an inner endpoint may leave the last octets of a closed stream unread


class Streams:
    """The inner endpoint of a link. `make_inner()`: the endpoint of a stream that the peer opens, or None to refuse it.

    With make_inner None, at the active end, the peer opens none. `count` (up to 64) streams, `room` octets kept for each, records of
    `record_size` octets. `closed` never is; see `broken` and `in_use`.
    """

    def __init__(self, make_inner, count, room, record_size):
        self.broken = False
        self.closed = False
        self.count = count
        self._make_inner = make_inner
        self._room = room
        self._record_size = record_size
        self._inners = [None] * count
        self._states = bytearray(count)
        self._credits = table(count)
        self._owed = table(count)  # octets of credit to be given back
        self._held = octets(count * room)
        self._held_start = table(count)
        self._held_end = table(count)
        self._moved_at = table(count)
        self._in = memoryview(bytearray(record_size + _HEADER_SIZE))
        self.octets = memoryview(bytearray(2 * (record_size + _HEADER_SIZE)))
        self._header = bytearray(_HEADER_SIZE)
        self._now = 0
        self.begin(count)

    def begin(self, count):
        """Begin a session with at most `count` streams: both ends have room for so many."""
        self.count = min(count, len(self._inners))
        self.broken = False
        self.start = self.end = 0
        self._turn = 0
        self._fill = 0
        self._left = 0  # octets of a record's payload that are still to come
        self._number = 0

    def end_all(self):
        """End every connection: the session is over."""
        for number in range(len(self._inners)):
            inner = self._inners[number]
            self._forget(number)
            if inner is not None and not inner.closed:
                inner.received(0)
        self.start = self.end = 0

    def open(self, inner):
        """Open a stream for `inner`; false when all are in use."""
        for number in range(self.count):
            if self._states[number] == 0:
                self._attach(number, inner)
                self._states[number] |= _SAY_OPEN
                return True
        return False

    def in_use(self):
        """How many streams are in use."""
        return self.count - self._states[: self.count].count(b"\x00")

    # The endpoint that the link sees

    def writable(self):
        return self._in

    def received(self, size):
        at = 0
        while at < size and not self.broken:
            if self._left:
                piece = min(self._left, size - at)
                self._process_octets(self._number, at, piece)
                self._left -= piece
                at += piece
            else:
                self._header[self._fill] = self._in[at]
                self._fill += 1
                at += 1
                if self._fill == self._header_size():
                    self._fill = 0
                    self._process_header()

    def out_buffer(self):
        """Itself: octets[start:end] wait to be sent."""
        if self.end - self.start < self._record_size:
            self._top_up()
        return self

    def sent(self, size):
        self.start += size

    def tick(self, now):
        self._now = now
        for number in range(self.count):
            inner = self._inners[number]
            if inner is None:
                continue
            inner.tick(now)
            if self._states[number] & _CLOSED_THERE and elapsed(now, self._moved_at[number]) >= _PATIENCE_MS:
                self._held_start[number] = self._held_end[number]  # octets that it does not accept now it never accepts

    # Records off the line

    def _header_size(self):
        kind = self._header[0] & _KIND_MASK
        return _HEADER_SIZE if kind == _DATA or kind == _CREDIT else 1

    def _process_header(self):
        kind = self._header[0] & _KIND_MASK
        number = self._header[0] & _NUMBER_MASK
        size = self._header[1] << 8 | self._header[2]
        if kind == _OPEN:
            self._opened(number)
        elif number >= self.count or not self._states[number] & _IN_USE or self._states[number] & _CLOSED_THERE:
            self.broken = True
        elif kind == _CREDIT:
            self._credits[number] += size
            self.broken = self._credits[number] > 0xFFFF
        elif kind == _CLOSE:
            self._states[number] |= _CLOSED_THERE
            self._moved_at[number] = self._now
            self._look_after(number)
            self._free(number)
        else:
            self._number = number
            self._left = size

    def _opened(self, number):
        if self._make_inner is None or number >= self.count or self._states[number]:
            self.broken = True
            return
        self._attach(number, self._make_inner())

    def _attach(self, number, inner):
        """Give a stream its endpoint `inner`; None: refuse the stream."""
        self._inners[number] = inner
        self._states[number] = _IN_USE
        self._credits[number] = 0
        self._owed[number] = self._room
        self._held_start[number] = self._held_end[number] = 0

    def _process_octets(self, number, at, size):
        """Give in[at:at + size] to the endpoint of this stream; octets that it does not accept now stay here."""
        inner = self._inners[number]
        end = at + size
        if inner is None or inner.closed:
            return  # the stream has no endpoint, and the peer gets a CLOSE
        if self._held_start[number] == self._held_end[number]:
            at = self._deliver(number, inner, self._in, at, end)
        if at < end and not self._hold(number, at, end):
            self.broken = True

    def _hold(self, number, at, end):
        """Keep in[at:end]; false when these are more octets than the peer had credit for."""
        size = end - at
        base = number * self._room
        start = self._held_start[number]
        stop = self._held_end[number]
        if stop - start + size > self._room:
            return False
        if start == stop:
            self._moved_at[number] = self._now
        if stop + size > self._room:
            copy(self._held, base, self._held, base + start, stop - start)
            stop -= start
            self._held_start[number] = 0
        copy(self._held, base + stop, self._in, at, size)
        self._held_end[number] = stop + size
        return True

    def _deliver(self, number, inner, source, at, end):
        """Give source[at:end] to the endpoint as far as it has room; returns where it stopped."""
        while at < end and not inner.closed:
            size = put_in(inner, source, at, end - at)
            if size == 0:
                return at
            inner.received(size)
            at += size
            self._owed[number] += size
        return end

    def _look_after(self, number):
        """Hand over waiting octets, pass on the peer's end, note ours."""
        inner = self._inners[number]
        state = self._states[number]
        start = self._held_start[number]
        end = self._held_end[number]
        if inner is not None and start < end:
            base = number * self._room
            at = self._deliver(number, inner, self._held, base + start, base + end) - base
            if at != start:
                self._moved_at[number] = self._now
            start = self._held_start[number] = at
        over = inner is None or (inner.closed and len(inner.pending()) == 0)
        if state & _CLOSED_THERE and start == end and not over:
            inner.received(0)
            over = True
        if over and not state & _CLOSED_HERE:
            self._states[number] |= _CLOSED_HERE | _SAY_CLOSE
            self._inners[number] = None
            self._held_start[number] = self._held_end[number] = 0

    def _free(self, number):
        """Free the number when both ends have closed it."""
        if self._states[number] & (_CLOSED_HERE | _CLOSED_THERE | _SAY_CLOSE) == _CLOSED_HERE | _CLOSED_THERE:
            self._forget(number)

    def _forget(self, number):
        self._inners[number] = None
        self._states[number] = 0

    # Records onto the line

    def _top_up(self):
        """Put records behind the waiting ones, as far as there is room: the streams in turn, each its CREDIT, OPEN or CLOSE and one piece
        of data."""
        left = self.end - self.start
        if left:
            copy(self.octets, 0, self.octets, self.start, left)
        self.start = 0
        self.end = left
        silent = 0
        while silent < self.count and len(self.octets) - self.end > _PIECE_MIN + 4 * _HEADER_SIZE:
            number = self._turn
            self._turn = (number + 1) % self.count
            end = self.end
            if self._states[number] & _IN_USE:
                self._look_after(number)
                self._say(number)
            silent = silent + 1 if end == self.end else 0

    def _say(self, number):
        state = self._states[number]
        if state & _SAY_OPEN:
            self._record(_OPEN | number, 0)
        if self._owed[number] * 4 >= self._room and not state & (_CLOSED_HERE | _CLOSED_THERE):
            self._record(_CREDIT | number, self._owed[number])
            self._owed[number] = 0
        if self._inners[number] is not None and not state & _CLOSED_HERE:
            self._say_data(number)
        if state & _SAY_CLOSE:
            self._record(_CLOSE | number, 0)
        self._states[number] = state & ~(_SAY_OPEN | _SAY_CLOSE)
        self._free(number)

    def _say_data(self, number):
        room = len(self.octets) - self.end - 2 * _HEADER_SIZE
        size = min(self._credits[number], self._record_size, room)
        if size <= 0 or room < _PIECE_MIN:
            return
        inner = self._inners[number]
        if hasattr(inner, "out_buffer"):
            out = inner.out_buffer()
            source, start, waiting = out.octets, out.start, out.end - out.start
        else:
            source, start = inner.pending(), 0
            waiting = len(source)
        size = min(size, waiting)
        if size == 0:
            return
        self._record(_DATA | number, size)
        copy(self.octets, self.end, source, start, size)
        self.end += size
        self._credits[number] -= size
        inner.sent(size)

    def _record(self, octet, size):
        """Write the head of a record; `size` counts where the kind has one."""
        self.octets[self.end] = octet
        self.end += 1
        kind = octet & _KIND_MASK
        if kind == _DATA or kind == _CREDIT:
            pack_into(">H", self.octets, self.end, size)
            self.end += 2


def put_in(inner, source, at, size):
    """Put up to `size` octets of source from `at` on where an endpoint receives: how many it has room for."""
    if not hasattr(inner, "in_buffer"):
        view = inner.writable()
        size = min(len(view), size)
        copy(view, 0, source, at, size)
        return size
    receive = inner.in_buffer()
    if receive is None:
        return 0
    size = min(receive.room(), size)
    copy(receive.octets, receive.end, source, at, size)
    return size
