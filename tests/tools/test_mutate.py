"""`dev.py mutate`: what it changes, that it draws the same again, and that it tells what no test noticed (tools/devtool/mutate.py)."""

import ast
import builtins
import os
import queue
import signal
import sys
import time

import pytest

from leveret.tools.devtool import check, copies, legs, mutate, mutation_report, mutations, nearest, test_by_test

SOURCE = '''"""A file."""
LIMIT = 3


def f(x: int = 1):
    """Text 3 + 4."""
    if x == LIMIT and not x < 0:
        log("x is %d" % (x + 1))
        x -= 1
    return x if x > 2 else None


def end(child):
    child.kill()


if __name__ == "__main__":
    f(7)
'''


def changes(source):
    return [(mutation.line, mutation.sentence(source)) for mutation in mutations.mutations_of(source)]


def test_every_kind_of_change_is_made_and_nothing_else():
    """Operators, comparisons, constants, removed statements, negated conditions; no docstring, text, annotation, kill or main."""
    assert sorted(changes(SOURCE)) == sorted(
        [
            (2, "constant: `3` -> `2`"),
            (5, "constant: `1` -> `2`"),
            (7, "negated condition: `x == LIMIT and not x < 0` -> `(not (x == LIMIT and (not x < 0)))`"),
            (7, "operator: `x == LIMIT and not x < 0` -> `(x == LIMIT or not x < 0)`"),
            (7, "comparison: `x == LIMIT` -> `(x != LIMIT)`"),
            (7, "negated condition: `not x < 0` -> `(x < 0)`"),
            (7, "comparison: `x < 0` -> `(x <= 0)`"),
            (7, "constant: `0` -> `1`"),
            (8, 'removed statement: `log("x is %d" % (x + 1))` -> `pass`'),
            (9, "removed statement: `x -= 1` -> `pass`"),
            (9, "operator: `x -= 1` -> `x += 1`"),
            (9, "constant: `1` -> `2`"),
            (10, "removed statement: `return x if x > 2 else None` -> `return None`"),
            (10, "negated condition: `x > 2` -> `(not (x > 2))`"),
            (10, "comparison: `x > 2` -> `(x >= 2)`"),
            (10, "constant: `2` -> `3`"),
        ]
    )


def test_what_would_be_the_same_program_is_no_change():
    """The first column of a record is 0, added or not; one more in a mask may be a bit that nothing has."""
    made = changes("a = b + layout.ENTRY_MESSAGE + QUEUE_HEAD\nc = b + layout.ENTRY_NEXT\nd = b & 0x8000\n")
    assert made == [
        (2, "operator: `b + layout.ENTRY_NEXT` -> `(b - layout.ENTRY_NEXT)`"),
        (3, "operator: `b & 0x8000` -> `(b | 32768)`"),
        (3, "constant: `0x8000` -> `0x0`"),
    ]
    made = [change for _, change in changes("NONE = -1\nFIRST = 0\nSECOND = 1\ndef f(x):\n    return -1 if x else 2 + -3\n")]
    assert [change.split(": ")[1] for change in made if change.startswith("constant")] == [
        "`1` -> `0`",
        "`0` -> `1`",
        "`1` -> `0`",
        "`1` -> `0`",
        "`2` -> `3`",
        "`3` -> `2`",
    ], "none is not another none, and a case is another case"


def test_what_cpython_does_not_run_is_no_change():
    """Imports for the type checker, what is MicroPython's, and when a text is written: the rest of those lines is changed as ever."""
    source = (
        "if False:  # for the type checker alone\n    from typing import Any\n"
        "if MICROPYTHON:\n    a = 3\nelif b:\n    c = 4\nelse:\n    d = 5\n"
        "if False:\n    e = 0x1\n"
        "print(f(6), end=g(7), flush=True)\n"
    )
    assert changes(source) == [
        (3, "negated condition: `MICROPYTHON` -> `(not (MICROPYTHON))`"),
        (5, "negated condition: `b` -> `(not (b))`"),
        (6, "constant: `4` -> `3`"),
        (8, "constant: `5` -> `4`"),
        (9, "constant: `False` -> `True`"),
        (9, "negated condition: `False` -> `(not (False))`"),
        (10, "constant: `0x1` -> `0x0`"),
        (11, "constant: `6` -> `5`"),
        (11, "constant: `7` -> `6`"),
    ]


