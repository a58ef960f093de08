"""Messages beyond memory: which go to the log alone, and when they come back.

A queue in the log whose features read only the head and the tail (`can_page`) accepts messages as long as the log has room.
When it holds its share of memory, a message that comes is written and not kept (`Queue.must_page`); so is every later one, until the
last of them has been read back: the order stays. An engine may do that by itself (LIMIT_PAGED; pass_by in c_accel/queues.h).
Transient messages are written too then, under a type that recovery passes over.

The pager reads them back when the part in memory gets short, a piece at a time and queues in turn, only committed ones; for a queue with no
others it has the journal commit at once. A message that can no longer be read is counted, logged and settled: the next message follows.

Readers of streams far from the end `ask` for the messages that they need next; the pager serves them in turn too (stream/pages.py).
"""

from ..memory import hot, layout
from ..parts import part
from ..shim import MICROPYTHON, elapsed
from . import chunk_index, message_record, segments
from .copy_forward import READ_RETRY_MS, Copies
from .read_back import Damaged, NotYet, ReadBack, Walk

READY_MIN = 512  # messages in memory below which a queue with consumers is given more
TURN_MESSAGES = 256  # of one queue in one turn, and of all queues in one round of the broker
TURN_OCTETS = 1 << 17
ROUND_TURNS = 8  # turns in one round
PIECE = 65536  # octets read from the store at once
PURGE_CHUNKS = 1024  # chunks that one turn purges

TRIES = 10  # then the pager gives up the messages that it fails to read


def can_page(queue):
    """True when a queue may have messages that are only in the log."""
    rules = queue.rules
    return not queue.is_stream and (rules is None or not rules.looks_at_all)


