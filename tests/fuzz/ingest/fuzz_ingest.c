/* libFuzzer on the C hot functions: octets from a peer through leveret_amqp_0_9_ingest, deliveries and acknowledgements back.
 *
 * The first octet of an input says in pieces of what size the rest arrives. Every buffer is a block of its own size, so that the address sanitizer
 * sees one octet too many; after each piece the lists and pools must add up. Built and run by tests/fuzz/ingest/run.py.
 */
#include "../../../c_accel/amqp_0_9.h"
#include "../../../c_accel/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, BLOCK_SIZE = 32, MESSAGES = 24, ENTRIES = 40, QUEUES = 3, CHANNELS = 3, CONSUMERS = 2, SLOTS = 8, NUMBERS = 4, SIZE = 2048 };

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

static int32_t *table(int32_t count)
{
    int32_t *made = calloc((size_t)count, sizeof *made);
    require(made != NULL, "memory");
    return made;
}

static void start_pool(int32_t *state, int32_t pool, int32_t count)
{
    state[pool] = NONE;
    state[pool + 1] = 0;
    state[pool + 2] = count;
}

static void add_route(leveret_tables *t, const char *octets, int32_t size, int32_t count, const int32_t *queues)
{
    int32_t *state = t->state;
    int32_t found = size;
    for (int32_t at = 0; at < size; at++)
        found = ((found & 0x3FFFF) * 2039 + (uint8_t)octets[at] * 31 + (found >> 18)) & 0xFFFFFFF;
    found ^= found >> 13;
    int32_t *slot = t->routes + (found & (SLOTS - 1)) * ROUTE_WIDTH;
    while (slot[ROUTE_EPOCH])
        slot = t->routes + (slot - t->routes + ROUTE_WIDTH) % (SLOTS * ROUTE_WIDTH);
    slot[ROUTE_EPOCH] = 1;
    slot[ROUTE_USER] = 7;
    slot[ROUTE_SIZE] = size;
    slot[ROUTE_OCTETS] = state[STATE_ROUTE_OCTETS];
    slot[ROUTE_TARGETS] = state[STATE_ROUTE_TARGETS];
    slot[ROUTE_COUNT] = count;
    memcpy(t->route_octets + state[STATE_ROUTE_OCTETS], octets, (size_t)size);
    state[STATE_ROUTE_OCTETS] += size;
    for (int32_t at = 0; at < count; at++)
        t->route_targets[state[STATE_ROUTE_TARGETS]++] = queues[at] * QUEUE_WIDTH;
}

/* The bindings #, a.* and a.b.# of the exchange t. */
static void add_way(leveret_tables *t)
{
    static const int32_t nodes[] = {-1, -1, 0, -1, 1, 0, 0,  0, -1, 0, -1, -1, 0, 1,  0, 0, 1, 3, -1, 1, 0,
                                    2, -1, 0, -1, -1, 1, 2,  2, 1, 1, -1, 5, 3, 0,  4, -1, 0, -1, -1, 3, 1};
    static const int32_t ends[] = {0, QUEUE_WIDTH, 0, 2 * QUEUE_WIDTH};
    static int32_t index[16], stamps[6], here[6], ahead[6], staying[6];
    static leveret_matcher matcher = {6, 16, 0, 0, nodes, (const uint8_t *)"ab", ends, index, stamps, here, ahead, staying};
    static leveret_ways ways;
    leveret_index(&matcher);
    ways.rows[0] = (leveret_way){7, 1, (const uint8_t *)"t", &matcher};
    ways.count = 1;
    ways.octets_size = 32;
    ways.targets_size = 8;
    t->ways = &ways;
}

/* The last queue's dead letters, for each reason, of messages with two of its routes, go to the second queue. */
static void add_letters(leveret_tables *t)
{
    static const char *routes[] = {"\0\1r", "\1e\1k"};
    enum { ROWS = 8, PAIRS = 23 };
    leveret_letters *letters = calloc(1, sizeof *letters);
    require(letters != NULL, "memory");
    letters->rows = calloc(ROWS, sizeof *letters->rows);
    letters->mask = ROWS - 1;
    letters->logged_head = letters->logged_tail = letters->buried = NONE;
    letters->epoch = EPOCH;
    t->letters = letters;
    for (int32_t row = 0; row < 6; row++) {
        leveret_letter letter = {.route_size = 3 + row % 2, .target_size = 3, .pairs_size = PAIRS, .time_at = PAIRS - 8, .second = NONE,
                                 .properties_max = 150, .queue = 2 * QUEUE_WIDTH, .reason = row / 2, .count = 1, .targets = {QUEUE_WIDTH}};
        letter.route = (const uint8_t *)routes[row % 2];
        letter.target = (const uint8_t *)"\0\1q";
        letter.pairs = calloc(1, PAIRS);
        leveret_learn_letter(letters, &letter);
    }
}

