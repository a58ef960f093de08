/* Writing the sections of 1.0 for a message of another version: fields_of and typed of core/amqp_1_0/convert.py. */
#include "amqp_1_0_writer.h"

enum { TIMESTAMP = 0x83, UUID = 0x98, NOTHING = 0x40 };
static const int64_t SECONDS_MAX = 0x7FFFFFFFFFFFFFFF / 1000;

static void put_fixed(writer *out, int32_t code, uint64_t number, int32_t size)
{
    put_octet(out, code);
    put_octets_of(out, number, size);
}

/* A number that has an encoding of one octet, too. */
static void put_small(writer *out, int32_t small, int32_t code, int64_t number, int32_t size)
{
    uint8_t octets[8];
    for (int32_t place = 0; place < size; place++)
        octets[place] = (uint8_t)((uint64_t)number >> 8 * (size - 1 - place));
    put_signed(out, small, code, octets, size);
}

static void put_value(writer *out, const leveret_neutral_header *header)
{
    int64_t number = header->number;
    switch (header->letter) {
    case 'V':
        put_octet(out, NOTHING);
        return;
    case 't':
        put_octet(out, number ? 0x41 : 0x42);
        return;
    case 'b': case 'B':
        put_fixed(out, header->letter == 'b' ? 0x51 : 0x50, (uint64_t)number, 1);
        return;
    case 's': case 'u':
        put_fixed(out, header->letter == 's' ? 0x61 : 0x60, (uint64_t)number, 2);
        return;
    case 'i':
        if (number == 0)
            put_octet(out, 0x43);
        else
            put_fixed(out, number < 256 ? 0x52 : 0x70, (uint64_t)number, number < 256 ? 1 : 4);
        return;
    case 'I':
        put_small(out, 0x54, 0x71, number, 4);
        return;
    case 'l':
        put_small(out, 0x55, 0x81, number, 8);
        return;
    case 'f': case 'd':
        put_fixed(out, header->letter == 'f' ? 0x72 : 0x82, (uint64_t)number, header->letter == 'f' ? 4 : 8);
        return;
    case 'T':
        if (number > SECONDS_MAX)
            out->is_bad = 1;
        else
            put_fixed(out, TIMESTAMP, (uint64_t)number * 1000, 8);
        return;
    case 'S':
        put_text(out, STRING, header->text.octets, header->text.size);
        return;
    default:
        put_sized(out, BINARY, header->text.octets, header->text.size);
    }
}

static void put_application(writer *out, const leveret_neutral *neutral)
{
    int32_t place = begin(out);
    for (const leveret_neutral_header *header = neutral->headers; header < neutral->headers + neutral->header_count; header++) {
        const uint8_t *name = header->name.octets;
        if ((header->name.size >= 2 && name[0] == 'x' && name[1] == '-') || is_text(header->name, "CC"))
            out->is_bad = 1; /* an annotation */
        put_text(out, STRING, name, header->name.size);
        put_value(out, header);
    }
    end(out, place, SECTION_APPLICATION, MAP, 2 * neutral->header_count);
}

/* The address of a queue, or of an exchange and a key. */
static void put_address(writer *out, leveret_text exchange, leveret_text key)
{
    const char *lead = exchange.octets ? "/exchanges/" : "/queues/";
    int32_t size = (int32_t)strlen(lead) + key.size + (exchange.octets ? exchange.size + 1 : 0);
    if (size < 256)
        put_octet(out, STRING), put_octet(out, size);
    else
        put_word(out, STRING + WIDE, (uint32_t)size);
    put(out, lead, (int32_t)strlen(lead));
    if (exchange.octets) {
        put_unreserved(out, exchange.octets, exchange.size);
        put_octet(out, '/');
    }
    put_unreserved(out, key.octets, key.size);
}

/* Fields up to the last one that there is; those before it are null where they are not there. */
static void put_field(writer *out, int32_t *count, int32_t field)
{
    while (*count < field) {
        put_octet(out, NOTHING);
        *count += 1;
    }
    *count += 1;
}

void leveret_amqp_1_0_write_neutral(const leveret_neutral *neutral, writer *out)
{
    int32_t place = begin(out), before = place, count = 0;
    if (neutral->message_uuid.octets)
        put_field(out, &count, 0), put_octet(out, UUID), put_free(out, neutral->message_uuid.octets, UUID_SIZE, UUID_SIZE, fill_any);
    if (neutral->user_id.octets)
        put_field(out, &count, 1), put_text(out, BINARY, neutral->user_id.octets, neutral->user_id.size);
    if (neutral->reply_to.octets)
        put_field(out, &count, 4), put_address(out, neutral->reply_exchange, neutral->reply_to);
    if (neutral->correlation_id.octets)
        put_field(out, &count, 5), put_id(out, neutral->correlation_id.octets, neutral->correlation_id.size);
    if (neutral->content_type.octets)
        put_field(out, &count, 6), put_text(out, SYMBOL, neutral->content_type.octets, neutral->content_type.size);
    if (neutral->content_encoding.octets)
        put_field(out, &count, 7), put_text(out, SYMBOL, neutral->content_encoding.octets, neutral->content_encoding.size);
    if (neutral->expiry >= 0)
        put_field(out, &count, 8), put_fixed(out, TIMESTAMP, (uint64_t)neutral->expiry, 8);
    if (neutral->time.octets)
        put_field(out, &count, 9), put_octet(out, TIMESTAMP), put_free(out, neutral->time.octets, TIME_SIZE, TIME_SIZE, neutral->fill_milliseconds);
    if (neutral->app_id.octets)
        put_field(out, &count, 10), put_text(out, STRING, neutral->app_id.octets, neutral->app_id.size);
    if (count)
        end(out, place, SECTION_PROPERTIES, LIST, count);
    else
        out->at = before;
    if (neutral->header_count)
        put_application(out, neutral);
}
