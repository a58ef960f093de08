/* From an exchange and a routing key to queues, for those that the route cache does not have. */
#ifndef LEVERET_MATCH_H
#define LEVERET_MATCH_H

#include "hot.h"

/* The slot of the route cache that now has the route (exchange and key as two short strings) at `at`; -1: that is Python's to find. */
int32_t leveret_find_way(const leveret_tables *t, const uint8_t *source, int32_t at, int32_t size);

#endif
