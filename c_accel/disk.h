/* Writes that become durable beside the loop, in a thread that needs nothing of the interpreter: see disk.c. */
#ifndef LEVERET_DISK_H
#define LEVERET_DISK_H

#include <stdint.h>

typedef struct leveret_disk leveret_disk;

/* What a thread of its own does one write at a time for; `event`, an eventfd, can be read when one has ended. NULL: no memory. */
leveret_disk *leveret_make_disk(int32_t event);

/* What the thread does, until leveret_end_disk. Whoever calls it starts the thread: pthread_create would bind wheels to a C library of 2021. */
void leveret_work_disk(leveret_disk *disk);

/* Begin to write octets, which stay where they are until that has ended, at the end of a file, and to sync them. */
void leveret_begin_write(leveret_disk *disk, int32_t file, const uint8_t *octets, int64_t size);

/* Octets of the last write that the file has, -1 while the write is under way. `error`: of the system, 0 for none; with all octets written, of the sync. */
int64_t leveret_write_ended(leveret_disk *disk, int32_t *error);

/* Wait until the last write has ended. */
void leveret_wait_write(leveret_disk *disk);

/* Have the thread end, behind what it does. */
void leveret_end_disk(leveret_disk *disk);

/* Free it, behind the thread's end. */
void leveret_drop_disk(leveret_disk *disk);

#endif
