/* The octets before the body of a message that a receiver of AMQP 1.0 gets otherwise than it is stored, where that needs no thought: those of
 * core/amqp_1_0/convert.py, octet for octet. Of class basic: header, message-annotations with the route, properties, application-properties, the head of
 * the data section; of AMQP 1.0: its header anew, with deliveries that failed and what is left of ttl; message-annotations with the route. Texts beyond ASCII, headers that are annotations, names that come twice
 * and times of a message are convert.py's to judge. */
#include "amqp_1_0.h"
#include "messages.h"
#include "octets.h"
#include "amqp_1_0_writer.h"
#include "neutral.h"

enum { BASIC = 0, AMQP_1_0 = 2, AMQP_0_10 = 3 }; /* core/message/formats.py */
enum { NAMES_MAX = 32, PROPERTIES_MAX = 1024 };
static const int64_t TTL_MAX = 0xFFFFFFFF;

/* Milliseconds of a time in seconds. */
static void put_time(writer *out, const uint8_t *octets)
{
    uint8_t time[1 + TIME_SIZE] = {0x83};
    if (!fill_milliseconds_of_seconds(time + 1, octets, TIME_SIZE))
        out->is_bad = 1;
    put(out, time, sizeof time);
}

/* A floating point number, which is no infinity and not a number: `ones` are the first bits of such. */
static void put_float(writer *out, int32_t code, const uint8_t *octets, int32_t size, int32_t ones)
{
    int32_t first = (octets[0] & 127) << 8 | octets[1];
    if ((first & ones) == ones)
        out->is_bad = 1;
    put_octet(out, code);
    put(out, octets, size);
}

/* Octets of the value of a header behind its letter, -1: it is for convert.py. The headers of a message in the store are well formed. */
static int32_t value_size(const uint8_t *source, int32_t at)
{
    switch (source[at]) {
    case 'V':
        return 0;
    case 't': case 'b': case 'B':
        return 1;
    case 's': case 'u':
        return 2;
    case 'I': case 'i': case 'f':
        return 4;
    case 'l': case 'L': case 'd': case 'T':
        return 8;
    case 'S': case 'x': case 'A': case 'F':
        return 4 + (int32_t)word_of(source, at + 1);
    default:
        return -1;
    }
}

/* The value of a header, whose letter is at `at`. */
static void put_value(writer *out, const uint8_t *source, int32_t at, int32_t size)
{
    const uint8_t *octets = source + at + 1;
    switch (source[at]) {
    case 'V':
        put_octet(out, 0x40);
        return;
    case 't':
        put_octet(out, octets[0] ? 0x41 : 0x42);
        return;
    case 'b': case 'B':
        put_octet(out, source[at] == 'b' ? 0x51 : 0x50);
        put(out, octets, 1);
        return;
    case 's': case 'u':
        put_octet(out, source[at] == 's' ? 0x61 : 0x60);
        put(out, octets, 2);
        return;
    case 'i':
        if (word_of(octets, 0) == 0)
            put_octet(out, 0x43);
        else if (word_of(octets, 0) < 256)
            put_octet(out, 0x52), put_octet(out, octets[3]);
        else
            put_word(out, 0x70, word_of(octets, 0));
        return;
    case 'I':
        put_signed(out, 0x54, 0x71, octets, 4);
        return;
    case 'l': case 'L':
        put_signed(out, 0x55, 0x81, octets, 8);
        return;
    case 'f':
        put_float(out, 0x72, octets, 4, 0x7F80);
        return;
    case 'd':
        put_float(out, 0x82, octets, 8, 0x7FF0);
        return;
    case 'T':
        put_time(out, octets);
        return;
    case 'S':
        put_text(out, STRING, octets + 4, size - 4);
        return;
    default:
        put_sized(out, BINARY, octets + 4, size - 4);
    }
}

