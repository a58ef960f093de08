/* Properties and field tables of a publish: the middle of core/amqp_0_9/hot_in.py. */
#include "amqp_0_9_properties.h"
#include "layout.h"
#include "octets.h"

#include <string.h>

enum { DEPTH_MAX = 8 };
enum { SHORT_STRINGS = 0xc7bc }; /* by their flags: all but headers, delivery-mode, priority and timestamp */

static int32_t check_table(const uint8_t *source, int32_t at, int32_t end, int32_t depth);

static int32_t check_array(const uint8_t *source, int32_t at, int32_t end, int32_t depth);

/* Octets of a value by the letter of its type, one more than they are; 0: there is no such type, LONG: four octets of a size stand before them. */
enum { LONG = 255 };
static const uint8_t sizes[256] = {
    ['V'] = 1, ['t'] = 2, ['b'] = 2, ['B'] = 2, ['s'] = 3, ['u'] = 3, ['I'] = 5, ['i'] = 5, ['f'] = 5, ['D'] = 6,
    ['l'] = 9, ['L'] = 9, ['d'] = 9, ['T'] = 9, ['S'] = LONG, ['x'] = LONG, ['A'] = LONG, ['F'] = LONG,
};

static int32_t inner_is_good(const uint8_t *source, int32_t at, int32_t end, int32_t depth, uint8_t letter)
{
    return letter == 'F' ? check_table(source, at, end, depth + 1) : check_array(source, at, end, depth + 1);
}

static inline int32_t value_end(const uint8_t *source, int32_t at, int32_t end, int32_t depth)
{
    uint8_t letter = source[at];
    int32_t size = sizes[letter];
    if (size != LONG)
        return size && size <= end - at ? at + size : -1;
    at += 1;
    if (end - at < 4 || source[at])
        return -1;
    size = size_of(source, at + 1);
    at += 4;
    if (size > end - at)
        return -1;
    if ((letter == 'F' || letter == 'A') && !inner_is_good(source, at, at + size, depth, letter))
        return -1;
    return at + size;
}

