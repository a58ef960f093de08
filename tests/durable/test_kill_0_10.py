"""A session of AMQP 0-10 lives on through kill -9 of a real `leveret serve --data`: its sender sends again what it was not told of, with
the ids that it had (session.expected), and each message is there once.
"""

import time

import pytest

from leveret.core.amqp_0_10 import properties, structs
from leveret.core.amqp_0_10.client.client import Client
from leveret.core.amqp_0_10.client.events import Events
from leveret.core.amqp_0_10.client.transfers import Transfers
from leveret.ports.client import connect
from leveret.ports.client_errors import ClientError
from leveret.ports.moving import Moving, open_stream
from leveret.ports.url_0_10 import read_url_0_10

COUNT = 700  # messages
WINDOW = 50  # that are not settled at a time
KILLS = (1, 200, 500)  # after so many are settled
SYNC = ("batch", "each")  # how the log is synced, in turns
PATIENCE_S = 60
QUEUE = "exactly"
HEADER = structs.write(properties.DELIVERY, {"routing_key": QUEUE, "delivery_mode": properties.PERSISTENT})


class Sender(Moving, Events):
    """One connection of the session `unit`, which lives for a minute without one; the messages are `work`'s."""

    def __init__(self, url, work):
        place = read_url_0_10(url)
        Moving.__init__(self, open_stream(place, 5000), 5000)
        self.work, self.is_open = work, False
        self._client = Client(self, name=b"unit", timeout_s=60, **place.login())
        self.wait(lambda: self.is_open)

    def opened(self):
        self.goes_on = self.work.transfers.opened(self._client, lambda name: True)
        self.is_open = True

    def command(self, name, fields):
        self.work.transfers.command(name, fields)

    def completed(self, id_):
        self.work.transfers.completed(id_)

    def room(self):
        self.work.transfers.room()

    def ended(self, code, text):
        self._end = (code, text)


class Work:
    """All that is to be sent, and what of it is settled, over however many connections."""

    def __init__(self):
        self.transfers = Transfers("", self.settle)
        self.open: dict = {}  # number that `send` gave -> message
        self.settled: list = []

    def settle(self, number, reason):
        assert reason == ""
        self.settled.append(self.open.pop(number))

    def go_on(self, sender, until):
        """Send what is open again, then what is next, until so many are settled. Raises ConnectionLost."""
        again = sorted(self.open.values())
        behind = max(again + self.settled + [-1]) + 1
        deadline = time.monotonic() + PATIENCE_S
        while len(self.settled) < until:
            assert time.monotonic() < deadline, "nothing is settled any more"
            while again or behind < COUNT and len(self.open) < WINDOW:
                message = again[0] if again else behind
                number = self.transfers.send(message, HEADER, b"%d" % message)
                if not number:
                    break
                self.open[number] = message
                if again:
                    again.pop(0)
                else:
                    behind += 1
                self.transfers.tell()
            sender.step(100)


def read(url):
    """The bodies of all messages of the queue, as numbers."""
    client = connect(url)
    found = []
    try:
        while True:
            got = client.get(QUEUE)
            if got is None:
                return found
            found.append(int(bytes(got.body)))
            client.ack(got)
    finally:
        client.close()


def test_each_message_of_a_session_is_there_once_whatever_is_killed(start, tmp_path):
    broker = start(tmp_path / "data", "--sync", SYNC[0])
    client = connect(broker.url)
    client.queue_declare(QUEUE, durable=True)
    client.close()
    work, resumed = Work(), 0
    for number, until in enumerate((*KILLS, COUNT)):
        sender = Sender(broker.url, work)
        resumed += sender.goes_on
        work.go_on(sender, until)
        broker.process.kill()
        broker.process.wait()
        with pytest.raises(ClientError):
            for _ in range(100):
                sender.step(100)
        broker = start(tmp_path / "data", "--sync", SYNC[number % 2])
    assert resumed == len(KILLS), "a session was begun anew: what it had executed came again"
    assert sorted(work.settled) == list(range(COUNT)) and not work.open
    assert sorted(read(broker.url)) == list(range(COUNT))
