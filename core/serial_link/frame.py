"""Frames of the serial link: where a frame begins and ends on the line, and whether it arrived undamaged.

    0x7E | kind | sequence | acknowledged | payload, 0 to payload_size_max octets | check, 2 or 4 octets | 0x7E

As in HDLC (RFC 1662): 0x7E (flag) stands only between frames, one is enough between two; inside a frame 0x7E and 0x7D are sent as 0x7D and
the octet with bit 0x20 turned over. The check covers everything before it, least significant octet first: CRC-32 (as zlib), or CRC-16/X.25
where a session has agreed on it. It begins with a seed that identifies the frame's owner: an address for the frames of the handshake, the
nonces of both ends for those of a session. So a frame of another session, or of another station on the same wire, fails its check like a
damaged one, without an octet on the line. HDLC rather than COBS: further octets (Ctrl-C) can be kept off the line by the same escape, and
text that other programs write between frames does no harm.

Laws: buffers are made in the constructors; a reader holds one frame at most, whatever is on the line; it counts and drops a frame whose
check fails. The meaning of frames is link.py's, the work on each octet stuffing.py's.
"""

from array import array

from ..shim import const, table
from . import stuffing
from .check_32 import in_halves

_FLAG = const(0x7E)
_ESCAPE = const(0x7D)
_CONTROL = const(0x20)  # a terminal may act on octets below it
_INTERRUPT = const(3)  # Ctrl-C

# A reader's numbers, see stuffing.py.
_FILL = const(0)
_TURN = const(2)
_ENDED = const(3)

HEADER_SIZE = 3
OVERHEAD = HEADER_SIZE + 4 + 1  # octets of a frame beside its payload

# Kinds, in the low four bits; the other bits of `kind` are below.
DATA = 1
STATUS = 2
PING = 3
END = 4
TURN = 5
HELLO = 6
WELCOME = 7
CALL = 8
NAME_MASK = 0x0F
FROM_ACTIVE = 0x10
CHECK_32 = 0x20


def is_handshake(kind):
    """True for kinds whose check is CRC-32 with the seed of the address, because there may be no session."""
    return HELLO <= kind & NAME_MASK <= CALL


class FrameChecks:
    """Seeds of the checks of one end: `address` (0 to 255) of the handshake, and `size` and `seed` of a session's.

    `active`: this end's frames have the bit FROM_ACTIVE. `form`: the functions for the work on each octet, see stuffing.py.
    """

    def __init__(self, active, address=0):
        self.form = stuffing.chosen
        self.address = address
        self._from = FROM_ACTIVE if active else 0
        self._remainders = remainders()
        self.handshake_seed = table(2)  # of a check its lower and its upper 16 bits: a number of 32 is heap on a board
        if address:
            self.add(bytes((address,)), 0, 1, self.handshake_seed, 4)
        self.size = 0  # octets of a session's check; 0: there is no session
        self.seed = table(2)
        self.value = table(2)  # the check of the frame that is read or made now
        self.octets = bytearray(4)  # and its octets

    def begin(self, nonces, size):
        """Begin the session of `nonces` (bytes): from now on frames belong to it."""
        self.size = size
        seed = bytes((self.address,)) + nonces
        self.seed[0] = self.seed[1] = 0
        self.add(seed, 0, len(seed), self.seed, size)

    def add(self, octets, start, size, value, check_size):
        """Make `value`, the check of the octets before them, of `check_size` octets, that of octets[start:start + size] as well."""
        if check_size == 4:
            in_halves(octets, start, size, value, self._remainders)
        else:
            value[0] = self.form.check_16(octets[start : start + size], size, value[0])

    def start(self, kind):
        """Begin the check `value` of a frame of this kind."""
        seed = self.seed_of(kind)
        self.value[0] = seed[0]
        self.value[1] = seed[1]

    def end(self):
        """The octets of the check `value`, the least significant one first."""
        low, high, octets = self.value[0], self.value[1], self.octets
        octets[0] = low & 0xFF
        octets[1] = low >> 8
        octets[2] = high & 0xFF
        octets[3] = high >> 8
        return octets

    def clear(self):
        """Forget the session."""
        self.size = 0

    def kind_of(self, name):
        """The octet `kind` of this end's frames."""
        return name | self._from | (CHECK_32 if self.size_of(name) == 4 else 0)

    def is_own(self, kind):
        """True for a frame that this end has sent itself: many adapters echo their own octets."""
        return kind & FROM_ACTIVE == self._from

    def size_of(self, kind):
        """Octets of the check of a frame of this kind; 0: no frame of this kind is valid now."""
        return 4 if is_handshake(kind) else self.size

    def seed_of(self, kind):
        return self.handshake_seed if is_handshake(kind) else self.seed


