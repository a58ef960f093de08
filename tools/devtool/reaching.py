"""Which tests of the other legs run the statements of some mutants: `dev.py mutate` asks those, and no others, of what lives through the
unit tests.

Those tests start servers and boards, of processes that no counter of lines sees. So every such statement leaves a file behind when
it runs, in whichever process: a test file runs once for all mutants (reached_by_tests.py notes what each of its tests has left).
Laws: it kills nothing; a test that fails here is asked of no mutant.
"""

import ast
import contextlib
import json
import os
import shutil
import sys

from . import copies, test_by_test

PLUGIN = "reached_by_tests"
FILE_CPU_MAX_S = 900  # of the processor, for one test file; its tests' servers have as much each
FILE_WALL_MAX_S = 200  # of a machine that does nothing else: what a file has not said by then is not known


def marked(source, lines, mark_of):
    """The text of a product file in which the statements of functions at some lines call for `mark_of(line)`, a file that is written."""
    tree = ast.parse(source)
    for body in test_by_test.statements(tree)[0]:
        body[:] = [each for statement in body for each in _with_mark(statement, lines, mark_of)]
    return ast.unparse(ast.fix_missing_locations(tree))


def _with_mark(statement, lines, mark_of):
    if statement.lineno not in lines or isinstance(statement, (ast.Global, ast.Nonlocal)):
        return [statement]
    return [ast.parse('__import__("builtins").open(%r, "w").close()' % mark_of(statement.lineno)).body[0], statement]


@contextlib.contextmanager
def with_marks(place, statements):
    """The copy at `place` with marks at some statements: {product file: (source, lines)}. Afterwards it is as it was."""
    folder = os.path.join(os.path.dirname(place), "marks")
    os.makedirs(folder, exist_ok=True)
    try:
        for path, (source, lines) in statements.items():
            copies.write(place, path, marked(source, lines, lambda line, path=path: os.path.join(folder, name_of(path, line))))
        yield
    finally:
        for path, (source, _) in statements.items():
            copies.write(place, path, source)


def name_of(path, line):
    """The name of a statement's mark."""
    return "%s:%d" % (path.replace(os.sep, "."), line)


def tests_reaching(place, file, statements):
    """[[[test, seconds, the marks that it has reached], ...] of the tests of a file that pass, whether the file has ended in its time]."""
    beside = os.path.dirname(place)
    answers = os.path.join(beside, "answers")
    with contextlib.suppress(FileNotFoundError):
        os.remove(answers)
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), PLUGIN + ".py"), beside)  # where that Python looks first
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=no", "--no-header"]
    command += ["-p", PLUGIN, file]
    with with_marks(place, statements):
        status, _, _ = copies.run_child(place, command, FILE_CPU_MAX_S, FILE_WALL_MAX_S * copies.slowness())
    rows = []
    if os.path.exists(answers):
        with open(answers) as said:
            rows = [json.loads(line) for line in said if line.endswith("\n")]
    return [[[name, seconds, marks] for name, seconds, passes, marks in rows if passes], status is not None]
