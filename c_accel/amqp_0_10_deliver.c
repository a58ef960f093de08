/* Transfers of AMQP 0-10 that go out as they came: core/amqp_0_10/hot_transfers.py in C, with the same functions. */
#include "amqp_0_10.h"
#include "amqp_0_10_frame.h"
#include "pump.h"

#include <string.h>

enum { FRONT = 34 }; /* octets of delivery-properties before the exchange, or fewer */

/* Write a message's header segment: the position behind it, with the cursor of `state` at the body; -1: it does not begin with delivery-properties.
 * The octets behind what is written are used, too: FRONT and the size of the route. */
static int32_t put_header(const leveret_tables *t, const int32_t *record, int32_t redelivered, uint8_t *target, int32_t at)
{
    int32_t route = record[MESSAGE_ROUTE], size = record[MESSAGE_PROPERTIES], stored = at + FRONT;
    extract(t, record[MESSAGE_FIRST], 0, target, stored, route + size);
    int32_t source = stored + route;
    if (size < 8 || target[source + 4] != 4 || target[source + 5] != 1)
        return -1;
    int32_t flags = target[source + 6], further = target[source + 7];
    int32_t front = 8 + (flags >> 3 & 1) + (flags >> 4 & 1) + (flags >> 2 & 8) + (flags >> 3 & 8) + (flags >> 4 & 8);
    int32_t rest = source + front;
    if (further & 1)
        rest += 1 + target[rest];
    if (further & 2)
        rest += 1 + target[rest];
    int32_t size_of_struct = short_of(target, source + 2) + source + front - rest + route, left = source + size - rest;
    memmove(target + at, target + source, (size_t)front);
    put_short(target, at + 2, size_of_struct);
    target[at + 6] = (uint8_t)(redelivered ? flags | 4 : flags & 0xFB);
    target[at + 7] = (uint8_t)(further | 3);
    memmove(target + at + front, target + stored, (size_t)route);
    memmove(target + at + front + route, target + rest, (size_t)left);
    return at + front + route + left;
}

int32_t leveret_amqp_0_10_pump(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *lead, int32_t lead_size, int32_t frame_size_max,
                               uint8_t *target, int32_t at, int32_t end)
{
    int32_t *reader = t->consumers + consumer;
    int32_t queue = reader[CONSUMER_QUEUE], channel = reader[CONSUMER_CHANNEL];
    for (; limit > 0 && reader[CONSUMER_CREDIT] > 0; limit--) {
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES && expire(t, queue))
            break;
        int32_t entry = t->queues[queue + QUEUE_HEAD];
        if (entry < 0)
            break;
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        int32_t header = FRONT + record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES], body = record[MESSAGE_BODY];
        if ((record[MESSAGE_KIND] & (KIND_REWORKED | KIND_GRAFTED | KIND_FOR_US)) != AMQP_0_10 || body == 0)
            break;
        if (header + FRAME_HEAD > frame_size_max || body + FRAME_HEAD > frame_size_max || lead_size + 2 * FRAME_HEAD + header + body > end - at)
            break;
        int32_t behind = put_header(t, record, t->entries[entry + ENTRY_REDELIVERED] & 255, target, at + lead_size + FRAME_HEAD);
        if (behind < 0)
            break;
        memcpy(target + at, lead, (size_t)(lead_size + FRAME_HEAD));
        at += lead_size;
        put_short(target, at + 2, behind - at);
        memcpy(target + behind, lead + lead_size + FRAME_HEAD, FRAME_HEAD);
        put_short(target, behind + 2, body + FRAME_HEAD);
        at = behind + FRAME_HEAD;
        extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at, body);
        at += body;
        next_number(t->channels + channel + CHANNEL_TAG);
        hand_over(t, consumer, entry);
        if (reader[CONSUMER_NO_ACK] && reader[CONSUMER_CREDIT] != CREDIT_UNLIMITED)
            reader[CONSUMER_CREDIT] -= 1;
    }
    return at;
}