def remainders():
    """Remainders of the reflected polynomial of CRC-32 for each half of an octet: their lower 16 bits, and behind these their upper."""
    halves = table(32)
    for half in range(16):
        low, high = half, 0
        for _ in range(4):
            turned = low & 1
            low = low >> 1 | (high & 1) << 15
            high >>= 1
            if turned:
                low ^= 0x8320
                high ^= 0xEDB8
        halves[half] = low
        halves[16 + half] = high
    return halves


class FrameReader:
    """Finds the frames in the octets off the line.

    After `read` a `size` above 0 says that octets[0:size] are a frame (header and payload) whose check was right; they stay until the next
    `read`. `bad_count`: pieces between flags that were no frame: damaged, too short, too long, or of another session.
    """

    def __init__(self, payload_size_max, checks):
        self.octets = memoryview(bytearray(HEADER_SIZE + payload_size_max + 4))
        self.size = 0
        self.bad_count = 0
        self._checks = checks
        self._numbers = array("i", (0, len(self.octets), 0, 0))
        self._octets_at = checks.form.octets(self.octets)
        self._numbers_at = checks.form.integers(self._numbers)

    def clear(self):
        """Drop the beginning of a frame whose rest will not come."""
        self._begin()
        self.size = 0

    def _begin(self):
        numbers = self._numbers
        numbers[_FILL] = numbers[_TURN] = numbers[_ENDED] = 0

    def read(self, source, at, end):
        """Read source[at:end] to the end of a frame or of the octets; returns where it stopped."""
        self.size = 0
        at = self._checks.form.unstuff(source, at, end, self._octets_at, self._numbers_at)
        if self._numbers[_ENDED]:
            self._finish(self._numbers[_FILL])
        return at

    def _finish(self, fill):
        """Check the frame that a flag has ended after `fill` octets (one more than there is room for: too many)."""
        whole = self._numbers[_TURN] == 0 and fill <= len(self.octets)
        self._begin()
        if fill == 0 and whole:
            return
        check_size = self._checks.size_of(self.octets[0])
        if whole and check_size and fill >= HEADER_SIZE + check_size and self._check_holds(fill - check_size, check_size):
            self.size = fill - check_size
        else:
            self.bad_count += 1

    def _check_holds(self, size, check_size):
        octets, checks = self.octets, self._checks
        checks.start(octets[0])
        checks.add(octets, 0, size, checks.value, check_size)
        check = checks.end()
        for place in range(check_size):
            if check[place] != octets[size + place]:
                return False
        return True


class FrameWriter:
    """Holds one frame as it goes on the line: octets[start:end] are still to be sent.

    `line_silent`: the line was idle before, so the next frame begins with a flag that ends whatever noise has left on the line.
    """

    def __init__(self, payload_size_max, checks):
        self.octets = memoryview(bytearray(2 * (HEADER_SIZE + payload_size_max + 4) + 2))
        self.start = 0
        self.end = 0
        self.line_silent = True
        self._checks = checks
        self._octets_at = checks.form.octets(self.octets)
        self._header = bytearray(HEADER_SIZE)
        self._check_size = 0
        self._escaped_below = 0
        self._escaped = _INTERRUPT if checks.kind_of(DATA) & FROM_ACTIVE else _ESCAPE

    def begin(self, name, sequence, acknowledged):
        """Begin a frame of the kind `name`.

        A handshake may reach a REPL: no octet of it is a control character, which would interrupt or reset the program there. Once there is
        a session the program at the passive end may be interrupted by a real Ctrl-C only: the active end sends none in a frame.
        """
        header = self._header
        kind = self._checks.kind_of(name)
        header[0] = kind
        header[1] = sequence
        header[2] = acknowledged
        self.start = self.end = 0
        if self.line_silent:
            self.octets[0] = _FLAG
            self.end = 1
        self._escaped_below = _CONTROL if is_handshake(kind) else 0
        self._check_size = self._checks.size_of(kind)
        self._checks.start(kind)
        self.add(header, 0, HEADER_SIZE)

    def add(self, payload, start, size):
        """Append payload[start:start + size] to the frame."""
        self._checks.add(payload, start, size, self._checks.value, self._check_size)
        self._stuff(payload, start, size)

    def finish(self):
        """End the frame: the payload is complete."""
        self._stuff(self._checks.end(), 0, self._check_size)
        self.octets[self.end] = _FLAG
        self.end += 1

    def put(self, name, sequence, acknowledged, payload, size):
        """Make the whole frame with payload[0:size]."""
        self.begin(name, sequence, acknowledged)
        self.add(payload, 0, size)
        self.finish()

    def _stuff(self, source, start, size):
        assert self.end + 2 * size < len(self.octets), "a frame is larger than its writer was made for"
        self.end = self._checks.form.stuff(source, start, size, self._octets_at, self.end, self._escaped, self._escaped_below)

    def clear(self):
        """Drop the frame that is being sent."""
        self.start = self.end = 0
