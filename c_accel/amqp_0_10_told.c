/* Reading a header segment of 0-10 for receivers of other versions: core/amqp_0_10/properties.py, where nothing in it is unusual. */
#include "told.h"

enum { DELIVERY_PROPERTIES = 0x0401, MESSAGE_PROPERTIES = 0x0403 };
static const int64_t MILLISECONDS_LEAST = 100000000000; /* a time that is larger is in milliseconds */
static const int64_t SECONDS_MAX = 0x7FFFFFFFFFFFFFFF / 1000;

/* Octets that are read one behind the other; is_bad: some are not there, or not for C. */
typedef struct {
    const uint8_t *octets;
    int32_t at;
    int32_t end;
    int is_bad;
} reader;

static const uint8_t *take(reader *in, int32_t size)
{
    static const uint8_t NOTHING[UUID_SIZE] = {0};
    if (in->is_bad || size < 0 || size > in->end - in->at) {
        in->is_bad = 1;
        return NOTHING;
    }
    in->at += size;
    return in->octets + in->at - size;
}

static leveret_text take_text(reader *in, int32_t width)
{
    const uint8_t *head = take(in, width);
    leveret_text text = {NULL, width == 1 ? head[0] : width == 2 ? head[0] << 8 | head[1] : (int32_t)word_of(head, 0)};
    text.octets = take(in, in->is_bad ? 0 : text.size);
    return text;
}

/* A text that is to be a short string. */
static leveret_text take_short(reader *in, int32_t width)
{
    leveret_text text = take_text(in, width);
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
static void read_delivery(reader *in, int32_t flags, leveret_told *told)
{
    if (flags & 1 << 3)
        told->priority = take(in, 1)[0];
    if (flags & 1 << 4)
        told->delivery_mode = take(in, 1)[0];
    if (flags & 1 << 5)
        told->ttl = (int64_t)long_of(take(in, 8));
    if (flags & 1 << 6)
        told->time = (leveret_text){take(in, TIME_SIZE), TIME_SIZE};
    if (flags & 1 << 7)
        told->expiry = (int64_t)long_of(take(in, 8));
    if ((flags & 1 << 5 && told->ttl < 0) || (flags & 1 << 7 && told->expiry < 0) || told->expiry > SECONDS_MAX)
        in->is_bad = 1; /* beyond all that is sent */
    if (told->time.octets && (int64_t)long_of(told->time.octets) <= 0)
        told->time.octets = NULL;
    told->fill_milliseconds = fill_milliseconds;
    told->fill_seconds = fill_seconds;
    told->expiry = told->expiry > 0 ? milliseconds(told->expiry) : -1;
    for (int32_t place = 8; place < 10; place++)
        if (flags & 1 << place)
            take_text(in, 1);
    if (flags & 3 << 10)
        in->is_bad = 1;
}

static void read_reply_to(reader *in, leveret_told *told)
{
    leveret_text inner = take_text(in, 2);
    reader part = {inner.octets, 0, inner.size, in->is_bad};
    const uint8_t *flags = take(&part, 2);
    told->reply_to.octets = flags; /* a text of no octets where there is no key */
    if (flags[0] & 1)
        told->reply_exchange = take_text(&part, 1);
    if (flags[0] & 2)
        told->reply_to = take_text(&part, 1);
    if (!told->reply_exchange.size)
        told->reply_exchange.octets = NULL;
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

static void read_value(reader *in, leveret_told_header *header)
{
    int32_t type = take(in, 1)[0], is_signed = 0, size = number_size(type, &header->letter, &is_signed);
    if (size) {
        const uint8_t *octets = take(in, size);
        uint64_t number = is_signed && octets[0] > 127 ? ~(uint64_t)0 : 0;
        for (int32_t place = 0; place < size; place++)
            number = number << 8 | octets[place];
        if (header->letter == 't')
            number = number != 0;
        header->number = header->letter == 'T' && (int64_t)number < 0 ? 0 : (int64_t)number;
        if (is_no_number(header))
            in->is_bad = 1;
    } else if (type == 0x85 || type == 0x95) {
        header->letter = 'S';
        header->text = take_text(in, type == 0x85 ? 1 : 2);
    } else if (type == 0x80 || type == 0x90 || type == 0xA0) {
        header->letter = 'x';
        header->text = take_text(in, type == 0x80 ? 1 : type == 0x90 ? 2 : 4);
    } else if (type == 0xF0) {
        header->letter = 'V';
    } else {
        in->is_bad = 1;
    }
}

static void read_headers(reader *in, leveret_told *told)
{
    /* headers that are properties of other families */
    static const char *const PROPERTIES[] = {"x-jms-type", "x-message-id", "qpid.subject", "JMSXGroupSeq", "x-cluster-id"};
    leveret_text map = take_text(in, 4);
    reader part = {map.octets, 0, map.size, in->is_bad};
    if (!map.size)
        return;
    int32_t count = (int32_t)word_of(take(&part, 4), 0);
    while (count-- > 0 && !part.is_bad) {
        leveret_text name = take_text(&part, 1);
        leveret_told_header *header = part.is_bad ? NULL : next_header(told, name);
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

static void read_message(reader *in, int32_t flags, leveret_told *told)
{
    if (flags & 1)
        take(in, 8);
    if (flags & 1 << 1)
        told->message_uuid = (leveret_text){take(in, UUID_SIZE), UUID_SIZE};
    if (flags & 1 << 2)
        told->correlation_id = take_short(in, 2);
    if (flags & 1 << 3)
        read_reply_to(in, told);
    if (flags & 1 << 4)
        told->content_type = take_text(in, 1);
    if (flags & 1 << 5)
        told->content_encoding = take_text(in, 1);
    if (flags & 1 << 6)
        told->user_id = take_short(in, 2);
    if (flags & 1 << 7)
        told->app_id = take_short(in, 2);
    if (flags & 1 << 8)
        read_headers(in, told);
    if (flags >> 9)
        in->is_bad = 1;
}

int32_t leveret_amqp_0_10_told(const uint8_t *octets, int32_t size, leveret_told *told)
{
    reader in = {octets, 0, size, 0};
    int32_t seen = 0;
    tell_nothing(told);
    while (in.at < in.end && !in.is_bad) {
        leveret_text inner = take_text(&in, 4);
        reader part = {inner.octets, 0, inner.size, in.is_bad};
        const uint8_t *head = take(&part, 4);
        int32_t code = head[0] << 8 | head[1], flags = head[2] | head[3] << 8, bit = code == DELIVERY_PROPERTIES ? 1 : 2;
        if (part.is_bad || (code != DELIVERY_PROPERTIES && code != MESSAGE_PROPERTIES) || seen & bit)
            return -1;
        seen |= bit;
        if (bit == 1)
            read_delivery(&part, flags, told);
        else
            read_message(&part, flags, told);
        in.is_bad = part.is_bad || part.at != part.end;
    }
    return in.is_bad ? -1 : 0;
}
