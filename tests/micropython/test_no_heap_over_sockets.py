"""A message through the board's loop over real sockets takes no heap, nor does a round without anything to do.

tests/memory/socket_rounds.py runs in a `micropython` binary with its heap locked; device_rounds.py there shows the same without sockets.
"""

import os

import compiled
import pytest
import stage
import toolchain

PROGRAM = os.path.join(stage.ROOT, "tests", "memory", "socket_rounds.py")
LOG_MAX = 400  # octets that a message leaves that is kept, in two commits of one record each; measured: 157 of 32-bit heap


def test_over_sockets_with_confirms_in_pieces_and_idle_the_loop_takes_no_heap(tmp_path):
    try:
        binary = toolchain.unix()
    except toolchain.Missing as missing:
        pytest.skip(str(missing))
    place = str(tmp_path / "stage")
    os.mkdir(place)
    compiled.make(place, "esp32_s3")
    lines = compiled.run(binary, place, PROGRAM, tmp_path / "log", "plain", "confirms", "pieces", "idle", "log")
    octets = {name: int(count) for name, count in map(str.split, lines)}
    assert octets.pop("log") < LOG_MAX
    assert octets == {"plain": 0, "confirms": 0, "pieces": 0, "idle": 0}
