/* Deliveries of a stream's messages: the entry of each, for the families that write them in C. */
#ifndef LEVERET_STREAMS_H
#define LEVERET_STREAMS_H

#include "queues.h"

/* See subscription.stream_entry: the entry of a delivery of the message at `offset`, in no list. `delivered`: the message that stands for all of the
 * stream's that are not settled. */
static inline int32_t stream_entry(const leveret_tables *t, int32_t queue, int64_t offset, int32_t *delivered)
{
    if (t->queues[queue + QUEUE_UNSETTLED] == 0) {
        int32_t *record = t->messages + (*delivered = new_message(t, 0, 0, 0, 0));
        record[MESSAGE_ARRIVED] = 0;
        record[MESSAGE_KIND] = 0;
        record[MESSAGE_LIFETIME] = NONE;
    }
    int32_t entry = allocate(t->entries, t->state, POOL_ENTRIES, ENTRY_WIDTH);
    int32_t *place = t->entries + entry, *record = t->messages + *delivered;
    place[ENTRY_MESSAGE] = *delivered;
    place[ENTRY_QUEUE] = queue;
    place[ENTRY_POSITION] = (int32_t)(offset & MASK);
    place[ENTRY_REDELIVERED] = NONE;
    record[MESSAGE_REFERENCES] += 1;
    t->queues[queue + QUEUE_BLOCKS] += record[MESSAGE_BLOCKS];
    return entry;
}

#endif
