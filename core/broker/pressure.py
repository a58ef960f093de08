"""Publishers that wait for room: since when, what is full, what to do. The broker logs one sentence when a wait begins and one when it
ends.

A publisher that waits for a moment is how a broker keeps its memory fixed; what lasts longer than BEGINS_MS is the operator's affair, and
it has ended when nobody has waited for ENDS_MS.
"""

from ..memory import layout

BEGINS_MS = 1000
ENDS_MS = 5000

SHARE = 20  # a pool of which less than this part is left is full
QUEUES_MAX = 3  # that a sentence names
NAME_MAX = 64  # characters of each


class Pressure:
    """Of one broker; `reason`: what is full and what to do, in a sentence; "" while nobody waits for long."""

    def __init__(self, broker):
        self.broker = broker
        self.reason = ""
        self.since = None  # uptime of the first publisher that waited, with nobody's ENDS_MS between
        self.last = 0

    def tick(self):
        """Time passes; the broker calls this often enough while a publisher waits."""
        broker = self.broker
        now = broker.uptime_ms
        if broker.held:
            self.last = now
            if self.since is None:
                self.since = now
            if not self.reason and now - self.since >= BEGINS_MS:
                self.reason = what_is_full(broker)
                broker.counters["publishers_blocked"] += 1
                broker.log("publishers wait: " + self.reason)
        elif self.since is not None and now - self.last >= (ENDS_MS if self.reason else BEGINS_MS):
            if self.reason:
                broker.log("publishers go on: there is room again; they waited for %d s" % ((self.last - self.since) // 1000))
            self.since = None
            self.reason = ""

    def shown(self):
        """For management: how many connections wait now, since when, and the reason."""
        return {
            "waiting": len(self.broker.held),
            "reason": self.reason,
            "since_ms": self.broker.uptime_ms - self.since if self.reason else 0,
        }


def what_is_full(broker):
    """Which pool publishers wait for, and what makes room in it, in words."""
    if broker.journal is not None:
        writer = broker.journal.log
        if writer.trouble:
            return writer.trouble[:200] + ". They go on by themselves when it can be"
        if writer.lacks_room():
            if writer.size() * 4 >= writer.size_max * 3:
                return (
                    "the log on disk is full (%d of %d octets): have consumers take messages, give queues a lifetime or a length, "
                    "or let it take more (--disk-max)" % (writer.size(), writer.size_max)
                )
            return "the disk is full (the log has %d of its %d octets): make room on it" % (writer.size(), writer.size_max)
        if writer.crowded:
            return "the disk is slower than what is published: they go on as it has written"
    state = broker.tables.state
    for pool, name, count in (
        (layout.POOL_BLOCKS, "arena_size", broker.limits.arena_size // broker.limits.block_size),
        (layout.POOL_MESSAGES, "message_count_max", broker.limits.message_count_max),
        (layout.POOL_ENTRIES, "entry_count_max", broker.limits.entry_count_max),
    ):
        if state[pool + 2] * SHARE <= count:
            return "memory is full (%s): have consumers take messages, give queues a lifetime or a length, or raise %s%s" % (
                name,
                name,
                fullest(broker, False),
            )
    return "a queue has all that it may have: have consumers take messages, or give it a lifetime or a length" + fullest(broker, True)


def fullest(broker, only_full):
    """The queues with most octets, in words for the end of a sentence."""
    rows = [
        (each.octets(), each.message_count(), each.name)
        for each in broker.queues.values()
        if not each.is_stream and (not only_full or each.full(1))
    ]
    rows.sort(reverse=True)
    return "".join(["; queue '%s' has %d messages" % (name[:NAME_MAX], count) for _, count, name in rows[:QUEUES_MAX]])
