"""core/SPEC.md has a row for every section of AMQP 1.0, with tests that are there."""

import os
import re

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADING = "### Sections of AMQP 1.0, one by one"
# How many sections of the third level each of the second has; none: it is one itself.
SECTIONS = {
    **dict.fromkeys(("1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "2.1", "2.2", "3.1", "3.3", "4.1", "4.2", "4.3", "5.1"), 0),
    **{
        "2.3": 2,
        "2.4": 7,
        "2.5": 6,
        "2.6": 14,
        "2.7": 9,
        "2.8": 19,
        "3.2": 16,
        "3.4": 6,
        "3.5": 13,
        "4.4": 4,
        "4.5": 8,
        "5.2": 2,
        "5.3": 4,
    },
}
NOTHING_TO_TEST = {"2.1"}


def rows():
    """[(sections, tests)] of the table."""
    with open(os.path.join(HOME, "core", "SPEC.md"), encoding="utf-8") as file:
        text = file.read().split(HEADING)[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [(sections(row[0]), row[2]) for row in cells[1:]]


def sections(text):
    """The sections that a cell names: several, and from one to another of the same level."""
    found = []
    for part in text.split(", "):
        first, _, last = part.partition(" to ")
        head, _, number = first.rpartition(".")
        end = int((last or first).rpartition(".")[2])
        found += ["%s.%d" % (head, each) for each in range(int(number), end + 1)]
    return found


def file_of(name):
    """The file of tests that a cell calls so, in the words of the tables."""
    path = name if "/" in name else "unit/test_1_0_" + name
    return os.path.join(HOME, "tests", path + ".py")


def test_every_section_has_one_row():
    wanted = []
    for section, count in SECTIONS.items():
        wanted += ["%s.%d" % (section, number) for number in range(1, count + 1)] or [section]
    named = [section for row, _ in rows() for section in row]
    assert sorted(named) == sorted(wanted)


def test_every_test_is_there():
    for row, tests in rows():
        names = [name for name in re.split("[,;] *", tests.partition("; interop: ")[0]) if name]
        assert names or set(row) <= NOTHING_TO_TEST, row
        assert not [name for name in names if not os.path.exists(file_of(name))], (row, names)
