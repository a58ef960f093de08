/* Publishes: method, content header and body frames from a receive buffer into blocks and queues (core/broker/ingest.py). */
#include "publish.h"
#include "match.h"
#include "octets.h"
#include "properties.h"
#include "queues.h"
#include "records.h"
#include "routes.h"

/* Rule "length": also over in features/length.py and is_over of ingest.py; test_homes.py holds them together. */
static int32_t is_over(const int32_t *queue, int32_t count, int32_t size)
{
    return (queue[QUEUE_LENGTH_MAX] >= 0 && count > queue[QUEUE_LENGTH_MAX])
           || (queue[QUEUE_OCTETS_MAX] >= 0 && size > queue[QUEUE_OCTETS_MAX]);
}

static int32_t fits(const leveret_tables *t, const int32_t *queue, int32_t body)
{
    int32_t count = queue[QUEUE_LENGTH] + 1;
    int32_t size = queue[QUEUE_OCTETS];
    if (queue[QUEUE_LIMITS] & LIMIT_REFUSES)
        return !is_over(queue, count, size + 1);
    size += body;
    for (int32_t entry = queue[QUEUE_HEAD]; is_over(queue, count, size); entry = t->entries[entry + ENTRY_NEXT]) {
        if (entry < 0 || queue[QUEUE_LIMITS] & LIMIT_DEAD_LETTERS)
            return 0;
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        if (queue[QUEUE_PLAIN] == PLAIN_LOGGED && record[MESSAGE_SEGMENT] == 0 && record[MESSAGE_KIND] & KIND_DURABLE)
            return 0;
        count -= 1;
        size -= record[MESSAGE_BODY];
    }
    return 1;
}

/* Rule "lifetime": also write_deadline in features/expiry.py and keep_limits of ingest.py; test_homes.py holds them together. */
static void keep_limits(const leveret_tables *t, int32_t queue, int32_t entry, int32_t expiration)
{
    int32_t *found = t->queues + queue;
    if (found[QUEUE_LIMITS] & LIMIT_EXPIRES) {
        int32_t ttl = found[QUEUE_TTL];
        if (expiration >= 0 && (ttl < 0 || expiration < ttl))
            ttl = expiration;
        int32_t moment = ttl < 0 ? 0 : (t->state[STATE_NOW] + ttl) & MASK;
        if (ttl >= 0 && moment == 0)
            moment = 1;
        t->entries[entry + ENTRY_DEADLINE] = moment;
        if (moment && (t->state[STATE_DUE] == 0 || (moment - t->state[STATE_DUE]) & 0x20000000))
            t->state[STATE_DUE] = moment;
    }
    if (!(found[QUEUE_LIMITS] & LIMIT_DROPS))
        return;
    while (is_over(found, found[QUEUE_LENGTH], found[QUEUE_OCTETS])) {
        int32_t oldest = found[QUEUE_HEAD];
        unlink_ready(t, queue, oldest);
        drop(t, oldest);
        t->state[STATE_DROPPED_HEAD] += 1;
    }
}

/* Rule "share": also Queue.over_share and may_push of ingest.py; test_homes.py holds them together. */
static int32_t may_push(const leveret_tables *t, int32_t slot, int32_t expiration, int32_t block_total, int32_t body)
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
        if (queue[QUEUE_PLAIN] == PLAIN_LOGGED && state[STATE_KIND] & KIND_DURABLE) {
            if (state[STATE_LOG_ROOM] < block_total * state[STATE_BLOCK_SIZE] + PLACE_SIZE * route[ROUTE_COUNT])
                return 0;
            answer = 2;
        }
        if (!(queue[QUEUE_LIMITS] & LIMIT_EXPIRES) && expiration >= 0)
            return 0;
        if (queue[QUEUE_LIMITS] & (LIMIT_DROPS | LIMIT_REFUSES) && !fits(t, queue, body))
            return 0;
        int32_t held = queue[QUEUE_LENGTH] + queue[QUEUE_UNSETTLED];
        if (held > 0) {
            if (held >= 4 * state[POOL_ENTRIES + 2] || held >= 4 * (state[POOL_MESSAGES + 2] - 1))
                return 0;
            if (queue[QUEUE_BLOCKS] + block_total > 4 * (state[POOL_BLOCKS + 2] - block_total))
                return 0;
        }
    }
    return answer;
}

static void put_aside(const leveret_tables *t, int32_t entry)
{
    int32_t message = t->entries[entry + ENTRY_MESSAGE];
    int32_t tail = t->state[STATE_LOGGED_TAIL];
    t->entries[entry + ENTRY_CONSUMER] = -1;
    t->state[STATE_LOGGED_TAIL] = entry;
    t->state[STATE_LOGGED_PLACES] += 1;
    t->state[STATE_LOGGED_OCTETS] += PLACE_SIZE;
    if (t->state[STATE_LOGGED_HEAD] < 0) {
        t->state[STATE_LOGGED_HEAD] = entry;
    } else {
        t->entries[tail + ENTRY_CONSUMER] = entry;
        if (t->entries[tail + ENTRY_MESSAGE] == message)
            return;
    }
    t->state[STATE_LOGGED_OCTETS] += t->messages[message + MESSAGE_FILLED] + RECORD_SIZE;
    t->state[STATE_LOGGED_COUNT] += 1;
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
    record[MESSAGE_SEGMENT] = 0;
    record[MESSAGE_KIND] = t->state[STATE_KIND];
    record[MESSAGE_LIFETIME] = t->state[STATE_LIFETIME];
    append(t, message, source, route, route_size);
    append(t, message, source, header + 19, properties_size);
    int32_t at = header + 20 + properties_size;
    while (body > 0) {
        int32_t size = size_of(source, at + 4);
        append(t, message, source, at + 7, size);
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

int32_t leveret_take_publish(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size)
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
        slot = leveret_find_way(t, source, route, route_size);
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
    if (!leveret_check_properties(state, source, header + 19, behind - 1))
        return ASK;
    int32_t expiration = state[STATE_LIFETIME];
    int32_t properties_size = behind - header - 20;
    int32_t blocks_needed = (route_size + properties_size + body + state[STATE_BLOCK_SIZE] - 1) / state[STATE_BLOCK_SIZE];
    int32_t logged = may_push(t, slot, expiration, blocks_needed, body);
    if (!logged)
        return ASK;
    int32_t whole = body_end(t, source, start, behind, body);
    if (whole < 0)
        return whole;
    int32_t message = fill(t, source, route, route_size, header, properties_size, body, blocks_needed);
    if (logged == 2)
        state[STATE_LOG_ROOM] -= blocks_needed * state[STATE_BLOCK_SIZE] + PLACE_SIZE * t->routes[slot + ROUTE_COUNT];
    state[STATE_LEFT] -= t->routes[slot + ROUTE_COUNT];
    for (int32_t left = t->routes[slot + ROUTE_COUNT]; left > 0; left--, target++) {
        int32_t entry = push(t, *target, message);
        if (t->queues[*target + QUEUE_LIMITS])
            keep_limits(t, *target, entry, expiration);
        activate(t, *target);
        if (logged == 2 && t->queues[*target + QUEUE_PLAIN] == PLAIN_LOGGED)
            put_aside(t, entry);
    }
    state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + 1) & MASK;
    if (t->channels[channel + CHANNEL_CONFIRM])
        count_publish(t, channel, logged);
    return whole;
}
