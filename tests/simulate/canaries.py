"""Deliberate faults of a journal or a store: the simulation has to catch each of them, or it proves nothing."""

from leveret.core.amqp_1_0 import resuming, termini
from leveret.core.log import segments
from leveret.core.memory import layout


def confirms_before_syncing(journal):
    """A confirm leaves as soon as the message is in memory."""
    journal.durable = lambda number: True


def ignores_sync(store):
    """The store says that it has synced, and has not."""

    def sync(number):
        store.operation()
        if store.watcher is not None:
            store.watcher.after_sync()

    store.sync = sync


def forgets_acknowledgements(journal):
    """Settlements are taken in and not written."""

    def write_settled():
        journal.settled.identities.clear()
        journal.settled.ranges.clear()
        journal.settled.count = 0

    journal.write_settled = write_settled


def frees_what_is_wanted(journal):
    """The oldest segment is removed whatever lives in it."""

    def copy_forward(oldest, _):
        oldest.live = 0
        return True

    journal.pager.copy_forward = copy_forward


def writes_transactions_in_pieces(journal):
    """What is appended together is written one by one."""
    append = journal.log.append

    def append_and_write(type_, parts):
        number = append(type_, parts)
        journal.log.commit(False)
        return number

    journal.log.append = append_and_write


def writes_on_behind_a_failure(journal):
    """After a write that failed the same segment is written on."""

    def leave():
        journal.log.doubtful = None
        return True

    journal.log.leave = leave


def confirms_before_a_sync_has_ended(journal):
    """A confirm leaves when its sync has been begun."""
    journal.durable = lambda number: journal.log.begun >= number


def says_too_early_that_it_ended(store):
    """The store's thread says that it is done, and goes on later."""
    ended = store.ended

    def ended_too_early():
        store.late = store.late + 1 if store.under_way is not None else 0
        return ended() if store.late % 4 == 0 else True

    begin, begin_remove, interrupt = store.begin, store.begin_remove, store.interrupt

    def before(action):
        def finish_first(*given):
            store.left = 0
            ended()
            action(*given)

        return finish_first

    store.late = 0
    store.ended = ended_too_early
    store.begin, store.begin_remove, store.interrupt = before(begin), before(begin_remove), interrupt


def frees_what_is_not_settled_on_disk(journal):
    """A segment is removed as soon as nothing in it is wanted in memory."""
    free_segments = journal.free_segments

    def free_at_once():
        for segment in journal.log.segments:
            segment.needs = 0
        free_segments()

    journal.free_segments = free_at_once


def gives_back_to_a_log_that_forgets(journal):
    """What is given back to the log to make room in memory is written as if it were transient."""
    append_message, give_entry_back = journal.append_message, journal.pager.give_entry_back

    def give_to_nobody(found, entry, before):
        journal.append_message = lambda type_, parts, count: append_message(segments.TRANSIENT, parts, count)
        try:
            return give_entry_back(found, entry, before)
        finally:
            journal.append_message = append_message

    journal.pager.give_entry_back = give_to_nobody


def copies_nothing_that_is_only_in_the_log(journal):
    """A segment goes with what is only there."""
    journal.pager.copy = lambda segment, here: True


def reads_a_stream_with_gaps(journal):
    """Now and then a message that a reader of a stream needs from the log is passed over."""
    count = [0]

    def careless(windows):
        read_next = windows.read_next

        def read_over(window, walk, chunk, stop):
            count[0] += 1
            if count[0] % 7 == 0 and window.end + 1 < stop and window.head == layout.NONE:
                windows.pages.jump(window.end, window.end + 1)
                window.first = window.end = window.end + 1
            return read_next(window, walk, chunk, stop)

        return read_over

    for found in journal.broker.queues.values():
        if found.is_stream:
            found.pages.windows.read_next = careless(found.pages.windows)


def shortens_streams_in_memory_alone(journal):
    """What retention lets go of a stream is not noted in the log."""
    settle_range = journal.settle_range

    def settle_of_queues(found, first, end, count, segment_number):
        if not found.is_stream:
            settle_range(found, first, end, count, segment_number)

    journal.settle_range = settle_of_queues


def copies_nothing_of_streams(journal):
    """A segment goes with what streams have in it."""
    chunks_in = journal.pager.chunks_in
    journal.pager.chunks_in = lambda segment: {key: here for key, here in (chunks_in(segment) or {}).items() if not here[0].is_stream}


def notes_no_segment(store):
    """Which segments there are to be is written nowhere."""
    store.noted = lambda: (store.note.first, [])


def notes_a_segment_before_it_is_durable(store):
    """A segment is noted when its first octets are written."""
    put = store.put

    def put_and_note(number, octets):
        store.note.add(number)
        put(number, octets)

    store.put = put_and_note


def notes_a_removal_behind_it(store):
    """A segment goes first, and then it is noted that it is to."""
    remove = store.note.remove
    waiting = []

    def remove_later(number, numbers):
        for each in waiting:
            remove(*each)
        waiting[:] = [(number, numbers)]

    store.note.remove = remove_later


# name, function, whether it spoils the store, mode of the log (None: as drawn), whether syncs take their time (None: as drawn)
CANARIES = (
    (confirms_before_syncing, False, "batch", None),
    (ignores_sync, True, "each", None),
    (forgets_acknowledgements, False, None, None),
    (frees_what_is_wanted, False, None, None),
    (writes_transactions_in_pieces, False, "each", None),
    (writes_on_behind_a_failure, False, None, None),
    (confirms_before_a_sync_has_ended, False, "each", True),
    (says_too_early_that_it_ended, True, "each", True),
    (frees_what_is_not_settled_on_disk, False, "batch", True),
    (gives_back_to_a_log_that_forgets, False, None, None),
    (copies_nothing_that_is_only_in_the_log, False, None, None),
    (reads_a_stream_with_gaps, False, None, None),
    (shortens_streams_in_memory_alone, False, None, None),
    (copies_nothing_of_streams, False, None, None),
    (notes_no_segment, True, None, None),
    (notes_a_segment_before_it_is_durable, True, "each", None),
    (notes_a_removal_behind_it, True, "each", None),
)


def accepts_and_remembers_not(termini, target, tag):
    """A target knows nothing of what it has accepted."""


# what has it, its name, what stands in its place: a broker of AMQP 1.0 that keeps no promise
CANARIES_1_0 = (
    (resuming, "is_safe", lambda link, queue, entry: True),
    (resuming, "recover", lambda link, given: {}),
    (termini.Termini, "accept", accepts_and_remembers_not),
)
SEEDS_MAX = 60  # within so many seeds a canary has to be caught
