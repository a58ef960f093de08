/* What reads and writes the octets of AMQP 0-9-1: core/amqp_0_9/hot_in.py, hot_out.py and packed.py in C. */
#ifndef LEVERET_AMQP_0_9_H
#define LEVERET_AMQP_0_9_H

#include "hot.h"

const leveret_wire *leveret_amqp_0_9_wire(void);

/* See hot_in.ingest. */
int32_t leveret_amqp_0_9_ingest(const leveret_tables *t, const int32_t *numbers, const uint8_t *source);

/* See hot_out.put_body. */
int32_t leveret_amqp_0_9_put_body(const leveret_tables *t, int32_t left, int32_t frame_size_max, int32_t channel_number, uint8_t *target,
                                  int32_t at, int32_t end);

/* The properties of class basic of a message that another version has published, in target[0:room]: how many octets; -1: core/amqp_0_9/foreign.py makes
 * them. */
int32_t leveret_amqp_0_9_converted(const leveret_tables *t, const int32_t *record, uint8_t *target, int32_t room);

/* A reader of a stream in its turn: where it stands, up to where it may read, what it wants (texts, each with its size in four octets before it; NULL:
 * all), and what it got. */
typedef struct {
    int32_t consumer;
    int32_t most;
    int32_t looks; /* messages that its filter may let pass */
    int32_t cursor;
    int64_t offset;
    int64_t end;
    int32_t delivered; /* the message that stands for all of the stream's that are not settled */
    int32_t large; /* bodies of so many octets are not written here; 0: all are */
    const uint8_t *filter;
    int32_t filter_size;
    int32_t unfiltered;
    int32_t made;
    int32_t looked_at;
} leveret_amqp_0_9_reading;

/* Deliver from a stream in target[at:end]: the position behind it. It ends before a record that is not whole there, or not as it was published. */
int32_t leveret_amqp_0_9_read_stream(const leveret_tables *t, leveret_amqp_0_9_reading *r, const uint8_t *prefix, int32_t prefix_size,
                                     int32_t frame_size_max, uint8_t *target, int32_t at, int32_t end);

/* How far a pack reaches, at most to a record with annotations: `numbers` is the first entry, records at most, octets at most; then the entry
 * behind, the records, the octets. */
void leveret_amqp_0_9_pack_reach(const leveret_tables *t, int32_t *numbers);

/* A pack but for its first 16 octets, see amqp_0_9/packed.py. */
void leveret_amqp_0_9_pack(const leveret_tables *t, int32_t entry, int32_t count, uint8_t *target);

/* A body that arrives: its message (-1: none is under way) and channel, the largest frame, and the octets of it that are to come. `frame_left`: octets of the
 * frame under way, 0 at its end octet, -1 before the next one. `octets` is the connection's receive buffer, with no more than a part of the next frame's head;
 * frames of less than `least` octets (`frame_size`: of the last that was not the content's last) are read through it. */
typedef struct {
    uint8_t *octets;
    int32_t size;
    int32_t start;
    int32_t end;
    int32_t message;
    int32_t channel; /* its record */
    int32_t channel_number;
    int32_t is_mandatory;
    int32_t frame_size_max;
    int32_t body_left;
    int32_t frame_left;
    int32_t frame_size;
    int32_t least;
    int32_t goes_on; /* what follows a whole content is for C, and C may publish it */
    int32_t done; /* contents that were published */
    int32_t pieces; /* in which octets of bodies came since blocks were looked at last */
    int32_t octets_in;
} leveret_intake;

/* The publish at state[AT] of the receive buffer has a body in large frames that is not whole: take its method and header, and have it under way. False:
 * it is not for C, or no such publish. */
int32_t leveret_amqp_0_9_begin(const leveret_tables *t, const int32_t *numbers, leveret_intake *in);

/* Take the octets of a body that are in the receive buffer. */
void leveret_amqp_0_9_take_buffered(const leveret_tables *t, leveret_intake *in);

/* All of a content is in its blocks: publish it. False: it is not for C. */
int32_t leveret_amqp_0_9_finish(const leveret_tables *t, const leveret_intake *in);

/* Read the rest of a body from a socket, into its blocks, and at most a few KiB behind it, into the receive buffer: the octets read; -1: there
 * are none now; 0: the peer is gone. With `goes_on` the contents behind it, too, and what else `ingest` takes; its parameters are in the state.
 * It stops before the last octet of a content that is not for C, a frame's end, and at any frame but the next of the body. */
int32_t leveret_amqp_0_9_take_in(const leveret_tables *t, leveret_intake *in, const int32_t *numbers, int32_t descriptor);

/* A connection of which C reads what has come into its empty receive buffer (`octets`, `size`) and processes it; its parameters are those of `ingest`. */
typedef struct {
    uint8_t *octets;
    const int32_t *numbers;
    int32_t size;
    int32_t number_count;
    int32_t frame_size_max;
    int32_t user;
    int32_t descriptor;
    int32_t transaction; /* a channel whose transaction keeps nothing: C may commit what comes in whole; -1: there is none */
    int32_t got;         /* octets; -1: none now; 0: the peer is gone */
    int32_t at;          /* so many of them are processed */
    int32_t counted;     /* of the channels that have confirms to write the first, as STATE_COUNTED_HEAD */
    int32_t commits;     /* of `transaction`, to be answered */
    int32_t kept;        /* the first content that a transaction keeps from now on, as STATE_KEPT_HEAD, and its channel */
    int32_t kept_channel;
} leveret_amqp_0_9_ready;

/* Read and process once for each row, with a turn's `effort` each. What is to be logged is in the state then, of all of them. */
void leveret_amqp_0_9_read_ready(const leveret_tables *t, leveret_amqp_0_9_ready *rows, int32_t count, int32_t effort);

/* Have the system send what waits in these outputs, without insets, as far as it takes it now. An error is left to who tries again. */
void leveret_send_ready(leveret_output **outputs, const int32_t *descriptors, int32_t count);

#endif
