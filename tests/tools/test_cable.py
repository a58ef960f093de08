"""The cable of two pseudo-terminals carries every octet both ways, at once, whole and in order."""

import os
import random
import threading

import pytest

from leveret.tools.cable import Cable

SEED = int(os.environ.get("LEVERET_CABLE_SEED", random.randrange(1 << 32)))


@pytest.fixture
def cable():
    cable = Cable()
    yield cable
    cable.close()


def write_all(device, octets):
    descriptor = os.open(device, os.O_RDWR | os.O_NOCTTY)
    try:
        while octets:
            octets = octets[os.write(descriptor, octets[:3000]) :]
    finally:
        os.close(descriptor)


def read_all(device, size):
    descriptor = os.open(device, os.O_RDWR | os.O_NOCTTY)
    found = b""
    try:
        while len(found) < size:
            found += os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    return found


def test_every_octet_value_passes_untranslated_both_ways(cable):
    octets = bytes(range(256))
    for here, there in (cable.ends, cable.ends[::-1]):
        write_all(here, octets)
        assert read_all(there, 256) == octets


def test_more_than_it_holds_passes_both_ways_at_once(cable):
    octets = random.Random(SEED).randbytes(400000)
    writers = [threading.Thread(target=write_all, args=(end, octets)) for end in cable.ends]
    found = {}
    readers = [threading.Thread(target=lambda end=end: found.update({end: read_all(end, len(octets))})) for end in cable.ends]
    for thread in writers + readers:
        thread.start()
    for thread in writers + readers:
        thread.join(30)
    assert found[cable.ends[0]] == octets and found[cable.ends[1]] == octets, f"LEVERET_CABLE_SEED={SEED}"
    assert cable.carried == 2 * len(octets)
