"""A broker with a log in memory, for the inputs of extremes.py: who sends them, who is served all the same, and what holds after each.

After every input no error of the broker's own is counted; after every BLOCK of them somebody else's publish comes back by get, time has
passed, what was made is removed and nothing is left in the tables; and the next start, from what a power cut would leave now, is clean.
"""

import json
import os
import random
import sys

import amqp_wire
from amqp_wire import method
from cases import OPEN, SECONDS, Healthy, Link, free_places

from leveret import c_accel
from leveret.core.broker import engine
from leveret.core.broker.broker import Broker
from leveret.core.limits import BOARD, Limits
from leveret.core.recovery import opening

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "unit"))

from memory_store import MemoryStore  # noqa: E402 - its path has to be set first

BLOCK = 25

FORMS = {"plain": engine.Plain}
if c_accel.lib is not None:
    FORMS["C"] = c_accel.Engine

LIMITS = dict(
    BOARD,
    connection_count_max=8,
    argument_size_max=8192,
    management_size_max=16384,
    content_size_max=32768,
    arena_size=1 << 20,
    message_count_max=4096,
    entry_count_max=8192,
    receive_buffer_size=65536,
    send_buffer_size=65536,
    properties_size_max=16384,
    queue_count_max=48,
    queue_share_max=40,
    exchange_count_max=48,
    binding_count_max=2000,
    binding_share_max=1500,
    copy_size_max=1024,
    name_size_max=255,
    consumer_count_max=32,
    channel_count_max=64,
    policy_count_max=64,
    user_count_max=64,
    bridge_count_max=8,
    chunk_count_max=256,
    return_count_max=64,
)


def broker_on(store, form, told):
    """A broker of this form on what the store holds."""
    before, engine.chosen = engine.chosen, form
    try:
        broker = Broker(Limits(**LIMITS), b"extreme", log=told.append)
    finally:
        engine.chosen = before
    broker.tick(1000, SECONDS)
    opening.make_durable(broker, store, "each", 5, 65536, 16384, 16 << 20)
    return broker


class Polite(Link):
    """A peer that answers closes, and forgets what it has heard."""

    def __init__(self, broker):
        Link.__init__(self, broker)
        self.give(OPEN + method(1, "channel.open"))
        self.hear()

    def hear(self):
        """What has come since the last time; false beside it when the connection is over."""
        self.be_polite()
        heard, self.heard = self.heard, []
        del self.said[: self.checked]
        self.checked = 0
        over = self.connection.closed or any(one.name == "connection.close" for one in heard)
        if over and not self.connection.closed:
            self.give(method(0, "connection.close-ok"))
            if not self.connection.closed:
                self.end()
        return heard, not over


class Station:
    """One broker, `victim` and `healthy` peers. `prepare(station)` makes what an entry point needs, and again after each block."""

    def __init__(self, form, prepare=None):
        self.form = form
        self.told = []
        self.store = MemoryStore()
        self.broker = broker_on(self.store, form, self.told)
        self.now = 1000
        self.healthy = Healthy(self.broker)
        self.victim = Polite(self.broker)
        self.start = free_places(self.broker)
        self.prepare = prepare
        if prepare:
            prepare(self)

    def give(self, octets):
        """Octets of the victim's; what it hears. A connection that was closed for it is made anew."""
        self.victim.give(octets)
        heard, lives = self.victim.hear()
        if not lives:
            self.victim = Polite(self.broker)
        return heard

    def pass_time(self, milliseconds):
        """Time passes, for everybody but the healthy one."""
        self.now += milliseconds
        self.broker.tick(self.now & 0x3FFFFFFF, SECONDS + self.now // 1000)
        for connection in list(self.broker.connections):
            connection.tick(self.broker.now)
        self.broker.run()

    def ask(self, octets):
        """A management request, of the healthy one: its answer, or None where a policy has not let the answer's queue keep it."""
        given = amqp_wire.encode_properties({"reply_to": "answers"})
        self.healthy.link.give(
            method(1, "queue.declare", queue="answers") + amqp_wire.publish(1, "", "amq.leveret.management", octets, given, 4096)
        )
        self.healthy.link.take()
        self.healthy.link.check_frames()
        self.healthy.link.give(method(1, "basic.get", queue="answers", no_ack=True))
        self.healthy.link.take()
        found = self.healthy.link.check_frames()
        if found and found[-1].name == "basic.get-empty" and self.broker.policies.by_name:
            return None
        assert found and found[-1].name == "body", found
        answer = json.loads(b"".join(one.payload for one in found if one.name == "body"))
        assert isinstance(answer["ok"], bool), answer
        return answer

    def faults(self):
        """What the broker has counted against itself, with its words."""
        counters = self.broker.counters
        found = [(name, counters[name]) for name in ("internal_errors", "poisoned", "poison_dropped") if counters[name]]
        return found + self.told[-3:] if found else found

    def check(self):
        """The laws that hold after a block."""
        for milliseconds in (60, 60, 3000):
            self.pass_time(milliseconds)
        self.healthy.is_answered()
        again = broker_on(self.store.cut(), self.form, told := [])
        for milliseconds in (1100, 1200, 1300):
            again.tick(milliseconds, SECONDS + 1)
            again.run()
        assert again.counters["internal_errors"] == again.counters["poisoned"] == 0, told[-3:]
        self.victim.end()
        for name in list(self.broker.policies.by_name):  # they may be for the healthy one's queue too
            self.broker.policies.remove(self.broker, name)
        self.healthy.tidy()
        self.pass_time(100)
        self.healthy.is_served()
        assert not self.faults(), self.faults()
        self.victim = Polite(self.broker)
        end = free_places(self.broker)
        assert end == self.start, "left behind: %r" % {name: (self.start[name], end[name]) for name in end if self.start[name] != end[name]}
        if self.prepare:
            self.prepare(self)


def feed(form, prepare, one_input, seed, name, count):
    """Give `count` inputs; `one_input(station, source)`. A failure names the input's index, alone if it fails alone."""
    station = Station(FORMS[form], prepare)
    for first in range(0, count, BLOCK):
        block = range(first, min(first + BLOCK, count))
        try:
            for index in block:
                one_input(station, random.Random("%d %s %d" % (seed, name, index)))
                assert not station.faults(), station.faults()
            station.check()
        except Exception as error:  # whatever is raised is the finding
            for alone in block:
                failed = failure(form, prepare, one_input, random.Random("%d %s %d" % (seed, name, alone)))
                if failed is not None:
                    raise AssertionError(
                        "input %d of %s (%s, LEVERET_FUZZ_SEED=%d) alone: %r" % (alone, name, form, seed, failed)
                    ) from failed
            raise AssertionError(
                "inputs %d to %d of %s (%s, LEVERET_FUZZ_SEED=%d): %r" % (first, block[-1], name, form, seed, error)
            ) from error


def failure(form, prepare, one_input, source):
    """What one input breaks by itself, or None."""
    try:
        station = Station(FORMS[form], prepare)
        one_input(station, source)
        assert not station.faults(), station.faults()
        station.check()
    except Exception as error:  # whatever is raised is the finding
        return error
    return None
