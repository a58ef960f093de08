"""Faults of the broker's own code: an exception in the broker's own time (`tick`, `run`) costs a message, a queue or a connection, never
the broker.

The guard counts each fault (`internal_errors`) and logs each kind once. A message whose processing raised goes to the queue
`leveret.poison` (poison.py); while that fails, the guard keeps its entry in a list that takes no memory, and tries again. A queue whose
turn raises gets another turn; if it raises again, the guard removes its head, and if that does not help, its features. A connection ends
itself (connection.py).
"""

from .. import shim
from ..errors import words_of
from ..memory import layout
from ..parts import part

KNOWN_MAX = 16  # kinds of faults that the guard does not log again

HEAD_AFTER = 2  # faults of a queue in a row, each within AGAIN_MS of the one before, behind which its head is taken out ...
FEATURES_AFTER = 6  # ... and its features are put aside

AGAIN_MS = 1000


class Guard:
    """The broker's handling of its own faults. No method raises."""

    def __init__(self, broker):
        self.broker = broker
        self.known = []  # (subject, place) of the faults logged last
        self.failing = []  # [queue, faults in a row, uptime of the last one]
        self.aside = layout.NONE  # entries whose messages could not be kept as poison, linked by ENTRY_NEXT
        self.tried_at = 0
        self.ended = []  # closed connections whose records could not be released
        self.jobs = []  # of the broker, that have raised

    def trouble(self, subject, name, error):
        """Count an error of ours and log it once; `subject` with `name` in it names the object that was worked on."""
        broker = self.broker
        broker.counters["internal_errors"] += 1
        try:
            if isinstance(error, MemoryError):
                shim.collect()
            place = shim.place_of(error)
            if (subject, place) not in self.known:
                self.known.append((subject, place))
                if len(self.known) > KNOWN_MAX:
                    self.known.pop(0)
                broker.log("an error of this broker in the work for %s: %s, %s" % (subject % name, words_of(error), place))
        except Exception:  # no memory for the words, or the log function raised
            return

    # Messages

    def rescue(self, queue, entry, error):
        """The processing of a message has raised; its entry is in no list, or its place in one does not count any more."""
        self.trouble("a message of queue '%s'", queue.name, error)
        self.put_away(queue, entry, error)

    def put_away(self, queue, entry, error):
        """Keep the message of an entry in no list as poison, and drop the entry; else the entry stays aside."""
        try:
            if queue.is_own or self.broker.queues.get(queue.name) is not queue:  # entries of a removed queue are dropped by its removal
                queue.requeue(entry)
                return
            poison = part("broker.poison")
            if poison is not None and poison.keep(self.broker, queue, entry, words_of(error)):
                queue.drop(entry)
                return
        except Exception as again:  # the guard itself may raise: then the entry stays in the list `aside`
            self.trouble("the poison of queue '%s'", queue.name, again)
        entries = self.broker.tables.entries
        entries[entry + layout.ENTRY_NEXT] = self.aside
        self.aside = entry

    def entries_aside(self):
        """(queue, entry) of each entry in the list `aside`."""
        entry = self.aside
        while entry != layout.NONE:
            yield self.broker.queue_objects[self.broker.tables.entries[entry + layout.ENTRY_QUEUE]], entry
            entry = self.broker.tables.entries[entry + layout.ENTRY_NEXT]

    # Queues

    def queue_failed(self, queue, error):
        """A queue's turn, or a time-based rule of it, has raised."""
        self.trouble("queue '%s'", queue.name, error)
        try:
            count = self.count_failure(queue)
            if isinstance(error, (MemoryError, OSError)) or queue.is_stream:
                return  # not the queue's fault: it gets another turn
            if count >= FEATURES_AFTER:
                self.put_features_aside(queue)
            elif count >= HEAD_AFTER and queue.head() != layout.NONE:
                self.rescue(queue, queue.pop(), error)
        except Exception as again:  # the guard itself may raise: logged, and the others continue
            self.trouble("queue '%s'", queue.name, again)
            self.broker.activate(queue)  # or nothing would give the queue another turn

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
        """Remove the features of a queue that raise; the dead letter rule stays, for it raises message by message."""
        rules = queue.rules
        if rules is None:
            return
        good = []
        for feature in rules.features:
            try:
                feature.before_delivery(self.broker, queue)
                feature.tick(self.broker, queue)
                good.append(feature)
            except Exception as error:  # an error of ours: the queue continues without the feature
                self.trouble("a feature of queue '%s', which goes on without it", queue.name, error)
        rules.features = good
        rules.groups = None
        queue.update_plain()

    # Connections

    def resume(self, connection):
        """Resume a held connection. Never raises."""
        try:
            connection.resume()
        except Exception as error:  # an error of ours is this connection's alone
            connection.broke(error)

    # Jobs

    def job_failed(self, job, error):
        """A job of the broker has raised: log it, and run it again behind the others after a pause."""
        self.trouble(job.subject, "", error)
        try:
            self.jobs.append(job)
        except MemoryError as again:
            self.trouble(job.subject, "", again)
            self.broker.jobs.append(job)

    # Time

    def tick(self):
        """Time passes: try again what has failed."""
        broker = self.broker
        if self.failing:
            self.turn_again()
        if (
            self.aside != layout.NONE or self.ended or self.jobs or broker.policies.failed
        ) and broker.uptime_ms - self.tried_at >= AGAIN_MS:
            self.try_again()

    def turn_again(self):
        """Queues that have failed lately have turns."""
        for row in self.failing:
            self.broker.activate(row[0])
        self.failing = [row for row in self.failing if self.broker.uptime_ms - row[2] < AGAIN_MS]

    def try_again(self):
        """Jobs, policies, ended connections and messages aside have another try."""
        broker = self.broker
        self.tried_at = broker.uptime_ms
        broker.jobs += self.jobs
        self.jobs = []
        broker.policies.again()
        self.ended = [each for each in self.ended if not each.gives_back()]
        entries = broker.tables.entries
        entry, self.aside = self.aside, layout.NONE
        while entry != layout.NONE:
            behind = entries[entry + layout.ENTRY_NEXT]
            self.put_away(broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]], entry, None)
            entry = behind
