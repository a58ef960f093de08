/* From a receive buffer what a peer says of deliveries where that needs no thought: message.accept of one range, session.completed of one. */
#include "amqp_0_10.h"
#include "amqp_0_10_frame.h"
#include "hot.h"
#include "layout.h"

#include <string.h>

enum { WHOLE = 15, ACCEPT_SIZE = FRAME_HEAD + 16, COMPLETED_SIZE = FRAME_HEAD + 14, APART_MAX = 0x20000000 };

/* How far `other` lies behind a serial number: core/memory/serial.py. */
static int32_t distance(uint32_t number, uint32_t other)
{
    return (int32_t)(other - number);
}

/* As many commands as the session has sent: the id of its next one. */
static uint32_t tail_of(const leveret_tables *t, int32_t channel)
{
    return (uint32_t)t->channels[channel + CHANNEL_TAG_HIGH] << 30 | (uint32_t)t->channels[channel + CHANNEL_TAG];
}

/* Accept the transfers with these ids: 0; ASK: core/amqp_0_10/commands.py looks. Ids are numbers of deliveries less 1, of which entries have 30 bits. */
static int32_t accept(const leveret_tables *t, int32_t channel, uint32_t first, uint32_t last)
{
    uint32_t back = tail_of(t, channel) - last - 1, count = last - first;
    if (back >= APART_MAX || count >= APART_MAX || back + count >= APART_MAX || (int32_t)count >= t->state[STATE_LEFT])
        return ASK;
    int32_t oldest = leveret_find_tag(t, channel, (int32_t)((first + 1) & MASK));
    int32_t newest = count ? leveret_find_tag(t, channel, (int32_t)((last + 1) & MASK)) : oldest;
    if (oldest < 0 || newest < 0 || (count && oldest != t->channels[channel + CHANNEL_UNSETTLED_HEAD]))
        return ASK;
    if (!leveret_settle(t, channel, oldest, newest, ACCEPTED))
        return ASK;
    t->state[STATE_LEFT] -= (int32_t)count;
    return 0;
}

/* The peer has completed these, too: 0; ASK: with those that it has said before they are not one range, or they were not sent. */
static int32_t complete(const leveret_tables *t, leveret_amqp_0_10_answers *a, uint32_t first, uint32_t last)
{
    if (distance(first, last) < 0 || distance(last, tail_of(t, a->record)) <= 0)
        return ASK;
    if (!a->has_completed) {
        a->has_completed = 1;
        a->first = first;
        a->last = last;
        return 0;
    }
    if (distance(a->first, last) < -1 || distance(first, a->last) < -1)
        return ASK;
    if (distance(first, a->first) > 0)
        a->first = first;
    if (distance(a->last, last) > 0)
        a->last = last;
    return 0;
}

int32_t leveret_amqp_0_10_settle(const leveret_tables *t, leveret_amqp_0_10_answers *a, const uint8_t *source)
{
    static const uint8_t accepts[] = {4, 2, 1}, one_range[] = {1, 0, 0, 8}, completes[] = {2, 10};
    int32_t *state = t->state;
    a->accepted = a->has_completed = 0;
    for (;;) {
        const uint8_t *head = source + state[STATE_AT];
        int32_t left = state[STATE_END] - state[STATE_AT];
        if (left < COMPLETED_SIZE || head[0] != WHOLE)
            return ASK;
        if (state[STATE_LEFT] <= 0)
            return TURN_OVER;
        int32_t size = short_of(head, 2), type = head[1], answer;
        if (size > left || head[4] || head[5] != type || short_of(head, 6) != a->number || word_of(head, 8))
            return ASK;
        if (type == 1 && size == ACCEPT_SIZE && memcmp(head + 12, accepts, 3) == 0 && head[15] <= 1 && memcmp(head + 16, one_range, 4) == 0) {
            if (a->accepted >= a->most)
                return ASK;
            answer = accept(t, a->record, word_of(head, 20), word_of(head, 24));
            a->accepted += answer == 0;
        } else if (type == 0 && size == COMPLETED_SIZE && memcmp(head + 12, completes, 2) == 0 && memcmp(head + 14, one_range, 4) == 0) {
            answer = complete(t, a, word_of(head, 18), word_of(head, 22));
        } else {
            return ASK;
        }
        if (answer)
            return answer;
        state[STATE_AT] += size;
        state[STATE_LEFT] -= 1;
    }
}
