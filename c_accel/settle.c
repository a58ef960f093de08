/* What consumers say of their deliveries: acknowledgements, refusals and returns that need no thought (core/broker/publish.py,
 * core/memory/hot.py and returned.py). */
#include "publish.h"
#include "queues.h"
#include "routes.h"

enum { STEPS = 16 };

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

static void wake_below(const leveret_tables *t, int32_t channel, int32_t entry, int32_t last)
{
    int32_t prefetch = t->channels[channel + CHANNEL_PREFETCH], left = t->channels[channel + CHANNEL_UNSETTLED];
    if (prefetch <= 0 || left < prefetch)
        return;
    for (;; entry = t->entries[entry + ENTRY_NEXT]) {
        left -= 1;
        if (left < prefetch) {
            wake_channel(t, channel);
            return;
        }
        if (entry == last)
            return;
    }
}

enum { NEAR = 2 };

static int32_t find_indexed(const leveret_tables *t, int32_t channel, int32_t tag)
{
    const int32_t *entries = t->entries;
    int32_t *channels = t->channels;
    int32_t slots = t->state[STATE_TAGS], mask = t->state[STATE_TAG_MASK], number = channel / CHANNEL_WIDTH * SPREAD;
    int32_t chains = slots + mask + 1;
    for (int32_t entry = channels[slots + ((number ^ tag) & mask)] - 1; entry >= 0; entry = channels[chains + entry / ENTRY_WIDTH] - 1)
        if (entries[entry + ENTRY_TAG] == tag)
            return entry;
    int32_t last = channels[channel + CHANNEL_INDEXED];
    int32_t entry = last >= 0 ? entries[last + ENTRY_NEXT] : channels[channel + CHANNEL_UNSETTLED_HEAD];
    for (; entry >= 0; entry = entries[entry + ENTRY_NEXT]) {
        int32_t here = entries[entry + ENTRY_TAG];
        int32_t *slot = channels + slots + ((number ^ here) & mask);
        channels[chains + entry / ENTRY_WIDTH] = *slot;
        *slot = entry + 1;
        channels[channel + CHANNEL_INDEXED] = entry;
        if (here == tag)
            return entry;
    }
    return -1;
}

int32_t leveret_find_tag(const leveret_tables *t, int32_t channel, int32_t tag)
{
    const int32_t *entries = t->entries;
    int32_t entry = t->channels[channel + CHANNEL_UNSETTLED_HEAD];
    int32_t other = t->channels[channel + CHANNEL_UNSETTLED_TAIL];
    int32_t left = t->state[STATE_TAG_MASK] ? NEAR : MASK;
    while (entry >= 0 && entries[entry + ENTRY_TAG] != tag) {
        if (entries[other + ENTRY_TAG] == tag)
            return other;
        if (entry == other)
            return -1;
        entry = entries[entry + ENTRY_NEXT];
        if (entry == other)
            return -1;
        other = entries[other + ENTRY_PREVIOUS];
        left -= 1;
        if (left == 0)
            return find_indexed(t, channel, tag);
    }
    return entry;
}

static void settle(const leveret_tables *t, int32_t channel, int32_t first, int32_t last, int32_t counter)
{
    int32_t count = 0;
    int32_t entry = first;
    for (;;) {
        int32_t behind = t->entries[entry + ENTRY_NEXT];
        unhold(t, channel, entry);
        drop(t, entry);
        count += 1;
        if (entry == last)
            break;
        entry = behind;
    }
    t->state[counter] = (t->state[counter] + count) & MASK;
}

void leveret_forget_returned(int32_t *entries, int32_t *root, int32_t entry)
{
    int32_t position = entries[entry + ENTRY_POSITION], steps = 0;
    int32_t *cell = root;
    while (*cell != entry) {
        if (*cell < 0)
            return;
        if (++steps > TREE_DEEP) {
            *root = -1;
            return;
        }
        cell = entries + *cell + (is_lower(entries, position, *cell) ? TREE_LOWER : TREE_HIGHER);
    }
    int32_t lower = entries[entry + TREE_LOWER], higher = entries[entry + TREE_HIGHER];
    while (lower >= 0 && higher >= 0) {
        if (weight_of(lower) >= weight_of(higher)) {
            *cell = lower;
            cell = entries + lower + TREE_HIGHER;
            lower = *cell;
        } else {
            *cell = higher;
            cell = entries + higher + TREE_LOWER;
            higher = *cell;
        }
    }
    *cell = lower >= 0 ? lower : higher;
}

