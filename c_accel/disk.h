/* Writes that become durable beside the loop, in a thread that needs nothing of the interpreter: see disk.c. */
#ifndef LEVERET_DISK_H
#define LEVERET_DISK_H

#include <stdint.h>

typedef struct leveret_disk leveret_disk;

/* A thread for one write at a time; `event`, an eventfd, can be read when one has ended. NULL: the system gives none. */
leveret_disk *leveret_make_disk(int32_t event);

/* Begin to write octets, which stay where they are until that has ended, at the end of a file, and to sync them. */
void leveret_begin_write(leveret_disk *disk, int32_t file, const uint8_t *octets, int64_t size);

/* Octets of the last write that the file has, -1 while the write is under way. `error`: of the system, 0 for none; with all octets written, of the sync. */
int64_t leveret_write_ended(leveret_disk *disk, int32_t *error);

/* Wait until the last write has ended. */
void leveret_wait_write(leveret_disk *disk);

/* End the thread, behind what it does, and free it. */
void leveret_drop_disk(leveret_disk *disk);

#endif
