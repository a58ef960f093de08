"""A receiver that attaches again names the unsettled deliveries that it knows (section 2.6.13): the broker does not send them anew.

    delivery-tag of a link whose receiver-settle-mode is second = position in the queue | mark of the message | delivery-id, 4 octets each

Messages keep their positions when they come back to their queue and when the broker starts again, so the broker remembers nothing of a
source: the map of a receiver names messages of the queue. The mark tells the message from another one at the same position: in a queue that
was made again, or behind transient messages that a restart has lost. The delivery-id tells two deliveries of one message apart: the second
may come before the receiver knows that the first is settled (section 2.6.12, unique tags).

A message with an outcome from the receiver comes to that outcome now. One that the receiver has got and not decided on is resumed: our map
has it, and its delivery says resume. Our map has no others: they are settled, or were never sent.

The broker must not forget a delivery that a receiver knows: a durable message goes to such a link when the log has it
(`is_safe`).

This works as long as no other receiver has got such a message meanwhile, and RESUMED_MAX deliveries or fewer are unsettled.
"""

import struct
from binascii import crc32

from ..broker.consumers import fail
from ..errors import RESOURCE_ERROR
from ..log import chunk_index
from ..memory import layout
from ..outcomes import ACCEPTED, FAILS, MODIFIED, REJECTED
from ..shim import const
from . import composites, dispositions
from .conditions import LinkError

RESUMED_MAX = const(4096)  # messages at the head of a queue that `look` compares with a receiver's map
TAG_SIZE = const(12)
LAST = (ACCEPTED, REJECTED | FAILS)  # outcomes behind which no delivery of the message comes
_MARKED = const(1024)  # octets of a message in its mark, from its properties on


def mark(broker, message):
    """A number of 4 octets that tells a message from others: a check of its time of arrival, its size and its first octets."""
    tables = broker.tables
    at, size = tables.properties_at(message), tables.size_of(message)
    octets = tables.octets(message, at, min(size - at, _MARKED))
    return struct.pack(">I", crc32(octets, crc32(struct.pack(">II", tables.messages[message + layout.MESSAGE_ARRIVED], size - at))))


def name_of(broker, entry):
    """The octets of a delivery-tag that name the message of an entry: its position and its mark."""
    entries = broker.tables.entries
    return struct.pack(">I", entries[entry + layout.ENTRY_POSITION]) + mark(broker, entries[entry + layout.ENTRY_MESSAGE])


def tag_of(link, entry, number):
    """(the delivery-tag of a delivery with this delivery-id, True when it is resumed with the tag in its receiver's map)."""
    name = name_of(link.broker, entry)
    tag = name + struct.pack(">I", number)
    if link.resumed:
        known = link.resumed.pop(name, None)
        if known is not None:
            link.again[name] = known
            return known, True
    if link.again and link.again.get(name) == tag:  # the tag of another session with the same delivery-ids
        tag = name + struct.pack(">I", number ^ 0x80000000)
    return tag, False


def is_safe(link, queue, entry):
    """True when a message may go to a link: it is transient, or the log has it; else the link's session goes on when the log has it."""
    broker = link.broker
    tables, journal = broker.tables, broker.journal
    message = tables.entries[entry + layout.ENTRY_MESSAGE]
    if link.is_partial and name_of(broker, entry) not in link.resumed:
        return False  # no new delivery before the receiver has attached with all of its map (section 2.7.3)
    if journal is None or not queue.id_in_log or not (tables.is_durable(message) or tables.messages[message + layout.MESSAGE_SEGMENT]):
        return True
    position = tables.entries[entry + layout.ENTRY_POSITION]
    if link.asked is not None and journal.durable(link.asked[1]):
        link.safe, link.asked = link.asked[0], None
    if link.safe is not None and (link.safe - position - 1) & layout.MASK <= layout.MASK >> 1:
        return True
    if link.asked is None:
        link.asked = tables.queues[queue.handle + layout.QUEUE_POSITION], journal.last()
        if journal.durable(link.asked[1]):
            link.safe, link.asked = link.asked[0], None
            return True
    link.session.wait_for_log(link.asked[1])
    return False


