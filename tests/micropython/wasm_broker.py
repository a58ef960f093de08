"""The broker with a board's limits, for wasm_port.py: one Broker, a Connection for each socket."""

import time

from leveret.core.broker import ages, policies  # noqa: F401 - the broker loads them when it starts; on a board they are frozen
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.log import definition_records  # noqa: F401 - as ages
from leveret.core.queue import dead_letters, waiting  # noqa: F401 - the broker loads them when it starts; on a board they are frozen

_broker = None


def start():
    global _broker
    _broker = Broker(Limits(**BOARD), b"wasm")


def make_endpoint():
    connection = Connection(_broker, "node", True)
    return None if connection.closed else connection


def tick(now):
    _broker.tick(now, int(time.time()))


def run(now):
    _broker.run()
