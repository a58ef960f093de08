/* The message ids that queues with x-deduplication remember: core/queue/identities.py's Recent. An id is kept as a keyed hash of 128 bits, with
 * a key that no peer knows, so that nobody finds two ids with one hash. Ids that are known, and ids where no place is left, are Python's. */
#ifndef LEVERET_IDENTITIES_H
#define LEVERET_IDENTITIES_H

#include "hot.h"
#include "layout.h"

/* A keyed hash of 128 bits. */
void leveret_hash(const uint64_t *key, const uint8_t *octets, int32_t size, uint64_t *answer);

enum { ID_UNREAD = 0, ID_NONE = 1, ID_READ = 2 }; /* leveret_identities.read */

/* leveret_read_id (hot.h): the id of a message that is about to be published, `size` octets; -1: it has none. */

/* 1 when a queue may take the message whose id was read last, among `count` queues that do. */
int32_t leveret_is_new_id(const leveret_identities *known, int32_t queue, int32_t count);

/* Have a queue remember that id. */
void leveret_keep_id(leveret_identities *known, int32_t queue);

/* Free a row that is no longer among its queue's. */
void leveret_free_row(leveret_identities *known, leveret_id_window *window, int32_t gone);

/* Last values: core/queue/features/last_value.py. 1 when a queue may take the message whose properties were given, unread by Python, among
 * `count` queues that do. 0: its value is no ASCII text, there is no place for it, or the log is yet to have the message that it replaces. */
int32_t leveret_may_replace(const leveret_tables *t, int32_t queue, int32_t count);

/* A queue has a new entry with that message: drop the one that it replaces. */
void leveret_replace(const leveret_tables *t, int32_t queue, int32_t entry);

#endif
