"""A channel as its session sees it: fields off the hot path. Fields that change with every message are in the broker's channel table at
`handle`.
"""

from ..broker.incoming import Incoming
from ..broker.promises import Promises
from ..memory import layout

if False:  # for the type checker alone
    from typing import Any


class Channel(Incoming):
    """One channel. `number` as on the wire."""

    # In the middle of a queue.purge that takes several turns:
    left = -1  # messages still to be dropped by the purge
    purged = 0  # messages dropped so far
    # Fields that few channels change or that are read rarely: see core/connection/connection.py.
    last_queue = ""
    prefetch = 0  # for consumers to come (basic.qos)
    tags_made = 0
    last_words = b""  # channel.close, where it waits behind returns
    reply_queue: "Any" = None  # the queue behind amq.rabbitmq.reply-to
    watched_tag = -1  # the oldest unsettled delivery, and since when it is that (consumer timeout)
    watched_since = 0

    def __init__(self, session, number):
        Incoming.__init__(self, self)
        self.session = session
        self.connection = session.connection
        self.number = number
        self.handle = layout.NONE  # its record, once it is open
        self.state = "closed"  # states.CHANNEL
        self.consumers = {}
        self.returns = []  # (message, reply code, reply text) that wait to be written
        self.waits_to_write = False  # in session.writing
        self.promises = Promises(session)  # of publishes in confirm mode, by the low 30 bits of their number

    @property
    def closing(self):
        """True when the channel has ended, and its deliveries are on their way back (contract.Session)."""
        return self.state == "closing"
