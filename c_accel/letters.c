/* Dead letters without a history to read: see letters.h. */
#include "letters.h"
#include "octets.h"
#include "publish.h"
#include "routes.h"

#include <string.h>

enum { HEADERS = 0x20, NOT_HERE = 0x0103, SPARE = 2, COPIED = 4096 /* octets that take as long as a letter without them */ };

/* Where the size of the headers stands in properties that were checked, or would stand. */
static int32_t headers_at(const uint8_t *properties)
{
    int32_t at = 2;
    for (int32_t flag = 0x80; flag > HEADERS; flag >>= 1)
        if (properties[0] & flag)
            at += 1 + properties[at];
    return at;
}

/* Whether octets have one of the words of core/queue/letters.py in them. */
static int32_t has_words(const uint8_t *octets, int32_t size)
{
    const uint8_t *end = octets + size, *here;
    for (here = octets; (here = memchr(here, 'C', (size_t)(end - here))); here++)
        if (end - here > 1 && here[1] == 'C')
            return 1;
    for (here = octets; (here = memchr(here, 'd', (size_t)(end - here))); here++)
        if (end - here > 4 && memcmp(here, "death", 5) == 0)
            return 1;
    return 0;
}

enum { PROBES = 8 };

static int32_t is_row(const leveret_letter *row, int32_t queue, int32_t reason, const uint8_t *route, int32_t size)
{
    return row->count && row->queue == queue && row->reason == reason && row->route_size == size && memcmp(row->route, route, (size_t)size) == 0;
}

static uint32_t place_of(int32_t queue, int32_t reason, const uint8_t *route, int32_t size)
{
    return (uint32_t)route_hash(route, 0, size) ^ (uint32_t)queue * 31u ^ (uint32_t)reason * 7u;
}

/* The row of a queue, a reason and a route; NULL: there is none. */
static leveret_letter *row_for(const leveret_letters *l, int32_t queue, int32_t reason, const uint8_t *route, int32_t size)
{
    uint32_t place = place_of(queue, reason, route, size);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        leveret_letter *row = l->rows + ((place + probe) & (uint32_t)l->mask);
        if (is_row(row, queue, reason, route, size))
            return row;
    }
    return NULL;
}

void leveret_learn_letter(leveret_letters *l, const leveret_letter *letter)
{
    leveret_letter *row = row_for(l, letter->queue, letter->reason, letter->route, letter->route_size);
    uint32_t place = place_of(letter->queue, letter->reason, letter->route, letter->route_size);
    for (uint32_t probe = 0; !row && probe < PROBES; probe++)
        if (!l->rows[(place + probe) & (uint32_t)l->mask].count)
            row = l->rows + ((place + probe) & (uint32_t)l->mask);
    if (!row)
        row = l->rows + (place & (uint32_t)l->mask);
    *row = *letter;
}

void leveret_forget_letters(leveret_letters *l)
{
    memset(l->rows, 0, (size_t)(l->mask + 1) * sizeof *l->rows);
}

/* Whether the queues of a row take one more message of so many blocks without a look at it; 0: they do not; 1; 2: the log has to have it. */
static int32_t has_room_for(const leveret_tables *t, const leveret_letter *row, int32_t blocks, int32_t more, int32_t durable)
{
    const int32_t *state = t->state;
    const leveret_letters *l = t->letters;
    int32_t answer = 1, left = state[POOL_BLOCKS + 2] - blocks - more, entries = state[POOL_ENTRIES + 2] - SPARE;
    if (left < 0 || state[POOL_MESSAGES + 2] < 1 + SPARE || entries < row->count)
        return 0;
    for (int32_t each = 0; each < row->count; each++) {
        const int32_t *queue = t->queues + row->targets[each];
        int32_t limits = queue[QUEUE_LIMITS];
        if (!(queue[QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED)) || limits & (LIMIT_DROPS | LIMIT_REFUSES | LIMIT_REMEMBERS | LIMIT_LATEST | LIMIT_GROUPS))
            return 0;
        if (queue[QUEUE_PLAIN] == PLAIN_LOGGED && durable) {
            answer = 2;
            if (l->log_room - state[STATE_LOGGED_OCTETS] - l->logged_octets
                < (blocks + more) * state[STATE_BLOCK_SIZE] + PLACE_SIZE * (row->count + 1))
                return 0;
        }
        int32_t held = queue[QUEUE_LENGTH] + queue[QUEUE_UNSETTLED];
        if (held >= 4 * entries || held >= 4 * (state[POOL_MESSAGES + 2] - 1 - SPARE) || queue[QUEUE_BLOCKS] + blocks > 4 * left)
            return 0;
    }
    return answer;
}

