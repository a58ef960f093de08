/* Connections that have a little to say: read, processed and answered for all of them in one call each. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "queues.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int32_t is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Whether the frame at `at` is tx.commit (section 1.9.2.3) on a channel. */
static int32_t is_commit(const leveret_tables *t, const uint8_t *octets, int32_t at, int32_t end, int32_t channel)
{
    uint8_t frame[COMMIT_SIZE];
    put_frame(frame, METHOD, t->channels[channel + CHANNEL_NUMBER], COMMIT_SIZE - OVERHEAD);
    put_size(frame + HEAD, CLASS_TX << 16 | TX_COMMIT);
    frame[COMMIT_SIZE - 1] = END_OCTET;
    return end - at >= COMMIT_SIZE && memcmp(octets + at, frame, COMMIT_SIZE) == 0;
}

/* Process what a row has received. A commit is for C where all of its transaction is in these octets. */
static void process(const leveret_tables *t, leveret_amqp_0_9_ready *row)
{
    int32_t *state = t->state;
    while (leveret_amqp_0_9_ingest(t, row->numbers, row->octets) == ASK && row->transaction >= 0
           && is_commit(t, row->octets, state[STATE_AT], row->got, row->transaction) && state[STATE_KEPT_CHANNEL] == row->transaction
           && leveret_commit_kept(t, row->transaction)) {
        state[STATE_AT] += COMMIT_SIZE;
        row->commits += 1;
    }
    row->kept = state[STATE_KEPT_HEAD];
    row->kept_channel = state[STATE_KEPT_CHANNEL];
    state[STATE_KEPT_HEAD] = -1;
}

void leveret_amqp_0_9_read_ready(const leveret_tables *t, leveret_amqp_0_9_ready *rows, int32_t count, int32_t effort)
{
    int32_t *state = t->state;
    for (leveret_amqp_0_9_ready *row = rows; row < rows + count; row++) {
        ssize_t got = recv(row->descriptor, row->octets, (size_t)row->size, MSG_DONTWAIT);
        row->got = got >= 0 ? (int32_t)got : is_later() ? -1 : 0;
        row->at = 0;
        row->counted = row->kept = -1;
        row->commits = 0;
        if (got <= 0)
            continue;
        state[STATE_AT] = 0;
        state[STATE_END] = row->got;
        state[STATE_SIZE] = row->size;
        state[STATE_FRAME_MAX] = row->frame_size_max;
        state[STATE_NUMBERS] = row->number_count;
        state[STATE_USER] = row->user;
        state[STATE_LEFT] = effort;
        process(t, row);
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
