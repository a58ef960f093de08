/* See perf.h. Everything that comes from the peer is checked against `end` before it is read. */
#include "perf.h"

#include <string.h>

static uint64_t number64(const uint8_t *at)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | at[i];
    return number;
}

static uint32_t number32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void count_latency(uint32_t *bins, uint64_t began, uint64_t now)
{
    uint64_t micros = now > began ? (now - began) / 1000 : 0;
    uint32_t bin = (uint32_t)micros;
    if (micros >= 32) {
        int shift = 0;
        while (micros >> (shift + 6))
            shift++;
        bin = (uint32_t)((uint64_t)(shift + 1) * 32 + ((micros >> shift) - 32));
    }
    bins[bin < LEVERET_PERF_BINS ? bin : LEVERET_PERF_BINS - 1]++;
}

static void put_digits(uint8_t *at, uint64_t number)
{
    for (int i = 0; i < 16; i++)
        at[i] = (uint8_t)"0123456789abcdef"[number >> (60 - 4 * i) & 15];
}

/* The low octets of a number, `octets` of them. */
static void put_number(uint8_t *at, uint64_t number, int octets)
{
    for (int i = 0; i < octets; i++)
        at[i] = (uint8_t)(number >> (8 * (octets - 1 - i)));
}

/* Which of `kinds` message n is: drawn with *draw, in turn where that is 0. */
static int32_t pick(uint64_t n, uint32_t kinds, uint32_t *draw)
{
    if (!*draw)
        return (int32_t)(n % kinds);
    *draw ^= *draw << 13;
    *draw ^= *draw >> 17;
    *draw ^= *draw << 5;
    return (int32_t)(*draw % kinds);
}

/* The last message published waits for its confirm. */
static void await(leveret_perf *p, uint64_t now)
{
    p->sent[p->published % LEVERET_PERF_WINDOW] = now;
    p->done[p->published % LEVERET_PERF_WINDOW] = 0;
}

int32_t leveret_perf_fill(leveret_perf *p, const uint8_t *octets, const int32_t *begins, const int32_t *stamps, const int32_t *ids,
                          int32_t kinds, uint32_t *draw, int32_t confirms, uint8_t *target, int32_t room, int32_t count, uint64_t now)
{
    int32_t at = 0;
    for (int32_t done = 0; done < count; done++) {
        uint32_t drawn = *draw;
        int32_t kind = pick(p->published, (uint32_t)kinds, &drawn);
        int32_t size = begins[kind + 1] - begins[kind];
        if (size > room - at)
            break;
        *draw = drawn;
        memcpy(target + at, octets + begins[kind], (size_t)size);
        if (stamps[kind])
            put_number(target + at + stamps[kind], now, 8);
        p->published++;
        if (ids[kind])
            put_digits(target + at + ids[kind], p->identity + p->published);
        at += size;
        if (confirms)
            await(p, now);
    }
    return at;
}

/* basic.ack or basic.nack of the broker: publishes up to `tag`, or that one. */
static void confirm(leveret_perf *p, uint64_t tag, int multiple, int refused, uint64_t now)
{
    if (tag == 0 && multiple)
        tag = p->published;
    if (tag < p->lowest || tag > p->published)
        return;
    for (uint64_t each = multiple ? p->lowest : tag; each <= tag; each++) {
        uint32_t place = (uint32_t)(each % LEVERET_PERF_WINDOW);
        if (p->done[place])
            continue;
        p->done[place] = 1;
        p->confirmed++;
        p->refused += (uint64_t)refused;
        count_latency(p->confirm_latency, p->sent[place], now);
    }
    while (p->lowest <= p->published && p->done[p->lowest % LEVERET_PERF_WINDOW])
        p->lowest++;
}

static void content_ended(leveret_perf *p, uint64_t now)
{
    p->received++;
    if (p->stamped && p->body_begun)
        count_latency(p->latency, p->sent_at, now);
}

/* The header of a content with a body of `size` octets. */
static void content_begins(leveret_perf *p, uint64_t size, uint64_t now)
{
    p->body_left = size;
    p->body_begun = 0;
    if (size == 0)
        content_ended(p, now);
}

/* A body frame's payload, no longer than what is left of the content. */
static void body(leveret_perf *p, const uint8_t *at, uint32_t size, uint64_t now)
{
    if (!p->body_begun && size >= 8) {
        p->sent_at = number64(at);
        p->body_begun = 1;
    }
    p->octets += size;
    p->body_left -= size;
    if (p->body_left == 0 && size)
        content_ended(p, now);
}

