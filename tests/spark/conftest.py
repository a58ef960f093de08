"""Fixtures of the Spark tests: one Spark session, one Leveret and one RabbitMQ for all of them, streams with names of their own."""

import itertools
import os

import brokers
import pytest
from telemetry import Stream

from leveret.tools import pipeline_session

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def java():
    if pipeline_session.java_version() < pipeline_session.JAVA_OLDEST:
        pytest.skip("Java 17 or newer is missing")


PASSWORD_VARIABLE, PASSWORD = "SPARK_TEST_GAUGE_PASSWORD", "xk3-Tasmanien-87"  # of the user `gauge`: see test_credentials.py


@pytest.fixture(scope="session")
def spark_traces(tmp_path_factory):
    """A folder with what Spark leaves of a session: its event log (events), and what its processes say on standard error (errors.txt)."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    return folder


@pytest.fixture(scope="session")
def spark(java, spark_traces):
    """The session that `leveret pipeline` itself would start, with the source registered."""
    os.environ[PASSWORD_VARIABLE] = PASSWORD  # Spark's processes get the environment as it is when the first of them starts
    usual, errors = os.dup(2), os.open(spark_traces / "errors.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(errors, 2)
    try:
        session = pipeline_session.start_spark(
            "local[2]",
            {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": f"file://{spark_traces}/events"},
        )
    finally:
        os.dup2(usual, 2)
        os.close(usual)
        os.close(errors)
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
