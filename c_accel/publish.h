/* What every family does with a message that it has read: which queues take it without a look at it, and its places there
 * (core/broker/publish.py); and what settle.c has for it. */
#ifndef LEVERET_PUBLISH_H
#define LEVERET_PUBLISH_H

#include "identities.h"
#include "queues.h"
#include "records.h"


/* Rule "length": also over in features/length.py and is_over of publish.py; test_homes.py holds them together. */
static inline int32_t is_over(const int32_t *queue, int32_t count, int32_t size)
{
    return (queue[QUEUE_LENGTH_MAX] >= 0 && count > queue[QUEUE_LENGTH_MAX])
           || (queue[QUEUE_OCTETS_MAX] >= 0 && size > queue[QUEUE_OCTETS_MAX]);
}

static inline int32_t fits(const leveret_tables *t, const int32_t *queue, int32_t body)
{
    int32_t count = queue[QUEUE_LENGTH] + 1;
    int32_t size = queue[QUEUE_OCTETS];
    if (queue[QUEUE_LIMITS] & LIMIT_REFUSES)
        return !is_over(queue, count, size + 1);
    size += body;
    for (int32_t entry = queue[QUEUE_HEAD]; is_over(queue, count, size); entry = t->entries[entry + ENTRY_NEXT]) {
        if (entry < 0 || queue[QUEUE_LIMITS] & (LIMIT_DEAD_LETTERS | LIMIT_LEVELS))
            return 0;
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        if (queue[QUEUE_PLAIN] == PLAIN_LOGGED && record[MESSAGE_SEGMENT] == 0 && record[MESSAGE_KIND] & KIND_DURABLE)
            return 0;
        count -= 1;
        size -= record[MESSAGE_BODY];
    }
    return 1;
}

/* Rule "lifetime": also write_deadline in features/expiry.py and keep_limits of publish.py; test_homes.py holds them together. */
static inline void keep_limits(const leveret_tables *t, int32_t queue, int32_t entry, int32_t expiration)
{
    int32_t *queue_record = t->queues + queue;
    if (queue_record[QUEUE_LIMITS] & LIMIT_LEVELS)
        to_level(t, queue, entry, queue_record[QUEUE_LIMITS] >> LIMIT_HIGHEST & 255);
    if (queue_record[QUEUE_LIMITS] & LIMIT_EXPIRES) {
        int32_t ttl = queue_record[QUEUE_TTL];
        if (expiration >= 0 && (ttl < 0 || expiration < ttl))
            ttl = expiration;
        int32_t moment = ttl < 0 ? 0 : (t->state[STATE_NOW] + ttl) & MASK;
        if (ttl >= 0 && moment == 0)
            moment = 1;
        t->entries[entry + ENTRY_DEADLINE] = moment;
        if (moment && (t->state[STATE_DUE] == 0 || (moment - t->state[STATE_DUE]) & 0x20000000))
            t->state[STATE_DUE] = moment;
    }
    if (!(queue_record[QUEUE_LIMITS] & LIMIT_DROPS))
        return;
    while (is_over(queue_record, queue_record[QUEUE_LENGTH], queue_record[QUEUE_OCTETS])) {
        int32_t oldest = queue_record[QUEUE_HEAD];
        unlink_ready(t, queue, oldest);
        if (queue_record[QUEUE_LIMITS] & LIMIT_DEAD_LETTERS) {
            leveret_bury(t, oldest); /* may_push has planned it */
            t->letters->buried = oldest;
        } else {
            drop(t, oldest);
        }
        t->state[STATE_DROPPED_HEAD] += 1;
    }
}

/* What a queue's limits say of one more message, which goes to `count` queues: whether C may put it there. */
static inline int32_t limits_allow(const leveret_tables *t, int32_t target, int32_t count, int32_t block_total, int32_t body, int32_t logged)
{
    const int32_t *queue = t->queues + target;
    int32_t limits = queue[QUEUE_LIMITS];
    if (limits & (LIMIT_DROPS | LIMIT_REFUSES) && !fits(t, queue, body)
        && (count > 1 || !leveret_may_drop_head(t, target, body, block_total, logged)))
        return 0;
    if (limits & LIMIT_LATEST && !leveret_may_replace(t, target, count))
        return 0;
    return !(limits & LIMIT_REMEMBERS) || leveret_is_new_id(t->identities, target, count);
}