/* A method frame's payload: true when it was a delivery, a message that was asked for or a confirm. */
static int method(leveret_perf *p, const uint8_t *at, uint32_t size, uint64_t now)
{
    uint32_t code = size >= 4 ? number32(at) : 0;
    if (code == (60u << 16 | 60u) && size >= 5 && size >= 5u + at[4] + 9u) {
        p->tag = number64(at + 5 + at[4]);
        return 1;
    }
    if (code == (60u << 16 | 71u) && size >= 12) { /* basic.get-ok */
        p->tag = number64(at + 4);
        return 1;
    }
    if ((code == (60u << 16 | 80u) || code == (60u << 16 | 120u)) && size >= 13) {
        confirm(p, number64(at + 4), at[12] & 1, code == (60u << 16 | 120u), now);
        return 1;
    }
    return 0;
}

int32_t leveret_perf_scan(leveret_perf *p, const uint8_t *octets, int32_t start, int32_t end, uint64_t now, int32_t *other)
{
    *other = 0;
    while (end - start >= 8) {
        const uint8_t *frame = octets + start;
        uint32_t size = number32(frame + 3);
        if (size > 0x7FFFFF00u) {
            *other = -1;
            break;
        }
        if ((int64_t)end - start < (int64_t)size + 8)
            break;
        const uint8_t *payload = frame + 7;
        if (payload[size] != 0xCE) {
            *other = -1;
            break;
        }
        if (frame[0] == 2 && size >= 14) {
            content_begins(p, number64(payload + 4), now);
        } else if (frame[0] == 3 && size <= p->body_left) {
            body(p, payload, size, now);
        } else if (frame[0] != 1 || !method(p, payload, size, now)) {
            *other = 1;
            break;
        }
        start += (int32_t)size + 8;
    }
    return start;
}

/* The drafts of 2005 */

/* A frame's payload that is a jms.deliver, a content header or a piece of a body; `class_octets`: of a class id, a method id and a weight. */
static int frame_of_draft(leveret_perf *p, int type, const uint8_t *at, uint32_t size, uint32_t class_octets, uint64_t now)
{
    uint32_t tag_at = class_octets == 1 ? 4 : 6; /* behind two reserved octets; behind two octets of each id, and the consumer's tag */
    if (type == 1 && size >= tag_at + 8 && at[class_octets - 1] == 7 && at[2 * class_octets - 1] == (class_octets == 1 ? 6 : 7)) {
        p->tag = number64(at + tag_at);
        return 1;
    }
    if (type == 2 && size >= 2 * class_octets + 8) {
        content_begins(p, number64(at + 2 * class_octets), now);
        return 1;
    }
    if (type != 3 || size > p->body_left)
        return 0;
    body(p, at, size, now);
    return 1;
}

int32_t leveret_perf_scan_draft(leveret_perf *p, int32_t is_0_9a5, const uint8_t *octets, int32_t start, int32_t end, uint64_t now,
                                int32_t *other)
{
    *other = 0;
    while (end - start >= (is_0_9a5 ? 4 : 8)) {
        const uint8_t *frame = octets + start;
        int meta = is_0_9a5 && frame[0] == 9; /* the extended header of 0.9a5 behind it */
        uint32_t lead = meta ? 16 : is_0_9a5 ? 4 : 8;
        if (end - start < (int32_t)lead)
            break;
        uint64_t size = meta ? number64(frame + 8) : is_0_9a5 ? ((uint64_t)frame[2] << 8 | frame[3]) : (uint64_t)number32(frame + 4) + 1;
        if (size == 0 || size > 0x7FFFFF00u) { /* it counts the end octet */
            *other = -1;
            break;
        }
        if ((int64_t)end - start < (int64_t)size + lead)
            break;
        const uint8_t *payload = frame + lead;
        if (payload[size - 1] != 0xCE) {
            *other = -1;
            break;
        }
        if (!frame_of_draft(p, frame[meta ? 4 : 0], payload, (uint32_t)size - 1, is_0_9a5 ? 1 : 2, now)) {
            *other = 1;
            break;
        }
        start += (int32_t)(size + lead);
    }
    return start;
}

/* AMQP 1.0 */

