/* Reading sections of 1.0 for receivers of other versions: core/amqp_1_0/properties.py, where nothing in them is unusual. */
#include "neutral.h"
#include "reader.h"

enum { HEADER = 0x70, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION, DATA };
enum { NULL_CODE = 0x40 };

/* A value: its letter (neutral.h; U: a uuid, 0: null), and what it is. */
typedef struct {
    leveret_text text;
    int64_t number;
    int32_t letter;
    int32_t is_symbol;
} value;

/* Constructors of numbers (part 1, section 1.6): the letter, octets, and whether they have a sign. Q: a ulong. */
static const struct {
    uint8_t code;
    char letter;
    uint8_t size;
    uint8_t is_signed;
} NUMBERS[] = {{0x56, 't', 1, 0}, {0x50, 'B', 1, 0}, {0x60, 'u', 2, 0}, {0x70, 'i', 4, 0}, {0x52, 'i', 1, 0}, {0x43, 'i', 0, 0},
               {0x80, 'Q', 8, 0}, {0x53, 'Q', 1, 0}, {0x44, 'Q', 0, 0}, {0x51, 'b', 1, 1}, {0x61, 's', 2, 1}, {0x71, 'I', 4, 1},
               {0x54, 'I', 1, 1}, {0x81, 'l', 8, 1}, {0x55, 'l', 1, 1}, {0x72, 'f', 4, 0}, {0x82, 'd', 8, 0}, {0x83, 'T', 8, 1}};

static value next_value(reader *in)
{
    value given = {{NULL, 0}, 0, 0, 0};
    int32_t code = next_octets(in, 1)[0];
    if (in->is_bad || code == NULL_CODE)
        return given;
    if (code == 0x41 || code == 0x42) {
        given.letter = 't';
        given.number = code == 0x41;
    } else if (code == 0xA1 || code == 0xA3 || code == 0xA0 || code == 0xB1 || code == 0xB3 || code == 0xB0) {
        given.letter = (code & 15) ? 'S' : 'x';
        given.is_symbol = (code & 15) == 3;
        given.text.size = (int32_t)next_number(in, code < 0xB0 ? 1 : 4, 0);
        given.text.octets = next_octets(in, given.text.size);
    } else if (code == 0x98) {
        given.letter = 'U';
        given.text = (leveret_text){next_octets(in, UUID_SIZE), UUID_SIZE};
    } else {
        for (size_t place = 0; place < sizeof NUMBERS / sizeof NUMBERS[0]; place++)
            if (NUMBERS[place].code == code) {
                given.letter = NUMBERS[place].letter;
                given.number = next_number(in, NUMBERS[place].size, NUMBERS[place].is_signed);
            }
        if (!given.letter)
            in->is_bad = 1; /* a list, a map, an array, something described, a decimal or a character */
    }
    return given;
}

/* The values of a list or a map: how many. */
static int32_t next_compound(reader *in, int32_t small, reader *part)
{
    int32_t code = next_octets(in, 1)[0], width = code == small ? 1 : 4;
    *part = (reader){in->octets, in->at, in->at, 0};
    if (small == 0xC0 && code == 0x45)
        return 0;
    if (code != small && code != small + 16)
        in->is_bad = 1;
    int64_t size = next_number(in, width, 0);
    part->at = in->at;
    next_octets(in, size < in->end ? (int32_t)size : -1);
    part->end = in->at;
    int64_t count = next_number(part, width, 0);
    in->is_bad = in->is_bad || part->is_bad || count > size;
    return in->is_bad ? 0 : (int32_t)count;
}

static void read_header(reader *in, leveret_neutral *neutral)
{
    reader part;
    int32_t count = next_compound(in, 0xC0, &part);
    for (int32_t field = 0; field < count; field++) {
        value given = next_value(&part);
        if (field == 0 && given.letter == 't')
            neutral->delivery_mode = given.number ? 2 : 1;
        else if (field == 1 && given.letter == 'B')
            neutral->priority = (int32_t)given.number;
        else if (field == 2 && given.letter == 'i')
            neutral->ttl = given.number;
        else if (given.letter && field < 3)
            in->is_bad = 1;
    }
    in->is_bad = in->is_bad || part.is_bad || part.at != part.end;
}

static int begins(leveret_text text, const char *name)
{
    int32_t size = (int32_t)strlen(name);
    return text.size >= size && !memcmp(text.octets, name, (size_t)size);
}

/* A header out of a pair; false: it is not for C. */
static int add_header(leveret_neutral *neutral, leveret_text name, const value *given)
{
    leveret_neutral_header *header = next_header(neutral, name);
    if (!header || given->letter == 'U' || (given->letter == 'T' && given->number < 0))
        return 0;
    header->letter = given->letter == 0 ? 'V' : given->letter == 'x' ? 'o' : given->letter;
    header->text = given->text;
    header->number = given->letter == 'T' ? given->number / 1000 : given->number;
    return !is_no_number(header);
}

