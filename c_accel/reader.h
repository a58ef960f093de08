/* Octets of a message's properties, read one behind the other (AMQP 0-10 and 1.0). A reader that came to octets that are not there, or that are not for C,
 * is bad from then on, and gives zeros: who reads asks once, at the end. */
#ifndef LEVERET_READER_H
#define LEVERET_READER_H

#include <stdint.h>

typedef struct {
    const uint8_t *octets;
    int32_t at;
    int32_t end;
    int is_bad;
} reader;

/* `size` octets; of fewer than are there zeros, 16 of them: no value of a fixed size has more. */
static inline const uint8_t *next_octets(reader *in, int32_t size)
{
    static const uint8_t NOTHING[16] = {0};
    if (in->is_bad || size < 0 || size > in->end - in->at) {
        in->is_bad = 1;
        return NOTHING;
    }
    in->at += size;
    return in->octets + in->at - size;
}

/* A number of `size` octets, 0 to 8, in network order. */
static inline int64_t next_number(reader *in, int32_t size, int32_t is_signed)
{
    const uint8_t *octets = next_octets(in, size);
    uint64_t number = is_signed && octets[0] > 127 ? ~(uint64_t)0 : 0;
    for (int32_t place = 0; place < size; place++)
        number = number << 8 | octets[place];
    return (int64_t)number;
}

#endif
