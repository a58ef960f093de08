/* See hot.h. The functions stand in the order of core/hot.py and core/ingest.py and have their names. */
#include "hot.h"
#include "layout.h"

#include <string.h>

enum { END_OCTET = 0xCE, DEPTH_MAX = 8 };

static int32_t take(int32_t *table, int32_t *state, int32_t pool, int32_t width)
{
    int32_t record = state[pool];
    if (record >= 0) {
        state[pool] = table[record];
    } else {
        record = state[pool + 1];
        state[pool + 1] = record + width;
    }
    state[pool + 2] -= 1;
    return record;
}

static void give(int32_t *table, int32_t *state, int32_t pool, int32_t record)
{
    table[record] = state[pool];
    state[pool] = record;
    state[pool + 2] += 1;
}

void leveret_append(const leveret_tables *t, int32_t message, const uint8_t *source, int32_t start, int32_t size)
{
    int32_t *state = t->state;
    int32_t *record = t->messages + message;
    int32_t block_size = state[STATE_BLOCK_SIZE];
    int32_t used = record[MESSAGE_FILLED] % block_size;
    int32_t block = record[MESSAGE_LAST];
    record[MESSAGE_FILLED] += size;
    while (size > 0) {
        if (used == 0) {
            int32_t fresh = state[POOL_BLOCKS];
            if (fresh >= 0) {
                state[POOL_BLOCKS] = t->blocks[fresh];
            } else {
                fresh = state[POOL_BLOCKS + 1];
                state[POOL_BLOCKS + 1] = fresh + 1;
            }
            if (block >= 0)
                t->blocks[block] = fresh;
            else
                record[MESSAGE_FIRST] = fresh;
            block = fresh;
        }
        int32_t room = block_size - used;
        if (room > size)
            room = size;
        memcpy(t->arena + (size_t)block * (size_t)block_size + used, source + start, (size_t)room);
        start += room;
        size -= room;
        used = 0;
    }
    record[MESSAGE_LAST] = block;
}

static void extract(const leveret_tables *t, int32_t block, int32_t offset, uint8_t *target, int32_t at, int32_t size)
{
    int32_t block_size = t->state[STATE_BLOCK_SIZE];
    while (size > 0) {
        if (offset >= block_size) {
            offset -= block_size;
            block = t->blocks[block];
            continue;
        }
        int32_t room = block_size - offset;
        if (room > size)
            room = size;
        memcpy(target + at, t->arena + (size_t)block * (size_t)block_size + offset, (size_t)room);
        at += room;
        offset += room;
        size -= room;
    }
    t->state[STATE_CURSOR_BLOCK] = block;
    t->state[STATE_CURSOR_OFFSET] = offset;
}

static void release(const leveret_tables *t, int32_t message)
{
    int32_t *record = t->messages + message;
    int32_t *state = t->state;
    int32_t left = record[MESSAGE_REFERENCES] - 1;
    record[MESSAGE_REFERENCES] = left;
    if (left > 0)
        return;
    int32_t first = record[MESSAGE_FIRST];
    if (first >= 0) {
        t->blocks[record[MESSAGE_LAST]] = state[POOL_BLOCKS];
        state[POOL_BLOCKS] = first;
    }
    state[POOL_BLOCKS + 2] += record[MESSAGE_BLOCKS];
    record[0] = state[POOL_MESSAGES];
    state[POOL_MESSAGES] = message;
    state[POOL_MESSAGES + 2] += 1;
}

static int32_t push(const leveret_tables *t, int32_t queue, int32_t message)
{
    int32_t entry = take(t->entries, t->state, POOL_ENTRIES, ENTRY_WIDTH);
    int32_t *place = t->entries + entry;
    int32_t *found = t->queues + queue;
    int32_t *record = t->messages + message;
    int32_t tail = found[QUEUE_TAIL];
    int32_t position = found[QUEUE_POSITION];
    place[ENTRY_MESSAGE] = message;
    place[ENTRY_NEXT] = -1;
    place[ENTRY_PREVIOUS] = tail;
    place[ENTRY_POSITION] = position;
    place[ENTRY_QUEUE] = queue;
    place[ENTRY_REDELIVERED] = 0;
    if (tail >= 0)
        t->entries[tail + ENTRY_NEXT] = entry;
    else
        found[QUEUE_HEAD] = entry;
    found[QUEUE_TAIL] = entry;
    found[QUEUE_POSITION] = (position + 1) & MASK;
    found[QUEUE_LENGTH] += 1;
    found[QUEUE_OCTETS] += record[MESSAGE_BODY];
    found[QUEUE_BLOCKS] += record[MESSAGE_BLOCKS];
    record[MESSAGE_REFERENCES] += 1;
    return entry;
}

