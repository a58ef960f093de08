"""The second pass of recovery: it puts every unsettled message into its queues in an empty broker, in fixed memory.

Messages are loaded into memory. When half of the memory is in use, the largest queue that can leave its messages in the log
(log/beyond_memory.py) gets an index of all its messages instead. A stream always does: recovery loads no message of it (stream/pages.py).
"""

from ..errors import words_of
from ..limits import block_count
from ..log import definition_records, message_record, segments
from ..log.chunk_index import is_behind
from ..memory import hot, layout
from ..message.formats import NUMBER, format_of
from ..outcomes import nobody
from ..shim import table
from .first_pass import is_orphan, records


class TooSmall(Exception):
    """The limits have no room for the messages of the log; the text says which number to raise."""


class TooManyPieces(TooSmall):
    """The index has no room; it may have when more of the messages are in memory."""


def restore(broker, store, contents, pager):
    """The second pass: definitions, then messages, into an empty broker. Raises TooSmall."""
    by_id, contents.loose = definition_records.restore(broker, list(contents.definitions.values()), nobody, contents.faults, pager.watch)
    contents.unmade = [each["id"] for each in broker.unrestored if each["kind"] == "queue"]
    for identity in by_id:
        if by_id[identity].pages is not None:
            by_id[identity].pages.holes = contents.settled.get(identity)
            if not by_id[identity].is_stream:
                by_id[identity].pages.present = contents.present.get(identity)
    contents.where = table(2 * broker.limits.message_count_max)
    delaying = [exchange.name for exchange in broker.exchanges.values() if exchange.delays]
    while True:
        try:
            fill(broker, store, contents, by_id, delaying)
            break
        except TooManyPieces:
            empty_queues(broker, contents, by_id)
            if contents.kept_free == 8:
                contents.counts["pieces"] = more_pieces(broker)
            contents.kept_free = 8
    for identity in by_id:
        try:
            begin_queue(broker, contents, by_id[identity], pager)
        except Exception as error:  # reported at the end of recovery: the queue begins without
            contents.faults.append("queue '%s' could not begin (%s)" % (by_id[identity].name, words_of(error)))
            begin_again(broker, contents, by_id[identity], pager)
    return by_id


def begin_again(broker, contents, queue, pager):
    """Begin a queue once more; when that raises too, the queue continues behind its messages in the log, which stay there."""
    try:
        begin_queue(broker, contents, queue, pager)
    except Exception:  # reported before: its messages in the log stay there
        for segment in contents.segments:
            segment.pinned = True
        broker.tables.queues[queue.handle + layout.QUEUE_POSITION] = (queue.log_position + 1) & layout.MASK
        if queue.is_stream:
            queue.following = queue.durable_offset = queue.first_offset = queue.log_position + 1


def begin_queue(broker, contents, queue, pager):
    """Open a queue whose messages are all in place: count its gaps, and let the pager read for it."""
    gaps = close_queue(broker, queue, contents.settled.get(queue.id_in_log))
    pager.begin(queue)
    contents.counts["gaps"] += gaps


def fill(broker, store, contents, by_id, delaying):
    """Put all unsettled messages into the queues. Raises TooSmall."""
    for segment in contents.segments:
        for type_, payload, at, _, offset, skip in records(store, segment.number, contents.ends[segment.number]):
            if type_ == segments.MESSAGE and (segment.number, offset, skip) not in contents.nonsense:
                try:
                    put_message(broker, contents, by_id, segment, payload, at, offset, skip, delaying)
                except TooSmall:
                    raise
                except Exception as error:  # unreadable records are reported; the rest of the log counts
                    contents.fault(segment, offset, error)
                    keep_positions(by_id, payload, at)


def keep_positions(by_id, payload, at):
    """Reserve the positions of a message that could not be put into its queues and stays in the log: no other message gets them."""
    for identity, position in message_record.places_at(payload, at):
        if identity in by_id:
            by_id[identity].log_position = max(by_id[identity].log_position, position)


def empty_queues(broker, contents, by_id):
    """Remove all messages from the queues, to fill them again."""
    for segment in contents.segments:
        segment.live = segment.written = segment.orphans = 0
    for queue in by_id.values():
        entry = queue.head()
        while entry != layout.NONE:
            queue.unlink(entry)
            broker.tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # hot.drop is not to tell the journal
            queue.drop(entry)
            entry = queue.head()
        if queue.pages is not None:
            while queue.pages.head != layout.NONE:
                queue.pages.remove(queue.pages.head)
    contents.last_entered = {}
    contents.indexed = {}
    contents.orphans = {}
    contents.counts.update(messages=0, doubles=0, let_go=0)


