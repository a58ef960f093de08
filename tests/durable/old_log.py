"""The log that each version of the format leaves behind for ever: log_of_version_N.json, segments in hex.

python tests/durable/old_log.py    write that of this version, once, before its first release (PYTHONPATH has tests/unit)

Queue q has 40 numbered messages, of which 20 were delivered and every second of those acknowledged, and one that an x-delayed-message
exchange keeps for an hour; then one with every property, and a dead letter of such a one. A queue with priorities and a stream have every
fourth number.
"""

import json
import os

from memory_store import PERSISTENT, MemoryStore, durable_broker
from peer import Peer, content, encoded

from leveret.core.log import segments

HERE = os.path.dirname(os.path.abspath(__file__))

WHOLE = {
    "content_type": "text/plain",
    "headers": {"a": 1, "b": "two"},
    "delivery_mode": 2,
    "priority": 200,
    "expiration": "9999999999",
    "message_id": "m",
    "user_id": "guest",
}


def path_of(version):
    """Where the log of a version is kept."""
    return os.path.join(HERE, "log_of_version_%d.json" % version)


def kept(version):
    """A store with the log of a version."""
    store = MemoryStore()
    with open(path_of(version), encoding="utf-8") as file:
        store.segments = {int(number): bytes.fromhex(octets) for number, octets in json.load(file).items()}
    store.durable = dict(store.segments)
    return store


def written():
    """A store with what the text above says."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=2048)
    peer = Peer(broker)
    peer.declare("q", True)
    peer.declare("levels", True, arguments={"x-max-priority": 3})
    peer.declare("s", True, arguments={"x-queue-type": "stream"})
    peer.declare_delaying("later")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "later", "", False, {})
    for number in range(40):
        body = b"%06d" % number
        peer.give(content(1, "", "q", body, PERSISTENT))
        if number % 4 == 0:
            peer.give(content(1, "", "levels", body, dict(PERSISTENT, priority=number % 3)))
            peer.give(content(1, "", "s", body, PERSISTENT))
    peer.give(content(1, "later", "", b"later", dict(PERSISTENT, headers={"x-delay": 3600000})))
    peer.give(content(1, "", "q", b"whole", WHOLE))
    peer.declare("from", True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    peer.give(content(1, "", "from", b"dead", dict(WHOLE, headers=dict(WHOLE["headers"], BCC=["nobody"]))))
    peer.give(encoded("basic_get", 1, 0, "from", False))
    peer.give(encoded("basic_reject", 1, peer.contents()[0][1][0], False))
    peer.give(encoded("basic_qos", 1, 0, 20, False))
    peer.frames()
    deliveries = peer.consume("q")
    for place, (_, arguments, _, _) in enumerate(deliveries):
        if place % 2 == 0:
            peer.give(encoded("basic_ack", 1, arguments[1], False))
            peer.take()
            if place == 18:
                break
    broker.run()
    return store.cut()


if __name__ == "__main__":
    with open(path_of(segments.VERSION), "x", encoding="utf-8") as file:
        json.dump({number: octets.hex() for number, octets in written().segments.items()}, file, indent=0)
        file.write("\n")