static void activate(const leveret_tables *t, int32_t queue)
{
    int32_t *found = t->queues + queue;
    if (found[QUEUE_ACTIVE] || found[QUEUE_CONSUMERS] == 0)
        return;
    found[QUEUE_ACTIVE] = 1;
    found[QUEUE_NEXT_ACTIVE] = -1;
    int32_t tail = t->state[STATE_ACTIVE_TAIL];
    if (tail >= 0)
        t->queues[tail + QUEUE_NEXT_ACTIVE] = queue;
    else
        t->state[STATE_ACTIVE_HEAD] = queue;
    t->state[STATE_ACTIVE_TAIL] = queue;
}

static void unlink_ready(const leveret_tables *t, int32_t queue, int32_t entry)
{
    int32_t *found = t->queues + queue;
    int32_t before = t->entries[entry + ENTRY_PREVIOUS];
    int32_t behind = t->entries[entry + ENTRY_NEXT];
    if (before >= 0)
        t->entries[before + ENTRY_NEXT] = behind;
    else
        found[QUEUE_HEAD] = behind;
    if (behind >= 0)
        t->entries[behind + ENTRY_PREVIOUS] = before;
    else
        found[QUEUE_TAIL] = before;
    found[QUEUE_LENGTH] -= 1;
    found[QUEUE_OCTETS] -= t->messages[t->entries[entry + ENTRY_MESSAGE] + MESSAGE_BODY];
}

static void hold(const leveret_tables *t, int32_t channel, int32_t entry, int32_t consumer)
{
    int32_t *place = t->entries + entry;
    int32_t *record = t->channels + channel;
    int32_t tail = record[CHANNEL_UNSETTLED_TAIL];
    place[ENTRY_TAG] = record[CHANNEL_TAG];
    place[ENTRY_CONSUMER] = consumer;
    place[ENTRY_NEXT] = -1;
    place[ENTRY_PREVIOUS] = tail;
    if (tail >= 0)
        t->entries[tail + ENTRY_NEXT] = entry;
    else
        record[CHANNEL_UNSETTLED_HEAD] = entry;
    record[CHANNEL_UNSETTLED_TAIL] = entry;
    record[CHANNEL_UNSETTLED] += 1;
    t->queues[place[ENTRY_QUEUE] + QUEUE_UNSETTLED] += 1;
}

static void unhold(const leveret_tables *t, int32_t channel, int32_t entry)
{
    int32_t *place = t->entries + entry;
    int32_t *record = t->channels + channel;
    int32_t before = place[ENTRY_PREVIOUS];
    int32_t behind = place[ENTRY_NEXT];
    if (before >= 0)
        t->entries[before + ENTRY_NEXT] = behind;
    else
        record[CHANNEL_UNSETTLED_HEAD] = behind;
    if (behind >= 0)
        t->entries[behind + ENTRY_PREVIOUS] = before;
    else
        record[CHANNEL_UNSETTLED_TAIL] = before;
    record[CHANNEL_UNSETTLED] -= 1;
    t->queues[place[ENTRY_QUEUE] + QUEUE_UNSETTLED] -= 1;
    int32_t consumer = place[ENTRY_CONSUMER];
    if (consumer >= 0 && t->consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED)
        t->consumers[consumer + CONSUMER_CREDIT] += 1;
}

static void drop(const leveret_tables *t, int32_t entry)
{
    int32_t *place = t->entries + entry;
    int32_t message = place[ENTRY_MESSAGE];
    int32_t segment = t->messages[message + MESSAGE_SEGMENT];
    place[ENTRY_TAG] = 0;
    t->queues[place[ENTRY_QUEUE] + QUEUE_BLOCKS] -= t->messages[message + MESSAGE_BLOCKS];
    release(t, message);
    if (segment > 0 && place[ENTRY_REDELIVERED] >= 0) {
        place[ENTRY_MESSAGE] = segment;
        place[ENTRY_NEXT] = t->state[STATE_SETTLED_LIST];
        t->state[STATE_SETTLED_LIST] = entry;
    } else {
        give(t->entries, t->state, POOL_ENTRIES, entry);
    }
}

