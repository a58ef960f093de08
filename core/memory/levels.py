"""The levels of a queue with priorities (x-max-priority): its ready list has the higher level first, and within one the older message.

Written as hot.py is. The last entry of each level that has messages knows the last one of the next higher level that has some (LEVEL_ABOVE:
-2 less that entry, -1 for none), so a message's place is as many steps from the tail as lower levels have messages. Deliveries leave at the
head, and change none of this: what the last entry of the head's level knows counts no more, and nobody reads it.
"""

from .layout import *


def to_level(messages, entries, queues, queue, entry, highest):
    """Move a new entry from the tail of its queue's ready list to its place: behind all of its message's level and of those above. A
    message's level is at most the queue's `highest`.

    Rule "level": also to_level of queues.h; test_homes.py holds them together.
    """
    level = messages[entries[entry] + MESSAGE_KIND] >> KIND_PRIORITY & 255
    if level > highest:
        level = highest
    entries[entry + ENTRY_REDELIVERED] |= level << ENTRY_LEVEL
    node = entries[entry + ENTRY_PREVIOUS]
    behind = -1  # the last entry of the next lower level
    top = entries[queues[queue + QUEUE_HEAD] + ENTRY_REDELIVERED] >> ENTRY_LEVEL
    while node >= 0:
        here = entries[node + ENTRY_REDELIVERED] >> ENTRY_LEVEL
        if here >= level:
            break
        behind = node
        node = -2 - entries[node + LEVEL_ABOVE] if here < top else -1
    above = node
    if node >= 0 and entries[node + ENTRY_REDELIVERED] >> ENTRY_LEVEL == level:
        above = -2 - entries[node + LEVEL_ABOVE]
    entries[entry + LEVEL_ABOVE] = -2 - above
    if behind < 0:
        return
    entries[behind + LEVEL_ABOVE] = -2 - entry
    last = entries[entry + ENTRY_PREVIOUS]
    entries[last + ENTRY_NEXT] = -1
    queues[queue + QUEUE_TAIL] = last
    if node >= 0:
        behind = entries[node + ENTRY_NEXT]
        entries[node + ENTRY_NEXT] = entry
    else:
        behind = queues[queue + QUEUE_HEAD]
        queues[queue + QUEUE_HEAD] = entry
    entries[behind + ENTRY_PREVIOUS] = entry
    entries[entry + ENTRY_PREVIOUS] = node
    entries[entry + ENTRY_NEXT] = behind