static void read_annotations(reader *in, leveret_neutral *neutral)
{
    reader part;
    int32_t count = next_compound(in, 0xC1, &part);
    for (; count > 1 && !part.is_bad; count -= 2) {
        value key = next_value(&part), given = next_value(&part);
        if (!key.is_symbol || is_text(key.text, "x-cc") || begins(key.text, "x-basic-"))
            part.is_bad = 1;
        else if (begins(key.text, "x-") && !is_text(key.text, "x-routing-key") && !is_text(key.text, "x-exchange")
                 && !is_text(key.text, "x-opt-deaths") && !is_text(key.text, "x-death") && !add_header(neutral, key.text, &given))
            part.is_bad = 1;
    }
    in->is_bad = in->is_bad || part.is_bad || count || part.at != part.end;
}

static void read_application(reader *in, leveret_neutral *neutral)
{
    reader part;
    int32_t count = next_compound(in, 0xC1, &part);
    for (; count > 1 && !part.is_bad; count -= 2) {
        value key = next_value(&part), given = next_value(&part);
        if (key.letter != 'S' || part.is_bad || !add_header(neutral, key.text, &given))
            part.is_bad = 1;
    }
    in->is_bad = in->is_bad || part.is_bad || count || part.at != part.end;
}

enum { MESSAGE_ID, USER_ID, TO, SUBJECT, REPLY_TO, CORRELATION_ID, CONTENT_TYPE, CONTENT_ENCODING, EXPIRY, CREATION, GROUP_ID, GROUP_SEQUENCE };

static int fill_milliseconds(uint8_t *target, const uint8_t *octets, int32_t size)
{
    int64_t time = (int64_t)long_of(octets);
    return size == TIME_SIZE && time >= 0 && put_time_of(target, time);
}

static int fill_seconds(uint8_t *target, const uint8_t *octets, int32_t size)
{
    int64_t time = (int64_t)long_of(octets);
    return size == TIME_SIZE && time >= 0 && put_time_of(target, time / 1000);
}

static void read_field(reader *in, int32_t field, const value *given, leveret_neutral *neutral)
{
    leveret_text *const TEXTS[] = {&neutral->message_id, &neutral->user_id, NULL, &neutral->type, &neutral->reply_to, &neutral->correlation_id, &neutral->content_type,
                                   &neutral->content_encoding, NULL, NULL, &neutral->app_id};
    if (field == GROUP_SEQUENCE) {
        neutral->group = given->number;
    } else if (field == CREATION && given->letter == 'T' && given->number >= 0) {
        neutral->time = (leveret_text){in->octets + in->at - TIME_SIZE, TIME_SIZE};
        neutral->fill_milliseconds = fill_milliseconds;
        neutral->fill_seconds = fill_seconds;
    } else if (field == EXPIRY && given->letter == 'T') {
        neutral->expiry = given->number;
    } else if (given->letter == 'U' && field == MESSAGE_ID) {
        neutral->message_uuid = given->text;
    } else if (given->letter == 'U' && field == CORRELATION_ID) {
        neutral->correlation_uuid = given->text;
    } else if (field <= GROUP_ID && TEXTS[field] && given->letter == (field == USER_ID ? 'x' : 'S') && given->text.size <= SHORT_TEXT) {
        *TEXTS[field] = given->text;
    } else if (field == CREATION || field == EXPIRY || (field <= GROUP_ID && TEXTS[field])) {
        in->is_bad = 1;
    }
}

static void read_properties(reader *in, leveret_neutral *neutral)
{
    reader part;
    int32_t count = next_compound(in, 0xC0, &part);
    neutral->is_address = 1;
    for (int32_t field = 0; field < count; field++) {
        value given = next_value(&part);
        if (given.letter)
            read_field(&part, field, &given, neutral);
    }
    in->is_bad = in->is_bad || part.is_bad || part.at != part.end;
}

int32_t leveret_amqp_1_0_read_neutral(const uint8_t *octets, int32_t size, int32_t body, leveret_neutral *neutral)
{
    reader in = {octets, 0, size, 0}, part;
    int32_t left = body, last = 0;
    clear_neutral(neutral);
    while (in.at < in.end && !in.is_bad) {
        const uint8_t *head = next_octets(&in, 3);
        int32_t code = head[2];
        if (in.is_bad || head[0] || head[1] != 0x53 || code <= last)
            return -1;
        last = code;
        if (code == HEADER) {
            read_header(&in, neutral);
        } else if (code == DELIVERY_ANNOTATIONS) {
            next_compound(&in, 0xC1, &part);
        } else if (code == ANNOTATIONS) {
            read_annotations(&in, neutral);
        } else if (code == PROPERTIES) {
            read_properties(&in, neutral);
        } else if (code == APPLICATION) {
            read_application(&in, neutral);
        } else if (code == DATA) {
            int32_t constructor = next_octets(&in, 1)[0];
            if ((constructor != 0xA0 && constructor != 0xB0) || next_number(&in, constructor == 0xA0 ? 1 : 4, 0) != body || in.at != in.end)
                return -1;
            left = 0;
        } else {
            return -1;
        }
    }
    return in.is_bad || left ? -1 : 0;
}
