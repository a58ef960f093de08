/* The turns of queues whose messages and consumers need no thought: core/queue/turns.py's round, over the send buffers of all connections. */
#include "groups.h"
#include "insets.h"

enum { GROUP_EFFORT = 8 }; /* messages of groups that a search passes over, for one delivery's effort */

static int32_t next_active(const leveret_tables *t)
{
    int32_t queue = t->state[STATE_ACTIVE_HEAD];
    if (queue >= 0) {
        int32_t behind = t->queues[queue + QUEUE_NEXT_ACTIVE];
        t->state[STATE_ACTIVE_HEAD] = behind;
        if (behind < 0)
            t->state[STATE_ACTIVE_TAIL] = -1;
        t->queues[queue + QUEUE_ACTIVE] = 0;
    }
    return queue;
}

static int32_t has_credit(const leveret_tables *t, int32_t consumer)
{
    const int32_t *record = t->consumers + consumer;
    const int32_t *channel = t->channels + record[CONSUMER_CHANNEL];
    if (record[CONSUMER_CREDIT] <= 0)
        return 0;
    return channel[CHANNEL_PREFETCH] == 0 || channel[CHANNEL_UNSETTLED] < channel[CHANNEL_PREFETCH];
}

/* See core/queue/turns.py. */
static int32_t is_overdue(const leveret_tables *t, int32_t queue)
{
    return t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES && expire(t, queue);
}

/* Whether the message at the head of a queue goes out whole as soon as there is room: the family's session begins one that does not. */
static int32_t fits_later(const leveret_tables *t, const leveret_round *r, const leveret_reader *reader, int32_t queue)
{
    const int32_t *entry = t->entries + t->queues[queue + QUEUE_HEAD], *record = t->messages + entry[ENTRY_MESSAGE];
    if (reader->wire->is_first_only && (entry[ENTRY_REDELIVERED] & ENTRY_RETURNS || seconds_passed(t, record)))
        return 0;
    int32_t is_inset = wants_inset(reader->output, record[MESSAGE_BODY]);
    int32_t size = reader->wire->size_of(record, reader->prefix_size, reader->frame_size_max, is_inset);
    return size >= 0 && (is_inset || size <= reader->output->size - r->reply_room);
}

/* Up to `most` deliveries to a consumer: how many; negative when core/queue/turns.py has to go on: less one, how many were made. */
static int32_t deliver(const leveret_tables *t, leveret_round *r, int32_t consumer, int32_t most)
{
    const leveret_reader *reader = r->readers + consumer / CONSUMER_WIDTH;
    if (!reader->prefix || reader->output->busy)
        return -1;
    leveret_output *output = reader->output;
    int32_t queue = t->consumers[consumer + CONSUMER_QUEUE];
    const int32_t *length = t->queues + queue + QUEUE_LENGTH;
    int32_t before = t->state[STATE_DELIVERED];
    leveret_room(output);
    output->end = reader->wire->pump(t, consumer, most, reader->prefix, reader->prefix_size, reader->frame_size_max, output->octets,
                               output->end, output->size - r->reply_room, output);
    int32_t count = (t->state[STATE_DELIVERED] - before) & MASK;
    if (count && !output->is_touched) {
        output->is_touched = 1;
        output->next_touched = r->touched;
        r->touched = output;
    }
    if (count == most || *length == 0)
        return count;
    if (is_overdue(t, queue))
        return -1 - count;
    if (!has_credit(t, consumer) || (reader->wire->may_begin && !reader->wire->may_begin(reader->prefix)))
        return count;
    if (!fits_later(t, r, reader, queue))
        return -1 - count;
    leveret_starve(r, output, consumer, count);
    return count;
}

/* One delivery of a queue whose consumers have priorities, see one_delivery in core/queue/turns.py; as `deliver` answers. */
static int32_t deliver_by_priority(const leveret_tables *t, leveret_round *r, int32_t queue, const int32_t *row, int32_t count)
{
    int32_t turn = t->queues[queue + QUEUE_TURN];
    for (int32_t start = 0, end; start < count; start = end) {
        for (end = start + 1; !(row[end - 1] & LEVERET_LAST_OF_PRIORITY);)
            end++;
        for (int32_t step = 0; step < end - start; step++) {
            int32_t made = deliver(t, r, row[start + (turn + step) % (end - start)] & ~LEVERET_LAST_OF_PRIORITY, 1);
            if (made > 0)
                t->queues[queue + QUEUE_TURN] = (turn + 1 + step) & MASK;
            if (made)
                return made;
        }
    }
    return 0;
}

/* The same of a queue with groups: what a consumer with credit may have is brought to the head. */
static int32_t deliver_of_group(const leveret_tables *t, leveret_round *r, int32_t queue, const int32_t *row, int32_t count, leveret_search *search)
{
    int32_t turn = t->queues[queue + QUEUE_TURN];
    if (!leveret_begin_search(t, search, queue, row, count))
        return 0;
    for (int32_t start = 0, end; start < count; start = end) {
        for (end = start + 1; !(row[end - 1] & LEVERET_LAST_OF_PRIORITY);)
            end++;
        for (int32_t step = 0; step < end - start; step++) {
            int32_t place = start + (turn + step) % (end - start), consumer = row[place] & ~LEVERET_LAST_OF_PRIORITY;
            if (!has_credit(t, consumer))
                continue;
            int32_t entry = leveret_bring(t, search, place);
            if (entry == GROUP_FOR_PYTHON)
                return -1;
            if (entry == GROUP_NOBODY)
                continue;
            int32_t made = deliver(t, r, consumer, 1);
            if (made > 0) {
                leveret_brought(t, queue, consumer, entry);
                t->queues[queue + QUEUE_TURN] = (turn + 1 + step) & MASK;
            }
            if (made)
                return made;
        }
    }
    return 0;
}