/* Put an entry into the tree of returned entries: the nearest ones before and after it, -1: none. */
static int32_t put_into_tree(int32_t *entries, int32_t *root, int32_t entry, int32_t *after, int32_t *steps)
{
    int32_t position = entries[entry + ENTRY_POSITION], before = -1, node = *root;
    int32_t *cell = root;
    for (; node >= 0 && weight_of(node) >= weight_of(entry); node = *cell) {
        *steps += 1;
        if (is_lower(entries, position, node)) {
            *after = node;
            cell = entries + node + TREE_LOWER;
        } else {
            before = node;
            cell = entries + node + TREE_HIGHER;
        }
    }
    if (*steps > TREE_DEEP) {
        cell = root;
        node = -1;
    }
    *cell = entry;
    int32_t *lower = entries + entry + TREE_LOWER, *higher = entries + entry + TREE_HIGHER;
    while (node >= 0) {
        *steps += 1;
        if (is_lower(entries, position, node)) {
            *after = node;
            *higher = node;
            higher = entries + node + TREE_LOWER;
            node = *higher;
        } else {
            before = node;
            *lower = node;
            lower = entries + node + TREE_HIGHER;
            node = *lower;
        }
    }
    *lower = *higher = -1;
    return before;
}

static int32_t requeue(const leveret_tables *t, int32_t queue, int32_t entry)
{
    int32_t *queue_record = t->queues + queue;
    int32_t *entries = t->entries;
    int32_t position = entries[entry + ENTRY_POSITION];
    int32_t before = -1, after = -1, steps = 0, behind = queue_record[QUEUE_HEAD];
    if (behind >= 0 && !is_lower(entries, position, behind)) {
        before = put_into_tree(entries, &queue_record[QUEUE_RETURNED], entry, &after, &steps);
        if (before >= 0)
            behind = entries[before + ENTRY_NEXT];
    }
    int32_t node = after >= 0 ? entries[after + ENTRY_PREVIOUS] : queue_record[QUEUE_TAIL];
    for (; behind >= 0 && !is_lower(entries, position, behind); steps++) {
        if (!is_lower(entries, position, node)) { /* the place is behind this one, which is nearer */
            before = node;
            behind = after;
            break;
        }
        after = node;
        node = entries[node + ENTRY_PREVIOUS];
        before = behind;
        behind = entries[behind + ENTRY_NEXT];
    }
    entries[entry + ENTRY_PREVIOUS] = before;
    entries[entry + ENTRY_NEXT] = behind;
    if (before >= 0)
        entries[before + ENTRY_NEXT] = entry;
    else
        queue_record[QUEUE_HEAD] = entry;
    if (behind >= 0)
        entries[behind + ENTRY_PREVIOUS] = entry;
    else
        queue_record[QUEUE_TAIL] = entry;
    queue_record[QUEUE_LENGTH] += 1;
    queue_record[QUEUE_OCTETS] += t->messages[entries[entry + ENTRY_MESSAGE] + MESSAGE_BODY];
    return steps;
}

static void give_back(const leveret_tables *t, int32_t channel, int32_t first, int32_t last)
{
    int32_t entry = last;
    for (;;) {
        int32_t *place = t->entries + entry;
        int32_t before = place[ENTRY_PREVIOUS];
        unhold(t, channel, entry);
        if ((place[ENTRY_REDELIVERED] & 255) < 255)
            place[ENTRY_REDELIVERED] += 1;
        if (place[ENTRY_DEADLINE] == t->state[STATE_NOW] && place[ENTRY_DEADLINE] > 1)
            place[ENTRY_DEADLINE] -= 1; /* a lifetime of 0 is for the consumer that had it: it is over */
        t->state[STATE_LEFT] -= requeue(t, place[ENTRY_QUEUE], entry) / STEPS;
        activate(t, place[ENTRY_QUEUE]);
        t->state[STATE_REDELIVERED] = (t->state[STATE_REDELIVERED] + 1) & MASK;
        if (entry == first)
            return;
        entry = before;
    }
}

/* Rule "returns": also came_back in features/delivery_limit.py and may_return of publish.py; test_homes.py holds them together. */
static int32_t may_return(const leveret_tables *t, int32_t entry, int32_t last, int32_t asks)
{
    for (;; entry = t->entries[entry + ENTRY_NEXT]) {
        const int32_t *place = t->entries + entry, *queue = t->queues + place[ENTRY_QUEUE];
        int32_t limits = queue[QUEUE_LIMITS];
        if (!(queue[QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED)) || limits & asks)
            return 0;
        if (asks == LIMIT_RETURNS && limits & LIMIT_COUNTS && (place[ENTRY_REDELIVERED] & 255) >= limits >> LIMIT_MOST)
            return 0;
        if (entry == last)
            return 1;
    }
}

/* Whether a delivery that is refused needs no decision; where its message becomes a dead letter that is planned. */
static int32_t may_refuse(const leveret_tables *t, int32_t entry)
{
    const int32_t *queue = t->queues + t->entries[entry + ENTRY_QUEUE];
    if (queue[QUEUE_LIMITS] & LIMIT_DEAD_LETTERS)
        return leveret_may_reject(t, entry);
    return (queue[QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED)) != 0;
}

