/* From a receive buffer all frames that need no thought: core/broker/ingest.py. */
#include "octets.h"
#include "publish.h"
#include "queues.h"
#include "settle.h"

int32_t leveret_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source)
{
    int32_t *state = t->state;
    int32_t end = state[STATE_END];
    for (;;) {
        int32_t at = state[STATE_AT];
        if (end - at < 7)
            return INCOMPLETE;
        if (state[STATE_LEFT] <= 0)
            return TURN_OVER;
        int32_t number = source[at + 1] << 8 | source[at + 2];
        if (source[at] != 1 || source[at + 3] || number >= state[STATE_NUMBERS])
            return ASK;
        int32_t channel = numbers[number];
        int32_t size = size_of(source, at + 4);
        if (channel < 0 || size < 5 || size > state[STATE_FRAME_MAX] || size + 8 > state[STATE_SIZE])
            return ASK;
        if (!t->channels[channel + CHANNEL_PLAIN])
            return ASK;
        if (end - at < size + 8)
            return INCOMPLETE;
        if (source[at + 7 + size] != END_OCTET || source[at + 7] || source[at + 8] != 60 || source[at + 9])
            return ASK;
        int32_t behind;
        if (source[at + 10] == 40)
            behind = leveret_take_publish(t, source, channel, size);
        else if (size == 13 && (source[at + 10] == BASIC_ACK || source[at + 10] == BASIC_REJECT || source[at + 10] == BASIC_NACK))
            behind = leveret_take_settlement(t, source, channel);
        else
            return ASK;
        if (behind < 0)
            return behind;
        state[STATE_AT] = behind;
        state[STATE_LEFT] -= 1;
    }
}
