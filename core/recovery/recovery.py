"""Recovery: from the segments of a log to a broker that goes on where it was. It always starts, and says what it found.

Two passes over the segments, in fixed memory. The first (first_pass.py) reads what is defined and what is settled; the second
(second_pass.py) finds every message that is not settled. What lies behind damage is put aside by the store and named in the report; so
are messages of queues that nothing defines (orphans.py), and what segments are lost is told. A log of a newer version is not touched.
"""

from ..broker.guard import words_of
from ..log.journal import BIG
from ..log.segments import Segment
from ..parts import part
from .first_pass import discard, look
from .second_pass import restore

FAULTS_TOLD = 8


def recover(broker, store, journal):
    """Bring the log of `store` back into an empty broker and make the writer of `journal` go on behind it: the report, in one line."""
    found = look(store)
    writer = journal.log
    by_id = restore(broker, store, found, journal.pager)
    kept_aside = [damage for damage in found.damages if aside(store, damage)]
    orphans = part("recovery.orphans") if found.orphans else None
    if orphans is not None:
        try:
            orphans.keep(store, found)
        except Exception as error:  # told as a fault of its segments, which stay
            for segment in found.segments:
                if segment.orphans:
                    found.fault(segment, 0, error)
    number = found.next_number(store)
    kept = []
    nothing_good = [damage.number for damage in found.damages if damage.offset == 0]
    for segment in found.segments:
        segment.size = store.size(segment.number)
        if segment.size:
            kept.append(segment)
            if segment.number not in nothing_good:
                store.sync(segment.number)
        else:
            discard(store, segment.number)  # all of it was put aside
    kept += [Segment(lost[0]) for lost in found.lost if lost[1]]  # they go in their turn
    writer.take_over(sorted(kept, key=lambda segment: segment.number))
    writer.begin(number, (found.sequence or 0) % BIG)
    if found.lost:
        go_on_behind(broker, found, by_id, journal)
    return by_id, found, report(found, kept_aside)


def go_on_behind(broker, found, by_id, journal):
    """No offset of a stream that a lost segment may have had is given again."""
    try:
        from .lost_offsets import skip

        skip(broker, found, by_id, journal)
        if found.skipped:  # on the medium at once: the next start no longer knows what was lost
            journal.write_settled()
            journal.log.commit()
            journal.log.wait()
    except Exception as error:  # told at the end of recovery: the broker starts
        found.faults.append("the offsets that were lost could not be passed over (%s)" % words_of(error))


def aside(store, damage):
    """Have the store put a bad end aside; false when it cannot: then the end stays where it is, and is not believed there either."""
    try:
        store.keep_aside(damage.number, damage.offset)
    except Exception:  # the store cannot: the end stays where it is
        return False
    return True


def report(found, kept_aside):
    """What recovery found, as a line for the operator."""
    counts = found.counts
    text = "recovered %d messages in %d queues and streams, %d settlements, %d definitions from %d segments" % (
        counts["messages"],
        len([key for key in found.definitions if key[0] == "queue"]),
        counts["settled"],
        counts["definitions"],
        len(found.segments),
    )
    for damage in found.damages:
        text += "; segment %d: %s at octet %d, the %d octets from there were %s" % (
            damage.number,
            damage.reason,
            damage.offset,
            damage.octets,
            "put aside" if damage in kept_aside else "passed over",
        )
    for number, count in found.missing:
        text += "; %d records are missing behind segment %d" % (count, number)
    text += told_of_lost(found) + told_of_orphans(found)
    text += "".join(["; " + each for each in found.faults[:FAULTS_TOLD]])
    if len(found.faults) > FAULTS_TOLD:
        text += "; and %d more like these" % (len(found.faults) - FAULTS_TOLD)
    if counts["gaps"]:
        text += "; %d messages of streams are missing: readers go on behind them" % counts["gaps"]
    if counts["let_go"]:
        text += "; %d messages of streams were let go because chunk_count_max is too small for them" % counts["let_go"]
    if counts["left"]:
        text += "; %d messages found no room in the limits and stay in the log until a start with larger ones" % counts["left"]
    return text


def told_of_lost(found):
    """Which segments are lost, and what they had; "" when none is. Neighbours are told together."""
    text = "; the file that lists the segments is lost: if segments are lost too that cannot be told" if found.noted is None else ""
    runs: list = []
    for number, is_empty, octets, places in found.lost:
        if runs and runs[-1][1] == number - 1 and runs[-1][2] == is_empty:
            runs[-1][1] = number
        else:
            runs.append([number, number, is_empty, 0, 0, False])
        if octets is not None:
            runs[-1][3:] = [runs[-1][3] + octets, runs[-1][4] + places, True]
    for first, last, is_empty, octets, places, known in runs:
        text += "; segment %d %s" % (first, "is") if first == last else "; segments %d to %d %s" % (first, last, "are")
        text += " empty" if is_empty else " missing"
        if known:
            text += " (there were%s %d octets with %d places of messages)" % ("" if first == last else " at least", octets, places)
    if runs:
        text += "; what was acknowledged there may come again"
    for name, first, end in found.skipped:
        text += "; stream '%s' goes on at offset %d: its messages from %d to %d may be lost" % (name, end, first, end - 1)
    return text


def told_of_orphans(found):
    """How many messages there are for queues that nothing defines, and where they are now; "" when there are none."""
    if not found.orphans:
        return ""
    shown = sorted(found.orphans)[:8]
    text = "; %d messages are for %d queues that nothing defines (%s%s)" % (
        sum(found.orphans.values()),
        len(found.orphans),
        ", ".join(["queue id %d: %d" % (identity, found.orphans[identity]) for identity in shown]),
        ", ..." if len(found.orphans) > len(shown) else "",
    )
    return text + (": they were put in %s" % ", ".join(found.aside) if found.aside else ": they stay until their segments go")