/* application-properties out of the field table between `at` and `behind`. */
static void put_headers(writer *out, const uint8_t *source, int32_t at, int32_t behind)
{
    int32_t names[NAMES_MAX], name_count = 0, count = 0, place = begin(out), before = place;
    while (at < behind && !out->is_bad) {
        const uint8_t *name = source + at + 1;
        int32_t octets = source[at], value = at + 1 + octets, size = value_size(source, value);
        int is_annotation = (octets >= 2 && name[0] == 'x' && name[1] == '-') || (octets == 2 && name[0] == 'C' && name[1] == 'C');
        if (size < 0 || is_annotation || name_count == NAMES_MAX) {
            out->is_bad = 1;
            return;
        }
        for (int32_t other = 0; other < name_count; other++)
            if (!memcmp(source + names[other], source + at, (size_t)octets + 1))
                out->is_bad = 1;
        names[name_count++] = at;
        if (source[value] != 'A' && source[value] != 'F') {
            put_text(out, STRING, name, octets);
            put_value(out, source, value, size);
            count += 2;
        }
        at = value + 1 + size;
    }
    if (count)
        end(out, place, SECTION_APPLICATION, MAP, count);
    else
        out->at = before;
}

/* message-annotations with the route, whose octets are `route`. `type`: that of class basic behind its size, or NULL. */
static void put_annotations(writer *out, const uint8_t *route, int32_t route_size, const uint8_t *type)
{
    int32_t place = begin(out), key = 1 + route[0];
    if (type) {
        put_name(out, "x-basic-type");
        put_text(out, STRING, type + 1, type[0]);
    }
    put_name(out, "x-exchange");
    put_text(out, STRING, route + 1, route[0]);
    put_name(out, "x-routing-key");
    put_text(out, STRING, route + key + 1, route_size - key - 1);
    end(out, place, SECTION_ANNOTATIONS, MAP, type ? 6 : 4);
}

/* The address of the queue that a reply goes to, where its name stands in it as it is. */
static void put_reply_to(writer *out, const uint8_t *name)
{
    static const char QUEUES[] = "/queues/";
    int32_t lead = (int32_t)sizeof QUEUES - 1, size = lead + name[0];
    if (size < 256)
        put_octet(out, STRING), put_octet(out, size);
    else
        put_word(out, STRING + WIDE, (uint32_t)size);
    put(out, QUEUES, lead);
    put_unreserved(out, name + 1, name[0]);
}

enum { CONTENT_TYPE, CONTENT_ENCODING, HEADERS, DELIVERY_MODE, PRIORITY, CORRELATION_ID, REPLY_TO, EXPIRATION, MESSAGE_ID, TIMESTAMP, TYPE, USER_ID, APP_ID, CLUSTER_ID, COUNT };

/* Where the properties of class basic are; NULL: they are not set. */
static void find_properties(const uint8_t *source, const uint8_t **found)
{
    uint32_t flags = (uint32_t)source[0] << 8 | source[1];
    source += 2;
    for (int32_t property = 0; property < COUNT; property++) {
        found[property] = flags & 0x8000u >> property ? source : NULL;
        if (!found[property])
            continue;
        if (property == HEADERS)
            source += 4 + word_of(source, 0);
        else if (property == TIMESTAMP)
            source += 8;
        else
            source += property == DELIVERY_MODE || property == PRIORITY ? 1 : 1 + source[0];
    }
}

/* The section properties: the fields up to the last one that is set. */
static void put_properties(writer *out, const uint8_t **found)
{
    /* in the order of the fields; -1: it has none of class basic */
    static const int8_t FIELDS[] = {MESSAGE_ID, USER_ID, -1, -1, REPLY_TO, CORRELATION_ID, CONTENT_TYPE, CONTENT_ENCODING, -1, TIMESTAMP, APP_ID};
    int32_t count = (int32_t)sizeof FIELDS;
    while (count > 0 && (FIELDS[count - 1] < 0 || !found[FIELDS[count - 1]]))
        count--;
    if (!count)
        return;
    int32_t place = begin(out);
    for (int32_t field = 0; field < count; field++) {
        const uint8_t *value = FIELDS[field] < 0 ? NULL : found[FIELDS[field]];
        if (!value)
            put_octet(out, 0x40);
        else if (FIELDS[field] == MESSAGE_ID || FIELDS[field] == CORRELATION_ID)
            put_id(out, value + 1, value[0]);
        else if (FIELDS[field] == REPLY_TO)
            put_reply_to(out, value);
        else if (FIELDS[field] == TIMESTAMP)
            put_octet(out, 0x83), put_free(out, value, TIME_SIZE, TIME_SIZE, fill_milliseconds_of_seconds);
        else
            put_text(out, FIELDS[field] == USER_ID ? BINARY : FIELDS[field] == APP_ID ? STRING : SYMBOL, value + 1, value[0]);
    }
    end(out, place, SECTION_PROPERTIES, LIST, count);
}

