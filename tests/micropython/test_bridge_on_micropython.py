"""Broker and bridge of a board inside MicroPython's WebAssembly build, a real upstream Leveret, and a link with faults between them.

Nothing may be missing upstream, and nothing double after de-duplication on (x-gateway, x-sequence); what the bridge holds of the heap is
at most what `leveret board` says. tests/board/test_bridge_on_board.py does it with the whole firmware and real sockets.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import pytest
import stage
import toolchain

sys.path.append(os.path.join(stage.ROOT, "tests", "bridge"))

from faults import FaultyLink, Upstream  # noqa: E402 - in tests/bridge
from nodes import Leveret  # noqa: E402 - the path above has to be set first

COUNT = 120
SEEDS = (1, 2, 6)  # their first connection ends while messages are on their way
FAULTS = 4
TIMEOUT_S = 300


@pytest.fixture(scope="module")
def node():
    found = Leveret()
    yield found
    found.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bridge_on_a_board_loses_nothing_and_doubles_nothing_whatever_the_link_does(node, seed):
    upstream = Upstream(node, seed, "board")
    upstream.bind()
    link = FaultyLink(node.port, random.Random(seed), FAULTS, 20000)
    interpreter, package = toolchain.webassembly()
    try:
        with tempfile.TemporaryDirectory() as staged:
            stage.make(staged)
            with open(os.path.join(staged, "lib", "uplink_seed.py"), "w") as file:
                file.write("SEED = %d\n" % seed)
            done = subprocess.run(
                [*interpreter, os.path.join(stage.HERE, "uplink_bridge.mjs"), package, staged, "wasm_uplink", "0", str(link.port)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
    finally:
        link.close()
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    found = upstream.take()
    places = {}
    for message in found:
        headers = message.properties["headers"]
        places.setdefault((headers["x-gateway"].split("~")[0], headers["x-sequence"]), set()).add(int(message.body.split(b" ")[0]))
    print(dict(link.faults), len(found) - COUNT, "doubles;", told["held"], "octets held,", told["said"], "said")
    assert sorted(places) == [("gw%d" % seed, number) for number in range(COUNT)]
    assert sorted(places.values(), key=min) == [{number} for number in range(COUNT)]
    assert told["confirmed"] == COUNT and told["status"]["internal_errors"] == 0, told
    assert sum(link.faults.values()) >= 1, "the link did nothing"
    assert 20000 < told["held"] <= told["said"], told
