/* Reading a header segment of 0-10 for receivers of other versions: core/amqp_0_10/properties.py, where nothing in it is unusual. */
#include "neutral.h"
#include "reader.h"

enum { DELIVERY_PROPERTIES = 0x0401, MESSAGE_PROPERTIES = 0x0403 };
static const int64_t MILLISECONDS_LEAST = 100000000000; /* a time that is larger is in milliseconds */
static const int64_t SECONDS_MAX = 0x7FFFFFFFFFFFFFFF / 1000;

static leveret_text next_text(reader *in, int32_t width)
{
    const uint8_t *head = next_octets(in, width);
    leveret_text text = {NULL, width == 1 ? head[0] : width == 2 ? head[0] << 8 | head[1] : (int32_t)word_of(head, 0)};
    text.octets = next_octets(in, in->is_bad ? 0 : text.size);
    return text;
}

/* A text that is to be a short string. */
static leveret_text next_short(reader *in, int32_t width)
{
    leveret_text text = next_text(in, width);
    if (text.size > SHORT_TEXT)
        in->is_bad = 1;
    return text;
}

static int64_t milliseconds(int64_t time)
{
    return time >= MILLISECONDS_LEAST ? time : 1000 * time;
}

static int fill_milliseconds(uint8_t *target, const uint8_t *octets, int32_t size)
{
    int64_t time = (int64_t)long_of(octets);
    return size == TIME_SIZE && time > 0 && time <= SECONDS_MAX && put_time_of(target, milliseconds(time));
}

static int fill_seconds(uint8_t *target, const uint8_t *octets, int32_t size)
{
    int64_t time = (int64_t)long_of(octets);
    return size == TIME_SIZE && time > 0 && time <= SECONDS_MAX && put_time_of(target, milliseconds(time) / 1000);
}

/* Fields of delivery-properties; exchange and routing key are the broker's to say. */
static void read_delivery(reader *in, int32_t flags, leveret_neutral *neutral)
{
    if (flags & 1 << 3)
        neutral->priority = next_octets(in, 1)[0];
    if (flags & 1 << 4)
        neutral->delivery_mode = next_octets(in, 1)[0];
    if (flags & 1 << 5)
        neutral->ttl = next_number(in, 8, 0);
    if (flags & 1 << 6)
        neutral->time = (leveret_text){next_octets(in, TIME_SIZE), TIME_SIZE};
    if (flags & 1 << 7)
        neutral->expiry = next_number(in, 8, 0);
    if ((flags & 1 << 5 && neutral->ttl < 0) || (flags & 1 << 7 && neutral->expiry < 0) || neutral->expiry > SECONDS_MAX)
        in->is_bad = 1; /* beyond all that is sent */
    if (neutral->time.octets && (int64_t)long_of(neutral->time.octets) <= 0)
        neutral->time.octets = NULL;
    neutral->fill_milliseconds = fill_milliseconds;
    neutral->fill_seconds = fill_seconds;
    neutral->expiry = neutral->expiry > 0 ? milliseconds(neutral->expiry) : -1;
    for (int32_t place = 8; place < 10; place++)
        if (flags & 1 << place)
            next_text(in, 1);
    if (flags & 3 << 10)
        in->is_bad = 1;
}

static void read_reply_to(reader *in, leveret_neutral *neutral)
{
    leveret_text inner = next_text(in, 2);
    reader part = {inner.octets, 0, inner.size, in->is_bad};
    const uint8_t *flags = next_octets(&part, 2);
    neutral->reply_to.octets = flags; /* a text of no octets where there is no key */
    if (flags[0] & 1)
        neutral->reply_exchange = next_text(&part, 1);
    if (flags[0] & 2)
        neutral->reply_to = next_text(&part, 1);
    if (!neutral->reply_exchange.size)
        neutral->reply_exchange.octets = NULL;
    in->is_bad = part.is_bad || flags[0] > 3 || flags[1] || part.at != part.end;
}

