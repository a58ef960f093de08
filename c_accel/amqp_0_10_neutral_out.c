/* Writing a header segment of 0-10 for a message of another version: core/amqp_0_10/convert.py and properties.py. */
#include "neutral.h"
#include "writer.h"

enum { TEXT = 0x95, TEXT_MAX = 0xFFFF }; /* str16; its octets */

/* Begin something whose size is written before it, in so many octets: its place. */
static int32_t begin(writer *out, int32_t width)
{
    put_octets_of(out, 0, width);
    return out->at;
}

static void end(writer *out, int32_t place, int32_t width)
{
    uint32_t size = (uint32_t)(out->at - place);
    for (int32_t octet = 0; octet < width && !out->is_bad; octet++)
        out->octets[place - 1 - octet] = (uint8_t)(size >> 8 * octet);
}

/* Octets behind their size. */
static void put_sized(writer *out, leveret_text text, int32_t width)
{
    put_octets_of(out, (uint64_t)text.size, width);
    put(out, text.octets, text.size);
}

/* A text behind its size: ASCII. */
static void put_text(writer *out, leveret_text text, int32_t width)
{
    int is_other = 0;
    for (int32_t place = 0; place < text.size; place++)
        is_other |= text.octets[place] > 127;
    out->is_bad |= is_other;
    put_sized(out, text, width);
}

static void put_value(writer *out, const leveret_neutral_header *header)
{
    static const struct {
        char letter;
        uint8_t type;
        uint8_t size;
    } TYPES[] = {{'b', 0x01, 1}, {'B', 0x02, 1}, {'t', 0x08, 1}, {'s', 0x11, 2}, {'u', 0x12, 2}, {'I', 0x21, 4}, {'i', 0x22, 4},
                 {'f', 0x23, 4}, {'l', 0x31, 8}, {'Q', 0x32, 8}, {'d', 0x33, 8}, {'T', 0x38, 8}, {'V', 0xF0, 0}};
    if (header->letter == 'S') {
        put_octet(out, TEXT);
        out->is_bad |= header->text.size > TEXT_MAX;
        put_text(out, header->text, 2);
        return;
    }
    if (header->letter == 'x' || header->letter == 'o') {
        put_octet(out, 0xA0); /* vbin32 */
        put_sized(out, header->text, 4);
        return;
    }
    for (size_t place = 0; place < sizeof TYPES / sizeof TYPES[0]; place++)
        if (TYPES[place].letter == header->letter) {
            put_octet(out, TYPES[place].type);
            put_octets_of(out, (uint64_t)header->number, TYPES[place].size);
            return;
        }
    out->is_bad = 1;
}

/* A message-id, which is a header: ASCII. One that may be a uuid's is for Python. */
static int fill_message_id(uint8_t *target, const uint8_t *octets, int32_t size)
{
    int32_t hyphens = 0, is_other = size >= 9 && !memcmp(octets, "urn:uuid:", 9);
    for (int32_t place = 0; place < size; place++) {
        is_other |= octets[place] > 127;
        hyphens += octets[place] == '-';
    }
    memcpy(target, octets, (size_t)size);
    return !is_other && !(hyphens && size - hyphens == 32);
}

/* An id behind its size. */
static void put_id(writer *out, leveret_text id, leveret_fill fill)
{
    put_octets_of(out, (uint64_t)id.size, 2);
    put_free(out, id.octets, id.size, id.size, fill);
}

static leveret_text named(const char *name)
{
    return (leveret_text){(const uint8_t *)name, (int32_t)strlen(name)};
}

/* The map of headers, with properties that are headers there: an id that is no uuid, group-sequence, the type. */
static void put_headers(writer *out, const leveret_neutral *neutral)
{
    const leveret_neutral_header later[] = {{named("x-message-id"), neutral->message_id, 0, neutral->message_id.octets ? 'S' : 0},
                                         {named("JMSXGroupSeq"), {NULL, 0}, neutral->group, neutral->group < 0 ? 0 : neutral->group > 0x7FFFFFFF ? 'i' : 'I'},
                                         {named("x-jms-type"), neutral->type, 0, neutral->type.octets ? 'S' : 0}};
    int32_t place = begin(out, 4), count = neutral->header_count;
    for (int32_t each = 0; each < 3; each++)
        count += later[each].letter != 0;
    put_octets_of(out, (uint64_t)count, 4);
    for (const leveret_neutral_header *header = neutral->headers; header < neutral->headers + neutral->header_count; header++) {
        for (int32_t each = 0; each < 3; each++)
            if (header->name.size == later[each].name.size && !memcmp(header->name.octets, later[each].name.octets, (size_t)header->name.size))
                out->is_bad = 1;
        put_text(out, header->name, 1);
        put_value(out, header);
    }
    for (int32_t each = 0; each < 3; each++)
        if (later[each].letter) {
            put_text(out, later[each].name, 1);
            if (each == 0) {
                put_octet(out, TEXT);
                put_id(out, neutral->message_id, fill_message_id);
            } else {
                put_value(out, later + each);
            }
        }
    end(out, place, 4);
}

