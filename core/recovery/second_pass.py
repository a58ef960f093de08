"""The second pass of recovery: every message that is not settled goes to its places in an empty broker, in fixed memory.

Messages are put into memory. When half of the memory is taken, a queue that can have messages in the log alone (log/beyond_memory.py) goes
there as a whole and gets an index of its messages. A stream always does: nothing of it is loaded (stream/pages.py).
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
    """The limits have no room for what the log holds; the text says which number to raise."""


class TooManyPieces(TooSmall):
    """The index has no room; with more of the messages in memory it may have."""


def restore(broker, store, found, pager):
    """The second pass: definitions, then messages, into an empty broker. Raises TooSmall."""
    by_id, found.loose = definition_records.restore(broker, list(found.definitions.values()), nobody, found.faults, pager.watch)
    found.unmade = [each["id"] for each in broker.unrestored if each["kind"] == "queue"]
    for identity in by_id:
        if by_id[identity].pages is not None:
            by_id[identity].pages.holes = found.settled.get(identity)
            if not by_id[identity].is_stream:
                by_id[identity].pages.present = found.present.get(identity)
    found.where = table(2 * broker.limits.message_count_max)
    delaying = [exchange.name for exchange in broker.exchanges.values() if exchange.delays]
    try:
        fill(broker, store, found, by_id, delaying)
    except TooManyPieces:
        empty(broker, found, by_id)
        found.kept_free = 8
        fill(broker, store, found, by_id, delaying)
    for identity in by_id:
        try:
            begin(broker, found, by_id[identity], pager)
        except Exception as error:  # told at the end of recovery: the queue begins without
            found.faults.append("queue '%s' could not begin (%s)" % (by_id[identity].name, words_of(error)))
            begin_again(broker, found, by_id[identity], pager)
    return by_id


def begin_again(broker, found, queue, pager):
    """The same once more; when that raises too the queue goes on behind what the log has of it, which stays there."""
    try:
        begin(broker, found, queue, pager)
    except Exception:  # told before: what the log has of it stays there
        for segment in found.segments:
            segment.pinned = True
        broker.tables.queues[queue.handle + layout.QUEUE_POSITION] = (queue.log_position + 1) & layout.MASK
        if queue.is_stream:
            queue.following = queue.durable_offset = queue.first_offset = queue.log_position + 1


def begin(broker, found, queue, pager):
    """A queue has all that it is to have."""
    gaps = close_queue(broker, queue, found.settled.get(queue.id_in_log))
    pager.begin(queue)
    found.counts["gaps"] += gaps


def fill(broker, store, found, by_id, delaying):
    """Put all messages that are wanted into the queues. Raises TooSmall."""
    for segment in found.segments:
        for type_, payload, at, _, offset, skip in records(store, segment.number, found.ends[segment.number]):
            if type_ == segments.MESSAGE and (segment.number, offset, skip) not in found.nonsense:
                try:
                    place(broker, found, by_id, segment, payload, at, offset, skip, delaying)
                except TooSmall:
                    raise
                except Exception as error:  # what cannot be read is told; the rest of the log counts
                    found.fault(segment, offset, error)
                    keep_positions(by_id, payload, at)


def keep_positions(by_id, payload, at):
    """A message that could not be put into its queues stays in the log: no other gets its positions."""
    for identity, position in message_record.places_at(payload, at):
        if identity in by_id:
            by_id[identity].log_position = max(by_id[identity].log_position, position)


def empty(broker, found, by_id):
    """Take all messages out of the queues again."""
    for segment in found.segments:
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
    found.last_entered = {}
    found.indexed = {}
    found.orphans = {}
    found.counts.update(messages=0, doubles=0, let_go=0)


def place(broker, found, by_id, segment, payload, at, offset, skip, delaying):
    """Put a logged message into the queues where it is still wanted: into their index, or into memory."""
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
        found.see_queue(identity)
        if queue is None or identity in found.settled and found.settled[identity].has(position):
            if identity in found.unmade:
                segment.pinned = True
            elif is_orphan(found, by_id, identity, position):
                found.orphans[identity] = found.orphans.get(identity, 0) + 1
                segment.orphans += 1
            continue
        if queue.is_stream:
            list_in_stream(broker, found, queue, segment, offset, skip, position, payload, at, heads)
            continue
        if queue.pages is not None:
            if in_memory is None:
                in_memory = bool(delaying) and waits(broker, payload, at, heads, delaying)
            if not in_memory and comes_into_index(broker, found, queue, message_record.size_of(heads), wanted):
                list_it(broker, found, queue, segment, offset, skip, position, heads[5])
                continue
        before = place_before(broker.tables, queue, found.last_entered.get(identity, layout.NONE), position)
        if before is None:
            found.counts["doubles"] += 1
        else:
            wanted.append((queue, position, before))
    if wanted:
        load(broker, found, segment, payload, at, heads, wanted, (layout.NONE if in_memory else offset, skip))


def comes_into_index(broker, found, queue, size, wanted):
    """True when a message of so many octets is to be listed, not loaded: memory is needed, and its queue is one of the largest.

    Large queues are listed whole, so that small ones, which would take pieces of the index for a few messages, stay in memory; not those
    in which the same message already has its place in memory (`wanted`).
    """
    lengths = broker.tables.queues
    taken = [each[0] for each in wanted]
    while queue.id_in_log not in found.indexed and not has_part(broker, found.kept_free, size):
        largest = queue
        for each in broker.queues.values():
            if (
                each.pages is not None
                and each.id_in_log not in found.indexed
                and each not in taken
                and lengths[each.handle + layout.QUEUE_LENGTH] > lengths[largest.handle + layout.QUEUE_LENGTH]
            ):
                largest = each
        use_index(broker, found, largest)
    return queue.id_in_log in found.indexed


def has_part(broker, kept_free, size):
    """True when one `kept_free`-th of the memory is free, with a message of so many octets."""
    state, limits = broker.tables.state, broker.limits
    return (
        (state[layout.POOL_BLOCKS + 2] - broker.tables.blocks_for(size)) * kept_free >= block_count(limits)
        and state[layout.POOL_MESSAGES + 2] * kept_free > limits.message_count_max
        and state[layout.POOL_ENTRIES + 2] * kept_free > limits.entry_count_max
    )


def use_index(broker, found, queue):
    """Have a queue's messages in its index from now on, not in memory, but for those that wait for a moment. Raises TooSmall."""
    found.indexed[queue.id_in_log] = True
    found.last_entered.pop(queue.id_in_log, None)
    tables = broker.tables
    entry = queue.head()
    while entry != layout.NONE:
        behind = tables.entries[entry + layout.ENTRY_NEXT]
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        record = message // layout.MESSAGE_WIDTH * 2
        if found.where[record] != layout.NONE:
            position = queue.pages.pager.journal.position(queue, tables.entries[entry + layout.ENTRY_POSITION])
            if (
                queue.pages.place(
                    tables.messages[message + layout.MESSAGE_SEGMENT],
                    found.where[record],
                    found.where[record + 1],
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


def too_many_pieces(broker):
    """Raise TooSmall."""
    raise TooManyPieces(
        "the log has messages in more places than the limits have room for; raise chunk_count_max (%d)" % broker.limits.chunk_count_max
    )


def list_it(broker, found, queue, segment, offset, skip, position, body):
    """Put a message into the index of a queue. Raises TooSmall."""
    listed = queue.pages.place(segment.number, offset, skip, position, body)
    if listed is None:
        too_many_pieces(broker)
    if not listed:
        found.counts["doubles"] += 1
        return
    queue.log_position = max(queue.log_position, position)
    segment.live += 1
    found.counts["messages"] += 1


def list_in_stream(broker, found, queue, segment, offset, skip, position, payload, at, heads):
    """Put a message into the index of a stream, and remember what its publisher has published. Raises TooSmall."""
    if broker.tables.chunk_pool[2] == 0:
        queue.pages.tighten()
        if broker.tables.chunk_pool[2] == 0:
            if found.kept_free == 2:
                too_many_pieces(broker)
            queue.pages.make_piece(found)
    before = found.counts["doubles"]
    list_it(broker, found, queue, segment, offset, skip, position, message_record.size_of(heads))
    if before == found.counts["doubles"]:
        queue.pages.came(queue.pages.last, heads[1])
        start = message_record.properties_at(at, heads)
        queue.publishers.recovered(payload, start, start + heads[4], heads[6])


def waits(broker, payload, at, heads, delaying):
    """True when a message came by way of one of the exchanges `delaying` and its moment has not come."""
    arrived, properties, kind = heads[1], heads[4], heads[6]
    start = message_record.route_at(at, heads[0])
    name = str(payload[start + 1 : start + 1 + payload[start]], "utf-8")
    if name not in delaying:
        return False
    from ..queue.waiting import left_of

    start = message_record.properties_at(at, heads)
    return left_of(broker, lambda: format_of(kind).decode(payload, start, start + properties), arrived) > 0


def load(broker, found, segment, payload, at, heads, wanted, where):
    """Put a message into memory, in the queues `wanted`: (queue, position, entry in front); `where` its record is. Raises TooSmall."""
    count, arrived, route_size, annotations_size, properties_size, body_size, kind, lifetime = heads
    tables = broker.tables
    size = message_record.size_of(heads)
    for queue in list(broker.queues.values()):
        if tables.has_room(tables.blocks_for(size), len(wanted)):
            break
        if (
            queue.pages is not None
            and not queue.is_stream
            and queue.id_in_log not in found.indexed
            and queue not in [each[0] for each in wanted]
        ):
            use_index(broker, found, queue)
    if not tables.has_room(tables.blocks_for(size), len(wanted)):
        no_room(broker, found, segment)
        return
    start = message_record.route_at(at, count)
    message = tables.new_message(payload[start : start + route_size], properties_size, body_size, arrived, kind, lifetime, annotations_size)
    try:
        tables.append(message, memoryview(payload), start + route_size, annotations_size + properties_size + body_size)
        tables.messages[message + layout.MESSAGE_SEGMENT] = segment.number
        record = message // layout.MESSAGE_WIDTH * 2
        found.where[record], found.where[record + 1] = where
        for queue, position, before in wanted:
            found.last_entered[queue.id_in_log] = enter(tables, queue, message, position, before)
            segment.live += 1
            found.counts["messages"] += 1
    finally:
        tables.release(message)


def no_room(broker, found, segment):
    """The limits are too small. Where the log is damaged (a lost acknowledgement brings back what made room) the message stays in it."""
    if not found.damages and not found.missing and not found.lost:
        raise TooSmall(
            "the log holds more than the limits have room for; raise arena_size (%d), message_count_max (%d) or entry_count_max "
            "(%d)" % (broker.limits.arena_size, broker.limits.message_count_max, broker.limits.entry_count_max)
        )
    segment.pinned = True
    found.counts["left"] += 1


def place_before(tables, queue, hint, position):
    """The entry behind which a position belongs (NONE: at the head); None when the position is taken (copied forward before the crash).

    `hint`: the entry that was entered last, or NONE; what was copied forward comes in the order of its queue.
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
    tables.entries[entry + layout.ENTRY_REDELIVERED] = 1
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
