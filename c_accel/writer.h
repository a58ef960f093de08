/* Octets that are written one behind the other, as long as there is room. */
#ifndef LEVERET_WRITER_H
#define LEVERET_WRITER_H

#include "octets.h"
#include "shapes.h"

typedef struct {
    uint8_t *octets;
    int32_t at;
    int32_t end;
    int is_bad; /* it has no room, or the message is not for C */
    leveret_places *free; /* where fields that vary are noted; NULL: nowhere */
} writer;

static inline void put(writer *out, const void *octets, int32_t size)
{
    if (out->is_bad || size > out->end - out->at) {
        out->is_bad = 1;
        return;
    }
    memcpy(out->octets + out->at, octets, (size_t)size);
    out->at += size;
}

static inline void put_octet(writer *out, int32_t octet)
{
    uint8_t one = (uint8_t)octet;
    put(out, &one, 1);
}

/* A field that varies, as `made` octets. */
static inline void put_free(writer *out, const uint8_t *octets, int32_t size, int32_t made, leveret_fill fill)
{
    if (out->is_bad || made > out->end - out->at || !fill(out->octets + out->at, octets, size)) {
        out->is_bad = 1;
        return;
    }
    if (out->free && out->free->count < PLACES)
        out->free->places[out->free->count++] = (leveret_place){octets, size, out->at, fill};
    out->at += made;
}

/* A fill of octets that stay as they are, whatever they are. */
static inline int fill_any(uint8_t *target, const uint8_t *octets, int32_t size)
{
    memcpy(target, octets, (size_t)size);
    return 1;
}

/* A number of `size` octets, in network order. */
static inline void put_octets_of(writer *out, uint64_t number, int32_t size)
{
    uint8_t octets[8];
    for (int32_t place = 0; place < size; place++)
        octets[place] = (uint8_t)(number >> 8 * (size - 1 - place));
    put(out, octets, size);
}

/* A number in decimal digits behind an octet with their count. */
static inline void put_digits(writer *out, uint64_t number)
{
    uint8_t digits[20];
    int32_t size = 0;
    do
        digits[sizeof digits - 1 - (size_t)size++] = (uint8_t)('0' + number % 10);
    while ((number /= 10) != 0);
    put_octet(out, size);
    put(out, digits + sizeof digits - size, size);
}

enum { HYPHENS = 0x550, UUID_TEXT = 36 }; /* the octets of a uuid before which its text has one; octets of that text */

/* A uuid as text (RFC 4122, section 3): UUID_TEXT octets of its UUID_SIZE. */
static inline int fill_uuid_text(uint8_t *target, const uint8_t *uuid, int32_t size)
{
    static const char DIGITS[] = "0123456789abcdef";
    for (int32_t place = 0; place < size; place++) {
        if (HYPHENS >> place & 1)
            *target++ = '-';
        *target++ = (uint8_t)DIGITS[uuid[place] >> 4];
        *target++ = (uint8_t)DIGITS[uuid[place] & 15];
    }
    return 1;
}

/* Octets of which all stand in an address as they are: letters, digits, - . _ ~ (RFC 3986, 2.3); others are for Python. */
static inline void put_unreserved(writer *out, const uint8_t *octets, int32_t size)
{
    static const uint64_t UNRESERVED[4] = {0x03FF600000000000, 0x47FFFFFE87FFFFFE, 0, 0};
    uint64_t are = 1;
    for (int32_t place = 0; place < size; place++)
        are &= UNRESERVED[octets[place] >> 6] >> (octets[place] & 63);
    if (!are)
        out->is_bad = 1;
    put(out, octets, size);
}

#endif
