"""Whose fault it was: what raises in the broker's own time (`tick`, `run`) costs a message, a queue or a connection, never the broker.

A fault is counted (`internal_errors`) and told once. A message whose work raised goes to the queue `leveret.poison` (poison.py); when that
cannot be, its entry stays aside, in a list that takes no memory, and is tried again. A queue whose turn raises is tried again; its head is
taken out when it keeps raising, and its features are put aside when that does not help. A connection ends by itself (connection.py).
"""

from .. import shim
from ..errors import words_of
from ..memory import layout
from ..parts import part

TOLD_MAX = 16  # kinds of faults that are not told again

HEAD_AFTER = 2  # faults of a queue in a row, each within AGAIN_MS of the one before, behind which its head is taken out ...
FEATURES_AFTER = 6  # ... and its features are put aside

AGAIN_MS = 1000


class Guard:
    """What a broker does about faults of its own. Nothing here raises."""

    def __init__(self, broker):
        self.broker = broker
        self.told = []  # (whose work, place) of what was told last
        self.failing = []  # [queue, faults in a row, uptime of the last one]
        self.aside = layout.NONE  # entries whose messages could not be kept as poison, linked by ENTRY_NEXT
        self.tried_at = 0
        self.ended = []  # connections that are over and could not give back what they held
        self.jobs = []  # of the broker, that have raised

    def trouble(self, what, name, error):
        """Count an error of ours and tell it once; `what` with `name` in it says whose work it was."""
        broker = self.broker
        broker.counters["internal_errors"] += 1
        try:
            if isinstance(error, MemoryError):
                shim.collect()
            place = shim.place_of(error)
            if (what, place) not in self.told:
                self.told.append((what, place))
                if len(self.told) > TOLD_MAX:
                    self.told.pop(0)
                broker.log("an error of this broker in the work for %s: %s, %s" % (what % name, words_of(error), place))
        except Exception:  # no memory for the words, or nobody who takes them
            return

    # Messages

    def rescue(self, queue, entry, error):
        """The work for a message has raised; its entry is in no list, or its place in one does not count any more."""
        self.trouble("a message of queue '%s'", queue.name, error)
        self.put_away(queue, entry, error)

    def put_away(self, queue, entry, error):
        """Keep the message of an entry in no list as poison, and drop the entry; else the entry stays aside."""
        try:
            if queue.is_own or self.broker.queues.get(queue.name) is not queue:  # what a queue has that is removed goes from there
                queue.requeue(entry)
                return
            poison = part("broker.poison")
            if poison is not None and poison.keep(self.broker, queue, entry, words_of(error)):
                queue.drop(entry)
                return
        except Exception as again:  # what guards may raise too: then the entry lies aside
            self.trouble("the poison of queue '%s'", queue.name, again)
        entries = self.broker.tables.entries
        entries[entry + layout.ENTRY_NEXT] = self.aside
        self.aside = entry

    def entries_aside(self):
        """(queue, entry) of what is aside."""
        entry = self.aside
        while entry != layout.NONE:
            yield self.broker.queue_objects[self.broker.tables.entries[entry + layout.ENTRY_QUEUE]], entry
            entry = self.broker.tables.entries[entry + layout.ENTRY_NEXT]

    # Queues

    def queue_failed(self, queue, error):
        """A queue's turn, or what time does to it, has raised."""
        self.trouble("queue '%s'", queue.name, error)
        try:
            count = self.count_failure(queue)
            if isinstance(error, (MemoryError, OSError)) or queue.is_stream:
                return  # nothing of the queue's own making: it is tried again
            if count >= FEATURES_AFTER:
                self.put_features_aside(queue)
            elif count >= HEAD_AFTER and queue.head() != layout.NONE:
                self.rescue(queue, queue.pop(), error)
        except Exception as again:  # what guards may raise too: told, and the others go on
            self.trouble("queue '%s'", queue.name, again)
            self.broker.activate(queue)  # nothing else may remember that it is to be tried again

    def count_failure(self, queue):
        """Faults of a queue in a row."""
        now = self.broker.uptime_ms
        for row in self.failing:
            if row[0] is queue:
                row[1] += 1
                row[2] = now
                return row[1]
        self.failing.append([queue, 1, now])
        return 1

    def put_features_aside(self, queue):
        """Go on without the features of a queue that raise; dead letters stay, for they raise message by message."""
        rules = queue.rules
        if rules is None:
            return
        good = []
        for feature in rules.features:
            try:
                feature.before_delivery(self.broker, queue)
                feature.tick(self.broker, queue)
                good.append(feature)
            except Exception as error:  # an error of ours: the queue goes on without it
                self.trouble("a feature of queue '%s', which goes on without it", queue.name, error)
        rules.features = good
        rules.groups = None
        queue.update_plain()

    # Connections

    def resume(self, connections):
        """Let connections go on that were held: each of them, whatever raises in one."""
        for connection in connections:
            try:
                connection.resume()
            except Exception as error:  # an error of ours is this connection's alone
                connection.broke(error)

    # Jobs

    def job_failed(self, job, error):
        """A job of the broker has raised: told, and put behind the others when some time has passed."""
        self.trouble(job.what, "", error)
        try:
            self.jobs.append(job)
        except MemoryError as again:
            self.trouble(job.what, "", again)
            self.broker.jobs.append(job)

    # Time

    def tick(self):
        """Time passes: what failed is tried again."""
        for row in self.failing:
            self.broker.activate(row[0])
        self.failing = [row for row in self.failing if self.broker.uptime_ms - row[2] < AGAIN_MS]
        broker = self.broker
        if (
            self.aside != layout.NONE or self.ended or self.jobs or broker.policies.failed
        ) and broker.uptime_ms - self.tried_at >= AGAIN_MS:
            self.tried_at = broker.uptime_ms
            broker.jobs += self.jobs
            self.jobs = []
            broker.policies.again()
            self.ended = [each for each in self.ended if not each.gives_back()]
            entries = self.broker.tables.entries
            entry, self.aside = self.aside, layout.NONE
            while entry != layout.NONE:
                behind = entries[entry + layout.ENTRY_NEXT]
                self.put_away(self.broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]], entry, None)
                entry = behind
