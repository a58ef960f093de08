"""Attackers that ask for what is not theirs, and those with a tag who misuse it: management, policies, definitions, users that go.

Policies and definitions name only what begins with mallory: what an administrator does to other people's queues is no attack.
"""

import base64
import hashlib
import json

from broker_words import BRIDGE_REQUESTS, DEFINING_REQUESTS
from hostile_messages import NUMBERS
from peer import PASSWORD

PATTERNS = (
    "^mallory",
    "^mallory(a+)+$",
    "^mallory(a|a)*b$",
    "^mallory(.*a){20}$",
    "(",
    "[",
    "^mallory" + "(x" * 300,
    "^mallory" + "a?" * 200 + "a" * 200,
    "\\",
    "(?P<a>mallory)(?P=a)",
    "^mallory.*.*.*.*.*.*z$",
    "^mallory" + "[[:alpha:]]",
    "^mallory(?=a)",
    "^mallory{1000000000}",
    "mallory\0",
    "",
)
POLICY_KEYS = (
    "message-ttl",
    "expires",
    "max-length",
    "max-length-bytes",
    "overflow",
    "dead-letter-exchange",
    "dead-letter-routing-key",
    "delivery-limit",
    "alternate-exchange",
    "max-age",
    "consumer-timeout",
    "ha-mode",
    "queue-mode",
    "delayed-retry-min",
    "federation-upstream",
    "x",
)
SALT = b"salt"
HASH = base64.b64encode(SALT + hashlib.sha256(SALT + PASSWORD.encode()).digest()).decode()  # as RabbitMQ writes it
OTHERS = ("honest.work", "honest.stream", "honest.pika")


def plain(chance):
    """A value as JSON can write it, of any type and size."""
    return chance.choice(
        (
            chance.choice(NUMBERS),
            "",
            "x" * chance.choice((1, 300, 20000)),
            "\ud800",
            "\0",
            None,
            True,
            [],
            {},
            [[]] * 50,
            1e308,
            -0.5,
            10**40,
            {"a": {"b": [1, "2", None]}},
            "mallory",
            [{"name": 3}],
        )
    )


def other_peoples_queues(attack):
    """Whatever reaches a queue that is not ours: all of it is to be refused."""
    peer, chance = attack.open(), attack.chance
    for _ in range(12):
        queue = chance.choice(OTHERS)
        name, values = chance.choice(
            (
                ("queue.purge", {"queue": queue}),
                ("queue.delete", {"queue": queue}),
                ("basic.get", {"queue": queue, "no_ack": True}),
                ("basic.consume", {"queue": queue, "no_ack": True}),
                ("queue.bind", {"queue": queue, "exchange": "amq.fanout"}),
                ("queue.unbind", {"queue": queue, "exchange": "honest.exchange"}),
                ("exchange.delete", {"exchange": "honest.exchange"}),
                ("queue.declare", {"queue": queue, "durable": True}),
                ("queue.declare", {"queue": "mallory.x", "arguments": {"x-dead-letter-exchange": "honest.exchange"}}),
                ("exchange.bind", {"destination": "honest.exchange", "source": "amq.fanout"}),
                (
                    "exchange.declare",
                    {"exchange": "mallory.alternate", "type": "fanout", "arguments": {"alternate-exchange": "honest.exchange"}},
                ),
            )
        )
        came = peer.call(name, **values)
        if came not in ("channel.close", None):
            attack.finding(f"{name} {values} of a user without permission was answered with {came}")
    peer.publish("honest.exchange", "k", b"forged")
    peer.look(0.05)


def management_without_a_tag(attack):
    """Requests of a user without a tag: all of them are to be refused."""
    peer, chance = attack.open(), attack.chance
    answer = peer.manage(
        {
            "request": chance.choice(DEFINING_REQUESTS),
            "name": "honest",
            "definitions": {"users": []},
            "pattern": "^honest",
            "definition": {"max-length": 1},
        }
    )
    if answer is not None:
        attack.finding(f"management answered a user without a tag: {str(answer)[:80]}")


