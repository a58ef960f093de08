"""Qpid's JMS client 6.4 (java/Jms010FailOver.java) over AMQP 0-10, 0-9 and 0-8, in the middle of a stream of transactions, when its broker
ends: it goes over to the second broker of its list, back to the first, and to the first started again; each message is counted.
"""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict

import brought
import programs
import pytest

sys.path.append(os.path.join(os.path.dirname(brought.HERE), "bridge"))

from nodes import Leveret, taken, wait_until

from leveret.ports.client import connect

VERSIONS = ("0-10", "0-9", "0-8")
PATIENCE_S = 60
STEP = 10  # transactions that each program commits before a broker ends, and behind each


class Kept(Leveret):
    """`leveret serve --data`, which keeps its port and its directory; `end(SIGTERM or SIGKILL)`."""

    def command(self):
        place = "amqp://127.0.0.1:%d" % self.port
        return [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", place, "--data", self.directory + "/data"]

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)


class Program:
    """One Jms010FailOver: `told` has the numbers of each transaction by (outcome, sent or got), `ports` where it has gone over to."""

    def __init__(self, version, brokers):
        self.queue = "over." + version
        self.told = defaultdict(list)
        self.ports = []
        command = brought.java("Jms010FailOver", brokers, self.queue, flags=(*brought.BRIEF, "-Dqpid.amqp.version=" + version))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            first, second, *numbers = line.split()
            if first == "over":
                self.ports.append(int(second))
            else:
                self.told[first, second].append([int(number) for number in numbers])

    def committed(self):
        """How many transactions that do something, of the side that has fewer."""
        return min(sum(map(bool, list(self.told["committed", what]))) for what in ("sent", "got"))

    def finish(self):
        """It sends no more, consumes all that comes, and ends."""
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0
        self.thread.join()

    def clean(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        self.thread.join()


def numbers(transactions):
    """{number: how often}."""
    return Counter(number for transaction in transactions for number in transaction)


def wrong(program, left, ends):
    """What does not hold of the messages that were sent, consumed and are `left` ({number: how often})
    on brokers that ended `ends` times.
    """
    told = program.told
    sent, got = numbers(told["committed", "sent"]), numbers(told["committed", "got"])
    sent_perhaps, got_perhaps = numbers(told["uncertain", "sent"]), numbers(told["uncertain", "got"])
    found = []
    if sorted(sent) != list(range(len(sent))) or max(sent.values()) > 1:
        found.append("its numbers are not 0, 1, 2, ..., each committed once")
    for number in sorted(sent | got | left):
        there = got[number] + left[number]
        if not sent[number] - got_perhaps[number] <= there <= sent[number] + sent_perhaps[number]:
            perhaps = (sent_perhaps[number], got_perhaps[number])
            found.append("%d: sent %d times, there %d times, uncertain (sent, got) %r" % (number, sent[number], there, perhaps))
    for what in ("sent", "got"):
        if len(told["uncertain", what]) > ends:
            found.append("%s: %d transactions are uncertain" % (what, len(told["uncertain", what])))
    return found


def left_on(brokers, queue):
    """{number: how often} of what lies in a queue of brokers."""
    found = Counter()
    for broker in brokers:
        client = connect(broker.url)
        client.queue_declare(queue, durable=True)
        client.consume(queue, no_ack=True)
        found += Counter(int(bytes(message.body)) for message in taken(client, queue, 200))
        client.close()
    return found


def run(url, deeds):
    """Programs of all versions beside each other; between STEP transactions each, and the next, a deed; then the ledger of each."""
    running = []
    try:
        running = [Program(version, url) for version in VERSIONS]
        for number, deed in enumerate([*deeds, None]):
            before = [program.committed() for program in running]
            wait_until(
                lambda: all(
                    len(program.ports) >= number and program.committed() >= at + STEP for program, at in zip(running, before, strict=True)
                ),
                PATIENCE_S,
                "each program goes on behind deed %d" % number,
            )
            if deed:
                deed()
        for program in running:
            program.finish()
        return running
    finally:
        for program in running:
            program.clean()


@pytest.fixture
def two():
    """Two brokers, each with a directory of its own."""
    missing = programs.missing("jms-0-10")
    if missing:
        pytest.skip(missing.sentence())
    brought.java("Jms010FailOver")  # what it needs is brought before the clock runs
    brokers = []
    try:
        for _ in range(2):
            brokers.append(Kept())
        yield brokers
    finally:
        for broker in brokers:
            broker.stop()


def test_each_message_is_there_once_whatever_broker_ends(two):
    """What the client was told of as committed is there once, and what it was told to be rolled back never. A commit that was under way
    when the connection ended is uncertain: one each way for each end at most."""
    first, second = two
    brokers = ";".join("tcp://127.0.0.1:%d?retries='1'&connectdelay='100'" % broker.port for broker in two)
    url = "amqp://guest:guest@/?failover='roundrobin?cyclecount='200''&brokerlist='%s'" % brokers

    def back():
        first.start()
        second.end(signal.SIGTERM)

    def again():
        first.end(signal.SIGKILL)
        first.start()

    running = run(url, [lambda: first.end(signal.SIGKILL), back, again])
    second.start()
    for program in running:
        assert program.ports == [second.port, first.port, first.port], program.queue
        assert not left_on([first], program.queue), program.queue
        assert not wrong(program, left_on([second], program.queue), 3), program.queue
