"""Every test that the tables of core/SPEC.md name is there: a file, a function in it, or (AMQP 1.0) the short name of a file."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMED = re.compile(r"(?:[\w/]+/)?test_\w+(?:\.py)?(?:::\w+)?")
SHORT = {"proton": "interop_1_0/test_proton_messages.py", "peers": "interop_1_0"}  # short names of no unit test


def rows():
    """(heading, cells) of each row of a table."""
    heading = ""
    with open(os.path.join(ROOT, "core", "SPEC.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                heading = line[3:].strip()
            if line.startswith("|") and not set(line) <= set("|-: \n"):
                yield heading, [cell.strip() for cell in line.strip().strip("|").split("|")]


def all_files():
    """Names of all files with tests -> their paths."""
    paths: dict = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
        for name in names:
            if name.endswith(".py"):
                paths.setdefault(name, []).append(os.path.join(folder, name))
    return paths


def missing(named, files):
    """True for the name of a test that is not there. `named`: a file, perhaps with its folder, perhaps with `::` and a function."""
    path, _, function = named.partition("::")
    name = os.path.basename(path)
    paths = [each for each in files.get(name if name.endswith(".py") else name + ".py", ()) if os.path.dirname(path) in each]
    return not paths or bool(function) and not any(has(each, function) for each in paths)


def has(path, function):
    """True when a file defines a function."""
    with open(path, encoding="utf-8") as file:
        return "def %s(" % function in file.read()


def test_every_test_that_a_row_names_is_there():
    files, count, wrong = all_files(), 0, []
    for heading, cells in rows():
        for named in NAMED.findall(cells[-1]):
            count += 1
            if missing(named, files):
                wrong.append("%s, '%s': %s" % (heading, cells[0][:60], named))
    assert count > 100, count
    assert not wrong, "not there: " + "; ".join(wrong)


def test_every_row_of_amqp_1_0_names_its_tests():
    """Short names stand for unit/test_1_0_NAME.py; behind a semicolon and a colon stand words about other clients."""
    files, count, wrong = all_files(), 0, []
    for heading, cells in rows():
        if heading != "AMQP 1.0" or cells[-1] == "tests":
            continue
        count += 1
        names = re.split("[;:]", cells[-1])[0].split(",")
        for name in [each.strip() for each in names]:
            place = os.path.join(ROOT, "tests", SHORT.get(name, re.sub("^tests/", "", name)))
            if "test_1_0_%s.py" % name not in files and not os.path.exists(place) and missing(name, files):
                wrong.append("'%s': %s" % (cells[0][:60], name))
    assert count > 25, count
    assert not wrong, "not there: " + "; ".join(wrong)
