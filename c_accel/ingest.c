/* From a receive buffer all frames that need no thought: core/ingest.py. */
#include "octets.h"
#include "publish.h"
#include "queues.h"

static void wake_channel(const leveret_tables *t, int32_t channel)
{
    int32_t *consumers = t->consumers;
    int32_t first = t->channels[channel + CHANNEL_CONSUMERS], last = -1;
    for (int32_t consumer = first; consumer >= 0; consumer = consumers[consumer + CONSUMER_NEXT]) {
        int32_t queue = consumers[consumer + CONSUMER_QUEUE];
        if (t->queues[queue + QUEUE_LENGTH] > 0)
            activate(t, queue);
        last = consumer;
    }
    if (first != last) {
        t->channels[channel + CHANNEL_CONSUMERS] = consumers[first + CONSUMER_NEXT];
        consumers[first + CONSUMER_NEXT] = -1;
        consumers[last + CONSUMER_NEXT] = first;
    }
}

static int32_t take_ack(const leveret_tables *t, const uint8_t *source, int32_t channel)
{
    int32_t place = t->state[STATE_AT] + 11;
    const uint8_t *at = source + place;
    const int32_t *record = t->channels + channel;
    if (at[0])
        return ASK;
    int32_t high = at[1] << 18 | at[2] << 10 | at[3] << 2 | at[4] >> 6;
    int32_t low = (at[4] & 63) << 24 | at[5] << 16 | at[6] << 8 | at[7];
    int32_t multiple = at[8] & 1;
    int32_t last;
    if (multiple && high == 0 && low == 0) {
        last = record[CHANNEL_UNSETTLED_TAIL];
        if (last < 0)
            return place + 10;
    } else {
        if (high != record[CHANNEL_TAG_HIGH] && high + 1 != record[CHANNEL_TAG_HIGH])
            return ASK;
        last = find_tag(t, channel, low);
        if (last < 0)
            return ASK;
    }
    if (record[CHANNEL_PREFETCH] > 0 && record[CHANNEL_UNSETTLED] >= record[CHANNEL_PREFETCH])
        wake_channel(t, channel);
    int32_t entry = multiple ? record[CHANNEL_UNSETTLED_HEAD] : last;
    for (;;) {
        int32_t queue = t->entries[entry + ENTRY_QUEUE];
        if (t->queues[queue + QUEUE_LENGTH] > 0 || t->queues[queue + QUEUE_PLAIN] == NOT_PLAIN)
            activate(t, queue);
        if (entry == last)
            break;
        entry = t->entries[entry + ENTRY_NEXT];
    }
    settle(t, channel, last, multiple);
    return place + 10;
}

int32_t leveret_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source)
{
    int32_t *state = t->state;
    int32_t end = state[STATE_END];
    for (;;) {
        int32_t at = state[STATE_AT];
        if (end - at < 7)
            return INCOMPLETE;
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
        else if (source[at + 10] == 80 && size == 13)
            behind = take_ack(t, source, channel);
        else
            return ASK;
        if (behind < 0)
            return behind;
        state[STATE_AT] = behind;
    }
}
