"""What only a board has, with doubles for machine and network on CPython: watchdog, Wi-Fi, clock, UART, sensor, and what cannot start.

The firmware looks these modules up when it needs them; here they are put into sys.modules. Octets, brokers and NTP answers are real.
"""

import io
import json
import os
import runpy
import socket
import struct
import sys
import types

import pytest

from leveret.core.access.permissions import default
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.memory import layout
from leveret.core.message import reading
from leveret.core.outcomes import nobody
from leveret.firmware import clock, gateway, interface, line, resets, settings, watchdog
from leveret.firmware.say import CannotStart
from leveret.firmware.sensor import Sensor
from leveret.ports.clock import seconds
from leveret.ports.sockets import SocketStream
from leveret.tools import boards


class Timer:
    made = []

    def __init__(self, number):
        self.running = False
        Timer.made.append(self)

    def init(self, period, callback):
        self.period, self.callback, self.running = period, callback, True

    def deinit(self):
        self.running = False

    def pass_time(self, ms):
        for _ in range(ms // self.period):
            if self.running:
                self.callback(self)


class Wdt:
    made = []

    def __init__(self, timeout):
        self.timeout, self.fed = timeout, 0
        Wdt.made.append(self)

    def feed(self):
        self.fed += 1


class Rtc:
    set_to = []

    def datetime(self, given):
        Rtc.set_to.append(given)


class Adc:
    def __init__(self, pin):
        self.pin = pin

    def read_u16(self):
        return 100 * self.pin


class I2c:
    answers = True

    def __init__(self, bus, **pins):
        self.bus = bus

    def readfrom_mem_into(self, address, register, octets):
        if not I2c.answers:
            raise OSError(19)
        octets[:] = b"\xff\x80"  # -128


class Uart:
    def __init__(self, number, **given):
        if number > 1:
            raise ValueError("UART(%d) does not exist" % number)
        self.given, self.input, self.output = given, b"", b""

    def readinto(self, view):
        count = min(len(view), len(self.input))
        view[:count] = self.input[:count]
        self.input = self.input[count:]
        return count or None

    def write(self, octets, at, size):
        self.output += bytes(octets[at : at + size])
        return size


class Station:
    """A Wi-Fi station that joins when `reachable`."""

    def __init__(self, kind):
        self.reachable, self.connected, self.asked = True, False, []

    def active(self, on):
        pass

    def isconnected(self):
        return self.connected

    def ifconfig(self):
        return ("192.168.7.9", "", "", "")

    def connect(self, *given):
        self.asked.append(given)
        self.connected = self.reachable

    def disconnect(self):
        self.connected = False

    def status(self):
        return -3


@pytest.fixture
def board(monkeypatch, tmp_path):
    """The modules of a board, and a directory of its own."""
    machine = types.ModuleType("machine")
    machine.WDT, machine.Timer, machine.RTC, machine.ADC, machine.I2C, machine.UART = Wdt, Timer, Rtc, Adc, I2c, Uart
    machine.Pin = lambda number: number
    network = types.ModuleType("network")
    network.STA_IF, network.STAT_WRONG_PASSWORD = 0, -3
    network.WLAN = Station
    monkeypatch.setitem(sys.modules, "machine", machine)
    monkeypatch.setitem(sys.modules, "network", network)
    monkeypatch.chdir(tmp_path)
    for name in ("_watchdog", "_timer"):
        monkeypatch.setattr(watchdog, name, None)
    monkeypatch.setattr(watchdog, "_ticks_left", 0)
    monkeypatch.setattr(I2c, "answers", True)
    monkeypatch.setattr(Rtc, "set_to", [])
    return tmp_path


def write(**given):
    with open("settings.json", "w") as file:
        json.dump(given, file)


def test_the_watchdog_is_fed_by_the_loop_and_by_a_timer_while_something_else_has_the_board(board):
    write(serial={"line": "console"}, watchdog_ms=8000)
    watchdog.rest()
    dog, timer = Wdt.made[-1], Timer.made[-1]
    assert dog.timeout == 8000
    fed = dog.fed
    timer.pass_time(60000)
    assert dog.fed > fed, "the prompt has the board"
    watchdog.feed()
    fed = dog.fed
    timer.pass_time(60000)
    assert dog.fed == fed, "the loop alone feeds now, and it hangs"
    watchdog.keep_fed(20000)
    fed = dog.fed
    timer.pass_time(60000)
    assert 20000 // watchdog.TICK_MS <= dog.fed - fed <= 20000 // watchdog.TICK_MS + 2, "a call that blocks has a bounded time"
    watchdog.rest()
    fed = dog.fed
    timer.pass_time(60000)
    assert dog.fed > fed + 100


def test_wifi_is_joined_lost_and_joined_again_with_pauses_and_the_password_is_never_said(board):
    wifi = interface.Interface({"wifi": {"ssid": "home", "password": "secret words"}, "ethernet": None, "name": "g"})
    station = wifi.device
    said = [wifi.tick(0), wifi.tick(100)]
    assert said == ["joining the Wi-Fi network home", "the Wi-Fi network home is there; this board is 192.168.7.9"]
    assert wifi.address == "192.168.7.9" and station.asked == [("home", "secret words")]
    station.connected = station.reachable = False
    said.append(wifi.tick(200))
    assert wifi.address == "" and "is lost" in said[-1]
    now = 200
    tried = []
    while now < 400000:
        now += 100
        sentence = wifi.tick(now)
        if sentence:
            said.append(sentence)
            tried.append((now, sentence))
    assert any("the password is wrong" in sentence for sentence in said)
    assert 6 <= len(station.asked) <= 20, "it goes on trying, with pauses"
    station.reachable = True
    while not wifi.address:
        now += 100
        said.append(wifi.tick(now) or "")
    assert "secret" not in " ".join(said)


def ntp_server(answer):
    """(port, function that answers one request)."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    server.settimeout(5)

    def serve():
        request, peer = server.recvfrom(100)
        assert len(request) == 48 and request[0] == 0x23
        server.sendto(answer, peer)

    return server, serve


def test_the_clock_is_set_from_ntp_and_kept_for_the_next_start(board, monkeypatch):
    wanted = 1800000000
    server, serve = ntp_server(b"\x24" + bytes(39) + struct.pack(">I", wanted + 2208988800 & 0xFFFFFFFF) + bytes(4))
    monkeypatch.setattr(clock, "PORT", server.getsockname()[1])
    said = []
    found = clock.Clock("127.0.0.1", said.append)
    found.tick(0, False)
    found.tick(1000, True)
    serve()
    for now in range(1000, 1500, 10):
        found.tick(now, True)
        if found.right:
            break
    server.close()
    assert found.right and Rtc.set_to[-1][:3] == (2027, 1, 15) and Rtc.set_to[-1][4:7] == (8, 0, 0)
    assert abs(clock.kept() - seconds()) < 5


def test_without_an_answer_the_clock_says_so_once_and_time_never_runs_back(board, monkeypatch):
    with open(clock.KEPT, "w") as file:
        file.write(str(seconds() + 7200))
    server, _ = ntp_server(b"")
    monkeypatch.setattr(clock, "PORT", server.getsockname()[1])
    said = []
    found = clock.Clock("127.0.0.1", said.append)
    assert len(Rtc.set_to) == 1, "the board's clock says an earlier time than was known before the power went"
    for now in range(0, 200000, 500):
        found.tick(now, True)
    asked = 0
    server.setblocking(False)
    try:
        while server.recv(100):
            asked += 1
    except BlockingIOError:
        pass
    server.close()
    assert 5 <= asked <= 200000 // clock.AGAIN_MS + 1, "it asks again, and not at every step"
    assert said == ["the clock cannot be set: no answer from 127.0.0.1"] and not found.right


def test_a_uart_is_a_stream(board):
    stream, baud = line.open_line({"line": 1, "baud": 9600, "tx": 4, "rx": 5})
    assert (stream.name, baud) == ("UART 1", 9600) and stream.pollable.given["tx"] == 4
    room = memoryview(bytearray(8))
    assert stream.read_into(room) is None
    stream.pollable.input = b"abcdefghij"
    assert stream.read_into(room) == 8 and bytes(room) == b"abcdefgh" and stream.read_into(room) == 2
    assert stream.write_part(memoryview(b"wxyz"), 1, 2) == 2 and stream.pollable.output == b"xy"


class Written(io.BytesIO):
    """MicroPython's standard output: it writes a part of what it is given."""

    def write(self, octets, at, size):
        return io.BytesIO.write(self, octets[at : at + size])


def test_the_console_is_a_stream_that_waits_for_nothing(monkeypatch):
    """What stands in the line, octet by octet; a read of more would wait until the view is full."""
    reader, writer = os.pipe()
    written = Written()
    with os.fdopen(reader, "rb", buffering=0) as end:
        terminal = types.SimpleNamespace(buffer=end, fileno=end.fileno)
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(buffer=written))
        stream, baud = line.open_line({"line": line.CONSOLE})
        monkeypatch.undo()
        assert (stream.name, baud, stream.pollable) == ("console", line.BAUD, terminal)
        room = memoryview(bytearray(4))
        assert stream.read_into(room) is None
        os.write(writer, b"octets")
        assert stream.read_into(room) == 4 and bytes(room) == b"octe"
        assert stream.read_into(room) == 2 and bytes(room) == b"tste"
        assert stream.read_into(room) is None and stream.read_into(room[:0]) is None
        assert stream.write_part(memoryview(b"an answer"), 3, 6) == 6 and written.getvalue() == b"answer"
        stream.close()
        os.close(writer)
        assert stream.read_into(room) is None, "the terminal is gone"