def put_message(broker, contents, by_id, segment, payload, at, offset, skip, delaying):
    """Put a logged message into the queues that have not settled it: into their index, or into memory. Raises TooSmall."""
    heads = message_record.heads_at(payload, at)
    count = heads[0]
    if format_of(heads[6]) is None:
        raise ValueError("its properties have the format %d, which this build does not carry" % (heads[6] & NUMBER))
    segment.written += count
    wanted: list = []
    in_memory = None
    for index in range(count):
        identity, position = message_record.place_at(payload, at, index)
        queue = by_id.get(identity)
        contents.note_queue_id(identity)
        if queue is None or identity in contents.settled and contents.settled[identity].has(position):
            if identity in contents.unmade:
                segment.pinned = True
            elif is_orphan(contents, by_id, identity, position):
                contents.orphans[identity] = contents.orphans.get(identity, 0) + 1
                segment.orphans += 1
            continue
        if contents.changed.get((identity, position), (segment.number, offset, skip)) != (segment.number, offset, skip):
            contents.counts["doubles"] += 1  # the message has other annotations since
            continue
        if queue.is_stream:
            index_in_stream(broker, contents, queue, segment, offset, skip, position, payload, at, heads)
            continue
        if queue.pages is not None:
            if in_memory is None:
                in_memory = bool(delaying) and waits(broker, payload, at, heads, delaying)
            if not in_memory and comes_into_index(broker, contents, queue, message_record.size_of(heads), wanted):
                index_message(broker, contents, queue, segment, offset, skip, position, heads[5])
                continue
        before = place_before(broker.tables, queue, contents.last_entered.get(identity, layout.NONE), position)
        if before is None:
            contents.counts["doubles"] += 1
        else:
            wanted.append((queue, position, before))
    if wanted:
        load_message(broker, contents, segment, payload, at, heads, wanted, (layout.NONE if in_memory else offset, skip))


def comes_into_index(broker, contents, queue, size, wanted):
    """True when a message of `size` octets goes into its queue's index, not into memory: memory is short, the queue one of the largest.

    Large queues go into their index whole, so that small ones, which would need chunks of the index for a few messages, stay in memory. The
    queues of `wanted`, for which the same message is loaded, stay in memory too.
    """
    lengths = broker.tables.queues
    taken = [each[0] for each in wanted]
    while queue.id_in_log not in contents.indexed and not has_part(broker, contents.kept_free, size):
        largest = queue
        for each in broker.queues.values():
            if (
                each.pages is not None
                and each.id_in_log not in contents.indexed
                and each not in taken
                and lengths[each.handle + layout.QUEUE_LENGTH] > lengths[largest.handle + layout.QUEUE_LENGTH]
            ):
                largest = each
        use_index(broker, contents, largest)
    return queue.id_in_log in contents.indexed


def has_part(broker, kept_free, size):
    """True when one `kept_free`-th of the memory is free behind a message of `size` octets."""
    state, limits = broker.tables.state, broker.limits
    return (
        (state[layout.POOL_BLOCKS + 2] - broker.tables.blocks_for(size)) * kept_free >= block_count(limits)
        and state[layout.POOL_MESSAGES + 2] * kept_free > limits.message_count_max
        and state[layout.POOL_ENTRIES + 2] * kept_free > limits.entry_count_max
    )


def use_index(broker, contents, queue):
    """Move a queue's messages from memory into its index, but for delayed ones; later ones follow. Raises TooSmall."""
    contents.indexed[queue.id_in_log] = True
    contents.last_entered.pop(queue.id_in_log, None)
    tables = broker.tables
    entry = queue.head()
    while entry != layout.NONE:
        behind = tables.entries[entry + layout.ENTRY_NEXT]
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        record = message // layout.MESSAGE_WIDTH * 2
        if contents.where[record] != layout.NONE:
            position = queue.pages.pager.journal.position(queue, tables.entries[entry + layout.ENTRY_POSITION])
            if (
                queue.pages.place(
                    tables.messages[message + layout.MESSAGE_SEGMENT],
                    contents.where[record],
                    contents.where[record + 1],
                    position,
                    tables.messages[message + layout.MESSAGE_BODY],
                )
                is None
            ):
                too_many_pieces(broker)
            queue.unlink(entry)
            tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # hot.drop is not to tell the journal
            queue.drop(entry)
        entry = behind


def more_pieces(broker):
    """Give the empty index twice as many pieces: a broker that runs needs fewer for the same messages than one that starts, which lists
    whole queues, and what it has confirmed is to be there behind a power cut. How many. Raises TooManyPieces without memory for them."""
    try:
        broker.tables.make_chunks(2 * broker.tables.chunk_count)
    except MemoryError:
        too_many_pieces(broker)
    return broker.tables.chunk_count


def too_many_pieces(broker):
    """Raise TooSmall."""
    raise TooManyPieces(
        "the log has messages in more places than the limits have room for; raise chunk_count_max (%d)" % broker.limits.chunk_count_max
    )


def index_message(broker, contents, queue, segment, offset, skip, position, body):
    """Put a message into the index of a queue. Raises TooSmall."""
    listed = queue.pages.place(segment.number, offset, skip, position, body)
    if listed is None:
        too_many_pieces(broker)
    if not listed:
        contents.counts["doubles"] += 1
        return
    queue.log_position = max(queue.log_position, position)
    segment.live += 1
    contents.counts["messages"] += 1


