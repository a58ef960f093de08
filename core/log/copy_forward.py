"""Copying live messages out of a segment that is to be freed, with all of their live places: those only in the log record by record, then
those in memory. It goes in turns; all of it is durable before the segment is removed.

A part of Pager. The index follows: a chunk in front of the old one says where the copy is; a crash before the segment is removed leaves
doubles, which recovery knows by their positions.
"""

from ..memory import layout
from ..shim import elapsed, table
from . import chunk_index, message_record
from .read_back import Damaged, Walk

if False:  # for the type checker alone
    from typing import Any

READ_RETRY_MS = 200  # after the store has failed to read

KIB = 1024  # octets of a message that are as much work as one more message
CHUNKS_TURN = 16384  # chunks that one turn looks at
LOOKS = 32  # engine.effort over this: entries that are looked at while one message is copied
SHARED_MAX = 4096  # references to messages with more than one that a sweep over the entries remembers; the next sweep sees the others


class Copies:
    """Pager's (beyond_memory.py) work on chunks in a segment; the attributes are Pager's."""

    tables: "Any"
    broker: "Any"
    failed_at: "Any"
    reader: "Any"
    journal: "Any"
    log: "Any"
    give_up: "Any"
    lose: "Any"
    see_empty: "Any"

    left = 0  # messages that may be copied yet in this turn; a KiB of one counts as one more
    walk: "Any" = None  # where the copying of a segment continues
    walks: "Any" = None  # the queue whose chunks chunks_in looks at
    unwalked: "Any" = ()  # those that it has not come to
    here: "Any" = None  # what it has found, in the segment `here_in`
    here_in = layout.NONE
    swept = layout.NONE  # the segment whose messages in memory are copied
    at = 0  # the entry at which that goes on
    shared: "Any" = ()  # message -> its entries so far, of those with more references than one
    promised = 0  # their references
    again = False  # there are more of those

    def chunks_in(self, segment):
        """{queue id: (queue, its chunks in a segment)}, the chunks in order; None: the walk through the index goes on in the next turn.

        No chunk comes into the oldest segment, so the walk is made once for each.
        """
        chunks, pool = self.tables.chunks, self.tables.chunk_pool
        if self.here_in != segment.number:
            self.here_in, self.here = segment.number, {}
            self.unwalked = [queue for queue in self.broker.queues.values() if queue.pages is not None]
            pool[3] = layout.NONE
        steps = CHUNKS_TURN
        while pool[3] != layout.NONE or self.unwalked:
            chunk = pool[3]
            if chunk == layout.NONE:
                self.walks = self.unwalked.pop()
                pool[3] = self.walks.pages.head
                continue
            if steps == 0:
                return None
            steps -= 1
            if chunks[chunk + chunk_index.SEGMENT] == segment.number and chunks[chunk + chunk_index.OFFSET] >= 0:
                self.here.setdefault(self.walks.id_in_log, (self.walks, []))[1].append(chunk)
            pool[3] = chunks[chunk + chunk_index.NEXT]
        for identity in list(self.here):
            queue, mine = self.here[identity]
            mine = [chunk for chunk in mine if chunks[chunk + chunk_index.SEGMENT] == segment.number]  # the others are no more
            self.here[identity] = (queue, mine)
            if not mine or self.broker.queues.get(queue.name) is not queue:
                del self.here[identity]
        return self.here

    def may_copy(self, here):
        """True when the index has room for copies of the chunks `here` (chunks_in), and the store has not failed to read just now."""
        if self.tries and elapsed(self.broker.now, self.failed_at) < READ_RETRY_MS:
            return False
        return sum([len(mine) for _, mine in here.values()]) < self.tables.chunk_pool[2]

    def copy_forward(self, segment, here):
        """Write the messages that still live in a segment again, as many as `left` says: true when all are. `here`: as `chunks_in` gave it.

        False also when the store has failed to read: the rest is to be copied later.
        """
        if here and not self.copy(segment, here) or not self.copy_from_memory(segment):
            return False
        segment.live = 0
        segment.needs = self.log.appended
        self.log.owes_sync = True
        return True

    def copy_from_memory(self, segment):
        """The same for messages in memory, in the order of the table of entries: each is copied with all of its places, at the end where it
        may have more than one. An entry never gets a message of the oldest segment."""
        tables, number = self.tables, segment.number
        if self.swept != number:
            self.swept = number
            self.begin_sweep()
        live = table(max(self.left, 0) + 1)
        live_at = tables.engine.integers(live)
        looks = layout.ENTRY_WIDTH * (tables.engine.effort // LOOKS)  # at entries, as much work as one message
        while self.at < tables.state[layout.POOL_ENTRIES + 1]:
            if self.left <= 0:
                return False
            begin, end = self.at, min(self.at + self.left * looks, tables.state[layout.POOL_ENTRIES + 1])
            end = tables.engine.live_in(begin, end, number, live_at, self.left)
            place = 0
            while self.left > 0 and live[place] != layout.NONE:
                self.at = live[place]
                self.see_live(segment, live[place])
                self.at += layout.ENTRY_WIDTH
                place += 1
            if live[place] == layout.NONE:
                self.at = end
            self.left -= (self.at - begin) // looks
        for message in list(self.shared):
            if self.left <= 0:
                return False
            self.rewrite(segment, message, [entry for entry in self.shared[message] if self.is_live(entry, number)])
            del self.shared[message]
        if self.again:
            self.begin_sweep()
            self.left = 0
            return False
        return True

    def begin_sweep(self):
        """Look at all entries, from the first one."""
        self.at = self.promised = 0
        self.shared = {}
        self.again = False

    def is_live(self, entry, number):
        """True when the log knows an entry, whose message is in the segment with this number."""
        entries = self.tables.entries
        message = entries[entry + layout.ENTRY_MESSAGE]
        return entries[entry + layout.ENTRY_REDELIVERED] >= 0 and self.tables.messages[message + layout.MESSAGE_SEGMENT] == number

    def see_live(self, segment, entry):
        """An entry has a message of the segment: copy the message now, or when its other places are known."""
        entries, messages = self.tables.entries, self.tables.messages
        message = entries[entry + layout.ENTRY_MESSAGE]
        queue = self.broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]]
        if self.broker.queues.get(queue.name) is not queue:
            entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # the copy does not have the place: hot.drop is not to tell the journal
            self.left -= 1
        elif not queue.id_in_log:
            self.left -= 1
        elif messages[message + layout.MESSAGE_REFERENCES] == 1:
            self.rewrite(segment, message, [entry])
        elif message in self.shared:
            self.shared[message].append(entry)
        elif self.promised < SHARED_MAX:
            self.promised += messages[message + layout.MESSAGE_REFERENCES]
            self.shared[message] = [entry]
        else:
            self.again = True

    def rewrite(self, segment, message, live):
        """Write a message of the segment again, with the places of these entries."""
        mine = [entry for entry in live if self.tables.entries[entry + layout.ENTRY_MESSAGE] == message]
        self.left -= len(live) + self.tables.size_of(message) // KIB
        if len(mine) < len(live):
            self.again = True  # one has another message now (AMQP 1.0: with annotations of its own)
        if mine:
            self.journal.rewrite(message, [self.place_of(entry) for entry in mine])
        for _ in mine:
            self.journal.moved_out(segment)

    def place_of(self, entry):
        """(queue id, position) of an entry."""
        queue = self.broker.queue_objects[self.tables.entries[entry + layout.ENTRY_QUEUE]]
        return queue.id_in_log, self.journal.position(queue, self.tables.entries[entry + layout.ENTRY_POSITION])

    def copy(self, segment, here):
        """Write the messages again that only this segment holds, with their places in memory, as many as `left` says; true when all are
        written.

        `here`: the result of `chunks_in`. A walk through the segment continues in the next turn; after a failure it begins anew: messages
        already copied are no longer in these chunks.
        """
        chunks = self.tables.chunks
        self.reader.known = {}
        walk, self.walk = self.walk, None
        if walk is None or walk.number != segment.number:
            walk = Walk(self.reader, segment.number, 0, 0, segment.size)
        while True:
            if self.left <= 0:
                self.walk = walk
                self.remove_emptied(here)
                return False
            try:
                if not walk.next():
                    break
                self.copy_message(walk, segment, here)
            except OSError as error:
                if not self.give_up("segment %d cannot be read: %r" % (segment.number, error)):
                    self.remove_emptied(here)
                    return False
                self.pass_over(walk, here)
            except Damaged as error:
                if not [
                    chunk
                    for _, mine in here.values()
                    for chunk in mine
                    if chunks[chunk + chunk_index.COUNT] and chunks[chunk + chunk_index.END] >= walk.offset
                ]:
                    break  # the remains of a failed write
                self.broker.log("while it was copied: %s" % (error,))
                self.pass_over(walk, here)
        self.tries = 0
        for queue, mine in here.values():
            for chunk in mine:
                self.lose(queue, chunk, chunks[chunk + chunk_index.SPAN])
                queue.pages.remove(chunk)
            self.see_empty(queue)
        return True

    def remove_emptied(self, here):
        """Remove fully copied chunks from the index, so that no reader of the index meets them before the next turn."""
        for queue, mine in here.values():
            for chunk in mine:
                if self.tables.chunks[chunk + chunk_index.SPAN] == 0:
                    queue.pages.remove(chunk)

    def pass_over(self, walk, here):
        """Pass over an unreadable record: to the record behind it, or the next that the index knows."""
        chunks = self.tables.chunks
        bad = walk.offset
        walk.pass_over()
        if walk.offset == walk.end:
            known = [chunks[chunk + chunk_index.OFFSET] for _, mine in here.values() for chunk in mine]
            walk.go_to(min([offset for offset in known if offset > bad] + [walk.end]))

    def copy_message(self, walk, segment, here):
        """Write the message again at which a walk stands, if some live place has no other copy, with its live places."""
        heads = walk.heads()
        count, arrived, body = heads[0], heads[1], heads[5]
        size = message_record.size_of(heads)
        only_here = []
        for place in walk.places(count):
            queue, mine = here.get(place[0], (None, ()))
            chunk = layout.NONE if queue is None else self.chunk_with(mine, queue.pages.holes, place[1], walk)
            if chunk != layout.NONE:
                only_here.append((queue, chunk, place[1]))
        self.left -= count
        if not only_here:
            return
        places = [(queue.id_in_log, position) for queue, _, position in only_here]
        self.left -= size // KIB
        skip = self.journal.append_message(walk.type, self.parts_of(walk, count, size, places), len(places))
        self.log.counters["log_copied_forward"] += 1
        for queue, chunk, position in only_here:
            made = self.move(queue, chunk, skip, position, size if queue.is_stream else body)
            if queue.is_stream:
                queue.pages.came(made, arrived)
        for _ in places:
            self.journal.moved_out(segment)

    def parts_of(self, walk, count, size, places):
        """The parts of a record with the message that a walk stands at, of `size` octets and with `count` places there, in `places`."""
        reader = walk.reader
        at = message_record.route_at(walk.at, count)
        head = reader.at(walk.number, walk.at, message_record.HEAD_SIZE)
        parts = message_record.moved(reader.buffer, head, places)
        while size:
            where = reader.at(walk.number, at, 1)
            parts.append(bytes(memoryview(reader.buffer)[where : where + size]))
            at += len(parts[-1])
            size -= len(parts[-1])
        return parts

    def chunk_with(self, mine, holes, position, walk):
        """The one of these chunks that has a position in the message that a walk stands at, or NONE: it may have been there earlier too."""
        chunks = self.tables.chunks
        low, high = 0, len(mine)
        while low < high:  # the chunks rise: which is the first one behind the position?
            middle = (low + high) // 2
            if chunk_index.is_behind(chunks[mine[middle] + chunk_index.POSITION], position & layout.MASK):
                high = middle
            else:
                low = middle + 1
        chunk = mine[low - 1] if low else layout.NONE
        if low and (position - chunks[chunk + chunk_index.POSITION]) & layout.MASK < chunks[chunk + chunk_index.SPAN]:
            begins = chunks[chunk + chunk_index.OFFSET]
            if walk.record < begins or walk.record == begins and walk.part < chunks[chunk + chunk_index.SKIP]:
                return layout.NONE
            return layout.NONE if holes is not None and holes.has(position) else chunk
        return layout.NONE

    def move(self, queue, chunk, skip, position, octets):
        """A message of `chunk` has been written again: the chunk in front of it that says where, perhaps a new one."""
        chunks, pages = self.tables.chunks, queue.pages
        before = chunks[chunk + chunk_index.PREVIOUS]
        end = (
            layout.NONE
            if before == layout.NONE
            else (chunks[before + chunk_index.POSITION] + chunks[before + chunk_index.SPAN]) & layout.MASK
        )
        gap = end == chunks[chunk + chunk_index.POSITION]
        self.lose(queue, chunk, (position - chunks[chunk + chunk_index.POSITION]) & layout.MASK)
        pages.advance(chunk, position, octets, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP])
        made = pages.add(
            before, self.log.current().number, self.log.group, skip, position, octets, chunks[chunk + chunk_index.COME_BACK], gap
        )
        if made == layout.NONE:
            return before
        self.log.gathered.marks.append((pages, made))
        return made
