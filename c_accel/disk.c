/* A thread that writes and syncs. Python's own thread would wait for the interpreter at both ends: the loop has it until its step is over. */
#define _POSIX_C_SOURCE 200809L /* fdatasync */
#include "disk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { IDLE, ASKED, ENDING };

struct leveret_disk {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t state; /* and what follows: under `lock` */
    int32_t event;
    int32_t file;
    int32_t error;
    const uint8_t *octets;
    int64_t size;
    int64_t written;
};

static int32_t write_all(leveret_disk *disk)
{
    for (disk->written = 0; disk->written < disk->size;) {
        ssize_t count = write(disk->file, disk->octets + disk->written, (size_t)(disk->size - disk->written));
        if (count < 0 && errno != EINTR)
            return errno;
        disk->written += count < 0 ? 0 : count;
    }
    while (fdatasync(disk->file) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

void leveret_work_disk(leveret_disk *disk)
{
    static const uint64_t one = 1;
    pthread_mutex_lock(&disk->lock);
    while (disk->state != ENDING) {
        if (disk->state == IDLE) {
            pthread_cond_wait(&disk->changed, &disk->lock);
            continue;
        }
        pthread_mutex_unlock(&disk->lock);
        int32_t error = write_all(disk); /* nobody else looks at these fields while the state is ASKED */
        pthread_mutex_lock(&disk->lock);
        disk->error = error;
        if (disk->state == ASKED)
            disk->state = IDLE;
        pthread_cond_broadcast(&disk->changed);
        while (write(disk->event, &one, sizeof one) < 0 && errno == EINTR)
            continue;
    }
    pthread_mutex_unlock(&disk->lock);
}

leveret_disk *leveret_make_disk(int32_t event)
{
    leveret_disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return NULL;
    disk->event = event;
    pthread_mutex_init(&disk->lock, NULL);
    pthread_cond_init(&disk->changed, NULL);
    return disk;
}

void leveret_begin_write(leveret_disk *disk, int32_t file, const uint8_t *octets, int64_t size)
{
    pthread_mutex_lock(&disk->lock);
    disk->file = file;
    disk->octets = octets;
    disk->size = size;
    disk->state = ASKED;
    pthread_cond_broadcast(&disk->changed);
    pthread_mutex_unlock(&disk->lock);
}

int64_t leveret_write_ended(leveret_disk *disk, int32_t *error)
{
    pthread_mutex_lock(&disk->lock);
    int64_t written = disk->state == IDLE ? disk->written : -1;
    *error = disk->error;
    pthread_mutex_unlock(&disk->lock);
    return written;
}

void leveret_wait_write(leveret_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    while (disk->state == ASKED)
        pthread_cond_wait(&disk->changed, &disk->lock);
    pthread_mutex_unlock(&disk->lock);
}

void leveret_end_disk(leveret_disk *disk)
{
    leveret_wait_write(disk);
    pthread_mutex_lock(&disk->lock);
    disk->state = ENDING;
    pthread_cond_broadcast(&disk->changed);
    pthread_mutex_unlock(&disk->lock);
}

void leveret_drop_disk(leveret_disk *disk)
{
    pthread_cond_destroy(&disk->changed);
    pthread_mutex_destroy(&disk->lock);
    free(disk);
}
