/* Numbers in network order. */
#ifndef LEVERET_OCTETS_H
#define LEVERET_OCTETS_H

#include <stdint.h>

enum { UUID_SIZE = 16 };

static inline int32_t size_of(const uint8_t *source, int32_t at)
{
    return source[at] << 16 | source[at + 1] << 8 | source[at + 2];
}

static inline uint32_t word_of(const uint8_t *source, int32_t at)
{
    return (uint32_t)source[at] << 24 | (uint32_t)size_of(source, at + 1);
}

static inline void put_number(uint8_t *target, int32_t high, int32_t low)
{
    target[0] = (uint8_t)(high >> 26);
    target[1] = (uint8_t)(high >> 18);
    target[2] = (uint8_t)(high >> 10);
    target[3] = (uint8_t)(high >> 2);
    target[4] = (uint8_t)((high & 3) << 6 | low >> 24);
    target[5] = (uint8_t)(low >> 16);
    target[6] = (uint8_t)(low >> 8);
    target[7] = (uint8_t)low;
}

static inline void put_size(uint8_t *target, int32_t size)
{
    target[0] = (uint8_t)(size >> 24);
    target[1] = (uint8_t)(size >> 16);
    target[2] = (uint8_t)(size >> 8);
    target[3] = (uint8_t)size;
}

#endif
