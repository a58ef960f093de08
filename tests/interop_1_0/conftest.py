"""Fixtures of the tests of AMQP 1.0: each broker is one process for all of them, started when the first test asks for it.

`artemis`, `broker_j`, `rabbitmq` and `leveret` are brokers (host, port, kind); a test must leave them there.
"""

import peers
import pytest


def _session_fixture(kind):
    @pytest.fixture(scope="session", name=kind.replace("-", "_"))
    def broker():
        for component in peers.NEEDS[kind]:
            if not component.present():
                pytest.skip(component.sentence())
        process = peers.start(kind)
        yield process
        assert process.alive(), f"{kind} is gone:\n{process.error_text()}"
        process.stop()

    return broker


artemis = _session_fixture("artemis")
broker_j = _session_fixture("broker-j")
rabbitmq = _session_fixture("rabbitmq")
leveret = _session_fixture("leveret")
