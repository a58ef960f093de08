/* From a receive buffer what a peer says of commands where that needs no thought: message.accept, session.completed and known-completed of one range each,
 * session.flush of what is completed. */
#include "amqp_0_10.h"
#include "amqp_0_10_frame.h"
#include "hot.h"
#include "layout.h"

#include <string.h>

enum { WHOLE = 15, ACCEPT_SIZE = FRAME_HEAD + 16, RANGE_SIZE = FRAME_HEAD + 14, FLUSH_SIZE = FRAME_HEAD + 4, APART_MAX = 0x20000000 };
enum { COMPLETED = 10, KNOWN_COMPLETED = 11 }; /* codes of class session */

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

/* Add a range to what was said before it: 0; ASK: together they are not one range. */
static int32_t add(leveret_amqp_0_10_said *said, uint32_t first, uint32_t last)
{
    if (distance(first, last) < 0)
        return ASK;
    if (!said->is_any) {
        *said = (leveret_amqp_0_10_said){1, first, last};
        return 0;
    }
    if (distance(said->first, last) < -1 || distance(first, said->last) < -1)
        return ASK;
    if (distance(first, said->first) > 0)
        said->first = first;
    if (distance(said->last, last) > 0)
        said->last = last;
    return 0;
}

/* A control of one range: session.completed, of commands that were sent, or session.known-completed. */
static int32_t note(const leveret_tables *t, leveret_amqp_0_10_answers *a, int32_t code, uint32_t first, uint32_t last)
{
    if (code == COMPLETED)
        return distance(last, tail_of(t, a->record)) <= 0 ? ASK : add(&a->completed, first, last);
    return code == KNOWN_COMPLETED ? add(&a->known, first, last) : ASK;
}

int32_t leveret_amqp_0_10_settle(const leveret_tables *t, leveret_amqp_0_10_answers *a, const uint8_t *source)
{
    static const uint8_t accepts[] = {4, 2, 1}, one_range[] = {1, 0, 0, 8}, flushes[] = {2, 12, 4, 0};
    int32_t *state = t->state;
    a->accepted = a->flushes = a->completed.is_any = a->known.is_any = 0;
    for (;;) {
        const uint8_t *head = source + state[STATE_AT];
        int32_t left = state[STATE_END] - state[STATE_AT];
        if (left < FLUSH_SIZE || head[0] != WHOLE)
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
        } else if (type == 0 && size == RANGE_SIZE && head[12] == 2 && memcmp(head + 14, one_range, 4) == 0) {
            answer = note(t, a, head[13], word_of(head, 18), word_of(head, 22));
        } else if (type == 0 && size == FLUSH_SIZE && memcmp(head + 12, flushes, 4) == 0) {
            a->flushes += 1;
            answer = 0;
        } else {
            return ASK;
        }
        if (answer)
            return answer;
        state[STATE_AT] += size;
        state[STATE_LEFT] -= 1;
    }
}
