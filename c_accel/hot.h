/* The hot functions of core/memory/hot.py and core/broker/publish.py in C, over the same flat memory: same arguments, same state, same octets.
 * Functions that read or write a family's octets are in files named after it (amqp_0_9.h); those here call them through leveret_wire.
 *
 * The records are those of core/memory/layout.py (layout.h is generated from it). No function checks an index that it finds in a table: the tables are
 * the broker's own. What comes from a peer (`source`) is checked against its end before it is read.
 */
#ifndef LEVERET_HOT_H
#define LEVERET_HOT_H

#include <stdint.h>

#define LEVERET_WAYS_MAX 32
#define LEVERET_INSETS_MAX 32
#define LEVERET_LETTER_HEAD 8192
#define LEVERET_GOTTEN_MAX 4
#define LEVERET_LETTERS -3
#define LEVERET_LAST_OF_PRIORITY 0x40000000

/* The bindings of an exchange as a tree (c_accel/matching.py). A node: its parent, where its word begins (-1: it is a wild card, or the
 * root) and the word's octets, its children for * and #, where its queues begin in `ends` and how many they are. */
typedef struct {
    int32_t node_count;
    int32_t index_size; /* a power of two: children by parent and word */
    int32_t whole;      /* a key is one word */
    int32_t stamp;      /* see core/patterns/topic.py */
    const int32_t *nodes;
    const uint8_t *words;
    const int32_t *ends;
    int32_t *index;
    int32_t *stamps;
    int32_t *here;
    int32_t *ahead;
    int32_t *staying;
} leveret_matcher;

/* The routes of a user's messages to an exchange, as far as the route cache has room for them. */
typedef struct {
    int32_t user;
    int32_t name_size;
    const uint8_t *name;
    leveret_matcher *matcher;
} leveret_way;
/* The names of headers on which the way of a message to an exchange depends, as short strings one behind the other. */
typedef struct {
    int32_t name_size;
    const uint8_t *name;
    int32_t size;
    const uint8_t *names;
} leveret_named;
typedef struct {
    leveret_named named[32]; /* LEVERET_WAYS_MAX */
    int32_t named_count;
    leveret_way rows[32]; /* LEVERET_WAYS_MAX */
    int32_t count;
    int32_t octets_size;
    int32_t targets_size;
} leveret_ways;

/* The message ids, or last values, that queues remember: see identities.h. */
typedef struct {
    uint64_t id[2];
    int32_t queue;
    int32_t next; /* behind it in its chain, or among those that are free */
    int32_t newer; /* behind it among its queue's */
    int32_t entry; /* of a last value: the newest message with it */
    int32_t position;
} leveret_identity;
typedef struct {
    int32_t most; /* ids that this queue remembers */
    int32_t count;
    int32_t oldest;
    int32_t newest;
    const uint8_t *header; /* whose value is the id, a short string; NULL: none */
} leveret_id_window;
typedef struct {
    leveret_identity *rows;
    int32_t *chains;
    leveret_id_window *windows;
    int32_t *left; /* Pool.places: for ids of all queues that are left, and those with last values */
    int32_t most; /* of places with last values */
    const uint8_t *properties; /* of the message that is about to be published, in 0-9-1; NULL: Python looks */
    int32_t properties_size;
    uint64_t key[2];
    uint64_t id[2]; /* of the message that is about to be published */
    int32_t read; /* whether `id` was read: 0: no; 1: the message has none; 2: it is */
    int32_t mask;
    int32_t free;
    int32_t fresh;
} leveret_identities;

