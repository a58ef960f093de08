"""Publishes and settlements that need no decision, on the flat tables: the neutral half of every family's `ingest`.

Written in the viper dialect as core/memory/hot.py is, with the same laws; c_accel/publish.h and settle.c have the same functions in C. A
family reads its own octets (core/amqp_0_9/hot_in.py); these functions look up the route (the route cache, route_cache.py), check that each
queue accepts a message unread (QUEUE_PLAIN, QUEUE_LIMITS), and push the message.
"""

from ..memory.hot import activate, drop, next_number, push, settle, unlink_ready, wake_below
from ..memory.layout import *
from ..memory.returned import give_back
from ..parts import part
from ..shim import const, quicker, same

_RECORD_SIZE = const(33)  # octets of a message's record before its places (log/flat_records.py), and of each place
_PLACE_SIZE = const(12)
_IN_C = const(196800)  # LIMIT_REMEMBERS, LIMIT_LATEST, LIMIT_GROUPS, LIMIT_PAGED: what only C looks at
_levels = part("memory.levels")  # boards without x-max-priority do not carry it
to_level = _levels and _levels.to_level


def settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, first, last, how):
    """Settle the unsettled entries of a channel from `first` to `last`: 1. Accepted or refused, `first` is the oldest one or `last`.

    `how`: 0 accepted, 1 refused, 2 to be requeued. 0: the rules of one of their queues must see them first, and nothing has changed; in C
    some of those to be refused, the oldest, may be gone as dead letters.
    """
    if how > 0 and may_return(entries, queues, first, last, LIMIT_DEAD_LETTERS if how == 1 else LIMIT_RETURNS) == 0:
        return 0
    wake_below(entries, queues, channels, consumers, state, channel, first, last)
    if how == 2:
        give_back(messages, entries, queues, channels, consumers, state, channel, first, last)
        return 1
    entry = first
    while True:
        queue = entries[entry + ENTRY_QUEUE]
        if queues[queue + QUEUE_LENGTH] > 0 or queues[queue + QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED) == 0:
            activate(queues, state, queue)
        if entry == last:
            break
        entry = entries[entry + ENTRY_NEXT]
    settle(
        blocks,
        messages,
        entries,
        queues,
        channels,
        consumers,
        state,
        channel,
        last,
        0 if first == last else 1,
        STATE_REJECTED if how else STATE_SETTLED,
    )
    return 1


def may_return(entries, queues, entry, last, asks):
    """1 when no queue of the unsettled entries from `entry` to `last` must see a return; 0: a queue has `asks` in its limits, or, where it
    asks for LIMIT_RETURNS, an entry has come back as often as it may.

    Rule "returns": also came_back in features/delivery_limit.py and may_return of settle.c; test_homes.py holds them together.
    """
    while True:
        queue = entries[entry + ENTRY_QUEUE]
        limits = queues[queue + QUEUE_LIMITS]
        if queues[queue + QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED) == 0 or limits & asks:
            return 0
        if asks == LIMIT_RETURNS and limits & LIMIT_COUNTS and entries[entry + ENTRY_REDELIVERED] & 255 >= limits >> LIMIT_MOST:
            return 0
        if entry == last:
            return 1
        entry = entries[entry + ENTRY_NEXT]


def route_hash(source, at, size):
    """A number below 2^28 for the octets of a route."""
    hashed = size
    end = at + size
    while at < end:
        hashed = (hashed & 0x3FFFF) * 2039 + source[at] * 31 + (hashed >> 18) & 0xFFFFFFF
        at += 1
    return hashed ^ hashed >> 13


route_hash = quicker(route_hash)


def find_route(state, routes, route_octets, source, at, size):
    """The slot of the route cache that has these octets (exchange and routing key as two short strings) for the user of state, or -1."""
    slot = state[STATE_ROUTE_LAST]
    if is_route(state, routes, route_octets, slot, source, at, size):
        return slot
    slots = state[STATE_ROUTE_SLOTS]
    place = route_hash(source, at, size) & (slots - 1)
    probes = ROUTE_PROBES
    while probes > 0:
        slot = place * ROUTE_WIDTH
        if is_route(state, routes, route_octets, slot, source, at, size):
            state[STATE_ROUTE_LAST] = slot
            return slot
        place = (place + 1) & (slots - 1)
        probes -= 1
    return -1


