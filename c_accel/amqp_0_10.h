/* What reads and writes the octets of AMQP 0-10 where that needs no thought: core/amqp_0_10/hot_row.py calls it. */
#ifndef LEVERET_AMQP_0_10_H
#define LEVERET_AMQP_0_10_H

#include "hot.h"

#define LEVERET_KEYS_MAX 16

/* What ingest is told of a session, and what it has found: the table of core/amqp_0_10/hot_layout.py, which says what each is. */
typedef struct {
    int32_t record;
    int32_t lead;
    int32_t exchange;
    int32_t most;
    int32_t taken;
    int32_t route;
    int32_t keys[16]; /* LEVERET_KEYS_MAX */
} leveret_amqp_0_10_run;

/* See core/amqp_0_10/hot_in.py. `lead`: the frame of the transfers' command; `way`: where they go, 512 octets. */
int32_t leveret_amqp_0_10_ingest(const leveret_tables *t, leveret_amqp_0_10_run *run, const uint8_t *lead, uint8_t *way, const uint8_t *source);

/* See core/amqp_0_10/hot_transfers.py. */
int32_t leveret_amqp_0_10_pump(const leveret_tables *t, int32_t consumer, int32_t limit, const uint8_t *lead, int32_t lead_size, int32_t frame_size_max,
                               uint8_t *target, int32_t at, int32_t end);

/* One range of ids, serial numbers of 32 bits. */
typedef struct {
    int32_t is_any;
    uint32_t first;
    uint32_t last;
} leveret_amqp_0_10_said;

/* What a peer says of the commands of a session. */
typedef struct {
    int32_t record;   /* the session's */
    int32_t number;   /* the channel of its frames */
    int32_t most;     /* commands that may be taken */
    int32_t accepted; /* how many were */
    int32_t flushes;
    leveret_amqp_0_10_said completed; /* of ours */
    leveret_amqp_0_10_said known;     /* of the peer's, that it knows to be completed */
} leveret_amqp_0_10_answers;

/* Take message.accept, session.completed and known-completed, each of one range, and session.flush of what is completed from
 * source[state[AT]:state[END]]: ASK, TURN_OVER. What is completed or known is noted alone, each as one range. */
int32_t leveret_amqp_0_10_settle(const leveret_tables *t, leveret_amqp_0_10_answers *answers, const uint8_t *source);

#endif
