/* Frames of the drafts that need no thought, as those of 0-9-1, and deliveries of class jms: core/amqp_0_9/drafts/hot_in_quicker.py and hot_out_quicker.py. */
#include "amqp_0_9_drafts.h"
#include "amqp_0_9.h"
#include "amqp_0_9_frame.h"
#include "pump.h"
#include "writer.h"

enum { JMS = 7, PUBLISH = 5, HEADER_NUMBERS = 10 /* octets of class, weight and size of the body of 0.9a5, two more of 0.9r1 */ };
enum { SHORT_MAX = 65534 /* octets of a payload in a frame of 0.9a5 that is no extended one */, SHORT_LEAD = 4, LONG_LEAD = 8 };
enum { SETTLEMENT_SIZE = 13, FOREIGN_MAX = 1024, HEADS_MAX = 255 + 128 /* as in amqp_0_9_deliver.c */ };

/* A frame whose payload is octets[at:at + size]. */
typedef struct {
    int32_t type;
    int32_t number;
    int32_t at;
    int32_t size;
} draft_frame;

/* Read the frame at `at`, which has at least `least` octets of payload: 0, INCOMPLETE, or ASK. `start`: where its publish begins. */
static int32_t read_frame(const leveret_tables *t, const uint8_t *source, int32_t start, int32_t at, int32_t least, int32_t is_short, draft_frame *f)
{
    const int32_t *state = t->state;
    int32_t lead = is_short ? SHORT_LEAD : LONG_LEAD, left = state[STATE_END] - at;
    if (left < lead)
        return INCOMPLETE;
    const uint8_t *head = source + at;
    if (!is_short && head[4])
        return ASK;
    f->type = head[0];
    f->number = is_short ? head[1] : head[2] << 8 | head[3];
    f->size = is_short ? (head[2] << 8 | head[3]) - 1 : size_of(head, 5);
    f->at = at + lead;
    if (f->size < least || f->size > state[STATE_FRAME_MAX] || at - start + lead + f->size >= state[STATE_SIZE])
        return ASK;
    if (left <= lead + f->size)
        return INCOMPLETE;
    return source[f->at + f->size] == END_OCTET ? 0 : ASK;
}

static void put_frame_head(writer *out, int32_t type, int32_t number, int32_t size)
{
    put_octet(out, type);
    put_octets_of(out, (uint64_t)number, 2);
    put_octets_of(out, (uint64_t)size, 4);
}

/* Which of a publish's names are there: its ticket's right, and one or two texts that end before the octet of its flags. */
static int32_t names_end(const leveret_draft *draft, const uint8_t *payload, int32_t size)
{
    int32_t at = 7 + (size > 7 ? payload[6] : 0);
    if (size < 8 || payload[4] || !draft->may_write[payload[5]] || payload[size - 1] & 3 || at >= size)
        return -1;
    if (!draft->is_short)
        at += 1 + payload[at];
    if (at != size - 1)
        return -1;
    int32_t second = 7 + payload[6];
    for (int32_t place = 7; place < at; place++)
        if (place != second && (payload[place] == 0 || payload[place] > 127))
            return -1;
    return at;
}

/* The publish at `start`, whose method is `f`, with its content as frames of 0-9-1 in the draft's scratch: the position behind it, ASK or INCOMPLETE. */
static int32_t read_publish(const leveret_tables *t, const uint8_t *source, int32_t start, const draft_frame *f, const leveret_draft *draft, writer *out)
{
    const uint8_t *payload = source + f->at;
    int32_t is_short = draft->is_short, number = f->number, names = names_end(draft, payload, f->size);
    if (names < 0)
        return ASK;
    draft_frame header, body;
    int32_t numbers = HEADER_NUMBERS + (is_short ? 0 : 2);
    int32_t answer = read_frame(t, source, start, f->at + f->size + 1, numbers + 2, is_short, &header);
    if (answer)
        return answer;
    const uint8_t *head = source + header.at;
    int32_t class_id = is_short ? head[0] : head[0] << 8 | head[1], weight = is_short ? head[1] : head[2] << 8 | head[3];
    const uint8_t *size = head + numbers - 8;
    if (header.type != HEADER || header.number != number || class_id != JMS || weight || size[0] || size[1] || size[2] || size[3] || size[4])
        return ASK;
    int32_t left = size_of(size, 5), at = header.at + header.size + 1, destination;
    if (at - start + left >= t->state[STATE_SIZE])
        return ASK;
    /* The properties go to where they are in the end, but for the sizes before them, which follow from the route. */
    const uint8_t *given = head + numbers;
    int32_t route = names - 6, room = HEAD + 6 + route + 256 + 1 + 1;
    if (out->end < room + HEAD + 12)
        return ASK;
    uint8_t *basic = out->octets + room + HEAD + 12;
    int32_t basic_size = leveret_drafts_write_basic(given, header.size - numbers, is_short, basic, out->end - room - HEAD - 12, &destination);
    if (basic_size < 0)
        return ASK;
    int32_t key = destination < 0 ? 0 : given[destination];
    put_frame_head(out, METHOD, number, 6 + route + (is_short ? 1 + key : 0) + 1);
    put(out, "\x00\x3c\x00\x28\x00\x00", 6);
    put(out, payload + 6, route);
    if (is_short) {
        put_octet(out, key);
        put(out, given + destination + 1, key);
    }
    put(out, "\x00\xce", 2);
    put_frame_head(out, HEADER, number, 12 + basic_size);
    put(out, "\x00\x3c\x00\x00", 4);
    put_octets_of(out, (uint64_t)left, 8);
    memmove(out->octets + out->at, basic, (size_t)basic_size);
    out->at += basic_size;
    put_octet(out, END_OCTET);
    while (left > 0) {
        answer = read_frame(t, source, start, at, 1, is_short, &body);
        if (answer)
            return answer;
        if (body.type != BODY || body.number != number || body.size > left)
            return ASK;
        put_frame_head(out, BODY, number, body.size);
        put(out, source + body.at, body.size + 1);
        left -= body.size;
        at = body.at + body.size + 1;
    }
    return out->is_bad ? ASK : at;
}