def recover(link, given):
    """Bring the messages of a link's queue to the outcomes in its receiver's map `given`: name -> tag of messages to be resumed. The queue
    reads messages back that are in the log alone; raises LinkError where it cannot now, because the map would be lost."""
    wanted = names(given)
    queue = link.consumer.queue
    resumed: "dict" = {}
    look(link, queue, wanted, resumed)
    brought = 0
    while queue.pages is not None and queue.pages.count and is_in_log(queue, wanted):
        count = link.broker.journal.pager.bring(queue)
        brought += count
        if not count or brought > RESUMED_MAX:
            raise LinkError(RESOURCE_ERROR, "queue '%s' cannot read now what the link has unsettled: attach again" % queue.name[:64])
        look(link, queue, wanted, resumed)
    return resumed


def look(link, queue, wanted, resumed):
    """Bring messages at a queue's head that are in memory to their outcomes in `wanted`, and remove these from it."""
    broker = link.broker
    entries = broker.tables.entries
    entry, left = queue.head(), RESUMED_MAX
    while entry != layout.NONE and wanted and left > 0:
        behind = entries[entry + layout.ENTRY_NEXT]
        known = wanted.pop(struct.pack(">I", entries[entry + layout.ENTRY_POSITION]), None)
        if known is not None:
            name = name_of(broker, entry)
            tag, outcome = known.get(name, (None, None))
            if tag is not None and outcome is None:
                resumed[name] = tag
            elif tag is not None:
                come_to(link, queue, entry, outcome)
        entry = behind
        left -= 1


def is_in_log(queue, wanted):
    """True when a message of a queue that is in the log alone may be one of `wanted`."""
    chunks = queue.pages.tables.chunks
    chunk = queue.pages.head
    while chunk != layout.NONE:
        for position in wanted:
            ahead = (struct.unpack(">I", position)[0] - chunks[chunk + chunk_index.POSITION]) & layout.MASK
            if ahead < chunks[chunk + chunk_index.SPAN]:
                return True
        chunk = chunks[chunk + chunk_index.NEXT]
    return False


def come_to(link, queue, entry, outcome):
    """Settle a message that is ready in its queue with an outcome; None: it has none yet."""
    broker = link.broker
    if outcome == ACCEPTED:
        queue.unlink(entry)
        queue.drop(entry)
        broker.counters["settled"] += 1
    elif outcome == REJECTED | FAILS:
        fail(broker.tables, entry, REJECTED)
        queue.unlink(entry)
        broker.counters["rejected"] += 1
        broker.discard(queue, entry, "rejected")
    elif outcome == MODIFIED | FAILS and broker.tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 < 255:
        fail(broker.tables, entry, MODIFIED)
        broker.tables.entries[entry + layout.ENTRY_REDELIVERED] += 1


def names(given):
    """A receiver's map: position -> {name of a message: (tag, the broker's outcome, None: it is to be resumed)}. Without tags
    that are not ours, and without deliveries that came in part (received): these come anew. Of several deliveries of a message one with its
    last outcome counts, else one that has none."""
    wanted: "dict" = {}
    for tag in given:
        if not isinstance(tag, bytes) or len(tag) != TAG_SIZE or len(wanted) >= RESUMED_MAX:
            continue
        outcome, state = None, composites.composite(given[tag])
        if state is not None and state[0] != "transactional-state":  # without effect: the transaction ended with its session
            outcome = dispositions.outcome_of(None, state)
            if outcome is None:
                continue
        table = wanted.setdefault(tag[:4], {})
        before = table.get(tag[:8])
        if before is None or before[1] not in LAST and (outcome in LAST or outcome is None):
            table[tag[:8]] = tag, outcome
    return wanted


def map_of(resumed):
    """The field unsettled of our attach, from the resumed deliveries."""
    return {resumed[name]: None for name in resumed}
