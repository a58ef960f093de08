/* From a receive buffer all frames that need no thought: core/amqp_0_9/hot_in.py. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "amqp_0_9_get.h"
#include "amqp_0_9_properties.h"
#include "foresee.h"
#include "match.h"
#include "publish.h"
#include "queues.h"
#include "routes.h"

static int32_t header_end(const leveret_tables *t, const uint8_t *source, int32_t start, int32_t header)
{
    const int32_t *state = t->state;
    int32_t left = state[STATE_END] - header;
    if (left < 7)
        return INCOMPLETE;
    int32_t size = (int32_t)word_of(source, header + 3);
    if (source[header] != HEADER || source[header + 1] != source[start + 1] || source[header + 2] != source[start + 2])
        return ASK;
    if (size < 14 || size > state[STATE_FRAME_MAX] || size - 12 > state[STATE_PROPERTIES_MAX] || size + 8 > state[STATE_SIZE])
        return ASK;
    if (left < size + 8)
        return INCOMPLETE;
    const uint8_t *at = source + header + 7;
    if (at[size] != END_OCTET || word_of(at, 0) != CLASS_BASIC << 16 || word_of(at, 4) || at[8] > 31)
        return ASK;
    if ((int32_t)word_of(at, 8) > state[STATE_CONTENT_MAX])
        return ASK;
    return header + size + 8;
}

static int32_t body_end(const leveret_tables *t, const uint8_t *source, int32_t start, int32_t at, int32_t left)
{
    const int32_t *state = t->state;
    int32_t end = state[STATE_END];
    if (at - start + left + 8 > state[STATE_SIZE])
        return ASK;
    while (left > 0) {
        if (end - at < 7)
            return INCOMPLETE;
        int32_t size = (int32_t)word_of(source, at + 3);
        if (source[at] != BODY || source[at + 1] != source[start + 1] || source[at + 2] != source[start + 2])
            return ASK;
        if (size <= 0 || size > left || size > state[STATE_FRAME_MAX])
            return ASK;
        if (end - at < size + 8)
            return INCOMPLETE;
        if (source[at + 7 + size] != END_OCTET)
            return ASK;
        at += size + 8;
        left -= size;
    }
    return at;
}

/* The slot of the route cache for the publish with a route at `route` and a content header at `header`, where its way depends on its headers;
 * NO_FIELDS: it does not; ASK_ROUTE: Python is to find it. See core/amqp_0_9/further.py. */
static int32_t further_way(const leveret_tables *t, const uint8_t *source, int32_t start, int32_t route, int32_t route_size, int32_t header)
{
    enum { OCTETS_MAX = 512 };
    uint8_t octets[OCTETS_MAX];
    int32_t behind = header_end(t, source, start, header);
    if (behind < 0)
        return NO_FIELDS;
    const leveret_named *named = NULL;
    for (int32_t place = t->ways ? t->ways->named_count - 1 : -1; place >= 0; place--) {
        const leveret_named *row = t->ways->named + place;
        if (row->name_size == source[route] && memcmp(row->name, source + route + 1, source[route]) == 0)
            named = row;
    }
    int32_t room = OCTETS_MAX - route_size - 1;
    int32_t size = leveret_fields(source, header + 19, behind - 1, named ? named->names : NULL, named ? named->size : 0,
                                  octets + route_size + 1, room);
    if (size < 0)
        return NO_FIELDS;
    if (size > room)
        return ASK_ROUTE;
    memcpy(octets, source + route, (size_t)route_size);
    octets[route_size] = named ? 1 : 0;
    int32_t slot = find_route(t, octets, 0, route_size + 1 + size);
    return slot < 0 ? ASK_ROUTE : slot;
}

/* Read the id of a publish whose properties were checked. One that is not ASCII is Python's, as a number or octets that another family gives. */
static void read_id(const leveret_tables *t, const uint8_t *source, int32_t at)
{
    int32_t size, begin = leveret_message_id(source, at, &size);
    leveret_read_id(t->identities, source + begin, size);
    for (int32_t each = 0; each < size; each++)
        if (source[begin + each] > 127)
            t->identities->read = ID_UNREAD;
}

static int32_t may_keep(const int32_t *state, int32_t channel, int32_t blocks_needed)
{
    if (state[STATE_KEEP] < 1 || state[POOL_BLOCKS + 2] < blocks_needed || state[POOL_MESSAGES + 2] < 1)
        return 0;
    return state[STATE_KEPT_HEAD] < 0 || state[STATE_KEPT_CHANNEL] == channel;
}

