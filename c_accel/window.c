/* What comes back from the log: the loops of core/stream/windows.py and of core/log/beyond_memory.py over the parts of a record that is verified. */
#include "octets.h"
#include "queues.h"
#include "records.h"

enum { PART_SIZE = 5, HEAD_OCTETS = 28, PART_MESSAGE = 1, PART_TRANSIENT = 6, FREE_PART = 8, WINDOW_PART = 4 };

static int64_t long_of(const uint8_t *source, int32_t at)
{
    return (int64_t)((uint64_t)word_of(source, at) << 32 | word_of(source, at + 4));
}

/* The position of a record in the stream, -1: it is not in it. Its places begin at `at`. */
static int64_t position_in(const leveret_window *w, const uint8_t *source, int32_t at, int32_t places)
{
    for (int32_t left = places; left > 0; left--, at += PLACE_SIZE)
        if ((int32_t)word_of(source, at) == w->identity)
            return long_of(source, at + 4);
    return -1;
}

/* See windows.may_grow. */
static int32_t may_grow(int64_t left, int64_t most, int64_t held)
{
    return left * FREE_PART > most || left > held * WINDOW_PART;
}

/* See Windows.has_place. */
static int32_t has_place(const leveret_tables *t, const leveret_window *w, int64_t blocks)
{
    const int32_t *state = t->state;
    int64_t count = w->held;
    return may_grow(state[POOL_BLOCKS + 2] - blocks, w->block_most, count * blocks)
           && may_grow(state[POOL_MESSAGES + 2], w->message_most, count) && may_grow(state[POOL_ENTRIES + 2], w->entry_most, count);
}

/* See Pager.may_hold; a queue that has nothing ready is Python's. */
static int32_t may_hold(const leveret_tables *t, const leveret_window *w, int64_t blocks)
{
    const int32_t *state = t->state, *queue = t->queues + w->queue;
    int64_t held = (int64_t)queue[QUEUE_LENGTH] + queue[QUEUE_UNSETTLED];
    return queue[QUEUE_LENGTH] > 0 && queue[QUEUE_BLOCKS] + blocks <= 2 * (int64_t)state[POOL_BLOCKS + 2]
           && held < 2 * (int64_t)state[POOL_ENTRIES + 2] && held < 2 * (int64_t)state[POOL_MESSAGES + 2];
}

/* See Pager.enter: the message at the tail of what its queue has in memory. */
static void put_last(const leveret_tables *t, const leveret_window *w, int32_t message)
{
    int32_t *queue = t->queues + w->queue, next = queue[QUEUE_POSITION];
    t->messages[message + MESSAGE_SEGMENT] = w->segment;
    queue[QUEUE_POSITION] = (int32_t)(w->position & MASK);
    int32_t entry = push(t, w->queue, message);
    queue[QUEUE_POSITION] = next;
    t->entries[entry + ENTRY_REDELIVERED] = w->come_back;
}

/* See Windows.enter: the message at the window's end. */
static void put_in_window(const leveret_tables *t, leveret_window *w, int32_t message)
{
    int32_t entry = allocate(t->entries, t->state, POOL_ENTRIES, ENTRY_WIDTH);
    int32_t *place = t->entries + entry;
    t->messages[message + MESSAGE_REFERENCES] = 1;
    place[ENTRY_MESSAGE] = message;
    place[ENTRY_NEXT] = NONE;
    place[ENTRY_POSITION] = (int32_t)(w->position & MASK);
    place[ENTRY_QUEUE] = w->queue;
    place[ENTRY_REDELIVERED] = NONE;
    t->queues[w->queue + QUEUE_BLOCKS] += t->messages[message + MESSAGE_BLOCKS];
    t->entries[w->tail + ENTRY_NEXT] = entry;
    w->tail = entry;
}

/* The message whose octets begin at `at`. */
static void enter(const leveret_tables *t, leveret_window *w, const uint8_t *source, const uint8_t *head, int32_t at, int32_t size, int32_t blocks)
{
    int32_t route = head[6] << 8 | head[7], annotations = (int32_t)word_of(head, 8), kind = (int32_t)word_of(head, 20);
    int32_t message = new_message(t, route, (int32_t)word_of(head, 12), (int32_t)word_of(head, 16), blocks);
    int32_t *record = t->messages + message;
    record[MESSAGE_ARRIVED] = (int32_t)word_of(head, 2);
    record[MESSAGE_KIND] = annotations ? kind | KIND_ANNOTATED : kind & ~KIND_ANNOTATED;
    record[MESSAGE_LIFETIME] = (int32_t)word_of(head, 24);
    append(t, message, source, at, size);
    if (w->segment)
        put_last(t, w, message);
    else
        put_in_window(t, w, message);
    w->held += 1;
    w->position += 1;
    w->octets += size + 1;
    w->bodies += record[MESSAGE_BODY];
}

/* Whether there is place for a message of so many blocks with this head, and Python need not look at it. */
static int32_t may_enter(const leveret_tables *t, const leveret_window *w, const uint8_t *head, int64_t blocks)
{
    if (t->state[POOL_BLOCKS + 2] < blocks || t->state[POOL_MESSAGES + 2] < 1 || t->state[POOL_ENTRIES + 2] < 2)
        return 0;
    return w->segment ? (int32_t)word_of(head, 24) == NONE && may_hold(t, w, blocks) : has_place(t, w, blocks);
}

int32_t leveret_read_window(const leveret_tables *t, leveret_window *w, const uint8_t *source, int32_t at, int32_t end)
{
    while (end - at >= PART_SIZE && w->position < w->stop && w->held < w->held_max && w->octets < w->octets_max) {
        uint32_t part = word_of(source, at + 1);
        if (part > (uint32_t)(end - at - PART_SIZE))
            break;
        int32_t begin = at + PART_SIZE, behind = begin + (int32_t)part;
        if (source[at] == PART_MESSAGE || source[at] == PART_TRANSIENT) {
            const uint8_t *head = source + begin;
            int32_t places = part < HEAD_OCTETS ? -1 : head[0] << 8 | head[1];
            if (places < 0 || (uint32_t)(HEAD_OCTETS + places * PLACE_SIZE) > part)
                break;
            int64_t position = position_in(w, source, begin + HEAD_OCTETS, places);
            if (position >= w->position) {
                int32_t from = begin + HEAD_OCTETS + places * PLACE_SIZE;
                int64_t size = (int64_t)(head[6] << 8 | head[7]) + word_of(head, 8) + word_of(head, 12) + word_of(head, 16);
                int32_t block_size = t->state[STATE_BLOCK_SIZE];
                int64_t blocks = (size + block_size - 1) / block_size;
                if (position > w->position || size != behind - from || source[at] != PART_MESSAGE || !may_enter(t, w, head, blocks))
                    break;
                enter(t, w, source, head, from, (int32_t)size, (int32_t)blocks);
            }
        }
        at = behind;
    }
    return at;
}

int32_t leveret_drop_window(const leveret_tables *t, int32_t entry, int32_t count)
{
    for (; entry != NONE && count > 0; count--) {
        int32_t behind = t->entries[entry + ENTRY_NEXT];
        drop(t, entry);
        entry = behind;
    }
    return entry;
}
