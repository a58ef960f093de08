/* Reading properties of class basic for receivers of other versions: core/amqp_0_9/exact.py, where nothing in them is unusual. A message in the store has
 * well formed ones. */
#include "neutral.h"

/* Octets of a value of a fixed size behind its letter, -1: it has none; the letter that other versions know it by, and whether it is signed. */
static int32_t fixed_size(int32_t letter, int32_t *known, int32_t *is_signed)
{
    *known = letter == 'L' ? 'l' : letter;
    *is_signed = letter == 'b' || letter == 's' || letter == 'I' || letter == 'l' || letter == 'L';
    switch (letter) {
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
    default:
        return -1;
    }
}

static int read_headers(leveret_neutral *neutral, const uint8_t *octets, int32_t at, int32_t end)
{
    while (at < end) {
        leveret_text name = {octets + at + 1, octets[at]};
        leveret_neutral_header *header = next_header(neutral, name);
        int32_t is_signed, value = at + 1 + name.size, letter = octets[value], size = fixed_size(letter, &letter, &is_signed);
        if (!header || (size < 0 && letter != 'S' && letter != 'x'))
            return 0;
        header->letter = letter;
        if (size < 0) {
            header->text = (leveret_text){octets + value + 5, (int32_t)word_of(octets, value + 1)};
            at = value + 5 + header->text.size;
            continue;
        }
        uint64_t number = is_signed && octets[value + 1] > 127 ? ~(uint64_t)0 : 0;
        for (int32_t place = 1; place <= size; place++)
            number = number << 8 | octets[value + place];
        header->number = (int64_t)(letter == 't' ? number != 0 : number);
        if (is_no_number(header) || (letter == 'T' && header->number < 0))
            return 0;
        at = value + 1 + size;
    }
    return at == end;
}

int32_t leveret_amqp_0_9_read_neutral(const uint8_t *octets, int32_t size, leveret_neutral *neutral)
{
    uint32_t flags = (uint32_t)octets[0] << 8 | octets[1];
    int32_t at = 2;
    clear_neutral(neutral);
    leveret_text expiration = {NULL, 0}, cluster = {NULL, 0};
    leveret_text *const TEXTS[] = {&neutral->content_type, &neutral->content_encoding, NULL, NULL, NULL, &neutral->correlation_id, &neutral->reply_to, &expiration,
                                   &neutral->message_id, NULL, &neutral->type, &neutral->user_id, &neutral->app_id, &cluster};
    for (int32_t property = 0; property < 14; property++) {
        if (!(flags & 0x8000u >> property))
            continue;
        if (TEXTS[property]) {
            *TEXTS[property] = (leveret_text){octets + at + 1, octets[at]};
            at += 1 + octets[at];
        } else if (property == 2) {
            int32_t table = (int32_t)word_of(octets, at);
            if (!read_headers(neutral, octets, at + 4, at + 4 + table))
                return -1;
            at += 4 + table;
        } else if (property == 9) {
            neutral->time = (leveret_text){octets + at, TIME_SIZE};
            neutral->fill_milliseconds = fill_milliseconds_of_seconds;
            at += TIME_SIZE;
        } else {
            at += 1; /* delivery-mode and priority: the message's record says them, as its lifetime */
        }
    }
    return at != size || cluster.octets ? -1 : 0;
}
