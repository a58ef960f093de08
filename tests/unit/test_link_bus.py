"""A half-duplex line with one master and several stations: one speaks at a time, and each connection reaches its own station."""

from link_ends import Inner, Maker, count_of, text

from leveret.core.serial_link.bus import Bus
from leveret.core.serial_link.link import Link

STEP_MS = 2
OCTETS_PER_STEP = 24  # 115,200 bits per second


class Wire:
    """One pair of wires: whoever sends, all hear it, and what two send at once is garbage. `echo`: the sender hears itself too."""

    def __init__(self, bus, stations, echo=False):
        self.ends = [bus] + stations
        self.queues = [b""] * len(self.ends)
        self.echo = echo
        self.now = 0
        self.collisions = 0
        self.busy = [0] * len(self.ends)

    def step(self):
        self.now += STEP_MS
        for number, end in enumerate(self.ends):
            if end is None:
                continue
            end.tick(self.now)
            view = end.pending()
            while len(view) and len(self.queues[number]) < 200:
                self.queues[number] += bytes(view)
                end.sent(len(view))
                view = end.pending()
        speakers = [number for number, queue in enumerate(self.queues) if queue]
        self.collisions += len(speakers) > 1
        for number in speakers:
            octets = bytes(self.queues[number][:OCTETS_PER_STEP])
            self.queues[number] = self.queues[number][OCTETS_PER_STEP:]
            self.busy[number] += len(octets)
            if len(speakers) > 1:
                octets = bytes([octet ^ 0x55 for octet in octets])
            self.hear(number, octets)

    def hear(self, speaker, octets):
        for number, end in enumerate(self.ends):
            if end is not None and (number != speaker or self.echo):
                end.writable()[: len(octets)] = octets
                end.received(len(octets))

    def run(self, steps):
        for _ in range(steps):
            self.step()


def wire(addresses, echo=False, silent=()):
    """(wire, bus, links of the master, makers of the stations)."""
    links = [Link(None, 100 + address, active=True, turns=True, address=address) for address in addresses]
    makers = [Maker() for _ in addresses]
    stations = [
        None if address in silent else Link(maker, 200 + address, turns=True, address=address) for address, maker in zip(addresses, makers)
    ]
    bus = Bus(links, 11520)
    return Wire(bus, stations, echo), bus, links, makers


def test_each_station_gets_what_is_for_it_and_nothing_collides():
    for echo in (False, True):
        line, bus, links, makers = wire((1, 2, 7), echo)
        line.run(300)
        assert [link.is_open for link in links] == [True] * 3
        inners = [Inner(text(3000, number)) for number in range(3)]
        for link, inner in zip(links, inners):
            assert link.open(inner)
        line.run(50)
        for number, maker in enumerate(makers):
            maker.made[0].outgoing = text(2000, 100 + number)
        line.run(3000)
        assert [bytes(maker.made[0].incoming) for maker in makers] == [text(3000, number) for number in range(3)]
        assert [bytes(inner.incoming) for inner in inners] == [text(2000, 100 + number) for number in range(3)]
        assert line.collisions == 0 and bus.timeout_count == 0
        assert (count_of(links[0], "own") > 0) == echo


def test_a_silent_station_costs_its_time_out_now_and_then():
    line, bus, links, makers = wire((1, 2), silent=(2,))
    line.run(500)
    inner = Inner(text(60000))
    assert links[0].open(inner) and not links[1].is_open
    line.run(2000)
    share = len(makers[0].made[0].incoming) / 2000 / OCTETS_PER_STEP
    assert share > 0.8, "the other one has most of the line: %r" % share
    assert 3 <= bus.timeout_count <= 6, "asked once a second, for 60 ms"


def test_a_station_that_comes_later_and_one_that_begins_anew_are_found():
    line, bus, links, makers = wire((1, 2), silent=(2,))
    line.run(2000)
    line.ends[2] = Link(makers[1], 500, turns=True, address=2)
    line.run(1500)
    assert links[1].is_open
    inner = Inner(b"one")
    links[1].open(inner)
    line.run(200)
    line.ends[2] = Link(makers[1], 900, turns=True, address=2)
    line.run(2500)
    assert inner.gone_count == 1 and links[1].is_open and links[1].session_count == 2
    links[1].open(Inner(b"two"))
    line.run(200)
    assert [bytes(each.incoming) for each in makers[1].made] == [b"one", b"two"] and line.collisions == 0