class Pager(Copies):
    """The part of a journal that brings messages back."""

    def __init__(self, journal):
        broker = journal.broker
        self.journal = journal
        self.broker = broker
        self.tables = broker.tables
        self.log = journal.log
        piece = max(min(PIECE, broker.limits.arena_size // 8), 256)
        quicker = None if MICROPYTHON else part("log.read_back_quicker")
        if quicker is None:
            self.reader = ReadBack(journal.log.store, piece)
        else:
            self.reader = quicker.WholeRecords(journal.log.store, piece, broker.limits.arena_size)
        self.queues = []  # with messages that are only in the log, in turn
        self.readers = []  # consumers of streams that wait for messages that are not in memory, in turn
        self.busy = False  # there may be more to bring at once
        self.brought = 0  # octets that the last turn brought
        self.tries = 0
        self.failed_at = 0
        self.since = None  # the second of the broker's uptime when this run began: lifetimes stood still before

    def watch(self, queue):
        """A queue that the log knows: may it page? Recovery and the journal tell."""
        if queue.is_stream:
            queue.pages = part("stream.pages").StreamPages(self.tables, self, queue)
        elif queue.pages is None and can_page(queue):
            queue.pages = chunk_index.Paged(self.tables, self)

    def begin(self, queue):
        """A queue has come out of the log."""
        if queue.pages is not None:
            queue.pages.present = None
        if queue.is_paging():
            queue.update_plain()
            if queue not in self.queues:
                self.queues.append(queue)
        elif queue.pages is not None and not queue.is_stream:
            queue.pages.holes = None

    # Out

    def page_out(self, queue, skip, position, message):
        """A message was written for this place of a queue, and is not kept in memory."""
        self.page_run_out(queue, skip, position, self.tables.messages[message + layout.MESSAGE_BODY], 1)

    def page_run_out(self, queue, skip, position, octets, count):
        """The same of `count` messages in a row, whose bodies have so many octets together."""
        pages = queue.pages
        if pages.count == 0:
            self.queues.append(queue)
        before = pages.tail
        while before != layout.NONE and chunk_index.is_behind(self.tables.chunks[before + chunk_index.POSITION], position):
            before = self.tables.chunks[before + chunk_index.PREVIOUS]
        begins = pages.count == 0
        chunk = pages.add(before, self.log.current().number, self.log.group, skip, position, octets, 0, False, count)
        if chunk != layout.NONE:
            self.log.gathered.marks.append((pages, chunk))
        if begins:
            queue.update_plain()

    def make_room(self, block_total):
        """Release messages in memory that the log has as well, of the largest queues first, until a message of so many blocks has room."""
        queues = self.tables.queues
        refused = []
        while not self.tables.has_room(block_total, 1) and not self.log.full():
            most = None
            for queue in self.broker.queues.values():
                if (
                    queue.pages is not None
                    and not queue.is_stream
                    and queue.head() != layout.NONE
                    and queue not in refused
                    and not queue.pages.full()
                ):
                    if most is None or queues[queue.handle + layout.QUEUE_BLOCKS] > queues[most.handle + layout.QUEUE_BLOCKS]:
                        most = queue
            if most is None:
                return
            if not self.give_back(most, block_total):
                refused.append(most)

    def give_back(self, queue, block_total):
        """Write the last messages that a queue has in memory again, as many as fill so many blocks, and drop them from memory. Returns how
        many."""
        tables = self.tables
        entries, messages = tables.entries, tables.messages
        chosen = []
        entry = tables.queues[queue.handle + layout.QUEUE_TAIL]
        while entry != layout.NONE and block_total > 0 and self.may_go(queue, entry):
            block_total -= messages[entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_BLOCKS]
            chosen.append(entry)
            entry = entries[entry + layout.ENTRY_PREVIOUS]
        before = layout.NONE
        for entry in reversed(chosen):
            before = self.give_entry_back(queue, entry, before)
        if chosen and queue not in self.queues:
            self.queues.append(queue)
            queue.update_plain()
        return len(chosen)

    def may_go(self, queue, entry):
        """True when a ready entry stands in front of everything that is only in the log, and nothing is forgotten with it."""
        entries, head = self.tables.entries, queue.pages.head
        if entries[entry + layout.ENTRY_REDELIVERED] & 255 and queue.rules is not None and queue.rules.counts_returns:
            return False
        return head == layout.NONE or chunk_index.is_behind(
            self.tables.chunks[head + chunk_index.POSITION], entries[entry + layout.ENTRY_POSITION]
        )

    def give_entry_back(self, queue, entry, before):
        """Write a ready entry's message again, behind the chunk `before`, and drop the entry. Returns the message's chunk."""
        tables, journal = self.tables, self.journal
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        position = tables.entries[entry + layout.ENTRY_POSITION]
        come_back = 1 if tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 else 0
        segment = self.log.by_number.get(tables.messages[message + layout.MESSAGE_SEGMENT])
        type_ = segments.MESSAGE if segment is not None or tables.is_durable(message) else segments.TRANSIENT
        skip = journal.append_message(
            type_, journal.parts_of(message, (message_record.place(queue.id_in_log, journal.position(queue, position)),)), 1
        )
        if segment is not None:
            journal.moved_out(segment)
        made = queue.pages.add(
            before,
            self.log.current().number,
            self.log.group,
            skip,
            position,
            tables.messages[message + layout.MESSAGE_BODY],
            come_back,
            False,
        )
        if made != layout.NONE:
            self.log.gathered.marks.append((queue.pages, made))
            before = made
        queue.unlink(entry)
        tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # so that hot.drop does not settle the message in the journal
        queue.drop(entry)
        return before

    # Back in

    def run(self):
        """One round: queues that are short of messages are given some, in turn."""
        if self.since is None:
            self.since = self.broker.uptime_s
        self.busy = False
        if not (self.queues or self.readers) or self.tries and elapsed(self.broker.now, self.failed_at) < READ_RETRY_MS:
            return
        tries = self.tries
        self.reader.begin_round()
        try:
            self.serve_readers(tries)
            self.serve_queues(tries)
        finally:
            self.reader.end_round()
            self.busy = self.busy or self.reader.unfinished

    def serve_queues(self, tries):
        """Give messages to queues that are short of them, in turn, as long as this round has turns, messages and octets for more; not once
        the store has failed more than `tries` times."""
        turns, count_max, octets_max = ROUND_TURNS, TURN_MESSAGES, TURN_OCTETS
        for _ in range(len(self.queues)):
            if not turns or count_max <= 0 or octets_max <= 0 or not self.queues or self.tries > tries:
                return
            queue = self.queues.pop(0)
            self.queues.append(queue)
            least = READY_MIN if queue.consumers else 1
            if self.tables.queues[queue.handle + layout.QUEUE_LENGTH] < least:
                turns -= 1
                try:
                    count = self.bring(queue, count_max, octets_max)
                    if count:
                        self.busy = True
                        count_max -= count
                        octets_max -= self.brought
                except Exception as error:  # the others have their turns all the same
                    self.broker.guard.trouble("what queue '%s' has beyond memory", queue.name, error)

    def ask(self, consumer):
        """A reader of a stream needs messages that are not in memory."""
        if consumer not in self.readers:
            self.readers.append(consumer)
            self.busy = True

    def serve_readers(self, tries):
        """Read for the readers that have asked, for some in each round; a reader that cannot be served now keeps asking. Once the store has
        failed more than `tries` times, the pager does not read again in this round."""
        turn, self.readers = self.readers[:ROUND_TURNS], self.readers[ROUND_TURNS:]
        self.busy = bool(self.readers)
        for consumer in turn:
            try:
                if self.tries > tries or not self.has_what_it_needs(consumer):
                    self.readers.append(consumer)
                else:
                    self.broker.activate(consumer.queue)
            except Exception as error:  # it asks again when its queue is tried again
                self.broker.guard.queue_failed(consumer.queue, error)

    def has_what_it_needs(self, consumer):
        """Read for a stream's consumer, if it is one yet: false when it is to ask again."""
        return consumer not in consumer.queue.consumers or consumer.cursor != layout.NONE or consumer.queue.pages.windows.bring(consumer)

    def bring(self, queue, count_max=TURN_MESSAGES, octets_max=TURN_OCTETS):
        """Read messages of a queue back, at most so many, up to the one with which they have so many octets: how many. Its rules see those
        that come."""
        self.brought = 0
        pages = queue.pages
        if pages is None or not pages.count:
            return 0
        chunks = self.tables.chunks
        self.reader.known = {}  # records that were good in an earlier turn are checked again
        count, octets = 0, 0
        while pages.head != layout.NONE and count < count_max and octets < octets_max:
            if chunks[pages.head + chunk_index.OFFSET] < 0:
                if not count:
                    self.journal.promised = self.log.appended  # nothing else is there: have it written now
                break
            more, size = self.bring_chunk(queue, pages.head, count_max - count, octets_max - octets)
            count += more
            octets += size
            self.brought = octets
            if pages.head != layout.NONE and chunks[pages.head + chunk_index.COUNT]:
                break  # no room, or trouble
            self.drop_chunk(queue, pages.head)
        if count:
            if queue.rules is not None and queue.rules.length is not None:
                queue.rules.length.trim(self.broker, queue)
            self.broker.activate(queue)
        self.see_empty(queue)
        return count

    def see_empty(self, queue):
        """A queue whose last message has been read back is as any other again."""
        if not queue.pages.count and queue in self.queues:
            self.queues.remove(queue)
            queue.pages.holes = None
            queue.update_plain()

    def drop_chunk(self, queue, chunk):
        """A chunk has nothing left."""
        pages = queue.pages
        if pages.holes is not None:
            pages.holes.forget_below(self.journal.position(queue, self.tables.chunks[chunk + chunk_index.POSITION]))
        pages.remove(chunk)

    def bring_chunk(self, queue, chunk, count_max, octets_max):
        """Read back the rest of a chunk, as far as there is room: (messages, octets)."""
        chunks = self.tables.chunks
        segment = self.log.by_number.get(chunks[chunk + chunk_index.SEGMENT])
        if segment is None:
            self.lose(queue, chunk, chunks[chunk + chunk_index.SPAN])
            return 0, 0
        walk = Walk(self.reader, segment.number, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP], segment.size)
        count = octets = 0
        while chunks[chunk + chunk_index.COUNT] and count < count_max and octets < octets_max:
            try:
                size = self.bring_next(queue, chunk, walk, segment)
            except OSError as error:
                if not self.give_up("segment %d cannot be read: %r" % (segment.number, error)):
                    break
                walk.pass_over()
                size = 0
            except Damaged as error:
                self.broker.log("%s: what queue '%s' has there is passed over" % (error, queue.name))
                walk.pass_over()
                size = 0
            except NotYet:
                break
            if size < 0:
                break
            if size:
                self.tries = 0
                count += 1
                octets += size
                if self.tables.engine.read_on is not None:
                    more, size = self.tables.engine.read_on(queue, chunk, walk, segment, count_max - count, octets_max - octets)
                    count += more
                    octets += size
        return count, octets

    def give_up(self, text):
        """The store has failed to read: true when it has done so too often."""
        self.failed_at = self.broker.now
        self.tries += 1
        if self.tries == 1 or self.tries > TRIES:
            self.broker.log(text)
        if self.tries <= TRIES:
            return False
        self.tries = 0
        return True

    def bring_next(self, queue, chunk, walk, segment):
        """Read the next message of a walk back if it is one of the chunk's: its octets; 0: it was another's; -1: there is no room now."""
        chunks = self.tables.chunks
        if walk.offset > chunks[chunk + chunk_index.END] or not walk.next():
            self.lose(queue, chunk, chunks[chunk + chunk_index.SPAN])
            return 0
        heads = walk.heads()
        size = message_record.size_of(heads)
        for identity, position in walk.places(heads[0]):
            if identity == queue.id_in_log:
                ahead = (position - chunks[chunk + chunk_index.POSITION]) & layout.MASK
                if ahead < chunks[chunk + chunk_index.SPAN] and not (queue.pages.holes is not None and queue.pages.holes.has(position)):
                    blocks = self.tables.blocks_for(size)
                    if queue.head() == layout.NONE and not self.tables.has_room(blocks, 1):
                        self.make_room(blocks)
                    if not self.may_hold(queue, blocks):
                        self.tries = 0  # it could be read
                        return -1
                    self.lose(queue, chunk, ahead)
                    self.enter(queue, chunk, walk, position, heads, segment)
                    return size + 1
        return 0

    def may_hold(self, queue, blocks):
        """True when a queue may have so many more blocks of memory: half of its share, and all of it when it has nothing ready."""
        queues, state = self.tables.queues, self.tables.state
        if not self.tables.has_room(blocks, 1):
            return False
        if queues[queue.handle + layout.QUEUE_LENGTH] == 0:
            return not queue.over_share(blocks)
        held = queues[queue.handle + layout.QUEUE_LENGTH] + queues[queue.handle + layout.QUEUE_UNSETTLED]
        return (
            queues[queue.handle + layout.QUEUE_BLOCKS] + blocks <= 2 * state[layout.POOL_BLOCKS + 2]
            and held < 2 * state[layout.POOL_ENTRIES + 2]
            and held < 2 * state[layout.POOL_MESSAGES + 2]
        )

    def enter(self, queue, chunk, walk, position, heads, segment):
        """Make a message of the record at which a walk stands, and put it at the tail of the part of its queue that is in memory."""
        arrived, body = heads[1], heads[5]
        tables = self.tables
        message = self.message_of(walk, heads)
        try:
            self.broker.see_lifetime(queue, message)
        except Exception:  # all or nothing: the message is nobody's
            tables.release(message)
            raise
        transient = walk.type == segments.TRANSIENT
        tables.messages[message + layout.MESSAGE_SEGMENT] = 0 if transient else segment.number
        if transient:
            segment.live -= 1
        handle = queue.handle
        next_position = tables.queues[handle + layout.QUEUE_POSITION]
        tables.queues[handle + layout.QUEUE_POSITION] = position & layout.MASK
        entry = hot.push(tables.messages, tables.entries, tables.queues, tables.state, handle, message)
        tables.queues[handle + layout.QUEUE_POSITION] = next_position
        tables.entries[entry + layout.ENTRY_REDELIVERED] = tables.chunks[chunk + chunk_index.COME_BACK]
        tables.entries[entry + layout.ENTRY_DEADLINE] = 0
        tables.release(message)
        queue.pages.advance(chunk, position, body, walk.offset, walk.skip)
        if queue.rules is not None and queue.rules.expiry is not None:
            waited_s = min(self.broker.ages.age_s(arrived), self.broker.uptime_s - max(queue.pages.since, self.since or 0))
            queue.rules.expiry.write_deadline(self.broker, message, entry, 1000 * max(waited_s, 0))

    def message_of(self, walk, heads):
        """A message, with one reference, of the record at which a walk stands; there is room. Raises Damaged, OSError."""
        places, arrived, route, annotations, properties, body, kind, lifetime = heads
        tables, reader = self.tables, walk.reader
        at = message_record.route_at(walk.at, places)
        where = reader.at(walk.number, at, route)
        message = tables.new_message(bytes(reader.buffer[where : where + route]), properties, body, arrived, kind, lifetime, annotations)
        try:
            self.fill(message, walk.number, at + route, annotations + properties + body)
        except Exception:  # all or nothing: the message is nobody's
            tables.release(message)
            raise
        return message

    def fill(self, message, number, at, size):
        """Append octets of a segment to a message's chain, piece by piece."""
        reader = self.reader
        while size:
            where = reader.at(number, at, 1)
            count = min(size, len(reader.buffer) - where)
            self.tables.append(message, memoryview(reader.buffer), where, count)
            at += count
            size -= count

    def lose(self, queue, chunk, span):
        """The first `span` positions of a chunk are not where the index says: those that are not settled are, from now on."""
        if not span:
            return
        chunks, holes = self.tables.chunks, queue.pages.holes
        first = self.journal.position(queue, chunks[chunk + chunk_index.POSITION])
        count = len([position for position in range(first, first + span) if holes is None or not holes.has(position)])
        count = min(count, chunks[chunk + chunk_index.COUNT])
        octets = chunks[chunk + chunk_index.OCTETS] if count == chunks[chunk + chunk_index.COUNT] else 0
        if count:
            self.journal.settle_range(queue, first, first + span, count, chunks[chunk + chunk_index.SEGMENT])
        chunks[chunk + chunk_index.POSITION] = (first + span) & layout.MASK
        chunks[chunk + chunk_index.SPAN] -= span
        queue.pages.count_out(chunk, count, octets)
        if count:
            self.log.counters["log_unreadable"] += count
            self.broker.log("%d messages of queue '%s' could not be read back from the log" % (count, queue.name))

    # Other events of a queue

    def purge(self, queue, most):
        """Settle `most` messages of a queue that are only in the log, from the first one, or as many as a turn's chunks have."""
        pages, chunks = queue.pages, self.tables.chunks
        gone = set()
        try:
            for _ in range(PURGE_CHUNKS):
                chunk = pages.head
                if chunk == layout.NONE or most <= 0:
                    break
                first = self.journal.position(queue, chunks[chunk + chunk_index.POSITION])
                count, span = chunks[chunk + chunk_index.COUNT], chunks[chunk + chunk_index.SPAN]
                if count > most:
                    count, span = most, self.span_of(queue, first, most)
                self.journal.settle_range(queue, first, first + span, count, chunks[chunk + chunk_index.SEGMENT])
                most -= count
                if span == chunks[chunk + chunk_index.SPAN]:
                    gone.add(chunk)
                    pages.remove(chunk)
                else:
                    octets = chunks[chunk + chunk_index.OCTETS] * count // chunks[chunk + chunk_index.COUNT]
                    chunks[chunk + chunk_index.POSITION] = (first + span) & layout.MASK
                    chunks[chunk + chunk_index.SPAN] -= span
                    pages.count_out(chunk, count, octets)
        finally:
            self.log.forget_marks(pages, gone)
        self.see_empty(queue)

    def span_of(self, queue, first, count):
        """How many positions from `first` on have `count` messages of one chunk."""
        holes = queue.pages.holes
        end = first
        while count > 0:
            count -= 0 if holes is not None and holes.has(end) else 1
            end += 1
        return end - first
