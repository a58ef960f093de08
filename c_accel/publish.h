/* What every family does with what it has read of a peer: publish.c and settle.c. */
#ifndef LEVERET_PUBLISH_H
#define LEVERET_PUBLISH_H

#include "hot.h"

/* See publish.may_push. */
int32_t leveret_may_push(const leveret_tables *t, int32_t slot, int32_t expiration, int32_t block_total, int32_t body);

/* See publish.publish. */
void leveret_publish(const leveret_tables *t, int32_t channel, int32_t slot, int32_t message, int32_t logged);

/* See hot.find_tag. */
int32_t leveret_find_tag(const leveret_tables *t, int32_t channel, int32_t tag);

#endif