def test_a_function_that_only_micropython_runs_is_left_as_it_is():
    """core/shim.py gives CPython another form of it by `quicker`."""
    source = "def a(b):\n    return b + 3\ndef c(b):\n    return b + 4\nif b:\n    c = quicker(c)\na = quicker(a, '>H')\n"
    assert {line for line, _ in changes(source)} == {4, 5}


def test_a_change_leaves_every_other_octet_as_it_is_and_can_be_compiled():
    for source in (SOURCE, 'def f(é):\n    return "é", é + \\\n        1, "ü"\n'):
        for mutation in mutations.mutations_of(source):
            changed = mutations.apply(source, mutation)
            ast.parse(changed)
            lines, other = source.split("\n"), changed.split("\n")
            assert other[: mutation.start[0] - 1] == lines[: mutation.start[0] - 1] and changed != source
            assert other[len(other) - (len(lines) - mutation.end[0]) :] == lines[mutation.end[0] :]


def test_the_same_seed_draws_the_same_and_another_seed_others():
    def drawn(seed):
        return [(mutant.place(), mutant.sentence()) for mutant in mutate.draw(40, seed)]

    seven = drawn(7)
    assert drawn(7) == seven and len(set(seven)) == 40
    assert drawn(8) != seven
    assert not [place for place, _ in seven if mutate.elsewhere(place)]


def test_each_file_that_is_left_out_is_there_and_says_why():
    files = [path.replace(os.sep, "/") for path in mutate.check.python_files(*mutate.PRODUCT)]
    for start, why in mutate.ELSEWHERE:
        assert [path for path in files if path.startswith(start)] and why, start


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small product: `half` has a test that looks at it, `told` has none, `idle` is run and not looked at, `spin` may never end."""
    root = tmp_path / "tree"
    for folder in ("core", "ports", "tools", "tests/unit", "tests/others"):
        (root / folder).mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "core" / "sums.py").write_text(
        "def half(x):\n    return x // 2\n\n\ndef told(x):\n    return x + 1\n\n\ndef idle(x):\n    return x + 2\n\n\n"
        "def spin(x):\n    while x:\n        x -= 1\n    return x\n"
    )
    (root / "tests" / "unit" / "test_sums.py").write_text(
        "from leveret.core import sums\ndef test_half():\n    assert sums.half(9) == 4\n    sums.idle(1)\n"
        "def test_spin():\n    assert sums.spin(5) == 0\n"
    )
    (root / "tests" / "others" / "test_far.py").write_text(
        "import subprocess, sys\ndef test_told():\n    code = 'from leveret.core import sums; print(sums.told(1))'\n"
        "    assert subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout == '2\\n'\n"
    )
    for module in (mutate, mutate.legs, mutate.check):
        monkeypatch.setattr(module, "ROOT", str(root))
    monkeypatch.setattr(mutate, "CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mutate, "ELSEWHERE", ())
    monkeypatch.setattr(mutate, "OTHER_LEGS", ("others",))
    monkeypatch.setattr(mutate, "ONE_MAX_S", 60)
    monkeypatch.setattr(legs, "LEGS", (legs.Leg("unit", "-", paths=("tests/unit",)), legs.Leg("others", "-", paths=("tests/others",))))
    return root


def judge_of(place, until=None):
    """A Judge with one copy of the tree, and another that stays whole."""
    like = copies.make_copy(str(place / "whole"))
    pool = queue.SimpleQueue()
    pool.put(copies.make_copy(str(place / "0"), like))
    return mutate.Judge(pool, mutate.measure(pool), until)


def judged(tree, place, change, until=None):
    """The Mutant of one change, judged in a copy of the tree."""
    source = (tree / "core" / "sums.py").read_text()
    (mutation,) = [each for each in mutations.mutations_of(source) if each.sentence(source) == change]
    judge = judge_of(place, until)
    mutant = mutate.Mutant(os.path.join("core", "sums.py"), source, mutation)
    judge.judge(mutant, judge.in_units)
    if not mutant.verdict:
        judge.reach([mutant], lambda file: None)
        judge.judge(mutant, judge.in_others)
    return mutant


@pytest.mark.parametrize(
    "change, verdict, by",
    [
        ("operator: `x // 2` -> `(x * 2)`", "killed", "tests/unit/test_sums.py::test_half"),
        ("operator: `x + 1` -> `(x - 1)`", "killed", "tests/others/test_far.py::test_told"),
        ("operator: `x + 2` -> `(x - 2)`", "survived", ""),
        ("operator: `x -= 1` -> `x += 1`", "killed by its time", "tests/unit/test_sums.py::test_spin"),
    ],
)
def test_a_mutant_dies_in_the_tests_that_look_at_its_line_or_survives(tree, tmp_path, change, verdict, by):
    """By the unit tests, by another leg's in a process of its own, by no test, and by its time."""
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    mutant = judged(tree, tmp_path / "copy", change)
    assert (mutant.verdict, mutant.by) == (verdict, by)
    assert before == {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}, "the tree itself is never written to"


