/* What is written to a consumer: core/amqp_0_9/hot_out.py. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "insets.h"

enum { HEADER_HEAD = 20 }; /* octets of a content header frame beside the property flags and list */

static int32_t put_content_header(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at)
{
    const int32_t *record = t->messages + message;
    int32_t size = record[MESSAGE_PROPERTIES];
    put_frame(target + at, HEADER, channel_number, size + 12);
    target[at + 7] = 0;
    target[at + 8] = CLASS_BASIC;
    target[at + 9] = 0;
    target[at + 10] = 0;
    put_number(target + at + 11, 0, record[MESSAGE_BODY]);
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + 19, size);
    target[at + 19 + size] = END_OCTET;
    return at + 20 + size;
}

int32_t leveret_amqp_0_9_put_body(const leveret_tables *t, int32_t left, int32_t frame_size_max, int32_t channel_number, uint8_t *target,
                                  int32_t at, int32_t end)
{
    while (left > 0 && end - at > 8) {
        int32_t size = frame_size_max - 8;
        if (size > left)
            size = left;
        if (size > end - at - 8)
            size = end - at - 8;
        put_frame(target + at, BODY, channel_number, size);
        extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + 7, size);
        target[at + 7 + size] = END_OCTET;
        at += 8 + size;
        left -= size;
    }
    return at;
}

static int32_t delivery_size(const int32_t *record, int32_t prefix_size, int32_t frame_size_max, int32_t is_inset)
{
    int32_t header = record[MESSAGE_PROPERTIES] + HEADER_HEAD, body = record[MESSAGE_BODY];
    if (record[MESSAGE_KIND] & KIND_REWORKED || header > frame_size_max)
        return -1;
    int32_t heads = prefix_size + 10 + record[MESSAGE_ROUTE] + header;
    if (is_inset)
        return heads + 1;
    return body + OVERHEAD > frame_size_max ? -1 : heads + OVERHEAD + body;
}

static int32_t write_delivery(const leveret_tables *t, int32_t entry, int32_t channel, const uint8_t *prefix, int32_t prefix_size,
                              int32_t frame_size_max, leveret_output *output, uint8_t *target, int32_t at)
{
    int32_t message = t->entries[entry + ENTRY_MESSAGE];
    const int32_t *record = t->messages + message;
    int32_t route = record[MESSAGE_ROUTE], number = prefix[1] << 8 | prefix[2];
    memcpy(target + at, prefix, (size_t)prefix_size);
    put_size(target + at + 3, prefix_size + 9 + route - HEAD);
    at += prefix_size;
    put_number(target + at, t->channels[channel + CHANNEL_TAG_HIGH], t->channels[channel + CHANNEL_TAG]);
    target[at + 8] = t->entries[entry + ENTRY_REDELIVERED] & 255 ? 1 : 0;
    extract(t, record[MESSAGE_FIRST], 0, target, at + 9, route);
    at += 9 + route;
    target[at] = END_OCTET;
    at = put_content_header(t, message, number, target, at + 1);
    if (output) {
        leveret_set_in(t, leveret_amqp_0_9_wire(), output, message, frame_size_max - OVERHEAD, number, at, 1);
        target[at] = END_OCTET;
        return at + 1;
    }
    return leveret_amqp_0_9_put_body(t, record[MESSAGE_BODY], frame_size_max, number, target, at, at + record[MESSAGE_BODY] + OVERHEAD);
}

/* The last frame's end, and the next one's head. */
static void put_between(uint8_t *target, int32_t number, int32_t size)
{
    target[0] = END_OCTET;
    put_frame(target + 1, BODY, number, size);
}

static const leveret_wire wire = {delivery_size, write_delivery, OVERHEAD, put_between};

const leveret_wire *leveret_amqp_0_9_wire(void)
{
    return &wire;
}
