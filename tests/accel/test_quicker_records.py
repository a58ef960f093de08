"""CPython's own forms of what moves messages (memory/hot_quicker.py; hot_in_quicker.py and hot_row_quicker.py of amqp_1_0) leave the
same tables, octet for octet, as the plain ones. test_same.py and test_same_1_0.py hold both against C."""

import importlib.util
import random
import sys

import pytest
from peer_1_0 import data, performative

from leveret.core import shim
from leveret.core.amqp_1_0 import composites, hot_in, hot_in_quicker, hot_row, hot_row_quicker, link_layout, types
from leveret.core.memory import hot, hot_quicker, layout

RECORDS = ("new_message", "append", "extract", "push", "drop", "settle", "pump")
TRANSFERS = ("ingest", "body_of", "transfer_fields", "properties_end", "application_end", "settle_range")
QUEUE, CHANNEL, CONSUMER = 0, 0, 0
PREFIX = b"\0\0\0\0\x02\0\0\0\0\x53\x14\xc0\x10\x0b\x43" + b"\x43\x42\x42"


@pytest.fixture(scope="module")
def plain():
    """{name: function} of modules that have nothing but plain functions, as boards do."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shim, "quicker", lambda function, form=None: found.setdefault(function.__name__, function))
        names = ("leveret.core.memory.hot", "leveret.core.memory.returned", "leveret.core.broker.publish")
        names += tuple(["leveret.core.amqp_1_0." + name for name in ("hot_transfers", "hot_in", "hot_row")])
        modules = {}
        for name in names:
            spec = importlib.util.spec_from_file_location(name, sys.modules[name].__file__)
            module = modules[name.rsplit(".")[-1]] = importlib.util.module_from_spec(spec)
            patch.setitem(sys.modules, name, module)  # so that those behind it import it
            spec.loader.exec_module(module)
        modules["hot_row"].hot, modules["hot_row"].hot_transfers = modules["hot"], modules["hot_transfers"]
    return found


def test_each_form_is_in_use(plain):
    for module, quicker, names in (
        (hot, hot_quicker, RECORDS),
        (hot_in, hot_in_quicker, TRANSFERS),
        (hot_row, hot_row_quicker, ("deliver_run",)),
    ):
        for name in names:
            assert getattr(module, name) is getattr(quicker, name) is not plain[name], name
            assert plain[name].__globals__.get("pump") in (None, plain["pump"])  # and calls no other


class Tables:
    """Flat tables of one queue, one channel and one consumer, and a route to the queue."""

    def __init__(self, durable=False, no_ack=0, credit=1000, prefetch=0, limits=0):
        self.arena = memoryview(bytearray(64 * 400))
        self.blocks, self.messages = shim.table(400), shim.table(layout.MESSAGE_WIDTH * 100)
        self.entries, self.queues = shim.table(layout.ENTRY_WIDTH * 100), shim.table(layout.QUEUE_WIDTH)
        self.channels, self.consumers = shim.table(layout.CHANNEL_WIDTH * 4), shim.table(layout.CONSUMER_WIDTH)
        self.state, self.link = shim.table(layout.STATE_WIDTH), shim.table(link_layout.LINK_WIDTH)
        self.routes, self.route_octets, self.route_targets = shim.table(layout.ROUTE_WIDTH), memoryview(bytearray(64)), shim.table(4)
        for pool, count in (("BLOCKS", 300), ("MESSAGES", 90), ("ENTRIES", 90)):
            place = getattr(layout, "POOL_" + pool)
            self.state[place], self.state[place + 2] = -1, count
        for name in ("HEAD", "TAIL", "RETURNED"):
            self.queues[getattr(layout, "QUEUE_" + name)] = -1
        self.queues[layout.QUEUE_PLAIN], self.queues[layout.QUEUE_CONSUMERS] = 2 if durable else 1, 1
        self.queues[layout.QUEUE_LIMITS] = limits
        for name in ("ACTIVE_HEAD", "ACTIVE_TAIL", "SETTLED_LIST", "LOGGED_HEAD", "LOGGED_TAIL"):
            self.state[getattr(layout, "STATE_" + name)] = -1
        for name in ("UNSETTLED_HEAD", "UNSETTLED_TAIL", "INDEXED"):
            self.channels[getattr(layout, "CHANNEL_" + name)] = -1
        self.channels[layout.CHANNEL_PREFETCH], self.channels[layout.CHANNEL_CONSUMERS] = prefetch, -1
        self.channels[layout.CHANNEL_TAG] = layout.MASK - 20  # it wraps on the way
        self.consumers[layout.CONSUMER_NO_ACK], self.consumers[layout.CONSUMER_CREDIT] = no_ack, credit
        given = {"BLOCK_SIZE": 64, "SECONDS": 9, "LEFT": 1000, "SIZE": 8192, "FRAME_MAX": 4096, "PROPERTIES_MAX": 300, "CONTENT_MAX": 500}
        for name, value in dict(given, LOG_ROOM=1 << 20, ROUTE_SLOTS=1).items():
            self.state[getattr(layout, "STATE_" + name)] = value
        self.route_octets[:3] = b"\0\1q"
        self.routes[layout.ROUTE_SIZE], self.routes[layout.ROUTE_COUNT] = 3, 1
        self.link[link_layout.LINK_ROUTE], self.link[link_layout.LINK_SETTLES], self.link[link_layout.LINK_CREDIT] = 3, 2, 60

    def all(self):
        """Every table's octets, but for where the link's keys and last number stand."""
        kept = list(self.link[: link_layout.LINK_NUMBER])
        scratch = layout.STATE_KIND, layout.STATE_LIFETIME
        state = [each for place, each in enumerate(self.state) if place not in scratch]
        tables = self.arena, self.blocks, self.messages, self.entries, self.queues, self.channels, self.consumers
        return [bytes(each) for each in tables] + [kept, state]


def a_transfer(random_, number):
    """A frame with a message of a few sections, which nearly always is one that ingest takes."""
    parts = []
    if random_.random() < 0.4:
        parts.append(
            composites.write("header", {"durable": random_.random() < 0.5, "priority": 4} if random_.random() < 0.7 else {"ttl": 900})
        )
    if random_.random() < 0.5:
        ids = ("m%d" % number, ("ulong", number), ("uuid", random_.randbytes(16)), random_.randbytes(5))
        given = {"message-id": random_.choice(ids), "subject": random_.choice(("s", "\u00e4", None)), "correlation-id": random_.choice(ids)}
        given.update({"creation-time": 1700000000000, "group-sequence": random_.choice((0, 7, 1000)), "content-type": "a/b"})
        parts.append(composites.write("properties", given))
    if random_.random() < 0.5:
        values = (
            "text",
            "\u00e4",
            True,
            None,
            ("int", 5),
            -70000,
            ("ulong", 1 << 40),
            2.5,
            b"\xff\x00",
            ("uuid", bytes(16)),
            ("ubyte", 200),
            [1],
        )
        table = {"key%d" % place: random_.choice(values) for place in range(random_.randrange(4))}
        if random_.random() < 0.1:
            table["x" * 200] = "y"
        parts.append(b"\x00\x53\x74" + types.encode(table))
    parts.append(data(random_.randbytes(random_.choice((0, 1, 40, 255, 256, 400)))))
    fields = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
    if random_.random() < 0.1:
        fields.update(
            random_.choice(
                ({"more": True}, {"batchable": True}, {"rcv_settle_mode": 0}, {"delivery_id": number + 1 & 0xFFFFFFFF}, {"handle": 1})
            )
        )
    return performative("transfer", 0, b"".join(parts), **{**{"handle": 0, "settled": random_.choice((None, None, None, True))}, **fields})


def damaged(random_, octets):
    if random_.random() < 0.2:
        at = random_.randrange(4, len(octets))
        octets = octets[:at] + bytes([random_.choice((0, octets[at] ^ 1, octets[at] + 1 & 255, 255, 0x40, 0xC1))]) + octets[at + 1 :]
    return octets


def ingest(forms, tables, octets):
    source = memoryview(octets + bytes(8192 - len(octets)))
    tables.state[layout.STATE_AT], tables.state[layout.STATE_END] = 0, len(octets)
    way = memoryview(b"\0\1q")
    given = tables.arena, tables.blocks, tables.messages, tables.entries, tables.queues, tables.channels, tables.consumers, tables.state
    return forms["ingest"](*given, tables.routes, tables.route_octets, tables.route_targets, tables.link, way, source)


def deliver(forms, tables, limit, room):
    target = memoryview(bytearray(room))
    at = forms["deliver_run"](tables, CONSUMER, limit, memoryview(PREFIX), len(PREFIX) - 3, 600, target, 0, room)
    return at, bytes(target)


def settled(first, last):
    return performative("disposition", 0, role=True, first=first, last=last, settled=True, state=("accepted", {}))


@pytest.mark.parametrize("seed", range(6))
def test_transfers_deliveries_and_dispositions_leave_the_same_tables(plain, seed):
    random_ = random.Random(seed)
    forms = plain, dict({name: getattr(hot_in, name) for name in TRANSFERS}, deliver_run=hot_row.deliver_run)
    answers, counts = set(), [0, 0, 0]
    for _ in range(60):
        given = {
            "durable": random_.random() < 0.3,
            "no_ack": int(random_.random() < 0.3),
            "credit": random_.choice((3, 1000, layout.CREDIT_UNLIMITED)),
        }
        given.update(prefetch=random_.choice((0, 0, 5)), limits=random_.choice((0, 0, 0, layout.LIMIT_EXPIRES)))
        sides = [Tables(**given) for _ in range(2)]
        number = begun = random_.choice((0, 300, 0x3FFFFFFC, 0xFFFFFFFA))  # short delivery-ids and long ones, which wrap
        for _ in range(random_.randrange(2, 9)):
            octets = b""
            for _ in range(random_.randrange(6)):
                octets += damaged(random_, a_transfer(random_, number))
                number = number + 1 & 0xFFFFFFFF
            if random_.random() < 0.3:
                octets = octets[: random_.randrange(len(octets) + 1)]
            for side in sides:
                side.state[layout.STATE_LEFT] = 1000 if number % 3 else 5
            found = [ingest(form, side, octets) for form, side in zip(forms, sides)]
            assert found[0] == found[1] and sides[0].all() == sides[1].all(), octets
            for side in sides:  # the log has what was pushed, before any of it goes out
                side.state[layout.STATE_LOGGED_HEAD] = side.state[layout.STATE_LOGGED_TAIL] = -1
            answers.add(found[0])
            counts[0] += sides[0].link[link_layout.LINK_TAKEN]
            link = sides[0].link
            number = link[link_layout.LINK_NEXT_HIGH] << 30 | link[link_layout.LINK_NEXT] if link[link_layout.LINK_IS_NEXT] else begun
            limit, room = random_.randrange(1, 12), random_.choice((300, 4000))
            found = [deliver(form, side, limit, room) for form, side in zip(forms, sides)]
            assert found[0] == found[1] and sides[0].all() == sides[1].all()
            counts[1] += found[0][0]
            head, tail = sides[0].channels[layout.CHANNEL_UNSETTLED_HEAD], sides[0].channels[layout.CHANNEL_TAG]
            if head >= 0:
                high = sides[0].channels[layout.CHANNEL_TAG_HIGH] << 30
                first = sides[0].entries[head + layout.ENTRY_TAG]
                first += high - (1 << 30) * (first > tail) & 0xFFFFFFFF
                octets = settled(first + random_.choice((0, 0, 0, 1)) & 0xFFFFFFFF, first + random_.randrange(5) & 0xFFFFFFFF)
                found = [ingest(form, side, damaged(random.Random(number), octets)) for form, side in zip(forms, sides)]
                assert found[0] == found[1] and sides[0].all() == sides[1].all()
                counts[2] += sides[0].state[layout.STATE_SETTLED]
    assert {layout.INCOMPLETE, layout.ASK} <= answers and min(counts) > 50, (answers, counts)
