"""firmware/rounds.py, gateway.py and interface.py over doubles: what one round asks, moves and tells, and how a gateway ends."""

import types

import pytest
from test_firmware import board  # noqa: F401 - a fixture: the modules of a board

from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.firmware import gateway, interface, rounds
from leveret.firmware.rounds import Rounds
from leveret.firmware.say import CannotStart
from leveret.ports.slots import IN, OUT, TICK_MS

HUNG_UP = 16


def fails(*_):
    raise RuntimeError("ours")


class Broker:
    """A broker of which a round asks; `turns`: how often it still has what to deliver."""

    def __init__(self):
        self.jobs, self.active, self.due, self.turns, self.runs = [], False, 5000, 0, 0
        self.times, self.connections = [], []
        self.guard = types.SimpleNamespace(told=[], trouble=lambda *words: self.guard.told.append(words))

    def has_active(self):
        return self.active

    def due_in(self, now):
        return self.due

    def pass_time(self, now, seconds):
        self.times.append((now, seconds))

    def run(self):
        self.runs += 1
        self.turns -= 1
        self.active = self.turns > 0


class Out:
    def __init__(self, octets):
        self.octets, self.start, self.end = memoryview(octets), 0, len(octets)


class Endpoint:
    """An endpoint with `out` to send; it reads `room` octets at a time."""

    def __init__(self, out=b"", room=4):
        self.out, self.room, self.closed, self.told, self.fails = Out(out), bytearray(room), False, [], False

    def writable(self):
        return self.room

    def is_read(self):
        return bool(self.room)

    def out_buffer(self):
        return self.out if self.out.end > self.out.start else None

    def received(self, size):
        self.told.append(("received", size))
        if self.fails:
            raise RuntimeError("ours")

    def sent(self, size):
        self.out.start += size

    def tick(self, now):
        self.told.append(("tick", now))
        if self.fails:
            raise RuntimeError("ours")


class Stream:
    """A stream whose reads and writes do in turn what the test says; None then."""

    pollable, name, from_loopback, address = "line", "line", True, ""

    def __init__(self, reads=(), writes=()):
        self.reads, self.writes, self.written, self.is_closed = list(reads), list(writes), b"", False

    def read_into(self, view):
        return self.reads.pop(0) if self.reads else None

    def write_part(self, octets, at, size):
        count = self.writes.pop(0) if self.writes else None
        self.written += bytes(octets[at : at + (count or 0)])
        return count

    def close(self):
        self.is_closed = True


class Poller:
    def __init__(self):
        self.asked = []

    def register(self, pollable, mask):
        self.asked.append(("register", mask))

    def modify(self, pollable, mask):
        self.asked.append(("modify", mask))

    def unregister(self, pollable):
        self.asked.append(("unregister", 0))

    def poll(self, wait_ms):
        return []


@pytest.fixture
def clock(monkeypatch):
    """The clocks of a board: `now` in ms, `seconds`."""
    made = types.SimpleNamespace(now=1000, seconds=70)
    monkeypatch.setattr(rounds.clock, "now_ms", lambda: made.now)
    monkeypatch.setattr(rounds.clock, "since_2020", lambda: made.seconds)
    monkeypatch.setattr(rounds.select, "poll", Poller)
    return made


def with_one(endpoint, stream):
    """(loop, broker) of one stream in slot 0."""
    broker = Broker()
    loop = Rounds(2, broker)
    loop.add(stream, endpoint)
    (slot,) = loop.used
    return loop, broker, slot


def test_a_poller_that_makes_nothing_is_taken_where_there_is_one():
    one = types.SimpleNamespace(poll="poll", ipoll="ipoll")
    assert rounds.waiting(one) == "ipoll" and rounds.waiting(types.SimpleNamespace(poll="poll")) == "poll"


def test_a_round_waits_until_the_next_tick_or_what_is_due_and_not_at_all_with_work(clock):
    broker = Broker()
    loop = Rounds(1, broker)
    assert broker.times == [(1000, 70)]
    assert loop.wait_ms(7) == 7 and loop.wait_ms(99999) == TICK_MS
    clock.now += 30
    assert loop.wait_ms(99999) == TICK_MS - 30
    broker.due = 3
    assert loop.wait_ms(99999) == 3
    broker.due = -4
    assert loop.wait_ms(99999) == 0
    broker.due = 50
    broker.jobs.append(1)
    assert loop.wait_ms(99999) == 0
    broker.jobs, broker.active = [], True
    assert loop.wait_ms(99999) == 0


