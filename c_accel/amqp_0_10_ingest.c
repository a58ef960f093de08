/* From a receive buffer transfers of AMQP 0-10 that need no thought: core/amqp_0_10/hot_in.py in C, with the same functions. */
#include "amqp_0_10.h"
#include "amqp_0_10_frame.h"
#include "match.h"
#include "publish.h"
#include "queues.h"
#include "routes.h"

#include <string.h>

enum { PRIORITY_MAX = 9, WAY_MAX = 512 };

/* The end of a whole frame with these flags and this segment type, on the track and the channel of `lead`; -1: there is none. */
static int32_t frame_end(const uint8_t *source, int32_t at, int32_t end, const uint8_t *lead, int32_t flags, int32_t type, int32_t frame_max)
{
    if (end - at < FRAME_HEAD || source[at] != flags || source[at + 1] != type || memcmp(source + at + 4, lead + 4, 8))
        return -1;
    int32_t size = short_of(source, at + 2);
    return size > FRAME_HEAD && size <= frame_max && size <= end - at ? at + size : -1;
}

/* How many octets are not ASCII: none, or some. */
static int high_octets(const uint8_t *source, int32_t at, int32_t end)
{
    uint64_t word = 0, octets;
    for (; end - at >= 8; at += 8) {
        memcpy(&octets, source + at, 8);
        word |= octets;
    }
    uint8_t last = 0;
    for (; at < end; at++)
        last |= source[at];
    return (word & 0x8080808080808080u) || last & 0x80;
}

/* The end of the str8 at `at`, all ASCII; -1: there is none before `end`. */
static int32_t text_end(const uint8_t *source, int32_t at, int32_t end)
{
    if (at >= end)
        return -1;
    int32_t behind = at + 1 + source[at];
    return behind <= end && !high_octets(source, at + 1, behind) ? behind : -1;
}

/* The end of the vbin16 at `at`; -1: there is none before `end`. */
static int32_t octets_end(const uint8_t *source, int32_t at, int32_t end)
{
    if (end - at < 2)
        return -1;
    int32_t behind = at + 2 + short_of(source, at);
    return behind <= end ? behind : -1;
}

/* The end of the value whose type stands at `at`; -1: it is another than a plain one, or not whole. */
static int32_t value_end(const uint8_t *source, int32_t at, int32_t end)
{
    int32_t code = source[at++];
    switch (code) {
    case 0x85: /* str8 */
        return text_end(source, at, end);
    case 0x80: /* vbin8 */
        if (at >= end)
            return -1;
        at += 1 + source[at];
        break;
    case 0xA0: /* vbin32 */
        if (end - at < 4 || source[at] || source[at + 1])
            return -1;
        return octets_end(source, at + 2, end);
    case 0x90: /* vbin16 */
        return octets_end(source, at, end);
    case 0x95: { /* str16 */
        int32_t behind = octets_end(source, at, end);
        return behind < 0 || high_octets(source, at + 2, behind) ? -1 : behind;
    }
    case 0x01: case 0x02: case 0x08: /* int8, uint8, boolean */
        at += 1;
        break;
    case 0x11: case 0x12: /* int16, uint16 */
        at += 2;
        break;
    case 0x21: case 0x22: case 0x23: /* int32, uint32, float */
        at += 4;
        break;
    case 0x31: case 0x32: case 0x33: case 0x38: /* int64, uint64, double, datetime */
        at += 8;
        break;
    case 0x48: /* uuid */
        at += 16;
        break;
    case 0xF0: /* void */
        break;
    default:
        return -1;
    }
    return at <= end ? at : -1;
}

