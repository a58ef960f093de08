"""Decoding and cleaning: a body becomes a reading or a reason, and never an exception of another kind."""

import json
import os
import random
import struct
import time

import pyarrow
import pytest

from leveret.ports.spark import senml
from leveret.ports.spark.decode import Decoder
from leveret.ports.spark.readings import BadReading, decode

SEED = int(os.environ.get("LEVERET_SPARK_SEED", random.randrange(2**32)))
NOW_S = 1_800_000_000
GOOD = {"device": "kiln-3", "metric": "temperature", "sequence": 17, "time": 1_700_000_000.25, "value": 812.5}


def changed(**changes):
    return json.dumps({**GOOD, **changes}).encode()


def without(name):
    return json.dumps({key: thing for key, thing in GOOD.items() if key != name}).encode()


def test_a_reading_comes_out_with_its_time_in_microseconds():
    assert decode(changed(), NOW_S) == ("kiln-3", "temperature", 17, 1_700_000_000_250_000, 812.5)


def test_whole_numbers_as_time_and_value_other_names_and_the_borders_are_readings():
    assert decode(changed(time=946684800, value=-(10**18), sequence=0, unit="C"), NOW_S)[2:] == (0, 946684800 * 10**6, -1e18)
    assert decode(changed(time=NOW_S, sequence=2**63 - 1, device="é" * 127), NOW_S)[2] == 2**63 - 1