def is_route(state, routes, route_octets, slot, source, at, size):
    """1 when a slot holds these octets, for this user, and was filled since the cache was last emptied; else 0."""
    if routes[slot + ROUTE_SIZE] != size or routes[slot + ROUTE_EPOCH] != state[STATE_ROUTE_EPOCH]:
        return 0
    if routes[slot + ROUTE_USER] != state[STATE_USER]:
        return 0
    return 1 if same(route_octets, routes[slot + ROUTE_OCTETS], source, at, size) else 0


def may_push(messages, entries, queues, state, routes, route_targets, slot, expiration, block_total, body):
    """1 when there is room for a message of so many blocks, and every queue of its route accepts it unread; 2 when one of them also needs
    it logged, and the log has room; 4 when one of those is a stream: it takes the message unless is_named says otherwise; else 0.

    Each queue's share is at most four times the blocks, messages and entries left after the message has its own, as sessions count them.
    Rule "share": also Queue.over_share and may_push of publish.h; test_homes.py holds them together.
    """
    left = routes[slot + ROUTE_COUNT]
    if state[POOL_BLOCKS + 2] < block_total or state[POOL_MESSAGES + 2] < 1 or state[POOL_ENTRIES + 2] < left:
        return 0
    target = routes[slot + ROUTE_TARGETS]
    answer = 1
    while left > 0:
        queue = route_targets[target]
        plain = queues[queue + QUEUE_PLAIN]
        if plain == 0:
            return 0
        durable = state[STATE_KIND] & KIND_DURABLE
        if plain > 2 or plain == 2 and durable:
            asked = block_total * state[STATE_BLOCK_SIZE] + _PLACE_SIZE * routes[slot + ROUTE_COUNT]
            if state[STATE_LOG_ROOM] - state[STATE_LOGGED_OCTETS] < asked:
                return 0
            if plain > answer:
                answer = plain
        limits = queues[queue + QUEUE_LIMITS]
        if limits & _IN_C:
            return 0
        if plain > 2:
            if durable == 0 and routes[slot + ROUTE_COUNT] > 1:
                return 0  # `fits` looks at durable messages alone
        elif limits & 1 == 0 and expiration >= 0:
            return 0
        if limits & 6 and fits(messages, entries, queues, queue, body) == 0:
            return 0
        held = queues[queue + QUEUE_LENGTH] + queues[queue + QUEUE_UNSETTLED]
        if held > 0:
            if held >= 4 * state[POOL_ENTRIES + 2] or held >= 4 * (state[POOL_MESSAGES + 2] - 1):
                return 0
            if queues[queue + QUEUE_BLOCKS] + block_total > 4 * (state[POOL_BLOCKS + 2] - block_total):
                return 0
        target += 1
        left -= 1
    return answer


def is_over(queues, queue, count, size):
    """1 when so many messages with so many octets of bodies are more than a queue may hold; else 0.

    Rule "length": also over in features/length.py and is_over of publish.h; test_homes.py holds them together.
    """
    most = queues[queue + QUEUE_LENGTH_MAX]
    if most >= 0 and count > most:
        return 1
    most = queues[queue + QUEUE_OCTETS_MAX]
    return 1 if most >= 0 and size > most else 0


def fits(messages, entries, queues, queue, body):
    """1 when a queue that holds only so much takes one more without a look (features/length.py).

    0 when it is to be refused, or when what has to go for it is to be a dead letter, the message itself (perhaps, where there are levels),
    or one that is yet to be logged.
    """
    count = queues[queue + QUEUE_LENGTH] + 1
    size = queues[queue + QUEUE_OCTETS]
    limits = queues[queue + QUEUE_LIMITS]
    if limits & 4:
        return 1 - is_over(queues, queue, count, size + 1)
    size += body
    entry = queues[queue + QUEUE_HEAD]
    while is_over(queues, queue, count, size):
        if entry < 0 or limits & 40:
            return 0
        message = entries[entry]
        if queues[queue + QUEUE_PLAIN] == 2 and messages[message + MESSAGE_SEGMENT] == 0:
            if messages[message + MESSAGE_KIND] & KIND_DURABLE:
                return 0
        count -= 1
        size -= messages[message + MESSAGE_BODY]
        entry = entries[entry + ENTRY_NEXT]
    return 1


