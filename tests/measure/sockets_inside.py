"""Inside MicroPython, for tests/measure/board_sockets.py: a broker in the firmware's loop, or its hot way alone.

    micropython sockets_inside.py socket PORT THRESHOLD     listens there and serves one client until it goes; says "ready" before
    micropython sockets_inside.py buffers TOGETHER SIZE     carries messages from receive buffer to send buffer; a mark on stdin each

THRESHOLD: octets that are asked for before garbage is collected, 0: it never is. In "buffers" each line of stdin carries as many messages
as it says, and is answered.
"""

import gc
import sys

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.firmware.rounds import Rounds

STEP_MS = 50


def made():
    """A broker as time_inside.py has it."""
    limits = dict(BOARD)
    limits.update({"receive_buffer_size": 4096, "send_buffer_size": 16384})
    return Broker(Limits(**limits), b"sockets")


def serve(port, threshold):
    """Serve the client that comes."""
    broker = made()
    loop = Rounds(4, broker)
    loop.listen("127.0.0.1", port, lambda stream: Connection(broker, stream.name, True))
    if threshold:
        gc.threshold(threshold)
    else:
        gc.disable()
    print("ready")
    while not loop.used:
        loop.step(STEP_MS)
    while loop.used:
        loop.step(STEP_MS)
    if broker.counters["internal_errors"]:
        raise RuntimeError("an error of the broker's own")


def carry(together, size):
    """Messages of that size from buffer to buffer, so many under way."""
    from board_load import OPENING
    from time_inside import ACKNOWLEDGE, SUBSCRIBE, publish

    broker = made()
    connection = Connection(broker, "peer", True)

    def give(octets):
        connection.writable()[: len(octets)] = octets
        connection.received(len(octets))
        broker.run()

    for octets in OPENING + SUBSCRIBE:
        give(octets)
        connection.sent(len(connection.pending()))
    octets = ACKNOWLEDGE + publish(size) * together
    for line in sys.stdin:
        for _ in range(int(line) // together):
            give(octets)
            connection.sent(len(connection.pending()))
        print("done")


if __name__ == "__main__":
    {"socket": serve, "buffers": carry}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
