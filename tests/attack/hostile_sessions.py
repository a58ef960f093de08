"""Attackers that make a broker keep much over AMQP 0-10: sessions, half commands, what is never completed, files, branches, replays."""

import wire_0_10 as wire
from peer import Gone
from peer_0_10 import Peer010, open_0_10


def queue_of(attack, peer, channel=0):
    """The name of a queue of the attackers', which is there."""
    name = attack.name_of()
    peer.command(channel, "queue.declare", queue=name, durable=True, arguments={"x-max-length": 2000})
    return name


def controls_in_parts(attack):
    """The first frame of a control on every channel, before the log-in and behind it, none of them ever whole."""
    chance = attack.chance
    for number in range(12):
        if number % 2:
            peer = open_0_10(attack, sessions=0)
        else:
            peer = attack.connect(kind=Peer010)
            peer.send(wire.HEADER)
        for channel in range(129):
            peer.send(wire.frame(14, wire.CONTROL, channel, bytes(chance.choice((1, 100, 4000)))))
    attack.rest()


def half_commands(attack):
    """A command on each of many sessions that stops in its command, in its header, in its body, in the middle of its fragments."""
    peer = open_0_10(attack, sessions=60)
    for channel in range(60):
        octets = wire.frame(11, wire.COMMAND, channel, wire.operation("message.transfer", destination="amq.topic", accept_mode=0))
        kind = channel % 4
        if kind == 0:
            octets = wire.frame(10, wire.COMMAND, channel, bytes(4000))
        elif kind == 1:
            octets += wire.frame(2, wire.HEAD, channel, wire.head({"routing_key": "k"}, {"user_id": bytes(15000)})[:15000])
        elif kind == 2:
            octets += wire.frame(3, wire.HEAD, channel, wire.head({"routing_key": "k"})) + wire.frame(6, wire.BODY, channel, bytes(50000))
        else:
            fragment = wire.head({"routing_key": "k", "resume_id": f"r{channel}"}) + b"\x00\x00\x00\x04\x04\x02\x01\x00"
            octets += wire.frame(3, wire.HEAD, channel, fragment) + wire.frame(7, wire.BODY, channel, bytes(50000))
        peer.send(octets)
    attack.rest()


