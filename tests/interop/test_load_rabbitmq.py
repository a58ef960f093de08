"""`leveret perf` against RabbitMQ: it is loaded as Leveret is (tests/tools/test_perf.py), and what it refuses or holds back is said."""

import json
import subprocess
import sys

import pytest
from broker_process import BrokerProcess, rabbitmq_installed

PERF = [sys.executable, "-m", "leveret.tools.cli", "perf"]
COUNT = 300


@pytest.fixture(scope="module")
def rabbitmq():
    if not rabbitmq_installed():
        pytest.skip("rabbitmq-server is not installed: apt install rabbitmq-server")
    process = BrokerProcess("rabbitmq")
    yield process
    process.stop()


def run(url, *arguments):
    return subprocess.run([*PERF, url, *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "arguments, deliveries",
    [
        ((), 1),
        (("--confirm", 20, "--ack-every", 7, "--persistent", "--publishers", 2, "--consumers", 2), 1),
        (("--exchange", "topic", "--queues", 3, "--routing-keys", 50, "--random"), 1),
        (("--exchange", "fanout", "--queues", 3), 3),
        (("--exchange", "direct", "--queues", 2, "--size", 300000), 1),
    ],
)
def test_everything_published_is_received_once(rabbitmq, arguments, deliveries):
    done = run(rabbitmq.url, "--json", "-", "--count", COUNT, *arguments)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    published = COUNT * (2 if "--publishers" in arguments else 1)
    assert document["trouble"] == [] and document["summary"]["published"] == published
    assert document["summary"]["received"] == published * deliveries


def test_what_it_refuses_is_said(rabbitmq):
    done = run(rabbitmq.url.replace("guest:guest", "guest:wrong"), "--count", 1)
    assert done.returncode == 1 and "refuses the log-in: 403 ACCESS_REFUSED" in done.stderr
    rabbitmq.control("set_policy", "full", "^leveret-perf$", '{"max-length": 10, "overflow": "reject-publish"}')
    try:
        done = run(rabbitmq.url, "--count", 50, "--confirm", 5, "--consumers", 0)
    finally:
        rabbitmq.control("clear_policy", "full")
    assert done.returncode == 1 and "messages were refused by the broker (basic.nack)" in done.stderr


def test_a_broker_that_blocks_is_waited_for(rabbitmq):
    rabbitmq.control("set_vm_memory_high_watermark", "absolute", "1MB")
    try:
        began = subprocess.Popen([*PERF, rabbitmq.url, "--count", "50"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in began.stdout:
            if "blocked by the broker" in line:
                break
        else:
            pytest.fail(began.communicate()[1])
    finally:
        rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    output, errors = began.communicate(timeout=300)
    assert began.returncode == 0 and "received 50 in" in output, errors
