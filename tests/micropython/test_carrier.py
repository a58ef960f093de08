"""The carrier alone: bytes through MicroPython and back, with an endpoint whose buffer (64 octets) is smaller than what is sent."""

import os
import socket
import threading

import pytest
from micropython_brokers import WasmBroker

SIZE = 200_000
SOCKET_BUFFER_SIZE = 4096
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def bridge():
    with WasmBroker("wasm_echo") as bridge:
        yield bridge


def connect(bridge):
    """A socket with small buffers, so that it soon shows when nobody reads."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_SIZE)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_SIZE)
    stream.settimeout(TIMEOUT_S)
    stream.connect(("127.0.0.1", bridge.port))
    return stream


def read_exactly(stream, size):
    data = bytearray()
    while len(data) < size:
        part = stream.recv(65536)
        if not part:
            break
        data += part
    return bytes(data)


def test_bytes_come_back_identical_and_in_order(bridge):
    data = os.urandom(SIZE).replace(b"\xff", b"\xfe")
    with connect(bridge) as stream:
        writer = threading.Thread(target=stream.sendall, args=(data,))
        writer.start()
        assert read_exactly(stream, SIZE) == data
        writer.join()


def test_a_peer_that_does_not_read_does_not_stop_another(bridge):
    with connect(bridge) as slow, connect(bridge) as quick:
        slow.setblocking(False)
        accepted = 0
        try:
            while accepted < 64 * 1024 * 1024:
                accepted += slow.send(b"\x01" * 65536)
        except BlockingIOError:
            pass
        assert accepted < 64 * 1024 * 1024, "the slow peer was never slowed"
        for number in range(50):
            quick.sendall(b"%02d" % number)
            assert read_exactly(quick, 2) == b"%02d" % number


def test_end_of_file_is_told_after_the_last_octet(bridge):
    with connect(bridge) as stream:
        stream.sendall(b"x" * 1000)
        stream.shutdown(socket.SHUT_WR)
        assert read_exactly(stream, 1001) == b"x" * 1000


def test_a_closed_endpoint_sends_its_answer_then_ends(bridge):
    with connect(bridge) as stream:
        stream.sendall(b"bye\xff")
        assert read_exactly(stream, 100) == b"bye\xff"


def test_no_free_slot_is_a_refusal_and_slots_come_free():
    with WasmBroker("wasm_echo") as bridge:
        fill_and_empty(bridge)
        fill_and_empty(bridge)


def fill_and_empty(bridge):
    streams = [connect(bridge) for _ in range(8)]
    for stream in streams:
        stream.sendall(b"a")
        assert read_exactly(stream, 1) == b"a"
    with connect(bridge) as refused:
        assert read_exactly(refused, 1) == b""
    for stream in streams:
        stream.sendall(b"\xff")
        assert read_exactly(stream, 2) == b"\xff"
        stream.close()
