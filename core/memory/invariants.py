"""Invariants of a broker's tables between two steps: every redundant number is compared with its source.

`check(tables)` raises Wrong with the record, the field, the value wanted and the actual value. It walks everything: tests call it after
each step, a broker that serves never does, and no board carries it. A new field is a row of field_ranges.py; where other numbers
determine it, also a line of the function for its list or its sum.
"""

from . import layout
from .field_ranges import FIELDS, STATE

NONE = layout.NONE
SPREAD = 2533  # of channels in the index of tags, as in hot.py and hot.h: with another number no indexed delivery is where it has to be
SIZES = (layout.MESSAGE_ROUTE, layout.MESSAGE_PROPERTIES, layout.MESSAGE_BODY)  # octets of the parts of a message's chain


class Wrong(Exception):
    """An invariant does not hold: record, field, the value wanted and the actual value."""


def same(record, handle, field, wanted, value):
    """Raise Wrong unless a field has the value that it is to have."""
    if wanted != value:
        raise Wrong("%s %d: %s is to be %s, and is %s" % (record.lower(), handle, field, wanted, value))


def check(tables, aside=None, held=None, promised=0, in_order=True):
    """Raise Wrong with the first number that another one contradicts.

    `aside`: the entries in no list that objects outside the tables keep; None: not known, every entry in no list counts as one.
    `held`: message -> references that something outside the tables has, entries not counted; None: nobody knows, any number may be.
    `promised`: entries that a running commit has taken off the pool's account.
    `in_order`: no message comes to a queue later than its position says, as delayed ones do.
    Returns consumer -> the window that it was given: its credit and what it has not settled; those without a limit are left out.
    """
    alive = pools(tables, promised)
    ranges(tables, alive)
    numbers(tables)
    places: dict = {}  # entry -> the list that it is in
    lists = {queue: ready_list(tables, alive, queue, places, in_order) for queue in alive["QUEUE"]}
    unsettled = {channel: unsettled_list(tables, alive, channel, places) for channel in alive["CHANNEL"]}
    for entry in () if aside is None else aside:
        note(places, alive, entry, "kept aside")
    settled = settled_list(tables, alive, places)
    owners(alive, places, aside is None)
    entries = [entry for entry in alive["ENTRY"] if entry not in settled]
    queue_sums(tables, alive, entries, lists, unsettled)
    chains(tables, alive)
    message_sums(tables, alive, entries, held)
    consumer_lists(tables, alive)
    tag_index(tables, unsettled)
    active_list(tables, alive)
    routes(tables, alive)
    return windows(tables, alive, unsettled)


# Pools


