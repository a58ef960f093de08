"""`leveret serve` and `leveret limits` choose limits by the machine's memory: what is given is kept, the others fit."""

import os
import subprocess
import sys

import pytest

from leveret.core.limits import GATEWAY, Limits
from leveret.tools import address, config, memory
from leveret.tools.usage import UsageError

MIB = 1 << 20


def leveret(*arguments):
    """What a command says."""
    return subprocess.run([sys.executable, "-m", "leveret.tools.cli", *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_large_machine_has_the_gateways_limits_and_a_small_one_less():
    """Half of what a Raspberry Pi with 512 MiB has (some of it is its graphics'): everything is served, in smaller numbers."""
    large = memory.fitting({}, 4096 * MIB)
    assert all(getattr(large, name) == value for name, value in GATEWAY.items())
    small = memory.fitting({}, 427 * MIB // 2)
    assert memory.total(small) <= 427 * MIB // 2
    assert memory.total(small) >= 427 * MIB // 2 * 9 // 10, "what may be had is used"
    assert small.connection_count_max >= 64 and small.queue_count_max >= 256 and small.arena_size >= 16 * MIB


@pytest.mark.parametrize(
    "given",
    (
        {"queue_count_max": 10},
        {"queue_share_max": 900},
        {"binding_count_max": 8},
        {"binding_share_max": 10000},
        {"arena_size": 65536},
        {"content_size_max": 32 * MIB},
        {"receive_buffer_size": 1024},
        {"send_buffer_size": 4096},
        {"properties_size_max": 100000},
        {"message_count_max": 100000},
        {"entry_count_max": 100},
        {"connection_count_max": 1},
        {"argument_size_max": 64},
    ),
)
def test_a_limit_that_is_given_is_kept_and_the_others_follow(given):
    """core/limits.py's check holds for what was chosen around it."""
    for most in (160, 300, 4096):
        found = memory.fitting(given, most * MIB)
        assert memory.total(found) <= most * MIB
        assert {name: getattr(found, name) for name in given} == given


def test_what_cannot_fit_is_refused_with_the_limit_that_takes_it():
    with pytest.raises(UsageError, match="make connection_count_max or receive_buffer_size smaller|make receive_buffer_size"):
        memory.fitting({"connection_count_max": 1000, "receive_buffer_size": MIB}, 256 * MIB)
    with pytest.raises(UsageError, match="a broker takes at least"):
        memory.fitting({}, 20 * MIB)
    with pytest.raises(ValueError, match="queue_share_max"):
        memory.fitting({"queue_count_max": 10, "queue_share_max": 20}, 4096 * MIB)


def test_the_control_group_and_those_above_it_count():
    """cgroups(7): version 2 has one group for all, version 1 one for memory."""
    assert list(memory.groups("0::/system.slice/leveret.service\n")) == [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/system.slice/memory.max",
        "/sys/fs/cgroup/system.slice/leveret.service/memory.max",
    ]
    assert list(memory.groups("5:cpu:/a\n4:memory:/\n")) == ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]
    assert list(memory.groups("")) == [] and memory.machine() >= 64 * MIB


def test_the_parts_name_limits_that_there_are():
    for what, octets, behind in memory.parts(Limits(), kept=True):
        assert octets >= 0 and all(name in GATEWAY for name in behind), what


def test_websocket_is_counted_where_a_listener_has_it():
    web_socket = pytest.importorskip("leveret.ports.web_socket", reason="the extra `web` is not installed")
    assert memory.WEB_SOCKET == web_socket.MEMORY
    for url, there in (("ws://h", True), ("wss://h?cert=c&key=k", True), ("amqp://h", False), ("serial:///dev/ttyUSB0", False)):
        sizes = {what: octets for what, octets, _ in memory.parts(Limits(), [address.parse(url)])}
        assert sizes["WebSocket"] == (memory.WEB_SOCKET * Limits().connection_count_max if there else 0), url


def test_memory_max_stands_in_the_file_or_on_the_command_line(tmp_path):
    path = os.path.join(tmp_path, "leveret.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write('[limits]\nmemory_max = "100M"\nqueue_count_max = 50\n')
    assert config.given_limits(path) == ({"queue_count_max": 50}, 100 * MIB)
    done = leveret("limits", "--all", "--config", path)
    assert done.returncode == 0 and "queue_count_max = 50 " in done.stdout
    sums = [float(line.split()[0]) for line in done.stdout.splitlines() if line.endswith("in all")]
    assert 90 < sums[0] <= 100
    more = leveret("limits", "--config", path, "--memory-max", "200M")
    assert 180 < float(more.stdout.splitlines()[-1].split()[0]) <= 200
    for text in ("much", "12", "-1"):
        wrong = leveret("limits", "--memory-max=" + text)
        assert wrong.returncode == 2 and "memory_max" in wrong.stderr and wrong.stderr.count("\n") == 1, wrong.stderr


def test_the_table_says_where_it_goes():
    done = leveret("limits", "--memory-max", "220M")
    lines = done.stdout.splitlines()
    assert lines[-1].endswith("in all") and any("bindings" in line and "binding_count_max" in line for line in lines)
    shown = [float(line.split()[0]) for line in lines]
    assert abs(sum(shown[:-1]) - shown[-1]) < 0.01 * len(lines)
