/* Settlements in no order miss the caches with each record that they are about: the slot of the index of tags, then the entry, then its
 * neighbours and its message, then the message's blocks. While one delivery is settled these fetch the records of deliveries that are settled
 * next, a step each time: a family that sees their tags calls them in this order. They change nothing, and any tag may be asked for. */
#ifndef LEVERET_FORESEE_H
#define LEVERET_FORESEE_H

#include "queues.h"

#define WHOLE static inline __attribute__((always_inline)) /* gcc 12 takes a call of what only fetches for one that does nothing */

WHOLE const int32_t *slot_of(const leveret_tables *t, int32_t channel, int32_t tag)
{
    return t->channels + t->state[STATE_TAGS] + ((channel / CHANNEL_WIDTH * SPREAD ^ tag) & t->state[STATE_TAG_MASK]);
}

WHOLE void fetch(const int32_t *table, int32_t record, int32_t width)
{
    if (record >= 0) {
        __builtin_prefetch(table + record, 1);
        __builtin_prefetch(table + record + width - 1, 1);
    }
}

WHOLE void foresee_slot(const leveret_tables *t, int32_t channel, int32_t tag)
{
    __builtin_prefetch(slot_of(t, channel, tag), 1);
}

WHOLE void foresee_entry(const leveret_tables *t, int32_t channel, int32_t tag)
{
    int32_t entry = *slot_of(t, channel, tag) - 1;
    fetch(t->entries, entry, ENTRY_WIDTH);
    if (entry >= 0)
        __builtin_prefetch(t->channels + t->state[STATE_TAGS] + t->state[STATE_TAG_MASK] + 1 + entry / ENTRY_WIDTH, 1);
}

WHOLE void foresee_message(const leveret_tables *t, int32_t channel, int32_t tag)
{
    int32_t entry = *slot_of(t, channel, tag) - 1;
    if (entry >= 0) {
        fetch(t->entries, t->entries[entry + ENTRY_PREVIOUS], ENTRY_PREVIOUS + 1);
        fetch(t->entries, t->entries[entry + ENTRY_NEXT], ENTRY_PREVIOUS + 1);
        fetch(t->messages, t->entries[entry + ENTRY_MESSAGE], MESSAGE_WIDTH);
    }
}

WHOLE void foresee_blocks(const leveret_tables *t, int32_t channel, int32_t tag)
{
    int32_t entry = *slot_of(t, channel, tag) - 1;
    if (entry >= 0)
        fetch(t->blocks, t->messages[t->entries[entry + ENTRY_MESSAGE] + MESSAGE_LAST], 1);
}

#endif
