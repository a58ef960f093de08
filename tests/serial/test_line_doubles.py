"""ports/serial_line.py over a device and links that do what the test says: sizes, times, speeds, and what a line is told."""

import errno
import termios

import pytest

from leveret.core.serial_link.link import Link
from leveret.ports import serial_line
from leveret.ports.client_errors import ConnectFailed, Timeout
from leveret.ports.serial_line import LineFailed, Plug, SerialLine, SerialStream, explain, new_bus, new_link, queue_max_for, window_for


class Device:
    """What pyserial opens: `out_waiting` octets are not on the line yet; `error`: what a new speed raises."""

    def __init__(self, *given, **options):
        self.given, self.options = given, options
        self.out_waiting, self.closed, self.error, self.speeds = 0, False, None, []

    def fileno(self):
        return 9

    def close(self):
        self.closed = True

    @property
    def baudrate(self):
        return self.speeds[-1]

    @baudrate.setter
    def baudrate(self, baud):
        if self.error:
            raise self.error
        self.speeds.append(baud)


class System:
    """The calls of the system that a stream makes: `comes`: what each read or write gives, in turn."""

    def __init__(self):
        self.comes, self.attributes, self.error = [], [], None

    def play(self, descriptor, what):
        assert descriptor == 9
        done = self.comes.pop(0)
        if isinstance(done, Exception):
            raise done
        return done

    def tcgetattr(self, descriptor):
        return [0, 0, 0, 0, 0, 0, [b"\0"] * 32]

    def tcsetattr(self, descriptor, when, settings):
        self.attributes.append((descriptor, when, settings[6][termios.VMIN]))


@pytest.fixture
def system(monkeypatch):
    made = System()
    monkeypatch.setattr(serial_line.serial, "Serial", Device)
    monkeypatch.setattr(serial_line.termios, "tcgetattr", made.tcgetattr)
    monkeypatch.setattr(serial_line.termios, "tcsetattr", made.tcsetattr)
    monkeypatch.setattr(serial_line.os, "readv", lambda descriptor, views: made.play(descriptor, views))
    monkeypatch.setattr(serial_line.os, "write", lambda descriptor, view: made.play(descriptor, view))
    return made


def test_a_device_is_opened_for_one_program_and_a_read_of_nothing_is_no_end(system):
    stream = SerialStream("/dev/x", 9600)
    assert stream._port.given == ("/dev/x", 9600)
    assert stream._port.options == {"timeout": 0, "write_timeout": 0, "exclusive": True}
    assert system.attributes == [(9, termios.TCSANOW, 1)] and (stream.pollable, stream.name, stream.closed) == (9, "/dev/x", False)
    stream.close()
    assert stream.closed and stream._port.closed


@pytest.mark.parametrize("number, answer", [(errno.EIO, 0), (errno.ENXIO, 0), (errno.ENODEV, 0), (errno.EBADF, 0), (errno.EAGAIN, None)])
def test_an_unplugged_device_is_the_end_and_a_busy_one_is_not(system, number, answer):
    stream = SerialStream("/dev/x", 9600)
    system.comes = [OSError(number, "x"), OSError(number, "x"), 5, 6]
    assert stream.read_into(bytearray(9)) == answer and stream.write(b"octets") == answer
    assert stream.read_into(bytearray(9)) == 5 and stream.write(b"octets") == 6
    system.comes = [OSError(errno.ENOSPC, "full"), OSError(errno.ENOSPC, "full")]
    for call in (stream.read_into, stream.write):
        with pytest.raises(OSError, match="full"):
            call(bytearray(3))


def test_what_waits_in_a_device_that_is_gone_is_nothing(system, monkeypatch):
    stream = SerialStream("/dev/x", 9600)
    stream._port.out_waiting = 12
    assert stream.waiting() == 12

    def gone(self):
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(Device, "out_waiting", property(gone, lambda self, value: None), raising=False)
    assert SerialStream("/dev/x", 9600).waiting() == 0


def test_a_speed_is_set_and_the_device_told_again_how_it_reads(system):
    stream = SerialStream("/dev/x", 9600)
    stream.set_speed(19200)
    assert stream._port.speeds == [19200] and len(system.attributes) == 2
    for error in (OSError(errno.EINVAL, "odd"), ValueError("odd"), termios.error(22, "odd")):
        stream._port.error = error
        with pytest.raises(LineFailed, match="^/dev/x cannot be opened at 7 baud: .*odd.*; try a usual speed as 115200$"):
            stream.set_speed(7)


