/* The route cache, as core/broker/route_cache.py fills it: where messages of a user to an exchange with a key go. */
#ifndef LEVERET_ROUTES_H
#define LEVERET_ROUTES_H

#include "hot.h"
#include "layout.h"
#include "octets.h"

#include <string.h>

/* The octets as one number, modulo a prime: as core/shim.py has it for CPython. */
static inline int32_t route_hash(const uint8_t *source, int32_t at, int32_t size)
{
    uint64_t number = 0;
    int32_t end = at + size;
    for (; (end - at) & 3; at++)
        number = number << 8 | source[at];
    for (; at < end; at += 4)
        number = (number << 32 | word_of(source, at)) % 0xFFFFFC7u;
    int32_t hashed = (int32_t)(number % 0xFFFFFC7u * 2039 & 0xFFFFFFF);
    return hashed ^ hashed >> 13;
}

static inline int32_t is_route(const leveret_tables *t, int32_t slot, const uint8_t *source, int32_t at, int32_t size)
{
    const int32_t *route = t->routes + slot;
    return route[ROUTE_SIZE] == size && route[ROUTE_EPOCH] == t->state[STATE_ROUTE_EPOCH] && route[ROUTE_USER] == t->state[STATE_USER]
           && memcmp(t->route_octets + route[ROUTE_OCTETS], source + at, (size_t)size) == 0;
}

static inline int32_t find_route(const leveret_tables *t, const uint8_t *source, int32_t at, int32_t size)
{
    int32_t slot = t->state[STATE_ROUTE_LAST];
    if (is_route(t, slot, source, at, size))
        return slot;
    int32_t slots = t->state[STATE_ROUTE_SLOTS];
    int32_t place = route_hash(source, at, size) & (slots - 1);
    for (int32_t probes = ROUTE_PROBES; probes > 0; probes--) {
        slot = place * ROUTE_WIDTH;
        if (is_route(t, slot, source, at, size)) {
            t->state[STATE_ROUTE_LAST] = slot;
            return slot;
        }
        place = (place + 1) & (slots - 1);
    }
    return -1;
}

#endif