/* The struct reply-to of a queue's name: addresses of exchanges, and of queues once more, are for Python. */
static void put_reply_to(writer *out, const leveret_neutral *neutral)
{
    static const char QUEUES[] = "/queues/";
    leveret_text key = neutral->reply_to;
    int32_t lead = (int32_t)sizeof QUEUES - 1, place = begin(out, 2);
    put_octets_of(out, 0x0300, 2);
    put_octet(out, 0);
    if (neutral->is_address && key.size >= lead && !memcmp(key.octets, QUEUES, (size_t)lead)) {
        key.octets += lead;
        key.size -= lead;
        put_octet(out, key.size);
        put_unreserved(out, key.octets, key.size);
    } else {
        out->is_bad |= key.size && key.octets[0] == '/';
        put_text(out, key, 1);
    }
    end(out, place, 2);
}

static void put_delivery(writer *out, const leveret_neutral *neutral, const uint8_t *route, int32_t route_size, int32_t redelivered)
{
    int32_t place = begin(out, 4), flags = 3 << 8 | 1 << 4 | (redelivered ? 1 << 2 : 0);
    flags |= (neutral->priority >= 0 ? 1 << 3 : 0) | (neutral->ttl >= 0 ? 1 << 5 : 0) | (neutral->time.octets ? 1 << 6 : 0) | (neutral->expiry >= 0 ? 1 << 7 : 0);
    put_octets_of(out, 0x0401, 2);
    put_octet(out, flags & 255);
    put_octet(out, flags >> 8);
    if (neutral->priority >= 0)
        put_octet(out, neutral->priority);
    put_octet(out, neutral->delivery_mode);
    if (neutral->ttl >= 0)
        put_octets_of(out, (uint64_t)neutral->ttl, 8);
    if (neutral->time.octets)
        put_free(out, neutral->time.octets, TIME_SIZE, TIME_SIZE, neutral->fill_milliseconds);
    if (neutral->expiry >= 0)
        put_octets_of(out, (uint64_t)neutral->expiry, 8);
    int is_other = 0;
    for (int32_t octet = 0; octet < route_size; octet++)
        is_other |= route[octet] > 127; /* no ASCII, or a long name */
    out->is_bad |= is_other;
    put(out, route, route_size);
    end(out, place, 4);
}

int32_t leveret_amqp_0_10_write_neutral(const leveret_neutral *neutral, const uint8_t *route, int32_t route_size, int32_t redelivered, uint8_t *target, int32_t room,
                               leveret_places *free)
{
    writer out = {target, 0, room, neutral->correlation_uuid.octets != NULL, free};
    put_delivery(&out, neutral, route, route_size, redelivered);
    const leveret_text fields[] = {neutral->message_uuid, neutral->correlation_id, neutral->reply_to, neutral->content_type, neutral->content_encoding,
                                   neutral->user_id, neutral->app_id};
    int32_t flags = neutral->header_count || neutral->message_id.octets || neutral->type.octets || neutral->group >= 0 ? 1 << 8 : 0;
    for (int32_t field = 0; field < 7; field++)
        flags |= fields[field].octets ? 2 << field : 0;
    if (!flags)
        return out.is_bad ? -1 : out.at;
    int32_t place = begin(&out, 4);
    put_octets_of(&out, 0x0403, 2);
    put_octet(&out, flags & 255);
    put_octet(&out, flags >> 8);
    if (neutral->message_uuid.octets)
        put_free(&out, neutral->message_uuid.octets, UUID_SIZE, UUID_SIZE, fill_any);
    if (neutral->correlation_id.octets)
        put_id(&out, neutral->correlation_id, fill_any);
    if (neutral->reply_to.octets)
        put_reply_to(&out, neutral);
    if (neutral->content_type.octets)
        put_text(&out, neutral->content_type, 1);
    if (neutral->content_encoding.octets)
        put_text(&out, neutral->content_encoding, 1);
    if (neutral->user_id.octets)
        put_sized(&out, neutral->user_id, 2);
    if (neutral->app_id.octets)
        put_sized(&out, neutral->app_id, 2);
    if (flags & 1 << 8)
        put_headers(&out, neutral);
    end(&out, place, 4);
    return out.is_bad ? -1 : out.at;
}