def test_a_test_that_fails_without_a_change_is_not_asked(tree, tmp_path, capsys):
    (tree / "tests" / "unit" / "test_broken.py").write_text(
        "from leveret.core import sums\ndef test_told():\n    assert sums.told(1) == 3\n"
    )
    pool = queue.SimpleQueue()
    pool.put(copies.make_copy(str(tmp_path / "copy")))
    measured = mutate.measure(pool)
    assert list(measured) == [os.path.join("tests", "unit", "test_sums.py")]
    assert "test_broken.py::test_told fails without a mutant and is left out" in capsys.readouterr().out


def test_a_verdict_is_kept_for_the_next_run_of_the_same_tree(tree, tmp_path, monkeypatch):
    change = "operator: `x // 2` -> `(x * 2)`"
    first = judged(tree, tmp_path / "one", change)
    monkeypatch.setattr(copies, "run_child", None)
    again = judged(tree, tmp_path / "two", change)
    assert (again.verdict, again.by, again.reached, again.files) == (first.verdict, first.by, first.reached, first.files)
    assert first.verdict == "killed"


def test_a_mutant_without_a_verdict_has_not_died_and_the_same_command_goes_on(tree, tmp_path):
    change = "operator: `x + 1` -> `(x - 1)`"
    mutant = judged(tree, tmp_path / "one", change, until=time.monotonic())
    assert mutant.verdict == "" and mutation_report.killed([mutant]) == 0
    assert mutation_report.lines_of([mutant], 7, 0.9, ())[-1].startswith("0 of 1 mutants died, 1 are not judged (seed 7")
    assert judged(tree, tmp_path / "two", change).verdict == "killed"


def test_a_mutant_is_asked_unit_tests_for_its_time_alone(tree, tmp_path, monkeypatch):
    """One that only what was not asked would kill counts as survived."""
    monkeypatch.setattr(mutate, "UNITS_MAX_S", -1)
    mutant = judged(tree, tmp_path / "copy", "operator: `x // 2` -> `(x * 2)`")
    assert mutant.verdict == "survived" and mutant.reached


def test_another_legs_test_that_fails_once_or_without_a_change_kills_nothing(tree, tmp_path):
    """Those tests have limits of time, on a machine that may be busy: the one that fails is asked again, and asked of the tree itself."""
    (tree / "tests" / "others" / "test_idle.py").write_text(
        "import os\nfrom leveret.core import sums\n"
        "def test_broken():\n    assert sums.idle(1) == 4\n"
        "def test_once():\n    if sums.idle(1) != 3 and not os.path.exists('once'):\n        open('once', 'w').close()\n"
        "        raise ValueError\n"
    )
    mutant = judged(tree, tmp_path / "copy", "operator: `x + 2` -> `(x - 2)`")
    assert (mutant.verdict, mutant.files) == ("survived", 2)
    mutant = judged(tree, tmp_path / "again", "operator: `x + 1` -> `(x - 1)`")
    assert (mutant.verdict, mutant.by) == ("killed", "tests/others/test_far.py::test_told")


