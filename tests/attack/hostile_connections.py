"""Attackers that are hostile before they are anybody: floods, silence, other protocols, wrong log-ins, ends in the wrong moment."""

import amqp_wire as wire

TLS_HELLO = bytes.fromhex("16030100f8010000f40303") + bytes(range(32)) * 7
HTTP = b"GET / HTTP/1.1\r\nHost: broker\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n"
OTHER_HEADERS = (
    b"AMQP\x00\x01\x00\x00",
    b"AMQP\x01\x01\x00\x0a",
    b"AMQP\x03\x01\x00\x00",
    b"AMQP\x01\x01\x08\x00",
    b"AMQP\x01\x01\x09\x01",
    b"AMQP\xff\xff\xff\xff",
    b"HELO\r\n\r\n",
    b"\x00" * 8,
    b"\xff" * 64,
    b"SSH-2.0-x\r\n",
    b"\x03\x00\x00\x13\x0e\xe0\x00\x00",
)


def silent(attack):
    """Connections that say nothing, as many as are let in."""
    for _ in range(100):
        attack.connect()
    attack.rest()


def tls_to_the_plain_port(attack):
    """A TLS hello where AMQP is spoken."""
    attack.connect().send(TLS_HELLO[: attack.chance.randrange(1, len(TLS_HELLO))])
    attack.pause(0.02)


def http(attack):
    """Requests of a browser, and long ones."""
    attack.connect().send(HTTP * attack.chance.choice((1, 1, 50, 5000)))
    attack.pause(0.02)


def half_headers(attack):
    """The first one to seven octets of the header, and then nothing."""
    for _ in range(60):
        attack.connect().send(wire.PROTOCOL_HEADER[: attack.chance.randrange(1, 8)])
    attack.rest()


def other_protocols(attack):
    """Headers of other versions and of other protocols."""
    peer = attack.connect()
    peer.send(attack.chance.choice(OTHER_HEADERS))
    peer.look(0.05)
    peer.close()


def slow_loris(attack):
    """Many log-ins, an octet at a time."""
    peers = [attack.connect() for _ in range(30)]
    text = wire.PROTOCOL_HEADER + wire.method(
        0, "connection.start-ok", client_properties={"a": "b" * 200}, mechanism="PLAIN", response="\0mallory\0secret", locale="en_US"
    )
    for place in range(len(text)):
        for peer in peers:
            if peer in attack.peers:
                peer.send(text[place : place + 1])
        attack.pause(0.02)


def slow_publisher(attack):
    """A content that comes an octet at a time."""
    peer = attack.open()
    queue = peer.declare(attack.name_of())
    text = wire.publish(1, "", queue, b"x" * 300)
    for place in range(len(text)):
        peer.send(text[place : place + 1])
        attack.pause(0.01)


def resets(attack):
    """A reset in the middle of a frame."""
    peer = attack.open()
    queue = peer.declare(attack.name_of(), durable=True)
    text = wire.publish(1, "", queue, b"x" * 5000, {"delivery_mode": 2})
    peer.send(text * attack.chance.randrange(3) + text[: attack.chance.randrange(1, len(text))])
    peer.close(reset=True)


def reconnects(attack):
    """Connections that come and go at once, with and without a reset."""
    for _ in range(20):
        attack.connect().close(reset=attack.chance.random() < 0.5)
    attack.pause(0.01)


def log_ins(attack):
    """Log-ins that are right, and leave at once, with the handshake or without."""
    peer = attack.open()
    if attack.chance.random() < 0.5:
        peer.do("connection.close", 0, reply_code=200, reply_text="bye")
        peer.wait("connection.close-ok", seconds=1)
    peer.close(reset=attack.chance.random() < 0.5)


def idle(attack):
    """Connections with a log-in that do nothing, as many as are let in."""
    for _ in range(120):
        attack.open(channels=0)
    attack.rest()


def wrong_passwords(attack):
    """Wrong passwords from many addresses, for users who are there and who are not."""
    for _ in range(10):
        peer = attack.connect(address=f"127.6.{attack.chance.randrange(1, 250)}.{attack.chance.randrange(1, 250)}")
        peer.start()
        user = attack.chance.choice(("mallory", "honest", "nobody%d" % attack.chance.randrange(9), "", "\xff" * 200))
        peer.send(wire.method(0, "connection.start-ok", mechanism="PLAIN", response=f"\0{user}\0{attack.chance.random()}", locale="en_US"))
    for peer in list(attack.peers):
        peer.look(0.05)
        peer.close()


def odd_log_ins(attack):
    """Mechanisms that are not there, responses that make no sense, half of a SCRAM exchange."""
    chance = attack.chance
    peer = attack.connect(address=f"127.6.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}").start()
    mechanism, response = chance.choice(
        (
            ("PLAIN", b""),
            ("PLAIN", b"\0"),
            ("PLAIN", b"\0\0\0"),
            ("PLAIN", b"\xff\xfe\0\xff\0\xff"),
            ("PLAIN", b"x" * 60000),
            ("AMQPLAIN", b"\xff" * 40),
            ("AMQPLAIN", wire.encode_table({"LOGIN": 7, "PASSWORD": []})[4:]),
            ("EXTERNAL", b""),
            ("ANONYMOUS", b"x"),
            ("SCRAM-SHA-256", b"n,,n=mallory,r=abc"),
            ("SCRAM-SHA-256", b"p=x,,n=mallory,r="),
            ("SCRAM-SHA-256", b"n,,n=" + b"=2C" * 5000 + b",r=a"),
            ("SCRAM-SHA-256", b"n,,n=\xff,r=\xff"),
            ("\xff" * 100, b""),
            ("plain", b"\0mallory\0secret"),
            ("", b""),
        )
    )
    peer.send(wire.method(0, "connection.start-ok", mechanism=mechanism, response=response, locale="en_US"))
    if peer.wait("connection.secure", seconds=0.3):
        for _ in range(3):
            peer.send(
                wire.method(
                    0,
                    "connection.secure-ok",
                    response=chance.choice((b"", b"c=biws,r=abc,p=", b"c=biws,r=abcdef,p=////", b"\xff" * 3000, b"c=,r=,p==,p==")),
                )
            )
            peer.look(0.05)
    peer.close()


def odd_tuning(attack):
    """Answers to connection.tune, and virtual hosts, that make no sense."""
    chance = attack.chance
    peer = attack.connect()
    if peer.log_in("mallory"):
        peer.do(
            "connection.tune-ok",
            0,
            channel_max=chance.choice((0, 1, 65535)),
            frame_max=chance.choice((0, 1, 7, 8, 4095, 4096, 2**32 - 1)),
            heartbeat=chance.choice((0, 1, 65535)),
        )
        peer.do("connection.open", 0, virtual_host=chance.choice(("/", "", "//", "x" * 255, "\xff", b"\xff", "/\0")))
        peer.look(0.1)
    peer.close()


def no_heartbeats(attack):
    """A second is agreed on, and then there is silence: the broker ends that by itself."""
    for _ in range(20):
        peer = attack.connect()
        if peer.log_in("mallory"):
            peer.send(
                wire.method(0, "connection.tune-ok", channel_max=0, frame_max=0, heartbeat=1)
                + wire.method(0, "connection.open", virtual_host="/")
            )
    attack.rest()


ATTACKERS = (
    silent,
    tls_to_the_plain_port,
    http,
    half_headers,
    other_protocols,
    slow_loris,
    slow_publisher,
    resets,
    reconnects,
    log_ins,
    idle,
    wrong_passwords,
    odd_log_ins,
    odd_tuning,
    no_heartbeats,
)
