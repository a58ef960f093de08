/* Message groups: core/queue/features/groups.py. A group belongs to the consumer that has an unsettled delivery of it. Each delivery is linked to
 * its group's row; those that are settled are forgotten when the group is met, or in passing. Groups whose value is no ASCII text are Python's
 * to read. */
#ifndef LEVERET_GROUPS_H
#define LEVERET_GROUPS_H

#include "hot.h"

/* A search from the head of a queue on, once for all its consumers (Rule.begin of groups.py): a row of them, and the first message for each. */
enum { GROUP_CONSUMERS = 64, GROUP_SCAN = 200, GROUP_NOBODY = -1, GROUP_FOR_PYTHON = -2 };
typedef struct {
    int32_t queue;
    const int32_t *row; /* of consumers */
    int32_t count;
    int32_t next; /* the entry where the search goes on, and how many are left */
    int32_t left;
    int32_t any; /* the first message whose group is nobody's; -1: none so far */
    int32_t firsts[GROUP_CONSUMERS];
} leveret_search;

/* Begin a search; 0: no consumer may have a further message. */
int32_t leveret_begin_search(const leveret_tables *t, leveret_search *s, int32_t queue, const int32_t *row, int32_t count);

/* Put the first message that the consumer at a place of the row may have at the head: its entry, GROUP_NOBODY or GROUP_FOR_PYTHON. */
int32_t leveret_bring(const leveret_tables *t, leveret_search *s, int32_t place);

/* The entry that `leveret_bring` has put at the head was delivered to that consumer. */
void leveret_brought(const leveret_tables *t, int32_t queue, int32_t consumer, int32_t entry);

#endif