@pytest.mark.parametrize(
    "error, said",
    [
        (
            OSError(errno.ENOENT, "x"),
            "there is no serial device D: plug it in, or see what is there with `python3 -m serial.tools.list_ports`",
        ),
        (
            OSError(errno.ENXIO, "x"),
            "there is no serial device D: plug it in, or see what is there with `python3 -m serial.tools.list_ports`",
        ),
        (
            OSError(errno.ENODEV, "x"),
            "there is no serial device D: plug it in, or see what is there with `python3 -m serial.tools.list_ports`",
        ),
        (OSError(errno.EACCES, "x"), "D may not be opened by this user: `sudo usermod -aG dialout $USER`, then log in again"),
        (OSError(errno.EPERM, "x"), "D may not be opened by this user: `sudo usermod -aG dialout $USER`, then log in again"),
        (OSError(errno.EBUSY, "x"), "D is in use by another program: end that one (`fuser D` names it)"),
        (ValueError("Could not exclusively lock port"), "D is in use by another program: end that one (`fuser D` names it)"),
        (OSError(errno.ENOTTY, "x"), "D is not a serial device: name a terminal device as /dev/ttyUSB0"),
        (OSError(errno.EISDIR, "x"), "D is not a serial device: name a terminal device as /dev/ttyUSB0"),
        (ValueError("Could not configure port: (5)"), "D is not a serial device: name a terminal device as /dev/ttyUSB0"),
        (ValueError("odd"), "D cannot be opened at 7 baud: odd; try a usual speed as 115200"),
    ],
)
def test_what_is_wrong_with_a_device_is_one_sentence(error, said):
    assert explain("D", 7, error) == said


def test_a_window_holds_a_second_of_the_line_and_two_frames():
    """The powers of two from the smallest window on: what a line of 10 bits an octet carries in a second, 16384 at most."""
    sizes = {baud: window_for(baud, 128) for baud in (300, 9600, 10240, 20480, 115200, 1000000)}
    assert sizes == {300: 256, 9600: 512, 10240: 1024, 20480: 2048, 115200: 8192, 1000000: 16384}
    assert window_for(300, 1024) == 2048, "two frames"
    assert [queue_max_for(baud, window) for baud, window in ((9600, 1024), (115200, 8192), (115200, 1024), (10**6, 16384))] == [
        64,
        345,
        256,
        3000,
    ]


def test_a_links_sizes_and_times_follow_its_speed_and_what_was_asked_for(monkeypatch):
    made = []

    def link(make_inner, nonce, active, **settings):
        made.append((active, settings))
        assert 1 <= nonce <= serial_line.NONCE_MAX

    monkeypatch.setattr(serial_line, "Link", link)
    new_link(None, 115200, active=True)
    new_link(None, 1200, speed=9600)
    new_link(None, 300)
    new_link(None, 115200, window_size=2048, payload_size_max=512, retransmit_ms=7, keepalive_ms=8, dead_ms=9, stream_count=1)
    sizes = {"receive_size": 4096, "stream_count": 16, "stream_room": 16384}
    assert made[0] == (
        True,
        {**sizes, "window_size": 8192, "payload_size_max": 1024, "retransmit_ms": 1522, "keepalive_ms": 2000, "dead_ms": 60000},
    )
    slow = {"speed": 9600, "window_size": 512, "payload_size_max": 128, "retransmit_ms": 1166, "keepalive_ms": 2000, "dead_ms": 60000}
    assert made[1] == (False, {**sizes, **slow})
    assert made[2][1] == {
        **sizes,
        "window_size": 256,
        "payload_size_max": 128,
        "retransmit_ms": 17166,
        "keepalive_ms": 17066,
        "dead_ms": 68264,
    }
    given = {"window_size": 2048, "payload_size_max": 512, "retransmit_ms": 7, "keepalive_ms": 8, "dead_ms": 9, "stream_count": 1}
    assert made[3][1] == {**sizes, **given}


def test_a_bus_has_a_link_for_each_address_which_speaks_in_its_turn():
    bus = new_bus(9600, [3, 1])
    assert [(link.address, bool(link.turns)) for link in bus.links] == [(3, True), (1, True)]
    assert len(bus.writable()) == serial_line.RECEIVE_SIZE


