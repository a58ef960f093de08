"""Which version of AMQP a board's listener takes an ambiguous header for."""

import socket

import pytest
from test_firmware import board  # noqa: F401 - the fixture

from leveret.firmware import gateway, settings


@pytest.mark.parametrize(
    "version, header, lead, start",
    [
        ("", b"AMQP\x01\x01\x00\x09", 7, b"\x00\x0a\x00\x0a"),  # 0-9
        ("0.9a5", b"AMQP\x01\x01\x00\x09", 4, b"\x01\x01"),
        ("", b"AMQP\x01\x01\x09\x01", 7, b"\x00\x0a\x00\x0a"),  # 0-8
        ("0.9r1", b"AMQP\x01\x01\x09\x01", 8, b"\x00\x01\x00\x01"),
        ("0.9r1", b"AMQP\x00\x00\x09\x01", 7, b"\x00\x0a\x00\x0a"),  # 0-9-1 all the same
    ],
)
def test_the_settings_say_which_version_an_ambiguous_header_means(board, version, header, lead, start):  # noqa: F811 - the fixture
    made = gateway.Gateway(dict(settings.DEFAULTS, listen={"host": "127.0.0.1", "port": 0}, version=version))
    try:
        with socket.create_connection(made.loop.listeners[0].pollable.getsockname(), 5) as peer:
            peer.sendall(header)
            peer.settimeout(0.01)
            said = b""
            for _ in range(100):
                made.step()
                try:
                    said += peer.recv(100)
                except TimeoutError:
                    pass
                if len(said) > 11:
                    break
        assert said[lead : lead + len(start)] == start, said
    finally:
        made.stop()
