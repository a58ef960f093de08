/* What is written to a consumer: core/amqp_0_9/hot_out.py. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "amqp_0_9_get.h"
#include "pump.h"
#include "neutral.h"

enum { HEADER_HEAD = 20 }; /* octets of a content header frame beside the property flags and list */
enum { AMQP_1_0 = 2, AMQP_0_10 = 3 }; /* core/message/formats.py */
enum { FOREIGN_MAX = 1024, HEADS_MAX = 255 + 128 }; /* octets of properties that C converts; see reading.properties_room */

/* A direct reply-to: the publisher's property has this many octets; the annotation with the address to have in its place is one pair, its
 * name and the head of its value in so many. */
enum { ASKED = 21, NOTE_HEAD = 14, NOTE_MAX = NOTE_HEAD + 255 };

static int32_t is_request(const int32_t *record)
{
    return (record[MESSAGE_KIND] & KIND_REWORKED) == (KIND_ANNOTATED | KIND_REPLY_TO);
}

static int32_t note_size(const int32_t *record)
{
    return record[MESSAGE_FILLED] - record[MESSAGE_ROUTE] - record[MESSAGE_PROPERTIES] - record[MESSAGE_BODY];
}

/* The head of a content header frame, up to the property flags. */
static void put_header_head(const int32_t *record, int32_t channel_number, uint8_t *target, int32_t more)
{
    put_frame(target, HEADER, channel_number, record[MESSAGE_PROPERTIES] + more + HEADER_HEAD - OVERHEAD);
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
    put_header_head(record, channel_number, target + at, 0);
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + HEADER_HEAD - 1, size);
    target[at + HEADER_HEAD - 1 + size] = END_OCTET;
    return at + HEADER_HEAD + size;
}

/* Where the reply-to stands in properties that a publish was taken with: the short strings before it, headers, two single octets. */
static int32_t reply_to_at(const uint8_t *properties)
{
    int32_t at = 2;
    for (int32_t flag = 0x80; flag > 2; flag >>= 1) {
        if (!(properties[0] & flag))
            continue;
        if (flag == 0x20)
            at += 4 + (int32_t)word_of(properties, at);
        else
            at += flag == 0x10 || flag == 0x08 ? 1 : 1 + properties[at];
    }
    return at;
}

/* The same of a request by direct reply-to: the publisher's octets, and the address of its annotation in place of its reply-to. */
static int32_t put_request_header(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at)
{
    const int32_t *record = t->messages + message;
    uint8_t note[NOTE_MAX];
    int32_t note_octets = note_size(record), size = record[MESSAGE_PROPERTIES], more = note_octets - NOTE_HEAD - ASKED;
    put_header_head(record, channel_number, target + at, more);
    at += HEADER_HEAD - 1;
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], note, 0, note_octets);
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at, size);
    int32_t value = reply_to_at(target + at), behind = value + 1 + ASKED;
    memmove(target + at + behind + more, target + at + behind, (size_t)(size - behind));
    target[at + value] = (uint8_t)(ASKED + more);
    memcpy(target + at + value + 1, note + NOTE_HEAD, (size_t)(ASKED + more));
    target[at + size + more] = END_OCTET;
    return at + size + more + 1;
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

/* The content of a message that goes out whole and as it was published, its route (where the cursor of the state stands behind) before it. */
int32_t leveret_amqp_0_9_put_content(const leveret_tables *t, int32_t message, int32_t channel_number, uint8_t *target, int32_t at)
{
    int32_t body = t->messages[message + MESSAGE_BODY];
    at = put_content_header(t, message, channel_number, target, at);
    return leveret_amqp_0_9_put_body(t, body, body + OVERHEAD, channel_number, target, at, at + body + OVERHEAD);
}

