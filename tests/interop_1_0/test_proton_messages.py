"""Many random messages, as the core reads and writes their sections, beside Debian's python3-qpid-proton."""

import json
import os
import random
import subprocess

import pytest

from leveret.core.amqp_1_0 import composites, convert, exact, properties, sections, types
from leveret.core.errors import ProtocolError
from leveret.core.message.annotations import GONE

PROTON = os.path.join(os.path.dirname(__file__), "proton_messages.py")
DEFAULTS = {"durable": False, "priority": 4, "ttl": 0, "first-acquirer": False, "delivery-count": 0}
SEED = int(os.environ.get("LEVERET_SEED", "1"))
COUNT = 1500


def proton(arguments, given=""):
    """The lines that Proton answers, out of JSON."""
    done = subprocess.run(["/usr/bin/python3", PROTON, *arguments], input=given, capture_output=True, text=True, timeout=120)
    if "No module named 'proton'" in done.stderr:
        pytest.skip("Debian's python3-qpid-proton is missing")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def written():
    """[(octets, description)] of Proton's random messages."""
    return [(bytes.fromhex(line["octets"]), line["is"]) for line in proton(["write", str(SEED), str(COUNT)])]


def described(value):
    """A value of types.py as proton_messages.py describes it."""
    name = types.name_of(value)
    if isinstance(value, tuple):
        value = [each if value[1] in types.NATIVE else (value[1], each) for each in value[2]] if name == "array" else value[1]
    if value is None:
        return ["null"]
    if isinstance(value, float):
        return [name, value.hex()]
    if isinstance(value, bytes):
        return [name, int.from_bytes(value, "big") if name in ("decimal32", "decimal64") else value.hex()]
    if isinstance(value, dict):
        return [name, pairs(value)]
    return [name, [described(each) for each in value] if isinstance(value, list) else value]


def pairs(table):
    return sorted([[described(key), described(table[key])] for key in table], key=repr)


def description(octets):
    """What the core reads of a message."""
    at, _, _ = sections.split(octets, 0, len(octets))
    facts = properties.facts(octets, 0, at)
    found = {}
    for name, value in facts.get("properties", {}).items():
        if value is not None and (name != "user-id" or value):
            typed = {
                "creation-time": "timestamp",
                "absolute-expiry-time": "timestamp",
                "content-type": "symbol",
                "content-encoding": "symbol",
            }
            kind = typed.get(name, "uint" if name == "group-sequence" else None)
            if name == "group-sequence" and not value or kind == "timestamp" and not value:
                continue  # which Proton does not tell from none
            found[name] = described(value if kind is None else (kind, value))
    for name in DEFAULTS:
        value = facts.get("header", {}).get(name)
        found[name] = DEFAULTS[name] if value is None else value
    for name in ("delivery-annotations", "message-annotations", "application-properties"):
        if facts.get(name):
            found[name] = pairs(facts[name])
    head = sections.data_head(octets[:at])
    start = at if head is None else head[0]
    found["body"] = ["null"] if start == len(octets) else described(types.decode(octets, start, len(octets))[0][2])
    return found


def test_the_core_reads_what_proton_writes(written):
    for octets, said in written:
        assert description(octets) == said, octets.hex()


def test_a_message_is_split_alike_however_it_comes(written):
    for octets, _ in written[:150]:
        whole = sections.split(octets, 0, len(octets))
        for size in range(len(octets)):
            part = sections.split(b"?" + octets[:size], 1, 1 + size, False)
            assert part is None or part == (whole[0] + 1, *whole[1:])
            if part is not None:
                assert size >= whole[0]
        assert sections.split(octets, 0, len(octets), False) in (whole, None if whole[0] == len(octets) else whole)


def test_octets_that_are_changed_or_cut_are_read_or_refused(written):
    some = random.Random(SEED)
    refused = 0
    for octets, _ in written:
        broken = bytearray(octets)
        for _ in range(some.randrange(1, 4)):
            broken[some.randrange(len(broken))] = some.randrange(256)
        broken = bytes(broken[: some.randrange(1, len(broken) + 1)] if some.random() < 0.3 else broken)
        try:
            at, _, _ = sections.split(broken, 0, len(broken))
        except ProtocolError:
            refused += 1
            continue
        properties.decode(broken, 0, at)  # what was taken can be read
        exact.exact(broken[:at])
        convert.rewritten(broken[:at], 1, 1000, GONE, {"x-a": "b"})
    assert COUNT / 4 < refused < COUNT