static void settle(const leveret_tables *t, int32_t channel, int32_t last, int32_t multiple)
{
    int32_t count = 0;
    int32_t entry = multiple ? t->channels[channel + CHANNEL_UNSETTLED_HEAD] : last;
    for (;;) {
        int32_t behind = t->entries[entry + ENTRY_NEXT];
        unhold(t, channel, entry);
        drop(t, entry);
        count += 1;
        if (entry == last)
            break;
        entry = behind;
    }
    t->state[STATE_SETTLED] = (t->state[STATE_SETTLED] + count) & MASK;
}

static int32_t find_tag(const leveret_tables *t, int32_t channel, int32_t tag)
{
    const int32_t *entries = t->entries;
    int32_t entry = t->channels[channel + CHANNEL_UNSETTLED_HEAD];
    int32_t other = t->channels[channel + CHANNEL_UNSETTLED_TAIL];
    while (entry >= 0 && entries[entry + ENTRY_TAG] != tag) {
        if (entries[other + ENTRY_TAG] == tag)
            return other;
        if (entry == other)
            return -1;
        entry = entries[entry + ENTRY_NEXT];
        if (entry == other)
            return -1;
        other = entries[other + ENTRY_PREVIOUS];
    }
    return entry;
}

static void next_number(int32_t *place)
{
    place[0] = (place[0] + 1) & MASK;
    if (place[0] == 0)
        place[1] += 1;
}

static void put_number(uint8_t *target, int32_t high, int32_t low)
{
    target[0] = (uint8_t)(high >> 26);
    target[1] = (uint8_t)(high >> 18);
    target[2] = (uint8_t)(high >> 10);
    target[3] = (uint8_t)(high >> 2);
    target[4] = (uint8_t)((high & 3) << 6 | low >> 24);
    target[5] = (uint8_t)(low >> 16);
    target[6] = (uint8_t)(low >> 8);
    target[7] = (uint8_t)low;
}

static void put_size(uint8_t *target, int32_t size)
{
    target[0] = (uint8_t)(size >> 24);
    target[1] = (uint8_t)(size >> 16);
    target[2] = (uint8_t)(size >> 8);
    target[3] = (uint8_t)size;
}

static void put_frame(uint8_t *target, int32_t type, int32_t channel_number, int32_t size)
{
    target[0] = (uint8_t)type;
    target[1] = (uint8_t)(channel_number >> 8);
    target[2] = (uint8_t)channel_number;
    put_size(target + 3, size);
}

static int32_t put_content_header(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at)
{
    const int32_t *record = t->messages + message;
    int32_t size = record[MESSAGE_PROPERTIES];
    put_frame(target + at, 2, channel_number, size + 12);
    target[at + 7] = 0;
    target[at + 8] = 60;
    target[at + 9] = 0;
    target[at + 10] = 0;
    put_number(target + at + 11, 0, record[MESSAGE_BODY]);
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + 19, size);
    target[at + 19 + size] = END_OCTET;
    return at + 20 + size;
}

int32_t leveret_put_body(const leveret_tables *t, int32_t left, int32_t frame_size_max, int32_t channel_number, uint8_t *target, int32_t at,
                         int32_t end)
{
    while (left > 0 && end - at > 8) {
        int32_t size = frame_size_max - 8;
        if (size > left)
            size = left;
        if (size > end - at - 8)
            size = end - at - 8;
        put_frame(target + at, 3, channel_number, size);
        extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + 7, size);
        target[at + 7 + size] = END_OCTET;
        at += 8 + size;
        left -= size;
    }
    return at;
}

static int32_t put_deliver(const leveret_tables *t, const uint8_t *prefix, int32_t prefix_size, int32_t channel, int32_t message,
                           int32_t redelivered, uint8_t *target, int32_t at)
{
    int32_t route = t->messages[message + MESSAGE_ROUTE];
    memcpy(target + at, prefix, (size_t)prefix_size);
    put_size(target + at + 3, prefix_size + 9 + route - 7);
    at += prefix_size;
    put_number(target + at, t->channels[channel + CHANNEL_TAG_HIGH], t->channels[channel + CHANNEL_TAG]);
    target[at + 8] = (uint8_t)redelivered;
    extract(t, t->messages[message + MESSAGE_FIRST], 0, target, at + 9, route);
    at += 9 + route;
    target[at] = END_OCTET;
    return at + 1;
}