def pools(tables, promised):
    """record -> the handles in use; every record is in its pool's free list or in use, and counted so."""
    state, spare = tables.state, tables.spare
    alive: dict = {}
    for record, table, width, pool, at, kept, taken in (
        ("MESSAGE", tables.messages, layout.MESSAGE_WIDTH, state, layout.POOL_MESSAGES, spare[1], 0),
        ("ENTRY", tables.entries, layout.ENTRY_WIDTH, state, layout.POOL_ENTRIES, spare[2], promised),
        ("QUEUE", tables.queues, layout.QUEUE_WIDTH, tables.queue_pool, 0, 0, 0),
        ("CHANNEL", tables.channels, layout.CHANNEL_WIDTH, tables.channel_pool, 0, 0, 0),
        ("CONSUMER", tables.consumers, layout.CONSUMER_WIDTH, tables.consumer_pool, 0, 0, 0),
        ("CHUNK", tables.chunks, layout.CHUNK_WIDTH, tables.chunk_pool, 0, 0, 0),
    ):
        size = state[layout.STATE_TAGS] if record == "CHANNEL" else len(table)
        alive[record] = in_use(record, table, width, pool, at, size)
        same("POOL OF " + record, at, "LEFT", size // width - kept - taken - len(alive[record]), pool[at + 2])
    alive["BLOCK"] = in_use("BLOCK", tables.blocks, 1, state, layout.POOL_BLOCKS, len(tables.blocks))
    return alive


def in_use(record, table, width, pool, at, size):
    """The handles below the next fresh record that are not in the free list, rising."""
    fresh = pool[at + 1]
    if not 0 <= fresh <= size or fresh % width:
        raise Wrong("pool of %s %d: NEXT is to be a record, and is %d" % (record.lower(), at, fresh))
    free, handle = set(), pool[at]
    while handle != NONE:
        if handle in free or not 0 <= handle < fresh or handle % width:
            raise Wrong("pool of %s %d: FREE is to list each free record once, and lists %d" % (record.lower(), at, handle))
        free.add(handle)
        handle = table[handle]
    return {handle: None for handle in range(0, fresh, width) if handle not in free}  # a dict keeps the order


def ranges(tables, alive):
    """Every field of a record in use has a value that it may have."""
    for record, table in (
        ("MESSAGE", tables.messages),
        ("ENTRY", tables.entries),
        ("QUEUE", tables.queues),
        ("CHANNEL", tables.channels),
        ("CONSUMER", tables.consumers),
    ):
        rows = PLACES[record]
        for handle in alive[record]:
            for place, least, most in rows:
                if not least <= table[handle + place] <= most:
                    out_of_range(record, FIELDS[record], handle, table[handle + place], place)
    for place, least, most in PLACES["STATE"]:
        if not least <= tables.state[place] <= most:
            out_of_range("STATE", STATE, 0, tables.state[place], place)


def out_of_range(record, rows, handle, value, place):
    """Raise Wrong for a field that has a value that no such field can have."""
    for name, (least, most) in rows:
        if getattr(layout, record + "_" + name) == place:
            raise Wrong("%s %d: %s is to be in %d..%d, and is %d" % (record.lower(), handle, name, least, most, value))


def numbers(tables):
    """The single numbers that say what the tables are."""
    state = tables.state
    for name, wanted in (
        ("BLOCK_SIZE", tables.block_size),
        ("ROUTE_SLOTS", len(tables.routes) // layout.ROUTE_WIDTH),
        ("TAGS", len(tables.channels) - index_size(tables)),
    ):
        same("STATE", 0, name, wanted, state[getattr(layout, "STATE_" + name)])
    if state[layout.STATE_TAG_MASK] & state[layout.STATE_TAG_MASK] + 1:
        raise Wrong("state 0: TAG_MASK is to be one less than a power of two, and is %d" % state[layout.STATE_TAG_MASK])


def index_size(tables):
    """Integers behind the channels' records."""
    mask = tables.state[layout.STATE_TAG_MASK]
    return mask + 1 + len(tables.entries) // layout.ENTRY_WIDTH if mask else 0


# Lists of entries


def note(places, alive, entry, place):
    """An entry is in use, and in one place only."""
    if entry not in alive["ENTRY"]:
        raise Wrong("entry %d: is %s, and is not in use" % (entry, place))
    if entry in places:
        raise Wrong("entry %d: is %s, and %s" % (entry, places[entry], place))
    places[entry] = place


def linked(tables, alive, places, record, handle, head, tail):
    """The entries of a list with links in both directions, from a record's field `head` to its field `tail` (names)."""
    table, entries = (tables.queues if record == "QUEUE" else tables.channels), tables.entries
    place = "in the list of %s %d" % (record.lower(), handle)
    listed, before, entry = [], NONE, table[handle + getattr(layout, record + "_" + head)]
    while entry != NONE:
        note(places, alive, entry, place)
        same("ENTRY", entry, "PREVIOUS", before, entries[entry + layout.ENTRY_PREVIOUS])
        listed.append(entry)
        before, entry = entry, entries[entry + layout.ENTRY_NEXT]
    same(record, handle, tail, before, table[handle + getattr(layout, record + "_" + tail)])
    return listed


def is_before(number, other):
    """True when a number comes before another; both wrap at 2^30 and lie less than half of that apart."""
    return (number - other) & 0x20000000 != 0


def ready_list(tables, alive, queue, places, in_order):
    """The entries of a queue's ready list, each behind those that came before it."""
    queues, entries = tables.queues, tables.entries
    ready = linked(tables, alive, places, "QUEUE", queue, "HEAD", "TAIL")
    before = NONE
    for entry in ready:
        same("ENTRY", entry, "QUEUE", queue, entries[entry + layout.ENTRY_QUEUE])
        position = entries[entry + layout.ENTRY_POSITION]
        is_flat = queues[queue + layout.QUEUE_PLAIN] != layout.NOT_PLAIN and not queues[queue + layout.QUEUE_LIMITS] & layout.LIMIT_GROUPS
        if in_order and is_flat:  # else its rules may have changed the order
            differs = entries[entry + layout.ENTRY_REDELIVERED] ^ entries[entries[entry + layout.ENTRY_PREVIOUS] + layout.ENTRY_REDELIVERED]
            if before != NONE and not differs >> layout.ENTRY_LEVEL and not is_before(before, position):
                raise Wrong("entry %d: POSITION is to be behind %d, and is %d" % (entry, before, position))
            if not is_before(position, queues[queue + layout.QUEUE_POSITION]):
                raise Wrong("queue %d: POSITION is to be behind %d, and is %d" % (queue, position, queues[queue + layout.QUEUE_POSITION]))
        before = position
    returned_tree(tables, queue, queues[queue + layout.QUEUE_RETURNED], set(ready))
    if queues[queue + layout.QUEUE_LIMITS] & layout.LIMIT_LEVELS:
        levels(tables, ready)
    return ready


def levels(tables, ready):
    """Higher levels stand before lower ones, and the last entry of each level but the highest knows the last one of the next higher."""
    order = [tables.entries[each + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL for each in ready]
    for at in range(1, len(ready)):
        if order[at] > order[at - 1]:
            raise Wrong("entry %d: its level is to be at most %d, and is %d" % (ready[at], order[at - 1], order[at]))
        if order[at] < order[at - 1]:
            last = ready[at + order[at:].count(order[at]) - 1]
            same("ENTRY", last, "TAG", -2 - ready[at - 1], tables.entries[last + layout.LEVEL_ABOVE])


def returned_tree(tables, queue, root, ready):
    """Each of the tree of what came back is one of its queue's ready entries, and between those that it hangs at."""
    entries = tables.entries
    left = [(root, None, None)]
    while left:
        entry, above, below = left.pop()
        if entry == NONE:
            continue
        if entry not in ready:
            raise Wrong("queue %d: RETURNED is to have its ready entries, each once, and has %d" % (queue, entry))
        ready.remove(entry)
        position = entries[entry + layout.ENTRY_POSITION]
        if above is not None and not is_before(above, position) or below is not None and not is_before(position, below):
            raise Wrong("entry %d: its place in the tree of RETURNED is to be between %r and %r" % (entry, above, below))
        left.append((entries[entry + layout.ENTRY_TAG], above, position))
        left.append((entries[entry + layout.ENTRY_CONSUMER], position, below))


def unsettled_list(tables, alive, channel, places):
    """The entries of a channel's unsettled list, their tags rising; what it says of their number."""
    entries, consumers = tables.entries, tables.consumers
    unsettled = linked(tables, alive, places, "CHANNEL", channel, "UNSETTLED_HEAD", "UNSETTLED_TAIL")
    count, got, before = 0, 0, None
    for entry in unsettled:
        tag, consumer = entries[entry + layout.ENTRY_TAG], entries[entry + layout.ENTRY_CONSUMER]
        if before is not None and not is_before(before, tag):
            raise Wrong("entry %d: TAG is to be behind %d, and is %d" % (entry, before, tag))
        before = tag
        count += consumer not in (layout.RETURNING, layout.GOT)
        got += consumer == layout.GOT
        if consumer >= 0:
            if consumer not in alive["CONSUMER"]:
                raise Wrong("entry %d: CONSUMER is to be in use, and is %d" % (entry, consumer))
            same("ENTRY", entry, "QUEUE", consumers[consumer + layout.CONSUMER_QUEUE], entries[entry + layout.ENTRY_QUEUE])
            same("CONSUMER", consumer, "CHANNEL", channel, consumers[consumer + layout.CONSUMER_CHANNEL])
        if entries[entry + layout.ENTRY_QUEUE] not in alive["QUEUE"]:
            raise Wrong("entry %d: QUEUE is to be in use, and is %d" % (entry, entries[entry + layout.ENTRY_QUEUE]))
    last = tables.channels[channel + layout.CHANNEL_TAG]
    if before is not None and is_before(last, before):
        raise Wrong("channel %d: TAG is to be %d or behind it, and is %d" % (channel, before, last))
    same("CHANNEL", channel, "UNSETTLED", count, tables.channels[channel + layout.CHANNEL_UNSETTLED])
    same("CHANNEL", channel, "GOT", got, tables.channels[channel + layout.CHANNEL_GOT])
    return unsettled


def settled_list(tables, alive, places):
    """The entries that wait for the journal."""
    settled, entry = set(), tables.state[layout.STATE_SETTLED_LIST]
    while entry != NONE:
        note(places, alive, entry, "settled, for the journal")
        settled.add(entry)
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return settled


def owners(alive, places, anybody):
    """Every entry in use is somewhere."""
    if not anybody and len(places) != len(alive["ENTRY"]):
        lost = [entry for entry in alive["ENTRY"] if entry not in places]
        raise Wrong("entry %d: is in use and has no owner: it is in no list (as %d others)" % (lost[0], len(lost) - 1))


# Sums


def queue_sums(tables, alive, entries, lists, unsettled):
    """What the records of queues say of their entries: how many, and how much they hold."""
    table, messages = tables.entries, tables.messages
    blocks: dict = {}
    waiting: dict = {}
    returning: dict = {}
    for entry in entries:
        queue, message = table[entry + layout.ENTRY_QUEUE], table[entry + layout.ENTRY_MESSAGE]
        if message not in alive["MESSAGE"]:
            raise Wrong("entry %d: MESSAGE is to be in use, and is %d" % (entry, message))
        if queue not in alive["QUEUE"]:
            raise Wrong("entry %d: QUEUE is to be in use, and is %d" % (entry, queue))
        blocks[queue] = blocks.get(queue, 0) + messages[message + layout.MESSAGE_BLOCKS]
    for listed in unsettled.values():
        for entry in listed:
            queue = table[entry + layout.ENTRY_QUEUE]
            waiting[queue] = waiting.get(queue, 0) + 1
            if table[entry + layout.ENTRY_CONSUMER] == layout.RETURNING:
                returning[queue] = returning.get(queue, 0) + 1
    for queue, listed in lists.items():
        octets = sum([messages[table[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_BODY] for entry in listed])
        for place, name, wanted in (
            (layout.QUEUE_LENGTH, "LENGTH", len(listed)),
            (layout.QUEUE_OCTETS, "OCTETS", octets),
            (layout.QUEUE_UNSETTLED, "UNSETTLED", waiting.get(queue, 0)),
            (layout.QUEUE_RETURNING, "RETURNING", returning.get(queue, 0)),
            (layout.QUEUE_BLOCKS, "BLOCKS", blocks.get(queue, 0)),
        ):
            same("QUEUE", queue, name, wanted, tables.queues[queue + place])


def message_sums(tables, alive, entries, held):
    """Every message is referenced as often as it says, and has on its account what its octets need."""
    table, messages = tables.entries, tables.messages
    references: dict = {}
    for entry in entries:
        message = table[entry + layout.ENTRY_MESSAGE]
        references[message] = references.get(message, 0) + 1
    for message in {} if held is None else held:
        if message not in alive["MESSAGE"]:
            raise Wrong("message %d: is held %d times, and is not in use" % (message, held[message]))
    for message in alive["MESSAGE"]:
        count, recorded = references.get(message, 0), messages[message + layout.MESSAGE_REFERENCES]
        if held is not None or recorded < count:
            same("MESSAGE", message, "REFERENCES", count + (0 if held is None else held.get(message, 0)), recorded)
        size, filled = sum([messages[message + place] for place in SIZES]), messages[message + layout.MESSAGE_FILLED]
        if messages[message + layout.MESSAGE_KIND] & layout.KIND_ANNOTATED:
            size += annotations_size(tables, message, filled)
        if filled > size or count and filled < size:
            same("MESSAGE", message, "FILLED", size, filled)
        same("MESSAGE", message, "BLOCKS", tables.blocks_for(size), messages[message + layout.MESSAGE_BLOCKS])
        route = messages[message + layout.MESSAGE_ROUTE]
        if 0 < route <= filled:
            second = 1 + octet(tables, message, 0)
            same("MESSAGE", message, "ROUTE", second + 1 + (octet(tables, message, second) if second < route else 0), route)


def annotations_size(tables, message, filled):
    """Octets of a message's annotations, the two that say how many with them."""
    at = tables.messages[message + layout.MESSAGE_ROUTE]
    if filled < at + 2:
        raise Wrong("message %d: KIND says that it has annotations, and it has %d octets behind its route" % (message, filled - at))
    return 2 + (octet(tables, message, at) << 8 | octet(tables, message, at + 1))


def octet(tables, message, offset):
    """An octet of a message's chain; nothing is written, as hot.extract would."""
    block = tables.messages[message + layout.MESSAGE_FIRST]
    for _ in range(offset // tables.block_size):
        block = tables.blocks[block]
    return tables.arena[block * tables.block_size + offset % tables.block_size]


def chains(tables, alive):
    """Every block in use is in the chain of one message, and the account has what messages may still take."""
    messages, blocks = tables.messages, tables.blocks
    seen: dict = {}
    account = 0
    for message in alive["MESSAGE"]:
        account += messages[message + layout.MESSAGE_BLOCKS]
        left = tables.blocks_for(messages[message + layout.MESSAGE_FILLED])
        block, last = messages[message + layout.MESSAGE_FIRST], NONE
        if not left:
            same("MESSAGE", message, "FIRST", NONE, block)
        while left:
            if block not in alive["BLOCK"] or block in seen:
                raise Wrong("message %d: FIRST is to lead to %d blocks more of its own, and leads to %d" % (message, left, block))
            seen[block] = message
            last, block, left = block, blocks[block], left - 1
        same("MESSAGE", message, "LAST", last, messages[message + layout.MESSAGE_LAST])
    same("POOL OF BLOCK", 0, "FREE", len(alive["BLOCK"]), len(seen))
    same("POOL OF BLOCK", 0, "LEFT", len(blocks) - tables.spare[0] - account, tables.state[layout.POOL_BLOCKS + 2])


# Consumers, the index of tags, queues in turn, the route cache


def consumer_lists(tables, alive):
    """Every consumer is in the list of its channel, and counted by its queue."""
    consumers = tables.consumers
    seen, count = set(), dict.fromkeys(alive["QUEUE"], 0)
    for channel in alive["CHANNEL"]:
        consumer = tables.channels[channel + layout.CHANNEL_CONSUMERS]
        while consumer != NONE:
            if consumer in seen or consumer not in alive["CONSUMER"]:
                raise Wrong("channel %d: CONSUMERS is to lead to each of its consumers once, and leads to %d" % (channel, consumer))
            seen.add(consumer)
            same("CONSUMER", consumer, "CHANNEL", channel, consumers[consumer + layout.CONSUMER_CHANNEL])
            consumer = consumers[consumer + layout.CONSUMER_NEXT]
    for consumer in alive["CONSUMER"]:
        if consumer not in seen:
            channel = consumers[consumer + layout.CONSUMER_CHANNEL]
            raise Wrong("consumer %d: CHANNEL is to be a channel that lists it, and is %d" % (consumer, channel))
        queue = consumers[consumer + layout.CONSUMER_QUEUE]
        count[queue] = count.get(queue, 0) + 1
    for queue in alive["QUEUE"]:
        same("QUEUE", queue, "CONSUMERS", count.pop(queue), tables.queues[queue + layout.QUEUE_CONSUMERS])
    for queue in count:
        raise Wrong("queue %d: has %d consumers, and is not in use" % (queue, count[queue]))


def windows(tables, alive, unsettled):
    """consumer -> its credit and what it has not settled; one without a limit, or whose credit is counted, has none."""
    consumers = tables.consumers
    credit_of = {each: consumers[each + layout.CONSUMER_CREDIT] for each in alive["CONSUMER"]}
    credit_of = {each: credit_of[each] for each in credit_of if consumers[each + layout.CONSUMER_MODE] == layout.WINDOW}
    credit_of = {consumer: credit for consumer, credit in credit_of.items() if credit != layout.CREDIT_UNLIMITED}
    for entries in unsettled.values():
        for entry in entries:
            consumer = tables.entries[entry + layout.ENTRY_CONSUMER]
            if consumer in credit_of:
                credit_of[consumer] += 1
    return credit_of


def tag_index(tables, unsettled):
    """The unsettled entries up to CHANNEL_INDEXED are in the index, each in the slot of its tag, and no others."""
    channels, mask, slots = tables.channels, tables.state[layout.STATE_TAG_MASK], tables.state[layout.STATE_TAGS]
    wanted: dict = {}  # entry -> slot
    for channel, entries in unsettled.items():
        last = channels[channel + layout.CHANNEL_INDEXED]
        if last != NONE and last not in entries:
            raise Wrong("channel %d: INDEXED is to be one of its unsettled entries, and is %d" % (channel, last))
        for entry in entries if last != NONE else ():
            wanted[entry] = (channel // layout.CHANNEL_WIDTH * SPREAD ^ tables.entries[entry + layout.ENTRY_TAG]) & mask
            if entry == last:
                break
    count = 0
    for slot in range(mask + 1 if mask else 0):
        entry = channels[slots + slot] - 1
        while entry >= 0:
            if wanted.pop(entry, NONE) != slot:
                raise Wrong("slot %d of the tags: is to have indexed entries with such tags, and has %d" % (slot, entry))
            count += 1
            entry = channels[slots + mask + 1 + entry // layout.ENTRY_WIDTH] - 1
    for entry in wanted:
        raise Wrong("slot %d of the tags: is to have entry %d, and has not" % (wanted[entry], entry))


def active_list(tables, alive):
    """The queues that may have something to deliver: those that say so are in the list, which ends."""
    queues, state = tables.queues, tables.state
    seen, before, queue = set(), NONE, state[layout.STATE_ACTIVE_HEAD]
    while queue != NONE:
        if queue in seen or queue not in alive["QUEUE"]:
            raise Wrong("state 0: ACTIVE_HEAD is to lead to each active queue once, and leads to %d" % queue)
        seen.add(queue)
        before, queue = queue, queues[queue + layout.QUEUE_NEXT_ACTIVE]
    same("STATE", 0, "ACTIVE_TAIL", before, state[layout.STATE_ACTIVE_TAIL])
    for queue in alive["QUEUE"]:
        same("QUEUE", queue, "ACTIVE", 1 if queue in seen else 0, queues[queue + layout.QUEUE_ACTIVE])


def routes(tables, alive):
    """Every slot of the route cache that counts has octets and queues inside what is used."""
    state, slots = tables.state, tables.routes
    octets, targets = state[layout.STATE_ROUTE_OCTETS], state[layout.STATE_ROUTE_TARGETS]
    if octets > len(tables.route_octets):
        raise Wrong("state 0: ROUTE_OCTETS is to be at most %d, and is %d" % (len(tables.route_octets), octets))
    if targets > len(tables.route_targets):
        raise Wrong("state 0: ROUTE_TARGETS is to be at most %d, and is %d" % (len(tables.route_targets), targets))
    last = state[layout.STATE_ROUTE_LAST]
    if last % layout.ROUTE_WIDTH or last >= len(slots):
        raise Wrong("state 0: ROUTE_LAST is to be a slot, and is %d" % last)
    for slot in range(0, len(slots) if octets else 0, layout.ROUTE_WIDTH):
        if slots[slot + layout.ROUTE_EPOCH] != state[layout.STATE_ROUTE_EPOCH]:
            continue
        for start, size, name, used in (  # the targets last: they are looked at one by one
            (layout.ROUTE_OCTETS, layout.ROUTE_SIZE, "SIZE", octets),
            (layout.ROUTE_TARGETS, layout.ROUTE_COUNT, "COUNT", targets),
        ):
            first, count = slots[slot + start], slots[slot + size]
            if first < 0 or count < 1 or first + count > used:
                raise Wrong("route %d: %s is to be in 1..%d, and is %d" % (slot, name, used - first, count))
        for at in range(first, first + slots[slot + layout.ROUTE_COUNT]):
            if tables.route_targets[at] not in alive["QUEUE"]:
                raise Wrong("route %d: TARGETS is to be queues in use, and is %d" % (slot, tables.route_targets[at]))


PLACES = {
    record: tuple([(getattr(layout, record + "_" + name), least, most) for name, (least, most) in rows])
    for record, rows in list(FIELDS.items()) + [("STATE", STATE)]
}
