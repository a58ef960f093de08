"""Recovery: from the segments of a log to a broker in the state in which it stopped. The broker always starts, and reports what the log
held.

Two passes over the segments, in fixed memory. The first (first_pass.py) reads definitions and settlements, the second (second_pass.py) puts
every unsettled message into its queues. The store puts octets behind damage aside, and the report names them; so it does with messages of
queues that nothing defines (orphans.py). The report names lost segments. A log of a newer version stays untouched.
"""

from ..broker.guard import words_of
from ..log.journal import BIG
from ..log.segments import Segment
from ..parts import part
from .first_pass import discard, first_pass
from .second_pass import restore

FAULTS_TOLD = 8


def recover(broker, store, journal):
    """Restore the log of `store` into an empty broker, and have the writer of `journal` append behind it.

    ({queue id: queue}, LogContents, the report in one line). Raises segments.OtherLog, second_pass.TooSmall, OSError."""
    contents = first_pass(store)
    writer = journal.log
    by_id = restore(broker, store, contents, journal.pager)
    kept_aside = [damage for damage in contents.damages if aside(store, damage)]
    orphans = part("recovery.orphans") if contents.orphans else None
    if orphans is not None:
        try:
            orphans.keep(store, contents)
        except Exception as error:  # reported as a fault of its segments, which stay
            for segment in contents.segments:
                if segment.orphans:
                    contents.fault(segment, 0, error)
    number = contents.next_number(store)
    kept = []
    nothing_good = [damage.number for damage in contents.damages if damage.offset == 0]
    for segment in contents.segments:
        segment.size = store.size(segment.number)
        if segment.size:
            kept.append(segment)
            if segment.number not in nothing_good:
                store.sync(segment.number)
        else:
            discard(store, segment.number)  # all of it was put aside
    kept += [Segment(lost[0]) for lost in contents.lost if lost[1]]  # they go in their turn
    writer.adopt(sorted(kept, key=lambda segment: segment.number))
    writer.begin(number, (contents.sequence or 0) % BIG)
    if contents.lost:
        go_on_behind(broker, contents, by_id, journal)
    return by_id, contents, report(contents, kept_aside)


def go_on_behind(broker, contents, by_id, journal):
    """Skip the offsets that lost segments of streams may have had, so that none is given twice."""
    try:
        from .lost_offsets import skip

        skip(broker, contents, by_id, journal)
        if contents.skipped:  # on the medium at once: the next start no longer knows what was lost
            journal.write_settled()
            journal.log.commit()
            journal.log.wait()
    except Exception as error:  # reported at the end of recovery: the broker starts
        contents.faults.append("the offsets that were lost could not be passed over (%s)" % words_of(error))


def aside(store, damage):
    """Move a damaged end aside in the store; false when the store cannot: the end then stays in its segment, and no start reads it."""
    try:
        store.keep_aside(damage.number, damage.offset)
    except Exception:  # the store cannot: the end stays where it is
        return False
    return True


def report(contents, kept_aside):
    """The contents of the log and the losses: one line for the operator."""
    counts = contents.counts
    text = "recovered %d messages in %d queues and streams, %d settlements, %d definitions from %d segments" % (
        counts["messages"],
        len([key for key in contents.definitions if key[0] == "queue"]),
        counts["settled"],
        counts["definitions"],
        len(contents.segments),
    )
    for damage in contents.damages:
        text += "; segment %d: %s at octet %d, the %d octets from there were %s" % (
            damage.number,
            damage.reason,
            damage.offset,
            damage.octets,
            "put aside" if damage in kept_aside else "passed over",
        )
    for number, count in contents.missing:
        text += "; %d records are missing behind segment %d" % (count, number)
    text += told_of_lost(contents) + told_of_orphans(contents)
    text += "".join(["; " + each for each in contents.faults[:FAULTS_TOLD]])
    if len(contents.faults) > FAULTS_TOLD:
        text += "; and %d more like these" % (len(contents.faults) - FAULTS_TOLD)
    if counts["gaps"]:
        text += "; %d messages of streams are missing: readers go on behind them" % counts["gaps"]
    if counts["let_go"]:
        text += "; %d messages of streams were let go because chunk_count_max is too small for them" % counts["let_go"]
    if counts["pieces"]:
        text += "; the index of the log has %d pieces until the next start, it could not do with chunk_count_max" % counts["pieces"]
    if counts["left"]:
        text += "; %d messages found no room in the limits and stay in the log until a start with larger ones" % counts["left"]
    return text


def told_of_lost(contents):
    """Part of the report: the lost segments and what they had, neighbours in one sentence; "" when none is lost."""
    text = "; the file that lists the segments is lost: if segments are lost too that cannot be told" if contents.noted is None else ""
    runs: list = []
    for number, is_empty, octets, places in contents.lost:
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
    for name, first, end in contents.skipped:
        text += "; stream '%s' goes on at offset %d: its messages from %d to %d may be lost" % (name, end, first, end - 1)
    return text


def told_of_orphans(contents):
    """Part of the report: count and files of the messages for queues that nothing defines; "" when there are none."""
    if not contents.orphans:
        return ""
    shown = sorted(contents.orphans)[:8]
    text = "; %d messages are for %d queues that nothing defines (%s%s)" % (
        sum(contents.orphans.values()),
        len(contents.orphans),
        ", ".join(["queue id %d: %d" % (identity, contents.orphans[identity]) for identity in shown]),
        ", ..." if len(contents.orphans) > len(shown) else "",
    )
    return text + (": they were put in %s" % ", ".join(contents.aside) if contents.aside else ": they stay until their segments go")