/* Dead letters: see letters.h. What those of a queue have in common that die for one reason and have one route; `count` 0: an empty row. */
typedef struct {
    const uint8_t *route;
    const uint8_t *target; /* their own route */
    uint8_t *pairs;        /* behind the publisher's headers */
    int32_t route_size;
    int32_t target_size;
    int32_t pairs_size;
    int32_t time_at; /* in `pairs`: the second of the death, 8 octets */
    int32_t second;  /* that stands there, as STATE_SECONDS */
    int32_t properties_max;
    int32_t queue;
    int32_t reason;
    int32_t count; /* of targets */
    int32_t targets[4];
} leveret_letter;
typedef struct {
    leveret_letter *rows;
    int32_t mask;
    int32_t left; /* of them, in this round; a large one counts as many */
    int32_t sent; /* not counted by Python yet */
    int32_t logged_head; /* a list as that of STATE_LOGGED_HEAD: nothing that fails drops these */
    int32_t logged_tail;
    int32_t logged_octets;
    int32_t logged_count;
    int32_t logged_places;
    int32_t log_room; /* as STATE_LOG_ROOM */
    int32_t buried; /* the entry that the last message has driven out, perhaps its own */
    int64_t epoch;  /* of STATE_SECONDS */
    const uint8_t *route; /* of the message that is about to be published, with its properties; NULL: they are not here */
    const uint8_t *own;
    int32_t route_size;
    int32_t own_size;
    leveret_letter *row; /* the plan: the row; where the headers of the message stand, and their octets; octets of the letter's properties */
    int32_t at;
    int32_t size;
    int32_t properties;
    int32_t blocks;
    int32_t logs;
    uint8_t head[8192]; /* LEVERET_LETTER_HEAD */
} leveret_letters;

/* The groups of messages that belong to a consumer: see groups.h. */
typedef struct {
    uint64_t id[2];
    int32_t rule;
    int32_t queue;
    int32_t next;     /* behind it in its chain, or among those that are free: one more than its place, 0: none; so are all links to rows */
    int32_t consumer; /* whose it is, as long as one of its deliveries is held */
    int32_t newest;   /* of its deliveries, an entry; -1: the row is free */
} leveret_group;
typedef struct {
    uint64_t id[2]; /* the group of the message that stood at `position`, as `rule` has it; 0: not read */
    int32_t rule;
    int32_t position;
    int32_t has_group;
    int32_t group; /* one more than the row whose delivery it is; 0: none */
    int32_t older; /* of the row's deliveries */
    int32_t newer;
} leveret_grouped;
typedef struct {
    int32_t rule; /* its number, no other queue's and no former one's */
    const uint8_t *header; /* whose value is the group, a short string */
} leveret_group_rule;
typedef struct {
    leveret_group *rows;
    int32_t *chains;
    leveret_grouped *entries;
    leveret_group_rule *rules; /* by queue */
    uint64_t key[2];
    uint64_t id[2]; /* of the group that Python asks for */
    int32_t mask;
    int32_t free;
    int32_t fresh;
    int32_t swept;
    uint8_t head[8192]; /* LEVERET_LETTER_HEAD */
} leveret_groups;

struct leveret_output;
struct leveret_wire;

/* The connection whose basic.get is answered where it stands, as nothing goes before the reply; and its queues, by names as short strings. */
typedef struct {
    int32_t queue;
    uint8_t name[256];
} leveret_gotten;
typedef struct {
    struct leveret_output *output;
    int32_t reply_room;
    int32_t answered; /* a reply was written */
    int32_t count;
    leveret_gotten rows[4]; /* LEVERET_GOTTEN_MAX */
} leveret_getter;

/* A channel whose requests name the direct reply-to: the annotation with the address that their receivers get in its place. */
typedef struct {
    int32_t channel;
    int32_t size;
    uint8_t note[512];
} leveret_requester;