def test_a_test_whose_parameter_has_spaces_kills_too():
    """Its name is asked again as a whole: a part of it is no test's."""
    for line, name in (
        ("FAILED a/b.py::t[x y - z] - AssertionError: a[1] - b", "a/b.py::t[x y - z]"),
        ("FAILED a/b.py::t[octets-CBOR that cannot be read, or: too deep]", "a/b.py::t[octets-CBOR that cannot be read, or: too deep]"),
        ("FAILED a/b.py::t[a-b] - AssertionError: assert [1] == [2]", "a/b.py::t[a-b]"),
        ("FAILED a/b.py::t - AssertionError: a[1]", "a/b.py::t"),
        ("FAILED a/b.py::t", "a/b.py::t"),
        ("ERROR a/b.py - ImportError", "a/b.py"),
        ("ERROR a/b.py", "a/b.py"),
    ):
        assert mutate.KILLER.search("some lines\n" + line + "\n1 failed").group(1) == name


def test_other_legs_that_do_not_end_in_a_mutants_time_have_not_killed_it(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "OTHERS_SPARE_S", 1)
    monkeypatch.setattr(copies, "slowness", lambda: 1)
    (tree / "tests" / "others" / "test_idle.py").write_text(
        "import time\nfrom leveret.core import sums\ndef test_idle():\n    while sums.idle(1) != 3:\n        time.sleep(1)\n"
    )
    mutant = judged(tree, tmp_path / "copy", "operator: `x + 2` -> `(x - 2)`")
    assert (mutant.verdict, mutation_report.killed([mutant])) == ("", 0) and mutant.left >= 1
    told = mutation_report.lines_of([mutant], 7, 0.9, ())
    assert told[told.index("Not judged (1); the same command goes on:") + 1].endswith(", out of time")


def test_only_the_tests_of_other_legs_that_run_a_statement_are_asked(tree, tmp_path, monkeypatch):
    """In whichever process they run it; a file runs once for all mutants, and again for one whose statement it was not asked about. A test
    that fails without a mutant is not asked."""
    (tree / "tests" / "others" / "test_wide.py").write_text(
        "import subprocess, sys\nfrom leveret.core import sums\ndef test_half():\n    assert sums.half(2) == 1\n"
        "def test_server():\n    code = 'from leveret.core import sums; sums.half(sums.idle(1))'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
        "def test_broken():\n    assert sums.half(2) == 3\n"
    )
    source = (tree / "core" / "sums.py").read_text()
    drawn = {each.line: mutate.Mutant("core/sums.py", source, each) for each in mutations.mutations_of(source) if each.kind == "operator"}
    judge, said = judge_of(tmp_path), []
    judge.reach([drawn[2], drawn[6]], said.append)
    judge.reach([drawn[2]], said.append)
    assert sorted(said) == ["tests/others/test_far.py", "tests/others/test_wide.py"], "what is known is not asked again"
    known = {name: marks for _, tests, _ in judge.reaching.values() for name, _, marks in tests}
    half, told = "core.sums.py:2", "core.sums.py:6"
    assert known == {
        "tests/others/test_far.py::test_told": [told],
        "tests/others/test_wide.py::test_half": [half],
        "tests/others/test_wide.py::test_server": [half],
    }
    assert all(has_ended for _, _, has_ended in judge.reaching.values())
    judge.reach([drawn[line] for line in (2, 6, 10)], said.append)
    assert len(said) == 4
    place = judge.pool.get()
    assert (tmp_path / "0" / "leveret" / "core" / "sums.py").read_text() == source, "the marks are gone"
    monkeypatch.setattr(mutate, "run_pytest", lambda place, names, until=None: said.append(names) or (0, ""))
    for line, names in ((2, ["wide.py::test_half", "wide.py::test_server"]), (6, ["far.py::test_told"]), (10, ["wide.py::test_server"])):
        del said[:]
        judge.in_others(place, drawn[line])
        assert said == [["tests/others/test_" + name for name in names]] and drawn[line].verdict == "survived"


