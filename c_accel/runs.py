"""The hot functions as CPython likes them where there is no C: a run of messages that are alike is taken, delivered and settled together.

The same state and the same octets as core/hot.py and core/ingest.py, which say what happens and why (tests/accel holds the forms
together). What differs is how: octets are compared and copied in whole pieces, records are read and written with one call of struct, and
what a run has in common (route, room, queue, channel) is looked at once. What is uncommon goes to those functions, one frame at a time.
Never on a board: it is all slices and tuples.
"""
import struct

from leveret.core import layout, log
from leveret.core.engine import Plain
from leveret.core.hot import activate, wake_channel
from leveret.core.ingest import check_properties, count_publish
from leveret.core.layout import MASK, NONE
from leveret.core.records import HEAD_SIZE, see_position, whole_position

METHOD_HEAD = struct.Struct(">BHIHH").unpack_from  # type, channel and size of a frame, then class and method
CONTENT_HEAD = struct.Struct(">BHIHHQ")  # the same, then class, weight and size of a body
FRAME_HEAD = struct.Struct(">BHI")
ACK_TAIL = struct.Struct(">QBB").unpack_from  # delivery tag, multiple, the end of the frame
RECORD_HEAD = struct.Struct(">BIHIHIIIQ").pack  # see core/records.py
DELIVERY = struct.Struct(">QB").pack  # delivery tag, redelivered
NUMBER = struct.Struct(">I").unpack_from

MESSAGE = struct.Struct("=10i").unpack_from  # a record of layout.py
NEW_MESSAGE = struct.Struct("=2i32s").pack_into  # MESSAGE_FIRST, MESSAGE_LAST, and what a run has in common
SHARED = struct.Struct("=8i").pack
ENTRY = struct.Struct("=8i").unpack_from  # up to ENTRY_CONSUMER
NEW_ENTRY = struct.Struct("=6i").pack_into  # up to ENTRY_REDELIVERED
BASIC_PUBLISH = b"\x00\x3c\x00\x28"
BASIC = 60
PUBLISH = 40
ACK = 80
END = 0xCE

ROUTE_AT = 13  # where exchange and routing key begin in the frame of a basic.publish
WINDOW = 8192  # octets that are looked at; and where all of them were taken
WINDOW_MAX = 65536
KINDS_MAX = 256  # properties that are known to be valid
KIND_SIZE_MAX = 256  # and octets of each


