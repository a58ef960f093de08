/* See amqp_0_9_properties.c. */
#ifndef LEVERET_PROPERTIES_H
#define LEVERET_PROPERTIES_H

#include <stdint.h>

/* See hot_in.check_properties. */
int32_t leveret_check_properties(int32_t *state, const uint8_t *source, int32_t at, int32_t end);

#endif
