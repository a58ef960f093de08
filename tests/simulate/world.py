"""One seed of the simulation: a broker on a faulty store, clients, time; lives that end in a crash, and recovery after each.

Everything is drawn from the seed, so that it reruns exactly. `World(seed).run()` returns counts, or raises `Wrong` with what does not hold.
"""

from chance import Chance
from checks import Checks
from deeds import DEEDS, Deeds
from faulty_store import DelayedStore, FaultyStore, PowerCut
from invariants import Steps, check
from model import EMPTY, Wrong, body_of, state_of
from wire_client import WireClient

from leveret.core.amqp_0_9 import packed
from leveret.core.broker import transaction
from leveret.core.broker.broker import Broker
from leveret.core.broker.consumers import Consumers
from leveret.core.limits import BOARD, Limits
from leveret.core.log import journal
from leveret.core.memory import layout
from leveret.core.recovery import opening
from leveret.core.stream.stream import EPOCH

CHECKED = 8  # every so many steps all of a broker's tables are looked at, behind a recovery, and where a life ends
UNCOMMITTED_MAX = 2000  # octets that a transaction may bring at once, beyond what the log has room for


class Read:
    """Stands for the side of a client where one record of a pack is looked at: it is settled with the others."""

    def __init__(self):
        self.consumers = {}
        self.unsettled = []


class SimulatedConsumers(Consumers):
    """Tells the world which stream is read by which tag; changes nothing."""

    def subscribe(self, channel, name, tag, no_ack, exclusive, arguments, prefetch):
        found = self.broker.topology.queue(name, channel.connection)
        if found.is_stream:
            self.broker.world.read_by[tag] = found.id  # another stream may have the name by the time that a delivery has arrived
        return Consumers.subscribe(self, channel, name, tag, no_ack, exclusive, arguments, prefetch)


class SimulatedBroker(Broker):
    """Tells the world which message came when; changes nothing."""

    world = None

    def __init__(self, *given, **named):
        Broker.__init__(self, *given, **named)
        self.consumers = SimulatedConsumers(self)

    def put(self, message, targets, delay_ms=0):
        tables = self.tables
        name = self.world.identify(message, self.body_of(message))
        outcome = Broker.put(self, message, targets, delay_ms)
        persistent = tables.is_durable(message) or tables.messages[message + layout.MESSAGE_SEGMENT] != 0
        if outcome == 0:
            self.world.pushes += 1
            logged = any(found.id_in_log and (persistent or found.is_stream) for found in targets)
            self.world.pushed_at.setdefault(name, self.world.pushes if logged else 0)
        return outcome

    def put_on(self, found, message, delay_ms):
        before = found.next_offset() if found.is_stream else 0
        outcome = Broker.put_on(self, found, message, delay_ms)
        if found.is_stream and found.next_offset() != before:
            name = self.world.identify(message, self.body_of(message))
            self.world.paged_ids[found.id_in_log, found.next_offset() - 1 & layout.MASK] = name
        return outcome

    def body_of(self, message):
        """A message's body."""
        size = self.tables.messages[message + layout.MESSAGE_BODY]
        return self.tables.octets(message, self.tables.size_of(message) - size, size)


