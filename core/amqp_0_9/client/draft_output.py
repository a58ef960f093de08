"""What the client of a draft of 2005 sends: output.py's buffer, with the draft's frames."""

from ...shim import const
from .draft_wire import BODY
from .output import Output

_PIECE_MIN_SIZE = const(64)  # octets; room for less is not worth a body frame


class DraftOutput(Output):
    """`wire`: the draft's; `size` octets, of which `kept` are for answers only."""

    def __init__(self, wire, size, kept):
        self.wire = wire
        Output.__init__(self, size, kept)

    def write_message(self, channel, head, body):
        """The frames of a method, of its content header and of contents within (`head`), then the body in frames; streamed when it is
        larger than the buffer. False: no room now. Raises ValueError when `head` can never fit."""
        if self._body is not None:
            return False
        frames = len(body) // max(self.frame_size_max - self.wire.overhead, 1) + 1
        whole = len(head) + len(body) + frames * self.wire.overhead
        if not self._room(whole, self._limit) and (whole <= self._limit or not self._room(len(head), self._limit)):
            self._must_fit(len(head))
            return False
        self.put(head)
        if len(body):
            self._body = memoryview(body)
            self._body_at = 0
            self._body_channel = channel
            self._stream_body()
        return True

    def _stream_body(self):
        """As many body frames as there is room for."""
        overhead = self.wire.overhead
        while self._body_at < len(self._body):
            left = len(self._body) - self._body_at
            if self._limit - self._end < left + overhead:
                self._compact()
            size = min(left, self.frame_size_max - overhead, self._limit - self._end - overhead)
            if size < min(left, _PIECE_MIN_SIZE):
                return
            piece = bytes(self._body[self._body_at : self._body_at + size])
            self.put(self.wire.frame(BODY, self._body_channel.number, piece))
            self._body_at += size
        self._body = self._body_channel = None