def test_a_sensor_publishes_through_the_local_broker_and_its_queue_keeps_the_newest(board):
    broker = Broker(Limits(**BOARD), b"n")
    said = []
    wanted = {"every_ms": 100, "keep": 5, "adc": {"light": 26}, "i2c": [{"name": "celsius", "address": 72, "scale": 0.5}]}
    sensor = Sensor(broker, "greenhouse", wanted, said.append)
    for now in range(0, 2000, 50):
        broker.tick(now, seconds())
        broker.run()
        sensor.step(now)
        I2c.answers = now < 1000
    assert 15 <= sensor.published <= 20 and (sensor.refused_count, sensor.missed_count) == (0, 0)
    assert said == ["the sensor celsius does not answer (19)"]
    assert broker.queues["sensors"].message_count() == 5 and broker.connections == []
    message = broker.tables.entries[broker.queues["sensors"].head() + layout.ENTRY_MESSAGE]
    found = reading.properties_of(broker.tables, message)
    assert (found["content_type"], found["delivery_mode"]) == ("application/json", 2) and broker.tables.is_durable(message)
    size = broker.tables.messages[message + layout.MESSAGE_BODY]
    body = json.loads(broker.tables.octets(message, broker.tables.size_of(message) - size, size))
    assert (body["gateway"], body["light"], body["number"]) == ("greenhouse", 2600, sensor.published - 4)


