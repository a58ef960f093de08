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

int32_t leveret_perf_fill(leveret_perf *p, const uint8_t *octets, const int32_t *begins, const int32_t *stamps, const int32_t *ids,
                          int32_t kinds, uint32_t *draw, int32_t confirms, uint8_t *target, int32_t room, int32_t count, uint64_t now)
{
    int32_t at = 0;
    for (int32_t done = 0; done < count; done++) {
        int32_t kind = (int32_t)(p->published % (uint32_t)kinds);
        uint32_t drawn = *draw;
        if (drawn) {
            drawn ^= drawn << 13;
            drawn ^= drawn >> 17;
            drawn ^= drawn << 5;
            kind = (int32_t)(drawn % (uint32_t)kinds);
        }
        int32_t size = begins[kind + 1] - begins[kind];
        if (size > room - at)
            break;
        *draw = drawn;
        memcpy(target + at, octets + begins[kind], (size_t)size);
        if (stamps[kind])
            for (int i = 0; i < 8; i++)
                target[at + stamps[kind] + i] = (uint8_t)(now >> (56 - 8 * i));
        p->published++;
        if (ids[kind])
            put_digits(target + at + ids[kind], p->identity + p->published);
        at += size;
        if (confirms) {
            p->sent[p->published % LEVERET_PERF_WINDOW] = now;
            p->done[p->published % LEVERET_PERF_WINDOW] = 0;
        }
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

/* A method frame's payload: true when it was a delivery or a confirm. */
static int method(leveret_perf *p, const uint8_t *at, uint32_t size, uint64_t now)
{
    uint32_t code = size >= 4 ? number32(at) : 0;
    if (code == (60u << 16 | 60u) && size >= 5 && size >= 5u + at[4] + 9u) {
        p->tag = number64(at + 5 + at[4]);
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
            p->body_left = number64(payload + 4);
            p->body_begun = 0;
            if (p->body_left == 0)
                content_ended(p, now);
        } else if (frame[0] == 3 && size <= p->body_left) {
            if (!p->body_begun && size >= 8) {
                p->sent_at = number64(payload);
                p->body_begun = 1;
            }
            p->octets += size;
            p->body_left -= size;
            if (p->body_left == 0 && size)
                content_ended(p, now);
        } else if (frame[0] != 1 || !method(p, payload, size, now)) {
            *other = 1;
            break;
        }
        start += (int32_t)size + 8;
    }
    return start;
}
