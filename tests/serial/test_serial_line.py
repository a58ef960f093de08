"""Octets over a serial line through pyserial, two processes and a noisy cable: nothing is lost or doubled.

AMQP over this cable is tested in test_amqp_over_serial.py.
"""

import contextlib
import json
import os
import pty
import random
import select
import subprocess
import sys
import time
import tty

import pytest
from line_end import Exchange
from noisy_cable import noisy_cable

from leveret.ports.client import ConnectFailed
from leveret.ports.clock import now_ms
from leveret.ports.serial_line import LineFailed, SerialListener, SerialStream, connect_serial, new_link, read_serial_url
from leveret.ports.tcp import Loop

FORTH = random.Random(1).randbytes(30000)
BACK = random.Random(2).randbytes(30000)
HERE = os.path.dirname(os.path.abspath(__file__))


def start_end(device, role, seed, size, baud=115200):
    command = [sys.executable, os.path.join(HERE, "line_end.py"), device, str(baud), role, str(seed), str(size)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def outcome(process):
    try:
        output, _ = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    lines = output.strip().splitlines()
    assert lines and lines[-1].startswith("{"), output
    return dict(json.loads(lines[-1]), status=process.returncode, output=output)


@pytest.mark.parametrize("seed, error_rate", [(100, 0), (102, 1e-4), (104, 1e-3), (106, 2e-3)])
def test_two_processes_exchange_both_ways_over_a_noisy_cable(seed, error_rate):
    size = 200000 if error_rate < 1e-3 else 50000
    with noisy_cable(seed, error_rate) as cable:
        processes = [start_end(cable.ends[0], "active", seed, size), start_end(cable.ends[1], "passive", seed ^ 1, size)]
        results = [outcome(process) for process in processes]
        damages = cable.damages
    for result in results:
        assert result["status"] == 0 and result["identical"] and result["received"] == size, (seed, results)
    assert (damages > 0) == (error_rate > 0)
    if error_rate:
        assert sum(result["bad"] for result in results) > 0, "the noise did not reach the link: %r" % results
    print("seed %d, error rate %g: %d damages, %r" % (seed, error_rate, damages, results))


def run(loop, listener, until, seconds=120):
    """Step the loop and the listener until `until()`."""
    limit = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < limit, "it does not happen: %s" % listener.trouble
        loop.step(10)
        listener.tick(now_ms())


@contextlib.contextmanager
def new_loop():
    loop = Loop(1)
    try:
        yield loop
    finally:
        loop.close()


def raw_pty():
    master, slave = pty.openpty()
    tty.setraw(slave)
    return master, slave


def plug_in(path):
    """A pseudo-terminal under the name `path`, which stays when the device goes; returns its descriptors."""
    master, slave = raw_pty()
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(os.ttyname(slave), path)
    return master, slave


def unplug(path, descriptors):
    os.unlink(path)
    for descriptor in descriptors:
        os.close(descriptor)


def test_a_speed_that_a_device_does_not_have_is_one_sentence_and_the_old_one_stays():
    master, slave = raw_pty()
    stream = SerialStream(os.ttyname(slave), 115200)
    with pytest.raises(LineFailed, match="%s.*-5" % os.ttyname(slave)):
        stream.set_speed(-5)
    assert stream.write(b"still") == 5 and os.read(master, 10) == b"still"
    stream.close()
    os.close(master)
    os.close(slave)


def test_the_listener_opens_its_device_again_when_it_is_back(tmp_path):
    path = str(tmp_path / "ttyTest")
    made = []

    def make_inner(stream):
        made.append((stream.name, Exchange(FORTH, BACK)))
        return made[-1][1]

    far = Exchange(BACK, FORTH)
    peer = new_link(lambda: far, 115200, active=True)
    plugged = plug_in(path)
    with new_loop() as loop:
        listener = SerialListener(loop, path, 115200, make_inner)
        for round_number in (1, 2, 3):
            run(loop, listener, lambda: carry(peer, plugged[0]) or far.received_count >= round_number * len(FORTH) // 4)
            unplug(path, plugged)
            run(loop, listener, lambda: "no serial device" in listener.trouble)
            peer.unplugged()
            plugged = plug_in(path)
            run(loop, listener, lambda: listener.trouble == "")
            peer.plugged()
        near = made[0][1]
        run(loop, listener, lambda: carry(peer, plugged[0]) or (near.done() and far.done()))
        unplug(path, plugged)
    assert len(made) == 1 and made[0][0] == path and near.identical and far.identical and not near.gone and peer.session_count == 1


def carry(peer, master):
    """Octets between a link here and the other end of a pseudo-terminal, a few at a time; nothing true comes back."""
    peer.tick(now_ms())
    view = peer.pending()[:100]
    peer.sent(os.write(master, view) if view else 0)
    ready, _, _ = select.select([master], [], [], 0)
    if ready:
        octets = os.read(master, 400)
        peer.writable()[: len(octets)] = octets
        peer.received(len(octets))


def test_attempts_to_open_again_have_pauses(tmp_path, monkeypatch):
    path = str(tmp_path / "ttyTest")
    plugged = plug_in(path)
    tried = []
    now = 0x3FFFFFFF - 20000  # so that the time wraps in the middle

    def refuse(device, baud):
        tried.append(now)
        raise LineFailed("not yet")

    with new_loop() as loop:
        listener = SerialListener(loop, path, 115200, lambda stream: None)
        unplug(path, plugged)
        loop.step(1000)
        assert not loop.used
        monkeypatch.setattr("leveret.ports.serial_line.SerialStream", refuse)
        for _ in range(6000):
            now = (now + 10) & 0x3FFFFFFF
            listener.tick(now)
    pauses = [(later - earlier) & 0x3FFFFFFF for earlier, later in zip(tried, tried[1:])]
    assert 60000 // 5010 <= len(tried) <= 60000 // 250
    assert min(pauses) >= 250 and max(pauses) <= 5010


def test_a_read_of_an_unplugged_device_is_the_end_and_of_a_silent_one_is_nothing():
    master, slave = raw_pty()
    stream = SerialStream(os.ttyname(slave), 115200)
    view = memoryview(bytearray(10))
    assert stream.read_into(view) is None
    os.write(master, b"\x03\x04\r\n\x11\x13\x7f")
    assert stream.read_into(view) == 7 and bytes(view[:7]) == b"\x03\x04\r\n\x11\x13\x7f", "no octet is translated"
    assert stream.write(b"\x03\x04\r\n\x11\x13\x7f") == 7
    assert os.read(master, 100) == b"\x03\x04\r\n\x11\x13\x7f"
    os.close(slave)
    os.close(master)
    assert stream.read_into(view) == 0
    assert stream.write(b"x") == 0
    stream.close()


def test_a_full_device_takes_no_more():
    master, slave = raw_pty()
    stream = SerialStream(os.ttyname(slave), 115200)
    written = 0
    for _ in range(10000):
        count = stream.write(bytes(1000))
        if count is None:
            break
        written += count
    assert count is None and written > 0
    stream.close()
    os.close(slave)
    os.close(master)


def refusal(device, baud=115200):
    with pytest.raises(LineFailed) as caught:
        SerialStream(device, baud)
    return str(caught.value)


def test_a_device_that_cannot_be_opened_is_one_clear_sentence():
    assert refusal("/dev/ttyNone") == (
        "there is no serial device /dev/ttyNone: plug it in, or see what is there with `python3 -m serial.tools.list_ports`"
    )
    assert refusal("/dev/null").startswith("/dev/null is not a serial device")
    assert refusal("/tmp").startswith("/tmp is not a serial device")
    master, slave = raw_pty()
    first = SerialStream(os.ttyname(slave), 115200)
    assert "is in use by another program" in refusal(os.ttyname(slave))
    first.close()
    assert "at 1099511627776 baud" in refusal(os.ttyname(slave), 1 << 40)
    os.close(slave)
    os.close(master)


def test_a_client_says_what_is_wrong_with_its_line():
    with pytest.raises(ConnectFailed, match="there is no serial device"):
        connect_serial("/dev/ttyNone", 115200)
    master, slave = raw_pty()
    with pytest.raises(ConnectFailed, match="no broker answers on .* at 115200 baud in 300 ms"):
        connect_serial(os.ttyname(slave), 115200, timeout_ms=300)
    SerialStream(os.ttyname(slave), 115200).close()  # it was given back
    os.close(slave)
    os.close(master)


def test_a_clients_url_of_a_serial_line():
    guest = {"user": "guest", "password": "guest"}
    assert read_serial_url("serial:///dev/ttyX") == ("/dev/ttyX", 115200, guest)
    assert read_serial_url("serial:///dev/serial/by-id/usb-a:b@c?baud=9600") == ("/dev/serial/by-id/usb-a:b@c", 9600, guest)
    assert read_serial_url("serial://u%40:p%2F%3F:@/dev/ttyX?baud=9600") == ("/dev/ttyX", 9600, {"user": "u@", "password": "p/?:"})
    assert read_serial_url("serial://u@/dev/ttyX")[2] == {"user": "u", "password": ""}
    for bad, words in (
        ("ttyX", "a serial line is"),
        ("host/dev/ttyX", "a serial line is"),
        ("/", "a serial line is"),
        ("u:p/q@/dev/ttyX", "a serial line is"),
        ("u:%4@/dev/ttyX", "two hexadecimal digits"),
        ("/dev/ttyX?baud=fast", "baud=NUMBER"),
        ("/dev/ttyX?baud=\u0661", "baud=NUMBER"),
        ("/dev/ttyX?speed=9600", "baud=NUMBER"),
        ("u:%s@/dev/ttyX" % ("p" * 400), "400 characters"),
    ):
        with pytest.raises(ValueError, match=words):
            read_serial_url("serial://" + bad)
