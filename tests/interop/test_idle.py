"""An idle broker sleeps, with a thousand connections as well as with none, and keeps little for each of them (Leveret only).

The processor time of the process is counted, so what else the machine does is no matter. 1,000 connections took 7 % of a core when all of
them were told the time ten times a second; now it is 0.2 %. A connection takes 6.5 KiB beside the pages of its two buffers, which are the
only shared mappings that grow with connections.
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
FEW = 100
CONNECTION_KB_MAX = 10  # beyond its buffers: the promise
IDLE_KB_MAX = 25 * 1024


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


def resident_kb(broker, without_buffers):
    """VmRSS, or that without what is mapped as shared."""
    with open("/proc/%d/status" % broker.server_pid, encoding="utf-8") as file:
        found = dict(line.split(":", 1) for line in file)
    return int(found["VmRSS"].split()[0]) - (int(found["RssShmem"].split()[0]) if without_buffers else 0)


def test_a_thousand_idle_connections_take_no_processor_time_and_little_memory(roomy):
    idle_kb = resident_kb(roomy, False)
    clients = [RawClient(roomy.host, roomy.port).open() for _ in range(FEW)]
    few_kb = resident_kb(roomy, True)
    clients += [RawClient(roomy.host, roomy.port).open() for _ in range(CONNECTIONS - FEW)]
    try:
        connection_kb = (resident_kb(roomy, True) - few_kb) / (CONNECTIONS - FEW)
        print("\nidle %.1f MiB, a connection beyond its buffers %.1f KiB" % (idle_kb / 1024, connection_kb))
        assert idle_kb < IDLE_KB_MAX and connection_kb < CONNECTION_KB_MAX
        time.sleep(1)
        with_all = share_of_a_core(roomy)
        print("\n%d idle connections: %.2f %% of a core" % (CONNECTIONS, 100 * with_all))
        assert with_all < SHARE_MAX
        assert clients[0].declare_queue("idle.works", exclusive=True) == "idle.works"
    finally:
        for client in clients:
            client.socket.close()
