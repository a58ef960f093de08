"""One side of a measurement as a process of its own: a publisher or a consumer on a raw socket with frames encoded beforehand.

    python load.py publisher HOST PORT QUEUE COUNT MODE        python load.py consumer HOST PORT QUEUE COUNT MODE

MODE is one of no_ack, acks, confirms. Prints `ready` when it may be told to start, starts on a line on standard input, prints one line
of JSON at the end. All messages are alike but for their number, so every delivery has the same size: after the first one, which is
read in full, counting is dividing. At each read the last whole delivery is looked at: its delivery tag and the number in its body must be
the count.
"""

import json
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))

from amqp_wire import RawClient, frame, header, method  # noqa: E402 - the path above has to be set first

BODY_SIZE = 256
PREFETCH = 200
ACK_EVERY = 50
WINDOW = 200
BATCH = 50
CHUNK = 1 << 16
ACK_SIZE = 21  # frame header 7, method ids 4, delivery tag 8, bits 1, frame end 1
MODES = ("no_ack", "acks", "confirms")


def message_octets(queue):
    """(one publish with its content, offset of the 8-octet number in it)."""
    head = method(1, "basic.publish", routing_key=queue) + header(1, BODY_SIZE)
    return head + frame(3, 1, bytes(BODY_SIZE)), len(head) + 7


def all_messages(queue, count):
    one, offset = message_octets(queue)
    octets = bytearray(one * count)
    for number in range(count):
        struct.pack_into(">Q", octets, number * len(one) + offset, number + 1)
    return memoryview(octets), len(one)


def wait_for_start():
    print("ready", flush=True)
    sys.stdin.readline()


def report(**values):
    print(json.dumps(values), flush=True)


class Publisher:
    """Sends everything as fast as the broker reads, or, with confirms, never more than WINDOW ahead of them."""

    def __init__(self, client, queue, count, mode):
        self.client = client
        self.count = count
        self.confirms = mode == "confirms"
        self.octets, self.size = all_messages(queue, count)
        self.confirmed_below = 0
        self.confirmed_apart = set()
        self.tail = b""
        if self.confirms:
            client.call("confirm.select-ok", 1, "confirm.select")

    @property
    def confirmed(self):
        return self.confirmed_below + len(self.confirmed_apart)

    def run(self):
        sent = 0
        send = self.client.socket.sendall
        if not self.confirms:
            for start in range(0, len(self.octets), CHUNK):
                send(self.octets[start : start + CHUNK])
            return
        while self.confirmed < self.count:
            while sent < self.count and sent - self.confirmed <= WINDOW - BATCH:
                batch = min(BATCH, self.count - sent)
                send(self.octets[sent * self.size : (sent + batch) * self.size])
                sent += batch
            self.read_confirms()

    def read_confirms(self):
        data = self.tail + self.client.socket.recv(CHUNK)
        whole = len(data) // ACK_SIZE * ACK_SIZE
        self.tail = data[whole:]
        for at in range(0, whole, ACK_SIZE):
            class_method, tag, multiple = struct.unpack_from(">IQB", data, at + 7)
            assert class_method == 60 << 16 | 80, "not basic.ack: %r" % data[at : at + ACK_SIZE]
            if multiple:
                self.confirmed_below = max(self.confirmed_below, tag)
                self.confirmed_apart = {one for one in self.confirmed_apart if one > tag}
            else:
                self.confirmed_apart.add(tag)
        while self.confirmed_below + 1 in self.confirmed_apart:
            self.confirmed_below += 1
            self.confirmed_apart.remove(self.confirmed_below)


class Consumer:
    """Counts deliveries; with acks it sends one for every ACK_EVERY messages (multiple)."""

    def __init__(self, client, queue, count, mode):
        self.client = client
        self.count = count
        self.acks = mode == "acks"
        self.received = 0
        if self.acks:
            client.call("basic.qos-ok", 1, "basic.qos", prefetch_count=PREFETCH)
        tag = client.call("basic.consume-ok", 1, "basic.consume", queue=queue, consumer_tag="c", no_ack=not self.acks)["consumer_tag"]
        deliver = method(1, "basic.deliver", consumer_tag=tag, routing_key=queue)
        self.size = len(deliver) + len(header(1, BODY_SIZE)) + BODY_SIZE + 8
        self.tag_offset = 7 + 4 + 1 + len(tag)
        self.number_offset = self.size - BODY_SIZE - 1

    def run(self):
        first = self.client.read_content("basic.deliver")
        assert len(first.body) == BODY_SIZE and first["delivery_tag"] == 1
        self.received = 1
        waiting, self.client.buffer = self.client.buffer, b""
        receive = self.client.socket.recv
        while True:
            whole = len(waiting) // self.size
            if whole:
                self.check(waiting, (whole - 1) * self.size, self.received + whole)
                self.settle(self.received, self.received + whole)
                self.received += whole
                waiting = waiting[whole * self.size :]
            if self.received >= self.count:
                assert self.received == self.count and not waiting, "%d came, %d were sent" % (self.received, self.count)
                return
            data = receive(1 << 18)
            assert data, "the broker closed after %d of %d" % (self.received, self.count)
            waiting += data

    def check(self, data, start, number):
        tag = struct.unpack_from(">Q", data, start + self.tag_offset)[0]
        in_body = struct.unpack_from(">Q", data, start + self.number_offset)[0]
        assert tag == in_body == number, "delivery %d has tag %d and holds message %d" % (number, tag, in_body)

    def settle(self, before, after):
        if self.acks:
            due = after if after == self.count else after // ACK_EVERY * ACK_EVERY
            if due > before // ACK_EVERY * ACK_EVERY:
                self.client.socket.sendall(method(1, "basic.ack", delivery_tag=due, multiple=True))


def main():
    role, host, port, queue, count, mode = sys.argv[1:]
    assert mode in MODES, mode
    client = RawClient(host, int(port), timeout_s=60).open()
    side = {"publisher": Publisher, "consumer": Consumer}[role](client, queue, int(count), mode)
    wait_for_start()
    cpu = time.process_time()
    started = time.monotonic()
    side.run()
    ended = time.monotonic()
    cpu = time.process_time() - cpu
    if role == "consumer":
        client.call("channel.close-ok", 1, "channel.close", reply_code=200)
    client.close()
    report(started=started, ended=ended, cpu_s=cpu)


if __name__ == "__main__":
    main()
