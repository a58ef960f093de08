"""Large bodies through the port's loop over real sockets, in each form: what comes out is what went in, however it is cut.

In C they go from the socket to their blocks and from their blocks to the socket; plain Python copies them through the buffers.
"""

import random
import socket

import pytest
from in_form import in_form
from peer import assemble, content, decoded, encoded

from leveret import c_accel
from leveret.core.amqp_0_9 import hot_row
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.broker import engine
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import Limits
from leveret.core.memory import layout
from leveret.ports import clock
from leveret.ports.tcp import Loop

FORMS = (engine.Plain, c_accel.Engine)
FRAME = 1 << 17
STEPS_MAX = 20000
LIMITS = {"arena_size": 16 << 20, "content_size_max": 8 << 20, "connection_count_max": 32}


class World:
    """A broker behind a listener, driven step by step."""

    def __init__(self, form):
        with in_form(form):
            self.broker = Broker(Limits(**LIMITS), b"large")
        self.broker.tick(clock.now_ms(), clock.seconds())
        self.loop = Loop(32, self.broker)
        self.address = self.loop.listen("127.0.0.1", 0, lambda stream: Connection(self.broker, stream.name, True))
        self.clients = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for client in self.clients:
            client.socket.close()
        self.loop.close()

    def client(self, frame_size_max=FRAME):
        return Client(self, frame_size_max)

    def until(self, condition, clients=()):
        """Step, and let these clients send and read, until the condition holds."""
        for _ in range(STEPS_MAX):
            for client in clients:
                client.move()
            if condition():
                return
            self.loop.step(1)
        raise AssertionError("it did not come to that in %d steps" % STEPS_MAX)

    def blocks_free(self):
        return self.broker.tables.state[layout.POOL_BLOCKS + 2]

    def ready(self, name):
        return self.broker.tables.queues[self.broker.queues[name].handle + layout.QUEUE_LENGTH]


