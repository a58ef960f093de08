"""AMQP 0-10 with the hot path in C, in Python and frame by frame: to the same octets, whole and in pieces, the same answers, deliveries and
queues. And call by call: what C makes of the tables and of a buffer is what core/amqp_0_10/hot_in.py and hot_transfers.py make of them, and
what CPython's own forms of these do (hot_in_quicker.py, hot_transfers_quicker.py).
"""

import importlib.util
import os
import random

import pytest
from in_form import QUEUES, Ingestless, in_form
from invariants import check
from memory_store import MemoryStore
from peer import new_broker
from peer_0_10 import Peer, command, control, transfer
from peer_1_0 import declare

from leveret import c_accel
from leveret.c_accel import amqp_0_10 as in_c
from leveret.core import shim
from leveret.core.amqp_0_10 import hot_in, hot_in_quicker, hot_layout, hot_row, hot_transfers, hot_transfers_quicker, numbers
from leveret.core.broker import engine
from leveret.core.memory import layout
from leveret.core.recovery.opening import make_durable

STEPS = 60
SEEDS = int(os.environ.get("LEVERET_SAME_SEEDS", "8"))
TABLES = ("arena", "blocks", "messages", "entries", "queues", "channels", "consumers", "state", "routes", "route_octets", "route_targets")
VALUES = (None, True, 1, -5, 1 << 40, 2.5, "text", "t\xe4xt", b"\x00\xff", ("B", 7), ("T", 1700000000), [1, 2], {"a": 1})
ENDLESS = 0xFFFFFFFF


