"""AMQP 0-10: sequences out of the grammar, whole and wounded, over a session that lives: the laws of cases.py hold. Recorded seeds run each
time; LEVERET_FUZZ_SEED=N and LEVERET_FUZZ_ROUNDS=N as for 0-9-1.
"""

import os
import random
import time

import cases
import grammar_0_10
import invariants
import pytest
from cases import Healthy, Link, free_places, new_broker
from sequences import mutate

from leveret import c_accel
from leveret.core.amqp_0_10 import frame, structs
from leveret.core.amqp_0_10.spec_0_10 import CLOSES, DETACHES, ERRORS, HEADER
from leveret.core.broker import engine

SEED = int(os.environ.get("LEVERET_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
ROUNDS = int(os.environ.get("LEVERET_FUZZ_ROUNDS", "1"))
RECORDED = range(60)
SECONDS = 3
WOUNDS = {"whole": 0.0, "wounded": 0.1}


def end_all(broker):
    """The timeouts of sessions that live beyond their transport are over, and a manager rolls all branches back."""
    if broker.beyond is not None:
        for session in broker.beyond.by_name.values():
            session.until = 0
        broker.beyond.tick()
        for branch in list(broker.beyond.branches.by_xid.values()) if broker.beyond.branches is not None else ():
            broker.beyond.branches.forget(branch)


def control(title, **given):
    return frame.write(frame.WHOLE, frame.CONTROL, 0, structs.write_control(title, given))


class Live:
    """A connection with a session, which is begun anew when the broker has ended it. `sent`: transfers that came."""

    def __init__(self, broker):
        self.link = Link(broker)
        self.read, self.sent, self.names, self.opens = 0, 0, 0, {}
        given = {"mechanism": "PLAIN", "response": b"\0guest\0guest", "locale": "en_US"}
        self.link.give(HEADER + control("connection_start_ok", **given) + control("connection_tune_ok", channel_max=8))
        self.link.give(control("connection_open", virtual_host="/"))
        self.hear()
        self.begin()

    def begin(self):
        """A session."""
        self.names += 1
        self.link.give(
            control("session_attach", name=b"fuzz%d" % self.names) + control("session_command_point", command_id=0, command_offset=0)
        )
        self.hear()

    def hear(self):
        """Law 2 for all that was said: whole frames, segments in their order, codes of the tables."""
        self.link.take()
        said = self.link.said
        if self.read == 0:
            assert bytes(said[:8]) == HEADER
            self.read = 8
        ended = False
        while True:
            head = frame.read(said, self.read, len(said), 65535)
            if head is None:
                break
            flags, type_, _, channel, at, end = head
            self.read = end
            if type_ == frame.CONTROL:
                name, fields = structs.control(bytes(said[at:end]))
                if name == "connection_close":
                    assert fields["reply_code"] in CLOSES.values() and fields["reply_text"], fields
                if name == "session_detached":
                    assert fields["code"] in DETACHES.values(), fields
                is_ours = channel == 0 and fields.get("name") == b"fuzz%d" % self.names
                ended = ended or is_ours and (name == "session_detach" or name == "session_detached" and fields["code"] not in (1, 2))
                if name == "session_detach":
                    self.link.give(control("session_detached", name=fields["name"], code=0))
                continue
            ended = self.command(flags, type_, channel, bytes(said[at:end])) or ended
        if ended and not self.link.connection.closed:
            self.begin()

    def command(self, flags, type_, channel, octets):
        """A frame of a command: its segments come in their order."""
        due = self.opens.get(channel, frame.COMMAND)
        begins = flags & frame.FIRST_FRAME
        assert type_ == due or begins and type_ == due + 1 > frame.HEADER, (type_, due)
        if flags & frame.LAST_FRAME:
            if flags & frame.LAST_SEGMENT:
                self.opens.pop(channel, None)
            else:
                self.opens[channel] = type_ + 1
        if type_ != frame.COMMAND:
            return False
        name, fields, _ = structs.command(octets)
        self.sent += 1
        if name == "execution_exception":
            assert fields["error_code"] in ERRORS.values() and fields["description"], fields
        return False


def broker_of(seed):
    """A broker whose hot functions are in C for every other seed, where there is C."""
    before = engine.chosen
    if seed % 2 and c_accel.lib is not None:
        engine.chosen = c_accel.Engine
    try:
        return new_broker(argument_size_max=1024, channel_max=16, send_buffer_size=2048, staged_count_max=3, staged_memory_max=20000)
    finally:
        engine.chosen = before


def run(seed, wounds):
    """One case."""
    source = random.Random(seed)
    broker = broker_of(seed)
    healthy = Healthy(broker)
    start = free_places(broker)
    broker.topology.declare_queue(healthy.link.connection, "a", False, True, False, False, {})
    broker.topology.declare_queue(
        healthy.link.connection, "b", False, True, False, False, {"x-max-length": 3, "x-overflow": "reject-publish"}
    )
    live, checks, now = Live(broker), invariants.Steps(4), 1000
    for destination, queue, mode, acquire in (("d0", "a", 0, 0), ("d1", "b", 1, 0), ("d2", "a", 0, 1)):
        given = {"queue": queue, "destination": destination, "accept_mode": mode, "acquire_mode": acquire}
        for name, fields in (("subscribe", given), ("flow", {"destination": destination, "unit": 0, "value": 20})):
            octets = structs.write_command("message_" + name, fields)
            live.link.give(frame.write(frame.WHOLE, frame.COMMAND, 0, octets))
    for _ in range(source.choice((10, 30, 60))):
        if live.link.connection.closed:
            break
        draw = source.random()
        if draw < 0.1:
            now += source.choice((1, 6, 600, 2500))
            broker.tick(now, cases.SECONDS + now // 1000)
            live.link.connection.tick(now)
            broker.run()
        else:
            of = "session" if draw < 0.2 else "connection" if draw < 0.21 else None
            octets = grammar_0_10.some_control(source, live.sent, of) if of else grammar_0_10.some_command(source, live.sent)
            if source.random() < wounds:
                octets = mutate(source, octets)
            live.link.give(octets, source.choice((0, 0, 1, 7)))
        live.hear()
        live.link.check_sizes()
        checks.step(broker)
    healthy.is_answered()
    if not live.link.connection.closed:
        live.link.end()
    end_all(broker)
    for _ in range(8):
        broker.run()
    checks.end(broker)
    assert broker.counters["internal_errors"] == 0, "an error of our own"
    healthy.tidy()
    healthy.is_served()
    for _ in range(3):
        broker.run()
    end = free_places(broker)
    assert end == start, "left behind: %r" % {name: (start[name], end[name]) for name in start if start[name] != end[name]}


@pytest.mark.parametrize("wounds", WOUNDS)
def test_recorded_seeds(wounds):
    for seed in RECORDED:
        try:
            run(seed, WOUNDS[wounds])
        except Exception as error:  # whatever is raised is the finding
            raise AssertionError("seed %d: %s: %s" % (seed, type(error).__name__, error)) from error


@pytest.mark.parametrize("wounds", WOUNDS)
def test_new_seeds(wounds):
    limit = time.monotonic() + SECONDS * ROUNDS
    seed = SEED
    while time.monotonic() < limit:
        try:
            run(seed, WOUNDS[wounds])
        except Exception as error:  # whatever is raised is the finding
            raise AssertionError("seed %d: %s: %s" % (seed, type(error).__name__, error)) from error
        seed += 1
