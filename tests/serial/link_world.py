"""Two ends of a serial link, or a master and its stations, in a simulated world that damages what it can: everything follows from a seed.

`World(seed).run()` returns counts, or raises Wrong. Octets are flipped, lost, doubled and invented, singly and in bursts; boot messages
stand between frames; cables are pulled out at either end, for a moment or for longer than a session waits; one direction goes dead
unnoticed; programs at either end begin anew; the ends may agree on a speed that the line does not carry; readers are slow; connections
come and go. Laws that are checked at every octet: what a connection receives is what its one peer sent, in order, once; a connection
ends only for a reason; and when the world has been calm for a while, everything has arrived. Nothing in here waits for a real clock.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "simulate"))

from chance import Chance  # noqa: E402 - the path above has to be set first

from leveret import c_accel  # noqa: E402 - where this is imported from, the path has to be set first
from leveret.core.serial_link import stuffing  # noqa: E402 - as above
from leveret.core.serial_link.bus import Bus  # noqa: E402 - the path above has to be set first
from leveret.core.serial_link.link import Link  # noqa: E402 - the path above has to be set first

STEP_MS = 5
BAUD = 57600
OCTETS_PER_STEP = BAUD * STEP_MS // 10000
TROUBLED_STEPS = 3000
CALM_STEPS = 12000
DEAD_MS = 6000
BOOT = b"\r\nets Jul 29 2019 12:21:46\r\nrst:0x1 (POWERON_RESET)\r\nMicroPython v1.27.0\r\n>>> \x7e\x03\x04"


def form_of(seed, active):
    """The form of core/serial_link/stuffing.py that an end of a seed's line has: both plain, one of them, or both in C where there is C."""
    if c_accel.lib is None or not seed >> active & 1:
        return stuffing.Plain
    from leveret.c_accel.framing import Framing

    return Framing


class Wrong(Exception):
    """A law does not hold."""


class Talk:
    """One end of a connection: says its number and a text that follows from it, and knows from the number it hears what must come."""

    def __init__(self, world, side):
        self.world = world
        self.side = side
        self.number = len(world.talks)
        world.talks.append(self)
        self.text = self.number.to_bytes(4, "big") + random.Random(self.number * 7919 + world.seed).randbytes(world.chance.below(5000))
        self.at = 0
        self.heard = bytearray()
        self.peer = None
        self.gone = self.closed = self.slow = self.was_slow = False
        self.room = memoryview(bytearray(700))

    def writable(self):
        self.was_slow = self.was_slow or self.slow
        return self.room[: 0 if self.slow else 1 + self.world.chance.below(700)]

    def received(self, size):
        if size == 0:
            self.end()
            return
        self.was_slow = False
        self.heard += self.room[:size]
        if self.peer is None and len(self.heard) >= 4:
            self.world.introduce(self, int.from_bytes(self.heard[:4], "big"))
        if self.peer is not None and self.peer.text[len(self.heard) - size : len(self.heard)] != bytes(self.room[:size]):
            raise Wrong("connection %d: octets altered, lost or doubled before octet %d" % (self.number, len(self.heard)))

    def end(self):
        if self.gone:
            raise Wrong("connection %d is told of its end twice" % self.number)
        self.gone = self.closed = True
        if self.was_slow:
            return  # who takes nothing for seconds is not waited for
        if self.peer is not None and self.peer.closed and not self.peer.gone:
            if len(self.heard) < len(self.peer.text) and not self.world.excuses:
                raise Wrong("connection %d ends after %d of %d octets" % (self.number, len(self.heard), len(self.peer.text)))
        elif not self.world.excuses and not (self.peer is None and self.world.closing):
            raise Wrong("connection %d ends for nothing" % self.number)

    def pending(self):
        return memoryview(self.text)[self.at : self.at + 1 + self.world.chance.below(900)]

    def sent(self, size):
        self.at += size

    def tick(self, now):
        """Nothing here is on a clock."""

    def complete(self):
        return self.peer is not None and len(self.heard) == len(self.peer.text)


