/* The limit that the bench compares with: a relay that only rewrites frames. One thread, one epoll loop, no queue, no memory, no checks.
 *
 *     gcc -O2 -o relay relay.c && ./relay [blind]        prints `ready PORT`; ends with its standard input
 *
 * It answers what `leveret perf` asks with the replies that AMQP 0-9-1 has for it, and turns each basic.publish that has come whole into a
 * basic.deliver in the send buffer of its queue's consumer; with no room there it stops reading. A consumer that acknowledges gets no more
 * than its prefetch of messages that it has not acknowledged (`blind`: as many as come, its acknowledgements are not looked at). Confirms:
 * one basic.ack for all that a read brought. It is no broker: what it is not asked by the bench it does not know, and it trusts its peers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CONNECTIONS = 64, QUEUES = 1024, SLOTS = 8192, IN_SIZE = 4 << 20, OUT_SIZE = 4 << 20, WINDOW = 65536 };
enum { FLOWS, NO_ROOM, NO_CREDIT };

struct connection {
    int fd, confirming, greeted, stuck;
    uint32_t prefetch, unsettled; /* prefetch 0: sent to without bound */
    uint64_t published, confirmed, delivered, lowest; /* lowest: the first tag that may be unsettled */
    uint8_t *settled;                                 /* by tag % WINDOW */
    uint32_t in_end, out_start, out_end;
    uint8_t *in, *out;
};
struct queue {
    char name[256];
    struct connection *consumer;
};
struct binding {
    char key[256];
    struct queue *queue;
};

static struct connection connections[CONNECTIONS];
static struct queue queues[QUEUES];
static int queue_count, epoll, blind;
static struct binding bindings[SLOTS];

