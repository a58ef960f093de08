/* What the log gets of messages that a row has taken in, and of places that are settled: core/log/flat_records.py; and octets that Python appends. */
#include "octets.h"
#include "queues.h"
#include "records.h"

enum { RECORD_MESSAGE = 1 };

static int64_t seen_position(const int32_t *queue)
{
    return (int64_t)queue[QUEUE_LOGGED_HIGH] * (MASK + 1) + queue[QUEUE_LOGGED];
}

static int64_t next_position(int32_t *queue, int32_t low)
{
    int64_t seen = seen_position(queue);
    int32_t ahead = (low - queue[QUEUE_LOGGED]) & MASK;
    if (ahead & 0x20000000)
        return seen + ahead - (MASK + 1);
    seen += ahead;
    queue[QUEUE_LOGGED_HIGH] += queue[QUEUE_LOGGED] + ahead > MASK;
    queue[QUEUE_LOGGED] = low;
    return seen;
}

enum { RUN_WIDTH = 6, RUNS_NEAR = 8, RUN_MESSAGES = 256, RUN_SIZE = 65536, TARGETS_MAX = 64 };

/* See note_run in core/log/flat_records.py. */
static void note_run(int32_t *runs, int32_t queue, int32_t position, const int32_t *record, int32_t octets, int32_t skip)
{
    int32_t *last = runs + 1 + RUN_WIDTH * (runs[0] - 1);
    for (int32_t *run = last; run > runs && run > last - RUN_WIDTH * RUNS_NEAR; run -= RUN_WIDTH) {
        if (run[0] != queue)
            continue;
        if (run[2] >= RUN_MESSAGES || skip - run[4] >= RUN_SIZE)
            break;
        run[2] += 1;
        run[3] += octets;
        if (run[5] < record[MESSAGE_ARRIVED])
            run[5] = record[MESSAGE_ARRIVED];
        return;
    }
    runs[0] += 1;
    last += RUN_WIDTH;
    last[0] = queue;
    last[1] = position;
    last[2] = 1;
    last[3] = octets;
    last[4] = skip;
    last[5] = record[MESSAGE_ARRIVED];
}

/* The places of the message of `entry`, in a row from there: how many; `behind` is the entry of the next message, and `passed` how many of the
 * places were for the log alone: their entries are free again. The message's record begins at `skip`. */
static int32_t put_places(const leveret_tables *t, int32_t entry, uint8_t *target, int32_t *behind, int32_t *passed, int32_t *runs, int32_t skip)
{
    int32_t message = t->entries[entry + ENTRY_MESSAGE];
    int32_t places = 0;
    *passed = 0;
    while (entry >= 0 && t->entries[entry + ENTRY_MESSAGE] == message) {
        int32_t *place = t->entries + entry, next = place[ENTRY_CONSUMER];
        int32_t *queue = t->queues + place[ENTRY_QUEUE];
        int64_t position = next_position(queue, place[ENTRY_POSITION]);
        put_size(target, queue[QUEUE_IDENTITY]);
        put_number(target + 4, (int32_t)(position >> 30), (int32_t)(position & MASK));
        target += PLACE_SIZE;
        places += 1;
        const int32_t *record = t->messages + message;
        if (place[ENTRY_REDELIVERED] == PASSED_BY) {
            note_run(runs, place[ENTRY_QUEUE], place[ENTRY_POSITION], record, record[MESSAGE_BODY], skip);
            place[ENTRY_REDELIVERED] = NONE;
            give(t->entries, t->state, POOL_ENTRIES, entry);
            *passed += 1;
        } else if (place[ENTRY_REDELIVERED] < 0) {
            note_run(runs, place[ENTRY_QUEUE], place[ENTRY_POSITION], record, record[MESSAGE_FILLED], skip);
        }
        entry = next;
    }
    *behind = entry;
    return places;
}

