/* What is done to every octet of a serial line: core/serial_link/stuffing.py. */
#include "hot.h"

enum { FLAG = 0x7E, ESCAPE = 0x7D, TURNED = 0x20 };
enum { FILL, ROOM, TURN, ENDED };

int32_t leveret_check_16(const uint8_t *octets, int32_t size, int32_t value)
{
    uint32_t check = (uint32_t)value ^ 0xFFFF;
    for (int32_t at = 0; at < size; at++) {
        uint32_t octet = (octets[at] ^ check) & 0xFF;
        octet ^= octet << 4 & 0xFF; /* the remainder of 0x8408 for this octet, without a table */
        check = check >> 8 ^ octet << 8 ^ octet << 3 ^ octet >> 4;
    }
    return (int32_t)(check ^ 0xFFFF);
}

int32_t leveret_unstuff(const uint8_t *source, int32_t at, int32_t end, uint8_t *octets, int32_t *numbers)
{
    int32_t fill = numbers[FILL], room = numbers[ROOM], turn = numbers[TURN];
    while (at < end) {
        uint8_t octet = source[at++];
        if (octet == FLAG) {
            numbers[ENDED] = 1;
            break;
        }
        if (octet == ESCAPE) {
            turn = 1;
            continue;
        }
        if (fill < room)
            octets[fill] = turn ? octet ^ TURNED : octet;
        fill += fill <= room;
        turn = 0;
    }
    numbers[FILL] = fill;
    numbers[TURN] = turn;
    return at;
}

int32_t leveret_stuff(const uint8_t *source, int32_t size, uint8_t *target, int32_t at, int32_t escaped, int32_t escaped_below)
{
    for (int32_t index = 0; index < size; index++) {
        uint8_t octet = source[index];
        if (octet == FLAG || octet == ESCAPE || octet == escaped || octet < escaped_below) {
            target[at++] = ESCAPE;
            octet ^= TURNED;
        }
        target[at++] = octet;
    }
    return at;
}
