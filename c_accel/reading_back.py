"""What a queue has beyond memory comes back in C: in a verified record, what is behind the first that Python has read of it
(core/log/beyond_memory.py)."""

from leveret.core.log import chunk_index
from leveret.core.log.read_back import HEAD_SIZE, Damaged
from leveret.core.log.segments import GROUP
from leveret.core.memory import layout

from ._hot import ffi, lib


def read_on(engine, queue, chunk, walk, segment, count_max, octets_max):
    """Put messages that follow in the record in which a walk stands at their queue's tail, up to the first for which there is no room or
    that Python has to look at: (messages, octets, as Pager.bring_next counts them)."""
    pages, reader, chunks = queue.pages, walk.reader, engine.tables.chunks
    expires = queue.rules is not None and queue.rules.expiry is not None
    type_, size = reader.known.get((walk.number, walk.offset), (0, 0))
    if expires or pages.holes is not None or type_ != GROUP or not chunks[chunk + chunk_index.COUNT]:
        return 0, 0
    try:
        begin = reader.at(walk.number, walk.offset + HEAD_SIZE + walk.skip, 1)
    except (OSError, Damaged):
        return 0, 0  # Python meets it when it reads the next message
    flat = engine.window
    flat.position = pages.pager.journal.position(queue, chunks[chunk + chunk_index.POSITION])
    flat.stop = flat.position + chunks[chunk + chunk_index.SPAN]
    flat.queue, flat.identity = queue.handle, queue.id_in_log
    flat.segment, flat.come_back = segment.number, chunks[chunk + chunk_index.COME_BACK]
    flat.held, flat.held_max = 0, min(count_max, chunks[chunk + chunk_index.COUNT])
    flat.octets, flat.octets_max, flat.bodies = 0, octets_max, 0
    end = min(len(reader.buffer), begin + size - walk.skip)
    behind = lib.leveret_read_window(engine.pointers, flat, ffi.from_buffer("uint8_t[]", reader.buffer), begin, end)
    walk.skip += behind - begin
    if walk.skip == size:
        walk.go_to(walk.offset + HEAD_SIZE + size)
    if flat.held:
        chunks[chunk + chunk_index.POSITION] = flat.position & layout.MASK
        chunks[chunk + chunk_index.SPAN] -= flat.held
        chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP] = walk.offset, walk.skip
        pages.count_out(chunk, flat.held, flat.bodies)
    return flat.held, flat.octets
