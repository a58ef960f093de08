"""Fixtures of the Spark tests: one Spark session, one Leveret and one RabbitMQ for all of them, streams with names of their own."""
import itertools

import brokers
import pytest
from telemetry import Stream

from leveret.tools import pipeline_session

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def java():
    if pipeline_session.java_version() < pipeline_session.JAVA_OLDEST:
        pytest.skip("Java 17 or newer is missing")


@pytest.fixture(scope="session")
def spark(java):
    """The session that `leveret pipeline` itself would start, with the source registered."""
    session = pipeline_session.start_spark("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def leveret():
    broker = brokers.start_leveret()
    yield broker
    broker.end()


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory):
    if not brokers.rabbitmq_installed():
        pytest.skip("rabbitmq-server is missing")
    broker = brokers.start_rabbitmq(str(tmp_path_factory.mktemp("rabbitmq")))
    yield broker
    broker.end()


@pytest.fixture(params=["leveret", "rabbitmq"])
def broker(request):
    """Each broker in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def make_stream():
    """make_stream(broker, **arguments): a new, empty stream; its connection is closed at the end."""
    made = []

    def make(broker, **arguments):
        made.append(Stream(broker, f"readings-{next(_numbers)}", **arguments))
        return made[-1]

    yield make
    for stream in made:
        stream.close()
