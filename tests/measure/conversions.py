"""How much longer a delivery takes for receivers of another version than its publisher's (issue 18: within 2 times).

    python tests/measure/conversions.py [--accel]

A message with ten properties and eleven octets of body, published by each version; a cell is processor time of its delivery (one process,
no sockets), divided by the time of a message that the receiver's own version published. Without --accel: plain Python. The first table is
of messages with equal properties, which are converted once for all of them (core/broker/crossing.py), the second of messages with a
correlation-id of their own each. Exit status 1 when a cell misses the goal.
"""

import functools
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "unit"))

GOAL = 2.0
ROUNDS = 40
MESSAGES = 40
PIECE = 2048  # octets that a publisher sends at once
IN_C_TOO = 25  # times as many messages in C: those are sooner delivered than a clock tells
ROOM = {"properties_size_max": 4096, "receive_buffer_size": 16384, "send_buffer_size": 1 << 20, "content_size_max": 4096}
IN_C = {"message_count_max": 2048, "entry_count_max": 4096, "arena_size": 1 << 22}
TEN = tuple("content-type content-encoding delivery-mode priority correlation-id reply-to message-id timestamp type app-id".split())


def ten_properties():
    """{version: (octets of the header, body)}, as full_messages.py has them."""
    import full_messages as full

    said = {name: full.SAID[name] for name in TEN}
    found = {version: (full.listed(full.PROPERTIES, said, None), full.BODY) for version in full.BASIC}
    found["0.9a5"] = full.listed(full.JMS_9A5, dict(said, destination=full.KEY), None), full.BODY
    found["0.9r1"] = full.listed(full.JMS_9R1, said, None), full.BODY
    reply_to, app = full.reply_to_10("ex", "answers"), full.sized(2, b"app")
    named = full.message_10(full.UUID, b"corr", reply_to, None, app, None)
    found["0-10"] = full.delivery_10(60000, full.SECONDS) + named, full.BODY
    texts = [full.string(text) for text in ("id", "/queues/q", "subject", "/queues/answers", "corr")]
    symbols = [full.symbol("text/plain"), full.symbol("gzip")]
    times = [full.value_1_0("timestamp", full.SECONDS * 1000) for _ in range(2)]
    user = full.value_1_0("binary", b"guest")
    found["1.0"] = full.list_1_0(0x73, texts[:1] + [user] + texts[1:] + symbols + times), full.data(full.BODY)
    return found


def numbered(message, number):
    """A message with another correlation-id."""
    header, body = message
    return header.replace(b"corr", b"%04d" % number), body


def world_for(count):
    """A world whose broker has room for so many messages."""
    from every_version import World
    from peer import new_broker

    return World(new_broker(**ROOM, **(IN_C if count > MESSAGES else {})))


@functools.lru_cache(maxsize=None)
def sent(source, count, differ):
    """What a publisher sends for `count` messages, behind the opening: in pieces, the first of which may have to be answered."""
    world, octets = world_for(count), []
    peer, message = world.peer(source), ten_properties()[source]
    give = peer.give
    peer.give = lambda given: octets.append(given) or give(given)
    for number in range(count):
        world.publish(source, numbered(message, number) if differ else message)
    rest = b"".join(octets[1:])
    return octets[:1] + [rest[at : at + PIECE] for at in range(0, len(rest), PIECE)]


def subscribing(source, target, count, differ, is_read):
    """Seconds of processor time in which `count` messages of a version go to a new receiver of another. `is_read`: it counts them."""
    from peer_0_10 import Peer as Peer010
    from peer_1_0 import Peer as Peer10

    world = world_for(count)
    for octets in sent(source, count, differ):
        world.peer(source).give(octets)
    queue = world.broker.queues["q"]
    assert queue.message_count() == count, (source, queue.message_count())
    world.peers.pop(source, None)
    if target == "0-10":
        world.peers[target] = Peer010(world.broker, name=b"receiver")
    elif target == "1.0":
        world.peers[target] = Peer10(world.broker)
        world.peers[target].receiver("/queues/q", credit=0, snd_settle_mode=1)
    else:
        world.peers[target] = world.made(target)  # a connection of its own where the publisher has the same version, too
    started = time.process_time()
    if target == "1.0":
        world.peers[target].credit(count or 1, incoming_window=count or 1)
    else:
        world.subscribe(target)
    spent = time.process_time() - started
    assert queue.message_count() == 0, (source, target, queue.message_count())
    assert not is_read or len(world.received(target)) == count, (source, target)
    return spent


def microseconds(source, target, differ, count):
    """One of `count` deliveries, without its share of the subscription and of what the first one makes: the best of ROUNDS."""
    whole = min([subscribing(source, target, count, differ, not number) for number in range(ROUNDS)])
    part = min([subscribing(source, target, count // 4, differ, not number) for number in range(ROUNDS)])
    return (whole - part) / (count - count // 4) * 1e6


def show(messages, differ, count):
    """Measure and print a table: how many cells miss the goal."""
    spent = {(source, target): microseconds(source, target, differ, count) for source in messages for target in messages}
    print("\n%s:\n" % ("each with its own correlation-id" if differ else "equal properties"))
    print("| from / to | " + " | ".join(messages) + " |\n|---|" + "---:|" * len(messages))
    for source in messages:
        cells = ["%.1f" % (spent[source, target] / spent[target, target]) for target in messages]
        print("| %s | %s |" % (source, " | ".join(cells)))
    print("us, own version: " + ", ".join(["%s %.1f" % (each, spent[each, each]) for each in messages]))
    missed = [pair for pair in spent if spent[pair] > GOAL * spent[pair[1], pair[1]]]
    print("%d of %d cells take more than %.1f times as long" % (len(missed), len(spent), GOAL))
    return len(missed)


def main(arguments):
    count = MESSAGES
    if "--accel" in arguments:
        from leveret.c_accel import install

        print(install())
        count *= IN_C_TOO
    messages = ten_properties()
    return 1 if sum([show(messages, differ, count) for differ in (False, True)]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