def attach_floods(attack):
    """Sessions as many as there may be, with the longest names, attached and detached as fast as they can, some for ever."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=0)
    for number in range(300):
        channel = number % 127
        name = b"mallory %d " % chance.randrange(1 << 30) + bytes(1000)
        peer.attach(channel, name)
        peer.tell(channel, "session.request-timeout", timeout=chance.choice((0, 3, 2**32 - 1)))
        if chance.random() < 0.3:
            peer.tell(channel, "session.detach", name=name)
        peer.look()
    if chance.random() < 0.5:
        attack.rest()


def session_stealing(attack):
    """Connections of one user that take each other's sessions by force, with work under way; and names of another user's sessions."""
    peers = [open_0_10(attack, sessions=0) for _ in range(4)]
    queue = queue_of(attack, open_0_10(attack))
    for turn in range(200):
        peer = peers[turn % 4]
        peer.subscribed = None  # a session brings its subscriptions
        peer.attach(0, b"stolen" if turn % 7 else b"publisher of honest.sessions", True)
        peer.tell(0, "session.request-timeout", timeout=60)
        peer.subscribe(0, queue, messages=5)
        peer.transfer(0, b"x" * 3000, queue, size=1000)
        peer.look()


def never_completed(attack):
    """A session with a timeout whose peer asks for results and accepts and completes none: what the broker would send again grows."""
    peers = [open_0_10(attack, sessions=20) for _ in range(3)]
    for peer in peers:
        for channel in range(20):
            peer.tell(channel, "session.request-timeout", timeout=60)
            peer.command(channel, "queue.declare", queue=f"mallory.l{channel}", arguments={"x-max-length": 5, "long": "a" * 3500})
    while True:
        for peer in peers:
            for channel in range(20):
                peer.send(wire.command(channel, "queue.query", queue=f"mallory.l{channel}") * 20)
                if attack.chance.random() < 0.05:
                    peer.transfer(channel, b"x", "k", destination="amq.topic")
            peer.look()


def holes_in_every_set(attack):
    """Sessions with a timeout in each of whose sets are as many holes as may be: executed, completed, confirmed, refused."""
    peer = open_0_10(attack, sessions=100)
    for channel in range(100):
        peer.tell(channel, "session.request-timeout", timeout=60)
        for first in range(10, 1800, 600):
            peer.tell(channel, "session.gap", commands=[(each, each) for each in range(first, first + 600, 2)])
        peer.look()
    attack.rest()


def credit_without_reads(attack):
    """Subscriptions with all the credit there is whose peers do not read and accept nothing; stopped and flushed meanwhile."""
    feeder = open_0_10(attack)
    queue = queue_of(attack, feeder)
    peers = [open_0_10(attack, sessions=2, receive_buffer=4096) for _ in range(6)]
    for number, peer in enumerate(peers):
        for channel in range(2):
            peer.subscribe(channel, queue, accept_mode=number % 2, acquire_mode=int(number == 5))
            peer.tell(channel, "session.request-timeout", timeout=60) if number % 3 == 0 else None
        peer.reads = False
    number = 0
    while True:
        feeder.transfer(0, bytes(2000), queue, message={"application_headers": {"a": "x" * 3000}})
        number += 1
        if number % 50 == 0:
            feeder.look(0.02)
            peers[number // 50 % 6].command(0, attack.chance.choice(("message.stop", "message.flush")), destination="d")


def credit_grains(attack):
    """Credit of one message and of one octet at a time, modes that change, subscriptions that come and go."""
    chance = attack.chance
    peer = open_0_10(attack)
    queue = queue_of(attack, peer)
    for number in range(200):
        destination = f"d{number % 7}"
        peer.subscribe(0, queue, destination, chance.choice((0, 1)), chance.choice((0, 1, 100)), chance.choice((0, 1)))
        peer.transfer(0, b"x" * chance.choice((0, 1, 500)), queue)
        for name in ("message.set-flow-mode", "message.flush", "message.stop"):
            mode = {"flow_mode": chance.choice((0, 0, 0, 1))} if name[-4:] == "mode" else {}
            peer.command(0, name, destination=destination, **mode)
        peer.command(0, "message.cancel", destination=destination)
        peer.again()


def files_never_published(attack):
    """Contents of class file that are opened with any size, staged in part or whole, and never published."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=8)
    for number in range(100):
        channel = number % 8
        size = chance.choice((0, 1, 5000, 2**20, 2**40, 2**64 - 1))
        peer.command(channel, "file.open", identifier=f"mallory {chance.randrange(40)}", content_size=size)
        octets = wire.frame(11, wire.COMMAND, channel, wire.operation("file.stage"))
        octets += wire.frame(3, wire.HEAD, channel, b"\x00\x00\x00\x04\x09\x01\x00\x00")
        octets += wire.frame(6 if chance.random() < 0.5 else 7, wire.BODY, channel, bytes(min(size, 50000)))
        peer.send(octets)
        peer.look()
        if chance.random() < 0.2:
            peer.command(channel, "file.publish", exchange="", routing_key="mallory.none", identifier=f"mallory {chance.randrange(40)}")
        peer.again()
    attack.rest()


