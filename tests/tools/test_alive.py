"""`leveret alive`: status 0 for a broker whose loop answers, 1 with a sentence for whatever else there is, without a log-in."""

import socket
import subprocess
import sys
import threading

import pytest

from leveret.tools import cli

SERVE = [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"]


@pytest.fixture(scope="module")
def broker():
    """(URL, process) of a broker."""
    process = subprocess.Popen(SERVE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process.stdout.readline().split()[1], process
    process.terminate()
    told = process.communicate(timeout=120)[1]
    assert "WARNING" not in told.replace("WARNING guest", ""), told


def answering(octets):
    """The port of a server that sends this to one client and leaves."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer():
        connection = server.accept()[0]
        connection.recv(8)
        connection.sendall(octets)
        connection.close()
        server.close()

    threading.Thread(target=answer, daemon=True).start()
    return server.getsockname()[1]


def test_a_broker_that_answers_is_alive_as_often_as_it_is_asked(broker):
    for _ in range(30):  # more than failed log-ins are taken from one address
        assert cli.main(["alive", broker[0]]) == 0


def test_a_broker_that_hangs_is_not(capsys):
    silent = socket.create_server(("127.0.0.1", 0))
    assert cli.main(["alive", "--seconds", "0.2", "amqp://127.0.0.1:%d" % silent.getsockname()[1]]) == 1
    assert "has not answered in 0.2 s" in capsys.readouterr().err


@pytest.mark.parametrize("octets", (b"HTTP/1.1 400 Bad Request", b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0b"))
def test_what_answers_otherwise_is_no_broker(octets, capsys):
    assert cli.main(["alive", "amqp://127.0.0.1:%d" % answering(octets)]) == 1
    assert "not as a broker of AMQP 0-9-1" in capsys.readouterr().err


def test_nobody_there_and_a_url_that_is_none_are_sentences(capsys):
    assert cli.main(["alive", "amqp://127.0.0.1:1"]) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err
    assert cli.main(["alive", "127.0.0.1"]) == 2
    assert cli.main(["alive", "amqp://127.0.0.1:none"]) == 2