def management_flood(attack):
    """Everything that management tells, again and again, with answers that are not read."""
    peer = attack.open(user="watcher")
    peer.reads = attack.chance.random() < 0.5
    peer.do("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    for _ in range(300):
        text = json.dumps({"request": attack.chance.choice(("overview", "counters", "bridges"))}).encode()
        peer.publish("", "amq.leveret.management", text, properties={"reply_to": "amq.rabbitmq.reply-to", "correlation_id": "c" * 200})


def odd_requests(attack):
    """Requests of an administrator that are no JSON, or the wrong JSON."""
    peer, chance = attack.open(user="root"), attack.chance
    for _ in range(10):
        request = {"request": chance.choice(("overview", "counters", "", "x") + BRIDGE_REQUESTS)}
        for name in (
            "name",
            "after",
            "stream",
            "consumer",
            "queue",
            "count",
            "status",
            "pattern",
            "priority",
            "apply-to",
            "definition",
            "definitions",
        ):
            if chance.random() < 0.4:
                request[name] = plain(chance)
        text = chance.choice(
            (
                request,
                request,
                request,
                b"",
                b"\xff",
                b"[" * 30000,
                b"{}",
                b'{"request": 3}',
                b"null",
                b"NaN",
                b'{"request": "overview", "after": ["queues", 7]}',
                b'{"a":' * 5000,
                b"1e999999",
                b'{"request": "counters", "x": ' + b"9" * 5000 + b"}",
            )
        )
        peer.manage(text, seconds=1)


def odd_policies(attack):
    """Policies with numbers at their ends and patterns that take for ever, and queues whose names they are searched in."""
    peer, chance = attack.open(user="policymaker"), attack.chance
    for _ in range(8):
        definition = {
            chance.choice(POLICY_KEYS): chance.choice((chance.choice(NUMBERS), plain(chance), "reject-publish", "amq.fanout"))
            for _ in range(chance.randrange(4))
        }
        pattern = chance.choice(PATTERNS)
        peer.manage(
            {
                "request": "set-policy",
                "name": f"mallory{chance.randrange(50)}",
                "pattern": pattern if "mallory" in pattern else "^mallory" + pattern,
                "definition": definition,
                "priority": chance.choice((0, 1, chance.choice(NUMBERS), plain(chance))),
                "apply-to": chance.choice(("all", "queues", "exchanges", "streams", "x", plain(chance))),
            },
            seconds=1,
        )
    queue = peer.declare("mallory" + "a" * chance.choice((10, 30, 240)) + chance.choice(("", "!", "b")), durable=chance.random() < 0.5)
    for _ in range(5):
        peer.publish("", queue, b"x", properties={"delivery_mode": 2})
    peer.do("basic.get", queue=queue)
    peer.call("queue.delete", queue=queue)


def odd_definitions(attack):
    """Definitions with everything wrong that can be, under our own names."""
    peer, chance = attack.open(user="root"), attack.chance
    name = f"mallory.i{chance.randrange(20)}"
    items = {
        "users": {
            "name": name,
            "password_hash": chance.choice(("", "x", "AAAA", "\u20ac", 3, None, "A" * 48)),
            "tags": chance.choice(("", "administrator", [], 3, ["a"] * 300)),
            "hashing_algorithm": chance.choice(("rabbit_password_hashing_sha256", "x", None, 4)),
        },
        "permissions": {
            "user": chance.choice((name, "nobody", 3)),
            "vhost": "/",
            "configure": chance.choice(PATTERNS),
            "write": plain(chance),
            "read": chance.choice(PATTERNS),
        },
        "policies": {
            "name": name,
            "vhost": "/",
            "pattern": "^mallory",
            "definition": {chance.choice(POLICY_KEYS): plain(chance)},
            "priority": plain(chance),
            "apply-to": "queues",
        },
        "exchanges": {
            "name": name,
            "vhost": "/",
            "type": chance.choice(("topic", "x-matcher", "x", 3)),
            "durable": plain(chance),
            "auto_delete": False,
            "internal": plain(chance),
            "arguments": chance.choice(({}, {"x": plain(chance)}, 3)),
        },
        "queues": {
            "name": name,
            "vhost": "/",
            "durable": chance.choice((True, plain(chance))),
            "auto_delete": plain(chance),
            "arguments": {chance.choice(("x-message-ttl", "x-max-length", "x-queue-type", "x-expires", "x-odd")): plain(chance)},
        },
        "bindings": {
            "source": chance.choice((name, "amq.topic", 3)),
            "vhost": "/",
            "destination": name,
            "destination_type": chance.choice(("queue", "exchange", "x")),
            "routing_key": plain(chance),
            "arguments": {"a": plain(chance)},
        },
    }
    document = {
        section: [
            dict(item, **({} if chance.random() < 0.5 else {chance.choice(list(item)): plain(chance)}))
            for _ in range(chance.randrange(1, 3))
        ]
        for section, item in items.items()
        if chance.random() < 0.6
    }
    for item in document.get("policies", []):
        item["pattern"] = "^mallory"
    for section in document.values():
        for item in section:
            if "name" in item and not str(item["name"]).startswith("mallory"):
                item["name"] = name
    peer.manage({"request": "import", "definitions": chance.choice((document, document, document, plain(chance)))}, seconds=1)
    peer.manage({"request": "definitions"}, seconds=1)
    peer.manage({"request": "remove-user", "name": name}, seconds=1)


def user_named(peer, name, rights="^mallory"):
    """Have a user made, by an administrator: true when it was."""
    answer = peer.manage(
        {
            "request": "import",
            "definitions": {
                "users": [
                    {
                        "name": name,
                        "password": PASSWORD,
                        "password_hash": HASH,
                        "hashing_algorithm": "rabbit_password_hashing_sha256",
                        "tags": "",
                    }
                ],
                "permissions": [{"user": name, "vhost": "/", "configure": rights, "write": "", "read": rights}],
            },
        }
    )
    return bool(answer and answer.get("ok") and answer.get("loaded", {}).get("users"))


def removed_users(attack):
    """A user who is removed while it consumes: nothing is to come to it any more."""
    root, chance = attack.open(user="root"), attack.chance
    name = f"mallory.u{chance.randrange(8)}"
    queue = root.declare(f"mallory.r{chance.randrange(100)}")
    if not user_named(root, name):
        return
    consumer = attack.open(user=name)
    if consumer.call("basic.consume", queue=queue, no_ack=True) != "basic.consume-ok":
        return
    answer = root.manage({"request": "remove-user", "name": name})
    if not (answer and answer.get("ok")):
        return
    attack.pause(0.3)
    consumer.take_all()
    before = consumer.got["basic.deliver"]
    for _ in range(5):
        root.publish("", queue, b"secret")
    root.call("queue.declare", queue=queue, passive=True)
    attack.pause(0.3)
    consumer.take_all()
    if consumer.got["basic.deliver"] > before:
        attack.finding(f"the user {name} was removed, and got {consumer.got['basic.deliver'] - before} messages afterwards")


def slow_permissions(attack):
    """Permissions whose patterns take for ever, given by an administrator, and names that they are searched in."""
    root, chance = attack.open(user="root"), attack.chance
    name = f"mallory.v{chance.randrange(8)}"
    pattern = chance.choice(PATTERNS)
    if not user_named(root, name, pattern):
        return
    peer = attack.open(user=name)
    for _ in range(5):
        peer.call("queue.declare", queue="mallory" + "a" * chance.choice((20, 28, 60, 240)) + "!")
    root.manage({"request": "remove-user", "name": name})


def many_users(attack):
    """Users and policies, as many as are let in."""
    root = attack.open(user="root")
    for number in range(60):
        user_named(root, f"mallory.w{number}" + "u" * 200)
        root.manage(
            {
                "request": "set-policy",
                "name": f"mallory{number}" + "p" * 200,
                "pattern": "^mallory" + "x" * 200,
                "definition": {"dead-letter-exchange": "d" * 200},
            }
        )


def bridge_reports(attack):
    """Bridges that say much of themselves, under many names, and rounds on queues that are not there."""
    peer, chance = attack.open(user="watcher"), attack.chance
    for number in range(30):
        peer.manage(
            {
                "request": "report-bridge",
                "name": f"mallory{number}" + "b" * chance.choice((0, 200, 3000)),
                "status": chance.choice(({f"k{i}": "v" * 100 for i in range(chance.choice((1, 100, 400)))}, plain(chance))),
            },
            seconds=1,
        )
        peer.manage(
            {
                "request": "bridge",
                "name": "mallory",
                "stream": plain(chance),
                "queue": chance.choice(("mallory.q1", "honest.work", plain(chance))),
                "consumer": plain(chance),
                "count": chance.choice((1, plain(chance))),
            },
            seconds=1,
        )


ATTACKERS = (
    other_peoples_queues,
    management_without_a_tag,
    management_flood,
    odd_requests,
    odd_policies,
    odd_definitions,
    removed_users,
    slow_permissions,
    many_users,
    bridge_reports,
)
