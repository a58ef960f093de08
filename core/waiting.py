"""Entries that wait for a moment: kept out of their queue until then, earliest first (a heap)."""

from heapq import heapify, heappop, heappush


class Waiting:
    """At most as many as there are entries. `due` counts milliseconds of the broker's uptime, which does not wrap."""

    def __init__(self):
        self.heap = []
        self.count = 0  # breaks ties in the order of coming

    def add(self, broker, delay_ms, queue, entry):
        """Give `entry` (in no list) back to `queue` in `delay_ms` milliseconds."""
        self.count += 1
        heappush(self.heap, (broker.uptime_ms + delay_ms, self.count, queue, entry))

    def run(self, broker):
        """Requeue all whose moment has come."""
        while self.heap and self.heap[0][0] <= broker.uptime_ms:
            _, _, queue, entry = heappop(self.heap)
            queue.requeue(entry)
            broker.activate(queue)

    def forget(self, queue):
        """Drop what waits for a queue that goes."""
        kept = [each for each in self.heap if each[2] is not queue]
        for each in self.heap:
            if each[2] is queue:
                queue.drop(each[3])
        self.heap = kept
        heapify(self.heap)