/* The fields of a header (section 3.2.1); -1: it has none. first-acquirer is not true: KIND_FOR_US has those. */
typedef struct {
    int32_t durable;
    int32_t priority;
    int64_t ttl;
    int64_t delivery_count;
} header;

enum { HEADER_FIELDS = 5, FIRST_ACQUIRER = 3 };

static void put_uint(writer *out, int64_t value)
{
    if (value < 0)
        put_octet(out, 0x40);
    else if (value == 0)
        put_octet(out, 0x43);
    else if (value < 256)
        put_octet(out, 0x52), put_octet(out, (int32_t)value);
    else
        put_word(out, 0x70, (uint32_t)value);
}

/* `header` in convert.py: `passed` milliseconds off its ttl, and deliveries that failed. */
static void put_header(writer *out, const header *given, int32_t failed, int64_t passed)
{
    int64_t ttl = given->ttl < 0 ? -1 : given->ttl < passed ? 0 : given->ttl - passed;
    int64_t delivery_count = (given->delivery_count < 0 ? 0 : given->delivery_count) + failed;
    int32_t place = begin(out), count;
    ttl = ttl > TTL_MAX ? TTL_MAX : ttl;
    delivery_count = delivery_count > TTL_MAX ? TTL_MAX : delivery_count ? delivery_count : -1;
    count = delivery_count >= 0 ? 5 : ttl >= 0 ? 3 : given->priority >= 0 ? 2 : given->durable >= 0 ? 1 : 0;
    if (count == 0) {
        static const uint8_t NOTHING[4] = {0, 0x53, SECTION_HEADER, 0x45};
        out->at = place;
        put(out, NOTHING, 4);
        return;
    }
    put_octet(out, given->durable < 0 ? 0x40 : given->durable ? 0x41 : 0x42);
    if (count > 1 && given->priority >= 0)
        put_octet(out, 0x50), put_octet(out, given->priority);
    else if (count > 1)
        put_octet(out, 0x40);
    if (count > 2)
        put_uint(out, ttl);
    if (count > 4)
        put_octet(out, 0x40), put_uint(out, delivery_count);
    end(out, place, SECTION_HEADER, LIST, count);
}

/* Read the header that sections of AMQP 1.0 begin with: where the next section begins, 0: there is none; -1: it is in no usual form. */
static int32_t read_header(header *given, const uint8_t *octets, int32_t size)
{
    given->durable = given->priority = -1;
    given->ttl = given->delivery_count = -1;
    if (size < 4 || octets[0] || octets[1] != 0x53)
        return -1;
    if (octets[2] != SECTION_HEADER)
        return octets[2] > SECTION_HEADER ? 0 : -1;
    if (octets[3] == 0x45)
        return 4;
    if (octets[3] != LIST || size < 6 || 5 + octets[4] > size || octets[5] > HEADER_FIELDS)
        return -1;
    int32_t at = 6, behind = 5 + octets[4];
    for (int32_t field = 0; field < octets[5]; field++) {
        if (at >= behind)
            return -1;
        int32_t code = octets[at++];
        if (code == 0x40)
            continue;
        int64_t value = -1;
        if (field == 0 || field == FIRST_ACQUIRER) {
            value = code == 0x41 && field == 0 ? 1 : code == 0x42 ? 0 : -1;
        } else if (field == 1) {
            value = code == 0x50 && at < behind ? octets[at++] : -1;
        } else if (code == 0x43) {
            value = 0;
        } else if (code == 0x52 && at < behind) {
            value = octets[at++];
        } else if (code == 0x70 && behind - at >= 4) {
            value = word_of(octets, at);
            at += 4;
        }
        if (value < 0)
            return -1;
        if (field == 0)
            given->durable = (int32_t)value;
        else if (field == 1)
            given->priority = (int32_t)value;
        else if (field == 2)
            given->ttl = value;
        else if (field == HEADER_FIELDS - 1)
            given->delivery_count = value;
    }
    return at == behind ? behind : -1;
}

