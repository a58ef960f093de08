"""Messages of AMQP 1.0 in `leveret serve --data` that is ended by kill -9: what comes back, octet for octet, and to whom."""

import os
import signal

from broker_process import BrokerProcess
from test_proton_messages import PROTON, SEED, proton

from leveret.core.amqp_1_0 import sections
from leveret.core.memory import layout
from leveret.ports import client, client_1_0

COUNT = 300
BY_ITSELF = (sections.HEADER, sections.DELIVERY_ANNOTATIONS)  # sections that the broker writes, or has for itself


def messages():
    """[(octets, description)] of durable messages of Proton's that this user may send and that live long enough."""
    found = []
    for line in proton(["write", str(SEED + 1), str(12 * COUNT)]):
        said = line["is"]
        lives = said["ttl"] in (0, 4294967295) and "absolute-expiry-time" not in said
        if said["durable"] and "user-id" not in said and lives:
            found.append((bytes.fromhex(line["octets"]), said))
    assert len(found) >= COUNT, PROTON
    return found[:COUNT]


def kept(octets):
    """A message without those sections that the broker writes."""
    at = 0
    while at < len(octets):
        code, value = sections.descriptor(octets, at, len(octets))
        if code not in BY_ITSELF:
            break
        _, start, size = sections.head(code, octets, value, len(octets))
        at = start + size
    return octets[at:]


def received(connection, address, count):
    """The octets of `count` messages, which are accepted."""
    receiver = connection.receiver(address, prefetch=50)
    found: list = []
    while len(found) < count:
        come = connection.poll(10000)
        assert come, f"{len(found)} messages of {count} came"
        for message in come:
            found.append(message.octets)
            receiver.accept(message)
    connection.flush()
    return found


def start(directory):
    return BrokerProcess("leveret", arguments=("--data", directory))


def test_messages_survive_kill_9_and_are_the_same_octets(tmp_path):
    sent = messages()
    broker = start(str(tmp_path))
    try:
        basic = client.connect(broker.url)
        for name in ("q", "copy"):
            basic.queue_declare(name, durable=True)
            basic.queue_bind(name, "amq.fanout", "")
        basic.close()
        ten = client_1_0.connect(broker.url)
        sender = ten.sender("/exchanges/amq.fanout/")
        for octets, _ in sent:
            sender.send_octets(octets, wait=False)
        sender.wait_settled()
        os.kill(broker.process.pid, signal.SIGKILL)
        broker.process.wait(60)
        broker.stop()
        broker = start(str(tmp_path))
        ten = client_1_0.connect(broker.url)
        for (octets, said), came in zip(sent, received(ten, "/queues/q", COUNT)):
            assert kept(came) == kept(octets), octets.hex()
            _, kind, _ = sections.split(came, 0, len(came))
            assert kind & layout.KIND_DURABLE and (kind >> layout.KIND_PRIORITY & 255 or 4) == (said["priority"] or 4)
        ten.close()
        basic = client.connect(broker.url)
        for octets, said in sent:
            message = basic.get("copy", no_ack=True)
            body = bytes(message.body)
            if said["body"][0] == "binary" and b"\x00\x53\x75" in octets:
                assert body.hex() == said["body"][1]
            elif message.properties.get("type") == "amqp-1.0":
                assert octets.endswith(body) and body[2] in (sections.SEQUENCE, sections.VALUE)
            assert message.properties["delivery_mode"] == 2
        assert basic.get("copy", no_ack=True) is None
        basic.close()
        assert broker.alive() and "Traceback" not in broker.error_text(), broker.error_text()
    finally:
        broker.stop()
