"""Each of the 49 pairs of versions: what a receiver of one has of a message of the other is what core/CONVERSIONS.md says, cell by cell.

The messages have every property, every type of header and every form of body that their version has (tests/unit/full_messages.py);
they go in and come out as octets.
"""

import os
import re
import subprocess
import sys

import pytest

from leveret.tools import generate_conversions
from leveret.tools.devtool.environment import ROOT
from leveret.tools.devtool.pages import read

sys.path.insert(0, os.path.join(ROOT, "tests", "unit"))
import conversion_cells  # noqa: E402 - behind the path that it is on
from full_messages import MESSAGES, VERSIONS  # noqa: E402 - the same

PAIRS = [(source, target) for source in VERSIONS for target in VERSIONS]


def page_rows(source):
    """[(name, value, {target: cell})] of the page."""
    part = read("core/CONVERSIONS.md").split("\n## Published by %s\n" % source)[1].split("\n## ")[0]
    rows = []
    for line in part.strip().split("\n")[2:]:
        name, value, *cells = re.split(r" (?<!\\)\| ", line[2:-2])
        rows.append((name, value, dict(zip(VERSIONS, cells))))
    return rows


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["%s to %s" % each for each in PAIRS])
def test_a_receiver_has_what_the_page_says(source, target):
    found, seen = [], set()
    for sent, came in conversion_cells.pairs(source, target):
        for name in sent:
            if (name, sent[name]) not in seen and name not in conversion_cells.WITH_THE_DELIVERY:
                seen.add((name, sent[name]))
                cell = conversion_cells.cell(name, sent[name], came)
                found.append((name, sent[name], generate_conversions.shown(cell)))
    assert found == [(name, value, cells[target]) for name, value, cells in page_rows(source)]
    if source == target:
        assert {cell for _, _, cell in found} == {"="}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_messages_have_all_that_their_version_can_say(version):
    """Properties, types of headers: by the tables of the specification."""
    from leveret.core.amqp_0_9 import field_table, spec_0_8, spec_0_9, spec_0_9_1
    from leveret.core.amqp_0_9.drafts import spec_0_9a5, spec_0_9r1
    from leveret.core.amqp_0_10 import spec_0_10
    from leveret.core.amqp_1_0 import spec_1_0

    said = {}
    for message in MESSAGES[version]:
        said.update(conversion_cells.sent_view(version, message))
    if version in ("0-8", "0-9", "0-9-1"):
        spec = {"0-8": spec_0_8, "0-9": spec_0_9, "0-9-1": spec_0_9_1}[version]
        names = [name.replace("_", "-").replace("reserved", "cluster-id") for name, _ in spec.PROPERTIES]
        assert {*names} - {*said} == {"headers"}
        letters = {said[name].split(" ")[0] for name in said if name.startswith("header ")}
        assert letters == {chr(each) for each in field_table._FIXED} - {"L"} | {*"SxAFV"}
    elif version == "0-10":
        structs = {row[0]: row[4] for row in spec_0_10.STRUCTS}
        names = {name.replace("_", "-") for part in ("delivery-properties", "message-properties") for name, _ in structs[part]}
        # for the broker alone, or to resume a transfer
        beside = {"immediate", "redelivered", "exchange", "expiration", "resume-id", "resume-ttl", "application-headers"}
        assert names - {*said} <= beside
        types = {said[name].split(" ")[0] for name in said if name.startswith("header ")}
        wide = {"bin256", "bin512", "bin1024", "bin40", "bin72", "bit"}  # octets as the others are, and a value without any
        assert {name for code, name, _, _ in spec_0_10.TYPES if code is not None} - types <= wide
    elif version == "1.0":
        fields = {row[1]: {field[0] for field in row[2]} for row in spec_1_0.COMPOSITES}
        assert fields["header"] | fields["properties"] <= {*said}
        types = {said[name].split(" ")[0] for name in said if name.startswith(("header ", "annotation "))}
        # application-properties are simple values (3.2.5); decimal128 is as the other two
        assert {name for _, name, _, _ in spec_1_0.PRIMITIVES} - types == {"array", "decimal128"}
        assert {"footer x-opt-sum", "annotation x-described"} <= {*said}
    else:
        spec = {"0.9a5": spec_0_9a5, "0.9r1": spec_0_9r1}[version]
        assert {name.replace("_", "-") for name, _ in spec.CONTENTS[7][1]} - {*said} == {"headers"}
        assert "contents within" in said


def test_the_page_is_generated():
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tools", "generate_conversions.py"), "--check"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout


def test_the_check_tells_another_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generate_conversions, "PAGE", tmp_path / "CONVERSIONS.md")
    assert generate_conversions.main(["--check"]) == 1 and "core/CONVERSIONS.md is not" in capsys.readouterr().out
    assert generate_conversions.main([]) == 0 and generate_conversions.main(["--check"]) == 0
