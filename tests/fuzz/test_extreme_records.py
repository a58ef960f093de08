"""Records of the log whose CRC fits and whose content is of extremes, of other types, or changed at random: the start is not stopped, a
record that makes no sense is passed over and told, and what stands in the others is there (core/recovery/record_check.py).

LEVERET_EXTREMES=10000 pytest tests/fuzz/test_extreme_records.py    so many starts in each form
"""

import json
import random
import struct
from binascii import crc32

import amqp_wire
import extremes
import pytest
from amqp_wire import method, publish
from cases import SECONDS, Healthy
from memory_store import MemoryStore
from stations import FORMS, broker_on
from test_extremes import EXCHANGES, INPUTS, RULED, SEED

from leveret.core.log.segments import DEFINED, GROUP, HEAD, KEPT, MESSAGE, SETTLED, OtherLog

MARK = b"the message that stays"


def story(form):
    """The store of a broker that has had a bit of everything: its durable segments."""
    store = MemoryStore()
    broker = broker_on(store, form, [])
    link = Healthy(broker).link
    octets = b"".join(
        method(1, "exchange.declare", exchange=name, type=type_, durable=True, arguments=given) for name, type_, given in EXCHANGES
    )
    octets += b"".join(method(1, "queue.declare", queue=name, durable=True, arguments=given) for name, given in RULED.items())
    octets += method(1, "queue.declare", queue="safe", durable=True) + method(
        1, "queue.bind", queue="safe", exchange="amq.topic", routing_key="#", arguments={"a": amqp_wire.Typed("T", 5), "b": [1, "x"]}
    )
    given = amqp_wire.encode_properties({"delivery_mode": 2, "headers": {"a": 1}, "expiration": b"100000"})
    octets += b"".join(publish(1, "", name, b"body", given) * 3 for name in RULED) + publish(1, "amq.topic", "k", MARK, given)
    octets += method(1, "basic.get", queue="plain", no_ack=True) + method(1, "basic.get", queue="dead", no_ack=True)
    octets += method(1, "basic.qos", prefetch_count=5) + method(
        1, "basic.consume", queue="stream", consumer_tag="c", arguments={"x-stream-consumer": "c", "x-stream-offset": "first"}
    )
    octets += method(1, "basic.ack", delivery_tag=0, multiple=True) + method(1, "basic.cancel", consumer_tag="c")
    octets += method(1, "queue.declare", queue="gone", durable=True) + method(1, "queue.delete", queue="gone")
    request = {
        "request": "import",
        "definitions": {
            "users": [{"name": "u", "password_hash": "", "tags": "management"}],
            "policies": [{"name": "p", "pattern": "^x", "definition": {"max-length": 5}}],
            "permissions": [{"user": "u", "configure": "a", "write": "b", "read": "c"}],
        },
    }
    octets += publish(1, "", "amq.leveret.management", json.dumps(request).encode(), amqp_wire.encode_properties({"reply_to": "plain"}))
    link.give(octets)
    link.take()
    link.check_frames()
    broker.run()
    broker.journal.finish()
    return store.durable


def parts_of(segments):
    """[(segment number, is its head, [[type, payload], ...])]: the records, groups apart."""
    found = []
    for number, octets in sorted(segments.items()):
        at = 0
        while at < len(octets):
            _, size, sequence, type_ = struct.unpack_from(">IIIB", octets, at)
            payload = octets[at + 13 : at + 13 + size]
            parts = [[type_, payload]]
            if type_ == GROUP:
                parts, inside = [], 0
                while inside < len(payload):
                    kind, length = struct.unpack_from(">BI", payload, inside)
                    parts.append([kind, payload[inside + 5 : inside + 5 + length]])
                    inside += 5 + length
            found.append((number, sequence, type_, parts))
            at += 13 + size
    return found


def written(records):
    """Segments of such records again, with CRCs that fit."""
    segments = {}
    for number, sequence, type_, parts in records:
        payload = parts[0][1]
        if type_ == GROUP:
            payload = b"".join(struct.pack(">BI", kind, len(octets)) + octets for kind, octets in parts)
        behind = struct.pack(">IIB", len(payload), sequence, type_) + payload
        segments[number] = segments.get(number, b"") + struct.pack(">I", crc32(behind)) + behind
    return segments


