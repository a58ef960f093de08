/* The sections of a message of AMQP 1.0 (part 3, section 3.2) as nearly all have them: header, properties, application-properties, and one data section
 * that ends with the message. What is taken here core/amqp_1_0/sections.py takes too, with the same kind and lifetime; all else is its to judge:
 * texts beyond ASCII, a user-id, annotations, bodies of another form. */
#include "amqp_1_0_message.h"
#include "layout.h"
#include "octets.h"

#include <string.h>

enum { AMQP_1_0 = 2 }; /* core/message/formats.py */
enum { SECTION_HEADER = 0x70, SECTION_PROPERTIES = 0x73, SECTION_APPLICATION = 0x74, SECTION_DATA = 0x75 };
enum { KEYS_MAX = 16 };

enum { EXPIRY = 8 }; /* the place of absolute-expiry-time among the fields of properties */

/* What stands in a field of properties, in their order. */
static const char FIELDS[] = "i-sssiyyttsus"; /* i message-id, - nothing (user-id), s string, y symbol, t timestamp, u uint */

typedef struct {
    const uint8_t *source;
    int32_t at;
    int32_t end;
} reader;

/* Whether `size` octets are ASCII: eight at a time, of which the last may be read twice. */
static inline int is_ascii(const uint8_t *text, int32_t size)
{
    uint64_t high = 0, eight;
    if (size < 8) {
        for (int32_t place = 0; place < size; place++)
            high |= text[place];
        return !(high & 0x80);
    }
    for (int32_t place = 0; place < size - 8; place += 8) {
        memcpy(&eight, text + place, 8);
        high |= eight;
    }
    memcpy(&eight, text + size - 8, 8);
    return !((high | eight) & 0x8080808080808080u);
}

/* Pass octets; 0: they are not there. */
static inline int pass(reader *in, int32_t size)
{
    if (size > in->end - in->at)
        return 0;
    in->at += size;
    return 1;
}

/* Pass a value of variable width behind its constructor: one octet of size (wide: four). */
static inline int pass_sized(reader *in, int wide, int is_text)
{
    int32_t head = wide ? 4 : 1;
    if (in->end - in->at < head)
        return 0;
    uint32_t size = wide ? word_of(in->source, in->at) : in->source[in->at];
    if (size > (uint32_t)(in->end - in->at - head))
        return 0;
    in->at += head + (int32_t)size;
    return !is_text || is_ascii(in->source + in->at - size, (int32_t)size);
}

/* Pass a scalar value of any type but float, decimal and char, which are rare. */
static inline int pass_scalar(reader *in)
{
    if (in->at >= in->end)
        return 0;
    uint8_t code = in->source[in->at++];
    if (code == 0xA1)
        return pass_sized(in, 0, 1);
    switch (code) {
    case 0x40: case 0x41: case 0x42: case 0x43: case 0x44:
        return 1;
    case 0x50: case 0x51: case 0x52: case 0x53: case 0x54: case 0x55:
        return pass(in, 1);
    case 0x60: case 0x61:
        return pass(in, 2);
    case 0x70: case 0x71:
        return pass(in, 4);
    case 0x80: case 0x81: case 0x82: case 0x83:
        return pass(in, 8);
    case 0x98:
        return pass(in, 16);
    case 0xA0: case 0xB0:
        return pass_sized(in, code == 0xB0, 0);
    case 0xA3: case 0xB1: case 0xB3:
        return pass_sized(in, code >= 0xB0, 1);
    default:
        return 0;
    }
}

/* Pass a field of properties. */
static inline int pass_field(reader *in, char kind)
{
    if (in->at >= in->end)
        return 0;
    uint8_t code = in->source[in->at];
    int fits = code == 0x40;
    if (kind == 'i')
        fits |= code == 0x44 || code == 0x53 || code == 0x80 || code == 0x98 || code == 0xA0 || code == 0xB0 || code == 0xA1 || code == 0xB1;
    else if (kind == 's')
        fits |= code == 0xA1 || code == 0xB1;
    else if (kind == 'y')
        fits |= code == 0xA3 || code == 0xB3;
    else if (kind == 't')
        fits |= code == 0x83;
    else if (kind == 'u')
        fits |= code == 0x43 || code == 0x52 || code == 0x70;
    return fits && pass_scalar(in);
}

/* Begin a list (0x45, 0xC0, 0xD0) or a map (0xC1, 0xD1): the count of its values, with `in` at the first and ending behind the last; -1. */
static int32_t begin_compound(reader *in, int is_map)
{
    if (in->at >= in->end)
        return -1;
    uint8_t code = in->source[in->at++];
    if (code == 0x45 && !is_map) {
        in->end = in->at;
        return 0;
    }
    int32_t width = code == (is_map ? 0xC1 : 0xC0) ? 1 : code == (is_map ? 0xD1 : 0xD0) ? 4 : 0;
    if (width == 0 || in->end - in->at < 2 * width)
        return -1;
    uint32_t size = width == 1 ? in->source[in->at] : word_of(in->source, in->at);
    uint32_t count = width == 1 ? in->source[in->at + 1] : word_of(in->source, in->at + 4);
    if (size < (uint32_t)width || size > (uint32_t)(in->end - in->at - width) || count > size)
        return -1;
    in->end = in->at + width + (int32_t)size;
    in->at += 2 * width;
    return (int32_t)count;
}