static void keep(const leveret_tables *t, int32_t channel, int32_t message)
{
    int32_t *state = t->state;
    t->messages[message + MESSAGE_REFERENCES] = 1;
    if (state[STATE_KEPT_HEAD] < 0) {
        state[STATE_KEPT_HEAD] = message;
        state[STATE_KEPT_CHANNEL] = channel;
    } else {
        t->messages[state[STATE_KEPT_TAIL] + MESSAGE_SEGMENT] = message + 1;
    }
    state[STATE_KEPT_TAIL] = message;
    state[STATE_KEEP] -= 1;
}

/* A publish up to its body: where it stands in `source`, and what it takes. */
typedef struct {
    int32_t route;
    int32_t route_size;
    int32_t header;
    int32_t behind; /* the header */
    int32_t properties_size;
    int32_t note_size; /* octets of an annotation of the broker's */
    int32_t body;
    int32_t blocks;
    int32_t slot; /* of its way */
    int32_t by_fields; /* which depends on its headers */
    int32_t keeps; /* a transaction has it, no queue yet */
    int32_t logged; /* may_push's answer */
} figures;

static int32_t octets_of(const figures *f)
{
    return f->route_size + f->note_size + f->properties_size + f->body;
}

/* Check the method frame of `size` octets at state[AT] and the content header behind it: 0, or why they are not for C. */
static int32_t read_head(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size, figures *f)
{
    int32_t *state = t->state;
    int32_t start = state[STATE_AT];
    f->route = start + 13;
    f->route_size = size - 7;
    if (f->route_size < 2)
        return ASK;
    int32_t names = 1 + source[f->route];
    if (names >= f->route_size || names + 1 + source[f->route + names] != f->route_size || source[start + 6 + size] & 2)
        return ASK;
    int32_t way = state[STATE_WAY];
    state[STATE_WAY] = -1;
    f->slot = way >= 0 ? way : find_route(t, source, f->route, f->route_size);
    if (f->slot < 0) {
        f->slot = way = further_way(t, source, start, f->route, f->route_size, start + size + 8);
        if (way == NO_FIELDS)
            f->slot = leveret_find_way(t, source, f->route, f->route_size);
    }
    if (f->slot < 0)
        return ASK_ROUTE;
    f->keeps = t->channels[channel + CHANNEL_PLAIN] - 1;
    const int32_t *target = t->route_targets + t->routes[f->slot + ROUTE_TARGETS];
    if (!f->keeps && t->queues[*target + QUEUE_PLAIN] == NOT_PLAIN)
        return ASK;
    int32_t header = f->header = start + size + 8;
    f->behind = header_end(t, source, start, header);
    if (f->behind < 0)
        return f->behind;
    f->body = (int32_t)word_of(source, header + 15);
    int32_t requests = !f->keeps && t->requester && t->requester->channel == channel;
    int32_t checked = leveret_check_properties(state, source, header + 19, f->behind - 1, requests);
    if (!checked)
        return ASK;
    if (checked == SELECTED && way < 0) {
        f->slot = further_way(t, source, start, f->route, f->route_size, header);
        if (f->slot < 0)
            return ASK_ROUTE;
        if (!f->keeps && t->queues[t->route_targets[t->routes[f->slot + ROUTE_TARGETS]] + QUEUE_PLAIN] == NOT_PLAIN)
            return ASK;
    }
    f->by_fields = way >= 0 || checked == SELECTED;
    f->properties_size = f->behind - header - 20;
    f->note_size = state[STATE_KIND] & KIND_REPLY_TO ? t->requester->size : 0;
    f->blocks = (octets_of(f) + state[STATE_BLOCK_SIZE] - 1) / state[STATE_BLOCK_SIZE];
    if (f->keeps)
        return checked == SELECTED || source[start + 6 + size] & 1 || !may_keep(state, channel, f->blocks) ? ASK : 0;
    if (t->identities)
        read_id(t, source, header + 19);
    if (t->latest) {
        t->latest->properties = source + header + 19;
        t->latest->properties_size = f->properties_size;
    }
    leveret_letters *letters = t->letters;
    if (letters && !f->note_size) {
        letters->route = source + f->route;
        letters->route_size = f->route_size;
        letters->own = source + header + 19;
        letters->own_size = f->properties_size;
    }
    f->logged = may_push(t, f->slot, state[STATE_LIFETIME], f->blocks, f->body);
    if (letters)
        letters->route = NULL;
    if (f->note_size && f->logged > 1)
        return ASK;
    return !f->logged || (f->logged == PLAIN_STREAM && is_named(source, header + 19, f->behind - 1)) ? ASK : 0;
}

static int32_t append_head(const leveret_tables *t, const uint8_t *source, const figures *f)
{
    int32_t message = new_message(t, f->route_size, f->properties_size, f->body, f->blocks);
    append(t, message, source, f->route, f->route_size);
    if (f->note_size)
        append(t, message, t->requester->note, 0, f->note_size);
    append(t, message, source, f->header + 19, f->properties_size);
    return message;
}

