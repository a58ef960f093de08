"""The serial link on a bad line: whatever is flipped, dropped, doubled, invented or cut, the octets arrive in order, once.

Random runs carry their seed in every message; `run(seed, ...)` reruns one.
"""

from same_random import Random, seeds

from leveret.core.serial_link.frame import FrameChecks, FrameWriter
from leveret.core.serial_link.link import Link

STEP_MS = 10
ROUNDS_MAX = 20000
FORTH, BACK = b"forth" * 8, b"back\x7e\x7d" * 6  # of small_run: one error is placed at each octet of theirs, in five ways


class Inner:
    """Sends `outgoing`; takes what comes in pieces of random size, sometimes nothing."""

    def __init__(self, outgoing, random):
        self.outgoing = outgoing
        self.at = 0
        self.incoming = bytearray()
        self.random = random
        self.room = memoryview(bytearray(300))
        self.gone_count = 0
        self.closed = False

    def writable(self):
        return self.room[: 0 if self.random.below(4) == 0 else 1 + self.random.below(300)]

    def received(self, size):
        if size == 0:
            self.gone_count += 1
        self.incoming.extend(self.room[:size])

    def pending(self):
        return memoryview(self.outgoing)[self.at : self.at + 1 + self.random.below(400)]

    def sent(self, size):
        self.at += size

    def tick(self, now):
        pass


class Noise:
    """Damages what goes over the line. `rate`: octets damaged of 10,000; `frame_rate`: frames doubled or cut of 1,000."""

    def __init__(self, random, rate, frame_rate=0):
        self.random = random
        self.rate = rate
        self.frame_rate = frame_rate
        self.count = 0

    def octets(self, frame):
        random = self.random
        out = bytearray()
        for octet in frame:
            if random.below(10000) >= self.rate:
                out.append(octet)
                continue
            self.count += 1
            way = random.below(5)
            if way == 0:
                out.append(octet ^ (1 << random.below(8)))
            elif way == 1:
                out.append(random.below(256))
                out.append(octet)
            elif way == 2:
                out.append(octet)
                out.append(octet)
            elif way == 3:
                out.append(0x7E)
        return out

    def frame(self, frame):
        if self.random.below(1000) < self.frame_rate:
            self.count += 1
            frame = frame + frame if self.random.below(2) else frame[: self.random.below(len(frame))]
        return self.octets(frame)


def text(seed, size):
    random = Random(seed)
    return bytes([0x7D + random.below(2) if random.below(4) == 0 else random.below(256) for _ in range(size)])


def carry(source, target, noise, random):
    """At most three frames over the line, damaged, arriving in pieces of random size."""
    for _ in range(random.below(4)):
        view = source.pending()
        frame = bytes(view)
        source.sent(len(view))
        if frame:
            deliver(target, noise.frame(frame), random)


def deliver(target, octets, random):
    at = 0
    while at < len(octets):
        view = target.writable()
        size = min(1 + random.below(len(view)), len(octets) - at)
        view[:size] = octets[at : at + size]
        target.received(size)
        at += size


def new_end(active, made, outgoing, random, nonce, **arguments):
    """One end of the line; its inner endpoints are added to `made` and take their octets from `outgoing(number)`."""

    def make_inner():
        made.append(Inner(outgoing(len(made)), random))
        return made[-1]

    settings = {
        "window_size": 1024,
        "payload_size_max": 64,
        "receive_size": 128,
        "retransmit_ms": 200,
        "keepalive_ms": 1000,
        "dead_ms": 100000,
        "stream_count": 2,
        "stream_room": 512,
    }
    settings.update(arguments)
    return Link(make_inner, nonce, active=active, **settings)


def run(seed, rate, frame_rate=0, size=3000, **arguments):
    """Both directions at once until all has arrived; returns (active, passive, damages done)."""
    random = Random(seed)
    noise = Noise(random, rate, frame_rate)
    where = "seed %d, rate %d, frame_rate %d, %r" % (seed, rate, frame_rate, arguments)
    forth, back = text(seed, size), text(seed + 1, size)
    left, right = [], []
    active = new_end(True, left, lambda number: forth, random, 1 + seed, **arguments)
    passive = new_end(False, right, lambda number: back, random, 2 + seed, **arguments)
    for count in range(ROUNDS_MAX):
        active.tick(count * STEP_MS)
        passive.tick(count * STEP_MS)
        carry(active, passive, noise, random)
        carry(passive, active, noise, random)
        if left and right:
            assert forth.startswith(bytes(right[0].incoming)), where
            assert back.startswith(bytes(left[0].incoming)), where
            if len(right[0].incoming) == len(forth) and len(left[0].incoming) == len(back):
                break
    else:
        raise AssertionError("not done in %d rounds: %s" % (ROUNDS_MAX, where))
    assert len(left) == len(right) == 1 and left[0].gone_count == right[0].gone_count == 0, where
    return active, passive, noise.count


