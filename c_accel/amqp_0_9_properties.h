/* See amqp_0_9_properties.c. */
#ifndef LEVERET_PROPERTIES_H
#define LEVERET_PROPERTIES_H

#include <stdint.h>

enum { SELECTED = 2, NO_FIELDS = -1 };

/* Of the properties between `at` and `end` the fields of the headers that are in `names` (short strings) or CC, as they stand there, in
 * target[0:room] as far as they fit: how many octets. NO_FIELDS: the way of the message does not depend on them (core/amqp_0_9/further.py). */
int32_t leveret_fields(const uint8_t *source, int32_t at, int32_t end, const uint8_t *names, int32_t names_size, uint8_t *target,
                       int32_t room);

/* Where the message-id begins in properties that were checked; its `size`, -1: there is none. */
int32_t leveret_message_id(const uint8_t *source, int32_t at, int32_t *size);

/* Where the text of a header begins in properties, its `size`; `name`: a short string. `size` -1: there is no such header, or it is void. 0: it is
 * no text, or the properties are not as they should be. */
int32_t leveret_header(const uint8_t *source, int32_t end, const uint8_t *name, int32_t *size);

/* See hot_in.check_properties. `requests`: the direct reply-to is valid too; state[KIND] has KIND_REPLY_TO then. */
int32_t leveret_check_properties(int32_t *state, const uint8_t *source, int32_t at, int32_t end, int32_t requests);

/* See hot_in.value_end, for a value of the first level. */
int32_t leveret_value_end(const uint8_t *source, int32_t at, int32_t end);

#endif