static void free_letters(leveret_tables *t)
{
    if (!t->letters)
        return;
    for (int32_t row = 0; row <= t->letters->mask; row++)
        free(t->letters->rows[row].pairs);
    free(t->letters->rows);
    free(t->letters);
}

/* `choice`: which of the queues are in the log and which returns and dead letters are Python's. */
static void make_tables(leveret_tables *t, uint8_t choice)
{
    t->arena = calloc(BLOCKS, BLOCK_SIZE);
    t->blocks = table(BLOCKS);
    t->messages = table(MESSAGES * MESSAGE_WIDTH);
    t->entries = table(ENTRIES * ENTRY_WIDTH);
    t->queues = table(QUEUES * QUEUE_WIDTH);
    t->channels = table(CHANNELS * CHANNEL_WIDTH);
    t->consumers = table(CONSUMERS * CONSUMER_WIDTH);
    t->state = table(STATE_WIDTH);
    t->routes = table(SLOTS * ROUTE_WIDTH);
    t->route_octets = calloc(1, 32);
    t->route_targets = table(8);
    start_pool(t->state, POOL_BLOCKS, BLOCKS);
    start_pool(t->state, POOL_MESSAGES, MESSAGES);
    start_pool(t->state, POOL_ENTRIES, ENTRIES);
    int32_t *state = t->state;
    state[STATE_BLOCK_SIZE] = BLOCK_SIZE;
    state[STATE_SETTLED_LIST] = state[STATE_ACTIVE_HEAD] = state[STATE_ACTIVE_TAIL] = state[STATE_COUNTED_HEAD] = NONE;
    state[STATE_WAY] = state[STATE_KEPT_HEAD] = NONE;
    state[STATE_LOGGED_HEAD] = NONE;
    state[STATE_SIZE] = SIZE;
    state[STATE_FRAME_MAX] = 1024;
    state[STATE_NUMBERS] = NUMBERS;
    state[STATE_USER] = 7;
    state[STATE_CONTENT_MAX] = 1500;
    state[STATE_PROPERTIES_MAX] = 200;
    state[STATE_ROUTE_EPOCH] = 1;
    state[STATE_ROUTE_SLOTS] = SLOTS;
    for (int32_t at = 0; at < QUEUES; at++) {
        int32_t *queue = t->queues + at * QUEUE_WIDTH;
        queue[QUEUE_HEAD] = queue[QUEUE_TAIL] = queue[QUEUE_RETURNED] = NONE;
        int32_t is_logged = at == 2 || choice & 16;
        queue[QUEUE_PLAIN] = is_logged ? PLAIN_LOGGED : PLAIN;
        queue[QUEUE_CONSUMERS] = at ? 1 : 0;
        queue[QUEUE_IDENTITY] = is_logged ? 7 + at : 0;
        int32_t returns = choice & 64 ? LIMIT_COUNTS | 1 << LIMIT_MOST : LIMIT_RETURNS;
        queue[QUEUE_LIMITS] = at == 0 ? LIMIT_DROPS : at == 2 ? LIMIT_EXPIRES | LIMIT_DROPS : choice & 32 ? returns : 0;
        if (at == 2 && choice & 128)
            queue[QUEUE_LIMITS] |= LIMIT_DEAD_LETTERS;
        queue[QUEUE_TTL] = 3;
        queue[QUEUE_POSITION] = at == 1 ? MASK - 3 : 0;
        queue[QUEUE_LENGTH_MAX] = 5 + at;
        queue[QUEUE_OCTETS_MAX] = 300;
    }
    for (int32_t at = 0; at < CHANNELS; at++) {
        int32_t *channel = t->channels + at * CHANNEL_WIDTH;
        channel[CHANNEL_UNSETTLED_HEAD] = channel[CHANNEL_UNSETTLED_TAIL] = channel[CHANNEL_INDEXED] = NONE;
        channel[CHANNEL_PLAIN] = at < 2;
        channel[CHANNEL_CONFIRM] = at == 1;
        channel[CHANNEL_TAG] = channel[CHANNEL_PUBLISHED] = at == 1 ? MASK - 3 : 0;
        channel[CHANNEL_NUMBER] = at + 1;
        channel[CHANNEL_PREFETCH] = at == 1 ? 3 : 0;
        channel[CHANNEL_CONSUMERS] = at < CONSUMERS ? at * CONSUMER_WIDTH : NONE;
    }
    for (int32_t at = 0; at < CONSUMERS; at++) {
        int32_t *consumer = t->consumers + at * CONSUMER_WIDTH;
        consumer[CONSUMER_QUEUE] = (at + 1) * QUEUE_WIDTH;
        consumer[CONSUMER_CHANNEL] = at * CHANNEL_WIDTH;
        consumer[CONSUMER_CREDIT] = at ? 5 : CREDIT_UNLIMITED;
        consumer[CONSUMER_NO_ACK] = 0;
        consumer[CONSUMER_NEXT] = NONE;
    }
    int32_t all[] = {0, 1, 2}, second = 1;
    add_route(t, "\0\1q", 3, 1, &second);
    add_route(t, "\1e\1k", 4, 3, all);
    add_route(t, "\0\1r", 3, 1, all + 2);
    add_way(t);
}

