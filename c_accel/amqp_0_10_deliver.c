/* Transfers of AMQP 0-10 that go out as they came: core/amqp_0_10/hot_transfers.py in C, with the same functions; and those of other versions' messages,
 * where nothing in them is unusual (convert.py). */
#include "amqp_0_10.h"
#include "amqp_0_10_frame.h"
#include "pump.h"
#include "neutral.h"

#include <string.h>

enum { BASIC = 0, AMQP_1_0 = 2, FOREIGN_MAX = 1024 }; /* core/message/formats.py; octets of route and properties that C converts */
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
    target[at + 6] = (uint8_t)(redelivered ? flags | 4 : flags);
    target[at + 7] = (uint8_t)(further | 3);
    memmove(target + at + front, target + stored, (size_t)route);
    memmove(target + at + front + route, target + rest, (size_t)left);
    return at + front + route + left;
}

/* The same of a message that another version has published, in at most `room` octets. */
static int32_t put_converted(const leveret_tables *t, const int32_t *record, int32_t redelivered, uint8_t *target, int32_t at, int32_t room)
{
    uint8_t copied[FOREIGN_MAX];
    leveret_neutral neutral;
    int32_t kind = record[MESSAGE_KIND], route = record[MESSAGE_ROUTE], size = record[MESSAGE_PROPERTIES], format = kind & KIND_FORMAT;
    if (kind & (KIND_ANNOTATED | KIND_GRAFTED | KIND_REPLY_TO) || route + size > FOREIGN_MAX)
        return -1;
    const uint8_t *octets = t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)t->state[STATE_BLOCK_SIZE];
    if (route + size > t->state[STATE_BLOCK_SIZE]) {
        extract(t, record[MESSAGE_FIRST], 0, copied, 0, route + size);
        octets = copied;
    }
    static _Thread_local leveret_shapes known;
    int32_t body = format == AMQP_1_0 ? record[MESSAGE_BODY] : 0, told_body = body_size_octets(octets, route + size, body);
    int32_t key_size = route + size - told_body;
    const int32_t facts[SHAPE_FACTS] = {kind, route << 1 | (redelivered != 0), record[MESSAGE_LIFETIME], told_body, told_body ? 0 : body};
    t->state[STATE_CURSOR_BLOCK] = record[MESSAGE_FIRST];
    t->state[STATE_CURSOR_OFFSET] = route + size;
    int32_t header = made_by_shape(&known, facts, octets, key_size, target + at, room);
    if (header >= 0)
        return at + header;
    if (format == BASIC ? leveret_amqp_0_9_read_neutral(octets + route, size, &neutral)
                        : format != AMQP_1_0 || leveret_amqp_1_0_read_neutral(octets + route, size, record[MESSAGE_BODY], &neutral))
        return -1;
    int64_t lifetime = record[MESSAGE_LIFETIME];
    neutral.delivery_mode = kind & KIND_DURABLE ? 2 : 1;
    neutral.priority = kind & KIND_HAS_PRIORITY ? kind >> KIND_PRIORITY & 255 : -1;
    neutral.ttl = lifetime < NONE ? 1000 * (-2 - lifetime) : lifetime;
    leveret_places free = {0};
    header = leveret_amqp_0_10_write_neutral(&neutral, octets, route, redelivered, target + at, room, &free);
    keep_shape(&known, facts, octets, key_size, target + at, header, &free);
    return header < 0 ? -1 : at + header;
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
        int32_t header = FRONT + record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES], body = record[MESSAGE_BODY], behind = -1;
        int32_t kind = record[MESSAGE_KIND], redelivered = t->entries[entry + ENTRY_REDELIVERED] & 255, start = at + lead_size + FRAME_HEAD;
        int32_t room = end - start - FRAME_HEAD - body, whole = frame_size_max - FRAME_HEAD;
        if (body == 0 || body > whole || room < 0)
            break;
        if ((kind & (KIND_REWORKED | KIND_GRAFTED | KIND_FOR_US)) == AMQP_0_10 && header <= whole && header <= room)
            behind = put_header(t, record, redelivered, target, start);
        else if ((kind & KIND_FORMAT) != AMQP_0_10)
            behind = put_converted(t, record, redelivered, target, start, room < whole ? room : whole);
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
