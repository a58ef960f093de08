"""Everything at its limit at once, through a real broker: `python tests/durable/every_limit.py [--memory 256M]`

Starts `leveret serve --memory-max` (or with the limits of the test), drives every table that a peer can make grow to its limit, one after
the other and none let go, with the names and arguments that take most memory, and prints for each step how many octets the process holds
more (RSS) and how many its objects have more (held.py), then the sum that the broker printed beside its RSS. Every table: connections with
full buffers, channels, exchanges, queues, bindings, consumers, names granted, policies, users, messages, entries, arena, index of
deliveries, message ids, publishers, last values, groups, messages that wait, transactions, names of readers, addresses, bridges, ways.
Over AMQP 1.0: sessions, transactions, targets that remember deliveries, links with filters, deliveries that are not settled, messages whose
bodies have not begun.
"""

import argparse
import json
import os
import re
import socket
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import held  # noqa: E402 - the path above has to be set first
from amqp_wire import PROTOCOL_HEADER, RawClient, method, publish  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess  # noqa: E402 - the path above has to be set first
from every_limit_1_0 import OTHERS, SESSIONS, WORKS, Links  # noqa: E402 - the same
from every_limit_names import WIDE, name_of  # noqa: E402 - the same

from leveret.core.limits import Limits  # noqa: E402 - the path above has to be set first

TOGETHER = 64  # methods that are sent before their answers are read
DEPTH = 5  # tables within tables, in a list in the table of arguments
SPARE = 30  # queues for the steps behind
QUEUES = 6  # that fill what there is; together they leave a twenty-fifth
PASSWORD = "pbkdf2-sha256$1$c2FsdHNhbHRzYWx0c2E=$"


