/* From a receive buffer transfers and dispositions of AMQP 1.0 that need no thought (sections 2.7.5 and 2.7.6). */
#include "amqp_1_0.h"
#include "amqp_1_0_message.h"
#include "match.h"
#include "publish.h"
#include "queues.h"
#include "routes.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { HEAD_SIZE = 8, FLOW = 0x13, TRANSFER = 0x14, DISPOSITION = 0x15, ACCEPTED_STATE = 0x24, TAG_OCTETS = 32, SETTLE_ROOM = 512 };
enum { UNSETTLED = 0, SETTLED = 1 }; /* snd-settle-mode */

/* A reader of the fields of a performative: a value of the wrong form makes it bad. */
typedef struct {
    const uint8_t *source;
    int32_t at;
    int32_t end;
    int32_t left; /* fields */
    int is_bad;
} fields;

/* The code of the next field's constructor, 0x40 (null) behind the last; `at` is behind it. */
static inline int32_t next_code(fields *in)
{
    if (in->left <= 0)
        return 0x40;
    in->left--;
    if (in->at >= in->end) {
        in->is_bad = 1;
        return 0x40;
    }
    return in->source[in->at++];
}

static inline uint32_t next_uint(fields *in, int *is_null)
{
    int32_t code = next_code(in);
    *is_null = code == 0x40;
    if (code == 0x40 || code == 0x43)
        return 0;
    if (code == 0x52 && in->at < in->end)
        return in->source[in->at++];
    if (code == 0x70 && in->end - in->at >= 4) {
        in->at += 4;
        return word_of(in->source, in->at - 4);
    }
    in->is_bad = 1;
    return 0;
}

/* true; false and null are 0. */
static inline int next_boolean(fields *in)
{
    int32_t code = next_code(in);
    if (code == 0x56 && in->at < in->end && in->source[in->at] < 2)
        return in->source[in->at++];
    if (code != 0x40 && code != 0x41 && code != 0x42)
        in->is_bad = 1;
    return code == 0x41;
}

/* Begin the list of a performative at `at`: 0 when it is no list of a usual form. */
static int begin(fields *in, const uint8_t *source, int32_t at, int32_t end)
{
    in->source = source;
    in->is_bad = 0;
    if (end - at < 3)
        return 0;
    int32_t form = source[at], width = form == 0xC0 ? 1 : form == 0xD0 ? 4 : 0;
    if (width == 0 || end - at < 1 + 2 * width)
        return 0;
    uint32_t size = width == 1 ? source[at + 1] : word_of(source, at + 1);
    uint32_t count = width == 1 ? source[at + 2] : word_of(source, at + 5);
    if (size < (uint32_t)width || size > (uint32_t)(end - at - 1 - width) || count > 11)
        return 0;
    in->at = at + 1 + 2 * width;
    in->end = at + 1 + width + (int32_t)size;
    in->left = (int32_t)count;
    return 1;
}

/* The transfer at `at` (its list) of a frame that ends at `end`: 0, or ASK, ASK_ROUTE. */
static int32_t ingest_transfer(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *route, const uint8_t *source, int32_t at, int32_t end)
{
    int32_t *state = t->state;
    fields in;
    int no_handle, no_id, no_format, no_mode;
    if (link->handle < 0 || link->credit <= 0 || !begin(&in, source, at, end))
        return ASK;
    uint32_t handle = next_uint(&in, &no_handle), id = next_uint(&in, &no_id);
    if (next_code(&in) != 0xA0 || in.at >= in.end || source[in.at] > TAG_OCTETS || source[in.at] >= in.end - in.at)
        return ASK;
    in.at += 1 + source[in.at];
    uint32_t format = next_uint(&in, &no_format);
    int settled = next_boolean(&in);
    if (next_boolean(&in)) /* more */
        return ASK;
    uint32_t mode = next_code(&in) == 0x40 ? 0 : 1; /* rcv-settle-mode */
    no_mode = next_code(&in) == 0x40;               /* state */
    if (mode || !no_mode || next_boolean(&in) || next_boolean(&in)) /* resume, aborted */
        return ASK;
    next_boolean(&in); /* batchable */
    if (in.is_bad || in.at != in.end || no_handle || no_id || format || handle != (uint32_t)link->handle)
        return ASK;
    if ((link->is_next && id != link->next_id) || (link->taken && settled != link->is_settled))
        return ASK;
    if (settled ? link->settles == UNSETTLED : link->settles == SETTLED)
        return ASK;
    int32_t slot = find_route(t, route, 0, link->route_size);
    if (slot < 0)
        slot = leveret_find_way(t, route, 0, link->route_size);
    if (slot < 0)
        return ASK_ROUTE;
    if (t->queues[t->route_targets[t->routes[slot + ROUTE_TARGETS]] + QUEUE_PLAIN] == NOT_PLAIN)
        return ASK;
    int32_t payload = leveret_amqp_1_0_payload(state, source, in.end, end);
    if (payload < 0)
        return ASK;
    int32_t properties = payload - in.end, body = end - payload;
    if (properties > state[STATE_PROPERTIES_MAX] || body > state[STATE_CONTENT_MAX])
        return ASK;
    int32_t blocks_needed = (link->route_size + properties + body + state[STATE_BLOCK_SIZE] - 1) / state[STATE_BLOCK_SIZE];
    if (t->identities)
        t->identities->read = ID_UNREAD; /* Python looks for ids of this family */
    if (t->latest)
        t->latest->properties = NULL; /* and for its headers */
    int32_t logged = may_push(t, slot, state[STATE_LIFETIME], blocks_needed, body);
    if (!logged || (logged == PLAIN_STREAM && is_named(source, in.end, payload)))
        return ASK;
    int32_t message = new_message(t, link->route_size, properties, body, blocks_needed);
    append(t, message, route, 0, link->route_size);
    append(t, message, source, in.end, properties + body);
    publish(t, link->record, slot, message, logged);
    link->is_next = 1;
    link->next_id = id + 1;
    link->is_settled = settled;
    link->taken += 1;
    link->credit -= 1;
    return 0;
}