static void free_tables(leveret_tables *t)
{
    free(t->arena);
    free(t->blocks);
    free(t->messages);
    free(t->entries);
    free(t->queues);
    free(t->channels);
    free(t->consumers);
    free(t->state);
    free(t->routes);
    free(t->route_octets);
    free(t->route_targets);
}

/* What the journal does: the records of what was taken, to the last octet, and the entries of what is settled back. */
static void keep_log(const leveret_tables *t)
{
    int32_t size = t->state[STATE_LOGGED_OCTETS];
    uint8_t *octets = malloc(size ? (size_t)size : 1);
    int32_t *of_streams = table(1 + 6 * 65);
    for (int32_t at = 0; t->state[STATE_LOGGED_HEAD] >= 0;)
        at = leveret_write_pushed(t, octets, at, 5, of_streams, 65);
    free(of_streams);
    free(octets);
    int32_t *runs = table(12);
    while (leveret_gather_settled(t, runs, 3) == 3)
        ;
    free(runs);
}

static void keep_letters(const leveret_tables *t)
{
    if (!t->letters)
        return;
    leveret_swap_letters(t);
    keep_log(t);
    leveret_swap_letters(t);
    require(t->letters->logged_head == NONE && t->letters->logged_octets == 0, "the log has all letters");
}

static int32_t set_in; /* references of bodies that are on their way */