def test_a_sensor_whose_queue_is_another_says_so_once_and_tries_again(board):
    """Another declaration is refused (0-9-1 section 1.7.2.1); when that queue has gone the sensor goes on."""
    broker = Broker(Limits(**BOARD), b"n")
    broker.topology.declare_queue(nobody, "sensors", False, False, False, False, {})
    said = []
    sensor = Sensor(broker, "greenhouse", {"every_ms": 100}, said.append, [])
    for now in range(0, 8000, 50):
        sensor.step(now)
    assert said == [
        "the sensor cannot publish: inequivalent arg 'durable' for queue 'sensors' in vhost '/': received 'true' but current is 'false'"
    ]
    assert sensor.published == 0
    broker.topology.delete_queue(nobody, "sensors", False, False)
    for now in range(8000, 14000, 50):
        sensor.step(now)
    assert sensor.published > 0 and sensor.trouble == ""


def test_a_sensor_without_room_misses_messages_and_goes_on(board):
    broker = Broker(Limits(**BOARD), b"n")
    sensor = Sensor(broker, "greenhouse", {"every_ms": 100}, print, [])
    sensor.step(0)
    tables = broker.tables
    free, tables.state[layout.POOL_MESSAGES + 2] = tables.state[layout.POOL_MESSAGES + 2], 0
    sensor.step(1000)
    assert (sensor.published, sensor.missed_count) == (1, 1)
    tables.state[layout.POOL_MESSAGES + 2] = free
    sensor.step(2000)
    assert (sensor.published, sensor.missed_count) == (2, 1) and broker.queues["sensors"].message_count() == 2


def test_a_sensor_declares_its_queue_once_and_again_when_it_has_gone(board):
    """Each message would take the heap of a declaration."""
    broker = Broker(Limits(**BOARD), b"n")
    declared, declare = [], broker.topology.declare_queue

    def noted(owner, name, *given):
        declared.append(name)
        return declare(owner, name, *given)

    broker.topology.declare_queue = noted
    sensor = Sensor(broker, "greenhouse", {"every_ms": 100}, print, [])
    for now in range(0, 1000, 100):
        sensor.step(now)
    assert declared == ["sensors"] and sensor.published == 10
    broker.topology.delete_queue(nobody, "sensors", False, False)
    for now in range(1000, 1300, 100):
        sensor.step(now)
    assert declared == ["sensors"] * 2 and broker.queues["sensors"].message_count() == 3


