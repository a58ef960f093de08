"""A small day of a durable broker on a flash chip, with the power cut at every operation of the chip; runs on both interpreters.

After each cut the broker starts again on what is left: every confirmed message that was not acked is there, once and in order; what was
acked before a later confirm is not. It goes on working then, and starts once more.
"""

from flash_device import DONE, HALF, UNDONE, PowerCut
from peer import Peer, assemble, encoded, new_broker

from leveret.core.recovery import opening

COUNT = 40
LEFT = 4  # messages in the queue while the day goes on
PERSISTENT = {"delivery_mode": 2}
SEGMENT_SIZE = 1500
BODY = b"x" * 60


class Day:
    """What the client knows."""

    def __init__(self):
        self.confirmed = []
        self.acked = []  # acks sent
        self.settled = []  # acked, and something was confirmed after it


def make_broker(store, size_max):
    """(broker, report)."""
    broker = new_broker(arena_size=65536)
    return broker, opening.make_durable(broker, store, "each", 100, 65536, SEGMENT_SIZE, size_max)


def work(broker, day, first):
    """Publish COUNT messages, and ack all but the last few."""
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("confirm_select", "confirm_select_ok", False)
    waiting = []
    for number in range(first, first + COUNT):
        peer.publish("q", b"%d " % number + BODY, given=PERSISTENT)
        acks = [frame for frame in peer.frames() if frame[0] == "basic_ack"]
        if acks:
            day.confirmed.append(number)
            day.settled.extend(waiting)
            waiting = []
        if number - first >= LEFT:
            taken = take(peer)
            day.acked.append(taken)
            peer.give(encoded("basic_ack", 1, number - first - LEFT + 1, False))
            waiting.append(taken)


def take(peer):
    """The number of the message at the head, unsettled."""
    peer.give(encoded("basic_get", 1, 0, "q", False))
    return number_of(assemble(peer.frames())[0][3])


def number_of(body):
    return int(bytes(body).split(b" ")[0])


def left(broker):
    """The numbers of all messages, which stay."""
    if "q" not in broker.queues:
        return []
    return [number_of(each[3]) for each in Peer(broker).consume("q")]


def compare(day, found, where):
    """What is there must fit what the client knows."""
    assert found == sorted(set(found)), (where, found)
    missing = [number for number in day.confirmed if number not in found and number not in day.acked]
    assert not missing, (where, "missing", missing, found)
    back = [number for number in found if number in day.settled]
    assert not back, (where, "came back", back)


def one_cut(device, open_store, close_store, size_max, cut_at, torn):
    """Run the day with a cut at an operation; true when there was one."""
    where = (cut_at, torn)
    day = Day()
    device.cut_at = cut_at
    device.torn = torn
    store = None
    try:
        store = open_store(device)
        broker, _ = make_broker(store, size_max)
        work(broker, day, 0)
    except PowerCut:
        pass
    was_cut = device.dead
    if not was_cut:
        assert day.confirmed == list(range(COUNT)), (where, day.confirmed)
    close_store(store)
    device.power_up()
    for first in (COUNT, 2 * COUNT):
        store = open_store(device)
        broker, report = make_broker(store, size_max)
        assert "recovered" in report
        compare(day, left(broker), where)
        again(broker, day, first)
        close_store(store)
    return was_cut


def again(broker, day, number):
    """The broker works."""
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("confirm_select", "confirm_select_ok", False)
    peer.publish("q", b"%d " % number + BODY, given=PERSISTENT)
    frames = peer.frames()
    for _ in range(20):  # a log that is full makes room bit by bit
        broker.tick(broker.now + 1000, 0)
        broker.run()
        frames += peer.frames()
    assert [frame for frame in frames if frame[0] == "basic_ack"], number
    day.confirmed.append(number)


def sweep(make_device, open_store, close_store, size_max, step=1):
    """Every step-th operation, with it undone, half done and done: the number of cuts."""
    cuts = 0
    for torn in (UNDONE, HALF, DONE):
        cut_at = 1
        while one_cut(make_device(), open_store, close_store, size_max, cut_at, torn):
            cut_at += step
            cuts += 1
    return cuts
