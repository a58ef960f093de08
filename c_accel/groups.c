/* See groups.h. Rows are found by a keyed hash of the group's value, with a key that no peer knows. */
#include "groups.h"
#include "amqp_0_9_properties.h"
#include "identities.h"
#include "queues.h"

enum { UNSETTLED_MAX = 8192, FORGOTTEN_MAX = 256, SWEPT = 2 }; /* as in groups.py; test_groups_in_c.py holds them together */

static leveret_grouped *delivery_of(const leveret_groups *known, int32_t entry)
{
    return known->entries + entry / ENTRY_WIDTH;
}

static int32_t *chain_of(const leveret_groups *known, const uint64_t *id, int32_t rule)
{
    return known->chains + ((uint32_t)(id[0] ^ (uint32_t)rule * 2654435761u) & (uint32_t)known->mask);
}

static int32_t find(const leveret_groups *known, const uint64_t *id, int32_t rule)
{
    for (int32_t at = *chain_of(known, id, rule) - 1; at >= 0; at = known->rows[at].next - 1) {
        const leveret_group *row = known->rows + at;
        if (row->id[0] == id[0] && row->id[1] == id[1] && row->rule == rule)
            return at;
    }
    return -1;
}

static void free_row(leveret_groups *known, int32_t gone)
{
    leveret_group *row = known->rows + gone;
    int32_t *link = chain_of(known, row->id, row->rule);
    while (*link != gone + 1)
        link = &known->rows[*link - 1].next;
    *link = row->next;
    row->newest = -1;
    row->next = known->free;
    known->free = gone + 1;
}

/* An entry is no delivery of its row any more; a row without any is free. */
static void unlink_delivery(leveret_groups *known, int32_t entry)
{
    leveret_grouped *each = delivery_of(known, entry);
    int32_t at = each->group - 1;
    if (at < 0)
        return;
    each->group = 0;
    if (each->newer >= 0)
        delivery_of(known, each->newer)->older = each->older;
    else
        known->rows[at].newest = each->older;
    if (each->older >= 0)
        delivery_of(known, each->older)->newer = each->newer;
    if (known->rows[at].newest < 0)
        free_row(known, at);
}

static int32_t is_held(const leveret_tables *t, int32_t queue, int32_t consumer, int32_t entry)
{
    const int32_t *place = t->entries + entry;
    return place[ENTRY_CONSUMER] == consumer && place[ENTRY_TAG] != NONE && place[ENTRY_TAG] != 0 && place[ENTRY_QUEUE] == queue;
}

/* Whose a row is: its deliveries that are settled are forgotten from the newest on; -1: nobody's, and the row is free. */
static int32_t owner_of(const leveret_tables *t, int32_t at)
{
    leveret_groups *known = t->groups;
    int32_t consumer = known->rows[at].consumer, queue = known->rows[at].queue;
    for (int32_t left = FORGOTTEN_MAX; left > 0; left--) {
        int32_t entry = known->rows[at].newest;
        if (is_held(t, queue, consumer, entry))
            return consumer;
        int32_t is_last = delivery_of(known, entry)->older < 0;
        unlink_delivery(known, entry);
        if (is_last)
            return -1;
    }
    activate(t, queue);
    return consumer;
}

/* Look at the next rows, of any queue: perhaps no message of their groups ever comes again. */
static void sweep(const leveret_tables *t)
{
    leveret_groups *known = t->groups;
    for (int32_t left = SWEPT; left > 0 && known->fresh; left--) {
        known->swept = known->swept + 1 < known->fresh ? known->swept + 1 : 0;
        if (known->rows[known->swept].newest >= 0)
            owner_of(t, known->swept);
    }
}

static void own(const leveret_tables *t, int32_t queue, int32_t consumer, int32_t entry, const uint64_t *id)
{
    leveret_groups *known = t->groups;
    int32_t rule = known->rules[queue / QUEUE_WIDTH].rule;
    unlink_delivery(known, entry); /* of the message that had this entry before */
    if (id && is_held(t, queue, consumer, entry)) {
        leveret_grouped *each = delivery_of(known, entry);
        int32_t at = find(known, id, rule);
        if (at >= 0 && known->rows[at].consumer != consumer) { /* it is the other one's no longer */
            while (known->rows[at].newest >= 0)
                unlink_delivery(known, known->rows[at].newest);
            at = -1;
        }
        if (at < 0) {
            at = known->free - 1;
            if (at >= 0)
                known->free = known->rows[at].next;
            else
                at = known->fresh++;
            int32_t *chain = chain_of(known, id, rule);
            known->rows[at] = (leveret_group){{id[0], id[1]}, rule, queue, *chain, consumer, -1};
            *chain = at + 1;
        }
        each->group = at + 1;
        each->older = known->rows[at].newest;
        each->newer = -1;
        if (each->older >= 0)
            delivery_of(known, each->older)->newer = entry;
        known->rows[at].newest = entry;
    }
    sweep(t);
}

void leveret_read_group(leveret_groups *known, const uint8_t *octets, int32_t size)
{
    leveret_hash(known->key, octets, size, known->id);
}

int32_t leveret_owner_of(const leveret_tables *t, int32_t queue)
{
    int32_t at = find(t->groups, t->groups->id, t->groups->rules[queue / QUEUE_WIDTH].rule);
    return at < 0 ? -1 : owner_of(t, at);
}

