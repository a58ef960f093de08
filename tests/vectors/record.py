"""Records the golden octets: conversations of pika, py-amqp, aio-pika and the raw test client with RabbitMQ, frame by frame.

    python tests/vectors/record.py         needs rabbitmq-server; writes amqp_0_9_1.json here and tests/unit/vectors_0_9_1.py

Every method of either side is in it, at most two of a kind and speaker. What no such conversation holds (secure, blocked,
update-secret ...) is taken from pika's encoder. Each frame is kept with its fields as the hand-written codec of the interop tests
reads them, and only if pamqp, which knows neither that codec nor ours, reads the same. Run it again only to add cases: the octets
are a record.
"""

import asyncio
import json
import os
import socket
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import aio_pika  # noqa: E402 - the path of amqp_wire has to be set first
import amqp  # noqa: E402 - the path above has to be set first
import amqp_wire  # noqa: E402 - the path above has to be set first
import pika  # noqa: E402 - the path above has to be set first
import pika.frame  # noqa: E402 - the path above has to be set first
import vectors  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess  # noqa: E402 - the path above has to be set first

JSON_PATH = os.path.join(HERE, "amqp_0_9_1.json")
MODULE_PATH = os.path.join(HERE, os.pardir, "unit", "vectors_0_9_1.py")
KEPT_OF_A_KIND = 2
HEADERS_KEPT = 6


class Tap:
    """A listener that passes one connection on to the broker and keeps what both sides say."""

    def __init__(self, broker):
        self.said = {"client": bytearray(), "server": bytearray()}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self.listener.getsockname()
        self.broker = broker
        self.threads = [threading.Thread(target=self.serve, daemon=True)]
        self.threads[0].start()

    def serve(self):
        client, _ = self.listener.accept()
        server = socket.create_connection((self.broker.host, self.broker.port))
        back = threading.Thread(target=self.pump, args=(server, client, "server"), daemon=True)
        back.start()
        self.pump(client, server, "client")
        back.join()
        client.close()
        server.close()

    def pump(self, source, target, side):
        while True:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            self.said[side] += data
            try:
                target.sendall(data)
            except OSError:
                break
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def frames(self):
        """[(side, octets)] after the conversation."""
        self.threads[0].join(10)
        self.listener.close()
        found = []
        for side, said in self.said.items():
            at = 8 if side == "client" else 0
            while at + 8 <= len(said):
                size = struct.unpack_from(">I", said, at + 3)[0]
                found.append((side, bytes(said[at : at + size + 8])))
                at += size + 8
            assert at == len(said), "half a frame at the end"
        return found


HEADERS = {"text": "\u20ac", "whole": 42, "big": 2**40, "list": [1, "two"], "table": {"deep": False}, "none": None}


def talk_pika(tap):
    connection = pika.BlockingConnection(pika.ConnectionParameters(tap.host, tap.port, heartbeat=1))
    channel = connection.channel()
    channel.exchange_declare("rec.topic", "topic", arguments={"alternate-exchange": "amq.fanout"})
    channel.exchange_declare("rec.other", "fanout", durable=True)
    channel.exchange_bind("rec.other", "rec.topic", "x.#")
    channel.exchange_unbind("rec.other", "rec.topic", "x.#")
    queue = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 100}).method.queue
    channel.queue_bind(queue, "rec.topic", "a.*", {"note": 1})
    channel.basic_publish(
        "rec.topic",
        "a.b",
        b"first",
        pika.BasicProperties(
            "text/plain", "utf-8", HEADERS, 2, 5, "correlation", "reply", "60000", "id", 1700000000, "type", "guest", "app", "cluster"
        ),
    )
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"", pika.BasicProperties(), mandatory=True)
    try:
        channel.basic_publish("rec.topic", "nowhere", b"back", mandatory=True)
    except pika.exceptions.UnroutableError:
        pass
    channel.basic_qos(prefetch_count=7)
    got = 0
    for deliver, _, _ in channel.consume(queue, inactivity_timeout=3):
        got += 1
        if got == 1:
            channel.basic_nack(deliver.delivery_tag, requeue=True)
        elif got == 2:
            channel.basic_reject(deliver.delivery_tag, requeue=False)
        else:
            channel.basic_ack(deliver.delivery_tag, multiple=True)
            break
    channel.cancel()
    channel.basic_get(queue)
    channel.basic_recover(requeue=True)
    channel.queue_purge(queue)
    channel.queue_unbind(queue, "rec.topic", "a.*", {"note": 1})
    channel.queue_delete(queue)
    channel.exchange_delete("rec.other")
    channel.exchange_delete("rec.topic")
    connection.sleep(2)
    transaction = connection.channel()
    transaction.tx_select()
    transaction.tx_commit()
    transaction.tx_rollback()
    transaction.flow(True)
    transaction.close()
    connection.close()


def talk_py_amqp(tap):
    connection = amqp.Connection("%s:%d" % (tap.host, tap.port), login_method="AMQPLAIN")
    connection.connect()
    channel = connection.channel()
    queue = channel.queue_declare("rec.py-amqp", auto_delete=False).queue
    channel.basic_qos(0, 1, True)
    channel.basic_publish(amqp.Message("hello", application_headers=HEADERS, content_type="text/plain", priority=1), "", queue)
    message = channel.basic_get(queue)
    channel.basic_ack(message.delivery_tag)
    assert channel.basic_get(queue) is None
    channel.basic_consume(queue, "tag", no_ack=True, callback=print)
    channel.basic_cancel("tag")
    channel.queue_delete(queue, if_unused=True, if_empty=True)
    channel.close()
    connection.close()