class Inner:
    """A Link or Bus: `octets` are pending; `calls`: what it was told."""

    def __init__(self, octets=b"octets"):
        self.octets, self.calls, self.closed, self.window_size = octets, [], False, 1024

    def writable(self):
        return "room"

    def pending(self):
        self.closed = self.octets == b"last"
        return self.octets

    def received(self, size):
        self.calls.append(("received", size))
        self.closed = size == 13

    def sent(self, size):
        self.calls.append(("sent", size))

    def unplugged(self):
        self.calls.append("unplugged")

    def plugged(self):
        self.calls.append("plugged")

    def tick(self, now):
        self.calls.append(("tick", now))


class Stream:
    def __init__(self, waits=0):
        self.waits, self.closed, self.speeds = waits, False, []

    def waiting(self):
        return self.waits

    def set_speed(self, baud):
        if baud == 13:
            raise LineFailed("no such speed")
        self.speeds.append(baud)


def test_a_plug_hands_octets_on_and_is_over_when_the_device_or_its_endpoint_is():
    inner = Inner()
    plug = Plug(inner, Stream(), 9600)
    assert plug.writable() == "room" and plug.pending() == b"octets" and not plug.closed
    plug.received(4)
    plug.sent(3)
    plug.tick(1)
    assert inner.calls == [("received", 4), ("sent", 3)] and not plug.closed, "the line tells the time"
    plug.received(0)
    assert inner.calls[2:] == ["unplugged"] and plug.closed and len(plug.pending()) == 0
    plug.received(5)
    assert inner.calls[3:] == [], "nothing comes from a device that is gone"
    plug = Plug(Inner(), Stream(), 9600)
    plug.received(13)
    assert plug.closed
    plug = Plug(Inner(b"last"), Stream(), 9600)
    assert plug.pending() == b"last" and plug.closed


def test_a_plug_asks_for_no_more_than_keeps_the_device_busy():
    stream = Stream(64)
    plug = Plug(Inner(), stream, 9600)
    assert plug.pending() == b"octets"
    stream.waits = 65
    assert len(plug.pending()) == 0 and not plug.closed


class LinkDouble:
    def __init__(self, trouble="", turns=False, leaving=False, is_open=True):
        self.trouble, self.turns, self.leaving, self.is_open = trouble, turns, leaving, is_open
        self.speed = self.speed_set = 0
        self.counters = (("bad frames", 2), ("sent", 3))
        self.left = 0

    def leave(self):
        self.left += 1


class Loop:
    def __init__(self):
        self.added = []

    def add(self, stream, endpoint):
        self.added.append((stream, endpoint))


def line(monkeypatch, *links, streams=None):
    """A SerialLine whose device is opened as `streams` say: a Stream, or a LineFailed."""
    streams = [Stream()] if streams is None else streams

    def opened(device, baud):
        assert (device, baud) == ("/dev/x", 9600)
        done = streams.pop(0)
        if isinstance(done, Exception):
            raise done
        return done

    monkeypatch.setattr(serial_line, "SerialStream", opened)
    monkeypatch.setattr(serial_line.os, "urandom", lambda size: bytes((0, 0, 1, 144)))  # 400
    return SerialLine(Loop(), "/dev/x", 9600, Inner(), links or [LinkDouble()])


def test_a_lines_figures_are_the_sums_of_its_links(monkeypatch):
    made = line(monkeypatch, LinkDouble(), LinkDouble(trouble="first", is_open=False), LinkDouble(trouble="second"))
    told = {"line": "/dev/x", "plugged_in": True, "trouble": "first", "links": 3, "open": 2, "bad_frames": 6, "sent": 9}
    assert made.figures() == told
    made.stream.closed = True
    assert made.figures() == {**told, "plugged_in": False}
    made.stream = None
    assert not made.plugged_in


def test_how_long_a_step_may_take(monkeypatch):
    made = line(monkeypatch)
    assert made.wait_ms() == 50
    made.stream.waits = 1
    assert made.wait_ms() == 10
    made.links[0].turns = True
    assert made.wait_ms() == 2
    made.stream.closed = True
    assert made.wait_ms() == 50


