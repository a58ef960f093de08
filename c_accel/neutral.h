/* What a message says of itself, for receivers of another version: the properties that families share (core/message/README.md), as places in the octets
 * that its publisher sent. A reader fills it in, a writer writes it. What is not simple is for Python: a reader's or a writer's -1. */
#ifndef LEVERET_NEUTRAL_H
#define LEVERET_NEUTRAL_H

#include "octets.h"
#include "shapes.h"

#include <stddef.h>

enum { HEADERS_MAX = 32, SHORT_TEXT = 255, TIME_SIZE = 8 };

typedef struct {
    const uint8_t *octets; /* NULL: there is none */
    int32_t size;
} leveret_text;

/* `letter`: as core/message/README.md has it, and those of field tables: t (boolean), S, x (octets), V; o: octets of 1.0, which are a text for class
 * basic. A number of any kind is in `number`, a fraction as its bits. */
typedef struct {
    leveret_text name;
    leveret_text text;
    int64_t number;
    int32_t letter;
} leveret_neutral_header;

typedef struct {
    leveret_text content_type;
    leveret_text content_encoding;
    leveret_text correlation_id;
    leveret_text message_id;
    leveret_text message_uuid; /* 16 octets in its place */
    leveret_text correlation_uuid;
    leveret_text reply_exchange;
    leveret_text reply_to; /* the key of reply_exchange; of 1.0 an address, where is_address says so */
    leveret_text type;
    leveret_text user_id;
    leveret_text app_id;
    leveret_text time; /* TIME_SIZE octets; what they become, in so many octets: milliseconds, or seconds, since 1970 */
    leveret_fill fill_milliseconds;
    leveret_fill fill_seconds;
    int32_t is_address;
    int32_t delivery_mode; /* -1: none, as the following */
    int32_t priority;
    int64_t ttl;     /* milliseconds */
    int64_t expiry;  /* milliseconds since 1970 */
    int64_t group;   /* group-sequence of 1.0 */
    int32_t header_count;
    leveret_neutral_header headers[HEADERS_MAX];
} leveret_neutral;

static inline void clear_neutral(leveret_neutral *neutral)
{
    memset(neutral, 0, offsetof(leveret_neutral, headers));
    neutral->delivery_mode = neutral->priority = -1;
    neutral->ttl = neutral->expiry = neutral->group = -1;
}

static inline uint64_t long_of(const uint8_t *octets)
{
    return (uint64_t)word_of(octets, 0) << 32 | word_of(octets, 4);
}

static inline int put_time_of(uint8_t *target, int64_t time)
{
    put_size(target, (int32_t)(time >> 32));
    put_size(target + 4, (int32_t)(uint32_t)time);
    return 1;
}

/* The milliseconds of a time of class basic, in seconds. */
static inline int fill_milliseconds_of_seconds(uint8_t *target, const uint8_t *octets, int32_t size)
{
    if (size != TIME_SIZE || octets[0] || octets[1] > 0x1F) /* they may not fit */
        return 0;
    return put_time_of(target, (int64_t)long_of(octets) * 1000);
}

static inline int is_text(leveret_text text, const char *name)
{
    return text.size == (int32_t)strlen(name) && !memcmp(text.octets, name, (size_t)text.size);
}

/* A fraction whose octets Python may change: an infinity, or not a number. */
static inline int is_no_number(const leveret_neutral_header *header)
{
    if (header->letter == 'f')
        return (header->number & 0x7F800000) == 0x7F800000;
    return header->letter == 'd' && (header->number & 0x7FF0000000000000) == 0x7FF0000000000000;
}

/* A place for one header more; NULL: there is none, or its name is there already. */
static inline leveret_neutral_header *next_header(leveret_neutral *neutral, leveret_text name)
{
    if (neutral->header_count == HEADERS_MAX || name.size > SHORT_TEXT)
        return NULL;
    for (int32_t other = 0; other < neutral->header_count; other++)
        if (neutral->headers[other].name.size == name.size && !memcmp(neutral->headers[other].name.octets, name.octets, (size_t)name.size))
            return NULL;
    leveret_neutral_header *header = neutral->headers + neutral->header_count++;
    header->name = name;
    header->text.octets = NULL;
    header->number = 0;
    return header;
}

/* Octets at the end of sections of 1.0 that are `body`, the size of a body part that is all payload: 0: they are not known to be. What stands before
 * them is read alike for each such size. */
static inline int32_t body_size_octets(const uint8_t *octets, int32_t size, int32_t body)
{
    static const uint8_t DATA[3] = {0, 0x53, 0x75};
    if (body > 0 && body < 256 && size >= 5 && octets[size - 2] == 0xA0 && octets[size - 1] == body && !memcmp(octets + size - 5, DATA, sizeof DATA))
        return 1;
    if (body > 0 && size >= 8 && octets[size - 5] == 0xB0 && word_of(octets, size - 4) == (uint32_t)body && !memcmp(octets + size - 8, DATA, sizeof DATA))
        return 4;
    return 0;
}

/* Read a header segment of 0-10, of `size` octets: 0, or -1. */
int32_t leveret_amqp_0_10_read_neutral(const uint8_t *octets, int32_t size, leveret_neutral *neutral);

/* Read the sections of 1.0 before a body part of `body` octets that is all payload: 0, or -1. */
int32_t leveret_amqp_1_0_read_neutral(const uint8_t *octets, int32_t size, int32_t body, leveret_neutral *neutral);

/* Read properties of class basic, of `size` octets: 0, or -1. */
int32_t leveret_amqp_0_9_read_neutral(const uint8_t *octets, int32_t size, leveret_neutral *neutral);

/* Write a header segment of 0-10 in target[0:room], with `route`, two short strings, as exchange and routing key: how many octets, or -1, and in `free`
 * the fields that vary. Of `neutral` its delivery_mode, priority and ttl are what the message's record says. */
int32_t leveret_amqp_0_10_write_neutral(const leveret_neutral *neutral, const uint8_t *route, int32_t route_size, int32_t redelivered, uint8_t *target, int32_t room,
                               leveret_places *free);

/* Write the properties of class basic in target[0:room]: how many octets, or -1, and in `free` the fields that vary. */
int32_t leveret_amqp_0_9_write_neutral(const leveret_neutral *neutral, uint8_t *target, int32_t room, leveret_places *free);

#endif
