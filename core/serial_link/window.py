"""The two windows of the serial link: octets that were sent and are not acknowledged yet, and octets that have come before their turn.

A window is a ring of grains: pieces of `grain` octets, numbered modulo 256, at most 128 of them, so that no old number can pass
for a new one. A frame carries a run of grains, all full but the last, and has the number of its first one. So frames may have
any size, the size may change at any time, and the sender cuts lost octets anew when it sends them again.

    sender     base ... sent, or come (told by a bitmap), or lost again ... cursor ... next to be filled ... base + count
    receiver   expected ... some are here, some are missing ... top ... expected + count

Laws: a line keeps the order of octets that it does not destroy. So each grain remembers when it was sent last (`order`): as soon as a grain
that was sent later has arrived, it is lost, and the window sends it again. No clock decides, and no grain that arrived is sent twice.
Buffers are made in the constructors: size octets and 6 (sender) or 1 (receiver) for each grain; a window refuses octets that do not fit.
"""

from ..shim import const, copy, table

SEQUENCE_MASK = 0xFF
GRAIN_COUNT_MAX = 128
GRAIN_SIZE_MIN = 16
WINDOW_SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)

_FREE = const(0)
_QUEUED = const(1)
_SENT = const(2)
_ARRIVED = const(3)
_ORDER_MAX = const(1 << 28)


def grain_size(window_size):
    """Octets of a grain, the same at both ends because it follows from the agreed window."""
    size = GRAIN_SIZE_MIN
    while size * GRAIN_COUNT_MAX < window_size:
        size *= 2
    return size


class SendWindow:
    """A ring of `size_max` octets, one of WINDOW_SIZES."""

    def __init__(self, size_max):
        self.ring = memoryview(bytearray(size_max))
        self._sizes = bytearray(GRAIN_COUNT_MAX)
        self._states = bytearray(GRAIN_COUNT_MAX)
        self._orders = table(GRAIN_COUNT_MAX)
        self.begin(size_max)

    def begin(self, size):
        """A new session with a window of `size` octets: numbers start at 0, no grain is kept."""
        self.grain = grain_size(size)
        self.count = size // self.grain
        self.base = self.next = self._cursor = 0
        self.sent_grains = 0  # on their way
        self._order = 1
        self._question = 0
        self._newest = 0  # the order of the latest grain that has arrived, as the peer reports
        self.run_first = self.run_size = 0

    def outstanding(self):
        """Grains that are kept."""
        return (self.next - self.base) & SEQUENCE_MASK

    def room(self):
        """Octets that `put` accepts."""
        return (self.count - self.outstanding()) * self.grain

    def is_known(self, acknowledged):
        """True for an acknowledgement of a grain that was put here."""
        return (acknowledged - self.base) & SEQUENCE_MASK <= self.outstanding()

    def put(self, source, at, size):
        """Keep `size` octets of source from `at` on for sending. The caller has checked `room`."""
        end = at + size
        while at < end:
            slot = self.next % self.count
            piece = min(self.grain, end - at)
            copy(self.ring, slot * self.grain, source, at, piece)
            self._sizes[slot] = piece
            self._states[slot] = _QUEUED
            self.next = (self.next + 1) & SEQUENCE_MASK
            at += piece

    def choose_run(self, size_max):
        """Choose the next run: true when there is one, `run_size` octets from grain `run_first` on.

        The lowest number first: lost grains go before new ones.
        """
        number = self._cursor
        while number != self.next and self._states[number % self.count] != _QUEUED:
            number = (number + 1) & SEQUENCE_MASK
        self._cursor = number
        self.run_first = number
        size = 0
        while number != self.next:
            slot = number % self.count
            if self._states[slot] != _QUEUED or size + self._sizes[slot] > size_max:
                break
            self._states[slot] = _SENT
            self.sent_grains += 1
            self._orders[slot] = self._order
            size += self._sizes[slot]
            number = (number + 1) & SEQUENCE_MASK
            if self._sizes[slot] < self.grain:
                break
        self.run_size = size
        self._cursor = number
        if size:
            self._order += 1
            if self._order >= _ORDER_MAX:
                self._begin_orders_anew()
        return size > 0

    def run_start(self, at):
        """Where in `ring` the run's octet `at` lies; those behind it lie there as far as its end, or the ring's."""
        return (self.run_first % self.count * self.grain + at) % (self.count * self.grain)

    def run_left(self, at):
        """How many octets lie there in one piece, from the run's octet `at` on."""
        return min(self.run_size - at, self.count * self.grain - self.run_start(at))

    def mark_question(self):
        """Note that a question goes out now: its answer covers all grains that were sent before it."""
        self._question = self._order
        self._order += 1
        if self._order >= _ORDER_MAX:
            self._begin_orders_anew()

    def answered(self):
        self._has_arrived(self._question)

    def _begin_orders_anew(self):
        """Keep the numbers small: only the latest few hundred are still compared."""
        back = self._order - _ORDER_MAX // 2
        for slot in range(GRAIN_COUNT_MAX):
            self._orders[slot] = max(0, self._orders[slot] - back)
        self._order -= back
        self._newest = max(0, self._newest - back)
        self._question = max(0, self._question - back)

    def acknowledge(self, acknowledged):
        """Release all grains before number `acknowledged`, which is_known has checked; returns how many of them are newly acknowledged."""
        count = (acknowledged - self.base) & SEQUENCE_MASK
        if (self._cursor - self.base) & SEQUENCE_MASK < count:
            self._cursor = acknowledged
        for _ in range(count):
            slot = self.base % self.count
            if self._states[slot] != _QUEUED:
                self._has_arrived(self._orders[slot])
            self.sent_grains -= self._states[slot] == _SENT
            self._states[slot] = _FREE
            self.base = (self.base + 1) & SEQUENCE_MASK
        return count

    def mark(self, bitmap, start, end):
        """Mark grains that have arrived: bit n of octet m of bitmap[start:end] stands for grain 8 m + n behind the first missing one."""
        number = self.base
        for at in range(start, end):
            bits = bitmap[at]
            for bit in range(8):
                if number == self.next:
                    return
                slot = number % self.count
                if bits >> bit & 1 and self._states[slot] != _ARRIVED:
                    self._has_arrived(self._orders[slot])
                    self.sent_grains -= self._states[slot] == _SENT
                    self._states[slot] = _ARRIVED
                number = (number + 1) & SEQUENCE_MASK

    def _has_arrived(self, order):
        """Note that the grain of this order has arrived: so grains of earlier orders have arrived or are lost."""
        if order > self._newest:
            self._newest = order

    def find_lost(self):
        """Queue all lost grains for sending again; returns how many frames had carried them."""
        newest = self._newest
        frames = 0
        last = 0
        number = self.next
        while number != self.base:
            number = (number - 1) & SEQUENCE_MASK
            slot = number % self.count
            if self._states[slot] == _SENT and self._orders[slot] < newest:
                self._states[slot] = _QUEUED
                self.sent_grains -= 1
                if (number - self.base) & SEQUENCE_MASK < (self._cursor - self.base) & SEQUENCE_MASK:
                    self._cursor = number
                if self._orders[slot] != last:
                    last = self._orders[slot]
                    frames += 1
        return frames