def index_in_stream(broker, contents, queue, segment, offset, skip, position, payload, at, heads):
    """Put a message into the index of a stream, and note its publisher's number. Raises TooSmall."""
    if broker.tables.chunk_pool[2] == 0:
        queue.pages.tighten()
        if broker.tables.chunk_pool[2] == 0:
            if contents.kept_free == 2:
                too_many_pieces(broker)
            queue.pages.make_piece(contents)
    before = contents.counts["doubles"]
    index_message(broker, contents, queue, segment, offset, skip, position, message_record.size_of(heads))
    if before == contents.counts["doubles"]:
        queue.pages.came(queue.pages.last, heads[1])
        start = message_record.properties_at(at, heads)
        queue.publishers.recovered(payload, start, start + heads[4], heads[6])


def waits(broker, payload, at, heads, delaying):
    """True when a message came through one of the exchanges `delaying` (names) and its delay is not over."""
    arrived, properties, kind = heads[1], heads[4], heads[6]
    start = message_record.route_at(at, heads[0])
    name = str(payload[start + 1 : start + 1 + payload[start]], "utf-8")
    if name not in delaying:
        return False
    from ..queue.waiting import left_of

    start = message_record.properties_at(at, heads)
    return left_of(broker, format_of(kind).header(payload[start : start + properties], "x-delay"), arrived) > 0


def load_message(broker, contents, segment, payload, at, heads, wanted, where):
    """Load a message into the queues `wanted`: (queue, position, entry in front). `where`: its record's (offset, skip). Raises TooSmall."""
    count, arrived, route_size, annotations_size, properties_size, body_size, kind, lifetime = heads
    tables = broker.tables
    size = message_record.size_of(heads)
    for queue in list(broker.queues.values()):
        if tables.has_room(tables.blocks_for(size), len(wanted)):
            break
        if (
            queue.pages is not None
            and not queue.is_stream
            and queue.id_in_log not in contents.indexed
            and queue not in [each[0] for each in wanted]
        ):
            use_index(broker, contents, queue)
    if not tables.has_room(tables.blocks_for(size), len(wanted)):
        leave_in_log(broker, contents, segment)
        return
    start = message_record.route_at(at, count)
    message = tables.new_message(payload[start : start + route_size], properties_size, body_size, arrived, kind, lifetime, annotations_size)
    try:
        tables.append(message, memoryview(payload), start + route_size, annotations_size + properties_size + body_size)
        tables.messages[message + layout.MESSAGE_SEGMENT] = segment.number
        record = message // layout.MESSAGE_WIDTH * 2
        contents.where[record], contents.where[record + 1] = where
        for queue, position, before in wanted:
            contents.last_entered[queue.id_in_log] = enter(tables, queue, message, position, before)
            segment.live += 1
            contents.counts["messages"] += 1
    finally:
        tables.release(message)


def leave_in_log(broker, contents, segment):
    """Raise TooSmall; where the log is damaged (lost acknowledgements bring messages back) leave the message in the log instead."""
    if not contents.damages and not contents.missing and not contents.lost:
        raise TooSmall(
            "the log holds more than the limits have room for; raise arena_size (%d), message_count_max (%d) or entry_count_max "
            "(%d)" % (broker.limits.arena_size, broker.limits.message_count_max, broker.limits.entry_count_max)
        )
    segment.pinned = True
    contents.counts["left"] += 1


def place_before(tables, queue, hint, position):
    """The entry behind which a position belongs (NONE: at the head); None when the position is taken (copied forward before the crash).

    `hint`: the entry that was entered last, or NONE; messages copied forward come in the order of their queue.
    """
    entries = tables.entries
    tail = tables.queues[queue.handle + layout.QUEUE_TAIL]
    before = layout.NONE
    for start in (tail, hint):
        if start != layout.NONE and is_behind(position, entries[start + layout.ENTRY_POSITION]):
            before = start
            break
    while True:
        behind = queue.head() if before == layout.NONE else entries[before + layout.ENTRY_NEXT]
        if behind == layout.NONE or is_behind(entries[behind + layout.ENTRY_POSITION], position):
            break
        before = behind
    taken = before != layout.NONE and entries[before + layout.ENTRY_POSITION] == position & layout.MASK
    return None if taken else before


def enter(tables, queue, message, position, before):
    """Put a message at its position of a queue: its entry."""
    entry = hot.push(tables.messages, tables.entries, tables.queues, tables.state, queue.handle, message)
    tables.entries[entry + layout.ENTRY_POSITION] = position & layout.MASK
    tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE if queue.is_stream else 1
    tables.entries[entry + layout.ENTRY_DEADLINE] = 0
    if tables.entries[entry + layout.ENTRY_PREVIOUS] != before:
        queue.unlink(entry)
        queue.link(entry, before)
    queue.log_position = max(queue.log_position, position)
    return entry


def close_queue(broker, queue, settled):
    """Bring a queue's counters to where the log says they were: how many messages a gap in a stream has cost."""
    if settled is not None:
        queue.log_position = max(queue.log_position, settled.end - 1)
    broker.tables.queues[queue.handle + layout.QUEUE_POSITION] = (queue.log_position + 1) & layout.MASK
    return queue.recovered() if queue.is_stream else 0