void leveret_own(const leveret_tables *t, int32_t queue, int32_t consumer, int32_t entry, int32_t has_group)
{
    own(t, queue, consumer, entry, has_group ? t->groups->id : NULL);
}

int32_t leveret_owned_count(const leveret_groups *known)
{
    int32_t count = 0;
    for (int32_t at = 0; at < known->fresh; at++)
        count += known->rows[at].newest >= 0;
    return count;
}

/* Have the group of a message known that stands in a queue: 0 when it is not for C to read. */
static int32_t read_group(const leveret_tables *t, int32_t queue, int32_t entry)
{
    leveret_groups *known = t->groups;
    leveret_grouped *each = delivery_of(known, entry);
    const leveret_group_rule *rule = known->rules + queue / QUEUE_WIDTH;
    int32_t position = t->entries[entry + ENTRY_POSITION];
    if (each->rule == rule->rule && each->position == position)
        return 1;
    const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
    int32_t route = record[MESSAGE_ROUTE], size = record[MESSAGE_PROPERTIES], value;
    if (record[MESSAGE_KIND] & (KIND_REWORKED | KIND_CHANGED | KIND_GRAFTED) || size < 2 || route + size > LEVERET_LETTER_HEAD)
        return 0;
    const uint8_t *octets = t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)t->state[STATE_BLOCK_SIZE];
    if (route + size > t->state[STATE_BLOCK_SIZE]) {
        extract(t, record[MESSAGE_FIRST], 0, known->head, 0, route + size);
        octets = known->head;
    }
    int32_t at = leveret_header(octets + route, size, rule->header, &value);
    if (at == 0)
        return 0;
    for (int32_t here = 0; here < value; here++)
        if (octets[route + at + here] > 127)
            return 0;
    each->rule = rule->rule;
    each->position = position;
    each->has_group = value >= 0;
    if (value >= 0)
        leveret_hash(known->key, octets + route + at, value, each->id);
    return 1;
}

int32_t leveret_begin_search(const leveret_tables *t, leveret_search *s, int32_t queue, const int32_t *row, int32_t count)
{
    s->queue = queue;
    s->row = row;
    s->count = count;
    s->next = t->queues[queue + QUEUE_HEAD];
    s->left = GROUP_SCAN;
    s->any = -1;
    for (int32_t place = 0; place < count; place++)
        s->firsts[place] = -1;
    return t->queues[queue + QUEUE_UNSETTLED] < UNSETTLED_MAX;
}

static int32_t consumer_at(const leveret_search *s, int32_t place)
{
    return s->row[place] & ~LEVERET_LAST_OF_PRIORITY;
}

/* Go on with the search, up to the first message that a consumer may have: 0 when Python has to read the next one. */
static int32_t look(const leveret_tables *t, leveret_search *s, int32_t consumer)
{
    leveret_groups *known = t->groups;
    int32_t rule = known->rules[s->queue / QUEUE_WIDTH].rule;
    while (s->left > 0 && s->next >= 0) {
        int32_t entry = s->next, owner = -1;
        if (!read_group(t, s->queue, entry))
            return 0;
        const leveret_grouped *each = delivery_of(known, entry);
        if (each->has_group) {
            int32_t at = find(known, each->id, rule);
            owner = at < 0 ? -1 : owner_of(t, at);
        }
        s->next = t->entries[entry + ENTRY_NEXT];
        s->left -= 1;
        if (owner < 0) {
            s->any = entry;
            return 1;
        }
        for (int32_t place = 0; place < s->count; place++)
            if (consumer_at(s, place) == owner && s->firsts[place] < 0)
                s->firsts[place] = entry;
        if (owner == consumer)
            return 1;
    }
    return 1;
}

/* Put an entry of the ready list at its head. */
static void to_head(const leveret_tables *t, int32_t queue, int32_t entry)
{
    int32_t *record = t->queues + queue, *place = t->entries + entry;
    unlink_ready(t, queue, entry);
    int32_t behind = record[QUEUE_HEAD];
    place[ENTRY_NEXT] = behind;
    place[ENTRY_PREVIOUS] = NONE;
    place[ENTRY_TAG] = NONE;
    record[QUEUE_HEAD] = entry;
    if (behind >= 0)
        t->entries[behind + ENTRY_PREVIOUS] = entry;
    else
        record[QUEUE_TAIL] = entry;
    record[QUEUE_LENGTH] += 1;
    record[QUEUE_OCTETS] += t->messages[place[ENTRY_MESSAGE] + MESSAGE_BODY];
}

int32_t leveret_bring(const leveret_tables *t, leveret_search *s, int32_t place)
{
    if (s->any < 0 && s->firsts[place] < 0 && !look(t, s, consumer_at(s, place)))
        return GROUP_FOR_PYTHON;
    int32_t entry = s->firsts[place] >= 0 ? s->firsts[place] : s->any;
    if (entry >= 0 && entry != t->queues[s->queue + QUEUE_HEAD])
        to_head(t, s->queue, entry);
    return entry;
}

void leveret_brought(const leveret_tables *t, int32_t queue, int32_t consumer, int32_t entry)
{
    const leveret_grouped *each = delivery_of(t->groups, entry);
    uint64_t id[2] = {each->id[0], each->id[1]};
    own(t, queue, consumer, entry, each->has_group ? id : NULL);
}
