"""The master's end of a half-duplex line (RS-485) that several stations share: who may speak, one after the other.

A Bus is the endpoint between the serial stream and one active Link for each address. It gives a link the turn; the link sends its frames
and passes the turn to its station with the last one. Until the station passes the turn back, or is silent for `silence_ms`, no other end
speaks: so no frames collide. A station ignores the frames of others, because the check of a frame begins
with the address (frame.py). Laws: a station that does not answer costs `silence_ms`, once in `probe_ms`; on a line without
data the master asks all stations once in `idle_ms`; the link recognizes and skips its own octets, which many adapters echo.
"""

from .. import states
from ..shim import after, elapsed
from .states import BUS

if False:  # for the type checker alone
    from typing import Any

_SILENT_MAX = 2  # turns without an answer; then the master asks the station once in `probe_ms` only


class Bus:
    """`links`: one for each station, made with active=True, turns=True and its address. `octets_per_s`: the speed of the line.

    `silence_ms`: how long a station may take to answer, and pause between octets: more than its turn-around time and its adapter's delays.
    """

    def __init__(self, links, octets_per_s, silence_ms=60, probe_ms=1000, idle_ms=20, receive_size=512):
        self.closed = False
        self.links = links
        self.timeout_count = 0
        self._octets_per_s = octets_per_s
        self._silence_ms = silence_ms
        self._probe_ms = probe_ms
        self._idle_ms = idle_ms
        self._receive = memoryview(bytearray(receive_size))
        self._nothing = memoryview(b"")
        self._silent = [_SILENT_MAX] * len(links)  # turns in a row without an answer
        self._probed_at = [0] * len(links)
        self._at = len(links) - 1
        self._turn: "Any" = None  # the link whose turn it is
        self.state = "idle"  # of BUS
        self._since = 0  # since when the station could have spoken
        self._sent = 0
        self._moved = 0  # frames, at the beginning of the round
        self._round_at = 0
        self._now = 0
        self._ticking = False

    @property
    def window_size(self):
        """Octets that may be on their way: the largest window of a station."""
        return max([link.window_size for link in self.links])

    def writable(self):
        return self._receive

    def received(self, size):
        link = self._turn
        if link is None or size == 0:
            return
        link.process(self._receive, size)
        if self.state == "listening":
            if elapsed(self._now, self._since) > 0:
                self._since = self._now
            if link.has_turn:
                self.step("returned")

    def pending(self):
        if self.state == "idle" and not self._choose_link():
            return self._nothing
        view = self._turn.pending()
        if len(view) == 0 and not self._turn.has_turn:
            self.step("passed")
        return view

    def sent(self, size):
        self._turn.sent(size)
        self._sent += size

    def tick(self, now):
        if not self._ticking:
            self._ticking = True
            self._probed_at = [now - self._probe_ms] * len(self.links)
            self._round_at = now
        self._now = now
        for link in self.links:
            link.tick(now)
        if self.state == "listening" and elapsed(now, self._since) >= self._silence_ms:
            self.step("silent")

    def unplugged(self):
        """Suspend all sessions: the line is gone for a while."""
        for link in self.links:
            link.unplugged()
        self.step("unplugged")

    def plugged(self):
        """Ask all stations: there is a line again."""
        self._probed_at = [self._now - self._probe_ms] * len(self.links)

    # Whose turn it is: the actions of BUS

    def step(self, input_, *given):
        """Do the action of an input, by BUS: returns the action's answer."""
        return states.step(self, BUS, self, input_, *given)

    def give_turn(self, at):
        """Let the link at this place speak."""
        self._at = at
        self._probed_at[at] = self._now
        self._sent = 0
        self._turn = self.links[at]
        self._turn.give_turn(self._silent[at])

    def listen(self):
        """Wait for the station, from when the last octet is on the line."""
        self._since = after(self._now, self._sent * 1000 // self._octets_per_s)

    def end_turn(self):
        """The station has answered: the turn is nobody's."""
        self._silent[self._at] = 0
        self._turn.has_turn = False
        self._turn = None

    def miss_turn(self):
        """The station has not answered: the turn is nobody's."""
        self.timeout_count += 1
        self._silent[self._at] += 1
        self._turn.has_turn = False
        self._turn = None

    def drop_turn(self):
        """The line is gone, and the turn with it."""
        self._turn = None

    def ignore(self, *given):
        """Nothing changes."""

    def _choose_link(self):
        """Give the next link its turn; false when no link is due."""
        count = len(self.links)
        for step in range(1, count + 1):
            at = (self._at + step) % count
            if at == 0 and not self._begin_round():
                return False
            if self._is_due(at):
                self.step("due", at)
                return True
        return False

    def _begin_round(self):
        """Begin a round of turns; false during the pause of a line without data."""
        moved = sum([link.moved_count for link in self.links])
        if moved == self._moved and elapsed(self._now, self._round_at) < self._idle_ms:
            return False
        self._moved = moved
        self._round_at = self._now
        return True

    def _is_due(self, at):
        if self.links[at].closed:
            return self.links[at].leaving
        return self._silent[at] < _SILENT_MAX or elapsed(self._now, self._probed_at[at]) >= self._probe_ms