/* The method at `at`, with its content, as frames of 0-9-1 in `out`: the position behind it, ASK or INCOMPLETE. */
static int32_t read_one(const leveret_tables *t, const uint8_t *source, int32_t at, const leveret_draft *draft, writer *out)
{
    draft_frame f;
    int32_t answer = read_frame(t, source, at, at, 5, draft->is_short, &f);
    if (answer)
        return answer;
    const uint8_t *code = source + f.at;
    if (f.type != METHOD)
        return ASK;
    if (draft->is_short ? code[0] != JMS || code[2] || code[3] : code[0] || code[1] != JMS || code[2])
        return ASK;
    int32_t method = draft->is_short ? code[1] : code[3], ack = draft->is_short ? 10 : 11;
    if (method == PUBLISH)
        return read_publish(t, source, at, &f, draft, out);
    if ((method != ack && method != ack + 1) || f.size != SETTLEMENT_SIZE)
        return ASK;
    put_frame_head(out, METHOD, f.number, SETTLEMENT_SIZE);
    put(out, "\x00\x3c\x00", 3);
    put_octet(out, method == ack ? BASIC_ACK : BASIC_REJECT);
    put(out, code + 4, SETTLEMENT_SIZE - 4 + 1);
    return out->is_bad ? ASK : f.at + f.size + 1;
}

int32_t leveret_drafts_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source, leveret_draft *draft)
{
    int32_t *state = t->state, end = state[STATE_END], size = state[STATE_SIZE];
    draft->asked = 0;
    for (;;) {
        writer out = {draft->scratch, 0, draft->scratch_size, 0, NULL};
        int32_t start = state[STATE_AT], behind = read_one(t, source, start, draft, &out);
        if (behind < 0)
            return behind;
        state[STATE_AT] = 0;
        state[STATE_END] = out.at;
        state[STATE_SIZE] = draft->scratch_size;
        int32_t answer = leveret_amqp_0_9_ingest(t, numbers, draft->scratch);
        int32_t is_taken = state[STATE_AT] == out.at;
        state[STATE_AT] = is_taken ? behind : start;
        state[STATE_END] = end;
        state[STATE_SIZE] = size;
        if (answer == ASK_ROUTE)
            draft->asked = out.at;
        if (!is_taken || answer != INCOMPLETE)
            return answer;
    }
}

/* The delivery's frames in `out`, of a message at its place. `prefix`: 1 where the session speaks 0.9a5, its channel, then what each method says of the
 * consumer. */
