/* Where a message goes that the route cache does not know: core/patterns/topic.py's walk over a tree that c_accel/matching.py has laid flat, and
 * core/broker/route_cache.py's way of remembering routes. */
#include "match.h"
#include "routes.h"

enum { NODE_PARENT, NODE_WORD, NODE_WORD_SIZE, NODE_STAR, NODE_LOOSE, NODE_ENDS, NODE_ENDS_COUNT, NODE_WIDTH };
enum { TARGETS_MAX = 64, STAMP_MAX = 0x70000000 };

static uint32_t place_of(const leveret_matcher *m, int32_t parent, const uint8_t *word, int32_t size)
{
    uint32_t hash = 2166136261u ^ (uint32_t)parent * 0x9E3779B1u;
    for (int32_t at = 0; at < size; at++)
        hash = (hash ^ word[at]) * 16777619u;
    return (hash ^ hash >> 15) & (uint32_t)(m->index_size - 1);
}

void leveret_index(leveret_matcher *m)
{
    for (int32_t at = 0; at < m->index_size; at++)
        m->index[at] = -1;
    for (int32_t node = 0; node < m->node_count; node++) {
        const int32_t *record = m->nodes + (size_t)node * NODE_WIDTH;
        if (record[NODE_WORD] < 0)
            continue;
        uint32_t place = place_of(m, record[NODE_PARENT], m->words + record[NODE_WORD], record[NODE_WORD_SIZE]);
        while (m->index[place] >= 0)
            place = (place + 1) & (uint32_t)(m->index_size - 1);
        m->index[place] = node;
    }
}

static int32_t child_of(const leveret_matcher *m, int32_t parent, const uint8_t *word, int32_t size)
{
    uint32_t place = place_of(m, parent, word, size);
    for (; m->index[place] >= 0; place = (place + 1) & (uint32_t)(m->index_size - 1)) {
        const int32_t *record = m->nodes + (size_t)m->index[place] * NODE_WIDTH;
        if (record[NODE_PARENT] == parent && record[NODE_WORD_SIZE] == size && memcmp(m->words + record[NODE_WORD], word, (size_t)size) == 0)
            return m->index[place];
    }
    return -1;
}

/* See topic.loose: how many stay now. */
static int32_t stay(leveret_matcher *m, int32_t node, int32_t staying)
{
    int32_t child = m->nodes[(size_t)node * NODE_WIDTH + NODE_LOOSE];
    if (child >= 0 && m->stamps[child] != m->stamp) {
        m->stamps[child] = m->stamp;
        m->staying[staying++] = child;
    }
    return staying;
}

/* See topic.loose. */
static int32_t loose(leveret_matcher *m, const int32_t *here, int32_t count, int32_t staying)
{
    for (int32_t at = 0; at < count; at++)
        staying = stay(m, here[at], staying);
    for (int32_t at = 0; at < staying; at++)
        staying = stay(m, m->staying[at], staying);
    return staying;
}

/* The nodes that one word reaches from some: how many lie in `ahead` then. */
static int32_t reach(const leveret_matcher *m, const int32_t *nodes, int32_t count, const uint8_t *word, int32_t size, int32_t *ahead,
                     int32_t reached)
{
    for (int32_t at = 0; at < count; at++) {
        int32_t child = child_of(m, nodes[at], word, size);
        if (child >= 0)
            ahead[reached++] = child;
        child = m->nodes[(size_t)nodes[at] * NODE_WIDTH + NODE_STAR];
        if (child >= 0)
            ahead[reached++] = child;
    }
    return reached;
}

/* Add the queues that some nodes end in, each once: how many there are then; above TARGETS_MAX: too many. */
static int32_t collect(const leveret_matcher *m, const int32_t *nodes, int32_t count, int32_t *targets, int32_t target_count)
{
    for (int32_t at = 0; at < count; at++) {
        const int32_t *record = m->nodes + (size_t)nodes[at] * NODE_WIDTH;
        for (int32_t end = 0; end < record[NODE_ENDS_COUNT]; end++) {
            int32_t queue = m->ends[record[NODE_ENDS] + end], seen = 0;
            while (seen < target_count && targets[seen] != queue)
                seen++;
            if (seen < target_count)
                continue;
            if (target_count == TARGETS_MAX)
                return TARGETS_MAX + 1;
            targets[target_count++] = queue;
        }
    }
    return target_count;
}