class Client:
    """One connection: `todo` is sent in pieces of at most `piece` octets, what comes is cut into frames."""

    def __init__(self, world, frame_size_max):
        self.world = world
        self.socket = socket.create_connection(world.address)
        self.socket.setblocking(False)
        world.clients.append(self)
        self.todo = b""
        self.piece = None
        self.inbox = bytearray()
        self.found = []
        self.largest = 0
        for octets, answer in (
            (HEADER, "connection_start"),
            (encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"), "connection_tune"),
            (encoded("connection_tune_ok", 0, 0, frame_size_max, 0) + encoded("connection_open", 0, "/", "", False), "connection_open_ok"),
            (encoded("channel_open", 1, ""), "channel_open_ok"),
        ):
            self.ask(octets, answer)

    def ask(self, octets, answer):
        """Send, and wait for this method."""
        self.todo += octets
        self.world.until(lambda: any(frame[0] == answer for frame in self.found), [self])
        self.found = [frame for frame in self.found if frame[0] != answer]

    def move(self, reading=True):
        """Send and read what can be at this moment."""
        try:
            if self.todo:
                self.todo = self.todo[self.socket.send(self.todo[: self.piece() if self.piece else None]) :]
        except BlockingIOError:
            pass
        try:
            if reading:
                self.inbox += self.socket.recv(1 << 20)
        except BlockingIOError:
            pass
        at = 0
        while len(self.inbox) - at >= 7:
            size = int.from_bytes(self.inbox[at + 3 : at + 7], "big") + 8
            if len(self.inbox) - at < size:
                break
            self.largest = max(self.largest, size)
            self.found.append(decoded(bytes(self.inbox[at : at + size])))
            at += size
        del self.inbox[:at]

    def bodies(self):
        """The bodies of all that was delivered whole, in order."""
        return [found[-1] for found in assemble(self.found)]

    def received(self):
        return sum(len(frame[2]) for frame in self.found if frame[0] == "body")


def consuming(world, name, no_ack=True, **given):
    client = world.client(**given)
    client.ask(encoded("queue_declare", 1, 0, name, False, False, False, False, False, {}), "queue_declare_ok")
    client.ask(encoded("basic_consume", 1, 0, name, "c", False, no_ack, False, False, {}), "basic_consume_ok")
    return client


def a_body(random_, size):
    return random_.randbytes(size)


@pytest.fixture(params=FORMS, ids=("plain", "c"))
def form(request):
    return request.param


SIZES = (0, 1, 300, 511, 512, 16383, 16384, 16385, 65536, FRAME - 8, FRAME - 7, 200000, 1 << 20, 1048577)


@pytest.mark.parametrize("frame_size_max", (4096, 40000, FRAME))
def test_what_comes_out_is_what_went_in(form, frame_size_max):
    """Bodies of all sizes, cut anywhere on the way in, to consumers with other frames; what is freed between is in no order."""
    random_ = random.Random(random.randrange(1 << 30))
    with World(form) as world:
        consumers = [consuming(world, "q", frame_size_max=size) for size in (frame_size_max, FRAME)]
        publisher = world.client(frame_size_max=frame_size_max)
        sent = [a_body(random_, size) for size in SIZES + SIZES[::-1]]
        random_.shuffle(sent)
        publisher.piece = lambda: random_.choice((1, 7, 100, 5000, 70000, 300000, 300000, 2000000))
        publisher.todo = memoryview(b"".join([content(1, "", "q", body, frame_size_max=frame_size_max) for body in sent]))
        world.until(
            lambda: sum(client.received() for client in consumers) == sum(map(len, sent)) and world.ready("q") == 0 and not publisher.todo,
            [publisher, *consumers],
        )
        world.until(lambda: sum(len(client.bodies()) for client in consumers) == len(sent), consumers)
        first, second = [client.bodies() for client in consumers]
        assert sorted(first + second) == sorted(sent) and first and second
        order = {body: place for place, body in enumerate(sent) if len(body) > 1}
        for bodies in (first, second):
            places = [order[body] for body in bodies if len(body) > 1]
            assert places == sorted(places)
        assert consumers[0].largest <= frame_size_max
        world.until(lambda: world.blocks_free() == world.broker.limits.arena_size // world.broker.limits.block_size)


def test_octets_of_large_bodies_are_copied_twice(monkeypatch):
    """In C: by the system into blocks, by the system out of them. Through the buffers goes what stands around, and a few KiB ahead."""
    random_ = random.Random(1)
    count, size = 20, 1 << 20
    seen = {"in": 0, "out": 0}
    append, send_to = c_accel.Engine.append, c_accel.SendBuffer.send_to

    def counting_append(self, message, source, start, octets):
        seen["in"] += octets
        return append(self, message, source, start, octets)

    def counting_send(self, descriptor):
        seen["out"] += self.output.end - self.output.start
        return send_to(self, descriptor)

    monkeypatch.setattr(c_accel.Engine, "append", counting_append)
    monkeypatch.setattr(c_accel.SendBuffer, "send_to", counting_send)
    with World(c_accel.Engine) as world:
        consumer = consuming(world, "q")
        publisher = world.client()
        body = a_body(random_, size)
        publisher.todo = memoryview(content(1, "", "q", body, frame_size_max=FRAME) * count)
        row = world.broker.tables.engine.row(hot_row.Row)
        received = row.take_in
        directly = []
        monkeypatch.setattr(row, "take_in", lambda *given: directly.append(received(*given)) or directly[-1])
        world.until(lambda: consumer.received() == count * size, [publisher, consumer])
        assert consumer.bodies() == [body] * count
    assert sum(octets for octets in directly if octets) > 0.8 * count * size
    assert seen["in"] < 0.2 * count * size, seen
    assert seen["out"] < 0.01 * count * size, seen


def test_a_connection_that_ends_in_the_middle_leaves_nothing(form):
    """A publisher at any octet of a body, a consumer at any octet of what it gets: all blocks come back."""
    random_ = random.Random(random.randrange(1 << 30))
    with World(form) as world:
        everything = world.blocks_free()
        for number in range(12):
            consumer = consuming(world, "q%d" % (number % 3), no_ack=number % 2 == 0)
            publisher = world.client()
            octets = memoryview(content(1, "", "q%d" % (number % 3), a_body(random_, 1500000), frame_size_max=FRAME))
            publisher.todo = octets[: random_.randrange(len(octets)) if number % 3 else len(octets)]
            some = random_.randrange(1, 1400000)
            world.until(lambda publisher=publisher: not publisher.todo, [publisher])
            if number % 3 == 0:
                world.until(lambda consumer=consumer, some=some: len(consumer.inbox) + consumer.received() > some, [consumer])
            publisher.socket.close()
            consumer.socket.close()
            world.until(lambda: len(world.broker.connections) == 0)
            control = world.client()
            control.ask(encoded("queue_delete", 1, 0, "q%d" % (number % 3), False, False, False), "queue_delete_ok")
            assert world.blocks_free() == everything
            control.socket.close()
            world.until(lambda: len(world.broker.connections) == 0)


def test_a_reader_that_stops_holds_what_its_buffer_would_and_no_more(form):
    """It has one large body, or as many as fit in a send buffer; other consumers get theirs meanwhile."""
    with World(form) as world:
        everything = world.blocks_free()
        slow = consuming(world, "q")
        publisher = world.client()
        for size in (1 << 20, 65536):
            publisher.todo = memoryview(content(1, "", "q", bytes(size), frame_size_max=FRAME) * 10)
            world.until(lambda: not publisher.todo, [publisher])
        other = consuming(world, "other")
        publisher.todo = memoryview(content(1, "", "other", bytes(300000), frame_size_max=FRAME) * 20)
        world.until(lambda: other.received() == 20 * 300000, [publisher, other])
        other.ask(encoded("queue_purge", 1, 0, "q", False), "queue_purge_ok")
        limits = world.broker.limits
        held = (everything - world.blocks_free()) * limits.block_size
        assert held <= limits.send_buffer_size + (1 << 20) + 2 * limits.block_size, held
        world.until(lambda: world.blocks_free() == everything, [slow])


def test_small_messages_pass_large_ones(form):
    """While two connections publish and read large bodies without end, a small one is there after a few steps of the loop."""
    with World(form) as world:
        large = [(consuming(world, "large"), world.client()) for _ in range(2)]
        small, publisher = consuming(world, "small"), world.client()
        octets = content(1, "", "large", bytes(1 << 20), frame_size_max=FRAME)
        for number in range(20):
            publisher.todo = content(1, "", "small", b"%d" % number)
            for _ in range(60):
                for consumer, other in large:
                    other.todo = other.todo or memoryview(octets)
                    other.move(False)
                    consumer.move()
                    del consumer.found[:]
                publisher.move()
                small.move()
                if len(small.found) == 3 * number + 3:
                    break
                world.loop.step(1)
            assert len(small.bodies()) == number + 1


def test_confirms_and_returns_come_in_order_whatever_the_contents_need(form):
    """Contents of all sizes: plain, without a route, with a second key, in a transaction: nothing is lost, and each has its order."""
    random_ = random.Random(random.randrange(1 << 30))
    with World(form) as world:
        everything = world.blocks_free()
        consumer, other = consuming(world, "q"), consuming(world, "other")
        publisher = world.client()
        publisher.ask(encoded("confirm_select", 1, False), "confirm_select_ok")
        publisher.ask(encoded("channel_open", 2, ""), "channel_open_ok")
        publisher.ask(encoded("tx_select", 2), "tx_select_ok")
        expected: dict = {"q": [], "other": [], "returned": []}
        octets, in_transaction = b"", []
        for _ in range(60):
            body = a_body(random_, random_.choice((9, 300, 20000, 65536, 65536, 100000, 300000)))
            way = random_.choice(("q", "q", "q", "other", "returned", "both", "transaction"))
            given = {"headers": {"CC": ["other"]}} if way == "both" else None
            key = {"both": "q", "transaction": "q", "returned": "nowhere"}.get(way, way)
            channel = 2 if way == "transaction" else 1
            octets += content(channel, "", key, body, given, way == "returned", FRAME)
            for place in ("q", "other") if way == "both" else () if way == "transaction" else (way,):
                expected[place].append(body)
            in_transaction += [body] * (way == "transaction")
        publisher.piece = lambda: random_.choice((5000, 70000, 300000, 2000000))
        publisher.todo = memoryview(octets)
        clients = [publisher, consumer, other]
        first = 60 - len(in_transaction)
        confirmed: list = []

        def all_confirmed():
            confirmed[:] = [frame[2] for frame in publisher.found if frame[0] == "basic_ack"]
            return not publisher.todo and confirmed and confirmed[-1][0] == first

        world.until(all_confirmed, clients)
        assert [tag for tag, _ in confirmed] == sorted(tag for tag, _ in confirmed)
        publisher.todo = b""
        publisher.ask(encoded("tx_commit", 2), "tx_commit_ok")
        world.until(lambda: consumer.received() == sum(map(len, expected["q"] + in_transaction)) and world.ready("other") == 0, clients)
        world.until(lambda: len(other.bodies()) == len(expected["other"]), clients)
        assert consumer.bodies() == expected["q"] + in_transaction and other.bodies() == expected["other"]
        publisher.found = [frame for frame in publisher.found if frame[0] != "basic_ack"]
        assert publisher.bodies() == expected["returned"]
        world.until(lambda: world.blocks_free() == everything, clients)


@pytest.mark.parametrize("sizes", ((1,), (7, 1), (5000,), (1, 600, 3), (1 << 20,)))
def test_what_is_set_in_can_be_taken_piece_by_piece(sizes):
    """A port that knows nothing of it gets the same octets through pending() and sent()."""
    random_ = random.Random(3)
    with World(c_accel.Engine) as world:
        consumer = consuming(world, "q", frame_size_max=4096)
        publisher = world.client()
        world.loop.gathering.clear()
        bodies = [a_body(random_, size) for size in (5, 20000, 16384, 5000, 70000)]
        publisher.todo = b"".join([content(1, "", "q", body, frame_size_max=FRAME) for body in bodies])
        slot = next(slot for slot in world.loop.used if world.loop.endpoints[slot].name.endswith(":%d" % consumer.socket.getsockname()[1]))
        endpoint, turn, out = world.loop.endpoints[slot], 0, bytearray()
        world.loop.streams[slot].write = lambda view: None
        world.until(lambda: endpoint.send.output.inset_count == 3 and world.ready("q") == 0, [publisher])
        assert endpoint.send.is_scattered()
        while len(endpoint.pending()):
            view = endpoint.pending()
            count = min(len(view), sizes[turn % len(sizes)])
            out += view[:count]
            endpoint.sent(count)
            turn += 1
        consumer.inbox += out
        consumer.move()
        assert consumer.bodies() == bodies and consumer.largest == 4096
        assert world.blocks_free() == world.broker.limits.arena_size // world.broker.limits.block_size