def flat(module):
    """A module of the hot path as boards have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shim, "quicker", lambda function, form=None: function)
        spec = importlib.util.spec_from_file_location(module.__name__, module.__file__)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    return made


FLAT = {"hot_in": flat(hot_in), "hot_transfers": flat(hot_transfers)}


class Flat(hot_row.Row):
    """The row in Python, with the functions that boards have."""

    def call(self, name, *given):
        with pytest.MonkeyPatch.context() as patch:
            for place, module in FLAT.items():
                patch.setattr(hot_row, place, module)
            return getattr(hot_row.Row, name)(self, *given)


class Both:
    """The row of AMQP 0-10 in C, each of whose calls is made in both forms of Python too, first, and compared."""

    name = "amqp_0_10"
    converts = False  # messages of other families, of which there are none: test_neutral.py compares those
    settle = None

    def __init__(self, c_engine):
        self.tables = c_engine.tables
        c_engine.pointers.ways = c_accel.ffi.NULL  # ways that C finds itself Python asks for
        self.flat, self.plain, self.c = Flat(self.tables), hot_row.Row(self.tables), in_c.Row(c_engine)
        self.settle = self.c.settle
        self.calls = {"ingest": 0, "pump": 0}

    def memory(self, *further):
        """All that a call may change, as views of octets."""
        return [memoryview(getattr(self.tables, name)).cast("B") for name in TABLES] + [memoryview(each).cast("B") for each in further]

    def compare(self, name, places, first, *others):
        before = [bytes(place) for place in places]
        answer = first()
        found = [bytes(place) for place in places]
        for form, other in enumerate(others):
            for place, octets in zip(places, before):
                place[:] = octets
            assert other() == answer, (name, form)
            for at, place in enumerate(places):
                assert bytes(place) == found[at], (name, form, at)
        self.calls[name] += 1
        return answer

    def ingest(self, run, source):
        octets = memoryview(c_accel.ffi.buffer(source))
        places = self.memory(run.numbers, run.way)
        return self.compare(
            "ingest",
            places,
            lambda: self.flat.call("ingest", run, octets),
            lambda: self.plain.ingest(run, octets),
            lambda: self.c.ingest(run, source),
        )

    def pump(self, consumer, limit, lead, frame_max, target, at, end):
        octets = memoryview(c_accel.ffi.buffer(target))
        given = (consumer, limit, lead, frame_max)
        before = bytes(octets)
        places = self.memory()
        written = []

        def flat():
            behind = self.flat.call("pump", *given, octets, at, end)
            written.append(bytes(octets[at:behind]))
            octets[:] = before
            return behind

        def plain():
            behind = self.plain.pump(*given, octets, at, end)
            assert bytes(octets[at:behind]) == written[0]
            octets[:] = before
            return behind

        def c():
            behind = self.c.pump(*given, target, at, end)
            assert bytes(octets[at:behind]) == written[0]
            return behind

        return self.compare("pump", places, flat, plain, c)


class Compared(c_accel.Engine):
    """The engine in C, with Both."""

    name = "C, call by call"

    def row(self, form):
        if form is not hot_row.Row:
            return c_accel.Engine.row(self, form)
        if form.name not in self.rows:
            self.rows[form.name] = Both(self)
        return self.rows[form.name]


class Side:
    """A broker in one form, with a peer."""

    def __init__(self, form, durable=False):
        with in_form(form):
            self.broker = new_broker(
                content_size_max=3000,
                properties_size_max=1500,
                receive_buffer_size=8192,
                send_buffer_size=8192,
                frame_size_max=4096,
                arena_size=1 << 19,
                message_count_max=1024,
                entry_count_max=1536,
            )
            if durable:
                make_durable(self.broker, MemoryStore(), "each", 100, 65536, 1 << 16, 1 << 22)
        for name, arguments in QUEUES:
            declare(self.broker, name, arguments)
        self.broker.tick(0, 0)
        self.peer = Peer(self.broker, max_frame_size=4096)
        self.ids: dict = {}  # by the name of a control or command of the broker's: the ids that it has named
        self.transfers: list = []  # (fields, header, body)
        self.numbers: list = []  # their ids
        self.count = 0  # commands of the broker
        self.others: list = []

    def look(self):
        """Take in what has come."""
        for name, fields, header, body, _ in self.peer.all():
            if name == "session_completed":
                self.note(name, fields["commands"])
            elif name in ("message_accept", "message_reject"):
                self.note(name, fields["transfers"])
                self.count += 1
            elif name == "message_transfer":
                self.transfers.append((fields["destination"], fields["accept_mode"], header, body))
                self.numbers.append(self.count)
                self.count += 1
            elif name not in ("session_command_point", "session_known_completed", "session_expected", "session_confirmed"):
                self.others.append((name, fields.get("error_code"), fields.get("code"), fields.get("reply_code")))

    def note(self, name, ranges):
        for first, last in ranges:
            self.ids.setdefault(name, set()).update(range(first, last + 1))

    def seen(self, whole):
        """What is compared; `whole`: the tables are looked at as well. Where commands of the broker's stand between its transfers is left
        out: it depends on how much it has taken at once."""
        broker = self.broker
        broker.tick(broker.now, broker.seconds)
        if whole:
            check(broker)
        counters = {name: broker.counters[name] for name in broker.counters if name != "held"}
        queues = [(name, found.message_count(), found.unsettled_count(), found.octets()) for name, found in broker.queues.items()]
        return self.ids, self.transfers, self.others, counters, queues

    def subscribe(self, accept, mode):
        """A subscription of each queue, without credit by messages."""
        for name, _ in QUEUES:
            self.peer.subscribe(name, "d" + name, 0, 0, accept)
            self.peer.do("message_set_flow_mode", destination="d" + name, flow_mode=mode)  # before any credit
            self.peer.do("message_flow", destination="d" + name, unit=1, value=ENDLESS)
        self.look()


def some_queue(chance):
    """The name of a queue: half of the time the same."""
    return chance.choice(("q",) * 5 + tuple(name for name, _ in QUEUES[1:]))


def transfers(chance):
    """A row of transfers, of at most protocol.FRAMES_A_TURN frames: most as nearly all are, some otherwise, a few wrong."""
    key = some_queue(chance)
    accept = chance.randrange(2) if key != "few" or chance.random() < 0.02 else 0  # a refused one of accept-mode none ends the session
    octets, count = b"", chance.choice((1, 1, 5, 20))
    for _ in range(count):
        delivery = {
            "priority": chance.choice((None, None, 0, 4, 9)),
            "delivery_mode": chance.choice((None, 1, 2)),
            "ttl": chance.choice((None, None, None, 100, 60000, 1 << 40)),
            "timestamp": chance.choice((None, 1700000000)),
            "exchange": chance.choice((None, "e")),
            "discard_unroutable": chance.random() < 0.1,
            "resume_id": chance.choice((None,) * 30 + ("r",)),
        }
        header = None
        if chance.random() < 0.7:
            table = {"k%d" % number: chance.choice(VALUES) for number in range(chance.choice((0, 1, 3, 20)))}
            header = {
                "message_id": chance.choice((None, bytes(range(16)))),
                "correlation_id": chance.choice((None, b"\xff" * chance.randrange(300))),
                "reply_to": chance.choice((None, {"exchange": "", "routing_key": "q"}, {"routing_key": "back"})),
                "content_type": chance.choice((None, "text/plain")),
                "user_id": chance.choice((None,) * 400 + (b"guest",) * 20 + (b"other",)),
                "app_id": chance.choice((None, b"a")),
                "application_headers": table or None,
            }
        where = chance.choice((key,) * 30 + ("nowhere",))
        body = chance.randbytes(chance.choice((1, 100, 255, 256, 700, 700, 1500, 0)))
        one = transfer(body, key=where, delivery=delivery, header=header, accept_mode=accept)
        if chance.random() < 0.001:
            place = chance.randrange(len(one) - len(body))
            one = one[:place] + bytes((one[place] ^ 1 << chance.randrange(8),)) + one[place + 1 :]
        octets += one
    return octets


def oldest(side):
    """The place, among the transfers that have come, of the oldest that is not settled; 0: there is none."""
    session = side.peer.connection.session.attached[0]
    head = side.broker.tables.channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD]
    return 0 if head == layout.NONE else side.numbers.index(numbers.of(session, head))


def settlement(chance, count, head):
    """A function of a side that makes the octets which settle, complete or ask for more: `count` transfers have come to every side, and
    the one at `head` is the oldest that is not settled."""
    what, sync = chance.random(), chance.random() < 0.1
    if what < 0.4:
        fields = {"destination": "d" + some_queue(chance), "unit": 0, "value": chance.choice((3, 30, 200))}
        return lambda side: command("message_flow", **fields)
    if what < 0.5:
        known = chance.choice(([(0, 0)], [(0, 9)], [(2, 3), (5, 6)]))
        fields = {each: chance.random() < 0.3 for each in ("expected", "confirmed")}
        flush = control("session_flush", completed=True, **(fields if what < 0.42 else {}))
        return lambda side: control("session_known_completed", commands=known) + flush
    first = chance.choice((head,) * 5 + (0, count // 2, max(count - 20, 0)))
    last = min(first + chance.randrange(1, 30), count - 1)
    if not 0 <= first <= last:
        return lambda side: b""
    if what < 0.6:
        return lambda side: control("session_completed", commands=[(side.numbers[first], side.numbers[last])])
    title = chance.choice(("message_accept",) * 7 + ("message_release", "message_reject"))
    pieces = chance.choice((1, 1, 1, 3))
    edges = [first + (last - first) * at // pieces for at in range(pieces)] + [last]

    def made(side):
        ranges = [(side.numbers[edges[at]], side.numbers[edges[at + 1]]) for at in range(pieces)]
        both = command(title, sync=sync, transfers=ranges) + control("session_completed", commands=ranges[:1])
        return both * times

    times = chance.choice((1, 1, 2))
    return made


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_comes_of_the_same_octets(seed):
    chance = random.Random(seed)
    durable, accept, mode = seed % 3 == 0, seed % 5 == 0, seed % 2
    sides = [Side(form, durable) for form in (Ingestless, engine.Plain, c_accel.Engine, Compared)]
    plain = sides[0]
    assert plain.peer.connection.session.hot is None and None not in [side.peer.connection.session.hot for side in sides[1:]]
    for side in sides:
        side.subscribe(int(accept), mode)
    now = 0
    for turn in range(STEPS):
        what = chance.random()
        if what < 0.5:
            octets = transfers(chance)
            given = [octets] * len(sides)
        elif what < 0.95:
            makes = settlement(chance, len(plain.transfers), oldest(plain))
            given = [makes(side) for side in sides]
        else:
            now += chance.choice((1, 50, 400, 2500))
            given = [b""] * len(sides)
        step = chance.choice((0, 0, 0, 1, 13))
        for side, octets in zip(sides, given):
            side.peer.step = step
            side.broker.tick(now, now // 1000)
            side.peer.give(octets)
            side.look()
        seen = plain.seen(turn % 10 == 9)
        for side in sides[1:]:
            assert side.seen(turn % 10 == 9) == seen, (side.broker.tables.engine.name, turn)
        if plain.others:
            break
    assert sides[-1].peer.connection.session.hot.calls["ingest"] > 0


def test_cpython_has_forms_of_its_own():
    for module, quicker, name in ((hot_in, hot_in_quicker, "ingest"), (hot_transfers, hot_transfers_quicker, "pump")):
        form = getattr(FLAT[module.__name__.rpartition(".")[2]], name)
        assert getattr(module, name) is getattr(quicker, name) is not form and form.__code__.co_filename == module.__file__


FORMS = (engine.Plain, c_accel.Engine)


def unseen(side):
    """A list to which the frames are added that come to the peer's session or connection one by one."""
    found: list = []
    protocol = side.peer.connection.session
    for name in ("command_frame", "control_frame"):
        call = getattr(protocol, name)
        setattr(protocol, name, lambda *given, call=call: (found.append(given), call(*given))[1])
    return found