/* The end of the map at `at`, which is `end`: its keys are ASCII, each once, and its values plain; -1: it is not so. */
static int32_t map_end(leveret_amqp_0_10_run *run, const uint8_t *source, int32_t at, int32_t end)
{
    if (end - at < 8 || source[at] || source[at + 1] || source[at + 4] || source[at + 5] || source[at + 6])
        return -1;
    if (at + 4 + short_of(source, at + 2) != end)
        return -1;
    int32_t count = source[at + 7];
    at += 8;
    if (count > LEVERET_KEYS_MAX)
        return -1;
    for (int32_t pair = 0; pair < count; pair++) {
        int32_t behind = text_end(source, at, end);
        if (behind < 0 || behind >= end)
            return -1;
        for (int32_t other = 0; other < pair; other++)
            if (source[run->keys[other]] == source[at] && memcmp(source + run->keys[other], source + at, (size_t)(behind - at)) == 0)
                return -1;
        run->keys[pair] = at;
        at = value_end(source, behind, end);
        if (at < 0)
            return -1;
    }
    return at == end ? at : -1;
}

/* Read delivery-properties, whose packing flags stand at `at`: 0, or -1: they are not as usual. */
static int32_t read_delivery(int32_t *state, leveret_amqp_0_10_run *run, uint8_t *way, const uint8_t *source, int32_t at, int32_t end)
{
    int32_t flags = source[at], further = source[at + 1];
    at += 2;
    if (flags & 2 || further & 0xFC) /* immediate; resume-id, resume-ttl, no field */
        return -1;
    if (flags & 8) { /* priority */
        if (source[at] > PRIORITY_MAX)
            return -1;
        state[STATE_KIND] |= KIND_HAS_PRIORITY | source[at++] << KIND_PRIORITY;
    }
    if (flags & 16 && source[at++] == 2) /* delivery-mode */
        state[STATE_KIND] |= KIND_DURABLE;
    if (flags & 32) { /* ttl */
        if (source[at] | source[at + 1] | source[at + 2] | source[at + 3] || source[at + 4] > 63)
            return -1;
        state[STATE_LIFETIME] = (int32_t)word_of(source, at + 4);
        at += 8;
    } else if (flags & 128) { /* an expiration alone */
        return -1;
    }
    at += (flags >> 3 & 8) + (flags >> 4 & 8); /* timestamp, expiration */
    if (further & 1) { /* exchange */
        at = text_end(source, at, end);
        if (at < 0)
            return -1;
    }
    int32_t size = run->exchange;
    way[size] = 0;
    run->route = size + 1;
    if (further & 2) { /* routing-key */
        int32_t behind = text_end(source, at, end);
        if (behind < 0)
            return -1;
        memcpy(way + size, source + at, (size_t)(behind - at));
        run->route = size + behind - at;
        at = behind;
    }
    return at == end ? 0 : -1;
}

/* Read message-properties, whose packing flags stand at `at`: 0, or -1: they are not as usual. */
static int32_t read_message(leveret_amqp_0_10_run *run, const uint8_t *source, int32_t at, int32_t end)
{
    int32_t flags = source[at], further = source[at + 1];
    at += 2;
    if (flags & 64 || further > 1) /* user-id */
        return -1;
    at += (flags & 1) << 3; /* content-length */
    at += (flags & 2) << 3; /* message-id */
    if (flags & 4 && (at = octets_end(source, at, end)) < 0) /* correlation-id */
        return -1;
    if (flags & 8) { /* reply-to */
        int32_t behind = octets_end(source, at, end);
        if (behind < at + 4 || source[at + 2] > 3 || source[at + 3])
            return -1;
        int32_t fields = source[at + 2];
        at += 4;
        for (; fields; fields >>= 1)
            if (fields & 1 && (at = text_end(source, at, behind)) < 0)
                return -1;
        if (at != behind)
            return -1;
    }
    if (flags & 16 && (at = text_end(source, at, end)) < 0) /* content-type */
        return -1;
    if (flags & 32 && (at = text_end(source, at, end)) < 0) /* content-encoding */
        return -1;
    if (flags & 128 && (at = octets_end(source, at, end)) < 0) /* app-id */
        return -1;
    if (further) /* application-headers */
        at = map_end(run, source, at, end);
    return at == end ? 0 : -1;
}