/* Everything that belongs to one broker; the memory stays where it is as long as the broker lives. */
typedef struct {
    uint8_t *arena;
    int32_t *blocks;
    int32_t *messages;
    int32_t *entries;
    int32_t *queues;
    int32_t *channels;
    int32_t *consumers;
    int32_t *state;
    int32_t *routes;
    uint8_t *route_octets;
    int32_t *route_targets;
    int32_t *chunk_pool;   /* of the log's index: first free, next fresh, left */
    leveret_ways *ways; /* NULL: none */
    leveret_identities *identities; /* NULL: no queue remembers ids */
    leveret_identities *latest; /* NULL: no queue keeps last values */
    leveret_groups *groups; /* NULL: no queue has groups */
    leveret_letters *letters; /* NULL: Python makes all dead letters */
    leveret_getter *getter; /* NULL: Python answers basic.get */
    leveret_requester *requester; /* NULL: Python reads requests */
    int32_t chunk_reserve; /* chunks that no message which passes by memory may have: core/log/chunk_index.py */
} leveret_tables;

/* The ids that a queue remembers, as core/queue/identities.py has them: see identities.h. */
void leveret_read_id(leveret_identities *known, const uint8_t *octets, int32_t size);
int32_t leveret_knows_id(const leveret_identities *known, int32_t queue);
void leveret_add_id(leveret_identities *known, int32_t queue);
void leveret_forget_id(leveret_identities *known, int32_t queue);

/* What Python asks of last values, as core/queue/features/last_value.py's Latest has it; `id` is read. -1: it is not known. */
int32_t leveret_find_id(const leveret_identities *known, int32_t queue);
void leveret_forget_gone(const leveret_tables *t, leveret_identities *known, int32_t queue);

/* What Python asks of groups, as core/queue/features/groups.py's Owners has it: have the group's id read; whose it is (a consumer, -1: nobody's);
 * an entry was delivered to a consumer, of that group or (`has_group` 0) of none; the groups that are somebody's. */
void leveret_read_group(leveret_groups *known, const uint8_t *octets, int32_t size);
int32_t leveret_owner_of(const leveret_tables *t, int32_t queue);
void leveret_own(const leveret_tables *t, int32_t queue, int32_t consumer, int32_t entry, int32_t has_group);
int32_t leveret_owned_count(const leveret_groups *known);

/* Have a row known; the octets it points to are Python's, and stay until the rows are forgotten. */
void leveret_learn_letter(leveret_letters *l, const leveret_letter *letter);
void leveret_forget_letters(leveret_letters *l);

/* Exchange the list of messages that are to be logged with that of dead letters. */
void leveret_swap_letters(const leveret_tables *t);

/* Have a matcher find the children of its nodes. */
void leveret_index(leveret_matcher *m);

/* The queues for a key, each once, in targets[0:64]: how many; 65: more than that. */
int32_t leveret_match(leveret_matcher *m, const uint8_t *key, int32_t key_size, int32_t *targets);

/* See hot.append. */
void leveret_append(const leveret_tables *t, int32_t message, const uint8_t *source, int32_t start, int32_t size);

/* See write_pushed in core/log/flat_records.py. */
int32_t leveret_write_pushed(const leveret_tables *t, uint8_t *target, int32_t at, int32_t segment, int32_t *runs, int32_t most);

/* See gather_settled in core/log/flat_records.py. */
int32_t leveret_gather_settled(const leveret_tables *t, int32_t *runs, int32_t most);

/* See live_in in core/log/flat_records.py. */
int32_t leveret_live_in(const leveret_tables *t, int32_t entry, int32_t end, int32_t segment, int32_t *live, int32_t most);

/* A window of a stream that is read back: core/stream/windows.py. `position`: of its next message; `stop`: up to where; `held`: how many it has.
 * With a `segment`, what comes back to the tail of a queue from there: core/log/beyond_memory.py; `held`: how many have. */
typedef struct {
    int64_t position;
    int64_t stop;
    int32_t queue;
    int32_t identity;
    int32_t tail;
    int32_t held;
    int32_t held_max;
    int32_t octets; /* read so far */
    int32_t octets_max;
    int32_t bodies; /* octets of the bodies among them */
    int32_t segment;
    int32_t come_back; /* ENTRY_REDELIVERED of what comes back to a queue */
    int32_t block_most; /* what the pools have in all */
    int32_t message_most;
    int32_t entry_most;
} leveret_window;