int32_t leveret_pump(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                     int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end)
{
    int32_t *reader = t->consumers + consumer;
    int32_t queue = reader[CONSUMER_QUEUE];
    int32_t channel = reader[CONSUMER_CHANNEL];
    int32_t no_ack = reader[CONSUMER_NO_ACK];
    int32_t number = prefix[1] << 8 | prefix[2];
    int32_t prefetch = t->channels[channel + CHANNEL_PREFETCH];
    while (limit > 0) {
        int32_t entry = t->queues[queue + QUEUE_HEAD];
        if (entry < 0 || reader[CONSUMER_CREDIT] <= 0)
            break;
        if (prefetch > 0 && no_ack == 0 && t->channels[channel + CHANNEL_UNSETTLED] >= prefetch)
            break;
        int32_t message = t->entries[entry + ENTRY_MESSAGE];
        const int32_t *record = t->messages + message;
        int32_t body = record[MESSAGE_BODY];
        int32_t size = prefix_size + 10 + record[MESSAGE_ROUTE] + 20 + record[MESSAGE_PROPERTIES] + 8 + body;
        if (at + size > end || body + 8 > frame_size_max)
            break;
        next_number(t->channels + channel + CHANNEL_TAG);
        at = put_deliver(t, prefix, prefix_size, channel, message, t->entries[entry + ENTRY_REDELIVERED] & 255 ? 1 : 0, target, at);
        at = put_content_header(t, message, number, target, at);
        at = leveret_put_body(t, body, frame_size_max, number, target, at, end);
        unlink_ready(t, queue, entry);
        if (no_ack) {
            drop(t, entry);
        } else {
            hold(t, channel, entry, consumer);
            if (reader[CONSUMER_CREDIT] != CREDIT_UNLIMITED)
                reader[CONSUMER_CREDIT] -= 1;
        }
        t->state[STATE_DELIVERED] = (t->state[STATE_DELIVERED] + 1) & MASK;
        limit -= 1;
    }
    return at;
}

/* core/deliver.py */

static int32_t next_active(const leveret_tables *t)
{
    int32_t queue = t->state[STATE_ACTIVE_HEAD];
    if (queue >= 0) {
        int32_t behind = t->queues[queue + QUEUE_NEXT_ACTIVE];
        t->state[STATE_ACTIVE_HEAD] = behind;
        if (behind < 0)
            t->state[STATE_ACTIVE_TAIL] = -1;
        t->queues[queue + QUEUE_ACTIVE] = 0;
    }
    return queue;
}

static int32_t has_credit(const leveret_tables *t, int32_t consumer)
{
    const int32_t *record = t->consumers + consumer;
    const int32_t *channel = t->channels + record[CONSUMER_CHANNEL];
    if (record[CONSUMER_CREDIT] <= 0)
        return 0;
    return record[CONSUMER_NO_ACK] || channel[CHANNEL_PREFETCH] == 0 || channel[CHANNEL_UNSETTLED] < channel[CHANNEL_PREFETCH];
}

/* See SendBuffer.room. */
static void make_room(leveret_output *output)
{
    if (output->start && (output->start == output->end || output->start > output->size / 2)) {
        int32_t left = output->end - output->start;
        if (left)
            memmove(output->octets, output->octets + output->start, (size_t)left);
        output->start = 0;
        output->end = left;
    }
}

/* Up to `most` deliveries to a consumer: how many; negative when core/deliver.py has to go on: less one, how many were made. */
static int32_t deliver(const leveret_tables *t, leveret_round *r, int32_t consumer, int32_t most)
{
    const leveret_reader *reader = r->readers + consumer / CONSUMER_WIDTH;
    if (!reader->prefix || reader->output->busy)
        return -1;
    leveret_output *output = reader->output;
    const int32_t *length = t->queues + t->consumers[consumer + CONSUMER_QUEUE] + QUEUE_LENGTH;
    int32_t before = *length;
    make_room(output);
    output->end = leveret_pump(t, consumer, most, reader->prefix, reader->prefix_size, reader->frame_size_max, output->octets, output->end,
                               output->size - r->reply_room);
    int32_t count = before - *length;
    if (count && !output->is_touched) {
        output->is_touched = 1;
        output->next_touched = r->touched;
        r->touched = output;
    }
    return count < most && *length > 0 && has_credit(t, consumer) ? -1 - count : count;
}