def test_what_poll_says_is_noted_by_slot_and_listeners_are_kept_for_later(clock):
    loop, broker, slot = with_one(Endpoint(), Stream())
    listener = object()
    loop.by_key = {4: slot, 5: listener, "line": slot}
    loop.wait = lambda wait_ms: [(4, IN), (5, IN), (6, IN)]
    loop.hear(0)
    assert loop.flags[slot] == IN and loop.knocked == [listener]
    loop.wait = lambda wait_ms: [("line", OUT)]
    loop.hear(0)
    assert loop.flags[slot] == OUT


def test_seconds_are_asked_for_once_in_a_second(clock):
    broker = Broker()
    loop = Rounds(1, broker)
    clock.seconds = 71
    loop.tell_broker(1999)
    loop.tell_broker(2000)
    clock.seconds = 72
    loop.tell_broker(2999)
    assert broker.times[1:] == [(1999, 70), (2000, 71), (2999, 71)]


def test_a_stream_is_read_while_it_fills_the_room_and_nothing_can_be_delivered(clock):
    endpoint = Endpoint(room=4)
    loop, broker, slot = with_one(endpoint, Stream(reads=[4, 4, 4, 4, 4, 4]))
    loop.read(slot, IN)
    assert endpoint.told == [("received", 4)] * rounds.READS
    endpoint.told.clear()
    broker.active = True
    loop.read(slot, IN)
    assert endpoint.told == [("received", 4)], "what can be delivered goes first"
    broker.active = False
    for reads, told in (([4, 2], [4, 2]), ([None], []), ([0], [0])):
        endpoint.told.clear()
        loop.streams[slot].reads = list(reads)
        loop.read(slot, IN)
        assert endpoint.told == [("received", each) for each in told]


def test_who_does_not_read_hears_of_a_hangup_alone(clock):
    endpoint = Endpoint(room=0)
    loop, _, slot = with_one(endpoint, Stream())
    for flags, told in ((IN, []), (IN | OUT, []), (HUNG_UP, [("received", 0)]), (IN | HUNG_UP, [("received", 0)])):
        endpoint.told.clear()
        assert loop.read_once(slot, flags) is False and endpoint.told == told
    loop.endpoints[slot] = None
    assert loop.read_once(slot, IN) is False


def test_an_error_of_ours_ends_one_connection_alone(clock, monkeypatch):
    endpoint = Endpoint()
    loop, broker, slot = with_one(endpoint, Stream(reads=[1]))
    broke = []
    monkeypatch.setattr(loop, "broke", lambda slot, error: broke.append((slot, str(error))))
    endpoint.fails = True
    loop.read(slot, IN)
    loop.tell_endpoints(5)
    endpoint.out_buffer = endpoint.is_read = fails
    assert loop.flush_all() is False
    loop.arm()
    assert broke == [(slot, "ours")] * 4


def test_octets_go_out_until_the_stream_takes_no_more(clock):
    for writes, answer, written, told in (
        ([6], True, b"octets", []),
        ([2, None], True, b"oc", []),  # fewer than there were: it is full
        ([None], False, b"", []),
        ([0], False, b"", [("received", 0)]),
    ):
        endpoint = Endpoint(b"octets")
        loop, _, slot = with_one(endpoint, Stream(writes=writes))
        assert loop.flush_all() is answer and loop.streams[slot].written == written and endpoint.told == told
        assert loop.flush(slot) is False


def test_octets_behind_others_go_out_in_the_same_round(clock):
    endpoint = Endpoint(b"octets")

    def sent(size):
        endpoint.out = Out(b"more" if endpoint.out.end == 6 else b"")

    endpoint.sent = sent
    loop, _, slot = with_one(endpoint, Stream(writes=[6, 4]))
    assert loop.flush(slot) is True and loop.streams[slot].written == b"octetsmore"


