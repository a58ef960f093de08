/* What was made last of messages, by their shape: a message that differs from an earlier one only in fields that vary (ids and times) is that one's
 * result with its own fields in their places, and is not converted anew. Which fields vary a writer says with put_free (writer.h). */
#ifndef LEVERET_SHAPES_H
#define LEVERET_SHAPES_H

#include <stdint.h>
#include <string.h>

enum { SHAPES = 8, PLACES = 4, SHAPE_FACTS = 6, SHAPE_KEY_MAX = 1024, SHAPE_MADE_MAX = 1536 };

/* Write what octets[0:size] become, always as many octets for the same size: false where they are for Python, and then perhaps some of it. */
typedef int (*leveret_fill)(uint8_t *target, const uint8_t *octets, int32_t size);

/* A field that varies: where it is in the source, and from which octet of the result on it is written. */
typedef struct {
    const uint8_t *source;
    int32_t size;
    int32_t target;
    leveret_fill fill;
} leveret_place;

typedef struct {
    int32_t count;
    leveret_place places[PLACES];
} leveret_places;

/* A result, what it was made of, and the places in both: in the order of the key, whose octets they name. `facts`: all else that it was made of. */
typedef struct {
    int32_t facts[SHAPE_FACTS];
    int32_t key_size;
    int32_t size; /* 0: there is none */
    leveret_places free;
    uint8_t key[SHAPE_KEY_MAX];
    uint8_t made[SHAPE_MADE_MAX];
} leveret_shape;

typedef struct {
    int32_t next; /* that the next one replaces */
    leveret_shape rows[SHAPES];
} leveret_shapes;

/* Whether a key of the same size differs from a shape's in fields that vary alone. */
static inline int has_shape(const leveret_shape *shape, const uint8_t *key)
{
    int32_t at = 0;
    for (const leveret_place *place = shape->free.places; place < shape->free.places + shape->free.count; place++) {
        int32_t start = (int32_t)(place->source - shape->key);
        if (memcmp(shape->key + at, key + at, (size_t)(start - at)))
            return 0;
        at = start + place->size;
    }
    return !memcmp(shape->key + at, key + at, (size_t)(shape->key_size - at));
}

/* What is made of key[0:key_size] and `facts`, in target[0:room], by a shape that is known: how many octets, or -1. */
static inline int32_t made_by_shape(const leveret_shapes *known, const int32_t *facts, const uint8_t *key, int32_t key_size, uint8_t *target, int32_t room)
{
    for (const leveret_shape *shape = known->rows; shape < known->rows + SHAPES; shape++) {
        if (!shape->size || shape->key_size != key_size || shape->size > room || memcmp(shape->facts, facts, sizeof shape->facts) || !has_shape(shape, key))
            continue;
        memcpy(target, shape->made, (size_t)shape->size);
        for (const leveret_place *place = shape->free.places; place < shape->free.places + shape->free.count; place++)
            if (!place->fill(target + place->target, key + (place->source - shape->key), place->size))
                return -1;
        return shape->size;
    }
    return -1;
}

/* Know the shape of what was made, made[0:size], of a key in which the fields of `free` are; size -1: nothing was. */
static inline void keep_shape(leveret_shapes *known, const int32_t *facts, const uint8_t *key, int32_t key_size, const uint8_t *made, int32_t size,
                              const leveret_places *free)
{
    if (key_size > SHAPE_KEY_MAX || size <= 0 || size > SHAPE_MADE_MAX)
        return;
    leveret_shape *shape = known->rows + known->next;
    known->next = (known->next + 1) % SHAPES;
    memcpy(shape->facts, facts, sizeof shape->facts);
    memcpy(shape->key, key, (size_t)key_size);
    memcpy(shape->made, made, (size_t)size);
    shape->key_size = key_size;
    shape->size = size;
    shape->free.count = 0;
    for (const leveret_place *place = free->places; place < free->places + free->count; place++) {
        int32_t at = shape->free.count++;
        for (; at > 0 && shape->free.places[at - 1].source - shape->key > place->source - key; at--)
            shape->free.places[at] = shape->free.places[at - 1];
        shape->free.places[at] = *place;
        shape->free.places[at].source = shape->key + (place->source - key);
    }
}

#endif