/* A queue's turn: true when core/deliver.py has to go on with it, behind `done` and `idle`. */
static int32_t take_turn(const leveret_tables *t, leveret_round *r, int32_t queue)
{
    int32_t place = queue / QUEUE_WIDTH;
    int32_t count = r->row_counts[place];
    const int32_t *row = r->rows + (size_t)place * (size_t)r->row_size;
    int32_t *found = t->queues + queue;
    r->done = 0;
    r->idle = 0;
    if (count == 0)
        return 1;
    if (count == 1) {
        int32_t made = deliver(t, r, row[0], r->turn);
        r->done = made < 0 ? -1 - made : made;
        return made < 0;
    }
    while (r->done < r->turn && r->idle < count && found[QUEUE_HEAD] >= 0) {
        int32_t next = found[QUEUE_TURN] < count ? found[QUEUE_TURN] : 0;
        int32_t made = deliver(t, r, row[next], 1);
        if (made < 0)
            return 1;
        found[QUEUE_TURN] = next + 1;
        if (made) {
            r->done += 1;
            r->idle = 0;
        } else {
            r->idle += 1;
        }
    }
    return 0;
}

int32_t leveret_next_turn(const leveret_tables *t, leveret_round *r)
{
    while (r->turns > 0 && r->left > 0) {
        r->turns -= 1;
        int32_t queue = next_active(t);
        if (queue < 0 || take_turn(t, r, queue))
            return queue;
        r->left -= r->done;
        if (r->done >= r->turn)
            activate(t, queue);
    }
    return -1;
}

/* core/ingest.py */

static int32_t check_table(const uint8_t *source, int32_t at, int32_t end, int32_t depth);

static int32_t size_of(const uint8_t *source, int32_t at)
{
    return source[at] << 16 | source[at + 1] << 8 | source[at + 2];
}

static int32_t check_array(const uint8_t *source, int32_t at, int32_t end, int32_t depth);

static int32_t value_end(const uint8_t *source, int32_t at, int32_t end, int32_t depth)
{
    int32_t size = -1;
    uint8_t letter = source[at];
    at += 1;
    switch (letter) {
    case 'V':
        size = 0;
        break;
    case 't': case 'b': case 'B':
        size = 1;
        break;
    case 's': case 'u':
        size = 2;
        break;
    case 'I': case 'i': case 'f':
        size = 4;
        break;
    case 'D':
        size = 5;
        break;
    case 'l': case 'L': case 'd': case 'T':
        size = 8;
        break;
    case 'S': case 'x': case 'A': case 'F':
        break;
    default:
        return -1;
    }
    if (size >= 0)
        return size <= end - at ? at + size : -1;
    if (end - at < 4 || source[at])
        return -1;
    size = size_of(source, at + 1);
    at += 4;
    if (size > end - at)
        return -1;
    if (letter == 'F' && !check_table(source, at, at + size, depth + 1))
        return -1;
    if (letter == 'A' && !check_array(source, at, at + size, depth + 1))
        return -1;
    return at + size;
}

static int32_t check_table(const uint8_t *source, int32_t at, int32_t end, int32_t depth)
{
    if (depth > DEPTH_MAX)
        return 0;
    while (at < end) {
        int32_t size = source[at];
        if (end - at - 1 <= size)
            return 0;
        at += 1;
        if (depth == 1 && (size == 2 || size == 3) && source[at + size - 1] == 'C' && source[at + size - 2] == 'C'
            && (size == 2 || source[at] == 'B'))
            return 0;
        for (int32_t behind = at + size; at < behind; at++)
            if (source[at] > 127)
                return 0;
        at = value_end(source, at, end, depth);
        if (at < 0)
            return 0;
    }
    return 1;
}

static int32_t check_array(const uint8_t *source, int32_t at, int32_t end, int32_t depth)
{
    if (depth > DEPTH_MAX)
        return 0;
    while (at < end) {
        at = value_end(source, at, end, depth);
        if (at < 0)
            return 0;
    }
    return 1;
}