class ReceiveWindow:
    """A ring of `size_max` octets, one of WINDOW_SIZES."""

    def __init__(self, size_max):
        self.ring = memoryview(bytearray(size_max))
        self._sizes = bytearray(GRAIN_COUNT_MAX)
        self.begin(size_max)

    def begin(self, size):
        """Begin a new session, as the sender's window does."""
        self.grain = grain_size(size)
        self.count = size // self.grain
        self.expected = 0
        self.top = 0
        for slot in range(GRAIN_COUNT_MAX):
            self._sizes[slot] = 0

    def has_gap(self):
        """True when a grain has come before its turn."""
        return self.top != self.expected

    def is_new(self, sequence):
        """True when a frame with this number lies in the window; else it is an old frame that came again."""
        return (sequence - self.expected) & SEQUENCE_MASK < self.count

    def put(self, sequence, source, at, end):
        """Keep the frame source[at:end], which is_new has checked, at its place; returns the number of grains that are new here."""
        fresh = 0
        while at < end and self.is_new(sequence):
            slot = sequence % self.count
            piece = min(self.grain, end - at)
            if self._sizes[slot] == 0:
                copy(self.ring, slot * self.grain, source, at, piece)
                self._sizes[slot] = piece
                fresh += 1
            at += piece
            sequence = (sequence + 1) & SEQUENCE_MASK
        if (sequence - self.expected) & SEQUENCE_MASK > (self.top - self.expected) & SEQUENCE_MASK:
            self.top = sequence
        return fresh

    def piece_start(self):
        """Where in `ring` the next octets in order lie."""
        return self.expected % self.count * self.grain

    def piece_size(self):
        """How many lie there together; 0 when the next grain is missing."""
        number = self.expected % self.count
        size = 0
        while number < self.count and self._sizes[number]:
            size += self._sizes[number]
            number += 1
            if self._sizes[number - 1] < self.grain:
                break
        return size

    def release(self, size):
        """Free the next octets: `piece_size` of them."""
        while size > 0:
            slot = self.expected % self.count
            size -= self._sizes[slot]
            self._sizes[slot] = 0
            if self.top == self.expected:
                self.top = (self.top + 1) & SEQUENCE_MASK
            self.expected = (self.expected + 1) & SEQUENCE_MASK

    def write_bitmap(self, target, at):
        """Write which grains behind the first missing one are here, as SendWindow.mark reads it; returns where the bitmap ends."""
        count = (self.top - self.expected) & SEQUENCE_MASK
        for first in range(0, count, 8):
            bits = 0
            for bit in range(min(8, count - first)):
                if self._sizes[(self.expected + first + bit) % self.count]:
                    bits |= 1 << bit
            target[at] = bits
            at += 1
        return at


class FrameSize:
    """How many octets of payload a frame should carry on this line: few where many frames are lost, for then fewer octets go again.

    With e damaged frames for each octet sent and h octets of frame around the payload, the payload of least cost is sqrt(h / e). The counts
    of both cover some thousand octets, of which older ones count half.
    """

    def __init__(self, overhead):
        self._overhead = overhead
        self.begin(GRAIN_SIZE_MIN, GRAIN_SIZE_MIN)

    def begin(self, grain, size_max):
        """A new session: begin with the largest."""
        self._grain = grain
        self._size_max = size_max
        self.now = size_max
        self._octets = 0
        self._lost = 0  # sixteenths

    def count(self, octets, lost):
        """Count `octets` that went out and `lost` frames that did not arrive."""
        self._octets += octets + self._overhead if octets else 0
        self._lost += 16 * lost
        if self._octets >= 8192 or (lost and self._lost >= 128):
            self._judge()

    def _judge(self):
        worth = 16 * self._overhead * self._octets
        size = self.now
        while size > self._grain and size * size * self._lost > worth:
            size -= self._grain
        largest = min(2 * self.now, self._size_max)
        while size + self._grain <= largest and (size + self._grain) * (size + self._grain) * self._lost <= worth:
            size += self._grain
        self.now = size
        self._octets //= 2
        self._lost //= 2
