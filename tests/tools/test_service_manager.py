"""What a service manager hears of `leveret serve`: sd_notify(3), without systemd."""

import os
import signal
import socket
import time

import pytest
from test_serve import Serve

from leveret.ports.service_manager import ServiceManager


@pytest.fixture
def ear(tmp_path):
    """(the path of a socket, a function that gives the next datagram's lines)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(60)
        yield str(tmp_path / "notify"), lambda: made.recv(4096).decode().split("\n")


def test_a_broker_says_when_it_listens_that_it_lives_and_when_it_ends(ear):
    path, heard = ear
    server = Serve("--listen", "amqp://127.0.0.1:0", NOTIFY_SOCKET=path, WATCHDOG_USEC="400000")
    assert heard() == ["READY=1", f"STATUS=listens on {server.urls[0]}"]
    socket.create_connection(("127.0.0.1", server.port), 60).close()  # it is true
    began = time.monotonic()
    for _ in range(4):
        assert heard() == ["WATCHDOG=1"]
    assert time.monotonic() - began >= 0.5  # one each 200 ms, the first at once
    server.process.send_signal(signal.SIGTERM)
    last = heard()
    while last == ["WATCHDOG=1"]:
        last = heard()
    assert last[0] == "STOPPING=1"
    assert server.process.wait(60) == 0


def test_a_watchdog_of_another_process_is_not_fed(ear):
    """sd_watchdog_enabled(3): WATCHDOG_PID says whose it is; a wrapper's child may inherit the variables."""
    path, heard = ear
    other = ServiceManager.of({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, os.getpid())
    other.tick(0)
    other.ready("x")
    assert heard() == ["READY=1", "STATUS=x"]
    other.close()


def test_the_watchdog_hears_twice_in_each_interval(ear):
    path, heard = ear
    manager = ServiceManager.of({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, os.getpid())
    told = []
    manager.tell = lambda *lines: told.append(lines) or True
    for now in range(0, 60001, 1000):
        manager.tick(now)
    assert len(told) == 5  # at 0, 15, 30, 45 and 60 s
    manager.close()


@pytest.mark.parametrize("path", ("", "vsock:2:1", "relative"))
def test_without_a_socket_of_its_kind_there_is_no_service_manager(path):
    assert ServiceManager.of({"NOTIFY_SOCKET": path}, 1) is None


def test_an_abstract_socket_is_told_too():
    name = f"leveret-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind("\0" + name)
        manager = ServiceManager.of({"NOTIFY_SOCKET": "@" + name}, 1)
        manager.stopping()
        assert made.recv(100).startswith(b"STOPPING=1")
        manager.close()


def test_nobody_who_listens_holds_nothing_up(tmp_path):
    """The socket is gone, or full: nothing raises, and the watchdog's word is tried again the next time."""
    path = str(tmp_path / "notify")
    manager = ServiceManager(path, 1000)
    manager.tick(0)
    assert manager.told_ms is None
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(path)
        while manager.tell("X=1"):
            pass
        manager.tick(1)
        assert manager.told_ms is None
        while len(made.recv(100)) and manager.told_ms is None:
            manager.tick(2)
        assert manager.told_ms == 2
    manager.close()