static int32_t check_properties(const uint8_t *source, int32_t at, int32_t end)
{
    int32_t flags = source[at] << 8 | source[at + 1];
    int32_t kind = 1;
    if (flags & 0x0113)
        return 0;
    at += 2;
    for (int32_t bit = 0x8000; bit > 2; bit >>= 1) {
        if (!(flags & bit))
            continue;
        int32_t size = 1;
        if (bit == 0x2000) {
            if (end - at < 4 || source[at])
                return 0;
            size = 4 + size_of(source, at + 1);
            if (size > end - at || !check_table(source, at + 4, at + size, 1))
                return 0;
        } else if (bit == 0x1000) {
            if (at < end && source[at] == 2)
                kind = 2;
        } else if (bit == 0x0040) {
            size = 8;
        } else if (bit != 0x0800 && at < end) {
            size = 1 + source[at];
            if (bit == 0x0200 && size == 22)
                return 0;
        }
        at += size;
        if (at > end)
            return 0;
    }
    return at == end ? kind : 0;
}

static int32_t route_hash(const uint8_t *source, int32_t at, int32_t size)
{
    int32_t found = size;
    for (int32_t end = at + size; at < end; at++)
        found = ((found & 0x3FFFF) * 2039 + source[at] * 31 + (found >> 18)) & 0xFFFFFFF;
    return found ^ found >> 13;
}

static int32_t is_route(const leveret_tables *t, int32_t slot, const uint8_t *source, int32_t at, int32_t size)
{
    const int32_t *route = t->routes + slot;
    return route[ROUTE_SIZE] == size && route[ROUTE_EPOCH] == t->state[STATE_ROUTE_EPOCH] && route[ROUTE_USER] == t->state[STATE_USER]
           && memcmp(t->route_octets + route[ROUTE_OCTETS], source + at, (size_t)size) == 0;
}

static int32_t find_route(const leveret_tables *t, const uint8_t *source, int32_t at, int32_t size)
{
    int32_t slot = t->state[STATE_ROUTE_LAST];
    if (is_route(t, slot, source, at, size))
        return slot;
    int32_t slots = t->state[STATE_ROUTE_SLOTS];
    int32_t place = route_hash(source, at, size) & (slots - 1);
    for (int32_t probes = ROUTE_PROBES; probes > 0; probes--) {
        slot = place * ROUTE_WIDTH;
        if (is_route(t, slot, source, at, size)) {
            t->state[STATE_ROUTE_LAST] = slot;
            return slot;
        }
        place = (place + 1) & (slots - 1);
    }
    return -1;
}

static int32_t may_push(const leveret_tables *t, int32_t slot, int32_t kind, int32_t block_total)
{
    const int32_t *state = t->state;
    const int32_t *route = t->routes + slot;
    int32_t left = route[ROUTE_COUNT], answer = 1;
    if (state[POOL_BLOCKS + 2] < block_total || state[POOL_MESSAGES + 2] < 1 || state[POOL_ENTRIES + 2] < left)
        return 0;
    for (const int32_t *target = t->route_targets + route[ROUTE_TARGETS]; left > 0; target++, left--) {
        const int32_t *queue = t->queues + *target;
        if (queue[QUEUE_PLAIN] == NOT_PLAIN)
            return 0;
        if (queue[QUEUE_PLAIN] == PLAIN_LOGGED && kind == 2) {
            if (route[ROUTE_COUNT] > 1 || state[STATE_LOG_ROOM] < block_total * state[STATE_BLOCK_SIZE])
                return 0;
            answer = 2;
        }
        int32_t held = queue[QUEUE_LENGTH] + queue[QUEUE_UNSETTLED];
        if (held > 0) {
            if (held >= 4 * state[POOL_ENTRIES + 2] || held >= 4 * state[POOL_MESSAGES + 2])
                return 0;
            if (queue[QUEUE_BLOCKS] + block_total > 4 * state[POOL_BLOCKS + 2])
                return 0;
        }
    }
    return answer;
}

static void put_aside(const leveret_tables *t, int32_t entry)
{
    t->entries[entry + ENTRY_CONSUMER] = -1;
    if (t->state[STATE_LOGGED_HEAD] < 0)
        t->state[STATE_LOGGED_HEAD] = entry;
    else
        t->entries[t->state[STATE_LOGGED_TAIL] + ENTRY_CONSUMER] = entry;
    t->state[STATE_LOGGED_TAIL] = entry;
}

