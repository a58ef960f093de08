/* Sending bodies from their blocks: an output's waiting octets are its buffer with insets, and go out piece by piece. */
#include "insets.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { BETWEEN_MAX = 16, PIECES_MAX = 1024 };

typedef uint8_t between_octets[BETWEEN_MAX];

static void next_block(const leveret_tables *t, leveret_inset *inset)
{
    while (inset->offset >= t->state[STATE_BLOCK_SIZE]) {
        inset->offset -= t->state[STATE_BLOCK_SIZE];
        inset->block = t->blocks[inset->block];
    }
}

/* The octets between the payloads of two frames are gone: the next frame's payload is to go. */
static void begin_frame(leveret_inset *inset)
{
    inset->between = inset->wire->between_size;
    inset->frame_left = inset->left < inset->payload_max ? inset->left : inset->payload_max;
}

static void skip_payload(leveret_inset *inset, int32_t size)
{
    inset->offset += size;
    inset->left -= size;
    inset->frame_left -= size;
    if (inset->frame_left == 0)
        inset->between = 0;
}

/* Octets from the cursor of an inset on that lie in one piece, in this frame. */
static int32_t run_of(const leveret_tables *t, leveret_inset *inset)
{
    next_block(t, inset);
    int32_t block_size = t->state[STATE_BLOCK_SIZE];
    int32_t run = block_size - inset->offset;
    for (int32_t block = inset->block; run < inset->frame_left && t->blocks[block] == block + 1; block++)
        run += block_size;
    return run < inset->frame_left ? run : inset->frame_left;
}

static int32_t add_inset(const leveret_tables *t, leveret_inset inset, struct iovec *pieces, between_octets *between, int32_t count,
                         int32_t most)
{
    while (inset.left > 0 && count < most) {
        if (inset.between < inset.wire->between_size) {
            int32_t gone = inset.between;
            begin_frame(&inset);
            inset.wire->put_between(between[count], inset.number, inset.frame_left);
            pieces[count] = (struct iovec){between[count] + gone, (size_t)(inset.between - gone)};
        } else {
            int32_t size = run_of(t, &inset);
            uint8_t *begin = t->arena + (size_t)inset.block * (size_t)t->state[STATE_BLOCK_SIZE] + inset.offset;
            pieces[count] = (struct iovec){begin, (size_t)size};
            skip_payload(&inset, size);
        }
        count++;
    }
    return count;
}

/* What waits, in order: how many pieces, up to `most`. */
static int32_t pieces_of(const leveret_tables *t, const leveret_output *output, struct iovec *pieces, between_octets *between, int32_t most)
{
    int32_t count = 0, at = output->start;
    for (int32_t each = 0; each <= output->inset_count && count < most; each++) {
        int32_t stop = each < output->inset_count ? output->insets[each].position : output->end;
        if (stop > at)
            pieces[count++] = (struct iovec){output->octets + at, (size_t)(stop - at)};
        at = stop;
        if (each < output->inset_count)
            count = add_inset(t, output->insets[each], pieces, between, count, most);
    }
    return count;
}

void leveret_set_in(const leveret_tables *t, const leveret_wire *wire, leveret_output *output, int32_t message, int32_t payload_max,
                    int32_t number, int32_t at, int32_t gone)
{
    leveret_inset *inset = output->insets + output->inset_count++;
    inset->wire = wire;
    inset->position = at;
    inset->message = message;
    inset->block = t->state[STATE_CURSOR_BLOCK];
    inset->offset = t->state[STATE_CURSOR_OFFSET];
    inset->left = t->messages[message + MESSAGE_BODY];
    inset->frame_left = 0;
    inset->between = gone;
    inset->number = number;
    inset->payload_max = payload_max;
    output->inset_octets += inset->left;
    t->messages[message + MESSAGE_REFERENCES] += 1;
}

static void end_inset(const leveret_tables *t, leveret_output *output)
{
    release(t, output->insets[0].message);
    output->inset_count -= 1;
    memmove(output->insets, output->insets + 1, (size_t)output->inset_count * sizeof *output->insets);
}

void leveret_sent(const leveret_tables *t, leveret_output *output, int32_t count)
{
    while (count > 0) {
        leveret_inset *inset = output->inset_count ? output->insets : NULL;
        int32_t size = (inset ? inset->position : output->end) - output->start;
        if (size > 0) {
            size = size < count ? size : count;
            output->start += size;
        } else if (inset->between < inset->wire->between_size) {
            int32_t more = inset->wire->between_size - inset->between;
            size = more < count ? more : count;
            inset->between += size;
            if (size == more)
                begin_frame(inset);
        } else {
            size = inset->frame_left < count ? inset->frame_left : count;
            skip_payload(inset, size);
            next_block(t, inset);
            output->inset_octets -= size;
            if (inset->left == 0)
                end_inset(t, output);
        }
        count -= size;
    }
    if (output->start == output->end)
        output->start = output->end = 0;
}

int32_t leveret_room(leveret_output *output)
{
    int32_t gone = output->start;
    if (gone && (gone == output->end || gone > output->size / 2)) {
        output->start = 0;
        output->end -= gone;
        if (output->end)
            memmove(output->octets, output->octets + gone, (size_t)output->end);
        for (int32_t each = 0; each < output->inset_count; each++)
            output->insets[each].position -= gone;
    }
    return output->size - output->end;
}

const uint8_t *leveret_pending(const leveret_tables *t, leveret_output *output, int32_t *size)
{
    struct iovec piece = {output->octets, 0};
    pieces_of(t, output, &piece, &output->between, 1);
    *size = (int32_t)piece.iov_len;
    return piece.iov_base;
}

int32_t leveret_send(const leveret_tables *t, const leveret_output *output, int32_t descriptor)
{
    struct iovec pieces[PIECES_MAX];
    between_octets between[PIECES_MAX];
    struct msghdr given = {.msg_iov = pieces};
    given.msg_iovlen = (size_t)pieces_of(t, output, pieces, between, PIECES_MAX);
    ssize_t count = sendmsg(descriptor, &given, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0)
        return (int32_t)count;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
}

int32_t leveret_make_insets(leveret_output *output)
{
    output->insets = malloc(LEVERET_INSETS_MAX * sizeof *output->insets);
    return output->insets != NULL;
}

void leveret_drop_insets(leveret_output *output)
{
    free(output->insets);
    output->insets = NULL;
}

void leveret_forget_insets(const leveret_tables *t, leveret_output *output)
{
    while (output->inset_count)
        end_inset(t, output);
    output->inset_octets = 0;
    leveret_drop_insets(output);
}
