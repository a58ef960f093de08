/* Values and sections of AMQP 1.0, as core/amqp_1_0/types.py and convert.py write them. */
#ifndef LEVERET_AMQP_1_0_WRITER_H
#define LEVERET_AMQP_1_0_WRITER_H

#include "neutral.h"
#include "writer.h"

enum { SECTION_HEADER = 0x70, SECTION_ANNOTATIONS = 0x72, SECTION_PROPERTIES = 0x73, SECTION_APPLICATION = 0x74, SECTION_DATA = 0x75 };
enum { LIST = 0xC0, MAP = 0xC1, WIDE = 0x10, SYMBOL = 0xA3, STRING = 0xA1, BINARY = 0xA0 };
enum { SMALL_HEAD = 6, WIDE_HEAD = 12 };

static inline void put_word(writer *out, int32_t code, uint32_t word)
{
    uint8_t octets[5] = {(uint8_t)code};
    put_size(octets + 1, (int32_t)word);
    put(out, octets, 5);
}

/* Octets behind their size, in one octet or in four. `code`: for one. */
static inline void put_sized(writer *out, int32_t code, const uint8_t *octets, int32_t size)
{
    if (size < 256) {
        put_octet(out, code);
        put_octet(out, size);
    } else {
        put_word(out, code + WIDE, (uint32_t)size);
    }
    put(out, octets, size);
}

/* A text: ASCII, without octet 0. */
static inline void put_text(writer *out, int32_t code, const uint8_t *octets, int32_t size)
{
    int is_other = 0;
    for (int32_t place = 0; place < size; place++)
        is_other |= octets[place] == 0 || octets[place] > 127;
    out->is_bad |= is_other;
    put_sized(out, code, octets, size);
}

/* An id of a message: a text that is no uuid in one. */
static inline int fill_id(uint8_t *target, const uint8_t *octets, int32_t size)
{
    int is_other = size == 45 && !memcmp(octets, "urn:uuid:", 9);
    for (int32_t place = 0; place < size; place++)
        is_other |= octets[place] == 0 || octets[place] > 127;
    memcpy(target, octets, (size_t)size);
    return !is_other;
}

/* An id of at most 255 octets. */
static inline void put_id(writer *out, const uint8_t *octets, int32_t size)
{
    put_octet(out, STRING);
    put_octet(out, size);
    put_free(out, octets, size, size, fill_id);
}

/* A text of the program's. */
static inline void put_name(writer *out, const char *name)
{
    put_sized(out, SYMBOL, (const uint8_t *)name, (int32_t)strlen(name));
}

/* Begin a section that is a list or a map: its place. */
static inline int32_t begin(writer *out)
{
    static const uint8_t ROOM[SMALL_HEAD] = {0};
    int32_t place = out->at;
    put(out, ROOM, SMALL_HEAD);
    return place;
}

/* End it: of so many values. */
static inline void end(writer *out, int32_t place, int32_t section, int32_t form, int32_t count)
{
    if (out->is_bad)
        return;
    int32_t size = out->at - place - SMALL_HEAD;
    uint8_t *head = out->octets + place;
    if (size > 254 || count > 255) {
        if (WIDE_HEAD - SMALL_HEAD > out->end - out->at) {
            out->is_bad = 1;
            return;
        }
        memmove(head + WIDE_HEAD, head + SMALL_HEAD, (size_t)size);
        out->at += WIDE_HEAD - SMALL_HEAD;
        for (int32_t free = 0; out->free && free < out->free->count; free++)
            if (out->free->places[free].target >= place)
                out->free->places[free].target += WIDE_HEAD - SMALL_HEAD;
        put_size(head + 4, size + 4);
        put_size(head + 8, count);
        form += WIDE;
    } else {
        head[4] = (uint8_t)(size + 1);
        head[5] = (uint8_t)count;
    }
    head[0] = 0;
    head[1] = 0x53;
    head[2] = (uint8_t)section;
    head[3] = (uint8_t)form;
}

/* A signed number: `small` is the constructor for one octet, `code` the other's. */
static inline void put_signed(writer *out, int32_t small, int32_t code, const uint8_t *octets, int32_t size)
{
    int is_small = octets[0] == (octets[size - 1] > 127 ? 255 : 0);
    for (int32_t place = 1; place < size - 1; place++)
        is_small = is_small && octets[place] == octets[0];
    put_octet(out, is_small ? small : code);
    put(out, is_small ? octets + size - 1 : octets, is_small ? 1 : size);
}

/* The sections properties and application-properties of a message of another version, for amqp_1_0_convert.c. */
void leveret_amqp_1_0_write_neutral(const leveret_neutral *neutral, writer *out);

#endif
