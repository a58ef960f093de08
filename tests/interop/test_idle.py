"""An idle broker sleeps: in epoll, and with a thousand connections as well as with none (Leveret only: what RabbitMQ takes is its own).

The processor time of the process is counted, so what else the machine does is no matter. 1,000 connections took 7 % of a core when all of
them were told the time ten times a second; now it is 0.2 %.
"""
import resource
import time

import psutil
import pytest

from amqp_wire import RawClient
from broker_process import BrokerProcess

CONNECTIONS = 1000
SECONDS = 4
SHARE_MAX = 0.03  # of one core


@pytest.fixture
def roomy(tmp_path):
    """A broker with places for the connections, in a process of its own."""
    config = tmp_path / "leveret.toml"
    config.write_text("[limits]\nconnection_count_max = %d\n" % (CONNECTIONS + 10))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * CONNECTIONS), hard))
    process = BrokerProcess("leveret", arguments=["--config", str(config)])
    yield process
    process.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def share_of_a_core(broker):
    """What the broker takes over SECONDS."""
    process = psutil.Process(broker.server_pid)
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(SECONDS)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (time.monotonic() - began)


def test_a_thousand_idle_connections_take_no_processor_time(roomy):
    clients = [RawClient(roomy.host, roomy.port).open() for _ in range(CONNECTIONS)]
    try:
        time.sleep(1)
        with_all = share_of_a_core(roomy)
        print("\n%d idle connections: %.2f %% of a core" % (CONNECTIONS, 100 * with_all))
        assert with_all < SHARE_MAX
        assert clients[0].declare_queue("idle.works", exclusive=True) == "idle.works"
    finally:
        for client in clients:
            client.socket.close()
