"""Publish to deliver takes no heap: the hot functions, and the way from receive buffer to send buffer, with MicroPython's heap locked.

`micropython.heap_lock()` makes every allocation a MemoryError: that is the exact assertion. It is blind to call frames, which fall back to
the C stack (shared MICROPYTHON.md section 1). Messages here are of several blocks, acknowledged singly and together.

What is left is the port's: `writable()` and `pending()` give views, of 16 octets each. PUBLISH_GARBAGE_MAX holds what was measured.
"""

import gc
import struct
import sys

import micropython

from leveret.core.amqp_0_9.hot_row import Row
from leveret.core.broker import engine
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.memory import hot, layout
from leveret.core.memory.tables import Tables

ROUTE = b"\x00\x05queue"
PROPERTIES = b"\x80\x00\x0atext/plain"
BODY = memoryview(bytes(range(200)))
PREFIX = b"\x01\x00\x01\x00\x00\x00\x00\x00\x3c\x00\x3c\x04ctag"
ROUNDS = 50
WORD_SIZE = 8 if sys.maxsize > 0x7FFFFFFF else 4
PUBLISH_GARBAGE_MAX = 8 * WORD_SIZE  # octets that a publish of one small body and its sending leave; measured: 16 of 32-bit heap


class Path:
    """Tables with one queue, one channel and one consumer, and the way of a message through them."""

    def __init__(self):
        tables = self.tables = Tables(Limits(**BOARD), engine.chosen)
        self.row = tables.engine.row(Row)
        self.queue = hot.allocate(tables.queues, tables.queue_pool, 0, layout.QUEUE_WIDTH)
        self.channel = hot.allocate(tables.channels, tables.channel_pool, 0, layout.CHANNEL_WIDTH)
        self.consumer = hot.allocate(tables.consumers, tables.consumer_pool, 0, layout.CONSUMER_WIDTH)
        for field in (layout.QUEUE_HEAD, layout.QUEUE_TAIL, layout.QUEUE_RETURNED):
            tables.queues[self.queue + field] = layout.NONE
        tables.queues[self.queue + layout.QUEUE_PLAIN] = layout.PLAIN
        tables.channels[self.channel + layout.CHANNEL_UNSETTLED_HEAD] = layout.NONE
        tables.channels[self.channel + layout.CHANNEL_UNSETTLED_TAIL] = layout.NONE
        tables.channels[self.channel + layout.CHANNEL_INDEXED] = layout.NONE
        tables.consumers[self.consumer + layout.CONSUMER_QUEUE] = self.queue
        tables.consumers[self.consumer + layout.CONSUMER_CHANNEL] = self.channel
        tables.consumers[self.consumer + layout.CONSUMER_CREDIT] = layout.CREDIT_UNLIMITED
        self.target = memoryview(bytearray(1024))
        self.end = 0

    def publish(self):
        tables = self.tables
        message = tables.new_message(ROUTE, len(PROPERTIES), len(BODY), 0)
        tables.append(message, PROPERTIES, 0, len(PROPERTIES))
        tables.append(message, BODY, 0, len(BODY))
        hot.push(tables.messages, tables.entries, tables.queues, tables.state, self.queue, message)
        tables.release(message)

    def deliver(self, limit):
        self.end = self.row.pump(self.consumer, limit, PREFIX, len(PREFIX), 4096, self.target, 0, len(self.target))

    def settle(self, multiple, how=layout.ACCEPTED):
        channels = self.tables.channels
        last = channels[self.channel + layout.CHANNEL_UNSETTLED_TAIL]
        first = channels[self.channel + layout.CHANNEL_UNSETTLED_HEAD] if multiple else last
        assert self.tables.engine.settle(self.channel, first, last, how)

    def give_back(self):
        self.settle(1, layout.RETURNED)


def rounds(path):
    for _number in range(ROUNDS):
        path.publish()
        path.publish()
        path.deliver(2)
        path.give_back()
        path.deliver(1)
        path.deliver(1)
        path.settle(0)
        path.settle(1)


def allocates(call, argument):
    """True when `call(argument)` asks for heap."""
    micropython.heap_lock()
    try:
        call(argument)
    except MemoryError:
        return True
    finally:
        micropython.heap_unlock()
    return False


def test_the_lock_notices_an_allocation():
    assert allocates(bytearray, 100)
    assert not allocates(len, b"abc")


def test_publish_deliver_and_settle_take_no_heap():
    path = Path()
    assert not allocates(rounds, path)
    tables = path.tables
    assert tables.state[layout.STATE_DELIVERED] == 4 * ROUNDS
    assert tables.state[layout.STATE_REDELIVERED] == 2 * ROUNDS
    assert tables.state[layout.STATE_SETTLED] == 2 * ROUNDS
    assert tables.state[layout.POOL_MESSAGES + 2] == BOARD["message_count_max"]
    assert tables.state[layout.POOL_BLOCKS + 2] == BOARD["arena_size"] // BOARD["block_size"]


