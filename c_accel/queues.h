/* Places of messages in queues and in the unsettled lists of channels: the second part of core/memory/hot.py. */
#ifndef LEVERET_QUEUES_H
#define LEVERET_QUEUES_H

#include "letters.h"
#include "messages.h"

static inline int32_t push(const leveret_tables *t, int32_t queue, int32_t message)
{
    int32_t entry = allocate(t->entries, t->state, POOL_ENTRIES, ENTRY_WIDTH);
    int32_t *place = t->entries + entry;
    int32_t *queue_record = t->queues + queue;
    int32_t *record = t->messages + message;
    int32_t tail = queue_record[QUEUE_TAIL];
    int32_t position = queue_record[QUEUE_POSITION];
    place[ENTRY_MESSAGE] = message;
    place[ENTRY_NEXT] = -1;
    place[ENTRY_PREVIOUS] = tail;
    place[ENTRY_POSITION] = position;
    place[ENTRY_QUEUE] = queue;
    place[ENTRY_REDELIVERED] = 0;
    place[ENTRY_DEADLINE] = 0;
    if (tail >= 0)
        t->entries[tail + ENTRY_NEXT] = entry;
    else
        queue_record[QUEUE_HEAD] = entry;
    queue_record[QUEUE_TAIL] = entry;
    queue_record[QUEUE_POSITION] = (position + 1) & MASK;
    queue_record[QUEUE_LENGTH] += 1;
    queue_record[QUEUE_OCTETS] += record[MESSAGE_BODY];
    queue_record[QUEUE_BLOCKS] += record[MESSAGE_BLOCKS];
    record[MESSAGE_REFERENCES] += 1;
    return entry;
}

/* A message passes by a queue beyond memory: an entry in no list of it, for the log. See pass_by in core/log/publish.py. */
static inline int32_t pass_by(const leveret_tables *t, int32_t queue, int32_t message)
{
    int32_t entry = allocate(t->entries, t->state, POOL_ENTRIES, ENTRY_WIDTH);
    int32_t *place = t->entries + entry, *queue_record = t->queues + queue;
    place[ENTRY_MESSAGE] = message;
    place[ENTRY_NEXT] = place[ENTRY_PREVIOUS] = NONE;
    place[ENTRY_POSITION] = queue_record[QUEUE_POSITION];
    place[ENTRY_QUEUE] = queue;
    place[ENTRY_REDELIVERED] = PASSED_BY;
    place[ENTRY_DEADLINE] = 0;
    queue_record[QUEUE_POSITION] = (queue_record[QUEUE_POSITION] + 1) & MASK;
    t->messages[message + MESSAGE_REFERENCES] += 1;
    return entry;
}

static inline void activate(const leveret_tables *t, int32_t queue)
{
    int32_t *queue_record = t->queues + queue;
    if (queue_record[QUEUE_ACTIVE] || queue_record[QUEUE_CONSUMERS] == 0)
        return;
    queue_record[QUEUE_ACTIVE] = 1;
    queue_record[QUEUE_NEXT_ACTIVE] = -1;
    int32_t tail = t->state[STATE_ACTIVE_TAIL];
    if (tail >= 0)
        t->queues[tail + QUEUE_NEXT_ACTIVE] = queue;
    else
        t->state[STATE_ACTIVE_HEAD] = queue;
    t->state[STATE_ACTIVE_TAIL] = queue;
}

/* The tree of returned entries: see layout.py. */
static inline uint32_t weight_of(int32_t entry)
{
    return (uint32_t)entry * TREE_WEIGHT & TREE_WEIGHT_MASK;
}

static inline int32_t is_lower(const int32_t *entries, int32_t position, int32_t node)
{
    return ((position - entries[node + ENTRY_POSITION]) & 0x20000000) != 0;
}

/* See hot.forget_returned (settle.c). */
void leveret_forget_returned(int32_t *entries, int32_t *root, int32_t entry);

static inline void unlink_ready(const leveret_tables *t, int32_t queue, int32_t entry)
{
    int32_t *queue_record = t->queues + queue;
    int32_t before = t->entries[entry + ENTRY_PREVIOUS];
    int32_t behind = t->entries[entry + ENTRY_NEXT];
    if (before >= 0)
        t->entries[before + ENTRY_NEXT] = behind;
    else
        queue_record[QUEUE_HEAD] = behind;
    if (behind >= 0)
        t->entries[behind + ENTRY_PREVIOUS] = before;
    else
        queue_record[QUEUE_TAIL] = before;
    if (queue_record[QUEUE_RETURNED] >= 0)
        leveret_forget_returned(t->entries, &queue_record[QUEUE_RETURNED], entry);
    queue_record[QUEUE_LENGTH] -= 1;
    queue_record[QUEUE_OCTETS] -= t->messages[t->entries[entry + ENTRY_MESSAGE] + MESSAGE_BODY];
}

/* See core/memory/levels.py. */
static inline int32_t level_of(const leveret_tables *t, int32_t entry)
{
    return t->entries[entry + ENTRY_REDELIVERED] >> ENTRY_LEVEL;
}