def test_a_lost_turn_is_given_again_and_nothing_is_lost():
    line, bus, links, makers = wire((1, 2))
    line.run(300)
    inners = [Inner(text(3000, number)) for number in range(2)]
    for link, inner in zip(links, inners):
        link.open(inner)
    hear, count = line.hear, [0]

    def damaged(speaker, octets):
        count[0] += 1
        hear(speaker, bytes([octets[0] ^ 1]) + octets[1:] if count[0] % 17 == 0 else octets)

    line.hear = damaged
    line.run(6000)
    assert [bytes(maker.made[0].incoming) for maker in makers] == [text(3000, number) for number in range(2)]
    assert bus.timeout_count > 0 and line.collisions == 0


def test_a_quiet_line_is_asked_now_and_then_and_stays_alive():
    line, bus, links, makers = wire((1, 2))
    line.run(300)
    line.busy = [0, 0, 0]
    line.run(3000)
    assert [link.session_count for link in links] == [1, 1] and sum(line.busy) < 0.3 * 3000 * OCTETS_PER_STEP
    inner = Inner(b"soon")
    links[1].open(inner)
    line.run(60)
    assert bytes(makers[1].made[0].incoming) == b"soon"


def test_the_line_is_unplugged_and_the_sessions_go_on():
    line, bus, links, makers = wire((1, 2))
    line.run(300)
    inner = Inner(text(5000))
    links[0].open(inner)
    line.run(100)
    bus.unplugged()
    line.queues[0] = b""
    ends, line.ends[0] = line.ends[0], None
    for _ in range(3000):
        line.step()
        bus.tick(line.now)
    line.ends[0] = ends
    bus.plugged()
    line.run(3000)
    assert bytes(makers[0].made[0].incoming) == text(5000) and [link.session_count for link in links] == [1, 1]


def test_nobody_has_the_turn_on_a_line_that_is_unplugged():
    """Octets that were still on their way are nobody's, and the first station is asked anew when there is a line again."""
    line, bus, links, makers = wire((1, 2))
    line.run(300)
    while bus.state == "idle":
        line.run(1)
    heard = [dict(link.counters) for link in links]
    bus.unplugged()
    view = bus.writable()
    view[0:4] = b"\x7e\x00\x01\x7e"
    bus.received(4)
    assert [dict(link.counters) for link in links] == heard and bus.state == "idle" and bus._turn is None
    bus.plugged()
    line.run(300)
    inner = Inner(text(500))
    links[1].open(inner)
    line.run(500)
    assert bytes(makers[1].made[-1].incoming) == text(500) and [link.session_count for link in links] == [1, 1]


def test_a_station_that_the_master_leaves_keeps_no_other_from_its_turn():
    """The end of a session is the last frame of a turn."""
    line, bus, links, makers = wire((1, 2))
    line.run(300)
    links[0].leave()
    line.run(500)
    inner = Inner(text(1000))
    assert links[1].open(inner) and not links[0].leaving and not links[0].is_open
    line.run(1000)
    assert bytes(makers[1].made[0].incoming) == text(1000) and line.collisions == 0


def test_each_input_in_each_state_of_the_turns():
    """What BUS (core/serial_link/states.py) says is what the master does."""
    wanted = {
        "idle": {"due": "speaking", "passed": "idle", "returned": "idle", "silent": "idle", "unplugged": "idle"},
        "speaking": {"due": "speaking", "passed": "listening", "returned": "speaking", "silent": "speaking", "unplugged": "idle"},
        "listening": {"due": "listening", "passed": "listening", "returned": "idle", "silent": "idle", "unplugged": "idle"},
    }
    for state in wanted:
        for name in wanted[state]:
            bus = Bus([Link(None, 1, active=True, turns=True, address=1)], 11520)
            if state != "idle":
                bus.step("due", 0)
            if state == "listening":
                bus.step("passed")
            bus.step(name, *((0,) if name == "due" else ()))
            assert bus.state == wanted[state][name], (state, name)
            assert (bus._turn is None) == (bus.state == "idle"), (state, name)
            assert bus.timeout_count == ((state, name) == ("listening", "silent"))


def test_a_station_that_speaks_slowly_keeps_its_turn_while_it_speaks():
    """silence_ms is between octets, and begins behind what the master has sent."""
    bus = Bus([Link(None, 1, active=True, turns=True, address=1)], 11520, silence_ms=60)
    now, sent = 1000, 0
    while bus.state != "listening":
        bus.tick(now)
        view = bus.pending()
        sent += len(view)
        if len(view):
            bus.sent(len(view))
        now += not len(view) and bus.state != "listening"
    speaks_at = now + sent * 1000 // 11520
    assert sent > 0
    bus.tick(speaks_at + 59)
    bus.writable()[:1] = b"\x01"
    bus.received(1)
    bus.tick(speaks_at + 118)
    assert bus.state == "listening" and bus.timeout_count == 0
    bus.tick(speaks_at + 119)
    assert bus.state == "idle" and bus.timeout_count == 1