int32_t leveret_perf_transfers(leveret_perf *p, const leveret_perf_messages *made, uint32_t *draw, uint64_t transfers_max, int32_t confirms,
                               uint8_t *target, int32_t room, int32_t count, uint64_t now)
{
    int32_t at = 0;
    for (int32_t done = 0; done < count; done++) {
        uint32_t drawn = *draw;
        int32_t kind = pick(p->published, (uint32_t)made->kinds, &drawn);
        int32_t size = made->begins[kind + 1] - made->begins[kind];
        if (size > room - at || p->transfers + (uint32_t)made->transfers[kind] > transfers_max)
            break;
        *draw = drawn;
        uint8_t *message = target + at;
        memcpy(message, made->octets + made->begins[kind], (size_t)size);
        put_number(message + made->ids[kind], p->published, 4);
        put_number(message + made->tags[kind], p->published, 8);
        if (made->stamps[kind])
            put_number(message + made->stamps[kind], now, 8);
        p->published++;
        p->transfers += (uint32_t)made->transfers[kind];
        if (made->digits[kind])
            put_digits(message + made->digits[kind], p->identity + p->published);
        at += size;
        if (confirms)
            await(p, now);
    }
    return at;
}

/* The octets of the value at `at`, its constructor among them, which is of no described type and no array; 0: it is, or does not end before
 * `end`. */
static int64_t value_size(const uint8_t *at, const uint8_t *end)
{
    static const uint8_t FIXED[16] = {0, 0, 0, 0, 1, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0};
    if (at >= end)
        return 0;
    int family = at[0] >> 4;
    int64_t size = FIXED[family];
    if (family == 0xA || family == 0xC)
        size = end - at > 1 ? 2 + (int64_t)at[1] : 0;
    else if (family == 0xB || family == 0xD)
        size = end - at > 4 ? 5 + (int64_t)number32(at + 1) : 0;
    return size <= end - at ? size : 0;
}

/* A uint in any of its encodings; -1: it is none. */
static int64_t uint_of(const uint8_t *at)
{
    return at[0] == 0x43 ? 0 : at[0] == 0x52 ? at[1] : at[0] == 0x70 ? (int64_t)number32(at + 1) : -1;
}

/* A boolean in any of its encodings. */
static int is_true(const uint8_t *at)
{
    return at[0] == 0x41 || (at[0] == 0x56 && at[1] == 1);
}

/* Where the fields of a list are, its descriptor being that of `at`: up to `most` of them, how many there are; `*behind` is behind it. */
static int fields_of(const uint8_t *at, const uint8_t *end, const uint8_t **fields, int most, const uint8_t **behind)
{
    int64_t size = end - at > 3 ? value_size(at + 3, end) : 0;
    if (!size)
        return -1;
    *behind = at + 3 + size;
    int wide = at[3] == 0xD0;
    if (!wide && at[3] != 0xC0)
        return at[3] == 0x45 ? 0 : -1;
    if (size < (wide ? 9 : 3))
        return -1;
    uint32_t count = wide ? number32(at + 8) : at[5];
    at += wide ? 12 : 6;
    int filled = 0;
    while (filled < most && (uint32_t)filled < count) {
        fields[filled++] = at;
        if (at[0] == 0x00) /* an outcome: a small ulong and a list */
            size = *behind - at > 3 && at[1] == 0x53 ? value_size(at + 3, *behind) : 0, size += size ? 3 : 0;
        else
            size = value_size(at, *behind);
        if (!size)
            return -1;
        at += size;
    }
    return filled;
}

/* A transfer's payload: find the body's first eight octets behind the sections in front of it. */
static void begin_body(leveret_perf *p, const uint8_t *at, const uint8_t *end)
{
    while (end - at > 4 && at[0] == 0x00 && at[1] == 0x53 && at[2] != 0x75) {
        int64_t size = value_size(at + 3, end);
        if (!size)
            return;
        at += 3 + size;
    }
    if (end - at < 5 || at[2] != 0x75)
        return;
    at += at[3] == 0xA0 ? 5 : 8;
    if (end - at < 0)
        return;
    p->body_left = 0;
    p->octets += (uint64_t)(end - at);
    if (end - at >= 8) {
        p->sent_at = number64(at);
        p->body_begun = 1;
    }
}

