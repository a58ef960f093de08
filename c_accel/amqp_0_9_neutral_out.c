/* Writing properties of class basic for a message of another version: core/amqp_0_9/properties.py. */
#include "neutral.h"
#include "writer.h"

static void put_short(writer *out, leveret_text text)
{
    if (text.size > SHORT_TEXT)
        out->is_bad = 1;
    put_octet(out, text.size);
    put(out, text.octets, text.size);
}

static int32_t number_size(int32_t letter)
{
    switch (letter) {
    case 't': case 'b': case 'B':
        return 1;
    case 's': case 'u':
        return 2;
    case 'I': case 'i': case 'f':
        return 4;
    default: /* l, Q, d, T */
        return 8;
    }
}

static void put_headers(writer *out, const leveret_neutral *neutral)
{
    int32_t place = out->at;
    put_octets_of(out, 0, 4);
    for (const leveret_neutral_header *header = neutral->headers; header < neutral->headers + neutral->header_count; header++) {
        put_short(out, header->name);
        put_octet(out, header->letter == 'o' ? 'S' : header->letter == 'Q' ? 'l' : header->letter);
        if (header->letter == 'Q' && header->number < 0)
            out->is_bad = 1; /* beyond what an l can say */
        if (header->letter == 'S' || header->letter == 'x' || header->letter == 'o') {
            put_octets_of(out, (uint64_t)header->text.size, 4);
            put(out, header->text.octets, header->text.size);
        } else if (header->letter != 'V') {
            put_octets_of(out, (uint64_t)header->number, number_size(header->letter));
        }
    }
    if (!out->is_bad)
        put_size(out->octets + place, out->at - place - 4);
}

/* A queue's name, an address that is none of a queue, or the address of an exchange and a key (address_of in core/amqp_0_10/properties.py). */
static void put_reply_to(writer *out, const leveret_neutral *neutral)
{
    static const char EXCHANGES[] = "/exchanges/", QUEUES[] = "/queues/";
    leveret_text key = neutral->reply_to, exchange = neutral->reply_exchange;
    if (exchange.octets) {
        int32_t size = (int32_t)sizeof EXCHANGES + exchange.size + key.size;
        if (size > SHORT_TEXT)
            out->is_bad = 1;
        put_octet(out, size);
        put(out, EXCHANGES, sizeof EXCHANGES - 1);
        put_unreserved(out, exchange.octets, exchange.size);
        put_octet(out, '/');
        put_unreserved(out, key.octets, key.size);
        return;
    }
    if (neutral->is_address && key.size >= (int32_t)sizeof QUEUES - 1 && !memcmp(key.octets, QUEUES, sizeof QUEUES - 1)) {
        key.octets += sizeof QUEUES - 1;
        key.size -= (int32_t)sizeof QUEUES - 1;
        put_octet(out, key.size);
        put_unreserved(out, key.octets, key.size);
        return;
    }
    put_short(out, key);
}

/* An id: a field that varies; a text, or a uuid, of 1.0 as a name of its own kind. */
static void put_id(writer *out, leveret_text id, leveret_text uuid, int32_t is_named)
{
    if (id.octets) {
        if (id.size > SHORT_TEXT)
            out->is_bad = 1;
        put_octet(out, id.size);
        put_free(out, id.octets, id.size, id.size, fill_any);
        return;
    }
    put_octet(out, is_named ? 45 : 36);
    if (is_named)
        put(out, "urn:uuid:", 9);
    put_free(out, uuid.octets, UUID_SIZE, UUID_TEXT, fill_uuid_text);
}

int32_t leveret_amqp_0_9_write_neutral(const leveret_neutral *neutral, uint8_t *target, int32_t room, leveret_places *free)
{
    writer out = {target, 2, room, 0, free};
    uint32_t flags = 0;
    if (room < 2)
        return -1;
    if (neutral->content_type.octets)
        flags |= 0x8000, put_short(&out, neutral->content_type);
    if (neutral->content_encoding.octets)
        flags |= 0x4000, put_short(&out, neutral->content_encoding);
    if (neutral->header_count)
        flags |= 0x2000, put_headers(&out, neutral);
    if (neutral->delivery_mode >= 0)
        flags |= 0x1000, put_octet(&out, neutral->delivery_mode);
    if (neutral->priority >= 0)
        flags |= 0x0800, put_octet(&out, neutral->priority);
    if (neutral->correlation_id.octets || neutral->correlation_uuid.octets)
        flags |= 0x0400, put_id(&out, neutral->correlation_id, neutral->correlation_uuid, 1);
    if (neutral->reply_to.octets)
        flags |= 0x0200, put_reply_to(&out, neutral);
    if (neutral->ttl >= 0)
        flags |= 0x0100, put_digits(&out, (uint64_t)neutral->ttl);
    if (neutral->message_id.octets || neutral->message_uuid.octets)
        flags |= 0x0080, put_id(&out, neutral->message_id, neutral->message_uuid, neutral->is_address);
    if (neutral->time.octets)
        flags |= 0x0040, put_free(&out, neutral->time.octets, TIME_SIZE, TIME_SIZE, neutral->fill_seconds);
    if (neutral->type.octets)
        flags |= 0x0020, put_short(&out, neutral->type);
    if (neutral->user_id.octets)
        flags |= 0x0010, put_short(&out, neutral->user_id);
    if (neutral->app_id.octets)
        flags |= 0x0008, put_short(&out, neutral->app_id);
    target[0] = (uint8_t)(flags >> 8);
    target[1] = (uint8_t)flags;
    return out.is_bad ? -1 : out.at;
}