/* Whether all octets before `behind` are ASCII; those up to `end` may be read. */
static inline int32_t is_ascii(const uint8_t *source, int32_t at, int32_t behind, int32_t end)
{
    const uint64_t high = 0x8080808080808080u;
    uint64_t octets;
    for (; behind - at >= 8; at += 8) {
        memcpy(&octets, source + at, 8);
        if (octets & high)
            return 0;
    }
    if (end - at >= 8 && at < behind) {
        memcpy(&octets, source + at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        return !(octets & high >> 8 * (8 - (behind - at)));
#else
        return !(octets & high << 8 * (8 - (behind - at)));
#endif
    }
    for (; at < behind; at++)
        if (source[at] > 127)
            return 0;
    return 1;
}

int32_t leveret_value_end(const uint8_t *source, int32_t at, int32_t end)
{
    return value_end(source, at, end, 1);
}

static int32_t check_table(const uint8_t *source, int32_t at, int32_t end, int32_t depth)
{
    int32_t checked = 1;
    if (depth > DEPTH_MAX)
        return 0;
    while (at < end) {
        int32_t size = source[at];
        if (end - at - 1 <= size)
            return 0;
        at += 1;
        if (depth == 1 && (size == 2 || size == 3) && source[at + size - 1] == 'C' && source[at + size - 2] == 'C') {
            if (size == 2)
                checked = SELECTED;
            else if (source[at] == 'B')
                return 0;
        }
        if (!is_ascii(source, at, at + size, end))
            return 0;
        at = value_end(source, at + size, end, depth);
        if (at < 0)
            return 0;
    }
    return checked;
}

static int32_t check_array(const uint8_t *source, int32_t at, int32_t end, int32_t depth)
{
    if (depth > DEPTH_MAX)
        return 0;
    while (at < end) {
        at = value_end(source, at, end, depth);
        if (at < 0)
            return 0;
    }
    return 1;
}

/* See hot_in.digits. */
static int32_t digits(const uint8_t *source, int32_t at, int32_t behind, int32_t end)
{
    if (behind > end || behind == at || behind - at > 8)
        return -1;
    int32_t number = 0;
    for (; at < behind; at++) {
        if (source[at] < '0' || source[at] > '9')
            return -1;
        number = number * 10 + source[at] - '0';
    }
    return number;
}

int32_t leveret_check_properties(int32_t *state, const uint8_t *source, int32_t at, int32_t end, int32_t requests)
{
    int32_t kind = 0, lifetime = -1, checked = 1;
    int32_t flags = source[at] << 8 | source[at + 1];
    if (flags & 0x0013)
        return 0;
    at += 2;
    for (int32_t left = flags & 0xfffc, bit; left; left ^= bit) {
        int32_t size = 1;
        bit = 1 << (31 - __builtin_clz((uint32_t)left));
        if (bit & SHORT_STRINGS) {
            if (at < end)
                size = 1 + source[at];
            if (bit == 0x0200 && size == 22) {
                if (!requests || size > end - at || memcmp(source + at + 1, "amq.rabbitmq.reply-to", 21))
                    return 0;
                kind |= KIND_ANNOTATED | KIND_REPLY_TO;
            } else if (bit == 0x0100 && at < end) {
                lifetime = digits(source, at + 1, at + size, end);
                if (lifetime < 0)
                    return 0;
            }
        } else if (bit == 0x2000) {
            if (end - at < 4 || source[at])
                return 0;
            size = 4 + size_of(source, at + 1);
            if (size > end - at)
                return 0;
            checked = check_table(source, at + 4, at + size, 1);
            if (!checked)
                return 0;
        } else if (bit == 0x1000) {
            if (at < end && source[at] == 2)
                kind |= KIND_DURABLE;
        } else if (bit == 0x0800) {
            if (at < end)
                kind |= KIND_HAS_PRIORITY | source[at] << KIND_PRIORITY;
        } else {
            size = 8;
        }
        at += size;
        if (at > end)
            return 0;
    }
    state[STATE_KIND] = kind;
    state[STATE_LIFETIME] = lifetime;
    return at == end ? checked : 0;
}

int32_t leveret_fields(const uint8_t *source, int32_t at, int32_t end, const uint8_t *names, int32_t names_size, uint8_t *target, int32_t room)
{
    int32_t flags = source[at], size = 0;
    at += 2;
    for (int32_t bit = 0x80; bit > 0x20; bit >>= 1)
        if (flags & bit && at < end)
            at += 1 + source[at];
    if (!(flags & 0x20) || end - at < 4 || source[at] || size_of(source, at + 1) > end - at - 4 || !size_of(source, at + 1))
        return NO_FIELDS;
    end = at + 4 + size_of(source, at + 1);
    at += 4;
    while (at < end) {
        const uint8_t *name = source + at;
        int32_t behind = at + 1 + name[0];
        if (behind >= end)
            return NO_FIELDS;
        int32_t wanted = name[0] == 2 && name[1] == 'C' && name[2] == 'C';
        if (name[0] == 3 && name[1] == 'B' && name[2] == 'C' && name[3] == 'C')
            return NO_FIELDS;
        behind = value_end(source, behind, end, 1);
        if (behind < 0)
            return NO_FIELDS;
        for (int32_t each = 0; each < names_size && !wanted; each += 1 + names[each])
            wanted = names[each] == name[0] && memcmp(names + each + 1, name + 1, name[0]) == 0;
        if (wanted) {
            if (size <= room && behind - at <= room - size)
                memcpy(target + size, name, (size_t)(behind - at));
            size += behind - at;
        }
        at = behind;
    }
    return size || names_size ? size : NO_FIELDS;
}

int32_t leveret_message_id(const uint8_t *source, int32_t at, int32_t *size)
{
    int32_t flags = source[at] << 8 | source[at + 1];
    *size = -1;
    if (!(flags & 0x0080))
        return at;
    at += 2;
    for (int32_t bit = 0x8000; bit > 0x0080; bit >>= 1)
        if (flags & bit)
            at += bit == 0x2000 ? 4 + (int32_t)word_of(source, at) : bit == 0x1000 || bit == 0x0800 ? 1 : 1 + source[at];
    *size = source[at];
    return at + 1;
}

int32_t leveret_header(const uint8_t *source, int32_t end, const uint8_t *name, int32_t *size)
{
    int32_t at = 2, found = end;
    *size = -1;
    if (!(source[0] & 0x20))
        return found;
    for (int32_t bit = 0x80; bit > 0x20; bit >>= 1)
        if (source[0] & bit && at < end)
            at += 1 + source[at];
    if (end - at < 4 || source[at] || size_of(source, at + 1) > end - at - 4)
        return 0;
    end = at + 4 + size_of(source, at + 1);
    at += 4;
    while (at < end) {
        int32_t value = at + 1 + source[at], behind = value < end ? value_end(source, value, end, 1) : -1;
        if (behind < 0)
            return 0;
        if (memcmp(source + at, name, 1 + (size_t)name[0]) == 0) { /* the last one counts */
            *size = source[value] == 'S' ? behind - value - 5 : -1;
            found = source[value] == 'S' ? value + 5 : source[value] == 'V' ? value : 0;
        }
        at = behind;
    }
    return found;
}
