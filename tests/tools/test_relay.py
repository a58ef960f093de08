"""The relay that the bench compares with (tests/measure/relay.c) keeps a consumer's window, so that its figure is a limit for brokers."""

import os
import shutil
import subprocess
import sys

import pytest

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, os.path.join(TESTS, "interop"))

from amqp_wire import RawClient, method, publish  # noqa: E402 - the path has to be set first


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("gcc")
    assert compiler, "the bench needs gcc: apt install gcc"
    path = str(tmp_path_factory.mktemp("relay") / "relay")
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", path, os.path.join(TESTS, "measure", "relay.c")], check=True)
    return path


@pytest.fixture
def relay(program, request):
    """The (host, port) of a relay with these arguments."""
    with subprocess.Popen([program, *request.param], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield "127.0.0.1", int(process.stdout.readline().split()[1])
        process.stdin.close()


def consumer_and_publisher(place):
    """Clients that have exchanged what is needed; seven messages are on their way to a consumer with a prefetch of 3."""
    consumer, publisher = RawClient(*place).open(), RawClient(*place).open()
    consumer.declare_queue("q")
    consumer.call("basic.qos-ok", 1, "basic.qos", prefetch_count=3)
    consumer.call("basic.consume-ok", 1, "basic.consume", queue="q")
    publisher.send(b"".join(publish(1, "", "q", b"%d" % number) for number in range(7)))
    return consumer, publisher


def next_ones(consumer, count):
    """The next `count` messages, behind which nothing comes before the answer to a question."""
    found = [consumer.read_content("basic.deliver") for _ in range(count)]
    consumer.call("queue.declare-ok", 1, "queue.declare", queue="q")
    return [(each["delivery_tag"], each.body) for each in found]


@pytest.mark.parametrize("relay", [()], indirect=True)
def test_it_sends_no_more_than_prefetch_that_is_not_acknowledged(relay):
    consumer, publisher = consumer_and_publisher(relay)
    with consumer, publisher:
        assert next_ones(consumer, 3) == [(1, b"0"), (2, b"1"), (3, b"2")]
        consumer.send(method(1, "basic.ack", delivery_tag=2))
        assert next_ones(consumer, 1) == [(4, b"3")]
        consumer.send(method(1, "basic.ack", delivery_tag=3, multiple=True))
        assert next_ones(consumer, 2) == [(5, b"4"), (6, b"5")]
        consumer.send(method(1, "basic.ack", delivery_tag=0, multiple=True))
        assert next_ones(consumer, 1) == [(7, b"6")]


@pytest.mark.parametrize("relay", [("blind",)], indirect=True)
def test_a_blind_one_sends_all(relay):
    consumer, publisher = consumer_and_publisher(relay)
    with consumer, publisher:
        assert [body for _, body in next_ones(consumer, 7)] == [b"%d" % number for number in range(7)]