static uint32_t get32(const uint8_t *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static void put32(uint8_t *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(n >> (24 - 8 * i));
}

static void put64(uint8_t *at, uint64_t n)
{
    put32(at, (uint32_t)(n >> 32));
    put32(at + 4, (uint32_t)n);
}

static void text_of(char *target, const uint8_t *shortstr)
{
    memcpy(target, shortstr + 1, shortstr[0]);
    target[shortstr[0]] = 0;
}

static struct binding *slot_of(const uint8_t *key)
{
    uint32_t hash = 2166136261u;
    for (int i = 1; i <= key[0]; i++)
        hash = (hash ^ key[i]) * 16777619u;
    for (;; hash++) {
        struct binding *found = &bindings[hash % SLOTS];
        if (!found->queue || (strlen(found->key) == key[0] && !memcmp(found->key, key + 1, key[0])))
            return found;
    }
}

static struct queue *queue_of(const uint8_t *name)
{
    struct binding *slot = slot_of(name);
    if (!slot->queue) {
        struct queue *fresh = &queues[queue_count++ % QUEUES];
        text_of(fresh->name, name);
        memcpy(slot->key, fresh->name, sizeof slot->key);
        slot->queue = fresh;
    }
    return slot->queue;
}

static uint32_t room(struct connection *c)
{
    if (c->out_start && OUT_SIZE - c->out_end < OUT_SIZE / 2) {
        memmove(c->out, c->out + c->out_start, c->out_end - c->out_start);
        c->out_end -= c->out_start;
        c->out_start = 0;
    }
    return OUT_SIZE - c->out_end;
}

/* basic.ack at its arguments. */
static void settle(struct connection *c, const uint8_t *at)
{
    uint64_t tag = (uint64_t)get32(at) << 32 | get32(at + 4);
    uint64_t last = tag ? tag : c->delivered;
    for (uint64_t each = at[8] & 1 ? c->lowest : last; each <= last; each++) {
        c->unsettled -= !c->settled[each % WINDOW];
        c->settled[each % WINDOW] = 1;
    }
    while (c->lowest <= c->delivered && c->settled[c->lowest % WINDOW])
        c->lowest++;
}

static void reply(struct connection *c, int channel, uint32_t code, const void *arguments, uint32_t size)
{
    uint8_t *at = c->out + c->out_end;
    at[0] = 1;
    at[1] = 0;
    at[2] = (uint8_t)channel;
    put32(at + 3, size + 4);
    put32(at + 7, code);
    memcpy(at + 11, arguments, size);
    at[11 + size] = 0xCE;
    c->out_end += size + 12;
}

/* A method that is no publish; `at` is behind its class and method. */
static void answer(struct connection *c, int channel, uint32_t code, const uint8_t *at)
{
    static const uint8_t zeros[16];
    uint8_t text[300] = {0};
    switch (code) {
    case 10 << 16 | 11: reply(c, 0, 10 << 16 | 30, "\x07\xFF\x00\x02\x00\x00\x00\x00", 8); break;
    case 10 << 16 | 40: reply(c, 0, 10 << 16 | 41, zeros, 1); break;
    case 10 << 16 | 50: reply(c, 0, 10 << 16 | 51, zeros, 0); break;
    case 20 << 16 | 10: reply(c, channel, 20 << 16 | 11, zeros, 4); break;
    case 20 << 16 | 40: reply(c, channel, 20 << 16 | 41, zeros, 0); break;
    case 40 << 16 | 10: reply(c, channel, 40 << 16 | 11, zeros, 0); break;
    case 40 << 16 | 20: reply(c, channel, 40 << 16 | 21, zeros, 0); break;
    case 50 << 16 | 10:
        queue_of(at + 2);
        memcpy(text, at + 2, at[2] + 1u);
        reply(c, channel, 50 << 16 | 11, text, at[2] + 9u);
        break;
    case 50 << 16 | 20: {
        const uint8_t *exchange = at + 3 + at[2], *key = exchange + 1 + exchange[0];
        struct binding *slot = slot_of(key);
        text_of(slot->key, key);
        slot->queue = queue_of(at + 2);
        reply(c, channel, 50 << 16 | 21, zeros, 0);
        break;
    }
    case 50 << 16 | 30: reply(c, channel, 50 << 16 | 31, zeros, 4); break;
    case 50 << 16 | 40: reply(c, channel, 50 << 16 | 41, zeros, 4); break;
    case 60 << 16 | 10:
        c->prefetch = blind ? 0 : (uint32_t)(at[4] << 8 | at[5]);
        reply(c, channel, 60 << 16 | 11, zeros, 0);
        break;
    case 60 << 16 | 20:
        queue_of(at + 2)->consumer = c;
        if (at[4 + at[2] + at[3 + at[2]]] & 2) /* no-ack */
            c->prefetch = 0;
        reply(c, channel, 60 << 16 | 21, "\x01t", 2);
        break;
    case 60 << 16 | 80:
        if (c->prefetch)
            settle(c, at);
        break;
    case 85 << 16 | 10:
        c->confirming = 1;
        reply(c, channel, 85 << 16 | 11, zeros, 0);
        break;
    default: break;
    }
}

/* Deliver the publish `at` (its method's arguments) with `content` to one consumer. */
static void deliver(struct connection *target, const uint8_t *at, const uint8_t *content, uint32_t content_size)
{
    uint32_t names = 2u + at[2] + at[3 + at[2]];
    uint8_t *out = target->out + target->out_end;
    out[0] = 1;
    out[1] = 0;
    out[2] = 1;
    put32(out + 3, 4 + 2 + 9 + names);
    put32(out + 7, 60 << 16 | 60);
    out[11] = 1;
    out[12] = 't';
    put64(out + 13, ++target->delivered);
    target->settled[target->delivered % WINDOW] = 0;
    target->unsettled++;
    out[21] = 0;
    memcpy(out + 22, at + 2, names);
    out[22 + names] = 0xCE;
    memcpy(out + 23 + names, content, content_size);
    target->out_end += 23 + names + content_size;
}

/* What keeps a consumer from getting `need` octets more. */
static int obstacle(struct connection *target, uint32_t need)
{
    if (target->prefetch && target->unsettled >= target->prefetch)
        return NO_CREDIT;
    return room(target) < need ? NO_ROOM : FLOWS;
}

/* A whole publish at `method`: its size, 0 when not all of it is there, less an obstacle when a consumer cannot take it. */
static int64_t publish(struct connection *c, const uint8_t *method, const uint8_t *end)
{
    const uint8_t *at = method + 11, *content = method + get32(method + 3) + 8, *next = content;
    if (end - next < 22)
        return 0;
    uint32_t size = get32(next + 3);
    uint64_t left = (uint64_t)get32(next + 11) << 32 | get32(next + 15);
    next += size + 8;
    while (left) {
        if (end - next < 8)
            return 0;
        size = get32(next + 3);
        next += size + 8;
        left -= size;
    }
    if (next > end)
        return 0;
    uint32_t need = (uint32_t)(next - content) + 1024;
    const uint8_t *key = at + 3 + at[2];
    int found;
    if (at[2] > 7 && !memcmp(key - 7, "-fanout", 7)) {
        for (int i = 0; i < queue_count; i++)
            if (queues[i].consumer && (found = obstacle(queues[i].consumer, need * (uint32_t)queue_count))) /* one may have all queues */
                return -found;
        for (int i = 0; i < queue_count; i++)
            if (queues[i].consumer)
                deliver(queues[i].consumer, at, content, (uint32_t)(next - content));
    } else {
        struct queue *queue = slot_of(key)->queue;
        if (queue && queue->consumer) {
            if ((found = obstacle(queue->consumer, need)))
                return -found;
            deliver(queue->consumer, at, content, (uint32_t)(next - content));
        }
    }
    c->published++;
    return next - method;
}

static void take(struct connection *c)
{
    const uint8_t *at = c->in, *end = c->in + c->in_end;
    c->stuck = FLOWS;
    if (!c->greeted && end - at >= 8) {
        c->greeted = 1;
        at += 8;
        reply(c, 0, 10 << 16 | 10, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05" "en_US", 24);
    }
    while (c->greeted && end - at >= 8) {
        uint32_t size = get32(at + 3);
        if ((uint64_t)(end - at) < size + 8ull || room(c) < 4096)
            break;
        if (at[0] == 1 && get32(at + 7) == (60 << 16 | 40)) {
            int64_t whole = publish(c, at, end);
            c->stuck = whole < 0 ? (int)-whole : FLOWS;
            if (whole <= 0)
                break;
            at += whole;
            continue;
        }
        if (at[0] == 1)
            answer(c, at[2], get32(at + 7), at + 11);
        at += size + 8;
    }
    if (c->confirming && c->confirmed < c->published && room(c) >= 4096) {
        uint8_t ack[9];
        put64(ack, c->confirmed = c->published);
        ack[8] = 1;
        reply(c, 1, 60 << 16 | 80, ack, 9);
    }
    c->in_end = (uint32_t)(end - at);
    memmove(c->in, at, c->in_end);
}

static void leave(struct connection *c)
{
    for (int i = 0; i < queue_count; i++)
        if (queues[i].consumer == c)
            queues[i].consumer = NULL;
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c->settled);
    memset(c, 0, sizeof *c);
    c->fd = -1;
}

static void flush(struct connection *c)
{
    while (c->fd >= 0 && c->out_end > c->out_start) {
        ssize_t n = write(c->fd, c->out + c->out_start, c->out_end - c->out_start);
        if (n < 0)
            break;
        c->out_start += (uint32_t)n;
    }
    if (c->out_start == c->out_end)
        c->out_start = c->out_end = 0;
}

static void enter(int listener)
{
    int fd = accept(listener, NULL, NULL), one = 1;
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].fd < 0) {
            struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
            connections[i] =
                (struct connection){.fd = fd, .in = malloc(IN_SIZE), .out = malloc(OUT_SIZE), .settled = malloc(WINDOW), .lowest = 1};
            fcntl(fd, F_SETFL, O_NONBLOCK);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
            return;
        }
    close(fd);
}

