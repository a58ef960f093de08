/* basic.get from queues without consumers: basic_get of core/amqp_0_9/verbs.py, and get of deliver.py, where no rule has to see the message and
 * its content goes out whole. */
#include "amqp_0_9_get.h"
#include "amqp_0_9_frame.h"
#include "queues.h"

enum { BASIC_GET_OK = 71, BASIC_GET_EMPTY = 72, EMPTY_SIZE = 13, CONTENT_HEAD = 20, GIVEN = 11 /* octets of a frame before a method's arguments */ };

/* The queue with the name at `name`, a short string; -1: Python is to look it up. */
static int32_t queue_called(const leveret_getter *g, const uint8_t *name)
{
    for (int32_t each = 0; each < g->count; each++)
        if (memcmp(g->rows[each].name, name, 1 + (size_t)name[0]) == 0)
            return g->rows[each].queue;
    return -1;
}

/* Whether something of this piece goes first: confirms before the reply, and to the log messages before they leave their queue. */
static int32_t has_to_wait(const leveret_tables *t)
{
    return t->state[STATE_COUNTED_HEAD] >= 0 || t->state[STATE_LOGGED_HEAD] >= 0 || (t->letters && t->letters->logged_head >= 0);
}

/* Whether the lifetime of the message at a queue's head is over, or is 0: see getting.state in core/broker/getting.py. */
static int32_t may_have_expired(const leveret_tables *t, int32_t entry)
{
    int32_t moment = t->entries[entry + ENTRY_DEADLINE];
    if (moment == 0)
        return 0;
    return moment < 0 ? t->state[STATE_UPTIME] + moment >= 0 : !((t->state[STATE_NOW] - moment) & 0x20000000);
}

static void put_method(uint8_t *target, int32_t channel_number, int32_t method, int32_t size)
{
    put_frame(target, METHOD, channel_number, size);
    target[HEAD] = 0;
    target[HEAD + 1] = CLASS_BASIC;
    target[HEAD + 2] = 0;
    target[HEAD + 3] = (uint8_t)method;
}

static void write_empty(leveret_output *output, int32_t channel_number)
{
    uint8_t *target = output->octets + output->end;
    put_method(target, channel_number, BASIC_GET_EMPTY, 5);
    target[GIVEN] = 0;
    target[GIVEN + 1] = END_OCTET;
    output->end += EMPTY_SIZE;
}

/* Octets of get-ok and a content that goes out whole and as it was published; -1: it does not. */
static int32_t content_size(const leveret_tables *t, const leveret_getter *g, const int32_t *record)
{
    int32_t header = CONTENT_HEAD + record[MESSAGE_PROPERTIES], body = record[MESSAGE_BODY];
    if (record[MESSAGE_KIND] & KIND_REWORKED || header > t->state[STATE_FRAME_MAX] || body + OVERHEAD > t->state[STATE_FRAME_MAX])
        return -1;
    if (g->output->inset_least && body >= g->output->inset_least)
        return -1;
    return GIVEN + 9 + record[MESSAGE_ROUTE] + 5 + header + (body ? OVERHEAD + body : 0);
}

static void write_content(const leveret_tables *t, leveret_output *output, int32_t channel, int32_t channel_number, int32_t queue, int32_t entry)
{
    const int32_t *place = t->entries + entry, *record = t->messages + place[ENTRY_MESSAGE];
    int32_t route = record[MESSAGE_ROUTE], at = output->end + GIVEN;
    uint8_t *target = output->octets;
    put_method(target + output->end, channel_number, BASIC_GET_OK, 4 + 9 + route + 4);
    put_number(target + at, t->channels[channel + CHANNEL_TAG_HIGH], t->channels[channel + CHANNEL_TAG]);
    target[at + 8] = place[ENTRY_REDELIVERED] & 255 ? 1 : 0;
    extract(t, record[MESSAGE_FIRST], 0, target, at + 9, route);
    at += 9 + route;
    put_size(target + at, t->queues[queue + QUEUE_LENGTH] - 1);
    target[at + 4] = END_OCTET;
    output->end = leveret_amqp_0_9_put_content(t, place[ENTRY_MESSAGE], channel_number, target, at + 5);
}

int32_t leveret_amqp_0_9_get(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size)
{
    leveret_getter *g = t->getter;
    const uint8_t *frame = source + t->state[STATE_AT], *name = frame + GIVEN + 2;
    if (!g || size < 8 || size != 8 + name[0] || has_to_wait(t))
        return ASK;
    int32_t queue = queue_called(g, name), number = frame[1] << 8 | frame[2], behind = t->state[STATE_AT] + size + OVERHEAD;
    if (queue < 0)
        return ASK;
    const int32_t *record = t->queues + queue;
    int32_t entry = record[QUEUE_HEAD], room = leveret_room(g->output);
    if (!(record[QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED)) || record[QUEUE_CONSUMERS] || record[QUEUE_RETURNING] || room < g->reply_room)
        return ASK;
    if (entry < 0) {
        write_empty(g->output, number);
        g->answered = 1;
        return behind;
    }
    int32_t octets = may_have_expired(t, entry) ? -1 : content_size(t, g, t->messages + t->entries[entry + ENTRY_MESSAGE]);
    if (octets < 0 || octets > room - g->reply_room)
        return ASK;
    next_number(t->channels + channel + CHANNEL_TAG);
    write_content(t, g->output, channel, number, queue, entry);
    unlink_ready(t, queue, entry);
    int32_t no_ack = name[1 + name[0]] & 1;
    if (no_ack)
        drop(t, entry);
    else
        hold(t, channel, entry, GOT);
    t->state[no_ack ? STATE_GOT_NO_ACK : STATE_GOT] += 1;
    g->answered = 1;
    return behind;
}
