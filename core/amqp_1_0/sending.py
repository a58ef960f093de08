"""What a 1.0 connection sends: replies in their order, then what sessions have to say, then deliveries; all through one send buffer.

A reply goes out when it has room, and when the log is durable up to what it promises. Dispositions and flows are no replies: they stay in
the states of sessions and links until there is room (Session.write_waiting). Each is a whole frame, so that all go between the transfers of
a delivery.
"""

from ..wire.holding import NO_ROOM, WRITTEN, Holding
from . import composites, frame, link_out
from .bounds import response_size_max

if False:  # for the type checker alone
    from typing import Any


class Sending(Holding):
    """The half of a Protocol (protocol.py) that writes."""

    closing: "Any"
    drain: "Any"
    mapped: "Any"
    draining: "list"
    sessions: "Any"

    def __init__(self, connection):
        self.connection = connection
        self.broker = connection.broker
        self.send = connection.send
        self.state = "start"  # of the connection: states.CONNECTION
        self.replies: "list" = []  # (number of the log that is to be durable first, frame)
        self.promised = 0  # that of the replies to come
        self.writing: "list" = []  # sessions that have something to write
        self.crowded = False  # a delivery has waited for others that are half written
        self.frame_max_out = frame.SIZE_MIN_MAX  # until the peer has said what it takes

    def reply(self, channel, name, fields):
        """Write a frame with a performative, now or behind the replies that wait."""
        self.write(frame.write(frame.AMQP, channel, composites.write(name, fields, True)))

    def write(self, octets):
        """Write whole frames (bytes) in the order of replies."""
        if self.replies or not self.is_durable(self.promised) or self.send.room() < len(octets):
            self.replies.append((self.promised, octets))
            self.send.busy = True
        else:
            self.send.write(octets)

    def flush(self):
        """Write what waits and can be written; while replies wait, nothing is delivered."""
        if self.replies or self.writing:
            self.write_waiting()
        if self.crowded:
            self.crowded = False
            for session in self.sessions():
                session.wake()
        self.send.busy = len(self.replies) > 0 or self.closing

    def write_waiting(self):
        """Write in order: replies, then what sessions have to say."""
        while self.replies:
            number, octets = self.replies[0]
            if not self.is_durable(number) or self.send.room() < len(octets):
                return
            self.send.write(octets)
            self.replies.pop(0)
        for session in list(self.writing):
            outcome = session.write_waiting()
            if outcome == NO_ROOM:
                return
            if outcome == WRITTEN:
                session.waits_to_write = False
                self.writing.remove(session)

    def may_keep(self, octets):
        """True when so many octets more may wait in front of a body that is half written, or as a response."""
        limits, waits = self.broker.limits, 0
        for session in self.mapped.values():
            waits += len(session.outgoing.lead) + sum([len(each[1]) for each in session.responses])
        self.crowded = waits > 0 and waits + octets > max(limits.properties_size_max, response_size_max(limits))
        return not self.crowded

    def wants_to_write(self, session):
        """A session has something to write."""
        if not session.waits_to_write:
            session.waits_to_write = True
            self.writing.append(session)

    def room(self):
        """The peer has read: go on writing, and let the queues of our consumers deliver again."""
        if self.replies or self.writing or self.crowded:
            self.flush()
        if not self.replies:
            self.send.feed()
        if self.draining:
            self.drain()

    # The broker calls

    def deliver(self, consumer, most, before=0):
        """Write up to `most` deliveries for a consumer beside `before` in this turn: how many (0: no room, no credit, or nothing there)."""
        if self.closing:
            return 0
        if self.replies:
            self.send.starve(consumer, before)
            return 0
        try:
            count = link_out.deliver(consumer.channel.of_consumer(consumer), most, before)
        except Exception as error:  # ours: this connection ends, the others go on
            self.connection.broke(error)
            return 0
        return count

    def returned(self, sender, message, condition):
        """A message has no route: its sender hears that it was released (contract.Protocol)."""
        self.broker.tables.release(message)

    def answered(self, sender, outcome):
        """A message of an incoming link came to `outcome`."""
        sender.link.answered(outcome)

    def cancelled(self, consumer, condition):
        """The broker has ended a consumer: its queue is gone."""
        consumer.channel.consumer_ended(consumer, condition)
