"""CPython's own forms of some hot functions (core/shim.py, `quicker`) do what the plain ones say; routes spread in both."""

import importlib.util
import random

import pytest

from leveret.core import shim
from leveret.core.amqp_0_9 import hot_out
from leveret.core.amqp_1_0 import hot_in, hot_transfers
from leveret.core.broker import publish
from leveret.core.memory import hot, layout

SLOTS = 4096
FORMS = {"put_frame": hot_out, "put_size": hot_transfers, "put_id": hot_transfers}  # by a form of struct


@pytest.fixture(scope="module")
def plain():
    """{name: function} as MicroPython runs them."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shim, "quicker", lambda function, form=None: found.setdefault(function.__name__, function))
        for module in (hot, publish, hot_out, hot_in, hot_transfers):
            spec = importlib.util.spec_from_file_location(module.__name__ + "_plain", module.__file__)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert sorted(found) == sorted(("put_number", "route_hash", "high_octets", "is_named", *FORMS))
    return found


def test_numbers_and_heads_of_frames_are_the_same_octets(plain):
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(300):
        numbers = {
            "put_number": (random_.getrandbits(random_.choice((1, 30))), random_.getrandbits(random_.choice((1, 30)))),
            "put_frame": (random_.randrange(256), random_.randrange(1 << 16), random_.getrandbits(random_.choice((8, 30)))),
            "put_size": [random_.randrange(1 << 16) for _ in range(2)],
            "put_id": [random_.randrange(256)] + [random_.randrange(1 << 16) for _ in range(5)],
        }
        for name, given in numbers.items():
            targets = [memoryview(bytearray(20)) for _ in range(2)]
            at = random_.randrange(10)
            plain[name](targets[0], at, *given)
            getattr(FORMS.get(name, hot_out), name)(targets[1], at, *given)
            assert targets[0] == targets[1], (name, given)


def test_octets_that_are_not_ascii_are_counted(plain):
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(300):
        octets = bytes([random_.choice((0, 65, 127, 128, 255)) for _ in range(20)])
        at = random_.randrange(20)
        end = random_.randrange(at, 20)
        for form in (plain["high_octets"], hot_in.high_octets):
            assert form(memoryview(octets), at, end) == sum(octet > 127 for octet in octets[at:end])


def test_the_name_of_a_publisher_is_looked_for(plain):
    """What has no such name may only be told to have one by the plain form, which compares four of its octets."""
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(300):
        octets = bytes([random_.choice(b"x-pd\x00ab") for _ in range(30)])
        assert not publish.is_named(memoryview(octets), 0, len(octets))
        at = random_.randrange(len(octets) - 13)
        octets = octets[:at] + b"x-publisher-id" + octets[at + 14 :]
        for form in (plain["is_named"], publish.is_named):
            assert form(memoryview(octets), 0, len(octets)) and not form(memoryview(octets), 0, 13)


def routes():
    """Families of routes as people name them: (what they are, exchange and key as two short strings each)."""

    def route(exchange, key):
        return bytes((len(exchange),)) + exchange.encode() + bytes((len(key),)) + key.encode()

    yield "numbers", [route("t", "key.%d" % number) for number in range(1000)]
    yield "numbers in front", [route("amq.topic", "%d.temperature" % number) for number in range(1000)]
    yield "queues", [route("", "device-%06d" % number) for number in range(0, 3000, 3)]
    yield "two numbers", [route("amq.topic", "site.%d.device.%d.humidity" % (one, two)) for one in range(10) for two in range(100)]
    yield "short", [route("", chr(one) + chr(two)) for one in range(97, 123) for two in range(97, 123)]
    yield "powers", [route("x", "k" * number) for number in range(250)]


@pytest.mark.parametrize("form", ("plain", "CPython"))
def test_routes_find_a_slot_near_where_they_are_looked_for(plain, form):
    """A quarter of the slots is taken: at most one route in a hundred finds none among those that are looked at."""
    route_hash = plain["route_hash"] if form == "plain" else publish.route_hash
    for what, octets in routes():
        taken, without = set(), 0
        for route in octets:
            first = route_hash(route, 0, len(route))
            assert 0 <= first < 1 << 28
            slot = next((first + probe & SLOTS - 1 for probe in range(layout.ROUTE_PROBES) if first + probe & SLOTS - 1 not in taken), None)
            without += slot is None
            taken.add(slot)
        assert without <= len(octets) // 100, (what, without, len(octets))


def test_the_hash_is_of_the_octets_named_and_of_nothing_else():
    octets = b"abcdefgh" * 40
    for size in range(257):
        assert publish.route_hash(octets, 3, size) == publish.route_hash(memoryview(octets)[3 : 3 + size], 0, size)
