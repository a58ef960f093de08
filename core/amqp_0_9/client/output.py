"""What the client sends: one fixed buffer, and a body larger than it, streamed out through it (0-9-1 section 4.2.6).

    | sent | pending: start to end | room | kept for answers |

Laws: frames are put in whole, so octets of two frames never mix; requests and messages leave the last `kept` octets free for what the
protocol demands of us; a body that is streamed is the caller's and must not change until it has gone.
"""

from struct import pack_into

from ...shim import const
from .. import frame

if False:  # for the type checker alone
    from typing import Any

_END = const(0xCE)
_CLASS_BASIC = const(0x003C0000)  # class id 60 and weight 0, section 4.2.6.1
_HEAD_OVERHEAD = const(28)  # octets of the two frames that are neither `publish` nor `properties`
_PIECE_MIN_SIZE = const(64)  # octets; room for less is not worth a body frame


class Output:
    """`size` octets, of which `kept` are for answers only. `frame_size_max`: as negotiated."""

    _body: "Any"
    _body_channel: "Any"

    def __init__(self, size, kept):
        self._octets = memoryview(bytearray(size))
        self._limit = size - kept

    def reset(self, frame_size_max):
        """Empty, for a new stream: also before the first one."""
        self.frame_size_max = frame_size_max
        self._start = 0
        self._end = 0
        self._body = None  # the body that is being streamed out, where it stands, and whose it is
        self._body_at = 0
        self._body_channel = None

    def pending(self):
        """The octets to be sent."""
        return self._octets[self._start : self._end]

    def is_empty(self):
        """True when no octets wait."""
        return self._start == self._end

    def sent(self, n):
        """The first n octets of `pending()` were sent."""
        self._start += n
        if self._start == self._end:
            self._start = self._end = 0
        if self._body is not None:
            self._stream_body()

    def write(self, channel, octets):
        """A frame of `channel`: True, or False when there is no room now. Raises ValueError when it can never fit."""
        if self._body_channel is channel or not self._room(len(octets), self._limit):
            self._must_fit(len(octets))
            return False
        self.put(octets)
        return True

    def write_content(self, channel, publish, properties, body):
        """Method and header frames, then the body in frames; streamed when it is larger than the buffer. False: no room now.

        `publish`: the method frame's payload; `properties`: flags and list. Raises ValueError when these two can never fit.
        """
        if self._body is not None:
            return False
        size = len(body)
        head = len(publish) + len(properties) + _HEAD_OVERHEAD
        payload_max = self.frame_size_max - frame.OVERHEAD
        whole = head + size + (size + payload_max - 1) // payload_max * frame.OVERHEAD
        if not self._room(whole, self._limit) and (whole <= self._limit or not self._room(head, self._limit)):
            self._must_fit(head)
            return False
        self._put_head(channel.number, publish, properties, size)
        if size:
            self._body = memoryview(body)
            self._body_at = 0
            self._body_channel = channel
            self._stream_body()
        return True

    def _put_head(self, number, publish, properties, body_size):
        """The method frame and the content header, piece by piece: no octets are joined only to be copied once more."""
        octets = self._octets
        pack_into(">BHI", octets, self._end, frame.METHOD, number, len(publish))
        self._end += 7
        self.put(publish)
        octets[self._end] = _END
        pack_into(">BHIIQ", octets, self._end + 1, frame.HEADER, number, 12 + len(properties), _CLASS_BASIC, body_size)
        self._end += 20
        self.put(properties)
        octets[self._end] = _END
        self._end += 1

    def abandon(self, channel):
        """The rest of a body that is being streamed out on `channel` is not wanted any more."""
        if self._body_channel is channel:
            self._body = self._body_channel = None

    def answer(self, octets):
        """A frame that the protocol demands: there is room kept for it. False: not even that, the peer has long not been reading."""
        if not self._room(len(octets), len(self._octets)):
            return False
        self.put(octets)
        return True

    def put(self, octets):
        """Octets for which there is room."""
        place(self._octets, self._end, octets)
        self._end += len(octets)

    def _must_fit(self, size):
        if size > self._limit:
            raise ValueError("frames of %d octets; the send buffer takes %d" % (size, self._limit))

    def _stream_body(self):
        """As many body frames as there is room for."""
        body = self._body
        left = len(body) - self._body_at
        while left:
            if self._end + left + frame.OVERHEAD > self._limit:
                self._compact()
            size = min(left, self.frame_size_max - frame.OVERHEAD, self._limit - self._end - frame.OVERHEAD)
            if size < left and size < _PIECE_MIN_SIZE:
                return
            pack_into(">BHI", self._octets, self._end, frame.BODY, self._body_channel.number, size)
            self._end += 7
            self.put(body[self._body_at : self._body_at + size])
            self._octets[self._end] = _END
            self._end += 1
            self._body_at += size
            left -= size
        self._body = self._body_channel = None

    def _room(self, size, limit):
        """True when there is room for `size` octets; moves waiting octets to the front for that."""
        if self._end + size <= limit:
            return True
        if self._end - self._start + size > limit:
            return False
        self._compact()
        return True

    def _compact(self):
        left = self._end - self._start
        if self._start and left:
            place(self._octets, 0, self._octets[self._start : self._end])
        self._start = 0
        self._end = left


def place(view, at, octets):
    """Copy `octets` to `at` of a memoryview; the two may overlap.

    MicroPython moves the tail of what a slice is assigned to (MICROPYTHON.md section 3): here there is none.
    """
    target = view[at : at + len(octets)]
    target[:] = octets
