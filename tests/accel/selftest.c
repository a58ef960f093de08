/* Replays calls of the hot functions that the plain form has made (test_builds.py records them) and compares everything afterwards.
 *
 * A file is a row of records of little-endian 32-bit numbers and octets: how many tables (11), for each its octets; the function (0 ingest,
 * 1 pump, 2 append, 3 put_body, 4 write_pushed, 5 gather_settled, 9 live_in; of framing.c, with a reader's numbers as the table `state`:
 * 6 check_16, 7 unstuff, 8 stuff), its numbers (8), its two buffers (size and octets), then the answer and all tables and both buffers as
 * they have to be.
 * Needs nothing but the C library, so it runs where there is no Python: `selftest FILE` prints how many calls agreed.
 */
#include "../../c_accel/amqp_0_9.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES = 11, NUMBERS = 8 };

typedef struct {
    uint32_t size;
    uint8_t *octets;
} buffer;

static FILE *file;

static uint32_t number(void)
{
    uint8_t b[4];
    if (fread(b, 1, 4, file) != 4) {
        fprintf(stderr, "the file ends too early\n");
        exit(2);
    }
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static buffer read_buffer(void)
{
    buffer made;
    made.size = number();
    made.octets = malloc(made.size ? made.size : 1);
    if (!made.octets || fread(made.octets, 1, made.size, file) != made.size) {
        fprintf(stderr, "the file ends in a buffer of %u\n", made.size);
        exit(2);
    }
    return made;
}

static void compare(buffer here, int call, const char *what, int which)
{
    buffer expected = read_buffer();
    if (expected.size != here.size || memcmp(expected.octets, here.octets, here.size)) {
        fprintf(stderr, "call %d: %s %d differs\n", call, what, which);
        exit(1);
    }
    free(expected.octets);
    free(here.octets);
}

int main(int count, char **arguments)
{
    file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "selftest FILE\n");
        return 2;
    }
    uint32_t calls = number();
    for (uint32_t call = 0; call < calls; call++) {
        buffer all[TABLES], given[2];
        for (int at = 0; at < TABLES; at++)
            all[at] = read_buffer();
        leveret_tables t = {all[0].octets, (int32_t *)all[1].octets, (int32_t *)all[2].octets, (int32_t *)all[3].octets,
                            (int32_t *)all[4].octets, (int32_t *)all[5].octets, (int32_t *)all[6].octets, (int32_t *)all[7].octets,
                            (int32_t *)all[8].octets, all[9].octets, (int32_t *)all[10].octets, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0};
        uint32_t function = number();
        int32_t n[NUMBERS], answer = 0;
        for (int at = 0; at < NUMBERS; at++)
            n[at] = (int32_t)number();
        given[0] = read_buffer();
        given[1] = read_buffer();
        if (function == 0)
            answer = leveret_amqp_0_9_ingest(&t, (int32_t *)given[0].octets, given[1].octets);
        else if (function == 1)
            answer = leveret_amqp_0_9_wire()->pump(&t, n[0], n[1], given[0].octets, n[2], n[3], given[1].octets, n[4], n[5], NULL);
        else if (function == 2)
            leveret_append(&t, n[0], given[0].octets, n[1], n[2]);
        else if (function == 4)
            answer = leveret_write_pushed(&t, given[1].octets, n[0], n[1], (int32_t *)given[0].octets, n[2]);
        else if (function == 5)
            answer = leveret_gather_settled(&t, (int32_t *)given[1].octets, n[0]);
        else if (function == 9)
            answer = leveret_live_in(&t, n[0], n[1], n[2], (int32_t *)given[1].octets, n[3]);
        else if (function == 6)
            answer = leveret_check_16(given[0].octets, n[0], n[1]);
        else if (function == 7)
            answer = leveret_unstuff(given[0].octets, n[0], n[1], given[1].octets, t.state);
        else if (function == 8)
            answer = leveret_stuff(given[0].octets, n[0], given[1].octets, n[1], n[2], n[3]);
        else
            answer = leveret_amqp_0_9_put_body(&t, n[0], n[1], n[2], given[1].octets, n[3], n[4]);
        if (answer != (int32_t)number()) {
            fprintf(stderr, "call %u of function %u: the answer is %d\n", call, function, answer);
            return 1;
        }
        for (int at = 0; at < TABLES; at++)
            compare(all[at], (int)call, "table", at);
        for (int at = 0; at < 2; at++)
            compare(given[at], (int)call, "buffer", at);
    }
    printf("%u calls agree\n", calls);
    fclose(file);
    return 0;
}
