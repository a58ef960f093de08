/* Many records of a stream in one message, the loops of core/amqp_0_9/packed.py. */
#include "amqp_0_9.h"
#include "messages.h"
#include "octets.h"

enum { HEAD_SIZE = 16, COLUMNS_SIZE = 20 };

void leveret_amqp_0_9_pack_reach(const leveret_tables *t, int32_t *numbers)
{
    int32_t entry = numbers[0];
    int32_t left = numbers[1];
    int32_t octets_max = numbers[2];
    int32_t count = 0;
    int32_t size = HEAD_SIZE;
    while (entry >= 0 && left > 0) {
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        if (record[MESSAGE_KIND] & KIND_REWORKED)
            break;
        int32_t more = COLUMNS_SIZE + record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES] + record[MESSAGE_BODY];
        if (count > 0 && more > octets_max - size)
            break;
        size += more;
        count += 1;
        left -= 1;
        entry = t->entries[entry + ENTRY_NEXT];
    }
    numbers[0] = entry;
    numbers[1] = count;
    numbers[2] = size;
}

void leveret_amqp_0_9_pack(const leveret_tables *t, int32_t entry, int32_t count, uint8_t *target)
{
    int32_t block_size = t->state[STATE_BLOCK_SIZE];
    int32_t column = 4 * count;
    int32_t at = HEAD_SIZE + count * COLUMNS_SIZE;
    for (uint8_t *place = target + HEAD_SIZE; place < target + HEAD_SIZE + column; place += 4) {
        const int32_t *record = t->messages + t->entries[entry + ENTRY_MESSAGE];
        int32_t whole = record[MESSAGE_ROUTE] + record[MESSAGE_PROPERTIES] + record[MESSAGE_BODY];
        put_size(place, (int32_t)((uint32_t)record[MESSAGE_ARRIVED] + EPOCH));
        put_size(place + column, record[MESSAGE_ROUTE]);
        put_size(place + 2 * column, record[MESSAGE_PROPERTIES]);
        put_size(place + 3 * column, record[MESSAGE_BODY]);
        put_size(place + 4 * column, record[MESSAGE_KIND]);
        if (whole <= block_size)
            memcpy(target + at, t->arena + (size_t)record[MESSAGE_FIRST] * (size_t)block_size, (size_t)whole);
        else
            extract(t, record[MESSAGE_FIRST], 0, target, at, whole);
        at += whole;
        entry = t->entries[entry + ENTRY_NEXT];
    }
}