static void put_delivery(const leveret_tables *t, int32_t entry, const int32_t *session, const uint8_t *prefix, int32_t prefix_size, const uint8_t *chain,
                         const uint8_t *properties, int32_t frame_size_max, writer *out)
{
    const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
    int32_t is_short = prefix[0], route = record[MESSAGE_ROUTE], body = record[MESSAGE_BODY], names = 1 + chain[0];
    int32_t lead = is_short ? SHORT_LEAD : LONG_LEAD, place = out->at;
    uint8_t tag[9];
    int32_t high = session[CHANNEL_TAG_HIGH], low = (session[CHANNEL_TAG] + 1) & MASK;
    put_number(tag, low ? high : high + 1, low);
    tag[8] = t->entries[entry + ENTRY_REDELIVERED] & 255 ? 1 : 0;
    out->at += lead;
    if (is_short) {
        put(out, "\x07\x06\x00\x00", 4);
        put(out, tag, 9);
        put(out, chain, names);
        put(out, prefix + 3, prefix_size - 3);
    } else {
        put(out, "\x00\x07\x00\x07", 4);
        put(out, prefix + 3, 2);
        put(out, tag, 9);
        put(out, chain, route);
    }
    put_octet(out, END_OCTET);
    int32_t header = out->at;
    out->at += lead;
    put(out, is_short ? "\x07\x00" : "\x00\x07\x00\x00", is_short ? 2 : 4);
    put_octets_of(out, (uint64_t)body, 8);
    if (out->is_bad || out->at > out->end)
        return;
    int32_t size = leveret_drafts_write_jms(properties, is_short ? chain + names : NULL, out->octets + out->at, out->end - out->at);
    if (size < 0) {
        out->is_bad = 1;
        return;
    }
    out->at += size;
    put_octet(out, END_OCTET);
    int32_t last = out->at, head_size = last - header - lead - 1;
    if (head_size > frame_size_max || (is_short && head_size > SHORT_MAX))
        out->is_bad = 1;
    if (body) {
        out->at += lead;
        if (out->is_bad || body + 1 > out->end - out->at) {
            out->is_bad = 1;
            return;
        }
        extract(t, record[MESSAGE_FIRST], route + record[MESSAGE_PROPERTIES], out->octets, out->at, body);
        out->at += body;
        put_octet(out, END_OCTET);
    }
    if (out->is_bad)
        return;
    int32_t places[] = {place, header, last}, sizes[] = {header - place - lead - 1, head_size, body};
    for (int32_t frame = 0; frame < (body ? 3 : 2); frame++) {
        uint8_t *head = out->octets + places[frame];
        head[0] = (uint8_t)(METHOD + frame);
        if (is_short) {
            head[1] = prefix[2];
            head[2] = (uint8_t)((sizes[frame] + 1) >> 8);
            head[3] = (uint8_t)(sizes[frame] + 1);
        } else {
            head[1] = 0;
            head[2] = prefix[1];
            head[3] = prefix[2];
            put_size(head + 4, sizes[frame]);
        }
    }
}

/* Where route and properties of a message lie in one piece, copied to `copied` where they do not. */
static const uint8_t *head_of(const leveret_tables *t, const int32_t *record, uint8_t *copied)
{
    int32_t size = record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES], block_size = t->state[STATE_BLOCK_SIZE];
    if (size <= block_size)
        return t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)block_size;
    extract(t, record[MESSAGE_FIRST], 0, copied, 0, size);
    return copied;
}

static int32_t deliver_one(const leveret_tables *t, int32_t consumer, int32_t entry, const uint8_t *prefix, int32_t prefix_size, int32_t frame_size_max,
                           uint8_t *target, int32_t at, int32_t end)
{
    uint8_t copied[FOREIGN_MAX + 512], basic[FOREIGN_MAX];
    int32_t channel = t->consumers[consumer + CONSUMER_CHANNEL];
    const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE], *session = t->channels + channel;
    int32_t format = record[MESSAGE_KIND] & KIND_REWORKED, size = record[MESSAGE_PROPERTIES], overhead = prefix[0] ? 17 : 9;
    if (t->consumers[consumer + CONSUMER_CREDIT] <= 0 || (session[CHANNEL_PREFETCH] != 0 && session[CHANNEL_UNSETTLED] >= session[CHANNEL_PREFETCH]))
        return at;
    if (size > FOREIGN_MAX || record[MESSAGE_BODY] + overhead > frame_size_max || (prefix[0] && (record[MESSAGE_BODY] > SHORT_MAX || prefix[1])))
        return at;
    const uint8_t *chain = head_of(t, record, copied), *properties = chain + record[MESSAGE_ROUTE];
    if (format) {
        int32_t room = end - at < FOREIGN_MAX ? end - at : FOREIGN_MAX, made = leveret_amqp_0_9_converted(t, record, basic, room);
        properties = basic;
        if (made < 0 || (made > size && made > end - HEADS_MAX - record[MESSAGE_ROUTE]))
            return at;
    }
    writer out = {target, at, end, 0, NULL};
    put_delivery(t, entry, session, prefix, prefix_size, chain, properties, frame_size_max, &out);
    if (out.is_bad)
        return at;
    next_number(t->channels + channel + CHANNEL_TAG);
    hand_over(t, consumer, entry);
    return out.at;
}

static int32_t deliver(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                       int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output)
{
    int32_t queue = t->consumers[consumer + CONSUMER_QUEUE];
    (void)output;
    for (; limit > 0; limit--) {
        if (t->queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES && expire(t, queue))
            break;
        int32_t entry = t->queues[queue + QUEUE_HEAD], before = at;
        if (entry < 0)
            break;
        at = deliver_one(t, consumer, entry, prefix, prefix_size, frame_size_max, target, at, end);
        if (at == before)
            break;
    }
    return at;
}

/* Python goes on where a delivery has no room: it knows whether it ever will. */
static int32_t delivery_size(const int32_t *record, int32_t prefix_size, int32_t frame_size_max, int32_t is_inset)
{
    (void)record;
    (void)prefix_size;
    (void)frame_size_max;
    (void)is_inset;
    return -1;
}

static const leveret_wire wire = {delivery_size, 0, NULL, deliver, NULL, 0};

const leveret_wire *leveret_drafts_wire(void)
{
    return &wire;
}