def changed(source, type_, octets):
    """Another payload for a record of this type."""
    if type_ == DEFINED and octets[:1] == b"{" and source.random() < 0.85:
        try:
            definition = json.loads(octets)
        except ValueError:  # it was changed before
            return b"{"
        for _ in range(source.randrange(1, 3)):
            if not definition:
                break
            key = source.choice(tuple(definition))
            if isinstance(definition[key], dict) and source.random() < 0.5:
                definition[key][source.choice(("a", "x-message-ttl", "x-queue-type", "alternate-exchange", "x-max-age"))] = (
                    extremes.json_value(source)
                )
            elif source.random() < 0.2:
                del definition[key]
            else:
                definition[key] = extremes.json_value(source) if source.random() < 0.8 else ["$t", "T"]
        return json.dumps(definition, default=str).encode("utf-8", "surrogatepass")
    made = bytearray(octets)
    for _ in range(source.randrange(1, 4)):
        size = source.choice((1, 2, 4, 8))
        if len(made) >= size:
            at = min(source.choice((0, 2, 4, 6, 10, 12, 16, 20, 24, source.randrange(len(made)))), len(made) - size)
            made[at : at + size] = source.choice((b"\xff" * 8, bytes(8), source.randbytes(8), b"\x7f" + b"\xff" * 7, b"\0\0\0\1" * 2))[
                :size
            ]
    if source.random() < 0.3:
        made = made[: source.randrange(len(made) + 1)]
    if source.random() < 0.1:
        made += source.randbytes(source.choice((1, 5, 40)))
    return bytes(made)


def is_safe(type_, octets):
    """True for what the queue `safe` and its message need."""
    return MARK in octets or b'"safe"' in octets and type_ == DEFINED


def an_input(source, records):
    """The records with some changed; what `safe` has is left alone, and so are the heads, but for one input in ten."""
    made = [(number, sequence, type_, [list(part) for part in parts]) for number, sequence, type_, parts in records]
    parts = [part for _, _, type_, each in made for part in each if not is_safe(*part) and (part[0] != HEAD or source.random() < 0.02)]
    for _ in range(source.randrange(1, 4)):
        part = source.choice(parts)
        octets = changed(source, *part)
        if part[0] == DEFINED and b'"safe"' in octets:
            continue
        part[1] = octets
        if source.random() < 0.05 and part[0] != HEAD:
            part[0] = source.randrange(1, 12)
    return made


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_makes_no_sense_costs_itself(form):
    """The start after it: no exception, no error counted, the others' messages there, a second start too."""
    records = parts_of(story(FORMS[form]))
    assert {type_ for _, _, _, parts in records for type_, _ in parts} >= {
        HEAD,
        MESSAGE,
        SETTLED,
        DEFINED,
        KEPT,
    }
    print("LEVERET_FUZZ_SEED=%d" % SEED)
    for index in range(INPUTS):
        source = random.Random("%d records %d" % (SEED, index))
        made = an_input(source, records)
        store = MemoryStore()
        store.segments = written(made)
        store.durable = dict(store.segments)
        told = []
        try:
            start(store, FORMS[form], told, not [1 for before, after in zip(records, made) if before[2] == HEAD and before != after])
        except OtherLog:  # a head may say so: nothing is touched then
            continue
        except Exception as error:  # whatever is raised is the finding, with its seed
            raise AssertionError(
                "input %d (%s, LEVERET_FUZZ_SEED=%d): %r, told %r; changed: %r"
                % (index, form, SEED, error, told, [after for before, after in zip(records, made) if before != after])
            ) from error


def start(store, form, told, has_heads):
    """A start on a store, its work, and the start after it. `has_heads`: the heads of segments are as they were."""
    broker = broker_on(store, form, told)
    healthy = Healthy(broker)
    if has_heads:
        answer = healthy.ask(method(1, "basic.get", queue="safe", no_ack=True), "body")
        assert answer[-1].payload == MARK, answer
    healthy.link.give(
        method(1, "queue.declare", queue="new", durable=True)
        + publish(1, "", "new", b"x", amqp_wire.encode_properties({"delivery_mode": 2}))
    )
    for name in RULED:
        if name in broker.queues and name != "new":
            healthy.link.give(publish(1, "", name, b"y", amqp_wire.encode_properties({"delivery_mode": 2})))
    healthy.link.take()
    for milliseconds in (1100, 1200, 5000):
        broker.tick(milliseconds, SECONDS + milliseconds // 1000)
        broker.run()
    healthy.is_served()
    assert broker.counters["internal_errors"] == broker.counters["poisoned"] == 0, told
    again = broker_on(store.cut(), form, told)
    assert "new" in again.queues and again.queues["new"].message_count() == 1, told
    assert again.counters["internal_errors"] == 0, told