def test_sending_lets_the_broker_deliver_again_so_often(clock):
    loop, broker, slot = with_one(Endpoint(), Stream())
    broker.turns = 3
    loop.flush_all = lambda: True
    loop.deliver()
    assert broker.runs == 3
    broker.turns, broker.runs = 99, 0
    loop.deliver()
    assert broker.runs == rounds.DELIVERIES
    broker.turns, broker.runs = 99, 0
    loop.flush_all = lambda: False
    loop.deliver()
    assert broker.runs == 1


def test_poll_is_asked_for_what_an_endpoint_wants_once_for_each_change(clock):
    endpoint = Endpoint()
    loop, _, slot = with_one(endpoint, Stream())
    loop.arm()
    poller = loop.poller
    poller.asked.clear()
    loop.arm()
    assert poller.asked == []
    endpoint.out = Out(b"x")
    loop.arm()
    endpoint.room = b""
    loop.arm()
    endpoint.out = Out(b"")
    loop.arm()
    loop.arm()
    assert poller.asked == [("modify", IN | OUT), ("modify", OUT), ("modify", 0)] and loop.masks[slot] == 0


def test_a_bridges_client_is_asked_in_its_own_words(clock):
    class Client:
        closed, room, out = False, b"12", b""

        def writable(self):
            return self.room

        def pending(self):
            return self.out

        def tick(self, now):
            pass

    endpoint = Client()
    loop, _, slot = with_one(endpoint, Stream())
    loop.arm_slot(slot)
    loop.poller.asked.clear()
    endpoint.out = b"x"
    loop.arm_slot(slot)
    endpoint.room = b""
    loop.arm_slot(slot)
    assert loop.poller.asked == [("modify", IN | OUT), ("modify", OUT)]


def test_a_closed_endpoint_sends_its_last_octets_and_goes(clock):
    for is_broken in (False, True):
        endpoint = Endpoint(b"octets")
        stream = Stream(writes=[6])
        loop, _, slot = with_one(endpoint, stream)
        endpoint.closed = True
        if is_broken:
            loop.flush = fails
            with pytest.raises(RuntimeError):
                loop.arm_slot(slot)
        else:
            loop.arm()
        assert stream.written == (b"" if is_broken else b"octets") and stream.is_closed and loop.endpoints[slot] is None


def test_a_round_reads_accepts_tells_the_time_and_clears_its_notes(clock):
    endpoint = Endpoint(room=4)
    loop, broker, slot = with_one(endpoint, Stream(reads=[2]))
    knocks, waits = [], []
    loop.accept_from = knocks.append
    loop.by_key = {4: slot, 5: "listener"}

    def wait(wait_ms):
        waits.append(wait_ms)
        return [(4, IN), (5, IN)]

    loop.wait = wait
    loop.round(5)
    assert waits == [5] and endpoint.told == [("received", 2)] and knocks == ["listener"] and loop.knocked == []
    assert broker.times[1:] == [(1000, 70)] and broker.runs == 1 and loop.flags[slot] == 0
    loop.wait = lambda wait_ms: [(4, OUT)]
    loop.streams[slot].reads = [1]
    clock.now += TICK_MS - 1
    loop.round(5)
    assert endpoint.told[1:] == [], "room to write is no reason to read, and it is no time for a tick"
    clock.now += 1
    loop.round(5)
    clock.now += 1
    loop.round(5)
    assert endpoint.told[1:] == [("tick", 1000 + TICK_MS)]


# A gateway


def bare(**parts):
    """A Gateway without its beginning."""
    made = gateway.Gateway.__new__(gateway.Gateway)
    vars(made).update(
        broker=Broker(), store=None, bridges=None, interface=None, line=None, families=None, _said={}, _parts=[], _to_bridge=[], **parts
    )
    return made


@pytest.fixture
def said(monkeypatch):
    words: list = []
    monkeypatch.setattr(gateway, "say", words.append)
    monkeypatch.setattr(gateway.port_clock, "now_ms", lambda: 1234)
    return words


def test_limits_and_users_that_cannot_be_are_one_sentence():
    with pytest.raises(CannotStart, match="^limits: "):
        gateway.limits_of({"frame_size_max": 1})
    assert gateway.limits_of({}).arena_size == BOARD["arena_size"]
    limits = Limits(**BOARD)
    for users in ([{}], [{"name": "a", "password_hash": "nonsense"}], [{"name": "a", "configure": "("}]):
        with pytest.raises(CannotStart, match="^users: "):
            gateway.access_of(users, limits, b"n")