def test_the_tests_that_are_most_about_a_file_come_first(monkeypatch):
    """A statement's tests are those that run it; what runs at import has those whose file names it (as "core/a", or in an import), then
    those that run anything of it, and then whoever imports it."""
    source = "def f():\n    return (1 +\n            2)\n\n\nLIMIT = 3\n"
    judge = mutate.Judge.__new__(mutate.Judge)
    judge.measured = {
        "wide": {"tests": {"a": [1.0, {"core/a.py": [2], "core/b.py": list(range(90))}]}, "imported": ["core/a.py"]},
        "near": {"tests": {"b": [9.0, {"core/a.py": [2, 7]}], "c": [1.0, {"core/a.py": [7]}]}, "imported": ["core/a.py"]},
        "far": {"tests": {"d": [1.0, {"core/b.py": [2]}]}, "imported": ["core/a.py"]},
        "other": {"tests": {"e": [1.0, {"core/b.py": [2]}]}, "imported": ["core/b.py"]},
    }
    for text, at_import in (
        ("core/ab core import b\n", ["c", "b", "a", "d"]),
        ('("core/a", 3)\n', ["d", "c", "b", "a"]),
        ("from leveret.core import b, a\n", ["d", "c", "b", "a"]),
        ("from leveret.core.a import f\n", ["d", "c", "b", "a"]),
    ):
        monkeypatch.setattr(mutate, "read", lambda path, text=text: text if path == "far" else "")
        asked = {}
        for mutation in mutations.mutations_of(source):
            tests, _ = judge.units(mutate.Mutant("core/a.py", source, mutation))
            asked[mutation.line] = [[name for _, name, _ in tests]]
        assert asked == {2: [["b", "a"]], 3: [["b", "a"]], 6: [at_import]}, text


