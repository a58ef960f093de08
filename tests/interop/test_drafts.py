"""`leveret serve --listen amqp://HOST:PORT?version=`: which protocol the two ambiguous headers mean (Leveret only).

What is said behind the headers is in tests/unit/test_draft_9a5.py and test_draft_9r1.py.
"""

import socket

import pytest
from broker_process import BrokerProcess, free_port

HEADERS = {"0.9a5": b"AMQP\x01\x01\x00\x09", "0.9r1": b"AMQP\x01\x01\x09\x01"}
METHODS = {"0.9a5": (4, b"\x01\x01\x00\x00"), "0.9r1": (8, b"\x00\x01\x00\x01")}  # where its ids stand, and they


@pytest.fixture(scope="module")
def served():
    """{version: port of its listener}, and None: that of the usual one."""
    ports = {version: free_port() for version in HEADERS}
    arguments = [part for version in ports for part in ("--listen", f"amqp://127.0.0.1:{ports[version]}?version={version}")]
    broker = BrokerProcess("leveret", arguments=arguments)
    yield {None: broker.port, **ports}
    text = broker.error_text()
    broker.stop()
    assert "Traceback" not in text, text


def answer(port, header):
    """The first octets that a header is answered with; b"": the stream has ended."""
    with socket.create_connection(("127.0.0.1", port), 20) as stream:
        stream.sendall(header)
        octets = b""
        while len(octets) < 12:
            more = stream.recv(4096)
            if not more:
                break
            octets += more
        return octets


@pytest.mark.parametrize("version", HEADERS)
def test_the_header_means_what_the_listener_says(served, version):
    header = HEADERS[version]
    at, ids = METHODS[version]
    assert answer(served[version], header)[at : at + 4] == ids
    assert answer(served[None], header)[7:11] == b"\x00\x0a\x00\x0a"
    assert answer(served[version], b"AMQP\x00\x00\x09\x01")[7:11] == b"\x00\x0a\x00\x0a"


def test_strangers_are_answered_as_each_text_has_it(served):
    assert answer(served["0.9a5"], b"HTTP / ?") == b""
    assert answer(served["0.9r1"], b"HTTP / ?") == HEADERS["0.9r1"]
    assert answer(served[None], b"HTTP / ?") == b"AMQP\x00\x00\x09\x01"