def test_users_have_what_the_settings_give_them():
    limits = Limits(**BOARD)
    access = gateway.access_of([{"name": "a", "tags": ["monitoring"]}, {"name": "b", "write": "^q"}], limits, b"n")
    a, b = access.users["a"], access.users["b"]
    assert a.permissions is None and list(a.tags) == ["monitoring"] and b.permissions is not None and list(b.tags) == []
    assert list(gateway.access_of([], limits, b"n").users) == ["guest"]


def test_a_step_moves_tends_every_part_and_feeds_the_watchdog_whatever_fails(said, monkeypatch):
    fed, waits, heard = [], [], []
    monkeypatch.setattr(gateway.watchdog, "feed", lambda: fed.append(1))
    made = bare(loop=types.SimpleNamespace(step=waits.append))

    made._parts = [("the log", fails), ("the sensor", heard.append)]
    made.step()
    assert waits == [gateway.STEP_MS] and heard == [1234] and fed == [1]
    ((form, name, error),) = made.broker.guard.told
    assert (form, name, str(error)) == ("%s", "the log", "ours")
    made.store = "store"
    made.broker.journal = types.SimpleNamespace(wait_ms=lambda: 7)
    made.step()
    made.broker.journal.wait_ms = lambda: 7000
    made.step()
    made.bridges = types.SimpleNamespace(wait_ms=lambda wait_ms: wait_ms - 1)
    made.step()
    assert waits[1:] == [7, gateway.STEP_MS, gateway.STEP_MS - 1]


def test_trouble_of_the_log_and_its_end_are_told_once(said):
    made = bare()
    log = types.SimpleNamespace(trouble="")
    made.broker.journal = types.SimpleNamespace(log=log)
    for trouble in ("", "full", "full", "broken", "", ""):
        log.trouble = trouble
        made._watch_log(0)
    assert said == ["full", "broken", "the log can be written again"]


def test_a_gateway_listens_when_it_has_an_address_and_says_each_new_one(said):
    listened = []
    loop = types.SimpleNamespace(listeners=[])

    def listen(*given):
        listened.append(given)
        loop.listeners.append(given)

    loop.listen = listen
    made = bare(loop=loop, wanted={"listen": {"host": "0.0.0.0", "port": 5672}})
    sentences = ["joining", "it is there", None, "it is lost", "it is there"]
    addresses = ["", "1.1.1.1", "1.1.1.1", "", "2.2.2.2"]

    def tick(now):
        made.interface.address = addresses.pop(0)
        return sentences.pop(0)

    made.interface = types.SimpleNamespace(address="", tick=tick)
    for now in range(5):
        made._watch_network(now)
    ready = gateway.READY + "amqp://%s:5672"
    assert said == ["joining", "it is there", ready % "1.1.1.1", "it is lost", "it is there", ready % "2.2.2.2"]
    assert listened == [("0.0.0.0", 5672, made._accept)] and made._parts == []


def test_an_address_that_is_taken_is_one_sentence(said):
    def listen(*given):
        raise OSError("in use")

    made = bare(loop=types.SimpleNamespace(listeners=[], listen=listen), wanted={"listen": {"host": "h", "port": 1}})
    with pytest.raises(CannotStart, match="^cannot listen on h:1: in use$"):
        made._listen("h")


def test_bridges_begin_once_with_the_network(said, monkeypatch):
    from leveret.firmware import uplink

    began = []
    monkeypatch.setattr(uplink, "start", lambda loop, broker, settings: began.append(settings) or "bridges")
    made = bare(loop=types.SimpleNamespace(listeners=[1]), wanted={"listen": {"host": "h", "port": 1}})
    made._to_bridge = ["one"]
    made._listen("h")
    made._listen("h")
    assert began == [["one"]] and made.bridges == "bridges" and made._parts == [("the bridges", made._step_bridges)]
    steps = []
    made.bridges = types.SimpleNamespace(step=lambda: steps.append(1))
    made._step_bridges(5)
    assert steps == [1]


