/* What reads and writes the octets of the drafts of 2005: core/amqp_0_9/drafts/hot_in_quicker.py and hot_out_quicker.py in C. */
#ifndef LEVERET_AMQP_0_9_DRAFTS_H
#define LEVERET_AMQP_0_9_DRAFTS_H

#include "hot.h"

/* A session. `scratch`: of one publish with its content as frames of 0-9-1, `asked` octets of them where only its route is not cached. */
typedef struct {
    uint8_t *scratch;
    int32_t scratch_size;
    int32_t asked;
    int32_t is_short; /* it speaks 0.9a5 */
    uint8_t may_write[256]; /* by the number of its tickets */
} leveret_draft;

const leveret_wire *leveret_drafts_wire(void);

/* See hot_in.ingest; the positions in the state are those of the draft's frames. */
int32_t leveret_drafts_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source, leveret_draft *draft);

/* Properties of class jms, octets[0:size], as those of class basic in target[0:room]: how many octets, or -1: Python reads them. `destination`: where the
 * short string stands that is one (0.9a5), -1: nowhere. */
int32_t leveret_drafts_write_basic(const uint8_t *octets, int32_t size, int32_t is_short, uint8_t *target, int32_t room, int32_t *destination);

/* Properties of class basic, which are valid, as those of class jms in target[0:room]: how many octets, or -1: Python writes them. `destination`: a short string, of 0.9a5; NULL:
 * it is 0.9r1. */
int32_t leveret_drafts_write_jms(const uint8_t *octets, const uint8_t *destination, uint8_t *target, int32_t room);

#endif
