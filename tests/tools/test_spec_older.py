"""core/SPEC.md has a row for each class of AMQP 0-8, 0-9, 0-9-1 and the drafts, with a test that is there for each version that has it."""

import os
import re

from leveret.core.amqp_0_9 import method, spec_0_8, spec_0_9, spec_0_9_1
from leveret.core.amqp_0_9.drafts import spec_0_9a5, spec_0_9r1

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADING = "### Classes of AMQP 0-8, 0-9, 0-9-1, 0.9a5 and 0.9r1, one by one"
COLUMNS = ((spec_0_8, spec_0_9), (spec_0_9_1,), (spec_0_9a5,), (spec_0_9r1,))


def rows():
    """{class: cells of its tests, in the order of COLUMNS}."""
    with open(os.path.join(HOME, "core", "SPEC.md"), encoding="utf-8") as file:
        text = file.read().split(HEADING)[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in cells[1:]}


def classes(specs):
    """The classes of the tables of these versions."""
    return {row[method.NAME].partition("_")[0] for spec in specs for row in spec.METHODS}


def test_every_class_of_a_version_has_a_test_and_no_other():
    for column, specs in enumerate(COLUMNS):
        assert {name for name, cells in rows().items() if cells[column] != "-"} == classes(specs), column


def test_every_row_names_tests_that_are_there():
    for cells in rows().values():
        for cell in cells:
            if cell == "-":
                continue
            path, _, function = cell.partition("::")
            with open(os.path.join(HOME, "tests", "unit", path), encoding="utf-8") as file:
                text = file.read()
            assert re.search(r"^def %s\(" % function, text, re.MULTILINE), cell
