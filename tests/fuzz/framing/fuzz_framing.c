/* libFuzzer on the framing of a serial line in C: any octets off the line, and any octets onto it and off again.
 *
 * The first octets of an input say how many octets a reader has room for, in pieces of what size the rest arrives, and what is escaped.
 * Every buffer is a block of its own size, so that the address sanitizer sees one octet too many. Built and run by tests/fuzz/ingest/run.py.
 */
#include "../../../c_accel/hot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILL, ROOM, TURN, ENDED, NUMBERS };
enum { FLAG = 0x7E, HEAD = 3 };

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

static uint8_t *block(size_t size)
{
    uint8_t *made = calloc(size ? size : 1, 1);
    require(made != NULL, "memory");
    return made;
}

/* CRC-16/X.25 bit by bit. */
static int32_t slow_check(const uint8_t *octets, int32_t size, int32_t value)
{
    value ^= 0xFFFF;
    for (int32_t at = 0; at < size; at++) {
        value ^= octets[at];
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0x8408 : value >> 1;
    }
    return value ^ 0xFFFF;
}

/* Everything that a reader of `room` octets finds, in pieces of `step`: the frames one after the other, a flag behind each, and what is left. */
static size_t read_line(const uint8_t *line, int32_t size, int32_t room, int32_t step, uint8_t *found)
{
    int32_t numbers[NUMBERS] = {0, room, 0, 0};
    uint8_t *octets = block((size_t)room);
    size_t made = 0;
    for (int32_t begin = 0; begin < size; begin += step) {
        int32_t count = size - begin < step ? size - begin : step, at = 0;
        uint8_t *piece = block((size_t)count);
        memcpy(piece, line + begin, (size_t)count);
        while (at < count) {
            int32_t stopped = leveret_unstuff(piece, at, count, octets, numbers);
            require(stopped > at && stopped <= count, "it goes on and stays in the piece");
            require(numbers[ENDED] ? piece[stopped - 1] == FLAG : stopped == count, "it stops behind a flag or at the end");
            require(numbers[ROOM] == room && numbers[FILL] >= 0 && numbers[FILL] <= room + 1, "a frame and one octet at most");
            at = stopped;
            if (numbers[ENDED] || begin + at == size) {
                size_t kept = (size_t)(numbers[FILL] > room ? room : numbers[FILL]);
                memcpy(found + made, octets, kept);
                made += kept;
                found[made++] = (uint8_t)(numbers[FILL] > room ? 2 : numbers[TURN]);
                numbers[FILL] = numbers[TURN] = numbers[ENDED] = 0;
            }
        }
        free(piece);
    }
    free(octets);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t given)
{
    if (given < HEAD)
        return 0;
    const uint8_t *line = data + HEAD;
    int32_t size = (int32_t)given - HEAD, room = data[0], step = 1 + data[1];
    int32_t escaped = data[2] & 1 ? 3 : 0x7D, escaped_below = data[2] & 2 ? 0x20 : 0;

    uint8_t *whole = block(2 * given), *parts = block(2 * given);
    size_t made = read_line(line, size, room, size + 1, whole);
    require(made == read_line(line, size, room, step, parts) && !memcmp(whole, parts, made), "pieces are the whole");

    uint8_t *source = block((size_t)size), *target = block(2 * (size_t)size + 1);
    memcpy(source, line, (size_t)size);
    int32_t end = leveret_stuff(source, size, target, 0, escaped, escaped_below);
    require(end >= size && end <= 2 * size, "what goes onto the line");
    for (int32_t at = 0; at < end; at++)
        require(target[at] != FLAG && (escaped != 3 || target[at] != 3) && target[at] >= escaped_below, "what must not be on the line");
    target[end] = FLAG;
    made = read_line(target, end + 1, size, step, parts);
    require(made == (size_t)size + 1 && !memcmp(parts, source, (size_t)size) && parts[size] == 0, "what goes on the line comes off it");

    int32_t value = data[0] << 8 | data[1];
    require(leveret_check_16(source, size, value) == slow_check(source, size, value), "the check");
    free(source);
    free(target);
    free(whole);
    free(parts);
    return 0;
}
