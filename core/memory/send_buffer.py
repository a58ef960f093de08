"""Octets for a peer that wait to be sent: one fixed buffer, filled at `end`, sent from `start`; and who waits for room in it."""

from ..limits import REPLY_ROOM
from ..shim import copy, octets
from . import hot

EMPTY = memoryview(b"")  # a view that is made anew is heap on a board


class SendBuffer:
    """`size` octets. `octets` is the view to write into, behind `end`; `slot`: of the port's loop that sends it."""

    def __init__(self, size, engine):
        self.engine = engine
        self.slot = None
        self.is_touched = False
        self.next_touched = None
        self.size = size
        self.octets = octets(size)
        self.address = engine.octets(self.octets)  # for the hot functions
        self.start = 0
        self.end = 0
        self.busy = False  # true: something waits that goes before any delivery
        self.hungry = []  # consumers for which there was no room: those that got nothing
        self.fed = []  # and those that got something, who come after them next time

    def reset(self):
        """Empty."""
        self.start = self.end = 0
        self.busy = False

    def touch(self):
        """Tell the port to look at the connection of this buffer again (engine.Plain.collect_touched)."""
        if not self.is_touched:
            self.is_touched = True
            self.next_touched = self.engine.touched
            self.engine.touched = self

    def room(self):
        """Octets that can be written at `end`, after moving what waits to the front when that is worth it."""
        if self.start and (self.start == self.end or self.start > self.size // 2):
            left = self.end - self.start
            if left:
                copy(self.octets, 0, self.octets, self.start, left)
            self.start = 0
            self.end = left
        return self.size - self.end

    def takes_whole(self, size, body):
        """Whether a delivery goes out in one piece once there is room: `size` octets with its `body` (-1: it never is one piece)."""
        return 0 <= size <= self.size - REPLY_ROOM

    def write(self, octets):
        """Append `octets` (bytes). The caller has seen that there is room."""
        size = len(octets)
        assert size <= self.size - self.end, "a reply does not fit in the send buffer"
        copy(self.octets, self.end, octets, 0, size)
        self.wrote(self.end + size)

    def wrote(self, at):
        """Octets were put behind `end`, up to `at`."""
        self.end = at
        self.touch()

    def starve(self, consumer, count):
        """Delivery to a consumer stopped for lack of room after `count` messages. Consumers that got none are served first once
        there is room."""
        self.touch()
        if not consumer.hungry:
            consumer.hungry = True
            if count:
                self.fed.append(consumer)
            else:
                self.hungry.append(consumer)

    def is_short(self):
        """True when consumers wait for room."""
        return len(self.hungry) > 0 or len(self.fed) > 0

    def feed(self):
        """There is room again: activate the queues of the consumers that wait for it."""
        self._feed(self.hungry)
        self._feed(self.fed)

    def _feed(self, waiting):
        while waiting:
            consumer = waiting.pop(0)
            consumer.hungry = False
            hot.activate(self.engine.tables.queues, self.engine.tables.state, consumer.queue.handle)

    def forget(self, consumer):
        """A consumer ends."""
        if consumer.hungry:
            consumer.hungry = False
            (self.hungry if consumer in self.hungry else self.fed).remove(consumer)

    def pending(self):
        """The view of what waits to be sent."""
        return self.octets[self.start : self.end] if self.end else EMPTY

    def sent(self, count):
        """The first `count` octets of `pending` are gone."""
        self.start += count
        if self.start == self.end:
            self.start = self.end = 0
