"""How publishes are taken in runs: see runs.py. What one is: core/ingest.py."""
import struct

from leveret.core import layout
from leveret.core.engine import Plain
from leveret.core.hot import activate
from leveret.core.ingest import check_properties, count_publish, take_settlement
from leveret.core.layout import MASK, NONE
from leveret.core.records import HEAD_SIZE, PLACE_SIZE
from .runs_shapes import BASIC, CONTENT_HEAD, END, FRAME_HEAD

METHOD_HEAD = struct.Struct(">BHIHH").unpack_from  # type, channel and size of a frame, then class and method
NUMBER = struct.Struct(">I").unpack_from
NEW_MESSAGE = struct.Struct("=2i32s").pack_into  # MESSAGE_FIRST, MESSAGE_LAST, and what a run has in common
SHARED = struct.Struct("=8i").pack
NEW_ENTRY = struct.Struct("=6i").pack_into  # up to ENTRY_REDELIVERED
BASIC_PUBLISH = b"\x00\x3c\x00\x28"
PUBLISH = 40
ACK = 80
RETURNS = (90, 120)  # basic.reject, basic.nack
KEPT_LIMITS = layout.LIMIT_EXPIRES | layout.LIMIT_DROPS | layout.LIMIT_REFUSES  # what a message that comes is looked at for
ROUTE_AT = 13  # where exchange and routing key begin in the frame of a basic.publish
WINDOW = 8192  # octets that are looked at; and where all of them were taken
WINDOW_MAX = 65536
METHODS_MAX = 4096  # frames of basic.publish that are known, and octets of all of them
METHODS_OCTETS_MAX = 1 << 18
KINDS_MAX = 256  # properties that are known to be valid
KIND_SIZE_MAX = 256  # and octets of each