int32_t leveret_match(leveret_matcher *m, const uint8_t *key, int32_t key_size, int32_t *targets)
{
    int32_t *here = m->here, *ahead = m->ahead;
    int32_t count = 1, at = 0, more = !m->whole && key_size == 0 ? 0 : 1;
    if (m->stamp > STAMP_MAX) {
        memset(m->stamps, 0, sizeof *m->stamps * (size_t)m->node_count);
        m->stamp = 0;
    }
    here[0] = 0;
    m->stamp += 1;
    int32_t staying = loose(m, here, 1, 0);
    while (more) {
        int32_t end = at;
        while (end < key_size && (m->whole || key[end] != '.'))
            end++;
        m->stamp += 1;
        for (int32_t each = 0; each < staying; each++)
            m->stamps[m->staying[each]] = m->stamp;
        int32_t reached = reach(m, here, count, key + at, end - at, ahead, 0);
        count = reach(m, m->staying, staying, key + at, end - at, ahead, reached);
        staying = loose(m, ahead, count, staying);
        int32_t *other = here;
        here = ahead;
        ahead = other;
        if (count == 0 && staying == 0)
            return 0;
        more = end < key_size;
        at = end + 1;
    }
    int32_t target_count = collect(m, here, count, targets, 0);
    return target_count > TARGETS_MAX ? target_count : collect(m, m->staying, staying, targets, target_count);
}

/* See remember in core/broker/route_cache.py: the slot. */
static int32_t remember(const leveret_tables *t, const uint8_t *route, int32_t size, const int32_t *targets, int32_t count)
{
    int32_t *state = t->state;
    if (state[STATE_ROUTE_OCTETS] + size > t->ways->octets_size || state[STATE_ROUTE_TARGETS] + count > t->ways->targets_size) {
        state[STATE_ROUTE_OCTETS] = state[STATE_ROUTE_TARGETS] = 0;
        state[STATE_ROUTE_EPOCH] = (state[STATE_ROUTE_EPOCH] + 1) & MASK;
    }
    int32_t slots = state[STATE_ROUTE_SLOTS];
    int32_t first = route_hash(route, 0, size) & (slots - 1), slot = first * ROUTE_WIDTH;
    for (int32_t probe = 0; probe < ROUTE_PROBES; probe++) {
        int32_t place = ((first + probe) & (slots - 1)) * ROUTE_WIDTH;
        if (t->routes[place + ROUTE_EPOCH] != state[STATE_ROUTE_EPOCH]) {
            slot = place;
            break;
        }
    }
    int32_t *record = t->routes + slot;
    record[ROUTE_EPOCH] = state[STATE_ROUTE_EPOCH];
    record[ROUTE_USER] = state[STATE_USER];
    record[ROUTE_SIZE] = size;
    record[ROUTE_OCTETS] = state[STATE_ROUTE_OCTETS];
    record[ROUTE_TARGETS] = state[STATE_ROUTE_TARGETS];
    record[ROUTE_COUNT] = count;
    record[ROUTE_ALTERNATES] = 0;
    memcpy(t->route_octets + record[ROUTE_OCTETS], route, (size_t)size);
    memcpy(t->route_targets + record[ROUTE_TARGETS], targets, sizeof *targets * (size_t)count);
    state[STATE_ROUTE_OCTETS] += size;
    state[STATE_ROUTE_TARGETS] += count;
    return slot;
}

int32_t leveret_find_way(const leveret_tables *t, const uint8_t *source, int32_t at, int32_t size)
{
    if (!t->ways)
        return -1;
    int32_t user = t->state[STATE_USER], targets[TARGETS_MAX];
    const uint8_t *route = source + at;
    for (int32_t place = 0; place < t->ways->count; place++) {
        const leveret_way *way = t->ways->rows + place;
        if (way->user != user || way->name_size != route[0] || memcmp(way->name, route + 1, route[0]))
            continue;
        int32_t target_count = leveret_match(way->matcher, route + 2 + route[0], route[1 + route[0]], targets);
        if (target_count < 1 || target_count > TARGETS_MAX || target_count > t->ways->targets_size || size > t->ways->octets_size)
            return -1;
        int32_t slot = remember(t, route, size, targets, target_count);
        t->state[STATE_ROUTE_LAST] = slot;
        return slot;
    }
    return -1;
}