def test_marks_stand_before_statements_of_functions_alone_and_a_line_is_its_innermost_statements(tmp_path, monkeypatch):
    source = (
        "LIMIT = (\n    3)\n\n\ndef f(x=(\n        4)):\n    'Text.'\n    global G\n    if x:\n"
        "        G = [1,\n             2]\n    elif x is None:\n"
        "        try:\n            G = 3\n        except KeyError:\n            G = 4\n    return G\n\n\n"
        "class C:\n    A = 1\n\n    def m(self):\n        def inner():\n            return 5\n        return inner\n"
    )
    lines = (1, 2, 5, 6, 9, 10, 11, 12, 14, 16, 17, 21, 24, 25, 26)
    assert [test_by_test.statement_of(source, line) for line in lines] == [0, 0, 0, 0, 9, 10, 10, 12, 14, 16, 17, 0, 24, 25, 26]
    (tmp_path / "marked.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(test_by_test.Marked, "places", [])
    monkeypatch.setattr(test_by_test.Marked, "paths", set())
    monkeypatch.setattr(builtins, test_by_test.SEEN, bytearray(100), raising=False)
    names: dict = {}
    exec(test_by_test.Marked("marked", str(tmp_path / "marked.py")).get_code("marked"), names)
    assert not any(getattr(builtins, test_by_test.SEEN))
    assert names["f"](None) == 3
    seen = getattr(builtins, test_by_test.SEEN)
    run = [line for (_, line), was_seen in zip(test_by_test.Marked.places, seen) if was_seen]
    assert sorted(run) == [9, 12, 13, 14, 17]


@pytest.fixture
def near(tree, monkeypatch):
    """The Nearest of the small product and of tests that stand around it in many ways, all of a leg."""
    for path, text in {
        "ports/far/line.py": "",
        "ports/tower.py": "from . import line\n",
        "tests/others/test_line.py": "",
        "tests/others/test_imports.py": "from leveret.ports.far import line\n",
        "tests/others/test_imports_a_name.py": "from leveret.ports.far.line import Line\nLine(Line)\n",
        "tests/others/helper.py": "import leveret.ports.far.line\n",
        "tests/others/test_helped.py": "import helper\n",
        "tests/far/test_steps.py": "COMMAND = 'tower'\n",
        "tests/others/test_a_word.py": "def f():\n    run('leveret line')\n",
        "tests/others/test_a_tower.py": "COMMAND = 'tower'\n",
        "tests/far/test_nothing.py": "",
        "tests/others/test_nothing.py": "NAME = 'nothing'\n",
        "core/rooms/door.py": "",
        "tests/others/test_rooms.py": "",
        "tests/others/test_a_room_named.py": "NAME = 'door'\n",
        "tests/others/test_sources.py": "from leveret.tools.devtool import check\nfrom leveret.ports import tower\n",
    }.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    monkeypatch.setattr(nearest, "AREAS", (("core/rooms/", ("others/test_rooms",)),))

    def files(most, path="ports/far/line.py"):
        return nearest.Nearest(("tests/others", "tests/far"), mutate.PRODUCT, most).files(path)

    return files


def test_the_nearest_tests_are_those_called_after_a_file_that_import_it_that_share_its_folders_name_and_that_name_it(near):
    """And then those that name a file which imports it; no helper is a test, and what has nothing to do with the file is not asked."""
    order = ["others/test_line", "others/test_imports_a_name", "others/test_imports", "others/test_helped"]
    order += ["far/test_steps", "others/test_a_word", "others/test_a_tower"]
    assert near(20) == ["tests/%s.py" % each for each in order]
    assert near(3) == ["tests/%s.py" % each for each in order[:3]]


def test_a_file_of_the_core_meets_the_tests_of_its_area_and_no_text_that_has_its_name_as_a_word(near):
    assert near(20, "core/rooms/door.py") == ["tests/others/test_rooms.py"]


def test_each_area_is_there_and_so_are_its_tests():
    files = [path.replace(os.sep, "/") for path in check.python_files(*mutate.PRODUCT)]
    for start, _ in nearest.AREAS:
        assert [path for path in files if path.startswith(start)], start
        for path in [*nearest.area_of(start), *mutate.SLOW]:
            assert os.path.exists(os.path.join(legs.ROOT, path)), path


def test_the_end_names_survivors_what_is_not_judged_what_was_not_drawn_from_and_the_table():
    mutants = [mutate.Mutant("core/a.py", SOURCE, mutation) for mutation in mutations.mutations_of(SOURCE)[:10]]
    for number, mutant in enumerate(mutants):
        mutant.verdict = ("survived", "killed by its time", "", "killed")[min(number, 3)]
    told = mutation_report.lines_of(mutants, 7, mutate.WANTED, mutate.ELSEWHERE)
    assert "Survivors (1):" in told and told[2].startswith("core/a.py:2  constant: `3` -> `2`  SURVIVED (no unit test runs this line)")
    assert told[told.index("Not judged (1); the same command goes on:") + 1].startswith("core/a.py:7  ")
    assert told[-1].startswith("8 of 10 mutants died, 1 are not judged (seed 7, at least 90 %")
    assert [line.split() for line in told if line.startswith("all ")] == [["all", "10", "7", "1", "1", "1", "80", "%"]]
    for start, why in mutate.ELSEWHERE:
        assert f"  {start}*: {why}" in told


@pytest.mark.parametrize("told", (KeyboardInterrupt, SystemExit))
def test_a_signal_ends_the_tests_that_run_and_begins_no_other(monkeypatch, told):
    """Ctrl-C and SIGTERM raise in the main thread while the others wait for their children; tests/README.md."""
    monkeypatch.setattr(copies, "RUNNING", copies.Running())
    begun, ended = [], []

    def work(number):
        if number == 0:
            while not begun:
                time.sleep(0.01)
            return number
        child = copies.RUNNING.start([sys.executable, "-c", "import time; time.sleep(600)"])
        begun.append(child)
        child.wait()
        copies.RUNNING.stop(child)
        ended.append(number)
        return number

    def tell(number):
        raise told

    with pytest.raises(told):
        copies.in_threads(2, work, range(5), tell)
    assert len(begun) == len(ended) and all(child.returncode == -signal.SIGKILL for child in begun)
    assert copies.RUNNING.children == set()
    with pytest.raises(copies.Ended):
        copies.RUNNING.start([sys.executable, "-c", ""])


def test_what_is_not_drawn_from_is_there():
    """A row of ELSEWHERE names files of this tree: after a move it would leave nothing out, without a word."""
    paths = check.python_files(*mutate.PRODUCT)
    for start, _ in mutate.ELSEWHERE:
        assert any(path.startswith(start) for path in paths), start