class Engine(Plain):
    """core/engine.py's Plain over runs. `methods`: frames of basic.publish that are known to lead to one queue; as many at most as the
    route cache has slots."""

    turn = 128

    def __init__(self, tables):
        Plain.__init__(self, tables)
        self.arena = owner(tables.arena)
        self.message_octets = owner(tables.messages)
        self.entry_octets = owner(tables.entries)
        self.block_size = tables.block_size
        self.methods = {}  # octets of the frame: (user and epoch of the route cache, slot in it, the route's place in it, the route)
        self.kinds = {}  # octets of properties: what check_properties says of them

    # In

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
        if len(self.methods) >= tables.state[layout.STATE_ROUTE_SLOTS]:
            self.methods.clear()
        header = at + 8 + NUMBER(octets, at + 3)[0]
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
        limits = tables.queues[queue + layout.QUEUE_LIMITS]
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
        entries, messages, blocks = [state[pool + 2] for pool in (layout.POOL_ENTRIES, layout.POOL_MESSAGES, layout.POOL_BLOCKS)]
        held = queues[queue + layout.QUEUE_LENGTH] + queues[queue + layout.QUEUE_UNSETTLED]
        count = min(entries, messages, (4 * min(entries, messages) - held + 4) // 5, blocks // needed,
                    (4 * blocks - queues[queue + layout.QUEUE_BLOCKS] + 4 * needed) // (5 * needed))
        return min(count, state[layout.STATE_LOG_ROOM] // (needed * self.block_size)) if logged else count

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
        message_octets, entry_octets = self.message_octets, self.entry_octets
        for message, entry, behind, first, last in zip(messages, entries, entries[1:] + [NONE], firsts, lasts):
            NEW_MESSAGE(message_octets, 4 * message, first, last, shared)
            NEW_ENTRY(entry_octets, 4 * entry, message, behind, previous, position, queue, 0)
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
        state[layout.STATE_LOG_ROOM] -= count * needed * self.block_size

    # Out

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        tables = self.tables
        channels, queues, state, entries = tables.channels, tables.queues, tables.state, tables.entries
        arena, block_size, entry_octets, message_octets = self.arena, self.block_size, self.entry_octets, self.message_octets
        queue = tables.consumers[consumer + layout.CONSUMER_QUEUE]
        if queues[queue + layout.QUEUE_LIMITS] & layout.LIMIT_EXPIRES:
            return Plain.pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end)
        channel = tables.consumers[consumer + layout.CONSUMER_CHANNEL]
        no_ack = tables.consumers[consumer + layout.CONSUMER_NO_ACK]
        limit = min(limit, queues[queue + layout.QUEUE_LENGTH], may_deliver(tables, consumer, channel, no_ack))
        entry = queues[queue + layout.QUEUE_HEAD]
        tag = channels[channel + layout.CHANNEL_TAG_HIGH] << 30 | channels[channel + layout.CHANNEL_TAG]
        room = end - at - prefix_size - 38
        names_size = route_of = body_of = NONE
        names = start = middle = ending = b""
        handles, places, records, parts = [], [], [], []
        for _ in range(limit):
            place = ENTRY(entry_octets, 4 * entry)
            record = MESSAGE(message_octets, 4 * place[0])
            first, _, route, properties, body, size, _, _, _, _ = record
            if size > room or body + 8 > frame_size_max:
                break
            room -= size + prefix_size + 38
            content = arena[first * block_size:first * block_size + size] if size <= block_size else self.gather(first, size)
            if body != body_of or route != route_of or route + properties != names_size or not content.startswith(names):
                body_of, route_of, names_size = body, route, route + properties
                names = bytes(content[:names_size])
                start, middle, ending = frames_of(bytes(prefix[:prefix_size]), names, route, body)
            tag += 1
            parts += (start, DELIVERY(tag, 1 if place[5] & 255 else 0), middle, content[names_size:], ending)
            handles.append(entry)
            places.append(place)
            records.append(record)
            entry = place[1]
        if not handles:
            return at
        count = len(handles)
        state[layout.STATE_CURSOR_BLOCK] = records[-1][1]
        state[layout.STATE_CURSOR_OFFSET] = (records[-1][5] - 1) % block_size + 1
        state[layout.STATE_DELIVERED] = (state[layout.STATE_DELIVERED] + count) & MASK
        queues[queue + layout.QUEUE_HEAD] = entry
        queues[queue + layout.QUEUE_LENGTH] -= count
        queues[queue + layout.QUEUE_OCTETS] -= sum([record[4] for record in records])
        if entry >= 0:
            entries[entry + layout.ENTRY_PREVIOUS] = NONE
        else:
            queues[queue + layout.QUEUE_TAIL] = NONE
        if no_ack:
            self.drop(queue, handles, places, records)
        else:
            self.hold(consumer, channel, queue, handles, tag - count)
        channels[channel + layout.CHANNEL_TAG] = tag & MASK
        channels[channel + layout.CHANNEL_TAG_HIGH] = tag >> 30
        octets = b"".join(parts)
        target[at:at + len(octets)] = octets
        return at + len(octets)

    def gather(self, block, size):
        """The first `size` octets of a chain."""
        arena, block_size, blocks = self.arena, self.block_size, self.tables.blocks
        parts = []
        while size > block_size:
            parts.append(arena[block * block_size:(block + 1) * block_size])
            size -= block_size
            block = blocks[block]
        parts.append(arena[block * block_size:block * block_size + size])
        return b"".join(parts)

    def hold(self, consumer, channel, queue, handles, tag):
        """Put entries, in their queue's order and out of it now, on a channel's unsettled list: their links are those they had."""
        tables = self.tables
        entries, channels = tables.entries, tables.channels
        tail = channels[channel + layout.CHANNEL_UNSETTLED_TAIL]
        entries[handles[0] + layout.ENTRY_PREVIOUS] = tail
        if tail >= 0:
            entries[tail + layout.ENTRY_NEXT] = handles[0]
        else:
            channels[channel + layout.CHANNEL_UNSETTLED_HEAD] = handles[0]
        for entry in handles:
            tag += 1
            entries[entry + layout.ENTRY_TAG] = tag & MASK
            entries[entry + layout.ENTRY_CONSUMER] = consumer
        entries[handles[-1] + layout.ENTRY_NEXT] = NONE
        count = len(handles)
        channels[channel + layout.CHANNEL_UNSETTLED_TAIL] = handles[-1]
        channels[channel + layout.CHANNEL_UNSETTLED] += count
        tables.queues[queue + layout.QUEUE_UNSETTLED] += count
        add_credit(tables.consumers, consumer, -count)

    # Settling

    def take_ack(self, channel, octets, at):
        """Take the basic.ack at `at`: the position behind it; `at` when it is for find_tag and settle in hot.py."""
        tables = self.tables
        channels = tables.channels
        tag, multiple, frame_end = ACK_TAIL(octets, at + 11)
        high = tag >> 30
        high_now = channels[channel + layout.CHANNEL_TAG_HIGH]
        if frame_end != END or tag == 0 or high != high_now and high + 1 != high_now:
            return at
        low = tag & MASK
        entry_octets = self.entry_octets
        entry = channels[channel + layout.CHANNEL_UNSETTLED_HEAD]
        handles, places = [], []
        while entry >= 0:
            place = ENTRY(entry_octets, 4 * entry)
            handles.append(entry)
            places.append(place)
            entry = place[1]
            if place[6] == low:
                prefetch = channels[channel + layout.CHANNEL_PREFETCH]
                if 0 < prefetch <= channels[channel + layout.CHANNEL_UNSETTLED]:
                    wake_channel(tables.queues, channels, tables.consumers, tables.state, channel)
                self.settle(channel, handles, places)
                return at + 21
            if not multiple & 1:
                return at
        return at

    def settle(self, channel, handles, places):
        """Settle entries from the head of a channel's unsettled list."""
        tables = self.tables
        state, queues, channels = tables.state, tables.queues, tables.channels
        message_octets = self.message_octets
        count = len(handles)
        behind = places[-1][1]
        channels[channel + layout.CHANNEL_UNSETTLED_HEAD] = behind
        if behind >= 0:
            tables.entries[behind + layout.ENTRY_PREVIOUS] = NONE
        else:
            channels[channel + layout.CHANNEL_UNSETTLED_TAIL] = NONE
        channels[channel + layout.CHANNEL_UNSETTLED] -= count
        state[layout.STATE_SETTLED] = (state[layout.STATE_SETTLED] + count) & MASK
        at = 0
        while at < count:
            _, _, _, _, queue, _, _, consumer = places[at]
            begun = at
            while at < count and places[at][4] == queue and places[at][7] == consumer:
                at += 1
            if queues[queue + layout.QUEUE_LENGTH] > 0:
                activate(queues, state, queue)
            queues[queue + layout.QUEUE_UNSETTLED] -= at - begun
            if consumer >= 0:
                add_credit(tables.consumers, consumer, at - begun)
            self.drop(queue, handles[begun:at], places[begun:at], [MESSAGE(message_octets, 4 * place[0]) for place in places[begun:at]])

    def drop(self, queue, handles, places, records):
        """Free entries of one queue that were the first ones of a list, and their references; `places` and `records`: what they and their
        messages were."""
        tables = self.tables
        state, messages, entries, blocks = tables.state, tables.messages, tables.entries, tables.blocks
        entry_free, message_free, block_free = [state[pool] for pool in (layout.POOL_ENTRIES, layout.POOL_MESSAGES, layout.POOL_BLOCKS)]
        entries_given = messages_given = blocks_given = blocks_held = 0
        for entry, (message, _, before, _, _, redelivered, tag, _), record in zip(handles, places, records):
            first, last, _, _, _, _, total, _, _, segment = record
            blocks_held += total
            references = messages[message + 7] - 1
            messages[message + 7] = references
            if references <= 0:
                blocks[last] = block_free
                block_free = first
                blocks_given += total
                messages[message] = message_free
                message_free = message
                messages_given += 1
            if before >= 0:
                entries[entry + 2] = NONE
            if tag:
                entries[entry + 6] = 0
            if segment > 0 and redelivered >= 0:
                entries[entry] = segment
                entries[entry + 1] = state[layout.STATE_SETTLED_LIST]
                state[layout.STATE_SETTLED_LIST] = entry
            else:
                entries[entry] = entry_free
                entry_free = entry
                entries_given += 1
        for pool, free, given in ((layout.POOL_ENTRIES, entry_free, entries_given), (layout.POOL_MESSAGES, message_free, messages_given),
                                  (layout.POOL_BLOCKS, block_free, blocks_given)):
            state[pool] = free
            state[pool + 2] += given
        tables.queues[queue + layout.QUEUE_BLOCKS] -= blocks_held


    # The log

    def write_taken(self, target, segment):
        """See records.write_taken."""
        tables = self.tables
        state, queues, messages, block_size = tables.state, tables.queues, tables.messages, self.block_size
        entry_octets, message_octets = self.entry_octets, self.message_octets
        entry = state[layout.STATE_LOGGED_HEAD]
        queue_of = low_of = position = identity = first = size = NONE
        parts = []
        while entry >= 0:
            message, _, _, low, queue, _, _, entry = ENTRY(entry_octets, 4 * entry)
            first, last, route, properties, body, size, _, _, arrived, _ = MESSAGE(message_octets, 4 * message)
            if queue == queue_of and low == low_of + 1:
                position += 1
            else:
                if parts:
                    see_position(queues, queue_of, position)
                position = whole_position(queues, queue, low)
                identity = queues[queue + layout.QUEUE_IDENTITY]
                queue_of = queue
            low_of = low
            parts += (RECORD_HEAD(log.MESSAGE, size + HEAD_SIZE - 5, 1, arrived, route, properties, body, identity, position),
                      self.arena[first * block_size:first * block_size + size] if size <= block_size else self.gather(first, size))
            messages[message + layout.MESSAGE_SEGMENT] = segment
        if parts:
            see_position(queues, queue_of, position)
            state[layout.STATE_CURSOR_BLOCK] = last
            state[layout.STATE_CURSOR_OFFSET] = (size - 1) % block_size + 1
        target[:] = b"".join(parts)
        state[layout.STATE_LOGGED_HEAD] = NONE
        state[layout.STATE_LOGGED_OCTETS] = state[layout.STATE_LOGGED_COUNT] = 0

    def gather_settled(self, runs, most):
        """See records.gather_settled."""
        state, entries, entry_octets = self.tables.state, self.tables.entries, self.entry_octets
        entry = state[layout.STATE_SETTLED_LIST]
        free = state[layout.POOL_ENTRIES]
        queue = segment = first = NONE
        made = count = given = 0
        while entry >= 0:
            segment_of, behind, _, position, queue_of, _, _, _ = ENTRY(entry_octets, 4 * entry)
            if queue_of == queue and segment_of == segment and (first - 1) & MASK == position:
                first = position
                count += 1
            elif queue_of == queue and segment_of == segment and (first + count) & MASK == position:
                count += 1
            elif made == most:
                break
            else:
                put_run(runs, made, queue, first, count, segment)
                made += 1
                queue, first, count, segment = queue_of, position, 1, segment_of
            entries[entry] = free
            free = entry
            given += 1
            entry = behind
        put_run(runs, made, queue, first, count, segment)
        state[layout.STATE_SETTLED_LIST] = entry
        state[layout.POOL_ENTRIES] = free
        state[layout.POOL_ENTRIES + 2] += given
        return made


def put_run(runs, number, queue, first, count, segment):
    """Note the run with this number, counted from 1, as records.gather_settled does; 0: there is none yet."""
    if number > 0:
        at = 4 * number - 4
        runs[at], runs[at + 1], runs[at + 2], runs[at + 3] = queue, first, count, segment


def owner(view):
    """What a view is of: slices of it are bytes."""
    return view.obj


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
    """How many contents from `at` on, one every `stride` octets, begin with `head` (the first does) and end as a frame, up to `most`."""
    count = 0
    for at in range(at, at + most * stride, stride):
        if not octets.startswith(head, at) or octets[at + stride - 1] != END:
            break
        count += 1
    return count


def take_many(table, state, pool, width, count):
    """As hot.take, `count` times: the handles."""
    record = state[pool]
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


def may_deliver(tables, consumer, channel, no_ack):
    """How many deliveries a consumer's credit and its channel's prefetch allow."""
    credit = tables.consumers[consumer + layout.CONSUMER_CREDIT]
    if no_ack:
        return layout.CREDIT_UNLIMITED if credit > 0 else 0
    prefetch = tables.channels[channel + layout.CHANNEL_PREFETCH]
    return min(credit, prefetch - tables.channels[channel + layout.CHANNEL_UNSETTLED]) if prefetch > 0 else credit


def add_credit(consumers, consumer, count):
    """Change a consumer's credit, unless it has no limit."""
    if consumers[consumer + layout.CONSUMER_CREDIT] != layout.CREDIT_UNLIMITED:
        consumers[consumer + layout.CONSUMER_CREDIT] += count


def frames_of(prefix, names, route, body):
    """The octets of a delivery (section 4.2.6) before its delivery tag, between redelivered and the body, and behind the body.

    `prefix` is the method frame up to and with the consumer tag; `names` are route (so many octets) and properties.
    """
    number = prefix[1] << 8 | prefix[2]
    start = FRAME_HEAD.pack(1, number, len(prefix) + 2 + route) + prefix[7:]
    head = CONTENT_HEAD.pack(2, number, len(names) - route + 12, BASIC, 0, body)
    middle = names[:route] + b"\xce" + head + names[route:] + b"\xce"
    return (start, middle + FRAME_HEAD.pack(3, number, body), b"\xce") if body else (start, middle, b"")