/* true 1, false 0, null 2, else -1. */
static int boolean(reader *in)
{
    if (in->at >= in->end)
        return -1;
    uint8_t code = in->source[in->at++];
    if (code == 0x41 || code == 0x42)
        return code == 0x41;
    if (code == 0x56 && in->at < in->end && in->source[in->at] < 2)
        return in->source[in->at++];
    return code == 0x40 ? 2 : -1;
}

/* A uint below 2^31, -1: null, -2: neither. */
static int32_t whole(reader *in)
{
    if (in->at >= in->end)
        return -2;
    uint8_t code = in->source[in->at++];
    if (code == 0x40)
        return -1;
    if (code == 0x43)
        return 0;
    if (code == 0x52 && in->at < in->end)
        return in->source[in->at++];
    if (code != 0x70 || in->end - in->at < 4 || in->source[in->at] > 127)
        return -2;
    in->at += 4;
    return (int32_t)word_of(in->source, in->at - 4);
}

/* The header (section 3.2.1): 1, with state[KIND] and state[LIFETIME]. */
static int check_header(int32_t *state, reader *in)
{
    int32_t count = begin_compound(in, 0);
    if (count < 0 || count > 5)
        return 0;
    int durable = count > 0 ? boolean(in) : 2;
    if (durable < 0)
        return 0;
    if (durable == 1)
        state[STATE_KIND] |= KIND_DURABLE;
    if (count > 1) {
        if (in->at >= in->end)
            return 0;
        uint8_t code = in->source[in->at++];
        if (code == 0x50 && in->at < in->end)
            state[STATE_KIND] |= KIND_HAS_PRIORITY | in->source[in->at++] << KIND_PRIORITY;
        else if (code != 0x40)
            return 0;
    }
    if (count > 2) {
        int32_t ttl = whole(in);
        if (ttl < -1 || ttl > MASK)
            return 0;
        state[STATE_LIFETIME] = ttl;
    }
    int first = count > 3 ? boolean(in) : 2;
    if (first < 0)
        return 0;
    if (first == 1) /* the first receiver's alone: Python writes the header of the others */
        state[STATE_KIND] |= KIND_FOR_US;
    if (count > 4 && whole(in) < -1)
        return 0;
    return in->at == in->end;
}

/* Properties (section 3.2.4). */
static int check_properties(int32_t *state, reader *in)
{
    int32_t count = begin_compound(in, 0);
    if (count < 0 || count > (int32_t)sizeof FIELDS - 1)
        return 0;
    for (int32_t field = 0; field < count; field++) {
        /* an absolute-expiry-time where the header has no ttl: the clock is Python's */
        if (field == EXPIRY && state[STATE_LIFETIME] == NONE && in->at < in->end && in->source[in->at] != 0x40)
            return 0;
        if (!pass_field(in, FIELDS[field]))
            return 0;
    }
    return in->at == in->end;
}

/* Application-properties (section 3.2.5): texts, each once, and scalars. */
static int check_application(reader *in)
{
    int32_t keys[KEYS_MAX], sizes[KEYS_MAX];
    int32_t count = begin_compound(in, 1);
    if (count < 0 || count & 1 || count / 2 > KEYS_MAX)
        return 0;
    for (int32_t pair = 0; pair < count / 2; pair++) {
        if (in->at >= in->end || (in->source[in->at] != 0xA1))
            return 0;
        int32_t key = in->at + 2;
        if (!pass_scalar(in))
            return 0;
        keys[pair] = key;
        sizes[pair] = in->at - key;
        for (int32_t other = 0; other < pair; other++) {
            if (sizes[other] == sizes[pair] && memcmp(in->source + keys[other], in->source + key, (size_t)sizes[pair]) == 0)
                return 0;
        }
        if (!pass_scalar(in))
            return 0;
    }
    return in->at == in->end;
}

int32_t leveret_amqp_1_0_payload(int32_t *state, const uint8_t *source, int32_t at, int32_t end)
{
    int32_t last = 0;
    state[STATE_KIND] = AMQP_1_0;
    state[STATE_LIFETIME] = NONE;
    while (end - at > 4) {
        int32_t code = source[at + 2];
        if (source[at] || source[at + 1] != 0x53 || code <= last)
            return ASK;
        reader in = {source, at + 3, end};
        if (code == SECTION_DATA) {
            int32_t form = source[in.at++];
            if (form != 0xA0 && form != 0xB0)
                return ASK;
            int32_t head = form == 0xB0 ? 4 : 1;
            if (end - in.at < head)
                return ASK;
            uint32_t size = head == 4 ? word_of(source, in.at) : source[in.at];
            return size == (uint32_t)(end - in.at - head) ? in.at + head : ASK;
        }
        if (code == SECTION_HEADER ? !check_header(state, &in) : code == SECTION_PROPERTIES ? !check_properties(state, &in) : code == SECTION_APPLICATION ? !check_application(&in) : 1)
            return ASK;
        at = in.end;
        last = code;
    }
    return ASK;
}
