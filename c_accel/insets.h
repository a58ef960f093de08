/* Bodies that go from their blocks to the socket: see leveret_inset in hot.h. */
#ifndef LEVERET_INSETS_H
#define LEVERET_INSETS_H

#include "queues.h"

/* Whether a body of this size is to be sent from its blocks. */
static inline int32_t wants_inset(const leveret_output *output, int32_t body)
{
    return output && output->inset_least && body >= output->inset_least;
}

/* Take memory for the insets of an output: most outputs never have one. False: there is none. */
int32_t leveret_make_insets(leveret_output *output);

enum { INSET_OCTETS_MAX = 1 << 20 };

/* Whether a body can be an inset now: a slow reader holds so many octets of the arena, or one larger body. */
static inline int32_t has_inset_room(leveret_output *output, int32_t body)
{
    if (output->inset_count == 0)
        return output->insets || leveret_make_insets(output);
    return output->inset_count < LEVERET_INSETS_MAX && output->inset_octets + body <= INSET_OCTETS_MAX;
}

/* Set a message's body in at `at`, with the cursor of the state at its begin, in frames with payloads of `payload_max` octets at most. `gone`:
 * octets of what is between two frames that do not go before the first one. What is behind the last one, the family writes there. */
void leveret_set_in(const leveret_tables *t, const leveret_wire *wire, leveret_output *output, int32_t message, int32_t payload_max,
                    int32_t number, int32_t at, int32_t gone);

#endif
