"""firmware/gateway.py and interface.py over doubles: how a gateway begins, tends its parts and ends, and what a network says."""

import types

import pytest
from test_firmware import board  # noqa: F401 - a fixture: the modules of a board

from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.firmware import gateway, interface
from leveret.firmware.say import CannotStart


def fails(*_):
    raise RuntimeError("ours")


class Broker:
    """A broker with connections to close, and faults that it was told."""

    def __init__(self):
        self.connections = []
        self.guard = types.SimpleNamespace(told=[], trouble=lambda *words: self.guard.told.append(words))


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
