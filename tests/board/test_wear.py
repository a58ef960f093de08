"""How long flash lasts: the sums of tools/wear.py beside what the real log and stores count, and what README's examples promise."""

import os
import re
import sys
import tomllib

import pytest

from leveret.core.broker.broker import Broker
from leveret.firmware import keeping
from leveret.firmware.sensor import Sensor
from leveret.tools import boards, wear

sys.path.insert(0, os.path.join(boards.ROOT, "tests", "durable"))
from flash_device import RamFlash  # noqa: E402 - the path above has to be set first

WARM_S, COUNTED_S = 200, 1000
YEARS_MIN = 10


class Reading:
    """A source of the sensor."""

    def __init__(self, value):
        self.value = value

    def read(self):
        return self.value


def counted(store):
    """Blocks that a store erases in a second while a sensor publishes each second, behind WARM_S of them."""
    broker = Broker(boards.load("pico_w").limits, b"wear")
    kept, _ = keeping.keep(broker, store)
    sensor = Sensor(broker, "greenhouse", {"keep": 100}, print, [("light", Reading(23456)), ("celsius", Reading(21.3125))])
    before = 0
    for now in range(0, (WARM_S + COUNTED_S) * 1000, 100):
        if now == WARM_S * 1000:
            before = kept.erases
        broker.tick(now, 1800000000 + now // 1000)
        sensor.step(now)
        broker.run()
    assert sensor.published == WARM_S + COUNTED_S and sensor.missed_count == 0
    kept.close()
    return (kept.erases - before) / COUNTED_S


@pytest.mark.parametrize(
    "given",
    [
        {"sync": "each"},
        {"sync": "batch", "batch_ms": 5000},
        {"sync": "batch", "batch_ms": 45000, "size": 524288},
    ],
)
def test_a_folder_wears_as_its_store_counts(given, tmp_path):
    store = dict(given, kind="folder", path=str(tmp_path / "log"))
    found = counted(store)
    assert abs(wear.erasures(store, 1.0) / found - 1) < 0.25, (wear.erasures(store, 1.0), found, wear.years(store, 868352))


@pytest.mark.parametrize("given", [{"sync": "each"}, {"sync": "batch", "batch_ms": 10000}])
def test_flash_without_a_file_system_wears_as_its_store_counts(given, monkeypatch):
    store = dict(given, kind="flash", start=0, size=262144)
    monkeypatch.setattr(keeping, "device", lambda wanted: RamFlash(64))
    found = counted(store)
    assert abs(wear.erasures(store, 1.0) / found - 1) < 0.25, (wear.erasures(store, 1.0), found, wear.years(store, 868352))


def test_the_examples_wear_the_flash_of_a_pico_w_for_years():
    """And the page says what a power cut costs then."""
    with open(os.path.join(boards.BOARDS, "README.md"), encoding="utf-8") as file:
        page = file.read()
    examples = [tomllib.loads(block) for block in re.findall("```toml\n(.*?)```", page, re.DOTALL)]
    stores = [example["board"]["store"] for example in examples if "store" in example.get("board", {})]
    assert len(stores) == 1
    lasts = wear.years(stores[0], boards.load("pico_w").flash_size, 1.0)
    assert lasts >= YEARS_MIN and "%.1f years" % lasts in page, lasts
    assert "the last %g s" % (stores[0]["batch_ms"] / 1000) in page


@pytest.mark.parametrize(
    "settings, said",
    [
        ({}, ""),
        ({"store": {}}, "its flash lasts about 0.6 years at a message in 1 s; a power cut costs nothing confirmed"),
        (
            {"store": {"sync": "batch", "batch_ms": 45000, "size": 524288}, "sensor": {"every_ms": 10000}},
            "its flash lasts about 25.4 years at a message in 10 s; a power cut costs what came in the last 45 s and is not confirmed",
        ),
        ({"store": {"kind": "flash", "label": "leveret"}}, "a power cut costs nothing confirmed"),
        (
            {"store": {"kind": "flash", "start": 0, "size": 262144, "sync": "none"}},
            "its flash lasts about 5.4 years at a message in 1 s; a power cut costs everything since the last segment was full",
        ),
    ],
)
def test_flash_says_how_long_its_flash_lasts(settings, said):
    assert wear.sentence_of(settings, 868352) == said


def test_the_defaults_are_those_of_the_firmware():
    """firmware/keeping.py opens the store with these."""
    assert (wear.SIZE, wear.SEGMENTS, wear.SEGMENT_SIZE_MIN) == (keeping.SIZE, keeping.SEGMENTS, keeping.SEGMENT_SIZE_MIN)
