"""The peers are there: each answers AMQP 1.0's header for SASL with the same one (part 5, 5.3.1)."""

import socket

import pytest

SASL = b"AMQP\x03\x01\x00\x00"


@pytest.mark.parametrize("kind", ["artemis", "broker_j", "rabbitmq"])
def test_a_peer_speaks_1_0(kind, request):
    peer = request.getfixturevalue(kind)
    with socket.create_connection((peer.host, peer.port), 30) as stream:
        stream.sendall(SASL)
        assert stream.recv(8, socket.MSG_WAITALL) == SASL