static int32_t fill(const leveret_tables *t, const uint8_t *source, int32_t route, int32_t route_size, int32_t header,
                    int32_t properties_size, int32_t body, int32_t block_total)
{
    int32_t message = take(t->messages, t->state, POOL_MESSAGES, MESSAGE_WIDTH);
    int32_t *record = t->messages + message;
    t->state[POOL_BLOCKS + 2] -= block_total;
    record[MESSAGE_FIRST] = -1;
    record[MESSAGE_LAST] = -1;
    record[MESSAGE_ROUTE] = route_size;
    record[MESSAGE_PROPERTIES] = properties_size;
    record[MESSAGE_BODY] = body;
    record[MESSAGE_FILLED] = 0;
    record[MESSAGE_BLOCKS] = block_total;
    record[MESSAGE_REFERENCES] = 0;
    record[MESSAGE_ARRIVED] = t->state[STATE_SECONDS];
    leveret_append(t, message, source, route, route_size);
    leveret_append(t, message, source, header + 19, properties_size);
    int32_t at = header + 20 + properties_size;
    while (body > 0) {
        int32_t size = size_of(source, at + 4);
        leveret_append(t, message, source, at + 7, size);
        at += size + 8;
        body -= size;
    }
    return message;
}

static void count_publish(const leveret_tables *t, int32_t channel, int32_t logged)
{
    int32_t *record = t->channels + channel;
    int32_t before = record[CHANNEL_PUBLISHED];
    next_number(record + CHANNEL_PUBLISHED);
    if (record[CHANNEL_COUNTED] < logged) {
        if (record[CHANNEL_COUNTED] == 1) {
            record[CHANNEL_COUNTED] = 2;
            return;
        }
        record[CHANNEL_COUNTED] = logged;
        record[CHANNEL_COUNTED_FROM] = before;
        record[CHANNEL_NEXT_COUNTED] = t->state[STATE_COUNTED_HEAD];
        t->state[STATE_COUNTED_HEAD] = channel;
    }
}

static int32_t header_end(const leveret_tables *t, const uint8_t *source, int32_t start, int32_t header)
{
    const int32_t *state = t->state;
    int32_t left = state[STATE_END] - header;
    if (left < 7)
        return INCOMPLETE;
    int32_t size = size_of(source, header + 4);
    if (source[header] != 2 || source[header + 1] != source[start + 1] || source[header + 2] != source[start + 2] || source[header + 3])
        return ASK;
    if (size < 14 || size > state[STATE_FRAME_MAX] || size - 12 > state[STATE_PROPERTIES_MAX] || size + 8 > state[STATE_SIZE])
        return ASK;
    if (left < size + 8)
        return INCOMPLETE;
    const uint8_t *at = source + header + 7;
    if (at[size] != END_OCTET || at[0] || at[1] != 60 || at[2] || at[3] || at[4] || at[5] || at[6] || at[7] || at[8] > 31)
        return ASK;
    if ((at[8] << 24 | at[9] << 16 | at[10] << 8 | at[11]) > state[STATE_CONTENT_MAX])
        return ASK;
    return header + size + 8;
}

static int32_t body_end(const leveret_tables *t, const uint8_t *source, int32_t start, int32_t at, int32_t left)
{
    const int32_t *state = t->state;
    int32_t end = state[STATE_END];
    if (at - start + left + 8 > state[STATE_SIZE])
        return ASK;
    while (left > 0) {
        if (end - at < 7)
            return INCOMPLETE;
        int32_t size = size_of(source, at + 4);
        if (source[at] != 3 || source[at + 1] != source[start + 1] || source[at + 2] != source[start + 2] || source[at + 3])
            return ASK;
        if (size == 0 || size > left || size > state[STATE_FRAME_MAX])
            return ASK;
        if (end - at < size + 8)
            return INCOMPLETE;
        if (source[at + 7 + size] != END_OCTET)
            return ASK;
        at += size + 8;
        left -= size;
    }
    return at;
}