/* Read the parts of a record's payload, source[at:end], that follow each other in the window: where it stopped. */
int32_t leveret_read_window(const leveret_tables *t, leveret_window *w, const uint8_t *source, int32_t at, int32_t end);

/* Free `count` entries of a window from `entry` on: the one behind them, or NONE. */
int32_t leveret_drop_window(const leveret_tables *t, int32_t entry, int32_t count);

/* What a method does to all messages of a queue, or to all deliveries of a channel: see core/broker/engine.py, Plain. */
int32_t leveret_publish_kept(const leveret_tables *t, int32_t channel, int32_t message);

/* Publish all contents of STATE_KEPT_HEAD, which are all that the transaction of a channel keeps, or none: false, where core/broker/transaction.py is to
 * see to it. */
int32_t leveret_commit_kept(const leveret_tables *t, int32_t channel);
void leveret_purge(const leveret_tables *t, int32_t queue, int32_t most);
int32_t leveret_expire(const leveret_tables *t, int32_t queue);
void leveret_disown(const leveret_tables *t, int32_t channel, int32_t consumer);
int32_t leveret_drop_held(const leveret_tables *t, int32_t channel, int32_t queue, int32_t most);
void leveret_leave(const leveret_tables *t, int32_t channel, int32_t entry, int32_t most);
int32_t leveret_find_tag(const leveret_tables *t, int32_t channel, int32_t tag);
int32_t leveret_reach_back(const leveret_tables *t, int32_t entry, int32_t most);
int32_t leveret_reach(const leveret_tables *t, int32_t channel, int32_t tag, int32_t most);
int32_t leveret_settle(const leveret_tables *t, int32_t channel, int32_t first, int32_t last, int32_t how);

/* A body on its way from its blocks to a socket: its frames go before octets[position] of a send buffer. What its family writes behind the last
 * payload stands there. The message is referenced until then. `between`: how many are gone of the octets that the family writes before the
 * payload under way (wire->between_size; the first frame begins in the buffer, so some are gone from the beginning). */
typedef struct {
    const struct leveret_wire *wire;
    int32_t position;
    int32_t message;
    int32_t block; /* where the next octet of the body is */
    int32_t offset;
    int32_t left; /* octets of the body */
    int32_t frame_left; /* octets of the payload under way */
    int32_t between;
    int32_t number; /* the family's: what its frames are marked with */
    int32_t payload_max; /* octets of a frame */
} leveret_inset;

/* A send buffer, as core/memory/send_buffer.py has it. Those that were written to are linked, from `touched` of leveret_round. */
typedef struct leveret_output {
    struct leveret_output *next_touched;
    int32_t is_touched;
    int32_t number;
    uint8_t *octets;
    int32_t start;
    int32_t end;
    int32_t size;
    int32_t busy;
    int32_t hungry;      /* consumers that wait for room, linked by `next_short` of leveret_reader; -1: none */
    int32_t hungry_last;
    int32_t fed;
    int32_t fed_last;
    int32_t inset_least; /* bodies of so many octets are set in: it is sent by leveret_send; 0: none are */
    int32_t inset_count;
    int32_t inset_octets; /* of their bodies, that are not gone yet */
    uint8_t between[16];
    leveret_inset *insets; /* LEVERET_INSETS_MAX; NULL: none was set in yet */
} leveret_output;

/* Octets that can be written at the end of a send buffer, see SendBuffer.room. */
int32_t leveret_room(leveret_output *output);

/* The first piece of the octets to send. */
const uint8_t *leveret_pending(const leveret_tables *t, leveret_output *output, int32_t *size);