/* Rule "share": also Queue.over_share and may_push of publish.py; test_homes.py holds them together. */
static inline int32_t may_push(const leveret_tables *t, int32_t slot, int32_t expiration, int32_t block_total, int32_t body)
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
        int32_t is_stream = queue[QUEUE_PLAIN] == PLAIN_STREAM, durable = state[STATE_KIND] & KIND_DURABLE;
        if (queue[QUEUE_PLAIN] == PLAIN_PAGED) { /* each place may be a chunk of its own */
            if (!durable || expiration >= 0 || t->chunk_pool[2] - state[STATE_LOGGED_PLACES] - route[ROUTE_COUNT] <= t->chunk_reserve
                || state[STATE_LOG_ROOM] - state[STATE_LOGGED_OCTETS] < block_total * state[STATE_BLOCK_SIZE] + PLACE_SIZE * route[ROUTE_COUNT])
                return 0;
            if (answer < PLAIN_LOGGED)
                answer = PLAIN_LOGGED;
            continue;
        }
        if (is_stream || (queue[QUEUE_PLAIN] == PLAIN_LOGGED && durable)) {
            if (state[STATE_LOG_ROOM] - state[STATE_LOGGED_OCTETS] < block_total * state[STATE_BLOCK_SIZE] + PLACE_SIZE * route[ROUTE_COUNT])
                return 0;
            if (queue[QUEUE_PLAIN] > answer)
                answer = queue[QUEUE_PLAIN];
        }
        if (is_stream ? !durable && route[ROUTE_COUNT] > 1 : !(queue[QUEUE_LIMITS] & LIMIT_EXPIRES) && expiration >= 0)
            return 0;
        if (queue[QUEUE_LIMITS] && !limits_allow(t, *target, route[ROUTE_COUNT], block_total, body, answer))
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

/* Whether properties have the name of the header by which a stream knows a publisher, see publish.py. */
static inline int32_t is_named(const uint8_t *source, int32_t at, int32_t end)
{
    static const char name[] = "x-publisher-id";
    const int32_t size = (int32_t)sizeof name - 1;
    for (const uint8_t *here = source + at; end - at >= size; at = (int32_t)(++here - source)) {
        here = memchr(here, name[0], (size_t)(end - at - size + 1));
        if (!here)
            return 0;
        if (memcmp(here, name, (size_t)size) == 0)
            return 1;
    }
    return 0;
}

static inline void put_aside(const leveret_tables *t, int32_t entry)
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

static inline void count_publish(const leveret_tables *t, int32_t channel, int32_t logged)
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

static inline void publish(const leveret_tables *t, int32_t channel, int32_t slot, int32_t message, int32_t logged)
{
    int32_t *state = t->state;
    const int32_t *record = t->messages + message;
    const int32_t *target = t->route_targets + t->routes[slot + ROUTE_TARGETS];
    int32_t count = t->routes[slot + ROUTE_COUNT];
    state[STATE_LEFT] -= count;
    for (int32_t left = count; left > 0; left--, target++) {
        if (t->queues[*target + QUEUE_PLAIN] == PLAIN_PAGED) {
            put_aside(t, pass_by(t, *target, message));
            continue;
        }
        int32_t entry = push(t, *target, message);
        if (t->letters)
            t->letters->buried = NONE;
        int32_t limits = t->queues[*target + QUEUE_LIMITS];
        if (limits) {
            if (limits & LIMIT_GROUPS)
                t->entries[entry + ENTRY_TAG] = NONE; /* not delivered */
            if (limits & LIMIT_LATEST)
                leveret_replace(t, *target, entry); /* before others go for it, and perhaps itself */
            keep_limits(t, *target, entry, record[MESSAGE_LIFETIME]);
            if (limits & LIMIT_REMEMBERS)
                leveret_keep_id(t->identities, *target);
        }
        int32_t plain = t->queues[*target + QUEUE_PLAIN];
        if (plain == PLAIN_STREAM)
            t->entries[entry + ENTRY_REDELIVERED] = NONE;
        else
            activate(t, *target);
        if (logged > 1 && plain > 1 && !(t->letters && t->letters->buried == entry))
            put_aside(t, entry);
    }
    state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + 1) & MASK;
    state[STATE_ALTERNATE] += t->routes[slot + ROUTE_ALTERNATES];
    if (t->channels[channel + CHANNEL_CONFIRM])
        count_publish(t, channel, logged > 1 ? 2 : 1);
}

#endif
