"""The recorded frames themselves: complete, and read alike by two codecs that know nothing of ours."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import amqp_tables  # noqa: E402 - its path has to be set first
import vectors  # noqa: E402 - the path above has to be set first

with open(os.path.join(HERE, "amqp_0_9_1.json"), encoding="utf-8") as _file:
    ROWS = json.load(_file)


def test_every_method_of_each_side_is_there():
    recorded = {(row["sender"], row["name"]) for row in ROWS}
    # tx and confirm are among them; basic.recover-async has no answer. A method sent by both sides counts for each.
    expected = {(side, row[2]) for row in amqp_tables.METHODS for side in ("client", "server") if side[0] in row[3]}
    missing = expected - recorded
    assert missing == set(), sorted(missing)


def test_content_and_heartbeat_frames_are_there_from_both_sides():
    recorded = {(row["sender"], row["type"]) for row in ROWS}
    for kind in ("header", "body", "heartbeat"):
        assert ("client", kind) in recorded and ("server", kind) in recorded, kind


def test_both_codecs_read_every_row_alike():
    for row in ROWS:
        vectors.check_row(row)


def test_the_module_for_both_interpreters_is_current():
    with open(os.path.join(HERE, os.pardir, "unit", "vectors_0_9_1.py"), encoding="utf-8") as file:
        assert file.read() == vectors.module_text(ROWS), "run tests/vectors/record.py"
