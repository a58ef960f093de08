"""A receiver that attaches again tells what it knows of the deliveries that were not settled (section 2.6.13): those are not sent anew.

The deliveries of a link whose receiver-settle-mode is second have the positions of their messages in the queue as delivery-tags. Messages
keep these when they come back to their queue and when the broker starts again, so nothing has to be remembered of a source: the map of a
receiver names messages of the queue. One that it has given an outcome for comes to that outcome now. One that it has got and not decided
on is resumed: our map has it, and its delivery says resume. Of all others our map says nothing: they are settled, or were never sent.

It holds as long as no other receiver has got such a message meanwhile, and RESUMED_MAX deliveries or fewer are unsettled.
"""

import struct

from ..memory import layout
from ..outcomes import ACCEPTED, MODIFIED, REJECTED
from ..shim import const
from . import composites, dispositions

RESUMED_MAX = const(4096)  # messages at the head of a queue that are compared with a receiver's map


def recover(link, given):
    """Bring the messages of a link's queue to the outcomes in its receiver's map `given`: the positions of those to be resumed, a set."""
    wanted = positions(given)
    broker, queue = link.broker, link.consumer.queue
    entries = broker.tables.entries
    resumed: "set" = set()
    entry, left = queue.head(), RESUMED_MAX
    while entry != layout.NONE and wanted and left > 0:
        behind = entries[entry + layout.ENTRY_NEXT]
        position = entries[entry + layout.ENTRY_POSITION]
        if position in wanted:
            state = wanted.pop(position)
            if state is None:
                resumed.add(position)
            else:
                come_to(link, queue, entry, dispositions.outcome_of(link.session, state))
        entry = behind
        left -= 1
    return resumed


def come_to(link, queue, entry, outcome):
    """A message that is ready in its queue has come to an outcome; None: to none yet."""
    broker = link.broker
    if outcome == ACCEPTED:
        queue.unlink(entry)
        queue.drop(entry)
        broker.counters["settled"] += 1
    elif outcome == REJECTED:
        queue.unlink(entry)
        broker.counters["rejected"] += 1
        broker.discard(queue, entry, "rejected")
    elif outcome == MODIFIED and broker.tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 < 255:
        broker.tables.entries[entry + layout.ENTRY_REDELIVERED] += 1


def positions(given):
    """A receiver's map by positions, its states as composites.py reads them; what is no tag of ours is left out."""
    wanted: "dict" = {}
    for tag in given:
        if isinstance(tag, bytes) and len(tag) == 4 and len(wanted) < RESUMED_MAX:
            wanted[struct.unpack(">I", tag)[0]] = composites.composite(given[tag])
    return wanted


def map_of(resumed):
    """The field unsettled of our attach, from the positions that are resumed."""
    return {struct.pack(">I", position): None for position in resumed}
