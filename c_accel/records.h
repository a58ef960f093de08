/* See records.c. */
#ifndef LEVERET_RECORDS_H
#define LEVERET_RECORDS_H

enum { RECORD_HEAD = 33 }; /* octets before route, properties and body of a message in one place, with those of the group */

#endif