@pytest.mark.parametrize(
    "body, reason",
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (changed()[:-1], "not JSON"),
        (changed() + changed(), "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"9" * 5000, "not JSON"),
        (b"17", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (without("device"), "device is missing"),
        (changed(device=None), "device is missing"),
        (changed(device=3), "device is not text"),
        (changed(device=""), "device is empty or longer than 255 octets"),
        (changed(device="é" * 128), "device is empty or longer than 255 octets"),
        (changed(device="\ud800"), "device is not valid Unicode"),
        (without("metric"), "metric is missing"),
        (without("sequence"), "sequence is missing"),
        (changed(sequence=1.0), "sequence is not a whole number from 0 to 2^63 - 1"),
        (changed(sequence=True), "sequence is not a whole number from 0 to 2^63 - 1"),
        (changed(sequence=-1), "sequence is not a whole number from 0 to 2^63 - 1"),
        (changed(sequence=2**63), "sequence is not a whole number from 0 to 2^63 - 1"),
        (without("time"), "time is missing"),
        (changed(time="now"), "time is not a number"),
        (changed(time=float("nan")), "time is not finite"),
        (changed(time=0), "time is before the year 2000"),
        (changed(time=NOW_S + 1), "time is more than a day ahead"),
        (changed(time=10**400), "time is more than a day ahead"),
        (without("value"), "value is missing"),
        (changed(value=False), "value is not a number"),
        (changed(value=float("inf")), "value is not finite"),
        (b'{"device":"d","metric":"m","sequence":1,"time":1700000000,"value":1e999}', "value is not finite"),
        (changed(value=-1.1e18), "value is outside +-1e18"),
        (changed(value=10**400), "value is outside +-1e18"),
    ],
    ids=lambda thing: None if isinstance(thing, bytes) else thing,
)
def test_what_is_no_reading_has_a_reason(body, reason):
    with pytest.raises(BadReading, match="^" + reason.replace("^", r"\^").replace("+", r"\+") + "$"):
        decode(body, NOW_S)


def test_damaged_bodies_never_raise_anything_else():
    print(f"LEVERET_SPARK_SEED={SEED}")
    chance = random.Random(SEED)
    for _ in range(20_000):
        body = bytearray(changed())
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        try:
            reading = decode(bytes(body), NOW_S)
        except BadReading:
            continue
        assert len(reading) == 5


MESSAGE_TYPES = {
    "value": pyarrow.binary(),
    "offset": pyarrow.int64(),
    "position": pyarrow.int64(),
    "sequence": pyarrow.int64(),
    "timestamp": pyarrow.timestamp("us", tz="UTC"),
    "now": pyarrow.timestamp("us", tz="UTC"),
}


def batch_of(*messages):
    """An Arrow batch of messages, each a dict; what is not given is null, but for stream and offset."""
    rows = [
        {"stream": "s", "offset": 7 + place, "position": place, "now": NOW_S * 10**6, **message} for place, message in enumerate(messages)
    ]
    names = ("value", "stream", "offset", "position", "timestamp", "routing_key", "content_type", "gateway", "sequence", "now")
    columns = [pyarrow.array([row.get(name) for row in rows], MESSAGE_TYPES.get(name, pyarrow.string())) for name in names]
    return pyarrow.RecordBatch.from_arrays(columns, names=list(names))


def rows_of(batch, **settings):
    """(rows, the row that counts) of one batch."""
    (decoded,) = Decoder(**settings)([batch, batch.slice(0, 0)])
    rows = decoded.to_pylist()
    return rows[:-1], rows[-1]


def told(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_a_batch_keeps_every_offset_and_the_payload_of_what_is_bad():
    rows, count = rows_of(
        batch_of({"value": changed(), "routing_key": "a.b"}, {"value": b"{", "routing_key": "c"}, {"value": changed(sequence=18)})
    )
    assert told(rows, "offset", "sequence", "reason", "payload", "routing_key") == [
        (7, 17, None, None, None),
        (8, None, "not JSON", b"{", "c"),
        (9, 18, None, None, None),
    ]
    assert told([count], "part", "sequence", "key_number", "reason") == [(-1, 3, 3, None)]


def test_senml_packs_are_one_row_a_record():
    """RFC 8428 section 5.1.2 and 5.1.3: base fields hold for the records behind them; JSON and CBOR give the same."""
    pack = [
        {"bn": "kiln-3/", "bt": 1_700_000_000, "bu": "Cel", "bv": 10, "n": "temperature", "v": 2.5},
        {"n": "temperature", "t": 1, "v": 3},
        {"n": "door", "vb": True},
        {"n": "name", "vs": "x"},
        {"n": "energy", "u": "J", "s": 7},
        {"bn": "urn:dev:ow:1:", "n": "speed", "v": 1},
    ]
    labels = {"bn": -2, "bt": -3, "bu": -4, "bv": -5, "n": 0, "u": 1, "v": 2, "vs": 3, "vb": 4, "s": 5, "t": 6}
    other = cbor_of([{labels[name]: value for name, value in record.items()} for record in pack])
    rows, count = rows_of(batch_of({"value": json.dumps(pack).encode()}, {"value": other, "content_type": "application/senml+cbor; x=1"}))
    first, second = rows[:6], rows[6:]
    wanted = [
        ("kiln-3", "temperature", 12.5, "Cel", None),
        ("kiln-3", "temperature", 13.0, "Cel", None),
        ("kiln-3", "door", 1.0, "Cel", None),
        (None, None, None, None, "the value is text or data, not a number"),
        ("kiln-3", "energy_sum", 7.0, "J", None),
        ("urn:dev:ow:1", "speed", 11.0, "Cel", None),
    ]
    for found in (first, second):
        assert told(found, "device", "metric", "value", "unit", "reason") == wanted
        assert [row["time"].timestamp() - 1_700_000_000 for row in found if row["time"]] == [0, 1, 0, 0, 0]
        assert [row["part"] for row in found] == [0, 1, 2, 3, 4, 5]
    assert (count["sequence"], count["key_number"]) == (12, 2)


def cbor_of(thing):
    """A value in CBOR, with floats as doubles."""
    if isinstance(thing, bool):
        return b"\xf5" if thing else b"\xf4"
    if isinstance(thing, int):
        return head(0, thing) if thing >= 0 else head(1, -1 - thing)
    if isinstance(thing, float):
        return b"\xfb" + struct.pack(">d", thing)
    if isinstance(thing, str):
        return head(3, len(thing.encode())) + thing.encode()
    if isinstance(thing, list):
        return head(4, len(thing)) + b"".join(cbor_of(one) for one in thing)
    return head(5, len(thing)) + b"".join(cbor_of(name) + cbor_of(value) for name, value in thing.items())


def head(kind, number):
    if number < 24:
        return bytes((kind << 5 | number,))
    return bytes((kind << 5 | 26,)) + struct.pack(">I", number)


@pytest.mark.parametrize(
    "octets, value",
    [
        ("00", 0),
        ("1864", 100),
        ("1bffffffffffffffff", 2**64 - 1),
        ("c249010000000000000000", 2**64),
        ("3903e7", -1000),
        ("f93e00", 1.5),
        ("fa47c35000", 100000.0),
        ("fbc010666666666666", -4.1),
        ("f97bff", 65504.0),
        ("f4", False),
        ("f6", None),
        ("4401020304", b"\1\2\3\4"),
        ("62c3bc", "\u00fc"),
        ("8301820203820405", [1, [2, 3], [4, 5]]),
        ("a26161016162820203", {"a": 1, "b": [2, 3]}),
        ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
        ("c349010000000000000000", -1 - 2**64),
        ("c11a514b67b0", 1363896240),
        ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
        ("7f657374726561646d696e67ff", "streaming"),
        ("c48221196ab3", 273.15),
        ("c5822003", 1.5),
        ("c482c24101c24102", 20.0),
        ("d9d9f701", 1),
    ],
)
def test_cbor_values_of_rfc_8949_appendix_a(octets, value):
    for pack in ("81a102%s", "9fbf02%sffff", "d9d9f781b900011802%s", "9a00000001bb00000000000000011b0000000000000002%s"):
        assert senml.records_of_cbor(bytes.fromhex(pack % octets)) == [{"v": value}]
    assert senml.records_of_cbor(bytes.fromhex("82a161%02x%sa1781e%s%s" % (ord("v"), octets, "61" * 30, octets))) == [
        {"v": value},
        {"a" * 30: value},
    ]


EARLY, STRANGE = "CBOR that ends too early", "CBOR that cannot be read, or that no reading has: too deep, or against RFC 8949"
BIG = "a CBOR number of more than 64 octets, or of none"
PAIR, OUTSIDE = "a CBOR fraction that is no pair of whole numbers", "a CBOR fraction outside what a double holds"
FIELD = bytes.fromhex("81a102")  # a pack of one record with one field, v: its value follows
WORST = [  # octets of a pack, the reason
    (FIELD + b"\x81" * 100_000 + b"\0", STRANGE),
    (FIELD + b"\xc1" * 1_000_000 + b"\0", STRANGE),
    (FIELD + b"\xa1\x60" * 15 + b"\0", STRANGE),
    (FIELD + b"\x5b" + b"\xff" * 8, EARLY),
    (FIELD + b"\x9b" + b"\xff" * 8, EARLY),
    (FIELD + b"\xbb" + b"\xff" * 8, EARLY),
    (FIELD + b"\xc2\x58\x41" + b"\xff" * 65, BIG),
    (FIELD + b"\xc3\x5a\0\x10\0\0" + b"\xff" * 2**20, BIG),
    (FIELD + b"\xc2\1", BIG),
    (FIELD + b"\xc4\x82\x1a\x3b\x9a\xca\0\1", OUTSIDE),
    (FIELD + b"\xc4\x82\x3b" + b"\xff" * 8 + b"\1", OUTSIDE),
    (FIELD + b"\xc5\x82\x19\1\x91\1", OUTSIDE),
    (FIELD + b"\xc5\x82\xc2\x58\x40" + b"\xff" * 64 + b"\1", OUTSIDE),
    (FIELD + b"\xc4\x82\1\xc2\x49\1" + bytes(8), OUTSIDE),
    (FIELD + b"\xc4\x83\1\1\1", PAIR),
    (FIELD + b"\xc4\x82\1\xf5", PAIR),
    (FIELD + b"\xa1\x82\1\2\0", STRANGE),
    (FIELD + b"\xa1\1\0", STRANGE),
    (FIELD + b"\x1c", STRANGE),
    (FIELD + b"\xff", STRANGE),
    (FIELD + b"\x61\xff", STRANGE),
    (FIELD + b"\0\0", "CBOR with octets behind its end"),
    (b"", EARLY),
    (b"\x9f\xbf", EARLY),
    (b"\x80", "a SenML pack is an array of records"),
    (b"\x9f\xff", "a SenML pack is an array of records"),
    (b"\xa0", "a SenML pack is an array of records"),
    (b"\x81\x80", "a SenML record that is no object"),
    (b"\x9f" + b"\xa0" * 10_001, "a SenML pack of more than 10000 records"),
    (b"\x9b" + b"\xff" * 8 + b"\xa0", "a SenML pack of more than 10000 records"),
    (b"\x81\xbf" + b"\2\0" * 65, "a SenML record of more than 64 fields"),
    (b"\x81\xbb" + b"\xff" * 8 + b"\2\0" * 65, "a SenML record of more than 64 fields"),
    (b"\xa0" * (2**21 + 1), "a SenML pack of more than 2097152 octets"),
    (b"\x81\xa1\x61\xff\0", "CBOR text that is not UTF-8"),
    (b"\x9c", "CBOR with a reserved length"),
] + [
    (b"\x81\xa1" + name + b"\0", "a CBOR map with a name that is neither number nor text of at most 255 octets")
    for name in (
        b"\x82\1\2",
        b"\xa0",
        b"\xc2\x41\1",
        b"\xf6",
        b"\xf9\0\0",
        b"\x79\1\0" + b"a" * 256,
        b"\x7b" + b"\xff" * 8,
        b"\x7f\x61a\xff",
    )
]
# What cbor2 would read by itself: dates, MIME, patterns, references, sets, addresses, ratios; and tags that nobody has.
STRANGERS = (0, 24, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 4711, 2**64 - 1)


@pytest.mark.parametrize(
    "octets, reason",
    WORST
    + [
        (FIELD + b"\xdb" + tag.to_bytes(8, "big") + value, f"CBOR with the tag {tag}, which no reading has")
        for tag in STRANGERS
        for value in (b"\0", b"\x61a", b"\x82\1\2", b"\x65(a+)+")
    ],
    ids=lambda thing: thing if isinstance(thing, str) else thing[:12].hex(),
)
def test_a_hostile_pack_costs_its_own_message_and_no_other(octets, reason):
    """A dead letter with a reason that is always the same, little time, and the message behind it is read (the laws of senml_cbor.py)."""
    begun = time.process_time()
    rows, count = rows_of(batch_of({"value": octets, "content_type": "application/senml+cbor"}, {"value": changed()}))
    assert time.process_time() - begun < 5
    assert told(rows, "reason", "value") == [(reason, None), (None, 812.5)] and count["sequence"] == 2


@pytest.mark.parametrize(
    "octets, reasons",
    [
        (changed(unit="\ud800"), ["unit is not valid Unicode"]),
        (b'[{"n":"a","t":1700000000,"v":1,"u":"\\ud800"},{"n":"a","t":1700000000,"v":1}]', ["unit is not valid Unicode", None]),
        (b'[{"\\ud800_":1}]', ["the SenML field '\\ud800_' must be understood, and is not"]),
        (FIELD.replace(b"\2", b"\x20") + b"\xc2\x58\x40" + b"\xff" * 64, ["SenML of version that is none, not 10"]),
        (b'[{"bver":5}]', ["SenML of version 5, not 10"]),
        (b'[{"bver":[[]]}]', ["SenML of version that is none, not 10"]),
        (b"[" + b"{}," * 700_000 + b"{}]", ["a SenML pack of more than 2097152 octets"]),
    ],
)
def test_texts_that_no_column_can_hold_and_versions_of_any_size_are_dead_letters(octets, reasons):
    kind = "application/senml+json" if octets[:1] == b"[" else "application/json" if octets[:1] == b"{" else "application/senml+cbor"
    rows, _ = rows_of(batch_of({"value": octets, "content_type": kind}))
    assert [row["reason"] for row in rows] == reasons


def test_a_pack_of_bad_records_is_not_kept_once_for_each():
    """A small pack stands beside each of its dead letters, a large one beside the first."""
    for count, kept in ((3, 3), (2000, 1)):
        rows, _ = rows_of(batch_of({"value": json.dumps([{"vs": "x", "n": "a"}] * count).encode()}))
        assert len(rows) == count and sum(row["payload"] is not None for row in rows) == kept and rows[0]["payload"] is not None


def test_damaged_packs_are_dead_letters_and_nothing_else():
    print(f"LEVERET_SPARK_SEED={SEED}")
    chance = random.Random(SEED)
    good = cbor_of([{-2: "kiln/", -3: 1_700_000_000, 0: "t", 2: 2.5}, {0: "u", 2: 1, 6: -5}])
    for _ in range(5_000):
        octets = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        rows, count = rows_of(batch_of({"value": bytes(octets[: chance.randint(0, 60)]), "content_type": "application/senml+cbor"}))
        assert len(rows) == count["sequence"] >= 1 and all((row["reason"] is None) != (row["value"] is None) for row in rows)


def test_numbers_take_device_and_time_from_the_message():
    moment = 1_700_000_000 * 10**6
    rows, _ = rows_of(
        batch_of(
            {"value": b" 21.5\n", "routing_key": "hall", "timestamp": moment}, {"value": b"-3"}, {"value": b"1e400", "timestamp": moment}
        )
    )
    assert told(rows, "device", "metric", "value", "reason") == [
        ("hall", "value", 21.5, None),
        (None, None, None, "a bare number in a message without a timestamp"),
        (None, None, None, "value is outside +-1e18"),
    ]


def test_units_are_converted_and_ranges_are_kept():
    rules = {"temperature": {"unit": "Cel", "min": -40, "max": 100}}
    bodies = [
        changed(value=212, unit="degF"),
        changed(value=50, unit="Cel"),
        changed(value=50),
        changed(value=300, unit="degF"),
        changed(value=1, unit="V"),
    ]
    rows, _ = rows_of(batch_of(*({"value": one} for one in bodies)), metrics=rules)
    assert [(round(row["value"], 9), row["unit"]) if row["value"] is not None else row["reason"] for row in rows] == [
        (100.0, "Cel"),
        (50.0, "Cel"),
        (50.0, "Cel"),
        "temperature is 148.889, outside -40 to 100",
        "temperature is in 'V', and cannot be converted to 'Cel'",
    ]


def test_what_makes_a_double():
    headers = {"gateway": "north", "sequence": 5}
    messages = (
        {"value": changed(), **headers},
        {"value": changed()},
        {"value": without("sequence"), **headers},
        {"value": without("sequence")},
    )
    rows, _ = rows_of(batch_of(*messages))
    keys = told(rows, "key_owner", "key_part", "key_number")
    assert keys == [("north", "0", 5), ("kiln-3", "temperature", 17), ("north", "0", 5), (None, "s/0", 10)]
    rows, _ = rows_of(batch_of(*messages), by="reading")
    assert told(rows, "key_owner", "key_number")[:2] == [("kiln-3", 17)] * 2 and rows[2]["reason"] == "sequence is missing"
    rows, _ = rows_of(batch_of({"value": changed(), "gateway": "g" * 65, "sequence": 1}))
    assert rows[0]["reason"] == "x-gateway is empty or longer than 64 octets"
