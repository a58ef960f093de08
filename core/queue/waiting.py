"""Entries that wait for a moment: kept out of their queue until then, earliest first (a heap).

Those that came back (delayed retry) go to where they stood; those that arrive (x-delayed-message) go to the tail, under the queue's rules.
Boards that carry neither do not carry this file.
"""

from heapq import heapify, heappop, heappush

from ..exchange.base import delay_of
from ..memory import layout
from ..message import reading


class Waiting:
    """At most `most`. `due` counts milliseconds of the broker's uptime, which does not wrap."""

    def __init__(self, most):
        self.most = most
        self.heap = []
        self.count = 0  # breaks ties in the order of coming

    def has_room(self):
        """True when one more entry may wait."""
        return len(self.heap) < self.most

    def add(self, broker, delay_ms, queue, entry, arrives=False):
        """Give `entry` (in no list) to `queue` in `delay_ms` milliseconds; at once when no more may wait."""
        if not self.has_room():
            self.hand_over(broker, queue, entry, arrives)
            return
        self.count += 1
        # Those that come back do so from the newest to older ones: the oldest is to go first.
        heappush(self.heap, (broker.uptime_ms + delay_ms, self.count if arrives else -self.count, queue, entry, arrives))

    def run(self, broker):
        """Hand over the entries whose moment has come, as many as fit one turn; further ones are due at once."""
        state = broker.tables.state
        broker.tables.begin_turn()
        while self.heap and self.heap[0][0] <= broker.uptime_ms and state[layout.STATE_LEFT] > 0:
            _, _, queue, entry, arrives = heappop(self.heap)
            self.hand_over(broker, queue, entry, arrives)
            state[layout.STATE_LEFT] -= broker.consumers.look_cost()

    def hand_over(self, broker, queue, entry, arrives):
        """Move an entry to its queue."""
        try:
            if arrives:
                queue.link(entry, broker.tables.queues[queue.handle + layout.QUEUE_TAIL])
            else:
                queue.requeue(entry)
        except Exception as error:  # an error of ours: the entry is put aside
            broker.guard.rescue(queue, entry, error)
            return
        broker.activate(queue)
        if queue.rules is not None:
            try:
                if arrives:
                    queue.rules.arrived(broker, queue, entry)
                else:
                    queue.rules.trim(broker, queue)
            except Exception as error:  # an error of ours is this queue's alone
                broker.guard.queue_failed(queue, error)

    def all(self, broker):
        """(queue, entry) of each."""
        return [each[2:4] for each in self.heap]

    def drop(self, queue, most):
        """Drop `most` of the entries that wait for a queue that is removed; returns how many."""
        mine = [each for each in self.heap if each[2] is queue][:most] if most > 0 else ()
        if mine:
            gone = {each[3] for each in mine}
            self.heap = [each for each in self.heap if each[3] not in gone]
            heapify(self.heap)
        for each in mine:
            queue.drop(each[3])
        return len(mine)

    def restore(self, broker):
        """After recovery: keep messages of x-delayed-message exchanges waiting until their moment."""
        names = [exchange.name for exchange in broker.exchanges.values() if exchange.delays]
        if not names:
            return
        for queue in list(broker.queues.values()):
            if not queue.is_stream:
                entry = queue.head()
                while entry != layout.NONE:
                    behind = broker.tables.entries[entry + layout.ENTRY_NEXT]
                    message = broker.tables.entries[entry + layout.ENTRY_MESSAGE]
                    left = 0
                    try:
                        if reading.names_of(broker.tables, message)[0] in names:
                            left = left_of(
                                broker,
                                reading.header_of(broker.tables, message, "x-delay"),
                                broker.tables.messages[message + layout.MESSAGE_ARRIVED],
                            )
                    except Exception as error:  # the message is delivered at once
                        broker.guard.trouble("a message of queue '%s'", queue.name, error)
                    if left > 0:
                        before = broker.tables.entries[entry + layout.ENTRY_PREVIOUS]
                        queue.unlink(entry)
                        try:
                            self.add(broker, left, queue, entry, True)
                        except Exception as error:  # an error of ours: the message is not delayed any longer
                            broker.guard.trouble("a message of queue '%s'", queue.name, error)
                            queue.link(entry, before)
                    entry = behind


def left_of(broker, delay, arrived):
    """Milliseconds that a recovered message of an exchange that delays has to wait yet; `delay`: its header x-delay."""
    waited_s = max(broker.seconds - arrived, 0)  # the clock may have been set back
    return delay_of(delay) - 1000 * waited_s