def test_leaving_is_over_when_it_is_said_or_the_device_has_gone(monkeypatch):
    made = line(monkeypatch, LinkDouble(), LinkDouble(leaving=True))
    made.leave()
    assert [link.left for link in made.links] == [1, 1] and made.is_leaving()
    made.stream.closed = True
    assert not made.is_leaving()
    made.stream.closed = made.links[1].leaving = False
    assert not made.is_leaving()


def test_a_speed_changes_when_all_that_was_sent_before_is_on_the_line(monkeypatch):
    made = line(monkeypatch)
    link = made.links[0]
    made.tick(0)
    assert made.stream.speeds == []
    link.speed, made.stream.waits = 19200, 1
    made.tick(1)
    assert made.stream.speeds == [] and link.speed_set == 0
    made.stream.waits = 0
    made.tick(2)
    made.tick(3)
    assert made.stream.speeds == [19200] and link.speed_set == 19200
    link.speed = 0
    made.tick(4)
    assert made.stream.speeds == [19200, 9600], "the speed that the line was opened with"
    link.speed = 13
    made.tick(5)
    made.tick(6)
    assert made.trouble == "no such speed" and link.speed_set == 13 and made.stream.speeds == [19200, 9600]


def test_an_unplugged_device_is_tried_again_after_each_pause_and_plugged_once(monkeypatch):
    back = Stream()
    made = line(monkeypatch, streams=[Stream(), LineFailed("still gone"), back, Stream()])
    endpoint, loop = made._endpoint, made._loop
    assert loop.added[0][0] is made.stream and isinstance(loop.added[0][1], Plug)
    made.stream.closed = True
    made.tick(1000)
    assert made.trouble == "/dev/x was unplugged"
    first = made._pause_ms
    assert first == 250 + 400 % 501
    made.tick(1000 + first - 1)
    assert made.trouble == "/dev/x was unplugged"
    made.tick(1000 + first)
    assert made.trouble == "still gone" and made._pause_ms == 250 + 400 % 1701
    at = 1000 + first + made._pause_ms
    made.tick(at - 1)
    assert not made.plugged_in
    made.tick(at)
    assert made.plugged_in and made.stream is back and made.trouble == "" and endpoint.calls.count("plugged") == 1
    assert loop.added[1][0] is back and endpoint.calls[-1] == "plugged" and ("tick", at) in endpoint.calls
    back.closed = True
    made.tick(at + 5)
    assert made.trouble == "/dev/x was unplugged" and made._pause_ms == first, "pauses begin anew"


def test_a_line_whose_endpoint_is_closed_is_opened_no_more(monkeypatch):
    made = line(monkeypatch)
    made.stream.closed = made._endpoint.closed = True
    for now in (1, 10000):
        made.tick(now)
    assert made.trouble == "" and not made.plugged_in


def test_a_passive_end_is_a_link_that_makes_endpoints_for_the_stream_of_now(monkeypatch):
    monkeypatch.setattr(serial_line, "SerialStream", lambda device, baud: Stream())
    for given, in_turns in (({}, False), ({"address": 5}, True)):
        listener = serial_line.SerialListener(Loop(), "/dev/x", 9600, lambda stream: ("made", stream), **given)
        (link,) = listener.links
        assert isinstance(link, Link) and link is listener._endpoint and bool(link.turns) is in_turns
        listener.stream = "another"
        assert link.streams._make_inner() == ("made", "another")


def test_a_client_without_an_answer_or_a_device_says_so_and_gives_the_device_back(monkeypatch):
    class Closing:
        closed = 0

        def __init__(self, device, baud):
            if device == "/dev/none":
                raise LineFailed("no device")

        def close(self):
            Closing.closed += 1

    def fails(error):
        def connection(stream, baud, timeout_ms, settings):
            assert settings == {**serial_line.SIZES, "channel_max": 3}
            raise error

        return connection

    monkeypatch.setattr(serial_line, "SerialStream", Closing)
    with pytest.raises(ConnectFailed, match="^no device$"):
        serial_line.connect_serial("/dev/none", 9600)
    for number, (error, said) in enumerate(
        ((Timeout("x"), "^no broker answers on /dev/x at 9600 baud in 70 ms$"), (ConnectFailed("refused"), "^refused$"))
    ):
        monkeypatch.setattr(serial_line, "SerialConnection", fails(error))
        with pytest.raises(ConnectFailed, match=said):
            serial_line.connect_serial("/dev/x", 9600, 70, channel_max=3)
        assert Closing.closed == number + 1
