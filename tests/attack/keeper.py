"""Keeps a broker alive for the honest clients: starts it again when it has ended or answers no more, and does the schedule's deeds."""

import os
import signal
import time

import amqp_wire as wire
import honest
from peer import PASSWORD

HANG_S = 60  # without an answer: the broker is ended and started again
LOOK_S = 1.0  # without an answer: where it is, is written down, again and again
LOOKS_MAX = 12
QUICK_S = 10  # a broker that ends so soon behind its start may die of its data


class Keeper:
    """`watch`: watch.Watch of the broker; `state`: honest.State; `found(text)` gets what is wrong."""

    def __init__(self, watch, state, found):
        self.watch = watch
        self.state = state
        self.found = found
        self.deaths = self.kills = self.hangups = self.hangs = 0
        self.started = self.looked_at = 0.0
        self.quick_deaths = 0
        self.where = ""  # the broker's stacks while the question that was asked at `looked_at` waits

    def start_broker(self, may_start=True):
        """Start it, and with empty data when it does not start with what it has, or dies of it."""
        if not may_start or not self.watch.start():
            self.found(f"the broker does not live with the data it has: {self.watch.said()[-2500:]}")
            os.rename(self.watch.data, f"{self.watch.data}.given-up-{self.watch.starts}")
            self.state.ledger.value += 1
            if not self.watch.start():
                raise RuntimeError(f"the broker does not start: {self.watch.said()}")
            self.declare()
        elif self.watch.starts == 1:
            self.declare()
        self.started = time.monotonic()
        self.quick_deaths = 0 if may_start is False else self.quick_deaths
        self.state.pid.value = self.watch.process.pid
        self.state.generation.value += 1
        self.state.up.value = 1

    def declare(self):
        """The honest clients' queues."""
        client = wire.RawClient("127.0.0.1", self.watch.port, timeout_s=60).open(user="honest", password=PASSWORD)
        for name in (honest.QUEUE, honest.PIKA_QUEUE, honest.LINKS, honest.SESSIONS):
            client.declare_queue(name, durable=True)
        client.declare_queue(honest.STREAM, durable=True, arguments={"x-queue-type": "stream", "x-stream-hold": honest.READER})
        client.call("exchange.declare-ok", 1, "exchange.declare", exchange=honest.EXCHANGE, type="topic", durable=True)
        client.close()

    def restart(self):
        """It has ended: start it again, with clients that know."""
        self.state.up.value = 0
        self.state.asked_at.value = 0.0
        self.watch.process.wait()
        self.start_broker(self.quick_deaths < 3)

    def look_after_broker(self):
        """Restart it when it has died, or answers no more."""
        if not self.watch.alive():
            self.deaths += 1
            self.quick_deaths = self.quick_deaths + 1 if time.monotonic() - self.started < QUICK_S else 0
            self.watch.read_errors()
            self.found(f"the broker ended by itself, status {self.watch.process.returncode}: {self.watch.said()[-2500:]}")
            self.restart()
            return
        asked = self.state.asked_at.value
        if asked and time.monotonic() - asked > LOOK_S:
            if asked != self.looked_at:
                self.where = ""
            self.looked_at = asked
            if self.where.count("\n\n") < LOOKS_MAX:
                self.where += self.watch.stacks() + "\n\n"
        if asked and time.monotonic() - asked > HANG_S:
            self.hangs += 1
            self.found(f"the broker gave no answer for {HANG_S} s and was ended: {self.watch.stacks()}")
            self.watch.process.kill()
            self.restart()

    def deed(self, what):
        """What is done to the process."""
        if what == "kill":
            self.kills += 1
            self.state.up.value = 0
            self.watch.process.kill()
            self.restart()
        else:
            self.hangups += 1
            self.watch.process.send_signal(signal.SIGHUP)
