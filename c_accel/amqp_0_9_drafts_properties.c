/* Properties of class jms of the drafts as those of class basic, and back: core/amqp_0_9/drafts/hot_in_quicker.py and hot_out_quicker.py. */
#include "amqp_0_9_drafts.h"
#include "writer.h"

enum { DESTINATION = 2, HEADERS = 2, MODE = 3, PRIORITY = 4, TIME = 9, COUNT = 13 }; /* places among the properties of class basic, and before which it is */
enum { NAMES_MAX = 32, NAME_MAX = 128, TIME_DIGITS = 18, DECIMALS_MAX = 9, EXACT_DECIMALS = 22, SHORT_TEXT = 255, LONG_TEXT = 0xFFFF };

static const double TENS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* ASCII without zeros. */
static int is_text(const uint8_t *octets, int32_t size)
{
    for (int32_t place = 0; place < size; place++)
        if (octets[place] == 0 || octets[place] > 127)
            return 0;
    return 1;
}

static int is_letter(int32_t octet)
{
    return (octet >= 'a' && octet <= 'z') || (octet >= 'A' && octet <= 'Z') || octet == '$' || octet == '#';
}

/* See fields.is_name. */
static int is_name(const uint8_t *name, int32_t size)
{
    if (size == 0 || size > NAME_MAX || !is_letter(name[0]))
        return 0;
    for (int32_t place = 1; place < size; place++)
        if (!is_letter(name[place]) && name[place] != '_' && (name[place] < '0' || name[place] > '9'))
            return 0;
    return 1;
}

/* The names of a table so far: true where one more is new to it and there is a place. */
typedef struct {
    int32_t count;
    const uint8_t *names[NAMES_MAX]; /* each behind its size */
} names_seen;

static int is_new(names_seen *seen, const uint8_t *name)
{
    if (seen->count == NAMES_MAX)
        return 0;
    for (int32_t place = 0; place < seen->count; place++)
        if (!memcmp(seen->names[place], name, 1 + (size_t)name[0]))
            return 0;
    seen->names[seen->count++] = name;
    return 1;
}

static void put_word(writer *out, int32_t place)
{
    if (!out->is_bad)
        put_size(out->octets + place, out->at - place - 4);
}

/* The pairs of a draft's table between `at` and `end` as a table of class basic. */
static void put_basic_table(writer *out, const uint8_t *octets, int32_t at, int32_t end, int32_t is_short)
{
    names_seen seen = {0};
    int32_t place = out->at;
    put_octets_of(out, 0, 4);
    while (at < end && !out->is_bad) {
        int32_t name = octets[at], value = at + 1 + name, left = end - value - 1;
        if (left < 0 || !is_name(octets + at + 1, name) || !is_new(&seen, octets + at)) {
            out->is_bad = 1;
            return;
        }
        put(out, octets + at, 1 + name);
        const uint8_t *given = octets + value + 1;
        int32_t letter = octets[value], size = 4, width = 0;
        if (letter == 'T') {
            size = 8;
        } else if (letter == 'D') {
            size = 5;
        } else if (letter == 'S' || (is_short && letter == 'L')) {
            width = letter == 'L' ? 2 : is_short ? 1 : 4;
            if (left < width || (width == 4 && given[0])) {
                out->is_bad = 1;
                return;
            }
            size = width == 1 ? given[0] : width == 2 ? given[0] << 8 | given[1] : size_of(given, 1);
            given += width;
            left -= width;
        } else if (letter != 'I') {
            out->is_bad = 1;
        }
        if (size > left || (width && !is_text(given, size)) || (letter == 'D' && given[0] > EXACT_DECIMALS)) {
            out->is_bad = 1;
            return;
        }
        if (letter == 'D') {
            double number = (double)(int32_t)word_of(given, 1) / TENS[given[0]];
            uint64_t bits;
            memcpy(&bits, &number, sizeof bits);
            put_octet(out, 'd');
            put_octets_of(out, bits, 8);
        } else {
            put_octet(out, width ? 'S' : letter);
            if (width)
                put_octets_of(out, (uint64_t)size, 4);
            put(out, given, size);
        }
        at = (int32_t)(given - octets) + size;
    }
    put_word(out, place);
}