/* A frame's body: true when it was a transfer or a disposition of a receiver. */
static int performative(leveret_perf *p, const uint8_t *at, const uint8_t *end, uint64_t now)
{
    const uint8_t *fields[6] = {0};
    const uint8_t *behind;
    if (end - at < 5 || at[0] != 0x00 || at[1] != 0x53 || (at[2] != 0x14 && at[2] != 0x15))
        return 0;
    int count = fields_of(at, end, fields, 6, &behind);
    if (at[2] == 0x14) {
        if (count < 1)
            return 0;
        int more = count > 5 && is_true(fields[5]);
        if (count > 1 && fields[1][0] != 0x40 && !p->body_left) { /* body_left: 1 within a message of several transfers */
            p->tag = (uint64_t)uint_of(fields[1]);
            p->body_begun = 0;
            begin_body(p, behind, end);
        } else {
            p->octets += (uint64_t)(end - behind);
        }
        p->body_left = (uint64_t)more;
        if (!more)
            content_ended(p, now);
        return 1;
    }
    if (count < 2 || !is_true(fields[0]))
        return 0;
    int64_t first = uint_of(fields[1]);
    int64_t last = count > 2 && fields[2][0] != 0x40 ? uint_of(fields[2]) : first;
    int refused = !(count > 4 && fields[4][0] == 0x00 && fields[4][2] == 0x24);
    if (first < 0 || last < 0)
        return 0;
    uint32_t span = (uint32_t)last - (uint32_t)first;
    for (uint32_t each = 0; each <= span && each < LEVERET_PERF_WINDOW; each++) {
        uint64_t number = p->lowest + (uint32_t)((uint32_t)first + each + 1u - (uint32_t)p->lowest);
        confirm(p, number, 0, refused, now);
    }
    return 1;
}

int32_t leveret_perf_scan_1_0(leveret_perf *p, const uint8_t *octets, int32_t start, int32_t end, uint64_t now, int32_t *other)
{
    *other = 0;
    while (end - start >= 8) {
        const uint8_t *frame = octets + start;
        uint32_t size = number32(frame);
        if (size < 8 || size > 0x7FFFFF00u || frame[4] < 2 || frame[4] * 4u > size) {
            *other = -1;
            break;
        }
        if ((int64_t)end - start < (int64_t)size)
            break;
        if (frame[4] * 4u < size && (frame[5] != 0 || !performative(p, frame + frame[4] * 4u, frame + size, now))) {
            *other = 1;
            break;
        }
        start += (int32_t)size;
    }
    return start;
}

/* AMQP 0-10 */

static uint32_t number16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* session.completed: true when its sender wants no answer. */
static int completed(leveret_perf *p, const uint8_t *at, const uint8_t *end, uint64_t now)
{
    if (end - at < 6 || !(at[2] & 1))
        return end - at >= 4 && !(at[2] & 2);
    const uint8_t *behind = at + 6 + number16(at + 4);
    if (behind > end)
        return 0;
    for (const uint8_t *pair = at + 6; behind - pair >= 8; pair += 8) {
        uint64_t begin = (p->lowest & ~(uint64_t)0xFFFFFFFFu) + number32(pair) + 1; /* the first one's number among all that were published */
        uint64_t last = begin + (uint32_t)(number32(pair + 4) - number32(pair));
        for (uint64_t each = begin > p->lowest ? begin : p->lowest; each <= last && each <= p->published; each++)
            if (p->sent[each % LEVERET_PERF_WINDOW]) /* those of accept-mode none are not waited for */
                confirm(p, each, 0, 0, now);
    }
    return !(at[2] & 2);
}

/* A frame: true when it was a part of a transfer, message.accept or session.completed. */
static int frame_0_10(leveret_perf *p, const uint8_t *frame, const uint8_t *at, const uint8_t *end, uint64_t now)
{
    int ends = (frame[0] & 5) == 5; /* the last frame of the last segment */
    if (frame[1] == 0)
        return frame[0] == 15 && end - at >= 4 && number16(at) == 0x020A && completed(p, at, end, now);
    if (frame[1] == 1) {
        uint32_t code = end - at >= 2 && (frame[0] & 2) ? number16(at) : 0;
        if (code == 0x0402 && ends) {
            p->transfers++;
            return 1;
        }
        if (code != 0x0401 || !(frame[0] & 1))
            return 0;
        p->body_begun = 0;
    } else if (frame[1] == 3) {
        if ((frame[0] & 2) && end - at >= 8) {
            p->sent_at = number64(at);
            p->body_begun = 1;
        }
        p->octets += (uint64_t)(end - at);
    }
    if (ends) {
        p->tag = p->transfers++;
        content_ended(p, now);
    }
    return 1;
}

int32_t leveret_perf_scan_0_10(leveret_perf *p, const uint8_t *octets, int32_t start, int32_t end, uint64_t now, int32_t *other)
{
    *other = 0;
    while (end - start >= 12) {
        const uint8_t *frame = octets + start;
        int32_t size = (int32_t)number16(frame + 2);
        if (size < 12 || frame[1] > 3) {
            *other = -1;
            break;
        }
        if (end - start < size)
            break;
        if (!frame_0_10(p, frame, frame + 12, frame + size, now)) {
            *other = 1;
            break;
        }
        start += size;
    }
    return start;
}
