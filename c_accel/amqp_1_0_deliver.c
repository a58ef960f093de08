/* Transfers to a receiver (section 2.7.5) of messages that it gets as they were published, or with another head (amqp_1_0_convert.c). */
#include "amqp_1_0.h"
#include "octets.h"
#include "pump.h"
#include "streams.h"

#include <string.h>

enum { AMQP_1_0 = 2, BEHIND_PREFIX = 14, FRAME_ROOM = 64, LEAD_MAX = 2048 };

/* As has_room in core/amqp_1_0/link_out.py counts: FRAME_ROOM for a transfer's octets before the message, which is more than they ever are. */
static int32_t delivery_size(const int32_t *record, int32_t prefix_size, int32_t frame_size_max, int32_t is_inset)
{
    int32_t size = FRAME_ROOM + record[MESSAGE_PROPERTIES] + record[MESSAGE_BODY];
    (void)is_inset, (void)prefix_size;
    return (record[MESSAGE_KIND] & (KIND_REWORKED | KIND_FOR_US)) != AMQP_1_0 || size > frame_size_max ? -1 : size;
}

/* A transfer's frame up to its payload of so many octets, for the session's last delivery-id. */
static int32_t put_head(const leveret_tables *t, int32_t channel, const uint8_t *prefix, int32_t prefix_size, int32_t settled, int32_t octets,
                        uint8_t *target, int32_t at)
{
    const int32_t *session = t->channels + channel;
    uint32_t id = (uint32_t)session[CHANNEL_TAG_HIGH] << 30 | (uint32_t)session[CHANNEL_TAG];
    memcpy(target + at, prefix, (size_t)prefix_size);
    put_size(target + at, prefix_size + BEHIND_PREFIX + octets);
    at += prefix_size;
    target[at] = 0x70;
    put_size(target + at + 1, (int32_t)id);
    target[at + 5] = 0xA0;
    target[at + 6] = 4;
    put_size(target + at + 7, (int32_t)id);
    target[at + 11] = 0x43;
    target[at + 12] = settled ? 0x41 : 0x42;
    target[at + 13] = 0x42;
    return at + BEHIND_PREFIX;
}

static int32_t put_transfer(const leveret_tables *t, int32_t entry, int32_t channel, const uint8_t *prefix, int32_t prefix_size, int32_t settled,
                            uint8_t *target, int32_t at)
{
    const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
    int32_t octets = record[MESSAGE_PROPERTIES] + record[MESSAGE_BODY];
    at = put_head(t, channel, prefix, prefix_size, settled, octets, target, at);
    extract(t, record[MESSAGE_FIRST], record[MESSAGE_ROUTE], target, at, octets);
    return at + octets;
}

/* The delivery of one message that its receiver gets otherwise than it is stored, as pump: the position behind it. */
static int32_t deliver_converted(const leveret_tables *t, int32_t consumer, int32_t entry, int32_t failed, const uint8_t *prefix, int32_t prefix_size,
                                 int32_t settled, int32_t noted, int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end)
{
    uint8_t lead[LEAD_MAX];
    int32_t message = t->entries[entry + ENTRY_MESSAGE], channel = t->consumers[consumer + CONSUMER_CHANNEL];
    const int32_t *record = t->messages + message;
    int32_t body = record[MESSAGE_BODY];
    if (t->consumers[consumer + CONSUMER_CREDIT] <= 0 || FRAME_ROOM + body > frame_size_max || FRAME_ROOM + body > end - at)
        return at;
    int32_t size = leveret_amqp_1_0_head(t, message, failed, noted, lead, LEAD_MAX);
    if (size < 0 || FRAME_ROOM + size + body > frame_size_max || FRAME_ROOM + size + body > end - at)
        return at;
    next_number(t->channels + channel + CHANNEL_TAG);
    at = put_head(t, channel, prefix, prefix_size, settled, size + body, target, at);
    memcpy(target + at, lead, (size_t)size);
    extract(t, record[MESSAGE_FIRST], record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES], target, at + size, body);
    hand_over(t, consumer, entry);
    return at + size + body;
}

static int32_t write_settled(const leveret_tables *t, int32_t entry, int32_t channel, const uint8_t *prefix, int32_t prefix_size, int32_t frame_size_max,
                             leveret_output *output, uint8_t *target, int32_t at)
{
    (void)frame_size_max, (void)output;
    return put_transfer(t, entry, channel, prefix, prefix_size, 1, target, at);
}

static int32_t write_unsettled(const leveret_tables *t, int32_t entry, int32_t channel, const uint8_t *prefix, int32_t prefix_size, int32_t frame_size_max,
                               leveret_output *output, uint8_t *target, int32_t at)
{
    (void)frame_size_max, (void)output;
    return put_transfer(t, entry, channel, prefix, prefix_size, 0, target, at);
}

