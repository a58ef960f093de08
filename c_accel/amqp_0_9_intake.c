/* Reading large bodies from the socket into their blocks: see leveret_intake in amqp_0_9.h. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "queues.h"

#include <errno.h>
#include <sys/uio.h>

enum { TAKEN_MAX = 1 << 18, AHEAD_MAX = 4096, PIECES_MAX = 256 };

/* Where the rest of the frame's payload goes: the room in the message's last block, then the blocks that `append` takes next. */
static int32_t free_pieces(const leveret_tables *t, const leveret_intake *in, struct iovec *pieces, int32_t *size)
{
    const int32_t *record = t->messages + in->message;
    int32_t block_size = t->state[STATE_BLOCK_SIZE];
    int32_t fresh = t->state[POOL_BLOCKS], unused = t->state[POOL_BLOCKS + 1];
    int32_t used = record[MESSAGE_FILLED] % block_size, block = record[MESSAGE_LAST], count = 0;
    *size = 0;
    while (*size < in->frame_left) {
        if (used == 0) {
            block = fresh >= 0 ? fresh : unused++;
            fresh = fresh >= 0 ? t->blocks[fresh] : fresh;
        }
        uint8_t *begin = t->arena + (size_t)block * (size_t)block_size + used;
        int32_t room = block_size - used < in->frame_left - *size ? block_size - used : in->frame_left - *size;
        used = 0;
        if (count && (uint8_t *)pieces[count - 1].iov_base + pieces[count - 1].iov_len == begin)
            pieces[count - 1].iov_len += (size_t)room;
        else if (count < PIECES_MAX)
            pieces[count++] = (struct iovec){begin, (size_t)room};
        else
            break;
        *size += room;
    }
    return count;
}

/* Take the octets in the receive buffer, up to the content's last octet or to a frame that is not the next of its body. */
static void take_buffered(const leveret_tables *t, leveret_intake *in)
{
    for (;;) {
        const uint8_t *at = in->octets + in->start;
        int32_t there = in->end - in->start, size;
        if (in->frame_left > 0) {
            size = there < in->frame_left ? there : in->frame_left;
            if (size == 0)
                return;
            append(t, in->message, in->octets, in->start, size);
            in->start += size;
            in->frame_left -= size;
            in->body_left -= size;
        } else if (in->frame_left == 0) {
            if (there == 0 || at[0] != END_OCTET || in->body_left == 0)
                return;
            in->start += 1;
            in->frame_left = -1;
        } else {
            if (in->body_left == 0 || there < 7 || at[0] != BODY || (at[1] << 8 | at[2]) != in->channel_number || at[3])
                return;
            size = size_of(at, 4);
            if (size == 0 || size > in->body_left || size > in->frame_size_max)
                return;
            in->start += 7;
            in->frame_left = size;
            if (size < in->body_left)
                in->frame_size = size;
        }
    }
}

/* True when nothing but a part of a body frame's head is in the receive buffer. */
static int32_t is_between(const leveret_intake *in)
{
    return in->frame_left < 0 ? in->body_left > 0 && in->end - in->start < 7 : in->start == in->end;
}

int32_t leveret_amqp_0_9_take_in(const leveret_tables *t, leveret_intake *in, int32_t descriptor)
{
    int32_t taken = 0;
    while (taken < TAKEN_MAX && in->frame_size >= in->least && is_between(in)) {
        struct iovec pieces[PIECES_MAX + 1];
        int32_t there = in->end - in->start, size = 0, ahead = 0, count = 0;
        memmove(in->octets, in->octets + in->start, (size_t)there);
        in->start = 0;
        in->end = there;
        if (in->frame_left >= 0)
            count = free_pieces(t, in, pieces, &size);
        if (in->frame_left < 0)
            ahead = 7 - there;
        else if (size == in->frame_left)
            ahead = in->body_left > size ? 8 : AHEAD_MAX < in->size ? AHEAD_MAX : in->size;
        if (ahead)
            pieces[count++] = (struct iovec){in->octets + there, (size_t)ahead};
        ssize_t got = readv(descriptor, pieces, count);
        if (got < 0 && taken == 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
        if (got <= 0)
            return taken;
        int32_t body = got < size ? (int32_t)got : size;
        append(t, in->message, NULL, 0, body);
        in->frame_left -= body;
        in->body_left -= body;
        in->end += (int32_t)got - body;
        take_buffered(t, in);
        taken += (int32_t)got;
        if (got < size + ahead)
            break;
    }
    return taken;
}
