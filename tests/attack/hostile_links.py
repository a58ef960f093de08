"""Attackers that make a broker keep much over AMQP 1.0: links, termini, filters, half of a delivery, transactions, what is not settled."""

import wire_1_0 as wire
from peer_1_0 import open_1_0, queue_of
from wire_1_0 import Described, Symbol, uint

SELECTOR = 0x0000468C00000004


def half_sent_deliveries(attack):
    """A delivery under way on each of many links: heads that do not end, and bodies."""
    peer = open_1_0(attack, sessions=8)
    head = b"\x00\x53\x72\xd1\x00\x00\x30\x00\x00\x00\x00\x02\xa3\x01a\xb1\x00\x00\x2f\x00" + bytes(4000)
    for channel in range(8):
        for handle in range(12):
            peer.link(f"h{channel}.{handle}", handle, False, "/exchanges/amq.topic/k", channel)
            octets = head if handle % 2 else b"\x00\x53\x75\xb0\x00\x10\x00\x00" + bytes(3000)
            peer.say(channel, wire.transfer(handle, handle, octets, more=True))
    attack.rest()


def huge_unsettled_maps(attack):
    """Attaches with maps of thousands of deliveries, of both roles, that nobody knows."""
    peer = open_1_0(attack, sessions=1)
    queue = queue_of(attack)
    unsettled = {number.to_bytes(4, "big"): Described(wire.ACCEPTED, []) for number in range(4000)}
    for handle in range(10):
        receives = handle % 2 == 0
        source = wire.terminus(wire.SOURCE, f"/queues/{queue}" if receives else None)
        target = wire.terminus(wire.TARGET, None if receives else f"/queues/{queue}", uint(2), Symbol("never"))
        fields = [f"u{handle}", uint(handle), receives, None, ("ubyte", 1), source, target, unsettled, False, None if receives else uint(0)]
        peer.say(0, wire.performative(wire.ATTACH, *fields))
        peer.wait("attach")
        if attack.chance.random() < 0.5:
            peer.say(0, wire.performative(wire.DETACH, uint(handle), False))


