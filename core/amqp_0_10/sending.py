"""What a 0-10 connection sends: controls and commands in their order, what is completed, then deliveries; all through one send buffer.

A reply goes out when it has room, and when the log is durable up to what it promises. What a session has completed is no reply: it stays a
set until there is room (Session.write_waiting). No frame stands between those of a delivery that is half written (outgoing.py).
"""

from ..wire.holding import Holding
from . import browsing, frame, structs
from .outgoing import Outgoing

if False:  # for the type checker alone
    from typing import Any

COMPLETED_ROOM = 512  # octets of a session.completed


class Sending(Holding):
    """The half of a Protocol (protocol.py) that writes."""

    closing: "Any"
    sessions: "Any"
    browsing: "Any"

    def __init__(self, connection):
        self.connection = connection
        self.broker = connection.broker
        self.send = connection.send
        self.state = "start"  # of the connection: states.CONNECTION
        self.replies: "list" = []  # (number of the log that is to be durable first, frames)
        self.writing: "list" = []  # sessions that have something to write
        self.outgoing = Outgoing()  # the delivery that is half written
        self.frame_max_out = frame.SIZE_LEAST  # until the peer has said what it takes

    def control(self, channel, name, fields, needs=0):
        """Write a control, now or behind the replies that wait. `needs`: up to where the log has to be durable first."""
        octets = structs.write_control(name, fields)
        self.write(frame.segment(frame.FIRST_SEGMENT | frame.LAST_SEGMENT, frame.CONTROL, channel, octets, self.frame_max_out), needs)

    def write(self, octets, needs=0):
        """Write whole frames (bytes) in the order of replies."""
        if len(octets) > self.send.size:
            for each in frame.each_of(octets):  # each has room at some time
                self.write(each, needs)
        elif self.replies or self.outgoing.active() or not self.is_durable(needs) or self.send.room() < len(octets):
            self.replies.append((needs, octets))
            self.send.busy = True
        else:
            self.send.write(octets)

    def flush(self):
        """Write what waits and can be written; while replies wait, nothing is delivered."""
        self.write_waiting()
        self.send.busy = self.closing or self.outgoing.active() or len(self.replies) > 0

    def write_waiting(self):
        """Write in order: the delivery that is half written, replies, then what sessions have completed."""
        if not self.outgoing.go_on(self):
            return
        while self.replies:
            needs, octets = self.replies[0]
            if not self.is_durable(needs) or self.send.room() < len(octets):
                return
            self.send.write(octets)
            self.replies.pop(0)
        for session in list(self.writing):
            if self.send.room() < COMPLETED_ROOM:
                return
            if session.write_waiting():
                self.writing.remove(session)

    def wants_to_write(self, session):
        """A session has something to write."""
        if session not in self.writing:
            self.writing.append(session)

    def room(self):
        """The peer has read: go on writing, and let the queues of our consumers deliver again."""
        self.flush()
        if not self.replies and not self.outgoing.active():
            self.send.feed()
            browsing.look(self)

    # The broker calls

    def deliver(self, consumer, most, before=0):
        """Write up to `most` deliveries for a consumer beside `before` in this turn: how many (0: no room, no credit, or nothing there)."""
        if self.closing:
            return 0
        if self.replies or self.outgoing.active():
            self.send.starve(consumer, before)
            return 0
        try:
            return consumer.channel.subscriptions[consumer.tag].deliver(most, before)
        except Exception as error:  # ours: this connection ends, the others go on
            self.connection.broke(error)
            return 0

    def returned(self, session, message, condition):
        """A message has no route: its sender hears so with `answered` (contract.Protocol), or by the return of its class."""
        if session.taker is not None and not session.is_committing and session.name_of != "message_transfer":
            session.taker.returned(session, message)
        self.broker.tables.release(message)

    def answered(self, session, outcome):
        """A message of a session came to `outcome`."""
        session.answered(outcome)

    def cancelled(self, consumer, condition):
        """The broker has ended a consumer: its queue is gone."""
        consumer.channel.consumer_ended(consumer)