def keep_limits(blocks, messages, entries, queues, state, queue, entry, expiration):
    """A queue with limits has a new entry: put it at its level, write its deadline, and drop the oldest entries beyond the queue's maximum.

    Rule "lifetime": also write_deadline in features/expiry.py and keep_limits of publish.h; test_homes.py holds them together.
    """
    limits = queues[queue + QUEUE_LIMITS]
    if limits & 32:
        to_level(messages, entries, queues, queue, entry, limits >> LIMIT_HIGHEST & 255)
    if limits & 1:
        ttl = queues[queue + QUEUE_TTL]
        if expiration >= 0 and (ttl < 0 or expiration < ttl):
            ttl = expiration
        moment = 0
        if ttl >= 0:
            moment = (state[STATE_NOW] + ttl) & MASK
            if moment == 0:
                moment = 1
            if state[STATE_DUE] == 0 or (moment - state[STATE_DUE]) & 0x20000000:
                state[STATE_DUE] = moment
        entries[entry + ENTRY_DEADLINE] = moment
    if limits & 2:
        while is_over(queues, queue, queues[queue + QUEUE_LENGTH], queues[queue + QUEUE_OCTETS]):
            oldest = queues[queue + QUEUE_HEAD]
            unlink_ready(messages, entries, queues, queue, oldest)
            drop(blocks, messages, entries, queues, state, oldest)
            state[STATE_DROPPED_HEAD] += 1


def put_aside(messages, entries, state, entry):
    """Append an entry to the list of entries whose messages are to be logged. The octets of a record's head (log/flat_records.py) are
    added to the list's octets; for a further entry of the last message, the octets of one more place."""
    entries[entry + ENTRY_CONSUMER] = -1
    tail = state[STATE_LOGGED_TAIL]
    state[STATE_LOGGED_TAIL] = entry
    state[STATE_LOGGED_PLACES] += 1
    state[STATE_LOGGED_OCTETS] += _PLACE_SIZE
    if state[STATE_LOGGED_HEAD] < 0:
        state[STATE_LOGGED_HEAD] = entry
    else:
        entries[tail + ENTRY_CONSUMER] = entry
        if entries[tail] == entries[entry]:
            return
    state[STATE_LOGGED_OCTETS] += messages[entries[entry] + MESSAGE_FILLED] + _RECORD_SIZE
    state[STATE_LOGGED_COUNT] += 1


def is_named(source, at, end):
    """1 when the properties source[at:end] have the name of the header by which a stream knows a publisher (stream/publishers.py): the
    stream drops what that one has published before. Anywhere else these octets cost time alone."""
    while end - at >= 14:
        if source[at] == 120 and source[at + 1] == 45 and source[at + 2] == 112 and source[at + 13] == 100:  # x-p ... d
            return 1
        at += 1
    return 0


is_named = quicker(is_named)


def count_publish(channels, state, channel, logged):
    """Count a publish in confirm mode, and put the channel on the list of channels with publishes to confirm. `logged`: 2 when the
    publish is to be logged, else 1."""
    before = channels[channel + CHANNEL_PUBLISHED]
    next_number(channels, channel + CHANNEL_PUBLISHED)
    if channels[channel + CHANNEL_COUNTED] < logged:
        if channels[channel + CHANNEL_COUNTED] == 1:
            channels[channel + CHANNEL_COUNTED] = 2
            return
        channels[channel + CHANNEL_COUNTED] = logged
        channels[channel + CHANNEL_COUNTED_FROM] = before
        channels[channel + CHANNEL_NEXT_COUNTED] = state[STATE_COUNTED_HEAD]
        state[STATE_COUNTED_HEAD] = channel


def publish(blocks, messages, entries, queues, channels, state, routes, route_targets, channel, slot, message, logged):
    """Push a message, whose octets are in its chain, to the queues of a slot of the route cache. `logged`: the result of may_push.

    What a stream gets is read when the log has it: its readers have their turn then."""
    target = routes[slot + ROUTE_TARGETS]
    left = routes[slot + ROUTE_COUNT]
    state[STATE_LEFT] -= left
    while left > 0:
        queue = route_targets[target]
        entry = push(messages, entries, queues, state, queue, message)
        if queues[queue + QUEUE_LIMITS] > 0:
            keep_limits(blocks, messages, entries, queues, state, queue, entry, messages[message + MESSAGE_LIFETIME])
        plain = queues[queue + QUEUE_PLAIN]
        if plain == PLAIN_STREAM:
            entries[entry + ENTRY_REDELIVERED] = -1
        else:
            activate(queues, state, queue)
        if logged > 1 and plain > 1:
            put_aside(messages, entries, state, entry)
        target += 1
        left -= 1
    state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + 1) & MASK
    state[STATE_ALTERNATE] += routes[slot + ROUTE_ALTERNATES]
    if channels[channel + CHANNEL_CONFIRM]:
        count_publish(channels, state, channel, 2 if logged > 1 else 1)