static int32_t delivery_size(const int32_t *record, int32_t prefix_size, int32_t frame_size_max, int32_t is_inset)
{
    int32_t header = record[MESSAGE_PROPERTIES] + HEADER_HEAD, body = record[MESSAGE_BODY];
    if (record[MESSAGE_KIND] & KIND_REWORKED) {
        int32_t more = note_size(record) - NOTE_HEAD - ASKED;
        if (!is_request(record) || more < 0 || more > NOTE_MAX - NOTE_HEAD - ASKED)
            return -1;
        header += more;
    }
    if (header > frame_size_max)
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
    put_header_head(record, channel_number, target + at + 1, 0);
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
    int32_t asks = is_request(record);
    if (!output && !asks && route + record[MESSAGE_PROPERTIES] + record[MESSAGE_BODY] <= t->state[STATE_BLOCK_SIZE])
        return write_one_block(t, record, number, target, at + 9);
    extract(t, record[MESSAGE_FIRST], 0, target, at + 9, route);
    at += 9 + route;
    target[at] = END_OCTET;
    at = asks ? put_request_header(t, message, number, target, at + 1) : put_content_header(t, message, number, target, at + 1);
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

static const leveret_wire wire = {delivery_size, OVERHEAD, put_between, deliver, NULL, 0};

int32_t leveret_amqp_0_9_converted(const leveret_tables *t, const int32_t *record, uint8_t *target, int32_t room)
{
    uint8_t copied[FOREIGN_MAX];
    leveret_neutral neutral;
    int32_t format = record[MESSAGE_KIND] & (KIND_REWORKED | KIND_GRAFTED), size = record[MESSAGE_PROPERTIES], block_size = t->state[STATE_BLOCK_SIZE];
    if (size > FOREIGN_MAX || (format != AMQP_1_0 && format != AMQP_0_10))
        return -1;
    const uint8_t *octets = t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)block_size + record[MESSAGE_ROUTE];
    if (record[MESSAGE_ROUTE] + size > block_size) {
        extract(t, record[MESSAGE_FIRST], record[MESSAGE_ROUTE], copied, 0, size);
        octets = copied;
    }
    static _Thread_local leveret_shapes known;
    int32_t body = format == AMQP_1_0 ? record[MESSAGE_BODY] : 0, told_body = body_size_octets(octets, size, body);
    const int32_t facts[SHAPE_FACTS] = {format, told_body, told_body ? 0 : body};
    int32_t made = made_by_shape(&known, facts, octets, size - told_body, target, room);
    if (made >= 0)
        return made;
    if (format == AMQP_1_0 ? leveret_amqp_1_0_read_neutral(octets, size, record[MESSAGE_BODY], &neutral) : leveret_amqp_0_10_read_neutral(octets, size, &neutral))
        return -1;
    leveret_places free = {0};
    made = leveret_amqp_0_9_write_neutral(&neutral, target, room, &free);
    keep_shape(&known, facts, octets, size - told_body, target, made, &free);
    return made;
}

/* The delivery of one message that another version has published, as pump: the position behind it. Behind `at` octets are written even where it is none. */
static int32_t deliver_converted(const leveret_tables *t, int32_t consumer, int32_t entry, const uint8_t *prefix, int32_t prefix_size,
                                 int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end)
{
    int32_t channel = t->consumers[consumer + CONSUMER_CHANNEL];
    const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE], *session = t->channels + channel;
    int32_t body = record[MESSAGE_BODY], route = record[MESSAGE_ROUTE], number = prefix[1] << 8 | prefix[2];
    if (t->consumers[consumer + CONSUMER_CREDIT] <= 0 || (session[CHANNEL_PREFETCH] != 0 && session[CHANNEL_UNSETTLED] >= session[CHANNEL_PREFETCH]))
        return at;
    int32_t header = at + prefix_size + 10 + route, room = end - header - HEADER_HEAD - OVERHEAD;
    if (body + OVERHEAD > frame_size_max || body > room)
        return at;
    room = room - body > FOREIGN_MAX ? FOREIGN_MAX : room - body;
    int32_t size = leveret_amqp_0_9_converted(t, record, target + header + HEADER_HEAD - 1, room);
    if (size < 0 || HEADER_HEAD + size > frame_size_max || (size > record[MESSAGE_PROPERTIES] && size > end - HEADS_MAX - route))
        return at;
    next_number(t->channels + channel + CHANNEL_TAG);
    memcpy(target + at, prefix, (size_t)prefix_size);
    put_size(target + at + 3, prefix_size + 9 + route - HEAD);
    at += prefix_size;
    put_number(target + at, session[CHANNEL_TAG_HIGH], session[CHANNEL_TAG]);
    target[at + 8] = t->entries[entry + ENTRY_REDELIVERED] & 255 ? 1 : 0;
    extract(t, record[MESSAGE_FIRST], 0, target, at + 9, route);
    target[header - 1] = END_OCTET;
    put_header_head(record, number, target + header, size - record[MESSAGE_PROPERTIES]);
    at = header + HEADER_HEAD - 1 + size;
    target[at] = END_OCTET;
    at += 1;
    if (body) {
        put_frame(target + at, BODY, number, body);
        extract(t, record[MESSAGE_FIRST], route + record[MESSAGE_PROPERTIES], target, at + HEAD, body);
        at += OVERHEAD + body;
        target[at - 1] = END_OCTET;
    }
    hand_over(t, consumer, entry);
    return at;
}

static int32_t deliver(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                       int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output)
{
    int32_t queue = t->consumers[consumer + CONSUMER_QUEUE];
    while (limit > 0) {
        int32_t entry = t->queues[queue + QUEUE_HEAD], before = at;
        if (entry < 0)
            break;
        if (!(t->messages[t->entries[entry + ENTRY_MESSAGE] + MESSAGE_KIND] & KIND_FORMAT)) {
            int32_t delivered = t->state[STATE_DELIVERED];
            at = pump(t, delivery_size, write_delivery, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end, output);
            limit -= (t->state[STATE_DELIVERED] - delivered) & MASK;
        } else {
            if (t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES && expire(t, queue))
                break;
            if (t->queues[queue + QUEUE_HEAD] != entry)
                continue; /* it has expired */
            at = deliver_converted(t, consumer, entry, prefix, prefix_size, frame_size_max, target, at, end);
            limit -= 1;
        }
        if (at == before)
            break;
    }
    return at;
}

const leveret_wire *leveret_amqp_0_9_wire(void)
{
    return &wire;
}
