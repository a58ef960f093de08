"""The broker with a board's limits on ports/tcp.py, for a `micropython` binary: `micropython unix_broker.py PORT`.

Prints `ready amqp://127.0.0.1:PORT` and serves until it is ended. The port number is given, because MicroPython's unix port cannot say
which one it got for 0.
"""

import sys

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.ports.tcp import Loop

broker = Broker(Limits(**BOARD), b"unix")


def make_endpoint(stream):
    # It listens on the loopback only; MicroPython's unix port does not say readably who the peer is.
    connection = Connection(broker, stream.name, True)
    return None if connection.closed else connection


loop = Loop(BOARD["connection_count_max"] + 1, broker)
print("ready amqp://%s:%d" % loop.listen("127.0.0.1", int(sys.argv[1]), make_endpoint))
while True:
    loop.step(50)
