"""Fixtures of the bridge tests: a Leveret gateway for each test, one RabbitMQ for all, started when first asked for."""

import os
import sys

import pytest

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "interop"))  # certificates.py

from nodes import RABBITMQ_SERVER, BridgeProcess, Leveret, RabbitMQ, Relay

from leveret.ports.client import connect


@pytest.fixture(scope="session")
def rabbitmq_node():
    if not os.path.exists(RABBITMQ_SERVER):
        pytest.skip("rabbitmq-server is not installed: apt install rabbitmq-server")
    node = RabbitMQ()
    yield node
    node.stop()


def make_upstream(url):
    """Exchange `telemetry` and queue `readings`, empty and bound with #."""
    client = connect(url)
    client.exchange_declare("telemetry", "topic", durable=True)
    client.queue_delete("readings")
    client.queue_declare("readings", durable=True)
    client.queue_bind("readings", "telemetry", "#")
    client.close()


@pytest.fixture
def rabbitmq(rabbitmq_node):
    """RabbitMQ as upstream."""
    make_upstream(rabbitmq_node.url)
    return rabbitmq_node


@pytest.fixture
def gateway():
    """A Leveret with the queue `uplink`."""
    node = Leveret()
    client = connect(node.url)
    client.queue_declare("uplink", durable=True)
    client.close()
    yield node
    node.stop()


@pytest.fixture
def leveret():
    """A second Leveret, as upstream."""
    node = Leveret()
    make_upstream(node.url)
    yield node
    node.stop()


@pytest.fixture
def start_bridge():
    """Starts a bridge process; it is ended after the test."""
    started = []

    def start(*arguments, **values):
        started.append(BridgeProcess(*arguments, **values))
        return started[-1]

    yield start
    for bridge in started:
        bridge.clean()


@pytest.fixture
def relay():
    """Makes a link to a port that can be cut."""
    made = []

    def make(port):
        made.append(Relay(port))
        return made[-1]

    yield make
    for each in made:
        each.close()