/* Lists end where they should, and what is taken and what is left are all there is. */
static void check_tables(const leveret_tables *t)
{
    int32_t entries = 0, references = 0, blocks = 0, messages = 0;
    for (int32_t at = 0; at < QUEUES; at++) {
        const int32_t *queue = t->queues + at * QUEUE_WIDTH;
        int32_t count = 0, octets = 0, before = NONE, returned = queue[QUEUE_RETURNED] == NONE;
        for (int32_t entry = queue[QUEUE_HEAD]; entry != NONE; entry = t->entries[entry + ENTRY_NEXT]) {
            require(++count <= ENTRIES && t->entries[entry + ENTRY_PREVIOUS] == before, "a queue's list");
            octets += t->messages[t->entries[entry + ENTRY_MESSAGE] + MESSAGE_BODY];
            returned |= queue[QUEUE_RETURNED] == entry;
            require(before == NONE || ((t->entries[entry + ENTRY_POSITION] - t->entries[before + ENTRY_POSITION]) & MASK) < MASK / 2,
                    "a queue's order");
            before = entry;
        }
        require(returned, "what was put back last is ready");
        require(before == queue[QUEUE_TAIL] && count == queue[QUEUE_LENGTH] && octets == queue[QUEUE_OCTETS], "a queue's counts");
        entries += count;
    }
    for (int32_t at = 0; at < CHANNELS; at++) {
        const int32_t *channel = t->channels + at * CHANNEL_WIDTH;
        int32_t count = 0, got = 0, before = NONE;
        for (int32_t entry = channel[CHANNEL_UNSETTLED_HEAD]; entry != NONE; entry = t->entries[entry + ENTRY_NEXT]) {
            got += t->entries[entry + ENTRY_CONSUMER] == GOT;
            require(++count <= ENTRIES && t->entries[entry + ENTRY_PREVIOUS] == before, "a channel's list");
            before = entry;
        }
        require(before == channel[CHANNEL_UNSETTLED_TAIL] && count - got == channel[CHANNEL_UNSETTLED] && got == channel[CHANNEL_GOT], "a channel's counts");
        entries += count;
    }
    int32_t settled = 0;
    for (int32_t entry = t->state[STATE_SETTLED_LIST]; entry != NONE; entry = t->entries[entry + ENTRY_NEXT])
        require(++settled <= ENTRIES, "the list of what is settled");
    require(entries + settled + t->state[POOL_ENTRIES + 2] == ENTRIES, "entries");
    int32_t is_free[MESSAGES] = {0};
    for (int32_t each = t->state[POOL_MESSAGES]; each != NONE; each = t->messages[each])
        is_free[each / MESSAGE_WIDTH] = 1;
    for (int32_t each = 0; each < t->state[POOL_MESSAGES + 1]; each += MESSAGE_WIDTH)
        if (!is_free[each / MESSAGE_WIDTH]) {
            messages += 1;
            references += t->messages[each + MESSAGE_REFERENCES];
            blocks += t->messages[each + MESSAGE_BLOCKS];
            require(t->messages[each + MESSAGE_FILLED] == t->messages[each + MESSAGE_ROUTE] + t->messages[each + MESSAGE_PROPERTIES]
                    + t->messages[each + MESSAGE_BODY], "a message is whole");
        }
    require(references == entries + set_in && messages + t->state[POOL_MESSAGES + 2] == MESSAGES, "messages");
    require(blocks + t->state[POOL_BLOCKS + 2] == BLOCKS, "blocks");
}

static const uint8_t prefix[] = {1, 0, 1, 0, 0, 0, 0, 0, 60, 0, 60, 1, 'c'};

/* Take what waits piece by piece, at most so many octets at once, with the buffer moved to its front meanwhile. */
static void send_some(const leveret_tables *t, leveret_output *output, int32_t most)
{
    for (;;) {
        int32_t size = 0, sum = 0;
        const uint8_t *piece = leveret_pending(t, output, &size);
        require(size >= 0 && (size > 0 || output->inset_count == 0), "what waits has a first piece");
        if (size == 0)
            break;
        size = size < most ? size : most;
        for (int32_t at = 0; at < size; at++)
            sum += piece[at];
        require(sum >= 0, "the piece can be read");
        leveret_sent(t, output, size);
        require(leveret_room(output) <= output->size, "room");
    }
    require(output->start == output->end && output->inset_octets == 0, "all is sent");
}

