"""The broker with a board's limits at the end of a serial line, for wasm_port.py: each socket stands for a cable to a Link of its own."""

import time

from leveret.core.broker import ages, policies  # noqa: F401 - the broker loads them when it starts; on a board they are frozen
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.log import definition_records  # noqa: F401 - as ages
from leveret.core.queue import dead_letters, waiting  # noqa: F401 - as ages
from leveret.core.serial_link.link import NONCE_MAX, Link

BAUD = 115200
WINDOW_SIZE = 2048

_broker = None


def start():
    global _broker
    _broker = Broker(Limits(**BOARD), b"wasm")


def make_connection():
    connection = Connection(_broker, "line", True)
    return None if connection.closed else connection


def make_endpoint():
    nonce = int(time.time() * 1000) % NONCE_MAX + 1
    return Link(
        make_connection,
        nonce,
        window_size=WINDOW_SIZE,
        payload_size_max=256,
        receive_size=256,
        stream_count=3,
        stream_room=1024,
        retransmit_ms=100 + 4 * WINDOW_SIZE * 10000 // BAUD,
    )


def tick(now):
    _broker.tick(now, int(time.time()))


def run(now):
    _broker.run()
