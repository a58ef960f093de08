"""Every number, name and value that a peer gives is fed with extremes, other types and random ones (extremes.py), in every form of the hot
functions, and after each the broker is alive (stations.py): arguments of queues, exchanges, bindings and consumers, the headers and
properties that the broker reads, policies, definitions, management requests and the handshake.

LEVERET_EXTREMES=10000 pytest tests/fuzz/test_extremes.py    so many inputs for each entry point and form (COUNT without it)
LEVERET_FUZZ_SEED=N                                       the same again
"""

import json
import os
import random

import amqp_wire
import cases
import extremes
import pytest
from amqp_wire import Typed, method, publish
from broker_words import BRIDGE_REQUESTS, DEFINING_REQUESTS, EXCHANGE_TYPES
from stations import FORMS, feed

from leveret.core.queue import rules, stream_arguments

SEED = int(os.environ.get("LEVERET_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
COUNT = 100
INPUTS = int(os.environ.get("LEVERET_EXTREMES", COUNT))

QUEUE_NAMES = (
    tuple(row[0] for row in rules.ARGUMENTS)
    + tuple(stream_arguments.names())
    + ("x-unknown", "foo", "", "alternate-exchange", "x-ha-policy", "x-initial-cluster-size")
)

# Values that are taken, so that what is behind the declaration is reached too.
SOUND = {
    "x-message-ttl": (0, 1, 100, 315360000000),
    "x-expires": (1, 50, 315360000000),
    "x-max-length": (0, 1, 5, (1 << 63) - 1),
    "x-max-length-bytes": (0, 1, 40, (1 << 63) - 1),
    "x-overflow": rules.OVERFLOWS,
    "x-dead-letter-exchange": ("", "e" * 255, "amq.fanout"),
    "x-dead-letter-routing-key": ("", "k" * 255, "q"),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"),
    "x-max-priority": (0, 1, 255),
    "x-single-active-consumer": (True, False),
    "x-delivery-limit": (0, 1, 300, (1 << 63) - 1),
    "x-delayed-retry-min": (1, 315360000000),
    "x-delayed-retry-max": (1, 315360000000),
    "x-consumer-timeout": (1, 1000, 315360000000),
    "x-last-value-key": ("", "a", "k" * 255),
    "x-group-key": ("a", "k" * 255),
    "x-deduplication": (1, 3, 1 << 40),
    "x-queue-mode": ("lazy",),
    "x-queue-type": ("stream", "classic", "quorum"),
    "x-max-age": ("1s", "999999999Y"),
    "x-stream-hold": ("c", "k" * 255),
    "x-stream-max-segment-size-bytes": (0, 1 << 62),
    "x-queue-version": (1, 2),
}


def arguments(source, names, sound=SOUND, share=0.5):
    """Some of these arguments, a share of them with values that are taken."""
    found = {}
    for _ in range(source.randrange(1, 4)):
        name = source.choice(names)
        found[name] = source.choice(sound[name]) if name in sound and source.random() < share else extremes.field(source)
    return found


def header_table(source):
    """Headers of a message: those that the broker reads, and others."""
    found = {}
    for name in (
        "x-death",
        "CC",
        "BCC",
        "x-delay",
        "x-publisher-id",
        "x-publisher-sequence",
        "x-stream-filter-value",
        "a",
        "x-gateway",
        "x-sequence",
        "x-hops",
        "x-match",
        "x-first-death-reason",
        "x-first-death-queue",
        "x-last-death-exchange",
        "priority",
        "h" * 255,
    ):
        if source.random() < 0.15:
            found[name] = extremes.field(source)
    if source.random() < 0.3:
        found["x-death"] = extremes.deaths(source)
    if source.random() < 0.15:
        found[source.choice(("CC", "BCC"))] = [
            source.choice(("a", "q", "k" * 300, 5, Typed("S", b"\xff"))) for _ in range(source.randrange(4))
        ]
    if source.random() < 0.2:
        found["x-publisher-id"], found["x-publisher-sequence"] = extremes.text(source), Typed("l", source.choice((1, 2, (1 << 63) - 1, -1)))
    return found


def property_values(source):
    """Properties of a message."""
    found = {"headers": header_table(source)} if source.random() < 0.8 else {}
    for name in (
        "content_type",
        "content_encoding",
        "correlation_id",
        "reply_to",
        "expiration",
        "message_id",
        "type",
        "user_id",
        "app_id",
        "cluster_id",
    ):
        if source.random() < 0.15:
            found[name] = extremes.short(source)
    if source.random() < 0.4:
        found["delivery_mode"] = source.choice((0, 1, 2, 2, 2, 3, 255))
    if source.random() < 0.3:
        found["priority"] = source.choice((0, 1, 9, 255))
    if source.random() < 0.2:
        found["timestamp"] = source.choice((0, 1, 1 << 31, 1 << 62, (1 << 64) - 1))
    if source.random() < 0.2:
        found["expiration"] = source.choice(("0", "1", "50", "9999999999", "4294967296", "-1", "1.5", "+5", "\u0665")).encode()
    if source.random() < 0.1:
        found["user_id"] = b"guest"
    return found


def messages(source, exchange, key, count):
    """Octets of some publishes."""
    return b"".join(
        publish(1, exchange, key, source.choice((b"", b"body", b"x" * 300)), property_values(source), 4096, mandatory=source.random() < 0.1)
        for _ in range(count)
    )


def use(source, queue):
    """What a client does with a queue: consume, give back, get, refuse."""
    octets = method(1, "basic.qos", prefetch_count=source.choice((1, 10, 65535)))
    octets += method(1, "basic.consume", queue=queue, consumer_tag="c")
    octets += method(
        1, "basic.nack", delivery_tag=source.choice((0, 1, 2, (1 << 64) - 1)), multiple=source.random() < 0.5, requeue=source.random() < 0.5
    )
    return octets


def get(queue):
    return method(1, "basic.get", queue=queue)


# Entry points: one input each.


def queue_arguments(station, source):
    """queue.declare, twice, and a life of the queue under them."""
    given = arguments(source, QUEUE_NAMES)
    durable = source.random() < 0.7
    station.give(method(1, "queue.declare", queue="q", durable=durable, arguments=given))
    if "q" in station.broker.queues:
        station.give(messages(source, "", "q", 3))
        station.give(get("q") + method(1, "basic.reject", delivery_tag=1, requeue=source.random() < 0.5))
        station.pass_time(source.choice((1, 51, 200)))
        station.give(use(source, "q"))
        station.pass_time(source.choice((1, 51, 2000)))
        changed = dict(given, **arguments(source, tuple(given)))
        station.give(method(1, "queue.declare", queue="q", durable=durable, arguments=changed))
        station.give(method(1, "basic.cancel", consumer_tag="c") + method(1, "queue.purge", queue="q"))
    station.give(method(1, "queue.delete", queue="q"))


TYPES = EXCHANGE_TYPES + ("selector", "system", "", "nonsense")
EXCHANGE_NAMES = ("alternate-exchange", "hash-header", "hash-property", "x-delayed-type", "x-loss", "x-seed", "x-unknown", "foo")
EXCHANGE_SOUND = {
    "alternate-exchange": ("amq.fanout", "e" * 255),
    "hash-header": ("a",),
    "hash-property": ("message_id", "timestamp"),
    "x-delayed-type": ("direct", "headers", "topic"),
    "x-loss": (0, 1, Typed("d", 0.5), "0.5", "nan", "1e400"),
    "x-seed": ((1 << 63) - 1, 0),
}


def exchange_arguments(station, source):
    """exchange.declare, binding keys, and messages through it."""
    type_ = source.choice(TYPES)
    given = arguments(source, EXCHANGE_NAMES, EXCHANGE_SOUND, 0.6)
    if type_ == "x-delayed-message":
        given.setdefault("x-delayed-type", source.choice(("direct", "headers")))
    if type_ in ("x-lossy", "lossy"):
        given.setdefault("x-loss", 0)
    declare = {"exchange": "ex", "type": type_, "durable": source.random() < 0.7, "auto_delete": source.random() < 0.2}
    station.give(method(1, "exchange.declare", arguments=given, **declare))
    if "ex" in station.broker.exchanges:
        for key in (b"", b"1", b"1048577", extremes.short(source)):
            station.give(method(1, "queue.bind", queue="taker", exchange="ex", routing_key=key))
        station.give(messages(source, "ex", source.choice((b"", b"1", b"a.b", extremes.short(source))), 3))
        station.pass_time(100)
        station.give(
            method(1, "exchange.declare", arguments=dict(given, **arguments(source, tuple(given), EXCHANGE_SOUND, 0.3)), **declare)
        )
        station.give(method(1, "queue.purge", queue="taker"))
    station.give(method(1, "exchange.delete", exchange="ex"))


BINDING_NAMES = ("x-match", "x-selector", "a", "priority", "message_id", "x-a", "foo", "")
BINDING_SOUND = {"x-match": ("all", "any", "all-with-x", "any-with-x"), "x-selector": extremes.TEXTS[-8:] + ("a > 1", "a LIKE 'x%'", "")}


def binding_arguments(station, source):
    """queue.bind and queue.unbind to each type that looks at arguments, and messages that are compared with them."""
    for exchange in ("amq.headers", "props", "matches", "selects"):
        given = arguments(source, BINDING_NAMES, BINDING_SOUND, 0.5)
        key = extremes.short(source)
        station.give(method(1, "queue.bind", queue="taker", exchange=exchange, routing_key=key, arguments=given))
        station.give(messages(source, exchange, "a", 2))
        station.give(method(1, "queue.unbind", queue="taker", exchange=exchange, routing_key=key, arguments=given))
    station.give(method(1, "queue.purge", queue="taker"))


CONSUMER_NAMES = (
    "x-priority",
    "x-cancel-on-ha-failover",
    "x-stream-offset",
    "x-stream-consumer",
    "x-stream-strict",
    "x-stream-filter",
    "x-stream-match-unfiltered",
    "x-stream-pack-records",
    "x-stream-pack-octets",
    "x-unknown",
)
CONSUMER_SOUND = {
    "x-priority": (0, -1, (1 << 63) - 1, -1 << 63),
    "x-stream-offset": ("first", "last", "next", "stored", 0, 3, (1 << 63) - 1, Typed("T", 0), Typed("T", (1 << 64) - 1)),
    "x-stream-consumer": ("c", "k" * 255),
    "x-stream-strict": (True,),
    "x-stream-filter": ("a", ["a", "b"], []),
    "x-stream-match-unfiltered": (True,),
    "x-stream-pack-records": (1, 100, (1 << 63) - 1),
    "x-stream-pack-octets": (1, 100, (1 << 63) - 1),
}


def consumer_arguments(station, source):
    """basic.consume of a queue and of a stream, with deliveries."""
    for queue in ("taker", "stream"):
        station.give(
            method(
                1,
                "basic.qos",
                prefetch_count=source.choice((0, 1, 1, 50, 65535)),
                prefetch_size=source.choice((0, 0, 0, 1 << 31)),
                **{"global": source.random() < 0.1},
            )
        )
        station.give(
            method(
                1,
                "basic.consume",
                queue=queue,
                consumer_tag=source.choice(("c", "", "t" * 255)),
                no_ack=source.random() < 0.2,
                arguments=arguments(source, CONSUMER_NAMES, CONSUMER_SOUND, 0.6),
            )
        )
        station.give(messages(source, "", queue, 2))
        station.give(method(1, "basic.ack", delivery_tag=source.choice((0, 1, 2, 1 << 30, (1 << 64) - 1)), multiple=source.random() < 0.5))
        station.pass_time(60)
        station.give(method(1, "basic.cancel", consumer_tag="c") + method(1, "basic.recover", requeue=True))
    station.give(method(1, "channel.close", reply_code=200) + method(1, "channel.open"))
    station.give(method(1, "queue.purge", queue="taker"))


RULED = {
    "plain": {},
    "dying": {"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    "dead": {"x-message-ttl": 100, "x-dead-letter-exchange": "amq.headers", "x-max-length": 20},
    "ranked": {"x-max-priority": 255},
    "latest": {"x-last-value-key": "a"},
    "grouped": {"x-group-key": "a"},
    "once": {"x-deduplication": 5},
    "short": {"x-max-length": 2, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "plain"},
    "back": {"x-delivery-limit": 1, "x-delayed-retry-min": 1, "x-dead-letter-exchange": "late"},
    "stream": {"x-queue-type": "stream"},
}
EXCHANGES = (
    ("props", "x-property", {}),
    ("matches", "x-matcher", {}),
    ("selects", "x-selector", {}),
    ("late", "x-delayed-message", {"x-delayed-type": "fanout"}),
    ("hashed", "x-consistent-hash", {"hash-header": "a"}),
    ("by-id", "x-consistent-hash", {"hash-property": "message_id"}),
    ("by-time", "x-consistent-hash", {"hash-property": "timestamp"}),
)


def ruled(station):
    """A queue under each rule and an exchange of each type that looks at properties."""
    octets = b"".join(
        method(1, "exchange.declare", exchange=name, type=type_, durable=True, arguments=given) for name, type_, given in EXCHANGES
    )
    octets += b"".join(method(1, "queue.declare", queue=name, durable=True, arguments=given) for name, given in RULED.items())
    octets += method(1, "queue.declare", queue="taker", durable=True)
    for exchange, given in (
        ("amq.headers", {"x-match": "any", "a": 5, "x-delay": None}),
        ("props", {"priority": 5, "message_id": "a", "x-match": "any"}),
        ("matches", {"a": "*a*?", "message_id": "?*", "x-match": "any"}),
        ("late", {}),
        ("selects", {"x-selector": "a > 5 OR a LIKE '%a_' OR JMSPriority * a + 1 < 0.5 OR JMSTimestamp / a > 1"}),
    ):
        octets += method(1, "queue.bind", queue="plain", exchange=exchange, arguments=given)
    for exchange in ("hashed", "by-id", "by-time"):
        for weight, queue in (("1", "plain"), ("1048576", "ranked")):
            octets += method(1, "queue.bind", queue=queue, exchange=exchange, routing_key=weight)
    heard = station.give(octets)
    assert len([one for one in heard if one.name.endswith("-ok")]) == 16 + len(EXCHANGES) - 7 + 7 + len(RULED) - 5 + 1, [
        one for one in heard if not one.name.endswith("-ok")
    ]


def message_headers(station, source):
    """Publishes into each queue with a rule and through each exchange that looks; deliveries, returns and dead letters of them."""
    confirms = method(1, "confirm.select") if source.random() < 0.3 else b""
    station.give(confirms + messages(source, "", source.choice(tuple(RULED)), 2))
    station.give(messages(source, source.choice(EXCHANGES)[0], source.choice((b"", b"a", b"\xff", extremes.short(source))), 2))
    station.give(messages(source, source.choice(("amq.headers", "amq.topic", "")), extremes.short(source), 1))
    station.pass_time(source.choice((1, 5, 60)))
    queue = source.choice(tuple(RULED))
    station.give(use(source, queue) + method(1, "basic.cancel", consumer_tag="c"))
    station.give(get(source.choice(("plain", "dead", "ranked", "back"))) + method(1, "basic.recover", requeue=True))
    station.pass_time(source.choice((1, 5, 60)))
    if source.random() < 0.2:
        station.give(b"".join(method(1, "queue.purge", queue=name) for name in RULED))


def stream_readers(station, source):
    """Streams with readers of every kind while publishers write what they like."""
    station.give(
        method(1, "basic.qos", prefetch_count=10)
        + method(
            1,
            "basic.consume",
            queue="stream",
            consumer_tag="s",
            arguments=dict(
                {"x-stream-offset": "first"}, **({"x-stream-filter": ["a", "1"]} if source.random() < 0.5 else {"x-stream-pack-records": 5})
            ),
        )
    )
    station.give(messages(source, "", "stream", 3))
    station.give(method(1, "basic.ack", delivery_tag=0, multiple=True) + method(1, "basic.cancel", consumer_tag="s"))
    station.give(get("stream") + method(1, "basic.get", queue="stream", no_ack=True))
    if source.random() < 0.1:
        station.give(method(1, "queue.purge", queue="stream"))


POLICY_NAMES = tuple(row[0][2:] for row in rules.ARGUMENTS) + ("max-age", "alternate-exchange", "ha-mode", "queue-type", "")


def policy(source):
    """A policy as JSON has it."""
    found = {
        "name": source.choice(("p", "p2", extremes.text(source))),
        "pattern": source.choice(("", ".*", "^q", "(", "stream", extremes.text(source))),
        "definition": {},
    }
    for _ in range(source.randrange(4)):
        name = source.choice(POLICY_NAMES)
        values = SOUND.get("x-" + name, ())
        found["definition"][name] = source.choice(values) if values and source.random() < 0.5 else extremes.json_value(source)
    for name, values in (("priority", (0, 1, -1)), ("apply-to", ("all", "queues", "streams", "exchanges", "classic_queues"))):
        if source.random() < 0.4:
            found[name] = source.choice(values) if source.random() < 0.5 else extremes.json_value(source)
    if source.random() < 0.1:
        found[source.choice(tuple(found))] = extremes.json_value(source)
    return found


def octets_of(document):
    """JSON of a document; what it cannot write becomes what it can."""
    return json.dumps(document, default=str).encode("utf-8", "surrogatepass")


def policies(station, source):
    """set-policy and remove-policy over queues with messages."""
    request = dict(policy(source), request="set-policy")
    before = dict(station.broker.policies.by_name)
    answer = station.ask(octets_of(request))
    assert answer is None or answer["ok"] or station.broker.policies.by_name == before, answer
    station.give(messages(source, "", source.choice(("plain", "stream", "short", "dying")), 2))
    station.pass_time(source.choice((1, 60)))
    station.give(get("plain"))
    if source.random() < 0.4:
        station.ask(octets_of({"request": "remove-policy", "name": request.get("name")}))


DEFINITIONS = {
    "users": {"name": "u", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "management", "limits": {}},
    "permissions": {"user": "u", "vhost": "/", "configure": ".*", "write": "", "read": "^a"},
    "policies": {"name": "p", "vhost": "/", "pattern": "^q", "definition": {"max-length": 5}, "priority": 0, "apply-to": "all"},
    "exchanges": {"name": "ex", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
    "queues": {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "type": "classic", "arguments": {}},
    "bindings": {
        "source": "amq.topic",
        "vhost": "/",
        "destination": "plain",
        "destination_type": "queue",
        "routing_key": "#",
        "arguments": {},
    },
}


def document(source):
    """Definitions, most of them nearly right."""
    found = {}
    for section, item in DEFINITIONS.items():
        if source.random() < 0.5:
            continue
        items = []
        for _ in range(source.randrange(1, 3)):
            made = dict(item)
            for _ in range(source.randrange(3)):
                key = source.choice(tuple(made))
                if key in ("arguments", "definition") and source.random() < 0.7:
                    made[key] = {
                        source.choice(QUEUE_NAMES + EXCHANGE_NAMES + POLICY_NAMES): extremes.json_value(source)
                        for _ in range(source.randrange(3))
                    }
                elif source.random() < 0.15:
                    del made[key]
                else:
                    made[key] = extremes.json_value(source)
            items.append(made if source.random() < 0.97 else extremes.json_value(source))
        found[section] = items
    if source.random() < 0.1:
        found[source.choice(("vhosts", "parameters", "x", "topic_permissions"))] = extremes.json_value(source)
    return found


def definitions(station, source):
    """import, and what it made in use; definitions, which tells them; then they go."""
    station.ask(
        octets_of({"request": "import", "definitions": document(source) if source.random() < 0.97 else extremes.json_value(source)})
    )
    station.ask(octets_of({"request": "definitions"}))
    station.give(messages(source, source.choice(("", "amq.topic", "amq.headers")), "q", 1))
    for name in list(station.broker.access.users):
        if name != "guest":
            station.ask(octets_of({"request": "remove-user", "name": name}))
    for kind, method_name in (("queue", "queue.delete"), ("exchange", "exchange.delete")):
        made = [
            name
            for name in (station.broker.queues if kind == "queue" else station.broker.exchanges)
            if name not in RULED
            and name not in ("taker", "answers")
            and not name.startswith("amq.")
            and name not in [row[0] for row in EXCHANGES]
        ]
        station.give(b"".join(method(1, method_name, **{kind: name}) for name in made))


REQUESTS = DEFINING_REQUESTS + BRIDGE_REQUESTS + ("x",)
REQUEST_KEYS = {
    "after": (None, ["queues", "plain"], ["queues"]),
    "name": ("p", "u", None),
    "stream": ("stream", "plain"),
    "queue": ("plain", "taker", None),
    "consumer": ("c", None),
    "count": (0, 5, 1000),
    "status": ({}, {"state": "running"}),
    "definitions": ({},),
    "pattern": ("^q",),
    "definition": ({"max-length": 5},),
    "priority": (0,),
    "apply-to": ("all",),
}


def management_requests(station, source):
    """Every request with every key as it may be given, and octets that are none."""
    if source.random() < 0.1:
        station.ask(
            source.choice(
                (b"", b"\xff", b"[" * 9000, b"1" * 5000, b'{"request":' + b"9" * 5000 + b"}", b"{}", b"[]", b"null", b'"x"', b"NaN")
            )
        )
        return
    request = {"request": source.choice(REQUESTS) if source.random() < 0.95 else extremes.json_value(source)}
    for key, values in REQUEST_KEYS.items():
        if source.random() < 0.4:
            request[key] = source.choice(values) if source.random() < 0.5 else extremes.json_value(source)
    if request["request"] == "remove-user":
        request["name"] = extremes.json_value(source)  # not guest, who asks
    station.ask(octets_of(request))


def handshake(station, source):
    """What a client says of itself, how it logs in, and what it asks for in connection.tune-ok."""
    link = cases.Link(station.broker)
    capabilities = extremes.field(source) if source.random() < 0.5 else {name: extremes.field(source) for name in amqp_wire.CAPABILITIES}
    properties = {"capabilities": capabilities, "connection_name": extremes.field(source), "product": extremes.field(source)}
    mechanism = source.choice((b"PLAIN", b"PLAIN", b"AMQPLAIN", b"SCRAM-SHA-256", b"EXTERNAL", b"ANONYMOUS", extremes.short(source)))
    response = b"\0guest\0guest"
    if mechanism != b"PLAIN":
        response = source.choice(
            (
                extremes.octets(source),
                amqp_wire.encode_table({"LOGIN": extremes.field(source), "PASSWORD": extremes.field(source)})[4:],
                b"n,,n=guest,r=" + extremes.short(source),
            )
        )
    octets = amqp_wire.PROTOCOL_HEADER + method(
        0, "connection.start-ok", client_properties=properties, mechanism=mechanism, response=response, locale=extremes.short(source)
    )
    link.give(
        octets
        + method(
            0,
            "connection.tune-ok",
            channel_max=source.choice((0, 1, 65535)),
            frame_max=source.choice((0, 1, 4095, 4096, (1 << 32) - 1)),
            heartbeat=source.choice((0, 1, 65535)),
        )
        + method(0, "connection.open", virtual_host=source.choice((b"/", extremes.short(source))))
    )
    station.broker.run()
    link.give(method(1, "channel.open") + messages(source, "", extremes.short(source), 1))
    link.take()
    link.check_frames()
    station.pass_time(2000)  # a log-in that fails is answered
    if not link.connection.closed:
        link.take()
        link.end()
    station.broker.failures.__init__(station.broker.limits)


ENTRIES = {
    "queue arguments": (None, queue_arguments),
    "exchange arguments": (ruled, exchange_arguments),
    "binding arguments": (ruled, binding_arguments),
    "consumer arguments": (ruled, consumer_arguments),
    "headers and properties": (ruled, message_headers),
    "streams": (ruled, stream_readers),
    "policies": (ruled, policies),
    "definitions": (ruled, definitions),
    "management requests": (ruled, management_requests),
    "handshake": (None, handshake),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ENTRIES)
def test_the_broker_is_alive_after_each(name, form):
    """No error of the broker's own is counted, others are served, nothing is left, and the next start is clean (core/SPEC.md, "Faults")."""
    prepare, one_input = ENTRIES[name]
    print("LEVERET_FUZZ_SEED=%d" % SEED)
    feed(form, prepare, one_input, SEED, name, INPUTS)
