"""Putting a message on queues of a broker with a log: which parts are written, and which queues keep the message in memory.

A message goes to all of its queues or to none. A queue without memory for it, or with messages that are only in the log, has it only in the
log too (beyond_memory.py); a transient one then under a type of its own.
"""

from ..memory import hot, layout
from ..outcomes import NO_ROOM, REFUSED, TAKEN
from . import flat_records, segments
from .message_record import PLACE_SIZE


def put(broker, message, targets, delay_ms):
    """Broker.put, with a journal."""
    tables, journal = broker.tables, broker.journal
    blocks = tables.messages[message + layout.MESSAGE_BLOCKS]
    paging = () if delay_ms else [queue for queue in targets if queue.must_page(blocks)]
    kept = journal.wants(message, targets)
    if (
        not broker.has_entries(len(targets) - len(paging))
        or not broker.committing
        and broker.is_full(targets, blocks, kept or bool(paging), delay_ms)
    ):
        return NO_ROOM
    verdict = TAKEN
    before = tables.messages[message + layout.MESSAGE_SEGMENT]
    expires = tables.messages[message + layout.MESSAGE_LIFETIME] != layout.NONE
    if kept:
        journal.begin_message(message)
    places, out = [], []
    queue, position = None, 0
    # Dead letters published meanwhile must not use the entries that the later queues need.
    state, promised = tables.state, len(targets) - len(paging)
    state[layout.POOL_ENTRIES + 2] -= promised
    try:
        for queue in streams_last(targets):
            if expires and not queue.is_stream:
                broker.let_expire(queue)
            position = tables.queues[queue.handle + layout.QUEUE_POSITION]
            pages = not delay_ms and (queue in paging or queue.is_paging()) and tables.chunk_pool[2] > 0
            if queue not in paging:
                state[layout.POOL_ENTRIES + 2] += 1
                promised -= 1
            if (pass_by(broker, queue, message) if pages else broker.put_on(queue, message, delay_ms)) == REFUSED:
                verdict = REFUSED
            if (kept or pages) and queue.id_in_log and position != tables.queues[queue.handle + layout.QUEUE_POSITION]:
                places.append(journal.pushed(queue, position))
                if pages or queue.is_stream:
                    out.append((queue, position))
            broker.activate(queue)
        if kept:
            skip = journal.message(message, places, before)
        elif places:
            skip = journal.write_message(message, places, segments.TRANSIENT)
    except Exception:  # all or nothing: no queue keeps a message that the log lacks
        withdraw(tables, message, before, [each[0] for each in out], queue, position)
        raise
    finally:
        state[layout.POOL_ENTRIES + 2] += promised
    for queue, position in out:
        if queue.is_stream:
            queue.pages.appended(skip, message)
        else:
            journal.pager.page_out(queue, skip, position, message)
    for queue, _ in out:
        if not queue.is_stream and queue.rules is not None and queue.rules.length is not None:
            queue.rules.length.trim(broker, queue)
    return verdict


def withdraw(tables, message, before, grown, queue, position):
    """Putting a message raised at queue `queue`, which had `position` before, after the queues `grown`: the log does not have the message.

    A queue that has it in memory keeps it, not logged; a stream removes it, because no reader may get an offset that the log does not know.
    """
    tables.messages[message + layout.MESSAGE_SEGMENT] = before
    if queue is not None and queue not in grown and position != tables.queues[queue.handle + layout.QUEUE_POSITION]:
        grown.append(queue)
    for each in reversed(grown):
        if each.is_stream:
            each.withdraw()


def streams_last(targets):
    """The queues in the order in which they get a message. A message that another queue drops for it may become a dead letter in a stream,
    and a stream's messages lie in the log in the order of their offsets."""
    streams = [queue for queue in targets if queue.is_stream]
    if not streams or len(targets) == 1:
        return targets
    return [queue for queue in targets if not queue.is_stream] + streams


def pass_by(broker, queue, message):
    """Count a message into a queue's positions without keeping it in memory; the queue's features may refuse it first."""
    if queue.rules is not None:
        for feature in queue.rules.features:
            verdict = feature.gate(broker, queue, message)
            if verdict != TAKEN:
                return verdict
    queues = broker.tables.queues
    queues[queue.handle + layout.QUEUE_POSITION] = (queues[queue.handle + layout.QUEUE_POSITION] + 1) & layout.MASK
    return TAKEN


def log_pushed(journal):
    """See Journal.log_pushed."""
    tables = journal.broker.tables
    state = tables.state
    count, places = state[layout.STATE_LOGGED_COUNT], state[layout.STATE_LOGGED_PLACES]
    size, log = state[layout.STATE_LOGGED_OCTETS], journal.log
    segment = log.current()
    journal.touch()
    at = log.place_for_written(size)
    behind = at - log.gathered.size  # where in the room the things appended begin
    log.put_written(count, size)
    journal.taken = (journal.taken + count) & layout.MASK
    journal.message_octets += size - count * flat_records.RECORD_SIZE - places * PLACE_SIZE
    segment.live += places
    segment.written += places
    while state[layout.STATE_LOGGED_HEAD] != layout.NONE:
        at = tables.engine.write_pushed(log.gathered.room, at, segment.number, journal.stream_runs_at)
        if journal.stream_runs[0]:
            grow(journal, behind)


def grow(journal, behind):
    """Streams, and queues beyond memory, have the messages of `stream_runs`; things appended begin `behind` so many octets of the room."""
    runs = journal.stream_runs
    for at in range(1, 1 + flat_records.RUN_WIDTH * runs[0], flat_records.RUN_WIDTH):
        stream = journal.broker.queue_objects[runs[at]]
        if not stream.is_stream:
            journal.pager.page_run_out(stream, runs[at + 4] - behind, journal.position(stream, runs[at + 1]), runs[at + 3], runs[at + 2])
            journal.broker.activate(stream)
            continue
        if stream not in journal.grown:
            journal.grown.append(stream)
        stream.pages.grew(runs[at + 4] - behind, journal.position(stream, runs[at + 1]), runs[at + 2], runs[at + 3], runs[at + 5])


def forget_passed(tables, entry):
    """Free the entry of a message that has passed by memory: the queue's next message has a position behind it."""
    message = tables.entries[entry + layout.ENTRY_MESSAGE]
    tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE
    hot.give(tables.entries, tables.state, layout.POOL_ENTRIES, entry)
    tables.release(message)


def withdraw_pushed(broker):
    """See Journal.withdraw."""
    entries, state = broker.tables.entries, broker.tables.state
    entry = state[layout.STATE_LOGGED_HEAD]
    while entry != layout.NONE:
        behind = entries[entry + layout.ENTRY_CONSUMER]
        queue = broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]]
        if entries[entry + layout.ENTRY_REDELIVERED] == layout.PASSED_BY:
            forget_passed(broker.tables, entry)
        else:
            queue.unlink(entry)
            queue.drop(entry)
        if queue.is_stream:
            queue.take_back()
        entry = behind
    state[layout.STATE_LOGGED_HEAD] = layout.NONE
    for place in (layout.STATE_LOGGED_OCTETS, layout.STATE_LOGGED_COUNT, layout.STATE_LOGGED_PLACES):
        state[place] = 0
