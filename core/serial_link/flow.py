"""The traffic within a session of the serial link: data in both directions, and reports of missing data.

    kind     | sequence            | acknowledged    | payload
    DATA     | its first grain     | all before this | octets of the inner endpoint
    STATUS   | 0                   | all before this | number of the question it answers 1, bitmap of what else is here 0 to 16
    PING     | 0                   | all before this | number of this question 1
    TURN     | 0                   | all before this | number of this question 1, number of the one it answers 1, bitmap 0 to 16

A receiver reports missing data when it sees the gap, and again after some frames; a sender that hears nothing asks (PING). Data that was
sent before the question, and that the answer does not show, is lost. A TURN is both, question and answer, and gives the turn to speak to
the other end (half duplex). Laws and numbers of the windows: window.py. The inner endpoint always takes all octets.
"""

from ..shim import const, copy
from .frame import DATA, HEADER_SIZE, OVERHEAD, PING, STATUS, TURN
from .window import GRAIN_COUNT_MAX, SEQUENCE_MASK, FrameSize, ReceiveWindow, SendWindow

if False:  # for the type checker alone
    from typing import Any

_DUE_STATUS = const(1)
_DUE_PING = const(2)
_DUE_ACKNOWLEDGE = const(4)  # any frame acknowledges, data too

_GAP_FRAMES = const(8)  # while data is missing, the receiver reports the gap once in so many frames


class Flow:
    """The data of one session after the other, through `writer` (a FrameWriter) and windows of `window_size` octets each way."""

    def __init__(self, writer, window_size, payload_size_max):
        self._writer = writer
        self._send = SendWindow(window_size)
        self._receive = ReceiveWindow(window_size)
        self._frame_size = FrameSize(OVERHEAD)
        self._small = memoryview(bytearray(2 + GRAIN_COUNT_MAX // 8))
        self._inner: "Any" = None
        self.sent_count = 0
        self.resent_count = 0
        self.received_count = 0
        self.discarded_count = 0
        self.foreign_count = 0
        self.begin(None, window_size, payload_size_max)

    def begin(self, inner, window_size, payload_size_max):
        """Begin a new session: forget the older one's data and questions."""
        self._inner = inner
        self._send.begin(window_size)
        self._receive.begin(window_size)
        self._frame_size.begin(self._send.grain, payload_size_max)
        self._due = 0
        self._question = 0
        self._answer = 0
        self._since_status = 0

    @property
    def window_size(self):
        """Octets that may be on their way."""
        return self._send.count * self._send.grain

    @property
    def frame_size(self):
        """Octets of payload of the next frame."""
        return self._frame_size.now

    def all_has_arrived(self):
        """True when the peer has all that the inner endpoint has sent."""
        return self._send.outstanding() == 0

    def is_waiting(self):
        """True when data of this end may be on its way."""
        return self._send.sent_grains > 0

    def ask(self):
        """Ask the peer to report what has arrived."""
        self._due |= _DUE_PING

    # Frames off the line

    def process(self, name, octets, size):
        """Process a frame of this session; returns true when it shows that new data has arrived at the peer."""
        if not self._send.is_known(octets[2]):
            self.foreign_count += 1
            return False
        news = self._send.acknowledge(octets[2]) > 0
        if name == DATA:
            self._process_data(octets, size)
        elif name == STATUS and size > HEADER_SIZE:
            self._process_report(octets, HEADER_SIZE, size)
        elif name == PING and size == HEADER_SIZE + 1:
            self._answer = octets[HEADER_SIZE]
            self._due |= _DUE_STATUS
        elif name == TURN and size >= HEADER_SIZE + 2:
            self._answer = octets[HEADER_SIZE]
            self._process_report(octets, HEADER_SIZE + 1, size)
        else:
            self.foreign_count += 1
        return news

    def _process_report(self, octets, at, size):
        """Process the peer's report of all data that it has. Reports alone show lost data: data acknowledges without a bitmap of later
        grains."""
        if octets[at] == self._question:
            self._send.answered()
        self._send.mark(octets, at + 1, size)
        lost = self._send.find_lost()
        if lost:
            self.resent_count += lost
            self._frame_size.count(0, lost)

    def _process_data(self, octets, size):
        window = self._receive
        sequence = octets[1]
        if not window.is_new(sequence):
            self.discarded_count += 1
            self._due |= _DUE_ACKNOWLEDGE
            return
        ahead = 0 < (sequence - window.top) & SEQUENCE_MASK < GRAIN_COUNT_MAX
        if window.put(sequence, octets, HEADER_SIZE, size):
            self.received_count += 1
        else:
            self.discarded_count += 1
        self._deliver(window)
        self._since_status += 1
        if window.has_gap() and (ahead or self._since_status >= _GAP_FRAMES):
            self._due |= _DUE_STATUS
        self._due |= _DUE_ACKNOWLEDGE

    def _deliver(self, window):
        """Give the inner endpoint the octets that are complete."""
        inner = self._inner
        left = window.piece_size()
        while left:
            at, end = window.piece_start(), window.piece_start() + left
            while at < end:
                view = inner.writable()
                size = min(len(view), end - at)
                copy(view, 0, window.ring, at, size)
                inner.received(size)
                at += size
            window.release(left)
            left = window.piece_size()

    # Frames onto the line

    def compose(self):
        """Make the next frame, where there is data or a report to send; true when there is one."""
        due = self._due
        if due & _DUE_STATUS:
            self._say_status()
        elif due & _DUE_PING:
            self._say_question()
        elif self._compose_data():
            self._due &= ~_DUE_ACKNOWLEDGE
        elif due & _DUE_ACKNOWLEDGE:
            self._say_status()
        else:
            return False
        return True

    def compose_in_turn(self):
        """As `compose`, for an end that has the turn: data, then the TURN that gives it away; returns true with data."""
        if self._compose_data():
            return True
        self._ask_next()
        self._small[0] = self._question
        self._small[1] = self._answer
        self._put(TURN, self._receive.write_bitmap(self._small, 2))
        self._due = 0
        return False

    def _say_status(self):
        self._small[0] = self._answer
        self._put(STATUS, self._receive.write_bitmap(self._small, 1))
        self._due &= ~(_DUE_STATUS | _DUE_ACKNOWLEDGE)
        self._since_status = 0

    def _say_question(self):
        self._ask_next()
        self._small[0] = self._question
        self._put(PING, 1)
        self._due &= ~(_DUE_PING | _DUE_ACKNOWLEDGE)

    def _ask_next(self):
        self._question = self._question % 255 + 1  # 0: it answers no question
        self._send.mark_question()

    def _compose_data(self):
        """Make a frame of data; false when there is no data, or no room in the window."""
        window = self._send
        size_max = self._frame_size.now
        if not window.choose_run(size_max):
            self._fill(window, size_max)
            if not window.choose_run(size_max):
                return False
        writer = self._writer
        writer.begin(DATA, window.run_first, self._receive.expected)
        at = 0
        while at < window.run_size:
            size = window.run_left(at)
            writer.add(window.ring, window.run_start(at), size)
            at += size
        writer.finish()
        self.sent_count += 1
        self._frame_size.count(at, 0)
        return True

    def _fill(self, window, size_max):
        """Move octets that the inner endpoint sends into the window, one frame at most."""
        room = min(window.room(), size_max)
        if room == 0:
            return
        out = self._inner.out_buffer()
        size = min(out.end - out.start, room)
        if size:
            window.put(out.octets, out.start, size)
            self._inner.sent(size)

    def _put(self, name, size):
        self._writer.put(name, 0, self._receive.expected, self._small, size)