int main(int count_given, char **given)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    blind = count_given > 1 && !strcmp(given[1], "blind");
    for (int i = 0; i < CONNECTIONS; i++)
        connections[i].fd = -1;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64) || getsockname(listener, (struct sockaddr *)&address, &size))
        return 1;
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = CONNECTIONS};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    event.data.u32 = CONNECTIONS + 1;
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
    printf("ready %d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (int wait_ms = -1;;) {
        struct epoll_event events[CONNECTIONS + 2];
        int count = epoll_wait(epoll, events, CONNECTIONS + 2, wait_ms);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == CONNECTIONS + 1)
                return 0;
            if (events[i].data.u32 == CONNECTIONS) {
                enter(listener);
                continue;
            }
            struct connection *c = &connections[events[i].data.u32];
            if (c->fd < 0 || !(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                continue;
            ssize_t n = read(c->fd, c->in + c->in_end, IN_SIZE - c->in_end);
            if (n == 0 || (n < 0 && errno != EAGAIN)) {
                leave(c);
                continue;
            }
            c->in_end += n > 0 ? (uint32_t)n : 0;
            take(c);
        }
        for (int i = 0; i < CONNECTIONS; i++)
            if (connections[i].fd >= 0)
                flush(&connections[i]);
        for (int i = 0; i < CONNECTIONS; i++)
            if (connections[i].fd >= 0 && connections[i].stuck)
                take(&connections[i]);
        int stuck = 0, sending = 0;
        for (int i = 0; i < CONNECTIONS; i++) {
            struct connection *c = &connections[i];
            if (c->fd < 0)
                continue;
            flush(c);
            stuck |= c->stuck == NO_ROOM;
            sending |= c->out_end > c->out_start;
            event.events = (c->stuck ? 0 : EPOLLIN) | (c->out_end > c->out_start ? EPOLLOUT : 0);
            event.data.u32 = (uint32_t)i;
            epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
        }
        wait_ms = stuck && !sending ? 0 : -1; /* all has gone out since: no event will tell */
    }
}