def talk_aio_pika(tap):
    async def work():
        connection = await aio_pika.connect("amqp://guest:guest@%s:%d/" % (tap.host, tap.port))
        channel = await connection.channel()
        exchange = await channel.declare_exchange("rec.aio", "headers", auto_delete=True)
        queue = await channel.declare_queue("", exclusive=True)
        await queue.bind(exchange, arguments={"x-match": "any", "a": 1})
        await exchange.publish(aio_pika.Message(b"aio" * 50, headers={"a": 1}), "")
        await (await queue.get(timeout=3)).ack()
        await queue.unbind(exchange, arguments={"x-match": "any", "a": 1})
        await connection.close()

    asyncio.run(work())


def talk_raw(tap):
    """Errors, answers that no library asks for, and every type that a table can hold."""
    table = {
        "t": True,
        "b": amqp_wire.Typed("b", -1),
        "B": amqp_wire.Typed("B", 255),
        "s": amqp_wire.Typed("s", -3),
        "u": amqp_wire.Typed("u", 65535),
        "I": -5,
        "i": amqp_wire.Typed("i", 4000000000),
        "l": amqp_wire.Typed("l", -(2**62)),
        "f": amqp_wire.Typed("f", 1.5),
        "d": 2.5,
        "D": amqp_wire.Typed("D", (2, 314)),
        "S": "text",
        "A": [1, "two", [3], {"four": 4}],
        "T": amqp_wire.Typed("T", 1700000000),
        "F": {"nested": {"deeper": None}},
        "V": None,
        "x": amqp_wire.Typed("x", b"\x00\xff"),
    }
    with amqp_wire.RawClient(tap.host, tap.port) as client:
        client.open(channels=2)
        queue = client.declare_queue("rec.raw")
        client.publish("", queue, b"types", {"headers": table})
        client.send(amqp_wire.method(1, "basic.get", queue=queue))
        client.read_content("basic.get-ok")
        client.send(amqp_wire.method(1, "basic.recover-async", requeue=True))
        client.call("basic.consume-ok", 2, "basic.consume", queue=queue, consumer_tag="raw", arguments=table, exclusive=True)
        client.read_content("basic.deliver")
        client.send(amqp_wire.method(1, "queue.delete", queue=queue))
        assert {client.read_frame().name, client.read_frame().name} == {"queue.delete-ok", "basic.cancel"}
        client.send(amqp_wire.method(1, "queue.declare", queue="rec.missing", passive=True))
        client.expect_channel_close(404)
        client.send(amqp_wire.method(1, "basic.qos"))
        client.expect_connection_close(504)


TALKS = (("pika 1.4.4", talk_pika), ("py-amqp 5", talk_py_amqp), ("aio-pika", talk_aio_pika), ("raw test client", talk_raw))

PIKA_ONLY = (
    ("server", pika.spec.Connection.Secure("challenge")),
    ("client", pika.spec.Connection.SecureOk("answer")),
    ("server", pika.spec.Connection.Blocked("low on memory")),
    ("server", pika.spec.Connection.Unblocked()),
    ("client", pika.spec.Connection.UpdateSecret("new secret", "reason")),
    ("server", pika.spec.Connection.UpdateSecretOk()),
    ("server", pika.spec.Channel.Flow(False)),
    ("client", pika.spec.Channel.FlowOk(False)),
    ("client", pika.spec.Basic.CancelOk("tag")),
    ("server", pika.spec.Basic.Nack(2**62, True, False)),
    ("client", pika.spec.Connection.Close(320, "\u20ac", 60, 40)),
    ("server", pika.spec.Basic.Ack(2**33, True)),
)


def from_pika_alone():
    for side, method in PIKA_ONLY:
        channel = 0 if isinstance(method, pika.amqp_object.Method) and method.NAME.startswith("Connection") else 3
        yield side, pika.frame.Method(channel, method).marshal()


def choose(conversations):
    """The frames worth keeping as rows of the file."""
    rows = []
    counts = {}
    seen = set()
    for speaker, frames in conversations:
        for side, octets in frames:
            kind = (side, vectors.kind_of(octets), speaker)
            most = HEADERS_KEPT if octets[0] == amqp_wire.HEADER else KEPT_OF_A_KIND
            if (side, octets) in seen or counts.get(kind, 0) >= most or len(octets) > 2000:
                continue
            seen.add((side, octets))
            counts[kind] = counts.get(kind, 0) + 1
            rows.append(vectors.row_of(speaker if side == "client" else speaker + " to RabbitMQ 3.10.8", side, octets))
    return rows


def main():
    conversations = []
    broker = BrokerProcess("rabbitmq")
    try:
        for speaker, talk in TALKS:
            tap = Tap(broker)
            talk(tap)
            conversations.append((speaker, tap.frames()))
    finally:
        broker.stop()
    conversations.append(("pika 1.4.4, encoder alone", list(from_pika_alone())))
    rows = choose(conversations)
    for row in rows:
        vectors.check_row(row)
    with open(JSON_PATH, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
    with open(MODULE_PATH, "w", encoding="utf-8") as file:
        file.write(vectors.module_text(rows))
    print("%d frames, %d methods" % (len(rows), len({row["name"] for row in rows if row["type"] == "method"})))


if __name__ == "__main__":
    main()