def arguments_of(size):
    """The table that costs `size` octets at most by Topology.check_size and takes most memory: tables within tables."""
    chain = {}
    for _ in range(DEPTH):
        chain = {"ab": chain}
    return {"ab": [chain] * ((size - 80) // (24 + 50 * DEPTH))}


class Fill(Links):
    """Clients of a running broker with these Limits; each `fill_*` goes to one limit and stays there."""

    def __init__(self, broker, limits):
        self.broker = broker
        self.limits = limits
        self.clients = []
        Links.__init__(self)
        self.arguments = arguments_of(limits.argument_size_max)

    def steps(self):
        """What there is to fill, in the order in which it can be."""
        return [
            getattr(self, "fill_" + name)
            for name in (
                "addresses",
                "connections",
                "channels",
                "works",
                "exchanges",
                "queues",
                "bindings",
                "consumers",
                "granted",
                "identities",
                "last_values",
                "groups",
                "transactions",
                "waiting",
                "offsets",
                "bridges",
                "targets",
                "deliveries",
                "links",
                "heads",
                "ways",
                "messages",
                "arena",
                "unsettled",
                "send_buffers",
                "receive_buffers",
            )
        ]

    # Parts

    def open(self, **settings):
        """One more client, that stays."""
        client = RawClient(self.broker.host, self.broker.port, timeout_s=120, **settings).open()
        self.clients.append(client)
        return client

    def ask(self, client, channel, calls, reply):
        """Send methods and read as many replies."""
        for at in range(0, len(calls), TOGETHER):
            part = calls[at : at + TOGETHER]
            client.send(b"".join(method(channel, name, **values) for name, values in part))
            for _ in part:
                client.expect(reply, channel)

    def spread(self, calls, reply):
        """The same over all clients, on channel 1 of each: a connection has a share of the queues and bindings."""
        count = len(self.clients)
        for number, client in enumerate(self.clients):
            self.ask(client, 1, calls[number::count], reply)

    def queue(self, number):
        return name_of("q", number, self.limits.name_size_max)

    def publish(self, client, octets, channel=1):
        """Publish and see that all was taken: a method with an answer behind it."""
        client.send(octets)
        self.see(client, channel)

    def see(self, client, channel=1):
        """See that the broker has taken all that was sent; that it had no room meanwhile does not count."""
        client.send(method(channel, "basic.qos"))
        while client.read_frame().name != "basic.qos-ok":
            pass

    # Steps

    def fill_connections(self):
        for _ in range(self.limits.connection_count_max - OTHERS):
            self.open(receive_buffer=4096)
        self.open_others()

    def fill_channels(self):
        limits = self.limits
        size = limits.copy_size_max - 2
        copies = {"headers": {"CC": ["c" * size]}}
        for number in range(limits.channel_count_max - 4 - OTHERS * SESSIONS):
            client, channel = self.clients[number % len(self.clients)], 1 + number // len(self.clients)
            if channel > 1:
                client.call("channel.open-ok", channel, "channel.open")
            key = WIDE + "k" * 251
            client.send(publish(channel, "amq.topic", key, b"", copies) + method(channel, "basic.qos"))
            client.expect("basic.qos-ok", channel)

    def fill_exchanges(self):
        count = self.limits.exchange_count_max - 8
        self.spread(
            [
                (
                    "exchange.declare",
                    {"exchange": name_of("x", number, self.limits.name_size_max), "type": "topic", "arguments": self.arguments},
                )
                for number in range(count)
            ],
            "exchange.declare-ok",
        )

    def fill_queues(self):
        rules = {
            "x-max-priority": 255,
            "x-message-ttl": 1 << 30,
            "x-expires": 1 << 30,
            "x-max-length": 1 << 30,
            "x-dead-letter-exchange": WIDE,
            "x-delivery-limit": 1000,
            "x-delayed-retry-min": 1 << 30,
            "x-deduplication": 1,
        }
        deep = dict(rules, ab=arguments_of(max(self.limits.argument_size_max - 600, 80))["ab"])
        count = self.limits.queue_count_max - SPARE
        self.spread([("queue.declare", {"queue": self.queue(number), "arguments": deep}) for number in range(count)], "queue.declare-ok")

    def fill_bindings(self):
        words = (self.limits.name_size_max - 2) // 3
        calls = []
        for number in range(self.limits.binding_count_max - 4):
            pattern = ".".join(name_of(letter, number, words) for letter in "abc")
            calls.append(
                (
                    "queue.bind",
                    {
                        "queue": self.queue(number % (self.limits.queue_count_max - SPARE)),
                        "exchange": name_of("x", 0, self.limits.name_size_max),
                        "routing_key": pattern,
                        "arguments": self.arguments,
                    },
                )
            )
        self.spread(calls, "queue.bind-ok")

    def fill_consumers(self):
        self.spread(
            [
                (
                    "basic.consume",
                    {
                        "queue": self.queue(number % (self.limits.queue_count_max - SPARE)),
                        "consumer_tag": name_of("c", number, self.limits.name_size_max),
                    },
                )
                for number in range(self.limits.consumer_count_max - 8)
            ],
            "basic.consume-ok",
        )

    def fill_granted(self):
        self.spread(
            [
                ("queue.unbind", {"queue": name_of("g", number, 255), "exchange": "amq.topic"})
                for number in range(self.limits.granted_count_max)
            ],
            "queue.unbind-ok",
        )

    def fill_identities(self):
        client = self.clients[0]
        client.call("queue.declare-ok", 1, "queue.declare", queue="window", arguments={"x-deduplication": 1 << 24, "x-max-length": 1})
        count = self.limits.identity_count_max // 2
        for at in range(0, count, TOGETHER):
            self.publish(
                client,
                b"".join(publish(1, "", "window", b"", {"message_id": f"{number}"}) for number in range(at, min(at + TOGETHER, count))),
            )

    def fill_last_values(self):
        client = self.clients[0]
        client.call("queue.declare-ok", 1, "queue.declare", queue="last", arguments={"x-last-value-key": "k", "x-message-ttl": 60000})
        count = min(self.limits.identity_count_max // 2, self.limits.message_count_max // 2)
        for at in range(0, count, TOGETHER):
            self.publish(
                client, b"".join(publish(1, "", "last", b"", {"headers": {"k": number}}) for number in range(at, min(at + TOGETHER, count)))
            )
        client.call("queue.purge-ok", 1, "queue.purge", queue="last")

    def fill_groups(self):
        """Groups of unsettled messages."""
        client = self.clients[0]
        client.call("queue.declare-ok", 1, "queue.declare", queue="groups", arguments={"x-group-key": "k"})
        client.call("channel.open-ok", 60, "channel.open")
        count = min(1000, self.limits.message_count_max // 8)
        for at in range(0, count, TOGETHER):
            self.publish(
                client,
                b"".join(
                    publish(1, "", "groups", b"", {"headers": {"k": name_of("g", number, 255)}})
                    for number in range(at, min(at + TOGETHER, count))
                ),
            )
        self.consume(client, 60, "groups", count)

    def consume(self, client, channel, queue, count):
        """Have so many messages delivered, and acknowledge none."""
        client.send(method(channel, "basic.consume", queue=queue, consumer_tag="u"))
        client.expect("basic.consume-ok", channel)
        while count:
            count -= client.read_frame().name == "basic.deliver"
        client.read_frame()  # the last one's header

    def fill_transactions(self):
        client = self.clients[0]
        client.call("channel.open-ok", 61, "channel.open")
        client.call("tx.select-ok", 61, "tx.select")
        one = publish(61, "amq.topic", "k" * 255, b"")
        count = min(self.limits.transaction_count_max - 2 * WORKS * OTHERS * SESSIONS, self.limits.message_count_max // 4) - 1
        for at in range(0, count, TOGETHER):
            self.publish(client, one * min(TOGETHER, count - at), 61)

    def fill_waiting(self):
        client = self.clients[0]
        client.call(
            "exchange.declare-ok", 1, "exchange.declare", exchange="later", type="x-delayed-message", arguments={"x-delayed-type": "fanout"}
        )
        client.call("queue.declare-ok", 1, "queue.declare", queue="late")
        client.call("queue.bind-ok", 1, "queue.bind", queue="late", exchange="later")
        one = publish(1, "later", "", b"", {"headers": {"x-delay": 1 << 30}})
        count = min(self.limits.waiting_count_max, self.limits.message_count_max // 4) - 1
        for at in range(0, count, TOGETHER):
            self.publish(client, one * min(TOGETHER, count - at))

    def fill_offsets(self):
        client = self.clients[0]
        client.call("channel.open-ok", 62, "channel.open")
        client.call("basic.qos-ok", 62, "basic.qos", prefetch_count=1)
        for number in range(self.limits.offset_count_max):
            stream = f"stream{number // 256}"
            if number % 256 == 0:
                client.call("queue.declare-ok", 62, "queue.declare", queue=stream, durable=True, arguments={"x-queue-type": "stream"})
            client.call(
                "basic.consume-ok",
                62,
                "basic.consume",
                queue=stream,
                consumer_tag="c",
                arguments={"x-stream-consumer": name_of("o", number, 255)},
            )
            client.call("basic.cancel-ok", 62, "basic.cancel", consumer_tag="c")

    def fill_addresses(self):
        """Log-ins that fail, each from an address of its own."""
        start_ok = method(0, "connection.start-ok", mechanism="PLAIN", response=b"\0nobody\0wrong", locale="en_US")
        for number in range(self.limits.login_address_max):
            with socket.socket() as peer:
                peer.bind((f"127.0.{1 + number // 250}.{1 + number % 250}", 0))
                peer.connect((self.broker.host, self.broker.port))
                peer.sendall(PROTOCOL_HEADER + start_ok)
                peer.settimeout(10)
                peer.recv(4096)

    def fill_bridges(self):
        client = self.clients[0]
        client.call("queue.declare-ok", 1, "queue.declare", queue="answers")
        status = {str(number): number for number in range(290)}
        for number in range(self.limits.bridge_count_max):
            body = json.dumps({"request": "report-bridge", "name": name_of("b", number, 250), "status": status}).encode()
            self.publish(client, publish(1, "", "amq.leveret.management", body, {"reply_to": "answers"}))
        client.call("queue.delete-ok", 1, "queue.delete", queue="answers")

    def fill_ways(self):
        """More routing keys than the route cache has places for, through an exchange with all bindings."""
        client = self.clients[0]
        exchange = name_of("x", 0, self.limits.name_size_max)
        for at in range(0, 2 * self.limits.route_count_max, TOGETHER):
            self.publish(client, b"".join(publish(1, exchange, f"k.{number}", b"") for number in range(at, at + TOGETHER)))

    def fill_messages(self):
        """As many messages as the table has left; then they go again."""
        self.to_the_last(publish(1, "", "%s", b"x") * TOGETHER)

    def fill_arena(self):
        """As many octets of bodies as the arena has left; then they go again."""
        size = max(min(self.limits.content_size_max, self.limits.arena_size // 64), 4096)
        self.to_the_last(publish(1, "", "%s", bytes(size), frame_size_max=min(self.limits.frame_size_max, 131072)))

    def to_the_last(self, octets):
        """Publish to one queue after the other until nothing is taken any more: each may have four times what it leaves. Then take all
        away until everything that was on its way has been taken."""
        waiting = []
        for number in range(QUEUES):
            client, name = self.clients[1 + number], f"f{number}"
            client.call("queue.declare-ok", 1, "queue.declare", queue=name)
            waiting.append([client, self.until_held(client, octets.replace(b"\x02%s", b"\x02" + name.encode())), b""])
        while any(method(1, "basic.qos-ok") not in answer for _, _, answer in waiting):
            for number in range(QUEUES):
                self.clients[0].call("queue.purge-ok", 1, "queue.purge", queue=f"f{number}")
            for each in waiting:
                self.go_on(each)
        for client, _, _ in waiting:
            client.socket.settimeout(60)

    def until_held(self, client, octets):
        """Send octets again and again until the broker rests and none of them go: what is left to be sent, with a method that is
        answered behind it."""
        left = memoryview(octets)
        resting = False
        client.socket.setblocking(False)
        while True:
            try:
                left = left[client.socket.send(left) :] or memoryview(octets)
                resting = False
            except BlockingIOError:
                if resting:
                    client.socket.settimeout(0.05)
                    return bytes(left) + method(1, "basic.qos")
                held.settle(self.broker.server_pid)
                resting = True

    def go_on(self, each):
        """Send what is left for a client, or read what it is answered."""
        client, left, answer = each
        try:
            if left:
                each[1] = left[client.socket.send(left) :]
            else:
                each[2] = answer + client.socket.recv(4096)
        except TimeoutError:
            pass

    def fill_unsettled(self):
        """Messages delivered and not acknowledged."""
        client = self.clients[1]
        client.call("channel.open-ok", 63, "channel.open")
        count = min(2000, self.limits.message_count_max // 8)
        self.publish(client, publish(1, "", "f0", b"") * count)
        self.consume(client, 63, "f0", count)

    def fill_send_buffers(self):
        """A stream that every client reads and none takes."""
        client = self.clients[0]
        client.call("queue.declare-ok", 1, "queue.declare", queue="unread", durable=True, arguments={"x-queue-type": "stream"})
        size = 8000
        count = min(self.limits.arena_size // 4, 6 << 20) // size
        for _ in range(count // 8):
            self.publish(client, publish(1, "", "unread", bytes(size)) * 8)
        for client in self.clients:
            client.send(
                method(1, "basic.qos", prefetch_count=min(65535, self.limits.entry_count_max // 2 // len(self.clients)))
                + method(1, "basic.consume", queue="unread", consumer_tag="unread", arguments={"x-stream-offset": "first"})
            )

    def fill_receive_buffers(self):
        """Half of a frame for each connection, as large as it may be."""
        size = min(self.limits.frame_size_max, self.limits.receive_buffer_size) - 8
        for client in self.clients:
            client.send(struct.pack(">BHI", 1, 1, size) + struct.pack(">HH", 50, 10) + bytes(size - 5))


def definitions(limits, path):
    """A file with as many users and policies as there may be, with the expressions and names that take most."""
    pattern = WIDE + "(" + "[a-z]?" * (limits.argument_size_max // 40) + ")"
    users = [
        {"name": name_of("u", number, 255), "password_hash": PASSWORD + "a" * 43 + "=", "tags": "administrator"}
        for number in range(limits.user_count_max - 2)
    ]
    permissions = [{"user": user["name"], "vhost": "/", "configure": pattern, "write": pattern, "read": pattern} for user in users]
    policies = [
        {
            "vhost": "/",
            "name": name_of("p", number, limits.name_size_max),
            "pattern": "^" + name_of("no", number, 200),
            "definition": {"message-ttl": 100000, "max-length": 100000, "dead-letter-exchange": WIDE * 50},
            "priority": 1,
            "apply-to": "queues",
        }
        for number in range(limits.policy_count_max)
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"users": users, "permissions": permissions, "policies": policies}, file)


def said(broker):
    """The sum that the broker printed, in octets."""
    return int(re.search(r"at most (\d+) MiB", broker.error_text()).group(1)) << 20


def run(limits, arguments, told=print):
    """Fill a broker with these Limits, started with these arguments: (octets it said, octets it holds, of them since its
    start, {step: octets of its objects})."""
    with tempfile.TemporaryDirectory(prefix="every-limit-") as directory:
        users = os.path.join(directory, "definitions.json")
        definitions(limits, users)
        broker = BrokerProcess("leveret", arguments=[*arguments, "--definitions", users], variables=held.variables(directory))
        steps = {}

        def measured(name, before):
            held.settle(broker.server_pid)
            now = (held.resident(broker.server_pid), held.allocated(broker.server_pid, directory))
            steps[name] = now[1] - before[1]
            told(f"{name:24} {(now[0] - before[0]) / 1048576:9.2f} MiB  {steps[name] / 1048576:9.2f} MiB of objects")
            return now

        try:
            at = measured("start, users and policies", (0, 0))
            begun = at[0]
            for step in Fill(broker, limits).steps():
                step()
                at = measured(step.__name__[5:], at)
            assert broker.alive(), broker.error_text()[-3000:]
            assert "error of this broker" not in broker.error_text(), broker.error_text()[-3000:]
            return said(broker), at[0], at[0] - begun, steps
        finally:
            broker.stop()


def written(limits, path):
    """A configuration file with limits given by name."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("[limits]\n" + "".join(f"{name} = {value}\n" for name, value in limits.items()))


SMALL = {
    "connection_count_max": 24,
    "receive_buffer_size": 65536,
    "send_buffer_size": 65536,
    "frame_size_max": 65536,
    "channel_max": 100,
    "channel_count_max": 200,
    "arena_size": 8 << 20,
    "content_size_max": 1 << 20,
    "message_count_max": 8192,
    "entry_count_max": 16384,
    "queue_count_max": 200,
    "queue_share_max": 100,
    "exchange_count_max": 64,
    "binding_count_max": 1000,
    "binding_share_max": 200,
    "policy_count_max": 32,
    "consumer_count_max": 300,
    "route_count_max": 512,
    "argument_size_max": 1200,
    "copy_size_max": 1024,
    "properties_size_max": 8192,
    "user_count_max": 64,
    "granted_count_max": 1000,
    "identity_count_max": 8192,
    "waiting_count_max": 1500,
    "transaction_count_max": 1500,
    "offset_count_max": 256,
    "bridge_count_max": 16,
    "chunk_count_max": 4096,
    "management_size_max": 32768,
    "login_address_max": 64,
    "link_count_max": 300,
    "target_count_max": 64,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--memory", default=None, help="--memory-max of the broker; without it the limits of the test")
    options = parser.parse_args()
    if options.memory is None:
        with tempfile.TemporaryDirectory(prefix="every-limit-") as directory:
            path = os.path.join(directory, "limits.toml")
            written(SMALL, path)
            sum_said, held_then, _, _ = run(Limits(**SMALL), ["--config", path])
    else:
        from leveret.tools import memory

        sum_said, held_then, _, _ = run(memory.fitting({}, memory.octets(options.memory)), ["--memory-max", options.memory])
    print(f"said {sum_said / 1048576:.1f} MiB, holds {held_then / 1048576:.1f} MiB: {100 * held_then / sum_said:.1f} %")
    return int(held_then > 1.05 * sum_said)


if __name__ == "__main__":
    sys.exit(main())