@pytest.mark.parametrize(
    "given, said",
    [
        (None, "there is no settings.json on this board"),
        ("{", "settings.json is not JSON"),
        ({"colour": 1}, "there is no setting 'colour'"),
        ({}, "names no network and no serial line"),
        ({"listen": "5672"}, "listen is of the wrong kind"),
        ({"serial": {"line": 1}, "limits": {"arena_size": 1}}, "limits: arena_size is 1"),
        ({"serial": {"line": 7}}, "ValueError: UART(7) does not exist"),
        ({"serial": {"line": 1}, "users": [{"name": "a", "password_hash": "!"}]}, "users: "),
        ({"serial": {"line": 1}, "store": {"kind": "flash", "start": 0, "size": 65536}}, "no flash that can be used without a file system"),
        ({"listen": {"host": "192.0.2.1", "port": 5672}}, "cannot listen on 192.0.2.1:5672"),
    ],
)
def test_a_broker_that_cannot_start_says_why_and_leaves_the_prompt(board, capsys, given, said):
    if given is not None:
        (board / "settings.json").write_text(given if isinstance(given, str) else json.dumps(given))
    assert gateway.main() is False
    printed = capsys.readouterr().out.strip().splitlines()
    assert printed[-1].startswith("leveret: cannot start: ") and said in printed[-1], printed


def test_limits_that_do_not_fit_are_said_with_what_is_free(board, capsys, monkeypatch):
    write(serial={"line": 1})

    def no_memory(*given):
        raise MemoryError

    monkeypatch.setattr(gateway, "Broker", no_memory)
    gateway.main()
    assert "the limits ask for more than the 0 KiB that are free" in capsys.readouterr().out


def test_what_an_interpreter_lacks_is_a_sentence(board, monkeypatch):
    monkeypatch.setitem(sys.modules, "machine", None)
    with pytest.raises(CannotStart, match="has no module machine, which UART 1 needs"):
        line.open_line({"line": 1})
    monkeypatch.setitem(sys.modules, "network", None)
    with pytest.raises(CannotStart, match="has no module network"):
        interface.Interface(dict(settings.DEFAULTS, wifi={"ssid": "x"}))


def stopping(folder):
    """A gateway with a store, a listener and a connection: (it, the calls of its store's `close`, the peer's socket)."""
    wanted = dict(settings.DEFAULTS, listen={"host": "127.0.0.1", "port": 0}, store={"kind": "folder", "path": folder})
    made = gateway.Gateway(wanted)
    ours, peer = socket.socketpair()
    made.loop.add(SocketStream(ours, "peer"), Connection(made.broker, "peer"))
    peer.send(b"AMQP\0\0\x09\x01")
    made.loop.step(0)
    closed = []
    store, closing = made.store, made.store.close

    def close():
        closed.append(True)
        closing()

    store.close = close
    return made, closed, peer


def test_the_store_is_closed_whichever_call_fails_before(board, capsys, monkeypatch):
    """An error is raised at the n-th call within `stop`, for every n."""
    monkeypatch.setattr(gateway, "STOP_MS", 1)
    monkeypatch.setattr(gateway, "STEP_MS", 0)
    number = 0
    while True:
        number += 1
        made, closed, peer = stopping("log")
        counts = [0]
        closers = (made.store.close.__code__, gateway.Gateway.stop.__code__)

        def fail(frame, event, argument, counts=counts, closed=closed, closers=closers):
            if event == "call" and not closed and frame.f_code not in closers:
                counts[0] += 1
                if counts[0] == number:
                    raise MemoryError
            return

        sys.settrace(fail)
        try:
            made.stop()
        except MemoryError:
            pass
        finally:
            sys.settrace(None)
            peer.close()
        assert closed == [True], number
        if counts[0] < number:
            break
    assert number > 20


def test_ctrl_c_in_the_middle_of_a_removal_leaves_a_gateway_that_stops(board, capsys, monkeypatch):
    """The console's interrupt comes at each line of it; `stop` then frees the slot all the same, and says nothing."""
    monkeypatch.setattr(gateway, "STOP_MS", 1)
    monkeypatch.setattr(gateway, "STEP_MS", 0)
    number = 0
    while True:
        number += 1
        made, closed, peer = stopping("log")
        lines = [0]

        def interrupt(frame, event, argument, lines=lines, number=number):
            if event == "line":
                lines[0] += 1
                if lines[0] == number:
                    raise KeyboardInterrupt
            return interrupt

        (slot,) = made.loop.used
        sys.settrace(lambda frame, event, argument, trace=interrupt: trace if frame.f_code.co_name == "remove" else None)
        try:
            made.loop.remove(slot)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        made.stop()
        peer.close()
        assert closed == [True] and not made.loop.used and "could not be closed" not in capsys.readouterr().out, number
        if lines[0] < number:
            break
    assert number > 5


