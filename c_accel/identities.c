/* See identities.h. One table of chains by hash for all queues of a broker; a queue's own are linked in their order. */
#include "identities.h"

#include <string.h>

static inline uint64_t turned(uint64_t value, int32_t bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void mix(uint64_t *v)
{
    v[0] += v[1], v[1] = turned(v[1], 13) ^ v[0], v[0] = turned(v[0], 32);
    v[2] += v[3], v[3] = turned(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = turned(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = turned(v[1], 17) ^ v[2], v[2] = turned(v[2], 32);
}

/* SipHash-2-4 with 128 bits (Aumasson and Bernstein), words in the machine's order: nothing outside this process sees a hash. */
void leveret_hash(const uint64_t *key, const uint8_t *octets, int32_t size, uint64_t *answer)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f83u, key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    uint64_t word;
    int32_t at = 0;
    for (; at + 8 <= size; at += 8) {
        memcpy(&word, octets + at, 8);
        v[3] ^= word;
        mix(v), mix(v);
        v[0] ^= word;
    }
    word = 0;
    if (size > at)
        memcpy(&word, octets + at, (size_t)(size - at));
    v[3] ^= word;
    mix(v), mix(v);
    v[0] ^= word;
    v[3] ^= (uint64_t)size; /* no size fits the free octet of the last word */
    mix(v), mix(v);
    v[0] ^= (uint64_t)size;
    v[2] ^= 0xee;
    mix(v), mix(v), mix(v), mix(v);
    answer[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    mix(v), mix(v), mix(v), mix(v);
    answer[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

static int32_t *chain_of(const leveret_identities *known, const uint64_t *id, int32_t queue)
{
    return known->chains + ((uint32_t)(id[0] ^ (uint32_t)queue * 2654435761u) & (uint32_t)known->mask);
}

void leveret_read_id(leveret_identities *known, const uint8_t *octets, int32_t size)
{
    known->read = size < 0 ? ID_NONE : ID_READ;
    if (size >= 0)
        leveret_hash(known->key, octets, size, known->id);
}

int32_t leveret_find_id(const leveret_identities *known, int32_t queue)
{
    for (int32_t at = *chain_of(known, known->id, queue); at >= 0; at = known->rows[at].next) {
        const leveret_identity *row = known->rows + at;
        if (row->id[0] == known->id[0] && row->id[1] == known->id[1] && row->queue == queue)
            return at;
    }
    return -1;
}

int32_t leveret_knows_id(const leveret_identities *known, int32_t queue)
{
    return leveret_find_id(known, queue) >= 0;
}

int32_t leveret_is_new_id(const leveret_identities *known, int32_t queue, int32_t count)
{
    if (known->read != ID_READ)
        return known->read == ID_NONE;
    const leveret_id_window *window = known->windows + queue / QUEUE_WIDTH;
    return (*known->left >= count || window->count >= window->most) && !leveret_knows_id(known, queue);
}

void leveret_free_row(leveret_identities *known, leveret_id_window *window, int32_t gone)
{
    leveret_identity *row = known->rows + gone;
    int32_t *at = chain_of(known, row->id, row->queue);
    while (*at != gone)
        at = &known->rows[*at].next;
    *at = row->next;
    window->count -= 1;
    row->next = known->free;
    known->free = gone;
    *known->left += 1;
}

void leveret_forget_id(leveret_identities *known, int32_t queue)
{
    leveret_id_window *window = known->windows + queue / QUEUE_WIDTH;
    int32_t oldest = window->oldest;
    window->oldest = known->rows[oldest].newer;
    leveret_free_row(known, window, oldest);
}

void leveret_add_id(leveret_identities *known, int32_t queue)
{
    leveret_id_window *window = known->windows + queue / QUEUE_WIDTH;
    int32_t at = known->free;
    if (at >= 0)
        known->free = known->rows[at].next;
    else
        at = known->fresh++;
    leveret_identity *row = known->rows + at;
    int32_t *chain = chain_of(known, known->id, queue);
    *row = (leveret_identity){{known->id[0], known->id[1]}, queue, *chain, -1, -1, 0};
    *chain = at;
    if (window->count)
        known->rows[window->newest].newer = at;
    else
        window->oldest = at;
    window->newest = at;
    window->count += 1;
    *known->left -= 1;
}

void leveret_keep_id(leveret_identities *known, int32_t queue)
{
    leveret_id_window *window = known->windows + queue / QUEUE_WIDTH;
    if (known->read != ID_READ)
        return;
    if (window->count >= window->most)
        leveret_forget_id(known, queue);
    leveret_add_id(known, queue);
}
