/* What `leveret perf` does for every message: fill a buffer with publishes, read deliveries and confirms out of one (tools/perf_worker.py). */
#ifndef LEVERET_PERF_H
#define LEVERET_PERF_H

#include <stdint.h>

/* Latencies in microseconds, 32 bins an octave: bin i < 32 is i microseconds, then (32 + i % 32) << (i / 32 - 1) and up. */
#define LEVERET_PERF_BINS 1024
#define LEVERET_PERF_WINDOW 65536 /* most publishes of a connection that wait for their confirm */

/* One connection with one channel. Times are monotonic nanoseconds. */
typedef struct {
    uint64_t published;
    uint64_t confirmed;
    uint64_t refused;      /* of the confirmed, those by basic.nack */
    uint64_t received;
    uint64_t octets;       /* of the bodies received */
    uint64_t tag;          /* the last delivery's */
    uint64_t body_left;    /* of the content that is arriving */
    uint64_t sent_at;      /* what its first eight octets say; 0: not known yet */
    int32_t stamped;       /* bodies begin with the time at which they were sent */
    int32_t body_begun;
    uint64_t lowest;       /* the oldest publish that is not confirmed */
    uint64_t transfers;    /* of AMQP 1.0: frames that the published took; of 0-10: commands of the peer */
    uint64_t identity;     /* the connection's number above 48 bits: with the publish's it is a message-id */
    uint8_t done[65536];   /* LEVERET_PERF_WINDOW */
    uint64_t sent[65536];
    uint32_t latency[1024]; /* LEVERET_PERF_BINS */
    uint32_t confirm_latency[1024];
} leveret_perf;

/* Write up to `count` publishes into target[0:room]: the octets written. Message n is octets[begins[k]:begins[k + 1]], k drawn with *draw
 * (0: in turn); its time goes to stamps[k], sixteen hexadecimal digits of its own to ids[k] (0: has none). `confirms`: they will be
 * confirmed. */
int32_t leveret_perf_fill(leveret_perf *p, const uint8_t *octets, const int32_t *begins, const int32_t *stamps, const int32_t *ids,
                          int32_t kinds, uint32_t *draw, int32_t confirms, uint8_t *target, int32_t room, int32_t count, uint64_t now);

/* Read whole frames of octets[start:end]: where it stopped. That is at a part of a frame, or (*other = 1) at a whole frame that is neither
 * delivery, content nor confirm; (*other = -1) at octets that are no frame. */
int32_t leveret_perf_scan(leveret_perf *p, const uint8_t *octets, int32_t start, int32_t end, uint64_t now, int32_t *other);

/* The same for frames of a draft of 2005: 0.9a5, or 0.9r1; jms.deliver and contents. */
int32_t leveret_perf_scan_draft(leveret_perf *p, int32_t is_0_9a5, const uint8_t *octets, int32_t start, int32_t end, uint64_t now,
                                int32_t *other);

/* What is published over AMQP 1.0: message k is the transfers of octets[begins[k]:begins[k + 1]]. */
typedef struct {
    const uint8_t *octets;
    const int32_t *begins;
    const int32_t *stamps;    /* where its time goes, and ... */
    const int32_t *digits;    /* ... sixteen hexadecimal digits of its own; 0: it has none */
    const int32_t *ids;       /* where the first transfer has its delivery-id ... */
    const int32_t *tags;      /* ... and a delivery-tag of eight octets */
    const int32_t *transfers; /* how many they are */
    int32_t kinds;
} leveret_perf_messages;

/* The same for AMQP 1.0, up to `transfers_max` in p->transfers. */
int32_t leveret_perf_transfers(leveret_perf *p, const leveret_perf_messages *made, uint32_t *draw, uint64_t transfers_max, int32_t confirms,
                               uint8_t *target, int32_t room, int32_t count, uint64_t now);

/* Read whole frames of AMQP 1.0: transfers of one link, and dispositions of sent deliveries; p->tag is the last delivery-id. Where it stopped,
 * as leveret_perf_scan. */
int32_t leveret_perf_scan_1_0(leveret_perf *p, const uint8_t *octets, int32_t start, int32_t end, uint64_t now, int32_t *other);

/* Read whole frames of AMQP 0-10 on one session: transfers, and session.completed of transfers that were sent, whose ids begin at 0. Where it
 * stopped, as leveret_perf_scan; at message.accept it does not stop, nor at a session.completed without timely-reply. */
int32_t leveret_perf_scan_0_10(leveret_perf *p, const uint8_t *octets, int32_t start, int32_t end, uint64_t now, int32_t *other);

#endif