static int32_t ingest_publish(const leveret_tables *t, const uint8_t *source, int32_t channel, int32_t size)
{
    figures f;
    int32_t message, answer = read_head(t, source, channel, size, &f);
    if (answer)
        return answer;
    int32_t whole = body_end(t, source, t->state[STATE_AT], f.behind, f.body);
    if (whole < 0)
        return whole;
    if (f.blocks == 1 && f.body == whole - f.behind - OVERHEAD) { /* one block, one body frame */
        message = new_message(t, f.route_size, f.properties_size, f.body, f.blocks);
        uint8_t *octets = whole_block(t, message, octets_of(&f));
        memcpy(octets, source + f.route, (size_t)f.route_size);
        octets += f.route_size;
        if (f.note_size)
            memcpy(octets, t->requester->note, (size_t)f.note_size);
        octets += f.note_size;
        memcpy(octets, source + f.header + 19, (size_t)f.properties_size);
        memcpy(octets + f.properties_size, source + f.behind + HEAD, (size_t)f.body);
    } else {
        message = append_head(t, source, &f);
        for (int32_t at = f.behind; at < whole; at += size + OVERHEAD) {
            size = size_of(source, at + 4);
            append(t, message, source, at + HEAD, size);
        }
    }
    if (f.keeps)
        keep(t, channel, message);
    else
        publish(t, channel, f.slot, message, f.logged);
    return whole;
}

/* basic.ack and its kin are frames of one size: where the tag of the one that is so many frames ahead stands, if they are that. */
enum { SETTLEMENT = 21, SLOT_AHEAD = 16, ENTRY_AHEAD = 12, MESSAGE_AHEAD = 8, BLOCKS_AHEAD = 4 };

WHOLE int32_t tag_ahead(const uint8_t *frame, int32_t ahead)
{
    const uint8_t *low = frame + ahead * SETTLEMENT + 15;
    return (low[0] & 63) << 24 | low[1] << 16 | low[2] << 8 | low[3];
}

WHOLE void foresee(const leveret_tables *t, const uint8_t *source, int32_t channel)
{
    const uint8_t *frame = source + t->state[STATE_AT];
    if (t->state[STATE_END] - t->state[STATE_AT] < SETTLEMENT * (SLOT_AHEAD + 1))
        return;
    foresee_slot(t, channel, tag_ahead(frame, SLOT_AHEAD));
    foresee_entry(t, channel, tag_ahead(frame, ENTRY_AHEAD));
    foresee_message(t, channel, tag_ahead(frame, MESSAGE_AHEAD));
    foresee_blocks(t, channel, tag_ahead(frame, BLOCKS_AHEAD));
}

static int32_t ingest_settlement(const leveret_tables *t, const uint8_t *source, int32_t channel)
{
    int32_t place = t->state[STATE_AT] + 11;
    const uint8_t *at = source + place;
    const int32_t *record = t->channels + channel;
    if (at[0])
        return ASK;
    if (record[CHANNEL_INDEXED] >= 0)
        foresee(t, source, channel);
    int32_t high = at[1] << 18 | at[2] << 10 | at[3] << 2 | at[4] >> 6;
    int32_t low = (at[4] & 63) << 24 | at[5] << 16 | at[6] << 8 | at[7];
    int32_t multiple = at[8] & 1, how = ACCEPTED;
    if (source[place - 1] == BASIC_REJECT) {
        how = multiple ? RETURNED : REFUSED;
        multiple = 0;
    } else if (source[place - 1] == BASIC_NACK) {
        how = at[8] & 2 ? RETURNED : REFUSED;
    }
    int32_t last;
    if (multiple && high == 0 && low == 0) {
        last = record[CHANNEL_UNSETTLED_TAIL];
        if (last < 0)
            return place + 10;
    } else {
        if (high != record[CHANNEL_TAG_HIGH] && high + 1 != record[CHANNEL_TAG_HIGH])
            return ASK;
        last = leveret_find_tag(t, channel, low);
        if (last < 0)
            return ASK;
    }
    int32_t first = last;
    if (multiple) {
        first = record[CHANNEL_UNSETTLED_HEAD];
        int32_t count = (t->entries[last + ENTRY_TAG] - t->entries[first + ENTRY_TAG]) & MASK;
        if (count >= t->state[STATE_LEFT])
            return ASK;
        t->state[STATE_LEFT] -= count;
    }
    return leveret_settle(t, channel, first, last, how) ? place + 10 : ASK;
}

