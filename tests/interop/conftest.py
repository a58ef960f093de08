"""Fixtures of the interop tests: one broker process for all of them, LEVERET_TEST_BROKER says which (leveret, rabbitmq).

After every test the broker must still be there and must not have written a traceback.
"""
import os

import pytest

from amqp_wire import RawClient
from broker_process import BrokerProcess, rabbitmq_installed

KIND = os.environ.get("LEVERET_TEST_BROKER", "leveret")


@pytest.fixture(scope="session")
def broker_process():
    if KIND == "rabbitmq" and not rabbitmq_installed():
        pytest.exit("LEVERET_TEST_BROKER=rabbitmq, but rabbitmq-server is not installed: apt install rabbitmq-server", 2)
    process = BrokerProcess(KIND, plugins="rabbitmq_consistent_hash_exchange")
    yield process
    status = process.stop()
    if KIND == "leveret":
        assert status == 0, "leveret serve ended with status %s on SIGTERM" % status


@pytest.fixture
def broker(broker_process):
    seen = len(broker_process.error_text())
    assert broker_process.alive(), "the broker is gone:\n" + broker_process.error_text()
    yield broker_process
    assert broker_process.alive(), "the broker died:\n" + broker_process.error_text()
    assert "Traceback" not in broker_process.error_text()[seen:], broker_process.error_text()[seen:]


@pytest.fixture
def connect(broker):
    """Makes raw clients: connect() is logged in with channel 1 open, connect(opened=False) has only the stream."""
    clients = []

    def make(opened=True, timeout_s=30, receive_buffer=None, **values):
        client = RawClient(broker.host, broker.port, timeout_s, receive_buffer)
        clients.append(client)
        return client.open(**values) if opened else client

    yield make
    for client in clients:
        client.socket.close()


@pytest.fixture
def raw(connect):
    return connect()


@pytest.fixture
def name(request):
    """A name no other test uses, for queues and exchanges."""
    return "t.%s" % request.node.name[:100]