/* A queue with groups has its turn: true when core/queue/turns.py has to go on. What the searches pass over counts as deliveries do. */
static int32_t run_turn_of_groups(const leveret_tables *t, leveret_round *r, int32_t queue, const int32_t *row, int32_t count)
{
    leveret_search search;
    int32_t effort = 0, made = 1;
    while (made > 0 && r->done + effort / GROUP_EFFORT < r->turn && t->queues[queue + QUEUE_HEAD] >= 0) {
        made = deliver_of_group(t, r, queue, row, count, &search);
        effort += GROUP_SCAN - search.left;
        r->done += made > 0;
    }
    r->left -= r->done + effort / GROUP_EFFORT;
    if (made > 0 && t->queues[queue + QUEUE_HEAD] >= 0)
        activate(t, queue);
    r->done = 0;
    return made < 0;
}

/* A queue's turn: true when core/queue/turns.py has to go on with it, behind `done` and `idle`. */
static int32_t run_turn(const leveret_tables *t, leveret_round *r, int32_t queue)
{
    int32_t place = queue / QUEUE_WIDTH;
    int32_t count = r->row_counts[place];
    const int32_t *row = r->rows + (size_t)place * (size_t)r->row_size;
    int32_t *queue_record = t->queues + queue;
    r->done = 0;
    r->idle = 0;
    if (count == 0 || is_overdue(t, queue))
        return 1;
    if (queue_record[QUEUE_LIMITS] & LIMIT_GROUPS)
        return run_turn_of_groups(t, r, queue, row, count);
    if (count == 1) {
        int32_t made = deliver(t, r, row[0] & ~LEVERET_LAST_OF_PRIORITY, r->turn);
        r->done = made < 0 ? -1 - made : made;
        return made < 0;
    }
    if (row[count - 1] & LEVERET_LAST_OF_PRIORITY) {
        for (; r->done < r->turn && queue_record[QUEUE_HEAD] >= 0; r->done++) {
            if (r->done && is_overdue(t, queue))
                return 1;
            int32_t made = deliver_by_priority(t, r, queue, row, count);
            if (made <= 0)
                return made < 0;
        }
        return 0;
    }
    while (r->done < r->turn && r->idle < count && queue_record[QUEUE_HEAD] >= 0) {
        int32_t next = queue_record[QUEUE_TURN] < count ? queue_record[QUEUE_TURN] : 0;
        int32_t made = deliver(t, r, row[next], 1);
        if (made < 0)
            return 1;
        queue_record[QUEUE_TURN] = next + 1;
        if (made) {
            r->done += 1;
            r->idle = 0;
        } else {
            r->idle += 1;
        }
        if (r->done < r->turn && is_overdue(t, queue)) {
            r->idle = 0;
            return 1;
        }
    }
    return 0;
}

void leveret_starve(const leveret_round *r, leveret_output *output, int32_t consumer, int32_t count)
{
    leveret_reader *reader = r->readers + consumer / CONSUMER_WIDTH;
    if (reader->is_short)
        return;
    int32_t *first = count ? &output->fed : &output->hungry;
    int32_t *last = count ? &output->fed_last : &output->hungry_last;
    reader->is_short = 1;
    reader->next_short = -1;
    if (*first < 0)
        *first = consumer;
    else
        r->readers[*last / CONSUMER_WIDTH].next_short = consumer;
    *last = consumer;
}

static void feed_all(const leveret_tables *t, const leveret_round *r, int32_t *first)
{
    int32_t consumer = *first;
    *first = -1;
    while (consumer >= 0) {
        leveret_reader *reader = r->readers + consumer / CONSUMER_WIDTH;
        reader->is_short = 0;
        activate(t, t->consumers[consumer + CONSUMER_QUEUE]);
        consumer = reader->next_short;
    }
}

void leveret_feed(const leveret_tables *t, const leveret_round *r, leveret_output *output)
{
    feed_all(t, r, &output->hungry);
    feed_all(t, r, &output->fed);
}

/* Take a consumer out of a list: true when it was there. */
static int32_t unlink_short(const leveret_round *r, int32_t *first, int32_t *last, int32_t consumer)
{
    int32_t before = -1;
    for (int32_t here = *first; here >= 0; before = here, here = r->readers[here / CONSUMER_WIDTH].next_short) {
        if (here != consumer)
            continue;
        int32_t behind = r->readers[here / CONSUMER_WIDTH].next_short;
        if (before < 0)
            *first = behind;
        else
            r->readers[before / CONSUMER_WIDTH].next_short = behind;
        if (behind < 0)
            *last = before;
        return 1;
    }
    return 0;
}

void leveret_forget(const leveret_round *r, leveret_output *output, int32_t consumer)
{
    leveret_reader *reader = r->readers + consumer / CONSUMER_WIDTH;
    if (!reader->is_short)
        return;
    reader->is_short = 0;
    if (!unlink_short(r, &output->hungry, &output->hungry_last, consumer))
        unlink_short(r, &output->fed, &output->fed_last, consumer);
}

int32_t leveret_next_turn(const leveret_tables *t, leveret_round *r)
{
    while (r->turns > 0 && r->left > 0) {
        r->turns -= 1;
        int32_t queue = next_active(t);
        if (queue >= 0 && t->queues[queue + QUEUE_RETURNING])
            continue;
        if (queue < 0 || run_turn(t, r, queue))
            return queue;
        r->left -= r->done;
        if (r->done >= r->turn)
            activate(t, queue);
        if (t->letters && t->letters->logged_head >= 0)
            return LEVERET_LETTERS;
    }
    return -1;
}
