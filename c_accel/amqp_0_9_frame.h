/* Frames of AMQP 0-9-1 (section 4.2.3). */
#ifndef LEVERET_AMQP_0_9_FRAME_H
#define LEVERET_AMQP_0_9_FRAME_H

#include "octets.h"

enum { HEAD = 7, OVERHEAD = 8, END_OCTET = 0xCE }; /* octets before a payload, and with the one behind it */
enum { METHOD = 1, HEADER = 2, BODY = 3 }; /* types of frames */
enum { CLASS_BASIC = 60, BASIC_PUBLISH = 40, BASIC_GET = 70, BASIC_ACK = 80, BASIC_REJECT = 90, BASIC_NACK = 120 };
enum { CLASS_TX = 90, TX_COMMIT = 20, COMMIT_SIZE = 12 }; /* tx.commit has no arguments */

static inline void put_frame(uint8_t *target, int32_t type, int32_t channel_number, int32_t size)
{
    target[0] = (uint8_t)type;
    target[1] = (uint8_t)(channel_number >> 8);
    target[2] = (uint8_t)channel_number;
    put_size(target + 3, size);
}

#endif