/* The disposition at `at` (its list): of our deliveries, accepted and settled; 0, or ASK. */
static int32_t ingest_disposition(const leveret_tables *t, const leveret_amqp_1_0_link *link, const uint8_t *source, int32_t at, int32_t end)
{
    fields in;
    int no_first, no_last;
    const int32_t *record = t->channels + link->record;
    if (!begin(&in, source, at, end) || !next_boolean(&in)) /* role: the receiver's */
        return ASK;
    uint32_t first = next_uint(&in, &no_first), last = next_uint(&in, &no_last);
    if (!next_boolean(&in) || in.is_bad || no_first || in.left < 1 || in.end - in.at < 4) /* settled */
        return ASK;
    const uint8_t *described = source + in.at;
    if (described[0] || described[1] != 0x53 || described[2] != ACCEPTED_STATE)
        return ASK;
    if (described[3] == 0x45)
        in.at += 4;
    else if (described[3] == 0xC0 && in.end - in.at >= 6 && described[4] == 1 && described[5] == 0)
        in.at += 6;
    else
        return ASK;
    in.left -= 1;
    next_boolean(&in); /* batchable */
    if (in.is_bad || in.at != in.end || in.end != end)
        return ASK;
    if (no_last)
        last = first;
    /* Delivery-ids are the low 32 bits of the session's delivery tags, of which entries have 30. */
    uint32_t tail = (uint32_t)record[CHANNEL_TAG_HIGH] << 30 | (uint32_t)record[CHANNEL_TAG];
    uint32_t back_last = tail - last, count = last - first;
    if (back_last >= 0x20000000 || count >= 0x20000000 || back_last + count >= 0x20000000)
        return ASK;
    int32_t oldest = leveret_find_tag(t, link->record, (int32_t)(first & MASK));
    int32_t newest = count ? leveret_find_tag(t, link->record, (int32_t)(last & MASK)) : oldest;
    if (oldest < 0 || newest < 0 || (count && oldest != record[CHANNEL_UNSETTLED_HEAD]) || (int32_t)count >= t->state[STATE_LEFT])
        return ASK;
    if (!leveret_settle(t, link->record, oldest, newest, ACCEPTED))
        return ASK;
    t->state[STATE_LEFT] -= (int32_t)count;
    return 0;
}

/* How far `other` lies behind a serial number: core/memory/serial.py. */
static int32_t distance(uint32_t number, uint32_t other)
{
    return (int32_t)(other - number);
}

/* Do with the flow that was read as flowed in core/amqp_1_0/hot_row.py: 0; ASK: it does. */
static int32_t give_credit(const leveret_tables *t, leveret_amqp_1_0_link *link)
{
    leveret_amqp_1_0_windows *windows = link->windows;
    if (!link->receiver || link->flow_handle != link->receiver_handle || link->taken || windows->remote_incoming_window <= 0)
        return ASK;
    int32_t *consumer = t->consumers + link->receiver_consumer;
    if (consumer[CONSUMER_MODE] == WINDOW)
        return ASK;
    windows->next_incoming_id = link->flow_next_outgoing_id;
    windows->remote_outgoing_window = link->flow_outgoing_window;
    windows->remote_incoming_window = (int64_t)link->flow_incoming_window - distance(link->flow_next_incoming_id, windows->next_outgoing_id);
    int32_t ahead = distance(link->flow_delivery_count, link->receiver->delivery_count);
    int64_t credit = (int64_t)link->flow_link_credit - (ahead > 0 ? ahead : 0);
    consumer[CONSUMER_CREDIT] = credit < 0 ? 0 : credit >= CREDIT_UNLIMITED ? CREDIT_UNLIMITED - 1 : (int32_t)credit;
    activate(t, consumer[CONSUMER_QUEUE]);
    link->flow_size = 0;
    return 0;
}