def test_what_has_been_opened_is_closed_when_another_part_cannot_start(board, monkeypatch):
    from leveret.ports.store_littlefs import FolderStore

    closed = []
    monkeypatch.setattr(FolderStore, "close", lambda store: closed.append(store))
    wanted = dict(settings.DEFAULTS, serial={"line": 7}, store={"kind": "folder", "path": "log"})
    with pytest.raises(ValueError, match="does not exist"):
        gateway.Gateway(wanted)
    assert len(closed) == 1


def test_a_part_that_raises_is_told_and_the_rest_serves_on(board, capsys):
    made, _, peer = stopping("log")
    tended = []

    def raises(now):
        raise MemoryError("1024 octets")

    made._parts = [("the sensor", raises), ("the clock", tended.append)]
    for _ in range(3):
        made.step()
    assert len(tended) == 3 and made.broker.counters["internal_errors"] == 3
    assert capsys.readouterr().out.count("an error of this broker in the work for the sensor: MemoryError: 1024 octets") == 1
    made.stop()
    peer.close()


@pytest.mark.parametrize("name", [name for name in boards.names() if "amqp_0_9" in boards.load(name).carries["dialects"]])
def test_the_sensor_publishes_within_the_limits_of_each_board(board, name):
    said = []
    limits = boards.load(name).limits
    broker = Broker(limits, b"n" * 16, default(limits, b"n" * 16), said.append)
    sensor = Sensor(broker, "greenhouse", {"every_ms": 100, "adc": {"light": 26, "warmth": 27}}, said.append)
    for now in range(0, 1500, 50):
        broker.tick(now, seconds())
        broker.run()
        sensor.step(now)
    assert sensor.published >= 10 and sensor.refused_count == sensor.missed_count == 0, said
    assert broker.queues["sensors"].message_count() >= 10


def test_garbage_is_collected_before_it_fills_the_heap(board, monkeypatch):
    """With a share of the heap, as a collection's time is: 3.4 KB on an ESP32 without PSRAM, 64 KB on an ESP32-S3 with it."""
    collector = types.ModuleType("gc")
    asked = []
    collector.mem_alloc, collector.mem_free, collector.threshold = lambda: 40000, lambda: 72640, asked.append
    monkeypatch.setitem(sys.modules, "gc", collector)
    monkeypatch.setattr(gateway, "main", lambda: asked.append("main"))
    runpy.run_path(os.path.join(boards.ROOT, "firmware", "main.py"))
    assert asked == [3520, "main"]


def test_the_reasons_of_the_last_starts_are_kept(board, capsys, monkeypatch):
    """The newest of them, in the order in which they came, and an error that ended the broker among them."""
    machine = sys.modules["machine"]
    machine.PWRON_RESET, machine.WDT_RESET, machine.reset_cause = 1, 3, lambda: 3
    gateway.main()
    absent = "cannot start: there is no settings.json on this board: run `leveret flash`, which writes it"
    assert [line.split(" ", 1)[1] for line in resets.lines()] == ["start 1: the watchdog: the broker stood still", absent]
    machine.reset_cause = lambda: 77
    monkeypatch.setattr(gateway, "start", lambda: types.SimpleNamespace(step=lambda: 1 // 0, stop=lambda: None))
    for _ in range(resets.KEPT):
        with pytest.raises(ZeroDivisionError):
            gateway.main()
    kept = [line.split(" ", 1)[1] for line in resets.lines()]
    ends = "ended by ZeroDivisionError: integer division or modulo by zero"
    assert kept == [text for number in range(6, 10) for text in ("start %d: cause 77" % number, ends)]
    assert resets.starts() == 9 and resets.starts(["5 started: the power came", "8 ended by start 7: x"]) == 0
    assert abs(int(resets.lines()[-1].split()[0]) - seconds()) < 60


def test_a_start_is_noted_where_nothing_can_be_written_or_known(board, monkeypatch):
    (board / resets.NEW).mkdir()
    monkeypatch.setitem(sys.modules, "machine", None)
    resets.started()
    assert resets.lines() == [] and resets.cause() == "an interpreter that does not say why"


class PowerGone(BaseException):
    """Nothing may carry on after it."""


def stop_power(*given):
    raise PowerGone


def test_a_power_cut_before_a_note_has_its_name_leaves_the_old_ones(board, monkeypatch):
    monkeypatch.setattr(resets.os, "rename", stop_power)
    (board / resets.PATH).write_text("5 started: the power came\n")
    with pytest.raises(PowerGone):
        resets.note("another")
    assert resets.lines() == ["5 started: the power came"]