/* Have the system send the waiting octets, in as many pieces as they lie in: the number that it sent; -1: none now; 0: the peer is gone. */
int32_t leveret_send(const leveret_tables *t, const leveret_output *output, int32_t descriptor);

/* The first `count` of the waiting octets are gone. */
void leveret_sent(const leveret_tables *t, leveret_output *output, int32_t count);

/* The connection is over. */
void leveret_forget_insets(const leveret_tables *t, leveret_output *output);

/* The output is over, and perhaps its tables with it: give the memory of its insets back. */
void leveret_drop_insets(leveret_output *output);

/* Octets that a delivery of a message takes at the end of a send buffer, its body among them or set in; -1: it is never whole. */
typedef int32_t leveret_size_of(const int32_t *record, int32_t prefix_size, int32_t frame_size_max, int32_t is_inset);

/* Write a delivery: the position behind it. `output`: its body is to be set in there; NULL: it is not. */
typedef int32_t leveret_write(const leveret_tables *t, int32_t entry, int32_t channel, const uint8_t *prefix, int32_t prefix_size,
                              int32_t frame_size_max, leveret_output *output, uint8_t *target, int32_t at);

/* What a family writes: its row, see core/wire/contract.pyi, HotRow. */
typedef struct leveret_wire {
    leveret_size_of *size_of;
    /* Octets between the payloads of two frames, at most 16, and what they are before a payload of `size` octets. */
    int32_t between_size;
    void (*put_between)(uint8_t *target, int32_t number, int32_t size);
    /* See hot.pump: pump.h around `size_of` and the family's own leveret_write. `output`: `target` is its, and large bodies may be set in; NULL: none. */
    int32_t (*pump)(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size,
                    int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end, leveret_output *output);
    /* False while no delivery may begin, however much room there is; the session activates its queues later. NULL: there is no such time. */
    int32_t (*may_begin)(const uint8_t *prefix);
    int32_t is_first_only; /* deliveries that are not a message's first, or of which a part of a lifetime is over, may be made in Python */
} leveret_wire;

/* The output of a consumer's deliveries, the family that writes them, and the octets that they begin with; no prefix: nowhere yet. */
typedef struct {
    leveret_output *output;
    const leveret_wire *wire;
    const uint8_t *prefix;
    int32_t prefix_size;
    int32_t frame_size_max;
    int32_t is_short;
    int32_t next_short;
} leveret_reader;

/* A round of deliver.run. A queue's row has its consumers in order, where some have priorities the
 * highest first and the last one of each with LEVERET_LAST_OF_PRIORITY; `row_counts`: how many, 0: its turns are not for C. */
typedef struct {
    int32_t *rows;
    int32_t *row_counts;
    leveret_reader *readers;
    leveret_output *touched;
    int32_t row_size;
    int32_t turn;
    int32_t reply_room;
    int32_t turns;
    int32_t left;
    int32_t done;
    int32_t idle;
} leveret_round;

/* See SendBuffer.starve, feed and forget in core/memory/send_buffer.py. */
void leveret_starve(const leveret_round *r, leveret_output *output, int32_t consumer, int32_t count);
void leveret_feed(const leveret_tables *t, const leveret_round *r, leveret_output *output);
void leveret_forget(const leveret_round *r, leveret_output *output, int32_t consumer);

/* See Plain.next_turn in core/broker/engine.py: turns that need no thought are made here. LEVERET_LETTERS: dead letters are to be logged first. */
int32_t leveret_next_turn(const leveret_tables *t, leveret_round *r);

/* See core/serial_link/stuffing.py. */
int32_t leveret_check_16(const uint8_t *octets, int32_t size, int32_t value);
int32_t leveret_unstuff(const uint8_t *source, int32_t at, int32_t end, uint8_t *octets, int32_t *numbers);
int32_t leveret_stuff(const uint8_t *source, int32_t size, uint8_t *target, int32_t at, int32_t escaped, int32_t escaped_below);

#endif
