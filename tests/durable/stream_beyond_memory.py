"""A stream larger than memory in a broker: `python tests/durable/stream_beyond_memory.py [--octets N] [--body N] [--memory N]`

Starts `leveret serve --data` with limits that add up to less than `--memory`, publishes `--octets` of numbered messages to a stream, ends
the broker with kill -9, and reads the stream whole from the first message: by two readers at once, of which one begins later, and by one
that fetches packs; the broker is ended once more in between. Each reader gets every offset once, in order, with its message. Prints one
line of JSON: rates, the most memory that the process had, seconds of the recoveries.
"""

import argparse
import json
import os
import shutil
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "interop")]

from amqp_wire import RawClient, method  # noqa: E402 - the path above has to be set first
from beyond_memory import most_memory, publish, restarted, start  # noqa: E402 - the path above has to be set first

from leveret.core.amqp_0_9 import properties  # noqa: E402 - after the path of the tests
from leveret.core.amqp_0_9.packed import unpack  # noqa: E402 - after the path of the tests

STREAM = "beyond.stream"
ARGUMENTS = {"x-queue-type": "stream"}
PREFETCH = 200


class Reader:
    """A consumer of the stream from an offset on, which must get the message of each offset next. `packs`: it fetches packs."""

    def __init__(self, broker, offset, body_size, packs=False):
        self.next = offset
        self.body_size = body_size
        self.packs = packs
        self.tag = self.settled = 0
        self.client = RawClient(broker.host, broker.port, timeout_s=120).open()
        self.client.call("basic.qos-ok", 1, "basic.qos", prefetch_count=20 if packs else PREFETCH)
        arguments = {"x-stream-offset": offset}
        if packs:
            arguments["x-stream-pack-records"] = 1000
        self.client.call("basic.consume-ok", 1, "basic.consume", queue=STREAM, consumer_tag="c", arguments=arguments)

    def read(self, end):
        """Read up to the offset `end`: seconds."""
        started = time.monotonic()
        while self.next < end:
            content = self.client.read_content("basic.deliver")
            self.tag += 1
            if self.packs:
                for record in unpack(content.body):
                    self.see(record[0], record[5])
            else:
                given = properties.decode(content.properties, 0, len(content.properties))
                self.see(given["headers"]["x-stream-offset"], content.body)
            if self.tag - self.settled >= (5 if self.packs else PREFETCH // 4):
                self.settled = self.tag
                self.client.socket.sendall(method(1, "basic.ack", delivery_tag=self.tag, multiple=True))
        return time.monotonic() - started

    def see(self, offset, body):
        """A message came."""
        number = struct.unpack_from(">Q", body)[0]
        if offset != self.next or number != offset or len(body) != self.body_size:
            raise AssertionError(f"message {number} of {len(body)} octets came at offset {offset} where {self.next} was to come")
        self.next += 1

    def close(self):
        """End the connection."""
        self.client.close()


def two_readers(broker, count, body_size):
    """One reader reads all; another begins when it has a third, and both go on in turn: seconds."""
    first = Reader(broker, 0, body_size)
    seconds = first.read(count // 3)
    second = Reader(broker, 0, body_size)
    while second.next < count:
        seconds += second.read(min(second.next + count // 20 + 1, count))
        seconds += first.read(min(first.next + count // 20 + 1, count))
    first.close()
    second.close()
    return seconds


def measure(directory, octets, body_size, memory):
    """The whole way: a dict of figures. Raises AssertionError for what is missing, doubled or out of order."""
    count = octets // body_size
    arguments = ("--disk-max", str(2 * octets + (64 << 20)))
    broker = start(directory, memory, arguments)
    try:
        seconds_in = publish(broker, 0, count, body_size, STREAM, ARGUMENTS)
        broker, first_s, peak_in = restarted(broker, directory, memory, arguments)
        seconds_out = two_readers(broker, count, body_size)
        broker, second_s, peak_out = restarted(broker, directory, memory, arguments)
        packs = Reader(broker, 0, body_size, packs=True)
        seconds_packed = packs.read(count)
        packs.close()
        last = Reader(broker, count - 1, body_size)
        last.read(count)
        last.close()
        peaks = [peak_in, peak_out, most_memory(broker)]
    finally:
        broker.stop()
    return {
        "octets": octets,
        "body": body_size,
        "count": count,
        "limits_mb": round(memory / 1e6, 1),
        "peaks_mb": [round(peak / 1e6, 1) for peak in peaks],
        "in_msg_s": round(count / seconds_in),
        "in_mb_s": round(octets / seconds_in / 1e6, 1),
        "two_readers_msg_s": round(2 * count / seconds_out),
        "packed_msg_s": round(count / seconds_packed),
        "packed_mb_s": round(octets / seconds_packed / 1e6, 1),
        "recoveries_s": [round(first_s, 2), round(second_s, 2)],
    }


def main():
    """Measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--octets", type=int, default=1 << 30)
    parser.add_argument("--body", type=int, default=4096)
    parser.add_argument("--memory", type=int, default=64 << 20)
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="stream_beyond_memory_")
    try:
        print(json.dumps(measure(directory, options.octets, options.body, options.memory)))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
