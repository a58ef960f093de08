"""Ages of messages by a clock that does not jump: the wall clock less the sum of its jumps.

Messages bear the second of the wall clock at which they came (MESSAGE_ARRIVED), for people and for readers that begin at a time. That
clock jumps: a Raspberry Pi has none until NTP comes. Between two jumps lies a *frame*: [first second, last second, shift]. A second of a
frame less its shift lies on a scale that only grows and continues from frame to frame without a gap: seconds that a jump skips or repeats
do not count as time.

A difference of more than JUMP_S between the wall clock and the monotonic one is a jump, however it came about (set by hand, NTP, a
suspended machine). While the broker does not run nothing is monotonic: up to STOP_S behind the last message in the log counts as time,
anything else as a jump. A broker with streams keeps the frames in its log (a definition of kind "clock"), the last FRAMES_MAX of them: what
is older than those counts from the first of them on, so it stays longer, never shorter.
"""

from ..shim import const

JUMP_S = const(5)
STOP_S = const(86400)
FRAMES_MAX = const(16)

_FIRST = const(0)
_LAST = const(1)
_SHIFT = const(2)


class Ages:
    """Seconds are those since 2020 that a broker counts."""

    def __init__(self):
        self.frames = [[0, 0, 0]]
        self.seconds = None  # when both clocks were read last; None: not yet
        self.uptime_ms = 0

    def tick(self, seconds, uptime_ms):
        """Read both clocks. Returns by how many seconds the wall clock has jumped (above 0 ahead, below 0 back, 0: no jump)."""
        if seconds == self.seconds:
            return 0
        jump = 0
        if self.seconds is None:
            jump = self.start(seconds)
        else:
            ahead = seconds - self.seconds - (uptime_ms - self.uptime_ms) // 1000
            if not -JUMP_S <= ahead <= JUMP_S:
                self.jumped(seconds, ahead)
                jump = ahead
        self.seconds = seconds
        self.uptime_ms = uptime_ms
        self.frames[-1][_LAST] = max(self.frames[-1][_LAST], seconds)
        return jump

    def jumped(self, seconds, ahead):
        """A frame begins."""
        self.frames.append([seconds, seconds, self.frames[-1][_SHIFT] + ahead])
        if len(self.frames) > FRAMES_MAX:
            self.frames.pop(0)

    def resume(self, frames, last):
        """Continue from an earlier run: its frames, or None; `last`: the second at which the last message in its log came."""
        self.frames = [list(frame) for frame in frames or [[0, 0, 0]]]
        self.frames[-1][_LAST] = max(self.frames[-1][_FIRST], last)
        if self.seconds is not None:
            return self.start(self.seconds)
        return 0

    def start(self, seconds):
        """Read the wall clock for the first time in a run. Returns by how many seconds it has jumped since the last message."""
        last = self.frames[-1][_LAST]
        if last and not 0 <= seconds - last <= STOP_S:
            self.jumped(seconds, seconds - last)
            return seconds - last
        self.frames[-1][_LAST] = seconds
        return 0

    def age_s(self, arrived):
        """Seconds that have passed since a message came."""
        return max(self.frames[-1][_LAST] - self.frames[-1][_SHIFT] - self.steady(arrived), 0)

    def steady(self, arrived):
        """The place of a second on the scale that only grows. A second in no frame has the place where the next frame begins, or the last
        one ends."""
        behind = None
        for frame in reversed(self.frames):
            if frame[_FIRST] <= arrived <= frame[_LAST]:
                return arrived - frame[_SHIFT]
            if frame[_FIRST] > arrived:
                behind = frame[_FIRST] - frame[_SHIFT]
        return self.frames[-1][_LAST] - self.frames[-1][_SHIFT] if behind is None else behind
