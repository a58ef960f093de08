"""A client inside the board: its endpoint and the broker's, joined end to end, without a socket between them.

    local = Local(broker, events)
    step(now) moves octets both ways; events (core/amqp_0_9/client/events.py) tell the broker's answers

It logs in as a user of its own, whom nobody else can be: the password is random and never leaves the board.
"""

import os
from binascii import hexlify

from ..core.access import passwords
from ..core.access.permissions import EVERYTHING, User
from ..core.amqp_0_9.client.client import Client
from ..core.connection.connection import Connection
from ..core.limits import pattern_size_max
from ..core.shim import copy

USER = "on-board"
RECEIVE_SIZE = 1024
SEND_SIZE = 1536


class Local:
    """A client of `broker` that reports to `events`. Raises MemoryError; OSError when all connections are taken."""

    def __init__(self, broker, events):
        secret = str(hexlify(os.urandom(16)), "ascii")
        stored = passwords.hashed(secret, os.urandom(passwords.SALT_SIZE), 1)
        user = User(USER, stored, (), EVERYTHING, broker.limits.granted_count_max, pattern_size_max(broker.limits))
        user.predeclared = True
        broker.access.put(user)
        self.client = Client(
            events,
            USER,
            secret,
            receive_size=RECEIVE_SIZE,
            send_size=SEND_SIZE,
            frame_size_max=4096,
            content_size_max=1024,
            confirm_window=8,
            heartbeat_s=0,
        )
        self.connection = Connection(broker, USER, True)
        if self.connection.closed:
            raise OSError("the broker has no place for the connection of the board itself: raise connection_count_max")

    def step(self, now):
        """Move waiting octets; true when some moved."""
        self.client.tick(now)
        self.connection.tick(now)
        sent = carry(self.client, self.connection)
        return carry(self.connection, self.client) or sent


def carry(source, target):
    """Move octets from one endpoint to another as far as it has room; true when some moved."""
    moved = False
    while True:
        octets = source.pending()
        room = target.writable()
        size = min(len(octets), len(room))
        if size == 0:
            return moved
        copy(room, 0, octets, 0, size)
        source.sent(size)
        target.received(size)
        moved = True
