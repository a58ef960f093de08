"""Copying what is only in the log out of a segment that is to be freed: record by record, with all places that are still wanted.

A part of Pager. The index follows: a chunk in front of the old one says where the copy is; a crash before the segment is removed leaves
doubles, which recovery knows by their positions.
"""

from ..memory import layout
from ..shim import elapsed
from . import chunk_index, message_record
from .read_back import Damaged, Walk

if False:  # for the type checker alone
    from typing import Any

RETRY_MS = 200  # after the store has failed to read


class Copies:
    """What Pager (beyond_memory.py) does with chunks in a segment; the attributes are Pager's."""

    tables: "Any"
    broker: "Any"
    failed_at: "Any"
    reader: "Any"
    journal: "Any"
    log: "Any"
    give_up: "Any"
    lose: "Any"
    see_empty: "Any"

    def chunks_in(self, segment):
        """{queue id: (queue, its chunks in a segment)}, the chunks in order."""
        chunks = self.tables.chunks
        here: dict = {}
        for found in self.broker.queues.values():
            chunk = layout.NONE if found.pages is None else found.pages.head
            while chunk != layout.NONE:
                if chunks[chunk + chunk_index.SEGMENT] == segment.number and chunks[chunk + chunk_index.OFFSET] >= 0:
                    here.setdefault(found.id_in_log, (found, []))[1].append(chunk)
                chunk = chunks[chunk + chunk_index.NEXT]
        return here

    def may_copy(self, here):
        """True when the index has room for what `chunks_in` gave to be copied, and the store has not failed to read just now."""
        if self.tries and elapsed(self.broker.now, self.failed_at) < RETRY_MS:
            return False
        return sum([len(mine) for _, mine in here.values()]) < self.tables.chunk_pool[2]

    def copy(self, segment, here, in_memory):
        """Write again what a segment holds that is only there, and, with it, what of it is in memory.

        `here`: what `chunks_in` gave; `in_memory`: {(queue id, position): message}, from which is taken what has been written. False when
        the store has failed to read: what is left is to be copied later.
        """
        chunks = self.tables.chunks
        self.reader.known = {}
        walk = Walk(self.reader, segment.number, 0, 0, segment.size)
        while True:
            try:
                if not walk.next():
                    break
                self.copy_message(walk, segment, here, in_memory)
            except OSError as error:
                if not self.give_up("segment %d cannot be read: %r" % (segment.number, error)):
                    return False
                self.pass_over(walk, here)
            except Damaged as error:
                if not [
                    chunk
                    for _, mine in here.values()
                    for chunk in mine
                    if chunks[chunk + chunk_index.COUNT] and chunks[chunk + chunk_index.END] >= walk.offset
                ]:
                    break  # what a failed write has left
                self.broker.log("while it was copied: %s" % (error,))
                self.pass_over(walk, here)
        self.tries = 0
        for found, mine in here.values():
            for chunk in mine:
                self.lose(found, chunk, chunks[chunk + chunk_index.SPAN])
                found.pages.remove(chunk)
            self.see_empty(found)
        return True

    def pass_over(self, walk, here):
        """Pass over what cannot be read: to the record behind it, or the next that the index knows."""
        chunks = self.tables.chunks
        bad = walk.offset
        walk.pass_over()
        if walk.offset == walk.end:
            known = [chunks[chunk + chunk_index.OFFSET] for _, mine in here.values() for chunk in mine]
            walk.go_to(min([offset for offset in known if offset > bad] + [walk.end]))

    def copy_message(self, walk, segment, here, in_memory):
        """Write the message that a walk stands at again, in those of its places that are still wanted."""
        heads = walk.heads()
        count, arrived, body = heads[0], heads[1], heads[5]
        size = message_record.size_of(heads)
        only_here, others = [], []
        message = layout.NONE
        for identity, position in walk.places(count):
            if (identity, position) in in_memory:
                message = in_memory[identity, position]
                others.append((identity, position))
            elif identity in here:
                found, mine = here[identity]
                chunk = self.chunk_with(mine, found.pages.holes, position, walk)
                if chunk != layout.NONE:
                    only_here.append((found, chunk, position))
        if only_here:
            places = others + [(found.id_in_log, position) for found, _, position in only_here]
            skip = self.journal.append_message(walk.type, self.parts_of(walk, count, size, places), len(places))
            self.log.counters["log_copied_forward"] += 1
            if message != layout.NONE:
                self.tables.messages[message + layout.MESSAGE_SEGMENT] = self.log.current().number
            for found, chunk, position in only_here:
                made = self.move(found, chunk, skip, position, size if found.is_stream else body)
                if found.is_stream:
                    found.pages.came(made, arrived)
        elif others:
            self.journal.rewrite(message, others)
        for place in others:
            del in_memory[place]
        for _ in range(len(others) + len(only_here)):
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

    def move(self, found, chunk, skip, position, octets):
        """A message of `chunk` has been written again: the chunk in front of it that says where, perhaps a new one."""
        chunks, pages = self.tables.chunks, found.pages
        before = chunks[chunk + chunk_index.PREVIOUS]
        end = (
            layout.NONE
            if before == layout.NONE
            else (chunks[before + chunk_index.POSITION] + chunks[before + chunk_index.SPAN]) & layout.MASK
        )
        gap = end == chunks[chunk + chunk_index.POSITION]
        self.lose(found, chunk, (position - chunks[chunk + chunk_index.POSITION]) & layout.MASK)
        pages.take_off(chunk, position, octets, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP])
        made = pages.add(
            before, self.log.current().number, self.log.group, skip, position, octets, chunks[chunk + chunk_index.COME_BACK], gap
        )
        if made == layout.NONE:
            return before
        self.log.marks.append((pages, made))
        return made