def test_nothing_is_lost_or_doubled_at_growing_error_rates():
    for seed, rate in ((11, 1), (12, 5), (13, 20), (14, 50), (15, 100), (16, 200)):
        active, passive, damages = run(seed, rate)
        if rate >= 20:
            assert damages and count_of(active, "damaged") + count_of(passive, "damaged") > 0, "seed %d did no damage" % seed


def test_nothing_is_lost_or_doubled_with_frames_doubled_and_cut():
    for seed in seeds(21, 5):
        active, passive, damages = run(seed, 10, frame_rate=150)
        assert damages and count_of(active, "discarded") + count_of(passive, "discarded") > 0, "seed %d" % seed


def count_of(link, name):
    return dict(link.counters)[name]


def test_every_window_and_check_size_holds():
    for seed, window_size in enumerate((256, 512, 2048, 4096, 16384)):
        run(30 + seed, 30, window_size=window_size, payload_size_max=128, size=2000)
    run(36, 20, check_size=2, size=2000)


def test_numbers_wrap_under_noise():
    active, _, _ = run(41, 20, size=12000, payload_size_max=32, window_size=256)
    assert active.moved_count > 512, "the numbers, two a frame, went round at least twice"


class OneError:
    """Damages octet number `place` of the line, in one way; `left` counts what it has let through."""

    def __init__(self, place, way):
        self.left = place
        self.way = way

    def frame(self, frame):
        place = self.left
        self.left -= len(frame)
        if not 0 <= place < len(frame):
            return frame
        middle = (b"", bytes((frame[place] ^ 0x40,)), frame[place : place + 1] * 2, b"\x7e", b"\x7d")[self.way]
        return frame[:place] + middle + frame[place + 1 :]


class NoError:
    def frame(self, frame):
        return frame


def small_run(error, error_way):
    """A short exchange with one error on the way forth (0) or back (1); returns the octets that were sent on that way."""
    random = Random(7)
    left, right = [], []
    active = new_end(True, left, lambda number: FORTH, random, 1)
    passive = new_end(False, right, lambda number: BACK, random, 2)
    noises = [NoError(), NoError()]
    noises[error_way] = error
    where = "octet %d, damage %d, way %d" % (error.left, error.way, error_way)
    place = error.left
    for count in range(2000):
        active.tick(count * STEP_MS)
        passive.tick(count * STEP_MS)
        carry(active, passive, noises[0], random)
        carry(passive, active, noises[1], random)
        if left and right and len(right[0].incoming) >= len(FORTH) and len(left[0].incoming) >= len(BACK):
            break
    assert len(left) == len(right) == 1, where
    assert bytes(right[0].incoming) == FORTH and bytes(left[0].incoming) == BACK, where
    return place - error.left


def test_one_error_at_every_octet_in_every_way():
    for error_way in (0, 1):
        length = small_run(OneError(1 << 20, 0), error_way)
        assert length > 100
        for place in range(length):
            for way in range(5):
                small_run(OneError(place, way), error_way)


def test_garbage_before_between_and_after_is_passed_over():
    for seed in seeds(51, 4):
        random = Random(seed)
        left, right = [], []
        active = new_end(True, left, lambda number: text(1, 1000), random, 1)
        passive = new_end(False, right, lambda number: text(2, 1000), random, 2)
        for count in range(1000):
            if count < 5 or count % 40 == 0 or count > 900:
                deliver(active, bytes([random.below(256) for _ in range(random.below(300))]), random)
                deliver(passive, b"MicroPython v1.27\r\n>>> ", random)
            active.tick(count * STEP_MS)
            passive.tick(count * STEP_MS)
            carry(active, passive, NoError(), random)
            carry(passive, active, NoError(), random)
        assert len(left) == len(right) == 1, "seed %d" % seed
        assert bytes(right[0].incoming) == text(1, 1000) and bytes(left[0].incoming) == text(2, 1000), "seed %d" % seed