/* Plan the dead letter of a message with these octets: 0, or as may_take answers. */
static int32_t plan(const leveret_tables *t, int32_t queue, int32_t reason, const uint8_t *route, int32_t route_size, const uint8_t *properties,
                    int32_t size, int32_t body, int32_t kind, int32_t lifetime, int32_t more)
{
    leveret_letters *l = t->letters;
    if (kind & (KIND_REWORKED | KIND_CHANGED | KIND_GRAFTED | KIND_FAILED) || lifetime != NONE || size < 2 || route_size + size > LEVERET_LETTER_HEAD)
        return 0;
    if ((properties[0] << 8 | properties[1]) & NOT_HERE || has_words(properties, size))
        return 0;
    leveret_letter *row = row_for(l, queue, reason, route, route_size);
    if (!row)
        return 0;
    l->row = row;
    l->at = headers_at(properties);
    l->size = properties[0] & HEADERS ? (int32_t)word_of(properties, l->at) : -4;
    l->properties = size + row->pairs_size + (l->size < 0 ? 4 : 0);
    if (l->properties > row->properties_max)
        return 0;
    l->blocks = (row->target_size + l->properties + body + t->state[STATE_BLOCK_SIZE] - 1) / t->state[STATE_BLOCK_SIZE];
    l->logs = has_room_for(t, row, l->blocks, more, kind & KIND_DURABLE);
    return l->logs;
}

/* The first `size` octets of a message's chain: as they lie, or copied to `target`. */
static const uint8_t *head_of(const leveret_tables *t, const int32_t *record, int32_t size, uint8_t *target)
{
    if (size <= t->state[STATE_BLOCK_SIZE])
        return t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)t->state[STATE_BLOCK_SIZE];
    extract(t, record[MESSAGE_FIRST], 0, target, 0, size);
    return target;
}

static int32_t may_bury(const leveret_tables *t, int32_t entry, int32_t reason, int32_t more)
{
    const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
    int32_t route = record[MESSAGE_ROUTE], size = record[MESSAGE_PROPERTIES];
    if (record[MESSAGE_KIND] & KIND_REWORKED || route + size > LEVERET_LETTER_HEAD)
        return 0;
    const uint8_t *octets = head_of(t, record, route + size, t->letters->head);
    return plan(t, t->entries[entry + ENTRY_QUEUE], reason, octets, route, octets + route, size, record[MESSAGE_BODY], record[MESSAGE_KIND],
                record[MESSAGE_LIFETIME], more);
}

static void put_body(const leveret_tables *t, int32_t message, int32_t offset, int32_t left, int32_t copy)
{
    int32_t block_size = t->state[STATE_BLOCK_SIZE], block = t->messages[message + MESSAGE_FIRST];
    while (left > 0) {
        if (offset >= block_size) {
            offset -= block_size;
            block = t->blocks[block];
            continue;
        }
        int32_t size = left < block_size - offset ? left : block_size - offset;
        append(t, copy, t->arena + (size_t)block * (size_t)block_size, offset, size);
        offset += size;
        left -= size;
    }
}

/* The dead letter of a message, as planned, in its blocks. */
static int32_t copied(const leveret_tables *t, int32_t message)
{
    leveret_letters *l = t->letters;
    leveret_letter *row = l->row;
    int32_t *state = t->state, *record = t->messages + message, kind = state[STATE_KIND], lifetime = state[STATE_LIFETIME];
    int32_t route = record[MESSAGE_ROUTE], size = record[MESSAGE_PROPERTIES], body = record[MESSAGE_BODY];
    const uint8_t *octets = head_of(t, record, route + size, l->head) + route;
    uint8_t flags[2] = {octets[0] | HEADERS, octets[1]}, headers[4];
    if (row->second != state[STATE_SECONDS]) {
        int64_t second = (int64_t)state[STATE_SECONDS] + l->epoch;
        row->second = state[STATE_SECONDS];
        put_size(row->pairs + row->time_at, (int32_t)(second >> 32));
        put_size(row->pairs + row->time_at + 4, (int32_t)(uint32_t)second);
    }
    state[STATE_KIND] = record[MESSAGE_KIND] | KIND_GRAFTED;
    state[STATE_LIFETIME] = NONE;
    int32_t copy = new_message(t, row->target_size, l->properties, body, l->blocks);
    state[STATE_KIND] = kind;
    state[STATE_LIFETIME] = lifetime;
    int32_t own = l->size < 0 ? 0 : l->size;
    put_size(headers, own + row->pairs_size);
    append(t, copy, row->target, 0, row->target_size);
    append(t, copy, flags, 0, 2);
    append(t, copy, octets, 2, l->at - 2);
    append(t, copy, headers, 0, 4);
    append(t, copy, octets, l->at + 4, own);
    append(t, copy, row->pairs, 0, row->pairs_size);
    append(t, copy, octets, l->at + 4 + l->size, size - l->at - 4 - l->size);
    put_body(t, message, route + size, body, copy);
    return copy;
}

