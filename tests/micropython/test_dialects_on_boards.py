"""AMQP 1.0 on boards, in place of 0-9-1 or beside it: a client logs in, has a queue made, publishes and consumes, in MicroPython, in the
heap that a board's code leaves.

`leveret board NAME` says which boards have room; each of those is driven here, with the code as the board carries it.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

import pytest
import stage
import test_board_budget as budget
import toolchain

sys.path[:0] = [os.path.join(stage.ROOT, "tests", name) for name in ("memory", "unit")]
from board_load import OPENING, method_frame, short  # noqa: E402 - the path above has to be set first
from peer_1_0 import HEADER_AMQP, HEADER_SASL, data, performative, sasl  # noqa: E402 - as above
from test_1_0_management import request  # noqa: E402 - as above

from leveret.tools import boards  # noqa: E402 - as above

BODY = b"21.5 degrees"
HARNESS_HEAP = 8192  # octets that the test itself holds, its scripts with it
CHOICES = [
    (name, choice)
    for name in budget.BOARDS
    for choice in ("amqp_1_0", "both")
    if choice in boards.load(name).sizes and boards.load(name).speaking(choice).free() >= boards.load(name).working_heap()
]


def script_0_9_1(queue):
    """[(octets of a client that uses a queue of that name, what is in the answer)]."""
    header = struct.pack(">BHIHHQHB", 2, 1, 15, 60, 0, len(BODY), 0x1000, 1) + b"\xce"
    body = struct.pack(">BHI", 3, 1, len(BODY)) + BODY + b"\xce"
    return [
        (OPENING[0], b"PLAIN"),
        (OPENING[1], b"\x00\x0a\x00\x1e"),
        (OPENING[2], b"\x00\x0a\x00\x29"),
        (OPENING[3], b"\x00\x14\x00\x0b"),
        (method_frame(1, 50, 10, b"\x00\x00" + short(queue) + b"\x00\x00\x00\x00\x00"), b"\x00\x32\x00\x0b"),
        (method_frame(1, 60, 40, b"\x00\x00\x00" + short(queue) + b"\x00") + header + body, b""),
        (method_frame(1, 60, 20, b"\x00\x00" + short(queue) + short(b"tag") + b"\x00\x00\x00\x00\x00"), BODY),
        (method_frame(1, 60, 80, struct.pack(">QB", 1, 0)), b""),
    ]


def attach(name, handle, role, address):
    """The octets of an attach to a node."""
    ends = {"source": ("source", {"address": address}), "target": ("target", {"address": address})}
    fields = dict({"initial_delivery_count": 0} if not role else {}, **ends)
    return performative("attach", name=name, handle=handle, role=role, **fields)


def credit(handle):
    """The octets of a flow of ten credits."""
    window = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 0, "outgoing_window": 100}
    return performative("flow", handle=handle, delivery_count=0, link_credit=10, **window)


def transfer(number, handle, octets):
    """The octets of a message in one transfer."""
    return performative("transfer", 0, octets, handle=handle, delivery_id=number, delivery_tag=b"%d" % number, message_format=0)


def script_1_0(queue):
    """The same of AMQP 1.0: the queue is made through /management; what stays is a sender and a receiver."""
    node, address = "/management", "/queues/" + str(queue, "ascii")
    return [
        (HEADER_SASL, b"PLAIN"),
        (sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest"), b"\x00\x53\x44"),
        (HEADER_AMQP, HEADER_AMQP),
        (performative("open", container_id="board"), b"\x00\x53\x10"),
        (performative("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100), b"\x00\x53\x11"),
        (attach("pair", 0, False, node) + attach("pair", 1, True, node) + credit(1), b"\x00\x53\x12"),
        (transfer(0, 0, request("PUT", address, {})), b"classic"),
        (performative("detach", handle=0, closed=True) + performative("detach", handle=1, closed=True), b"\x00\x53\x16"),
        (attach("out", 0, False, address), b"\x00\x53\x13"),
        (transfer(1, 0, data(BODY, {"durable": True})), b"\x00\x53\x24"),
        (attach("in", 1, True, address) + credit(1), BODY),
        (performative("disposition", role=True, first=1, settled=True, state=("accepted", {})), b""),
    ]


SCRIPTS = {"amqp_0_9": script_0_9_1, "amqp_1_0": script_1_0}


def conversed(board, heap_kb=0):
    """The figures of dialect_inside.py on a board, in a heap of so many KiB beside the code (0: as much as it takes), and the octets of
    its .mpy files."""
    node, package = toolchain.webassembly()
    with tempfile.TemporaryDirectory(prefix="leveret-dialects-") as staged:
        budget.lay_out(board, staged)
        with open(os.path.join(staged, "lib", "board_profile.py"), "a", encoding="utf-8") as file:
            file.write(
                "SCRIPTS = %r\n"
                % {name: [SCRIPTS[name](name[5:].encode() + each) for each in (b"a", b"b")] for name in board.carries["dialects"]}
            )
        # Compiled beforehand: what a compiler inside leaves behind would be taken for free memory once the board's code stands there.
        inside = os.path.join(staged, "tests", "memory", "dialect_inside")
        subprocess.run([toolchain.mpy_cross(), "-O3", "-o", inside + ".mpy", inside + ".py"], check=True, timeout=60)
        os.remove(inside + ".py")
        library = os.path.join(staged, "lib", "leveret")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(library) for name in names if name.endswith(".mpy")]
        octets = sum([os.path.getsize(path) for path in paths])
        done = subprocess.run(
            [*node, os.path.join(stage.HERE, "run_tests.mjs"), package, staged, "/tests/memory", "dialect_inside", str(heap_kb)],
            capture_output=True,
            text=True,
            timeout=600,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    assert lines and '"failed"' not in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]
    return dict(json.loads(lines[0][8:]), octets=octets)


@pytest.mark.parametrize("name,choice", CHOICES)
def test_a_client_of_each_family_publishes_and_consumes_in_the_heap_that_the_code_leaves(name, choice):
    board = boards.load(name).speaking(choice)
    figures = conversed(board, (board.heap_size - board.code_heap + HARNESS_HEAP) // 1024)
    print(name, choice, figures)
    _, octets, connection = board.sizes[choice]
    for held, said in ((figures["octets"], octets), (max(figures[dialect] for dialect in board.carries["dialects"]), connection)):
        assert abs(held / said - 1) <= budget.CODE_TOLERANCE, "run this file as a program, then `leveret board %s`" % name


def test_a_board_has_room_for_amqp_1_0():
    assert ("esp32_s3", "amqp_1_0") in CHOICES


def write_sizes(name):
    """Measure a board with each choice of dialects and write the numbers into its file."""
    lines = []
    first = None
    for choice in boards.CHOICES:
        board = boards.load(name).speaking(choice)
        figures = conversed(board)
        held = [figures[dialect] for dialect in board.carries["dialects"]]
        first = figures["code"] if first is None else first
        # As test_board_budget.py measures the board's own, and what others take more than that.
        code = boards.load(name).code_heap + int((figures["code"] - first) * budget.SHARES[board.code])
        sizes = [code, figures["octets"], max(held)]
        lines.append("%s = [%s]\n" % (choice, ", ".join(["%d" % size for size in sizes])))
        print(name, choice, figures, flush=True)
    path = os.path.join(boards.BOARDS, name, "board.toml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head = text.split("\n[sizes]\n")[0]
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + "\n[sizes]\n" + "".join(lines))


if __name__ == "__main__":
    for each in sys.argv[1:] or budget.BOARDS:
        write_sizes(each)
