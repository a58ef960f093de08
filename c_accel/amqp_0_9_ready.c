/* Connections that have a little to say: read, processed and answered for all of them in one call each. */
#include "amqp_0_9.h"
#include "queues.h"

#include <errno.h>
#include <sys/socket.h>

static int32_t is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

void leveret_amqp_0_9_read_ready(const leveret_tables *t, leveret_amqp_0_9_ready *rows, int32_t count, int32_t effort)
{
    int32_t *state = t->state;
    for (leveret_amqp_0_9_ready *row = rows; row < rows + count; row++) {
        ssize_t got = recv(row->descriptor, row->octets, (size_t)row->size, MSG_DONTWAIT);
        row->got = got >= 0 ? (int32_t)got : is_later() ? -1 : 0;
        row->at = 0;
        row->counted = -1;
        if (got <= 0)
            continue;
        state[STATE_AT] = 0;
        state[STATE_END] = row->got;
        state[STATE_SIZE] = row->size;
        state[STATE_FRAME_MAX] = row->frame_size_max;
        state[STATE_NUMBERS] = row->number_count;
        state[STATE_USER] = row->user;
        state[STATE_LEFT] = effort;
        leveret_amqp_0_9_ingest(t, row->numbers, row->octets);
        row->at = state[STATE_AT];
        row->counted = state[STATE_COUNTED_HEAD];
        state[STATE_COUNTED_HEAD] = -1;
    }
}

void leveret_send_ready(leveret_output **outputs, const int32_t *descriptors, int32_t count)
{
    for (int32_t each = 0; each < count; each++) {
        leveret_output *output = outputs[each];
        ssize_t gone = send(descriptors[each], output->octets + output->start, (size_t)(output->end - output->start),
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (gone > 0)
            output->start += (int32_t)gone;
        if (output->start == output->end)
            output->start = output->end = 0;
    }
}
