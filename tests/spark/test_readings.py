"""Decoding and cleaning: a body becomes a reading or a reason, and never an exception of another kind."""
import json
import random

import pyarrow
import pytest

from leveret.ports.spark.readings import BadReading, decode, decode_batches

NOW_S = 1_800_000_000
GOOD = {"device": "kiln-3", "metric": "temperature", "sequence": 17, "time": 1_700_000_000.25, "value": 812.5}


def changed(**changes):
    return json.dumps({**GOOD, **changes}).encode()


def without(name):
    return json.dumps({key: thing for key, thing in GOOD.items() if key != name}).encode()


def test_a_reading_comes_out_with_its_time_in_microseconds():
    assert decode(changed(), NOW_S) == ("kiln-3", "temperature", 17, 1_700_000_000_250_000, 812.5)


def test_whole_numbers_as_time_and_value_other_names_and_the_borders_are_readings():
    assert decode(changed(time=946684800, value=-10**18, sequence=0, unit="C"), NOW_S)[2:] == (0, 946684800 * 10**6, -1e18)
    assert decode(changed(time=NOW_S, sequence=2**63 - 1, device="é" * 127), NOW_S)[2] == 2**63 - 1


@pytest.mark.parametrize("body, reason", [
    (b"", "not JSON"), (b"\xff\xfe", "not UTF-8"), (changed()[:-1], "not JSON"), (changed() + changed(), "not JSON"),
    (b"[" * 100_000, "not JSON"), (b"9" * 5000, "not JSON"), (b"17", "not a JSON object"),
    (b"null", "not a JSON object"), (b"[1]", "not a JSON object"),
    (without("device"), "device is missing"), (changed(device=None), "device is missing"), (changed(device=3), "device is not text"),
    (changed(device=""), "device is empty or longer than 255 octets"),
    (changed(device="é" * 128), "device is empty or longer than 255 octets"),
    (changed(device="\ud800"), "device is not valid Unicode"), (without("metric"), "metric is missing"),
    (without("sequence"), "sequence is missing"), (changed(sequence=1.0), "sequence is not a whole number from 0 to 2^63 - 1"),
    (changed(sequence=True), "sequence is not a whole number from 0 to 2^63 - 1"),
    (changed(sequence=-1), "sequence is not a whole number from 0 to 2^63 - 1"),
    (changed(sequence=2**63), "sequence is not a whole number from 0 to 2^63 - 1"),
    (without("time"), "time is missing"), (changed(time="now"), "time is not a number"), (changed(time=float("nan")), "time is not finite"),
    (changed(time=0), "time is before the year 2000"), (changed(time=NOW_S + 1), "time is more than a day ahead"),
    (changed(time=10**400), "time is more than a day ahead"), (without("value"), "value is missing"),
    (changed(value=False), "value is not a number"), (changed(value=float("inf")), "value is not finite"),
    (b'{"device":"d","metric":"m","sequence":1,"time":1700000000,"value":1e999}', "value is not finite"),
    (changed(value=-1.1e18), "value is outside +-1e18"), (changed(value=10**400), "value is outside +-1e18"),
], ids=lambda thing: None if isinstance(thing, bytes) else thing)
def test_what_is_no_reading_has_a_reason(body, reason):
    with pytest.raises(BadReading, match="^" + reason.replace("^", r"\^").replace("+", r"\+") + "$"):
        decode(body, NOW_S)


def test_damaged_bodies_never_raise_anything_else():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(20_000):
        body = bytearray(changed())
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        try:
            reading = decode(bytes(body), NOW_S)
        except BadReading:
            continue
        assert len(reading) == 5


def test_a_batch_keeps_every_offset_and_the_payload_of_what_is_bad():
    now = pyarrow.array([NOW_S * 10**6] * 3, pyarrow.timestamp("us", tz="UTC"))
    bodies = pyarrow.array([changed(), b"{", changed(sequence=18)], pyarrow.binary())
    batch = pyarrow.RecordBatch.from_arrays(
        [bodies, pyarrow.array([7, 8, 9]), pyarrow.array(["a.b", "c", "d"]), now],
        names=["value", "offset", "routing_key", "now"])
    (decoded,) = decode_batches([batch, batch.slice(0, 0)])
    assert decoded.column("offset").to_pylist() == [7, 8, 9]
    assert decoded.column("sequence").to_pylist() == [17, 8, 18]
    assert decoded.column("reason").to_pylist() == [None, "not JSON", None]
    assert decoded.column("payload").to_pylist() == [None, b"{", None]
    assert decoded.column("routing_key").to_pylist() == [None, "c", None]
