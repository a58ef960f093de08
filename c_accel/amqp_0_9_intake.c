/* Reading large bodies from the socket into their blocks: see leveret_intake in amqp_0_9.h. */
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "queues.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

enum { TAKEN_MAX = 1 << 20, AHEAD_MAX = 4096, PIECES_MAX = 1000, SORTED_AFTER = 1 << 25, PIECE_LEAST = 4096 };

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

/* Put the free blocks in the order in which they lie: the system then moves a body in a few pieces, not block by block. A millisecond for the
 * 64 MiB of a gateway. */
static void sort_free_blocks(const leveret_tables *t)
{
    int32_t *state = t->state, *place = state + POOL_BLOCKS;
    size_t words = (size_t)state[POOL_BLOCKS + 1] / 64 + 1;
    uint64_t *are_free = calloc(words, sizeof *are_free);
    if (!are_free)
        return;
    for (int32_t block = *place; block >= 0; block = t->blocks[block])
        are_free[block / 64] |= (uint64_t)1 << (block % 64);
    for (size_t word = 0; word < words; word++) {
        for (uint64_t left = are_free[word]; left; left &= left - 1) {
            *place = (int32_t)word * 64 + __builtin_ctzll(left);
            place = t->blocks + *place;
        }
    }
    *place = -1;
    free(are_free);
}

/* Have the blocks sorted when SORTED_AFTER octets came in pieces of less than PIECE_LEAST on average. */
static void count_pieces(const leveret_tables *t, leveret_intake *in, int32_t pieces, int32_t octets)
{
    in->pieces += pieces;
    in->octets_in += octets;
    if (in->octets_in < SORTED_AFTER)
        return;
    if (in->octets_in / in->pieces < PIECE_LEAST)
        sort_free_blocks(t);
    in->pieces = in->octets_in = 0;
}

/* Take the octets in the receive buffer, up to the content's last octet or to a frame that is not the next of its body. */
void leveret_amqp_0_9_take_buffered(const leveret_tables *t, leveret_intake *in)
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

/* Read once: the octets; -1: none now; 0: the peer is gone. `*more`: there may be more at once. */
static int32_t read_some(const leveret_tables *t, leveret_intake *in, int32_t descriptor, int32_t *more)
{
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
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? -1 : 0;
    int32_t body = got < size ? (int32_t)got : size;
    append(t, in->message, NULL, 0, body);
    count_pieces(t, in, count, body);
    in->frame_left -= body;
    in->body_left -= body;
    in->end += (int32_t)got - body;
    leveret_amqp_0_9_take_buffered(t, in);
    *more = got == size + ahead;
    return (int32_t)got;
}

/* A content is whole: publish it, take what is behind it, and have the next large content under way. False: that is not for C. */
static int32_t go_on(const leveret_tables *t, leveret_intake *in, const int32_t *numbers)
{
    if (!in->goes_on || in->body_left > 0 || in->frame_left != 0 || in->start == in->end || in->octets[in->start] != END_OCTET)
        return 0;
    if (!leveret_amqp_0_9_finish(t, in))
        return 0;
    in->message = -1;
    in->done += 1;
    t->state[STATE_AT] = in->start + 1;
    t->state[STATE_END] = in->end;
    int32_t answer = leveret_amqp_0_9_ingest(t, numbers, in->octets);
    in->start = t->state[STATE_AT];
    if ((answer != INCOMPLETE && answer != ASK) || !leveret_amqp_0_9_begin(t, numbers, in))
        return 0;
    leveret_amqp_0_9_take_buffered(t, in);
    return 1;
}

int32_t leveret_amqp_0_9_take_in(const leveret_tables *t, leveret_intake *in, const int32_t *numbers, int32_t descriptor)
{
    int32_t taken = 0, more = 1;
    in->done = 0;
    do {
        while (more && taken < TAKEN_MAX && in->frame_size >= in->least && is_between(in)) {
            int32_t got = read_some(t, in, descriptor, &more);
            if (got <= 0)
                return taken ? taken : got;
            taken += got;
        }
    } while (go_on(t, in, numbers) && more && taken < TAKEN_MAX);
    return taken;
}
