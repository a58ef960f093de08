/* See amqp_0_9_get.c. */
#ifndef LEVERET_AMQP_0_9_GET_H
#define LEVERET_AMQP_0_9_GET_H

#include "hot.h"

/* basic.get (0-9-1 section 1.8.3.10) with a payload of `size` octets at state[AT]: the position behind it, its reply is written; or ASK. */
int32_t leveret_amqp_0_9_get(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size);

/* See amqp_0_9_deliver.c. */
int32_t leveret_amqp_0_9_put_content(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at);

#endif
