/* Deliveries from a stream: the loop of core/amqp_0_9/deliver_stream.py for records that go out whole, as their publisher sent them. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "amqp_0_9_properties.h"
#include "streams.h"

enum { HEADER_HEAD = 20, TABLE_HEAD = 4, PAIR = 25, HEADERS = 0x20, HEADS_MAX = 77 };

static const char pair_head[] = "\017x-stream-offsetl";
static const char filter_name[] = "\025x-stream-filter-value";

/* Where the size of the headers stands in properties, or would stand. */
static int32_t headers_at(const uint8_t *properties)
{
    int32_t at = 2;
    if (properties[0] & 0x80)
        at += 1 + properties[at];
    if (properties[0] & 0x40)
        at += 1 + properties[at];
    return at;
}

/* Whether the wanted texts have this one: each is its size in four octets, and its octets. */
static int32_t has_text(const leveret_amqp_0_9_reading *r, const uint8_t *text, uint32_t size)
{
    for (int32_t at = 0; at < r->filter_size;) {
        uint32_t here = word_of(r->filter, at);
        if (here == size && (size == 0 || memcmp(r->filter + at + 4, text, size) == 0))
            return 1;
        at += 4 + (int32_t)here;
    }
    return 0;
}

/* Whether messages pass that have no value, or an empty one. */
static int32_t fits_unfiltered(const leveret_amqp_0_9_reading *r)
{
    return r->unfiltered || has_text(r, NULL, 0);
}

/* See subscription.fits: true for a message with these properties; -1: its header is no text. */
static int32_t fits(const leveret_amqp_0_9_reading *r, const uint8_t *properties)
{
    if (!(properties[0] & HEADERS))
        return fits_unfiltered(r);
    int32_t at = headers_at(properties), end = at + TABLE_HEAD + (int32_t)word_of(properties, at), value = -1;
    for (at += TABLE_HEAD; at < end;) {
        int32_t name = at, name_size = 1 + properties[at];
        at = leveret_value_end(properties, name + name_size, end);
        if (at < 0)
            return -1;
        if (name_size == (int32_t)sizeof filter_name - 1 && memcmp(properties + name, filter_name, (size_t)name_size) == 0)
            value = name + name_size;
    }
    if (value < 0)
        return fits_unfiltered(r);
    if (properties[value] != 'S')
        return -1;
    uint32_t length = word_of(properties, value + 1);
    return length == 0 ? fits_unfiltered(r) : has_text(r, properties + value + 5, length);
}

/* The content header frame with the offset among the headers, see properties.with_header: the position behind it. The cursor of the state stands
 * at the properties, and is left at the body. */
static int32_t put_header(const leveret_tables *t, const int32_t *record, int64_t offset, int32_t channel_number, uint8_t *target, int32_t at)
{
    int32_t size = record[MESSAGE_PROPERTIES];
    uint8_t *frame = target + at, *properties = frame + HEADER_HEAD - 1;
    extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + HEADER_HEAD - 1, size);
    int32_t place = headers_at(properties), more = PAIR;
    if (properties[0] & HEADERS) {
        int32_t table = (int32_t)word_of(properties, place);
        put_size(properties + place, table + PAIR);
        place += TABLE_HEAD + table;
        memmove(properties + place + PAIR, properties + place, (size_t)(size - place));
    } else {
        more += TABLE_HEAD;
        memmove(properties + place + more, properties + place, (size_t)(size - place));
        put_size(properties + place, PAIR);
        place += TABLE_HEAD;
        properties[0] |= HEADERS;
    }
    memcpy(properties + place, pair_head, sizeof pair_head - 1);
    put_number(properties + place + sizeof pair_head - 1, (int32_t)(offset >> 30), (int32_t)(offset & MASK));
    size += more;
    put_frame(frame, HEADER, channel_number, size + HEADER_HEAD - OVERHEAD);
    frame[7] = 0;
    frame[8] = CLASS_BASIC;
    frame[9] = 0;
    frame[10] = 0;
    put_number(frame + 11, 0, record[MESSAGE_BODY]);
    properties[size] = END_OCTET;
    return at + HEADER_HEAD + size;
}