def test_proton_reads_the_heads_that_are_written_anew(written):
    """Each change is seen, and nothing else has changed."""
    some = random.Random(SEED)
    lines, expected = [], []
    for octets, said in written:
        at, _, _ = sections.split(octets, 0, len(octets))
        failed, passed, ttl = some.choice((0, 0, 3)), some.choice((0, 1000)), some.choice((None, None, GONE))
        noted = some.choice(({}, {}, {"x-opt-new": ["a", 1, None]}, {"x-a": GONE, "x-opt-new": ("ulong", 7)}))
        said = dict(said)
        said.pop("delivery-annotations", None)
        is_new = failed or said["ttl"] and (passed or ttl is GONE)
        if is_new:
            said["delivery-count"] += failed
            said["first-acquirer"] = said["first-acquirer"] and not failed
            said["ttl"] = 0 if ttl is GONE else max(said["ttl"] - passed, 0)
        table = [pair for pair in said.pop("message-annotations", []) if pair[0][1] not in noted]
        table += [[["symbol", name], described(noted[name])] for name in noted if noted[name] is not GONE]
        if table:
            said["message-annotations"] = sorted(table, key=repr)
        head = convert.rewritten(octets[:at], failed, passed, ttl, noted)
        if not (is_new or noted or "delivery-annotations" in description(octets)) and b"\x53\x71" not in octets:
            assert head == octets[:at]
        lines.append((head + octets[at:]).hex())
        expected.append(said)
    for line, found, said in zip(lines, proton(["read"], "\n".join(lines)), expected):
        assert found == said, line


def test_proton_reads_what_is_made_of_class_basic():
    """Random properties of class basic as sections: Proton reads what RabbitMQ's table says of them."""
    some = random.Random(SEED)
    lines, expected = [], []
    for _ in range(COUNT):
        given = {
            "content_type": some.choice(("text/plain", "ä")),
            "message_id": some.choice(
                ("m", "urn:uuid:00112233-4455-6677-8899-aabbccddeeff", "urn:uuid:00112233-4455-6677-8899-aabbccddeefg")
            ),
            "correlation_id": some.choice(("", "ü")),
            "timestamp": some.choice((0, 7, 1 << 40)),
            "reply_to": some.choice(("q", "a b/€")),
            "user_id": "guest",
            "app_id": "app",
            "type": "t",
            "headers": {
                "a": ("B", some.randrange(256)),
                "b": ("l", some.getrandbits(63)),
                "x-c": {"d": ["e", ("s", -1), None], "ß": b"\x00"},
                "CC": ["k"],
                "list": [],
                "€": ("S", b"\xff"),
                "t": ("T", 5),
                "f": ("f", 1.5),
            },
        }
        given = {name: given[name] for name in given if some.random() < 0.8}
        headers = given.get("headers", {})
        said = {}
        if "message_id" in given:
            is_uuid = given["message_id"].endswith("ff")
            said["message-id"] = ["uuid", "00112233445566778899aabbccddeeff"] if is_uuid else ["string", given["message_id"]]
        if given.get("content_type") == "text/plain":
            said["content-type"] = ["symbol", "text/plain"]
        if "correlation_id" in given:
            said["correlation-id"] = ["string", given["correlation_id"]]
        if given.get("timestamp"):
            said["creation-time"] = ["timestamp", given["timestamp"] * 1000]
        if "reply_to" in given:
            said["reply-to"] = ["string", {"q": "/queues/q", "a b/€": "/queues/a%20b%2F%E2%82%AC"}[given["reply_to"]]]
        if "user_id" in given:
            said["user-id"] = ["binary", b"guest".hex()]
        if "app_id" in given:
            said["group-id"] = ["string", "app"]
        noted = []
        if headers:
            table = [[["symbol", "d"], ["list", [["string", "e"], ["short", -1], ["null"]]]], [["string", "ß"], ["binary", "00"]]]
            noted.append([["symbol", "x-c"], ["map", sorted(table, key=repr)]])
            noted.append([["symbol", "x-cc"], ["list", [["string", "k"]]]])
            said["application-properties"] = sorted(
                [
                    [["string", "a"], ["ubyte", headers["a"][1]]],
                    [["string", "b"], ["long", headers["b"][1]]],
                    [["string", "€"], ["binary", "ff"]],
                    [["string", "t"], ["timestamp", 5000]],
                    [["string", "f"], ["float", (1.5).hex()]],
                ],
                key=repr,
            )
        if "type" in given:
            noted.append([["symbol", "x-basic-type"], ["string", "t"]])
        if noted:
            said["message-annotations"] = sorted(noted, key=repr)
        said.update(DEFAULTS)
        said["body"] = ["null"]
        octets = convert.sections_of(given, {})
        sections.split(octets, 0, len(octets))
        lines.append(octets.hex())
        expected.append(said)
    for line, found, said in zip(lines, proton(["read"], "\n".join(lines)), expected):
        assert found == said, line


def test_composites_agree_on_every_field():
    """A header of every combination of fields."""
    lines, expected = [], []
    for bits in range(32):
        fields = {"durable": True, "priority": 9, "ttl": 70000, "first-acquirer": True, "delivery-count": 5}
        fields = {name: fields[name] for place, name in enumerate(fields) if bits >> place & 1}
        octets = composites.write("header", fields)
        lines.append(octets.hex())
        expected.append({**DEFAULTS, **fields, "body": ["null"]})
    assert proton(["read"], "\n".join(lines)) == expected