/* As put_aside, to the list of dead letters. */
static void put_behind(const leveret_tables *t, int32_t entry)
{
    leveret_letters *l = t->letters;
    int32_t message = t->entries[entry + ENTRY_MESSAGE], tail = l->logged_tail;
    t->entries[entry + ENTRY_CONSUMER] = NONE;
    l->logged_tail = entry;
    l->logged_places += 1;
    l->logged_octets += PLACE_SIZE;
    if (l->logged_head < 0) {
        l->logged_head = entry;
    } else {
        t->entries[tail + ENTRY_CONSUMER] = entry;
        if (t->entries[tail + ENTRY_MESSAGE] == message)
            return;
    }
    l->logged_octets += t->messages[message + MESSAGE_FILLED] + RECORD_SIZE;
    l->logged_count += 1;
}

/* Publish the dead letter of an entry in no list, as planned, and drop the entry. */
static void bury(const leveret_tables *t, int32_t entry)
{
    leveret_letters *l = t->letters;
    int32_t copy = copied(t, t->entries[entry + ENTRY_MESSAGE]), durable = t->messages[copy + MESSAGE_KIND] & KIND_DURABLE;
    for (int32_t each = 0; each < l->row->count; each++) {
        int32_t queue = l->row->targets[each], place = push(t, queue, copy);
        if (t->queues[queue + QUEUE_LIMITS])
            keep_limits(t, queue, place, NONE);
        activate(t, queue);
        if (durable && t->queues[queue + QUEUE_PLAIN] == PLAIN_LOGGED)
            put_behind(t, place);
    }
    drop(t, entry);
    l->sent += 1;
    l->left -= 1 + l->blocks * t->state[STATE_BLOCK_SIZE] / COPIED;
}

int32_t leveret_expire_letter(const leveret_tables *t, int32_t queue, int32_t entry)
{
    leveret_letters *l = t->letters;
    if (l->left <= 0)
        return 2;
    if (!may_bury(t, entry, LETTER_EXPIRED, 0))
        return 1;
    unlink_ready(t, queue, entry);
    bury(t, entry);
    t->state[STATE_EXPIRED] += 1;
    return 0;
}

int32_t leveret_may_reject(const leveret_tables *t, int32_t entry)
{
    leveret_letters *l = t->letters;
    const int32_t *queue = t->queues + t->entries[entry + ENTRY_QUEUE];
    if (!l || !(queue[QUEUE_LIMITS] & LIMIT_DEAD_LETTERS) || !(queue[QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED)))
        return 0;
    return l->left > 0 && may_bury(t, entry, LETTER_REJECTED, 0);
}

void leveret_bury(const leveret_tables *t, int32_t entry)
{
    bury(t, entry);
}

int32_t leveret_may_drop_head(const leveret_tables *t, int32_t queue, int32_t body, int32_t block_total, int32_t logged)
{
    leveret_letters *l = t->letters;
    const int32_t *record = t->queues + queue;
    if (!l || (record[QUEUE_LIMITS] & (LIMIT_DROPS | LIMIT_DEAD_LETTERS | LIMIT_LEVELS | LIMIT_REMEMBERS)) != (LIMIT_DROPS | LIMIT_DEAD_LETTERS))
        return 0;
    const int32_t *state = t->state;
    int32_t head = record[QUEUE_HEAD], planned = 0;
    if (l->left > 0 && head < 0) {
        if (l->route)
            planned = plan(t, queue, LETTER_MAXLEN, l->route, l->route_size, l->own, l->own_size, body, state[STATE_KIND], state[STATE_LIFETIME],
                           block_total);
    } else if (l->left > 0) {
        const int32_t *oldest = t->messages + t->entries[head + ENTRY_MESSAGE];
        int32_t is_unlogged = record[QUEUE_PLAIN] == PLAIN_LOGGED && oldest[MESSAGE_SEGMENT] == 0 && oldest[MESSAGE_KIND] & KIND_DURABLE;
        if (!is_unlogged && !is_over(record, record[QUEUE_LENGTH], record[QUEUE_OCTETS] + body - oldest[MESSAGE_BODY]))
            planned = may_bury(t, head, LETTER_MAXLEN, block_total);
    }
    return planned && planned <= logged;
}

static void swap(int32_t *one, int32_t *other)
{
    int32_t kept = *one;
    *one = *other;
    *other = kept;
}

void leveret_swap_letters(const leveret_tables *t)
{
    leveret_letters *l = t->letters;
    swap(t->state + STATE_LOGGED_HEAD, &l->logged_head);
    swap(t->state + STATE_LOGGED_TAIL, &l->logged_tail);
    swap(t->state + STATE_LOGGED_OCTETS, &l->logged_octets);
    swap(t->state + STATE_LOGGED_COUNT, &l->logged_count);
    swap(t->state + STATE_LOGGED_PLACES, &l->logged_places);
}
