"""Deliberate faults of a journal or a store: the simulation has to catch each of them, or it proves nothing."""


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
        journal.settled = {}
        journal.settled_count = 0
    journal.write_settled = write_settled


def frees_what_is_wanted(journal):
    """The oldest segment is removed whatever lives in it."""
    def copy_forward(oldest):
        oldest.live = 0
    journal.copy_forward = copy_forward


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
        journal.log.doubtful = False
        return True
    journal.log.leave = leave


# name, function, whether it spoils the store, mode of the log (None: as drawn)
CANARIES = (
    (confirms_before_syncing, False, "batch"),
    (ignores_sync, True, "each"),
    (forgets_acknowledgements, False, None),
    (frees_what_is_wanted, False, None),
    (writes_transactions_in_pieces, False, "each"),
    (writes_on_behind_a_failure, False, None),
)
SEEDS_MAX = 60  # within so many seeds a canary has to be caught
