/* See amqp_1_0_message.c. */
#ifndef LEVERET_AMQP_1_0_MESSAGE_H
#define LEVERET_AMQP_1_0_MESSAGE_H

#include <stdint.h>

/* Where the payload begins of a message that is source[at:end], with state[KIND] and state[LIFETIME]; ASK: its sections want a look. */
int32_t leveret_amqp_1_0_payload(int32_t *state, const uint8_t *source, int32_t at, int32_t end);

#endif