/* Octets of the number of a type, or 0; its letter, and whether it is signed. */
static int32_t number_size(int32_t type, int32_t *letter, int32_t *is_signed)
{
    static const struct {
        uint8_t type;
        char letter;
        uint8_t size;
        uint8_t is_signed;
    } TYPES[] = {{0x01, 'b', 1, 1}, {0x02, 'B', 1, 0}, {0x08, 't', 1, 0}, {0x11, 's', 2, 1}, {0x12, 'u', 2, 0}, {0x21, 'I', 4, 1},
                 {0x22, 'i', 4, 0}, {0x23, 'f', 4, 0}, {0x31, 'l', 8, 1}, {0x33, 'd', 8, 0}, {0x38, 'T', 8, 1}};
    for (size_t place = 0; place < sizeof TYPES / sizeof TYPES[0]; place++)
        if (TYPES[place].type == type) {
            *letter = TYPES[place].letter;
            *is_signed = TYPES[place].is_signed;
            return TYPES[place].size;
        }
    return 0;
}

static void read_value(reader *in, leveret_neutral_header *header)
{
    int32_t type = next_octets(in, 1)[0], is_signed = 0, size = number_size(type, &header->letter, &is_signed);
    if (size) {
        int64_t number = next_number(in, size, is_signed);
        if (header->letter == 't')
            number = number != 0;
        header->number = header->letter == 'T' && number < 0 ? 0 : number;
        if (is_no_number(header))
            in->is_bad = 1;
    } else if (type == 0x85 || type == 0x95) {
        header->letter = 'S';
        header->text = next_text(in, type == 0x85 ? 1 : 2);
    } else if (type == 0x80 || type == 0x90 || type == 0xA0) {
        header->letter = 'x';
        header->text = next_text(in, type == 0x80 ? 1 : type == 0x90 ? 2 : 4);
    } else if (type == 0xF0) {
        header->letter = 'V';
    } else {
        in->is_bad = 1;
    }
}

static void read_headers(reader *in, leveret_neutral *neutral)
{
    /* headers that are properties of other families */
    static const char *const PROPERTIES[] = {"x-jms-type", "x-message-id", "qpid.subject", "JMSXGroupSeq", "x-cluster-id"};
    leveret_text map = next_text(in, 4);
    reader part = {map.octets, 0, map.size, in->is_bad};
    if (!map.size)
        return;
    int32_t count = (int32_t)word_of(next_octets(&part, 4), 0);
    while (count-- > 0 && !part.is_bad) {
        leveret_text name = next_text(&part, 1);
        leveret_neutral_header *header = part.is_bad ? NULL : next_header(neutral, name);
        for (size_t place = 0; header && place < sizeof PROPERTIES / sizeof PROPERTIES[0]; place++)
            if (is_text(name, PROPERTIES[place]))
                header = NULL;
        if (header)
            read_value(&part, header);
        else
            part.is_bad = 1;
    }
    in->is_bad = part.is_bad || part.at != part.end;
}

static void read_message(reader *in, int32_t flags, leveret_neutral *neutral)
{
    if (flags & 1)
        next_octets(in, 8);
    if (flags & 1 << 1)
        neutral->message_uuid = (leveret_text){next_octets(in, UUID_SIZE), UUID_SIZE};
    if (flags & 1 << 2)
        neutral->correlation_id = next_short(in, 2);
    if (flags & 1 << 3)
        read_reply_to(in, neutral);
    if (flags & 1 << 4)
        neutral->content_type = next_text(in, 1);
    if (flags & 1 << 5)
        neutral->content_encoding = next_text(in, 1);
    if (flags & 1 << 6)
        neutral->user_id = next_short(in, 2);
    if (flags & 1 << 7)
        neutral->app_id = next_short(in, 2);
    if (flags & 1 << 8)
        read_headers(in, neutral);
    if (flags >> 9)
        in->is_bad = 1;
}

int32_t leveret_amqp_0_10_read_neutral(const uint8_t *octets, int32_t size, leveret_neutral *neutral)
{
    reader in = {octets, 0, size, 0};
    int32_t seen = 0;
    clear_neutral(neutral);
    while (in.at < in.end && !in.is_bad) {
        leveret_text inner = next_text(&in, 4);
        reader part = {inner.octets, 0, inner.size, in.is_bad};
        const uint8_t *head = next_octets(&part, 4);
        int32_t code = head[0] << 8 | head[1], flags = head[2] | head[3] << 8, bit = code == DELIVERY_PROPERTIES ? 1 : 2;
        if (part.is_bad || (code != DELIVERY_PROPERTIES && code != MESSAGE_PROPERTIES) || seen & bit)
            return -1;
        seen |= bit;
        if (bit == 1)
            read_delivery(&part, flags, neutral);
        else
            read_message(&part, flags, neutral);
        in.is_bad = part.is_bad || part.at != part.end;
    }
    return in.is_bad ? -1 : 0;
}