/* A record's delivery: the position behind it. */
static int32_t put_record(const leveret_tables *t, const leveret_amqp_0_9_reading *r, const int32_t *record, const int32_t *channel,
                          const uint8_t *prefix, int32_t prefix_size, uint8_t *target, int32_t at)
{
    int32_t route = record[MESSAGE_ROUTE], body = record[MESSAGE_BODY], number = prefix[1] << 8 | prefix[2];
    memcpy(target + at, prefix, (size_t)prefix_size);
    put_size(target + at + 3, prefix_size + 9 + route - HEAD);
    at += prefix_size;
    put_number(target + at, channel[CHANNEL_TAG_HIGH], channel[CHANNEL_TAG]);
    target[at + 8] = 0;
    extract(t, record[MESSAGE_FIRST], 0, target, at + 9, route);
    at += 9 + route;
    target[at] = END_OCTET;
    at = put_header(t, record, r->offset, number, target, at + 1);
    if (body) {
        put_frame(target + at, BODY, number, body);
        extract(t, t->state[STATE_CURSOR_BLOCK], t->state[STATE_CURSOR_OFFSET], target, at + HEAD, body);
        target[at + HEAD + body] = END_OCTET;
        at += OVERHEAD + body;
    }
    return at;
}

/* The properties of a message, in one piece: in its block, or copied to `copy`; NULL: there is too much of them. */
static const uint8_t *properties_of(const leveret_tables *t, const int32_t *record, uint8_t *copy, int32_t copy_size)
{
    int32_t size = record[MESSAGE_PROPERTIES], route = record[MESSAGE_ROUTE], block_size = t->state[STATE_BLOCK_SIZE];
    if (route + size <= block_size)
        return t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)block_size + route;
    if (size > copy_size)
        return NULL;
    extract(t, record[MESSAGE_FIRST], route, copy, 0, size);
    return copy;
}

int32_t leveret_amqp_0_9_read_stream(const leveret_tables *t, leveret_amqp_0_9_reading *r, const uint8_t *prefix, int32_t prefix_size,
                                     int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end)
{
    int32_t *reader = t->consumers + r->consumer;
    int32_t queue = reader[CONSUMER_QUEUE], channel = reader[CONSUMER_CHANNEL], *state = t->state;
    int32_t *session = t->channels + channel;
    uint8_t copy[4096];
    r->made = 0;
    r->looked_at = 0;
    while (r->made < r->most && r->cursor >= 0 && r->offset < r->end && reader[CONSUMER_CREDIT] > 0) {
        if (session[CHANNEL_PREFETCH] > 0 && session[CHANNEL_UNSETTLED] >= session[CHANNEL_PREFETCH])
            break;
        const int32_t *record = t->messages + t->entries[r->cursor + ENTRY_MESSAGE];
        if (record[MESSAGE_KIND] & KIND_REWORKED)
            break;
        if (r->filter) {
            const uint8_t *properties = properties_of(t, record, copy, (int32_t)sizeof copy);
            int32_t is_wanted = properties ? fits(r, properties) : -1;
            if (is_wanted < 0 || (!is_wanted && r->looked_at == r->looks))
                break;
            if (!is_wanted) {
                r->looked_at += 1;
                r->cursor = t->entries[r->cursor + ENTRY_NEXT];
                r->offset += 1;
                continue;
            }
        }
        int32_t header = HEADER_HEAD + record[MESSAGE_PROPERTIES] + TABLE_HEAD + PAIR, body = record[MESSAGE_BODY];
        int32_t size = prefix_size + 10 + record[MESSAGE_ROUTE] + header + OVERHEAD + body;
        if (header > frame_size_max || body + OVERHEAD > frame_size_max || (r->large && body >= r->large) || size > end - at)
            break;
        if (prefix_size + HEADS_MAX + record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES] > end - at) /* as Python asks first */
            break;
        if (state[POOL_ENTRIES + 2] < 1 || (t->queues[queue + QUEUE_UNSETTLED] == 0 && state[POOL_MESSAGES + 2] < 1))
            break;
        int32_t entry = stream_entry(t, queue, r->offset, &r->delivered);
        next_number(session + CHANNEL_TAG);
        at = put_record(t, r, record, session, prefix, prefix_size, target, at);
        hold(t, channel, entry, r->consumer);
        if (reader[CONSUMER_CREDIT] != CREDIT_UNLIMITED)
            reader[CONSUMER_CREDIT] -= 1;
        state[STATE_DELIVERED] = (state[STATE_DELIVERED] + 1) & MASK;
        r->cursor = t->entries[r->cursor + ENTRY_NEXT];
        r->offset += 1;
        r->made += 1;
    }
    return at;
}