int32_t leveret_amqp_1_0_deliver(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size, int32_t settled,
                                 int32_t noted, int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end)
{
    int32_t queue = t->consumers[consumer + CONSUMER_QUEUE];
    while (limit-- > 0) {
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES && expire(t, queue))
            break;
        int32_t entry = t->queues[queue + QUEUE_HEAD], before = at;
        if (entry < 0)
            break;
        int32_t returns = t->entries[entry + ENTRY_REDELIVERED] & ENTRY_RETURNS, failed = returns & 255;
        if (returns && t->queues[queue + QUEUE_LIMITS] & LIMIT_COUNTS)
            break; /* with x-delivery-count: core/amqp_1_0/link_out.py */
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        if (noted || failed || (record[MESSAGE_KIND] & KIND_FORMAT) != AMQP_1_0 || seconds_passed(t, record))
            at = deliver_converted(t, consumer, entry, failed, prefix, prefix_size, settled, noted, frame_size_max, target, at, end);
        else
            at = settled ? pump(t, delivery_size, write_settled, consumer, 1, prefix, prefix_size, frame_size_max, target, at, end, NULL)
                         : pump(t, delivery_size, write_unsettled, consumer, 1, prefix, prefix_size, frame_size_max, target, at, end, NULL);
        if (at == before)
            break;
    }
    return at;
}

/* Of a consumer whose reader has a leveret_amqp_1_0_sender. */
static int32_t deliver_by_itself(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                                 int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output)
{
    leveret_amqp_1_0_sender *sender = (leveret_amqp_1_0_sender *)(uintptr_t)prefix;
    leveret_amqp_1_0_windows *windows = sender->windows;
    int32_t *credit = t->consumers + consumer + CONSUMER_CREDIT, before = t->state[STATE_DELIVERED];
    (void)prefix_size, (void)output;
    if (windows->is_held)
        return at;
    if (limit > *credit)
        limit = *credit;
    if (limit > windows->remote_incoming_window)
        limit = (int32_t)windows->remote_incoming_window;
    at = leveret_amqp_1_0_deliver(t, consumer, limit, sender->prefix, sender->prefix_size, sender->settled, 0, frame_size_max, target, at, end);
    int32_t count = (t->state[STATE_DELIVERED] - before) & MASK;
    windows->remote_incoming_window -= count;
    windows->next_outgoing_id += (uint32_t)count;
    sender->delivery_count += (uint32_t)count;
    if (t->consumers[consumer + CONSUMER_NO_ACK])
        *credit -= count;
    return at;
}

static int32_t may_begin(const uint8_t *prefix)
{
    const leveret_amqp_1_0_windows *windows = ((const leveret_amqp_1_0_sender *)(const void *)prefix)->windows;
    return !windows->is_held && windows->remote_incoming_window > 0;
}

const leveret_wire *leveret_amqp_1_0_wire(void)
{
    static const leveret_wire wire = {delivery_size, 0, NULL, deliver_by_itself, may_begin, 1};
    return &wire;
}

int32_t leveret_amqp_1_0_read_stream(const leveret_tables *t, leveret_amqp_1_0_reading *r, const uint8_t *prefix, int32_t prefix_size,
                                     int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end)
{
    uint8_t lead[LEAD_MAX];
    int32_t *reader = t->consumers + r->consumer, *state = t->state;
    int32_t queue = reader[CONSUMER_QUEUE], channel = reader[CONSUMER_CHANNEL];
    r->made = 0;
    while (r->made < r->most && r->cursor >= 0 && r->offset < r->end && reader[CONSUMER_CREDIT] > 0) {
        int32_t message = t->entries[r->cursor + ENTRY_MESSAGE];
        const int32_t *record = t->messages + message;
        int32_t body = record[MESSAGE_BODY];
        if (FRAME_ROOM + body > frame_size_max || FRAME_ROOM + body > end - at)
            break;
        int32_t size = leveret_amqp_1_0_head_at(t, message, r->offset, r->tells_position, lead, LEAD_MAX);
        if (size < 0 || FRAME_ROOM + size + body > frame_size_max || FRAME_ROOM + size + body > end - at)
            break;
        if (state[POOL_ENTRIES + 2] < 1 || (t->queues[queue + QUEUE_UNSETTLED] == 0 && state[POOL_MESSAGES + 2] < 1))
            break;
        r->last = stream_entry(t, queue, r->offset, &r->delivered);
        if (r->made == 0)
            r->first = r->last;
        next_number(t->channels + channel + CHANNEL_TAG);
        at = put_head(t, channel, prefix, prefix_size, r->settled, r->nulls + size + body, target, at);
        memset(target + at, 0x40, (size_t)r->nulls);
        at += r->nulls;
        memcpy(target + at, lead, (size_t)size);
        extract(t, record[MESSAGE_FIRST], record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES], target, at + size, body);
        at += size + body;
        hold(t, channel, r->last, r->consumer);
        if (reader[CONSUMER_CREDIT] != CREDIT_UNLIMITED)
            reader[CONSUMER_CREDIT] -= 1;
        state[STATE_DELIVERED] = (state[STATE_DELIVERED] + 1) & MASK;
        r->cursor = t->entries[r->cursor + ENTRY_NEXT];
        r->offset += 1;
        r->made += 1;
    }
    return at;
}
