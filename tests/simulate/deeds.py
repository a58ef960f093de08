"""What the clients of a World do: drawn from its seed, where it makes sense at that moment."""

from model import body_of
from wire_client import CONFIRMS, CONSUMES, TRANSACTIONS

from leveret.core.access import users
from leveret.core.access.permissions import User
from leveret.core.broker.policies import Policy

QUEUES = ("q0", "q1", "q2", "q3", "q4", "q5", "s0", "s1")
EXCHANGES = ("e0", "e1", "e2")

STREAM = {"x-queue-type": "stream"}

# (durable, exclusive, auto-delete, arguments) of queues to be declared, with how often
KINDS = (
    ((True, False, False, {}), 6),
    ((False, False, False, {}), 2),
    ((True, True, False, {}), 1),
    ((True, False, True, {}), 1),
    ((True, False, False, {"x-message-ttl": 300}), 2),
    ((True, False, False, {"x-max-length": 4}), 2),
    ((True, False, False, {"x-max-length-bytes": 200}), 1),
    ((True, False, False, {"x-max-length": 4, "x-overflow": "reject-publish"}), 1),
    ((True, False, False, {"x-max-length": 6, "x-overflow": "block"}), 1),
    ((True, False, False, {"x-max-priority": 3}), 2),
    ((True, False, False, {"x-max-priority": 3, "x-max-length": 3}), 1),
    ((True, False, False, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q1", "x-message-ttl": 200}), 2),
    ((True, False, False, {"x-dead-letter-exchange": "e0", "x-max-length": 3}), 2),
    ((True, False, False, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2", "x-delivery-limit": 1}), 1),
    ((True, False, False, {"x-delayed-retry-min": 50}), 1),
    ((True, False, False, {"x-last-value-key": "key"}), 1),
)
STREAM_KINDS = (
    ((True, False, False, {"x-queue-type": "stream"}), 2),
    ((True, False, False, {"x-queue-type": "stream", "x-max-length-bytes": 1500}), 3),
    ((True, False, False, {"x-queue-type": "stream", "x-max-age": "5s"}), 1),
)

# What a client may do next, and how often.
DEEDS = (
    ("publish", 30),
    ("burst", 4),
    ("settle", 20),
    ("consume", 4),
    ("cancel", 1),
    ("get", 5),
    ("commit", 4),
    ("roll_back", 1),
    ("purge", 1),
    ("declare", 4),
    ("delete", 1),
    ("bind", 3),
    ("unbind", 1),
    ("declare_exchange", 2),
    ("delete_exchange", 1),
    ("lose", 1),
    ("policy", 1),
)


class Deeds:
    """The part of a World that acts for its clients."""

    def use_stream(self, client):
        """Streams are written more than they are read, and read from everywhere; what it draws does not change what else is drawn."""
        name, side = self.reads.pick(("s0", "s1")), self.free(client, CONSUMES)
        if name not in self.broker.queues:
            if side is not None:
                kind = STREAM_KINDS[self.reads.below(len(STREAM_KINDS))][0]
                self.ask(client, "queue_declare", 0, name, False, kind[0], kind[1], kind[2], False, kind[3])
        elif self.reads.one_in(3):
            if side is not None and side.unsettled:
                client.send(CONSUMES, "basic_ack", side.unsettled[-1][0], True)
                side.unsettled = []
            elif side is not None and len(side.consumers) < 4:
                self.read_stream(client, side, name)
        elif self.free(client, CONFIRMS) is not None:
            for _ in range(self.reads.between(1, 4)):
                self.names += 1
                message = "%s.%d-%d" % (client.name, CONFIRMS, self.names)
                client.publish(CONFIRMS, "", name, message, body_of(message, self.reads.pick((10, 60, 300))), {"headers": {}}, False)

    def read_stream(self, client, side, name):
        """A reader of a stream, from a place in the middle; some have packs."""
        self.tags += 1
        side.consumers["t%d" % self.tags] = name
        queue = self.broker.queues[name]
        ahead = self.reads.below(queue.next_offset() - queue.first_offset + 1)
        arguments = {"x-stream-offset": self.reads.pick(("first", queue.first_offset + ahead, ("T", self.seconds - self.reads.below(200))))}
        if self.reads.one_in(3):
            arguments["x-stream-pack-records"] = self.reads.pick((1, 3, 100))
        client.ask(side, "basic_consume", "basic_consume_ok", None, 0, name, "t%d" % self.tags, False, False, False, False, arguments)

    def do(self, client, deed):
        """One deed of a client, where it makes sense now."""
        getattr(self, "do_" + deed)(client)

    def free(self, client, number):
        """The side of a channel where nothing is asked, or None."""
        side = client.sides[number]
        return side if side.open and not side.asked else None

    def do_publish(self, client):
        """One message, with confirm or in a transaction."""
        chance = self.chance
        number = CONFIRMS if chance.below(3) else TRANSACTIONS
        side = self.free(client, number)
        if side is None or len(side.uncommitted) > 4:
            return
        self.names += 1
        delayed = chance.one_in(15)
        message = "%s.%d%s-%d" % (client.name, number, "d" if delayed else "", self.names)
        given = {"headers": {"key": chance.pick(("a", "b", "c"))}}
        if chance.below(5):
            given["delivery_mode"] = 2
        if chance.one_in(8):
            given["expiration"] = str(chance.pick((0, 100, 10000)))
        if chance.one_in(4):
            given["priority"] = chance.below(5)
        if delayed:
            given["headers"]["x-delay"] = chance.pick((50, 500))
        size = chance.pick((0, 20, 60, 200))
        if self.large and number == CONFIRMS and chance.one_in(20):
            size = chance.pick((1500, 5000))
        if chance.one_in(3):
            exchange = chance.pick([name for name in EXCHANGES if name in self.broker.exchanges] or [""])
            key = chance.pick(("a.b", "a.c", "b"))
        else:
            exchange, key = "", chance.pick(QUEUES)
        client.publish(number, exchange, key, message, body_of(message, size), given, chance.one_in(5))

    def do_burst(self, client):
        """Many messages in a row."""
        for _ in range(self.chance.between(3, 10) * (3 if self.paging else 1)):
            self.do_publish(client)

    def do_settle(self, client):
        """Acknowledge or refuse what was delivered: one or many, in any order."""
        side = self.free(client, CONSUMES)
        chance = self.chance
        if side is None or not side.unsettled:
            return
        at = 0 if chance.below(3) else chance.below(len(side.unsettled))
        tag = side.unsettled[at][0]
        multiple = chance.one_in(3)
        side.unsettled = side.unsettled[at + 1 :] if multiple else side.unsettled[:at] + side.unsettled[at + 1 :]
        if chance.below(4):
            client.send(CONSUMES, "basic_ack", tag, multiple)
        else:
            client.send(CONSUMES, "basic_nack", tag, multiple, chance.below(2) == 1)

    def do_consume(self, client):
        """A consumer of a queue that is there."""
        side = self.free(client, CONSUMES)
        queue = self.chance.pick(QUEUES)
        if side is None or queue not in self.broker.queues or len(side.consumers) > 3:
            return
        self.tags += 1
        tag = "t%d" % self.tags
        stream = self.broker.queues[queue].is_stream
        no_ack = not stream and self.chance.one_in(4)
        arguments = {}
        if stream:
            arguments["x-stream-offset"] = self.chance.pick(("first", "next", "last"))
            if self.chance.one_in(3):
                arguments = {"x-stream-consumer": "reader"}
        side.consumers[tag] = ("-" if no_ack else "") + queue
        client.ask(side, "basic_consume", "basic_consume_ok", None, 0, queue, tag, False, no_ack, False, False, arguments)

    def do_cancel(self, client):
        """The end of a consumer."""
        side = self.free(client, CONSUMES)
        if side is not None and side.consumers:
            tag = self.chance.pick(sorted(side.consumers))

            def cancelled(_):
                side.consumers.pop(tag, None)

            client.ask(side, "basic_cancel", "basic_cancel_ok", cancelled, tag, False)

    def do_get(self, client):
        """basic.get."""
        side = self.free(client, CONSUMES)
        queue = self.chance.pick(QUEUES)
        if side is not None and queue in self.broker.queues and not self.broker.queues[queue].is_stream:
            client.ask(side, "basic_get", "basic_get_ok", None, 0, queue, False)

    def do_commit(self, client):
        """tx.commit; now and then with acknowledgements of what is got in the transaction."""
        if self.free(client, TRANSACTIONS) is not None:
            client.commit()

    def do_roll_back(self, client):
        """tx.rollback."""
        if self.free(client, TRANSACTIONS) is not None:
            client.roll_back()

    def ask(self, client, name, *arguments):
        """Something about definitions, on the consumers' channel."""
        side = self.free(client, CONSUMES)
        if side is not None:
            client.ask(side, name, name + "_ok", None, *arguments)

    def do_purge(self, client):
        """queue.purge."""
        queue = self.chance.pick(QUEUES)
        if queue in self.broker.queues:
            self.ask(client, "queue_purge", 0, queue, False)

    def do_declare(self, client):
        """A queue or stream that is not there."""
        name = self.chance.pick(QUEUES)
        if name in self.broker.queues:
            return
        kind = self.chance.weighted(STREAM_KINDS if name.startswith("s") else KINDS)
        self.ask(client, "queue_declare", 0, name, False, kind[0], kind[1], kind[2], False, kind[3])

    def do_delete(self, client):
        """queue.delete."""
        self.ask(client, "queue_delete", 0, self.chance.pick(QUEUES), False, False, False)

    def do_declare_exchange(self, client):
        """An exchange that is not there."""
        name = self.chance.pick(EXCHANGES)
        if name not in self.broker.exchanges:
            type_ = self.chance.pick(("fanout", "topic", "direct", "x-delayed-message"))
            arguments = {"x-delayed-type": "fanout"} if type_ == "x-delayed-message" else {}
            self.ask(client, "exchange_declare", 0, name, type_, False, self.chance.below(4) != 0, False, False, False, arguments)

    def do_delete_exchange(self, client):
        """exchange.delete."""
        self.ask(client, "exchange_delete", 0, self.chance.pick(EXCHANGES), False, False)

    def do_bind(self, client):
        """A binding of a queue or between exchanges."""
        queue, exchange = self.chance.pick(QUEUES), self.chance.pick(EXCHANGES)
        if queue in self.broker.queues and exchange in self.broker.exchanges and self.broker.topology.binding_count < 25:
            self.ask(
                client,
                "queue_bind",
                0,
                queue,
                exchange,
                self.chance.pick(("#", "a.*", "b", "a.b")),
                False,
                {"n": 1} if self.chance.one_in(4) else {},
            )
        if self.chance.one_in(6) and "e0" in self.broker.exchanges and "e1" in self.broker.exchanges:
            self.ask(client, "exchange_bind", 0, "e1", "e0", "#", False, {})

    def do_unbind(self, client):
        """The end of a binding, if it is there."""
        queue, exchange = self.chance.pick(QUEUES), self.chance.pick(EXCHANGES)
        if queue in self.broker.queues and exchange in self.broker.exchanges:
            self.ask(client, "queue_unbind", 0, queue, exchange, self.chance.pick(("#", "a.*", "b", "a.b")), {})

    def do_policy(self, client):
        """A policy or a user comes or goes."""
        if self.apart.one_in(3):
            self.change_user(self.apart.pick(("u0", "u1", "guest")))
        elif self.chance.one_in(2):
            self.broker.policies.set(self.broker, Policy("p", "q[0-2]", {"max-length": 8}))
        else:
            self.broker.policies.remove(self.broker, "p")

    def change_user(self, name):
        """Definitions bring a user, or its permissions, or it is removed; guest is removed once and for all."""
        known = self.broker.access.users.get(name)
        if name == "guest":
            if known is not None and self.apart.one_in(8):
                users.remove(self.broker, name)
        elif known is None or self.apart.one_in(3):
            users.put(self.broker, User(name, None, (self.apart.pick(("monitoring", "management")),)))
        elif self.apart.one_in(2):
            users.permit(self.broker, known, (".*", self.apart.pick(("", "^a")), ""))
        else:
            users.remove(self.broker, name)

    def do_lose(self, client):
        """The link is lost, perhaps in the middle of something."""
        client.move(self.chance.below(60))
        client.lose()
