/* See settle.c. */
#ifndef LEVERET_SETTLE_H
#define LEVERET_SETTLE_H

#include "hot.h"

enum { BASIC_ACK = 80, BASIC_REJECT = 90, BASIC_NACK = 120 };

/* See ingest.take_settlement. */
int32_t leveret_take_settlement(const leveret_tables *t, const uint8_t *source, int32_t channel);

#endif
