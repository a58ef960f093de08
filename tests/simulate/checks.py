"""What must hold after each recovery of a World, and at its end."""

from deeds import EXCHANGES
from model import State, Wrong, state_of
from peer import idle

from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.core.log import chunk_index, message_record
from leveret.core.log.read_back import Walk
from leveret.core.memory import layout


class Checks:
    """The part of a World that compares the broker with the model."""

    def check_recovered(self):
        """The broker that came back holds what it may and must."""
        for found in self.broker.queues.values():
            self.identify_all(found)
        for each in self.broker.waiting.heap:
            self.identify_entry(each[3])
        self.paged_ids = {}
        for found in self.broker.queues.values():
            if found.pages is not None:
                self.identify_paged(found)
        mine = state_of(self.broker, self.ids, self.pushes, self.paged_ids)
        matching = [each for each in self.candidates if each.same(mine)]
        self.counts["checked"] += sum([len(mine.queues[name]) for name in mine.queues])
        if matching:
            mine = matching[-1]
            if not self.was_weak:
                self.check_confirmed(mine)
                self.check_seen(mine)
        elif not self.was_weak:
            raise Wrong(
                "the broker came back in a state that it cannot be in; against the last synced one: %s; against the newest: %s"
                % (self.candidates[0].difference(mine), self.candidates[-1].difference(mine))
            )
        elif self.store.flipped and ";" not in self.report and not self.store.aside and not self.was_told and self.mode != "none":
            raise Wrong("a flipped bit was not reported, and this is gone: %s" % self.candidates[0].difference(mine))
        self.check_lost()
        self.check_weakly(mine)
        self.has_holes = self.has_holes or self.was_weak
        if self.was_weak:
            self.seen = {}
            self.seen_next = {}
        self.was_weak = self.was_told = False
        self.store.flipped = False
        self.store.aside = []
        self.candidates = [State(mine.queues, mine.streams, mine.definitions, self.pushes)]
        self.acknowledged = []

    def check_lost(self):
        """A segment that is gone is told by its number, and none is that is not."""
        told = set()
        for part in self.report.split("; "):
            words = part.split()
            if words[0] in ("segment", "segments") and words[2 if words[0] == "segment" else 4] in ("is", "are"):
                told.update(range(int(words[1]), int(words[3 if words[0] == "segments" else 1]) + 1))
        self.lost |= self.taken
        if self.taken - told:
            raise Wrong("segments %s are lost, and this is told: %s" % (sorted(self.taken - told), self.report))
        if told - self.lost:
            raise Wrong("segments %s are told to be lost, and are not" % sorted(told - self.lost))
        self.taken = set()

    def identify_all(self, found):
        """Read the ids of the ready messages of a queue."""
        entry = found.head()
        while entry != layout.NONE:
            self.identify_entry(entry)
            entry = self.broker.tables.entries[entry + layout.ENTRY_NEXT]

    def identify_paged(self, found):
        """Read the ids of what a queue has in the log alone, where its index says."""
        chunks, journal = self.broker.tables.chunks, self.broker.journal
        chunk = found.pages.head
        while chunk != layout.NONE:
            segment = journal.log.by_number[chunks[chunk + chunk_index.SEGMENT]]
            walk = Walk(
                journal.pager.reader, segment.number, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP], segment.size
            )
            left, first, span = chunks[chunk + chunk_index.COUNT], chunks[chunk + chunk_index.POSITION], chunks[chunk + chunk_index.SPAN]
            while left and walk.next():
                heads = walk.heads()
                for identity, position in walk.places(heads[0]):
                    ahead = (position - first) & layout.MASK
                    holes = found.pages.holes
                    if identity == found.id_in_log and ahead < span and not (holes and holes.has(position)):
                        first, span = (position + 1) & layout.MASK, span - ahead - 1
                        at = message_record.properties_at(walk.at, heads) + heads[4]
                        octets = self.store.read(segment.number, at, heads[5])
                        name = self.identify(-1, octets)
                        if self.paged_ids.get((identity, position & layout.MASK)) is not None:
                            raise Wrong("queue %s has position %d twice in its index" % (found.name, position))
                        self.paged_ids[identity, position & layout.MASK] = name
                        left -= 1
            if left:
                raise Wrong("queue %s: %d messages are not where the index says" % (found.name, left))
            chunk = chunks[chunk + chunk_index.NEXT]

    def identify_entry(self, entry):
        """Read the id of a message: that."""
        tables = self.broker.tables
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        size = tables.messages[message + layout.MESSAGE_BODY]
        return self.identify(message, tables.octets(message, tables.size_of(message) - size, size))

    def check_confirmed(self, mine):
        """Everything that a client was told to be safe had been taken at that moment."""
        for message in self.acknowledged:
            if self.pushed_at.get(message, 0) > mine.pushes:
                raise Wrong("%s was confirmed and is not in the log" % message)

    def check_seen(self, mine):
        """No stream begins again below an offset that a reader has seen."""
        for identity, name in mine.streams:
            if mine.streams[(identity, name)][1] < self.seen_next.get(identity, 0):
                raise Wrong(
                    "stream %s goes on at %d; a reader has seen up to %d"
                    % (name, mine.streams[(identity, name)][1], self.seen_next[identity] - 1)
                )

    def check_weakly(self, mine):
        """What holds whatever was lost: no message twice at one position, positions rise, pools agree."""
        count = 0
        for name in mine.queues:
            positions = [position for position, _ in mine.queues[name]]
            queue = self.broker.queues[name]
            count += len(positions) - (queue.pages.count if queue.pages is not None else 0)
            if len(set(positions)) != len(positions):
                raise Wrong("queue %s has a position twice: %s" % (name, mine.queues[name]))
        state = self.broker.tables.state
        used = self.broker.limits.entry_count_max - state[layout.POOL_ENTRIES + 2]
        waiting = len(self.settled_list())
        if used != count + waiting:
            raise Wrong("%d entries are used, %d are in queues" % (used, count + waiting))

    def settled_list(self):
        """The entries that wait for the journal."""
        tables = self.broker.tables
        entry = tables.state[layout.STATE_SETTLED_LIST]
        found = []
        while entry != layout.NONE:
            found.append(entry)
            entry = tables.entries[entry + layout.ENTRY_NEXT]
        return found

    # The end

    def finish(self):
        """Without faults everything comes to rest: all is confirmed, drained, deleted, and nothing is left."""
        while not self.start():
            pass
        self.store.faults.cut_at = 0
        for _ in range(3):
            self.connect()
        for _ in range(40):
            self.step()
            self.store.faults.full_until = 0
        self.rest()
        for _ in range(6):
            self.drain()
        self.rest()
        self.close_accounts()
        busy = [client for client in self.clients if client.busy()]
        if busy:
            raise Wrong("%s waits for ever: %s" % (busy[0].name, busy[0].open_in_words()))
        self.leave_nothing()

    def is_counted(self, name):
        """True for a queue whose messages are accounted for: none is taken out of it."""
        return False

    def close_accounts(self):
        """What clients keep over lives of the broker comes to its end."""

    def rest(self):
        """Let everything move until nothing does."""
        for _ in range(60):
            self.now += 60
            self.broker.tick(self.now & layout.MASK, self.seconds)
            for connection in list(self.broker.connections):
                connection.tick(self.now & layout.MASK)
            self.broker.run()
            for client in self.clients:
                client.move(1 << 20)
            self.clients = [client for client in self.clients if not client.connection.closed]
        self.look()

    def drain(self):
        """Take everything that is ready out of all queues, and settle everything."""
        for client in self.clients:
            if not client.connection.reading:
                client.lose()  # what it would acknowledge comes behind a publish that waits for just that
            else:
                client.settle_all()
        for name in sorted(self.broker.queues):
            queue = self.broker.queues[name]
            if not queue.is_stream and queue.owner is None and not self.is_counted(name):
                self.broker.counters["purged"] += queue.purge()
        self.rest()

    def leave_nothing(self):
        """Delete everything: the pools are full again, and the log is small."""
        for client in self.clients:
            client.lose()
        broker = self.broker
        for name in sorted(broker.queues):
            broker.topology.delete_queue(None, name, False, False)
        for name in EXCHANGES:
            broker.topology.delete_exchange(name, False)
        broker.policies.remove(broker, "p")
        for _ in range(30):
            self.now += 300
            broker.tick(self.now & layout.MASK, self.seconds)
            broker.run()
        fresh = Broker(Limits(**self.limits), b"fresh")
        if idle(broker) != idle(fresh):
            raise Wrong("with everything deleted the pools are %s, of a new broker %s" % (idle(broker), idle(fresh)))
        self.counts["troubles"] += broker.journal.log.counters["log_troubles"]
        self.counts["freed"] += broker.journal.log.counters["log_segments_removed"]
        self.counts["copied"] += broker.journal.log.counters["log_copied_forward"]
        self.counts["left"] = self.store.octets_in_all()
