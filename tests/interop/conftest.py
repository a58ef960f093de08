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


class Kept:
    """A broker that keeps what is durable: `connect()` gives raw clients, `restart()` ends it as an operator does and starts it again."""

    def __init__(self, process, directory):
        self.process = process
        self.directory = directory

    @staticmethod
    def started(directory):
        return BrokerProcess("leveret", arguments=("--data", directory, "--sync", "each"))

    def connect(self, **values):
        return RawClient(self.process.host, self.process.port, 30).open(**values)

    def restart(self):
        if self.process.kind == "rabbitmq":
            self.process.control("stop_app")
            self.process.control("start_app")
        else:
            assert self.process.stop() == 0
            self.process = self.started(self.directory)


@pytest.fixture(scope="session")
def kept_process(broker_process, tmp_path_factory):
    if KIND == "rabbitmq":
        yield Kept(broker_process, None)
        return
    directory = str(tmp_path_factory.mktemp("kept"))
    kept = Kept(Kept.started(directory), directory)
    yield kept
    assert kept.process.stop() == 0


@pytest.fixture
def kept(kept_process, broker):
    yield kept_process
    assert kept_process.process.alive(), "the broker died:\n" + kept_process.process.error_text()
    assert "Traceback" not in kept_process.process.error_text(), kept_process.process.error_text()


@pytest.fixture
def name(request):
    """A name no other test uses, for queues and exchanges."""
    return "t.%s" % request.node.name[:100]
