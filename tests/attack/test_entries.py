"""ENTRIES.md says what is so: every entry is there, and every test that it names."""

import ast
import os
import re

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TEST = re.compile(r"`(tests/\S+\.py)::(\w+)`")
NUMBERS = {"A": range(1, 9), "B": range(1, 19), "C": range(15), "E": (1, 2, 7, 8, 10, 11)}


def rows():
    """(entry, its tests) of each row."""
    with open(os.path.join(HERE, "ENTRIES.md"), encoding="utf-8") as file:
        lines = [line.strip("|\n ").split(" | ") for line in file if line.startswith("| ")]
    return [(cells[0], cells[3]) for cells in lines if cells[0] != "entry"]


@pytest.mark.parametrize("entry,tests", rows(), ids=[entry for entry, _ in rows()])
def test_an_entry_names_tests_that_exist(entry, tests):
    named = TEST.findall(tests)
    assert named and TEST.sub("", tests).strip(" ,") == "", tests
    for path, name in named:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            assert name in [each.name for each in ast.walk(ast.parse(file.read())) if isinstance(each, ast.FunctionDef)], (path, name)


def test_every_entry_has_a_row():
    told = {entry.split()[0] for entry, _ in rows()}
    assert {f"{part}{number}" for part, numbers in NUMBERS.items() for number in numbers} <= told
