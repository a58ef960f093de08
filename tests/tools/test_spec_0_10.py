"""core/SPEC.md has a row for each control and each command of AMQP 0-10, with a test that is there and speaks of it."""

import os
import re

from leveret.core.amqp_0_10.spec_0_10 import COMMANDS, CONTROLS

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADING = "### Controls and commands of AMQP 0-10, one by one"
NOT_SENT = {"connection.redirect"}


def rows():
    """[(names, the cell of the test)]."""
    with open(os.path.join(HOME, "core", "SPEC.md"), encoding="utf-8") as file:
        text = file.read().split(HEADING)[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [(row[0].split(", "), row[1]) for row in cells[1:]]


def title(name):
    """A control's or command's name as the specification writes it."""
    class_, _, rest = name.partition("_")
    return class_ + "." + rest.replace("_", "-")


def test_every_control_and_command_has_one_row():
    named = [name for names, _ in rows() for name in names]
    assert sorted(named) == sorted(title(row[1]) for row in CONTROLS + COMMANDS)


def test_every_row_names_a_test_whose_file_speaks_of_it():
    for names, cell in rows():
        if set(names) <= NOT_SENT:
            continue
        path, _, function = cell.partition("::")
        with open(os.path.join(HOME, "tests", path), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(HOME, "tests", "unit", "peer_0_10.py"), encoding="utf-8") as file:
            peer = file.read()
        assert re.search(r"^def %s\(" % function, text, re.MULTILINE), cell
        for name in names:
            assert name.replace(".", "_", 1).replace("-", "_") in text + peer or name in text, (name, cell)