/* The frame at state[AT] as a method of class basic on a channel that is plain: its record, `*size` its payload; or why it is not for C. */
static int32_t method_at(const leveret_tables *t, const int32_t *numbers, const uint8_t *source, int32_t *size)
{
    const int32_t *state = t->state;
    int32_t at = state[STATE_AT], end = state[STATE_END];
    if (end - at < 7)
        return INCOMPLETE;
    if (state[STATE_LEFT] <= 0)
        return TURN_OVER;
    int32_t number = source[at + 1] << 8 | source[at + 2];
    if (source[at] != METHOD || number >= state[STATE_NUMBERS])
        return ASK;
    int32_t channel = numbers[number];
    *size = (int32_t)word_of(source, at + 3);
    if (channel < 0 || *size < 5 || *size > state[STATE_FRAME_MAX] || *size + 8 > state[STATE_SIZE])
        return ASK;
    if (!t->channels[channel + CHANNEL_PLAIN])
        return ASK;
    if (end - at < *size + 8)
        return INCOMPLETE;
    if (source[at + 7 + *size] != END_OCTET || word_of(source, at + 7) >> 8 != CLASS_BASIC << 8)
        return ASK;
    return channel;
}

int32_t leveret_amqp_0_9_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source)
{
    int32_t *state = t->state;
    for (;;) {
        int32_t at = state[STATE_AT], size, behind, effort = 1;
        int32_t channel = method_at(t, numbers, source, &size);
        if (channel < 0)
            return channel;
        if (source[at + 10] == BASIC_PUBLISH)
            behind = ingest_publish(t, source, channel, size);
        else if (t->channels[channel + CHANNEL_PLAIN] != 1)
            return ASK;
        else if (source[at + 10] == BASIC_GET) {
            behind = leveret_amqp_0_9_get(t, source, channel, size);
            effort = 0; /* as in Python; the receive buffer bounds their number, the send buffer their octets */
        } else if (size == 13 && (source[at + 10] == BASIC_ACK || source[at + 10] == BASIC_REJECT || source[at + 10] == BASIC_NACK))
            behind = ingest_settlement(t, source, channel);
        else
            return ASK;
        if (behind < 0)
            return behind;
        state[STATE_AT] = behind;
        state[STATE_LEFT] -= effort;
    }
}

int32_t leveret_amqp_0_9_begin(const leveret_tables *t, const int32_t *numbers, leveret_intake *in)
{
    figures f;
    int32_t size, channel = method_at(t, numbers, in->octets, &size), start = t->state[STATE_AT];
    if (channel < 0 || in->octets[start + 10] != BASIC_PUBLISH || t->channels[channel + CHANNEL_PLAIN] != 1)
        return 0;
    if (read_head(t, in->octets, channel, size, &f))
        return 0;
    if (f.logged != PLAIN || f.by_fields || t->state[STATE_END] - f.behind < HEAD)
        return 0;
    const uint8_t *frame = in->octets + f.behind;
    if (frame[0] != BODY || frame[1] != in->octets[start + 1] || frame[2] != in->octets[start + 2] || size_of(frame, 4) < in->least)
        return 0;
    in->message = append_head(t, in->octets, &f);
    t->messages[in->message + MESSAGE_REFERENCES] = 1; /* whoever takes it in */
    in->channel = channel;
    in->channel_number = frame[1] << 8 | frame[2];
    in->is_mandatory = in->octets[start + 6 + size] & 1;
    in->body_left = f.body;
    in->frame_left = -1;
    in->frame_size = in->least;
    in->start = t->state[STATE_AT] = f.behind;
    return 1;
}

int32_t leveret_amqp_0_9_finish(const leveret_tables *t, const leveret_intake *in)
{
    uint8_t route[2 * 256];
    int32_t *state = t->state, *record = t->messages + in->message, size = record[MESSAGE_ROUTE];
    if (record[MESSAGE_KIND] & KIND_REWORKED || size > (int32_t)sizeof route || t->channels[in->channel + CHANNEL_PLAIN] != 1)
        return 0;
    extract(t, record[MESSAGE_FIRST], 0, route, 0, size);
    int32_t slot = find_route(t, route, 0, size);
    if (slot < 0)
        return 0;
    int32_t kind = state[STATE_KIND];
    state[STATE_KIND] = record[MESSAGE_KIND];
    state[POOL_BLOCKS + 2] += record[MESSAGE_BLOCKS]; /* as may_push looks at it before a message has them */
    state[POOL_MESSAGES + 2] += 1;
    if (t->identities)
        t->identities->read = ID_UNREAD; /* its id is in its blocks: Python looks */
    if (t->latest)
        t->latest->properties = NULL; /* as its last value */
    int32_t logged = may_push(t, slot, record[MESSAGE_LIFETIME], record[MESSAGE_BLOCKS], record[MESSAGE_BODY]);
    state[POOL_BLOCKS + 2] -= record[MESSAGE_BLOCKS];
    state[POOL_MESSAGES + 2] -= 1;
    state[STATE_KIND] = kind;
    if (logged != PLAIN)
        return 0;
    publish(t, in->channel, slot, in->message, logged);
    release(t, in->message);
    state[STATE_LEFT] -= 1;
    return 1;
}