static int32_t take_publish(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size)
{
    int32_t *state = t->state;
    int32_t start = state[STATE_AT];
    int32_t route = start + 13;
    int32_t route_size = size - 7;
    if (route_size < 2)
        return ASK;
    int32_t names = 1 + source[route];
    if (names >= route_size || names + 1 + source[route + names] != route_size || source[start + 6 + size] & 2)
        return ASK;
    int32_t slot = find_route(t, source, route, route_size);
    if (slot < 0)
        return ASK_ROUTE;
    const int32_t *target = t->route_targets + t->routes[slot + ROUTE_TARGETS];
    if (t->queues[*target + QUEUE_PLAIN] == NOT_PLAIN)
        return ASK;
    int32_t header = start + size + 8;
    int32_t behind = header_end(t, source, start, header);
    if (behind < 0)
        return behind;
    int32_t body = source[header + 15] << 24 | source[header + 16] << 16 | source[header + 17] << 8 | source[header + 18];
    int32_t kind = check_properties(source, header + 19, behind - 1);
    if (kind == 0)
        return ASK;
    int32_t properties_size = behind - header - 20;
    int32_t blocks_needed = (route_size + properties_size + body + state[STATE_BLOCK_SIZE] - 1) / state[STATE_BLOCK_SIZE];
    int32_t logged = may_push(t, slot, kind, blocks_needed);
    if (!logged)
        return ASK;
    int32_t whole = body_end(t, source, start, behind, body);
    if (whole < 0)
        return whole;
    int32_t message = fill(t, source, route, route_size, header, properties_size, body, blocks_needed);
    t->messages[message + MESSAGE_SEGMENT] = kind == 2 ? 0 : -1;
    for (int32_t left = t->routes[slot + ROUTE_COUNT]; left > 0; left--, target++) {
        int32_t entry = push(t, *target, message);
        activate(t, *target);
        if (logged == 2) {
            state[STATE_LOG_ROOM] -= blocks_needed * state[STATE_BLOCK_SIZE];
            put_aside(t, entry);
        }
    }
    state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + 1) & MASK;
    if (t->channels[channel + CHANNEL_CONFIRM])
        count_publish(t, channel, logged);
    return whole;
}

static int32_t take_ack(const leveret_tables *t, const uint8_t *source, int32_t channel)
{
    int32_t place = t->state[STATE_AT] + 11;
    const uint8_t *at = source + place;
    const int32_t *record = t->channels + channel;
    if (at[0] || record[CHANNEL_PREFETCH])
        return ASK;
    int32_t high = at[1] << 18 | at[2] << 10 | at[3] << 2 | at[4] >> 6;
    int32_t low = (at[4] & 63) << 24 | at[5] << 16 | at[6] << 8 | at[7];
    int32_t multiple = at[8] & 1;
    int32_t last;
    if (multiple && high == 0 && low == 0) {
        last = record[CHANNEL_UNSETTLED_TAIL];
        if (last < 0)
            return place + 10;
    } else {
        if (high != record[CHANNEL_TAG_HIGH] && high + 1 != record[CHANNEL_TAG_HIGH])
            return ASK;
        last = find_tag(t, channel, low);
        if (last < 0)
            return ASK;
    }
    int32_t entry = multiple ? record[CHANNEL_UNSETTLED_HEAD] : last;
    for (;;) {
        int32_t queue = t->entries[entry + ENTRY_QUEUE];
        if (t->queues[queue + QUEUE_LENGTH] > 0)
            activate(t, queue);
        if (entry == last)
            break;
        entry = t->entries[entry + ENTRY_NEXT];
    }
    settle(t, channel, last, multiple);
    return place + 10;
}

int32_t leveret_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source)
{
    int32_t *state = t->state;
    int32_t end = state[STATE_END];
    for (;;) {
        int32_t at = state[STATE_AT];
        if (end - at < 7)
            return INCOMPLETE;
        int32_t number = source[at + 1] << 8 | source[at + 2];
        if (source[at] != 1 || source[at + 3] || number >= state[STATE_NUMBERS])
            return ASK;
        int32_t channel = numbers[number];
        int32_t size = size_of(source, at + 4);
        if (channel < 0 || size < 5 || size > state[STATE_FRAME_MAX] || size + 8 > state[STATE_SIZE])
            return ASK;
        if (!t->channels[channel + CHANNEL_PLAIN])
            return ASK;
        if (end - at < size + 8)
            return INCOMPLETE;
        if (source[at + 7 + size] != END_OCTET || source[at + 7] || source[at + 8] != 60 || source[at + 9])
            return ASK;
        int32_t behind;
        if (source[at + 10] == 40)
            behind = take_publish(t, source, channel, size);
        else if (source[at + 10] == 80 && size == 13)
            behind = take_ack(t, source, channel);
        else
            return ASK;
        if (behind < 0)
            return behind;
        state[STATE_AT] = behind;
    }
}
