/* Who gets which messages of a queue: the end of core/memory/hot.py. What is written is the family's: each has this loop around its own
 * functions, which the compiler puts in (leveret_wire.pump). */
#ifndef LEVERET_PUMP_H
#define LEVERET_PUMP_H

#include "insets.h"

/* A delivery of the entry at the head of a consumer's queue has been written. */
static inline void hand_over(const leveret_tables *t, int32_t consumer, int32_t entry)
{
    int32_t *reader = t->consumers + consumer;
    unlink_ready(t, reader[CONSUMER_QUEUE], entry);
    if (reader[CONSUMER_NO_ACK]) {
        drop(t, entry);
    } else {
        hold(t, reader[CONSUMER_CHANNEL], entry, consumer);
        if (reader[CONSUMER_CREDIT] != CREDIT_UNLIMITED)
            reader[CONSUMER_CREDIT] -= 1;
    }
    t->state[STATE_DELIVERED] = (t->state[STATE_DELIVERED] + 1) & MASK;
}

static inline int32_t pump(const leveret_tables *t, leveret_size_of *octets_of, leveret_write *write, int32_t consumer, int32_t limit,
                           const uint8_t *prefix, int32_t prefix_size, int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end,
                           leveret_output *output)
{
    int32_t *reader = t->consumers + consumer;
    int32_t queue = reader[CONSUMER_QUEUE];
    int32_t channel = reader[CONSUMER_CHANNEL];
    int32_t prefetch = t->channels[channel + CHANNEL_PREFETCH];
    while (limit > 0) {
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES && expire(t, queue))
            break;
        int32_t entry = t->queues[queue + QUEUE_HEAD];
        if (entry < 0 || reader[CONSUMER_CREDIT] <= 0)
            break;
        if (prefetch != 0 && t->channels[channel + CHANNEL_UNSETTLED] >= prefetch)
            break;
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        int32_t is_inset = wants_inset(output, record[MESSAGE_BODY]);
        int32_t size = octets_of(record, prefix_size, frame_size_max, is_inset);
        if (size < 0 || size > end - at || (is_inset && !has_inset_room(output, record[MESSAGE_BODY])))
            break;
        next_number(t->channels + channel + CHANNEL_TAG);
        at = write(t, entry, channel, prefix, prefix_size, frame_size_max, is_inset ? output : NULL, target, at);
        hand_over(t, consumer, entry);
        limit -= 1;
    }
    return at;
}

#endif