int32_t leveret_drafts_write_basic(const uint8_t *octets, int32_t size, int32_t is_short, uint8_t *target, int32_t room, int32_t *destination)
{
    writer out = {target, 2, room, 0, NULL};
    uint32_t flags = (uint32_t)octets[0] << 8 | octets[1], basic = 0;
    int32_t at = 2;
    *destination = -1;
    if (flags & (is_short ? 3u : 7u))
        return -1;
    for (int32_t own = 0; own < COUNT + is_short && !out.is_bad; own++) {
        if (!(flags & 0x8000u >> own))
            continue;
        int32_t is_destination = is_short && own == DESTINATION, property = is_short && own > DESTINATION ? own - 1 : own, left = size - at;
        int32_t length = 1;
        if (property == HEADERS && !is_destination) {
            if (left < 4 || octets[at] || size_of(octets, at + 1) > left - 4)
                return -1;
            length = 4 + size_of(octets, at + 1);
            put_basic_table(&out, octets, at + 4, at + length, is_short);
        } else if (property == TIME && !is_short) {
            length = 8;
            if (left < 8)
                return -1;
            put(&out, octets + at, 8);
        } else if (property == MODE || property == PRIORITY) {
            if (left < 1)
                return -1;
            put(&out, octets + at, 1);
        } else {
            if (left < 1 || octets[at] >= left || !is_text(octets + at + 1, octets[at]))
                return -1;
            length += octets[at];
            if (is_destination) {
                *destination = at;
            } else if (property == TIME) {
                uint64_t time = 0;
                if (length == 1 || length > 1 + TIME_DIGITS)
                    return -1;
                for (int32_t place = 1; place < length; place++) {
                    if (octets[at + place] < '0' || octets[at + place] > '9')
                        return -1;
                    time = 10 * time + octets[at + place] - '0';
                }
                put_octets_of(&out, time, 8);
            } else {
                put(&out, octets + at, length);
            }
        }
        at += length;
        if (!is_destination)
            basic |= 0x8000u >> property;
    }
    if (room < 2 || out.is_bad || at != size)
        return -1;
    target[0] = (uint8_t)(basic >> 8);
    target[1] = (uint8_t)basic;
    return out.at;
}

/* A fraction as a decimal that is equal to it; see fields.decimal. */
static void put_decimal(writer *out, double number)
{
    for (int32_t decimals = 0; decimals <= DECIMALS_MAX; decimals++) {
        double scaled = number * TENS[decimals];
        if (!(scaled >= -2147483648.0 && scaled < 2147483648.0))
            break;
        if ((double)(int32_t)scaled == scaled) {
            put_octet(out, 'D');
            put_octet(out, decimals);
            put_octets_of(out, (uint32_t)(int32_t)scaled, 4);
            return;
        }
    }
    out->is_bad = 1; /* Python writes its digits */
}

static void put_text(writer *out, const void *octets, int32_t size, int32_t is_short)
{
    int32_t is_long = is_short && (size > SHORT_TEXT || memchr(octets, 0, (size_t)size));
    if (is_long && size > LONG_TEXT)
        size = LONG_TEXT;
    put_octet(out, is_long ? 'L' : 'S');
    put_octets_of(out, (uint64_t)size, is_long ? 2 : is_short ? 1 : 4);
    put(out, octets, size);
}

