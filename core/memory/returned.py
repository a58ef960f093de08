"""The way back: deliveries that return to their places in their queues. Written as hot.py is, which has what else a place needs."""

from ..shim import const
from .hot import activate, unhold
from .layout import *

_STEPS = const(16)  # entries that are passed on the way to an old place: so many take as long as one settlement


def put_between(messages, entries, queues, queue, entry, before, behind):
    """Put an entry that is in no list between two neighbours of its queue's ready list; -1: at the head, at the tail."""
    entries[entry + ENTRY_PREVIOUS] = before
    entries[entry + ENTRY_NEXT] = behind
    if before >= 0:
        entries[before + ENTRY_NEXT] = entry
    else:
        queues[queue + QUEUE_HEAD] = entry
    if behind >= 0:
        entries[behind + ENTRY_PREVIOUS] = entry
    else:
        queues[queue + QUEUE_TAIL] = entry
    queues[queue + QUEUE_LENGTH] += 1
    queues[queue + QUEUE_OCTETS] += messages[entries[entry + ENTRY_MESSAGE] + MESSAGE_BODY]


def requeue(messages, entries, queues, queue, entry):
    """Put an entry that is in no list back where its position says: how many others were passed on the way there, which begins at the
    nearest ones of the tree of what came back, at both sides of the place. Positions wrap at 2^30 and lie less than half of that apart."""
    position = entries[entry + ENTRY_POSITION]
    before = -1
    after = -1
    steps = 0
    behind = queues[queue + QUEUE_HEAD]
    if behind >= 0 and (position - entries[behind + ENTRY_POSITION]) & 0x20000000 == 0:
        weight = entry * TREE_WEIGHT & TREE_WEIGHT_MASK
        node = queues[queue + QUEUE_RETURNED]
        cell = -1
        while node >= 0 and node * TREE_WEIGHT & TREE_WEIGHT_MASK >= weight:
            steps += 1
            if (position - entries[node + ENTRY_POSITION]) & 0x20000000:
                after = node
                cell = node + TREE_LOWER
            else:
                before = node
                cell = node + TREE_HIGHER
            node = entries[cell]
        if cell < 0 or steps > TREE_DEEP:
            queues[queue + QUEUE_RETURNED] = entry
        else:
            entries[cell] = entry
        if steps > TREE_DEEP:
            node = -1
        lower = entry + TREE_LOWER
        higher = entry + TREE_HIGHER
        while node >= 0:  # what hung there is lower or higher than the entry
            steps += 1
            if (position - entries[node + ENTRY_POSITION]) & 0x20000000:
                after = node
                entries[higher] = node
                higher = node + TREE_LOWER
                node = entries[higher]
            else:
                before = node
                entries[lower] = node
                lower = node + TREE_HIGHER
                node = entries[lower]
        entries[lower] = -1
        entries[higher] = -1
        if before >= 0:
            behind = entries[before + ENTRY_NEXT]
    node = queues[queue + QUEUE_TAIL]
    if after >= 0:
        node = entries[after + ENTRY_PREVIOUS]
    while behind >= 0 and (position - entries[behind + ENTRY_POSITION]) & 0x20000000 == 0:
        if (position - entries[node + ENTRY_POSITION]) & 0x20000000 == 0:  # the place is behind this one, which is nearer
            before = node
            behind = after
            break
        after = node
        node = entries[node + ENTRY_PREVIOUS]
        before = behind
        behind = entries[behind + ENTRY_NEXT]
        steps += 1
    put_between(messages, entries, queues, queue, entry, before, behind)
    return steps


def give_back(messages, entries, queues, channels, consumers, state, channel, first, last):
    """Put the unsettled entries of a channel from `first` to `last` back into their queues, the newest first."""
    entry = last
    while True:
        before = entries[entry + ENTRY_PREVIOUS]
        queue = entries[entry + ENTRY_QUEUE]
        unhold(entries, queues, channels, consumers, state, channel, entry)
        if entries[entry + ENTRY_REDELIVERED] & 255 < 255:
            entries[entry + ENTRY_REDELIVERED] += 1
        if entries[entry + ENTRY_DEADLINE] == state[STATE_NOW] and state[STATE_NOW] > 1:
            entries[entry + ENTRY_DEADLINE] -= 1  # a lifetime of 0 is for the consumer that had it: it is over
        state[STATE_LEFT] -= requeue(messages, entries, queues, queue, entry) // _STEPS
        activate(queues, state, queue)
        state[STATE_REDELIVERED] = (state[STATE_REDELIVERED] + 1) & MASK
        if entry == first:
            return
        entry = before
