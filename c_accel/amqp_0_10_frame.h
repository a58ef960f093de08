/* Frames of AMQP 0-10 (core/amqp_0_10/frame.py). */
#ifndef LEVERET_AMQP_0_10_FRAME_H
#define LEVERET_AMQP_0_10_FRAME_H

#include "octets.h"

enum { AMQP_0_10 = 3, FRAME_HEAD = 12 };

static inline int32_t short_of(const uint8_t *source, int32_t at)
{
    return source[at] << 8 | source[at + 1];
}

static inline void put_short(uint8_t *target, int32_t at, int32_t number)
{
    target[at] = (uint8_t)(number >> 8);
    target[at + 1] = (uint8_t)number;
}

#endif
