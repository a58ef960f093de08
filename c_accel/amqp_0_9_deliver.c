/* What is written to a consumer: core/amqp_0_9/hot_out.py. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "pump.h"

enum { HEADER_HEAD = 20 }; /* octets of a content header frame beside the property flags and list */

/* The head of a content header frame, up to the property flags. */
static void put_header_head(const int32_t *record, int32_t channel_number, uint8_t *target)
{
    put_frame(target, HEADER, channel_number, record[MESSAGE_PROPERTIES] + HEADER_HEAD - OVERHEAD);
    target[7] = 0;
    target[8] = CLASS_BASIC;
    target[9] = 0;
    target[10] = 0;
    put_number(target + 11, 0, record[MESSAGE_BODY]);
}

static int32_t put_content_header(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at)
{
    const int32_t *record = t->messages + message;
    int32_t size = record[MESSAGE_PROPERTIES];
    put_header_head(record, channel_number, target + at);
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + HEADER_HEAD - 1, size);
    target[at + HEADER_HEAD - 1 + size] = END_OCTET;
    return at + HEADER_HEAD + size;
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

/* What of a delivery is the message's, from the route on, for one that lies in one block: the same octets, and the same cursor. */
static int32_t write_one_block(const leveret_tables *t, const int32_t *record, int32_t channel_number, uint8_t *target, int32_t at)
{
    int32_t route = record[MESSAGE_ROUTE], properties = record[MESSAGE_PROPERTIES], body = record[MESSAGE_BODY];
    const uint8_t *octets = t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)t->state[STATE_BLOCK_SIZE];
    t->state[STATE_CURSOR_BLOCK] = record[MESSAGE_FIRST];
    t->state[STATE_CURSOR_OFFSET] = route + properties + body;
    memcpy(target + at, octets, (size_t)route);
    at += route;
    target[at] = END_OCTET;
    put_header_head(record, channel_number, target + at + 1);
    at += HEADER_HEAD;
    memcpy(target + at, octets + route, (size_t)properties);
    at += properties;
    target[at] = END_OCTET;
    if (body == 0)
        return at + 1;
    put_frame(target + at + 1, BODY, channel_number, body);
    at += OVERHEAD;
    memcpy(target + at, octets + route + properties, (size_t)body);
    target[at + body] = END_OCTET;
    return at + body + 1;
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
    if (!output && route + record[MESSAGE_PROPERTIES] + record[MESSAGE_BODY] <= t->state[STATE_BLOCK_SIZE])
        return write_one_block(t, record, number, target, at + 9);
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

static int32_t deliver(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                       int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output);

static const leveret_wire wire = {delivery_size, OVERHEAD, put_between, deliver};

static int32_t deliver(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                       int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output)
{
    return pump(t, delivery_size, write_delivery, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end, output);
}

const leveret_wire *leveret_amqp_0_9_wire(void)
{
    return &wire;
}