/* Refuse deliveries of which some become dead letters, one by one up to the first that needs a decision: false; the others are as they were. */
static int32_t refuse(const leveret_tables *t, int32_t channel, int32_t first, int32_t last)
{
    for (int32_t entry = first, behind;; entry = behind) {
        int32_t queue = t->entries[entry + ENTRY_QUEUE];
        behind = t->entries[entry + ENTRY_NEXT];
        if (!may_refuse(t, entry))
            return 0;
        if (entry == first)
            wake_below(t, channel, first, last);
        if (t->queues[queue + QUEUE_LENGTH] > 0)
            activate(t, queue);
        unhold(t, channel, entry);
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_DEAD_LETTERS)
            leveret_bury(t, entry);
        else
            drop(t, entry);
        t->state[STATE_REJECTED] = (t->state[STATE_REJECTED] + 1) & MASK;
        if (entry == last)
            return 1;
    }
}

int32_t leveret_settle(const leveret_tables *t, int32_t channel, int32_t first, int32_t last, int32_t how)
{
    if (how != ACCEPTED && !may_return(t, first, last, how == REFUSED ? LIMIT_DEAD_LETTERS : LIMIT_RETURNS))
        return how == REFUSED && t->letters && refuse(t, channel, first, last);
    wake_below(t, channel, first, last);
    if (how == RETURNED) {
        give_back(t, channel, first, last);
        return 1;
    }
    for (int32_t entry = first;; entry = t->entries[entry + ENTRY_NEXT]) {
        int32_t queue = t->entries[entry + ENTRY_QUEUE];
        if (t->queues[queue + QUEUE_LENGTH] > 0 || !(t->queues[queue + QUEUE_PLAIN] & (PLAIN | PLAIN_LOGGED)))
            activate(t, queue);
        if (entry == last)
            break;
    }
    settle(t, channel, first, last, how == ACCEPTED ? STATE_SETTLED : STATE_REJECTED);
    return 1;
}

void leveret_purge(const leveret_tables *t, int32_t queue, int32_t most)
{
    t->queues[queue + QUEUE_RETURNED] = NONE;
    for (int32_t entry = t->queues[queue + QUEUE_HEAD]; entry >= 0 && most > 0; entry = t->queues[queue + QUEUE_HEAD]) {
        most--;
        unlink_ready(t, queue, entry);
        drop(t, entry);
    }
}

int32_t leveret_expire(const leveret_tables *t, int32_t queue)
{
    return expire(t, queue);
}

void leveret_disown(const leveret_tables *t, int32_t channel, int32_t consumer)
{
    for (int32_t entry = t->channels[channel + CHANNEL_UNSETTLED_HEAD]; entry >= 0; entry = t->entries[entry + ENTRY_NEXT])
        if (t->entries[entry + ENTRY_CONSUMER] == consumer)
            t->entries[entry + ENTRY_CONSUMER] = -1;
}

int32_t leveret_drop_held(const leveret_tables *t, int32_t channel, int32_t queue, int32_t most)
{
    int32_t behind, count = 0;
    for (int32_t entry = t->channels[channel + CHANNEL_UNSETTLED_HEAD]; entry >= 0 && count < most; entry = behind) {
        behind = t->entries[entry + ENTRY_NEXT];
        if (t->entries[entry + ENTRY_QUEUE] == queue) {
            unhold(t, channel, entry);
            drop(t, entry);
            count++;
        }
    }
    return count;
}

void leveret_leave(const leveret_tables *t, int32_t channel, int32_t entry, int32_t most)
{
    for (; entry >= 0 && most > 0; most--, entry = t->entries[entry + ENTRY_PREVIOUS]) {
        int32_t *place = t->entries + entry;
        int32_t consumer = place[ENTRY_CONSUMER];
        if (consumer == RETURNING)
            continue;
        place[ENTRY_CONSUMER] = RETURNING;
        t->queues[place[ENTRY_QUEUE] + QUEUE_RETURNING] += 1;
        t->channels[channel + (consumer == GOT ? CHANNEL_GOT : CHANNEL_UNSETTLED)] -= 1;
        if (consumer >= 0 && t->consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED && t->consumers[consumer + CONSUMER_MODE] == WINDOW)
            t->consumers[consumer + CONSUMER_CREDIT] += 1;
    }
}

int32_t leveret_reach_back(const leveret_tables *t, int32_t entry, int32_t most)
{
    for (; most > 1 && t->entries[entry + ENTRY_PREVIOUS] >= 0; most--)
        entry = t->entries[entry + ENTRY_PREVIOUS];
    return entry;
}

