/* See publish.c. */
#ifndef LEVERET_PUBLISH_H
#define LEVERET_PUBLISH_H

#include "hot.h"

/* See ingest.take_publish. */
int32_t leveret_take_publish(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size);

#endif