/* Read a header segment: 0, with KIND and LIFETIME in `state` and the routing key in `way`; -1: it is not as usual. Behind `end` stands the head of
 * another frame, so that a field which is not whole may be read. */
static int32_t read_header(int32_t *state, leveret_amqp_0_10_run *run, uint8_t *way, const uint8_t *source, int32_t at, int32_t end)
{
    int32_t has_delivery = 0, has_message = 0;
    state[STATE_KIND] = AMQP_0_10;
    state[STATE_LIFETIME] = -1;
    while (at < end) {
        int32_t behind = at + 4 + short_of(source, at + 2);
        if (source[at] || source[at + 1] || source[at + 4] != 4 || behind > end || behind < at + 8)
            return -1;
        int32_t code = source[at + 5];
        if (code == 1 && !has_delivery) {
            has_delivery = 1;
            if (read_delivery(state, run, way, source, at + 6, behind) < 0)
                return -1;
        } else if (code == 3 && !has_message) {
            has_message = 1;
            if (read_message(run, source, at + 6, behind) < 0)
                return -1;
        } else {
            return -1;
        }
        at = behind;
    }
    return has_delivery - 1;
}

/* The transfer at state[AT]: the position behind it, or why it is not taken. */
static int32_t ingest_one(const leveret_tables *t, leveret_amqp_0_10_run *run, const uint8_t *lead, uint8_t *way, const uint8_t *source)
{
    int32_t *state = t->state;
    int32_t end = state[STATE_END], frame_max = state[STATE_FRAME_MAX], header = state[STATE_AT] + run->lead;
    if (end - header < 2 * FRAME_HEAD || memcmp(source + state[STATE_AT], lead, (size_t)run->lead))
        return ASK;
    int32_t body = frame_end(source, header, end, lead, 3, 2, frame_max); /* the only frame of a header segment, which is not the last segment */
    if (body < 0)
        return ASK;
    int32_t behind = frame_end(source, body, end, lead, 7, 3, frame_max);
    if (behind < 0)
        return ASK;
    header += FRAME_HEAD;
    if (read_header(state, run, way, source, header, body) < 0)
        return ASK;
    int32_t slot = find_route(t, way, 0, run->route);
    if (slot < 0)
        slot = leveret_find_way(t, way, 0, run->route);
    if (slot < 0)
        return ASK_ROUTE;
    int32_t properties = body - header;
    body += FRAME_HEAD;
    int32_t size = behind - body;
    if (properties > state[STATE_PROPERTIES_MAX] || size > state[STATE_CONTENT_MAX])
        return ASK;
    int32_t blocks_needed = (run->route + properties + size + state[STATE_BLOCK_SIZE] - 1) / state[STATE_BLOCK_SIZE];
    if (t->identities)
        t->identities->read = ID_UNREAD; /* Python looks for ids of this family */
    if (t->latest)
        t->latest->properties = NULL; /* and for its headers */
    int32_t logged = may_push(t, slot, state[STATE_LIFETIME], blocks_needed, size);
    if (!logged || (logged == PLAIN_STREAM && is_named(source, header, header + properties)))
        return ASK;
    int32_t message = new_message(t, run->route, properties, size, blocks_needed);
    append(t, message, way, 0, run->route);
    append(t, message, source, header, properties);
    append(t, message, source, body, size);
    publish(t, run->record, slot, message, logged);
    return behind;
}

int32_t leveret_amqp_0_10_ingest(const leveret_tables *t, leveret_amqp_0_10_run *run, const uint8_t *lead, uint8_t *way, const uint8_t *source)
{
    for (; run->taken < run->most; run->taken++) {
        if (t->state[STATE_LEFT] <= 0)
            return TURN_OVER;
        int32_t answer = ingest_one(t, run, lead, way, source);
        if (answer < 0)
            return answer;
        t->state[STATE_AT] = answer;
        t->state[STATE_LEFT] -= 1;
    }
    return ASK;
}
