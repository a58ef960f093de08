/* Records of the pools, and the octets of messages in their chains of blocks: the first part of core/memory/hot.py. */
#ifndef LEVERET_MESSAGES_H
#define LEVERET_MESSAGES_H

#include "hot.h"
#include "layout.h"

#include <string.h>

static inline int32_t allocate(int32_t *table, int32_t *state, int32_t pool, int32_t width)
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

static inline void give(int32_t *table, int32_t *state, int32_t pool, int32_t record)
{
    table[record] = state[pool];
    state[pool] = record;
    state[pool + 2] += 1;
}

/* Whole seconds of its lifetime that a message has spent here, never more than is true (passed_ms in core/amqp_1_0/convert.py). */
static inline int32_t seconds_passed(const leveret_tables *t, const int32_t *record)
{
    int32_t passed = record[MESSAGE_LIFETIME] == NONE ? 0 : t->state[STATE_SECONDS] - record[MESSAGE_ARRIVED] - 1;
    return passed > 0 ? passed : 0;
}

/* See hot.new_message: the figures of a message that its family has read, without a reference yet. */
static inline int32_t new_message(const leveret_tables *t, int32_t route_size, int32_t properties_size, int32_t body, int32_t block_total)
{
    int32_t message = allocate(t->messages, t->state, POOL_MESSAGES, MESSAGE_WIDTH);
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
    return message;
}

/* `source` NULL: the octets are in their blocks already. */
static inline void append(const leveret_tables *t, int32_t message, const uint8_t *source, int32_t start, int32_t size)
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
        if (source)
            memcpy(t->arena + (size_t)block * (size_t)block_size + used, source + start, (size_t)room);
        start += room;
        size -= room;
        used = 0;
    }
    record[MESSAGE_LAST] = block;
}

/* A block for all octets of a message, which it is to get at once: where they go. */
static inline uint8_t *whole_block(const leveret_tables *t, int32_t message, int32_t size)
{
    int32_t *state = t->state, *record = t->messages + message;
    int32_t fresh = state[POOL_BLOCKS];
    if (fresh >= 0)
        state[POOL_BLOCKS] = t->blocks[fresh];
    else
        fresh = state[POOL_BLOCKS + 1]++;
    record[MESSAGE_FIRST] = record[MESSAGE_LAST] = fresh;
    record[MESSAGE_FILLED] = size;
    return t->arena + (size_t)fresh * (size_t)state[STATE_BLOCK_SIZE];
}

static inline void extract(const leveret_tables *t, int32_t block, int32_t offset, uint8_t *target, int32_t at, int32_t size)
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

static inline void release(const leveret_tables *t, int32_t message)
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

#endif
