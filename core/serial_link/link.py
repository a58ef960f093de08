"""A reliable link over a line that flips, drops, doubles and invents octets: the endpoint between a serial stream and connections.

Towards the stream a Link is an endpoint (same contract: DESIGN.md section 1). It carries several endpoints inside (streams.py): the octets
that the peer's endpoints send arrive in ours, whole, in order, once. One end of a line is the active one and asks for a session and for
connections.

    kind     | sequence | acknowledged | payload
    HELLO    | 0        | 0            | version 1, nonce 4, peer's nonce or 0 4, window 2, payload_size_max 2, check 1, streams 1, speed 4
    WELCOME  | 0        | 0            | the same
    CALL     | 0        | 0            | version 1                 from the passive end: whoever is there, say HELLO
    END      | 0        | 0            | -                         the session is over
    DATA, STATUS, PING, TURN: flow.py

Both ends name their limits in the handshake, and the smaller one counts (of the checks the longer one). Both nonces identify a session, and
its frames' checks begin with them (frame.py): a frame of another session fails its check. HELLO with the nonces of a session asks whether
the peer still has it: so after silence, or when the cable was out (`unplugged`, `plugged`), the session goes on, and the ends send missing
data again. A peer that began anew does not know the session: then all connections get `received(0)` and a new session begins. Speed: where
both ends name one above the one they meet at, the passive end changes to it behind its WELCOME, the active one when it has the WELCOME; an
end that hears nothing at the new speed goes back (`speed` 0). Half duplex (`turns`): an end speaks only after it was given the turn, by a
TURN, a HELLO or a WELCOME, and gives it back with its last frame; bus.py decides who has the first turn.

All buffers are made in the constructor: about 2 x window_size + 6 x payload_size_max + stream_count x stream_room + receive_size octets.
Numbers stay below 2^30, but for a check and a foreign nonce, once in a frame.
"""

from struct import pack_into, unpack_from

from ..shim import const, elapsed
from ..states import step
from .flow import Flow
from .frame import CALL, END, HEADER_SIZE, HELLO, NAME_MASK, TURN, WELCOME, FrameChecks, FrameReader, FrameWriter, is_handshake
from .states import ACTIVE, PASSIVE
from .streams import ROOM_MAX, STREAM_COUNT_MAX, Streams
from .window import WINDOW_SIZES, grain_size

# Frames that go before all others: bits, so that a flood of requests gets one answer.
_DUE_END = const(1)
_DUE_HELLO = const(2)
_DUE_WELCOME = const(4)
_DUE_CALL = const(8)

VERSION = 2
NONCE_MAX = 0x3FFFFFFF
SPEED_MAX = 4000000
_GREETING = ">BIIHHBBI"
_GREETING_SIZE = const(19)
_ASKS_MAX = const(2)  # questions without an answer; then the active end asks with HELLO
_ASKS_FAST_MAX = const(4)  # and, at an agreed speed, goes back to the one where the ends meet
_TRIALS_MAX = const(2)  # agreed speeds that did not work, then the line stays as it is