int32_t leveret_write_pushed(const leveret_tables *t, uint8_t *target, int32_t at, int32_t segment, int32_t *runs, int32_t most)
{
    int32_t entry = t->state[STATE_LOGGED_HEAD];
    runs[0] = 0;
    while (entry >= 0 && (most == 0 || runs[0] + TARGETS_MAX <= most)) {
        int32_t message = t->entries[entry + ENTRY_MESSAGE], passed;
        int32_t *record = t->messages + message;
        int32_t size = record[MESSAGE_FILLED];
        uint8_t *head = target + at;
        int32_t places = put_places(t, entry, head + RECORD_SIZE, &entry, &passed, runs, at);
        int32_t head_size = RECORD_SIZE + places * PLACE_SIZE;
        head[0] = RECORD_MESSAGE;
        put_size(head + 1, size + head_size - 5);
        head[5] = (uint8_t)(places >> 8);
        head[6] = (uint8_t)places;
        put_size(head + 7, record[MESSAGE_ARRIVED]);
        head[11] = (uint8_t)(record[MESSAGE_ROUTE] >> 8);
        head[12] = (uint8_t)record[MESSAGE_ROUTE];
        put_size(head + 13, 0);
        put_size(head + 17, record[MESSAGE_PROPERTIES]);
        put_size(head + 21, record[MESSAGE_BODY]);
        put_size(head + 25, record[MESSAGE_KIND]);
        put_size(head + 29, record[MESSAGE_LIFETIME]);
        extract(t, record[MESSAGE_FIRST], 0, target, at + head_size, size);
        record[MESSAGE_SEGMENT] = segment;
        at += head_size + size;
        for (; passed > 0; passed--)
            release(t, message);
    }
    t->state[STATE_LOGGED_HEAD] = entry;
    if (entry < 0) {
        t->state[STATE_LOGGED_OCTETS] = 0;
        t->state[STATE_LOGGED_COUNT] = t->state[STATE_LOGGED_PLACES] = 0;
    }
    return at;
}

int32_t leveret_gather_settled(const leveret_tables *t, int32_t *runs, int32_t most)
{
    int32_t entry = t->state[STATE_SETTLED_LIST];
    int32_t made = 0;
    int32_t *run = runs;
    while (entry >= 0) {
        const int32_t *place = t->entries + entry;
        int32_t position = place[ENTRY_POSITION];
        int32_t goes_on = made && run[0] == place[ENTRY_QUEUE] && run[3] == place[ENTRY_MESSAGE];
        if (goes_on && ((run[1] - 1) & MASK) == position) {
            run[1] = position;
            run[2] += 1;
        } else if (goes_on && ((run[1] + run[2]) & MASK) == position) {
            run[2] += 1;
        } else if (made == most) {
            break;
        } else {
            run = runs + 4 * made;
            made += 1;
            run[0] = place[ENTRY_QUEUE];
            run[1] = position;
            run[2] = 1;
            run[3] = place[ENTRY_MESSAGE];
        }
        int32_t behind = place[ENTRY_NEXT];
        give(t->entries, t->state, POOL_ENTRIES, entry);
        entry = behind;
    }
    t->state[STATE_SETTLED_LIST] = entry;
    return made;
}

void leveret_append(const leveret_tables *t, int32_t message, const uint8_t *source, int32_t start, int32_t size)
{
    append(t, message, source, start, size);
}

int32_t leveret_live_in(const leveret_tables *t, int32_t entry, int32_t end, int32_t segment, int32_t *live, int32_t most)
{
    int32_t count = 0;
    for (; entry < end && count < most; entry += ENTRY_WIDTH) {
        const int32_t *place = t->entries + entry;
        if (place[ENTRY_REDELIVERED] >= 0 && t->messages[place[ENTRY_MESSAGE] + MESSAGE_SEGMENT] == segment)
            live[count++] = entry;
    }
    live[count] = NONE;
    return entry;
}