def files_never_taken(attack):
    """Consumers of class file and class stream that answer no file.open, acknowledge what they never had, and set windows of any size."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=4)
    queue = queue_of(attack, peer)
    for channel in range(4):
        peer.subscribed.add(channel)
        class_ = "file" if channel % 2 else "stream"
        peer.command(channel, class_ + ".qos", prefetch_count=chance.choice((0, 1, 65535)), prefetch_size=chance.choice((0, 1, 2**32 - 1)))
        peer.command(channel, class_ + ".consume", queue=queue, consumer_tag=f"c{channel}")
    for _ in range(100):
        peer.transfer(0, bytes(3000), queue)
        for name in ("file.open-ok", "file.ack", "file.reject", "stream.publish"):
            if chance.random() < 0.05:
                rows = {"file.open-ok": {"staged_size": chance.choice((0, 1, 2**63))}, "stream.publish": {"routing_key": queue}}
                peer.command(chance.randrange(4), name, **rows.get(name, {"delivery_tag": chance.randrange(5)}))
        peer.again()
    attack.rest()


def branches_left(attack):
    """Branches of distributed transactions that are begun, filled, suspended, prepared, and never ended."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=10)
    queue = queue_of(attack, peer)
    for channel in range(10):
        peer.command(channel, "dtx.select")
        for number in range(10):
            xid = b"mallory %d" % chance.randrange(200), b"%d" % number
            peer.command(channel, "dtx.start", xid=xid, join=chance.random() < 0.1)
            for _ in range(chance.choice((0, 1, 20))):
                peer.transfer(channel, bytes(500), queue, delivery={"delivery_mode": 2})
            peer.command(channel, "dtx.end", xid=xid, suspend=chance.random() < 0.2, fail=chance.random() < 0.1)
            peer.command(channel, "dtx.set-timeout", xid=xid, timeout=chance.choice((0, 1, 2**32 - 1)))
            peer.command(channel, chance.choice(("dtx.prepare", "dtx.prepare", "dtx.forget", "dtx.commit")), xid=xid)
            peer.command(channel, "dtx.recover")
        peer.again()
    if chance.random() < 0.5:
        attack.rest()


def transactions_left_0_10(attack):
    """tx.select in as many sessions as there may be: transfers and accepts that are never committed, or committed all at once."""
    peer = open_0_10(attack, sessions=30)
    queue = queue_of(attack, peer)
    for channel in range(30):
        peer.command(channel, "tx.select")
        for _ in range(30):
            peer.transfer(channel, b"x" * 100, queue)
        if attack.chance.random() < 0.3:
            peer.command(channel, attack.chance.choice(("tx.commit", "tx.rollback")))
        peer.look()
    attack.rest()


def halves_named(attack):
    """Messages with resume-ids that are interrupted again and again, and resumed where nothing was kept."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=0)
    for number in range(100):
        channel = number % 20
        name = b"mallory %d" % number
        peer.attach(channel, name)
        resume_id = f"r{chance.randrange(12)}" + "x" * chance.choice((0, 10000))
        if chance.random() < 0.3:
            peer.command(channel, "message.resume", destination="amq.topic", resume_id=resume_id)
        octets = wire.transfer(channel, bytes(chance.choice((1, 30000))), "k", destination="amq.topic", delivery={"resume_id": resume_id})
        peer.send(octets[:-12] if chance.random() < 0.1 else wire.frame(11, wire.COMMAND, channel, wire.operation("message.transfer")))
        peer.send(b"" if chance.random() < 0.1 else wire.control(channel, "session.detach", name=name))
        try:
            peer.look(0.01)
        except Gone:
            return


def replays(attack):
    """Sessions that lose their transport with much unsettled and come back, again and again, to have all of it sent again."""
    chance = attack.chance
    name = b"mallory replay %d" % chance.randrange(1 << 30)
    feeder = open_0_10(attack)
    queue = queue_of(attack, feeder)
    for number in range(30):
        peer = open_0_10(attack, sessions=0)
        peer.subscribed = None
        peer.tell(0, "session.attach", name=name, force=True)
        peer.tell(0, "session.command-point", command_id=100 * number, command_offset=0)
        peer.tell(0, "session.request-timeout", timeout=60)
        peer.subscribe(0, queue, f"d{number}")
        for _ in range(50):
            feeder.transfer(0, bytes(500), queue)
        peer.tell(0, chance.choice(("session.expected", "session.completed", "session.confirmed")), commands=[(0, number)])
        peer.look(0.02)
        peer.close(reset=chance.random() < 0.5)


ATTACKERS = (
    controls_in_parts,
    half_commands,
    attach_floods,
    session_stealing,
    never_completed,
    holes_in_every_set,
    credit_without_reads,
    credit_grains,
    files_never_published,
    files_never_taken,
    branches_left,
    transactions_left_0_10,
    halves_named,
    replays,
)