@pytest.mark.parametrize("form", FORMS)
def test_the_engine_takes_what_nearly_all_send(form):
    """No transfer comes to the session and, in C, no accept and no completion: else this compares one form with itself."""
    side = Side(form)
    side.peer.subscribe("q", "d", 200, ENDLESS, 0)
    header = {"message_id": bytes(16), "correlation_id": b"c", "content_type": "text/plain", "application_headers": {"a": 1, "b": "text"}}
    one = transfer(b"b" * 256, key="q", delivery={"delivery_mode": 2}, header=header, accept_mode=0)
    side.peer.give(one)  # whether its user may write there is looked up once
    found = unseen(side)
    for _ in range(39):
        side.peer.give(one)
    side.look()
    assert found == [] and len(side.transfers) == 40 and len(side.ids["message_accept"]) == 40
    ids = side.numbers
    for at in range(0, 40, 10):
        ranges = [(ids[at], ids[at + 9])]
        side.peer.give(command("message_accept", transfers=ranges) + control("session_completed", commands=[(0, ids[at + 9])]))
    side.peer.give(one + control("session_known_completed", commands=[(0, 40)]) + control("session_flush", completed=True) + one)
    side.look()
    assert len(found) == (0 if form is c_accel.Engine else 10)
    assert side.peer.connection.session.attached[0].completed.runs == [[41, 48]]
    session = side.peer.connection.session.attached[0]
    assert side.broker.queues["q"].unsettled_count() == 2 and [run[:2] for run in session.sent] == [side.numbers[-2:]]
    assert session.subscriptions["d"].messages == 198 and side.ids["session_completed"] == set(range(3 + 40 + 4 + 2))


