"""A durable broker: the log of a store recovered, and a journal on top of it."""

from ..log.definition_records import gone
from ..log.journal import BATCH, Journal
from ..log.segments import ROOM, Log
from ..memory import layout
from . import recovery


def make_durable(broker, store, mode, batch_ms, batch_size, segment_size, size_max):
    """Recover the log of `store` into an empty broker, and log from here on: the report of the recovery, one line.

    Raises segments.OtherLog (nothing touched), second_pass.TooSmall, OSError.
    """
    writer = Log(store, segment_size, size_max, ROOM + batch_size if mode == BATCH else ROOM)
    journal = Journal(broker, writer, mode, batch_ms, batch_size)
    by_id, contents, report = recovery.recover(broker, store, journal)
    journal.queue_ids = contents.queue_ids
    broker.journal = journal
    clock = contents.definitions.get(("clock", ""))
    try:
        jump = broker.ages.resume(None if clock is None else clock["frames"], contents.arrived)
        if jump:
            broker.clock_jumped(jump)
    except Exception as error:  # ages count from now on
        broker.guard.trouble("the clock%s", "", error)
    for definition in contents.loose:
        journal.define(gone(definition))
    broker.waiting.restore(broker)
    for queue in by_id.values():
        try:
            let_expire(broker, queue)
            if queue.rules is not None:
                queue.rules.recovered(broker, queue)
        except Exception as error:  # an error of ours is this queue's alone
            broker.guard.queue_failed(queue, error)
        broker.activate(queue)
    if broker.beyond is not None:
        broker.beyond.opened()
    return report


def let_expire(broker, queue):
    """Let a queue watch lifetimes again when a recovered message has one; the pager watches those of messages that are only in the log."""
    entries = broker.tables.entries
    entry = queue.head()
    while entry != layout.NONE:
        if broker.see_lifetime(queue, entries[entry + layout.ENTRY_MESSAGE]):
            return
        entry = entries[entry + layout.ENTRY_NEXT]