def test_what_was_delivered_with_the_heap_locked_is_the_message():
    path = Path()
    path.publish()
    assert not allocates(path.deliver, 1)
    frames = bytes(path.target[: path.end])
    assert frames[path.end - 1 - len(BODY) : path.end - 1] == bytes(BODY)
    assert ROUTE in frames and PROPERTIES in frames


def method_frame(channel, class_id, method_id, arguments):
    payload = struct.pack(">HH", class_id, method_id) + arguments
    return struct.pack(">BHI", 1, channel, len(payload)) + payload + b"\xce"


LOGIN = b"\x00guest\x00guest"
OPENING = (
    b"AMQP\x00\x00\x09\x01",
    method_frame(0, 10, 11, struct.pack(">I", 0) + b"\x05PLAIN" + struct.pack(">I", len(LOGIN)) + LOGIN + b"\x05en_US"),
    method_frame(0, 10, 31, struct.pack(">HIH", 8, 4096, 0)) + method_frame(0, 10, 40, b"\x01/\x00\x00"),
    method_frame(1, 20, 10, b"\x00"),
    method_frame(1, 50, 10, b"\x00\x00\x05queue\x00\x00\x00\x00\x00"),
)
PUBLISH = (
    method_frame(1, 60, 40, b"\x00\x00\x00\x05queue\x00")
    + struct.pack(">BHIHHQH", 2, 1, 14, 60, 0, 64, 0)
    + b"\xce"
    + struct.pack(">BHI", 3, 1, 64)
    + b"x" * 64
    + b"\xce"
)


class Wire:
    """A broker with one connection that consumes from the queue it publishes to."""

    def __init__(self, consume_flags=b"\x02"):
        self.broker = Broker(Limits(**BOARD), b"memory")
        self.connection = Connection(self.broker)
        for octets in OPENING + (method_frame(1, 60, 20, b"\x00\x00\x05queue\x01c" + consume_flags + b"\x00\x00\x00\x00"),):
            self.feed(octets)
            self.broker.run()
            assert self.drain() > 0

    def feed(self, octets):
        view = self.connection.writable()
        for index in range(len(octets)):
            view[index] = octets[index]
        self.connection.received(len(octets))

    def drain(self):
        size = len(self.connection.pending())
        self.connection.sent(size)
        return size


def deliver(wire):
    wire.broker.run()


def test_a_delivery_to_a_connection_takes_no_heap():
    wire = Wire()
    for _ in range(ROUNDS):
        wire.feed(PUBLISH)
        assert not allocates(deliver, wire)
        assert wire.drain() > len(PUBLISH)


ACK = method_frame(1, 60, 80, b"\x00\x00\x00\x00\x00\x00\x00\x00\x01")  # all that is unsettled
DURABLE_QUEUE = method_frame(1, 50, 10, b"\x00\x00\x05queue\x02\x00\x00\x00\x00")
HEADER = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40"  # of a message's 64 octets


def persistent(publish):
    """The same message, of delivery-mode 2."""
    at = publish.index(HEADER) - 7
    header = HEADER + b"\x10\x00\x02"
    return publish[:at] + b"\x02\x00\x01\x00\x00\x00" + bytes((len(header),)) + header + b"\xce" + publish[at + 7 + 14 + 1 :]


def way(pair):
    """From the receive buffer to the send buffer: what was received is taken in, and what can be delivered is."""
    wire, size = pair
    wire.connection.received(size)
    wire.broker.run()


def whole_way(wire, octets):
    """True when `octets`, which are in the receive buffer already, ask for heap on their way."""
    view = wire.connection.writable()
    for index in range(len(octets)):
        view[index] = octets[index]
    view = None
    return allocates(way, (wire, len(octets)))


def test_publish_route_queue_deliver_and_acknowledge_take_no_heap_from_buffer_to_buffer():
    wire = Wire(b"\x00")
    wire.feed(PUBLISH)  # the first of a route is looked at, and remembered
    wire.broker.run()
    wire.drain()
    wire.feed(ACK)
    before = wire.broker.tables.state[layout.STATE_DELIVERED]
    for _ in range(ROUNDS):
        assert not whole_way(wire, PUBLISH + PUBLISH)
        assert wire.drain() > 2 * len(PUBLISH)
        assert not whole_way(wire, ACK)
    state = wire.broker.tables.state
    assert state[layout.STATE_DELIVERED] == before + 2 * ROUNDS
    assert state[layout.POOL_MESSAGES + 2] == BOARD["message_count_max"], "not everything was settled"


def test_what_a_publish_leaves_behind_is_bounded():
    wire = Wire()
    wire.feed(PUBLISH)  # the first one makes what lasts
    wire.broker.run()
    wire.drain()
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in range(ROUNDS):
        wire.feed(PUBLISH)
        wire.broker.run()
        wire.drain()
    garbage = (gc.mem_alloc() - before) // ROUNDS
    gc.enable()
    assert 0 < garbage <= PUBLISH_GARBAGE_MAX, "a publish leaves %d octets of garbage" % garbage
