"""A broker that refuses frames below 8192 octets, as RabbitMQ does from 4.1 on: its FRAME_MIN_SIZE went from 4096 to 8192, and a tune-ok
with less, that is not 0, is answered with 530 and the text below.

Debian has RabbitMQ 3.10, so it is a Leveret here, the whole of it, with that number changed; its words are RabbitMQ's own.
"""

import os
import subprocess
import sys

import pytest
from conftest import make_upstream
from nodes import Leveret
from test_bridge import take_all
from test_gateway import Gateway

from leveret.core.limits import Limits
from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings
from leveret.ports.client import ClientError, connect
from leveret.ports.tcp import Loop
from leveret.ports.url import read_url
from leveret.tools.memory import total

STRICT = (
    "import sys; from leveret.core.amqp_0_9 import frame; frame.FRAME_MIN_SIZE = 8192; from leveret.tools.cli import main; sys.exit(main())"
)
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "board_client.py")


class Strict(Leveret):
    """`leveret serve` that takes no frame_max below 8192, and offers `frame_max`."""

    frame_max = 131072

    def command(self):
        config = os.path.join(self.directory, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("[limits]\nframe_size_max = %d\n" % self.frame_max)
        return [sys.executable, "-c", STRICT, "serve", "--listen", "amqp://127.0.0.1:%d" % self.port, "--config", config]


class Tight(Strict):
    """One that offers no more than the least."""

    frame_max = 8192


@pytest.fixture(params=[Strict, Tight])
def strict(request):
    node = request.param()
    make_upstream(node.url)
    yield node
    node.stop()


def test_less_is_refused_and_the_client_says_why(strict):
    with pytest.raises(ClientError, match=r"530 .*negotiated frame_max = 4096 is lower than the minimum allowed value \(8192\)"):
        connect(strict.url, frame_size_max=4096)


def test_a_client_with_a_boards_buffers_gets_in_and_everything_passes(strict):
    result = subprocess.run([sys.executable, SCRIPT, strict.url], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0 and result.stdout == "done\n", result.stdout + result.stderr


def test_a_bridge_with_the_smallest_buffers_gets_in_and_large_messages_pass(strict):
    gateway = Gateway(strict.url, 'queue = "uplink"\nframe_size_max = 8192\nbuffer_size = 2048')
    try:
        goes_through(gateway, strict)
    finally:
        gateway.stop()


def goes_through(gateway, upstream):
    client = connect(gateway.url)
    client.queue_declare("uplink", durable=True)
    bodies = [b"%d " % number + bytes(size) for number, size in enumerate((0, 2000, 8170, 8192, 100000, 3))]
    for body in bodies:
        client.publish("", "uplink", body, {"delivery_mode": 2})
    client.close()
    gateway.wait_for(lambda status: status["bridged"] == len(bodies), 60, "all is sent")
    assert [message.body for message in take_all(upstream.url)] == bodies


def test_a_bridge_that_would_be_refused_is_refused_at_once():
    given = {"name": "up", "gateway": "g", "queue": "q", "exchange": "e", "upstream": ["amqp://h"]}
    with pytest.raises(ValueError, match="frame_size_max is 4096; it must be a whole number from 8192"):
        Settings(dict(given, frame_size_max=4096))


def test_the_buffers_of_a_bridge_are_in_the_sum_that_serve_prints():
    settings = Settings(
        {"name": "up", "gateway": "g", "queue": "q", "exchange": "e", "upstream": ["amqp://127.0.0.1:1"], "buffer_size": 2048}
    )
    loop = Loop(2)
    bridge = Bridge(loop, settings, lambda sentence: None, read_url("amqp://127.0.0.1:1"))
    bridge.step()
    held = sum(len(side.client._receive) + len(side.client.output._octets) for side in (bridge.source, bridge.target))
    bridge.stop()
    loop.close()
    assert total(Limits(), [], [settings, settings]) - total(Limits()) == 2 * held == 2 * 12288