/* Rule "level": also to_level of levels.py; test_homes.py holds them together. */
static inline void to_level(const leveret_tables *t, int32_t queue, int32_t entry, int32_t highest)
{
    int32_t *entries = t->entries, *queue_record = t->queues + queue;
    int32_t level = t->messages[entries[entry + ENTRY_MESSAGE] + MESSAGE_KIND] >> KIND_PRIORITY & 255;
    if (level > highest)
        level = highest;
    entries[entry + ENTRY_REDELIVERED] |= level << ENTRY_LEVEL;
    int32_t last = entries[entry + ENTRY_PREVIOUS], node = last, behind = -1, top = level_of(t, queue_record[QUEUE_HEAD]);
    while (node >= 0 && level_of(t, node) < level) {
        behind = node;
        node = level_of(t, node) < top ? -2 - entries[node + LEVEL_ABOVE] : -1;
    }
    entries[entry + LEVEL_ABOVE] = node >= 0 && level_of(t, node) == level ? entries[node + LEVEL_ABOVE] : -2 - node;
    if (behind < 0)
        return;
    entries[behind + LEVEL_ABOVE] = -2 - entry;
    entries[last + ENTRY_NEXT] = -1;
    queue_record[QUEUE_TAIL] = last;
    int32_t *place = node >= 0 ? entries + node + ENTRY_NEXT : queue_record + QUEUE_HEAD;
    entries[entry + ENTRY_PREVIOUS] = node;
    entries[entry + ENTRY_NEXT] = *place;
    entries[*place + ENTRY_PREVIOUS] = entry;
    *place = entry;
}

static inline void hold(const leveret_tables *t, int32_t channel, int32_t entry, int32_t consumer)
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
    record[consumer == GOT ? CHANNEL_GOT : CHANNEL_UNSETTLED] += 1;
    t->queues[place[ENTRY_QUEUE] + QUEUE_UNSETTLED] += 1;
}

enum { SPREAD = 2533 }; /* as in hot.py */

/* Take an unsettled entry out of the index of tags, if it is in it. */
static inline void forget_tag(const leveret_tables *t, int32_t channel, int32_t entry)
{
    int32_t *channels = t->channels;
    int32_t mask = t->state[STATE_TAG_MASK];
    int32_t chains = t->state[STATE_TAGS] + mask + 1;
    if (channels[channel + CHANNEL_INDEXED] == entry)
        channels[channel + CHANNEL_INDEXED] = t->entries[entry + ENTRY_PREVIOUS];
    int32_t place = t->state[STATE_TAGS] + ((channel / CHANNEL_WIDTH * SPREAD ^ t->entries[entry + ENTRY_TAG]) & mask);
    for (int32_t each = channels[place] - 1; each >= 0; each = channels[place] - 1) {
        int32_t behind = chains + each / ENTRY_WIDTH;
        if (each == entry) {
            channels[place] = channels[behind];
            return;
        }
        place = behind;
    }
}

static inline void unhold(const leveret_tables *t, int32_t channel, int32_t entry)
{
    int32_t *place = t->entries + entry;
    int32_t *record = t->channels + channel;
    if (record[CHANNEL_INDEXED] >= 0)
        forget_tag(t, channel, entry);
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
    t->queues[place[ENTRY_QUEUE] + QUEUE_UNSETTLED] -= 1;
    int32_t consumer = place[ENTRY_CONSUMER];
    if (consumer == RETURNING)
        t->queues[place[ENTRY_QUEUE] + QUEUE_RETURNING] -= 1;
    else
        record[consumer == GOT ? CHANNEL_GOT : CHANNEL_UNSETTLED] -= 1;
    if (consumer >= 0 && t->consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED && t->consumers[consumer + CONSUMER_MODE] == WINDOW)
        t->consumers[consumer + CONSUMER_CREDIT] += 1;
}

static inline void drop(const leveret_tables *t, int32_t entry)
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
    place[ENTRY_REDELIVERED] = NONE;
}

/* Rule "expired": also let_go in features/expiry.py and expire of hot.py; test_homes.py holds them together. */
static inline int32_t expire(const leveret_tables *t, int32_t queue)
{
    for (;;) {
        int32_t entry = t->queues[queue + QUEUE_HEAD];
        if (entry < 0)
            return 0;
        int32_t moment = t->entries[entry + ENTRY_DEADLINE];
        if (moment == 0)
            return 0;
        if (moment < 0 ? t->state[STATE_UPTIME] + moment < 0 : (t->state[STATE_NOW] - moment - 1) & 0x20000000)
            return 0;
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_DEAD_LETTERS) {
            int32_t answer = t->letters ? leveret_expire_letter(t, queue, entry) : 1;
            if (answer)
                return answer;
            continue;
        }
        unlink_ready(t, queue, entry);
        drop(t, entry);
        t->state[STATE_EXPIRED] += 1;
    }
}

static inline void next_number(int32_t *place)
{
    place[0] = (place[0] + 1) & MASK;
    if (place[0] == 0)
        place[1] += 1;
}

#endif