def huge_termini(attack):
    """Sources and targets as large as a frame, kept by as many links as there may be."""
    peer = open_1_0(attack, sessions=4)
    properties = {Symbol(f"k{number}"): Described(0x99, [{}] * 8) for number in range(600)}
    source = [None] * 6 + [properties]
    for number in range(200):
        receives = number % 2 == 0
        given = {"source": source} if not receives or attack.chance.random() < 0.5 else {}
        peer.say(number % 4, wire.attach(f"t{number}", number // 4, receives, f"/queues/{attack.name_of()}", **given))
    peer.look(0.2)
    attack.rest()


def filters_without_end(attack):
    """Selectors of thousands of operations, many in a set, on many links to one queue; messages through them."""
    queue = queue_of(attack)
    peer = open_1_0(attack, sessions=1)
    text = "1" + "+1" * attack.chance.choice((10, 500, 2000)) + "=2"
    filters = {Symbol(f"f{number}"): Described(SELECTOR, text) for number in range(15)}
    for handle in range(1, 40):
        peer.say(0, wire.attach(f"f{handle}", handle, True, f"/queues/{queue}", source=[None] * 6 + [filters]))
        peer.say(0, wire.flow(handle, 100)) if peer.got["detach"] == 0 else None
    peer.link("a", 0, False, f"/queues/{queue}")
    for number in range(50):
        peer.say(0, wire.transfer(0, number, wire.data(b"x")))
        peer.look()


def link_stealing(attack):
    """Connections of one container that steal each other's links, as fast as they can."""
    queue = queue_of(attack)
    peers = [open_1_0(attack, container="mallory thief") for _ in range(4)]
    for turn in range(200):
        peer = peers[turn % 4]
        peer.say(0, wire.attach("stolen", turn // 4 % 200, turn % 8 < 4, f"/queues/{queue}", second=turn % 3 == 0))
        peer.look()


def transactions_left_open(attack):
    """Transactions that are declared, filled and never discharged, in as many sessions as there may be."""
    peer = open_1_0(attack, sessions=16)
    declare = b"\x00\x53\x77" + wire.value(Described(wire.DECLARE, [None]))
    coordinator = Described(wire.COORDINATOR, [None])
    queue = queue_of(attack)
    for channel in range(16):
        attach = wire.performative(wire.ATTACH, "c", uint(0), False, None, None, None, coordinator, None, None, uint(0))
        peer.say(channel, attach)
        peer.link(f"p{channel}", 1, False, f"/queues/{queue}", channel)
        for number in range(20):
            peer.say(channel, wire.transfer(0, number, declare))
        state = Described(wire.TRANSACTIONAL, [channel.to_bytes(2, "big") + (1).to_bytes(4, "big")])
        for number in range(20, 60):
            peer.say(channel, wire.transfer(1, number, wire.data(b"x" * 100), state=state))
        if attack.chance.random() < 0.3:
            discharge = Described(wire.DISCHARGE, [channel.to_bytes(2, "big") + (1).to_bytes(4, "big"), attack.chance.random() < 0.5])
            peer.say(channel, wire.transfer(0, 60, b"\x00\x53\x77" + wire.value(discharge)))
    attack.rest()


def slow_readers_with_credit(attack):
    """Receivers with all the credit there is that do not read."""
    queue = queue_of(attack)
    feeder = open_1_0(attack)
    feeder.link("a", 0, False, f"/queues/{queue}")
    peers = [open_1_0(attack, sessions=2, receive_buffer=4096) for _ in range(6)]
    for peer in peers:
        peer.link("b", 1, True, f"/queues/{queue}")
        peer.say(0, wire.flow(1, 2**31 - 1))
        peer.reads = False
    number = 0
    while True:
        head = b"\x00\x53\x72" + wire.value({Symbol("a"): "x" * 3000})
        feeder.say(0, wire.transfer(0, number, head + wire.data(bytes(2000))))
        number += 1
        if number % 50 == 0:
            feeder.look(0.02)


def windows_of_one(attack):
    """Sessions whose window is one small frame, each with a large delivery half written."""
    queue = queue_of(attack)
    peer = open_1_0(attack, sessions=32, frame_max=512, window=1)
    peer.link("a", 0, False, f"/queues/{queue}")
    for number in range(1, 32):
        peer.say(number, wire.attach(f"w{number}", 1, True, f"/queues/{queue}"))
        peer.say(number, wire.performative(wire.FLOW, uint(0), uint(1), uint(0), uint(100), uint(1), uint(0), uint(10)))
    other = attack.open()
    for _ in range(40):
        other.publish("", queue, b"x", properties={"headers": {"h": "y" * 12000}})
    peer.look(0.5)
    attack.rest()


def never_settled(attack):
    """Deliveries taken and never settled, with outcomes that want the broker to settle, and annotations that nobody keeps."""
    queue = queue_of(attack)
    peer = open_1_0(attack)
    peer.link("a", 0, False, f"/queues/{queue}", second=True, target=[uint(2), Symbol("never")])
    peer.link("b", 1, True, f"/queues/{queue}")
    peer.say(0, wire.flow(1, 2000))
    modified = Described(wire.MODIFIED, [False, False, {Symbol("a"): "x" * 20000}])
    for number in range(190):
        peer.say(0, wire.transfer(0, number, wire.data(b"x"), tag=b"%016d%d" % (attack.chance.randrange(10**15), number)))
        if peer.got["detach"] or peer.got["end"]:
            return
        if number % 2:
            peer.say(0, wire.performative(wire.DISPOSITION, True, uint(number), None, False, modified))
    attack.rest()


def dynamic_nodes(attack):
    """Dynamic nodes, as many as are given, with every lifetime."""
    peer = open_1_0(attack, sessions=2)
    for number in range(200):
        lifetime = {Symbol("lifetime-policy"): Described(0x2B + number % 5, [])}
        source = Described(wire.SOURCE, [None, None, None, None, True, lifetime])
        attach = wire.performative(wire.ATTACH, f"d{number}", uint(number // 2), True, None, None, source, wire.terminus(wire.TARGET, None))
        peer.say(number % 2, attach)
        if number % 3 == 0:
            peer.say(number % 2, wire.performative(wire.DETACH, uint(number // 2), number % 2 == 0))
    peer.look(0.1)


def sessions_and_links_come_and_go(attack):
    """Sessions and links that are begun and ended, as fast as they can."""
    peer = open_1_0(attack, sessions=0)
    begin = wire.performative(wire.BEGIN, None, uint(0), uint(100), uint(100))
    for _ in range(100):
        octets = b""
        for channel in range(8):
            octets += wire.frame(channel, begin) + wire.frame(channel, wire.attach("x", 0, False, "/exchanges/amq.topic/k"))
            octets += wire.frame(channel, wire.transfer(0, 0, wire.data(b"x"), settled=True)) + wire.frame(
                channel, wire.performative(wire.END)
            )
        peer.send(octets)
        peer.look()


ATTACKERS = (
    half_sent_deliveries,
    huge_unsettled_maps,
    huge_termini,
    filters_without_end,
    link_stealing,
    transactions_left_open,
    slow_readers_with_credit,
    windows_of_one,
    never_settled,
    dynamic_nodes,
    sessions_and_links_come_and_go,
)
