/* What is written to a consumer, core/memory/hot.py from put_content_header on; and contents that come piece by piece. */
#include "insets.h"
#include "octets.h"

void leveret_append(const leveret_tables *t, int32_t message, const uint8_t *source, int32_t start, int32_t size)
{
    append(t, message, source, start, size);
}

static int32_t put_content_header(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at)
{
    const int32_t *record = t->messages + message;
    int32_t size = record[MESSAGE_PROPERTIES];
    put_frame(target + at, 2, channel_number, size + 12);
    target[at + 7] = 0;
    target[at + 8] = 60;
    target[at + 9] = 0;
    target[at + 10] = 0;
    put_number(target + at + 11, 0, record[MESSAGE_BODY]);
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + 19, size);
    target[at + 19 + size] = END_OCTET;
    return at + 20 + size;
}

int32_t leveret_put_body(const leveret_tables *t, int32_t left, int32_t frame_size_max, int32_t channel_number, uint8_t *target, int32_t at,
                         int32_t end)
{
    while (left > 0 && end - at > 8) {
        int32_t size = frame_size_max - 8;
        if (size > left)
            size = left;
        if (size > end - at - 8)
            size = end - at - 8;
        put_frame(target + at, 3, channel_number, size);
        extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + 7, size);
        target[at + 7 + size] = END_OCTET;
        at += 8 + size;
        left -= size;
    }
    return at;
}

static int32_t put_deliver(const leveret_tables *t, const uint8_t *prefix, int32_t prefix_size, int32_t channel, int32_t message,
                           int32_t redelivered, uint8_t *target, int32_t at)
{
    int32_t route = t->messages[message + MESSAGE_ROUTE];
    memcpy(target + at, prefix, (size_t)prefix_size);
    put_size(target + at + 3, prefix_size + 9 + route - 7);
    at += prefix_size;
    put_number(target + at, t->channels[channel + CHANNEL_TAG_HIGH], t->channels[channel + CHANNEL_TAG]);
    target[at + 8] = (uint8_t)redelivered;
    extract(t, t->messages[message + MESSAGE_FIRST], 0, target, at + 9, route);
    at += 9 + route;
    target[at] = END_OCTET;
    return at + 1;
}

int32_t leveret_pump(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                     int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output)
{
    int32_t *reader = t->consumers + consumer;
    int32_t queue = reader[CONSUMER_QUEUE];
    int32_t channel = reader[CONSUMER_CHANNEL];
    int32_t no_ack = reader[CONSUMER_NO_ACK];
    int32_t number = prefix[1] << 8 | prefix[2];
    int32_t prefetch = t->channels[channel + CHANNEL_PREFETCH];
    while (limit > 0) {
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES)
            expire(t, queue);
        int32_t entry = t->queues[queue + QUEUE_HEAD];
        if (entry < 0 || reader[CONSUMER_CREDIT] <= 0)
            break;
        if (prefetch > 0 && t->channels[channel + CHANNEL_UNSETTLED] >= prefetch)
            break;
        int32_t message = t->entries[entry + ENTRY_MESSAGE];
        const int32_t *record = t->messages + message;
        int32_t body = record[MESSAGE_BODY];
        int32_t heads = prefix_size + 10 + record[MESSAGE_ROUTE] + 20 + record[MESSAGE_PROPERTIES];
        int32_t is_inset = wants_inset(output, body);
        if (record[MESSAGE_PROPERTIES] + 20 > frame_size_max || record[MESSAGE_KIND] & KIND_FORMAT)
            break;
        if (is_inset ? heads + 1 > end - at || !has_inset_room(output, body) : heads + 8 + body > end - at || body + 8 > frame_size_max)
            break;
        next_number(t->channels + channel + CHANNEL_TAG);
        at = put_deliver(t, prefix, prefix_size, channel, message, t->entries[entry + ENTRY_REDELIVERED] & 255 ? 1 : 0, target, at);
        at = put_content_header(t, message, number, target, at);
        at = is_inset ? leveret_set_in(t, output, message, frame_size_max, number, at)
                      : leveret_put_body(t, body, frame_size_max, number, target, at, end);
        unlink_ready(t, queue, entry);
        if (no_ack) {
            drop(t, entry);
        } else {
            hold(t, channel, entry, consumer);
            if (reader[CONSUMER_CREDIT] != CREDIT_UNLIMITED)
                reader[CONSUMER_CREDIT] -= 1;
        }
        t->state[STATE_DELIVERED] = (t->state[STATE_DELIVERED] + 1) & MASK;
        limit -= 1;
    }
    return at;
}