/* Milliseconds that a message's publisher gives it, -1: for ever. */
static int64_t lifetime_of(const int32_t *record)
{
    int64_t lifetime = record[MESSAGE_LIFETIME];
    return lifetime < NONE ? 1000 * (-2 - lifetime) : lifetime;
}

static void put_data_head(writer *out, int32_t body)
{
    uint8_t head[3] = {0, 0x53, SECTION_DATA};
    put(out, head, 3);
    if (body < 256)
        put_octet(out, BINARY), put_octet(out, body);
    else
        put_word(out, BINARY + WIDE, (uint32_t)body);
}

static int is_described(const uint8_t *octets, int32_t size)
{
    return size > 4 && octets[0] == 0 && octets[1] == 0x53;
}

/* Sections of AMQP 1.0, with their header anew where it changes, and, where they are `noted`, with message-annotations of the route: those that have
 * some are for convert.py. */
static void put_sections(writer *out, const uint8_t *route, int32_t route_size, int32_t noted, int32_t failed, int64_t passed, const uint8_t *octets,
                         int32_t size)
{
    header given;
    int32_t behind = read_header(&given, octets, size);
    if (behind < 0 || size - behind < 4 || !is_described(octets + behind, size - behind) || (noted && octets[behind + 2] <= SECTION_ANNOTATIONS)) {
        out->is_bad = 1;
        return;
    }
    if (failed || (given.ttl >= 0 && passed))
        put_header(out, &given, failed, passed);
    else
        put(out, octets, behind);
    if (noted)
        put_annotations(out, route, route_size, NULL);
    put(out, octets + behind, size - behind);
}

/* The sections behind the header, of a message of class basic: its properties behind `route` octets of route. */
static void put_basic(writer *out, const uint8_t *octets, int32_t route)
{
    const uint8_t *found[COUNT];
    find_properties(octets + route, found);
    const uint8_t *type = found[TYPE];
    if (type && type[0] == 8 && !memcmp(type + 1, "amqp-1.0", 8))
        out->is_bad = 1;
    put_annotations(out, octets, route, type);
    put_properties(out, found);
    if (found[HEADERS])
        put_headers(out, found[HEADERS], 4, 4 + (int32_t)word_of(found[HEADERS], 0));
}

/* The same of a message of 0-10, with `size` octets of properties. */
static void put_neutral(writer *out, const uint8_t *octets, int32_t route, int32_t size)
{
    leveret_neutral neutral;
    if (leveret_amqp_0_10_read_neutral(octets + route, size, &neutral))
        out->is_bad = 1;
    put_annotations(out, octets, route, NULL);
    if (!out->is_bad)
        leveret_amqp_1_0_write_neutral(&neutral, out);
}

