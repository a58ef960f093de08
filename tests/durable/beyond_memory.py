"""More than memory through a real broker: `python tests/durable/beyond_memory.py [--octets N] [--body N] [--memory N] [--kill]`

Starts `leveret serve --data` with limits that add up to less than `--memory`, publishes `--octets` of numbered persistent messages with
confirms while nobody consumes, then consumes them with acknowledgements: every number, in order, once. `--kill` ends the broker with
kill -9 when all is confirmed, and again when half is consumed. Prints one line of JSON: rates in and out in MB/s and messages/s, the most
memory that the process had, seconds of the recoveries, and beside them what the disk gives (the same octets written with one fdatasync a
MiB, and read).
"""

import argparse
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

from amqp_wire import RawClient, frame, header, method  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess  # noqa: E402 - the path above has to be set first

from leveret.core.limits import Limits  # noqa: E402 - after the path of the tests
from leveret.core.memory.micropython_sizes import memory_needed  # noqa: E402 - the path above has to be set first

QUEUE = "beyond.memory"
WINDOW_OCTETS = 1 << 20
WINDOW_MAX = 500
FRAME_MAX = 131072
CHUNK = 1 << 18
ACK_EVERY_OCTETS = 1 << 18


def limits_for(memory):
    """Limits that add up to less than `memory` octets, three eighths of it arena."""
    arena = memory // 8 * 3
    chosen = {
        "arena_size": arena,
        "message_count_max": max(arena // 1024, 256),
        "entry_count_max": max(arena // 512, 512),
        "content_size_max": min(arena // 4, 8 << 20),
        "connection_count_max": 8,
        "receive_buffer_size": 65536,
        "send_buffer_size": 65536,
        "channel_max": 16,
        "channel_count_max": 64,
        "consumer_count_max": 64,
        "queue_count_max": 64,
        "queue_share_max": 64,
        "binding_count_max": 64,
        "binding_share_max": 64,
        "chunk_count_max": max(memory // 4096, 1024),
        "argument_size_max": 256,
        "user_count_max": 16,
        "policy_count_max": 16,
        "exchange_count_max": 16,
        "properties_size_max": 4096,
        "login_address_max": 32,
        "management_size_max": 8192,
        "granted_count_max": 16,
        "identity_count_max": 256,
        "waiting_count_max": 256,
        "transaction_count_max": 256,
        "offset_count_max": 16,
        "surplus_count_max": 2,
        "bridge_count_max": 4,
        "unknown_argument_count_max": 4,
    }
    needed = memory_needed(Limits(**chosen))
    if needed > memory:
        raise ValueError(f"the limits add up to {needed}, {memory} is too little to ask for")
    return chosen


def start(directory, memory, arguments=()):
    """A broker on a directory, with the limits of `memory`."""
    path = os.path.join(directory, "limits.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[limits]\n" + "".join(f"{name} = {value}\n" for name, value in limits_for(memory).items()))
    return BrokerProcess("leveret", arguments=["--config", path, "--data", os.path.join(directory, "data"), *arguments])


def most_memory(broker):
    """Octets that the broker's process had at most."""
    with open(f"/proc/{broker.server_pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) * 1024


def message(number, body_size, queue):
    """The octets of one publish."""
    body = struct.pack(">Q", number) + bytes(body_size - 8)
    octets = method(1, "basic.publish", routing_key=queue) + header(1, body_size, {"delivery_mode": 2})
    for at in range(0, body_size, FRAME_MAX - 8):
        octets += frame(3, 1, body[at : at + FRAME_MAX - 8])
    return octets


def publish(broker, first, count, body_size, queue=QUEUE, arguments=None):
    """Publish numbers from `first` on to a queue with those arguments, all confirmed: seconds."""
    window = max(2, min(WINDOW_MAX, WINDOW_OCTETS // body_size))
    one = message(0, body_size, queue)
    offset = one.index(header(1, body_size, {"delivery_mode": 2})) + len(header(1, body_size, {"delivery_mode": 2})) + 7
    batch = window // 2
    with RawClient(broker.host, broker.port, timeout_s=120).open() as client:
        client.call("queue.declare-ok", 1, "queue.declare", queue=queue, durable=True, arguments=arguments or {})
        client.call("confirm.select-ok", 1, "confirm.select")
        octets = bytearray(one * batch)
        sent = confirmed = 0
        tail = b""
        started = time.monotonic()
        while confirmed < count:
            while sent < count and sent - confirmed <= window - batch:
                size = min(batch, count - sent)
                for index in range(size):
                    struct.pack_into(">Q", octets, index * len(one) + offset, first + sent + index)
                client.socket.sendall(memoryview(octets)[: size * len(one)])
                sent += size
            data = client.socket.recv(CHUNK)
            if not data:
                raise AssertionError(f"the broker has gone with {confirmed} of {count} confirmed")
            tail += data
            while len(tail) >= 21:
                class_method, tag, _ = struct.unpack_from(">IQB", tail, 7)
                if class_method != 60 << 16 | 80:
                    raise AssertionError(f"not basic.ack: {tail[:60]!r}")
                confirmed = max(confirmed, tag)
                tail = tail[21:]
        return time.monotonic() - started


def consume(broker, first, count, body_size):
    """Consume `count` messages with acknowledgements; each must be the next number: seconds."""
    with RawClient(broker.host, broker.port, timeout_s=120).open() as client:
        prefetch = max(4, min(2000, 4 * ACK_EVERY_OCTETS // body_size))
        every = max(1, prefetch // 4)
        client.call("basic.qos-ok", 1, "basic.qos", prefetch_count=prefetch)
        client.call("basic.consume-ok", 1, "basic.consume", queue=QUEUE, consumer_tag="c")
        started = time.monotonic()
        for index in range(count):
            content = client.read_content("basic.deliver")
            number = struct.unpack_from(">Q", content.body)[0]
            if number != first + index or len(content.body) != body_size:
                raise AssertionError(f"message {number} of {len(content.body)} octets came where {first + index} was to come")
            if index % every == every - 1 or index == count - 1:
                client.socket.sendall(method(1, "basic.ack", delivery_tag=index + 1, multiple=True))
        seconds = time.monotonic() - started
        client.send(method(1, "channel.close", reply_code=200))
        while getattr(client.read_frame(), "name", "") != "channel.close-ok":
            pass
        return seconds


def left(broker):
    """Messages ready in the queue."""
    with RawClient(broker.host, broker.port).open() as client:
        return client.call("queue.declare-ok", 1, "queue.declare", queue=QUEUE, passive=True)["message_count"]


def disk(directory, octets):
    """What the disk gives: (MB/s written, one fdatasync a MiB; MB/s read back, from wherever the system has it)."""
    path = os.path.join(directory, "probe")
    piece = os.urandom(1 << 20)
    started = time.monotonic()
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    for _ in range(octets >> 20):
        os.write(file, piece)
        os.fdatasync(file)
    os.close(file)
    written = time.monotonic() - started
    started = time.monotonic()
    with open(path, "rb", buffering=0) as reading:
        while reading.read(1 << 20):
            pass
    read = time.monotonic() - started
    os.remove(path)
    return octets / written / 1e6, octets / read / 1e6


def restarted(broker, directory, memory, arguments):
    """The broker killed with -9 and started again: (it, seconds until it answers, the most memory it had before)."""
    peak = most_memory(broker)
    broker.process.kill()
    broker.process.wait()
    broker.stop()
    again = start(directory, memory, arguments)
    return again, again.ready_s, peak


def measure(directory, octets, body_size, memory, kill, arguments=()):
    """The whole way: a dict of figures. Raises AssertionError for what is missing, doubled or out of order."""
    count = octets // body_size
    broker = start(directory, memory, arguments)
    recoveries, peaks = [], []
    try:
        seconds_in = publish(broker, 0, count, body_size)
        if kill:
            broker, seconds, peak = restarted(broker, directory, memory, arguments)
            recoveries.append(seconds)
            peaks.append(peak)
        if left(broker) != count:
            raise AssertionError(f"{left(broker)} messages are in the queue, {count} were confirmed")
        half = count // 2
        seconds_out = consume(broker, 0, half, body_size)
        if kill:
            time.sleep(0.5)  # acknowledgements become durable by themselves
            broker, seconds, peak = restarted(broker, directory, memory, arguments)
            recoveries.append(seconds)
            peaks.append(peak)
        seconds_out += consume(broker, half, count - half, body_size)
        if left(broker):
            raise AssertionError(f"{left(broker)} messages are still there")
        peaks.append(most_memory(broker))
    finally:
        broker.stop()
    return {
        "octets": octets,
        "body": body_size,
        "count": count,
        "limits_mb": round(memory / 1e6, 1),
        "peak_memory_mb": round(max(peaks) / 1e6, 1),
        "in_mb_s": round(octets / seconds_in / 1e6, 1),
        "in_msg_s": round(count / seconds_in),
        "out_mb_s": round(octets / seconds_out / 1e6, 1),
        "out_msg_s": round(count / seconds_out),
        "recoveries_s": [round(each, 2) for each in recoveries],
    }


def main():
    """Measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--octets", type=int, default=1 << 30)
    parser.add_argument("--body", type=int, default=4096)
    parser.add_argument("--memory", type=int, default=64 << 20)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="beyond_memory_")
    try:
        room = ("--disk-max", str(options.octets * 2 + (64 << 20)))
        measured = measure(directory, options.octets, options.body, options.memory, options.kill, room)
        measured["disk_write_mb_s"], measured["disk_read_mb_s"] = [round(each, 1) for each in disk(directory, options.octets)]
        print(json.dumps(measured))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