class Way:
    """One direction, or the whole of a shared wire: a device's queue, the line's speed, the damage."""

    def __init__(self, chance):
        self.chance = chance
        self.queue = bytearray()
        self.depth = chance.pick((16, 64, 512, 4096))
        self.rate = 0  # octets damaged of a million
        self.burst = 0  # octets of the line's time that are still to be replaced
        self.dead = False
        self.damages = 0

    def carry(self, garbled):
        octets = bytes(self.queue[:OCTETS_PER_STEP])
        del self.queue[:OCTETS_PER_STEP]
        if self.dead:
            return b""
        if garbled:
            return bytes([octet ^ 0x5A for octet in octets])
        if not self.rate and not self.burst:
            return octets
        out = bytearray()
        for octet in octets:
            out += self.damaged(octet)
        return bytes(out)

    def damaged(self, octet):
        chance = self.chance
        if self.burst:
            return bytes((chance.below(256),))
        if chance.below(1000000) >= self.rate:
            return bytes((octet,))
        self.damages += 1
        return (
            bytes((octet ^ 1 << chance.below(8),)),
            b"",
            bytes((octet, octet)),
            bytes((chance.below(256), octet)),
            bytes((octet ^ 1 << chance.below(8) ^ 1 << chance.below(8),)),
        )[chance.below(5)]


class Seat:
    """A program at one end of the line: its Link (the master of a shared line: its Bus) and its device."""

    def __init__(self, world, side, make):
        self.world = world
        self.side = side
        self.make = make
        self.plugged = True
        self.back_at = 0
        self.begin()

    def begin(self):
        self.endpoint, self.links = self.make()
        if self.world.spoil is not None:
            for link in self.links:
                self.world.spoil(link)
        if not self.plugged:
            self.endpoint.unplugged()

    def pull(self, until):
        self.plugged = False
        self.back_at = until
        self.endpoint.unplugged()

    def push(self):
        self.plugged = True
        self.endpoint.plugged()

    def speed(self):
        return self.links[0].speed_set


