"""The interop folder's broker process is on the path; a broker on a directory that is ended after the test."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "unit"))


@pytest.fixture
def start():
    """start(directory, *arguments): a running `leveret serve --data directory`."""
    from broker_process import BrokerProcess

    started = []

    def run(directory, *arguments):
        started.append(BrokerProcess("leveret", arguments=["--data", str(directory), *map(str, arguments)]))
        return started[-1]

    yield run
    for broker in started:
        broker.stop()