@pytest.mark.parametrize("size", range(1, 54, 5))
def test_what_is_said_of_deliveries_comes_to_the_same_at_every_split(size):
    """message.accept and session.completed in two pieces, the second with another accept behind it."""
    came = []
    for form in FORMS:
        side = Side(form)
        side.peer.give(transfer(b"body", key="q") * 4)
        side.peer.subscribe("q", "d", 3, ENDLESS, 0)
        side.look()
        first, second = side.numbers[:2]
        octets = command("message_accept", transfers=[(first, first)]) + control("session_completed", commands=[(first, first)])
        side.peer.give(octets[:size])
        side.peer.give(octets[size:] + command("message_accept", transfers=[(second, second)]))
        side.look()
        came.append((side.seen(True), side.peer.connection.session.attached[0].expected))
    assert came[0] == came[1] and len(came[0][0][1]) == 4


@pytest.mark.parametrize("form", FORMS)
def test_ids_that_were_not_sent_or_go_backwards_are_refused_alike(form):
    """Class session: only what was sent can be completed; class message: an accept of other commands than transfers changes nothing."""
    for octets, wrong in (
        (control("session_completed", commands=[(0, 99)]), True),
        (command("message_accept", transfers=[(0, 99)]), True),
        (command("message_accept", transfers=[(0xFFFFFFF0, 0xFFFFFFFE)]), False),
        (control("session_completed", commands=[(0, 0), (2, 2)]), False),
        (control("session_completed", commands=[(0, 0)]) + control("session_completed", commands=[(2, 2)]), False),
    ):
        side = Side(form)
        side.peer.give(transfer(b"body", key="q") * 3)
        side.peer.subscribe("q", "d", 3, ENDLESS, 0)
        side.peer.give(octets)
        side.look()
        assert bool(side.others) == wrong, octets
        if not wrong and octets[1] == 0:
            session = side.peer.connection.session.attached[0]
            assert [run[:2] for run in session.sent] == [[1, 1]] and session.subscriptions["d"].messages == 2


def test_the_octets_that_both_write_are_those_of_the_golden_transfer():
    """Section 10 (message.transfer) and its header structs, octet by octet."""
    golden = (
        "0b010016" + "00010000" + "00000000" + "0401" + "0100" + "0700" + "0164" + "00" + "00"
        "03020018" + "00010000" + "00000000" + "00000008" + "0401" + "1003" + "02" + "00" + "0171"
        "07030010" + "00010000" + "00000000" + "626f6479"
    )
    for form in FORMS:
        side = Side(form)
        side.peer.give(transfer(b"body", key="q", delivery={"delivery_mode": 2}))
        side.peer.subscribe("q", "d", 0, ENDLESS, 0)
        side.peer.give(command("message_flow", destination="d", unit=0, value=1))
        side.peer.collect()
        assert golden in bytes(side.peer.inbox).hex(), bytes(side.peer.inbox).hex()


def test_c_has_the_places_of_the_table():
    """What ingest is told is one flat table: core/amqp_0_10/hot_layout.py, leveret_amqp_0_10_run."""
    names = {"record": "RECORD", "lead": "LEAD", "exchange": "EXCHANGE", "most": "MOST", "taken": "TAKEN", "route": "ROUTE", "keys": "KEYS"}
    for field, name in names.items():
        assert c_accel.ffi.offsetof("leveret_amqp_0_10_run", field) == 4 * getattr(hot_layout, "IN_" + name)
    assert c_accel.ffi.sizeof("leveret_amqp_0_10_run") == 4 * hot_layout.IN_WIDTH
