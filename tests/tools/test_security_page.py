"""SECURITY.md says what is so: each promise names tests that exist, each limit and setting there is one."""

import ast
import os
import re

import pytest
from test_readme import ROOT, read

from leveret.core.limits import ROWS

PAGE = read("SECURITY.md")
TEST = re.compile(r"`(tests/\S+\.py)::(\w+)`")


def section(title):
    """The text under a heading."""
    return PAGE.split("\n## %s\n" % title)[1].split("\n## ")[0]


def promises():
    """(promise, what holds it) of each row."""
    rows = [line.strip("|").split(" | ") for line in section("What is promised").splitlines() if line.startswith("| ")][1:]
    return [(row[0].strip(), row[1]) for row in rows]


def functions(path):
    """The names of a file's test functions."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return [each.name for each in ast.walk(ast.parse(file.read())) if isinstance(each, ast.FunctionDef)]


@pytest.mark.parametrize("promise,held_by", promises(), ids=[promise[:40] for promise, _ in promises()])
def test_each_promise_names_tests_that_exist(promise, held_by):
    found = TEST.findall(held_by)
    assert found and TEST.sub("", held_by).strip(" ,|") == "", held_by
    for path, name in found:
        assert name.startswith("test_") and name in functions(path), (path, name)


def test_the_page_has_its_parts_and_promises():
    assert len(promises()) >= 12
    for title in ("What is not promised", "What an operator must set", "How to report"):
        assert len(section(title)) > 200


def test_every_limit_that_it_names_is_one():
    known = [row[0] for row in ROWS]
    named = set(re.findall(r"`(\w+_(?:max|ms|size))`", PAGE))
    assert len(named) >= 6 and named <= set(known), named - set(known)
