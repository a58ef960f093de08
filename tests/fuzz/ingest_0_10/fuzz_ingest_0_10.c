/* libFuzzer on the C half of AMQP 0-10: octets from a peer through leveret_amqp_0_10_ingest and leveret_amqp_0_10_settle, transfers back.
 *
 * Tables, log and checks are those of ../ingest/fuzz_ingest.c. The first octet of an input says in pieces of what size the rest arrives, the last which
 * queues are in the log. What neither function takes is passed over, a frame or an octet. Built and run by tests/fuzz/ingest/run.py.
 */
#include "../../../c_accel/amqp_0_10.h"

#define LLVMFuzzerTestOneInput fuzz_0_9
#include "../ingest/fuzz_ingest.c"
#undef LLVMFuzzerTestOneInput

enum { LEAD = 21, HEADS = 24, WAY = 512 };

/* message.transfer to the default exchange on channel 3, accept-mode none; behind it the heads of a header's frame and of a body's. */
static const uint8_t lead[LEAD + HEADS] = {11, 1, 0, 21, 0, 1, 0, 3, 0, 0, 0, 0, 4, 1, 1, 0, 7, 0, 0, 1, 0,
                                           3, 2, 0, 0,  0, 1, 0, 3, 0, 0, 0, 0, 7, 3, 0, 0, 0, 1, 0, 3, 0, 0, 0, 0};

static void send_back(const leveret_tables *t, int32_t room)
{
    for (int32_t at = 0; at < CONSUMERS; at++) {
        uint8_t *target = malloc((size_t)room);
        int32_t end = leveret_amqp_0_10_pump(t, at * CONSUMER_WIDTH, 4, lead, LEAD, 1024, target, 0, room);
        require(end >= 0 && end <= room, "deliveries stay in their buffer");
        free(target);
        check_tables(t);
    }
}

/* What a connection does with `length` octets: how many it is done with. */
static int32_t take_in(leveret_tables *t, leveret_amqp_0_10_run *run, uint8_t *way, const uint8_t *source, int32_t length)
{
    int32_t *state = t->state, before;
    leveret_amqp_0_10_answers answers = {.record = run->record, .number = 3, .most = 9};
    state[STATE_AT] = 0;
    state[STATE_END] = length;
    do {
        before = state[STATE_AT];
        run->taken = 0;
        leveret_amqp_0_10_ingest(t, run, lead, way, source);
        require(run->route <= WAY && run->taken <= run->most, "what was found");
        keep_log(t);
        check_tables(t);
        leveret_amqp_0_10_settle(t, &answers, source);
        require(answers.accepted <= answers.most, "commands that may be taken");
        require(state[STATE_AT] >= before && state[STATE_AT] <= length, "the position");
        keep_log(t);
        check_tables(t);
    } while (state[STATE_AT] > before);
    return state[STATE_AT];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    leveret_tables t = {0};
    uint8_t way[WAY] = {0};
    make_tables(&t, data[size - 1] & 0x7F);
    leveret_amqp_0_10_run run = {.record = data[0] & 1 ? CHANNEL_WIDTH : 0, .lead = LEAD, .exchange = 1, .most = 1 + data[0] / 8};
    size_t piece = 1 + (size_t)data[0] * 4, at = 1;
    while (at < size) {
        size_t length = size - at < piece ? size - at : piece;
        uint8_t *source = malloc(length);
        memcpy(source, data + at, length);
        t.state[STATE_LOG_ROOM] = SIZE;
        t.state[STATE_NOW] += 1;
        t.state[STATE_LEFT] = 1000;
        size_t taken = (size_t)take_in(&t, &run, way, source, (int32_t)length);
        at += taken;
        if (taken < length) {
            size_t frame = length - taken < 4 ? 1 : (size_t)source[taken + 2] << 8 | source[taken + 3];
            at += frame == 0 || frame > length - taken ? 1 : frame;
        }
        free(source);
        send_back(&t, 100 + data[0] * 4);
        keep_log(&t);
        if (t.state[STATE_COUNTED_HEAD] != NONE) {
            t.channels[t.state[STATE_COUNTED_HEAD] + CHANNEL_COUNTED] = 0;
            t.state[STATE_COUNTED_HEAD] = NONE;
        }
    }
    free_tables(&t);
    return 0;
}