/* A whole number: as digits where 32 bits are too few. */
static void put_whole(writer *out, int64_t number, int32_t is_short)
{
    if (number >= INT32_MIN && number <= INT32_MAX) {
        put_octet(out, 'I');
        put_octets_of(out, (uint64_t)number, 4);
        return;
    }
    uint8_t digits[21];
    writer text = {digits, 0, sizeof digits, 0, NULL};
    put_digits(&text, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    digits[0] = '-';
    put_text(out, number < 0 ? digits : digits + 1, number < 0 ? text.at : text.at - 1, is_short);
}

/* Octets of a value of class basic behind its letter, or of a size before it; -1: it is for Python. */
static int32_t value_size(int32_t letter)
{
    switch (letter) {
    case 'V':
        return 0;
    case 't': case 'b': case 'B':
        return 1;
    case 's': case 'u':
        return 2;
    case 'I': case 'i': case 'f': case 'S': case 'x': case 'A': case 'F':
        return 4;
    case 'D':
        return 5;
    case 'l': case 'L': case 'd': case 'T':
        return 8;
    default:
        return -1;
    }
}

static void put_number_value(writer *out, int32_t letter, const uint8_t *value, int32_t size, int32_t is_short)
{
    int32_t is_signed = letter == 'b' || letter == 's' || letter == 'I' || letter == 'l' || letter == 'L';
    uint64_t bits = is_signed && value[0] > 127 ? ~(uint64_t)0 : 0;
    for (int32_t place = 0; place < size; place++)
        bits = bits << 8 | value[place];
    if (letter == 'd') {
        double number;
        memcpy(&number, &bits, sizeof number);
        put_decimal(out, number);
    } else if (letter == 'f') {
        uint32_t half = (uint32_t)bits;
        float number;
        memcpy(&number, &half, sizeof number);
        put_decimal(out, number);
    } else {
        put_whole(out, letter == 't' ? bits != 0 : (int64_t)bits, is_short);
    }
}

/* A valid table of class basic between `at` and `end` as a draft's. */
static void put_jms_table(writer *out, const uint8_t *octets, int32_t at, int32_t end, int32_t is_short)
{
    static const char TREE[] = "x-content-tree";
    names_seen seen = {0};
    int32_t place = out->at;
    put_octets_of(out, 0, 4);
    while (at < end && !out->is_bad) {
        int32_t name = at, value = at + 1 + octets[at], letter = octets[value++], size = value_size(letter), is_sized = size == 4 && strchr("SxAF", letter);
        int32_t text = is_sized ? (int32_t)word_of(octets, value) : 0;
        at = value + size + text;
        if (size < 0 || (octets[name] == sizeof TREE - 1 && !memcmp(octets + name + 1, TREE, sizeof TREE - 1))) {
            out->is_bad = 1;
            return;
        }
        if (letter == 'V' || letter == 'A' || !is_name(octets + name + 1, octets[name]))
            continue;
        if (letter == 'F' || !is_new(&seen, octets + name))
            out->is_bad = 1;
        put(out, octets + name, 1 + octets[name]);
        if (is_sized) {
            put_text(out, octets + value + 4, text, is_short);
        } else if (letter == 'T') {
            put_octet(out, 'T');
            put(out, octets + value, 8);
        } else if (letter == 'D') {
            if (octets[value] > EXACT_DECIMALS)
                out->is_bad = 1;
            else
                put_decimal(out, (double)(int32_t)word_of(octets, value + 1) / TENS[octets[value]]);
        } else {
            put_number_value(out, letter, octets + value, size, is_short);
        }
    }
    put_word(out, place);
}

int32_t leveret_drafts_write_jms(const uint8_t *octets, const uint8_t *destination, uint8_t *target, int32_t room)
{
    writer out = {target, 2, room, 0, NULL};
    uint32_t flags = (uint32_t)octets[0] << 8 | octets[1], own = 0;
    int32_t at = 2, is_short = destination != NULL;
    for (int32_t property = 0; property < COUNT && !out.is_bad; property++) {
        if (property == DESTINATION && destination) {
            own |= 0x8000u >> DESTINATION;
            put(&out, destination, 1 + destination[0]);
        }
        if (!(flags & 0x8000u >> property))
            continue;
        own |= 0x8000u >> (property + (is_short && property >= DESTINATION));
        int32_t length = property == MODE || property == PRIORITY ? 1 : property == TIME ? 8 : 1 + octets[at];
        if (property == HEADERS) {
            length = 4 + (int32_t)word_of(octets, at);
            put_jms_table(&out, octets, at + 4, at + length, is_short);
        } else if (property == TIME && is_short) {
            uint64_t time = (uint64_t)word_of(octets, at) << 32 | word_of(octets, at + 4);
            put_digits(&out, time);
        } else {
            put(&out, octets + at, length);
        }
        at += length;
    }
    if (room < 2 || out.is_bad)
        return -1;
    target[0] = (uint8_t)(own >> 8);
    target[1] = (uint8_t)own;
    return out.at;
}