class World(Deeds, Checks):
    """Everything of one seed. `spoil_store`, `spoil_journal`: get the store, each new journal, for canaries; `lives`, `mode`, `delayed`:
    not drawn."""

    def __init__(self, seed, spoil_store=None, spoil_journal=None, lives=None, printing=False, mode=None, delayed=None):
        self.seed = seed
        self.printing = printing
        self.chance = chance = Chance(seed)
        self.mode = chance.weighted((("each", 4), ("batch", 4), ("none", 2)))
        if mode is not None:
            self.mode = mode
        self.segment_size = chance.pick((512, 1024, 2048, 4096))
        self.large = chance.one_in(2)  # there are large messages; a log takes four of the largest
        self.size_max = self.segment_size * chance.between(8, 30) + (20000 if self.large else 4096)
        self.batch_ms = chance.pick((5, 50, 200))
        self.batch_size = chance.pick((300, 4000, 65536))
        self.flips = chance.one_in(6)
        self.lives = lives or chance.between(4, 12)
        self.limits = dict(BOARD)
        self.limits.update(connection_count_max=16, binding_count_max=200, binding_share_max=190, password_rounds=1)
        if chance.one_in(3):
            self.limits.update(message_count_max=32, entry_count_max=40)
        self.paging = Chance(seed ^ 0x5EED).one_in(3)  # hardly any memory: queues go on in the log
        if self.paging:
            self.limits.update(message_count_max=16, entry_count_max=24, chunk_count_max=256)
            self.size_max *= 3
        self.reads = Chance(seed ^ 0xBEAD)
        self.paged_ids = {}  # (queue id, position) -> message id of what is only in the log; None: transient
        delays = Chance(seed + 0x5EED)
        self.apart = delays  # what it decides does not change what else is drawn
        self.delayed = delays.one_in(2) if delayed is None else delayed  # syncs and removals take their time
        self.store = DelayedStore(chance, delays) if self.delayed else FaultyStore(chance)
        self.spoil_journal = spoil_journal
        if spoil_store is not None:
            spoil_store(self.store)
        self.candidates = [EMPTY]
        self.pushes = 0
        self.pushed_at = {}  # message id -> number of the push
        self.ids = {}  # message record -> message id
        self.acknowledged = []  # message ids that were confirmed since the last recovery
        self.seen = {}  # (stream id, offset) -> message id
        self.read_by = {}  # consumer tag -> stream id
        self.read_behind = {}  # consumer tag -> the offset behind the last that it got
        self.tags = 0
        self.seen_next = {}  # stream id -> one above the highest offset seen
        self.delivered_last = {}
        self.counts = {
            "cuts": 0,
            "kills": 0,
            "crashes": 0,
            "recovery_cuts": 0,
            "confirmed": 0,
            "checked": 0,
            "delivered": 0,
            "flips": 0,
            "troubles": 0,
            "freed": 0,
            "copied": 0,
            "delayed": 0,
            "interrupted": 0,
            "paged": 0,
            "given_back": 0,
            "unreadable": 0,
            "read_again": 0,
            "lost": 0,
        }
        self.broker = None
        self.clients = []
        self.now = chance.pick((0, 0x3FFFFF00, 5000))
        self.seconds = EPOCH + 1000000
        self.names = 0
        self.was_weak = False
        self.was_told = False  # the broker that ended had said that messages cannot be read
        self.has_holes = False  # something was lost once, and streams may have holes
        self.report = ""
        transaction.TURN = Chance(seed ^ 0x70A2).pick((1, 3, 256))  # commits go in turns
        journal.COPIES_TURN = Chance(seed ^ 0xC091).pick((1, 3, 512))  # copies, too
        journal.SNAPSHOT_TURN = Chance(seed ^ 0xDEF1).pick((300, 900, 65536))  # and definitions that are written anew
        self.loses = Chance(seed ^ 0x105E)
        self.taken = set()  # numbers of the segments that were lost before this start
        self.lost = set()  # all that were

    def note(self, text):
        """Say what happens, where somebody looks."""
        if self.printing:
            print(text)

    # What the broker and the clients tell

    def identify(self, message, body):
        """Note which message a record is: its id. A body that is not whole is wrong."""
        name = str(body.split(b"|")[0], "utf-8")
        if body != body_of(name, len(body)):
            raise Wrong("a body is not what was published: %r" % body[:60])
        self.ids[message] = name
        return name

    def confirmed(self, message):
        """A client has got the confirm of a message."""
        self.acknowledged.append(message)
        self.counts["confirmed"] += 1

    def delivered(self, client, side, name, arguments, given, body):
        """A client has got a message."""
        offset = (given.get("headers") or {}).get("x-stream-offset")
        if offset is not None and "x-stream-records" in given["headers"]:
            records = packed.unpack(body)
            if len(records) != given["headers"]["x-stream-records"]:
                raise Wrong("%d records came in a pack of %d" % (len(records), given["headers"]["x-stream-records"]))
            for at, record in enumerate(records):
                if record[0] != offset + at:
                    raise Wrong("record %d of a pack from offset %d has offset %d" % (at, offset, record[0]))
                self.delivered(client, Read(), name, arguments, {"headers": {"x-stream-offset": offset + at}}, record[5])
            side.unsettled.append((arguments[1], ""))
            return
        message = str(body.split(b"|")[0], "utf-8")
        if body != body_of(message, len(body)):
            raise Wrong("a delivered body is not what was published: %r" % body[:60])
        self.counts["delivered"] += 1
        tag, again = (arguments[1], arguments[2]) if name == "basic_deliver" else (arguments[0], arguments[1])
        if name == "basic_get_ok":
            queue = "q-got"
        else:
            queue = side.consumers.get(arguments[0])
        if offset is not None:
            self.read_from_stream(arguments[0], offset, message)
        elif queue is not None and not again and name == "basic_deliver" and "x-death" not in (given.get("headers") or {}):
            self.in_order(client, queue, message)
        if queue is None or not queue.startswith("-"):
            side.unsettled.append((tag, message))

    def read_from_stream(self, tag, offset, message):
        """A stream's offset has one message for ever, and a reader gets all that retention does not take before it; `tag`: the reader's."""
        stream = self.read_by[tag]
        key = (stream, offset)
        for found in self.broker.queues.values():
            if found.is_stream and found.id == stream:
                if self.paged_ids.get((found.id_in_log, offset & layout.MASK), message) != message:
                    raise Wrong(
                        "offset %d of stream %s is %s; %s was published"
                        % (offset, found.name, message, self.paged_ids[found.id_in_log, offset & layout.MASK])
                    )
                behind = self.read_behind.get(tag, offset)
                if offset < behind or offset > behind and found.first_offset <= behind and not self.has_holes:
                    raise Wrong(
                        "a reader of stream %s gets offset %d where %d comes next; the first is %d"
                        % (found.name, offset, behind, found.first_offset)
                    )
        self.read_behind[tag] = offset + 1
        if self.seen.get(key, message) != message:
            raise Wrong("offset %d of stream %s was %s and is %s now" % (offset, stream, self.seen[key], message))
        self.seen[key] = message
        self.seen_next[stream] = max(self.seen_next.get(stream, 0), offset + 1)

    def in_order(self, client, queue, message):
        """First deliveries of one publisher's messages from a queue without priorities and the like come in their order."""
        found = self.broker.queues.get(queue)
        publisher, number = message.split("-")
        if found is None or not plain(found) or publisher.endswith("d"):
            return
        key = (client.name, found.id_in_log or found.name, found.handle, publisher)
        if self.delivered_last.get(key, -1) >= int(number):
            raise Wrong("queue %s delivers %s after number %d" % (queue, message, self.delivered_last[key]))
        self.delivered_last[key] = int(number)

    def before_append(self):
        """The log gives something to the store: what the broker holds now may survive."""
        self.candidates.append(state_of(self.broker, self.ids, self.pushes, self.paged_ids))

    def after_sync(self):
        """What was given last is durable."""
        self.candidates = [self.candidates[-1]]

    # Lives

    def run(self):
        """All lives, a crash after each but the last, and the end: the counts."""
        for life in range(self.lives):
            if self.start() and self.live(life):
                continue
        self.finish()
        if self.delayed:
            self.counts["delayed"] = self.store.delayed
            self.counts["interrupted"] = self.store.interrupted
        return self.counts

    def start(self):
        """Recover and check; false when the power went meanwhile."""
        self.arm_recovery()
        self.broker = SimulatedBroker(Limits(**self.limits), b"life%d" % self.counts["crashes"])
        self.broker.world = self
        self.broker.tick(self.now & layout.MASK, self.seconds)
        self.store.watcher = None
        self.clients = []
        self.ids = {}
        try:
            self.report = opening.make_durable(
                self.broker, self.store, self.mode, self.batch_ms, self.batch_size, self.segment_size, self.size_max
            )
        except PowerCut:
            self.counts["recovery_cuts"] += 1
            self.crash(True)
            return False
        self.store.faults.cut_at = 0
        self.store.faults.aside_fails = 0
        self.note(self.report)
        self.check_recovered()
        self.watch_pager(self.broker.journal.pager)
        self.watch_journal(self.broker.journal)
        if self.spoil_journal is not None:
            self.spoil_journal(self.broker.journal)
        self.store.watcher = self
        self.delivered_last = {}
        return True

    def watch_journal(self, journal):
        """Note what comes to the log by way of `ingest`, not of Broker.put."""
        log_pushed = journal.log_pushed
        tables = self.broker.tables

        def noted():
            entry = tables.state[layout.STATE_LOGGED_HEAD]
            while entry != layout.NONE:
                message = tables.entries[entry + layout.ENTRY_MESSAGE]
                self.pushes += 1
                name = self.identify(message, self.broker.body_of(message))
                self.pushed_at.setdefault(name, self.pushes)
                found = self.broker.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]]
                passed = tables.entries[entry + layout.ENTRY_REDELIVERED] == layout.PASSED_BY
                if found.is_stream or passed:
                    self.paged_ids[found.id_in_log, tables.entries[entry + layout.ENTRY_POSITION]] = name
                    self.counts["paged"] += passed
                entry = tables.entries[entry + layout.ENTRY_CONSUMER]
            log_pushed()

        journal.log_pushed = noted

    def watch_pager(self, pager):
        """Note what goes to the log alone."""
        take = pager.page_out

        def noted(found, skip, position, message):
            transient = not self.broker.tables.is_durable(message) and not self.broker.tables.messages[message + layout.MESSAGE_SEGMENT]
            self.paged_ids[found.id_in_log, position] = None if transient else self.ids[message]
            self.counts["paged"] += 1
            take(found, skip, position, message)

        pager.page_out = noted
        give_back = pager.give_entry_back

        def noted_too(found, entry, before):
            tables = self.broker.tables
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            transient = not tables.is_durable(message) and not tables.messages[message + layout.MESSAGE_SEGMENT]
            self.paged_ids[found.id_in_log, tables.entries[entry + layout.ENTRY_POSITION]] = None if transient else self.ids[message]
            self.counts["given_back"] += 1
            return give_back(found, entry, before)

        pager.give_entry_back = noted_too
        enter = pager.enter

        def check_last(found, count):
            tables = self.broker.tables
            entry = tables.queues[found.handle + layout.QUEUE_TAIL]
            for _ in range(count):
                name, position = self.identify_entry(entry), tables.entries[entry + layout.ENTRY_POSITION]
                if self.paged_ids[found.id_in_log, position] not in (None, name):
                    raise Wrong("position %d of queue %s was read back as %s" % (position, found.name, name))
                entry = tables.entries[entry + layout.ENTRY_PREVIOUS]

        def entered(found, chunk, walk, position, heads, segment):
            enter(found, chunk, walk, position, heads, segment)
            check_last(found, 1)
            self.counts["read_again"] -= 1

        pager.enter = entered
        message_of = pager.message_of

        def counted(walk, heads):
            self.counts["read_again"] += 1  # by a reader of a stream, when nobody takes it back
            return message_of(walk, heads)

        pager.message_of = counted
        engine = self.broker.tables.engine
        read_window, read_on = engine.read_window, engine.read_on
        if read_on is not None:

            def read_on_and_checked(found, *given):
                answer = read_on(found, *given)
                check_last(found, answer[0])
                return answer

            engine.read_on = read_on_and_checked
        if read_window is not None:

            def counted_too(source, at, end, window, *given):
                before = window.end
                answer = read_window(source, at, end, window, *given)
                self.counts["read_again"] += window.end - before
                return answer

            engine.read_window = counted_too

    def arm_recovery(self):
        """Now and then the power goes during recovery, or the bad end cannot be put aside."""
        faults = self.store.faults
        faults.full_until = faults.sync_fails = faults.remove_fails = faults.read_fails = 0
        faults.reads = self.reads
        faults.cut_at = self.store.operations + self.chance.between(1, 4) if self.chance.one_in(6) else 0
        faults.aside_fails = 2 if self.chance.one_in(8) else 0

    def arm(self):
        """What will go wrong in this life."""
        faults = self.store.faults
        faults.cut_at = self.store.operations + self.chance.between(1, self.chance.pick((6, 40, 150))) if not self.chance.one_in(5) else 0
        faults.sync_fails = self.chance.between(2, 10) if self.chance.one_in(5) else 0
        faults.read_fails = self.reads.pick((0, 0, 10)) if self.paging else 0
        faults.remove_fails = 2 if self.chance.one_in(8) else 0

    def live(self, life):
        """Clients at work until the power goes, or the program is killed."""
        self.arm()
        self.checks = Steps(CHECKED)
        check(self.broker)
        try:
            for _ in range(self.chance.between(1, 4)):
                self.connect()
            for _ in range(self.chance.between(20, 200)):
                self.step()
            self.checks.end(self.broker)
        except PowerCut:
            self.crash(True)
            return True
        self.crash(not self.chance.one_in(3))
        return True

    def crash(self, power):
        """The broker is gone. `power`: what the store had in its cache is uncertain too."""
        self.counts["crashes"] += 1
        self.counts["cuts" if power else "kills"] += 1
        self.store.faults.full_until = 0
        if self.broker.journal is not None:
            self.counts["troubles"] += self.broker.journal.log.counters["log_troubles"]
            self.counts["freed"] += self.broker.journal.log.counters["log_segments_removed"]
            self.counts["copied"] += self.broker.journal.log.counters["log_copied_forward"]
            self.counts["unreadable"] += self.broker.journal.log.counters["log_unreadable"]
            self.was_told = self.was_told or self.broker.journal.log.counters["log_unreadable"] > 0
        if self.delayed:
            self.store.interrupt()
        if not power:
            self.note("--- killed")
            if self.store.forget_lost() and self.mode == "none":
                self.was_weak = True
            return
        self.note("--- power cut at operation %d" % self.store.operations)
        self.store.lose_power()
        if self.mode == "none":
            self.was_weak = True
        if self.flips and self.chance.one_in(3):
            where = self.store.flip()
            self.note("flipped a bit of %s" % (where,))
            if where is not None:
                self.counts["flips"] += 1
                self.was_weak = True
                self.lost.add(where[0])  # where its head is damaged all of it is put aside, and a cut may come before it is removed
        elif self.loses.one_in(20):
            taken = self.store.lose(self.loses)
            self.note("lost segment %s" % (taken,))
            if taken is not None:
                self.taken.add(taken[0])
                self.counts["lost"] += 1
                self.was_weak = True

    def connect(self):
        """One more client."""
        self.names += 1
        client = WireClient(self, "c%d" % self.names)
        self.clients.append(client)
        return client

    def step(self):
        """A little time passes, somebody does something, octets move."""
        chance = self.chance
        self.now += chance.below(20)
        if chance.one_in(60):
            self.now += chance.pick((1000, 40000, 400000))
        self.seconds = max(self.seconds + (0 if chance.one_in(3) else 1), EPOCH)
        if chance.one_in(200):
            self.seconds += chance.pick((-100000, 100000, 3))
        self.broker.tick(self.now & layout.MASK, self.seconds)
        for connection in list(self.broker.connections):
            connection.tick(self.now & layout.MASK)
        if chance.one_in(120):
            self.store.faults.full_until = self.store.operations + chance.between(1, 30)
        self.clients = [client for client in self.clients if not client.connection.closed]
        if not self.clients or (len(self.clients) < 4 and chance.one_in(40)):
            self.connect()
        where = self.store.flip_at_work(self.reads) if self.paging and self.flips and self.reads.one_in(40) else None
        if where is not None:
            self.note("flipped a bit while the broker works")
            self.counts["flips"] += 1
            self.was_weak = self.has_holes = True
            self.lost.add(where)
        client = chance.pick(self.clients)
        if len(client.outbox) < 3000:
            self.do(client, chance.weighted(DEEDS))
            if self.reads.one_in(3):
                self.use_stream(client)
        for each in self.clients:
            if chance.below(3):
                each.move(chance.pick((7, 100, 1000, 1 << 20)))
        if chance.below(4):
            self.broker.run()
            self.look()
        self.checks.step(self.broker)

    def look(self):
        """What must hold at every moment."""
        if self.broker.counters["internal_errors"]:
            raise Wrong("the broker had an internal error")
        if self.broker.journal.log.counters["log_unreadable"] and not self.counts["flips"]:
            raise Wrong("messages that are only in the log cannot be read back, and nothing has happened to it")
        journal = self.broker.journal
        junk = sum([segment.junk for segment in journal.log.segments])
        allowed = self.size_max + 2 * journal.log.largest + UNCOMMITTED_MAX + junk
        if not journal.log.trouble and self.store.octets_in_all() > allowed:
            raise Wrong("the log has %d octets, size_max is %d" % (self.store.octets_in_all(), self.size_max))


def plain(found):
    """True for a queue that delivers in the order of arrival and gets nothing but publishes."""
    return found.rules is None and not found.is_stream and not found.prioritised