/* Rounds of turns into two buffers of which a part has been sent; one of the queues has two consumers. */
static void deliver_in_turns(const leveret_tables *t, int32_t room, uint8_t choice)
{
    int32_t rows[QUEUES * 2] = {NONE, NONE, 0, CONSUMER_WIDTH, CONSUMER_WIDTH, NONE}, counts[QUEUES] = {0, choice & 1 ? 2 : 1, choice >> 1 & 1};
    leveret_output outputs[CONSUMERS];
    leveret_reader readers[CONSUMERS];
    for (int32_t at = 0; at < CONSUMERS; at++) {
        int32_t start = choice % 64;
        outputs[at] = (leveret_output){.number = at, .octets = malloc((size_t)room), .start = start, .end = start + (choice >> 6) * 20,
                                       .size = room, .busy = choice >> 5 & at, .hungry = NONE, .hungry_last = NONE, .fed = NONE,
                                       .fed_last = NONE, .inset_least = choice >> 2 & 3};
        memset(outputs[at].octets, 0, (size_t)room);
        readers[at] = (leveret_reader){&outputs[at], leveret_amqp_0_9_wire(), prefix, sizeof prefix, 1024, 0, NONE};
    }
    leveret_round r = {rows, counts, readers, NULL, 2, 1 + choice % 7, 100, 5, 9, 0, 0};
    t->consumers[CONSUMER_WIDTH + CONSUMER_QUEUE] = (choice & 1 ? 1 : 2) * QUEUE_WIDTH;
    for (int32_t queue = 0; queue >= 0 || queue == LEVERET_LETTERS;) {
        queue = leveret_next_turn(t, &r);
        keep_letters(t);
        require(queue < 0 || t->queues[queue + QUEUE_ACTIVE] == 0, "a queue has its turn once");
        set_in = 0;
        for (int32_t at = 0; at < CONSUMERS; at++) {
            require(outputs[at].start >= 0 && outputs[at].start <= outputs[at].end && outputs[at].end <= room, "a send buffer's places");
            set_in += outputs[at].inset_count;
        }
        check_tables(t);
    }
    for (int32_t at = 0; at < CONSUMERS; at++) {
        if (choice & 64)
            send_some(t, &outputs[at], 1 + choice % 50);
        leveret_forget_insets(t, &outputs[at]);
    }
    set_in = 0;
    check_tables(t);
    t->consumers[CONSUMER_WIDTH + CONSUMER_QUEUE] = 2 * QUEUE_WIDTH;
    for (int32_t at = 0; at < CONSUMERS; at++) {
        if (choice & 2)
            leveret_forget(&r, &outputs[at], at * CONSUMER_WIDTH);
        leveret_feed(t, &r, &outputs[at]);
        require(!readers[at].is_short && outputs[at].hungry == NONE && outputs[at].fed == NONE, "nobody waits for room any more");
        free(outputs[at].octets);
    }
}

static void deliver(const leveret_tables *t, int32_t room)
{
    for (int32_t at = 0; at < CONSUMERS; at++) {
        uint8_t *target = malloc((size_t)room);
        int32_t end = leveret_amqp_0_9_wire()->pump(t, at * CONSUMER_WIDTH, 4, prefix, sizeof prefix, 1024, target, 0, room, NULL);
        require(end <= room, "deliveries stay in their buffer");
        free(target);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t numbers[NUMBERS] = {NONE, 0, CHANNEL_WIDTH, 2 * CHANNEL_WIDTH};
    if (size < 2)
        return 0;
    leveret_tables t = {0};
    make_tables(&t, data[size - 1]);
    if (size & 1)
        add_letters(&t);
    size_t piece = 1 + (size_t)data[0] * 4, at = 1, end = 1;
    while (end < size && at < size) {
        end = size - end < piece ? size : end + piece;
        while (at < end) {
            size_t length = end - at > SIZE ? SIZE : end - at;
            uint8_t *source = malloc(length);
            memcpy(source, data + at, length);
            t.state[STATE_AT] = 0;
            t.state[STATE_END] = (int32_t)length;
            t.state[STATE_LOG_ROOM] = SIZE;
            t.state[STATE_NOW] += 1;
            t.state[STATE_LEFT] = 1000; /* without it `ingest` has no turn, and reads nothing */
            if (t.letters) {
                t.letters->left = 20;
                t.letters->log_room = SIZE;
            }
            int32_t answer = leveret_amqp_0_9_ingest(&t, numbers, source);
            keep_letters(&t);
            require(t.state[STATE_AT] >= 0 && t.state[STATE_AT] <= (int32_t)length, "the position");
            at += (size_t)t.state[STATE_AT];
            size_t left = length - (size_t)t.state[STATE_AT];
            free(source);
            keep_log(&t);
            check_tables(&t);
            deliver_in_turns(&t, 200 + data[0] * 4, data[size - 1]);
            deliver(&t, 300 + data[0]);
            keep_letters(&t);
            keep_log(&t);
            check_tables(&t);
            if (answer == INCOMPLETE && left < SIZE)
                break;
            size_t skipped = left < 7 ? left : 8 + (size_t)data[at + 6];
            at += skipped < left ? skipped : left;
        }
        if (t.state[STATE_COUNTED_HEAD] != NONE) {
            t.channels[t.state[STATE_COUNTED_HEAD] + CHANNEL_COUNTED] = 0;
            t.state[STATE_COUNTED_HEAD] = NONE;
        }
    }
    free_letters(&t);
    free_tables(&t);
    return 0;
}
