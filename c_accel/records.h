/* See records.c. */
#ifndef LEVERET_RECORDS_H
#define LEVERET_RECORDS_H

enum { RECORD_SIZE = 33, PLACE_SIZE = 12 }; /* octets of a message's record before its places, with those of the group, and of each place */

#endif