class Link:
    """One end of the line.

    `make_inner()` gives the endpoint of a new connection, or None to refuse it. At the active end it is called once for each session, and
    the link is `closed` when that endpoint is and all octets have arrived, or when the peer refuses it; with make_inner None the active end
    stays open, and `open(endpoint)` makes the connections. `nonce`: 1 to NONCE_MAX, another one each time the program starts (the port
    takes it from the system's randomness). `window_size`: octets on their way in each direction, one of WINDOW_SIZES;
    `payload_size_max`: 32 to 2048 octets of a frame, fewer where many are damaged; `check_size` 4 (CRC-32) or 2 (CRC-16: once in 65,536
    damaged frames goes unseen); `receive_size` 16 to 65536 octets read at once. `retransmit_ms`: the longest time until an answer is
    overdue, at least what two full windows take on the line. `keepalive_ms`: after so much silence ask whether the peer is there.
    `dead_ms`: without an octet from it for so long the session is over. `speed`: bits per second to agree on, 0 to stay. `address` 1 to
    255 and `turns`: a station of a half-duplex line; it waits `turnaround_ms` before it speaks. `stream_count`, `stream_room`:
    connections at a time, octets kept for each. Raises ValueError for a value out of range.

    `trouble`: a sentence about a peer that this end cannot work with, else "".
    """

    def __init__(
        self,
        make_inner,
        nonce,
        active=False,
        window_size=4096,
        payload_size_max=512,
        check_size=4,
        receive_size=512,
        retransmit_ms=1000,
        keepalive_ms=2000,
        dead_ms=60000,
        speed=0,
        address=0,
        turns=False,
        turnaround_ms=2,
        stream_count=4,
        stream_room=2048,
    ):
        require(1 <= nonce <= NONCE_MAX, "nonce must be from 1 to 2^30 - 1")
        require_sizes(window_size, payload_size_max, check_size, receive_size, stream_count, stream_room)
        require(
            16 <= retransmit_ms < dead_ms and 1 <= keepalive_ms < dead_ms < 1 << 28,
            "16 <= retransmit_ms < dead_ms, keepalive_ms < dead_ms and dead_ms < 2^28 must hold",
        )
        require(0 <= speed <= SPEED_MAX, "speed must be from 0 to %d bits per second" % SPEED_MAX)
        require(0 <= address <= 255, "address must be from 0 to 255")
        self.closed = False
        self.trouble = ""
        self.address = address
        self._make_inner = make_inner
        self._active = active
        self.turns = turns
        self._turnaround_ms = turnaround_ms
        self._retransmit_ms = retransmit_ms
        self._keepalive_ms = keepalive_ms
        self._dead_ms = dead_ms
        self._window_size = window_size
        self._payload_size_max = payload_size_max
        self._check_size = check_size
        self._stream_count = stream_count
        self._nonce = nonce
        self._peer_nonce = 0
        self._checks = FrameChecks(active, address)
        self._reader = FrameReader(payload_size_max, self._checks)
        self._writer = FrameWriter(payload_size_max, self._checks)
        self._flow = Flow(self._writer, window_size, payload_size_max)
        self.streams = Streams(None if active else make_inner, stream_count, stream_room, payload_size_max)
        self._only = None  # the active end's one endpoint
        self._receive = memoryview(bytearray(receive_size))
        self._nothing = memoryview(b"")
        self._small = bytearray(_GREETING_SIZE)
        self.state = "opening" if active else "waiting"
        self._table = ACTIVE if active else PASSIVE
        self._due = _DUE_HELLO if active else 0 if turns else _DUE_CALL
        self._offered_speed = 0 if turns else speed
        self._now = self._heard_at = self._asked_at = self._called_at = 0
        self._ticking = False
        self._asks = 0
        self._unwelcomed = False
        self._quick_ms = max(16, retransmit_ms // 8)
        self._ask_ms = self._quick_ms
        self._welcome_speed = 0
        self._agreed_speed = 0  # the speed behind the WELCOME that is being sent
        self.speed = 0  # the speed that the line should have; 0: where the ends meet
        self.speed_set = 0  # the speed that it has, set by the port
        self._trial = False  # no frame has been heard at this speed yet
        self._trials = 0
        self.has_turn = False
        self._turn_at = 0
        self.session_count = 0
        self.own_count = 0
        self.foreign_count = 0

    @property
    def is_open(self):
        """True while there is a session."""
        return self.state == "open"

    @property
    def counters(self):
        """(name, count) of events on the line."""
        flow = self._flow
        return (
            ("sessions", self.session_count),
            ("sent", flow.sent_count),
            ("sent again", flow.resent_count),
            ("received", flow.received_count),
            ("discarded", flow.discarded_count),
            ("damaged", self._reader.bad_count),
            ("foreign", self.foreign_count + flow.foreign_count),
            ("own", self.own_count),
        )

    @property
    def window_size(self):
        """Octets that may be on their way, as agreed by both ends."""
        return self._flow.window_size

    @property
    def moved_count(self):
        """Frames of data, both ways."""
        return self._flow.sent_count + self._flow.received_count

    @property
    def frame_size(self):
        """Octets of payload of the next frames."""
        return self._flow.frame_size

    def open(self, inner):
        """Open a connection for `inner` (active end); false when there is no session, or no number for a further connection in it."""
        return self.state == "open" and self.streams.open(inner)

    # The endpoint that the stream sees

    def writable(self):
        return self._nothing if self.closed else self._receive

    def received(self, size):
        if size == 0:
            self.end()
        else:
            self.process(self._receive, size)

    def process(self, octets, size):
        """Process octets[0:size] off the line."""
        at = 0
        while at < size and not self.closed:
            bad_count = self._reader.bad_count
            at = self._reader.read(octets, at, size)
            if self._reader.size:
                self._process_frame(self._reader.octets, self._reader.size)
            elif self._reader.bad_count > bad_count:
                self.step("noise")

    def out_buffer(self):
        """The writer, which has the next frame: `pending` without a view, which is heap on a board."""
        writer = self._writer
        if writer.start == writer.end:
            self._change_speed()
            if self.speed == self.speed_set:
                writer.start = writer.end = 0
                self._compose()
                writer.line_silent = writer.end == 0
        return writer

    def pending(self):
        writer = self.out_buffer()
        return self._nothing if writer.start == writer.end else writer.octets[writer.start : writer.end]

    def is_read(self):
        """True where `writable` is not empty."""
        return not self.closed

    def sent(self, size):
        self._writer.start += size

    def tick(self, now):
        if not self._ticking:
            self._ticking = True
            self._heard_at = self._asked_at = self._called_at = now
        self._now = now
        if self.state == "opening":
            if not self.turns and elapsed(now, self._asked_at) >= self._retransmit_ms:
                self._ask(_DUE_HELLO)
        elif self.state == "open":
            if elapsed(now, self._heard_at) >= self._dead_ms:
                self.step("lost")
            else:
                self.streams.tick(now)
                if not self.turns:
                    self._ask_when_overdue(now)
        self._judge_speed(now)

    # The line

    def end(self):
        """End the session: the line is gone for good."""
        if not self.closed:
            self.step("over")
            self._writer.clear()
            self._due = 0

    def leave(self):
        """End the session from this end: `pending` has the frame that says so."""
        self.step("leave")

    @property
    def leaving(self):
        """True until the frame that ends the session is sent."""
        return self._due & _DUE_END != 0

    def give_turn(self, silent):
        """Half duplex, active end: speak now. `silent`: how many turns in a row the station has not answered."""
        self._begin_turn()
        if self.closed:
            return
        if self.state != "open" or silent >= _ASKS_MAX:
            self._due |= _DUE_HELLO

    def unplugged(self):
        """Suspend the session: the line is gone for a while, and octets on their way are lost."""
        self._writer.clear()
        self._reader.clear()
        self.speed = self.speed_set = self._agreed_speed = 0
        self._trial = False
        self.has_turn = False

    def plugged(self):
        """There is a line again."""
        self._trials = 0
        if self._active:
            self._greet_again()
        elif not self.turns:
            self._due |= _DUE_CALL

    # Time

    def _ask(self, due):
        self._due |= due
        self._asked_at = self._now

    def _greet_again(self):
        """Active end: send HELLO until the peer answers, because only the answer agrees on a speed."""
        if self._active:
            self._unwelcomed = True
            self._called_at = self._now
            self._ask(_DUE_HELLO)

    def _ask_when_overdue(self, now):
        if self._unwelcomed and elapsed(now, self._called_at) >= self._retransmit_ms:
            self._greet_again()
            return
        asked_ms = elapsed(now, self._asked_at)
        if self._flow.is_waiting() or self._asks:
            if asked_ms < self._ask_ms:
                return
        elif min(asked_ms, elapsed(now, self._heard_at)) < self._keepalive_ms:
            return
        self._asked_at = now
        self._asks += 1
        self._ask_ms = min(2 * self._ask_ms, self._retransmit_ms)
        if self._active and self._asks > _ASKS_FAST_MAX and self.speed:
            self._fall_back()
        if self._active and self._asks > _ASKS_MAX:
            self._due |= _DUE_HELLO
        else:
            self._flow.ask()

    def call(self):
        """Call the peer: the line carries frames that this end does not know, perhaps of a session from before it began."""
        if not self.turns and elapsed(self._now, self._called_at) >= self._retransmit_ms:
            self._called_at = self._now
            self._due |= _DUE_CALL

    def heard(self, greeting=None):
        """Note a frame that only the known peer can have sent, at this speed."""
        self._heard_at = self._now
        self._asks = 0
        self._trial = False

    # Speed

    def _change_speed(self):
        """Change to the speed in the WELCOME, which is on the line."""
        if self._agreed_speed:
            self._begin_trial(self._agreed_speed)
            self._agreed_speed = 0

    def _begin_trial(self, speed):
        if speed != self.speed:
            self.speed = speed
            self._trial = True
            self._asks = 0
            self._asked_at = self._heard_at = self._now

    def _judge_speed(self, now):
        """Go back to the speed where the ends meet when no frame is heard at the agreed one."""
        if self.speed == 0:
            return
        silent_ms = elapsed(now, self._heard_at)
        patience_ms = 4 * self._retransmit_ms if self._trial else 3 * self._keepalive_ms + 2 * self._retransmit_ms
        if silent_ms >= min(patience_ms, self._dead_ms // 2):  # the session is to last until the ends have met again
            self._fall_back()

    def _fall_back(self):
        self._trials += 1 if self._trial else 0
        self._trial = False
        self.speed = 0
        self._greet_again()

    def _speed_offer(self):
        return self._offered_speed if self._trials < _TRIALS_MAX else 0

    # Sessions

    def step(self, input_, *given):
        """Do what the table of this end says of an input."""
        step(self, self._table, self, input_, *given)

    def begin_session(self, greeting):
        """Begin a session, and leave it again where it has no endpoint."""
        self.streams.end_all()
        _, nonce, _, window_size, payload_size_max, check_size, stream_count, _ = greeting
        self._peer_nonce = nonce
        pack_into(">II", self._small, 0, self._nonce if self._active else nonce, nonce if self._active else self._nonce)
        self._checks.begin(bytes(self._small[:8]), max(check_size, self._check_size))
        window_size = min(window_size, self._window_size)
        self._flow.begin(self.streams, window_size, min(payload_size_max, self._payload_size_max, window_size // 2))
        self.streams.begin(stream_count)
        self._heard_at = self._asked_at = self._now
        self._asks = 0
        self._ask_ms = self._quick_ms
        self.session_count += 1
        if self._active and self._make_inner is not None:
            self._only = self._make_inner()
            if self._only is None or not self.streams.open(self._only):
                self.step("leave")

    def end_session(self):
        """End the session without a word to the peer."""
        self._nonce = self._nonce % NONCE_MAX + 1
        self._only = None
        self.streams.end_all()
        self.closed = self.state == "ended"

    def ignore(self, *given):
        """An input without effect in this state."""

    def lose_session(self, greeting=None):
        """End the session of a peer that is gone, or does not know the session."""
        self.end_session()
        self._checks.clear()
        self._due = 0
        if self._active:
            self._ask(_DUE_HELLO)

    def leave_session(self):
        """Leave the session, with an END to the peer."""
        self.end_session()
        self._due = _DUE_END

    def _greet(self, name, octets, size):
        """Process a HELLO or WELCOME. This end counts one with a wrong size or nonce, and does not answer it."""
        if size == HEADER_SIZE or octets[HEADER_SIZE] != VERSION:
            self._refuse_version(octets[HEADER_SIZE] if size > HEADER_SIZE else 0)
            return
        greeting = unpack_from(_GREETING, octets, HEADER_SIZE) if size == HEADER_SIZE + _GREETING_SIZE else None
        if greeting is None or not self._is_sound(greeting):
            self.foreign_count += 1
        elif name == HELLO:
            self._greeted(greeting)
        elif greeting[2] == self._nonce:
            self._welcomed(greeting)
        else:
            self.foreign_count += 1

    def _refuse_version(self, version):
        self.trouble = (
            "the other end of the line speaks version %d of the link and this one version %d: "
            "put the same release of Leveret on both" % (version, VERSION)
        )
        if not self._active:
            self._due |= _DUE_WELCOME  # so that the peer can say the same

    def _is_sound(self, greeting):
        _, nonce, _, window_size, payload_size_max, check_size, stream_count, _ = greeting
        return (
            0 < nonce <= NONCE_MAX
            and window_size in WINDOW_SIZES
            and 32 <= payload_size_max <= 2048
            and check_size in (2, 4)
            and stream_count > 0
            and grain_size(min(window_size, self._window_size)) <= min(payload_size_max, self._payload_size_max)
        )

    def _greeted(self, greeting):
        """Answer a HELLO: of a session that this end knows, of one that it does not know (any more), or of a new one."""
        nonce = greeting[1]
        knows = greeting[2]
        self.trouble = ""
        self._agreed_speed = 0
        if self.state == "open" and nonce == self._peer_nonce and knows in (0, self._nonce):
            self.step("again")
        else:
            self.step("unknown")
            if knows == 0:
                self.step("hello", greeting)
            self._peer_nonce = nonce  # of the session in the HELLO: the WELCOME shows that ours is another one
        self._due |= _DUE_WELCOME
        self._welcome_speed = min(greeting[7], self._speed_offer())

    def _welcomed(self, greeting):
        self.trouble = ""
        self._unwelcomed = False
        was_open = self.is_open
        self.step("welcome" if greeting[1] == self._peer_nonce else "other", greeting)
        if self.is_open:
            if greeting[7]:
                self._begin_trial(greeting[7])
            if greeting[7] or was_open:
                self._flow.ask()

    # Frames off the line

    def _process_frame(self, octets, size):
        kind = octets[0]
        name = kind & NAME_MASK
        if self._checks.is_own(kind):
            self.own_count += 1
        elif is_handshake(kind):
            self._process_handshake(name, octets, size)
        elif self.state != "open":
            self.foreign_count += 1
        elif name == END:
            self.step("lost")
        else:
            self.heard()
            if self._flow.process(name, octets, size):
                self._asked_at = self._now
                self._ask_ms = self._quick_ms
            if name == TURN:
                self._begin_turn()
            if self.streams.broken:
                self.foreign_count += 1
                self.step("lost")

    def _process_handshake(self, name, octets, size):
        if name == CALL and self._active:
            self._ask(_DUE_HELLO)
        elif name == (WELCOME if self._active else HELLO):
            self._greet(name, octets, size)
            if self._active or self._due & _DUE_WELCOME:
                self._begin_turn()
        else:
            self.foreign_count += 1

    def _begin_turn(self):
        if self.turns:
            self.has_turn = True
            self._turn_at = self._now

    # Frames onto the line

    def _compose(self):
        """Make the next frame, where one is due."""
        if self.turns and not (self.has_turn and elapsed(self._now, self._turn_at) >= self._turnaround_ms):
            return
        due = self._due
        if due & _DUE_END:
            self._writer.put(END, 0, 0, self._small, 0)
            self._due = due & ~_DUE_END
            self._checks.clear()
            self.has_turn = False
        elif due & (_DUE_HELLO | _DUE_WELCOME):
            self._due = due & ~(_DUE_HELLO | _DUE_WELCOME | _DUE_CALL)
            self._say_greeting()
            self.has_turn = False
        elif due & _DUE_CALL:
            self._small[0] = VERSION
            self._writer.put(CALL, 0, 0, self._small, 1)
            self._due = due & ~_DUE_CALL
        elif self.state == "open":
            self._compose_in_session()

    def _say_greeting(self):
        in_session = self.state == "open"
        if self._active:
            known, speed = self._peer_nonce if in_session else 0, self._speed_offer()
        else:
            known, speed = self._peer_nonce, self._welcome_speed
            self._agreed_speed = speed if in_session else 0
        pack_into(
            _GREETING,
            self._small,
            0,
            VERSION,
            self._nonce,
            known,
            self._window_size,
            self._payload_size_max,
            self._check_size,
            self._stream_count,
            speed,
        )
        self._writer.put(HELLO if self._active else WELCOME, 0, 0, self._small, _GREETING_SIZE)

    def _compose_in_session(self):
        if self.turns:
            self.has_turn = self._flow.compose_in_turn()
        else:
            waits = self._flow.is_waiting()
            if self._flow.compose() and not waits:
                self._asked_at = self._now
        if self._only is not None and self._writer.end == 0 and self.streams.in_use() == 0 and self._flow.all_has_arrived():
            self.step("leave")
            self._compose()


def require_sizes(window_size, payload_size_max, check_size, receive_size, stream_count, stream_room):
    """Raise ValueError for a size that is out of range."""
    require(window_size in WINDOW_SIZES, "window_size must be one of %s octets" % ", ".join([str(size) for size in WINDOW_SIZES]))
    require(32 <= payload_size_max <= 2048, "payload_size_max must be from 32 to 2048 octets")
    require(
        grain_size(window_size) <= payload_size_max <= window_size // 2,
        "payload_size_max must be from 1/128 to 1/2 of window_size, so that a window has frames of whole grains",
    )
    require(check_size in (2, 4), "check_size must be 2 or 4 octets")
    require(16 <= receive_size <= 65536, "receive_size must be from 16 to 65536 octets")
    require(1 <= stream_count <= STREAM_COUNT_MAX, "stream_count must be from 1 to %d" % STREAM_COUNT_MAX)
    require(64 <= stream_room <= ROOM_MAX, "stream_room must be from 64 to %d octets" % ROOM_MAX)


def require(holds, reason):
    """Raise ValueError(reason) unless `holds`."""
    if not holds:
        raise ValueError(reason)
