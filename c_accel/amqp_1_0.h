/* What reads and writes the octets of AMQP 1.0 where that needs no thought: core/amqp_1_0/hot_row.py calls it. */
#ifndef LEVERET_AMQP_1_0_H
#define LEVERET_AMQP_1_0_H

#include "hot.h"

/* What Python and C count together of a session (section 2.5.6); `is_held`: a delivery is half written, and none begins. */
typedef struct {
    int64_t remote_incoming_window;
    int64_t remote_outgoing_window;
    uint32_t next_outgoing_id;
    uint32_t next_incoming_id;
    int32_t is_held;
} leveret_amqp_1_0_windows;

/* A link that C delivers to by itself, a reader's `prefix`: the octets of its transfers up to their delivery-id, and what the others are. */
typedef struct {
    uint8_t prefix[24];
    int32_t prefix_size;
    int32_t settled;
    uint32_t delivery_count;
    leveret_amqp_1_0_windows *windows;
} leveret_amqp_1_0_sender;

/* A session, and the link whose transfers come. Ids are serial numbers of 32 bits. */
typedef struct {
    int32_t channel;     /* the frames' */
    int32_t record;      /* the session's */
    int32_t handle;      /* the link's; -1: no transfer is taken */
    int32_t route_size;  /* octets of where its messages go (core/message/route.py) */
    int32_t settles;     /* snd-settle-mode: 0 unsettled, 1 settled, 2 mixed */
    int32_t is_next;     /* the delivery-id that comes next is known */
    uint32_t next_id;
    int32_t credit;      /* transfers that may be taken */
    int32_t taken;       /* how many were, in a row of delivery-ids that ends before next_id */
    int32_t is_settled;  /* all of them were settled by their sender */
    int32_t may_accept;  /* dispositions of accepted transfers may be written at once: nothing goes before them, and they wait for nothing */
    int32_t accepted;    /* transfers of `taken` whose disposition C has written */
    leveret_output *output;
    leveret_amqp_1_0_windows *windows;
    leveret_amqp_1_0_sender *receiver; /* the link whose flows are processed; NULL: none */
    int32_t receiver_handle;
    int32_t receiver_consumer;
    /* A flow of the peer's about another link (section 2.7.4), which asks for no answer: octets of its frame, 0: none was read; its fields. */
    int32_t flow_size;
    int32_t flow_handle;
    uint32_t flow_next_incoming_id;
    uint32_t flow_incoming_window;
    uint32_t flow_next_outgoing_id;
    uint32_t flow_outgoing_window;
    uint32_t flow_delivery_count;
    uint32_t flow_link_credit;
} leveret_amqp_1_0_link;

/* Take transfers of the link, each a whole message, and dispositions of the session from source[state[AT]:state[END]]: INCOMPLETE, ASK, ASK_ROUTE or
 * TURN_OVER. Until all of a frame has been looked at nothing is changed. A flow of the receiver's is processed; one of another link is ASK, and its
 * fields are in `link`. */
int32_t leveret_amqp_1_0_ingest(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *route, const uint8_t *source);

/* Read up to `room` octets from a socket behind source[state[END]], and ingest: the octets read; -1: none now; 0: the peer is gone. `answer`: of ingest. */
int32_t leveret_amqp_1_0_take_in(const leveret_tables *t, leveret_amqp_1_0_link *link, const uint8_t *route, uint8_t *source, int32_t room,
                                 int32_t descriptor, int32_t *answer);

/* Deliver up to `limit` messages of a consumer's queue into target[at:end], as hot.pump: the position behind them. `prefix`: a transfer's octets up to its
 * delivery-id; `settled`: they leave settled; `noted`: each message has its route in its annotations. It stops at the first message that is not for C:
 * see leveret_amqp_1_0_head. */
int32_t leveret_amqp_1_0_deliver(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *prefix, int32_t prefix_size, int32_t settled,
                                 int32_t noted, int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end);

/* The family's row for turns.c. */
const leveret_wire *leveret_amqp_1_0_wire(void);

/* A reader of a stream in its turn: where it stands, up to where it may read, how its transfers begin and end, and what it got. */
typedef struct {
    int32_t consumer;
    int32_t most;
    int32_t cursor;
    int64_t offset;
    int64_t end;
    int32_t delivered;      /* the message that stands for all of the stream's that are not settled */
    int32_t tells_position; /* with Event Hubs' annotations */
    int32_t nulls;          /* at the end of a transfer's fields */
    int32_t settled;
    int32_t made;
    int32_t first; /* entries of the deliveries */
    int32_t last;
} leveret_amqp_1_0_reading;

/* Deliver from a stream in target[at:end]: the position behind it. It ends before a message that is not whole there, or not as it was published. */
int32_t leveret_amqp_1_0_read_stream(const leveret_tables *t, leveret_amqp_1_0_reading *r, const uint8_t *prefix, int32_t prefix_size,
                                     int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end);

/* The octets before the body of a stream's message, with its offset among its annotations, and with Event Hubs' where it tells its position: how many;
 * -1: core/amqp_1_0/convert.py makes them. */
int32_t leveret_amqp_1_0_head_at(const leveret_tables *t, int32_t message, int64_t offset, int32_t tells_position, uint8_t *target, int32_t room);

/* The octets before the body of a message that a receiver gets otherwise than it is stored, in target[0:room]: how many, -1: core/amqp_1_0/convert.py
 * makes them. `failed`: deliveries before this one. */
int32_t leveret_amqp_1_0_head(const leveret_tables *t, int32_t message, int32_t failed, int32_t noted, uint8_t *target, int32_t room);

#endif