class Taking:
    """The part of runs.Engine that takes what was received."""

    def ingest(self, numbers, source):
        """See ingest.py."""
        state = self.tables.state
        start, end = state[layout.STATE_AT], state[layout.STATE_END]
        window = WINDOW
        while True:
            octets = source[start:min(start + window, end)].tobytes()
            at = self.take_all(numbers, octets)
            state[layout.STATE_AT] = start + at
            if end - start - at < 7:
                return layout.INCOMPLETE
            behind = content_end(octets, at)
            if behind == len(octets) and start + behind < end:
                if at == 0 and window == WINDOW_MAX:
                    return Plain.ingest(self, numbers, source)
                window = WINDOW_MAX
            else:
                state[layout.STATE_END] = start + behind
                answer = Plain.ingest(self, numbers, source)
                state[layout.STATE_END] = end
                if answer != layout.INCOMPLETE:
                    return answer
                if state[layout.STATE_AT] != start + behind:
                    return answer if start + behind == end else Plain.ingest(self, numbers, source)
                self.learn(octets, at)
                window = WINDOW
            start = state[layout.STATE_AT]

    def take_all(self, numbers, octets):
        """Take what is usual from the begin of `octets`: the position behind it."""
        at = 0
        behind = self.take(numbers, octets, at)
        while behind > at:
            at = behind
            behind = self.take(numbers, octets, at)
        return at

    def learn(self, octets, at):
        """Remember the method frame of a content that was taken frame by frame."""
        tables = self.tables
        slot = tables.state[layout.STATE_ROUTE_LAST]
        if len(octets) - at < ROUTE_AT or octets[at + 7:at + 11] != BASIC_PUBLISH or tables.routes[slot + layout.ROUTE_COUNT] != 1:
            return
        header = at + 8 + NUMBER(octets, at + 3)[0]
        self.methods_octets += header - at
        if len(self.methods) >= METHODS_MAX or self.methods_octets > METHODS_OCTETS_MAX:
            self.methods.clear()
            self.methods_octets = header - at
        self.methods[octets[at:header]] = (tables.state[layout.STATE_USER], tables.state[layout.STATE_ROUTE_EPOCH], slot,
                                           tables.routes[slot + layout.ROUTE_OCTETS], octets[at + ROUTE_AT:header - 2])

    def take(self, numbers, octets, at):
        """Take an acknowledgement or a run of publishes: the position behind it, `at` itself when it is not a usual one."""
        tables = self.tables
        state = tables.state
        if len(octets) - at < 21:
            return at
        kind, number, size, class_, method = METHOD_HEAD(octets, at)
        if kind != 1 or class_ != BASIC or number >= state[layout.STATE_NUMBERS] or size > state[layout.STATE_FRAME_MAX]:
            return at
        channel = numbers[number]
        if channel < 0 or tables.channels[channel + layout.CHANNEL_PLAIN] == 0:
            return at
        if method == PUBLISH:
            return self.take_publishes(channel, number, octets, at, at + size + 8)
        if method == ACK and size == 13:
            return self.take_ack(channel, octets, at)
        if method in RETURNS and size == 13 and octets[at + 20] == END:
            state[layout.STATE_AT] = at
            behind = take_settlement(tables.blocks, tables.messages, tables.entries, tables.queues, tables.channels, tables.consumers,
                                     state, octets, channel)
            return at if behind < 0 else behind
        return at

    def take_publishes(self, channel, number, octets, at, header):
        """Take the publishes that begin as the one at `at` does, whose content header frame is at `header`."""
        tables = self.tables
        state, routes = tables.state, tables.routes
        found = self.methods.get(octets[at:header])
        if found is None or header + 22 > len(octets):
            return at
        user, epoch, slot, route_at, route = found
        if (user != state[layout.STATE_USER] or epoch != state[layout.STATE_ROUTE_EPOCH]
                or routes[slot + layout.ROUTE_OCTETS] != route_at):
            return at
        kind, of, size, class_, weight, body = CONTENT_HEAD.unpack_from(octets, header)
        most = state[layout.STATE_FRAME_MAX]
        if (kind != 2 or of != number or class_ != BASIC or weight or not 14 <= size <= most or body > most
                or body > state[layout.STATE_CONTENT_MAX] or size - 12 > state[layout.STATE_PROPERTIES_MAX]):
            return at
        behind = header + 8 + size
        first = behind + 7 if body else behind
        stride = first + body + 1 - at if body else behind - at
        if at + stride > len(octets) or octets[behind - 1] != END or octets[at + stride - 1] != END:
            return at
        if body and octets[behind:first] != FRAME_HEAD.pack(3, number, body):
            return at
        properties = octets[header + 19:behind - 1]
        kind = self.kinds.get(properties) or self.kind_of(properties)
        if kind == 0:
            return at
        queue = tables.route_targets[routes[slot + layout.ROUTE_TARGETS]]
        plain = tables.queues[queue + layout.QUEUE_PLAIN]
        limits = tables.queues[queue + layout.QUEUE_LIMITS] & KEPT_LIMITS
        logged = plain == layout.PLAIN_LOGGED and kind == 2
        names = route + properties
        needed = (len(names) + body + self.block_size - 1) // self.block_size
        most = min((len(octets) - at) // stride, self.room_for(queue, needed, logged)) if plain != layout.NOT_PLAIN and limits == 0 else 0
        if most < 1:
            return at
        count = alike(octets, octets[at:first], at, stride, most)
        shared = SHARED(len(route), len(properties), body, len(names) + body, needed, 1, state[layout.STATE_SECONDS],
                        0 if kind == 2 else NONE)
        self.put_contents(octets, first, stride, body, count, names, needed, queue, shared)
        if logged:
            self.put_aside(queue, count, needed, len(names) + body)
        state[layout.STATE_ROUTE_LAST] = slot
        state[layout.STATE_PUBLISHED] = (state[layout.STATE_PUBLISHED] + count) & MASK
        if tables.channels[channel + layout.CHANNEL_CONFIRM]:
            count_publishes(tables.channels, state, channel, 2 if logged else 1, count)
        activate(tables.queues, state, queue)
        return at + count * stride

    def kind_of(self, properties):
        """What check_properties says of these octets; 0 when the message expires."""
        kind = check_properties(properties, 0, len(properties))
        if kind > 2:
            kind = 0
        if len(properties) <= KIND_SIZE_MAX:
            if len(self.kinds) >= KINDS_MAX:
                self.kinds.clear()
            self.kinds[properties] = kind
        return kind

    def room_for(self, queue, needed, logged):
        """How many messages of `needed` blocks the queue takes one after the other, as may_push in ingest.py has it for each of them."""
        state, queues = self.tables.state, self.tables.queues
        records = min(state[layout.POOL_ENTRIES + 2], state[layout.POOL_MESSAGES + 2])
        blocks = state[layout.POOL_BLOCKS + 2]
        held = queues[queue + layout.QUEUE_LENGTH] + queues[queue + layout.QUEUE_UNSETTLED]
        count = min(records, (4 * records - held + 4) // 5, blocks // needed,
                    (4 * blocks - queues[queue + layout.QUEUE_BLOCKS] + 4 * needed) // (5 * needed))
        return min(count, state[layout.STATE_LOG_ROOM] // (needed * self.block_size + PLACE_SIZE)) if logged else count

    def put_contents(self, octets, at, stride, body, count, names, needed, queue, shared):
        """Make `count` messages of the octets `names` and of `body` octets from every `stride` from `at`, and push them."""
        tables = self.tables
        state, queues, arena, block_size = tables.state, tables.queues, self.arena, self.block_size
        messages = take_many(tables.messages, state, layout.POOL_MESSAGES, layout.MESSAGE_WIDTH, count)
        entries = take_many(tables.entries, state, layout.POOL_ENTRIES, layout.ENTRY_WIDTH, count)
        firsts = lasts = blocks = take_many(tables.blocks, state, layout.POOL_BLOCKS, 1, count * needed)
        size = len(names) + body
        places = range(at, at + count * stride, stride)
        if needed == 1:
            for block, at in zip(blocks, places):
                arena[block * block_size:block * block_size + size] = names + octets[at:at + body]
        else:
            firsts, lasts = blocks[::needed], blocks[needed - 1::needed]
            for index, at in enumerate(places):
                self.spread(names + octets[at:at + body], blocks[index * needed:(index + 1) * needed])
        previous = queues[queue + layout.QUEUE_TAIL]
        position = queues[queue + layout.QUEUE_POSITION]
        if previous >= 0:
            tables.entries[previous + layout.ENTRY_NEXT] = entries[0]
        else:
            queues[queue + layout.QUEUE_HEAD] = entries[0]
        message_octets, entry_octets, records = self.message_octets, self.entry_octets, tables.entries
        for message, entry, behind, first, last in zip(messages, entries, entries[1:] + [NONE], firsts, lasts):
            NEW_MESSAGE(message_octets, 4 * message, first, last, shared)
            NEW_ENTRY(entry_octets, 4 * entry, message, behind, previous, position, queue, 0)
            records[entry + layout.ENTRY_DEADLINE] = 0
            previous = entry
            position = position + 1 & MASK
        queues[queue + layout.QUEUE_TAIL] = previous
        queues[queue + layout.QUEUE_POSITION] = position
        queues[queue + layout.QUEUE_LENGTH] += count
        queues[queue + layout.QUEUE_OCTETS] += count * body
        queues[queue + layout.QUEUE_BLOCKS] += count * needed

    def spread(self, content, blocks):
        """Put a content into the arena, over these blocks."""
        arena, block_size, links = self.arena, self.block_size, self.tables.blocks
        before = NONE
        at = 0
        for block in blocks:
            piece = content[at:at + block_size]
            arena[block * block_size:block * block_size + len(piece)] = piece
            at += block_size
            if before >= 0:
                links[before] = block
            before = block

    def put_aside(self, queue, count, needed, size):
        """The last `count` messages of a queue, of so many blocks and octets each, are to be logged."""
        tables = self.tables
        state, entries = tables.state, tables.entries
        last = entry = tables.queues[queue + layout.QUEUE_TAIL]
        behind = NONE
        for _ in range(count):
            first = entry
            entries[entry + layout.ENTRY_CONSUMER] = behind
            behind = entry
            entry = entries[entry + layout.ENTRY_PREVIOUS]
        if state[layout.STATE_LOGGED_HEAD] < 0:
            state[layout.STATE_LOGGED_HEAD] = first
        else:
            entries[state[layout.STATE_LOGGED_TAIL] + layout.ENTRY_CONSUMER] = first
        state[layout.STATE_LOGGED_TAIL] = last
        state[layout.STATE_LOGGED_OCTETS] += count * (size + HEAD_SIZE)
        state[layout.STATE_LOGGED_COUNT] += count
        state[layout.STATE_LOGGED_PLACES] += count
        state[layout.STATE_LOG_ROOM] -= count * (needed * self.block_size + PLACE_SIZE)


def content_end(octets, at):
    """The position behind the frame at `at`, and behind the content that it begins; the end of `octets` where that is not whole."""
    end = len(octets)
    if end - at < 12:
        return end
    behind = at + 8 + NUMBER(octets, at + 3)[0]
    if octets[at] == 1 and octets[at + 7:at + 11] == BASIC_PUBLISH:
        if end - behind < 22:
            return end
        _, _, size, _, _, left = CONTENT_HEAD.unpack_from(octets, behind)
        behind += size + 8
        while left > 0 and end - behind > 7:
            size = NUMBER(octets, behind + 3)[0]
            if size == 0:
                return end
            behind += size + 8
            left -= size
        if left > 0:
            return end
    return min(behind, end)


def alike(octets, head, at, stride, most):
    """How many contents from `at` on, one every `stride` octets, begin with `head` and end as a frame (the first does), up to `most`."""
    count = 1
    for at in range(at + stride, at + most * stride, stride):
        if not octets.startswith(head, at) or octets[at + stride - 1] != END:
            break
        count += 1
    return count


def take_many(table, state, pool, width, count):
    """As hot.take, `count` times: the handles."""
    record = state[pool]
    if count == 1 and record >= 0:
        state[pool] = table[record]
        state[pool + 2] -= 1
        return [record]
    taken = []
    for _ in range(count):
        if record < 0:
            break
        taken.append(record)
        record = table[record]
    state[pool] = record
    fresh = count - len(taken)
    if fresh:
        first = state[pool + 1]
        state[pool + 1] = first + fresh * width
        taken.extend(range(first, first + fresh * width, width))
    state[pool + 2] -= count
    return taken


def count_publishes(channels, state, channel, logged, count):
    """As count_publish in ingest.py, `count` times."""
    count_publish(channels, state, channel, logged)
    number = channels[channel + layout.CHANNEL_PUBLISHED] + count - 1
    channels[channel + layout.CHANNEL_PUBLISHED] = number & MASK
    channels[channel + layout.CHANNEL_PUBLISHED_HIGH] += number >> 30