/* The flow at `at` (its list) of a frame of `size` octets that ends at `end`: 0; ASK, and link->flow_size where it is as usual. */
static int32_t ingest_flow(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *source, int32_t at, int32_t end, int32_t size)
{
    fields in;
    int absent[7];
    if (!begin(&in, source, at, end))
        return ASK;
    link->flow_next_incoming_id = next_uint(&in, &absent[0]);
    link->flow_incoming_window = next_uint(&in, &absent[1]);
    link->flow_next_outgoing_id = next_uint(&in, &absent[2]);
    link->flow_outgoing_window = next_uint(&in, &absent[3]);
    uint32_t handle = next_uint(&in, &absent[4]);
    link->flow_delivery_count = next_uint(&in, &absent[5]);
    link->flow_link_credit = next_uint(&in, &absent[6]);
    int no_available, drain, echo;
    next_uint(&in, &no_available);
    drain = next_boolean(&in);
    echo = next_boolean(&in);
    for (int field = 0; field < 7; field++)
        if (absent[field])
            return ASK;
    if (in.is_bad || drain || echo || next_code(&in) != 0x40 || in.at != in.end || in.end != end || handle > 0xFFFF)
        return ASK;
    link->flow_handle = (int32_t)handle;
    link->flow_size = size;
    return give_credit(t, link);
}

/* A uint in its smallest encoding: the position behind it. */
static int32_t put_uint(uint8_t *target, int32_t at, uint32_t number)
{
    if (number == 0) {
        target[at] = 0x43;
        return at + 1;
    }
    if (number < 256) {
        target[at] = 0x52;
        target[at + 1] = (uint8_t)number;
        return at + 2;
    }
    target[at] = 0x70;
    put_size(target + at + 1, (int32_t)number);
    return at + 5;
}

/* Write `accepted`, settled, of what was taken, with the octets of hot_out.disposition, where that may be and there is room. */
static void put_accepted(leveret_amqp_1_0_link *link)
{
    leveret_output *output = link->output;
    if (!link->taken || link->is_settled || !link->may_accept || leveret_room(output) < SETTLE_ROOM)
        return;
    uint32_t first = link->next_id - (uint32_t)link->taken, last = link->next_id - 1;
    uint8_t *target = output->octets + output->end;
    int32_t list = HEAD_SIZE + 6, at = put_uint(target, list + 1, first);
    target[list] = 0x41; /* role */
    if (last == first)
        target[at++] = 0x40;
    else
        at = put_uint(target, at, last);
    memcpy(target + at, "\x41\x00\x53\x24\x45\x40", 6); /* settled, accepted, batchable */
    at += 6;
    put_size(target, at);
    memcpy(target + 4, "\x02\x00\x00\x00\x00\x53\x15\xc0", 8);
    target[6] = (uint8_t)(link->channel >> 8);
    target[7] = (uint8_t)link->channel;
    target[12] = (uint8_t)(at - list + 1);
    target[13] = 6;
    output->end += at;
    link->accepted = link->taken;
}

static int32_t ingest_frames(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *route, const uint8_t *source)
{
    int32_t *state = t->state;
    for (;;) {
        int32_t at = state[STATE_AT], left = state[STATE_END] - at;
        if (left < HEAD_SIZE)
            return INCOMPLETE;
        if (state[STATE_LEFT] <= 0)
            return TURN_OVER;
        uint32_t size = word_of(source, at);
        if (size < HEAD_SIZE + 6 || size > (uint32_t)state[STATE_FRAME_MAX] || size > (uint32_t)state[STATE_SIZE])
            return ASK;
        const uint8_t *head = source + at;
        if (head[4] != 2 || head[5] || (head[6] << 8 | head[7]) != link->channel)
            return ASK;
        if ((uint32_t)left < size)
            return INCOMPLETE;
        int32_t end = at + (int32_t)size, answer = ASK;
        if (head[8] || head[9] != 0x53)
            return ASK;
        if (head[10] == TRANSFER)
            answer = ingest_transfer(t, link, route, source, at + 11, end);
        else if (head[10] == DISPOSITION)
            answer = ingest_disposition(t, link, source, at + 11, end);
        else if (head[10] == FLOW)
            answer = ingest_flow(t, link, source, at + 11, end, (int32_t)size);
        if (answer)
            return answer;
        state[STATE_AT] = end;
        state[STATE_LEFT] -= 1;
    }
}

int32_t leveret_amqp_1_0_ingest(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *route, const uint8_t *source)
{
    link->flow_size = 0;
    int32_t answer = ingest_frames(t, link, route, source);
    if (answer != ASK_ROUTE)
        put_accepted(link);
    return answer;
}

int32_t leveret_amqp_1_0_take_in(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *route, uint8_t *source, int32_t room,
                                 int32_t descriptor, int32_t *answer)
{
    int32_t *end = t->state + STATE_END;
    ssize_t count = recv(descriptor, source + *end, (size_t)room, MSG_DONTWAIT);
    if (count <= 0)
        return count == 0 || !(errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
    *end += (int32_t)count;
    *answer = leveret_amqp_1_0_ingest(t, link, route, source);
    return (int32_t)count;
}