int32_t leveret_reach(const leveret_tables *t, int32_t channel, int32_t tag, int32_t most)
{
    int32_t last = -1, entry = t->channels[channel + CHANNEL_UNSETTLED_HEAD];
    for (; entry >= 0 && most > 0 && !((tag - t->entries[entry + ENTRY_TAG]) & 0x20000000); most--) {
        last = entry;
        entry = t->entries[entry + ENTRY_NEXT];
    }
    return last;
}

static int32_t kept_route(const leveret_tables *t, const int32_t *record)
{
    int32_t size = record[MESSAGE_ROUTE];
    const uint8_t *octets = t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)t->state[STATE_BLOCK_SIZE];
    return size > t->state[STATE_BLOCK_SIZE] ? -1 : find_route(t, octets, 0, size);
}

int32_t leveret_publish_kept(const leveret_tables *t, int32_t channel, int32_t message)
{
    int32_t *record = t->messages + message, *state = t->state;
    int32_t slot = kept_route(t, record);
    if (slot < 0)
        return 0;
    state[STATE_KIND] = record[MESSAGE_KIND];
    if (t->identities)
        t->identities->read = ID_UNREAD; /* a queue that remembers ids asks Python for it */
    if (t->latest)
        t->latest->properties = NULL; /* and one that keeps last values */
    int32_t logged = may_push(t, slot, record[MESSAGE_LIFETIME], record[MESSAGE_BLOCKS], record[MESSAGE_BODY]);
    if (!logged || logged == PLAIN_STREAM)
        return 0;
    if (channel >= 0) {
        publish(t, channel, slot, message, logged);
        record[MESSAGE_REFERENCES] -= 1;
    }
    return t->routes[slot + ROUTE_COUNT];
}

/* What the contents of a transaction take together. */
typedef struct {
    int32_t count;
    int32_t places; /* in queues */
    int32_t blocks;
    int32_t octets; /* of the log */
} taking;

/* Sum up what the contents from `message` on take: 0 where a queue of theirs may drop or refuse some, or keeps them beyond memory. */
static int32_t sum_up(const leveret_tables *t, int32_t message, taking *sum)
{
    for (; message >= 0; message = t->messages[message + MESSAGE_SEGMENT] - 1) {
        const int32_t *record = t->messages + message;
        int32_t slot = kept_route(t, record);
        if (slot < 0)
            return 0;
        const int32_t *target = t->route_targets + t->routes[slot + ROUTE_TARGETS];
        int32_t places = t->routes[slot + ROUTE_COUNT];
        for (int32_t left = places; left > 0; left--, target++)
            if (t->queues[*target + QUEUE_PLAIN] == PLAIN_PAGED
                || t->queues[*target + QUEUE_LIMITS] & (LIMIT_DROPS | LIMIT_REFUSES | LIMIT_LATEST | LIMIT_REMEMBERS))
                return 0;
        sum->count += 1;
        sum->places += places;
        sum->blocks += record[MESSAGE_BLOCKS];
        sum->octets += record[MESSAGE_BLOCKS] * t->state[STATE_BLOCK_SIZE] + PLACE_SIZE * places;
    }
    return 1;
}

/* Whether each of the contents from `message` on may be published, also behind all others: they are asked with the pools as they are then, less what
 * the queues hold more then (a share is at most four times what is left, so once more what they take is enough). */
static int32_t may_commit(const leveret_tables *t, int32_t message, const taking *sum)
{
    int32_t *state = t->state, may = 1;
    state[POOL_ENTRIES + 2] -= 2 * sum->places;
    state[POOL_MESSAGES + 2] -= sum->places;
    state[POOL_BLOCKS + 2] -= 2 * sum->blocks;
    state[STATE_LOGGED_OCTETS] += sum->octets;
    for (; may && message >= 0; message = t->messages[message + MESSAGE_SEGMENT] - 1)
        may = leveret_publish_kept(t, NONE, message) > 0;
    state[POOL_ENTRIES + 2] += 2 * sum->places;
    state[POOL_MESSAGES + 2] += sum->places;
    state[POOL_BLOCKS + 2] += 2 * sum->blocks;
    state[STATE_LOGGED_OCTETS] -= sum->octets;
    return may;
}

int32_t leveret_commit_kept(const leveret_tables *t, int32_t channel)
{
    int32_t *state = t->state, message = state[STATE_KEPT_HEAD];
    taking sum = {0, 0, 0, 0};
    if (message < 0 || !sum_up(t, message, &sum) || !may_commit(t, message, &sum))
        return 0;
    while (message >= 0) {
        int32_t next = t->messages[message + MESSAGE_SEGMENT] - 1;
        t->messages[message + MESSAGE_SEGMENT] = 0;
        leveret_publish_kept(t, channel, message);
        message = next;
    }
    state[STATE_KEPT_HEAD] = -1;
    state[STATE_KEEP] += sum.count;
    return 1;
}
