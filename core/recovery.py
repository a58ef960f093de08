"""Recovery: from the segments of a log to a broker that goes on where it was. It always starts, and says what it found.

Two passes over the segments, in fixed memory. The first (recovery_look.py) reads what is defined and what is settled; the second
(recovery_fill.py) finds every message that is not settled. What lies behind damage is put aside by the store and named in the report. A log
of a newer version is not touched.
"""

from .journal import BIG
from .recovery_fill import restore
from .recovery_look import look


def recover(broker, store, journal):
    """Bring the log of `store` back into an empty broker and make the writer of `journal` go on behind it: the report, in one line."""
    found = look(store)
    writer = journal.log
    by_id = restore(broker, store, found, journal.pager)
    kept_aside = [damage for damage in found.damages if aside(store, damage)]
    for segment in found.segments:
        segment.size = store.size(segment.number)
        store.sync(segment.number)
    writer.take_over(found.segments)
    writer.begin(max(store.numbers() + [0]) + 1, (found.sequence or 0) % BIG)
    return by_id, found, report(found, kept_aside)


def aside(store, damage):
    """Have the store put a bad end aside; false when it cannot: then the end stays where it is, and is not believed there either."""
    try:
        store.keep_aside(damage.number, damage.offset)
    except OSError:
        return False
    return True


def report(found, kept_aside):
    """What recovery found, as a line for the operator."""
    counts = found.counts
    text = "recovered %d messages in %d queues and streams, %d settlements, %d definitions from %d segments" % (
        counts["messages"], len([key for key in found.definitions if key[0] == "queue"]), counts["settled"], counts["definitions"],
        len(found.segments))
    for damage in found.damages:
        text += "; segment %d: %s at octet %d, the %d octets from there were %s" % (
            damage.number, damage.reason, damage.offset, damage.octets, "put aside" if damage in kept_aside else "passed over")
    for number, count in found.missing:
        text += "; %d records are missing behind segment %d" % (count, number)
    if counts["gaps"]:
        text += "; %d messages of streams are missing: readers go on behind them" % counts["gaps"]
    if counts["let_go"]:
        text += "; %d messages of streams were let go because chunk_count_max is too small for them" % counts["let_go"]
    if counts["left"]:
        text += "; %d messages found no room in the limits and stay in the log until a start with larger ones" % counts["left"]
    return text
