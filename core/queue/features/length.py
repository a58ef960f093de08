"""Maximum length: x-max-length (messages ready), x-max-length-bytes (octets of their bodies), and x-overflow beyond it.

x-overflow: drop-head (the default) drops the oldest, so that the queue is a ring; reject-publish gives the publisher a negative confirm;
reject-publish-dlx does that and dead-letters the message; block has the publisher wait until the queue is down to four fifths.
"""

from ...memory import layout
from ...outcomes import REFUSED, TAKEN
from .feature import Feature

TRIMMED_MAX = 1000  # messages that one turn drops where a policy shortens a long queue; later turns drop the rest


class Rule(Feature):
    """x-max-length, x-max-length-bytes, x-overflow."""

    def __init__(self, arguments):
        self.messages_max = arguments.get("x-max-length")
        self.octets_max = arguments.get("x-max-length-bytes")
        self.overflow = arguments.get("x-overflow", "drop-head")
        self.blocking = False

    def flat(self):
        """Not while publishers have to wait at the maximum: then the feature is asked first."""
        return self.overflow != "block"

    def over(self, queue, messages, octets):
        """True when the queue with so many more messages and octets would be over one of its maxima.

        Rule "length": also is_over in publish.py and in publish.h; test_homes.py holds them together.
        """
        return (self.messages_max is not None and queue.message_count() + messages > self.messages_max) or (
            self.octets_max is not None and queue.octets() + octets > self.octets_max
        )

    def full(self, queue):
        """overflow block: wait at the maximum, go on at four fifths of it."""
        if self.overflow != "block":
            return False
        if self.over(queue, 1, 1):
            self.blocking = True
        elif self.blocking:
            self.blocking = not (
                (self.messages_max is None or queue.message_count() <= self.messages_max * 4 // 5)
                and (self.octets_max is None or queue.octets() <= self.octets_max * 4 // 5)
            )
        return self.blocking

    def gate(self, broker, queue, message):
        """overflow reject-publish."""
        if not self.overflow.startswith("reject") or not self.over(queue, 1, 1):
            return TAKEN
        broker.counters["rejected_publishes"] += 1
        if self.overflow == "reject-publish-dlx" and queue.rules.dead_letter is not None:
            queue.rules.dead_letter.send_message(broker, queue, message, "maxlen")
        return REFUSED

    def trim(self, broker, queue):
        """overflow drop-head: drop or dead-letter the oldest messages until the rest fits."""
        left = TRIMMED_MAX
        while self.overflow == "drop-head" and queue.message_count() and self.over(queue, 0, 0):
            head = queue.head()
            if head == layout.NONE or left == 0:
                return
            left -= 1
            queue.pop()
            broker.counters["dropped_head"] += 1
            broker.discard(queue, head, "maxlen")

    def tick(self, broker, queue):
        """Trim what one turn could not."""
        self.trim(broker, queue)