class World:
    def __init__(self, seed, spoil=None, kind=None, printing=False):
        self.seed = seed
        self.spoil = spoil
        self.printing = printing
        self.chance = Chance(seed)
        self.now = self.chance.pick((0, 0x3FFFFFFF - 9000))
        self.talks = []
        self.introduced = set()
        self.excuses = 0
        self.closing = 0
        self.outage_ms = 0
        self.kind = kind or self.chance.pick(("noise", "noise", "cables", "restarts", "speed", "bus"))
        self.counts = dict.fromkeys(
            ("connections", "octets", "damages", "pulls", "restarts", "sessions", "again", "quiet cuts", "bursts"), 0
        )
        self.settings = self.choose_settings()
        self.line_speed = self.chance.pick((0, 1000000))
        self.stations = self.chance.between(1, 3) if self.kind == "bus" else 1
        self.echo = self.kind == "bus" and self.chance.one_in(2)
        self.seats = [Seat(self, 0, self.make_master)] + [
            Seat(self, 1 + number, lambda number=number: self.make_station(number)) for number in range(self.stations)
        ]
        self.ways = [Way(self.chance) for _ in self.seats]

    def choose_settings(self):
        chance = self.chance
        window_size = chance.pick((256, 512, 1024, 4096, 16384))
        # CRC-16 lets one of 65,536 damaged frames through: it is tried where nothing is damaged.
        check_size = chance.pick((2, 4)) if self.kind == "cables" else 4
        return {
            "window_size": window_size,
            "payload_size_max": min(window_size // 2, chance.pick((128, 256, 1024))),
            "check_size": check_size,
            "receive_size": chance.pick((16, 100, 4096)),
            "stream_count": chance.between(1, 5),
            "stream_room": chance.pick((64, 500, 4096)),
            "retransmit_ms": 200 + window_size * 20000 // BAUD,
            "keepalive_ms": 1000,
            "dead_ms": DEAD_MS + 2 * window_size * 20000 // BAUD,
        }

    def new_link(self, make_inner, active, address):
        speed = self.chance.pick((0, 500000)) if self.kind == "speed" else 0
        chosen, stuffing.chosen = stuffing.chosen, form_of(self.seed, active)
        try:
            return self.link_of_the_chosen_form(make_inner, active, address, speed)
        finally:
            stuffing.chosen = chosen

    def link_of_the_chosen_form(self, make_inner, active, address, speed):
        return Link(
            make_inner,
            self.chance.between(1, 0x3FFFFFFF),
            active,
            address=address,
            turns=address > 0,
            speed=speed,
            turnaround_ms=self.chance.pick((0, 3, 8)),
            **self.settings,
        )

    def make_master(self):
        links = [self.new_link(None, True, number + 1 if self.kind == "bus" else 0) for number in range(self.stations)]
        if self.kind != "bus":
            return links[0], links
        return Bus(links, BAUD // 10, receive_size=4096), links

    def make_station(self, number):
        link = self.new_link(lambda: Talk(self, 1), False, number + 1 if self.kind == "bus" else 0)
        return link, [link]

    # What happens

    def run(self):
        for _ in range(TROUBLED_STEPS):
            self.trouble()
            self.step()
        self.calm_down()
        for step in range(CALM_STEPS):
            self.step()
            if step % 20 == 0 and self.settled():
                break
        self.judge()
        return self.counts

    def trouble(self):
        chance = self.chance
        if chance.one_in(60):
            self.open_or_close()
        if chance.one_in(100):
            for talk in self.talks[-4:]:
                talk.slow = chance.one_in(3)
        if self.kind != "cables" and chance.one_in(200):
            chance.pick(self.ways).rate = chance.pick((0, 10, 100, 1000, 3000, 10000))
        if self.kind != "cables" and chance.one_in(500):
            chance.pick(self.ways).burst = chance.between(1, 600)
            self.counts["bursts"] += 1
        if self.kind in ("cables", "restarts", "bus") and chance.one_in(400):
            self.pull_a_cable()
        if self.kind == "cables" and chance.one_in(600):
            way = chance.pick(self.ways)
            way.dead = not way.dead
            self.counts["quiet cuts"] += 1
        if self.kind in ("restarts", "speed", "bus") and chance.one_in(700):
            self.restart(chance.pick(self.seats))
        for seat in self.seats:
            if not seat.plugged and (self.now - seat.back_at) & 0x3FFFFFFF < 0x20000000:
                seat.push()

    def open_or_close(self):
        if self.chance.one_in(2):
            link = self.chance.pick(self.seats[0].links)
            if link.is_open and link.streams.in_use() < link.streams.count:
                talk = Talk(self, 0)
                if not link.open(talk):
                    raise Wrong("a connection cannot be opened though there is room")
                self.counts["connections"] += 1
            return
        done = [talk for talk in self.talks if not talk.closed and talk.at == len(talk.text)]
        if done:
            self.closing += 1
            self.chance.pick(done).closed = True

    def pull_a_cable(self):
        seat = self.chance.pick(self.seats)
        if seat.plugged:
            longest = DEAD_MS // 3
            if self.kind == "restarts" and self.chance.one_in(4):
                longest = 3 * DEAD_MS
                self.excuse()
            seat.pull((self.now + self.chance.below(longest)) & 0x3FFFFFFF)
            for way in self.ways:
                way.queue.clear()
            self.counts["pulls"] += 1

    def restart(self, seat):
        self.excuse()
        for talk in self.talks:
            talk.slow = False
        old = seat.links
        seat.begin()
        for link in old:
            link.end()
        self.ways[seat.side].queue.clear()
        if self.chance.one_in(2):
            self.ways[seat.side].queue += BOOT
        self.counts["restarts"] += 1

    def excuse(self):
        self.excuses += 1

    def calm_down(self):
        for way in self.ways:
            way.rate = way.burst = 0
            way.dead = False
        for seat in self.seats:
            if not seat.plugged:
                seat.push()
        for talk in self.talks:
            talk.slow = False

    def watch_outages(self):
        """Nothing gets through for about as long as a session waits: it may be lost then."""
        cut = any(way.dead for way in self.ways) or not all(seat.plugged for seat in self.seats)
        self.outage_ms = max(0, self.outage_ms + (STEP_MS if cut else -STEP_MS))
        if self.outage_ms > DEAD_MS // 2:
            self.excuse()

    # Octets

    def step(self):
        self.now = (self.now + STEP_MS) & 0x3FFFFFFF
        self.watch_outages()
        for seat in self.seats:
            seat.endpoint.tick(self.now)
            self.load(seat, self.ways[seat.side])
        for seat in self.seats:
            self.unload(seat, self.ways[seat.side])
        for way in self.ways:
            way.burst = max(0, way.burst - OCTETS_PER_STEP)

    def load(self, seat, way):
        if not seat.plugged:
            return
        view = seat.endpoint.pending()
        while len(view) and len(way.queue) < way.depth:
            view = view[: way.depth - len(way.queue)]
            way.queue += view
            seat.endpoint.sent(len(view))
            view = seat.endpoint.pending()
        if not way.queue:
            for link in seat.links:
                link.speed_set = link.speed

    def unload(self, seat, way):
        colliding = self.kind == "bus" and sum([len(other.queue) > 0 for other in self.ways]) > 1
        if not way.queue:
            return
        hearers = [other for other in self.seats if other.plugged and (other is not seat or self.echo)]
        spoken = way.carry(colliding)
        for other in hearers:
            octets = spoken
            if seat.speed() != other.speed() or (seat.speed() and not self.line_speed):
                octets = bytes([octet ^ 0x5A for octet in spoken])
            self.hear(other.endpoint, octets)

    def hear(self, endpoint, octets):
        while octets:
            view = endpoint.writable()
            piece = octets[: len(view)]
            view[: len(piece)] = piece
            endpoint.received(len(piece))
            octets = octets[len(piece) :]

    # Laws

    def introduce(self, talk, number):
        if number >= len(self.talks) or self.talks[number].side == talk.side or number in self.introduced:
            raise Wrong("connection %d hears somebody who is not its peer: %d" % (talk.number, number))
        self.introduced.add(number)
        talk.peer = self.talks[number]
        if talk.peer.peer not in (None, talk):
            raise Wrong("connection %d is heard by two" % number)

    def living(self):
        """Both ends of each connection that nobody has ended."""
        return [talk for talk in self.talks if talk.peer is not None and not talk.closed and not talk.peer.closed]

    def settled(self):
        open_links = all(link.is_open for seat in self.seats for link in seat.links)
        return open_links and all(talk.complete() for talk in self.living()) and self.all_known()

    def all_known(self):
        return all(talk.peer is not None or talk.closed for talk in self.talks)

    def judge(self):
        for seat in self.seats:
            for link in seat.links:
                if not link.is_open:
                    raise Wrong("there is no session on a calm line")
                if link.trouble or dict(link.counters)["foreign"] and self.kind == "noise":
                    raise Wrong("a frame that nobody sent was taken for one: %r" % (link.counters,))
                self.counts["sessions"] += link.session_count
                self.counts["again"] += dict(link.counters)["sent again"]
        if not self.excuses and any(link.session_count != 1 for link in self.seats[0].links):
            raise Wrong("a session was lost for nothing")
        for talk in self.living():
            if not talk.complete():
                raise Wrong("connection %d has %d of %d octets on a calm line" % (talk.number, len(talk.heard), len(talk.peer.text)))
        if not self.all_known():
            raise Wrong("a connection never reached its other end")
        self.counts["octets"] = sum([len(talk.heard) for talk in self.talks])
        self.counts["damages"] = sum([way.damages for way in self.ways])