class Restarts:
    """A noisy line whose ends start anew now and then: every stream that arrives belongs to one session."""

    def __init__(self, seed):
        self.seed = seed
        self.random = Random(seed)
        self.noise = Noise(self.random, 10, 20)
        self.made = ([], [])
        self.ends = [None, None]
        self.nonce = seed
        self.now = 0

    def start(self, side):
        self.nonce += 1000
        self.ends[side] = new_end(side == 0, self.made[side], self.outgoing(side), self.random, self.nonce, dead_ms=5000)

    def outgoing(self, side):
        return lambda number: b"%d:%d:" % (side, number) + text(number * 2 + side, 1500)

    def step(self):
        self.now += STEP_MS
        for end in self.ends:
            end.tick(self.now)
        carry(self.ends[0], self.ends[1], self.noise, self.random)
        carry(self.ends[1], self.ends[0], self.noise, self.random)

    def check(self):
        """What an inner endpoint got is the beginning of what exactly one on the other side sent, and no two got the same one's."""
        for side in (0, 1):
            heads = []
            for inner in self.made[side]:
                got = bytes(inner.incoming)
                if len(got) >= 8:
                    senders = [other for other in self.made[1 - side] if other.outgoing.startswith(got)]
                    assert len(senders) == 1, "seed %d" % self.seed
                    heads.append(senders[0].outgoing[:8])
            assert len(heads) == len(set(heads)), "seed %d" % self.seed


def test_restarts_of_either_end_never_mix_sessions():
    for seed in seeds(61, 4):
        line = Restarts(seed)
        line.start(0)
        line.start(1)
        for _ in range(12):
            for _ in range(10 + line.random.below(150)):
                line.step()
            line.start(line.random.below(2))
        for _ in range(3000):
            line.step()
        line.check()
        for side in (0, 1):
            last = line.made[side][-1]
            assert len(last.incoming) == len(line.made[1 - side][-1].outgoing) and last.gone_count == 0, "seed %d" % seed
        assert len(line.made[0]) > 6, "seed %d made too few sessions to show anything" % seed


def any_frame(random, link):
    """A frame whose check is right and whose contents are anything, often near what is meant."""
    checks = FrameChecks(random.below(2) == 0)
    checks.size, checks.seed = link._checks.size, link._checks.seed
    writer = FrameWriter(300, checks)
    payload = bytes([random.below(256) for _ in range(random.below(300))])
    name = random.below(16) if random.below(4) == 0 else 1 + random.below(5)
    if random.below(3) == 0:
        payload = b"\x40\x80\x04\x00\x00\x00\x05hello" + payload[: random.below(100)]
    if not checks.size or random.below(9) == 0:
        name = 6 + random.below(2)
        payload = bytes(
            (
                2,
                0,
                0,
                0,
                random.below(4),
                0,
                0,
                0,
                random.below(4),
                random.below(8),
                0,
                1,
                random.below(4),
                2 * random.below(3),
                random.below(4),
                0,
                0,
                0,
                0,
            )
        )
    writer.put(name, random.below(12), random.below(3), memoryview(payload), len(payload))
    return bytes(writer.octets[: writer.end])


def test_no_frame_that_a_peer_can_send_raises_or_makes_it_send_without_end():
    sessions, streams = [0, 0], [0, 0]
    for seed in range(71, 81):
        random = Random(seed)
        made = []
        link = new_end(seed % 2 == 0, made, lambda number: text(number, 500), random, 1, payload_size_max=256, dead_ms=20000)
        now = 0
        for _ in range(300):
            octets = any_frame(random, link)
            deliver(link, octets[: random.below(len(octets))] if random.below(10) == 0 else octets, random)
            now += random.below(400)
            link.tick(now)
            count = 0
            while len(link.pending()) and count < 100:
                link.sent(len(link.pending()))
                count += 1
            assert count < 100, "seed %d" % seed
        sessions[seed % 2] += link.session_count
        streams[seed % 2] += len(made)
    assert min(sessions) >= 9 and min(streams) >= 1, "there were too few sessions to show anything: %r, %r" % (sessions, streams)
