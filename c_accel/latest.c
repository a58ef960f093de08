/* The newest messages of last-value queues: core/queue/features/last_value.py. Their rows are those of identities.c. */
#include "amqp_0_9_properties.h"
#include "identities.h"
#include "queues.h"

/* Have the value of a queue's header read from the message's properties: 0 when it is not for C. */
static int32_t read_value(leveret_identities *known, int32_t queue)
{
    int32_t size, at;
    if (!known->properties)
        return 0;
    at = leveret_header(known->properties, known->properties_size, known->windows[queue / QUEUE_WIDTH].header, &size);
    if (at == 0)
        return 0;
    leveret_read_id(known, known->properties + at, size);
    for (int32_t each = 0; each < size; each++)
        if (known->properties[at + each] > 127)
            return 0;
    return 1;
}

/* As is_ready of last_value.py; test_latest.py holds them together. */
static int32_t is_ready(const leveret_tables *t, int32_t queue, const leveret_identity *row)
{
    const int32_t *place = t->entries + row->entry;
    return place[ENTRY_QUEUE] == queue && place[ENTRY_POSITION] == row->position && place[ENTRY_TAG] == NONE;
}

int32_t leveret_may_replace(const leveret_tables *t, int32_t queue, int32_t count)
{
    leveret_identities *known = t->latest;
    if (!read_value(known, queue))
        return 0;
    if (known->read == ID_NONE)
        return 1;
    int32_t at = leveret_find_id(known, queue);
    if (at < 0)
        return known->left[0] >= count && known->left[1] + count <= known->most;
    if (!is_ready(t, queue, known->rows + at) || t->queues[queue + QUEUE_PLAIN] != PLAIN_LOGGED)
        return 1;
    const int32_t *record = t->messages + t->entries[known->rows[at].entry + ENTRY_MESSAGE];
    return record[MESSAGE_SEGMENT] > 0 || !(record[MESSAGE_KIND] & KIND_DURABLE);
}

void leveret_forget_gone(const leveret_tables *t, leveret_identities *known, int32_t queue)
{
    leveret_id_window *window = known->windows + queue / QUEUE_WIDTH;
    int32_t *link = &window->oldest, last = -1, before = window->count;
    for (int32_t left = before, at = *link; left > 0; left--) {
        int32_t behind = known->rows[at].newer;
        if (is_ready(t, queue, known->rows + at)) {
            last = *link = at;
            link = &known->rows[at].newer;
        } else {
            leveret_free_row(known, window, at);
        }
        at = behind;
    }
    *link = -1;
    window->newest = last;
    known->left[1] -= before - window->count;
}

void leveret_replace(const leveret_tables *t, int32_t queue, int32_t entry)
{
    leveret_identities *known = t->latest;
    read_value(known, queue);
    if (known->read == ID_NONE)
        return;
    t->entries[entry + ENTRY_TAG] = NONE; /* not delivered */
    int32_t at = leveret_find_id(known, queue);
    if (at < 0) {
        leveret_add_id(known, queue);
        known->left[1] += 1;
        at = known->windows[queue / QUEUE_WIDTH].newest;
    } else if (is_ready(t, queue, known->rows + at)) {
        int32_t old = known->rows[at].entry;
        unlink_ready(t, queue, old);
        drop(t, old);
        t->state[STATE_REPLACED] += 1;
    }
    known->rows[at].entry = entry;
    known->rows[at].position = t->entries[entry + ENTRY_POSITION];
    if (known->windows[queue / QUEUE_WIDTH].count > 2 * t->queues[queue + QUEUE_LENGTH] + 16)
        leveret_forget_gone(t, known, queue);
}