def test_the_clock_is_told_whether_there_is_a_network():
    told = []
    made = bare(clock=types.SimpleNamespace(tick=lambda *given: told.append(given)))
    made._watch_clock(1)
    made.interface = types.SimpleNamespace(address="")
    made._watch_clock(2)
    made.interface.address = "1.1.1.1"
    made._watch_clock(3)
    assert told == [(1, True), (2, False), (3, True)]


def test_a_peer_is_near_on_loopback_and_served_what_the_settings_say(said):
    real = gateway.Broker(Limits(**BOARD), b"n")
    made = bare(wanted={"listen": {"host": "0.0.0.0", "port": 1}})
    made.broker = real
    far = types.SimpleNamespace(name="peer", from_loopback=False, address="9.9.9.9")
    assert made._accept(far).from_loopback is False
    far.from_loopback = True
    assert made._accept(far).from_loopback is True
    far.from_loopback = False
    made.wanted["listen"]["host"] = "127.0.0.1"
    made.families = "families"
    accepted = made._accept(far)
    assert accepted.from_loopback is True and accepted.families == "families" and isinstance(accepted, Connection)
    assert made._admitted(types.SimpleNamespace(closed=True)) is None


def test_the_end_closes_the_line_first_then_bridges_and_connections(said, monkeypatch):
    events: list = []
    line = types.SimpleNamespace()
    connection = types.SimpleNamespace(close=lambda text: events.append(("close", text)), finish=lambda: events.append("finish"))
    times = [0, 0, 499, 500, 501]
    monkeypatch.setattr(gateway.port_clock, "now_ms", lambda: times.pop(0))
    loop = types.SimpleNamespace(
        used=[0, 1],
        streams=["other", line],
        endpoints=[None, types.SimpleNamespace(received=lambda size: events.append(("line", size)))],
        stop_listening=lambda: events.append("deaf"),
        remove=lambda slot: events.append(("remove", slot)),
        step=lambda ms: events.append(("step", ms)),
        close=lambda: events.append("loop"),
    )
    made = bare(loop=loop)
    made.line, made.bridges = line, types.SimpleNamespace(stop=lambda ms: events.append(("bridges", ms)))
    made.broker.connections = [connection]
    made.broker.journal = types.SimpleNamespace(finish=lambda: False, log=types.SimpleNamespace(trouble="full"))
    made.store = types.SimpleNamespace(close=lambda: events.append("store"))
    made.stop()
    steps = [("step", gateway.STEP_MS)] * 2
    assert events == [
        "deaf", ("line", 0), ("remove", 1), ("bridges", 500), ("close", gateway.CLOSE_TEXT), *steps, "finish", "loop", "store",
    ]  # fmt: skip
    assert said == ["not everything could be written: full"]


def test_the_store_is_closed_whatever_fails(said):
    events: list = []
    made = bare(loop=types.SimpleNamespace(stop_listening=fails, close=lambda: events.append("loop")))
    made.stop()
    assert said == ["connections could not be closed: RuntimeError: ours"] and events == ["loop"], "no store: nothing to write"
    made.store = types.SimpleNamespace(close=lambda: events.append("store"))
    made.broker.journal = types.SimpleNamespace(finish=fails)
    with pytest.raises(RuntimeError):
        made.stop()
    assert events == ["loop", "loop", "store"]


def test_a_board_that_cannot_start_says_why_and_keeps_it(said, monkeypatch):
    noted: list = []
    monkeypatch.setattr(gateway.resets, "note", noted.append)
    rests: list = []
    monkeypatch.setattr(gateway.watchdog, "rest", lambda: rests.append(1))
    monkeypatch.setattr(gateway.settings, "load", lambda: {"watchdog_ms": 5})
    for error, reason in (
        (CannotStart("no line"), "no line"),
        (MemoryError(), "there is not enough memory: make the limits smaller"),
        (KeyError("x"), "KeyError: 'x'"),
    ):

        def begin(wanted, error=error):
            raise error

        monkeypatch.setattr(gateway, "Gateway", begin)
        assert gateway.start() is None
        assert said.pop() == noted.pop() == gateway.CANNOT_START + reason
    assert rests == [1, 1, 1], "the watchdog rests before what may take long"
    monkeypatch.setattr(gateway.settings, "load", lambda: {"watchdog_ms": 0})
    monkeypatch.setattr(gateway, "Gateway", lambda wanted: "gateway")
    assert gateway.start() == "gateway" and rests == [1, 1, 1]