int32_t leveret_amqp_1_0_head(const leveret_tables *t, int32_t message, int32_t failed, int32_t noted, uint8_t *target, int32_t room)
{
    uint8_t copied[512 + PROPERTIES_MAX];
    const int32_t *record = t->messages + message;
    int32_t kind = record[MESSAGE_KIND], route = record[MESSAGE_ROUTE], size = record[MESSAGE_PROPERTIES], format = kind & KIND_FORMAT;
    int32_t changed = KIND_ANNOTATED | KIND_GRAFTED | KIND_REPLY_TO | KIND_FOR_US | KIND_ACQUIRED;
    int64_t passed = 1000 * (int64_t)seconds_passed(t, record);
    if (kind & changed || size > PROPERTIES_MAX || route > 512 || (format != BASIC && format != AMQP_1_0 && format != AMQP_0_10))
        return -1;
    leveret_places free = {0};
    writer out = {target, 0, room, 0, &free};
    const uint8_t *octets = t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)t->state[STATE_BLOCK_SIZE];
    if (route + size > t->state[STATE_BLOCK_SIZE]) {
        extract(t, record[MESSAGE_FIRST], 0, copied, 0, route + size);
        octets = copied;
    }
    if (format == AMQP_1_0) {
        put_sections(&out, octets, route, noted, failed, passed, octets + route, size);
        return out.is_bad ? -1 : out.at;
    }
    static _Thread_local leveret_shapes known;
    const int32_t facts[SHAPE_FACTS] = {kind, route, record[MESSAGE_LIFETIME], failed, seconds_passed(t, record)};
    out.at = made_by_shape(&known, facts, octets, route + size, target, room);
    if (out.at >= 0) {
        put_data_head(&out, record[MESSAGE_BODY]);
        return out.is_bad ? -1 : out.at;
    }
    out.at = 0;
    header given = {kind & KIND_DURABLE ? 1 : 0, kind & KIND_HAS_PRIORITY ? kind >> KIND_PRIORITY & 255 : -1, lifetime_of(record), -1};
    put_header(&out, &given, failed, passed);
    if (format == BASIC)
        put_basic(&out, octets, route);
    else
        put_neutral(&out, octets, route, size);
    keep_shape(&known, facts, octets, route + size, target, out.is_bad ? -1 : out.at, &free);
    put_data_head(&out, record[MESSAGE_BODY]);
    return out.is_bad ? -1 : out.at;
}

static void put_long(writer *out, int32_t code, int64_t value)
{
    uint8_t octets[9] = {(uint8_t)code};
    put_number(octets + 1, (int32_t)(value >> 30), (int32_t)(value & MASK));
    put(out, octets, 9);
}

/* An offset, which is a long. */
static void put_offset(writer *out, int64_t offset)
{
    if (offset < 128)
        put_octet(out, 0x55), put_octet(out, (int32_t)offset);
    else
        put_long(out, 0x81, offset);
}

/* See deliver_stream.write and positions.annotations: a section of their notes. */
static void put_position(writer *out, int64_t offset, int32_t tells_position, int64_t arrived)
{
    int32_t place = begin(out), size = 0;
    uint8_t digits[20];
    put_name(out, "x-stream-offset");
    put_offset(out, offset);
    if (tells_position) {
        for (int64_t left = offset; left || !size; left /= 10)
            digits[sizeof digits - 1 - (size_t)size++] = (uint8_t)('0' + left % 10);
        put_name(out, "x-opt-offset");
        put_sized(out, STRING, digits + sizeof digits - size, size);
        put_name(out, "x-opt-sequence-number");
        put_offset(out, offset);
        put_name(out, "x-opt-enqueued-time");
        put_long(out, 0x83, arrived * 1000);
    }
    end(out, place, SECTION_ANNOTATIONS, MAP, tells_position ? 8 : 2);
}

int32_t leveret_amqp_1_0_head_at(const leveret_tables *t, int32_t message, int64_t offset, int32_t tells_position, uint8_t *target, int32_t room)
{
    uint8_t octets[PROPERTIES_MAX];
    const int32_t *record = t->messages + message;
    int32_t size = record[MESSAGE_PROPERTIES];
    if ((record[MESSAGE_KIND] & (KIND_REWORKED | KIND_FOR_US)) != AMQP_1_0 || size > PROPERTIES_MAX || seconds_passed(t, record))
        return -1;
    writer out = {target, 0, room, 0, NULL};
    extract(t, record[MESSAGE_FIRST], record[MESSAGE_ROUTE], octets, 0, size);
    header given;
    int32_t behind = read_header(&given, octets, size);
    if (behind < 0 || size - behind < 4 || !is_described(octets + behind, size - behind) || octets[behind + 2] <= SECTION_ANNOTATIONS)
        return -1;
    put(&out, octets, behind);
    put_position(&out, offset, tells_position, (int64_t)record[MESSAGE_ARRIVED] + EPOCH);
    put(&out, octets + behind, size - behind);
    return out.is_bad ? -1 : out.at;
}
