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
    known: "Any" = None  # see `in_memory`

    def chunks_in(self, segment):
        """{queue id: (queue, its chunks in a segment)}, the chunks in order."""
        chunks = self.tables.chunks
        here: dict = {}
        for queue in self.broker.queues.values():
            chunk = layout.NONE if queue.pages is None else queue.pages.head
            while chunk != layout.NONE:
                if chunks[chunk + chunk_index.SEGMENT] == segment.number and chunks[chunk + chunk_index.OFFSET] >= 0:
                    here.setdefault(queue.id_in_log, (queue, []))[1].append(chunk)
                chunk = chunks[chunk + chunk_index.NEXT]
        return here

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
        """The same for messages in memory: each is copied with all of its places."""
        entries, messages = self.tables.entries, self.tables.messages
        most = self.left
        live, count = self.live_in(segment.number, most)
        chosen: dict = {}  # message -> its places
        references = 0
        for at in range(count):
            message = entries[live[at] + layout.ENTRY_MESSAGE]
            if message not in chosen and self.left > 0:
                self.left -= messages[message + layout.MESSAGE_REFERENCES] + self.tables.size_of(message) // KIB
                references += messages[message + layout.MESSAGE_REFERENCES]
                chosen[message] = []
        if references > len(chosen):  # some have more places than one
            for message in chosen:
                messages[message + layout.MESSAGE_SEGMENT] = layout.NONE
            try:
                live, count = self.live_in(layout.NONE, references)
            finally:
                for message in chosen:
                    messages[message + layout.MESSAGE_SEGMENT] = segment.number
        for at in range(count):
            if entries[live[at] + layout.ENTRY_MESSAGE] in chosen:
                chosen[entries[live[at] + layout.ENTRY_MESSAGE]].append(self.place_of(live[at]))
        for message in chosen:
            self.journal.rewrite(message, chosen[message])
            for _ in chosen[message]:
                self.journal.moved_out(segment)
        return self.left > 0

    def live_in(self, number, most):
        """(entries, how many): those in memory with a place in the log, and a message in that segment; ready, unsettled, waiting."""
        tables = self.tables
        live, count = table(most), 0
        at = tables.engine.integers(live)
        for queue in self.broker.queues.values():
            if queue.id_in_log and not queue.is_stream:
                count = tables.engine.live_in(queue.head(), number, at, count, most)
        for channel in self.broker.consumers.open_sessions():
            count = tables.engine.live_in(tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD], number, at, count, most)
        for queue, entry in self.broker.kept_aside():
            if (
                queue.id_in_log
                and count < most
                and tables.messages[tables.entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_SEGMENT] == number
            ):
                live[count] = entry
                count += 1
        return live, count

    def place_of(self, entry):
        """(queue id, position) of an entry."""
        queue = self.broker.queue_objects[self.tables.entries[entry + layout.ENTRY_QUEUE]]
        return queue.id_in_log, self.journal.position(queue, self.tables.entries[entry + layout.ENTRY_POSITION])

    def in_memory(self, segment):
        """{place: message} of a segment's messages in memory."""
        if self.known is None:
            live, count = self.live_in(segment.number, len(self.tables.entries) // layout.ENTRY_WIDTH)
            self.known = {self.place_of(live[at]): self.tables.entries[live[at] + layout.ENTRY_MESSAGE] for at in range(count)}
        return self.known

    def copy(self, segment, here):
        """Write the messages again that only this segment holds, with their places in memory, as many as `left` says; true when all are
        written.

        `here`: the result of `chunks_in`. A walk through the segment continues in the next turn; after a failure it begins anew: messages
        already copied are no longer in these chunks.
        """
        chunks = self.tables.chunks
        self.reader.known = {}
        self.known = None
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
        only_here, others = [], []
        for place in walk.places(count):
            queue, mine = here.get(place[0], (None, ()))
            chunk = layout.NONE if queue is None else self.chunk_with(mine, queue.pages.holes, place[1], walk)
            if chunk == layout.NONE:
                others.append(place)
            else:
                only_here.append((queue, chunk, place[1]))
        self.left -= count
        if not only_here:
            return
        in_memory = self.in_memory(segment) if others else {}
        others = [place for place in others if place in in_memory]
        places = others + [(queue.id_in_log, position) for queue, _, position in only_here]
        self.left -= size // KIB
        skip = self.journal.append_message(walk.type, self.parts_of(walk, count, size, places), len(places))
        self.log.counters["log_copied_forward"] += 1
        for place in others:
            self.tables.messages[in_memory[place] + layout.MESSAGE_SEGMENT] = self.log.current().number
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
        for chunk in mine:
            if (position - chunks[chunk + chunk_index.POSITION]) & layout.MASK < chunks[chunk + chunk_index.SPAN]:
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
        pages.take_off(chunk, position, octets, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP])
        made = pages.add(
            before, self.log.current().number, self.log.group, skip, position, octets, chunks[chunk + chunk_index.COME_BACK], gap
        )
        if made == layout.NONE:
            return before
        self.log.marks.append((pages, made))
        return made