def test_the_console_stops_a_board_and_an_error_of_ours_is_kept(said, monkeypatch):
    rests: list = []
    failed: list = []
    monkeypatch.setattr(gateway.watchdog, "rest", lambda: rests.append(1))
    monkeypatch.setattr(gateway.resets, "started", lambda: None)
    monkeypatch.setattr(gateway.resets, "failed", failed.append)
    stopped: list = []

    def running(*errors):
        left = list(errors)

        def step():
            if left[0] is not None:
                raise left.pop(0)
            left.pop(0)

        monkeypatch.setattr(gateway, "start", lambda: types.SimpleNamespace(step=step, stop=lambda: stopped.append(1)))

    monkeypatch.setattr(gateway, "start", lambda: None)
    assert gateway.main() is False and rests == [1] and stopped == []
    running(None, KeyboardInterrupt())
    assert gateway.main() is True and said == ["stopped; Ctrl-D starts it again"] and rests == [1, 1] and stopped == [1]
    error = RuntimeError("ours")
    running(None, error)
    with pytest.raises(RuntimeError):
        gateway.main()
    assert failed == [error] and stopped == [1, 1] and rests == [1, 1]


# Its network


def test_an_ethernet_port_has_its_pins_and_kinds_by_name(board):  # noqa: F811 - the fixture
    import sys

    network, made = sys.modules["network"], []

    class Lan:
        def __init__(self, **given):
            made.append(given)

        def active(self, on):
            made.append(on)

        def isconnected(self):
            return False

    network.LAN, network.W5500, network.PHY_LAN8720 = Lan, Lan, 7
    wanted = {"mdc": 23, "power": 5, "phy_type": "PHY_LAN8720", "phy_addr": 1}
    sys.modules["machine"].Pin = lambda number: ("pin", number)
    port = interface.Interface({"wifi": None, "ethernet": wanted, "name": "g"})
    assert made == [{"mdc": ("pin", 23), "power": ("pin", 5), "phy_type": 7, "phy_addr": 1}, True]
    assert port.tick(0) == "waiting for the Ethernet" and port.tick(interface.JOIN_MS - 1) is None
    assert port.tick(interface.JOIN_MS) == "the Ethernet cannot be joined: no answer in 20 s; trying again"
    interface.Interface({"wifi": None, "ethernet": {"kind": "W5500", "cs": 9}, "name": "g"})
    assert made[2:] == [{"cs": ("pin", 9)}, True]


def test_a_station_has_its_country_and_the_board_its_name(board):  # noqa: F811 - the fixture
    import sys

    network, told = sys.modules["network"], []
    network.hostname = network.country = told.append
    interface.Interface({"wifi": {"ssid": "home", "country": "DE"}, "ethernet": None, "name": "g"})
    interface.Interface({"wifi": {"ssid": "home"}, "ethernet": None, "name": "h"})
    assert told == ["g", "DE", "h"]


def test_the_address_is_looked_at_from_time_to_time_and_a_new_one_said(board):  # noqa: F811 - the fixture
    wifi = interface.Interface({"wifi": {"ssid": "home"}, "ethernet": None, "name": "g"})
    looked, address = [], ["0.0.0.0"]
    wifi.device.connected = True
    wifi.device.ifconfig = lambda: looked.append(1) or address
    assert wifi.tick(0) is None and wifi.address == ""
    address[0] = "1.1.1.1"
    assert wifi.tick(1) == "the Wi-Fi network home is there; this board is 1.1.1.1"
    address[0] = "2.2.2.2"
    assert wifi.tick(interface.ADDRESS_MS) is None and len(looked) == 2
    assert wifi.tick(interface.ADDRESS_MS + 1) == "the Wi-Fi network home is there; this board is 2.2.2.2"
    address[0] = "0.0.0.0"
    assert wifi.tick(3 * interface.ADDRESS_MS) is None and wifi.address == "2.2.2.2"
